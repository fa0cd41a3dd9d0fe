// What stands beside a graph: the legend, what is known of the thing that is picked, and tables of everything drawn.

const PICK_HINT = "Click a node or an edge for its properties. Scroll to zoom, drag to move.";

/** A button for each type, which hides it or shows it again, and what marks and a common type mean. */
function graphLegend(data, hidden, toggle) {
  const marks = (data.marks ?? []).map((mark) => make("span", { class: `kl-mark kl-${mark}` }, `${MARK_SIGNS[mark]} ${mark}`));
  const scales = (data.scales ?? []).map((scale) => make("span", { class: "kl-mark" }, scale));
  if (data.type_of_all) marks.push(make("span", { class: "kl-mark" }, `every edge: ${data.type_of_all}`));
  const kinds = data.legend.map((kind) => make("button", { type: "button", class: "kl-button kl-kind", "aria-pressed": String(!hidden.has(kind.label)), onclick: () => toggle(kind.label) },
    swatch(kind), `${kind.name} (${kind.count.toLocaleString("en")})`));
  return [...scales, ...kinds, ...marks];
}

/** What is known of a node, with its edges, or of an edge. */
function graphFacts(element) {
  const about = make("div", {}, ...element.data("hover").map((line) => make("div", {}, line)));
  if (element.isEdge()) return [make("h4", {}, element.hasClass("bundle") ? element.data("type") : calledIn(element)), about];
  const lines = (edges, arrow) => edges.map((edge) => make("li", {}, arrow(edge)));
  const out = lines(element.outgoers("edge"), (edge) => `${edge.data("type")} → ${edge.target().data("text")}`);
  const into = lines(element.incomers("edge"), (edge) => `${edge.source().data("text")} → ${edge.data("type")}`);
  return [make("h4", {}, element.data("text")), about, make("ul", {}, ...out, ...into)];
}

/** The nodes and edges that are drawn, as tables. */
function graphTables(data) {
  const text = new Map(data.nodes.map((node) => [node.id, node.text]));
  return [textTable("Nodes drawn", ["node", "type", "details"], data.nodes.map((node) => [node.text, node.kind, node.hover.join("; ")])),
    textTable("Edges drawn", ["from", "type", "to", "details"],
      data.edges.map((edge) => [text.get(edge.source), edge.type, text.get(edge.target), edge.hover.join("; ")]))];
}
