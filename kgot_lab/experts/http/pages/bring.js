// Bring your own: files are chosen or dropped, sent one by one, read into a graph, and an expert on it is made.

import { Refused, call } from "./api.js";
import { button, make } from "./dom.js";

const SKIPPED = /(^|\/)(\.(?!gitignore$)[^/]*|node_modules|__pycache__|site-packages|Thumbs\.db)(\/|$)/;
const AT_ONCE = 4; // files that are sent at the same time
const LARGEST = 50_000_000; // bytes of a file
const WAIT = 400; // milliseconds between two looks at how far the reading is

/** A dialog that takes a folder, files or what is dropped on the page; `made` is told the new expert's id. */
export class Bring {
  constructor(place, made) {
    this.made = made;
    const folder = this.chooser("Choose a folder", { webkitdirectory: true });
    const files = this.chooser("Choose files", { multiple: true });
    this.name = make("input", { id: "bring-name", maxlength: "100", autocomplete: "off" });
    this.bar = make("progress", { "aria-label": "Progress", hidden: true });
    this.state = make("p", { class: "small", role: "status" });
    this.passed = make("ul", { class: "small", "aria-label": "What was passed over" });
    this.dialog = make("dialog", { class: "token bring", "aria-labelledby": "bring-title" },
      make("h2", { id: "bring-title" }, "Bring your own"),
      make("p", {}, "A folder of texts or code, documents, a graph of any program, tables or a SQLite file: drop it here, or choose it. It stays on this server."),
      make("div", { class: "row" }, folder, files),
      make("label", { for: "bring-name" }, "Its name (by default that of the folder or file)"), this.name,
      this.bar, this.state, this.passed, button("Close", () => this.close(), { class: "quiet" }));
    this.dialog.addEventListener("cancel", () => this.close());
    document.body.append(this.dialog);
    place.append(button("Bring your own", () => this.open()));
    document.addEventListener("dragover", (event) => { if (event.dataTransfer?.types.includes("Files")) event.preventDefault(); });
    document.addEventListener("drop", (event) => this.dropped(event));
  }

  chooser(words, about) {
    const input = make("input", { type: "file", hidden: true, ...about });
    input.addEventListener("change", () => {
      const chosen = [...input.files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
      input.value = "";
      this.take(chosen);
    });
    return [input, button(words, () => input.click())];
  }

  open() {
    if (this.dialog.open) return;
    this.say("");
    this.passed.replaceChildren();
    this.dialog.showModal();
  }

  close() {
    this.stopped?.abort();
    this.dialog.close();
  }

  async dropped(event) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    const plain = [...event.dataTransfer.files].map((file) => ({ path: file.name, file }));
    this.open();
    try {
      await this.take(entries.length ? (await Promise.all(entries.map((entry) => inside(entry)))).flat() : plain);
    } catch (error) {
      this.say(`What was dropped cannot be read: ${error.message}`, true);
    }
  }

  /** Send files, read them, and make an expert; what goes wrong is said in the dialog. */
  async take(all) {
    const wanted = all.filter(({ path }) => !SKIPPED.test(path));
    const files = wanted.filter(({ file }) => file.size <= LARGEST);
    const large = wanted.filter((each) => !files.includes(each)).map(({ path }) => `skipped ${path}: it is larger than ${LARGEST / 1e6} MB`);
    if (!files.length) return this.say(large[0] ?? "There is no file in it that can be read.", true);
    if (this.stopped && !this.stopped.signal.aborted) return this.say("The previous upload is still running.", true);
    this.stopped = new AbortController();
    const { signal } = this.stopped;
    const upload = [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(36).padStart(2, "0")).join("");
    const first = files[0].path.split("/");
    const name = this.name.value.trim() || (first.length > 1 ? first[0] : files.length > 1 ? "my files" : first[0].replace(/\.[^.]+$/, ""));
    let graph = null;
    try {
      await this.send(files, upload, signal);
      graph = (await call("/api/graphs", { method: "POST", body: { upload, name }, signal })).id;
      const notes = await this.read(graph, signal);
      const expert = await call("/api/experts", { method: "POST", signal, body: {
        name, description: `Answers from ${name}`, kg_db_id: graph, answers_in: "sentences",
        persona: { name, instructions: "You answer from what the knowledge graph says, and say so if it does not.", greeting: `Ask me about ${name}.` } } });
      this.name.value = "";
      this.made(expert.id);
      this.end([...large, ...notes]);
    } catch (error) {
      const away = graph ? `/api/graphs/${graph}` : `/api/uploads/${upload}`;
      await call(away, { method: "DELETE" }).catch(() => {}); // the reason is said below
      if (error.name !== "AbortError") this.say(error.message, true);
    } finally {
      this.bar.hidden = true;
      this.stopped.abort();
    }
  }

  async send(files, upload, signal) {
    const waiting = [...files];
    let sent = 0;
    const next = async () => {
      for (let each = waiting.shift(); each; each = waiting.shift()) {
        const path = each.path.split("/").map(encodeURIComponent).join("/");
        await call(`/api/uploads/${upload}/${path}`, { method: "PUT", body: each.file, signal });
        sent += 1;
        this.show(sent, files.length, `Sent ${sent} of ${files.length} files`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
  }

  async read(id, signal) {
    for (;;) {
      signal.throwIfAborted();
      const { graphs } = await call("/api/choices", { signal });
      const graph = graphs.find((each) => each.id === id);
      if (graph?.state === "ready") return graph.notes;
      if (!graph || graph.state === "failed") throw new Refused(422, "unreadable", graph?.error ?? "The graph is gone.");
      this.show(graph.done, graph.total, graph.total ? `Read ${graph.done} of ${graph.total} files: ${graph.file}` : "Reading");
      await new Promise((done) => { setTimeout(done, WAIT); });
    }
  }

  /** Close the dialog, unless something was passed over, which is shown first. */
  end(notes) {
    const passed = notes.map((line) => line.trim()).filter((line) => /^(skipped|note)/.test(line));
    if (!passed.length) return this.dialog.close();
    this.passed.replaceChildren(...passed.map((line) => make("li", {}, line)));
    this.say("It is read and can be asked. This was passed over, or read with doubt:");
  }

  show(done, total, words) {
    this.bar.hidden = false;
    if (total) Object.assign(this.bar, { max: total, value: done });
    else this.bar.removeAttribute("value");
    this.state.textContent = words;
  }

  say(words, isWrong = false) {
    this.state.textContent = words;
    this.state.className = isWrong ? "wrong" : "small";
  }
}

/** All files in what was dropped, each with its path. */
async function inside(entry, before = "") {
  const path = before + entry.name;
  if (SKIPPED.test(path)) return [];
  if (entry.isFile) return [{ path, file: await new Promise((done, failed) => { entry.file(done, failed); }) }];
  const reader = entry.createReader();
  const found = [];
  for (;;) { // a reader tells at most a hundred at a time
    const some = await new Promise((done, failed) => { reader.readEntries(done, failed); });
    if (!some.length) break;
    for (const each of some) found.push(...await inside(each, `${path}/`));
  }
  return found;
}
