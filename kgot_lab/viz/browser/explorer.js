// The retrieval explorer: sliders that weigh retrievers, and the ranking that follows.

const EXPLORER_REST = 120; // milliseconds without a movement after which Python hears where the sliders are
const EXPLORER_QUIET = 700; // milliseconds without a change after which it is spoken

/** The explorer: `data` as made by kgot_lab.viz.explorer.explorer; `tell` sends a message to Python, or is null on a page of its own. */
function explorerView(root, data, tell) {
  root.classList.add("kl-x");
  root.addEventListener("focusin", (event) => { event.target.dataset.lmSuppressShortcuts = "true"; }); // or JupyterLab takes its arrow keys
  const state = { ...structuredClone(data.state), a: "", b: "", kept: null };
  let settled = explorerMix(state); // the sliders before the change that is going on
  let question = state.question; // of the hits on screen
  let speaking = 0, resting = 0;
  let sheet = null, shown = data.first; // the columns of the question, if the browser can rank; what is on screen
  let asked = state.question; // of which Python has sent columns, or has none
  let due = null; // within a frame in which a ranking was shown: the newest movement after it
  let textsOf = state.question;
  const texts = new Map(); // titles and texts of documents by id, with the words of the question marked
  const controls = explorerControls(data, state, tell, { moved, settle, chosen });
  const results = explorerResults(data);
  const said = announcer();
  said.classList.add("kl-x-hidden"); // what it says is on the page too
  const mail = explorerMail(tell, (lost) => results.waiting(lost));
  root.append(controls.top, make("div", { class: "kl-x-columns" }, controls.side, make("div", { class: "kl-x-main" }, results.element, said)));
  if (!tell) root.append(make("div", { class: "kl-note" }, `${data.first.sheet ? "On this page the sliders and retrievers can be moved" : "This page shows one moment"}; another question needs a running notebook.`));
  keep(data.first, state.question);
  controls.refresh(data.first);
  results.show(data.first, state);
  root.dataset.waiting = "false";

  /** A slider is on its way: the ranking follows here, and Python hears of it when the slider rests; or else Python ranks. */
  function moved(event) {
    const sides = state.a === "kept" ? { a: state.kept } : { a: explorerSystem(state.a) };
    const before = state.question === question ? settled : null;
    const wish = { ...explorerMix(state), question: state.question, before, ...sides, b: explorerSystem(state.b), sheet: asked !== state.question };
    controls.refresh(null);
    if (!tell && !explorerShares(sheet, wish)) return results.trouble("All weights are 0: move a slider, or switch a retriever on.");
    root.dataset.waiting = String(Boolean(tell));
    clearTimeout(resting);
    resting = 0;
    if (tell && (!sheet || sheet.question !== state.question || state.a || !explorerShares(sheet, wish))) return mail.post(wish, event.timeStamp);
    if (tell) resting = setTimeout(() => { resting = 0; mail.post(wish, event.timeStamp); }, EXPLORER_REST);
    if (!due) follow(wish, event.timeStamp);
    else due = { wish, since: due.since ?? event.timeStamp };
  }

  /** Rank here and now; what is moved further within the same frame waits for the next. */
  function follow(wish, since) {
    const mixed = explorerMixed(sheet, wish, wish.before, texts);
    shown = { ...shown, ...mixed, notes: [], sides: [] };
    controls.refresh({ retrievers: Object.fromEntries(sheet.retrievers.map(({ name, rows }) => [name, { share: mixed.shares[name] ?? 0, found: rows.length }])) });
    results.show(shown, { ...state, k: wish.k });
    explorerMeasure(since, (milliseconds) => results.took(milliseconds));
    due = {};
    requestAnimationFrame(() => {
      const next = due;
      due = null;
      if (next.wish && next.wish.question === sheet.question) follow(next.wish, next.since);
    });
  }

  /** It has arrived: from now on moves are counted from here. */
  function settle() { settled = explorerMix(state); }

  /** A change that is done at once, of a switch or a list. */
  function chosen(event) {
    moved(event);
    settle();
  }

  /** What Python says: the whole answer, or what a ranking lacks that was made here. */
  function answered(letter, answer) {
    const isMixedHere = sheet && !state.a && sheet.question === state.question;
    const isAhead = resting || due?.wish || (isMixedHere && mail.isBusy()); // a newer ranking is on screen already
    asked = letter.wish.question;
    root.dataset.waiting = String(mail.isBusy() || Boolean(resting));
    if (answer.trouble) return results.trouble(answer.trouble);
    keep(answer, letter.wish.question);
    if (isAhead) return;
    const isHere = explorerSameHits(shown, answer);
    question = letter.wish.question;
    shown = answer;
    controls.refresh(answer);
    results.show(answer, { ...state, k: letter.wish.k }, isHere);
    if (!isHere) explorerMeasure(letter.since, (milliseconds) => results.took(milliseconds));
    clearTimeout(speaking);
    speaking = setTimeout(() => { said.textContent = explorerSpoken(answer); }, EXPLORER_QUIET);
  }

  /** Keep what Python sent for later, the columns of a question and texts; what is known already is taken from here. */
  function keep(answer, of) {
    if (answer.sheet) sheet = answer.sheet;
    if (textsOf !== of || answer.sheet) texts.clear();
    textsOf = of;
    for (const [id, text] of Object.entries(answer.sheet?.texts ?? {})) texts.set(id, text);
    for (const hit of answer.hits) {
      if (texts.has(hit.id)) Object.assign(hit, texts.get(hit.id));
      else texts.set(hit.id, { title: hit.title, snippet: hit.snippet });
    }
  }

  return {
    /** An answer of Python to the newest wish; older ones are passed over. */
    update(message) {
      const letter = message.answer && mail.landed(message.n);
      if (letter) answered(letter, message.answer);
    },
    destroy() { clearTimeout(speaking); clearTimeout(resting); mail.stop(); },
  };
}

/** The sliders, retrievers and k of a state, as Python is told. */
function explorerMix(state) {
  return { weights: { ...state.weights }, off: [...state.off], k: state.k };
}

/** Whether two answers hold the same hits with the same scores, in this order. */
function explorerSameHits(one, other) {
  const scores = (answer) => JSON.stringify(answer.hits.map((hit) => [hit.id, hit.score.toPrecision(12)]));
  return !one.sides?.length && !other.sides.length && scores(one) === scores(other);
}

/** The system a list stands at, as Python is told; null for the sliders, or nothing. */
function explorerSystem(value) {
  return value.startsWith("system ") ? { system: value.slice(7) } : null;
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
