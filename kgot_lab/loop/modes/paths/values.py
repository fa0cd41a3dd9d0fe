"""What a short answer says: that it does not know, yes or no, a date, or an age."""

from __future__ import annotations

import re

from kgot_lab.loop.modes.paths.values import Quantity, quantity_in

_SHORT_MONTHS = (
    "jan feb mar apr may jun jul aug sep oct nov dec".split(),
    "jan feb mär apr mai jun jul aug sep okt nov dez".split(),
)
_MONTHS = {name: number for names in _SHORT_MONTHS for number, name in enumerate(names, start=1)}
_BEFORE = r"(?:\s*[–-]\s*\d{1,4})?\s*(?:B\.?\s?C(?:\.?\s?E)?(?!\w)|v\.\s?Chr)"
_AFTER = r"\s*(?:A\.?D\b|C\.?E\b|n\.\s?Chr)"
_YEAR_OF = rf"(\d{{3,4}}(?!\d)|\d{{1,2}}(?={_BEFORE}|{_AFTER}))"
_DATE = re.compile(
    rf"(?:(\d{{1,2}})(?:st|nd|rd|th|\.)?\s+)?([A-Z][a-zä]{{2,8}})\.?\s+(?:(\d{{1,2}}),?\s+)?{_YEAR_OF}"
)
_YEAR = re.compile(rf"(?<![\w.,])(?<!\d )(?:AD ?(\d{{1,4}})\b|{_YEAR_OF}(?![.,]?\d|\w))")
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
# the day first, as it is written with points
_POINTS = re.compile(r"\b(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})\b")
_IS_BEFORE = re.compile(_BEFORE)
_AGE = re.compile(
    r"(?:(?:about|around|approximately|roughly|over|nearly|almost|some|at|aged?|the|of|more than|at least|c\.)\s+)*(?=\d)",
    re.I,
)
_SAYS_AGE = re.compile(r"^(?:at )?(?:the )?aged? (?:of )?\d+$", re.I)
_YEARS = 31557600.0  # seconds of a year
_UNKNOWN = re.compile(
    r"^\W*(?:(?:it|this|that|the \w+) (?:is|was) |is )?(?:unknown|unclear|unspecified|undisclosed|undetermined|none|nothing|null|n/?a|"
    r"not applicable|uncertain)\W*$"
    r"|^\W*$"
    r"|\bnot (?:\w+ )?(?:stated|known|given|mentioned|specified|provided|available|clear|found|sure|listed|disclosed|determined|said|told|"
    r"certain|in the (?:text|sentences?|passages?))\b"
    r"|\b(?:can ?not|can['’]t|could not|couldn['’]t|unable to) (?:be )?(?:tell|say|told|said|know|known|find|found|answer\w*|determin\w*)\b"
    r"|\b(?:do|does|did) ?n(?:o|['’])t (?:know|say|state|mention|tell|specify|give|provide|contain|include|have)\b"
    r"|\bno (?:information|answer|data|mention|idea|indication|details?|record|such information)\b"
    r"|^\W*(?:i['’]?m |i am )?sorry\b",
    re.I,
)
_SAYS_TRUTH = re.compile(r"^\W*(yes|no)(?:\W*$|\s*[,.;:!–—-]|\s+(?:he|she|it|they)\b)", re.I)


def is_no_answer(text: str) -> bool:
    """Whether an answer says that it does not know, or is empty."""
    return bool(
        _UNKNOWN.search(
            text.replace("do not", "don't").replace("does not", "doesn't").replace("did not", "didn't")
        )
    )


def truth_in(text: str) -> bool | None:
    """Whether an answer says yes or no; None where it says neither, as "no information" does."""
    said = None if is_no_answer(text) else _SAYS_TRUTH.match(text)
    return said[1].lower() == "yes" if said else None


def date_in(text: str) -> tuple[int, ...] | None:
    """The first date in a text as (year, month, day), as far as it says; a year before Christ is negative.
    None where there is none.
    """
    if found := _ISO.search(text):
        return _in_order(int(found[1]), int(found[2]), int(found[3]))
    if found := _POINTS.search(text):
        return _in_order(int(found[3]), int(found[2]), int(found[1]))
    for match in _DATE.finditer(text):
        day, month, later, told = match.groups()
        if number := _MONTHS.get(month[:3].lower()):
            year = _year(int(told), text, match.end())
            return (year, number, int(day or later)) if day or later else (year, number)
    if not (found := _YEAR.search(text)):
        return None
    return (int(found[1]),) if found[1] else (_year(int(found[2]), text, found.end(2)),)


def age_in(text: str) -> float | None:
    """The years that an answer says something has lasted, as "800 years old" and "aged 45" do; None where it
    is no age.
    """
    if _SAYS_AGE.match(text.strip()):
        return float(re.sub(r"\D", "", text))
    start = _AGE.match(text.strip())
    quantity: Quantity | None = quantity_in(text.strip()[start.end() :]) if start else None
    return quantity.amount / _YEARS if quantity and quantity.kind == "time" else None


def _in_order(year: int, month: int, day: int) -> tuple[int, ...]:
    return (year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else (year,)


def _year(year: int, text: str, end: int) -> int:
    return -year if _IS_BEFORE.match(text, end) else year
