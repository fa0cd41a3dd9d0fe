// The door to a page of its own: every place that asks for a view gets it; there is no Python to hear of clicks.

/** Draw the view that a place asks for; the still picture goes when the view stands there, so that one which fails leaves its picture. */
function fillPlace(place) {
  const data = JSON.parse(place.querySelector("script[type='application/json']").textContent);
  const root = make("div", { class: "kl" });
  place.append(root);
  followTheme(root);
  try {
    VIEWS[data.view](root, data, null);
  } catch (error) {
    root.remove();
    return reportError(error);
  }
  if (data.alone) place.append(make("p", { class: "live-note" }, data.alone));
  whenLaidOut(root, () => {
    for (const drawing of picturesOf(place.closest("section, main, body"), data.stands_for)) drawing.classList.add("kl-replaced");
    place.dataset.drawn = "yes";
  });
}

document.querySelectorAll("[data-view]").forEach(fillPlace);
