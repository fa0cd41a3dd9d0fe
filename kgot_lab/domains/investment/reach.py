"""Compute which assets an event, news or insight reaches, by which path, and the weight left after each hop.

The walk goes down to assets: institution to asset class, class to sector, sector to company, company to
asset. It passes at most one institution and joins at most two companies. An asset's own class replaces the
one inherited from its company's sector: a bond of a technology company is not reached through Equities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kgot_lab.domains.investment.view import DatedEdge, DatedNode, InvestmentView, shown_name, upper
from kgot_lab.errors import BadInput, describe_value
from kgot_lab.memory.claims.claim import open_moment
from kgot_lab.types import Node

# The weight left after a hop. These are settings, not measurements. A hop that is not listed is not walked.
DECAYS: Mapping[str, float] = {
    "affects": 0.9,
    "about": 1.0,
    "mentions": 0.6,
    "issued_by": 0.9,
    "in_sector": 0.7,
    "belongs_to": 0.7,
}
OPTIONAL_DECAYS: Mapping[str, float] = {"supplier": 0.5, "competes_with": 0.3, "owns": 0.6, "correlated": 0.4}
# from where a walk may start or pass
_OUTWARD = {"MarketEvent": "affects", "Insight": "about", "News": "mentions", "Institution": "affects"}
_INWARD = ("issued_by", "in_sector", "belongs_to")  # walked backwards, from the whole to its parts
_ACROSS = ("supplier", "competes_with", "owns", "correlated")  # walked in both directions, once in a path


@dataclass(frozen=True)
class PathHop:
    """One hop of a path: its two nodes, edge type and direction, and when edge or node expires."""

    source: Node
    by: str
    target: Node
    forward: bool
    expires: int | None

    def __str__(self) -> str:
        return (
            f"-{self.by}-> {shown_name(self.target)}"
            if self.forward
            else f"<-{self.by}- {shown_name(self.target)}"
        )


@dataclass(frozen=True)
class ReachedAsset:
    """A reached asset: the best path to it, its weight (0 to 1), and until when the whole path is live."""

    asset: Node
    symbol: str
    path: tuple[PathHop, ...]
    weight: float
    live_until: datetime | None

    def __str__(self) -> str:
        return " ".join([shown_name(self.path[0].source if self.path else self.asset), *map(str, self.path)])


class _State(NamedTuple):
    """The state of a walk: its node and type, and what it may not repeat."""

    id: str
    type: str
    institutions: int = 0
    through_class: bool = False
    across: bool = False


class _Way(NamedTuple):
    """The weight and the path of a walk."""

    weight: float
    hops: tuple[PathHop, ...]

    @property
    def order(self) -> tuple[float, int, tuple[str, ...]]:
        """Sort key, best first: the heaviest, then the shortest, then by ids."""
        return -self.weight, len(self.hops), tuple(f"{hop.target.id} {hop.by}" for hop in self.hops)


def reach(
    view: InvestmentView, start: str, *, decays: Mapping[str, float] = DECAYS
) -> tuple[ReachedAsset, ...]:
    """Return the live assets that a live node bears upon, by the heaviest path to each, heaviest first.

    `DECAYS | OPTIONAL_DECAYS` also walks between companies and between correlated assets. Raises BadInput if
    the start is not live, or a decay is not more than 0 and at most 1.
    """
    for name, decay in decays.items():
        if isinstance(decay, bool) or not isinstance(decay, int | float) or not 0 < decay <= 1:
            said = f"the decay of {name} is a number more than 0 and at most 1, not {describe_value(decay)}"
            raise BadInput(f"{said}; leave out what is not to be walked")
    with view.reading():
        first = view.node(start)
        nodes = {start: first}
        begin = _State(start, first.node.labels[0], institutions=int(first.node.labels[0] == "Institution"))
        ways = {begin: _Way(1.0, ())}
        frontier = [begin]
        while frontier:
            frontier = _next_level(view, frontier, ways, nodes, decays)
    return _assets(ways, nodes, first)


def _next_level(
    view: InvestmentView,
    frontier: list[_State],
    ways: dict[_State, _Way],
    nodes: dict[str, DatedNode],
    decays: Mapping[str, float],
) -> list[_State]:
    """Extend every state of a level by one hop, and return the states that got a better path.

    A few queries serve the whole level.
    """
    edges = _edges_around(view, {state.id for state in frontier}, decays)
    ends = {
        end for found in edges.values() for edge, _ in found for end in (edge.edge.source, edge.edge.target)
    }
    nodes.update({each.node.id: each for each in view.nodes_by_id(ends - nodes.keys())})
    found: list[tuple[_State, _Way]] = []
    own = _with_own_class(view, {id for id in ends if nodes[id].node.labels[0] == "Asset"})
    for state in frontier:
        way = ways[state]
        for edge, forward in edges.get(state.id, ()):
            id = edge.edge.target if forward else edge.edge.source
            after = _after(state, edge.edge.type, forward, id, nodes[id].node.labels[0], own)
            if after is not None:
                expires = _sooner((edge.expires, nodes[id].expires))
                hop = PathHop(nodes[state.id].node, edge.edge.type, nodes[id].node, forward, expires)
                found.append((after, _Way(way.weight * decays[edge.edge.type], (*way.hops, hop))))
    better: dict[_State, None] = {}
    for after, way in found:
        if after not in ways or way.order < ways[after].order:
            ways[after] = way
            better[after] = None
    return list(better)


def _edges_around(
    view: InvestmentView, ids: set[str], decays: Mapping[str, float]
) -> dict[str, list[tuple[DatedEdge, bool]]]:
    """Return the edges to walk from some nodes, each with whether it is walked forward."""
    around: dict[str, list[tuple[DatedEdge, bool]]] = {}
    outward = [type for type in (*dict.fromkeys(_OUTWARD.values()), *_ACROSS) if type in decays]
    inward = [type for type in (*_INWARD, *_ACROSS) if type in decays]
    for edge in view.edges_from(ids, outward):
        around.setdefault(edge.edge.source, []).append((edge, True))
    for edge in view.edges_to(ids, inward):
        around.setdefault(edge.edge.target, []).append((edge, False))
    return around


def _after(state: _State, by: str, forward: bool, id: str, type: str, own: set[str]) -> _State | None:
    """Return the state after a hop, or None if the hop is not allowed."""
    if by in _ACROSS:
        return None if state.across else state._replace(id=id, type=type, across=True)
    if forward:
        if _OUTWARD.get(state.type) != by or type in ("News", "Insight"):
            return None
        institutions = state.institutions + (type == "Institution")
        return None if institutions > 1 else state._replace(id=id, type=type, institutions=institutions)
    if by == "issued_by" and state.through_class and id in own:
        return None  # its own class replaces the inherited one
    return state._replace(id=id, type=type, through_class=state.through_class or by == "belongs_to")


def _with_own_class(view: InvestmentView, assets: set[str]) -> set[str]:
    """Return the assets that belong to an asset class themselves."""
    return {edge.edge.source for edge in view.edges_from(assets, ["belongs_to"])} if assets else set()


def _assets(
    ways: Mapping[_State, _Way], nodes: Mapping[str, DatedNode], first: DatedNode
) -> tuple[ReachedAsset, ...]:
    best: dict[str, _Way] = {}
    for state, way in ways.items():
        if state.type == "Asset" and (state.id not in best or way.order < best[state.id].order):
            best[state.id] = way
    found = []
    for id in sorted(best, key=lambda id: best[id].order):
        node, way = nodes[id].node, best[id]
        until = open_moment(_sooner((first.expires, *(hop.expires for hop in way.hops))))
        found.append(ReachedAsset(node, upper(node.properties["symbol"]), way.hops, way.weight, until))
    return tuple(found)


def _sooner(expiries: Iterable[int | None]) -> int | None:
    """Return the earliest expiry, or None if nothing expires."""
    return min((each for each in expiries if each is not None), default=None)
