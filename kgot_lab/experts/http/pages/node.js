// A page with one node; its address says which: #graph/node, as the citations of an answer link it.

import { GraphPanel } from "./graph.js";

const panel = new GraphPanel(document.getElementById("graph"), (seen) => {
  document.title = `${seen.node.name} — ${seen.graph}`;
  const address = `#${encodeURIComponent(seen.graph)}/${encodeURIComponent(seen.node.id)}`;
  if (location.hash !== address) history.pushState(null, "", address);
});

function go() {
  const [graph, ...rest] = location.hash.slice(1).split("/");
  const id = decodeURIComponent(rest.join("/"));
  if (graph && id) panel.open(decodeURIComponent(graph), id, { back: true });
}

addEventListener("popstate", go); // also where the address was changed by hand
go();
