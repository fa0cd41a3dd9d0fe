// Predict, then reveal: how a vote stands, and what a reader is asked before the next event is shown.

/** The vote that goes on at an event: its samples so far, how many may still come, and whether they can change anything. */
function stepTally(run, at) {
  const round = run.votes.find((round) => at >= round.start && at <= (round.end < 0 ? Infinity : round.end));
  if (!round) return null;
  const fallen = round.samples.filter(([event]) => event <= at).map(([, choice]) => choice);
  const count = (choice) => fallen.filter((other) => other === choice).length;
  const left = Math.max(0, round.possible - fallen.length);
  const slot = (choice) => (choice === undefined ? make("span", { class: "kl-step-sign kl-step-sign-open" }, "·") : make("span", { class: `kl-step-sign kl-step-sign-${STEP_SIGNS[choice]}` }, STEP_SIGNS[choice]));
  const decided = count("RETRIEVE") > count("INSERT") + left ? "RETRIEVE" : count("INSERT") >= count("RETRIEVE") + left ? "INSERT" : "";
  const rest = left ? `, ${left} not needed` : "";
  return [make("b", {}, "Votes"), make("span", { class: "kl-step-slots", "aria-hidden": "true" }, ...Array.from({ length: fallen.length + left }, (_, number) => slot(fallen[number]))),
    make("span", {}, `${count("INSERT")} INSERT, ${count("RETRIEVE")} RETRIEVE, ${count("")} neither; `, decided ? make("b", {}, `decided: ${decided}${rest}`) : `${left} still possible`)];
}

/** The questions of a run, what was guessed, and how far the reader has come. */
function stepQuiz(run) {
  const questions = run.questions.map((question) => ({ ...question }));
  const words = (question, value) => question.choices.find((choice) => choice.value === value).words;
  const quiz = { asked: null, reached: 0 };
  const revealed = () => questions.filter((question) => question.guess && question.reveal <= quiz.reached);

  /** Go as far as the next question that was not answered; how far that is. */
  quiz.reach = (at) => {
    const next = questions.find((question) => !question.guess);
    const stopped = next && at >= next.before;
    quiz.asked = stopped ? next : null;
    const reached = stopped ? next.before - 1 : at;
    quiz.reached = Math.max(quiz.reached, reached);
    return reached;
  };
  quiz.answer = (value) => { quiz.asked.guess = value; };
  quiz.score = () => `Score: ${revealed().filter((question) => question.guess === question.truth).length} of ${revealed().length}`;
  quiz.verdicts = (at) => revealed().filter((question) => question.reveal === at).map((question) =>
    `Your guess: ${words(question, question.guess)}. ${question.guess === question.truth ? "Right." : `Wrong: ${words(question, question.truth)}.`}`);
  return quiz;
}

/** A question to the reader, with a button and a key for each guess. */
function stepQuestion(view, question) {
  const choices = question.choices.map(({ value, words, key }) => button(`${words} (key ${key})`, () => view.guess(value)));
  return [make("div", { class: "kl-step-question-card" }, make("p", { class: "kl-step-big" }, question.asks),
    make("p", {}, question.told), question.quoted && make("pre", {}, question.quoted), make("div", { class: "kl-bar" }, ...choices))];
}
