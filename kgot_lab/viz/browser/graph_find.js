// What is searched in a graph that is drawn: a text in names, relations and properties, and a way between two nodes.

const QUOTED = 60; // characters of a property around what was searched

/** Everything drawn that holds a text, as pairs of an element and a quotation: names first, then relations, then what is known of nodes and of edges. */
function holdingIn(cy, wanted) {
  const holds = (text) => text.toLowerCase().includes(wanted.toLowerCase());
  const value = (line) => line.slice(line.indexOf(": ") + 2);
  const [nodes, edges] = [cy.nodes().not(".community").toArray(), cy.edges().not(".bundle").toArray()];
  const told = (elements) => elements.flatMap((element) => {
    const line = element.data("hover").find((each) => holds(value(each)));
    return line ? [[element, quoted(line, wanted)]] : [];
  });
  const isNamed = (node) => holds(node.data("text")) || holds(node.id());
  const nearness = (node) => {
    const names = [node.data("text").toLowerCase(), node.id().toLowerCase()], sought = wanted.toLowerCase();
    return names.includes(sought) ? 0 : names.some((name) => name.startsWith(sought)) ? 1 : 2; // the very name first
  };
  const isOfType = (edge) => holds(edge.data("type"));
  return [...nodes.filter(isNamed).sort((one, other) => nearness(one) - nearness(other)).map((node) => [node, ""]), ...edges.filter(isOfType).map((edge) => [edge, ""]),
    ...told(nodes.filter((node) => !isNamed(node))), ...told(edges.filter((edge) => !isOfType(edge)))];
}

/** Some characters of a line "name: value" around the first place where the value holds a text. */
function quoted(line, wanted) {
  const begin = line.indexOf(": ") + 2, text = line.slice(begin), at = text.toLowerCase().indexOf(wanted.toLowerCase());
  const start = Math.max(0, at - Math.floor(QUOTED / 2)), end = Math.max(start + QUOTED, at + wanted.length);
  return `${line.slice(0, begin)}${start ? "…" : ""}${text.slice(start, end)}${end < text.length ? "…" : ""}`;
}

/** What one of these is called: a node by its name, an edge with its arrow. */
function calledIn(element) {
  return element.isNode() ? element.data("text") : wayTold(element.cy(), [element.source().id(), element.target().id()], element);
}

/** Which of how many things that hold a text this is. */
function holdingTold(all, number, wanted) {
  const [element, quotation] = all[number];
  const nodes = all.filter(([each]) => each.isNode()).length;
  const kinds = nodes && nodes < all.length ? ` (${countedAs(nodes, "node")}, ${countedAs(all.length - nodes, "relation")})` : "";
  const count = (some) => some.toLocaleString("en");
  return `${count(number + 1)} of ${count(all.length)} that hold “${wanted}”${kinds}: ${calledIn(element)}${quotation && ` (${quotation})`}`;
}

function countedAs(count, noun) { return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`; }

/** The ids of the nodes on a shortest way between two, whichever way edges point; none where what is drawn has no way. */
function wayIn(cy, from, to) {
  const nodes = cy.nodes(":visible").not(".community");
  const found = nodes.union(nodes.edgesWith(nodes)).aStar({ root: cy.getElementById(from), goal: cy.getElementById(to), directed: false });
  return found.found ? found.path.nodes().map((node) => node.id()) : [];
}

/** A way in words, each edge with its arrow as it is: A — knows → B ← knows — C. */
function wayTold(cy, way, only = null) {
  const name = (id) => cy.getElementById(id).data("text");
  const steps = way.slice(1).map((id, at) => {
    const between = only ?? cy.getElementById(way[at]).edgesWith(cy.getElementById(id)).sort((edge) => (edge.source().id() === way[at] ? -1 : 1))[0];
    const [type, isForward] = [between.data("type"), between.source().id() === way[at]];
    return `${isForward ? `— ${type} →` : `← ${type} —`} ${name(id)}`;
  });
  return [name(way[0]), ...steps].join(" ");
}
