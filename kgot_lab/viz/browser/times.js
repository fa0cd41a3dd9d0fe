// A graph over time: a slider over the moments at which something changes; all of them are here, so that no Python is needed.

/** The times view: `data.states` are the moments in order, each with its name, a caption and a picture that Python drew; it begins at `data.start`. */
function timesView(root, data, tell) {
  const last = data.states.length - 1;
  const said = announcer();
  const name = make("h4", { class: "kl-times-name" });
  const picture = make("div", { class: "kl-times-picture" });
  const slider = make("input", { type: "range", min: "0", max: String(last), step: "1", "aria-label": "Time: the arrow keys go from change to change",
    oninput: () => go(Number(slider.value)) });
  const back = button("◀ Earlier", () => go(at - 1), { "aria-label": "Earlier" });
  const forward = button("Later ▶", () => go(at + 1), { "aria-label": "Later" });
  root.append(make("div", { class: "kl-bar" }, back, slider, forward), name, said, picture,
    make("p", { class: "kl-note" }, [data.note && `${data.note}.`, "Marked in the graph: what began (+) and what ended (−) at this time."].filter(Boolean).join(" ")));
  let at = 0;

  function go(number) {
    at = Math.min(Math.max(number, 0), last);
    const state = data.states[at];
    slider.value = String(at);
    slider.setAttribute("aria-valuetext", `${state.name}, ${at + 1} of ${last + 1}`);
    name.textContent = plain(state.name);
    said.textContent = plain(state.caption);
    picture.replaceChildren(escapedMarkup(state.svg));
    root.dataset.at = String(at);
    keepingFocus(root, () => slider, () => { back.disabled = at === 0; forward.disabled = at === last; });
    tell?.({ at });
  }

  go(data.start);
  return { update() {}, destroy() {} };
}
