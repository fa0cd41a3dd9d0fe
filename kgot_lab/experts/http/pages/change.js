// A node is changed by hand: a property, an edge, a node that is joined to it. The server checks each change, and it can be undone.

import { call } from "./api.js";
import { button, make, told, words } from "./dom.js";

/** Forms that change the node that is shown; `changed` is called after each change, with the id of the node to show. */
export function changes(seen, changed) {
  const state = make("p", { class: "small", role: "status" });
  const here = seen.node.id;

  async function send(edits, next = here) {
    state.className = "small";
    try {
      const made = await call(`/api/kgos/edits/${encodeURIComponent(seen.graph)}`, { method: "POST", body: edits });
      await changed(next, made);
    } catch (error) {
      state.textContent = error.message;
      state.className = "wrong";
    }
  }

  const value = field("Value", "value");
  const property = field("Property", "name", { required: true, list: "known" });
  property.control.addEventListener("change", () => {
    const now = seen.properties[property.control.value];
    if (now !== undefined) value.control.value = typeof now === "string" ? now : JSON.stringify(now);
  });
  const known = make("datalist", { id: "known" }, Object.keys(seen.properties).map((name) => make("option", { value: name })));
  const types = make("datalist", { id: "edge-types" }, [...new Set(seen.edges.map((edge) => edge.type))].map((type) => make("option", { value: type })));
  const own = seen.edges.filter((edge) => edge.source === here || edge.target === here);
  return make("details", { class: "changes" }, make("summary", {}, "Change it"), known, types,
    act("Set a property", [property, value], (got) => send([{ edit: "PropertyToChange", id: here, name: got.name, value: parsed(got.value), before: seen.properties[got.name] ?? null }])),
    act("Add an edge", [field("Type", "type", { required: true, list: "edge-types" }), field("To (name or id)", "target", { required: true })],
      (got) => send([{ edit: "EdgeToAdd", source: here, type: got.type, target: got.target }])),
    act("Add a node", [field("Name", "name", { required: true }), field("Type", "type", { required: true, value: seen.node.type }), field("Description", "description"),
      field("Edge to it", "edge", { list: "edge-types" })], (got) => {
      const id = `${got.type}:${got.name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "_")}`;
      const edge = got.edge ? [{ edit: "EdgeToAdd", source: here, type: got.edge, target: id }] : [];
      return send([{ edit: "NodeToAdd", id, name: got.name, type: got.type, description: got.description }, ...edge], got.edge ? here : id);
    }),
    own.length > 0 && make("section", {}, make("h4", {}, "Remove an edge"), make("ul", { class: "plain" }, own.map((edge) => make("li", {},
      button(`${edge.source === here ? "" : "← "}${words(edge.type)} ${told(edge.source === here ? edge.target : edge.source)}`, () => send([{ edit: "EdgeToRemove", ...edge }]), { class: "link" }))))),
    make("section", {}, make("h4", {}, "Remove this node"), button(`Remove ${seen.node.name} with its edges`,
      () => send([{ edit: "NodeToRemove", id: here }], seen.neighbours[0]?.id ?? here), { class: "link" })),
    state);
}

/** What was done, with a button that takes it back. */
export function done(seen, made, undone) {
  const said = make("p", { class: "note", role: "status" }, made.number === null ? `Proposed, an admin decides: ${made.says}` : `Done: ${made.says}. `);
  if (made.number !== null) {
    said.append(button("Undo", async () => {
      try {
        await call(`/api/kgos/edits/${encodeURIComponent(seen.graph)}/${made.number}`, { method: "DELETE" });
        await undone();
      } catch (error) {
        said.append(make("span", { class: "wrong" }, error.message));
      }
    }));
  }
  for (const warning of made.warnings) said.append(make("span", { class: "small" }, ` ${warning}`));
  return said;
}

function field(label, name, about = {}) {
  const control = make("input", { name, ...about });
  return { control, element: make("label", {}, make("span", {}, label), control) };
}

function act(title, all, go) {
  const made = make("form", { class: "edit" }, make("h4", {}, title), all.map((each) => each.element), make("button", { type: "submit" }, title));
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    go(Object.fromEntries([...new FormData(made)].map(([name, text]) => [name, text.trim()])));
  });
  return made;
}

/** A number, true, false or a list as JSON has them; null for nothing; else the text itself. */
function parsed(text) {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
