// A run, event by event: step through it, guess what comes next, change one thing and see both runs side by side.

const STEP_SPEEDS = { "½×": 3000, "1×": 1500, "3×": 500 }; // milliseconds that an event stays
const STEP_UNHEARD = 8000; // milliseconds without a word of Python after which a fork is given up

/** The stepper: `data` as made by kgot_lab.viz.stepping.stepper; `tell` sends a message to Python, or is null on a page of its own. */
function stepperView(root, data, tell) {
  const view = { runs: [data.run, ...data.forks], chosen: 0, panes: [], active: null, quiz: null, guesses: null, drafts: new Map(), editing: null, tell, data };
  const predict = button("Predict, then reveal", () => startQuiz(!view.quiz), { class: "kl-button kl-mode", "aria-pressed": "false" });
  const score = make("span", { class: "kl-step-score", role: "status", title: "Right guesses, of those revealed" });
  const chooser = make("select", { onchange: () => choose(Number(chooser.value)) });
  const choice = labelled("Compare with", chooser);
  const body = make("div", {});
  const height = data.height ?? 440;
  root.classList.add("kl-stepper");
  root.style.setProperty("--kl-step-height", `${height}px`);
  for (const [name, value] of Object.entries({ tabindex: "0", role: "group", "aria-label": `Stepper: ${data.question}` })) root.setAttribute(name, value);
  root.append(make("div", { class: "kl-step-head" }, make("p", { class: "kl-step-question" }, data.question, data.origin ? make("span", { class: "kl-step-origin" }, data.origin) : null), choice), body);
  root.addEventListener("keydown", (event) => stepKeys(event, view));
  view.quizControls = [predict, score];
  view.guess = (value) => guess(value);
  view.edit = (number) => edit(number);
  view.sendFork = (text) => sendFork(text);
  view.moved = (pane) => moved(pane);
  view.forkAt = (at) => view.runs.findIndex((run, number) => number && run.first === at); // -1 where none was recorded
  view.compare = (at) => choose(view.forkAt(at));
  listForks();
  build(view.runs[0].events.length - 1);
  tell?.({ forks: view.runs.length - 1 });

  /** Lay the body out again: one run, or a run and a fork of it. */
  function build(at = view.panes[0]?.at ?? 0) {
    const focused = root.contains(focusedNear(root));
    for (const pane of view.panes) pane.destroy();
    const fork = view.chosen ? view.runs[view.chosen] : null;
    view.panes = [stepPane(view, 0, fork), ...(fork ? [stepPane(view, view.chosen, fork)] : [])];
    view.active = view.panes.at(-1);
    view.pairs = fork ? stepPairs(view, fork) : null;
    body.className = fork ? "kl-step-two" : "kl-step-one";
    body.replaceChildren(...(fork ? [stepSummary(view, fork), view.pairs.element] : []), ...view.panes.map((pane) => pane.element));
    const part = fork ? partingOf(fork, view.panes) : null;
    for (const pane of view.panes) pane.go(part ? part[pane.number ? 1 : 0] : at, false);
    view.pairs?.look();
    root.dataset.runs = String(view.panes.length);
    if (focused && !root.contains(focusedNear(root))) root.focus({ preventScroll: true });
  }

  function listForks() {
    choice.hidden = view.runs.length < 2;
    const names = view.runs.map((run, number) => (number ? `fork ${number}: ${run.change.words.split(" (")[0]}` : "nothing: this run alone"));
    chooser.replaceChildren(...names.map((name, number) => make("option", { value: String(number) }, name)));
    chooser.value = String(view.chosen);
  }

  function choose(number) {
    const at = view.panes[0].at;
    view.chosen = number;
    view.quiz = null;
    view.editing = null;
    showQuiz();
    chooser.value = String(number);
    build(at);
  }

  function startQuiz(on) {
    if (on) view.guesses ??= stepQuiz(view.runs[0]); // what was guessed stays when one stops for a while
    view.quiz = on ? view.guesses : null;
    view.editing = null;
    showQuiz();
    view.panes[0].go(on ? view.guesses.reached : view.panes[0].at);
  }

  function showQuiz() {
    predict.setAttribute("aria-pressed", String(Boolean(view.quiz)));
    score.textContent = view.quiz ? view.quiz.score() : "";
  }

  function guess(value) {
    const question = view.quiz?.asked;
    if (!question?.choices.some((choice) => choice.value === value)) return;
    view.quiz.answer(value);
    view.panes[0].go(question.before);
  }

  function moved(pane) {
    view.active = pane;
    view.pairs?.mark();
    if (view.quiz) showQuiz();
    if (pane.number) return;
    root.dataset.at = String(pane.at);
    tell?.({ at: pane.at });
  }

  function edit(number) {
    view.editing = number === null ? null : { at: number, words: "", waiting: false };
    view.panes[0].refresh();
    if (number !== null) root.querySelector(".kl-step-editor textarea")?.focus({ preventScroll: true });
    else view.panes[0].element.querySelector(".kl-step-edit")?.focus({ preventScroll: true });
  }

  function sendFork(text) {
    view.editing.waiting = true;
    view.sent = view.editing.at;
    view.panes[0].refresh();
    tell({ fork: view.editing.at, change: text });
    clearTimeout(view.unheard);
    view.unheard = setTimeout(() => refused("No answer from Python. Is its kernel running? Run the cell again, and then fork."), STEP_UNHEARD);
  }

  /** Say in the editor why there is no fork; what was typed stays. */
  function refused(words) {
    view.panes[0].go(view.sent);
    view.editing = { at: view.sent, waiting: false, words };
    view.panes[0].refresh();
  }

  /** Take in forks that are not here yet; `first` is the number of the first of them. */
  function take(forks, first) {
    forks.forEach((fork, number) => { if (first + number === view.runs.length) view.runs.push(fork); });
    listForks();
  }

  return {
    /** A message of Python: a fork that was made, forks made before this page was opened, or why there is none. */
    update(message) {
      if (message.forks) take(message.forks, message.number);
      if (message.fork) {
        take([message.fork], message.number);
        if (view.editing?.waiting) view.drafts.delete(view.editing.at);
        choose(message.number);
      }
      if (message.walking || message.fork || message.refused) clearTimeout(view.unheard);
      if (message.refused) refused(message.refused);
    },
    destroy() {
      clearTimeout(view.unheard);
      for (const pane of view.panes) pane.destroy();
    },
    /** What is shown, for tests. */
    get panes() { return view.panes; },
  };
}

