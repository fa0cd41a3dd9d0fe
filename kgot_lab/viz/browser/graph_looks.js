// How the nodes and edges of a graph look, in light and in dark.

const SHAPES = { 0: "ellipse", 3: "triangle", 4: "rectangle", 5: "pentagon", 6: "hexagon" };
const MARK_DASHES = { removed: [7, 4], answer: [12, 3], evidence: [4, 2, 1, 2] }; // those of the still picture
const MARK_SIGNS = { added: "+", removed: "−", changed: "~", path: "»", answer: "★", evidence: "✓" };

/** A colour, dark enough to stand out from white paper. */
const rimOf = (colour) => `#${[1, 3, 5].map((at) => Math.floor(parseInt(colour.slice(at, at + 2), 16) * 0.6).toString(16).padStart(2, "0")).join("")}`;

function nodeData(node, degree, planned) {
  const sign = MARK_SIGNS[node.mark] ? `${MARK_SIGNS[node.mark]} ` : "";
  const [bx, by] = node.beside ?? [0, 0];
  return { id: node.id, text: plain(node.text), caption: plain(sign + node.caption), kind: node.kind, hover: node.hover.map(plain), colour: node.colour, rim: rimOf(node.colour), marked: node.mark,
    shape: SHAPES[node.corners] ?? "ellipse", size: node.size ?? Math.min(34, 12 + 2.5 * Math.sqrt(degree)), bx, by, named: planned ? node.named : false,
    more: node.more ?? 0, community: node.community ?? "", group: node.group ?? "" };
}

function edgeData(edge, planned, count) {
  const sign = MARK_SIGNS[edge.mark] && !planned ? `${MARK_SIGNS[edge.mark]} ` : "";
  return { source: edge.source, target: edge.target, type: plain(edge.type), hover: edge.hover.map(plain), text: plain(edge.type), marked: edge.mark, ...(edge.colour && { colour: edge.colour, rim: rimOf(edge.colour) }),
    caption: plain(sign + edge.caption), width: edge.width ?? (count > 80 ? 1 : 1.3), worded: Boolean(planned && edge.worded) };
}

/** A small picture of how the nodes of a type look. */
function swatch(kind) {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  drawing.setAttribute("class", "kl-swatch");
  drawing.setAttribute("viewBox", "-8 -8 16 16");
  drawing.setAttribute("aria-hidden", "true");
  const shape = document.createElementNS(space, kind.corners ? "polygon" : "circle");
  if (kind.corners) {
    const turn = kind.corners === 4 ? Math.PI / 4 : -Math.PI / 2;
    const corner = (number) => turn + (2 * Math.PI * number) / kind.corners;
    const points = Array.from({ length: kind.corners }, (_, number) => `${6.5 * Math.cos(corner(number))},${6.5 * Math.sin(corner(number))}`);
    shape.setAttribute("points", points.join(" "));
  } else shape.setAttribute("r", "6");
  shape.setAttribute("fill", kind.colour);
  shape.setAttribute("stroke", rimOf(kind.colour));
  drawing.append(shape);
  return drawing;
}

