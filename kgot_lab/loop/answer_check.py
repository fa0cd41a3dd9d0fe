"""Whether sentences say an answer: the sentences that carry it, and what the model says of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from kgot_lab.io.files import read_tables
from kgot_lab.loop.events import Outcome
from kgot_lab.loop.modes.paths.mentions import GraphSentence
from kgot_lab.loop.modes.paths.question_form import classify_question, describes_entity, offered_choices
from kgot_lab.loop.modes.paths.values import parse_yes_no
from kgot_lab.loop.run_context import CallOptions, RunContext, Steps, ask_reply
from kgot_lab.retrieval.entities import HONORIFICS
from kgot_lab.retrieval.entity_linking import (
    CAPITALISED_RUN,
    FINAL_BRACKETS,
    NAME_SPLIT,
    NameIndex,
    capitalised_names,
    normalise_name,
)
from kgot_lab.text.function_words import detect_language, function_words, is_calendar_word
from kgot_lab.text.words import LEADING_STOP_WORDS, contains_words, content_words, name_tokens
from kgot_lab.types import Document, Message

MIN_SUPPORTED = 0.5  # score from which an answer counts as supported
MAX_NOT_SAID = 0.25  # and up to which the sources count as silent
UNDECIDED = (MIN_SUPPORTED + MAX_NOT_SAID) / 2
BIAS = -0.5  # added to the mean log-odds of an answer and its two checks: benchmarks/own_folders
MAX_CITED = 3  # sentences that are cited for an answer
_MAYBE_NOT = "the cited sentences may not say it"
_CLAIM_SYSTEM = "Write the question and its answer as one sentence."
_CHECK_SYSTEM = (
    "{} Reply yes or no. "
    "Reply no if the text says something else, or of something or someone else, or does not say it."
)
_ANSWERS = _CHECK_SYSTEM.format("Does the text answer the question with this answer?")
_STATES = _CHECK_SYSTEM.format("Does the text say that the statement is true?")
# a text, a question, its answer, whether the text says so, and question and answer as one sentence
_EXAMPLES = read_tables(Path(__file__).with_name("answer_check_examples.txt"))["examples"]
_CLAIMED = [shot for shot in _EXAMPLES if shot[4:]]


@dataclass(frozen=True)
class CheckedAnswer:
    """The score that the evidence of an answer says it (0 to 1), and what is missing."""

    score: float
    missing: str = ""

    @property
    def outcome(self) -> Outcome:
        """The outcome that the score decides."""
        if self.score <= MAX_NOT_SAID:
            return "not in the sources"
        return "supported" if self.score >= MIN_SUPPORTED else "unsure"


def support_score(likelihood: float | None, checks: Sequence[float]) -> float:
    """Return how far an answer is supported, from its own probability and those of its checks, all 0 to 1.

    An answer whose probability is not reported is judged by its checks alone.
    """
    bounded = [min(max(p, 1e-4), 1 - 1e-4) for p in (likelihood, *checks) if p is not None]
    return 1 / (1 + math.exp(-fmean(math.log(p / (1 - p)) for p in bounded) - BIAS))


def check_answer(
    run: RunContext, answer: str, evidence: Sequence[str], likelihood: float | None = None
) -> Steps[CheckedAnswer]:
    """Ask the model whether sentences answer a question with this answer, and whether they state the claim that
    both make.

    A probability is that of "yes", from the log-probability of the reply where the model reports it.
    """
    question = run.state.question
    if name := unlinked_name(question, evidence):
        return CheckedAnswer(0.0, f"no text that was read says this of {name}")
    if not evidence:
        return CheckedAnswer(0.0, f"no text that was read answers: {question}")
    text = "Text: " + "\n".join(" ".join(text.split()) for text in evidence)
    claim = yield from _write_claim(run, question, answer)
    shots = [(f"Text: {t}\nStatement: {c}", says) for t, *_, says, c in _CLAIMED]
    states_claim = yield from _ask_check(run, _few_shot(_STATES, shots, f"{text}\nStatement: {claim}"))
    shots = [(f"Text: {t}\nQuestion: {q}\nAnswer: {a}", says) for t, q, a, says, *_ in _EXAMPLES]
    request = f"{text}\nQuestion: {question}\nAnswer: {answer}"
    answers = yield from _ask_check(run, _few_shot(_ANSWERS, shots, request))
    score = support_score(likelihood, (states_claim, answers))
    missing = f"no text that was read answers: {question}" if score <= MAX_NOT_SAID else _MAYBE_NOT
    return CheckedAnswer(score, "" if score >= MIN_SUPPORTED else missing)


def _write_claim(run: RunContext, question: str, answer: str) -> Steps[str]:
    """Write a question and its answer as one sentence.

    If the model leaves the answer or most of the question out, both are joined as they are.
    """
    shots = [(f"{q}\n{a}", claim) for _, q, a, _, claim in _CLAIMED]
    messages = _few_shot(_CLAIM_SYSTEM, shots, f"{question}\n{answer}")
    reply = yield from ask_reply(run, "claim", messages, CallOptions("claim"))
    claim = next((line.strip() for line in reply.text.splitlines() if line.strip()), "")
    asked, stated = set(content_words(question)), set(content_words(claim))
    is_whole = contains_words(answer, claim) and len(asked - stated) <= len(asked) / 3
    return claim if is_whole else f"{question} {answer}"


# models answer in the language of the question, too
_YES = re.compile(
    r"\W*(yes|true|ja|oui|s[ií]m?|да|так|tak|ano|evet|ναι|نعم|हाँ|是|对|はい|예|네)\b", re.IGNORECASE
)


def _ask_check(run: RunContext, messages: tuple[Message, ...]) -> Steps[float]:
    """Return the probability that the reply is "yes"."""
    reply = yield from ask_reply(run, "check", messages, CallOptions("check", likelihood=True))
    certainty = 1.0 if reply.logprob is None else math.exp(reply.logprob)
    return certainty if _YES.match(reply.text) else 1 - certainty


def unlinked_name(question: str, evidence: Sequence[str]) -> str:
    """Return the first name of a question that its evidence does not mention, or ""."""
    names, language = question_names(question, ()), detect_language([question])
    return next((name for name in names if not _is_named(name, evidence, language)), "")


def _few_shot(system: str, shots: Sequence[tuple[str, str]], request: str) -> tuple[Message, ...]:
    turns = (Message(*turn) for shot in shots for turn in zip(("user", "assistant"), shot, strict=True))
    return (Message("system", system), *turns, Message("user", request))


# The sentences that carry an answer.


def select_evidence(
    question: str, answer: str, sentences: Sequence[GraphSentence]
) -> tuple[GraphSentence, ...]:
    """Return the sentences that carry an answer, at most MAX_CITED, in the order of the chain.

    The last one contains the answer; for yes and no, it may be any sentence. Names of the question that it
    does not mention must be linked to it: by one of the two sentences before or after it, or by a sentence
    that shares a name with it. Where the question describes an entity, the sentence that describes it is linked
    too. The last sentence is the one with the fewest unlinked names, then with the most words of the
    question. Returns none if no sentence contains another answer.
    """
    asked, language = set(content_words(question)), detect_language([question])
    is_choice, is_truth = classify_question(question) == "choice", parse_yes_no(answer) is not None
    names = question_names(question, [sentence.title for sentence in sentences])
    names = list(dict.fromkeys([*(offered_choices(question) if is_choice else ()), *names]))
    links = {s: (_link_names(s.text), _link_names(f"{_heading(s.title)}. {s.text}")) for s in sentences}
    best: tuple[GraphSentence, ...] = ()
    best_rank = -math.inf, 0
    for last in sentences:
        if not is_truth and not states(answer, f"{_heading(last.title)}. {last.text}"):
            continue
        chain, unlinked = [last], 0
        cell = first_cell(last)
        if (
            cell
            and not is_choice
            and not is_truth
            and any(_is_asked_row(row, last, asked) for row in sentences)
        ):
            continue
        # a row is linked by its first cell, or else it tells of another row's value
        by_cell = bool(cell) and not contains_words(answer, cell)
        for name in names:
            if _is_named(name, map(str, chain), language):
                continue
            naming = [s for s in sentences if _is_named(name, [str(s)], language)]
            linked = [
                s for s in naming
                if is_choice or (contains_words(cell, s.text) if by_cell else _is_near(s, last) or _share_name(links[s], links[last]))
            ]  # fmt: skip
            if linked and len(chain) < MAX_CITED:
                chain.insert(0, max(linked, key=lambda s: len(asked & set(content_words(str(s))))))
            else:
                unlinked += 1
        if describes_entity(question) and chain == [last] and (link := _description(question, last, links)):
            chain.insert(0, link)
        rank = -unlinked, len(asked & {word for s in chain for word in content_words(str(s))})
        if rank > best_rank:
            best, best_rank = tuple(chain), rank
    return best


def _description(
    question: str, last: GraphSentence, links: Mapping[GraphSentence, tuple[set[str], set[str]]]
) -> GraphSentence | None:
    """Return the sentence by which a question describes what the sentence with its answer tells of, or None.

    It has most of the question's words that the other lacks, and shares with it a name or, with at least two of
    those words, a word that is not in the question. It is no row of the same table.
    """
    asked, known = set(content_words(question)), set(content_words(last.text))
    is_row = bool(first_cell(last))
    others = (s for s in links if s != last and not (is_row and s.title == last.title and first_cell(s)))
    words = {s: set(content_words(s.text)) for s in others}
    least = {s: 1 if _share_name(links[s], links[last]) else 2 for s in words if words[s] & known - asked}
    linked = [s for s in least if len(words[s] & asked - known) >= least[s]]
    return max(linked, key=lambda s: len(words[s] & asked - known), default=None)


_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
).split()
_MIN_LOOSE_WORDS = 3  # words of an answer that need not be in one piece


def states(answer: str, text: str) -> bool:
    """Return whether a sentence contains an answer: as it stands, with a number as a word and its unit cut short
    ("fee_eur 90" for 90 euros), or, from three words on, all of its words.
    """
    digits = {word: str(number) for number, word in enumerate(_NUMBER_WORDS)}
    words = [digits.get(word, word) for word in content_words(answer)]
    stated = {digits.get(word, word) for word in content_words(text.replace("_", " "))}
    if words and words[0].isdecimal() and words[0] in stated:
        return all(
            word in stated or any(map(word.startswith, filter(str.isalpha, stated))) for word in words[1:]
        )
    return contains_words(answer, text) or (len(words) >= _MIN_LOOSE_WORDS and set(words) <= stated)


def counted_rows(question: str, answer: str, sentences: Iterable[GraphSentence]) -> tuple[GraphSentence, ...]:
    """Return the rows of one table that mention all names of a question, if there are as many as the answer
    says, and at least two.
    """
    names = question_names(question, ())
    by_table: dict[str, list[GraphSentence]] = {}
    for sentence in sentences if names and answer.isdecimal() else ():
        if _TABLE_ROW.fullmatch(sentence.text) and all(_is_named(name, [str(sentence)]) for name in names):
            by_table.setdefault(f"{sentence.source}#{sentence.title}", []).append(sentence)
    return next((tuple(rows) for rows in by_table.values() if 1 < len(rows) == int(answer)), ())


def first_cell(sentence: GraphSentence) -> str:
    """Return the first cell of a table row without the name of its column, or "" for another sentence."""
    is_row = _TABLE_ROW.fullmatch(sentence.text)
    return FINAL_BRACKETS.sub("", sentence.text.partition(":")[0]).strip() if is_row else ""


def _is_asked_row(row: GraphSentence, cited: GraphSentence, asked: Set[str]) -> bool:
    """Return whether the first cell of another row of the table has words of the question that a cited row
    lacks.
    """
    is_other = row.source == cited.source and row.title == cited.title and row != cited
    return is_other and bool(asked & set(content_words(first_cell(row))) - set(content_words(cited.text)))


_TABLE_ROW = re.compile(r"[^.;:]+: [^;]+(?:; [^;]+)+")
_NEAR = 2  # sentences before or after one that may say of whom or what it is


def _is_near(sentence: GraphSentence, last: GraphSentence) -> bool:
    """Return whether a sentence may say of whom another one is. Rows of a table say so themselves."""
    is_near = sentence.source == last.source and abs(sentence.number - last.number) <= _NEAR
    return is_near and not _TABLE_ROW.fullmatch(last.text)


def _heading(title: str) -> str:
    """Return the heading in a title such as "Portraits (Joris Quell)", or the title if it has none."""
    heading = FINAL_BRACKETS.search(title)
    return heading.group().strip(" ()") if heading else title


def _share_name(one: tuple[set[str], set[str]], other: tuple[set[str], set[str]]) -> bool:
    """Return whether two sentences share a name that is not only in both of their titles."""
    return bool(one[0] & other[1] or one[1] & other[0])


def _link_names(text: str) -> set[str]:
    """Return the names in a text that may link it to another. A month links nothing."""
    return {name for name in capitalised_names(text) if not _is_date(name)}


_GERMAN_SPLIT = re.compile(r"\s+[a-zäöüß]+\s+")
_YEAR = re.compile(r"\b1\d{3}\b|\b20\d{2}\b")
_CODE = re.compile(r"[A-Z]{1,4}-?\d+")  # H3
_QUESTION_WORDS = LEADING_STOP_WORDS | frozenset(
    "whose whom why does do did can could name both between among after before during if".split()
)


def question_names(question: str, titles: Iterable[str]) -> list[str]:
    """Return the names in a question, spelled as there, and the years if it describes no entity.

    Names are the titles that it mentions, and sequences of capitalised words outside those titles, except
    dates. A single capitalised word at the start is no name, and in German, where nouns have capitals, no
    single word is.
    """
    titles_index = NameIndex(Document(title, "", title) for title in titles)
    names = {name: titles_index[name][0] for name in titles_index.find_names(question)}
    language = detect_language([question])
    has_noun_capitals = language == "de"
    for match in CAPITALISED_RUN.finditer(question):
        is_first = not any(map(str.isalnum, question[: match.start()]))  # there may be "¿"
        openers = _QUESTION_WORDS | (function_words(language) if is_first else set())
        for part in (_GERMAN_SPLIT if has_noun_capitals else NAME_SPLIT).split(match.group()):
            words = part.split()
            while words and (
                words[0].casefold() in openers or (is_first and words[1:2] and words[1].isdigit())
            ):
                words = words[1:]
            name = " ".join(words).removesuffix("'s").removesuffix("’s").rstrip(".,'’")
            key = normalise_name(name)
            is_word = len(words) == 1 and (has_noun_capitals or is_first)
            is_name = len(key) > 2 and key in capitalised_names(name) and not is_word
            overlaps = any(key in other or other in key for other in names)
            if (is_name or _CODE.fullmatch(name)) and not overlaps and not _is_date(name):
                names[key] = name
    years = [] if describes_entity(question) else _YEAR.findall(question)
    return [*names.values(), *(year for year in years if not any(year in name for name in names.values()))]


def _is_date(name: str) -> bool:
    """Return whether a name is a date, a month or a weekday."""
    return all(word.isdigit() or is_calendar_word(word) for word in name_tokens(name))


_ENDING = 3  # letters by which the forms of a name may differ
_INFLECTED = 8, 6  # letters of a word that may do so in English, and of what stays


def _is_named(name: str, texts: Iterable[str], language: str = "en") -> bool:
    """Return whether some texts together contain all words of a name, without what its brackets add.

    A word may have another ending, in English only a long one: Тверске is Тверск, Brazilian is of Brazil. Titles
    need not be there, and of a person with a title the surname is enough: Miss Tennick for Orla Tennick.
    """
    words = [word for word in name_tokens(name.split("(")[0]) if word not in LEADING_STOP_WORDS]
    words = words[1:] if words[1:] and words[0] in HONORIFICS else words
    told = [name_tokens(text) for text in texts]
    surnames = {word for each in told for title, word in pairwise(each) if title in HONORIFICS}
    known = {word for each in told for word in each}
    shortest, stem = _INFLECTED if language == "en" else (0, 3)
    return all(
        len(word) >= shortest
        and any(other.startswith(word[: max(stem, len(word) - _ENDING)]) for other in known)
        for word in set(words[-1:] if words[-1:] and words[-1] in surnames else words) - known
    )
