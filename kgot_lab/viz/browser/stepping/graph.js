// The graph at an event.

const STEP_MANY = 15; // nodes beyond which what a write did not change steps back

/** A graph put together from the nodes and edges it shares with other graphs; where the `framed` nodes and the `looped` edges go says where its own do. */
function stepGraphData(from, number, { framed, looped }) {
  const graph = from.graphs[number];
  const whole = (kind, marks) => graph[kind].map((item, place) => ({ ...from[kind][item], mark: marks[place] ?? "" }));
  return { ...graph, framed, looped, nodes: whole("nodes", graph.node_marks), edges: whole("edges", graph.edge_marks) };
}

/** The graph at an event, in a view where no node ever moves; at the ends of two runs, with what differs between them. */
function stepGraph(view, pane, fork) {
  const caption = make("h4", {});
  const tools = button("Find, table", () => showTools(tools.getAttribute("aria-expanded") !== "true"), { "aria-expanded": "false" });
  const place = make("div", { class: "kl-step-graph" });
  const element = make("div", { class: "kl-step-graph-box" }, make("div", { class: "kl-step-panel-head" }, caption, tools), place);
  const later = stepLater(pane.run);
  const sources = fork ? [view.runs[0], fork, fork.ends] : [pane.run];
  const graph = { view: null, shown: null, framed: sources.flatMap((source) => source.nodes.filter((node) => node.beside)), looped: sources[0].edges };

  const atEnd = () => Boolean(fork) && pane.at === pane.last;
  const wanted = () => (atEnd() ? [fork.ends, fork.ends.of[pane.number ? 1 : 0]] : [pane.run, pane.run.graph_at[pane.at]]);

  function words() {
    if (atEnd()) return pane.number ? "At the end: + is only in the fork" : "At the end: − is not in the fork";
    if (stepEvent(view, pane.number, pane.at).kind === "Wrote") return "The graph with what this write changed";
    if (stepEvent(view, pane.number, pane.at).kind === "Answered") return "The graph with the answer and what it rests on";
    const [source, number] = wanted();
    const so = source.graphs[number].nodes.length ? "The graph so far" : "The graph is empty so far";
    return later.isShown() ? `${so}; grey is still to come` : so;
  }

  function show() {
    const [source, number] = wanted();
    const state = [source, number, pane.lit];
    later.show(atEnd() || view.quiz ? null : source.graphs[number]);
    caption.textContent = words();
    if (graph.shown?.every((value, place) => value === state[place])) return;
    const isLit = graph.shown && graph.shown[0] === source && graph.shown[1] === number;
    graph.shown = state;
    if (!graph.view) return start(stepGraphData(source, number, graph));
    if (!isLit || pane.lit < 0) graph.view.update({ graph: stepGraphData(source, number, graph) });
    look();
  }

  /** Let what matters at this event stand out: what a write changed, the answer with its evidence, or the one fact that was chosen. */
  function look() {
    const { cytoscape: cy } = graph.view;
    if (!cy) return;
    const isAnswer = stepEvent(view, pane.number, pane.at).kind === "Answered";
    if (pane.lit >= 0) stepLight(cy, pane.run.grounds.facts[pane.lit], getComputedStyle(place).getPropertyValue("--kl-path-line").trim());
    else if (isAnswer || cy.nodes().length > STEP_MANY) stepQuiet(cy);
  }

  function start(drawn) {
    graph.view = graphView(place, drawn, null);
    place.querySelector(".kl-said").textContent = ""; // no hint among the words of a step
    const drawing = place.querySelector(".kl-drawing");
    graph.stop = whenLaidOut(drawing, () => {
      const cy = graph.view.cytoscape;
      const facts = place.querySelector(".kl-facts");
      cy.on("tap", "edge", (event) => {
        const number = stepFactOf(pane.run, event.target.data());
        if (number < 0) return;
        place.querySelector(".kl-hover").hidden = true; // what it said is told beside now
        const isTold = stepEvent(view, pane.number, pane.at).kind === "Answered" && pane.run.grounds.evidence.includes(number);
        facts.replaceChildren(...(isTold ? [] : stepEdgeFacts(pane, number)));
        if (isTold) pane.light(number);
      });
      later.follow(drawing, cy);
      look();
    });
  }

  function showTools(shown) {
    tools.setAttribute("aria-expanded", String(shown));
    place.classList.toggle("kl-step-tools", shown);
  }

  return {
    element, show, get cytoscape() { return graph.view?.cytoscape; },
    destroy: () => { graph.stop?.(); later.stop(); graph.view?.destroy(); },
  };
}

