// The retrieval explorer: sliders that weigh lanes, and the ranking that Python makes of them.

const EXPLORER_LATE = 1500, EXPLORER_LOST = 15000; // milliseconds without an answer after which the view says so
const EXPLORER_AHEAD = 2; // wishes on their way to Python at once
const EXPLORER_QUIET = 700; // milliseconds without a change after which it is spoken
const EXPLORER_ROW = 50; // pixels of a row of two systems side by side: the lines between them are drawn by it

/** The explorer: `data` as made by kgot_lab.viz.explorer; `tell` sends a message to Python, or is null on a page of its own. */
function explorerView(root, data, tell) {
  root.classList.add("kl-x");
  root.addEventListener("focusin", (event) => { event.target.dataset.lmSuppressShortcuts = "true"; }); // or JupyterLab takes its arrow keys
  const state = { ...structuredClone(data.state), a: "", b: "", kept: null };
  let settled = explorerMix(state); // the sliders before the change that is going on
  let question = state.question; // of the hits on screen
  let speaking = 0;
  const controls = explorerControls(data, state, tell, { moved, settle, chosen });
  const results = explorerResults(data);
  const said = announcer();
  said.classList.add("kl-x-hidden"); // what it says is on the page too
  const mail = explorerMail(tell, (lost) => results.waiting(lost));
  root.append(controls.top, make("div", { class: "kl-x-columns" }, controls.side, make("div", { class: "kl-x-main" }, results.element, said)));
  if (!tell) root.append(make("div", { class: "kl-note" }, "This page shows one moment. In a running notebook the question, the sliders and the lanes can be changed."));
  controls.refresh(data.first);
  results.show(data.first, state);
  root.dataset.waiting = "false";

  /** A slider is on its way. */
  function moved(event) {
    const sides = state.a === "kept" ? { a: state.kept } : { a: explorerSystem(state.a) };
    const wish = { ...explorerMix(state), question: state.question, before: state.question === question ? settled : null, ...sides, b: explorerSystem(state.b) };
    mail.post(wish, event.timeStamp);
    root.dataset.waiting = "true";
    controls.refresh(null);
  }

  /** It has arrived: from now on moves are counted from here. */
  function settle() { settled = explorerMix(state); }

  /** A change that is done at once, of a switch or a list. */
  function chosen(event) {
    moved(event);
    settle();
  }

  function answered(letter, answer) {
    root.dataset.waiting = String(mail.isBusy());
    if (answer.trouble) return results.trouble(answer.trouble);
    question = letter.wish.question;
    controls.refresh(answer);
    results.show(answer, { ...state, k: letter.wish.k });
    explorerMeasure(letter.since, (milliseconds) => results.took(milliseconds));
    clearTimeout(speaking);
    speaking = setTimeout(() => { said.textContent = explorerSpoken(answer); }, EXPLORER_QUIET);
  }

  return {
    /** An answer of Python to the newest wish; older ones are passed over. */
    update(message) {
      const letter = message.answer && mail.landed(message.n);
      if (letter) answered(letter, message.answer);
    },
    destroy() { clearTimeout(speaking); mail.stop(); },
  };
}

/** The sliders, lanes and k of a state, as Python is told. */
function explorerMix(state) {
  return { weights: { ...state.weights }, off: [...state.off], k: state.k };
}

/** The system a list stands at, as Python is told; null for the sliders, or nothing. */
function explorerSystem(value) {
  return value.startsWith("system ") ? { system: value.slice(7) } : null;
}

/** Sends two wishes ahead, since the way to Python and back takes longer than the answer, and then only the newest: what a slider
 * passed over meanwhile is not asked for. An answer older than the one on screen is dropped. */
function explorerMail(tell, late) {
  let number = 0, waiting = null, timers = [];
  const flying = new Map();
  const stop = () => timers.forEach(clearTimeout);
  const giveUp = () => { for (const letter of flying.values()) letter.lost = true; late(true); };
  const send = (wish, since) => {
    stop();
    number += 1;
    flying.set(number, { wish, since, lost: false });
    timers = [setTimeout(() => late(false), EXPLORER_LATE), setTimeout(giveUp, EXPLORER_LOST)];
    tell({ n: number, wish });
  };
  return {
    stop,
    isBusy: () => flying.size > 0,
    /** Ask for something, or wait until an answer is back; `since` is when the reader moved something. */
    post(wish, since) {
      const ahead = [...flying.values()].filter((letter) => !letter.lost).length;
      if (ahead < EXPLORER_AHEAD) send(wish, since);
      else waiting = { wish, since: waiting?.since ?? since }; // the oldest movement that is not on its way yet
    },
    /** The wish that an answer belongs to, or null when it is an old one; the wish that waits leaves at once. */
    landed(answered) {
      const letter = flying.get(answered);
      if (!letter) return null;
      for (const earlier of [...flying.keys()]) if (earlier <= answered) flying.delete(earlier);
      if (!flying.size) stop();
      const next = waiting;
      waiting = null;
      if (next) send(next.wish, next.since);
      return letter;
    },
  };
}

