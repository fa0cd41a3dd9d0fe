// What was found: the hits as a list, with what there is to say about them, and as a table.

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
  const letters = Object.fromEntries(data.retrievers.map((retriever) => [retriever.name, retriever.letter]));
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
      make("details", { class: "kl-x-pipeline" }, make("summary", {}, "Pipeline ", name), diagram), place, tables),
    /** Put a ranking on the page; one that is there already, and only gets what Python adds to it, does not glide, and keeps its time. */
    show(newest, present, isHere = false) {
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
      if (!isHere) explorerGlide(list, places), time.textContent = "";
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
      make("div", { class: "kl-x-title" }, explorerText("strong", "", hit.title), explorerGold(hit), hit.moved?.kind !== "same" && explorerMove(hit)),
      explorerScore(hit, letters),
      explorerText("div", "kl-x-snippet", hit.snippet),
      hit.path && make("div", { class: "kl-x-path" }, make("span", { class: "kl-x-muted" }, "path "), hit.path))));
}

const EXPLORER_GLIDING = 20; // hits of a list that glide when they move
const explorerTexts = new WeakMap();
/** An element with a text in pieces; that of the same pieces is taken again, since a list has many and is made again with each movement. */
function explorerText(tag, name, pieces) {
  if (!explorerTexts.has(pieces)) explorerTexts.set(pieces, make(tag, { class: name || null }, ...explorerPieces(pieces)));
  return explorerTexts.get(pieces);
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

/** A score as a bar with a part for each retriever, and as a number. */
function explorerScore(hit, letters) {
  const parts = hit.parts.filter((part) => part.value > 0).map((part) => {
    const piece = make("span", { class: `kl-x-part kl-x-${part.retriever}` }, part.value > 0.07 && make("b", {}, letters[part.retriever]));
    piece.style.width = `${100 * part.value}%`;
    return piece;
  });
  const bar = hit.parts.length > 0 && make("span", { class: "kl-x-bar", "aria-hidden": "true" }, ...parts);
  return make("div", { class: "kl-x-score" }, bar, make("span", { class: "kl-x-value" }, hit.score.toFixed(3)));
}

/** The same hits as a table with exact numbers. */
function explorerTable(side, letters) {
  const retrievers = side.hits[0]?.parts.map((part) => part.retriever) ?? [];
  const rows = side.hits.map((hit) => [hit.rank, hit.name, hit.gold ? "★ gold" : "", hit.score.toFixed(4), hit.moved?.text ?? "",
    ...retrievers.map((retriever, at) => hit.parts[at].numbers), hit.path]);
  return textTable(side.title, ["rank", "title", "gold", "score", "moved", ...retrievers.map((retriever) => `${letters[retriever]} ${retriever}`), "path"], rows);
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
    const lines = hit.parts.map((part) => make("div", {}, explorerSwatch(part.retriever), ` ${letters[part.retriever]} ${part.retriever}: ${part.numbers}`));
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

/** Where each hit stands on the page; of a long list nothing, since asking takes longer than a frame. */
function explorerPlaces(list) {
  if (list.querySelectorAll("li").length > EXPLORER_GLIDING) return new Map();
  return new Map([...list.querySelectorAll(".kl-x-hits:not(.kl-x-short) > li")].map((row) => [row.dataset.id, row.getBoundingClientRect().top - list.getBoundingClientRect().top]));
}

/** Let hits that moved glide from where they stood, unless the reader wants no motion. */
function explorerGlide(list, before) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const after = before.size ? explorerPlaces(list) : before;
  if (!after.size) return;
  for (const row of list.querySelectorAll(".kl-x-hits:not(.kl-x-short) > li")) {
    const way = (before.get(row.dataset.id) ?? NaN) - after.get(row.dataset.id);
    if (Math.abs(way) > 1) row.animate([{ transform: `translateY(${way}px)` }, { transform: "none" }], { duration: 160, easing: "ease-out" });
  }
}
