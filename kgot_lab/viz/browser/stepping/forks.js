// One thing changed: the text that is changed by hand, and two runs side by side.

/** The text of an event, to be changed by hand; what Python said against a change stays beside it. */
function stepEditor(view, event) {
  const { editing } = view;
  const area = make("textarea", { value: view.drafts.get(editing.at) ?? event.texts[event.text], rows: 9, disabled: editing.waiting, spellcheck: "false",
    "aria-label": `The ${event.part} of event ${editing.at}`, oninput: () => view.drafts.set(editing.at, area.value) });
  const known = view.data.model ? "Replies that the change does not affect come from the recording, the others from the live model." :
    "No model was given, so the fork runs up to the first reply that was not recorded.";
  const go = button("Fork", () => view.sendFork(area.value), { disabled: editing.waiting });
  const cancel = button("Cancel", () => view.edit(null));
  const said = make("p", { class: "kl-step-refused", role: "alert" }, editing.waiting ? "The run is walked again …" : editing.words);
  return [make("div", { class: "kl-step-editor" }, make("p", {}, `Change the ${event.part}, and the run is repeated from here. ${known}`), area, make("div", { class: "kl-bar" }, go, cancel), said)];
}

/** What a fork changed, what it cost, and how both runs ended. */
function stepSummary(view, fork) {
  const calls = `${fork.avoided} model ${fork.avoided === 1 ? "call" : "calls"} avoided, ${fork.asked} asked`;
  const end = (run, name) => make("div", { class: "kl-step-end" }, make("h5", {}, name),
    make("p", { class: run.finished ? "" : "kl-step-stopped" }, run.finished ? `${run.answer}${run.outcome && ` (${run.outcome})`}` : stepEnd(run)));
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

/** The event of each run at which they part: where one has none, the one before it; the last ones where nothing differs. */
function partingOf(fork, panes) {
  const parting = fork.pairs.findIndex(([, , same]) => !same);
  if (parting < 0) return panes.map((pane) => pane.last);
  const reached = (side) => fork.pairs.slice(0, parting + 1).findLast((pair) => pair[side] !== null)?.[side] ?? 0;
  return [reached(0), reached(1)];
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
