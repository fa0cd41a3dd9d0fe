"""Read a namespace of a Bolt server, compare it before and after a statement, and convert rows.

A statement knows nothing of the ids, keys and marks of this package: elements that it creates get them, and
those that it removes are restored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.graph.changes import Identity, Truth, changes, same_value
from kgot_lab.sandbox.cypher.mapping import (
    conflicting_property,
    edge_properties,
    node_properties,
    ordered_labels,
    own_id,
    own_key,
    plain_value,
    unused_key,
)
from kgot_lab.sandbox.worker.values import RefusedValue, canonical_json, unused_id
from kgot_lab.stores.cypher.connection import Ask
from kgot_lab.types import Diff, Edge, Json, Node

if TYPE_CHECKING:
    from neo4j import Result, Transaction

# What a Bolt server returns, as JSON: nodes, relationships and paths as dicts and lists, times as ISO text.

_MOST_ROWS = 10_000
MOST_CHARACTERS = 1_000_000
_HIDDEN = frozenset(("_run", "_kept", "_labels", "_key"))
_SCALARS = (str, bool, int, float, type(None))
_NAMES = "UNWIND $places AS place MATCH (n) WHERE elementId(n) = place RETURN place, n.id"


class TooMuch(Exception):
    """A statement returned too many rows or characters."""


class NotOurs(Exception):
    """A statement returned a node or a relationship of another namespace.

    This is the last check, which no statement should reach.
    """


def bolt_rows(transaction: Transaction, statement: str, namespace: str) -> Iterator[dict[str, Json]]:
    """Run a statement and yield its rows, one dict each.

    Raises TooMuch before more than a million characters are read, and NotOurs if the rows contain an element
    of another namespace.
    """
    result = transaction.run(statement)
    records = list(_limited(result))
    ends = {node.element_id for record in records for node in _ends(record.values())}
    names = dict(transaction.run(_NAMES, places=sorted(ends)).values()) if ends else {}
    _refuse_others([value for record in records for value in record.values()], namespace)
    for record in records:
        yield {name: _json(value, names) for name, value in record.items()}


def timeless(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored properties with times and points converted to text."""
    return {name: value if isinstance(value, _SCALARS) else _iso(value) for name, value in stored.items()}


def _limited(result: Result) -> Iterator[Any]:
    size = 0
    for number, record in enumerate(result, start=1):
        size += len(str(record.values()))
        if number > _MOST_ROWS or size > MOST_CHARACTERS:
            raise TooMuch(
                f"more than {_MOST_ROWS:,} rows or {MOST_CHARACTERS:,} characters; return less, for example with LIMIT"
            )
        yield record


