// The chat: an expert is chosen and asked, its answer streams, its sources and its train of thought stand beside it.

import { Answer } from "./answer.js";
import { call, events, sentence, userName } from "./api.js";
import { Bring } from "./bring.js";
import { counted, icon, make, say } from "./dom.js";
import { GraphPanel } from "./graph.js";
import { views, tabs } from "./tabs.js";
import { Talks, expertList, face, leftBehind, markExpert } from "./talks.js";
import { Thoughts } from "./thought.js";

const CUT = "The answer is cut off here, at its length limit. Ask the expert to go on.";
const at = (id) => document.getElementById(id);
const [said, spoken, question, asking, stop] = ["said", "spoken", "question", "asking", "stop"].map(at);
const view = views(at("views"));
const beside = tabs(at("tabs"));
const graph = new GraphPanel(at("graph"));
const thoughts = new Thoughts(at("thought"), open);
const talks = new Talks(at("talks"), { open: openTalk, gone: deleted, failed });
const state = { expert: null, talk: null, running: null, left: [] }; // left: experts that were deleted, whose conversations are here

/** Open a node in the graph beside the chat. */
async function open(node) {
  beside("graph");
  view("beside");
  await graph.open(node.graph, node.id);
}

function failed(error) {
  said.append(make("p", { class: "wrong", role: "alert" }, error.message));
  toEnd(true);
}

async function choose(id, talk = null) {
  state.running?.abort();
  try {
    const expert = state.left.find((each) => each.id === id) ?? await call(`/api/experts/${encodeURIComponent(id)}`);
    state.expert = expert;
    asking.hidden = at("new").hidden = Boolean(expert.gone);
    markExpert(at("side"), id);
    at("who").replaceChildren(face(expert), make("div", {}, make("h1", {}, expert.name), make("p", { class: "small" }, expert.description)),
      !expert.gone && make("a", { href: `/pages/expert.html#${encodeURIComponent(id)}`, class: "button" }, "About"));
    document.title = `${expert.name} — experts`;
    question.placeholder = `Ask ${expert.persona.name}`;
    talks.load(id);
    if (talk) await openTalk(talk, false);
    else begin();
  } catch (error) {
    failed(error);
  }
}

/** An empty chat with the chosen expert, which greets. */
function begin() {
  state.running?.abort();
  state.talk = null;
  thoughts.empty();
  talks.mark("");
  remember();
  const { expert } = state;
  if (expert.gone) {
    said.replaceChildren(make("p", { class: "greeting note" }, "This expert was deleted. You can still read and delete your conversations with it, beside the experts."));
    return;
  }
  said.replaceChildren(make("div", { class: "greeting" }, face(expert), make("h2", {}, expert.persona.name),
    make("p", {}, expert.persona.greeting || `Ask me about ${[...(expert.kg_db_ids ?? []), expert.kg_db_id].filter(Boolean)[0]}.`)));
  if (matchMedia("(min-width: 901px)").matches) question.focus(); // on a phone the keyboard would cover the greeting
}

/** A conversation was deleted; whether it was the last of an expert that is gone, of which nothing is shown then. */
async function deleted(id) {
  if (id === state.talk) begin();
  if (!state.expert.gone) return false;
  state.left = await leftBehind(at("left"), chosen);
  markExpert(at("side"), state.expert.id);
  if (state.left.some((each) => each.id === state.expert.id)) return false;
  history.replaceState(null, "", "#");
  await start();
  return true;
}

async function openTalk(id, isWanted = true) {
  state.running?.abort();
  const expert = state.expert.id;
  try {
    const whole = await call(`/api/experts/${encodeURIComponent(expert)}/conversations/${encodeURIComponent(id)}`);
    if (state.expert.id !== expert) return;
    state.talk = id;
    said.replaceChildren();
    thoughts.empty();
    talks.mark(id);
    remember();
    for (const [message, replies] of inPairs(whole.messages)) {
      if (message) asked(message.content);
      if (replies.length) replies.forEach(answered);
      else said.append(make("p", { class: "note" }, "No answer is stored: it was interrupted, or is still being written."));
    }
    if (isWanted) view("chat");
    toEnd(true);
  } catch (error) {
    if (error.status === 404) begin();
    failed(error);
  }
}

