"""Validate a batch of nodes and edges, compute their expiry, and write them as versions with one timestamp.

No version is ever changed, so the state at any time can be viewed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kgot_lab.domains.investment import statements as sql
from kgot_lab.domains.investment.view import (
    LONGEST_ID,
    DatedEdge,
    DatedNode,
    InvestmentView,
    dated_edge,
    dated_node,
    fold,
    owned_prefix,
    shown_name,
    symbol_of,
)
from kgot_lab.errors import BadInput, describe_value, require, short_repr
from kgot_lab.graph.changes import merged_properties
from kgot_lab.graph.validation import Vocabulary, fit_edge, fit_node, fit_text
from kgot_lab.kgos.schemas.check import Fault, time_of
from kgot_lab.memory.claims.claim import instant
from kgot_lab.memory.tables import TableStorage
from kgot_lab.types import Edge, Json, Node

# How long facts stay fresh: lifetimes by type, by source type of an edge, and by an asset's own class.
#
# The numbers are settings of this package. The document only says that stale facts must not be used.

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Lifetime:
    """How many days nodes or edges of a type live, or None if they never expire.

    It may hold only for edges from nodes of type `source`, or of assets of a class.
    """

    type: str
    days: float | None
    source: str = ""
    asset_class: str = ""

    def __post_init__(self) -> None:
        if self.days is not None and not (isinstance(self.days, int | float) and 0 < self.days < 36_525):
            raise BadInput(
                f"a lifetime is a number of days, more than 0, or None, not {describe_value(self.days)}"
            )


LIFETIMES = (
    Lifetime("MarketEvent", 30),
    Lifetime("News", 7),
    Lifetime("Insight", 14),
    Lifetime("affects", 30),
    Lifetime(
        "affects", None, source="Institution"
    ),  # the effect of a central bank on a class is permanent; its decisions expire
    Lifetime("mentions", 7),
    Lifetime("about", 14),
    Lifetime("derived_from", 30),
    Lifetime("correlated", 30),
    Lifetime("affects", 7, asset_class="Crypto"),
    Lifetime("about", 3, asset_class="Crypto"),
    Lifetime("correlated", 7, asset_class="Crypto"),
)
_DATED_BY = ("date", "published_at", "generated_at")  # the property with the date of a node


def node_expiry(node: Node, at: int, lifetimes: Collection[Lifetime]) -> int | None:
    """Return the expiry of a node written at a time, in microseconds.

    It counts from the date of the node, so old news expires sooner. A date in the future counts as the time
    of writing.
    """
    return _after(_since(node, at), _days(lifetimes, node.labels[0], "", ()))


def edge_expiry(
    edge: Edge, source: Node, classes: Collection[str], at: int, lifetimes: Collection[Lifetime]
) -> int | None:
    """Return the expiry of an edge written at a time.

    `classes` are the asset classes to which the joined assets themselves belong. Expiry counts from the date
    of the source node if it has one, so writing an edge again does not extend it.
    """
    return _after(_since(source, at), _days(lifetimes, edge.type, source.labels[0], classes))


def _since(node: Node, at: int) -> int:
    dated = next(
        (time for name in _DATED_BY if (time := time_of(node.properties.get(name))) is not None), None
    )
    return at if dated is None else min(at, instant(dated, "the date of a node"))


def _days(lifetimes: Collection[Lifetime], type: str, source: str, classes: Collection[str]) -> float | None:
    """Return the lifetime in days, or None if it is unlimited, as for a type without a row.

    It is the shortest one for a class, else that for the source, else that for the type.
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
    """Return the later of two expiries. None means never."""
    return None if one is None or other is None else max(one, other)


EdgeIds = tuple[str, str, str]  # source, type, target
# explicit expiries, in microseconds
GivenEnds = Mapping[str | EdgeIds, int | None]


