// A graph without a mouse: arrow keys go from node to node, Enter opens or takes, plus and minus zoom.

/** What a key does in the drawing that has the focus; the last argument holds what a graph view can do. */
function graphKeys(event, state, { pick, say, fit, neighbours, showPath }) {
  const { cy } = state;
  const ids = cy.nodes(":visible").map((node) => node.id());
  const at = ids.indexOf(state.picked);
  const go = (id) => {
    pick(id, Boolean(state.from)); // while a path is being chosen the arrows only move, and Enter takes the other end
    if (state.from) say(`${cy.getElementById(id).data("text")}: Enter makes it the other end`);
  };
  const forward = () => go(ids[(at + 1) % ids.length]);
  const back = () => go(ids[(at <= 0 ? ids.length : at) - 1]);
  const acts = {
    ArrowRight: forward, ArrowDown: forward, ArrowLeft: back, ArrowUp: back,
    Escape: () => { state.from = ""; say("No path is being chosen"); },
    Enter: () => (state.from && state.from !== state.picked ? showPath(state.from, state.picked) : neighbours()),
    "+": () => zoomBy(cy, 1.25), "-": () => zoomBy(cy, 0.8), "0": () => fit(),
  };
  if (!acts[event.key] || (event.key === "Escape" && !state.from) || (!ids.length && event.key.startsWith("Arrow"))) return;
  event.preventDefault();
  event.stopPropagation(); // or the notebook takes the keys for its own
  acts[event.key]();
}

/** Look from nearer or from farther away, at the same middle. */
function zoomBy(cy, factor) { cy?.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } }); }
