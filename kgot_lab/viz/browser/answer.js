// An exercise on a page of its own: what the reader types is compared with a sealed answer, which nobody can read from the page.

/** A box for an answer, and what is said of it: `data.seal` is the seal of kgot_lab.viz.exercises, `data.hint` what is said of a wrong one. */
function answerView(root, data) {
  const said = announcer();
  const box = make("input", { type: "text", autocomplete: "off", size: 28, onkeydown: (event) => event.key === "Enter" && check() });
  root.append(make("div", { class: "kl-bar" }, labelled("Your answer", box), button("Check", check)), said);

  async function check() {
    const typed = box.value.trim();
    if (!typed) return say("Type an answer first; several parts of one are separated by commas.");
    if (!globalThis.crypto?.subtle) return say("This browser checks answers only on pages from disk or from an https address.");
    const seals = await Promise.all(plainForms(typed).map(sealOf));
    say(seals.includes(data.seal) ? "right" : `not yet${data.hint ? `: ${data.hint}` : ""}`);
  }

  function say(text) { said.textContent = plain(text); }

  return { update() {}, destroy() {} };
}

const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i; // a number as one writes it, also 1e0; not 0x2, which nobody means for 2

/** Under which forms Python may know an answer that was typed: as a number, a text, a word of its own, or a collection of such. */
function plainForms(typed) {
  const one = (text) => [...(DECIMAL.test(text) ? [plainNumber(Number(text))] : []), plainText(text)];
  const parts = typed.replace(/^[[({]|[\])}]$/g, "").split(",").map((part) => unquoted(part.trim())).filter(Boolean);
  const several = [plainText, (part) => one(part)[0]].map((form) => parts.map(form));
  const lists = several.map((each) => `[${each.sort().map(quotedText).join(", ")}]`);
  const words = ["True", "False", "None"].filter((word) => word.toLowerCase() === typed.toLowerCase());
  return [...new Set([...one(unquoted(typed)), ...words, ...lists])];
}

/** A text without the quotation marks that it was typed in. */
function unquoted(text) {
  return text.replace(/^(["'])(.*)\1$/s, "$2");
}

/** A text as Python writes it, without case and outer spaces. */
function plainText(text) {
  return quotedText(text.split(/\s+/).filter(Boolean).join(" ").toLowerCase());
}

/** A text between the quotation marks that Python puts around it. */
function quotedText(text) {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  return mark + text.replaceAll("\\", "\\\\").replaceAll(mark, `\\${mark}`) + mark;
}

/** A number with three significant digits, as Python's ".3g" writes it. */
function plainNumber(number) {
  if (number === 0) return "0";
  const [digits, power] = number.toExponential(2).split("e").map(Number);
  if (power >= -4 && power < 3) return String(Number(number.toPrecision(3)));
  return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** The seal of a plain form. */
async function sealOf(text) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return `sealed:${[...digest.slice(0, 8)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
