// The side of the chat: which experts there are, and what was said with the chosen one before.

import { call } from "./api.js";
import { button, icon, make, when } from "./dom.js";

const EXPERTS = 100; // that are shown at once

/** The first experts, each a button, and one for more; `choose` is told the one that is pressed. */
export async function expertList(place, choose, failed) {
  const first = await call(`/api/experts?limit=${EXPERTS}`);
  place.replaceChildren();
  add(first);
  if (!first.length) place.replaceChildren(make("li", { class: "hint" }, "There is no expert on this server yet."));
  return first;

  function add(experts) {
    place.append(...experts.map((expert) => make("li", {}, entry(expert, choose))));
    if (experts.length < EXPERTS) return;
    const more = make("li", {}, button("Show more", async () => {
      try {
        const next = await call(`/api/experts?limit=${EXPERTS}&after=${encodeURIComponent(experts.at(-1).id)}`);
        more.remove();
        add(next);
        markExpert(place, marked);
      } catch (error) {
        failed(error);
      }
    }, { class: "quiet" }));
    place.append(more);
  }
}

/** The experts that were deleted and left conversations of the reader's, each a button; what is told of them is all that is known. */
export async function leftBehind(place, choose) {
  const found = await call("/api/conversations?gone=true&limit=200");
  const experts = [...new Set(found.conversations.map((talk) => talk.expert_id))].map((id) => ({ id, name: id, persona: { name: id }, gone: true,
    description: "It was deleted; your conversations with it are still yours." }));
  place.replaceChildren(...experts.map((expert) => make("li", {}, entry(expert, choose))));
  return experts;
}

function entry(expert, choose) {
  return make("button", { type: "button", class: "expert", "data-id": expert.id, onclick: () => choose(expert.id) },
    face(expert), make("span", { class: "expert-words" }, make("strong", {}, expert.name), " ", make("span", { class: "small" }, expert.description || expert.persona.name)));
}

let marked = "";

export function markExpert(place, id) {
  marked = id;
  for (const each of place.querySelectorAll(".expert")) {
    if (each.dataset.id === id) each.setAttribute("aria-current", "true");
    else each.removeAttribute("aria-current");
  }
}

/** The first letter of a persona on a coloured ground. */
export function face(expert) {
  const name = expert.persona?.name || expert.name;
  return make("span", { class: `face face-${[...expert.id].reduce((sum, letter) => sum + letter.codePointAt(0), 0) % 5}`, "aria-hidden": "true" }, [...name][0].toUpperCase());
}

const PAGE = 20;

/** Earlier conversations with an expert, the last first: to open, and to delete. */
export class Talks {
  constructor(place, { open, gone, failed }) {
    this.place = place;
    this.told = { open, gone, failed };
    this.current = "";
  }

  async load(expert, { more = false } = {}) {
    if (expert !== this.expert) this.place.replaceChildren();
    this.expert = expert;
    const limit = more ? this.place.querySelectorAll(".talk").length + PAGE : Math.max(PAGE, this.place.querySelectorAll(".talk").length);
    let found;
    try {
      found = await call(`/api/experts/${encodeURIComponent(expert)}/conversations?limit=${Math.min(limit, 200)}`);
    } catch (error) {
      this.told.failed(error);
      return;
    }
    if (this.expert !== expert) return;
    this.place.replaceChildren(...found.conversations.map((talk) => this.line(talk)));
    if (!found.total) this.place.append(make("li", { class: "hint" }, "None yet."));
    if (found.total > found.conversations.length && found.conversations.length < 200) {
      this.place.append(make("li", {}, button("Show more", () => this.load(expert, { more: true }), { class: "quiet" })));
    }
    this.mark(this.current);
  }

  mark(id) {
    this.current = id;
    for (const each of this.place.querySelectorAll(".talk-open")) {
      if (each.dataset.id === id) each.setAttribute("aria-current", "true");
      else each.removeAttribute("aria-current");
    }
  }

  line(talk) {
    const away = make("button", { type: "button", class: "quiet talk-delete", "aria-label": `Delete: ${talk.preview}`, title: "Delete", onclick: () => this.remove(talk, away),
      onblur: () => { delete away.dataset.sure; away.replaceChildren(icon("bin")); } }, icon("bin"));
    return make("li", { class: "talk" }, make("button", { type: "button", class: "talk-open", "data-id": talk.id, onclick: () => this.told.open(talk.id) },
      make("span", { class: "talk-said" }, talk.preview || "(nothing)"), make("span", { class: "small" }, when(talk.last_message_at))), away);
  }

  /** The first press asks, the second deletes. */
  async remove(talk, away) {
    if (!away.dataset.sure) {
      away.dataset.sure = "asked";
      away.replaceChildren("Delete?");
      return;
    }
    try {
      await call(`/api/experts/${encodeURIComponent(this.expert)}/conversations/${encodeURIComponent(talk.id)}`, { method: "DELETE" });
    } catch (error) {
      this.told.failed(error);
      return;
    }
    if (await this.told.gone(talk.id)) return; // it was the last that a deleted expert had left
    await this.load(this.expert);
    (this.place.querySelector("button") ?? document.getElementById("new")).focus();
  }
}
