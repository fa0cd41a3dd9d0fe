"""What a question asks for, by its form alone: yes or no, one of two things, or anything else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from kgot_lab.text.words import named_words

Form = Literal["open", "yes or no", "choice"]

_ASKS = re.compile(r"\b(who|whom|whose|what|which|when|where|why|how|name the|in whose)\b", re.I)
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)"
_YES_OR_NO = re.compile(rf"(?:^|,\s+|\?\s+){_AUXILIARY}\s|\b(?:both|same|also)\b", re.I)
_BEGINS_SO = re.compile(rf"^\W*{_AUXILIARY}\s+(?!(?:you|anyone|anybody|we|i)\b|it known\b)", re.I)
_ASKS_LAST = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|why|how)\W*$|\b(?:in|of|by|at|on|for|from|during) (?:what|which|whose) \w+\W*$"
    r"|\bwhat \w+\W*$",
    re.I,
)
_RANKS = (
    "older|younger|elder|newer|earlier|later|sooner|longer|shorter|taller|higher|lower|larger|bigger|smaller|greater|fewer|closer|nearer|"
    "farther|further|deeper|wider|broader|narrower|heavier|lighter|faster|quicker|slower|richer|poorer|wealthier|hotter|colder|cooler|"
    "warmer|stronger|weaker|thicker|thinner|louder|cheaper|denser|drier|wetter|steeper|better|worse|safer|harder|softer|easier|busier|"
    "brighter|darker|fatter|wiser|simpler|rarer|flatter|saltier|sweeter|purer|milder|happier|prettier|uglier"
)
_RANKED = re.compile(
    rf"\b(?:{_RANKS}|first|last|more|less)\b"
    r"|\b(?:is|are|was|were)\s+(?!(?:\w*ther|other|ever|never|after|under|number|member|together)\b)\w+er\b(?=\s*(?:[,?]|than\b))",
    re.I,
)
_LISTED = re.compile(r"[,:?]\s[^,]+\sor\s", re.I)
# where "or" tells as well
_MAY_RANK = re.compile(
    r"\b(?!(?:\w*ther|other|ever|never|after|under|number|member|together)\b)\w+er\b", re.I
)
_OR = re.compile(
    rf"\bor\b|\b(?:out of|between|(?:which|who|one|either|{_RANKS}|first|last|more|less) of|^of) (?:the two )?.+ and ",
    re.I,
)  # a rank that is a noun, as founder and river are, ranks nothing


def form_of(question: str) -> Form:
    """Whether a question asks for yes or no, for one of two things that it names, or for anything else.

    "Are A and B both rivers?" asks for yes or no, since it has no word as who or which; "Is A or B older?"
    and "Which is older, A or B?" ask for one of two. "Was the engineer who founded A from B?" asks for yes or
    no: its "who" does not ask.
    """
    asks = bool(_ASKS.search(question)) and not _asks_within(question)
    ranked = (_OR.search(question) and _RANKED.search(question)) or (
        _LISTED.search(question) and _MAY_RANK.search(question)
    )
    if ranked and (asks or _YES_OR_NO.search(question)):
        return "choice"
    return "yes or no" if not asks and _YES_OR_NO.search(question.strip()) else "open"


def _asks_within(question: str) -> bool:
    """Whether a question begins as one for yes or no, so that a "who" in it only tells of whom."""
    return bool(_BEGINS_SO.match(question)) and not _ASKS_LAST.search(question)


_DATE = re.compile(
    r"^(?:in |on )?(?:when|(?:in |during )?(?:what|which) (?:year|date|month|day))\b|\bin (?:what|which) year\b",
    re.I,
)
_NO_FIGURE = re.compile(
    r"^(?:where|who|whom|in (?:what|which) (?:city|country|state|place|town|county))\b", re.I
)
_HAS_DIGIT = re.compile(r"\d")


def unfit(question: str, answer: str) -> str:
    """Why an answer is not of the kind that is asked for, a date that has no figure or a place that is a
    date; "" where it may be.
    """
    asked = question.strip()
    if _DATE.search(asked) and not _HAS_DIGIT.search(answer) and not _is_part_of_date(asked, answer):
        return "the question asks for a date"
    if _NO_FIGURE.search(asked) and not re.search(r"[^\W\d]{2}", re.sub(_MONTHS, "", answer)):
        return "the question asks for no date"
    return ""


def _is_part_of_date(asked: str, answer: str) -> bool:
    """Whether an answer is the month or the day of the week where a question asks for a month or a day."""
    return bool(
        re.search(r"\b(?:what|which) (?:month|day)\b", asked, re.I)
        and (_MONTHS.search(answer) or _WEEKDAYS.search(answer))
    )


_WEEKDAYS = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b", re.I)
_MONTHS = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b", re.I
)


def none_of(answer: str, things: Sequence[str]) -> str:
    """Why an answer is none of the things that a question names; "" where it is one, or fewer than two are
    named.
    """
    if len(things) < 2:
        return ""
    words = named_words(answer)
    named = [named_words(thing) for thing in things] + [named_words(thing.split("(")[0]) for thing in things]
    return "" if words in named else "it is none of the things that the question names"
