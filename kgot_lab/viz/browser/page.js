// What every live view is built with: elements, announcements, and how one hears of Python.

/** An element with properties, attributes, listeners and children; text becomes text, never markup. */
function make(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name === "value" || name === "checked" || name === "disabled") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false).map((child) => (child instanceof Node ? child : plain(child))));
  return made;
}

/** A text without the characters that turn the direction of reading around: what follows them could be hidden. */
function plain(text) {
  return String(text).replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/** A button with a name that says what it does. */
function button(label, act, options = {}) {
  return make("button", { type: "button", class: "kl-button", onclick: act, ...options }, label);
}

/** A control with its label, as one element. */
function labelled(label, control, options = {}) {
  return make("label", { class: "kl-label", ...options }, make("span", {}, label), control);
}

/** A line that screen readers speak when it changes. */
function announcer() {
  return make("div", { class: "kl-said", role: "status", "aria-live": "polite" });
}

/** Markup that Python made and escaped (kgot_lab.viz.static.markup), as nodes; any other text must go through `make`. */
function escapedMarkup(markup) {
  const template = document.createElement("template");
  template.innerHTML = markup;
  return template.content;
}

/** What has the focus, also where a view is within a shadow root, as in marimo. */
function focusedNear(part) { return part.getRootNode().activeElement ?? document.activeElement; }

/** The element around another one, out of a shadow root too. */
function around(element) { return element.parentElement ?? element.getRootNode().host ?? null; }

/** Do something to a part of a view; when it takes away what had the focus there, the focus goes to an element that stays. */
function keepingFocus(part, staying, act) {
  const held = focusedNear(part);
  const isHere = held && part.contains(held);
  act();
  if (isHere && (held.disabled || !held.checkVisibility({ visibilityProperty: true }))) staying()?.focus({ preventScroll: true });
}

/** Run something once the place it needs has a size: two frames after it came into the page. */
function whenLaidOut(place, act) {
  let stopped = false;
  const wait = () => {
    if (stopped) return;
    if (place.isConnected && place.clientWidth > 0) requestAnimationFrame(() => stopped || act());
    else requestAnimationFrame(wait);
  };
  requestAnimationFrame(wait);
  return () => { stopped = true; };
}

/** A table of texts with a caption and column names. */
function textTable(caption, columns, rows) {
  const head = make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, name)));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, String(cell)))));
  return make("table", { class: "kl-table" }, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...body));
}

/** The still pictures with a key within an area: those that a live view replaces. */
function picturesOf(area, key) {
  if (!area || !key) return [];
  return [...area.querySelectorAll("[data-picture], img")].filter((drawing) =>
    drawing.tagName === "IMG" ? decodedSource(drawing).includes(`data-picture="${key}"`) : drawing.getAttribute("data-picture") === key);
}

/** The text of an image whose address is its own content. */
function decodedSource(image) {
  const source = image.getAttribute("src") ?? "";
  if (!source.startsWith("data:image/svg+xml")) return "";
  const comma = source.indexOf(",");
  try {
    return source.slice(0, comma).includes("base64") ? atob(source.slice(comma + 1)) : decodeURIComponent(source.slice(comma + 1));
  } catch {
    return "";
  }
}