class GraphChange:
    """A change for an owner, made within `storage.changing()`. It is recorded once it changes something."""

    def __init__(self, storage: TableStorage, owner: str, now: Callable[[], datetime]) -> None:
        self._storage, self._owner = storage, owner
        # read within the transaction: waiting for another process must not set the time back
        self._clock = instant(now(), "now")
        self.at = last_time(storage, self._clock)
        self._begun = False

    def last_nodes(self, ids: Iterable[str]) -> dict[str, DatedNode]:
        """Return the last versions of nodes, expired or not."""
        rows = self._storage.rows(sql.OPEN_NODES, {"owner": self._owner, "ids": sorted(set(ids))})
        return {dated.node.id: dated for dated in map(dated_node, rows)}

    def last_edges(self, sources: Iterable[str]) -> dict[EdgeIds, DatedEdge]:
        """Return the last versions of the edges from some nodes, expired or not."""
        rows = self._storage.rows(sql.OPEN_EDGES, {"owner": self._owner, "ids": sorted(set(sources))})
        return {edge_ids(dated.edge): dated for dated in map(dated_edge, rows)}

    def begin(self) -> None:
        """Record once that there is a change."""
        if not self._begun:
            self._begun = True
            number = int(self._storage.rows(sql.LAST_NUMBER)[0][0]) + 1
            self._storage.rows(sql.ADD_CHANGE, {"id": number, "at": self.at, "clock": self._clock})

    def keep_node(
        self, node: Node, before: DatedNode | None, lifetimes: Collection[Lifetime], given: GivenEnds
    ) -> bool:
        """Open a new version of a node if anything is new, and return whether it was."""
        expires = given[node.id] if node.id in given else node_expiry(node, self.at, lifetimes)
        if before is not None and node.id not in given:
            expires = later(expires, before.expires)
        if before is not None and before.node == node and before.expires == expires:
            return False
        self._put_node(node, before.created if before else self.at, expires)
        return True

    def keep_edge(
        self,
        edge: Edge,
        before: DatedEdge | None,
        source: Node,
        classes: Collection[str],
        lifetimes: Collection[Lifetime],
        given: GivenEnds,
    ) -> DatedEdge | None:
        """Write a new version of an edge and return it, or None if nothing has changed.

        `classes` are the asset classes to which assets at its ends themselves belong.
        """
        identity = edge_ids(edge)
        edge = Edge(*identity, merged_properties(before.edge.properties if before else {}, edge.properties))
        expires = edge_expiry(edge, source, classes, self.at, lifetimes)
        if identity in given:
            expires = given[identity]
        elif before is not None:
            expires = later(expires, before.expires)
        if before is not None and before.edge.properties == edge.properties and before.expires == expires:
            return None
        created = before.created if before else self.at
        self._put_edge(edge, created, expires)
        return DatedEdge(self._owner, created, expires, self.at, None, edge)

    def end_node(self, node: DatedNode) -> bool:
        """Expire a node now, and return whether it was still open."""
        if node.expires is not None and node.expires <= self.at:
            return False
        self._put_node(node.node, node.created, self.at)
        return True

    def end_edge(self, edge: DatedEdge) -> bool:
        """Expire an edge now, and return whether it was still open."""
        if edge.expires is not None and edge.expires <= self.at:
            return False
        self._put_edge(edge.edge, edge.created, self.at)
        return True

    def own_classes(
        self, edges: Sequence[Edge], nodes: Mapping[str, Node], vocabulary: Vocabulary
    ) -> dict[str, set[str]]:
        """Return the names of the classes to which assets at the ends of edges belong themselves.

        They are keyed by the id of the asset.
        """
        assets = {
            end for edge in edges for end in (edge.source, edge.target) if nodes[end].labels == ("Asset",)
        }
        view = InvestmentView(self._storage, self._owner, self.at, vocabulary)
        links = [(edge.source, edge.target) for edge in edges if edge.type == "belongs_to"]
        if assets:
            links += [
                (dated.edge.source, dated.edge.target) for dated in view.edges_from(assets, ["belongs_to"])
            ]
        named = {id: node for id, node in nodes.items() if node.labels == ("AssetClass",)}
        if unnamed := {target for source, target in links if source in assets and target not in named}:
            named |= {dated.node.id: dated.node for dated in view.nodes_by_id(unnamed)}
        classes: dict[str, set[str]] = {}
        for source, target in links:
            if source in assets and target in named:
                classes.setdefault(source, set()).add(str(named[target].properties["name"]))
        return classes

    # --- helpers ---

    def _put_node(self, node: Node, created: int, expires: int | None) -> None:
        self.begin()
        self._storage.rows(sql.CLOSE_NODE, {"id": node.id, "owner": self._owner, "at": self.at})
        type, properties = node.labels[0], node.properties
        values = {
            "owner": self._owner,
            "id": node.id,
            "type": type,
            "name": fold(shown_name(node)),
            "symbol": symbol_of(type, properties),
        }
        dates = {"created_at": created, "expires_at": expires, "at": self.at}
        self._storage.rows(sql.OPEN_NODE, values | dates | {"properties": _json(properties)})

    def _put_edge(self, edge: Edge, created: int, expires: int | None) -> None:
        self.begin()
        ends = {
            "owner": self._owner,
            "source": edge.source,
            "type": edge.type,
            "target": edge.target,
            "at": self.at,
        }
        self._storage.rows(sql.CLOSE_EDGE, ends)
        dates = {"created_at": created, "expires_at": expires}
        self._storage.rows(sql.OPEN_EDGE, ends | dates | {"properties": _json(edge.properties)})


