// A node and what stands around it: a drawing whose places come from the server, and the same in words.

import { call } from "./api.js";
import { changes, done } from "./change.js";
import { button, colourOf, dot, icon, make, told, words } from "./dom.js";

const MANY = 14; // neighbours from which on an edge says its type only when it is pointed at
const LONGEST = 1500; // characters of a property
const WIDE = 640; // pixels from which on there is room for whole captions, and for the type of every edge

/** A panel that shows one node at a time; `open` goes to another, and back. */
export class GraphPanel {
  constructor(root, moved = () => {}) {
    this.root = root;
    this.moved = moved;
    this.before = [];
    root.replaceChildren(make("p", { class: "hint" }, "Choose a source in an answer: its node is shown here, with what is linked to it."));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.cy?.style(style()));
  }

  /** Show a node of a graph; raises nothing: what went wrong stands in the panel. */
  async open(graph, id, { back = false } = {}) {
    if (graph.includes("/")) return this.elsewhere(graph, id);
    const path = `/api/kgos/node/${encodeURIComponent(graph)}/${encodeURIComponent(id)}`;
    this.root.setAttribute("aria-busy", "true");
    const asked = this.asked = {};
    try {
      const seen = await call(path);
      if (this.asked !== asked) return; // another was chosen in the meantime
      if (!back && this.seen && !(this.seen.graph === graph && this.seen.node.id === id)) this.before.push(this.seen);
      this.draw(seen);
      this.moved(seen);
    } catch (error) {
      if (this.asked !== asked) return;
      this.end();
      this.root.replaceChildren(make("p", { class: "wrong", role: "alert" }, error.status === 404 ? `The graph ${graph} has no node ${id}.` : error.message));
      this.seen = null;
    } finally {
      if (this.asked === asked) this.root.removeAttribute("aria-busy");
    }
  }

  /** A node that an expert of another instance cited; its graph is not here. */
  elsewhere(graph, id) {
    this.asked = null;
    this.seen = null;
    this.end();
    this.root.removeAttribute("aria-busy");
    this.root.replaceChildren(make("p", { class: "hint", role: "status" }, `${id} is in a graph of another instance, ${graph.split("/")[0]}: it cannot be shown here.`));
  }

  draw(seen) {
    this.end();
    this.seen = seen;
    const to = this.before.at(-1);
    const canvas = make("div", { class: "canvas" });
    const more = seen.neighbours_in_all - seen.neighbours.length;
    const drawing = make("div", { class: "drawing", role: "img", "aria-label":
      `${seen.node.name} and ${seen.neighbours.length} of its ${seen.neighbours_in_all} neighbours, drawn; the lists below say the same` }, canvas);
    this.root.replaceChildren(
      make("div", { class: "graph-head" },
        to ? make("button", { type: "button", class: "quiet", "aria-label": `Back to ${to.node.name}`, title: `Back to ${to.node.name}`, onclick: () => this.back() }, icon("back")) : "",
        make("h2", { tabindex: "-1" }, dot(seen.node.type), seen.node.name),
        make("span", { class: "small" }, `${words(seen.node.type)} in ${seen.graph}`)),
      drawing,
      make("p", { class: "small legend" }, this.kinds(), more > 0 ? ` ${more} more are not drawn.` : ""),
      this.limitations(), this.properties(), this.neighbours(), changes(seen, (id, made) => this.changed(id, made)));
    this.start(canvas);
  }

  /** Show the graph as it is after a change. */
  async changed(id, made) {
    const { graph, node } = this.seen;
    await this.open(graph, id, { back: id === node.id });
    (this.root.querySelector(".graph-head") ?? this.root.lastElementChild).after(done({ graph }, made, () => this.open(graph, node.id, { back: true })));
  }

  async back() {
    const to = this.before.pop();
    if (!to) return;
    await this.open(to.graph, to.node.id, { back: true });
    this.root.querySelector("h2")?.focus();
  }

  kinds() {
    const types = [...new Set([this.seen.node, ...this.seen.neighbours].map((node) => node.type))];
    return types.map((type) => make("span", {}, dot(type), words(type)));
  }

  limitations() {
    const { limitations } = this.seen;
    return limitations.length === 0 ? "" : make("section", { class: "limits" }, make("h3", {}, `Limitations (${limitations.length})`),
      make("ul", { class: "plain" }, limitations.map((each) => make("li", {}, this.link(each.id, each.name), each.description ? make("p", {}, each.description) : "",
        each.workarounds.length ? make("p", { class: "small" }, "What helps: ", each.workarounds.map((id, number) => [number ? ", " : "", this.link(id)]))
          : make("p", { class: "small" }, each.blocking ? "No workaround is known." : "It blocks nothing.")))));
  }

  properties() {
    const rows = Object.entries(this.seen.properties).filter(([name]) => name !== "name");
    return rows.length === 0 ? "" : make("section", {}, make("h3", {}, "What is known of it"), make("dl", { class: "rows" },
      rows.map(([name, value]) => [make("dt", {}, words(name)), make("dd", {}, beginning(told(value)))])));
  }

  /** The neighbours by what links them, each a button that goes there. */
  neighbours() {
    const here = this.seen.node.id;
    const groups = new Map();
    for (const edge of this.seen.edges) {
      if (edge.source !== here && edge.target !== here) continue;
      const out = edge.source === here;
      const key = out ? `${words(edge.type)} →` : `← ${words(edge.type)}`;
      groups.set(key, [...(groups.get(key) ?? []), out ? edge.target : edge.source]);
    }
    return make("section", {}, make("h3", {}, `Linked to it (${this.seen.neighbours_in_all})`), groups.size ? make("dl", { class: "rows linked" },
      [...groups].map(([key, ids]) => [make("dt", {}, key), make("dd", {}, ids.map((id) => make("div", {}, this.link(id))))])) : make("p", {}, "Nothing."));
  }

  link(id, name = null) {
    const node = [this.seen.node, ...this.seen.neighbours].find((each) => each.id === id);
    const graph = this.seen.graph;
    return button([node ? dot(node.type) : "", name ?? node?.name ?? words(id.split(":").pop())], async () => {
      await this.open(graph, id);
      this.root.querySelector("h2")?.focus();
    }, { class: "link" });
  }

  start(canvas) {
    const { node, neighbours, edges } = this.seen;
    const rows = Math.ceil(neighbours.length / 2);
    canvas.parentElement.style.height = `${Math.max(240, (neighbours.length > MANY ? 34 : 56) * rows + 70)}px`;
    const many = neighbours.length > MANY;
    this.cy = globalThis.cytoscape({
      container: canvas, style: style(), layout: { name: "preset" }, boxSelectionEnabled: false, userZoomingEnabled: false, userPanningEnabled: false,
      elements: [
        ...[node, ...neighbours].map((each) => ({ group: "nodes", data: { id: each.id, name: each.id === node.id ? shortened(each.name) : each.name, kind: colourOf(each.type), x: each.x, y: each.y, size: 13 + Math.min(9, 2 * Math.log2(1 + each.links)) },
          classes: each.id === node.id ? "middle" : each.y < 0.5 ? "above" : "" })),
        ...edges.map((edge) => ({ group: "edges", data: { source: edge.source, target: edge.target, type: words(edge.type) },
          classes: [edge.source === node.id ? "out" : edge.target === node.id ? "in" : "aside", many ? "" : "said"].join(" ") })),
      ],
    });
    this.cy.on("tap", "node", (event) => { if (event.target.id() !== node.id) this.open(this.seen.graph, event.target.id()); });
    this.cy.on("mouseover", "node", (event) => event.target.connectedEdges().addClass("near"));
    this.cy.on("mouseout", "node", (event) => event.target.connectedEdges().removeClass("near"));
    this.watcher = new ResizeObserver(() => this.place(canvas));
    this.watcher.observe(canvas);
  }

  /** Put every node where the server says, in whatever room there is. */
  place(canvas) {
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || !height) return;
    const wide = width >= WIDE;
    const side = wide ? 112 : Math.min(58, 0.15 * width); // between the outermost nodes and the sides, for their captions
    this.cy.resize();
    this.cy.elements().toggleClass("wide", wide).toggleClass("slim", width < 340);
    this.cy.batch(() => this.cy.nodes().positions((each) => ({ x: side + each.data("x") * (width - 2 * side), y: 18 + each.data("y") * (height - 46) })));
    this.cy.viewport({ zoom: 1, pan: { x: 0, y: 0 } });
    canvas.dataset.drawn = String(this.cy.nodes().length);
  }

  end() {
    this.watcher?.disconnect();
    this.cy?.destroy();
    this.cy = null;
  }
}

