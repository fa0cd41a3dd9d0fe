// What can be moved in the explorer: the question, the weights and switches of retrievers, k, and what stands side by side.

/** The question above, and the sliders beside the hits. */
function explorerControls(data, state, tell, heard) {
  const retrievers = data.retrievers.map((retriever) => explorerRetriever(retriever, state, heard));
  const k = explorerSlider("k, how many hits are shown", { min: 1, max: data.deepest, step: 1 }, () => state.k, (value) => { state.k = value; }, heard);
  const presets = explorerPresets(data, state, (event) => { sliders(); heard.chosen(event); });
  const compare = explorerCompare(data, state, heard);
  const top = make("fieldset", { class: "kl-x-top kl-x-plain", disabled: !tell }, make("legend", { class: "kl-x-hidden" }, "Question"),
    explorerQuestion(data, state, heard));
  const side = make("fieldset", { class: "kl-x-side kl-x-plain", disabled: !tell && !data.first.sheet }, make("legend", { class: "kl-x-hidden" }, "Weights"),
    labelled("Preset", presets), ...retrievers.map((retriever) => retriever.element), make("div", { class: "kl-x-retriever" },
      make("div", { class: "kl-x-name" }, "k ", make("span", { class: "kl-x-muted" }, "hits shown")), k.element), tell && compare.element); // without Python there is one ranking, that of the sliders
  const sliders = () => [...retrievers, k].forEach((each) => each.refresh());

  return {
    top, side,
    /** Put the controls where the state is, and what Python says beside them. */
    refresh(answer) {
      presets.value = Object.keys(data.presets).find((name) => explorerSame(data.presets[name], state.weights)) ?? "";
      for (const retriever of retrievers) retriever.told(answer?.retrievers[retriever.name]);
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

/** A retriever: its switch, its weight, and what it counts in the end. */
function explorerRetriever(retriever, state, heard) {
  const slider = explorerSlider(`${retriever.letter}, the weight of the ${retriever.name} retriever`, { min: 0, max: 1, step: 0.05 },
    () => state.weights[retriever.name], (value) => { state.weights[retriever.name] = value; }, heard);
  const box = make("input", { type: "checkbox", checked: !retriever.missing && !state.off.includes(retriever.name), disabled: Boolean(retriever.missing),
    onchange: (event) => {
      state.off = box.checked ? state.off.filter((name) => name !== retriever.name) : [...state.off, retriever.name];
      heard.chosen(event);
    } });
  const told = make("div", { class: "kl-x-told" }, retriever.missing);
  const name = make("label", { class: "kl-x-name" }, box, explorerSwatch(retriever.name), ` ${retriever.letter} ${retriever.name}`);
  slider.range.disabled = Boolean(retriever.missing);
  const element = make("div", { class: `kl-x-retriever${retriever.missing ? " kl-x-missing" : ""}`, "data-retriever": retriever.name }, name, slider.element, told);
  return {
    element, name: retriever.name,
    refresh() { slider.refresh(); },
    /** What Python says of the retriever. */
    told(about) {
      if (retriever.missing || !about) return;
      const found = about.found === null ? "" : `, ${about.found.toLocaleString("en")} found`;
      const counts = state.off.includes(retriever.name) ? "switched off" : about.share ? `counts ${about.share.toFixed(2)}` : "has no weight";
      told.textContent = `${counts}${found}`;
      told.title = retriever.stage;
    },
  };
}

/** How the part of a retriever looks in a bar. */
function explorerSwatch(retriever) {
  return make("span", { class: `kl-x-swatch kl-x-${retriever}`, "aria-hidden": "true" });
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
  }, { title: "Keep these weights, and compare other ones with them" });
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
