// A run, event by event: step through it, guess what comes next, change one thing and see both runs side by side.

const STEP_SPEEDS = { "½×": 3000, "1×": 1500, "3×": 500 }; // milliseconds that an event stays
const STEP_SIGNS = { INSERT: "I", RETRIEVE: "R", "": "–" };
const STEP_UNHEARD = 8000; // milliseconds without a word of Python after which a fork is given up
const STEP_MANY = 15; // nodes beyond which what a write did not change steps back
const STEP_STRIP = { Wrote: "wrote", Voted: "voted", Ballot: "ballot", Answered: "answered", Refused: "refused", Failed: "refused", Repaired: "refused" };

/** The stepper: `data` as made by kgot_lab.viz.stepping.stepper; `tell` sends a message to Python, or is null on a page of its own. */
function stepperView(root, data, tell) {
  const view = { runs: [data.run, ...data.forks], chosen: 0, panes: [], active: null, quiz: null, drafts: new Map(), editing: null, tell, data };
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
  listForks();
  build();
  tell?.({ forks: view.runs.length - 1 });

  /** Lay the body out anew: one run, or a run and a fork of it. */
  function build(at = view.panes[0]?.at ?? 0) {
    const focused = root.contains(document.activeElement);
    for (const pane of view.panes) pane.destroy();
    const fork = view.chosen ? view.runs[view.chosen] : null;
    view.panes = [stepPane(view, 0, fork), ...(fork ? [stepPane(view, view.chosen, fork)] : [])];
    view.active = view.panes.at(-1);
    view.pairs = fork ? stepPairs(view, fork) : null;
    body.className = fork ? "kl-step-two" : "kl-step-one";
    body.replaceChildren(...(fork ? [stepSummary(view, fork), view.pairs.element] : []), ...view.panes.map((pane) => pane.element));
    for (const pane of view.panes) pane.go(fork ? pane.last : at, false);
    view.pairs?.look();
    root.dataset.runs = String(view.panes.length);
    if (focused && !root.contains(document.activeElement)) root.focus({ preventScroll: true });
  }

  function listForks() {
    choice.hidden = view.runs.length < 2;
    const names = view.runs.map((run, number) => (number ? `fork ${number}: ${run.change.words.split(" (")[0]}` : "nothing: one run alone"));
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
    view.quiz = on ? stepQuiz(view.runs[0]) : null;
    view.editing = null;
    showQuiz();
    view.panes[0].go(on ? 0 : view.panes[0].at);
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

/** An event of a run, with the texts it refers to: a fork names events of the run it was made from by their number there. */
function stepEvent(view, number, at) {
  const event = view.runs[number].events[at];
  const owner = "as" in event ? view.runs[0] : view.runs[number];
  return { ...("as" in event ? owner.events[event.as] : event), texts: owner.texts };
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
  const pane = { number, run, at: 0, last: run.events.length - 1, timer: 0 };
  const nav = (label, by, name) => button(label, () => pane.step(by), { "aria-label": name, title: name });
  const play = button("Play", () => pane.play(), { class: "kl-button kl-step-play" });
  const speed = make("select", { "aria-label": "Speed", title: "Speed" }, ...Object.keys(STEP_SPEEDS).map((name) => make("option", { value: name, selected: name === "1×" }, name)));
  const slider = make("input", { type: "range", min: 0, max: pane.last, value: 0, "aria-label": "Event", oninput: () => { pane.pause(); pane.go(Number(slider.value)); } });
  const strip = make("div", { class: "kl-step-strip", "aria-hidden": "true" });
  const list = fork ? null : stepList(view, pane);
  const panel = stepPanel(view, pane);
  const graph = stepGraph(view, pane, fork);
  const title = number ? `Fork ${number}` : "The recorded run";
  pane.element = make("section", { class: "kl-step-pane", "aria-label": fork ? title : "The run" },
    fork && make("h4", { class: "kl-step-title" }, title),
    make("div", { class: "kl-bar kl-step-controls" }, nav("« First", -Infinity, "First event"), nav("‹ Back", -1, "One event back"), play,
      nav("Forward ›", 1, "One event forward"), nav("Last »", Infinity, "Last event"), speed, ...(fork ? [] : view.quizControls)),
    make("div", { class: "kl-step-slider" }, slider, strip),
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
    pane.at = view.quiz ? view.quiz.reach(at) : at;
    pane.refresh();
    if (tellOthers) view.moved(pane);
  };

  pane.refresh = () => {
    slider.value = pane.at;
    slider.setAttribute("aria-valuetext", `event ${pane.at} of ${pane.last}`);
    strip.replaceChildren(...stepStrip(view, pane));
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

/** Small marks under the slider: where the graph was written, where a ballot fell, where a vote was decided. */
function stepStrip(view, pane) {
  const marks = [];
  for (let at = 0; at <= (view.quiz?.reached ?? pane.last); at += 1) {
    const event = stepEvent(view, pane.number, at);
    const look = STEP_STRIP[event.kind];
    if (!look) continue;
    const place = pane.last ? at / pane.last : 0;
    const text = event.kind === "Ballot" ? STEP_SIGNS[event.ballot] : "";
    marks.push(make("span", { class: `kl-step-tick kl-step-tick-${look}`, title: `event ${at}: ${event.caption}`,
      style: `left:calc(8px + (100% - 16px) * ${place})` }, text));
  }
  return marks;
}

/** The events of a run in a list, grouped by step; while guessing, only those reached. */
function stepList(view, pane) {
  const element = make("div", { class: "kl-step-list", role: "navigation", "aria-label": "Events" });
  const items = [];
  let step = null, group = null;
  pane.run.events.forEach((_, at) => {
    const event = stepEvent(view, pane.number, at);
    if (event.step !== step) {
      step = event.step;
      group = make("ol", { "aria-label": step ? `Step ${step}` : "Start" });
      element.append(make("h5", {}, step ? `Step ${step}` : "Start"), group);
    }
    const item = make("button", { type: "button", class: "kl-step-item", onclick: () => { pane.pause(); pane.go(at); } }, ...stepLine(event, at));
    items.push(item);
    group.append(make("li", {}, item));
  });
  const hidden = make("p", { class: "kl-step-hidden", hidden: true }, "… the rest is hidden");
  element.append(hidden);

  function show() {
    const reached = view.quiz ? view.quiz.reached : Infinity;
    items.forEach((item, at) => {
      item.parentElement.hidden = at > reached;
      item.tabIndex = at === pane.at ? 0 : -1;
      if (at === pane.at) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    });
    for (const heading of element.querySelectorAll("h5")) heading.hidden = [...heading.nextElementSibling.children].every((item) => item.hidden);
    hidden.hidden = reached >= pane.last;
    stepInto(element, items[pane.at]);
  }
  return { element, show, focus: () => items[pane.at].focus({ preventScroll: true }) };
}

/** The line of an event: its number, its words, and the sign of a ballot. */
function stepLine(event, at) {
  const sign = event.kind === "Ballot" ? make("span", { class: `kl-step-sign kl-step-sign-${STEP_SIGNS[event.ballot]}`, "aria-hidden": "true" }, STEP_SIGNS[event.ballot]) : null;
  return [make("span", { class: "kl-step-number" }, String(at)), sign, make("span", { class: `kl-step-caption kl-step-kind-${event.kind}` }, event.caption)];
}

/** Scroll a list, and nothing else, until an item of it can be seen. */
function stepInto(list, item, middle = false) {
  const top = item.getBoundingClientRect().top - list.getBoundingClientRect().top;
  const room = list.clientHeight - item.offsetHeight;
  if (middle) list.scrollTop += top - room / 2;
  else if (top < 24) list.scrollTop += top - 24;
  else if (top > room - 24) list.scrollTop += top - room + 24;
}

/** What happened at an event, in words: with the vote as it stands, prompt and reply, or the text one may change. */
function stepPanel(view, pane) {
  const title = make("h4", { role: "status", "aria-live": "polite" });
  const edit = button("Edit and fork", () => view.edit(pane.at), { class: "kl-button kl-step-edit" });
  const tally = make("div", { class: "kl-step-tally", hidden: true });
  const body = make("div", { class: "kl-step-body", tabindex: 0, role: "region", "aria-label": "What happened" });
  const element = make("div", { class: "kl-step-panel" }, make("div", { class: "kl-step-panel-head" }, title, edit), tally, body);
  let shown = null;

  function show() {
    const event = stepEvent(view, pane.number, pane.at);
    const question = view.quiz?.asked;
    const editing = pane.number === 0 ? view.editing : null;
    const state = [pane.at, question?.before, view.quiz, editing, editing?.waiting, editing?.words];
    if (shown && state.every((value, number) => value === shown[number])) return;
    shown = state;
    title.textContent = question ? "What comes next?" : `Event ${pane.at} of ${pane.last} · ${event.step ? `step ${event.step}` : "start"} · ${event.caption}`;
    edit.style.visibility = view.tell && event.part && pane.number === 0 && !question && !editing && !view.quiz ? "visible" : "hidden";
    const votes = question ? null : stepTally(pane.run, pane.at);
    tally.hidden = !votes;
    tally.replaceChildren(...(votes ?? []));
    body.classList.toggle("kl-step-asks", !question && !editing && event.kind === "Asked");
    const inside = question ? stepQuestion(view, question) : editing ? stepEditor(view, event) : stepHappened(view, pane, event);
    keepingFocus(element, () => body, () => body.replaceChildren(...inside));
    body.scrollTop = 0;
  }
  return { element, show };
}

/** The markup of an event, and what else is to be said at it. */
function stepHappened(view, pane, event) {
  const words = make("div", { class: "kl-step-words" });
  words.append(escapedMarkup(event.words));
  for (const folded of words.querySelectorAll("details")) folded.open = true; // its summary repeats what stands in it
  const parts = [...(view.quiz?.verdicts(pane.at) ?? []).map((text) => make("p", { class: "kl-step-verdict" }, text)), words];
  if (event.kind === "Asked") parts.push(stepConversation(event));
  if (pane.at === pane.last && !pane.run.finished) parts.push(make("p", { class: "kl-step-stopped" }, stepEnd(pane.run)));
  return parts;
}

/** How a run without an answer ends. */
function stepEnd(run) {
  return run.stopped ? `stopped: ${run.stopped}` : "The recording stops here, before an answer.";
}

/** A prompt and its reply side by side. */
function stepConversation(event) {
  const told = event.prompt.flatMap(([role, text]) => [make("h6", {}, role), make("pre", {}, event.texts[text])]);
  const column = (name, ...inside) => make("section", { class: `kl-step-${name.toLowerCase()}`, tabindex: 0, role: "region", "aria-label": name }, make("h5", {}, name), ...inside);
  return make("div", { class: "kl-step-ask" }, column("Prompt", ...told, make("p", { class: "small" }, event.settings)),
    column("Reply", make("pre", {}, event.texts[event.reply] || "(an empty reply)")));
}

// --- votes ---------------------------------------------------------------------------------------------------------------

/** The vote that goes on at an event: its ballots so far, how many may still come, and whether they can change anything. */
function stepTally(run, at) {
  const poll = run.polls.find((poll) => at >= poll.start && at <= (poll.end < 0 ? Infinity : poll.end));
  if (!poll) return null;
  const fallen = poll.ballots.filter(([event]) => event <= at).map(([, choice]) => choice);
  const count = (choice) => fallen.filter((other) => other === choice).length;
  const left = Math.max(0, poll.possible - fallen.length);
  const slot = (choice) => (choice === undefined ? make("span", { class: "kl-step-sign kl-step-sign-open" }, "·") : make("span", { class: `kl-step-sign kl-step-sign-${STEP_SIGNS[choice]}` }, STEP_SIGNS[choice]));
  const decided = count("RETRIEVE") > count("INSERT") + left ? "RETRIEVE" : count("INSERT") >= count("RETRIEVE") + left ? "INSERT" : "";
  const rest = left ? `, ${left} not needed` : "";
  return [make("b", {}, "Ballots"), make("span", { class: "kl-step-slots", "aria-hidden": "true" }, ...Array.from({ length: fallen.length + left }, (_, number) => slot(fallen[number]))),
    make("span", {}, `${count("INSERT")} INSERT, ${count("RETRIEVE")} RETRIEVE, ${count("")} neither; `, decided ? make("b", {}, `decided: ${decided}${rest}`) : `${left} still possible`)];
}

/** The questions of a run, what was guessed, and how far the reader has come. */
function stepQuiz(run) {
  const questions = run.questions.map((question) => ({ ...question }));
  const words = (question, value) => question.choices.find((choice) => choice.value === value).words;
  const quiz = { asked: null, reached: 0 };
  const revealed = () => questions.filter((question) => question.guess && question.reveal <= quiz.reached);

  /** Go as far as the next question that was not answered; how far that is. */
  quiz.reach = (at) => {
    const next = questions.find((question) => !question.guess);
    const stopped = next && at >= next.before;
    quiz.asked = stopped ? next : null;
    const reached = stopped ? next.before - 1 : at;
    quiz.reached = Math.max(quiz.reached, reached);
    return reached;
  };
  quiz.answer = (value) => { quiz.asked.guess = value; };
  quiz.score = () => `Score: ${revealed().filter((question) => question.guess === question.truth).length} of ${revealed().length}`;
  quiz.verdicts = (at) => revealed().filter((question) => question.reveal === at).map((question) =>
    `Your guess: ${words(question, question.guess)}. ${question.guess === question.truth ? "Right." : `Wrong: ${words(question, question.truth)}.`}`);
  return quiz;
}

/** A question to the reader, with a button and a key for each guess. */
function stepQuestion(view, question) {
  const choices = question.choices.map(({ value, words, key }) => button(`${words} (key ${key})`, () => view.guess(value)));
  return [make("div", { class: "kl-step-question-card" }, make("p", { class: "kl-step-big" }, question.asks),
    make("p", {}, question.told), question.quoted && make("pre", {}, question.quoted), make("div", { class: "kl-bar" }, ...choices))];
}

// --- the graph -----------------------------------------------------------------------------------------------------------

/** A graph put together from the nodes and edges it shares with other graphs; where `framed` nodes go says where its own do. */
function stepGraphData(from, number, framed) {
  const graph = from.graphs[number];
  const whole = (kind, marks) => graph[kind].map((item, place) => ({ ...from[kind][item], mark: marks[place] ?? "" }));
  return { ...graph, framed, nodes: whole("nodes", graph.node_marks), edges: whole("edges", graph.edge_marks) };
}

/** The graph at an event, in a view where no node ever moves; at the ends of two runs, with what differs between them. */
function stepGraph(view, pane, fork) {
  const caption = make("h4", {});
  const tools = button("Find, table", () => showTools(tools.getAttribute("aria-expanded") !== "true"), { "aria-expanded": "false" });
  const place = make("div", { class: "kl-step-graph" });
  const element = make("div", { class: "kl-step-graph-box" }, make("div", { class: "kl-step-panel-head" }, caption, tools), place);
  const sources = fork ? [view.runs[0], fork, fork.ends] : [pane.run];
  const graph = { view: null, shown: null, framed: sources.flatMap((source) => source.nodes.filter((node) => node.beside)) };

  const atEnd = () => Boolean(fork) && pane.at === pane.last;
  const wanted = () => (atEnd() ? [fork.ends, fork.ends.of[pane.number ? 1 : 0]] : [pane.run, pane.run.graph_at[pane.at]]);

  function words() {
    if (atEnd()) return pane.number ? "At the end: + is only in the fork" : "At the end: − is not in the fork";
    if (stepEvent(view, pane.number, pane.at).kind === "Wrote") return "The graph with what this write changed";
    if (stepEvent(view, pane.number, pane.at).kind === "Answered") return "The graph with the answer and what it rests on";
    const [source, number] = wanted();
    return source.graphs[number].nodes.length ? "The graph so far" : "The graph is empty so far";
  }

  function show() {
    const [source, number] = wanted();
    caption.textContent = words();
    if (graph.shown && graph.shown[0] === source && graph.shown[1] === number) return;
    graph.shown = [source, number];
    if (graph.view) redraw();
    else start(stepGraphData(source, number, graph.framed));
  }

  function redraw() {
    const drawn = stepGraphData(...graph.shown, graph.framed);
    graph.view.update({ graph: drawn });
    if (graph.view.cytoscape && drawn.nodes.length > STEP_MANY) stepQuiet(graph.view.cytoscape);
  }

  function start(drawn) {
    graph.view = graphView(place, drawn, null);
    const drawing = place.querySelector(".kl-drawing");
    graph.stop = whenLaidOut(drawing, () => {
      const cy = graph.view.cytoscape;
      cy.on("tap", (event) => { if (event.target === cy) place.querySelector(".kl-facts").replaceChildren(); });
    });
  }

  function showTools(shown) {
    tools.setAttribute("aria-expanded", String(shown));
    place.classList.toggle("kl-step-tools", shown);
  }

  return {
    element, show, get cytoscape() { return graph.view?.cytoscape; },
    destroy: () => { graph.stop?.(); graph.view?.destroy(); },
  };
}

/** Let what did not change step back, so that in a large graph the change is what one reads; pointing at a line still names it. */
function stepQuiet(cy) {
  const marked = cy.elements(".added, .removed, .changed");
  if (!marked.length) return;
  const others = cy.elements().not(marked).not(marked.connectedNodes());
  others.style("opacity", 0.45);
  others.edges().style("text-opacity", 0);
}

// --- forks ---------------------------------------------------------------------------------------------------------------

/** The text of an event, to be changed by hand; what Python said against a change stays beside it. */
function stepEditor(view, event) {
  const { editing } = view;
  const area = make("textarea", { value: view.drafts.get(editing.at) ?? event.texts[event.text], rows: 9, disabled: editing.waiting, spellcheck: "false",
    "aria-label": `The ${event.part} of event ${editing.at}`, oninput: () => view.drafts.set(editing.at, area.value) });
  const known = view.data.model ? "What the change leaves as it was comes from the recording; the rest is asked of the live model." :
    "No model was given, so the fork runs up to the first reply that was not recorded.";
  const go = button("Fork", () => view.sendFork(area.value), { disabled: editing.waiting });
  const cancel = button("Cancel", () => view.edit(null));
  const said = make("p", { class: "kl-step-refused", role: "alert" }, editing.waiting ? "The run is walked again …" : editing.words);
  return [make("div", { class: "kl-step-editor" }, make("p", {}, `Change the ${event.part}, and the run is walked again from here. ${known}`), area, make("div", { class: "kl-bar" }, go, cancel), said)];
}

/** What a fork changed, what it cost, and how both runs ended. */
function stepSummary(view, fork) {
  const calls = `${fork.avoided} model ${fork.avoided === 1 ? "call" : "calls"} avoided, ${fork.asked} asked`;
  const end = (run, name) => make("div", { class: "kl-step-end" }, make("h5", {}, name),
    make("p", { class: run.finished ? "" : "kl-step-stopped" }, run.finished ? run.answer + (run.forced ? " (a guess: no read gave rows)" : "") : stepEnd(run)));
  const lines = make("div", { class: "kl-scroll kl-step-change" });
  lines.append(escapedMarkup(fork.change.lines));
  return make("div", { class: "kl-step-summary" },
    make("p", {}, make("b", {}, "Changed by hand: "), `${fork.change.words}. `, make("b", {}, calls), `. The graphs at the end differ by: ${fork.difference}.`),
    make("details", { open: lines.querySelectorAll("li").length <= 8 }, make("summary", {}, "What was changed, line by line"), lines),
    make("div", { class: "kl-step-ends" }, end(view.runs[0], "Answer of the recorded run"), end(fork, "Answer of the fork")));
}

/** Two runs as two columns: events that belong together stand in one line; where the runs part, a line says so. */
function stepPairs(view, fork) {
  const table = make("div", { class: "kl-step-pairs", role: "navigation", "aria-label": "Events of both runs" });
  const parting = fork.pairs.findIndex(([, , same]) => !same);
  const parted = make("p", { class: "kl-step-parted" }, `First difference: event ${fork.first}`);
  fork.pairs.forEach((pair, number) => {
    if (number === parting) table.append(parted);
    table.append(stepPair(view, pair));
  });

  /** Mark the event that each run is at; each run is one stop of the Tab key. */
  function mark() {
    for (const item of table.querySelectorAll("button")) {
      const isHere = view.panes[Number(item.dataset.side)].at === Number(item.dataset.event);
      item.tabIndex = isHere ? 0 : -1;
      if (isHere) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    }
  }

  /** Go to the event before or after in one of the runs, and take the focus along. */
  function step(pane, by) {
    pane.step(by);
    const item = table.querySelector(`[data-side="${view.panes.indexOf(pane)}"][data-event="${pane.at}"]`);
    item?.focus({ preventScroll: true });
    if (item) stepInto(table, item);
  }
  return { element: table, mark, step, look: () => { mark(); if (parting >= 0) stepInto(table, parted, true); } };
}

/** One line of two runs: an event of each, or of one of them, and how they relate. */
function stepPair(view, [one, other, same]) {
  const cell = (side, at) => {
    if (at === null) return make("span", {});
    const pane = view.panes[side];
    const act = () => { pane.pause(); pane.go(at); };
    return make("button", { type: "button", class: "kl-step-item", "data-side": side, "data-event": at, onclick: act }, ...stepLine(stepEvent(view, pane.number, at), at));
  };
  const [sign, words] = same ? ["=", "the same"] : one === null ? ["+", "only in the fork"] : other === null ? ["−", "not in the fork"] : ["≠", "differs"];
  return make("div", { class: `kl-step-pair${same ? " kl-step-same" : ""}` }, cell(0, one),
    make("span", { class: "kl-step-relation", title: words, "aria-label": words, role: "img" }, sign), cell(1, other));
}
