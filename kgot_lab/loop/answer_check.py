"""Whether sentences say an answer: question and answer as one claim, checked against the sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgot_lab.loop.events import Outcome
from kgot_lab.loop.modes.paths.mentions import GraphSentence
from kgot_lab.loop.modes.paths.values import parse_yes_no
from kgot_lab.loop.run_context import CallOptions, RunContext, Steps, ask_reply
from kgot_lab.retrieval.entity_linking import CAPITALISED_RUN, NameIndex, capitalised_names, normalise_name
from kgot_lab.text.words import LEADING_STOP_WORDS, contains_words, content_words, name_tokens
from kgot_lab.types import Document, Message

MIN_SUPPORTED = 0.5  # score from which an answer counts as supported
MAX_NOT_SAID = 0.25  # and up to which the sources count as silent
# weights of the log-odds of the answer and of its check, and their bias, set on the dev questions of
# data/own-folders and data/squad2-unanswerable: benchmarks/own_folders
ANSWER_WEIGHT, CHECK_WEIGHT, BIAS = 0.5, 1.0, 0.0
MAX_CITED = 3  # sentences that are cited for an answer
_CLAIM_SYSTEM = "Write the question and its answer as one sentence."
_CLAIMS = """\
Who was the architect of Varnholt Bridge?|Odile Brantsev
Odile Brantsev was the architect of Varnholt Bridge.
How many copies did the second edition of The Glass Orchid sell?|4,000
The second edition of The Glass Orchid sold 4,000 copies.
Where did Quillmoor Rovers play at first?|the meadow behind the brewery
Quillmoor Rovers at first played on the meadow behind the brewery.
In what year did the mill that Imre Dostwell bought burn down?|1957
The mill that Imre Dostwell bought burned down in 1957.
Why was Lake Ombrel drained?|to build a road
Lake Ombrel was drained to build a road."""
_CHECK_SYSTEM = (
    "Does the text say that the statement is true? Reply yes or no. "
    "Reply no if the text says something else, or of something or someone else, or does not say it."
)
_CHECKS = """\
Text: It was designed by Odile Brantsev, who later taught in Oslo, and opened in 1911.|\
Statement: Odile Brantsev was the architect of Varnholt Bridge.
yes
Text: Imre Dostwell ran a school for weavers in Tellmark until 1957, when Sunniva Askelund took it over.|\
Statement: Sunniva Askelund was elected mayor of Tellmark in 1957.
no
Text: Since they had no ground of their own, they played on the meadow behind the brewery of Brask until 1920.|\
Statement: Quillmoor Rovers at first played on the meadow behind the brewery of Brask.
yes
Text: The Glass Orchid, a novel by Pell Hadrowe, sold 4,000 copies in its first year; \
a second edition was planned but never printed.|\
Statement: The second edition of The Glass Orchid sold 4,000 copies.
no
Text: Lake Tirsova, in the north, freezes from October to May and feeds the mills of the valley.|\
Statement: Lake Tirsova thaws in October.
no
Text: The council that met in Osk raised the price of salt, and the fishermen stopped working.|\
Statement: The council of Osk made salt dearer.
yes
Text: Membership fees are paid by companies of the Hadrowe group.|\
Statement: Companies of the Hadrowe group paid for the first meeting.
no
Text: Brask lost its charter in the war; the town of Pell kept its charter until 1804.|\
Statement: The town of Pell had a charter until 1804.
yes"""


@dataclass(frozen=True)
class CheckedAnswer:
    """The claim that an answer makes, the score that its evidence says it (0 to 1), and what is missing."""

    claim: str
    score: float
    missing: str = ""

    @property
    def outcome(self) -> Outcome:
        """The outcome that the score decides."""
        if self.score <= MAX_NOT_SAID:
            return "not in the sources"
        return "supported" if self.score >= MIN_SUPPORTED else "unsure"


def support_score(likelihood: float | None, probability: float) -> float:
    """Return how far an answer is supported, from its own probability and that of its check, all 0 to 1.

    An answer whose probability is not reported is judged by its check alone.
    """
    logit = CHECK_WEIGHT * _log_odds(probability) + BIAS
    logit += 0.0 if likelihood is None else ANSWER_WEIGHT * _log_odds(likelihood)
    return 1 / (1 + math.exp(-logit))


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, 1e-4), 1 - 1e-4)
    return math.log(bounded / (1 - bounded))


def check_answer(
    run: RunContext, answer: str, evidence: Sequence[str], likelihood: float | None = None
) -> Steps[CheckedAnswer]:
    """Ask the model whether sentences say what an answer to a question claims.

    The first call writes question and answer as one sentence, the second asks whether the text says it. The
    probability is that of "yes", from the log-probability of the reply where the model reports it.
    """
    question = run.state.question
    if name := next((name for name in question_names(question, ()) if not _is_named(name, evidence)), ""):
        return CheckedAnswer("", 0.0, f"no text that was read mentions {name}")
    claim = yield from _write_claim(run, question, answer)
    shown = "\n".join(" ".join(text.split()) for text in evidence)
    request = f"Text: {shown}\nStatement: {claim}"
    options = CallOptions("check", likelihood=True)
    reply = yield from ask_reply(run, "check", _few_shot(_CHECK_SYSTEM, _CHECKS, request), options)
    certainty = 1.0 if reply.logprob is None else math.exp(reply.logprob)
    says_so = reply.text.strip().casefold().startswith("yes")
    score = support_score(likelihood, certainty if says_so else 1 - certainty)
    missing = "" if score >= MIN_SUPPORTED else f"no text that was read says: {claim}"
    return CheckedAnswer(claim, score, missing)


def _write_claim(run: RunContext, question: str, answer: str) -> Steps[str]:
    """Write a question and its answer as one sentence.

    If the model leaves the answer or most of the question out, both are joined as they are.
    """
    messages = _few_shot(_CLAIM_SYSTEM, _CLAIMS, f"{question}\n{answer}")
    reply = yield from ask_reply(run, "claim", messages, CallOptions("claim"))
    claim = next((line.strip() for line in reply.text.splitlines() if line.strip()), "")
    asked, stated = set(content_words(question)), set(content_words(claim))
    is_whole = contains_words(answer, claim) and len(asked - stated) <= len(asked) / 3
    return claim if is_whole else f"{question} {answer}"


def _few_shot(system: str, examples: str, request: str) -> tuple[Message, ...]:
    """Build a prompt with examples, each a line of a request (with | for a line break) and one of its reply."""
    lines = [line.replace("|", "\n") for line in examples.splitlines()]
    turns = (Message(("user", "assistant")[number % 2], line) for number, line in enumerate(lines))
    return (Message("system", system), *turns, Message("user", request))


# The sentences that carry an answer.


def select_evidence(
    question: str, answer: str, sentences: Sequence[GraphSentence]
) -> tuple[GraphSentence, ...]:
    """Return the sentences that carry an answer, at most MAX_CITED, in the order of the chain.

    The last one contains the answer and shares the most words with the question. Before it come sentences
    that mention the names of the question that it does not mention, those that share a name with it first.
    For yes and no, any sentence may be the last one. Returns none if no sentence contains another answer.
    """
    asked = set(content_words(question))
    is_truth = parse_yes_no(answer) is not None
    stating = [sentence for sentence in sentences if is_truth or contains_words(answer, sentence.text)]
    if not stating:
        return ()

    def rank(sentence: GraphSentence) -> int:
        return len(asked & set(content_words(str(sentence))))

    selected = [max(stating, key=rank)]
    for name in question_names(question, [sentence.title for sentence in sentences]):
        naming = [sentence for sentence in sentences if _is_named(name, [str(sentence)])]
        if len(selected) == MAX_CITED or not naming or any(sentence in naming for sentence in selected):
            continue
        known = set().union(*(capitalised_names(str(sentence)) for sentence in selected))
        linked = [sentence for sentence in naming if known & capitalised_names(str(sentence))]
        selected.insert(0, max(linked or naming, key=rank))
    return tuple(selected)


_QUESTION_WORDS = LEADING_STOP_WORDS | frozenset(
    "whose whom why does do did can could name both between among after before during if".split()
)


def question_names(question: str, titles: Iterable[str]) -> list[str]:
    """Return the names in a question, spelled as there.

    These are the titles that it mentions, and sequences of capitalised words outside those titles.
    """
    titles_index = NameIndex(Document(title, "", title) for title in titles)
    names = {name: titles_index[name][0] for name in titles_index.find_names(question)}
    for match in CAPITALISED_RUN.finditer(question):
        words = match.group().split()
        while words and normalise_name(words[0]) in _QUESTION_WORDS:
            words = words[1:]
        name = " ".join(words).removesuffix("'s").removesuffix("’s").rstrip(".,'’")
        key = normalise_name(name)
        overlaps = any(key in other or other in key for other in names)
        if len(key) > 2 and key in capitalised_names(name) and not overlaps:
            names[key] = name
    return list(names.values())


def _is_named(name: str, texts: Iterable[str]) -> bool:
    """Return whether some texts together contain all words of a name, without what its brackets add."""
    words = set(name_tokens(name.split("(")[0]))
    return words <= {word for text in texts for word in name_tokens(text)}
