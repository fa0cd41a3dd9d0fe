"""Yes or no to a question that compares two things, from the values read of each; nothing where the rules do
not reach.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kgot_lab.loop.modes.paths.comparison import ORDERING, comparison_of, first_of_two, speaks_of_age
from kgot_lab.loop.modes.paths.question_form import MARK
from kgot_lab.loop.modes.paths.values import alike, date_in, quantity_in, truth_in

_DENIED = re.compile(
    rf"\b(?:no|not|never|neither|either|except)\b|n['’]t\b|\bor\W+(?:\w+\W+){{0,3}}{MARK}", re.I
)
_JOINED = re.compile(rf"\bboth\b|{MARK}\d\W+and\W+(?:\w+\W+){{0,3}}{MARK}\d", re.I)
_SAME = re.compile(r"\b(?:same|share)\b", re.I)
_ORDER = re.compile(rf"\b(?:{ORDERING})\b", re.I)
_PAIR = re.compile(
    rf"^\W*\w+\s+(?P<before>[^{MARK}]*?){MARK}(?P<one>\d)(?P<mid>[^{MARK}]*?)\b(?P<word>{ORDERING})\b"
    rf"(?P<then>[^{MARK}]*){MARK}(?P<two>\d)(?P<tail>[^{MARK}]*)$",
    re.I,
)
_SO_MUCH = re.compile(
    rf"\b(?:twice|thrice|half|double|times|percent|years?|months?|days?|as|both|all)\b|(?<!{MARK})\d", re.I
)
_FILLING = frozenset("a an the that those one of is are was were do does did has have had be been".split())
_BOUND = re.compile(
    r"\b(?:(?P<least>at least|no (?:less|fewer) than)|(?P<most>at most|no more than)"
    r"|(?P<above>(?:more|larger|bigger|longer|higher|taller|greater|later) than|over|above|after)"
    r"|(?P<below>(?:less|fewer|smaller|shorter|lower|earlier) than|under|below|before|prior to))\s+"
    r"(?=(?:the |year |about )*[\d$£€-]|(?:January|February|March|April|May|June|July|August|September|October|November|December)\b)",
    re.I,
)
_END_OF_BOUND = re.compile(r",\s|\?|\s(?:and|or)\s")
_OF_TIME = re.compile(r"\b(?:before|after|prior|earlier|later)\b", re.I)


def yes_or_no(masked: str, values: Sequence[Sequence[str]]) -> str:
    """The answer to a question with `§0` and `§1` for two things, from what was read of each; "" where that
    does not tell.
    """
    bounds = list(_BOUND.finditer(masked))
    if _DENIED.search(re.sub(r"\bno (?=(?:more|less|fewer) than \d)", "", masked)):
        return ""
    last = [each[-1] for each in values]
    truths = [truth_in(value) for value in last]
    if None not in truths:
        return _said(masked, [bool(each) for each in truths])
    if any(each is not None for each in truths):
        return ""
    if len(bounds) == 1 and _JOINED.search(masked):
        held = [_within(bounds[0], masked, value) for value in last]
        return "" if None in held else _told(all(held))
    if _SAME.search(masked) and not re.search(r"\bthan\b", masked):
        return _told(alike(last[0], last[1], masked))
    return _told(_of_pair(masked, values)) if not bounds else ""


def _told(holds: bool | None) -> str:
    return "" if holds is None else "yes" if holds else "no"


def _said(masked: str, truths: Sequence[bool]) -> str:
    """Of two that were each asked about by yes or no: whether both are, where the question is not which of
    them is more.
    """
    if _SAME.search(masked) or re.search(rf"\bthan\b[^{MARK}]*{MARK}", masked):
        return ""
    return _told(all(truths)) if _JOINED.search(masked) or comparison_of(masked) == "each" else ""


def _of_pair(masked: str, values: Sequence[Sequence[str]]) -> bool | None:
    """Whether the first thing is more, or earlier, than the second, as the one word between them says; None
    for anything beyond that.
    """
    found = _PAIR.match(masked)
    if (
        not found
        or len(_ORDER.findall(masked)) != 1
        or found["one"] == found["two"]
        or _SO_MUCH.search(masked)
    ):
        return None
    word = found["word"].lower()
    of_time = word in ("before", "after")
    _, than, other = found["then"].rpartition("than")
    if of_time == bool(than):
        return None
    asked, of_other, tail = (
        _telling(text) for text in (found["before"], found["then"] if of_time else other, found["tail"])
    )
    if of_other != asked and (of_other or not _states_value_of(found["then"])):
        return None  # a director is not compared with a film
    if not set(tail) <= set(_telling(found["mid"])):
        return None  # nor a death with a birth
    kind = "latest" if word == "after" else comparison_of(word)
    return first_of_two(
        kind, [values[int(found["one"])], values[int(found["two"])]], ages=speaks_of_age(word)
    )


def _states_value_of(text: str) -> bool:
    """Whether a text takes up what was said before the first thing, as in "than that of"."""
    return bool(re.search(r"\b(?:that|those|the one) of\b", text))


def _telling(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if word not in _FILLING]


def _within(bound: re.Match[str], masked: str, value: str) -> bool | None:
    """Whether a value keeps to a bound that the question sets, as "before 1900" or "at least 100 m"."""
    told = _END_OF_BOUND.split(masked[bound.end() :])[0]
    if MARK in masked[bound.end() :]:
        return None
    if _OF_TIME.search(bound[0]):
        return _on_that_side(date_in(value), date_in(told), earlier=bool(bound["below"]))
    limit, found = quantity_in(told), quantity_in(value)
    if limit is None or found is None or not found.compares_with(limit):
        return None
    if bound["least"] or bound["above"]:
        return found.amount > limit.amount or bool(bound["least"] and found.amount == limit.amount)
    return found.amount < limit.amount or bool(bound["most"] and found.amount == limit.amount)


def _on_that_side(
    date: tuple[int, ...] | None, limit: tuple[int, ...] | None, *, earlier: bool
) -> bool | None:
    """Whether a date is before or after another; None where it says less than would tell."""
    if date is None or limit is None:
        return None
    if date[: len(limit)] == limit:
        return False
    shared = min(len(date), len(limit))
    if date[:shared] == limit[:shared]:
        return None
    return (date[:shared] < limit[:shared]) == earlier
