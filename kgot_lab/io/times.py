"""Times with a zone, in UTC, as databases store them: whole microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kgot_lab.errors import BadInput, require

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def to_utc(time: datetime, what: str) -> datetime:
    """Return an aware time in UTC.

    Raises BadInput for a naive time, which is ambiguous, and for one outside the years 1 to 9999.
    """
    require(time, datetime, f"{what} is a datetime with a time zone")
    if time.utcoffset() is None:
        remedy = "say which, as in time.replace(tzinfo=timezone.utc)"
        raise BadInput(f"{what} is {time.isoformat()}, without a time zone: {remedy}")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        limits = "no time in UTC between the years 1 and 9999"
        raise BadInput(f"{what} is {time.isoformat()}, which is {limits}") from None


def to_micros(time: datetime, what: str) -> int:
    """Convert an aware time to microseconds since 1970.

    Raises BadInput for a naive time, which is ambiguous, and for one outside the years 1 to 9999.
    """
    return (to_utc(time, what) - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Convert microseconds since 1970 to a time in UTC."""
    return _EPOCH + micros * _MICROSECOND


def to_micros_or_none(time: datetime | None, what: str) -> int | None:
    """Convert an end of an interval as `to_micros` does, or return None for an open one."""
    return None if time is None else to_micros(time, what)


def from_micros_or_none(micros: int | None) -> datetime | None:
    """Convert an end of an interval as `from_micros` does, or return None for an open one."""
    return None if micros is None else from_micros(micros)


def format_time(time: datetime) -> str:
    """Format a time in UTC: the day, and the time of day unless it is midnight."""
    precision = "microseconds" if time.microsecond else "seconds" if time.second else "minutes"
    day, time_of_day = time.date().isoformat(), time.time().isoformat(precision)
    return day if time_of_day == "00:00" else f"{day} {time_of_day}"


def format_period(since: datetime | None, until: datetime | None) -> str:
    """Format the period in which something is valid, or return "" if neither end is known."""
    bounds = [f"from {format_time(since)}"] if since else []
    return " ".join([*bounds, *([f"until {format_time(until)}"] if until else [])])
