// What a graph on a page of its own can do beside moving: it takes the place of the still picture, tells facts, finds nodes.

/** Give every node and edge its facts for pointing at; the library shows such a text as text. */
function giveFacts() {
  for (const things of [nodes, edges]) {
    things.update(things.map((thing) => ({ id: thing.id, title: thing.facts })));
  }
}

/** Say something below the graph, also to those who do not see it. */
function say(text) {
  document.getElementById("facts").textContent = text;
}

/** The facts of what was clicked: a node, or else an edge. */
function factsOf(chosen) {
  const [node] = chosen.nodes;
  const [edge] = chosen.edges;
  if (node !== undefined) return nodes.get(node).facts;
  return edge === undefined ? "" : edges.get(edge).facts;
}

/** How well a node fits a text: 0 is its very name, 3 its other facts, 4 nothing of it. */
function rank(node, text) {
  const name = node.facts.split("\n")[0].toLowerCase();
  const told = node.facts.replace(/^(id|labels): /gm, "").toLowerCase();
  const fits = [name === text, name.startsWith(text), name.includes(text), told.includes(text), true];
  return fits.indexOf(true);
}

/** The nodes that hold a text, the best fits first. */
function found(text) {
  const wanted = text.trim().toLowerCase();
  const ranked = wanted ? nodes.map((node) => [rank(node, wanted), node]) : [];
  return ranked.filter(([fit]) => fit < 4).sort(([one], [other]) => one - other).map(([, node]) => node);
}

let last = "";
let next = 0;

/** Go to the next node that holds the text of the search field. */
function find(event) {
  event.preventDefault();
  const text = document.getElementById("wanted").value;
  const hits = found(text);
  next = text === last ? next + 1 : 0;
  last = text;
  if (!hits.length) return say(text.trim() ? `No node holds “${text.trim()}”.` : "Type a word to look for.");
  const hit = hits[next % hits.length];
  network.selectNodes([hit.id]);
  network.focus(hit.id, { scale: Math.max(network.getScale(), 1) });
  say(`${(next % hits.length) + 1} of ${hits.length} found\n${hit.facts}`);
}

/** Tell those who do not see it what the drawing is; the arrow keys work while it has the focus. */
function nameDrawing() {
  const frame = document.querySelector(".vis-network");
  frame.setAttribute("role", "application");
  frame.setAttribute("aria-label", document.querySelector("h1").textContent);
}

giveFacts();
nameDrawing();
for (const act of ["click", "dragStart"]) {
  network.on(act, (chosen) => say(factsOf(chosen)));
}
network.once("afterDrawing", () => document.documentElement.classList.add("live"));
document.getElementById("search").addEventListener("submit", find);
document.getElementById("all").addEventListener("click", () => network.fit());
