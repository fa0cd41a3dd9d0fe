// The card of an expert: who it is, what it knows, how it searches, and how well it was found to answer.

import { Refused, call } from "./api.js";
import { counted, make, told, when, words } from "./dom.js";
import { face } from "./talks.js";
import { weights } from "./thought.js";

const card = document.getElementById("card");

async function show() {
  const id = decodeURIComponent(location.hash.slice(1));
  card.setAttribute("aria-busy", "true");
  try {
    if (!id) throw new Refused(404, "not_there", "Which expert? Put its id into the address, after a #.");
    const expert = await call(`/api/experts/${encodeURIComponent(id)}`);
    const names = expert.kg_db_ids.length ? expert.kg_db_ids : [expert.kg_db_id];
    const [sizes, scores, choices] = await Promise.all([Promise.all(names.map(size)), measured(id), call("/api/choices")]);
    for (const graph of sizes) graph.notes = choices.graphs.find((each) => each.id === graph.id)?.notes ?? [];
    document.title = `${expert.name} — expert`;
    document.getElementById("back").href = `/#${encodeURIComponent(id)}`;
    card.replaceChildren(...parts(expert, sizes, scores));
  } catch (error) {
    card.replaceChildren(make("p", { class: "wrong", role: "alert" }, error.message));
  }
  card.removeAttribute("aria-busy");
}

/** A graph with its size, or with why it has none. */
async function size(id) {
  try {
    return await call(`/api/kgos/graphs/${encodeURIComponent(id)}`);
  } catch (error) {
    return { id, wrong: error.message };
  }
}

/** What was measured of an expert; null where nothing was. */
async function measured(id) {
  try {
    return await call(`/api/experts/${encodeURIComponent(id)}/scores`);
  } catch (error) {
    if (error.status === 404) return null;
    return { "could not be read": error.message };
  }
}

function parts(expert, sizes, scores) {
  return [
    make("header", { class: "card-head" }, face(expert), make("div", {}, make("h1", {}, expert.name), make("p", {}, expert.description)),
      make("a", { class: "button", href: `/pages/edit.html#${encodeURIComponent(expert.id)}` }, "Edit"), make("a", { class: "button primary", href: `/#${encodeURIComponent(expert.id)}` }, `Ask ${expert.persona.name}`)),
    make("div", { class: "cards" },
      section("Persona", rows([["Name", expert.persona.name], ["Style", expert.persona.style], ["Greets with", expert.persona.greeting], ["Instructions", expert.persona.instructions]])),
      section("Graphs", make("ul", { class: "plain graphs" }, sizes.map((graph) => graphLine(graph, expert.graph_weights[graph.id])))),
      section("How it searches", [weights(expert.effective_weights), rows([["Methods", expert.retrieval.methods.join(", ")], ["Maximum number of nodes", expert.retrieval.limit],
        ["Steps from each", expert.retrieval.expand_depth], ["Follows", (expert.retrieval.boost_types ?? []).map(words).join(", ")]])]),
      section("Goals", Object.keys(expert.custom_goal_mappings).length ? rows(Object.entries(expert.custom_goal_mappings).map(([word, goal]) => [word,
        [goal.boost_types.length ? `follows ${goal.boost_types.map(words).join(", ")}` : "", goal.dimension_boosts.length ? `looks at ${goal.dimension_boosts.map(words).join(", ")}` : ""].filter(Boolean).join("; ")]))
        : none("No word of a question changes how it searches.")),
      section("Playbooks", expert.playbook_skills.length ? make("ul", { class: "pills" }, expert.playbook_skills.map((skill) => make("li", {}, skill))) : none("It has none.")),
      section("Models", rows([["Chat", expert.models.chat ?? "what the server usually asks"]])),
      Object.keys(expert.dimension_filters).length ? section("Only nodes with", rows(Object.entries(expert.dimension_filters).map(([name, bound]) => [words(name), bounds(bound)]))) : "",
      section("Measured", scores?.measured ? measures(scores.measured) : scores && !("measured" in scores) ? measures(scores) : none("Not measured yet.")),
      scores?.in_use ? section("In use", measures(scores.in_use)) : ""),
    make("p", { class: "small" }, `${expert.id}, made ${when(expert.created_at)}, changed ${when(expert.updated_at)}`),
  ];
}

function section(title, inside) {
  return make("section", { class: "card" }, make("h2", {}, title), inside);
}

function rows(all) {
  return make("dl", { class: "rows" }, all.filter(([, value]) => value !== "" && value !== null && value !== undefined).map(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]));
}

function none(why) {
  return make("p", { class: "hint" }, why);
}

function graphLine(graph, weight) {
  const count = (number) => number.toLocaleString("en");
  return make("li", {}, make("strong", {}, graph.id), " ", graph.wrong ? make("span", { class: "wrong" }, graph.wrong)
    : make("span", {}, `${counted(graph.nodes, "node")}, ${counted(graph.edges, "edge")}`, weight ? `, weight ${told(weight)}` : ""),
    graph.types ? make("ul", { class: "pills" }, Object.entries(graph.types).map(([type, number]) => make("li", {}, `${words(type)} `, make("span", { class: "number" }, count(number))))) : "",
    graph.notes.length ? make("details", { class: "small" }, make("summary", {}, "How it was read, and what was passed over"), make("pre", {}, graph.notes.join("\n"))) : "");
}

function bounds({ min, max, exact }) {
  if (exact !== null && exact !== undefined) return `exactly ${told(exact)}`;
  return [min ?? null, max ?? null].map((end, at) => (end === null ? "" : `${at ? "at most" : "at least"} ${told(end)}`)).filter(Boolean).join(", ");
}

/** Scores as the server has them: a row for each number, parts of parts with their names joined. */
function measures(scores) {
  const flat = (value, name) => (value !== null && typeof value === "object" && !Array.isArray(value)
    ? Object.entries(value).flatMap(([inner, each]) => flat(each, [name, words(inner)].filter(Boolean).join(" · "))) : [[name || "score", value === null ? "" : told(value)]]);
  const all = flat(scores, "");
  return all.length ? rows(all) : none("Not measured yet.");
}

addEventListener("hashchange", show);
show();