def last_time(storage: TableStorage, clock: int) -> int:
    """Return the clock time, or the time of the last change if that is later, in microseconds."""
    return max(clock, int(storage.rows(sql.LAST_TIME, {"least": clock})[0][0]))


def edge_ids(edge: Edge) -> EdgeIds:
    """Return the fields that identify an edge among those of its owner."""
    return edge.source, edge.type, edge.target


def _json(properties: Mapping[str, Json]) -> str:
    return json.dumps(dict(properties), sort_keys=True)


# What is to be written to the graph: each node once, edges in order, and ids that begin with their owner.


def one_each(nodes: Iterable[Node]) -> list[Node]:
    """Validate nodes and merge those with the same id."""
    found: dict[str, Node] = {}
    for node in nodes:
        node = fit_node(node)
        require_key(node.id, "the id of a node")
        before = found.get(node.id)
        if before is not None and before.labels != node.labels:
            raise BadInput(
                f"node {short_repr(node.id)} is given with two types: {before.labels} and {node.labels}"
            )
        found[node.id] = Node(
            node.id,
            node.labels,
            dict(before.properties) | dict(node.properties) if before else node.properties,
        )
    return list(found.values())


def require_owner(owner: str) -> None:
    """Raise BadInput unless the value is a valid owner."""
    require(owner, str, "an owner is a text, '' for what all share")
    if owner:
        require_key(owner, "an owner")
    if "/" in owner:
        raise BadInput("an owner is a text without /, which ends it in the ids of its nodes")


def require_key(text: str, what: str) -> None:
    """Raise BadInput unless a table can store the value as an id or a name."""
    fit_text(text, what)
    if "\0" in text or len(text) > LONGEST_ID:
        raise BadInput(
            f"{what} is a text of at most {LONGEST_ID} characters without a NUL, not {short_repr(text)}"
        )


def edge_in_order(edge: Edge, vocabulary: Vocabulary) -> Edge:
    """Normalize an edge: a symmetric one gets its ends in order.

    Its key is that of the owner, not of the caller.
    """
    edge = fit_edge(edge)
    for end in (edge.source, edge.target):
        require_key(end, "an end of an edge")
    return vocabulary.in_order(edge)


def ownership_faults(nodes: Sequence[Node], there: Mapping[str, DatedNode], owner: str) -> Iterable[Fault]:
    """Yield the faults in the ids and types of nodes to be written for an owner."""
    prefix = owned_prefix(owner)
    for node in nodes:
        where = f"node {short_repr(node.id)}"
        if not node.id.startswith(prefix) or (not owner and "/" in node.id):
            do = (
                f"begin it with {short_repr(prefix)}"
                if owner
                else "write it without / in its id, or give its owner"
            )
            yield Fault(
                "error", "its id does not say whose it is", where, do + "; investment_node makes such ids"
            )
        elif node.id in there and node.labels != there[node.id].node.labels:
            do = "give the new one another id, or expire this one"
            yield Fault("error", f"it is there with the type {there[node.id].node.labels[0]}", where, do)
