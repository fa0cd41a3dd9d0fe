// The review of claims, one that waits at a time: decided by a key or by its button; Python keeps the queue and writes the log.

const REVIEW_KEYS = [
  ["a", "Accept", "accept it"], ["r", "Reject", "reject it"], ["o", "Override", "accept it with another object or confidence"],
  ["u", "Undo", "take back your last decision"], ["k", "Previous", "look at the one before"], ["j", "Next", "look at the next one"], ["?", "Keys", "show or hide this list"],
];

/** The review view: `data.shown` is what stands there, as kgot_lab.viz.claims tells it; without `tell` nothing can be decided. */
function reviewView(root, data, tell) {
  const state = { shown: data.shown, asked: false };
  const said = announcer();
  const wrong = make("div", { class: "kl-review-wrong", role: "alert" });
  const count = make("b", {});
  const card = make("section", { class: "kl-review-card", tabindex: 0, role: "region", "aria-label": "The claim that waits" });
  const log = make("div", { class: "kl-scroll", tabindex: 0, role: "region", "aria-label": "Log of decisions" });
  const help = make("ul", { hidden: true }, ...REVIEW_KEYS.map(([key, , told]) => make("li", {}, make("kbd", {}, key), ` ${told}`)));
  const acts = { a: () => decide("accept"), r: () => decide("reject"), o: () => openForm(), u: () => ask({ undo: true }), k: () => move(-1), j: () => move(1), "?": () => showHelp() };
  const buttons = Object.fromEntries(REVIEW_KEYS.map(([key, name]) =>
    [key, make("button", { type: "button", class: "kl-button", "aria-keyshortcuts": key, onclick: () => acts[key]() }, name, make("kbd", { "aria-hidden": "true" }, key))]));
  buttons["?"].setAttribute("aria-expanded", "false");
  const object = make("input", { type: "text", size: 24 });
  const confidence = make("input", { type: "number", min: "0", max: "1", step: "any", style: "width: 7em" });
  const form = make("form", { class: "kl-review-change", hidden: true, "aria-label": "Override", novalidate: true, onsubmit: (event) => { event.preventDefault(); override(); } },
    make("div", { class: "kl-bar" }, labelled("Object", object), make("span", {}, "or"), labelled("Confidence, from 0 to 1", confidence),
      make("button", { type: "submit", class: "kl-button" }, "Accept it so"), button("Cancel", () => closeForm())),
    make("div", { class: "kl-note" }, "Change one of the two. Another object rejects this claim and lets the same claim of that object count. Enter accepts, Escape cancels."));
  root.classList.add("kl-review");
  root.append(count, card, make("div", { class: "kl-bar", role: "group", "aria-label": "Decide" }, ...Object.values(buttons)), form, wrong, said, help, log);
  root.addEventListener("keydown", keyboard);
  draw();

  function keyboard(event) {
    if (event.key === "Escape" && !form.hidden) return closeForm();
    if (event.key === "Enter" && [object, confidence].includes(event.target)) { // JupyterLab keeps a form from being sent by Enter
      event.preventDefault();
      return override();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    const act = acts[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    if (!buttons[event.key.toLowerCase()].disabled) act();
  }

  /** Ask Python for something; until it answers nothing else is asked, so that no key decides on a claim that nobody has seen. */
  function ask(message) {
    if (!tell || state.asked) return;
    state.asked = true;
    root.setAttribute("aria-busy", "true");
    said.textContent = "Waiting for Python …";
    tell({ ...message, claim: state.shown.claim?.id ?? "" });
  }

  function decide(what) {
    if (state.shown.claim) ask({ decide: what });
  }

  function move(by) {
    ask({ move: by });
  }

  function showHelp() {
    help.hidden = !help.hidden;
    buttons["?"].setAttribute("aria-expanded", String(!help.hidden));
    said.textContent = help.hidden ? "" : REVIEW_KEYS.map(([key, , told]) => `${key}: ${told}`).join("; ");
  }

  function openForm() {
    if (!state.shown.claim) return;
    object.value = state.shown.claim.object;
    confidence.value = String(state.shown.claim.confidence);
    form.hidden = false;
    object.focus();
    object.select();
  }

  function closeForm() {
    keepingFocus(root, () => card, () => { form.hidden = true; });
  }

  /** Send what was changed in the form; a number that is none is said, and what was typed stays there. */
  function override() {
    const { claim } = state.shown;
    const change = {};
    if (object.value !== claim.object) change.object = object.value;
    const typed = confidence.value.trim();
    if (typed === "" || Number(typed) !== claim.confidence) change.confidence = typed === "" ? null : Number(typed);
    ask({ decide: "override", ...change });
  }

  function draw() {
    const { claim } = state.shown;
    count.textContent = claim ? `${state.shown.place} of ${state.shown.left} that wait` : "Nothing waits for review.";
    card.replaceChildren(...(claim ? cardOf(claim) : [make("p", {}, state.shown.empty)]));
    wrong.textContent = plain(state.shown.wrong);
    said.textContent = plain(state.shown.said);
    log.replaceChildren(state.shown.log.length ? textTable("Log of decisions, the latest first", ["when (UTC)", "by", "did", "to"], state.shown.log.map((row) => row.map(plain)))
      : make("p", { class: "kl-note" }, "Nothing is decided yet."));
    root.dataset.claim = claim?.id ?? "";
    root.dataset.left = String(state.shown.left);
    keepingFocus(root, () => card, () => {
      for (const key of "aro") buttons[key].disabled = !tell || !claim;
      for (const key of "jk") buttons[key].disabled = !tell || state.shown.left < 2;
      buttons.u.disabled = !tell || !state.shown.undoable;
    });
  }

  return {
    update(message) {
      if (!message.shown) return;
      const kept = message.shown.wrong && message.shown.claim?.id === state.shown.claim?.id; // what was typed stays where it was refused
      state.shown = message.shown;
      state.asked = false;
      root.removeAttribute("aria-busy");
      draw();
      if (!form.hidden && !kept) closeForm();
    },
    destroy() {},
  };
}

/** The parts of a card: the fact, how sure it is, where it was said, and what would become of it. */
function cardOf(claim) {
  const list = (heading, lines, options = {}) => lines.length && make("div", options, make("h5", {}, heading), make("ul", {}, ...lines.map((line) => make("li", {}, line))));
  const quote = claim.quote.length ? make("blockquote", {}, claim.quote[0], make("mark", {}, claim.quote[1]), claim.quote[2]) : make("p", { class: "kl-note" }, "Its source names no place in its text.");
  return [
    make("h4", {}, claim.fact), make("p", {}, claim.sure), quote, make("p", { class: "kl-note" }, claim.origin),
    list("It was derived from", claim.premises), list("If it is accepted, these begin to hold", claim.starts),
    !claim.starts.length && make("p", {}, claim.idle), list(claim.rivals_are, claim.rivals, { class: claim.against ? "kl-review-against" : "" }),
  ].filter(Boolean);
}
