"""Comparison questions: ask about each of two things and compute the answer from the values read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from kgot_lab.loop.modes.paths.question_form import EXAMPLES, MARK, classify_question, mask_names
from kgot_lab.loop.modes.paths.values import (
    is_no_answer,
    parse_age,
    parse_date,
    parse_quantity,
    parse_yes_no,
    same_value,
    strip_markers,
)
from kgot_lab.text.words import COMPARED_STOP_WORDS
from kgot_lab.types import Message, Prompt

# Ordering: how a question compares two things, and which of two values wins.

ComparisonKind = Literal["earliest", "latest", "most", "least", "longest", "shortest", "same", "each"]
# the first that fits counts: to live longer is no size, and "longer" alone is
_COMPARING_WORDS: tuple[tuple[ComparisonKind, str], ...] = (
    ("longest", r"(?:lived?|lives) (?:longer|longest)|longer (?:life\w*|span)"),
    ("shortest", "(?:lived?|lives) shorter"),
    ("same", "same|share"),
    ("latest", "later|younger|youngest|newer|newest|last|latest|(?:more|most) recent(?:ly)?"),
    ("earliest", "earlier|earliest|first|older|oldest|eldest|before"),
    ("least", "fewer|fewest|less|least|smaller|smallest|shorter|lower|lowest"),
    ("most", "more|most|larger|largest|bigger|biggest|longer|longest|higher|highest|taller|tallest|greater"),
)
ORDERING = "|".join([*(words for kind, words in _COMPARING_WORDS if kind != "same"), "after"])


def comparison_kind(question: str) -> ComparisonKind:
    """Return how a question compares two values, or "each" if no word of _COMPARING_WORDS occurs in it."""
    kinds = (kind for kind, words in _COMPARING_WORDS if re.search(rf"\b(?:{words})\b", question, re.I))
    return next(kinds, "each")


def first_wins(kind: ComparisonKind, values: Sequence[Sequence[str]], *, ages: bool = False) -> bool | None:
    """Return whether the first of two values is the earliest, the most and so on.

    Returns None if the values are equal or cannot be compared. If one of two dates is a year only, the years
    are compared. With `ages`, more years mean an earlier date.
    """
    last = [answers[-1] for answers in values]
    if kind in ("longest", "shortest"):
        return _first_is_extreme([_years_between(dates) for dates in values], largest=kind == "longest")
    if kind in ("earliest", "latest"):
        years = [parse_age(value) for value in last]
        if any(age is not None for age in years):
            return _first_is_extreme(years, largest=kind == "earliest") if ages else None
        dates = [parse_date(value) for value in last]
        shared = min((len(date) for date in dates if date), default=0)
        shortened = [date[:shared] if date else None for date in dates]
        return _first_is_extreme(shortened, largest=kind == "latest")
    first, second = map(parse_quantity, last)
    if first is None or second is None or not first.compares_with(second):
        return None
    return _first_is_extreme([first.amount, second.amount], largest=kind == "most")


def asks_about_age(question: str) -> bool:
    """Return whether a question asks who is older or younger, so that an age tells as much as a date."""
    return bool(re.search(r"\b(?:older|oldest|eldest|younger|youngest)\b", question, re.I))


def _first_is_extreme(values: Sequence[object], *, largest: bool) -> bool | None:
    if None in values or values[0] == values[1]:
        return None
    return (values[0] > values[1]) == largest  # type: ignore[no-any-return, operator]  # two of one kind


def _years_between(values: Sequence[str]) -> float | None:
    """Return the years between two dates, or the years that a single value states.

    A bare number is not a span.
    """
    if len(values) == 1:
        return parse_age(values[0])
    dates = [parse_date(value) for value in values[-2:]]
    if not all(dates) or any(parse_age(value) is not None for value in values[-2:]):
        return None
    born, died = ([*date, 7, 1][:3] if len(date) == 1 else [*date, 15][:3] for date in dates if date)
    span = (died[0] - born[0]) + (died[1] - born[1]) / 12 + (died[2] - born[2]) / 365
    return span if span >= 0 else None


# Yes/no questions that compare two things, from the values read for each.

# "Is neither §0 nor §1 a river?", "Is §0 or §1 a river?"
_NEGATION = re.compile(
    rf"\b(?:no|not|never|neither|either|except)\b|n['’]t\b|\bor\W+(?:\w+\W+){{0,3}}{MARK}", re.I
)
# "Are both §0 and §1 rivers?", "Are §0 and the river §1 in Spain?"
_CONJUNCTION = re.compile(rf"\bboth\b|{MARK}\d\W+and\W+(?:\w+\W+){{0,3}}{MARK}\d", re.I)
_SAME = re.compile(r"\b(?:same|share)\b", re.I)
_ORDER = re.compile(rf"\b(?:{ORDERING})\b", re.I)
# "Was the director of §0 born earlier than the director of §1?"
_PAIR = re.compile(
    rf"^\W*\w+\s+(?P<before>[^{MARK}]*?){MARK}(?P<one>\d)(?P<mid>[^{MARK}]*?)\b(?P<word>{ORDERING})\b"
    rf"(?P<then>[^{MARK}]*){MARK}(?P<two>\d)(?P<tail>[^{MARK}]*)$",
    re.I,
)
# "Is §0 twice as long as §1?", which a comparison of two values does not answer
_DEGREE = re.compile(
    rf"\b(?:twice|thrice|half|double|times|percent|years?|months?|days?|as|both|all)\b|(?<!{MARK})\d", re.I
)
# "Were both §0 and §1 founded before 1900?", "Do §0 and §1 have at least 3 floors?"
_BOUND_WORDS = re.compile(
    r"\b(?:(?P<least>at least|no (?:less|fewer) than)|(?P<most>at most|no more than)"
    r"|(?P<above>(?:more|larger|bigger|longer|higher|taller|greater|later) than|over|above|after)"
    r"|(?P<below>(?:less|fewer|smaller|shorter|lower|earlier) than|under|below|before|prior to))\s+"
    r"(?=(?:the |year |about )*[\d$£€-]|(?:January|February|March|April|May|June|July|August|September|October|November|December)\b)",
    re.I,
)
_END_OF_BOUND = re.compile(r",\s|\?|\s(?:and|or)\s")
_TIME_WORD = re.compile(r"\b(?:before|after|prior|earlier|later)\b", re.I)


def answer_yes_no(masked: str, values: Sequence[Sequence[str]]) -> str:
    """Answer a yes/no question with `§0` and `§1` for two things, from the values read for each.

    Returns "" if the values do not decide it.
    """
    bounds = list(_BOUND_WORDS.finditer(masked))
    if _NEGATION.search(re.sub(r"\bno (?=(?:more|less|fewer) than \d)", "", masked)):
        return ""
    last_values = [value[-1] for value in values]
    truths = [parse_yes_no(value) for value in last_values]
    if None not in truths:
        return _combine_truths(masked, [bool(truth) for truth in truths])
    if any(truth is not None for truth in truths):
        return ""
    if len(bounds) == 1 and _CONJUNCTION.search(masked):
        within = [_is_within(bounds[0], masked, value) for value in last_values]
        return "" if None in within else _yes_no(all(within))
    if _SAME.search(masked) and not re.search(r"\bthan\b", masked):
        return _yes_no(same_value(last_values[0], last_values[1], masked))
    return _yes_no(_compare_pair(masked, values)) if not bounds else ""


def _yes_no(holds: bool | None) -> str:
    return "" if holds is None else "yes" if holds else "no"


def _combine_truths(masked: str, truths: Sequence[bool]) -> str:
    """Answer from two yes/no answers, one for each thing.

    Returns "" if the question asks which of them is more.
    """
    if _SAME.search(masked) or re.search(rf"\bthan\b[^{MARK}]*{MARK}", masked):
        return ""
    return _yes_no(all(truths)) if _CONJUNCTION.search(masked) or comparison_kind(masked) == "each" else ""


def _compare_pair(masked: str, values: Sequence[Sequence[str]]) -> bool | None:
    """Return whether the first thing is more, or earlier, than the second, by the one word between them.

    Returns None for any question beyond that.
    """
    match = _PAIR.match(masked)
    if not match or match["one"] == match["two"]:
        return None
    if len(_ORDER.findall(masked)) != 1 or _DEGREE.search(masked):
        return None
    word = match["word"].lower()
    of_time = word in ("before", "after")
    _, than, compared_text = match["then"].rpartition("than")
    if of_time == bool(than):
        return None
    sides = match["before"], match["then"] if of_time else compared_text, match["tail"]
    first_words, second_words, tail = map(_content_words, sides)
    refers_back = re.search(r"\b(?:that|those|the one) of\b", match["then"])  # to the first: "than that of"
    if second_words != first_words and (second_words or not refers_back):
        return None  # a director is not compared with a film
    if not set(tail) <= set(_content_words(match["mid"])):
        return None  # nor a death with a birth
    kind = "latest" if word == "after" else comparison_kind(word)
    return first_wins(kind, [values[int(match["one"])], values[int(match["two"])]], ages=asks_about_age(word))


def _content_words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if word not in COMPARED_STOP_WORDS]


def _is_within(bound: re.Match[str], masked: str, value: str) -> bool | None:
    """Return whether a value is within a bound of the question, such as "before 1900" or "at least 100 m".

    Returns None if that cannot be decided.
    """
    limit_text = _END_OF_BOUND.split(masked[bound.end() :])[0]
    if MARK in masked[bound.end() :]:
        return None
    if _TIME_WORD.search(bound[0]):
        return _is_on_side(parse_date(value), parse_date(limit_text), earlier=bool(bound["below"]))
    limit, quantity = parse_quantity(limit_text), parse_quantity(value)
    if limit is None or quantity is None or not quantity.compares_with(limit):
        return None
    if bound["least"] or bound["above"]:
        return quantity.amount > limit.amount or bool(bound["least"] and quantity.amount == limit.amount)
    return quantity.amount < limit.amount or bool(bound["most"] and quantity.amount == limit.amount)


def _is_on_side(date: tuple[int, ...] | None, limit: tuple[int, ...] | None, *, earlier: bool) -> bool | None:
    """Return whether a date is before (or after) another, or None if the dates are not precise enough."""
    if date is None or limit is None:
        return None
    if date[: len(limit)] == limit:
        return False
    shared = min(len(date), len(limit))
    if date[:shared] == limit[:shared]:
        return None
    return (date[:shared] < limit[:shared]) == earlier


_SYSTEM = (
    "Two things are compared. Write what must be asked of each of them, one question a line, with X for the thing and #1 for the answer to "
    "the first question."
)
_REPLY_TOKENS = 48  # tokens of the questions


def comparison_prompt(question: str) -> Prompt:
    """Ask for the questions whose answers a comparison of two things needs."""
    turns: list[Message] = []
    for compared, questions in EXAMPLES["comparisons"].items():
        turns += [Message("user", compared), Message("assistant", "\n".join(questions))]
    messages = (Message("system", _SYSTEM), *turns, Message("user", question.strip()))
    return Prompt(messages, None, 0.0, 0, _REPLY_TOKENS)


def parse_comparison_questions(reply: str, things: Sequence[str]) -> list[list[str]]:
    """Return the questions for each thing, with `#1` still unfilled in the second.

    Returns an empty list if the reply asks nothing about X.
    """
    lines = [line for line in map(strip_markers, reply.splitlines()) if line.endswith("?")][:2]
    if not lines or not re.search(r"\bX\b", lines[0]):
        return []
    lines = [line for line in lines if re.search(r"\bX\b|#1", line)]
    # the name of a thing may contain any character
    return [[thing.join(re.split(r"\bX\b", line)) for line in lines] for thing in things]


def computed_answer(question: str, things: Sequence[str], values: Sequence[Sequence[str]]) -> str:
    """Compute the answer to a question from the values read for two things, in the form it asks for.

    `values` holds the answers for each thing in the order of its questions. Returns "" if the values do not
    decide it.
    """
    if len(things) != 2 or len(values) != 2 or not all(values):
        return ""
    if any(is_no_answer(value) for each in values for value in each):
        return ""
    form, masked = classify_question(question), mask_names(question, things)
    if form == "yes or no":
        return answer_yes_no(masked, values)
    # "is A older or younger than B" has no name for an answer
    if form == "open" or re.search(rf"{MARK}\d.*\bthan\b", masked):
        return ""
    answer = compare_values(comparison_kind(masked), things, values, ages=asks_about_age(masked))
    return answer if answer in things else ""


def compare_values(
    kind: ComparisonKind, things: Sequence[str], values: Sequence[Sequence[str]], *, ages: bool = False
) -> str:
    """Compare the values read for two things and return the answer, or "" if they cannot be compared.

    With `ages`, more years mean an earlier date.
    """
    last = [value[-1] if value else "" for value in values]
    if len(things) != 2 or any(is_no_answer(value) for value in last):
        return ""
    if kind == "same":
        same = None if any(parse_yes_no(value) is not None for value in last) else same_value(*last)
        return _yes_no(same)
    if kind == "each":
        truths = [parse_yes_no(value) for value in last]
        return "" if None in truths else _yes_no(all(truths))
    first = first_wins(kind, values, ages=ages)
    return "" if first is None else things[0 if first else 1]
