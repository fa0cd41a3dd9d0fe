// Two rankings of the explorer side by side.

const EXPLORER_ROW = 50; // pixels of a row: the lines between two lists are drawn by it

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
