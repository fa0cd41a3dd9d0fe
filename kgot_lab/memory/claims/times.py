"""Times as the storages keep them: whole microseconds since 1970 in UTC, made from aware times only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kgot_lab.errors import BadInput, require

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEP = timedelta(microseconds=1)


def utc_now() -> datetime:
    """The time of this computer's clock, aware."""
    return datetime.now(UTC)


def instant(time: datetime, what: str) -> int:
    """An aware time in microseconds since 1970; raises BadInput for a naive one, which could mean any hour of
    a day.
    """
    require(time, datetime, f"{what} is a datetime with a time zone")
    if time.utcoffset() is None:
        raise BadInput(
            f"{what} is {time.isoformat()}, without a time zone: say which, as in time.replace(tzinfo=timezone.utc)"
        )
    micros = (time - _EPOCH) // _STEP
    try:
        moment(micros)
    except OverflowError:
        raise BadInput(
            f"{what} is {time.isoformat()}, which is no time in UTC between the years 1 and 9999"
        ) from None
    return micros


def moment(micros: int) -> datetime:
    """The time that is so many microseconds after 1970 began, in UTC."""
    return _EPOCH + micros * _STEP


def open_instant(time: datetime | None, what: str) -> int | None:
    """As `instant`, for an end of an interval that may be open (None)."""
    return None if time is None else instant(time, what)


def open_moment(micros: int | None) -> datetime | None:
    """As `moment`, for an end of an interval that may be open (None)."""
    return None if micros is None else moment(micros)


def format_time(time: datetime) -> str:
    """A time in UTC as one reads it: the day, with the hour where it is not midnight."""
    exact = "microseconds" if time.microsecond else "seconds" if time.second else "minutes"
    day, clock = time.date().isoformat(), time.time().isoformat(exact)
    return day if clock == "00:00" else f"{day} {clock}"


def format_span(since: datetime | None, until: datetime | None) -> str:
    """From when until when something is valid, in words; "" where it says neither."""
    ends = [f"from {format_time(since)}"] if since else []
    return " ".join([*ends, *([f"until {format_time(until)}"] if until else [])])
