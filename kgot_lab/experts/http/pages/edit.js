// An expert is made or changed: its persona, graphs, methods, playbooks and manner of answering. The server checks it.

import { call } from "./api.js";
import { make } from "./dom.js";

const place = document.getElementById("edit");
const METHODS = { hybrid: "by words, meaning and edges", intent: "by the intent of the question" };

async function show() {
  const id = decodeURIComponent(location.hash.slice(1));
  place.setAttribute("aria-busy", "true");
  try {
    const [choices, expert] = await Promise.all([call("/api/choices"), id ? call(`/api/experts/${encodeURIComponent(id)}`) : null]);
    document.getElementById("back").href = id ? `/#${encodeURIComponent(id)}` : "/";
    place.replaceChildren(form(id, choices, expert));
  } catch (error) {
    place.replaceChildren(make("p", { class: "wrong", role: "alert" }, error.message));
  }
  place.removeAttribute("aria-busy");
}

function form(id, choices, expert) {
  const persona = expert?.persona ?? {};
  const graphs = expert ? (expert.kg_db_ids.length ? expert.kg_db_ids : [expert.kg_db_id]) : [];
  const wrong = make("p", { class: "wrong", role: "alert", hidden: true });
  const styles = [...new Set([...choices.styles, persona.style].filter(Boolean))];
  const made = make("form", { class: "card edit" },
    make("h1", {}, expert ? `Edit ${expert.name}` : "A new expert"),
    line("Name", make("input", { name: "name", required: true, maxlength: "200", value: expert?.name ?? "" })),
    line("What it is for", make("input", { name: "description", value: expert?.description ?? "" })),
    make("h2", {}, "Persona"),
    line("Persona's name", make("input", { name: "persona", required: true, maxlength: "200", value: persona.name ?? "" })),
    line("Instructions", area("instructions", persona.instructions)),
    line("Greeting", make("input", { name: "greeting", value: persona.greeting ?? "" })),
    line("Style", make("select", { name: "style" }, styles.map((style) => make("option", { selected: style === (persona.style ?? "professional") }, style)))),
    boxes("Graphs", "graph", choices.graphs.map(({ id: graph, state }) => [graph, state === "failed" ? `${graph} (cannot be read)` : graph]), graphs),
    boxes("Methods", "method", Object.entries(METHODS).map(([name, words]) => [name, `${name}: ${words}`]), expert?.retrieval.methods ?? Object.keys(METHODS)),
    boxes("Playbooks", "playbook", Object.entries(choices.playbooks), expert?.playbook_skills ?? []),
    boxes("Answers", "sentences", [["sentences", "in sentences that each name a source (for small models)"]], [expert?.answers_in ?? "sentences"]),
    wrong, make("div", { class: "row" }, make("button", { type: "submit", class: "primary" }, expert ? "Save" : "Make it")));
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    const told = new FormData(made);
    const text = (name) => told.get(name).trim();
    const body = { name: text("name"), description: text("description"), kg_db_id: null, kg_db_ids: told.getAll("graph"),
      persona: { name: text("persona"), instructions: text("instructions"), greeting: text("greeting"), style: told.get("style") },
      retrieval: { methods: told.getAll("method") }, playbook_skills: told.getAll("playbook"), answers_in: told.has("sentences") ? "sentences" : "prose" };
    try {
      const saved = await call(id ? `/api/experts/${encodeURIComponent(id)}` : "/api/experts", { method: id ? "PUT" : "POST", body });
      location.href = `/#${encodeURIComponent(saved.id)}`;
    } catch (error) {
      wrong.textContent = error.message;
      wrong.hidden = false;
    }
  });
  return made;
}

function line(words, field) {
  return make("label", {}, make("span", {}, words), field);
}

function area(name, text = "") {
  return make("textarea", { name, rows: "4", maxlength: "20000" }, text);
}

function boxes(words, name, all, chosen) {
  return make("fieldset", {}, make("legend", {}, words), all.map(([value, said]) => make("label", { class: "box" },
    make("input", { type: "checkbox", name, value, checked: chosen.includes(value) }), said)));
}

addEventListener("hashchange", show);
show();
