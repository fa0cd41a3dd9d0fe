"""Times as a text states them: a year, month or day that stands in it, and none that a model made up."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from kgot_lab.text.words import named_words

# since when, and until when (excluded); None where the text does not say
StatedTimes = tuple[datetime | None, datetime | None]
_DATE = re.compile(r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_MONTHS = "january february march april may june july august september october november december".split()


def stated_time(told: str, text: str, *, end: bool = False) -> datetime | None:
    """The time that a date such as 2019, 2019-05 or 2019-05-03 begins, or ends if `end`, in UTC; None where a
    text does not name its year.

    A month or a day that the text does not name is left out: 2019-07-01 of a text that says "2019" is the
    year.
    """
    date = _DATE.match(told)
    numbers = {int(digits) for digits in re.findall(r"[0-9]{1,4}", text)}
    if date is None or int(date[1]) not in numbers:
        return None
    year, month, day = (int(part or 0) for part in date.groups())
    if not _names_month(month, numbers, text):
        month = day = 0
    if day not in numbers:
        day = 0
    try:
        begins = datetime(year, month or 1, day or 1, tzinfo=UTC)
        if not end:
            return begins
        if day:
            return begins + timedelta(days=1)
        return datetime(year + (month in (0, 12)), month % 12 + 1 if month else 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _names_month(month: int, numbers: set[int], text: str) -> bool:
    if not 1 <= month <= 12:
        return False
    name = _MONTHS[month - 1]
    return month in numbers or not {name, name[:3]}.isdisjoint(named_words(text.casefold()))
