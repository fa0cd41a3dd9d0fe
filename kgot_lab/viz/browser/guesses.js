// Guess first: who wins each round, and by how much if that is asked; then what was measured.

let guessGroups = 0;

/** A row of choices for each round, a button that shows what came out once all are guessed, and how many guesses were right. */
function guessesView(root, data, tell) {
  const guesses = data.rounds.map(() => ({ system: "", by: null }));
  const said = announcer();
  const rows = data.rounds.map((round, number) => guessRow(data, round, guesses[number], ready));
  const reveal = button("Show what was measured", show, { disabled: true });
  const again = button("Guess again", clear, { disabled: true });
  const names = [data.asks ? "question" : "set", ...data.systems.map((system) => system.name), ...(data.asks ? [] : [`by how much ${data.measure}?`]), "what was measured"];
  const head = make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name)));
  root.append(
    make("p", {}, make("b", {}, data.asks || `Which system has the best ${data.measure} on each set, and how far ahead of the next?`)),
    make("ul", {}, ...data.systems.map((system) => make("li", {}, make("b", {}, system.name), `: ${system.told}`))),
    make("div", { class: "kl-scroll kl-guess-rounds" }, make("table", { class: "kl-table" }, make("thead", {}, head), make("tbody", {}, ...rows.map((row) => row.element)))),
    make("div", { class: "kl-bar" }, reveal, again), said);

  function ready() {
    reveal.disabled = !guesses.some((guess) => guess.system) || guesses.some((guess, number) => !guess.system && data.rounds[number].first.length);
  }

  function show() {
    rows.forEach((row) => row.show());
    again.disabled = false;
    keepingFocus(root, () => again, () => { reveal.disabled = true; });
    const told = data.rounds.map((round, number) => ({ round, guess: guesses[number] })).filter(({ round, guess }) => guess.system && round.first.length);
    const right = told.filter(({ round, guess }) => round.first.includes(guess.system)).length;
    const constant = Math.max(...data.systems.map((system) => told.filter(({ round }) => round.first.includes(system.name)).length));
    said.textContent = told.length ? `${right} of ${told.length} guesses are right. The same answer everywhere gets at most ${constant}.` : "What was guessed is still open.";
    tell?.({ guesses: data.rounds.map((round, number) => ({ on: round.on, ...guesses[number] })) });
  }

  function clear() {
    rows.forEach((row) => row.clear());
    said.textContent = "";
    keepingFocus(root, () => rows[0]?.element.querySelector("input"), () => { again.disabled = true; });
    ready();
  }

  return { update() {}, destroy() {} };
}

/** The choices of a round; `show` puts what was measured beside them, `clear` takes it and the guess away. */
function guessRow(data, round, guess, changed) {
  const group = `kl-guess-${guessGroups += 1}`;
  const boxes = data.systems.map((system) => make("input", { type: "radio", name: group, "aria-label": data.asks ? `${system.name}: ${round.on}` : `${system.name} is best on ${round.on}`,
    onchange: () => { guess.system = system.name; changed(); } }));
  const by = make("input", { type: "number", min: "0", max: "1", step: "0.05", "aria-label": `by how much on ${round.on}`, style: "width: 6em",
    onchange: () => { guess.by = by.value === "" ? null : Number(by.value); } });
  const measured = make("td", {});
  const inputs = [...boxes, by];
  const choices = data.asks ? boxes : inputs;
  const element = make("tr", {}, make("th", { scope: "row" }, round.on), ...choices.map((input) => make("td", {}, input)), measured);
  return {
    element,
    show() {
      inputs.forEach((input) => { input.disabled = true; });
      const verdict = guessVerdict(round, guess);
      measured.style.minWidth = "16em"; // none before: where the view is narrow the questions need the room
      measured.replaceChildren(...(verdict ? [make("b", {}, verdict), " "] : []), plain(round.told));
    },
    clear() {
      inputs.forEach((input) => { input.disabled = false; input.checked = false; });
      by.value = "";
      guess.system = "";
      guess.by = null;
      measured.style.minWidth = "";
      measured.replaceChildren();
    },
  };
}

/** What is said of a guess; nothing of a round that is open or was not guessed. */
function guessVerdict(round, guess) {
  if (!guess.system || !round.first.length) return "";
  if (!round.first.includes(guess.system)) return "Not so.";
  return guess.by === null || round.ahead === null ? "Right." : `Right, and ${Math.abs(guess.by - round.ahead).toFixed(2)} off.`;
}
