// The door to a notebook: one widget class shows every view, and takes the place of the picture before it.

/** Hide the static picture that this live view replaces, in the outputs of the same cell; returns what shows it again. */
function takePlace(el, key) {
  const areas = ".jp-OutputArea, .output_area, .output, .cell-output-container, .cell";
  let area = el;
  while (area && !area.matches(areas)) area = around(area);
  const hidden = picturesOf(area, key).map((drawing) => drawing.closest(".jp-OutputArea-child") ?? drawing);
  for (const place of hidden) place.hidden = true, place.classList.add("kl-replaced"), place.style.setProperty("display", "none", "important");
  return () => { for (const place of hidden) place.hidden = false, place.classList.remove("kl-replaced"), place.style.removeProperty("display"); };
}

/** Keep single keys from JupyterLab, where R makes raw text of the cell; it looks for this attribute at the very element that has the focus. */
function ownKeys(root) {
  const mark = (event) => {
    if (!root.contains(event.target)) return;
    event.target.toggleAttribute("data-lm-suppress-shortcuts", !(event.ctrlKey || event.metaKey || (event.shiftKey && event.key === "Enter")));
  };
  window.addEventListener("keydown", mark, true);
  return () => window.removeEventListener("keydown", mark, true);
}

export default {
  render({ model, el }) {
    const data = model.get("data");
    const root = make("div", { class: "kl" });
    el.append(root);
    const view = VIEWS[data.view](root, data, (message) => model.send(message));
    const hear = (message) => view.update(message);
    model.on("msg:custom", hear);
    const [release, forget] = [ownKeys(root), followTheme(root)];
    let restore = () => {};
    const stop = whenLaidOut(root, () => { restore = takePlace(el, data.stands_for); model.send({ live: true }); });
    return () => { stop(); release(); forget(); model.off("msg:custom", hear); view.destroy(); restore(); };
  },
};
