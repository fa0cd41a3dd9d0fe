"""Compute which assets an event, news or insight reaches, by which path, and the weight left after each hop.

The walk goes down to assets: institution to asset class, class to sector, sector to company, company to
asset. It passes at most one institution and joins at most two companies. An asset's own class replaces the
one inherited from its company's sector: a bond of a technology company is not reached through Equities, nor
by a signal about the sector that names no debt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kgot_lab.arguments import check_arguments
from kgot_lab.domains.investment.view import DatedEdge, DatedNode, InvestmentView, display_name, symbol_key
from kgot_lab.errors import require_amount
from kgot_lab.io.times import from_micros_or_none
from kgot_lab.types import Node

# The weight left after a hop. These are settings, not measurements. A hop that is not listed is not walked.
DECAYS: Mapping[str, float] = {
    "affects": 0.9, "about": 1.0, "mentions": 0.6, "issued_by": 0.9, "in_sector": 0.7, "belongs_to": 0.7,
}  # fmt: skip
OPTIONAL_DECAYS: Mapping[str, float] = {"supplier": 0.5, "competes_with": 0.3, "owns": 0.6, "correlated": 0.4}
# from where a walk may start or pass
_OUTWARD_EDGES = {"MarketEvent": "affects", "Insight": "about", "News": "mentions", "Institution": "affects"}
_OF_DEBT = re.compile(r"\b(?:bonds?|notes|debt|credit|fixed income)\b", re.I)
_INWARD_EDGES = ("issued_by", "in_sector", "belongs_to")  # walked backwards, from the whole to its parts
# walked in both directions, once in a path
_CROSS_EDGES = ("supplier", "competes_with", "owns", "correlated")


@dataclass(frozen=True)
class PathHop:
    """One hop of a path: its two nodes, edge type and direction, and when edge or node expires."""

    source: Node
    by: str
    target: Node
    forward: bool
    expires: int | None

    def __str__(self) -> str:
        name = display_name(self.target)
        return f"-{self.by}-> {name}" if self.forward else f"<-{self.by}- {name}"


@dataclass(frozen=True)
class ReachedAsset:
    """A reached asset: the best path to it, its weight (0 to 1), and until when the whole path is live."""

    asset: Node
    symbol: str
    path: tuple[PathHop, ...]
    weight: float
    live_until: datetime | None

    def __str__(self) -> str:
        start = self.path[0].source if self.path else self.asset
        return " ".join([display_name(start), *map(str, self.path)])


class _WalkState(NamedTuple):
    """The state of a walk: its node and type, what it may not repeat, and the classes it is of (None: any)."""

    id: str
    type: str
    institutions: int = 0
    classes: frozenset[str] | None = None
    across: bool = False


class _WeightedPath(NamedTuple):
    """The weight and the path of a walk."""

    weight: float
    hops: tuple[PathHop, ...]

    @property
    def order(self) -> tuple[float, int, tuple[str, ...]]:
        """Sort key, best first: the heaviest, then the shortest, then by ids."""
        return -self.weight, len(self.hops), tuple(f"{hop.target.id} {hop.by}" for hop in self.hops)


@check_arguments
def reach(
    view: InvestmentView, start: str, *, decays: Mapping[str, float] = DECAYS
) -> tuple[ReachedAsset, ...]:
    """Return the live assets that a live node bears upon, by the heaviest path to each, heaviest first.

    `DECAYS | OPTIONAL_DECAYS` also walks between companies and between correlated assets. Raises BadInput if
    the start is not live, or a decay is not more than 0 and at most 1.
    """
    for name, decay in decays.items():
        require_amount(decay, f"the decay of {name}", positive=True, maximum=1)
    with view.reading():
        first = view.node(start)
        nodes = {start: first}
        type, signal = first.node.labels[0], first.node.properties
        is_of_shares = bool(signal.get("action")) and not _OF_DEBT.search(str(signal.get("summary", "")))
        begin = _WalkState(start, type, institutions=int(type == "Institution"))
        best_paths = {begin: _WeightedPath(1.0, ())}
        frontier = [begin]
        while frontier:
            frontier = _next_level(view, frontier, best_paths, nodes, decays, is_of_shares)
    return _reached_assets(best_paths, nodes, first)


def _next_level(
    view: InvestmentView,
    frontier: list[_WalkState],
    best_paths: dict[_WalkState, _WeightedPath],
    nodes: dict[str, DatedNode],
    decays: Mapping[str, float],
    is_of_shares: bool,
) -> list[_WalkState]:
    """Extend every state of a level by one hop, and return the states that got a better path.

    A few queries serve the whole level.
    """
    edges = _edges_around(view, {state.id for state in frontier}, decays)
    found = (edge.edge for around in edges.values() for edge, _ in around)
    ends = {end for edge in found for end in (edge.source, edge.target)}
    nodes.update({each.node.id: each for each in view.nodes_by_id(ends - nodes.keys())})
    extended: list[tuple[_WalkState, _WeightedPath]] = []
    classes = _own_classes(view, {id for id in ends if nodes[id].node.labels[0] in ("Asset", "Sector")})
    for state in frontier:
        path = best_paths[state]
        for edge, forward in edges.get(state.id, ()):
            id, type = edge.edge.target if forward else edge.edge.source, edge.edge.type
            next_state = _next_state(state, type, forward, nodes[id].node)
            if next_state is not None and is_of_shares and type == "in_sector" and state.classes is None:
                next_state = next_state._replace(classes=classes.get(state.id, frozenset()))
            own = classes.get(id) if type == "issued_by" and state.classes is not None else None
            if next_state is not None and not (own and own.isdisjoint(state.classes or ())):
                expires = _earliest_expiry((edge.expires, nodes[id].expires))
                hop = PathHop(nodes[state.id].node, type, nodes[id].node, forward, expires)
                extended.append((next_state, _WeightedPath(path.weight * decays[type], (*path.hops, hop))))
    improved: dict[_WalkState, None] = {}
    for next_state, path in extended:
        if next_state not in best_paths or path.order < best_paths[next_state].order:
            best_paths[next_state] = path
            improved[next_state] = None
    return list(improved)


def _edges_around(
    view: InvestmentView, ids: set[str], decays: Mapping[str, float]
) -> dict[str, list[tuple[DatedEdge, bool]]]:
    """Return the edges to walk from some nodes, each with whether it is walked forward."""
    around: dict[str, list[tuple[DatedEdge, bool]]] = {}
    outward = [type for type in (*dict.fromkeys(_OUTWARD_EDGES.values()), *_CROSS_EDGES) if type in decays]
    inward = [type for type in (*_INWARD_EDGES, *_CROSS_EDGES) if type in decays]
    for edge in view.edges_from(ids, outward):
        around.setdefault(edge.edge.source, []).append((edge, True))
    for edge in view.edges_to(ids, inward):
        around.setdefault(edge.edge.target, []).append((edge, False))
    return around


def _next_state(state: _WalkState, edge_type: str, forward: bool, node: Node) -> _WalkState | None:
    """Return the state after a hop, or None if the hop is not allowed."""
    id, type = node.id, node.labels[0]
    if edge_type in _CROSS_EDGES:
        return None if state.across else state._replace(id=id, type=type, across=True)
    if forward:
        if _OUTWARD_EDGES.get(state.type) != edge_type or type in ("News", "Insight"):
            return None
        institutions = state.institutions + (type == "Institution")
        return None if institutions > 1 else state._replace(id=id, type=type, institutions=institutions)
    classes = frozenset([state.id]) if edge_type == "belongs_to" else state.classes
    return state._replace(id=id, type=type, classes=classes)


def _own_classes(view: InvestmentView, ids: set[str]) -> dict[str, frozenset[str]]:
    """Return the asset classes to which assets and sectors belong themselves."""
    by_id: dict[str, frozenset[str]] = {}
    for edge in (each.edge for each in view.edges_from(ids, ["belongs_to"])):
        by_id[edge.source] = by_id.get(edge.source, frozenset()) | {edge.target}
    return by_id


def _reached_assets(
    best_paths: Mapping[_WalkState, _WeightedPath], nodes: Mapping[str, DatedNode], first: DatedNode
) -> tuple[ReachedAsset, ...]:
    best_by_asset: dict[str, _WeightedPath] = {}
    for state, path in best_paths.items():
        known = best_by_asset.get(state.id)
        if state.type == "Asset" and (known is None or path.order < known.order):
            best_by_asset[state.id] = path
    found = []
    for id in sorted(best_by_asset, key=lambda id: best_by_asset[id].order):
        node, path = nodes[id].node, best_by_asset[id]
        until = from_micros_or_none(_earliest_expiry((first.expires, *(hop.expires for hop in path.hops))))
        found.append(ReachedAsset(node, symbol_key(node.properties["symbol"]), path.hops, path.weight, until))
    return tuple(found)


def _earliest_expiry(expiries: Iterable[int | None]) -> int | None:
    """Return the earliest expiry, or None if nothing expires."""
    return min((expiry for expiry in expiries if expiry is not None), default=None)
