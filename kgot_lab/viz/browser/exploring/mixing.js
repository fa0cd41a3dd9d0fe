// The formula of the sliders, as kgot_lab.viz.explorer.fusion_weights has it: a ranking follows a moved weight here, without a way to Python and back.

/** What each retriever counts: the weights of those that searched, are switched on and above 0, together 1; null where none counts. */
function explorerShares(sheet, mix) {
  const there = new Set(sheet.retrievers.map((retriever) => retriever.name));
  const counted = Object.keys(mix.weights).filter((name) => there.has(name) && !mix.off.includes(name) && mix.weights[name] > 0);
  if (!counted.length) return null;
  const sum = (names) => names.reduce((total, name) => total + mix.weights[name], 0);
  const all = Object.keys(mix.weights);
  const isWhole = all.every((name) => counted.includes(name) || mix.weights[name] === 0) && Math.abs(sum(all) - 1) <= 1e-9 * Math.max(1, sum(all));
  const total = isWhole ? 1 : sum(counted); // undivided where nothing is missing, so that a full preset is exact to the last bit
  return Object.fromEntries(counted.map((name) => [name, mix.weights[name] / total]));
}

/** The ranking: score(d) = sum over retrievers of share * scaled(s(d)), ties by id; `rows` are those of the sheet's ids, which are in order. */
function explorerRanked(sheet, mix) {
  const shares = explorerShares(sheet, mix);
  const scores = new Float64Array(sheet.ids.length), found = new Uint8Array(sheet.ids.length);
  for (const { name, rows, scaled } of sheet.retrievers) {
    const share = shares?.[name];
    if (share === undefined) continue;
    for (let rank = 0; rank < rows.length; rank += 1) {
      scores[rows[rank]] += share * scaled[rank];
      found[rows[rank]] = 1;
    }
  }
  const rows = Int32Array.from(sheet.ids.keys()).filter((row) => found[row]).sort((one, other) => scores[other] - scores[one] || one - other);
  return { shares, rows, scores };
}

/** The first k hits of a mix as Python would tell them, moved since another mix; titles and texts as far as they are here. */
function explorerMixed(sheet, mix, before, texts) {
  const { shares, rows, scores } = explorerRanked(sheet, mix);
  const there = before && ranksOf(explorerRanked(sheet, before).rows, sheet.ids.length);
  const retrievers = shares ? sheet.retrievers.filter((retriever) => retriever.name in shares) : [];
  const hits = [...rows.slice(0, mix.k)].map((row, at) => {
    const id = sheet.ids[row], known = texts.get(id) ?? { title: [[sheet.names[row], false]], snippet: [] };
    return { rank: at + 1, id, name: sheet.names[row], ...known, score: scores[row], gold: sheet.gold.some((each) => each.row === row),
      path: retrievers.map((retriever) => retriever.paths[id]).find(Boolean) ?? "", parts: retrievers.map((retriever) => partOf(retriever, shares[retriever.name], row)),
      moved: there && there.some(Boolean) ? moveOf(at + 1, there[row]) : null };
  });
  return { shares, hits, told: rows.length ? goldTold(sheet, ranksOf(rows, sheet.ids.length), mix.k) : "" };
}

/** The rank of each row, 0 for what is not among them. */
function ranksOf(rows, size) {
  const ranks = new Int32Array(size);
  rows.forEach((row, at) => { ranks[row] = at + 1; });
  return ranks;
}

/** What a retriever adds to the score of a row, and how that came about. */
function partOf(retriever, share, row) {
  retriever.ranks ??= ranksOf(retriever.rows, retriever.rows.reduce((most, each) => Math.max(most, each), 0) + 1);
  const rank = retriever.ranks[row] ?? 0;
  if (!rank) return { retriever: retriever.name, value: 0, numbers: "0 (not found)" };
  const [scaled, score] = [retriever.scaled[rank - 1], retriever.scores[rank - 1]];
  const numbers = `${(share * scaled).toFixed(3)} = ${share.toFixed(2)} × ${scaled.toFixed(3)} (score ${Number(score.toPrecision(3))}, rank ${rank})`;
  return { retriever: retriever.name, value: share * scaled, numbers };
}

/** How a hit came to a rank from another one, 0 being none. */
function moveOf(rank, there) {
  if (!there) return { kind: "new", there: 0, text: "+ new" };
  if (rank === there) return { kind: "same", there, text: "= same" };
  return rank < there ? { kind: "up", there, text: `▲ up ${there - rank}` } : { kind: "down", there, text: `▼ down ${rank - there}` };
}

/** What is found of the relevant documents among the first k, with recall@k. */
function goldTold(sheet, ranks, k) {
  if (!sheet.gold.length) return "No passages are marked as relevant to this question.";
  const rank = (each) => (each.row < 0 ? 0 : ranks[each.row]);
  const places = sheet.gold.map(rank).filter((place) => place && place <= k).sort((one, other) => one - other);
  const at = places.length ? `, at ${places.length > 1 ? "ranks" : "rank"} ${places.join(" and ")}` : "";
  const missed = sheet.gold.filter((each) => !rank(each) || rank(each) > k).map((each) => `“${each.title}” (${rank(each) ? `rank ${rank(each)}` : each.missing})`);
  return `${places.length} of ${sheet.gold.length} gold in the first ${k}${at} (recall@${k} = ${(places.length / sheet.gold.length).toFixed(2)}).${missed.length ? ` Missed: ${missed.join(", ")}.` : ""}`;
}
