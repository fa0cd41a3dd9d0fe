// The text of an answer: paragraphs, lists, code, and a button for each node that it cites. Every letter of it stays text.

import { dot, make } from "./dom.js";

const CITED = /\[source:([^\]\n]{1,2000})\]/gi;
const MARK = " (not in the context)";
const INLINE = /(`[^`\n]+`|\*\*[^*\n]+\*\*)/;

/** An answer that is being written: `tell` adds to it; parts that are whole already are left as they stand. */
export class Answer {
  constructor(open, heard = () => {}) {
    this.element = make("div", { class: "words" });
    this.text = "";
    this.nodes = []; // that a citation may mean: { graph, id, name, type? }
    this.open = open;
    this.heard = heard; // is told each part once it is whole, for those who listen
    this.parts = [];
  }

  knows(nodes) {
    this.nodes.push(...nodes);
  }

  tell(text) {
    this.text += text;
    this.frame ??= requestAnimationFrame(() => this.draw()); // words may come faster than they can be shown
  }

  /** No more comes. */
  end() {
    this.draw(true);
  }

  draw(whole = false) {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    const parts = blocks(this.text);
    for (let at = 0; at < parts.length; at += 1) {
      const { kind, lines } = parts[at];
      const source = `${kind}\n${lines.join("\n")}`;
      const last = at === parts.length - 1;
      const before = this.parts[at];
      if (before?.source !== source) {
        const element = this.block(kind, lines);
        if (before) before.element.replaceWith(element);
        else this.element.append(element);
        this.parts[at] = { source, element, heard: false };
      }
      if ((whole || !last) && !this.parts[at].heard) {
        this.parts[at].heard = true;
        this.heard(this.parts[at].element.textContent);
      }
    }
    for (const gone of this.parts.splice(parts.length)) gone.element.remove();
  }

  block(kind, lines) {
    if (kind === "code") return make("pre", { tabindex: "0" }, make("code", {}, lines.join("\n")));
    if (kind === "ul" || kind === "ol") return make(kind, {}, lines.map((line) => make("li", {}, this.inline(line))));
    if (kind === "head") return make("p", { class: "head" }, this.inline(lines[0]));
    return make("p", {}, this.inline(lines.join("\n")));
  }

  inline(text) {
    const out = [];
    let from = 0;
    for (const match of text.matchAll(CITED)) {
      const chips = this.chips(match[1].trim());
      out.push(...styled(text.slice(from, match.index)), ...chips.slice(0, -1));
      from = match.index + match[0].length;
      const [ends] = /^[.,;:!?)]*/.exec(text.slice(from)); // stays with the citation before it, or it would begin a line
      from += ends.length;
      out.push(make("span", { class: "kept" }, chips.at(-1) ?? "", ends));
    }
    out.push(...styled(text.slice(from)));
    return out;
  }

  /** A button for each node that a citation names, and a mark for each that it may not name. */
  chips(inside) {
    const parts = this.meant(inside) ? [inside] : inside.split(";").map((part) => part.trim()).filter(Boolean);
    return parts.map((part) => {
      if (part.endsWith(MARK)) {
        const claimed = named(part.slice(0, -MARK.length));
        return make("span", { class: "chip false", title: "The expert cited this, but was never told it." },
          make("s", {}, claimed), make("span", { class: "why" }, "not in the context"));
      }
      const node = this.meant(part);
      const name = node?.name || named(part);
      return make("button", { type: "button", class: "chip", title: `${part}: show it in its graph`, "aria-label": `Source: ${name}`,
        onclick: (event) => this.open(this.meant(part) ?? guessed(part), event.currentTarget) }, node?.type ? dot(node.type) : "", name);
    });
  }

  /** The node that a citation names; by its name, its id or the end of that, with its graph or without. */
  meant(cited) {
    const wanted = plain(cited);
    return this.nodes.find((node) => [node.name, node.id, String(node.id).split(/[:/]/).pop()]
      .some((word) => plain(word) === wanted || plain(`${node.graph}:${word}`) === wanted));
  }
}

function guessed(part) {
  const at = part.indexOf(":");
  return { graph: part.slice(0, at).trim(), id: part.slice(at + 1).trim(), name: named(part) };
}

/** A citation without its graph. */
function named(part) {
  return part.slice(part.indexOf(":") + 1).trim() || part;
}

function plain(text) {
  return String(text).toLowerCase().replace(/[\s_-]+/g, " ").trim().replaceAll(": ", ":");
}

function styled(text) {
  return text.split(INLINE).filter(Boolean).map((part) => {
    if (part.length > 2 && part.startsWith("`") && part.endsWith("`")) return make("code", {}, part.slice(1, -1));
    if (part.length > 4 && part.startsWith("**") && part.endsWith("**")) return make("strong", {}, part.slice(2, -2));
    return part;
  });
}

/** A text in parts: paragraphs, headings, lists and code, as people and models write them in plain text. */
export function blocks(text) {
  const parts = [];
  let open = null;
  let fence = false;
  const put = (kind, line) => {
    if (open?.kind === kind && kind !== "head") open.lines.push(line);
    else parts.push(open = { kind, lines: [line] });
  };
  for (const line of text.split("\n")) {
    const item = /^\s*(?:[-*•]|(\d{1,3})[.)])\s+(.*)$/.exec(line);
    const head = /^#{1,6}\s+(.*)$/.exec(line);
    if (/^\s*```/.test(line)) {
      fence = !fence;
      open = null;
      if (fence) parts.push(open = { kind: "code", lines: [] });
    } else if (fence) open.lines.push(line);
    else if (!line.trim()) open = null;
    else if (head) put("head", head[1]);
    else if (item) {
      const kind = item[1] ? "ol" : "ul";
      if (!open && parts.at(-1)?.kind === kind) open = parts.at(-1); // a list with empty lines between
      put(kind, item[2]);
    } else put("p", line);
  }
  return parts;
}
