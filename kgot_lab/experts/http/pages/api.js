// The REST API of this server. Where it wants a token it is asked for once, and kept until the tab is closed.

import { make } from "./dom.js";

const KEPT = "token of experts";
let asking = null;

const USER = "user of experts";

/** Who asks, where several share this computer or a token: each has conversations of their own. */
export function userName(name) {
  if (name !== undefined) localStorage.setItem(USER, name.trim());
  return localStorage.getItem(USER) ?? "";
}

/** What the server refused, or that it cannot be reached; the message is for people. */
export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The JSON that the server answers with; raises Refused. */
export async function call(path, how = {}) {
  const response = await send(path, how);
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(response.status, "no_json", "The answer of the server was cut off: try again.");
  }
}

/** The server-sent events of an answer, one after the other; raises Refused. */
export async function* events(path, body, signal) {
  const response = await send(path, { method: "POST", body, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused(0, "cut_off", "The connection broke before the answer ended.");
    }
    if (piece.done) return;
    held += piece.value;
    const parts = held.split("\n\n");
    held = parts.pop();
    for (const part of parts) if (part.startsWith("data: ")) yield JSON.parse(part.slice(6));
  }
}

async function send(path, how) {
  let wrong = false;
  for (;;) {
    const response = await once(path, how);
    if (response.ok) return response;
    if (response.status !== 401) throw await refusal(response);
    await token(wrong);
    wrong = true;
  }
}

async function once(path, { method = "GET", body, signal }) {
  const headers = {};
  const kept = sessionStorage.getItem(KEPT);
  const user = userName();
  if (user) headers["X-User"] = encodeURIComponent(user);
  if (kept) headers.Authorization = `Bearer ${kept}`;
  const isFile = body instanceof Blob;
  if (body !== undefined) headers["Content-Type"] = isFile ? "application/octet-stream" : "application/json";
  try {
    return await fetch(path, { method, headers, signal, cache: "no-store", body: body === undefined || isFile ? body : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "away", "The server cannot be reached. Is it still running?");
  }
}

async function refusal(response) {
  let told = {};
  try {
    told = (await response.json()).error ?? {};
  } catch { /* a proxy in between may answer with anything */ }
  const why = told.message ? sentence(told.message) : `The server refused, with status ${response.status}.`;
  return new Refused(response.status, told.code ?? "refused", why);
}

/** The words of an error as a sentence. */
export function sentence(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.?!]$/.test(begun) ? begun : `${begun}.`;
}

/** Ask for a token in a window over the page; several calls that need one share it. */
function token(wrong) {
  asking ??= new Promise((resolve, reject) => {
    const input = make("input", { type: "password", id: "token", autocomplete: "off", required: true });
    const window = make("dialog", { class: "token", "aria-labelledby": "token-title" },
      make("form", { method: "dialog", onsubmit: (event) => { event.preventDefault(); given(); } },
        make("h2", { id: "token-title" }, "This server asks for a token"),
        make("p", {}, wrong ? "That token does not hold. " : "", "The server's operator gives you one. It is kept until you close this tab."),
        make("label", { for: "token" }, "Token"), input,
        make("button", { class: "primary", type: "submit" }, "Use it")));
    function given() {
      if (!input.value.trim()) return;
      sessionStorage.setItem(KEPT, input.value.trim());
      end();
      resolve();
    }
    function end() {
      asking = null;
      window.remove();
    }
    window.addEventListener("cancel", () => { end(); reject(new Refused(401, "no_token", "Without a token this server shows nothing.")); });
    document.body.append(window);
    window.showModal();
  });
  return asking;
}
