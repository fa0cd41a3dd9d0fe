// The events of a run: as small marks under the slider, as a list by steps, and one of them as a line.

const STEP_SIGNS = { INSERT: "I", RETRIEVE: "R", "": "–" };
const STEP_STRIP = { Wrote: "wrote", Voted: "voted", Ballot: "ballot", Answered: "answered", Refused: "refused", Failed: "refused", Repaired: "refused" };

/** An event of a run, with the texts it refers to: a fork names events of the run it was made from by their number there. */
function stepEvent(view, number, at) {
  const event = view.runs[number].events[at];
  const owner = "as" in event ? view.runs[0] : view.runs[number];
  return { ...("as" in event ? owner.events[event.as] : event), texts: owner.texts };
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
