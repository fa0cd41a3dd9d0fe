// The train of thought behind an answer, one step at a time or as a list.

import { button, counted, dot, make, told, words } from "./dom.js";

const RETRIEVERS = [["embedding", "meaning"], ["text", "words"], ["by_graph", "edges"], ["intent", "intent"]];
const WEIGHTS = [["embedding", "meaning"], ["text", "words"], ["graph", "edges"], ["intent", "intent"]];

/** A panel that shows how answers came about; `open` opens a node in its graph. */
export class Thoughts {
  constructor(root, open) {
    this.root = root;
    this.open = open;
    this.asList = false;
    this.empty();
  }

  empty() {
    this.steps = [];
    this.root.replaceChildren(make("p", { class: "hint" }, "When the expert answers, this shows how: the intent it recognised, where it searched, "
      + "what it found, and what the model was given."));
  }

  /** Show a train of thought from its first step; `end` says what the answer cited, once it has ended. */
  show(trace, end = null) {
    const same = this.trace === trace;
    this.trace = trace;
    this.steps = stepsOf(trace, end, this.open);
    this.at = same ? Math.min(this.at, this.steps.length - 1) : 0;
    this.draw();
  }

  draw() {
    const mode = button(this.asList ? "One at a time" : "As a list", () => { this.asList = !this.asList; this.draw(); this.root.querySelector(".mode").focus(); },
      { class: "quiet mode" });
    if (this.asList) {
      this.root.replaceChildren(make("div", { class: "step-bar" }, make("strong", {}, counted(this.steps.length, "step")), mode),
        make("ol", { class: "step-list" }, this.steps.map((step) => make("li", {}, make("h3", {}, step.title), step.body()))));
      return;
    }
    this.before = button("Previous", () => this.go(this.at - 1));
    this.after = button("Next", () => this.go(this.at + 1));
    this.where = make("span", { class: "step-where", role: "status" });
    this.rail = make("div", { class: "rail", role: "group", "aria-label": "Steps" }, this.steps.map((step, number) =>
      button(String(number + 1), () => this.go(number), { title: step.title, "aria-label": `Step ${number + 1}: ${step.title}` })));
    this.body = make("section", { class: "step", tabindex: "0", "aria-label": "The step", onkeydown: (event) => this.key(event) });
    this.root.replaceChildren(make("div", { class: "step-bar" }, this.before, this.where, this.after, mode), this.rail, this.body);
    this.go(this.at);
  }

  key(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by || event.target !== this.body) return;
    event.preventDefault();
    this.go(this.at + by);
  }

  go(at) {
    if (at < 0 || at >= this.steps.length) return;
    this.at = at;
    const step = this.steps[at];
    this.before.disabled = at === 0;
    this.after.disabled = at === this.steps.length - 1;
    if (document.activeElement === document.body && (this.before.disabled || this.after.disabled)) (this.before.disabled ? this.after : this.before).focus();
    this.where.textContent = `Step ${at + 1} of ${this.steps.length}`;
    [...this.rail.children].forEach((each, number) => {
      if (number === at) each.setAttribute("aria-current", "step");
      else each.removeAttribute("aria-current");
    });
    this.body.replaceChildren(make("h3", {}, step.title), step.body());
    this.body.scrollTop = 0;
  }
}

/** The steps of a trace, each with a title and a function that makes what it shows. */
function stepsOf(trace, end, open) {
  const steps = [
    { title: "What was asked for", body: () => asked(trace) },
    { title: "How much each retriever counts", body: () => weights(trace.weights) },
    ...trace.steps.map((step) => ({ title: words(step.method), body: () => reasons([["Why", step.reason], ["What came of it", step.found]]) })),
    { title: `Nodes found: ${trace.nodes.length}`, body: () => nodes(trace, open) },
    { title: `Edges followed: ${trace.edges.length}`, body: () => edges(trace) },
  ];
  if (trace.limitations.length) steps.push({ title: `Limitations given: ${trace.limitations.length}`, body: () => lines(trace.limitations) });
  if (trace.plan.length) steps.push({ title: "A plan", body: () => make("ol", { class: "plain" }, trace.plan.map((each) => make("li", {}, each))) });
  if (trace.delegated?.length) steps.push({ title: `Asked elsewhere: ${trace.delegated.length}`, body: () => make("div", {}, trace.delegated.map((each) => reasons(
    Object.entries(each).filter(([, value]) => value !== null && value !== "").map(([name, value]) => [words(name), told(value)])))) });
  steps.push({ title: "What was cut", body: () => (trace.cut.length ? lines(trace.cut) : make("p", {}, "Nothing: the expert was told all of it.")) });
  if (end) steps.push({ title: "What the answer cites", body: () => cited(end, open) });
  return steps;
}

