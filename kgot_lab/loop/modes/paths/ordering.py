"""In which way a question orders two things, and which of two values comes out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from kgot_lab.loop.modes.paths.values import age_in, date_in, quantity_in

ComparedBy = Literal["earliest", "latest", "most", "least", "longest", "shortest", "same", "each"]
_WORDS: tuple[
    tuple[ComparedBy, str], ...
] = (  # the first that fits counts: to live longer is no size, and "longer" alone is
    ("longest", r"(?:lived?|lives) (?:longer|longest)|longer (?:life\w*|span)"),
    ("shortest", "(?:lived?|lives) shorter"),
    ("same", "same|share"),
    ("latest", "later|younger|youngest|newer|newest|last|latest|(?:more|most) recent(?:ly)?"),
    ("earliest", "earlier|earliest|first|older|oldest|eldest|before"),
    ("least", "fewer|fewest|less|least|smaller|smallest|shorter|lower|lowest"),
    ("most", "more|most|larger|largest|bigger|biggest|longer|longest|higher|highest|taller|tallest|greater"),
)
ORDERING = "|".join([*(words for kind, words in _WORDS if kind != "same"), "after"])


def comparison_of(question: str) -> ComparedBy:
    """How the two values are compared, by the first of _WORDS that the question holds; "each" where it holds
    none.
    """
    return next((kind for kind, words in _WORDS if re.search(rf"\b(?:{words})\b", question, re.I)), "each")


def first_of_two(kind: ComparedBy, values: Sequence[Sequence[str]], *, ages: bool = False) -> bool | None:
    """Whether the first of two is the earliest, the most and so on; None where the values are equal or do not
    compare.

    Of two dates of which one is a year alone, the years count. With `ages`, more years are an earlier date.
    """
    last = [each[-1] for each in values]
    if kind in ("longest", "shortest"):
        return _ordered([_span(each) for each in values], largest=kind == "longest")
    if kind in ("earliest", "latest"):
        years = [age_in(value) for value in last]
        if any(each is not None for each in years):
            return _ordered(years, largest=kind == "earliest") if ages else None
        dates = [date_in(value) for value in last]
        shared = min((len(date) for date in dates if date), default=0)
        return _ordered([date[:shared] if date else None for date in dates], largest=kind == "latest")
    one, other = map(quantity_in, last)
    if one is None or other is None or not one.compares_with(other):
        return None
    return _ordered([one.amount, other.amount], largest=kind == "most")


def speaks_of_age(question: str) -> bool:
    """Whether a question asks for the older or the younger, of whom an age tells as much as a date."""
    return bool(re.search(r"\b(?:older|oldest|eldest|younger|youngest)\b", question, re.I))


def _ordered(values: Sequence[object], *, largest: bool) -> bool | None:
    if None in values or values[0] == values[1]:
        return None
    return (values[0] > values[1]) == largest  # type: ignore[no-any-return, operator]  # two of one kind


def _span(values: Sequence[str]) -> float | None:
    """The years between two dates, or those that a single value says; a figure alone is no span."""
    if len(values) == 1:
        return age_in(values[0])
    dates = [date_in(value) for value in values[-2:]]
    if not all(dates) or any(age_in(value) is not None for value in values[-2:]):
        return None
    born, died = ([*date, 7, 1][:3] if len(date) == 1 else [*date, 15][:3] for date in dates if date)
    span = (died[0] - born[0]) + (died[1] - born[1]) / 12 + (died[2] - born[2]) / 365
    return span if span >= 0 else None
