// Where a planned graph goes on a canvas of any size, and which words there is room for.

const FRAME_EDGE = 6; // pixels of the screen around the drawing
const SMALLEST = 0.75; // of the planned size: what has to be smaller loses words instead, which come back on pointing
const LARGEST = 1.3;
const ROOM = 42; // pixels of a side of the square that each node of a large graph has to itself
const FREE_MARKS = new Set(["answer", "evidence", "path"]); // few, and always named; of a change, which may be all there is, what lies on another waits for pointing
const FIRST_NAMED = 3; // of a graph without a plan: names that may lie on nodes, so that the hub of a crowd has its own
const LOOP_STEP = 46; // how far a bezier edge is bent away from the next, and a loop away from its node
const LEADING = 1.15; // from line to line, by the size of the type

/** How wide a text of one line is, in pixels, in the type of every graph. */
const wideText = (() => {
  const context = document.createElement("canvas").getContext("2d");
  const known = new Map();
  return (text, size) => {
    if (!known.has(text)) context.font = "100px Helvetica, Arial, sans-serif", known.set(text, context.measureText(text).width / 100);
    return known.get(text) * size;
  };
})();

/** Half the width and height of a text of one line or several. */
function halfBox(text, size) {
  const lines = text.split("\n");
  return { x: Math.max(...lines.map((line) => wideText(line, size))) / 2, y: (lines.length * size * LEADING) / 2 };
}

/** A scale for each axis with which nodes, names and all, span the canvas though they keep their sizes; and how far one looks at it from. */
function graphFrame(plan, nodes, loops, width, height) {
  const zoom = Math.min(LARGEST, Math.max(SMALLEST, Math.min(width / plan.width, height / plan.height)));
  const reach = nodes.map((node) => {
    const half = node.named ? halfBox(node.caption, plan.name) : { x: 0, y: 0 };
    const own = node.size / 2 + 1, loop = loops.get(node.id) ?? { x: 0, y: 0 };
    return { x: [Math.max(own, half.x - node.beside[0], loop.x), Math.max(own, half.x + node.beside[0])], y: [Math.max(own, half.y - node.beside[1], loop.y), Math.max(own, half.y + node.beside[1])] };
  });
  const axis = (name, length) => {
    const room = (length - 2 * FRAME_EDGE) / zoom;
    const ends = (scale) => [Math.min(...nodes.map((node, n) => scale * node[name] - reach[n][name][0])), Math.max(...nodes.map((node, n) => scale * node[name] + reach[n][name][1]))];
    let [low, high] = [0, room]; // no farther apart than planned: few nodes are near each other
    for (let turn = 0; turn < 50; turn += 1) {
      const scale = (low + high) / 2;
      const [first, last] = ends(scale);
      if (last - first < room) low = scale; else high = scale;
    }
    const [first, last] = ends(low);
    return { scale: low, shift: FRAME_EDGE / zoom + (room - first - last) / 2 };
  };
  const [x, y] = nodes.length ? [axis("x", width), axis("y", height)] : [{ scale: 1, shift: 0 }, { scale: 1, shift: 0 }];
  return { zoom, place: (at) => ({ x: x.shift + x.scale * at.x, y: y.shift + y.scale * at.y }) };
}

/** How far the loops of each node reach to the left and up from its middle, words and all: as Cytoscape draws them, each a third larger. */
function loopReach(plan, edges) {
  const reach = new Map(), counts = new Map();
  for (const edge of edges.filter(({ source, target }) => source === target)) {
    const number = counts.get(edge.source) ?? 0, word = halfBox(edge.caption, plan.word), before = reach.get(edge.source) ?? { x: 0, y: 0 };
    const control = 1.4 * LOOP_STEP * (1 + number / 3); // straight up from the node, and straight left; two curves of second order meet halfway between
    const [bow, middle] = [(2 / 3) * control + 5, control / 2];
    counts.set(edge.source, number + 1);
    reach.set(edge.source, { x: Math.max(before.x, bow, middle + word.x), y: Math.max(before.y, bow, middle + word.y) });
  }
  return reach;
}

/** How an edge is bent toward its planned control point: how far along it, and how far aside. */
function bendOf(from, to, control) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const along = ((control.x - from.x) * dx + (control.y - from.y) * dy) / length;
  return { weight: along / length, aside: ((control.y - from.y) * dx - (control.x - from.x) * dy) / length };
}

const meeting = (a, b) => Math.abs(a.x - b.x) < a.half.x + b.half.x - 1 && Math.abs(a.y - b.y) < a.half.y + b.half.y - 1;

