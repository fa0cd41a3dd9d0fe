// Groups that open on a page without Python: what they open into was made before and stands in the data; the way out is remembered here.

/** What answers in Python's place, with messages as Python sends them: `top` is the data of the whole graph, with its `opens` and `kept`. */
function keptGroups(top) {
  let at = top, outer = []; // what is drawn, and what it was opened from, the outermost first
  const viewOf = (key) => ({ ...top.kept[key], arrows: top.arrows });
  const keyOf = (view, id) => (Object.hasOwn(view.opens ?? {}, id) ? view.opens[id] : null);

  function leave(said) {
    at = outer.pop() ?? top;
    return { graph: at, said };
  }

  /** Every way in, the shortest to each view: the views from the outermost to the one it leads to. */
  function waysIn() {
    const found = [[top]], seen = new Set([""]);
    for (const way of found) {
      for (const key of Object.values(way.at(-1).opens ?? {})) {
        if (seen.has(key)) continue;
        seen.add(key);
        found.push([...way, viewOf(key)]);
      }
    }
    return found;
  }

  return {
    opens(id) { return keyOf(at, id) !== null; },
    open(id) {
      const key = keyOf(at, id), said = "Opened, and laid out again.";
      if (key === "") return leave(said); // everything else
      outer.push(at);
      at = viewOf(key);
      return { graph: at, said };
    },
    close() { return leave("Closed: drawn as one node again."); },
    /** The first node in any group that holds a text, with its group open; null where none does. */
    holding(wanted) {
      const sought = wanted.toLowerCase();
      const holds = (node) => !node.community && [node.text, node.id, ...node.hover].some((text) => text.toLowerCase().includes(sought));
      for (const way of waysIn()) {
        const node = way.at(-1).nodes.find(holds);
        if (!node) continue;
        [at, outer] = [way.at(-1), way.slice(0, -1)];
        return { graph: at, pick: node.id, said: `Opened the group with the first that holds “${wanted}”: ${node.text}` };
      }
      return null;
    },
  };
}
