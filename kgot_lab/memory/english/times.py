"""Times that a message names relative to when it was sent: "in May", "last spring", "two weeks ago"."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH_NUMBERS = {name[:size]: n for n, name in enumerate(_MONTHS, 1) for size in (3, 4, len(name))}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_UNIT_DAYS = {"day": 1, "week": 7, "weekend": 7, "month": 30, "year": 365}
_NUMBERS = dict(
    zip("a an one two three four five six seven eight nine ten".split(), (1, 1, *range(1, 11)), strict=True)
)
_NUMBERS |= {"couple of": 2, "few": 3}
TIME_WORDS = frozenset(
    (*_MONTHS, *_SEASONS, *_WEEKDAYS, *_UNIT_DAYS, "today", "yesterday", "tomorrow", "now", "ago", "morning")
)

_YEAR = r"(?:,?\s+(?:of\s+)?(?P<year>(?:19|20)\d\d))?"
_WHICH = r"(?P<which>last|next|this|past)"
_ISO = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)(?:-(?P<day>\d\d))?\b")
_MONTH = re.compile(
    rf"\b(?:{_WHICH}\s+)?(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?"
    rf"\b(?P<month>{'|'.join(sorted(_MONTH_NUMBERS, key=len, reverse=True))})\b\.?"
    rf"(?:\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d))?{_YEAR}",
    re.I,
)
_SEASON = re.compile(
    rf"\b(?:{_WHICH}|in|over|since|until|till)\s+(?:the\s+)?(?P<season>{'|'.join(_SEASONS)})\b{_YEAR}", re.I
)
_UNIT = re.compile(
    rf"\b(?:{_WHICH}|(?P<on>on))\s+(?P<unit>week|weekend|month|year|{'|'.join(_WEEKDAYS)})\b", re.I
)
_AGO = re.compile(
    rf"\b(?P<number>\d+|{'|'.join(_NUMBERS)})\s+(?P<unit>day|week|month|year)s?\s+(?:ago|back)\b", re.I
)
_IN_YEAR = re.compile(r"\b(?:in|since|until|till|of|from)\s+(?P<year>(?:19|20)\d\d)\b", re.I)


def find_time(text: str, at: datetime, *, future: bool = False) -> datetime | None:
    """Return the time that a text names, in UTC, or None.

    A month or a season without a year is the last one before `at`, when the text was sent, or with `future` or
    "next" the first after it.
    """
    finders = (
        (_ISO, _at_iso), (_MONTH, _in_month), (_SEASON, _in_season), (_AGO, _some_units_ago), (_UNIT, _in_unit),
        (re.compile(r"\byesterday\b", re.I), lambda _, day, __: day - timedelta(days=1)),
        (re.compile(r"\btomorrow\b", re.I), lambda _, day, future: day + timedelta(days=1) if future else None),
        (_IN_YEAR, lambda found, _, __: datetime(int(found["year"]), 1, 1, tzinfo=UTC)),
    )  # fmt: skip
    day = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for pattern, read in finders:
        for found in pattern.finditer(text):
            try:
                time: datetime | None = read(found, day, future)
            except (ValueError, OverflowError):  # 31 June, or before the year 1
                continue
            if time is not None:
                return time
    return None


def _at_iso(found: re.Match[str], day: datetime, future: bool) -> datetime | None:
    return datetime(int(found["year"]), int(found["month"]), int(found["day"] or 1), tzinfo=UTC)


def _in_month(found: re.Match[str], day: datetime, future: bool) -> datetime | None:
    parts = found.groupdict()
    is_name = found["month"][0].isupper() or any(parts[name] for name in ("which", "before", "day", "year"))
    if not is_name and found["month"] in ("may", "mar", "march", "sept"):  # "we may", "a march"
        return None
    number = int(found["day"] or found["before"] or 1)
    return _nearest(_MONTH_NUMBERS[found["month"].casefold()], number, found, day, future)


def _in_season(found: re.Match[str], day: datetime, future: bool) -> datetime | None:
    return _nearest(_SEASONS[found["season"].casefold()], 1, found, day, future)


def _nearest(month: int, number: int, found: re.Match[str], day: datetime, future: bool) -> datetime:
    if found["year"]:
        return datetime(int(found["year"]), month, number, tzinfo=UTC)
    has_begun = (month, number) <= (day.month, day.day)
    if future or (found["which"] or "").casefold() == "next":
        return datetime(day.year + has_begun, month, number, tzinfo=UTC)
    return datetime(day.year - (not has_begun), month, number, tzinfo=UTC)


def _some_units_ago(found: re.Match[str], day: datetime, future: bool) -> datetime | None:
    word = found["number"].casefold()
    count = int(word) if word.isdigit() else _NUMBERS[word]
    return day - timedelta(days=count * _UNIT_DAYS[found["unit"].casefold()])


def _in_unit(found: re.Match[str], day: datetime, future: bool) -> datetime | None:
    unit, direction = (
        found["unit"].casefold(),
        {"next": 1, "this": 0}.get((found["which"] or "").casefold(), -1),
    )
    if unit in _WEEKDAYS:
        since = (day.weekday() - _WEEKDAYS.index(unit)) % 7
        return day - timedelta(days=since - 7 * (direction > 0 or (future and bool(found["on"]))))
    if found["on"]:  # "on weekends"
        return None
    return day + timedelta(days=direction * _UNIT_DAYS[unit])
