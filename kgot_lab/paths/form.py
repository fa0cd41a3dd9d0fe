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
_OR = re.compile(r"\bor\b|\b(?:out of|between|of) (?:the two )?.+ and ", re.I)
_RANKED = re.compile(r"\b(?!(?:\w*ther|other|ever|never|after|under|number|member|together)\b)\w+er\b|\b(?:first|last|more|less)\b", re.I)


def form_of(question: str) -> Form:
    """Whether a question asks for yes or no, for one of two things that it names, or for anything else.

    "Are A and B both rivers?" asks for yes or no, since it has no word as who or which; "Is A or B older?" and "Which is older, A or B?"
    ask for one of two.
    """
    asks = bool(_ASKS.search(question))
    if _OR.search(question) and _RANKED.search(question) and (asks or _YES_OR_NO.search(question)):
        return "choice"
    return "yes or no" if not asks and _YES_OR_NO.search(question.strip()) else "open"


_DATE = re.compile(r"^(?:in |on )?(?:when|(?:in |during )?(?:what|which) (?:year|date|month|day))\b|\bin (?:what|which) year\b", re.I)
_NO_FIGURE = re.compile(r"^(?:where|who|whom|in (?:what|which) (?:city|country|state|place|town|county))\b", re.I)
_HAS_DIGIT = re.compile(r"\d")


def unfit(question: str, answer: str) -> str:
    """Why an answer is not of the kind that is asked for, a date that has no figure or a place that is a date; "" where it may be."""
    asked = question.strip()
    if _DATE.search(asked) and not _HAS_DIGIT.search(answer):
        return "the question asks for a date"
    if _NO_FIGURE.search(asked) and not re.search(r"[^\W\d]{2}", re.sub(_MONTHS, "", answer)):
        return "the question asks for no date"
    return ""


_MONTHS = re.compile(r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b", re.I)


def none_of(answer: str, things: Sequence[str]) -> str:
    """Why an answer is none of the things that a question names; "" where it is one, or fewer than two are named."""
    if len(things) < 2:
        return ""
    words = named_words(answer)
    named = [named_words(thing) for thing in things] + [named_words(thing.split("(")[0]) for thing in things]
    return "" if words in named else "it is none of the things that the question names"
