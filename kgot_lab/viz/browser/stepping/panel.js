// What happened at an event, in words.

/** What happened at an event, in words: with the vote as it stands, prompt and reply, or the text one may change. */
function stepPanel(view, pane) {
  const title = make("h4", { role: "status", "aria-live": "polite" });
  const edit = button("Edit and fork", () => view.edit(pane.at), { class: "kl-button kl-step-edit" });
  const offer = button("Recorded fork", () => view.compare(pane.at), { class: "kl-button kl-step-offer", title: "This event was changed by hand once, and the resulting run was recorded" });
  const tally = make("div", { class: "kl-step-tally", hidden: true });
  const body = make("div", { class: "kl-step-body", tabindex: 0, role: "region", "aria-label": "What happened" });
  const element = make("div", { class: "kl-step-panel" }, make("div", { class: "kl-step-panel-head" }, title, offer, edit), tally, body);
  let shown = null;

  function show() {
    const event = stepEvent(view, pane.number, pane.at);
    const question = view.quiz?.asked;
    const editing = pane.number === 0 ? view.editing : null;
    const state = [pane.at, pane.lit, question, view.quiz, editing, editing?.waiting, editing?.words];
    if (shown && state.every((value, number) => value === shown[number])) return;
    const held = [...body.querySelectorAll(".kl-step-fact")].indexOf(document.activeElement);
    const isSame = shown?.[0] === pane.at;
    shown = state;
    title.textContent = question ? "What comes next?" : `Event ${pane.at} of ${pane.last} · ${event.step ? `step ${event.step}` : "start"} · ${event.caption}`;
    edit.hidden = !(view.tell && event.part && pane.number === 0 && !question && !editing && !view.quiz);
    offer.hidden = Boolean(question || editing || view.quiz) || view.chosen > 0 || view.forkAt(pane.at) < 0;
    const votes = question ? null : stepTally(pane.run, pane.at);
    tally.hidden = !votes;
    tally.replaceChildren(...(votes ?? []));
    body.classList.toggle("kl-step-asks", !question && !editing && event.kind === "Asked");
    const inside = question ? stepQuestion(view, question) : editing ? stepEditor(view, event) : stepHappened(view, pane, event);
    keepingFocus(element, () => body, () => body.replaceChildren(...inside));
    if (!isSame) body.scrollTop = 0;
    if (isSame && held >= 0) body.querySelectorAll(".kl-step-fact")[held]?.focus({ preventScroll: true }); // made again, with what it rests on
  }
  return { element, show };
}

/** The markup of an event, and what else is to be said at it. */
function stepHappened(view, pane, event) {
  const verdicts = (view.quiz?.verdicts(pane.at) ?? []).map((text) => make("p", { class: "kl-step-verdict" }, text));
  if (event.kind === "Answered") return [...verdicts, ...stepAnswer(view, pane)];
  const words = make("div", { class: "kl-step-words" });
  words.append(escapedMarkup(event.words));
  for (const folded of words.querySelectorAll("details")) folded.open = true; // its summary repeats what stands in it
  const parts = [...verdicts, words];
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
