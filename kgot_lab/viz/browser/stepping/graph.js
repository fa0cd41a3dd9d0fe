// The graph at an event.

const STEP_MANY = 15; // nodes beyond which what a write did not change steps back

/** A graph put together from the nodes and edges it shares with other graphs; where `framed` nodes go says where its own do. */
function stepGraphData(from, number, framed) {
  const graph = from.graphs[number];
  const whole = (kind, marks) => graph[kind].map((item, place) => ({ ...from[kind][item], mark: marks[place] ?? "" }));
  return { ...graph, framed, nodes: whole("nodes", graph.node_marks), edges: whole("edges", graph.edge_marks) };
}

/** The graph at an event, in a view where no node ever moves; at the ends of two runs, with what differs between them. */
function stepGraph(view, pane, fork) {
  const caption = make("h4", {});
  const tools = button("Find, table", () => showTools(tools.getAttribute("aria-expanded") !== "true"), { "aria-expanded": "false" });
  const place = make("div", { class: "kl-step-graph" });
  const element = make("div", { class: "kl-step-graph-box" }, make("div", { class: "kl-step-panel-head" }, caption, tools), place);
  const sources = fork ? [view.runs[0], fork, fork.ends] : [pane.run];
  const graph = { view: null, shown: null, framed: sources.flatMap((source) => source.nodes.filter((node) => node.beside)) };

  const atEnd = () => Boolean(fork) && pane.at === pane.last;
  const wanted = () => (atEnd() ? [fork.ends, fork.ends.of[pane.number ? 1 : 0]] : [pane.run, pane.run.graph_at[pane.at]]);

  function words() {
    if (atEnd()) return pane.number ? "At the end: + is only in the fork" : "At the end: − is not in the fork";
    if (stepEvent(view, pane.number, pane.at).kind === "Wrote") return "The graph with what this write changed";
    if (stepEvent(view, pane.number, pane.at).kind === "Answered") return "The graph with the answer and what it rests on";
    const [source, number] = wanted();
    return source.graphs[number].nodes.length ? "The graph so far" : "The graph is empty so far";
  }

  function show() {
    const [source, number] = wanted();
    caption.textContent = words();
    if (graph.shown && graph.shown[0] === source && graph.shown[1] === number) return;
    graph.shown = [source, number];
    if (graph.view) redraw();
    else start(stepGraphData(source, number, graph.framed));
  }

  function redraw() {
    const drawn = stepGraphData(...graph.shown, graph.framed);
    graph.view.update({ graph: drawn });
    if (graph.view.cytoscape && drawn.nodes.length > STEP_MANY) stepQuiet(graph.view.cytoscape);
  }

  function start(drawn) {
    graph.view = graphView(place, drawn, null);
    const drawing = place.querySelector(".kl-drawing");
    graph.stop = whenLaidOut(drawing, () => {
      const cy = graph.view.cytoscape;
      cy.on("tap", (event) => { if (event.target === cy) place.querySelector(".kl-facts").replaceChildren(); });
    });
  }

  function showTools(shown) {
    tools.setAttribute("aria-expanded", String(shown));
    place.classList.toggle("kl-step-tools", shown);
  }

  return {
    element, show, get cytoscape() { return graph.view?.cytoscape; },
    destroy: () => { graph.stop?.(); graph.view?.destroy(); },
  };
}

/** Let what did not change step back, so that in a large graph the change is what one reads; pointing at a line still names it. */
function stepQuiet(cy) {
  const marked = cy.elements(".added, .removed, .changed");
  if (!marked.length) return;
  const others = cy.elements().not(marked).not(marked.connectedNodes());
  others.style("opacity", 0.45);
  others.edges().style("text-opacity", 0);
}