/** Measure from a movement to the list that shows it: to the changed page ("explorer updated") and to its painting ("explorer painted"). */
function explorerMeasure(since, say) {
  const end = performance.now();
  performance.measure("explorer updated", { start: since, end });
  say(end - since);
  requestAnimationFrame(() => setTimeout(() => performance.measure("explorer painted", { start: since, end: performance.now() })));
}

/** What is spoken when all is quiet again. */
function explorerSpoken(answer) {
  const [, second] = answer.sides;
  if (second) return `${second.title}. ${second.told}`;
  const moves = ["up", "down", "new"].map((kind) => [answer.hits.filter((hit) => hit.moved?.kind === kind).length, kind]).filter(([count]) => count);
  const moved = moves.length ? ` Of these hits ${moves.map(([count, kind]) => `${count} ${kind}`).join(", ")}.` : "";
  return [...answer.notes, answer.hits.length ? `First: ${answer.hits[0].name}. ${answer.told}${moved}` : ""].join(" ");
}

// --- what can be moved ---------------------------------------------------------------------------------------------

/** The question above, and the sliders beside the hits. */
function explorerControls(data, state, tell, heard) {
  const lanes = data.lanes.map((lane) => explorerLane(lane, state, heard));
  const k = explorerSlider("k, how many hits are shown", { min: 1, max: data.deepest, step: 1 }, () => state.k, (value) => { state.k = value; }, heard);
  const presets = explorerPresets(data, state, (event) => { sliders(); heard.chosen(event); });
  const compare = explorerCompare(data, state, heard);
  const top = make("fieldset", { class: "kl-x-top kl-x-plain", disabled: !tell }, make("legend", { class: "kl-x-hidden" }, "Question"),
    explorerQuestion(data, state, heard));
  const side = make("fieldset", { class: "kl-x-side kl-x-plain", disabled: !tell }, make("legend", { class: "kl-x-hidden" }, "Weights"),
    labelled("Preset", presets), ...lanes.map((lane) => lane.element), make("div", { class: "kl-x-lane" },
      make("div", { class: "kl-x-name" }, "k ", make("span", { class: "kl-x-muted" }, "hits shown")), k.element), compare.element);
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
  const slider = explorerSlider(`${lane.letter}, the weight of the ${lane.name} lane`, { min: 0, max: 1, step: 0.05 },
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

// --- what was found ------------------------------------------------------------------------------------------------

/** The hits, with what there is to say about them. */
function explorerResults(data) {
  const told = make("div", { class: "kl-x-gold-line" }), time = make("span", { class: "kl-x-time" }), notes = make("div", { class: "kl-x-notes" });
  const diagram = make("div", { class: "kl-x-diagram" }), name = make("code", {});
  const list = make("div", { class: "kl-x-list" }), card = make("div", { class: "kl-hover kl-x-card", role: "tooltip", id: explorerId(), hidden: true });
  const place = make("div", { class: "kl-x-place" }, list, card);
  const tables = make("div", { class: "kl-scroll kl-x-tables", hidden: true, tabindex: 0, role: "region", "aria-label": "Table of the hits" });
  const tableButton = button("Table", () => {
    tables.hidden = !tables.hidden;
    tableButton.setAttribute("aria-pressed", String(!tables.hidden));
    table();
  }, { "aria-pressed": "false", class: "kl-button kl-mode" });
  const letters = Object.fromEntries(data.lanes.map((lane) => [lane.name, lane.letter]));
  let answer = null, state = null;

  function table() {
    if (tables.hidden) return tables.replaceChildren();
    const sides = answer.sides.length ? answer.sides : [{ title: "Hits", hits: answer.hits }];
    tables.replaceChildren(...sides.map((side) => explorerTable(side, letters)));
  }

  explorerKeys(list);
  explorerCard(place, list, card, letters, (id, side) => (answer.sides.length ? answer.sides[side].hits : answer.hits).find((hit) => hit.id === id));
  return {
    element: make("section", { "aria-label": "Hits" }, make("div", { class: "kl-x-head" }, told, time, tableButton), notes,
      make("details", { open: true, class: "kl-x-pipeline" }, make("summary", {}, "Pipeline ", name), diagram), place, tables),
    /** Put an answer of Python on the page. */
    show(newest, present) {
      const places = explorerPlaces(list);
      [answer, state] = [newest, present];
      const [first, second] = answer.sides;
      told.textContent = second ? "" : answer.told;
      notes.replaceChildren(...answer.notes.map((note) => make("div", { class: "kl-x-note" }, note)));
      name.textContent = second ? "" : answer.stage;
      diagram.replaceChildren(...(second ? [first, second] : [answer]).map((side, number) => explorerDiagram(side, second && "AB"[number])));
      card.hidden = true;
      const hits = second ? explorerPair(first, second, letters, state.k) : explorerHits(answer.hits, letters, card.id);
      keepingFocus(list, () => list.querySelector("li") ?? tableButton, () => list.replaceChildren(hits));
      explorerGlide(list, places);
      time.textContent = "";
      table();
    },
    trouble(text) { notes.replaceChildren(make("div", { class: "kl-x-note" }, text)); },
    took(milliseconds) { time.textContent = `updated in ${Math.round(milliseconds)} ms`; },
    waiting(lost) {
      time.textContent = lost ? "No answer from Python. If the kernel was restarted, run this cell again." : "Waiting for Python …";
    },
  };
}

let explorerCount = 0;
/** An id for a card, which rows refer to. */
function explorerId() {
  explorerCount += 1;
  return `kl-x-card-${explorerCount}`;
}

/** A pipeline as Python drew it. */
function explorerDiagram(side, letter) {
  const drawing = make("div", { class: "kl-x-drawing" });
  drawing.append(escapedMarkup(side.pipeline));
  return make("div", {}, letter && make("div", { class: "kl-x-muted" }, `${letter}: ${side.title}, `, make("code", {}, side.stage)), drawing);
}

/** The hits of one ranking, as a list. */
function explorerHits(hits, letters, card) {
  return make("ol", { class: "kl-x-hits", "aria-label": "Hits; arrow keys go from one to the next" },
    ...hits.map((hit, place) => make("li", { class: "kl-x-hit", "data-id": hit.id, "data-score": hit.score, tabindex: place ? -1 : 0, "aria-describedby": card },
      make("div", { class: "kl-x-rank" }, String(hit.rank)),
      make("div", { class: "kl-x-title" }, make("strong", {}, ...explorerPieces(hit.title)), explorerGold(hit), hit.moved?.kind !== "same" && explorerMove(hit)),
      explorerScore(hit, letters),
      make("div", { class: "kl-x-snippet" }, ...explorerPieces(hit.snippet)),
      hit.path && make("div", { class: "kl-x-path" }, make("span", { class: "kl-x-muted" }, "path "), hit.path))));
}

/** Pieces of a text; those that are words of the question are marked. */
function explorerPieces(pieces) {
  return pieces.map(([text, isMarked]) => (isMarked ? make("mark", {}, text) : text));
}

function explorerGold(hit) {
  return hit.gold && make("span", { class: "kl-x-gold" }, "★ gold");
}

/** How a hit moved, as a sign and a word. */
function explorerMove(hit, where = "was") {
  if (!hit.moved) return null;
  const elsewhere = hit.moved.there && hit.moved.kind !== "same" ? ` (${where} ${hit.moved.there})` : "";
  return make("span", { class: `kl-x-move kl-x-${hit.moved.kind}` }, hit.moved.text, make("span", { class: "kl-x-there" }, elsewhere));
}

/** A score as a bar with a part for each lane, and as a number. */
function explorerScore(hit, letters) {
  const parts = hit.parts.filter((part) => part.value > 0).map((part) => {
    const piece = make("span", { class: `kl-x-part kl-x-${part.lane}` }, part.value > 0.07 && make("b", {}, letters[part.lane]));
    piece.style.width = `${100 * part.value}%`;
    return piece;
  });
  const bar = hit.parts.length > 0 && make("span", { class: "kl-x-bar", "aria-hidden": "true" }, ...parts);
  return make("div", { class: "kl-x-score" }, bar, make("span", { class: "kl-x-value" }, hit.score.toFixed(3)));
}

/** Two rankings side by side, with a line from each hit to where it stands in the other one. */
function explorerPair(first, second, letters, k) {
  const column = (side, number) => [
    make("div", { class: "kl-x-side-head" }, make("strong", {}, `${"AB"[number]}: ${side.title}`), make("div", {}, side.told)),
    make("ol", { class: "kl-x-hits kl-x-short", "data-side": number, "aria-label": `${side.title}: hits` }, ...side.hits.map((hit, place) => {
      const row = make("li", { class: "kl-x-hit", "data-id": hit.id, "data-score": hit.score, tabindex: place ? -1 : 0 }, make("div", { class: "kl-x-rank" }, String(hit.rank)),
        make("div", { class: "kl-x-title" }, make("strong", { title: hit.name }, hit.name), explorerGold(hit)),
        make("div", { class: "kl-x-under" }, explorerScore(hit, letters), explorerMove(hit, number ? "A:" : "B:")));
      row.style.height = `${EXPLORER_ROW}px`;
      return row;
    }))];
  const [headA, listA] = column(first, 0), [headB, listB] = column(second, 1);
  return make("div", { class: "kl-x-pair" }, headA, make("div"), headB, listA, explorerLines(first.hits, second.hits), listB);
}

/** The lines between two lists: thick for gold, dashed where a hit went down. */
function explorerLines(first, second) {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  const height = EXPLORER_ROW * Math.max(first.length, second.length, 1);
  for (const [name, value] of Object.entries({ viewBox: `0 0 60 ${height}`, width: 60, height, "aria-hidden": "true", class: "kl-x-lines" })) drawing.setAttribute(name, value);
  const from = new Map(first.map((hit, place) => [hit.id, place]));
  second.forEach((hit, place) => {
    if (!from.has(hit.id)) return;
    const [start, end] = [from.get(hit.id), place].map((row) => EXPLORER_ROW * (row + 0.5));
    const line = document.createElementNS(space, "path");
    line.setAttribute("d", `M0 ${start} C30 ${start} 30 ${end} 60 ${end}`);
    line.setAttribute("class", `kl-x-line kl-x-line-${hit.moved.kind}${hit.gold ? " kl-x-line-gold" : ""}`);
    drawing.append(line);
  });
  return drawing;
}

/** The same hits as a table with exact numbers. */
function explorerTable(side, letters) {
  const lanes = side.hits[0]?.parts.map((part) => part.lane) ?? [];
  const rows = side.hits.map((hit) => [hit.rank, hit.name, hit.gold ? "★ gold" : "", hit.score.toFixed(4), hit.moved?.text ?? "",
    ...lanes.map((lane, at) => hit.parts[at].numbers), hit.path]);
  return textTable(side.title, ["rank", "title", "gold", "score", "moved", ...lanes.map((lane) => `${letters[lane]} ${lane}`), "path"], rows);
}

/** Arrow keys go from hit to hit: a list is one stop of the Tab key. */
function explorerKeys(list) {
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = event.target.closest("li");
    const next = step && row && (step > 0 ? row.nextElementSibling : row.previousElementSibling);
    if (!step || !row) return;
    event.preventDefault();
    if (!next) return;
    row.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

/** The exact numbers of a hit, on pointing at its bar or going to it by key. */
function explorerCard(place, list, card, letters, hitOf) {
  const show = (event) => {
    const row = event.target.closest("li"), spot = event.type === "focusin" ? row : event.target.closest(".kl-x-score");
    if (!row || !spot) return hide();
    const hit = hitOf(row.dataset.id, Number(row.parentElement.dataset.side ?? 0));
    const lines = hit.parts.map((part) => make("div", {}, explorerSwatch(part.lane), ` ${letters[part.lane]} ${part.lane}: ${part.numbers}`));
    card.replaceChildren(make("strong", {}, `score ${hit.score.toFixed(4)}`), ...lines);
    card.hidden = false;
    const box = place.getBoundingClientRect(), at = (row.querySelector(".kl-x-score") ?? row).getBoundingClientRect();
    card.style.left = `${Math.max(0, Math.min(at.left - box.left, box.width - card.offsetWidth))}px`;
    card.style.top = `${at.bottom - box.top + 4}px`;
  };
  const hide = () => { card.hidden = true; };
  list.addEventListener("mouseover", show);
  list.addEventListener("mouseleave", hide);
  list.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && show(event));
  list.addEventListener("focusout", hide);
  list.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}

/** Where each hit stands on the page. */
function explorerPlaces(list) {
  return new Map([...list.querySelectorAll(".kl-x-hits:not(.kl-x-short) > li")].map((row) => [row.dataset.id, row.getBoundingClientRect().top - list.getBoundingClientRect().top]));
}

/** Let hits that moved glide from where they stood, unless the reader wants no motion. */
function explorerGlide(list, before) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const after = explorerPlaces(list);
  for (const row of list.querySelectorAll(".kl-x-hits:not(.kl-x-short) > li")) {
    const way = (before.get(row.dataset.id) ?? NaN) - after.get(row.dataset.id);
    if (Math.abs(way) > 1) row.animate([{ transform: `translateY(${way}px)` }, { transform: "none" }], { duration: 160, easing: "ease-out" });
  }
}
