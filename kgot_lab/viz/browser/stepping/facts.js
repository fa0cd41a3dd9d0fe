// What a fact rests on: since when it is in the graph, the sentences that say it, and the passages they stand in.

/** A fact as one reads it; where its node stands for a sentence, the title of the passage and that sentence. */
function stepFactWords(run, fact) {
  if (fact.sentence_of && fact.said.length) return [make("b", {}, `${plain(fact.sentence_of)}: `), `“${plain(run.texts[fact.said[0].sentence])}”`];
  if (!fact.edge) return [fact.text];
  const [source, type, target] = fact.edge;
  return [`${plain(source)} `, make("b", {}, `— ${plain(type)} →`), ` ${plain(target)}`];
}

/** The answer, and the facts it rests on; one that is opened lights up in the graph, and its sentence in its passage. */
function stepAnswer(view, pane) {
  const { run } = pane;
  const { facts, evidence } = run.grounds;
  const marked = stepMarkedFacts(run);
  const order = [...evidence].sort((one, other) => marked.has(other) - marked.has(one));
  const items = order.map((number) => {
    const isLit = pane.lit === number;
    const fact = make("button", { type: "button", class: "kl-step-fact", "aria-expanded": String(isLit), onclick: () => pane.light(isLit ? -1 : number) },
      marked.has(number) && make("span", { class: "kl-evidence" }, "✓ "), ...stepFactWords(run, facts[number]));
    return make("li", { class: isLit ? "kl-step-lit" : "" }, fact, isLit && stepGround(pane, facts[number]));
  });
  const few = marked.size && marked.size < evidence.length ? ` ✓ are the fewest that give this answer, and are highlighted in the graph.` : "";
  const told = evidence.length ? `Read from ${evidence.length} ${evidence.length === 1 ? "fact" : "facts"} of the graph.${few} Choose one: its edge, its sentence and its passage light up.` :
    "It cites no fact of the graph.";
  return [make("p", { class: "kl-step-big" }, run.answer), run.outcome && make("p", { class: ["supported", "not checked"].includes(run.outcome) ? "small" : "kl-step-stopped" }, run.outcome),
    make("p", { class: "small" }, told), items.length > 0 && make("ul", { class: "kl-step-facts" }, ...items)].filter(Boolean);
}

/** The numbers of the facts of the answer whose edges are marked in the graph at its end. */
function stepMarkedFacts(run) {
  const graph = run.graphs[run.graph_at.at(-1)];
  const edges = Object.keys(graph.edge_marks).map((place) => run.edges[graph.edges[place]]);
  return new Set(edges.map((edge) => stepFactOf(run, edge)).filter((number) => run.grounds.evidence.includes(number)));
}

/** The sentences that say a fact, each within its passage, and the events that brought the passage and wrote the fact. */
function stepGround(pane, fact) {
  const { texts, grounds } = pane.run;
  const passages = new Map(); // each passage once, with all its sentences that say the fact
  const loose = [];
  for (const { sentence, passage, source } of fact.said) {
    if (passage < 0) loose.push([texts[sentence], source]); // said by what the run began with, or by a text that is no document
    else passages.set(passage, [...(passages.get(passage) ?? []), texts[sentence]]);
  }
  const shown = [...passages].map(([number, sentences]) => {
    const { title, text, event } = grounds.passages[number];
    return make("figure", { class: "kl-step-passage" }, make("figcaption", {}, make("b", {}, title), " ", stepGo(pane, event, "read")), make("p", {}, ...stepMarked(texts[text], sentences)));
  });
  const rest = loose.map(([sentence, source]) => make("p", {}, make("mark", {}, sentence), source && ` [${source}]`));
  const none = fact.said.length ? [] : [make("p", { class: "small" }, "No sentence is recorded for it.")];
  return make("div", { class: "kl-step-ground" }, stepSince(pane, fact), ...shown, ...rest, ...none);
}

/** Since when a fact is in the graph. */
function stepSince(pane, fact) {
  if (fact.since < 0) return make("p", { class: "small" }, "No edge of the graph says it in these words.");
  if (fact.since === 0) return make("p", { class: "small" }, "In the graph since the run began.");
  return make("p", { class: "small" }, "In the graph since ", stepGo(pane, fact.since, ""), ".");
}

/** A button that goes to an event. */
function stepGo(pane, event, before) {
  const go = button(`event ${event}`, () => { pane.pause(); pane.go(event); }, { class: "kl-button kl-step-go" });
  return make("span", {}, before && `${before} at `, go);
}

/** A passage with some of its sentences marked; where line breaks differ, words are compared. */
function stepMarked(passage, sentences) {
  const text = passage.replace(/\s+/g, " ");
  const spans = sentences.map((sentence) => sentence.replace(/\s+/g, " ").trim()).map((sentence) => [text.indexOf(sentence), sentence.length])
    .filter(([at]) => at >= 0).sort(([one], [other]) => one - other);
  const parts = [];
  let done = 0;
  for (const [at, length] of spans) {
    if (at < done) continue;
    parts.push(text.slice(done, at), make("mark", {}, text.slice(at, at + length)));
    done = at + length;
  }
  return [...parts, text.slice(done)];
}

/** What is known of the edge that was clicked: the fact, since when, and from where. */
function stepEdgeFacts(pane, number) {
  const fact = pane.run.grounds.facts[number];
  return [make("h4", {}, ...stepFactWords(pane.run, fact)), stepGround(pane, fact)];
}

/** The number of the fact that an edge says; -1 for an edge of which nothing is noted. */
function stepFactOf(run, edge) {
  return run.grounds.facts.findIndex((fact) => fact.edge && [edge.source, edge.type, edge.target].every((part, place) => plain(part) === plain(fact.edge[place])));
}