/** The style of a graph; `plan` gives the sizes of type, `place` is an element whose colours it takes over; without `arrows` edges point nowhere. */
function graphStyle(plan, place, arrows = true) {
  const given = getComputedStyle(place);
  const colour = (name) => given.getPropertyValue(`--kl-${name}`).trim();
  const [ink, paper, words, line, strong] = ["ink", "paper", "words", "edge", "strong"].map(colour);
  const text = { "font-family": "Helvetica, Arial, sans-serif", color: ink, "text-outline-color": paper, "text-outline-width": 2, "text-wrap": "wrap", "text-max-width": 2000, "line-height": LEADING };
  const rim = colour("rim") || "data(rim)";
  const marks = Object.keys(MARK_SIGNS).flatMap((mark) => {
    const [bright, dark] = [colour(`${mark}-line`), colour(mark)];
    const [dashes, dots] = [mark === "removed", mark === "changed"];
    const style = dashes ? "dashed" : dots ? "dotted" : mark === "answer" ? "double" : "solid";
    return [
      { selector: `node.${mark}`, style: { "border-color": bright, "border-width": mark === "answer" ? 7 : 4, "border-style": style, color: dark, "background-opacity": dashes ? 0.4 : 1 } },
      { selector: `edge.${mark}`, style: { "line-color": bright, "target-arrow-color": bright, width: 3, "line-style": dots ? "dotted" : MARK_DASHES[mark] ? "dashed" : "solid", "line-dash-pattern": MARK_DASHES[mark] ?? [6, 3], color: dark, "line-opacity": 1 } },
    ];
  });
  return [
    { selector: "node", style: { ...text, "font-size": 12, "background-color": "data(colour)", shape: "data(shape)", width: "data(size)", height: "data(size)", "border-width": 1.2,
      "border-color": rim, "text-valign": "bottom", "text-margin-y": 4 } },
    { selector: "node.named, node.pointed, node.picked", style: { label: "data(caption)" } },
    { selector: "node.planned", style: { label: "data(caption)", "font-size": plan?.name ?? 12, "text-halign": "center", "text-valign": "center", "text-margin-x": "data(bx)", "text-margin-y": "data(by)" } },
    { selector: "node.planned.quiet", style: { label: "" } },
    { selector: "node.planned.pointed, node.planned.picked", style: { label: "data(caption)", "z-index": 25 } },
    { selector: "edge", style: { ...text, label: "data(caption)", "font-size": plan?.word ?? 11, color: words, width: "data(width)", "line-color": line, "target-arrow-color": line, "target-arrow-shape": "triangle",
      "arrow-scale": 0.9, "curve-style": "bezier", "control-point-step-size": LOOP_STEP, "min-zoomed-font-size": 7, "loop-direction": "-45deg" } },
    { selector: "edge[colour]", style: { "line-color": colour("rim") ? "data(colour)" : rim, "target-arrow-color": colour("rim") ? "data(colour)" : rim } },
    { selector: "edge.planned", style: { "min-zoomed-font-size": 0, "edge-distances": "node-position" } },
    { selector: "edge.bent", style: { "curve-style": "unbundled-bezier" } },
    { selector: "edge.even", style: { "curve-style": "straight" } },
    { selector: "edge.quiet", style: { label: "" } },
    { selector: "edge.many", style: { "min-zoomed-font-size": 15 } },
    { selector: "edge.hair", style: { "curve-style": "haystack", "target-arrow-shape": "none", "line-opacity": 0.35, width: 1, label: "" } },
    { selector: "edge.bundle", style: { "target-arrow-shape": "none", "line-color": colour("bundle"), "line-opacity": 0.7 } },
    { selector: "edge.plain", style: { "curve-style": "straight", "line-opacity": 0.55, "arrow-scale": 0.7 } },
    { selector: "edge.near, edge.pointed", style: { label: "data(caption)", "min-zoomed-font-size": 6, "z-index": 15, "line-opacity": 1, "line-color": strong, "target-arrow-color": strong, color: ink } },
    { selector: "node.community", style: { "border-width": 4, "border-style": "double" } },
    ...marks,
    { selector: "edge.many.added, edge.many.removed, edge.many.changed, edge.many.path", style: { "min-zoomed-font-size": 6, "z-index": 15 } },
    { selector: ".way", style: { "line-color": colour("path-line"), "target-arrow-color": colour("path-line"), width: 5, "border-color": colour("path-line"), "border-width": 5, "z-index": 20, "line-opacity": 1 } },
    { selector: "node.way", style: { width: "data(size)" } },
    { selector: "edge.way", style: { "curve-style": "bezier", "target-arrow-shape": "triangle", "arrow-scale": 1.2, label: "data(caption)", "min-zoomed-font-size": 6 } },
    { selector: "edge.way.bent", style: { "curve-style": "unbundled-bezier" } },
    { selector: "edge.way.even", style: { "curve-style": "straight" } },
    { selector: "edge.picked", style: { label: "data(caption)", "min-zoomed-font-size": 6, "line-color": ink, "target-arrow-color": ink, color: ink, width: 4, "line-opacity": 1, "z-index": 30 } },
    { selector: "node.near", style: { "border-width": 4 } },
    { selector: "node.picked", style: { "border-color": ink, "border-width": 5, "z-index": 30 } },
    ...(arrows ? [] : [{ selector: "edge", style: { "target-arrow-shape": "none" } }]),
  ];
}
