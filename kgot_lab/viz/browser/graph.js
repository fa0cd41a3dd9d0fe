// A graph that can be moved, searched and filtered; positions come from Python and stay.

const MANY_EDGES = 40; // of a graph without a plan: from here on their words need a closer look
const HAIR_EDGES = 1200; // from here on edges are thin lines without heads: what there is time to draw
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
      container: canvas, style: graphStyle(state.data.plan, canvas), layout: { name: "preset" }, elements: [],
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
    state.cy.on("mouseout", "node, edge", () => pointAway());
    state.cy.on("pan zoom", () => pointAway());
    state.cy.on("pan zoom", () => legible());
    draw(true);
    state.stops = staying(drawing, { sized: () => resized(), themed: () => restyle() });
  }

  /** The canvas has another size, or may have lost what it showed while it was out of sight. */
  function resized() {
    state.cy.resize();
    if (state.fitted === eye()) fit(); // unless the reader looked elsewhere
    else state.cy.forceRender();
  }

  /** Other colours; nothing is moved, since a page that changes its theme has for a moment another width. */
  function restyle() {
    state.cy.style(graphStyle(state.data.plan, canvas));
    legible();
    state.cy.forceRender();
  }

  /** Put the data on screen; nodes that were moved by hand stay where the hand left them. */
  function draw(fresh) {
    const { cy } = state;
    const { nodes, edges, plan, total } = state.data;
    drawing.setAttribute("aria-label", `${state.data.title}. Arrow keys go from node to node, Enter shows neighbours, plus and minus zoom.`);
    note.textContent = state.data.note ?? "";
    legend();
    if (state.table) showTable(true);
    if (!cy) return;
    const degree = new Map();
    for (const edge of edges) for (const end of [edge.source, edge.target]) degree.set(end, (degree.get(end) ?? 0) + 1);
    const moved = new Map(fresh ? [] : cy.nodes(".moved").map((node) => [node.id(), node.position()]));
    const [dense, many, hair] = [!plan && edges.length > 400, !plan && edges.length > MANY_EDGES, edges.length > HAIR_EDGES];
    const known = new Set(fresh ? nodes.map((node) => node.id) : cy.nodes().map((node) => node.id()));
    const replanned = Boolean(total && plan) || state.planned !== Boolean(plan);
    state.planned = Boolean(plan);
    cy.style(graphStyle(plan, canvas));
    cy.batch(() => {
      cy.elements().remove();
      cy.add(nodes.map((node) => ({ group: "nodes", data: nodeData(node, degree.get(node.id) ?? 0, plan), position: moved.get(node.id) ?? { x: 0, y: 0 },
        classes: [node.mark, moved.has(node.id) && "moved", node.community && "community", plan && "planned"].filter(Boolean).join(" ") })));
      cy.add(edges.map((edge) => ({ group: "edges", data: edgeData(edge, plan),
        classes: [edge.mark, plan && edge.control ? "planned" : "", dense && "plain", many && "many", edge.bundle && "bundle", hair && !edge.mark && !edge.bundle && "hair"].filter(Boolean).join(" ") })));
      hideKinds();
    });
    cy.nodes().on("dragfree", (event) => event.target.addClass("moved"));
    markWay();
    if (fresh || replanned) fit();
    else arrange();
    legible();
    const opened = plan ? [] : nodes.filter((node) => node.group && total && !known.has(node.id)).map((node) => node.id);
    if (opened.length > 1) cy.fit(cy.nodes().filter((node) => opened.includes(node.id())), 60);
    if (state.picked && !cy.getElementById(state.picked).length) unpick();
    else if (state.picked) pick(state.picked, true);
    root.dataset.nodes = String(cy.nodes().length);
    root.dataset.edges = String(cy.edges().length);
  }

  /** Put every node, line and word where it belongs on a canvas of this size. */
  function arrange() {
    const { cy } = state;
    const { nodes, edges, plan, framed } = state.data;
    if (plan) {
      state.frame = graphFrame(plan, framed ?? nodes, drawing.clientWidth, drawing.clientHeight);
    } else {
      const aspect = state.data.aspect ?? 1.5;
      const unit = Math.max((state.data.height ?? 460) * 1.05, ROOM * Math.sqrt(state.data.total || nodes.length)); // with groups: the room that all nodes would need
      state.frame = { zoom: 0, place: (at) => ({ x: at.x * unit * aspect, y: at.y * unit }) };
    }
    const { place } = state.frame;
    const ends = new Map(nodes.map((node) => [node.id, place(node)]));
    cy.batch(() => cy.nodes().not(".moved").positions((node) => ends.get(node.id())));
    if (!plan) return;
    const drawn = cy.edges();
    cy.batch(() => edges.forEach((edge, n) => {
      if (!edge.control || edge.source === edge.target) return;
      const { weight, aside } = bendOf(ends.get(edge.source), ends.get(edge.target), place({ x: edge.control[0], y: edge.control[1] }));
      const isBent = Math.abs(aside) > 1;
      drawn[n].toggleClass("bent", isBent).toggleClass("even", !isBent);
      if (isBent) drawn[n].style({ "control-point-distances": aside, "control-point-weights": weight });
    }));
    edges.forEach((edge, n) => {
      if (!edge.at || edge.source === edge.target || drawn[n].connectedNodes(".moved").length) return;
      const [middle, wanted] = [drawn[n].midpoint(), place({ x: edge.at[0], y: edge.at[1] })];
      drawn[n].scratch({ wx: wanted.x - middle.x, wy: wanted.y - middle.y });
      drawn[n].style({ "text-margin-x": wanted.x - middle.x, "text-margin-y": wanted.y - middle.y });
    });
    uncrowd(cy, plan);
  }

  /** In a graph without a plan names, groups and their bundles have the same size on screen from near and from afar. */
  function legible() {
    if (state.data.plan || state.naming) return;
    state.naming = requestAnimationFrame(() => {
      state.naming = 0;
      if (state.cy.destroyed()) return;
      const zoom = state.cy.zoom();
      state.cy.batch(() => {
        for (const node of state.cy.nodes(".community")) node.style({ width: node.data("size") / zoom, height: node.data("size") / zoom, "border-width": 3 / zoom });
        for (const edge of state.cy.edges(".bundle")) edge.style({ width: edge.data("width") / zoom, "font-size": 11 / zoom });
      });
      nameSome(state.cy, 12);
    });
  }

  function legend() {
    const marks = (state.data.marks ?? []).map((mark) => make("span", { class: `kl-mark kl-${mark}` }, `${MARK_SIGNS[mark]} ${mark}`));
    if (state.data.type_of_all) marks.push(make("span", { class: "kl-mark" }, `every line: ${state.data.type_of_all}`));
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
    pointAway();
    element.addClass("pointed");
    if (element.isNode()) element.connectedEdges().addClass("pointed").connectedNodes().addClass("pointed");
    else element.connectedNodes().addClass("pointed");
    hover.textContent = [element.data("text"), ...element.data("hover")].filter(Boolean).join("\n");
    hover.hidden = false;
    const left = Math.min(place.x + 12, drawing.clientWidth - hover.offsetWidth - 6);
    const below = place.y + 16 + hover.offsetHeight < drawing.clientHeight;
    hover.style.left = `${Math.max(4, left)}px`;
    hover.style.top = `${Math.max(4, below ? place.y + 16 : place.y - hover.offsetHeight - 10)}px`;
  }

  function pointAway() {
    hover.hidden = true;
    state.cy.elements(".pointed").removeClass("pointed");
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
    const { cy } = state;
    if (!cy) return;
    cy.resize();
    arrange();
    if (state.data.plan) cy.viewport({ zoom: state.frame.zoom, pan: { x: 0, y: 0 } });
    else cy.fit(undefined, 34);
    state.fitted = eye();
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
    destroy() { stop(); state.stops?.(); state.cy?.destroy(); },
    /** The Cytoscape instance, for those who build on this view and for tests. */
    get cytoscape() { return state.cy; },
  };
}