function asked(trace) {
  return make("div", {},
    make("p", { class: "large" }, trace.intent ? words(trace.intent) : "No intent stood out"),
    trace.unsaid?.length && make("p", { class: "unsaid" }, `Found nowhere: ${trace.unsaid.join(", ")}`),
    reasons([["Intent score", trace.intent ? told(trace.intent_score) : ""], ["Purpose", words(trace.purpose)], ["Graphs", Object.keys(trace.graphs).join(", ")],
      ["Playbooks", trace.playbooks.join("; ") || "none fitted"],
      ["Remembered", trace.memories ? `${counted(trace.memories, "line")} of earlier conversations` : "nothing of earlier conversations"]]));
}

/** Retrievers with their weights, as bars of one scale. */
export function weights(of) {
  return make("div", {}, make("ul", { class: "retrievers" }, WEIGHTS.map(([name, said], retriever) => make("li", {},
    make("span", { class: "retriever-name" }, said), track([[retriever, of[name] ?? 0]], 1), make("span", { class: "number" }, `${Math.round(100 * (of[name] ?? 0))} %`)))));
}

function nodes(trace, open) {
  if (!trace.nodes.length) return make("p", {}, "Nothing in the graph fits the question.");
  const most = Math.max(...trace.nodes.map((node) => RETRIEVERS.reduce((sum, [retriever]) => sum + Math.max(0, node[retriever]), 0)), 1e-9);
  return make("div", {},
    make("p", { class: "legend" }, RETRIEVERS.map(([, said], retriever) => make("span", {}, make("i", { class: `swatch retriever-${retriever}` }), said))),
    make("ol", { class: "found" }, trace.nodes.map((node) => make("li", { class: node.told ? "" : "untold" },
      make("div", { class: "found-head" },
        make("button", { type: "button", class: "link", onclick: (event) => open(node, event.currentTarget) }, dot(node.type), node.name || node.id),
        make("span", { class: "number" }, node.score.toFixed(3))),
      track(RETRIEVERS.map(([retriever], number) => [number, node[retriever]]), most),
      make("div", { class: "small" }, [words(node.type), way(node.path), node.told ? "" : "not in the prompt"].filter(Boolean).join(" · "))))));
}

/** How the graph led to a node, with its edges as arrows. */
function way(path) {
  return path.replace(/<--\[([^\]]*)\]--/g, "← $1 —").replace(/--\[([^\]]*)\]-->/g, "— $1 →").replaceAll("_", " ");
}

/** A bar of parts, each as long as its share of the whole scale. */
function track(parts, whole) {
  const said = parts.filter(([, value]) => value > 0).map(([retriever, value]) => `${RETRIEVERS[retriever][1]} ${told(value)}`).join(", ");
  return make("div", { class: "track", role: "img", "aria-label": said || "nothing", title: said || "nothing" }, parts.map(([retriever, value]) => {
    const part = make("i", { class: `retriever-${retriever}` });
    part.style.width = `${Math.max(0, Math.min(100, (100 * value) / whole))}%`;
    return part;
  }));
}

function edges(trace) {
  if (!trace.edges.length) return make("p", {}, "None.");
  const names = new Map(trace.nodes.flatMap((node) => [[node.id, node.name], [`${node.graph}:${node.id}`, node.name]]));
  const name = (id) => names.get(id) || words(id.split(":").pop());
  return make("ul", { class: "plain edges" }, trace.edges.map((edge) => make("li", {},
    make("b", {}, name(edge.source)), make("span", { class: "edge" }, words(edge.type)), make("b", {}, name(edge.target)))));
}

function cited(end, open) {
  return make("div", {},
    end.citations.length ? make("ul", { class: "plain" }, end.citations.map((node) => make("li", {},
      make("button", { type: "button", class: "link", onclick: (event) => open(node, event.currentTarget) }, node.name || node.id)))) : make("p", {}, "It cites nothing that it was told."),
    end.false.length ? [make("h4", {}, "Cited, but never told"), make("ul", { class: "plain" }, end.false.map((each) => make("li", {}, make("s", {}, each))))] : "");
}

function lines(all) {
  return make("ul", { class: "plain" }, all.map((each) => make("li", {}, each)));
}

function reasons(rows) {
  return make("dl", { class: "rows" }, rows.filter(([, value]) => value).map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}
