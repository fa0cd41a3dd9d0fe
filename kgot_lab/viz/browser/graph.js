// A graph that can be moved, searched and filtered; positions come from Python and stay.

const SHAPES = { 0: "ellipse", 3: "triangle", 4: "rectangle", 5: "pentagon", 6: "hexagon" };
const MARK_SIGNS = { added: "+", removed: "−", changed: "~", path: "»" };
const MANY_EDGES = 40; // from here on a caption needs a closer look: it shows on zooming in, on the picked node, and on what a write changed
const HAIR_EDGES = 1200; // from here on edges are thin lines without heads: what there is time to draw
const FEW_NODES = 60; // up to here every name is to be read at first sight
const ROOM = 42; // pixels of a side of the square that each node of a large graph has to itself

/** The graph view: `data` as made by kgot_lab.viz.graph_view; `tell` sends a message to Python, or is null on a page of its own. */
function graphView(root, data, tell) {
  const hint = () => make("p", { class: "kl-note" }, "Click a node, or search for one, to read what is known of it here.");
  const state = { data, picked: "", from: "", way: [], hiddenKinds: new Set(), cy: null, table: false, fitted: "" };
  const said = announcer();
  const hover = make("div", { class: "kl-hover", hidden: true });
  const canvas = make("div", { class: "kl-canvas" });
  const drawing = make("div", { class: "kl-drawing", tabindex: 0, role: "application", style: `height:${data.height ?? 460}px` }, canvas, hover);
  const facts = make("div", { class: "kl-facts", "aria-label": "What is picked", role: "region" },
    hint());
  const note = make("div", { class: "kl-note" });
  const tables = make("div", { class: "kl-scroll", hidden: true, tabindex: 0, role: "region", "aria-label": "Tables of what is drawn" });
  const search = make("input", { type: "search", placeholder: "part of a name", size: 14, onkeydown: (event) => event.key === "Enter" && find() });
  const expand = button("Show neighbours", () => neighbours(), { disabled: true });
  const close = button("Close its group", () => tell?.({ close: state.picked }), { hidden: true });
  const path = button("Path from here", () => startPath(), { disabled: true });
  const tableButton = button("Table", () => showTable(!state.table), { "aria-pressed": "false", class: "kl-button kl-mode" });
  const kinds = make("div", { class: "kl-bar", role: "group", "aria-label": "Types: press one to hide or show it" });
  const bar = make("div", { class: "kl-bar" }, labelled("Search", search), button("Find", () => find()), expand, close, path,
    button("Whole graph", () => fit()), tableButton);
  root.append(bar, kinds, make("div", { class: "kl-split" }, drawing, facts), said, note, tables);
  drawing.addEventListener("keydown", (event) => keyboard(event));
  const stop = whenLaidOut(drawing, () => start());

  function start() {
    state.cy = cytoscape({
      container: canvas, style: graphStyle(), layout: { name: "preset" }, elements: [],
      minZoom: 0.03, maxZoom: 6, boxSelectionEnabled: false, hideEdgesOnViewport: state.data.edges.length > HAIR_EDGES,
    });
    state.cy.on("tap", "node", (event) => {
      state.again = state.tapped === event.target.id(); // two quick clicks on different nodes are no double click
      state.tapped = event.target.id();
      pick(event.target.id());
    });
    state.cy.on("tap", () => drawing.focus({ preventScroll: true })); // so that the keys work on
    state.cy.on("dbltap", "node", () => state.again && neighbours());
    state.cy.on("mouseover", "node, edge", (event) => pointAt(event.target, event.renderedPosition));
    state.cy.on("mouseout", "node, edge", () => { hover.hidden = true; });
    state.cy.on("pan zoom", () => { hover.hidden = true; });
    state.cy.on("zoom", () => legible());
    draw(true);
    state.watcher = new ResizeObserver(() => { if (drawing.clientWidth && state.fitted === eye()) fit(); }); // unless the reader looked elsewhere
    state.watcher.observe(drawing);
  }

  /** Put the data on screen; nodes that were moved by hand stay where the hand left them. */
  function draw(fresh) {
    const { cy } = state;
    drawing.setAttribute("aria-label", `${state.data.title}. Arrow keys go from node to node, Enter shows neighbours, plus and minus zoom.`);
    note.textContent = state.data.note ?? "";
    legend();
    if (state.table) showTable(true);
    if (!cy) return;
    const aspect = state.data.aspect ?? 1.5;
    const moved = new Map(fresh ? [] : cy.nodes(".moved").map((node) => [node.id(), node.position()]));
    const dense = state.data.edges.length > 400;
    const small = (state.data.height ?? 460) * 1.05;
    const unit = Math.max(small, ROOM * Math.sqrt(state.data.total || state.data.nodes.length)); // with groups: the room that all nodes would need
    const many = state.data.edges.length > MANY_EDGES;
    const hair = state.data.edges.length > HAIR_EDGES;
    const known = new Set(fresh ? state.data.nodes.map((node) => node.id) : cy.nodes().map((node) => node.id()));
    cy.batch(() => {
      cy.elements().remove();
      cy.add(state.data.nodes.map((node) => ({ group: "nodes", data: nodeData(node),
        position: moved.get(node.id) ?? { x: node.x * unit * aspect, y: node.y * unit },
        classes: [node.mark, moved.has(node.id) && "moved", node.community && "community"].filter(Boolean).join(" ") })));
      cy.add(state.data.edges.map((edge, number) => ({ group: "edges", data: edgeData(edge, number),
        classes: [edge.mark, dense && "plain", many && "many", edge.bundle && "bundle", hair && !edge.mark && !edge.bundle && "hair"].filter(Boolean).join(" ") })));
      hideKinds();
    });
    cy.nodes().on("dragfree", (event) => event.target.addClass("moved"));
    markWay();
    if (fresh) fit();
    legible();
    const opened = state.data.nodes.filter((node) => node.group && state.data.total && !known.has(node.id)).map((node) => node.id);
    if (opened.length > 1) cy.fit(cy.nodes().filter((node) => opened.includes(node.id())), 60);
    if (state.picked && !cy.getElementById(state.picked).length) unpick();
    else if (state.picked) pick(state.picked, true);
    root.dataset.nodes = String(cy.nodes().length);
    root.dataset.edges = String(cy.edges().length);
  }

  /** Groups and their bundles have the same size on screen from near and from afar. */
  function legible() {
    const zoom = state.cy.zoom();
    if (!state.data.total) return readable(zoom);
    state.cy.batch(() => {
      for (const node of state.cy.nodes(".community")) {
        const size = node.data("size") / zoom;
        node.style({ width: size, height: size, "font-size": node.data("font") / zoom, "text-margin-y": 4 / zoom, "text-outline-width": 2 / zoom, "border-width": 3 / zoom });
      }
      for (const edge of state.cy.edges(".bundle")) edge.style({ width: edge.data("width") / zoom, "font-size": 11 / zoom });
    });
  }

  /** Words of a small graph never get smaller than on paper: from afar they keep their size on screen. */
  function readable(zoom) {
    if (state.data.nodes.length > FEW_NODES) return;
    const scale = 1 / Math.min(1, zoom);
    state.cy.style().selector("node").style({ "font-size": 12 * scale, "text-outline-width": 2 * scale, "text-max-width": 130 * scale })
      .selector("edge").style({ "font-size": 10.5 * scale, "text-outline-width": 2 * scale, "text-max-width": 120 * scale }).update();
    state.cy.batch(() => state.cy.edges().forEach((edge) => { edge.data("caption", fitting(edge, zoom)); }));
  }

  /** An edge's words where it is long enough for them; else the sign of its mark. */
  function fitting(edge, zoom) {
    const [from, to] = [edge.source().position(), edge.target().position()];
    const room = Math.hypot(from.x - to.x, from.y - to.y) * Math.min(1, zoom) - 34;
    const words = edge.data("words");
    return edge.isLoop() || room > Math.min(120, 5.6 * words.length) ? words : edge.data("sign");
  }

  function legend() {
    const marks = (state.data.marks ?? []).map((mark) => make("span", { class: `kl-mark kl-${mark}` }, `${MARK_SIGNS[mark]} ${mark}`));
    const held = [...kinds.children].indexOf(document.activeElement);
    kinds.replaceChildren(...state.data.legend.map((kind) => {
      const shown = !state.hiddenKinds.has(kind.label);
      return make("button", { type: "button", class: "kl-button kl-kind", "aria-pressed": String(shown), onclick: () => toggleKind(kind.label) },
        swatch(kind), `${kind.label || "no label"} (${kind.count.toLocaleString("en")})`);
    }), ...marks);
    if (held >= 0) kinds.children[held]?.focus({ preventScroll: true });
  }

  function toggleKind(label) {
    if (!state.hiddenKinds.delete(label)) state.hiddenKinds.add(label);
    legend();
    hideKinds();
    say(state.hiddenKinds.has(label) ? `${label || "no label"} hidden` : `${label || "no label"} shown`);
  }

  function hideKinds() {
    state.cy?.nodes().forEach((node) => { node.style("display", state.hiddenKinds.has(node.data("kind")) ? "none" : "element"); });
  }

  function pick(id, quietly = false) {
    const node = state.cy?.getElementById(id);
    if (!node?.length) return;
    if (state.from && state.from !== id && !quietly) return showPath(state.from, id);
    state.picked = id;
    state.cy.elements(".picked, .near").removeClass("picked near");
    node.addClass("picked").connectedEdges().addClass("near");
    keepingFocus(bar, () => drawing, () => {
      expand.disabled = !(tell && (node.data("more") || node.data("community")));
      close.hidden = !(tell && node.data("group"));
    });
    expand.textContent = node.data("community") ? "Open this group" : `Show neighbours${node.data("more") ? ` (${node.data("more")} not drawn)` : ""}`;
    path.disabled = false;
    facts.replaceChildren(...factsOf(node));
    if (quietly) return;
    say(`${node.data("text")} picked`);
    tell?.({ picked: id });
  }

  /** Nothing is picked: what was is no longer drawn. */
  function unpick() {
    state.picked = state.from = "";
    expand.textContent = "Show neighbours";
    keepingFocus(bar, () => drawing, () => {
      for (const control of [expand, path]) control.disabled = true;
      close.hidden = true;
    });
    facts.replaceChildren(hint());
  }

  function factsOf(node) {
    const lines = (edges, arrow) => edges.map((edge) => make("li", {}, arrow(edge)));
    const out = lines(node.outgoers("edge"), (edge) => `${edge.data("type")} → ${edge.target().data("text")}`);
    const into = lines(node.incomers("edge"), (edge) => `${edge.source().data("text")} → ${edge.data("type")}`);
    return [make("h4", {}, node.data("text")), make("div", {}, ...node.data("hover").map((line) => make("div", {}, line))), make("ul", {}, ...out, ...into)];
  }

  function pointAt(element, place) {
    hover.textContent = [element.data("text"), ...element.data("hover")].filter(Boolean).join("\n");
    hover.hidden = false;
    const left = Math.min(place.x + 12, drawing.clientWidth - hover.offsetWidth - 6);
    const below = place.y + 16 + hover.offsetHeight < drawing.clientHeight;
    hover.style.left = `${Math.max(4, left)}px`;
    hover.style.top = `${Math.max(4, below ? place.y + 16 : place.y - hover.offsetHeight - 10)}px`;
  }

  /** Pick the next node whose text, id or properties hold what is searched; where most nodes are not drawn, Python looks through all. */
  function find() {
    const wanted = search.value.trim();
    if (!wanted) return say("Type a part of a name first");
    if (state.data.total && tell) return tell({ find: wanted, after: state.picked });
    const holds = (text) => text.toLowerCase().includes(wanted.toLowerCase());
    const found = state.cy.nodes().not(".community").filter((node) => [node.data("text"), node.id(), ...node.data("hover")].some(holds));
    if (!found.length) return say(`No node${state.data.total ? " that is drawn" : ""} holds “${wanted}”`);
    const ids = found.map((node) => node.id());
    const next = ids[(ids.indexOf(state.picked) + 1) % ids.length];
    const node = state.cy.getElementById(next);
    if (state.hiddenKinds.delete(node.data("kind"))) legend(), hideKinds(); // what was searched for is to be seen
    const isEnd = Boolean(state.from);
    pick(next);
    look(next);
    if (!isEnd) say(`${ids.indexOf(next) + 1} of ${ids.length} that hold “${wanted}”: ${node.data("text")}`);
  }

  function look(id) {
    const node = state.cy.getElementById(id);
    if (state.data.total && !node.data("community") && state.cy.zoom() < 0.7) state.cy.zoom(0.9), state.cy.center(node); // a node among groups is tiny
    const { x, y } = node.renderedPosition();
    if (x < 20 || y < 20 || x > drawing.clientWidth - 20 || y > drawing.clientHeight - 20) state.cy.center(node);
  }

  function neighbours() {
    const node = state.cy?.getElementById(state.picked);
    if (!node?.length || !tell || !(node.data("more") || node.data("community"))) return;
    tell(node.data("community") ? { open: state.picked } : { expand: state.picked });
  }

  function startPath() {
    state.from = state.picked;
    say(`Now pick the other end of a path from ${state.cy.getElementById(state.from).data("text")}: click it, search it, or go there by arrow keys and press Enter`);
    drawing.focus({ preventScroll: true });
  }

  /** A shortest path in either direction: Python finds it in the whole graph; on a page of its own, among the nodes that are drawn. */
  function showPath(from, to) {
    state.from = "";
    if (tell) return tell({ path: [from, to] });
    const { cy } = state;
    const nodes = cy.nodes(":visible").not(".community");
    const found = nodes.union(nodes.edgesWith(nodes)).aStar({ root: cy.getElementById(from), goal: cy.getElementById(to), directed: false });
    state.way = found.found ? found.path.nodes().map((node) => node.id()) : [];
    markWay();
    pick(to, true);
    const name = (id) => cy.getElementById(id).data("text");
    say(found.found ? `Path: ${found.path.map((element) => (element.isNode() ? name(element.id()) : `— ${element.data("type")} —`)).join(" ")}`
      : `No path from ${name(from)} to ${name(to)} in what is drawn`);
  }

  /** Mark the nodes of the path, and the edges from each to the next. */
  function markWay() {
    const { cy } = state;
    cy.elements(".way").removeClass("way");
    state.way.forEach((id, place) => {
      const node = cy.getElementById(id);
      node.addClass("way");
      if (place) node.edgesWith(cy.getElementById(state.way[place - 1])).addClass("way");
    });
  }

  function showTable(shown) {
    state.table = shown;
    tables.hidden = !shown;
    tableButton.setAttribute("aria-pressed", String(shown));
    if (!shown) return tables.replaceChildren();
    const text = new Map(state.data.nodes.map((node) => [node.id, node.text]));
    tables.replaceChildren(
      textTable("Nodes drawn", ["node", "type", "details"], state.data.nodes.map((node) => [node.text, node.kind, node.hover.join("; ")])),
      textTable("Edges drawn", ["from", "type", "to", "details"],
        state.data.edges.map((edge) => [text.get(edge.source), edge.type, text.get(edge.target), edge.hover.join("; ")])));
  }

  /** Where the drawing is looked at from. */
  function eye() { return JSON.stringify([state.cy.zoom(), state.cy.pan()]); }

  function fit() {
    state.cy?.resize();
    state.cy?.fit(undefined, 34);
    if (state.cy && state.cy.zoom() > 1.15) state.cy.zoom({ level: 1.15, renderedPosition: { x: drawing.clientWidth / 2, y: drawing.clientHeight / 2 } });
    if (state.cy) state.fitted = eye();
  }

  function keyboard(event) {
    if (event.target !== drawing || !state.cy) return;
    const ids = state.cy.nodes(":visible").map((node) => node.id());
    const at = ids.indexOf(state.picked);
    const zoom = (factor) => state.cy.zoom({ level: state.cy.zoom() * factor, renderedPosition: { x: drawing.clientWidth / 2, y: drawing.clientHeight / 2 } });
    const go = (id) => {
      pick(id, Boolean(state.from)); // while a path is being chosen the arrows only move, and Enter takes the other end
      if (state.from) say(`${state.cy.getElementById(id).data("text")}: Enter makes it the other end`);
    };
    const forward = () => go(ids[(at + 1) % ids.length]);
    const back = () => go(ids[(at <= 0 ? ids.length : at) - 1]);
    const acts = {
      ArrowRight: forward, ArrowDown: forward, ArrowLeft: back, ArrowUp: back,
      Escape: () => { state.from = ""; say("No path is being chosen"); },
      Enter: () => (state.from && state.from !== state.picked ? showPath(state.from, state.picked) : neighbours()), "+": () => zoom(1.25), "-": () => zoom(0.8), "0": () => fit(),
    };
    if (!acts[event.key] || (event.key === "Escape" && !state.from) || (!ids.length && event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    event.stopPropagation(); // or the notebook takes the keys for its own
    acts[event.key]();
  }

  function say(text) { said.textContent = text; }

  return {
    /** A message of Python: another graph to draw, a node to pick, a word to say; or, for a page of steps, new data as a whole. */
    update(message) {
      if (message.graph) {
        state.data = message.graph;
        draw(Boolean(message.fresh));
      }
      if (message.way) state.way = message.way, markWay();
      if (message.pick) {
        const isEnd = Boolean(state.from);
        pick(message.pick, Boolean(message.way));
        look(message.pick);
        if (isEnd) return;
      }
      if (message.said) say(message.said);
    },
    destroy() { stop(); state.watcher?.disconnect(); state.cy?.destroy(); },
    /** The Cytoscape instance, for those who build on this view and for tests. */
    get cytoscape() { return state.cy; },
  };
}

function nodeData(node) {
  const sign = MARK_SIGNS[node.mark] ? `${MARK_SIGNS[node.mark]} ` : "";
  return { id: node.id, text: plain(node.text), caption: plain(sign + node.caption), kind: node.kind, hover: node.hover.map(plain), colour: node.colour,
    shape: SHAPES[node.corners] ?? "ellipse", size: node.size ?? 20, font: node.community ? (node.small ? 8 : 13) : 13, more: node.more ?? 0, community: node.community ?? "", group: node.group ?? "" };
}

function edgeData(edge, number) {
  const sign = MARK_SIGNS[edge.mark] ? `${MARK_SIGNS[edge.mark]} ` : "";
  return { source: edge.source, target: edge.target, type: plain(edge.type), hover: edge.hover.map(plain), text: plain(edge.type),
    caption: plain(sign + edge.caption), words: plain(sign + edge.caption), sign, width: edge.width ?? 1.5, font: 11 };
}

/** A small picture of how the nodes of a type look. */
function swatch(kind) {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  drawing.setAttribute("class", "kl-swatch");
  drawing.setAttribute("viewBox", "-8 -8 16 16");
  drawing.setAttribute("aria-hidden", "true");
  const shape = document.createElementNS(space, kind.corners ? "polygon" : "circle");
  if (kind.corners) {
    const turn = kind.corners === 4 ? Math.PI / 4 : -Math.PI / 2;
    const corner = (number) => turn + (2 * Math.PI * number) / kind.corners;
    const points = Array.from({ length: kind.corners }, (_, number) => `${6.5 * Math.cos(corner(number))},${6.5 * Math.sin(corner(number))}`);
    shape.setAttribute("points", points.join(" "));
  } else shape.setAttribute("r", "6");
  shape.setAttribute("fill", kind.colour);
  shape.setAttribute("stroke", "#333");
  drawing.append(shape);
  return drawing;
}

function graphStyle() {
  const text = { "font-family": "Helvetica, Arial, sans-serif", color: "#111", "text-outline-color": "#fff", "text-outline-width": 2 };
  return [
    { selector: "node", style: { ...text, label: "data(caption)", "font-size": "data(font)", "background-color": "data(colour)", shape: "data(shape)",
      width: "data(size)", height: "data(size)", "border-width": 1, "border-color": "#333", "text-valign": "bottom", "text-margin-y": 4,
      "text-wrap": "ellipsis", "text-max-width": 150, "min-zoomed-font-size": 7 } },
    { selector: "edge", style: { ...text, label: "data(caption)", "font-size": "data(font)", color: "#444", width: "data(width)", "line-color": "#8a8a8a",
      "target-arrow-color": "#8a8a8a", "target-arrow-shape": "triangle", "curve-style": "bezier", "control-point-step-size": 46,
      "text-rotation": "autorotate", "text-wrap": "ellipsis", "text-max-width": 130, "min-zoomed-font-size": 7, "loop-direction": "-45deg" } },
    { selector: "edge.many", style: { "min-zoomed-font-size": 15 } },
    { selector: "edge.near, edge.many.added, edge.many.removed, edge.many.changed, edge.many.path", style: { "min-zoomed-font-size": 6, "z-index": 15 } },
    { selector: "edge.hair", style: { "curve-style": "haystack", "target-arrow-shape": "none", "line-opacity": 0.35, width: 1, label: "" } },
    { selector: "edge.hair.near", style: { "line-opacity": 1, "line-color": "#444", label: "data(caption)" } },
    { selector: "edge.bundle", style: { "target-arrow-shape": "none", "line-color": "#b5b5b5", "line-opacity": 0.7 } },
    { selector: "edge.plain", style: { "curve-style": "straight", "line-opacity": 0.55, "arrow-scale": 0.7 } },
    { selector: "node.community", style: { "border-width": 4, "border-style": "double", "text-wrap": "wrap", "text-max-width": 100000, "min-zoomed-font-size": 7.5 } },
    { selector: "node.added", style: { "border-color": "#009E73", "border-width": 4, color: "#00614A" } },
    { selector: "node.removed", style: { "border-color": "#B34D00", "border-width": 4, "border-style": "dashed", "background-opacity": 0.4, color: "#9C4400" } },
    { selector: "node.changed", style: { "border-color": "#C28600", "border-width": 5, "border-style": "dotted", color: "#8A5F00" } },
    { selector: "edge.added", style: { "line-color": "#009E73", "target-arrow-color": "#009E73", width: 3, color: "#00614A", "line-opacity": 1 } },
    { selector: "edge.removed", style: { "line-color": "#B34D00", "target-arrow-color": "#B34D00", width: 2.5, "line-style": "dashed", color: "#9C4400", "line-opacity": 1 } },
    { selector: "edge.changed", style: { "line-color": "#C28600", "target-arrow-color": "#C28600", width: 3, "line-style": "dotted", color: "#8A5F00", "line-opacity": 1 } },
    { selector: "node.path", style: { "border-color": "#0072B2", "border-width": 4, color: "#005A8C" } },
    { selector: "edge.path", style: { "line-color": "#0072B2", "target-arrow-color": "#0072B2", width: 4, color: "#005A8C", "line-opacity": 1 } },
    { selector: ".way", style: { "line-color": "#0072B2", "target-arrow-color": "#0072B2", width: 5, "border-color": "#0072B2", "border-width": 5, "z-index": 20, "line-opacity": 1 } },
    { selector: "node.way", style: { width: "data(size)" } },
    { selector: "node.picked", style: { "border-color": "#111", "border-width": 5, "z-index": 30 } },
  ];
}
