"""Validate a batch of nodes and edges, compute their expiry, and write them as versions with one timestamp.

No version is ever changed, so the state at any time can be viewed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from kgot_lab.domains.investment import statements as sql
from kgot_lab.domains.investment.view import (
    DATE_PROPERTIES,
    MAX_ID_LENGTH,
    Dated,
    DatedEdge,
    DatedNode,
    InvestmentView,
    display_name,
    edge_from_row,
    name_key,
    node_from_row,
    owned_prefix,
    symbol_of,
)
from kgot_lab.errors import BadInput, describe_value, require, short_repr
from kgot_lab.graph.changes import merged_properties
from kgot_lab.graph.validation import Vocabulary, validate_edge, validate_node, validate_text
from kgot_lab.io.times import to_micros
from kgot_lab.kgos.schemas.check import Fault, parse_time
from kgot_lab.stores.tables.history import Change, VersionKeys, open_versions
from kgot_lab.stores.tables.layout import TableStorage
from kgot_lab.types import Edge, Node, Triple

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
            expected = "a lifetime is a number of days, more than 0, or None"
            raise BadInput(f"{expected}, not {describe_value(self.days)}")


LIFETIMES = (
    Lifetime("MarketEvent", 30),
    Lifetime("News", 7),
    Lifetime("Insight", 14),
    Lifetime("affects", 30),
    # the effect of a central bank on a class is permanent; its decisions expire
    Lifetime("affects", None, source="Institution"),
    Lifetime("mentions", 7),
    Lifetime("about", 14),
    Lifetime("derived_from", 30),
    Lifetime("correlated", 30),
    Lifetime("affects", 7, asset_class="Crypto"),
    Lifetime("about", 3, asset_class="Crypto"),
    Lifetime("correlated", 7, asset_class="Crypto"),
)


def _lifetime_days(
    lifetimes: Collection[Lifetime], type: str, source: str = "", classes: Collection[str] = ()
) -> float | None:
    """Return the lifetime in days, or None if it is unlimited, as for a type without a row.

    It is the shortest one for a class, else that for the source, else that for the type.
    """
    of_type = [lifetime for lifetime in lifetimes if lifetime.type == type]
    of_classes = [each.days for each in of_type if each.asset_class in classes and each.asset_class]
    if of_classes:
        return min((days for days in of_classes if days is not None), default=None)
    days_by_source = {lifetime.source: lifetime.days for lifetime in of_type if not lifetime.asset_class}
    return days_by_source.get(source, days_by_source.get(""))


EdgeKey = tuple[str, str, str]  # source, type, target
_Nodes = Mapping[str, Node]  # by id
# explicit expiries, in microseconds
Expiries = Mapping[str | EdgeKey, int | None]


class GraphChange:
    """A change of the graph for an owner, with the lifetimes and the explicit expiries of what it writes."""

    def __init__(
        self, change: Change, owner: str, lifetimes: Collection[Lifetime], explicit: Expiries
    ) -> None:
        self._change, self._storage, self._owner, self.at = change, change.storage, owner, change.at
        self._lifetimes, self._explicit = lifetimes, explicit

    def last_nodes(self, ids: Iterable[str]) -> dict[str, DatedNode]:
        """Return the last versions of nodes, expired or not."""
        rows = self._storage.rows(sql.OPEN_NODES, {"owner": self._owner, "ids": sorted(set(ids))})
        return {dated.node.id: dated for dated in map(node_from_row, rows)}

    def last_edges(self, sources: Iterable[str]) -> dict[EdgeKey, DatedEdge]:
        """Return the last versions of the edges from some nodes, expired or not."""
        rows = self._storage.rows(sql.OPEN_EDGES, {"owner": self._owner, "ids": sorted(set(sources))})
        return {edge_key(dated.edge): dated for dated in map(edge_from_row, rows)}

    def _expiry(self, key: str | EdgeKey, node: Node, days: float | None, last: Dated | None) -> int | None:
        """Return the expiry of a version: the explicit one, or that by its lifetime, never earlier than before.

        It counts from the date of the node, or of the source of an edge, so old news expires sooner, and writing an
        edge again does not extend it. A date in the future counts as the time of writing. None means never.
        """
        if key in self._explicit:
            return self._explicit[key]
        if days is None or (last is not None and last.expires is None):
            return None
        dates = (parse_time(node.properties.get(name)) for name in DATE_PROPERTIES)
        date = next((time for time in dates if time is not None), None)
        since = self.at if date is None else min(self.at, to_micros(date, "the date of a node"))
        return max(since + timedelta(days=days) // _MICROSECOND, (last and last.expires) or 0)

    def write_node(self, node: Node, previous: DatedNode | None) -> bool:
        """Open a new version of a node if anything is new, and return whether it was."""
        expires = self._expiry(node.id, node, _lifetime_days(self._lifetimes, node.labels[0]), previous)
        if previous is not None and previous.node == node and previous.expires == expires:
            return False
        created = previous.created if previous else self.at
        self._open_version(previous, DatedNode(self._owner, created, expires, self.at, None, node))
        return True

    def write_edges(self, edges: Sequence[Edge], nodes: _Nodes, of: Vocabulary) -> tuple[EdgeKey, ...]:
        """Open a new version of each edge that has anything new, and return the keys of these."""
        existing = self.last_edges(edge.source for edge in edges)
        classes_by_asset = self._classes_by_asset(edges, nodes, of)
        changed: dict[EdgeKey, None] = {}
        for key, edge in ((edge_key(each), each) for each in edges):
            previous, source = existing.get(key), nodes[edge.source]
            before = previous.edge.properties if previous else {}
            properties = merged_properties(before, edge.properties)
            classes = {each for end in (edge.source, edge.target) for each in classes_by_asset.get(end, ())}
            days = _lifetime_days(self._lifetimes, edge.type, source.labels[0], classes)
            expires = self._expiry(key, source, days, previous)
            if previous is None or (before, previous.expires) != (properties, expires):
                created, written = previous.created if previous else self.at, Edge(*key, properties)
                existing[key] = DatedEdge(self._owner, created, expires, self.at, None, written)
                self._open_version(previous, existing[key])
                changed[key] = None
        return tuple(changed)

    def expire(self, dated: DatedNode | DatedEdge) -> bool:
        """Expire a node or an edge now, and return whether it was still open."""
        if dated.expires is not None and dated.expires <= self.at:
            return False
        self._open_version(dated, replace(dated, expires=self.at))
        return True

    def _classes_by_asset(self, edges: Sequence[Edge], nodes: _Nodes, of: Vocabulary) -> dict[str, set[str]]:
        """Return the names of the classes to which assets at the ends of edges belong themselves.

        They are keyed by the id of the asset.
        """
        ends = {end for edge in edges for end in (edge.source, edge.target)}
        assets = {end for end in ends if nodes[end].labels == ("Asset",)}
        view = InvestmentView(self._storage, self._owner, self.at, of)
        links = [(edge.source, edge.target) for edge in edges if edge.type == "belongs_to"]
        if assets:
            known = (dated.edge for dated in view.edges_from(assets, ["belongs_to"]))
            links += [(edge.source, edge.target) for edge in known]
        named = {id: node for id, node in nodes.items() if node.labels == ("AssetClass",)}
        if unnamed := {target for source, target in links if source in assets and target not in named}:
            named |= {dated.node.id: dated.node for dated in view.nodes_by_id(unnamed)}
        classes: dict[str, set[str]] = {}
        for source, target in links:
            if source in assets and target in named:
                classes.setdefault(source, set()).add(str(named[target].properties["name"]))
        return classes

    def _open_version(self, before: DatedNode | DatedEdge | None, after: DatedNode | DatedEdge) -> None:
        kind, key, state = _version(after)
        self._change.record(kind, key, _version(before)[2] if before else None, state)
        _write_version(self._change, kind, key, state)


def _version(dated: DatedNode | DatedEdge) -> tuple[str, str, str]:
    """Return kind and key of a node or an edge in the history, and its state, as JSON."""
    if isinstance(dated, DatedNode):
        kind, key, type, properties = "node", dated.node.id, dated.node.labels, dated.node.properties
    else:
        key = json.dumps([*edge_key(dated.edge), dated.owner])
        kind, type, properties = "edge", (), dated.edge.properties
    return kind, key, json.dumps([*type, dict(properties), dated.created, dated.expires], sort_keys=True)


def _write_version(change: Change, kind: str, key: str, state: str | None) -> None:
    """Close the row of a node or an edge, and open one in its state, unless that is None."""
    if kind == "node":
        owner = key.partition("/")[0] if "/" in key else ""
        values: dict[str, str | int | None] = {"owner": owner, "id": key, "at": change.at}
    else:
        values = dict(zip(("source", "type", "target", "owner"), json.loads(key), strict=True))
        values |= {"at": change.at}
    is_node = kind == "node"
    change.storage.rows(sql.CLOSE_NODE if is_node else sql.CLOSE_EDGE, values)
    if state is None:
        return
    *labels, properties, created, expires = json.loads(state)
    values |= {"properties": json.dumps(properties, sort_keys=True)}
    values |= {"created_at": created, "expires_at": expires}
    if is_node:
        name = name_key(display_name(Node(key, tuple(labels), properties)))
        values |= {"type": labels[0], "name": name, "symbol": symbol_of(labels[0], properties)}
    change.storage.rows(sql.OPEN_NODE if is_node else sql.OPEN_EDGE, values)


def restore_versions(change: Change, keys: VersionKeys) -> None:
    """Write the current versions of some keys to the graph.

    Raises BadInput if an end of an edge would not exist.
    """
    states = current_states(change.storage, keys)
    for kind, key in keys:
        _write_version(change, kind, key, states.get((kind, key)))
    for key in (key for kind, key in states if kind == "edge"):
        source, _, target, owner = json.loads(key)
        rows = change.storage.rows(sql.OPEN_NODES, {"owner": owner, "ids": [source, target]})
        if missing := {source, target} - {node_from_row(row).node.id for row in rows}:
            raise BadInput(f"there is no node {short_repr(min(missing))} for an edge: undo what took it away")


def current_states(storage: TableStorage, keys: VersionKeys) -> dict[tuple[str, str], str]:
    """Return the states of those nodes and edges that exist, expired or not."""
    states = {(kind, key): next(iter(open_versions(storage, kind, key)), None) for kind, key in keys}
    return {key: state for key, state in states.items() if state is not None}


def live_fact(kind: str, key: str, state: str, at: int) -> Triple | None:
    """Return what the state of a node or an edge says: its type, or the edge. None if it has expired by a time."""
    *labels, properties, _, expires = json.loads(state)
    if expires is not None and expires <= at:
        return None
    if kind == "node":
        return Triple(display_name(Node(key, tuple(labels), properties)), "is a", labels[0])
    return Triple(*json.loads(key)[:3])


def edge_key(edge: Edge) -> EdgeKey:
    """Return the fields that identify an edge among those of its owner: its identity without its key.

    The key is the owner in this graph, and callers name an edge without it.
    """
    return edge.identity[:3]


# What is to be written to the graph: each node once, edges in order, and ids that begin with their owner.


def merge_nodes_by_id(nodes: Iterable[Node]) -> list[Node]:
    """Validate nodes and merge those with the same id."""
    by_id: dict[str, Node] = {}
    for node in nodes:
        node = validate_node(node)
        check_storable_key(node.id, "the id of a node")
        previous = by_id.get(node.id)
        if previous is not None and previous.labels != node.labels:
            problem = f"node {short_repr(node.id)} is given with two types"
            raise BadInput(f"{problem}: {previous.labels} and {node.labels}")
        properties = dict(previous.properties) | dict(node.properties) if previous else node.properties
        by_id[node.id] = Node(node.id, node.labels, properties)
    return list(by_id.values())


def check_owner(owner: str) -> None:
    """Raise BadInput unless the value is a valid owner."""
    require(owner, str, "an owner is a text, '' for what all share")
    if owner:
        check_storable_key(owner, "an owner")
    if "/" in owner:
        raise BadInput("an owner is a text without /, which ends it in the ids of its nodes")


def check_storable_key(text: str, what: str) -> None:
    """Raise BadInput unless a table can store the value as an id or a name."""
    validate_text(text, what)
    if "\0" in text or len(text) > MAX_ID_LENGTH:
        expected = f"{what} is a text of at most {MAX_ID_LENGTH} characters without a NUL"
        raise BadInput(f"{expected}, not {short_repr(text)}")


def normalize_edge(edge: Edge, vocabulary: Vocabulary) -> Edge:
    """Normalize an edge: a symmetric one gets its ends in order.

    Its key is that of the owner, not of the caller.
    """
    edge = validate_edge(edge)
    for end in (edge.source, edge.target):
        check_storable_key(end, "an end of an edge")
    return vocabulary.stored_form(edge)


def ownership_faults(nodes: Sequence[Node], existing: Mapping[str, DatedNode], owner: str) -> Iterable[Fault]:
    """Yield the faults in the ids and types of nodes to be written for an owner."""
    prefix = owned_prefix(owner)
    for node in nodes:
        location = f"node {short_repr(node.id)}"
        if not node.id.startswith(prefix) or (not owner and "/" in node.id):
            what = "its id does not say whose it is"
            advice = "write it without / in its id, or give its owner"
            if owner:
                advice = f"begin it with {short_repr(prefix)}"
            yield Fault("error", what, location, f"{advice}; investment_node makes such ids")
        elif node.id in existing and node.labels != existing[node.id].node.labels:
            what = f"it is there with the type {existing[node.id].node.labels[0]}"
            yield Fault("error", what, location, "give the new one another id, or expire this one")