/** Take the words that lie on something out of sight until one points there: less important ones first; boxes are in pixels of the plan. */
function uncrowd(cy, plan) {
  const [nodes, edges] = [cy.nodes(":visible"), cy.edges(":visible")];
  const discs = nodes.map((node) => ({ id: node.id(), ...node.position(), half: { x: node.data("size") / 2, y: node.data("size") / 2 } }));
  const kept = [];
  const bears = (node) => !node.data("marked") && node.connectedEdges().some((edge) => FREE_MARKS.has(edge.data("marked"))); // an end of what an answer rests on
  const ranks = new Map(nodes.map((node) => [node.id(), FREE_MARKS.has(node.data("marked")) ? 3 : bears(node) ? 2 : node.data("marked") ? 1 : 0]));
  const important = (one, other) => ranks.get(other.id()) - ranks.get(one.id()) || other.data("size") - one.data("size");
  cy.batch(() => {
    for (const node of nodes.sort(important)) {
      const at = node.position();
      const box = { x: at.x + node.data("bx"), y: at.y + node.data("by"), half: halfBox(node.data("caption"), plan.name) };
      const rank = ranks.get(node.id());
      const isApart = !kept.some((other) => meeting(box, other));
      const isFree = rank === 3 || (rank === 2 && isApart) || ((node.data("named") || rank) && isApart && !discs.some((disc) => disc.id !== node.id() && meeting(box, disc)));
      node.toggleClass("quiet", !isFree);
      if (isFree) kept.push(box);
    }
    for (const edge of edges.sort((one, other) => Boolean(other.data("marked")) - Boolean(one.data("marked")))) {
      const at = edge.midpoint();
      const box = { x: at.x + (edge.scratch("wx") ?? 0), y: at.y + (edge.scratch("wy") ?? 0), half: halfBox(edge.data("caption"), plan.word) };
      const isFree = FREE_MARKS.has(edge.data("marked")) || ((edge.data("worded") || edge.data("marked")) && !kept.some((other) => meeting(box, other)) && !discs.some((disc) => meeting(box, disc)));
      edge.toggleClass("quiet", !isFree);
      if (isFree) kept.push(box);
    }
  });
}

/** Name as many nodes of a graph without a plan as there is room for at this zoom, groups and best connected ones first. */
function nameSome(cy, size) {
  const zoom = cy.zoom();
  const [pan, width, height] = [cy.pan(), cy.width(), cy.height()];
  const cells = new Map(); // boxes by the squares of the screen they touch, so that each is compared with its neighbours only
  const squares = (box) => {
    const found = [];
    for (let x = Math.floor((box.x - box.half.x) / 60); x <= Math.floor((box.x + box.half.x) / 60); x += 1)
      for (let y = Math.floor((box.y - box.half.y) / 30); y <= Math.floor((box.y + box.half.y) / 30); y += 1) found.push(`${x} ${y}`);
    return found;
  };
  const isTaken = (box, id, overDiscs) => squares(box).some((square) => (cells.get(square) ?? []).some((other) => other.id !== id && !(overDiscs && other.isDisc) && meeting(box, other)));
  const take = (box) => squares(box).forEach((square) => cells.has(square) ? cells.get(square).push(box) : cells.set(square, [box]));
  const seen = cy.nodes(":visible").filter((node) => {
    const at = node.position();
    return at.x * zoom + pan.x > 0 && at.x * zoom + pan.x < width && at.y * zoom + pan.y > 0 && at.y * zoom + pan.y < height;
  });
  const onScreen = (node) => ({ x: node.position().x * zoom + pan.x, y: node.position().y * zoom + pan.y });
  const half = (node) => (node.width() * zoom) / 2;
  seen.forEach((node) => take({ id: node.id(), isDisc: true, ...onScreen(node), half: { x: half(node), y: half(node) } }));
  const rank = (node) => (node.hasClass("picked") ? 1e9 : 0) + (node.data("marked") ? 1e6 : 0) + (node.data("community") ? 1e4 : 0) + node.data("size");
  cy.batch(() => {
    cy.nodes(".named").removeClass("named");
    for (const [place, node] of seen.sort((one, other) => rank(other) - rank(one)).toArray().entries()) {
      const [at, text] = [onScreen(node), halfBox(node.data("caption"), size)];
      const box = { id: node.id(), x: at.x, y: at.y + half(node) + 3 + text.y, half: text };
      if (at.x - text.x < 0 || at.x + text.x > width || box.y + text.y > height || isTaken(box, node.id(), place < FIRST_NAMED)) continue;
      take(box);
      node.addClass("named").style({ "font-size": size / zoom, "text-outline-width": 2 / zoom, "text-margin-y": 3 / zoom });
    }
  });
}