/** Let what is not marked step back, so that in a large graph the change or the answer is what one reads; pointing at a line still names it. */
function stepQuiet(cy) {
  const marked = cy.elements(".added, .removed, .changed, .answer, .evidence");
  if (!marked.length) return;
  const others = cy.elements().not(marked).not(marked.connectedNodes());
  others.style("opacity", 0.45);
  others.edges().style("text-opacity", 0);
}

/** Let one fact stand out alone: its edge and both of its ends. */
function stepLight(cy, fact, colour) {
  cy.elements().removeStyle("opacity text-opacity");
  if (!fact.edge) return;
  const [source, type, target] = fact.edge;
  const edge = cy.edges().filter((other) => other.data("source") === source && other.data("target") === target && other.data("type") === plain(type));
  if (!edge.length) return;
  edge.removeClass("quiet").style({ width: 6, "line-color": colour, "target-arrow-color": colour, "line-style": "solid", "z-index": 30 });
  cy.elements().not(edge).not(edge.connectedNodes()).style("opacity", 0.25);
}

/** The graph at the end of a run, in grey below the one there is: what is still to come, without names, where it will be. */
function stepLater(run) {
  const last = stepGraphData(run, run.graph_at.at(-1), []);
  const framed = run.nodes.filter((node) => node.beside);
  const space = "http://www.w3.org/2000/svg";
  const drawn = (name, attributes) => {
    const made = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const inner = drawn("g", {});
  const paper = drawn("svg", { class: "kl-step-later", "aria-hidden": "true" });
  paper.append(inner);
  const later = { wanted: null, cy: null, drawing: null, sized: null };
  const edgeKey = (edge) => JSON.stringify([edge.source, edge.type, edge.target]);
  const missing = () => {
    if (!later.wanted || !last.plan || !framed.length) return { nodes: [], edges: [] };
    const here = new Set(later.wanted.nodes.map((number) => run.nodes[number].id));
    const said = new Set(later.wanted.edges.map((number) => edgeKey(run.edges[number])));
    return { nodes: last.nodes.filter((node) => !here.has(node.id)), edges: last.edges.filter((edge) => !said.has(edgeKey(edge))) };
  };

  function draw() {
    if (!later.cy || !later.drawing.clientWidth) return;
    const { nodes, edges } = missing();
    const { zoom, place } = graphFrame(last.plan ?? { width: 1, height: 1 }, framed, last.plan ? loopReach(last.plan, run.edges) : new Map(), later.drawing.clientWidth, later.drawing.clientHeight);
    const ends = new Map(last.nodes.map((node) => [node.id, place(node)]));
    later.zoom = zoom;
    inner.replaceChildren(...edges.filter((edge) => edge.source !== edge.target).map((edge) => {
      const [from, to] = [ends.get(edge.source), ends.get(edge.target)];
      const control = edge.control ? place({ x: edge.control[0], y: edge.control[1] }) : { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
      return drawn("path", { d: `M${from.x},${from.y}Q${control.x},${control.y} ${to.x},${to.y}` });
    }), ...nodes.map((node) => drawn("circle", { cx: ends.get(node.id).x, cy: ends.get(node.id).y, r: (node.size ?? 14) / 2 })));
    move();
  }

  /** Keep to where the graph is looked at from; an empty one is looked at from nowhere. */
  function move() {
    const isEmpty = !later.wanted?.nodes.length;
    const { x, y } = isEmpty ? { x: 0, y: 0 } : later.cy.pan();
    inner.setAttribute("transform", `translate(${x},${y}) scale(${isEmpty ? later.zoom : later.cy.zoom()})`);
  }

  return {
    isShown: () => Boolean(missing().nodes.length || missing().edges.length),
    show(graph) { later.wanted = graph; draw(); },
    follow(drawing, cy) {
      Object.assign(later, { drawing, cy });
      drawing.prepend(paper);
      cy.on("pan zoom", move);
      later.sized = new ResizeObserver(draw);
      later.sized.observe(drawing);
      draw();
    },
    stop() { later.sized?.disconnect(); },
  };
}
