// A talk with an expert: a box to ask, answers as they come, the node behind a citation, and how each answer came about.

/** The talk view: `data.turns` are the answers so far, as kgot_lab.viz.experts tells them; without `data.asks` one answer stands alone. */
function talkView(root, data, tell) {
  const state = { turns: [], pending: null, isMine: false };
  const said = announcer();
  const wrong = make("div", { class: "kl-review-wrong", role: "alert" });
  const list = make("div", { class: "kl-talk-turns" });
  const box = make("input", { type: "text", placeholder: "What would you like to know?", onkeydown: typed });
  const ask = button("Ask", send);
  const form = make("div", { class: "kl-bar kl-talk-form" }, labelled("Your question", box), ask);
  root.classList.add("kl-talk");
  if (data.asks) root.append(make("h4", {}, data.name), make("p", { class: "kl-note" }, data.about));
  if (data.asks && data.greeting) root.append(make("p", {}, data.greeting));
  root.append(list);
  if (data.asks && tell) root.append(form);
  if (data.asks) root.append(wrong, said);
  take(data.turns, 0);
  tell?.({ seen: data.turns.length });

  function typed(event) {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault(); // JupyterLab would take it
    send();
  }

  function send() {
    if (state.pending || !box.value.trim()) return;
    wrong.textContent = "";
    begin(box.value.trim());
    state.isMine = true;
    tell({ ask: box.value.trim() });
  }

  /** A question that waits for its answer: asked here, or in another view of the same talk. */
  function begin(question) {
    if (state.pending) return;
    state.pending = talkTurn(question);
    list.append(state.pending.element);
    wait(true);
  }

  function wait(on) {
    ask.disabled = on;
    root.toggleAttribute("aria-busy", on);
    if (on) said.textContent = "Waiting for the expert. Interrupting the kernel stops it.";
  }

  /** Take in answers; `first` is the number of the first of them. */
  function take(turns, first) {
    if (first > state.turns.length) return tell?.({ seen: state.turns.length });
    for (const turn of turns.slice(state.turns.length - first)) {
      const shown = state.pending ?? talkTurn(turn.question);
      if (!state.pending) list.append(shown.element);
      state.pending = null;
      state.turns.push(shown);
      shown.answer(turn);
      shown.steps(turn.steps);
      if (!data.asks) shown.open(true);
      said.textContent = data.asks ? turn.said : "";
    }
    root.dataset.turns = String(state.turns.length);
  }

  return {
    update(message) {
      if ("begun" in message) begin(message.begun);
      if (message.piece) state.pending?.piece(message.piece);
      if (message.steps) state.pending?.steps(message.steps);
      if (message.turns) take(message.turns, message.first);
      if (!message.ended) return;
      state.pending?.element.remove(); // it was refused, and nothing is kept
      state.pending = null;
      wait(false);
      if (!message.turns.length) said.textContent = "";
      else if (state.isMine) box.value = "";
      state.isMine = false;
      wrong.textContent = plain(message.wrong);
    },
    destroy() {},
  };
}

/** A question with its answer: words as they come, then chips that open the node they cite, and the steps behind it. */
function talkTurn(question) {
  const words = make("div", { class: "kl-talk-answer" }, make("p", {}, ""));
  const card = make("section", { class: "kl-review-card", role: "region", "aria-label": "The node that is cited", tabindex: 0, hidden: true });
  const walk = talkSteps((body) => clickable(body));
  const how = button("How this answer came about", () => open(walk.element.hidden), { "aria-expanded": "false", hidden: true });
  const element = make("article", { "aria-label": `Question: ${question}` }, make("h5", { class: "kl-talk-question" }, question), words, card,
    make("div", { class: "kl-bar" }, how), walk.element);
  let cards = [];

  function open(on) {
    walk.element.hidden = !on;
    how.setAttribute("aria-expanded", String(on));
  }

  /** Make buttons of the marks of citations, once their nodes are here. */
  function clickable(part) {
    for (const mark of cards.length ? part.querySelectorAll("span[data-card]") : []) {
      mark.replaceWith(make("button", { type: "button", class: "kl-button kl-talk-chip", "data-card": mark.dataset.card, title: "Show this node",
        "aria-expanded": String(card.dataset.card === mark.dataset.card), onclick: () => show(mark.dataset.card) }, mark.textContent));
    }
  }

  /** Show the node of a citation, or hide it where it is shown. */
  function show(number) {
    card.hidden = card.dataset.card === number;
    card.dataset.card = card.hidden ? "" : number;
    for (const each of element.querySelectorAll("button[data-card]")) each.setAttribute("aria-expanded", String(each.dataset.card === card.dataset.card));
    if (card.hidden) return;
    const [name, markup] = cards[number];
    card.setAttribute("aria-label", plain(`The node ${name}`));
    card.replaceChildren(escapedMarkup(markup));
  }

  return {
    element,
    open,
    piece(text) { words.firstChild.append(plain(text)); },
    answer(turn) {
      cards = turn.cards;
      words.replaceChildren(escapedMarkup(turn.answer));
      clickable(words);
    },
    steps(pages) {
      how.hidden = false;
      walk.take(pages);
    },
  };
}

/** Steps to walk through with Previous and Next, or with the arrow keys; `drawn` is told of each that was drawn. */
function talkSteps(drawn) {
  const title = make("h5", { role: "status", "aria-live": "polite" });
  const body = make("div", { class: "kl-talk-step kl-scroll", tabindex: 0, role: "region", "aria-label": "The step" });
  const back = button("‹ Previous", () => go(at - 1), { "aria-label": "Previous" });
  const forward = button("Next ›", () => go(at + 1), { "aria-label": "Next" });
  const element = make("div", { class: "kl-talk-steps", role: "group", "aria-label": "How the answer came about", hidden: true, onkeydown: key },
    make("div", { class: "kl-bar" }, back, forward, title), body);
  let pages = [], at = 0;

  function key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -pages.length, End: pages.length }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    go(at + by);
  }

  function go(number) {
    const before = at;
    at = Math.min(Math.max(number, 0), pages.length - 1);
    title.textContent = plain(`${at + 1} of ${pages.length}: ${pages[at][0]}`);
    body.replaceChildren(escapedMarkup(pages[at][1]));
    drawn(body);
    if (before !== at) body.scrollTop = 0;
    element.dataset.at = String(at);
    keepingFocus(element, () => body, () => { back.disabled = at === 0; forward.disabled = at === pages.length - 1; });
  }

  return { element, take(taken) { pages = taken; go(at); } };
}
