"""What stands where no live view draws: tables and pictures in HTML, with the key by which a live view finds
what it replaces.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from kgot_lab.types import Triple
from kgot_lab.viz.static.markup import Markup, element, joined
from kgot_lab.viz.static.table import Table


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


def format_claim(fact: Triple) -> str:
    """A fact as one reads it."""
    return f"{fact.subject} – {fact.relation} – {fact.object}"
