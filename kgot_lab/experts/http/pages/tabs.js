// Tabs of a panel, and which part of the page a narrow window shows.

/** Tabs in the element: buttons with role tab, each with the id of its panel in aria-controls; the function shows one by its panel's id. */
export function tabs(list, shown = () => {}) {
  const all = [...list.querySelectorAll("[role=tab]")];
  function show(id) {
    for (const tab of all) {
      const here = tab.getAttribute("aria-controls") === id;
      tab.setAttribute("aria-selected", String(here));
      tab.tabIndex = here ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !here;
    }
    shown(id);
  }
  list.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = all[(all.indexOf(document.activeElement) + by + all.length) % all.length];
    next.focus();
    show(next.getAttribute("aria-controls"));
  });
  for (const tab of all) tab.addEventListener("click", () => show(tab.getAttribute("aria-controls")));
  return show;
}

/** Buttons that choose which part a narrow window shows: `data-view` of the body; wide windows show all of them. */
export function views(bar) {
  const all = [...bar.querySelectorAll("button")];
  function show(name) {
    document.body.dataset.view = name;
    for (const each of all) {
      if (each.value === name) each.setAttribute("aria-current", "true");
      else each.removeAttribute("aria-current");
    }
  }
  for (const each of all) each.addEventListener("click", () => show(each.value));
  show(all.find((each) => each.hasAttribute("aria-current"))?.value ?? all[0].value);
  return show;
}
