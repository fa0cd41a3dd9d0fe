"""What stands where no live view draws: tables and pictures in HTML, with the key by which a live view finds what it replaces."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from kgot_lab.draw.markup import Markup, element, joined
from kgot_lab.draw.table import Table
from kgot_lab.types import Triple


@dataclass(frozen=True)
class WrittenDown:
    """Some HTML that needs nothing, and the same as tables for plain text."""

    html: Markup = field(repr=False)
    tables: Table

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return repr(self.tables)


def written_down(tables: Table, *parts: Markup) -> WrittenDown:
    """Parts of HTML as one, with a key made of their content; their words are in the tables too."""
    inner = joined(parts)
    key = hashlib.sha256(inner.encode()).hexdigest()[:12]
    return WrittenDown(element("div", inner, data_picture=key), tables)


def fact_said(fact: Triple) -> str:
    """A fact as one reads it."""
    return f"{fact.subject} – {fact.relation} – {fact.object}"


def time_said(time: datetime) -> str:
    """A time in UTC as one reads it: the day, with the hour where it is not midnight."""
    exact = "microseconds" if time.microsecond else "seconds" if time.second else "minutes"
    day, clock = time.date().isoformat(), time.time().isoformat(exact)
    return day if clock == "00:00" else f"{day} {clock}"


def span_said(since: datetime | None, until: datetime | None) -> str:
    """From when until when something is valid, in words; "" where it says neither."""
    ends = [f"from {time_said(since)}"] if since else []
    return " ".join([*ends, *([f"until {time_said(until)}"] if until else [])])