/** Messages as questions, each with its answers: of questions that were asked at once the answers come in any order. */
function inPairs(messages) {
  const pairs = [];
  for (const message of messages) {
    if (message.role === "user") {
      pairs.push([message, []]);
      continue;
    }
    const pair = pairs.find(([question]) => question?.id === message.metadata.answers) ?? pairs.at(-1);
    if (pair) pair[1].push(message);
    else pairs.push([null, [message]]);
  }
  return pairs;
}

/** The chosen expert and conversation stand in the address, so that loading the page again shows them again. */
function remember() {
  history.replaceState(null, "", `#${[state.expert.id, state.talk].filter(Boolean).map(encodeURIComponent).join("/")}`);
}

function asked(text) {
  said.append(make("article", { class: "message mine", "aria-label": "You asked" }, make("div", { class: "words" }, make("p", {}, text))));
}

/** A place for an answer of the expert. */
function placed() {
  const answer = new Answer(open, (part) => spoken.append(make("p", {}, part)));
  const under = make("div", { class: "under" });
  const element = make("article", { class: "message", "aria-label": `${state.expert.persona.name} answered` }, face(state.expert),
    make("div", { class: "message-body" }, answer.element, under));
  said.append(element);
  return { answer, under, element };
}

/** An answer of before. */
function answered(message) {
  const about = message.metadata;
  const { answer, under } = placed();
  answer.heard = () => {}; // it is there to be read, not news
  answer.knows([...(about.trace?.nodes ?? []).filter((node) => node.told), ...(about.citations ?? [])]);
  answer.tell(message.content);
  answer.end();
  const note = about.failed ? "The answer is incomplete." : about.stopped ? "It was stopped here." : about.cut ? CUT : "";
  if (note) under.append(make("p", { class: "note" }, note));
  const end = { citations: about.citations ?? [], named: about.named ?? [], false: about.false_citations ?? [], outcome: about.outcome };
  finish(under, { trace: about.trace, end, id: message.content ? message.id : "", thought: message.thumb });
  if (about.trace) thoughts.show(about.trace, end);
}

/** What can be done with an answer: see how it came about, say what one thinks of it. */
function finish(under, { trace, end, id, thought = null }) {
  if (end.named.length) {
    under.append(make("p", { class: "named" }, "Names, without citing them: ", ...end.named.flatMap((node) => [
      make("button", { type: "button", class: "chip", title: `${node.name}: show it in its graph`, onclick: (event) => open(node, event.currentTarget) }, node.name), " "])));
  }
  if (end.outcome) under.append(make("p", { class: "note" }, sentence(end.outcome)));
  const [expert, talk] = [state.expert.id, state.talk];
  const thumb = (value, name, words) => make("button", { type: "button", class: "quiet thumb", "aria-pressed": String(thought === value), "aria-label": words, title: words, onclick: async (event) => {
    const pressed = event.currentTarget;
    const back = pressed.getAttribute("aria-pressed") === "true"; // pressed again, it is taken back
    try {
      await call(`/api/experts/${encodeURIComponent(expert)}/conversations/${encodeURIComponent(talk)}/messages/${encodeURIComponent(id)}/opinion`, back ? { method: "DELETE" } : { method: "PUT", body: { thumb: value } });
      for (const each of under.querySelectorAll(".thumb")) each.setAttribute("aria-pressed", String(each === pressed && !back));
    } catch (error) {
      failed(error);
    }
  } }, icon(name));
  under.append(make("div", { class: "acts" },
    trace && make("button", { type: "button", class: "quiet", onclick: () => { thoughts.show(trace, end); beside("thought"); view("beside"); } }, icon("thought"), "How it came to this"),
    id && [thumb(1, "up", "A good answer"), thumb(-1, "down", "A bad answer")]));
}

