// Editing a graph, a node at a time: what is typed is sent to Python, which checks it and answers with what the rules say.

/** The editing view: `data.shown` is what stands there, as kgot_lab.viz.editing tells it; without `tell` nothing can be changed. */
function editingView(root, data, tell) {
  const state = { shown: data.shown, asked: false };
  const said = announcer();
  const wrong = make("div", { class: "kl-review-wrong", role: "alert" });
  const key = `kl-ids-${Math.random().toString(36).slice(2)}`;
  const ids = make("datalist", { id: key });
  const look = make("input", { type: "text", size: 36, list: key });
  const head = make("h4", {});
  const kind = make("select", {});
  const rows = make("div", { class: "kl-editing-rows" });
  const newName = make("input", { type: "text", size: 16 });
  const newValue = make("input", { type: "text", size: 36 });
  const edges = make("div", { class: "kl-scroll", tabindex: 0, role: "region", "aria-label": "Edges of the node" });
  const way = make("select", {}, make("option", { value: "out" }, "to"), make("option", { value: "in" }, "from"));
  const edgeType = make("select", {});
  const other = make("input", { type: "text", size: 36, list: key });
  const newId = make("input", { type: "text", size: 24 });
  const newKind = make("select", {});
  const newLabel = make("input", { type: "text", size: 24 });
  const rules = make("ul", { class: "kl-editing-rules", "aria-label": "What the rules say here" });
  const save = button("Save", () => ask({ save: { type: kind.value, properties: typed() } }));
  const undo = button("Undo", () => ask({ undo: true }));
  const redo = button("Redo", () => ask({ redo: true }));
  const remove = button("Remove the node", () => ask({ remove: true }));
  const card = make("section", { class: "kl-review-card", role: "region", "aria-label": "The node that is edited", tabindex: 0 },
    head, labelled("Type", kind), rows,
    make("div", { class: "kl-bar" }, labelled("Another property", newName), labelled("Its value", newValue)),
    make("div", { class: "kl-bar" }, save, remove));
  root.classList.add("kl-editing");
  root.append(ids,
    make("div", { class: "kl-bar" }, labelled("Node", look), button("Look", () => ask({ look: look.value })), undo, redo),
    wrong, said, card, make("h5", {}, "What the rules say here"), rules, make("h5", {}, "Edges"), edges,
    make("div", { class: "kl-bar" }, labelled("New edge", way), labelled("Of type", edgeType), labelled("Other node", other), button("Join", join)),
    make("div", { class: "kl-bar" }, labelled("New node, its id", newId), labelled("Its type", newKind), labelled("Its name", newLabel),
      button("Add", () => ask({ add: newId.value.trim(), type: newKind.value, name: newLabel.value.trim() }))));
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
    event.preventDefault(); // JupyterLab would take it
    if (event.target === look) ask({ look: look.value });
    else if (event.target === other) join();
    else if (card.contains(event.target)) save.click();
  });
  draw();

  function ask(message) {
    if (!tell || state.asked) return;
    state.asked = true;
    root.setAttribute("aria-busy", "true");
    said.textContent = "Waiting for Python …";
    tell(message);
  }

  function join() {
    const { node } = state.shown;
    ask({ join: way.value === "out" ? [node, edgeType.value, other.value.trim()] : [other.value.trim(), edgeType.value, node] });
  }

  /** The properties whose text is another than before; an empty text takes one away. */
  function typed() {
    const changed = {};
    for (const row of rows.querySelectorAll("textarea")) if (row.value !== row.dataset.before) changed[row.dataset.name] = row.value;
    if (newName.value.trim()) changed[newName.value.trim()] = newValue.value;
    return changed;
  }

  function options(select, names, chosen) {
    const all = chosen && !names.includes(chosen) ? [chosen, ...names] : names;
    select.replaceChildren(...all.map((name) => make("option", { value: name }, name)));
    if (chosen) select.value = chosen;
  }

  function draw() {
    const { shown } = state;
    ids.replaceChildren(...shown.ids.map((id) => make("option", { value: id })));
    look.value = shown.node;
    head.textContent = plain(shown.node) + (shown.curated ? ` (${plain(shown.curated)})` : "");
    options(kind, shown.types, shown.type);
    options(newKind, shown.types, newKind.value);
    options(edgeType, shown.edge_types, edgeType.value);
    rows.replaceChildren(...shown.properties.map(([name, value]) => {
      const box = make("textarea", { rows: Math.min(4, 1 + Math.floor(value.length / 70)), cols: 70, value, "data-name": name, "data-before": value });
      return labelled(name, box);
    }));
    newName.value = newValue.value = "";
    edges.replaceChildren(make("ul", {}, ...shown.edges.map((ends) => make("li", {}, `${ends[0]} -${ends[1]}-> ${ends[2]} `,
      tell && button("Remove", () => ask({ part: ends }), { "aria-label": `Remove the edge ${ends.join(" ")}` })))));
    rules.replaceChildren(...(shown.faults.length ? shown.faults : ["All rules hold here."]).map((line) => make("li", {}, line)));
    wrong.textContent = plain(shown.wrong);
    said.textContent = plain(shown.said);
    root.dataset.node = shown.node;
    root.dataset.changes = String(shown.changes);
    keepingFocus(root, () => card, () => {
      undo.disabled = !tell || !shown.undoable;
      redo.disabled = !tell || !shown.redoable;
      for (const each of [save, remove]) each.disabled = !tell || !shown.node;
    });
  }

  return {
    update(message) {
      if (!message.shown) return;
      const refused = message.shown.wrong && message.shown.node === state.shown.node; // what was typed stays where it was refused
      state.shown = message.shown;
      state.asked = false;
      root.removeAttribute("aria-busy");
      if (!refused) return draw();
      wrong.textContent = plain(message.shown.wrong);
      said.textContent = "";
    },
    destroy() {},
  };
}
