"""How long facts stay fresh: a table of lifetimes by type, by where an edge starts, and by the class an asset
belongs to itself.

The figures are settings of ours. The document only says that stale facts must not be used.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from kgot_lab.errors import BadInput, described_value
from kgot_lab.kgos.schemas.check import time_of
from kgot_lab.memory.claims.claim import instant
from kgot_lab.types import Edge, Node

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Lifetime:
    """How long nodes or edges of a type are live (None: for ever): those from nodes of type `source`, those
    of assets of a class.
    """

    type: str
    days: float | None
    source: str = ""
    asset_class: str = ""

    def __post_init__(self) -> None:
        if self.days is not None and not (isinstance(self.days, int | float) and 0 < self.days < 36_525):
            raise BadInput(
                f"a lifetime is a number of days, more than 0, or None, not {described_value(self.days)}"
            )


LIFETIMES = (
    Lifetime("MarketEvent", 30),
    Lifetime("News", 7),
    Lifetime("Insight", 14),
    Lifetime("affects", 30),
    Lifetime(
        "affects", None, source="Institution"
    ),  # how a central bank bears upon a class stands; what it decided passes
    Lifetime("mentions", 7),
    Lifetime("about", 14),
    Lifetime("derived_from", 30),
    Lifetime("correlated", 30),
    Lifetime("affects", 7, asset_class="Crypto"),
    Lifetime("about", 3, asset_class="Crypto"),
    Lifetime("correlated", 7, asset_class="Crypto"),
)
_DATED_BY = ("date", "published_at", "generated_at")  # the property that says since when a node is news


def node_expiry(node: Node, at: int, lifetimes: Collection[Lifetime]) -> int | None:
    """When a node written at a time expires, in microseconds; old news is old when it comes, and a date in
    the future is not believed.
    """
    return _after(_since(node, at), _days(lifetimes, node.labels[0], "", ()))


def edge_expiry(
    edge: Edge, source: Node, classes: Collection[str], at: int, lifetimes: Collection[Lifetime]
) -> int | None:
    """When an edge expires that is written at a time; `classes` are those that the assets it joins belong to
    themselves.

    It counts from the date of the node it starts from, where that has one, so to write it again makes it no
    fresher.
    """
    return _after(_since(source, at), _days(lifetimes, edge.type, source.labels[0], classes))


def _since(node: Node, at: int) -> int:
    dated = next(
        (time for name in _DATED_BY if (time := time_of(node.properties.get(name))) is not None), None
    )
    return at if dated is None else min(at, instant(dated, "the date of a node"))


def _days(lifetimes: Collection[Lifetime], type: str, source: str, classes: Collection[str]) -> float | None:
    """The shortest of a class, or else that of where it starts, or else that of the type; a type without a
    row lives for ever.
    """
    of_type = [each for each in lifetimes if each.type == type]
    of_classes = [each.days for each in of_type if each.asset_class in classes and each.asset_class]
    if of_classes:
        return min((days for days in of_classes if days is not None), default=None)
    plain = {each.source: each.days for each in of_type if not each.asset_class}
    return plain.get(source, plain.get(""))


def _after(since: int, days: float | None) -> int | None:
    return None if days is None else since + timedelta(days=days) // _MICROSECOND


def later(one: int | None, other: int | None) -> int | None:
    """The later of two expiries, None being never."""
    return None if one is None or other is None else max(one, other)