/** Keys of the pane that has the focus, or had it last. */
function stepKeys(event, view) {
  const { target, key } = event;
  if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
  if (target.closest(".kl-drawing, textarea, select, input:not([type='range'])")) return;
  const ofPair = target.closest(".kl-step-pairs button");
  const pane = ofPair ? view.panes[Number(ofPair.dataset.side)] : view.panes.find((pane) => pane.element.contains(target)) ?? view.active;
  const onButton = target.closest("button, summary, input");
  const acts = {
    ArrowLeft: () => pane.step(-1), ArrowRight: () => pane.step(1), Home: () => pane.step(-Infinity), End: () => pane.step(Infinity),
    " ": !onButton && (() => pane.play()),
  };
  if (target.closest(".kl-step-list")) Object.assign(acts, { ArrowUp: () => pane.step(-1, true), ArrowDown: () => pane.step(1, true) });
  if (ofPair) Object.assign(acts, { ArrowUp: () => view.pairs.step(pane, -1), ArrowDown: () => view.pairs.step(pane, 1) });
  for (const choice of view.quiz?.asked?.choices ?? []) acts[choice.key.toLowerCase()] = () => view.guess(choice.value);
  const act = acts[key.length === 1 ? key.toLowerCase() : key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
}

// --- one run -------------------------------------------------------------------------------------------------------------

/** A run with its controls, its list of events (if it stands alone), what happened, and the graph; `fork` when two stand side by side. */
function stepPane(view, number, fork) {
  const run = view.runs[number];
  const pane = { number, run, at: 0, last: run.events.length - 1, timer: 0, lit: -1 }; // `lit`: the fact that was chosen
  const nav = (label, by, name) => button(label, () => pane.step(by), { "aria-label": name, title: name });
  const play = button("Play", () => pane.play(), { class: "kl-button kl-step-play" });
  const speed = make("select", { "aria-label": "Speed", title: "Speed" }, ...Object.keys(STEP_SPEEDS).map((name) => make("option", { value: name, selected: name === "1×" }, name)));
  const slider = make("input", { type: "range", min: 0, max: pane.last, value: 0, "aria-label": "Event", oninput: () => { pane.pause(); pane.go(Number(slider.value)); } });
  const strip = make("div", { class: "kl-step-strip", "aria-hidden": "true" });
  const legend = make("p", { class: "kl-step-legend", "aria-label": "What the marks mean" });
  const list = fork ? null : stepList(view, pane);
  const panel = stepPanel(view, pane);
  const graph = stepGraph(view, pane, fork);
  const title = number ? `Fork ${number}` : "The recorded run";
  pane.element = make("section", { class: "kl-step-pane", "aria-label": fork ? title : "The run" },
    fork && make("h4", { class: "kl-step-title" }, title),
    make("div", { class: "kl-bar kl-step-controls" }, nav("« First", -Infinity, "First event"), nav("‹ Back", -1, "One event back"), play,
      nav("Forward ›", 1, "One event forward"), nav("Last »", Infinity, "Last event"), speed, ...(fork ? [] : view.quizControls)),
    make("div", { class: "kl-step-slider" }, slider, strip), legend,
    make("div", { class: "kl-step-main" }, list?.element, panel.element, graph.element));

  pane.pause = () => {
    clearInterval(pane.timer);
    pane.timer = 0;
    play.textContent = "Play";
  };

  pane.play = () => {
    if (pane.timer) return pane.pause();
    if (pane.at === pane.last) pane.go(0);
    play.textContent = "Pause";
    pane.timer = setInterval(() => {
      const before = pane.at;
      pane.go(pane.at + 1);
      if (pane.at === before || pane.at === pane.last) pane.pause();
    }, STEP_SPEEDS[speed.value]);
  };

  pane.step = (by, inList = false) => {
    pane.pause();
    pane.go(Math.min(pane.last, Math.max(0, pane.at + by)));
    if (inList) list?.focus();
  };

  /** Show an event; while guessing, only as far as the next question. */
  pane.go = (at, tellOthers = true) => {
    if (view.editing && number === 0 && view.editing.at !== at) view.editing = null;
    const before = pane.at;
    pane.at = view.quiz ? view.quiz.reach(at) : at;
    if (pane.at !== before) pane.lit = -1;
    pane.refresh();
    if (tellOthers) view.moved(pane);
  };

  /** Let a fact light up, by its number; -1 for none. */
  pane.light = (number) => {
    pane.lit = number;
    pane.refresh();
  };

  pane.refresh = () => {
    slider.value = pane.at;
    slider.setAttribute("aria-valuetext", `event ${pane.at} of ${pane.last}`);
    strip.replaceChildren(...stepStrip(view, pane));
    legend.replaceChildren(...stepLegend(view, pane));
    list?.show();
    panel.show();
    graph.show();
    pane.element.dataset.at = String(pane.at);
  };

  pane.destroy = () => {
    pane.pause();
    graph.destroy();
  };
  pane.graph = graph;
  return pane;
}