async function ask() {
  const text = question.value.trim();
  if (!text || !state.expert) return question.focus();
  if (state.running) return;
  const running = state.running = new AbortController();
  said.querySelector(".greeting")?.remove();
  spoken.replaceChildren();
  asked(text);
  question.value = "";
  fitQuestion();
  const place = placed();
  place.element.classList.add("writing");
  working(true);
  toEnd(true);
  say(at("state"), `${state.expert.persona.name} is looking`);
  try {
    await stream(text, place, running.signal);
  } catch (error) {
    if (error.name === "AbortError") {
      place.answer.end();
      place.under.append(make("p", { class: "note" }, "Stopped. The text so far is kept."));
    } else place.under.append(make("p", { class: "wrong", role: "alert" }, error.message));
  }
  if (!place.answer.text) question.value ||= text; // nothing came of it: it may be asked again
  place.element.classList.remove("writing");
  if (state.running === running) state.running = null;
  working(Boolean(state.running));
  say(at("state"), "");
  talks.load(state.expert.id).then(() => talks.mark(state.talk ?? ""));
  toEnd();
}

async function stream(text, { answer, under }, signal) {
  const expert = state.expert.id;
  let trace = null;
  const body = { query: text, trace: true, ...(state.talk ? { conversation_id: state.talk } : {}) };
  for await (const event of events(`/api/experts/${encodeURIComponent(expert)}/chat`, body, signal)) {
    signal.throwIfAborted(); // several may have come at once
    if (event.type === "conversation_start") {
      state.talk = event.conversation_id;
      remember();
    } else if (event.type === "sources") {
      answer.knows(event.nodes);
      say(at("state"), `${counted(event.nodes.length, "source")} found, ${state.expert.persona.name} is writing`);
    } else if (event.type === "trace") {
      trace = event.trace;
      thoughts.show(trace);
      if (!graph.seen) beside("thought");
    } else if (event.type === "token") {
      answer.tell(event.content);
      toEnd();
    } else if (event.type === "error") {
      under.append(make("p", { class: "wrong", role: "alert" }, sentence(event.content)));
    } else if (event.type === "done") {
      answer.knows(event.citations);
      answer.end();
      const end = { citations: event.citations, named: event.named, false: event.false_citations, outcome: event.outcome };
      if (trace && thoughts.trace === trace) thoughts.show(trace, end);
      if (event.cut) under.append(make("p", { class: "note" }, CUT));
      finish(under, { trace, end, id: answer.text ? event.message_id : "" });
    }
  }
}

function working(is) {
  stop.hidden = !is;
  at("ask").hidden = is;
}

/** Keep the end in sight, unless the reader looks at something above. */
function toEnd(always = false) {
  const near = said.scrollHeight - said.scrollTop - said.clientHeight < 140;
  if (always || near) said.scrollTop = said.scrollHeight;
}

function fitQuestion() {
  question.style.height = "auto";
  question.style.height = `${Math.min(question.scrollHeight + 2, 180)}px`;
}

asking.addEventListener("submit", (event) => { event.preventDefault(); ask(); });
question.addEventListener("input", fitQuestion);
question.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  ask();
});
stop.addEventListener("click", () => { state.running?.abort(); question.focus(); });
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && state.running) stop.click(); });
at("new").addEventListener("click", () => { if (state.expert) begin(); view("chat"); });

/** Whether there is an expert that the list does not show yet. */
async function isThere(id) {
  try {
    return Boolean(await call(`/api/experts/${encodeURIComponent(id)}`));
  } catch (error) {
    if (error.status === 404) return false;
    throw error;
  }
}

/** The expert and the conversation in the address; none where somebody wrote what is no address. */
function addressed() {
  try {
    return location.hash.slice(1).split("/").map(decodeURIComponent);
  } catch {
    return [];
  }
}

async function chosen(id) {
  await choose(id);
  view("chat");
}

/** What one may bring and make, where the server allows it. */
async function own() {
  at("you").value = userName();
  at("you").addEventListener("change", () => { userName(at("you").value); begin(); talks.load(state.expert.id); });
  at("own").append(make("a", { class: "button", href: "/pages/edit.html" }, "New expert"));
  if ((await call("/api/choices")).uploads) new Bring(at("own"), brought);
}

async function brought(id) {
  await expertList(at("experts"), chosen, failed);
  await chosen(id);
}

async function start() {
  try {
    const experts = await expertList(at("experts"), chosen, failed);
    state.left = await leftBehind(at("left"), chosen);
    const [id, talk] = addressed();
    const wanted = id && ([...experts, ...state.left].some((each) => each.id === id) || (await isThere(id))) ? id : experts[0]?.id;
    if (wanted) await choose(wanted, wanted === id ? talk : null);
  } catch (error) {
    failed(error);
  }
}

start();
own().catch(failed);