def _ends(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the end nodes of all relationships, however deeply nested: a server sends them without
    properties.
    """
    from neo4j.graph import Path, Relationship

    for value in values:
        if isinstance(value, Relationship):
            yield from (node for node in value.nodes if node is not None and "id" not in node)
        elif isinstance(value, Path):
            yield from _ends(value.relationships)
        elif isinstance(value, list):
            yield from _ends(value)
        elif isinstance(value, dict):
            yield from _ends(value.values())


def _refuse_others(values: Iterable[Any], namespace: str) -> None:
    from neo4j.graph import Node, Path, Relationship

    for value in values:
        if isinstance(value, Node | Relationship) and value.get("_run") != namespace:
            raise NotOurs("the statement reaches what is not in the namespace of this store")
        if isinstance(value, Path):
            _refuse_others((*value.nodes, *value.relationships), namespace)
        elif isinstance(value, list | dict):
            _refuse_others(value.values() if isinstance(value, dict) else value, namespace)


def _json(value: Any, names: Mapping[str, str]) -> Json:
    from neo4j.graph import Node, Path, Relationship

    if isinstance(value, Node):
        stored = timeless(dict(value))
        return {
            "id": stored.get("id"),
            "labels": ordered_labels(value.labels, stored),
            **_finite(_but(node_properties(stored), "id", "labels")),
        }
    if isinstance(value, Relationship):
        source, target = (_name(end, names) for end in value.nodes)
        own = _but(edge_properties(timeless(dict(value))), "subject", "relation", "object")
        return {"subject": source, "relation": value.type, "object": target, **_finite(own)}
    if isinstance(value, Path):
        links = [
            [relationship, node]
            for relationship, node in zip(value.relationships, value.nodes[1:], strict=True)
        ]
        return [_json(part, names) for part in (value.nodes[0], *(part for link in links for part in link))]
    if isinstance(value, list):
        kept = [each for each in value if each not in _HIDDEN] if _is_keys(value) else value
        return [_json(each, names) for each in kept]
    if isinstance(value, dict):
        return {str(name): _json(each, names) for name, each in value.items() if name not in _HIDDEN}
    return _finite(plain_value(_iso(value)))


def _is_keys(values: list[Any]) -> bool:
    """Return whether a list looks like the result of keys(n)."""
    return all(isinstance(each, str) for each in values) and "_run" in values


def _name(node: Any, names: Mapping[str, str]) -> Json:
    return None if node is None else node.get("id", names.get(node.element_id))


def _but(properties: dict[str, Json], *names: str) -> dict[str, Json]:
    return {name: value for name, value in properties.items() if name not in names}


def _finite(value: Json) -> Json:
    """Return a value in which numbers that JSON lacks are replaced by the texts nan, inf and -inf."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value


def _iso(value: Any) -> Any:
    """Convert a time to ISO text and a point to the server's notation.

    JSON values are returned unchanged.
    """
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return [_iso(each) for each in value]
    if getattr(value, "nanosecond", 0) % 1000 == 0 and hasattr(value, "to_native"):
        value = value.to_native()
    return (
        value.isoformat()
        if hasattr(value, "isoformat")
        else value.iso_format()
        if hasattr(value, "iso_format")
        else str(value)
    )


_ALL = (  # one row for each node: one for each edge would cost twice as much
    "MATCH (n {_run: $run}) RETURN elementId(n), labels(n), properties(n), "
    "[(n)-[r]->(m {_run: $run}) | [elementId(r), type(r), elementId(m), properties(r)]]"
)
MARK_NODES = "UNWIND $rows AS row MATCH (n) WHERE elementId(n) = row[0] SET n += row[1]"
_MARK_EDGES = "UNWIND $rows AS row MATCH (a)-[r]->() WHERE elementId(a) = row[0] AND elementId(r) = row[1] SET r += row[2]"

_Stored = dict[str, Any]  # properties as stored in the database


class DuplicateId(Exception):
    """A statement created a node under an id that another node has."""


class StoredNode(NamedTuple):
    """A node as stored in the database.

    `place` is the server's element id, which may change after the transaction.
    """

    id: str
    place: str
    labels: list[str]
    properties: _Stored

    def node(self) -> Node:
        """Convert to a `Node`."""
        return Node(
            self.id,
            tuple(ordered_labels(self.labels, self.properties)),
            node_properties(timeless(self.properties)),
        )


class StoredEdge(NamedTuple):
    """An edge as stored in the database."""

    identity: Identity
    place: str
    properties: _Stored

    def edge(self) -> Edge:
        """Convert to an `Edge`."""
        source, type, target, key = self.identity
        return Edge(source, type, target, edge_properties(timeless(self.properties)), key)


class BoltRow(NamedTuple):
    """A node as the server returns it, with its outgoing edges."""

    place: str
    labels: list[str]
    properties: _Stored
    edges: list[list[Any]]  # each is (element id, type, element id of the target, properties)


@dataclass(frozen=True)
class Dump:
    """All nodes by id and all edges by identity."""

    nodes: Mapping[str, StoredNode]
    edges: Mapping[Identity, StoredEdge]

    @cached_property
    def at_place(self) -> dict[str, Identity]:
        """The identity of each edge by its element id."""
        return {edge.place: edge.identity for edge in self.edges.values()}

    def places(self) -> dict[str, str]:
        """Return the element id of each node, by node id."""
        return {id: node.place for id, node in self.nodes.items()}


def dump(ask: Ask) -> Dump:
    """Read the whole namespace.

    Raises StoreUnavailable if another program added nodes to it since it was opened.
    """
    rows = rows_of(ask)
    foreign = sum("_kept" not in row.properties or not _is_name(row.properties.get("id")) for row in rows)
    ids = {row.place: row.properties["id"] for row in rows} if not foreign else {}
    if foreign or len(set(ids.values())) < len(rows):
        what = f"{foreign} nodes of others" if foreign else "several nodes of one id"
        raise StoreUnavailable(
            f"the namespace now holds {what}: somebody else writes to it, and this store needs one for itself"
        )
    edges = (
        (StoredEdge((ids[row.place], type, ids[end], own_key(own)), place, own))
        for row, place, type, end, own in _edges(rows)
    )
    return Dump(
        {ids[row.place]: StoredNode(ids[row.place], row.place, row.labels, row.properties) for row in rows},
        {edge.identity: edge for edge in edges},
    )


def settle_ids(ask: Ask, rows: Sequence[BoltRow], before: Dump, namespace: str) -> Dump:
    """Assign ids, marks and (for parallel edges) keys to new elements after a statement in a transaction.

    Raises DuplicateId if it created nodes under ids that others have.
    """
    was = {node.place: node for node in before.nodes.values()}
    ids = ids_of(rows, was)
    if len(set(ids.values())) < len(ids):
        raise DuplicateId
    marks = []
    for row in rows:
        id = ids[row.place]
        hidden = {"id": id, "_run": namespace, "_kept": True, **_lost_labels(row, before.nodes.get(id))}
        if any(
            name not in row.properties or repr(row.properties[name]) != repr(value)
            for name, value in hidden.items()
        ):
            marks.append([row.place, hidden])
            row.properties.update(hidden)
    if marks:
        ask(MARK_NODES, {"rows": marks})
    nodes = {
        ids[row.place]: StoredNode(ids[row.place], row.place, row.labels, row.properties) for row in rows
    }
    return Dump(nodes, _keyed(ask, rows, ids, before, namespace))


def merged_difference(rows: Sequence[BoltRow], before: Dump) -> Diff:
    """Return what a statement changed, merging nodes that it created under an id that exists.

    Such a node and its edges are added to the existing node. Raises RefusedValue if the statement created a
    node twice with different values.
    """
    was = {node.place: node for node in before.nodes.values()}
    ids = ids_of(rows, was)
    named: dict[str, list[BoltRow]] = {}
    for row in rows:
        named.setdefault(ids[row.place], []).append(row)
    nodes = {id: _merged(id, own, was) for id, own in named.items()}
    again = {row.place for own in named.values() if len(own) > 1 for row in own if row.place not in was}
    edges: dict[Identity, Edge] = {}
    taken: dict[tuple[str, str, str], set[str]] = {}
    for source, place, type, end, own in _by_identity(rows, ids, before):
        bare, properties = (ids[source.place], type, ids[end]), edge_properties(timeless(own))
        key = _key_now(place, bare, own, before)
        if (*bare, key) in edges and not again.isdisjoint((source.place, end)):
            edges[(*bare, key)] = Edge(*bare, {**edges[(*bare, key)].properties, **properties}, key)
        else:
            keys = taken.setdefault(bare, set())
            key = unused_key(key, keys)
            keys.add(key)
            edges[(*bare, key)] = Edge(*bare, properties, key)
    old = Truth(
        (stored.node() for stored in before.nodes.values()),
        (stored.edge() for stored in before.edges.values()),
    )
    return old.difference({**dict.fromkeys(old.nodes), **nodes}, {**dict.fromkeys(old.edges), **edges})


def _merged(id: str, rows: Sequence[BoltRow], was: Mapping[str, StoredNode]) -> Node:
    """Merge all nodes that a statement left under one id."""
    labels: list[str] = []
    properties: dict[str, Any] = {}
    for row in rows:
        if row.place in was:
            labels = ordered_labels(row.labels, {**_lost_labels(row, was[row.place]), **row.properties})
            properties = node_properties(timeless(row.properties))
    said: dict[str, Any] = {}
    for row in rows:
        if row.place not in was:
            own = node_properties(timeless(row.properties))
            if name := conflicting_property(said, own):
                raise RefusedValue(
                    f"the statement makes the node {id!r} twice, with different values of {name!r}; make it once"
                )
            said.update(own)
    new = {label for row in rows if row.place not in was for label in row.labels}
    return Node(id, (*labels, *sorted(new - set(labels))), {**properties, **said})


def dump_difference(before: Dump, after: Dump) -> Diff:
    """Return the difference between two dumps.

    1, 1.0 and true are different values.
    """
    nodes = changes(before.nodes, after.nodes, _alike)
    edges = changes(before.edges, after.edges, _alike)
    return Diff(
        added_nodes=tuple(stored.node() for stored in nodes.added),
        removed_nodes=tuple(stored.node() for stored in nodes.removed),
        changed_nodes=tuple((old.node(), new.node()) for old, new in nodes.changed),
        added_edges=tuple(stored.edge() for stored in edges.added),
        removed_edges=tuple(stored.edge() for stored in edges.removed),
        changed_edges=tuple((old.edge(), new.edge()) for old, new in edges.changed),
    )


def check_texts(nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
    """Raise BadInput unless every id, label and relation is a text that is not blank."""
    for node in nodes:
        if not all(map(_is_name, (node.id, *node.labels))):
            raise BadInput(f"the id and the labels of a node must be texts that are not blank: {node}"[:300])
    for edge in edges:
        if not _is_name(edge.type) or not isinstance(edge.key, str):
            raise BadInput(
                f"the type of an edge must be a text that is not blank, and its key a text: {edge}"[:300]
            )


def rows_of(ask: Ask) -> list[BoltRow]:
    """Return all nodes of a namespace with their outgoing edges."""
    return [BoltRow(*row) for row in ask(_ALL, {})]


def _edges(rows: Iterable[BoltRow]) -> Iterator[tuple[BoltRow, str, str, str, _Stored]]:
    for row in rows:
        for place, type, end, properties in row.edges:
            yield row, place, type, end, properties


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def ids_of(rows: Iterable[BoltRow], was: Mapping[str, StoredNode]) -> dict[str, str]:
    """Assign an id to each node, by element id.

    A node keeps its own id (a new node may share it with others), or gets back the one it lost, or else gets
    a free one. Raises RefusedValue if a value is no valid id, or if two existing nodes would have the same
    one.
    """
    rows = list(rows)
    ids = {row.place: own for row in rows if (own := own_id(timeless(row.properties)))}
    taken = set(ids.values())
    for id, times in Counter(id for place, id in ids.items() if place in was).items():
        if times > 1:
            raise RefusedValue(f"two nodes would have the id {id!r}; give it to one of them only")
    nameless = [row for row in rows if row.place not in ids]
    for row in sorted(
        nameless,
        key=lambda row: (
            row.place not in was,
            canonical_json([sorted(row.labels), node_properties(timeless(row.properties))]),
        ),
    ):
        # a statement replaced all properties, but it is still the same node
        before = was[row.place].id if row.place in was else ""
        id = (
            before
            if before and before not in taken
            else unused_id(sorted(row.labels), timeless(row.properties), taken)
        )
        ids[row.place] = id
        taken.add(id)
    return ids


def _lost_labels(row: BoltRow, before: StoredNode | None) -> _Stored:
    """Return the recorded order of a node's labels if a statement removed it."""
    noted = before.properties.get("_labels") if before else None
    return {"_labels": noted} if noted is not None and "_labels" not in row.properties else {}


def _by_identity(
    rows: Iterable[BoltRow], ids: Mapping[str, str], before: Dump
) -> list[tuple[BoltRow, str, str, str, _Stored]]:
    """Return the edges in an order that does not depend on the server's.

    Edges with unchanged identity come first and new ones last.
    """

    def place_of(each: tuple[BoltRow, str, str, str, _Stored]) -> tuple[int, str]:
        row, place, type, end, own = each
        bare = (ids[row.place], type, ids[end])
        old = before.at_place.get(place)
        newness = (
            2 if old is None or old[:3] != bare else int((*bare, _key_now(place, bare, own, before)) != old)
        )
        return newness, canonical_json(edge_properties(timeless(own)))

    return sorted(_edges(rows), key=place_of)


def _key_now(place: str, bare: tuple[str, str, str], own: _Stored, before: Dump) -> str:
    """Return the key of an edge: its own, or the one it had before.

    Compares the identity too, because another edge may reuse the element id of a deleted one.
    """
    old = before.at_place.get(place)
    return old[3] if old is not None and "_key" not in own and old[:3] == bare else own_key(own)


def _keyed(
    ask: Ask, rows: Sequence[BoltRow], ids: Mapping[str, str], before: Dump, namespace: str
) -> dict[Identity, StoredEdge]:
    """Return every edge by its identity.

    A new edge that would duplicate another gets a key, and one that lost its key gets it back.
    """
    edges: dict[Identity, StoredEdge] = {}
    taken: dict[tuple[str, str, str], set[str]] = {}
    marks = []
    for row, place, type, end, own in _by_identity(rows, ids, before):
        bare = (ids[row.place], type, ids[end])
        keys = taken.setdefault(bare, set())
        key = unused_key(_key_now(place, bare, own, before), keys)
        keys.add(key)
        if key != own.get("_key", "") or own.get("_run") != namespace:
            own |= {"_key": key, "_run": namespace}
            marks.append([row.place, place, {"_key": key or None, "_run": namespace}])
        edges[(*bare, key)] = StoredEdge((*bare, key), place, own)
    if marks:
        ask(_MARK_EDGES, {"rows": marks})
    return edges


def _alike(one: StoredNode | StoredEdge, other: StoredNode | StoredEdge) -> bool:
    if repr(one.properties) == repr(other.properties):
        if isinstance(one, StoredEdge) or isinstance(other, StoredEdge):
            return True
        return one.labels == other.labels or one.node().labels == other.node().labels
    mine, its = (each.edge() if isinstance(each, StoredEdge) else each.node() for each in (one, other))
    return same_value(mine.properties, its.properties) and getattr(mine, "labels", ()) == getattr(
        its, "labels", ()
    )