/** Put every node, line and word where it belongs on a canvas of this size; returns the frame they stand in. */
function placeGraph(cy, data, drawing) {
  const { nodes, edges, plan, framed, looped } = data;
  const frame = plan ? graphFrame(plan, framed ?? nodes, loopReach(plan, looped ?? edges), drawing.clientWidth, drawing.clientHeight) : wideFrame(data);
  const ends = new Map(nodes.map((node) => [node.id, frame.place(node)]));
  cy.batch(() => cy.nodes().not(".moved").positions((node) => ends.get(node.id())));
  if (plan) placeLines(cy, edges, ends, frame.place), uncrowd(cy, plan);
  return frame;
}

/** Place the nodes by one of Cytoscape's own layouts instead; lines are then straight, and words in their middle. */
function layOut(cy, name, { plan, arrows }) {
  cy.edges().removeClass("bent even").removeStyle("control-point-distances control-point-weights text-margin-x text-margin-y").removeScratch("wx").removeScratch("wy");
  cy.nodes(":visible").union(cy.edges(":visible")).layout({ name, directed: arrows !== false, padding: 34, animate: false, spacingFactor: 1, minNodeSpacing: 30 }).run();
  if (cy.zoom() > LARGEST) cy.zoom(LARGEST), cy.center();
  if (plan) uncrowd(cy, plan);
}

/** The frame of a graph without a plan: with groups it has the room that all nodes would need. */
function wideFrame(data) {
  const aspect = data.aspect ?? 1.5;
  const unit = Math.max((data.height ?? 460) * 1.05, ROOM * Math.sqrt(data.total || data.nodes.length));
  return { zoom: 0, place: (at) => ({ x: at.x * unit * aspect, y: at.y * unit }) };
}

/** Bend planned edges as they are planned, and put their words where these have room. */
function placeLines(cy, edges, ends, place) {
  const drawn = cy.edges();
  const isPlain = (edge) => edge.source === edge.target;
  cy.batch(() => edges.forEach((edge, n) => {
    if (!edge.control || isPlain(edge)) return;
    const { weight, aside } = bendOf(ends.get(edge.source), ends.get(edge.target), place({ x: edge.control[0], y: edge.control[1] }));
    const isBent = Math.abs(aside) > 1;
    drawn[n].toggleClass("bent", isBent).toggleClass("even", !isBent);
    if (isBent) drawn[n].style({ "control-point-distances": aside, "control-point-weights": weight });
  }));
  edges.forEach((edge, n) => {
    if (!edge.at || isPlain(edge) || drawn[n].connectedNodes(".moved").length) return;
    const [middle, wanted] = [drawn[n].midpoint(), place({ x: edge.at[0], y: edge.at[1] })];
    if (!middle) return; // one of its ends is hidden
    drawn[n].scratch({ wx: wanted.x - middle.x, wy: wanted.y - middle.y });
    drawn[n].style({ "text-margin-x": wanted.x - middle.x, "text-margin-y": wanted.y - middle.y });
  });
}

/** Give groups, their bundles and names of a graph without a plan the size they have on the screen, from near and from afar. */
function sizeOnScreen(cy) {
  const zoom = cy.zoom();
  cy.batch(() => {
    for (const node of cy.nodes(".community")) node.style({ width: node.data("size") / zoom, height: node.data("size") / zoom, "border-width": 3 / zoom });
    for (const edge of cy.edges(".bundle")) edge.style({ width: edge.data("width") / zoom, "font-size": 11 / zoom });
  });
  nameSome(cy, 12);
}

/** Move the drawing so that a node, or both ends of an edge, are seen; from so near that one can tell them apart. */
function bringIntoView(element, isAmongGroups) {
  const cy = element.cy(), nodes = element.isNode() ? element : element.connectedNodes();
  if (isAmongGroups && !element.hasClass("community") && cy.zoom() < 0.7) cy.zoom(0.9), cy.center(element); // a node among groups is tiny
  const isSeen = (node) => {
    const { x, y } = node.renderedPosition();
    return x >= 20 && y >= 20 && x <= cy.width() - 20 && y <= cy.height() - 20;
  };
  if (nodes.every(isSeen)) return;
  if (nodes.length > 1) cy.fit(nodes, 60), cy.zoom() > 1.2 && cy.zoom(1.2);
  cy.center(nodes);
}
