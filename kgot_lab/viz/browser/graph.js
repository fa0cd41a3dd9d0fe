// A graph that can be moved, searched and filtered; positions come from Python and stay.

const MANY_EDGES = 40; // of a graph without a plan: from here on their words need a closer look
const HAIR_EDGES = 1200; // from here on edges are thin lines without heads: what there is time to draw

/** The graph view: `data` as made by kgot_lab.viz.graph.view; `tell` sends a message to Python, or is null on a page of its own. */
function graphView(root, data, tell) {
  const kept = tell ? null : keptGroups(data);
  const state = { data, picked: "", from: "", way: [], hiddenKinds: new Set(data.hidden ?? []), cy: null, table: false, fitted: "", layout: "" };
  const said = announcer();
  const hover = make("div", { class: "kl-hover", hidden: true });
  const canvas = make("div", { class: "kl-canvas" });
  const empty = make("p", { class: "kl-nothing", hidden: true }, "This graph has no nodes");
  const drawing = make("div", { class: "kl-drawing", tabindex: 0, role: "application", style: `height:${data.height ?? 460}px` }, canvas, empty, hover);
  const facts = make("div", { class: "kl-facts", "aria-label": "What is picked", role: "region" });
  const note = make("div", { class: "kl-note" });
  const tables = make("div", { class: "kl-scroll", hidden: true, tabindex: 0, role: "region", "aria-label": "Tables of what is drawn" });
  const search = make("input", { type: "search", placeholder: "name, relation, text", size: 20, onkeydown: (event) => event.key === "Enter" && find() });
  const expand = button("Show neighbours", () => neighbours(), { disabled: true });
  const close = button("Close the group", () => (tell ? tell({ close: state.picked }) : update(kept.close())), { hidden: true });
  const path = button("Path from here", () => startPath(), { disabled: true });
  const layout = make("select", { onchange: () => { state.layout = layout.value; state.cy?.nodes().removeClass("moved"); fit(); } },
    ...[["", "as drawn"], ["breadthfirst", "tree"], ["concentric", "rings by degree"], ["circle", "circle"]].map(([value, text]) => make("option", { value }, text)));
  const tableButton = button("Table", () => showTable(!state.table), { "aria-pressed": "false", class: "kl-button kl-mode" });
  const kinds = make("div", { class: "kl-bar", role: "group", "aria-label": "Types: click one to hide or show it" });
  const bar = make("div", { class: "kl-bar" }, labelled("Search", search), button("Find", () => find()), expand, close, path,
    labelled("Layout", layout, { class: "kl-label kl-layout" }),
    ...[["+", "Zoom in", () => zoomBy(state.cy, 1.25)], ["−", "Zoom out", () => zoomBy(state.cy, 0.8)], ["⤢", "Whole graph", () => fit()]]
      .map(([sign, name, act]) => button(sign, act, { "aria-label": name, title: name })), tableButton);
  root.append(bar, kinds, make("div", { class: "kl-split" }, drawing, facts), said, note, tables);
  say(PICK_HINT);
  drawing.addEventListener("keydown", (event) => event.target === drawing && state.cy && graphKeys(event, state, { pick, say, fit, neighbours, showPath }));
  const stop = whenLaidOut(drawing, () => start());

  function start() {
    state.cy = cytoscape({
      container: canvas, style: graphStyle(state.data.plan, canvas, state.data.arrows), layout: { name: "preset" }, elements: [],
      minZoom: 0.03, maxZoom: 6, boxSelectionEnabled: false, hideEdgesOnViewport: state.data.edges.length > HAIR_EDGES,
    });
    state.cy.on("tap", "node", (event) => {
      state.again = state.tapped === event.target.id(); // two quick clicks on different nodes are no double click
      state.tapped = event.target.id();
      pick(event.target.id());
    });
    state.cy.on("tap", (event) => {
      drawing.focus({ preventScroll: true }); // so that the keys work on
      if (event.target === state.cy) facts.replaceChildren();
    });
    state.cy.on("tap", "edge", (event) => {
      pickEdge(event.target);
      say(`${event.target.data("text")} picked`);
    });
    state.cy.on("dbltap", "node", () => state.again && neighbours());
    state.cy.on("mouseover", "node, edge", (event) => pointAt(event.target, event.renderedPosition));
    state.cy.on("mouseout", "node, edge", () => pointAway());
    state.cy.on("pan zoom", () => pointAway());
    state.cy.on("pan zoom", () => legible());
    state.cy.on("render", () => requestAnimationFrame(remeasure)); // in a frame of its own: one that is asked for while drawing is lost
    draw(true);
    state.stops = staying(drawing, { sized: () => resized(), themed: () => restyle() });
  }

  /** The canvas has another size, or may have lost what it showed while it was out of sight. */
  function resized() {
    state.cy.resize();
    if (state.fitted === eye()) fit(); // unless the reader looked elsewhere
    state.cy.forceRender();
  }

  /** Other colours; nothing is moved, since a page that changes its theme has for a moment another width. */
  function restyle() {
    state.cy.style(graphStyle(state.data.plan, canvas, state.data.arrows));
    legible();
    state.cy.forceRender();
  }

  /** Measure the canvas again where it was measured as nothing, between two frames, of which no observer tells. */
  function remeasure() {
    if (state.cy.destroyed() || (state.cy.width() > 0 && canvas.querySelector("canvas").width > 0)) return;
    if (!canvas.clientWidth || !canvas.clientHeight) return; // it is put away: staying() tells when it comes back
    state.cy.resize();
    state.cy.forceRender();
  }

  /** Put the data on screen; nodes that were moved by hand stay where the hand left them. */
  function draw(fresh) {
    const { cy } = state;
    const { nodes, edges, plan, total } = state.data;
    drawing.setAttribute("aria-label", `${state.data.title}. Arrow keys go from node to node, Enter shows neighbours, plus and minus zoom.`);
    note.textContent = state.data.note ?? "";
    empty.hidden = nodes.length > 0;
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
    cy.style(graphStyle(plan, canvas, state.data.arrows));
    cy.batch(() => {
      cy.elements().remove();
      cy.add(nodes.map((node) => ({ group: "nodes", data: nodeData(node, degree.get(node.id) ?? 0, plan), position: moved.get(node.id) ?? { x: 0, y: 0 },
        classes: [node.mark, moved.has(node.id) && "moved", node.community && "community", plan && "planned"].filter(Boolean).join(" ") })));
      cy.add(edges.map((edge) => ({ group: "edges", data: edgeData(edge, plan, edges.length),
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
    if (state.picked && cy.getElementById(state.picked).length) pick(state.picked, true);
    else unpick();
    root.dataset.nodes = String(cy.nodes().length);
    root.dataset.edges = String(cy.edges().length);
  }

  function arrange() {
    state.frame = placeGraph(state.cy, state.data, drawing);
    if (state.layout) layOut(state.cy, state.layout, state.data);
  }

  /** In a graph without a plan names, groups and their bundles have the same size on screen from near and from afar. */
  function legible() {
    if (state.data.plan || state.naming) return;
    state.naming = requestAnimationFrame(() => {
      state.naming = 0;
      if (!state.cy.destroyed()) sizeOnScreen(state.cy);
    });
  }

  function legend() {
    const held = [...kinds.children].indexOf(focusedNear(kinds));
    kinds.replaceChildren(...graphLegend(state.data, state.hiddenKinds, toggleKind));
    if (held >= 0) kinds.children[held]?.focus({ preventScroll: true });
  }

  function toggleKind(label) {
    if (!state.hiddenKinds.delete(label)) state.hiddenKinds.add(label);
    legend();
    hideKinds();
    if (state.cy) arrange(); // lines that were hidden have no place for their words yet
    const name = state.data.legend.find((kind) => kind.label === label)?.name ?? label;
    say(`${name} ${state.hiddenKinds.has(label) ? "hidden" : "shown"}`);
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
      expand.disabled = !opens(node);
      close.hidden = !(state.data.inside || (tell && node.data("group")));
    });
    expand.textContent = node.data("community") ? "Open this group" : `Show neighbours${node.data("more") ? ` (${node.data("more")} not drawn)` : ""}`;
    path.disabled = false;
    facts.replaceChildren(...graphFacts(node));
    facts.classList.toggle("kl-left", node.renderedPosition("x") > 0.6 * state.cy.width()); // not over the node
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
      close.hidden = !state.data.inside;
    });
    facts.replaceChildren();
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

  /** Pick the next node or edge that holds what is searched; where not all is here, Python looks through everything. */
  function find() {
    const wanted = search.value.trim();
    if (!wanted) return say("Type part of a name, relation or property first");
    state.turn = state.wanted === wanted ? state.turn + 1 : 0;
    state.wanted = wanted;
    if ((state.data.total || state.data.cut) && tell) return tell({ find: wanted, turn: state.turn });
    const all = holdingIn(state.cy, wanted);
    const inside = all.length || tell ? null : kept.holding(wanted);
    if (inside) return update(inside);
    if (!all.length) return say(`Nothing${state.data.total ? " that is drawn" : ""} holds “${wanted}”: no name, no relation, no property`);
    const number = state.turn % all.length, isEnd = state.from && all[number][0].isNode();
    take(all[number][0]);
    if (!isEnd) say(holdingTold(all, number, wanted));
  }

  /** Pick what was found, and bring it into view. */
  function take(element, quietly = false) {
    const ends = element.isNode() ? element : element.connectedNodes();
    const hidden = ends.map((node) => node.data("kind")).filter((kind) => state.hiddenKinds.delete(kind));
    if (hidden.length) legend(), hideKinds(); // what was searched for is to be seen
    if (element.isNode()) pick(element.id(), quietly);
    else pickEdge(element);
    bringIntoView(element, state.data.total);
  }

  /** Mark an edge and tell what is known of it; the picked node stays the picked one. */
  function pickEdge(edge) {
    state.cy.elements(".picked, .near").removeClass("picked near");
    edge.addClass("picked").connectedNodes().addClass("near");
    facts.replaceChildren(...graphFacts(edge));
  }

  function neighbours() {
    const node = state.cy?.getElementById(state.picked);
    if (!node?.length || !opens(node)) return;
    if (!tell) return update(kept.open(state.picked));
    tell(node.data("community") ? { open: state.picked } : { expand: state.picked });
  }

  /** Whether there is more to draw of a node or a group, and somebody who knows it. */
  function opens(node) {
    return tell ? Boolean(node.data("more") || node.data("community")) : Boolean(node.data("community")) && kept.opens(node.id());
  }

  function startPath() {
    state.from = state.picked;
    say(`Now choose the other end of a path from ${state.cy.getElementById(state.from).data("text")}: click it, search for it, or go to it with the arrow keys and press Enter`);
    drawing.focus({ preventScroll: true });
  }

  /** A shortest path in either direction: Python finds it in the whole graph; on a page of its own, among the nodes that are drawn. */
  function showPath(from, to) {
    state.from = "";
    if (tell) return tell({ path: [from, to] });
    state.way = wayIn(state.cy, from, to);
    markWay();
    pick(to, true);
    const name = (id) => state.cy.getElementById(id).data("text");
    say(state.way.length ? `Path: ${wayTold(state.cy, state.way)}` : `No path from ${name(from)} to ${name(to)} in the drawing`);
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
    tables.replaceChildren(...graphTables(state.data));
  }

  /** Where the drawing is looked at from. */
  function eye() { return JSON.stringify([state.cy.zoom(), state.cy.pan()]); }

  function fit() {
    const { cy } = state;
    if (!cy) return;
    cy.resize();
    arrange();
    if (state.data.plan && !state.layout) cy.viewport({ zoom: state.frame.zoom, pan: { x: 0, y: 0 } });
    else cy.fit(undefined, 34);
    state.fitted = eye();
  }

  function say(text) { said.textContent = text; }

  /** A message of Python: another graph to draw, a node to pick, a word to say; or, for a page of steps, new data as a whole. */
  function update(message) {
    if (message.graph) {
      state.data = message.graph;
      draw(Boolean(message.fresh));
    }
    if (message.way) state.way = message.way, markWay();
    if (message.pick) {
      const isEnd = Boolean(state.from);
      take(state.cy.getElementById(message.pick), Boolean(message.way));
      if (isEnd) return;
    }
    if (message.edge !== undefined) take(state.cy.edges()[message.edge]);
    if (message.said) say(message.said);
  }

  return {
    update,
    destroy() { stop(); state.stops?.(); state.cy?.destroy(); },
    /** The Cytoscape instance, for those who build on this view and for tests. */
    get cytoscape() { return state.cy; },
  };
}