/** As much of a text as one reads beside a drawing: a node may hold a whole file. */
function beginning(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}… (${text.length.toLocaleString("en")} characters)` : text;
}

/** A name that fits into the middle. */
function shortened(name) {
  return name.length > 24 ? `${name.slice(0, 22).trim()}…` : name;
}

/** How the drawing looks, in the colours of the page. */
function style() {
  const page = getComputedStyle(document.documentElement);
  const colour = (name) => page.getPropertyValue(`--${name}`).trim();
  const text = { "font-family": "system-ui, sans-serif", "text-outline-color": colour("surface"), "text-outline-width": 2.5 };
  return [
    { selector: "node", style: { ...text, label: "data(name)", color: colour("ink"), "font-size": 11, width: "data(size)", height: "data(size)",
      "background-color": (node) => colour(`kind-${node.data("kind")}`), "text-valign": "bottom", "text-margin-y": 3, "text-wrap": "ellipsis", "text-max-width": 112 } },
    { selector: "edge", style: { ...text, width: 1.4, color: colour("muted"), "font-size": 9.5, "line-color": colour("edge"), "target-arrow-color": colour("edge"),
      "target-arrow-shape": "triangle", "arrow-scale": 0.8, "curve-style": "bezier", "text-rotation": "autorotate", "source-text-rotation": "autorotate", "target-text-rotation": "autorotate" } },
    { selector: "node.above", style: { "text-valign": "top", "text-margin-y": -3 } }, // away from the edges, which come from the middle
    { selector: "edge.out.said, edge.out.near", style: { "target-label": "data(type)", "target-text-offset": 46 } },
    { selector: "edge.in.said, edge.in.near", style: { "source-label": "data(type)", "source-text-offset": 46 } },
    { selector: "node.slim", style: { "text-max-width": 90 } },
    { selector: "node.wide", style: { "text-max-width": 215 } },
    { selector: "edge.out.wide", style: { "target-label": "data(type)", "target-text-offset": 96 } },
    { selector: "edge.in.wide", style: { "source-label": "data(type)", "source-text-offset": 96 } },
    { selector: "edge.aside.near", style: { label: "data(type)" } },
    { selector: "edge.aside", style: { width: 1, "line-opacity": 0.45, "line-style": "dashed", "arrow-scale": 0.6, "curve-style": "unbundled-bezier", "control-point-distances": 26, "control-point-weights": 0.5 } },
    { selector: "edge.near", style: { width: 2.2, color: colour("ink"), "line-color": colour("accent"), "target-arrow-color": colour("accent"), "line-opacity": 1, "z-index": 10 } },
    { selector: "node.middle", style: { shape: "round-rectangle", width: 78, height: (node) => (node.data("name").length > 11 ? 40 : 28), "font-size": 12, "font-weight": "bold",
      "background-color": colour("surface"), "border-width": 3, "border-color": (node) => colour(`kind-${node.data("kind")}`), "text-valign": "center", "text-margin-y": 0,
      "text-wrap": "wrap", "text-max-width": 72, "text-outline-width": 0, "z-index": 20 } },
  ];
}
