// The door to a page on disk: every place that asks for a view gets it; there is no Python to hear of clicks.
for (const place of document.querySelectorAll("[data-view]")) {
  const data = JSON.parse(place.querySelector("script[type='application/json']").textContent);
  const root = make("div", { class: "kl" });
  place.append(root);
  followTheme(root);
  VIEWS[data.view](root, data, null);
}
