// Elements of a page. What a server says becomes text nodes and attributes, and never markup.

/** An element; attributes that are false or missing are left out, those that begin with "on" are listeners, strings inside become text. */
export function make(tag, about = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(about)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...inside.flat(3).filter((part) => part !== null && part !== undefined && part !== false));
  return element;
}

export function button(words, act, about = {}) {
  return make("button", { type: "button", onclick: act, ...about }, words);
}

const SPACE = "http://www.w3.org/2000/svg";
const ICONS = {
  up: "M7 10v10H4V10zm3 10V10l4-7c2 0 2.5 1.5 2 3l-.8 3H20c1 0 1.7 1 1.5 2l-1.5 7c-.2 1-1 2-2 2z",
  down: "M7 14V4H4v10zm3-10v10l4 7c2 0 2.5-1.5 2-3l-.8-3H20c1 0 1.7-1 1.5-2L20 6c-.2-1-1-2-2-2z",
  thought: "M12 3a7 7 0 0 0-4 12.7V18h8v-2.3A7 7 0 0 0 12 3zM9 21h6",
  bin: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10 11v5M14 11v5",
  back: "M15 5l-7 7 7 7",
  send: "M4 12l16-8-6 16-3-7z",
};

/** A small drawing that says what the words beside it, or the label of its button, say. */
export function icon(name) {
  const drawing = document.createElementNS(SPACE, "svg");
  drawing.setAttribute("viewBox", "0 0 24 24");
  drawing.setAttribute("class", "icon");
  drawing.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SPACE, "path");
  path.setAttribute("d", ICONS[name]);
  drawing.append(path);
  return drawing;
}

const COLOURS = 12;
const OWN = { limitation: 0, workaround: 1 }; // what holds back and what helps are to be told apart everywhere

/** Which of twelve colours a type of node has, here and in the drawing: the same on every page. */
export function colourOf(type) {
  if (Object.hasOwn(OWN, type)) return OWN[type];
  let sum = 0;
  for (const letter of String(type)) sum = (sum * 27 + letter.codePointAt(0)) % 10007; // keeps the commonest types of the shipped graphs apart
  return 2 + (sum % (COLOURS - 2));
}

/** A dot in the colour of a type. */
export function dot(type) {
  return make("span", { class: `dot kind-${colourOf(type)}`, "aria-hidden": "true" });
}

/** A type or a name of an edge as words. */
export function words(name) {
  return String(name).replaceAll("_", " ");
}

/** A number with its noun. */
export function counted(number, noun) { return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`; }

/** A value of a property as a line of text. */
export function told(value) {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return value.map(told).join(", ");
  if (typeof value === "object") return Object.entries(value).map(([name, each]) => `${words(name)}: ${told(each)}`).join("; ");
  if (typeof value === "number" && !Number.isInteger(value)) return String(Math.round(value * 1000) / 1000);
  return String(value);
}

/** A day or a time of day, as short as it is clear. */
export function when(text) {
  const then = new Date(text);
  const sameDay = then.toDateString() === new Date().toDateString();
  return then.toLocaleString(undefined, sameDay ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short", year: "numeric" });
}

/** A place that screen readers read out when something is said there. */
export function say(place, text) {
  place.textContent = "";
  place.append(make("p", {}, text));
}
