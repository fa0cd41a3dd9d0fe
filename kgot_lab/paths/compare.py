"""Comparing two things that a question names: what is asked of each, and the answer worked out from what was read of both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from kgot_lab.text.words import named_words, telling_words
from kgot_lab.types import Message, Prompt

ComparedBy = Literal["earliest", "latest", "most", "least", "longest", "shortest", "same", "each"]
_MONTHS = {name: number for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), start=1)}
_DATE = re.compile(r"(?:(\d{1,2})(?:st|nd|rd|th)?\s+)?([A-Z][a-z]{2,8})\.?\s+(?:(\d{1,2}),?\s+)?(\d{3,4})\b")
_YEAR = re.compile(r"\b(\d{3,4})\b")
_FIGURE = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_WORDS: tuple[tuple[ComparedBy, str], ...] = (  # the first that fits counts: to live longer is no size, and "longer" alone is
    ("longest", r"(?:lived?|lives) (?:longer|longest)|longer (?:life\w*|span)"),
    ("shortest", "(?:lived?|lives) shorter"),
    ("same", "same|share"),
    ("latest", "later|younger|youngest|newer|newest|last|latest|(?:more|most) recent(?:ly)?"),
    ("earliest", "earlier|earliest|first|older|oldest|eldest|before"),
    ("least", "fewer|fewest|less|least|smaller|smallest|shorter|lower|lowest"),
    ("most", "more|most|larger|largest|bigger|biggest|longer|longest|higher|highest|taller|tallest|greater"),
)
_SYSTEM = (
    "Two things are compared. Write what must be asked of each of them, one question a line, with X for the thing and #1 for the answer to "
    "the first question."
)
_EXAMPLES = (
    ("Which film has the director who was born earlier, The Glass Orchid or Tin Meadow?", "Who directed X?\nWhen was #1 born?"),
    ("Which club is older, Quillmoor Rovers or Brask Athletic?", "When was X founded?"),
    ("Who lived longer, Pell Hadrowe or Sunniva Askelund?", "When was X born?\nWhen did X die?"),
    ("Are Lake Ombrel and Lake Tirsova located in the same country?", "In what country is X?"),
    (
        "Do both films, The Glass Orchid and Tin Meadow, have directors from the same country?",
        "Who directed X?\nWhat is the nationality of #1?",
    ),
    ("Are Pell Hadrowe and Sunniva Askelund both painters?", "Is X a painter?"),
)
_LONGEST = 48  # tokens of the questions


def asked_of_each(question: str) -> Prompt:
    """Ask what must be known of each of two things that a question compares."""
    turns = [Message(role, text) for example in _EXAMPLES for role, text in zip(("user", "assistant"), example, strict=True)]
    return Prompt((Message("system", _SYSTEM), *turns, Message("user", question.strip())), None, 0.0, 0, _LONGEST)


def questions_of_each(reply: str, things: Sequence[str]) -> list[list[str]]:
    """The questions for each thing, `#1` still open in the second; none where the reply asks nothing of X."""
    lines = [line.strip() for line in reply.splitlines() if line.strip().endswith("?")][:2]
    if not lines or not re.search(r"\bX\b", lines[0]):
        return []
    lines = [line for line in lines if re.search(r"\bX\b|#1", line)]
    return [[_about(line, thing) for line in lines] for thing in things]


def comparison_of(question: str) -> ComparedBy:
    """How the two values are compared, by the first of _WORDS that the question holds; "each" where it holds none."""
    return next((kind for kind, words in _WORDS if re.search(rf"\b(?:{words})\b", question, re.I)), "each")


def compared(kind: ComparedBy, things: Sequence[str], values: Sequence[Sequence[str]]) -> str:
    """The answer that the values read of each thing give; "" where they do not compare.

    `values` has the answers read of each thing, in the order of its questions. Of two dates of which one is a year alone, the years count.
    """
    last = [each[-1] if each else "" for each in values]
    if len(things) != 2 or not all(last):
        return ""
    if kind == "same":
        return "" if any(_truth(value) is not None for value in last) else "yes" if _same(*last) else "no"
    if kind == "each":
        said = [_truth(value) for value in last]
        return "" if None in said else "yes" if all(said) else "no"
    if kind in ("longest", "shortest"):
        spans = [_span(each) for each in values]
        return _chosen(things, spans, largest=kind == "longest")
    if kind in ("earliest", "latest"):
        dates = [date_in(value) for value in last]
        shared = min((len(date) for date in dates if date), default=0)
        return _chosen(things, [date[:shared] if date else None for date in dates], largest=kind == "latest")
    return _chosen(things, [_figure(value) for value in last], largest=kind == "most")


def date_in(text: str) -> tuple[int, ...] | None:
    """The first date in a text as (year, month, day), as far as it says; None where there is none."""
    for match in _DATE.finditer(text):
        day, month, later, year = match.groups()
        if number := _MONTHS.get(month[:3].lower()):
            return (int(year), number, int(day or later)) if day or later else (int(year), number)
    year = _YEAR.search(text)
    return (int(year[1]),) if year else None


def _chosen(things: Sequence[str], values: Sequence[object], *, largest: bool) -> str:
    if None in values or values[0] == values[1]:
        return ""
    first = (values[0] > values[1]) == largest  # type: ignore[operator]  # two of one kind
    return things[0 if first else 1]


def _span(values: Sequence[str]) -> float | None:
    """The years between two dates, or the figure that a single value is."""
    dates = [date_in(value) for value in values[-2:]]
    if len(dates) == 2 and all(dates):
        born, died = ([*date, 7, 1][:3] if len(date) == 1 else [*date, 15][:3] for date in dates if date)
        return (died[0] - born[0]) + (died[1] - born[1]) / 12 + (died[2] - born[2]) / 365
    return _figure(values[-1])


def _figure(text: str) -> float | None:
    found = _FIGURE.search(text)
    return float(found[0].replace(",", "")) if found else None


def _truth(text: str) -> bool | None:
    words = named_words(text)
    return {"yes": True, "no": False}.get(words[0]) if words else None


def _same(one: str, other: str) -> bool:
    """Whether two values name the same: equal words, or one within the other, as a town with its country is."""
    first, second = set(telling_words(one)), set(telling_words(other))
    return bool(first and second) and (first <= second or second <= first)


def _about(line: str, thing: str) -> str:
    """A question of X as a question of the thing, whose name may hold any sign."""
    return re.sub(r"\bX\b", lambda _: thing, line)
