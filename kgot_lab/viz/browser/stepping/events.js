// The events of a run: as small marks under the slider, as a list by steps, and one of them as a line.

const STEP_SIGNS = { INSERT: "I", RETRIEVE: "R", "": "–" };
const STEP_STRIP = { Wrote: "wrote", Voted: "voted", Vote: "vote", Answered: "answered", Refused: "refused", Failed: "refused", Repaired: "refused" };
const STEP_MEANS = { wrote: "the graph is written", vote: "a vote: INSERT, RETRIEVE", voted: "a vote is decided", refused: "a statement is refused", answered: "the answer" };

/** An event of a run, with the texts it refers to: a fork names events of the run it was made from by their number there. */
function stepEvent(view, number, at) {
  const event = view.runs[number].events[at];
  const owner = "as" in event ? view.runs[0] : view.runs[number];
  return { ...("as" in event ? owner.events[event.as] : event), texts: owner.texts };
}

/** Small marks under the slider: where the graph was written, where a vote was sampled, where the votes were decided. */
function stepStrip(view, pane) {
  const marks = [];
  for (let at = 0; at <= (view.quiz?.reached ?? pane.last); at += 1) {
    const event = stepEvent(view, pane.number, at);
    const look = STEP_STRIP[event.kind];
    if (!look) continue;
    const place = pane.last ? at / pane.last : 0;
    const text = event.kind === "Vote" ? STEP_SIGNS[event.vote] : "";
    marks.push(make("span", { class: `kl-step-tick kl-step-tick-${look}`, title: `event ${at}: ${event.caption}`,
      style: `left:calc(8px + (100% - 16px) * ${place})` }, text));
  }
  return marks;
}

/** What the marks under the slider mean: those that this run has; while guessing, of what was reached. */
function stepLegend(view, pane) {
  const reached = view.quiz?.reached ?? pane.last;
  const looks = new Set(pane.run.events.slice(0, reached + 1).map((_, at) => STEP_STRIP[stepEvent(view, pane.number, at).kind]));
  return Object.entries(STEP_MEANS).filter(([look]) => looks.has(look)).map(([look, words]) =>
    make("span", { class: "kl-step-means" }, make("span", { class: `kl-step-tick kl-step-tick-${look}`, "aria-hidden": "true" }, look === "vote" ? "I R" : ""), words));
}

/** What a step took, in words. */
function stepCost(cost) {
  if (!cost.calls) return "no model asked";
  return `${countedAs(cost.calls, "call")} · ${cost.tokens.toLocaleString("en")} tokens · ${cost.seconds.toLocaleString("en")} s`;
}

/** The events of a run in a list, folded by step: open is the step one is at, and what the reader opened; while guessing, only what was reached. */
function stepList(view, pane) {
  const element = make("div", { class: "kl-step-list", role: "navigation", "aria-label": "Events" });
  const items = [];
  const opened = new Set();
  const groups = pane.run.steps.map((cost) => {
    const name = cost.step ? `Step ${cost.step}` : "Start";
    const heading = make("button", { type: "button", class: "kl-step-fold", onclick: () => fold(group) }, make("b", {}, name), make("span", {}));
    const group = { cost, step: cost.step, heading, events: make("ol", { "aria-label": name }) };
    element.append(make("h5", {}, heading), group.events);
    return group;
  });
  pane.run.events.forEach((_, at) => {
    const event = stepEvent(view, pane.number, at);
    const item = make("button", { type: "button", class: "kl-step-item", onclick: () => { pane.pause(); pane.go(at); } }, ...stepLine(event, at));
    items.push(item);
    groups.find((group) => group.step === event.step).events.append(make("li", {}, item));
  });
  const hidden = make("p", { class: "kl-step-hidden", hidden: true }, "… the rest is hidden");
  element.append(hidden);

  /** Open or close a step; the one that the reader is at can be closed too, until the next move. */
  function fold(group) {
    const isOpen = !group.events.hidden;
    if (isOpen) opened.delete(group.step);
    else opened.add(group.step);
    open(group, !isOpen);
  }

  function open(group, isOpen) {
    group.events.hidden = !isOpen;
    group.heading.setAttribute("aria-expanded", String(isOpen));
  }

  function show() {
    const reached = view.quiz ? view.quiz.reached : Infinity;
    const here = stepEvent(view, pane.number, pane.at).step;
    items.forEach((item, at) => {
      item.parentElement.hidden = at > reached;
      item.tabIndex = at === pane.at ? 0 : -1;
      if (at === pane.at) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    });
    for (const group of groups) {
      open(group, group.step === here || opened.has(group.step));
      group.heading.parentElement.hidden = [...group.events.children].every((item) => item.hidden);
      group.heading.lastChild.textContent = view.quiz ? "" : stepCost(group.cost); // what a step took tells how many things are still to come
    }
    hidden.hidden = reached >= pane.last;
    stepInto(element, items[pane.at]);
  }
  return { element, show, focus: () => items[pane.at].focus({ preventScroll: true }) };
}

/** The line of an event: its number, its words, and the sign of a vote. */
function stepLine(event, at) {
  const sign = event.kind === "Vote" ? make("span", { class: `kl-step-sign kl-step-sign-${STEP_SIGNS[event.vote]}`, "aria-hidden": "true" }, STEP_SIGNS[event.vote]) : null;
  return [make("span", { class: "kl-step-number" }, String(at)), sign, make("span", { class: `kl-step-caption kl-step-kind-${event.kind}` }, event.caption)];
}

/** Scroll a list, and nothing else, until an item of it can be seen. */
function stepInto(list, item, middle = false) {
  const top = item.getBoundingClientRect().top - list.getBoundingClientRect().top;
  const room = list.clientHeight - item.offsetHeight;
  if (middle) list.scrollTop += top - room / 2;
  else if (top < 48) list.scrollTop += top - 48; // below the heading that stays
  else if (top > room - 24) list.scrollTop += top - room + 24;
}
