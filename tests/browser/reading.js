// What makes a drawn graph hard to read, counted on what the browser has laid out; all boxes and points are in pixels of the screen.
(() => {
  const STEP = 2; // pixels between the points at which a line is looked at
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  const around = (place, half) => ({ left: place.x - half, right: place.x + half, top: place.y - half, bottom: place.y + half });

  /** The counts of a drawing: nodes {id, x, y, half}, names {id, box}, edges {from, to, points, words}, and the box it may fill. */
  function counted({ nodes, names, edges, canvas }) {
    const overlapping = names.filter((name) => names.some((other) => other !== name && meet(name.box, other.box))
      || nodes.some((node) => node.id !== name.id && meet(name.box, around(node, node.half))));
    const cut = names.filter(({ box }) => box.left < canvas.left - 1 || box.right > canvas.right + 1 || box.top < canvas.top - 1 || box.bottom > canvas.bottom + 1);
    const through = edges.filter((edge) => nodes.some((node) => node.id !== edge.from && node.id !== edge.to
      && edge.points.some((point) => Math.hypot(point.x - node.x, point.y - node.y) < node.half)));
    const boxes = [...nodes.map((node) => around(node, node.half)), ...names.map((name) => name.box),
      ...edges.flatMap((edge) => edge.points.map((point) => around(point, 0)))];
    const most = (side, pick) => boxes.reduce((found, box) => pick(found, box[side]), pick === Math.min ? Infinity : -Infinity); // there may be more than an argument list holds
    const held = { left: Math.max(canvas.left, most("left", Math.min)), right: Math.min(canvas.right, most("right", Math.max)),
      top: Math.max(canvas.top, most("top", Math.min)), bottom: Math.min(canvas.bottom, most("bottom", Math.max)) };
    const area = (box) => Math.max(0, box.right - box.left) * Math.max(0, box.bottom - box.top);
    return { nodes: nodes.length, names: names.length, edges: edges.length, overlapping: overlapping.map((name) => name.id), cut: cut.map((name) => name.id),
      through: through.map((edge) => `${edge.from} – ${edge.to}`), wordless: edges.filter((edge) => !edge.words).length, used: area(held) / area(canvas) };
  }

  /** A curve of second order as points. */
  function bent(start, control, end) {
    const count = Math.max(2, Math.ceil((Math.hypot(control.x - start.x, control.y - start.y) + Math.hypot(end.x - control.x, end.y - control.y)) / STEP));
    return Array.from({ length: count + 1 }, (_, n) => n / count).map((t) => ({
      x: (1 - t) ** 2 * start.x + 2 * t * (1 - t) * control.x + t ** 2 * end.x, y: (1 - t) ** 2 * start.y + 2 * t * (1 - t) * control.y + t ** 2 * end.y }));
  }

  /** The live view, as Cytoscape has drawn it. */
  function live(view) {
    const holder = view.querySelector(".kl-canvas");
    const cy = holder._cyreg.cy;
    const beside = view.innerText; // the legend and the note
    const zoom = cy.zoom();
    const on = (point) => ({ x: point.x * zoom + cy.pan().x, y: point.y * zoom + cy.pan().y });
    const shown = (element) => element.style("label") && element.numericStyle("text-opacity") > 0 && element.numericStyle("opacity") > 0
      && element.numericStyle("font-size") * zoom >= element.numericStyle("min-zoomed-font-size");
    const nodes = cy.nodes(":visible").map((node) => ({ id: node.id(), ...on(node.position()), half: (node.width() * zoom) / 2 }));
    const names = cy.nodes(":visible").filter(shown).map((node) => {
      const box = node.boundingBox({ includeNodes: false, includeEdges: false, includeOverlays: false, includeUnderlays: false, includeLabels: true });
      const shrink = 2 + node.numericStyle("text-outline-width") / 2 + 1; // Cytoscape's own margin around a text
      const [low, high] = [on({ x: box.x1 + shrink, y: box.y1 + shrink }), on({ x: box.x2 - shrink, y: box.y2 - shrink })];
      return { id: node.id(), box: { left: low.x, top: low.y, right: high.x, bottom: high.y } };
    });
    const edges = cy.edges(":visible").map((edge) => {
      const [start, end] = [edge.sourceEndpoint(), edge.targetEndpoint()].map(on);
      const controls = (edge.controlPoints() ?? []).map(on);
      const points = edge.isLoop() ? [start, end] : bent(start, controls[0] ?? { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 }, end);
      const [label, type] = [shown(edge) ? edge.style("label") : "", edge.data("type")];
      const words = /^\(\d+\)$/.test(label) ? beside.includes(`${label} ${type}`) : Boolean(label) || type === "related_to" || beside.includes(`every edge: ${type}`);
      return { id: edge.id(), from: edge.source().id(), to: edge.target().id(), points, words };
    });
    return { ...counted({ nodes, names, edges, canvas: { left: 0, top: 0, right: holder.clientWidth, bottom: holder.clientHeight } }),
      silent: edges.filter((edge) => !edge.words).map((edge) => ({ id: edge.id, type: cy.getElementById(edge.id).data("type"),
        at: [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8].map((share) => edge.points[Math.floor(share * (edge.points.length - 1))]) })) };
  }

  /** The still picture: groups of lines, of captions and of nodes, each with the title that one sees on pointing at it. */
  function still(svg) {
    const frame = svg.getBoundingClientRect();
    const boxOf = (element) => { const { left, top, right, bottom } = element.getBoundingClientRect(); return { left, top, right, bottom }; };
    const groups = [...svg.children].filter((child) => child.tagName === "g");
    const withTitle = (group) => [...group.children].filter((child) => child.querySelector(":scope > title"));
    const lines = groups.flatMap(withTitle).filter((group) => group.querySelector(":scope > path"));
    const drawn = groups.flatMap(withTitle).filter((group) => !group.querySelector(":scope > path"));
    const isWords = (child) => child.tagName === "text" || (child.children.length > 0 && [...child.children].every((line) => line.tagName === "text"));
    const captions = groups.filter((group) => group.children.length && [...group.children].every(isWords)).flatMap((group) => [...group.children]);
    const nodes = drawn.map((group) => {
      const box = boxOf(group.querySelector(":scope > circle, :scope > polygon"));
      const id = group.querySelector("title").textContent.split("\n").find((line) => line.startsWith("id: ")).slice(4);
      return { id, x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2, half: Math.min(box.right - box.left, box.bottom - box.top) / 2, text: isWords(group.lastElementChild) ? group.lastElementChild : null };
    });
    const names = nodes.filter((node) => node.text?.textContent).map((node) => ({ id: node.id, box: boxOf(node.text) }));
    const full = (text) => text.replace(/^[+−~»★✓] ?/, "").replace(/\s+/g, ""); // lines may break within a word
    const left = captions.map((text) => full(text.textContent));
    const edges = lines.map((group) => {
      const [, from, type, to] = /^(.*?) --\[(.*?)\]--> (.*)$/.exec(group.querySelector("title").textContent.split("\n")[0]);
      const path = group.querySelector("path");
      const matrix = path.getScreenCTM();
      const points = from === to ? [] : Array.from({ length: Math.ceil(path.getTotalLength() / STEP) + 1 }, (_, n) => path.getPointAtLength(n * STEP).matrixTransform(matrix));
      const numbered = [...svg.textContent.matchAll(/(\(\d+\)) /g)].filter(([sign]) => svg.textContent.replace(/\s+/g, "").includes(sign.trim() + full(type))).map(([sign]) => sign.trim());
      const at = left.findIndex((words) => words === full(type) || numbered.includes(words) || (words.endsWith("…") && full(type).startsWith(words.slice(0, -1))));
      if (at >= 0) left.splice(at, 1);
      return { from, to, points, words: at >= 0 || type === "related_to" || svg.textContent.includes(`every edge: ${type}`) };
    });
    return counted({ nodes, names, edges, canvas: { left: frame.left, top: frame.top, right: frame.right, bottom: frame.bottom } });
  }
  return { live, still };
})()
