// What can be moved in the explorer: the question, the weights and switches of lanes, k, and what stands side by side.

/** The question above, and the sliders beside the hits. */
function explorerControls(data, state, tell, heard) {
  const lanes = data.lanes.map((lane) => explorerLane(lane, state, heard));
  const k = explorerSlider("k, how many hits are shown", { min: 1, max: data.deepest, step: 1 }, () => state.k, (value) => { state.k = value; }, heard);
  const presets = explorerPresets(data, state, (event) => { sliders(); heard.chosen(event); });
  const compare = explorerCompare(data, state, heard);
  const top = make("fieldset", { class: "kl-x-top kl-x-plain", disabled: !tell }, make("legend", { class: "kl-x-hidden" }, "Question"),
    explorerQuestion(data, state, heard));
  const side = make("fieldset", { class: "kl-x-side kl-x-plain", disabled: !tell && !data.first.sheet }, make("legend", { class: "kl-x-hidden" }, "Weights"),
    labelled("Preset", presets), ...lanes.map((lane) => lane.element), make("div", { class: "kl-x-lane" },
      make("div", { class: "kl-x-name" }, "k ", make("span", { class: "kl-x-muted" }, "hits shown")), k.element), tell && compare.element); // without Python there is one ranking, that of the sliders
  const sliders = () => [...lanes, k].forEach((each) => each.refresh());

  return {
    top, side,
    /** Put the controls where the state is, and what Python says beside them. */
    refresh(answer) {
      presets.value = Object.keys(data.presets).find((name) => explorerSame(data.presets[name], state.weights)) ?? "";
      for (const lane of lanes) lane.told(answer?.lanes[lane.name]);
      compare.refresh();
    },
  };
}

/** Whether two sets of weights are the same. */
function explorerSame(one, other) {
  return Object.keys(one).every((name) => one[name] === other[name]);
}

/** A field for a question, and the list of those that are known. */
function explorerQuestion(data, state, heard) {
  const field = make("input", { type: "search", value: state.question, placeholder: "Ask something",
    onkeydown: (event) => event.key === "Enter" && ask(event, field.value) }); // no form: JupyterLab stops the Enter key from sending one
  const list = make("select", {}, make("option", { value: "" }, "choose one"),
    ...data.questions.map((question, number) => make("option", { value: String(number) }, `${number + 1}. ${question}`)));
  const ask = (event, question) => {
    state.question = field.value = question;
    list.value = String(data.questions.indexOf(question));
    heard.chosen(event);
  };
  const line = make("div", { class: "kl-x-question" }, labelled("Question", field), button("Search", (event) => ask(event, field.value)));
  list.addEventListener("change", (event) => list.value && ask(event, data.questions[Number(list.value)]));
  list.value = String(data.questions.indexOf(state.question));
  if (list.selectedIndex < 0) list.value = "";
  return make("div", { role: "search" }, line, data.questions.length > 0 && labelled(`or one of ${data.questions.length}`, list, { class: "kl-label kl-x-choose" }));
}

/** A slider with its number beside it. */
function explorerSlider(label, bounds, get, set, heard) {
  const number = make("output", { class: "kl-x-number" });
  const range = make("input", { type: "range", ...bounds, "aria-label": label, value: get(),
    oninput: (event) => { set(Number(range.value)); refresh(); heard.moved(event); }, onchange: () => heard.settle() });
  const refresh = () => {
    range.value = get();
    number.textContent = bounds.step < 1 ? get().toFixed(2) : String(get());
  };
  refresh();
  return { element: make("div", { class: "kl-x-slide" }, range, number), range, refresh };
}

/** A lane: its switch, its weight, and what it counts in the end. */
function explorerLane(lane, state, heard) {
  const slider = explorerSlider(`${lane.letter}, the weight of the ${lane.name} retriever`, { min: 0, max: 1, step: 0.05 },
    () => state.weights[lane.name], (value) => { state.weights[lane.name] = value; }, heard);
  const box = make("input", { type: "checkbox", checked: !lane.missing && !state.off.includes(lane.name), disabled: Boolean(lane.missing),
    onchange: (event) => {
      state.off = box.checked ? state.off.filter((name) => name !== lane.name) : [...state.off, lane.name];
      heard.chosen(event);
    } });
  const told = make("div", { class: "kl-x-told" }, lane.missing);
  const name = make("label", { class: "kl-x-name" }, box, explorerSwatch(lane.name), ` ${lane.letter} ${lane.name}`);
  slider.range.disabled = Boolean(lane.missing);
  const element = make("div", { class: `kl-x-lane${lane.missing ? " kl-x-missing" : ""}`, "data-lane": lane.name }, name, slider.element, told);
  return {
    element, name: lane.name,
    refresh() { slider.refresh(); },
    /** What Python says of the lane. */
    told(about) {
      if (lane.missing || !about) return;
      const found = about.found === null ? "" : `, ${about.found.toLocaleString("en")} found`;
      const counts = state.off.includes(lane.name) ? "switched off" : about.share ? `counts ${about.share.toFixed(2)}` : "counts nothing";
      told.textContent = `${counts}${found}`;
      told.title = lane.stage;
    },
  };
}

/** How the part of a lane looks in a bar. */
function explorerSwatch(lane) {
  return make("span", { class: `kl-x-swatch kl-x-${lane}`, "aria-hidden": "true" });
}

/** The list of presets; "" stands for weights that are none of them. */
function explorerPresets(data, state, act) {
  const list = make("select", {}, make("option", { value: "", disabled: true }, "own weights"),
    ...Object.keys(data.presets).map((name) => make("option", { value: name }, name)));
  list.addEventListener("change", (event) => {
    Object.assign(state.weights, data.presets[list.value]);
    act(event);
  });
  return list;
}

/** What stands side by side: weights that were kept, or systems by name. */
function explorerCompare(data, state, heard) {
  const systems = () => data.systems.map((name) => make("option", { value: `system ${name}` }, name));
  const kept = make("option", { value: "kept", disabled: true }, "kept weights");
  const a = make("select", { onchange: (event) => { state.a = a.value; heard.chosen(event); } }, make("option", { value: "" }, "nothing"), kept, ...systems());
  const b = make("select", { onchange: (event) => { state.b = b.value; heard.chosen(event); } }, make("option", { value: "" }, "the sliders"), ...systems());
  const keep = button("Keep as A", (event) => {
    state.kept = explorerMix(state);
    state.a = "kept";
    heard.chosen(event);
  }, { title: "Keep these weights, and go on with the sliders beside them" });
  const end = button("Stop comparing", (event) => {
    state.a = state.b = "";
    heard.chosen(event);
  });
  const element = make("div", { class: "kl-x-compare", role: "group", "aria-label": "Side by side" },
    make("div", { class: "kl-x-name" }, "Side by side"), keep, labelled("A", a), labelled("B", b), end);
  return {
    element,
    refresh() {
      kept.disabled = !state.kept;
      kept.textContent = state.kept ? `kept ${Object.values(state.kept.weights).map((weight) => weight.toFixed(2)).join(" ")}` : "kept weights";
      [a.value, b.value] = [state.a, state.b];
      keepingFocus(element, () => keep, () => { b.disabled = end.disabled = !state.a; });
    },
  };
}
