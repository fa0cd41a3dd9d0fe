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
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from kgot_lab.errors import StoreUnavailable
from kgot_lab.graph.changes import Identity, MutableGraph, compare_tables, same_element
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
from kgot_lab.stores.cypher.connection import RunQuery
from kgot_lab.types import Diff, Edge, Json, Node

if TYPE_CHECKING:
    from neo4j import Result, Transaction

# What a Bolt server returns, as JSON: nodes, relationships and paths as dicts and lists, times as ISO text.

_MAX_ROWS = 10_000
MAX_CHARACTERS = 1_000_000
_HIDDEN = frozenset(("_run", "_kept", "_labels", "_key"))
_SCALARS = (str, bool, int, float, type(None))
_NAMES = "UNWIND $places AS place MATCH (n) WHERE elementId(n) = place RETURN place, n.id"


class ResultTooLarge(Exception):
    """A statement returned too many rows or characters."""


class ForeignElement(Exception):
    """A statement returned a node or a relationship of another namespace.

    This is the last check, which no statement should reach.
    """


def bolt_rows(transaction: Transaction, statement: str, namespace: str) -> Iterator[dict[str, Json]]:
    """Run a statement and yield its rows, one dict each.

    Raises ResultTooLarge before more than a million characters are read, and ForeignElement if the rows contain an element
    of another namespace.
    """
    records = list(_limit_records(transaction.run(statement)))
    ends = {node.element_id for record in records for node in _unnamed_ends(record.values())}
    names = dict(transaction.run(_NAMES, places=sorted(ends)).values()) if ends else {}
    _refuse_foreign([value for record in records for value in record.values()], namespace)
    for record in records:
        yield {name: _to_json(value, names) for name, value in record.items()}


def temporal_as_text(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored properties with times and points converted to text."""
    return {name: v if isinstance(v, _SCALARS) else _temporal_text(v) for name, v in stored.items()}


def _limit_records(result: Result) -> Iterator[Any]:
    size = 0
    for number, record in enumerate(result, start=1):
        size += len(str(record.values()))
        if number > _MAX_ROWS or size > MAX_CHARACTERS:
            problem = f"more than {_MAX_ROWS:,} rows or {MAX_CHARACTERS:,} characters"
            raise ResultTooLarge(f"{problem}; return less, for example with LIMIT")
        yield record


def _unnamed_ends(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the end nodes of all relationships, however deeply nested: a server sends them without
    properties.
    """
    from neo4j.graph import Path, Relationship

    for value in values:
        if isinstance(value, Relationship):
            yield from (node for node in value.nodes if node is not None and "id" not in node)
        elif isinstance(value, Path):
            yield from _unnamed_ends(value.relationships)
        elif isinstance(value, list):
            yield from _unnamed_ends(value)
        elif isinstance(value, dict):
            yield from _unnamed_ends(value.values())


def _refuse_foreign(values: Iterable[Any], namespace: str) -> None:
    from neo4j.graph import Node, Path, Relationship

    for value in values:
        if isinstance(value, Node | Relationship) and value.get("_run") != namespace:
            raise ForeignElement("the statement reaches what is not in the namespace of this store")
        if isinstance(value, Path):
            _refuse_foreign((*value.nodes, *value.relationships), namespace)
        elif isinstance(value, list | dict):
            _refuse_foreign(value.values() if isinstance(value, dict) else value, namespace)


def _to_json(value: Any, names: Mapping[str, str]) -> Json:
    from neo4j.graph import Node, Path, Relationship

    if isinstance(value, Node):
        stored = temporal_as_text(dict(value))
        properties = _finite_numbers(_without_keys(node_properties(stored), "id", "labels"))
        return {"id": stored.get("id"), "labels": ordered_labels(value.labels, stored), **properties}
    if isinstance(value, Relationship):
        source, target = (_node_name(end, names) for end in value.nodes)
        stored = edge_properties(temporal_as_text(dict(value)))
        properties = _without_keys(stored, "subject", "relation", "object")
        return {"subject": source, "relation": value.type, "object": target, **_finite_numbers(properties)}
    if isinstance(value, Path):
        links = [[edge, node] for edge, node in zip(value.relationships, value.nodes[1:], strict=True)]
        return [_to_json(part, names) for part in chain(value.nodes[:1], *links)]
    if isinstance(value, list):
        visible = [each for each in value if each not in _HIDDEN] if _are_property_keys(value) else value
        return [_to_json(each, names) for each in visible]
    if isinstance(value, dict):
        return {str(name): _to_json(each, names) for name, each in value.items() if name not in _HIDDEN}
    return _finite_numbers(plain_value(_temporal_text(value)))


def _are_property_keys(values: list[Any]) -> bool:
    """Return whether a list looks like the result of keys(n)."""
    return all(isinstance(value, str) for value in values) and "_run" in values


def _node_name(node: Any, names: Mapping[str, str]) -> Json:
    return None if node is None else node.get("id", names.get(node.element_id))


def _without_keys(properties: dict[str, Json], *names: str) -> dict[str, Json]:
    return {name: value for name, value in properties.items() if name not in names}


def _finite_numbers(value: Json) -> Json:
    """Return a value in which numbers that JSON lacks are replaced by the texts nan, inf and -inf."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _finite_numbers(item) for name, item in value.items()}
    return [_finite_numbers(item) for item in value] if isinstance(value, list) else value


def _temporal_text(value: Any) -> Any:
    """Convert a time to ISO text and a point to the server's notation.

    JSON values are returned unchanged.
    """
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return [_temporal_text(item) for item in value]
    if getattr(value, "nanosecond", 0) % 1000 == 0 and hasattr(value, "to_native"):
        value = value.to_native()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.iso_format() if hasattr(value, "iso_format") else str(value)


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

    `element_id` is the server's element id, which may change after the transaction.
    """

    id: str
    element_id: str
    labels: list[str]
    properties: _Stored

    def to_node(self) -> Node:
        """Convert to a `Node`."""
        labels = tuple(ordered_labels(self.labels, self.properties))
        return Node(self.id, labels, node_properties(temporal_as_text(self.properties)))


class StoredEdge(NamedTuple):
    """An edge as stored in the database."""

    identity: Identity
    element_id: str
    properties: _Stored

    def to_edge(self) -> Edge:
        """Convert to an `Edge`."""
        source, type, target, key = self.identity
        return Edge(source, type, target, edge_properties(temporal_as_text(self.properties)), key)


class BoltRow(NamedTuple):
    """A node as the server returns it, with its outgoing edges."""

    element_id: str
    labels: list[str]
    properties: _Stored
    edges: list[list[Any]]  # each is (element id, type, element id of the target, properties)


@dataclass(frozen=True)
class Dump:
    """All nodes by id and all edges by identity."""

    nodes: Mapping[str, StoredNode]
    edges: Mapping[Identity, StoredEdge]

    @cached_property
    def identity_by_element_id(self) -> dict[str, Identity]:
        """The identity of each edge by its element id."""
        return {edge.element_id: edge.identity for edge in self.edges.values()}

    def graph(self) -> MutableGraph:
        """Convert to a graph."""
        edges = (stored.to_edge() for stored in self.edges.values())
        return MutableGraph((stored.to_node() for stored in self.nodes.values()), edges)


def read_dump(run_query: RunQuery) -> Dump:
    """Read the whole namespace.

    Raises StoreUnavailable if another program added nodes to it since it was opened.
    """
    rows = read_rows(run_query)
    foreign = sum("_kept" not in row.properties or not _is_name(row.properties.get("id")) for row in rows)
    ids = {row.element_id: row.properties["id"] for row in rows} if not foreign else {}
    if foreign or len(set(ids.values())) < len(rows):
        problem = f"{foreign} nodes of others" if foreign else "several nodes of one id"
        reason = "somebody else writes to it, and this store needs one for itself"
        raise StoreUnavailable(f"the namespace now holds {problem}: {reason}")
    edges = (
        (StoredEdge((ids[row.element_id], type, ids[end], own_key(properties)), element_id, properties))
        for row, element_id, type, end, properties in _outgoing_edges(rows)
    )
    return Dump(_stored_nodes(rows, ids), {edge.identity: edge for edge in edges})


def _stored_nodes(rows: Iterable[BoltRow], ids: Mapping[str, str]) -> dict[str, StoredNode]:
    nodes = (StoredNode(ids[row.element_id], row.element_id, row.labels, row.properties) for row in rows)
    return {node.id: node for node in nodes}


def assign_ids(run_query: RunQuery, rows: Sequence[BoltRow], before: Dump, namespace: str) -> Dump:
    """Assign ids, marks and (for parallel edges) keys to new elements after a statement in a transaction.

    Raises DuplicateId if it created nodes under ids that others have.
    """
    old_nodes = {node.element_id: node for node in before.nodes.values()}
    ids = node_ids(rows, old_nodes)
    if len(set(ids.values())) < len(ids):
        raise DuplicateId
    marks = []
    for row in rows:
        id = ids[row.element_id]
        hidden = {"id": id, "_run": namespace, "_kept": True, **_lost_label_order(row, before.nodes.get(id))}
        stored = row.properties
        if any(name not in stored or repr(stored[name]) != repr(value) for name, value in hidden.items()):
            marks.append([row.element_id, hidden])
            row.properties.update(hidden)
    if marks:
        run_query(MARK_NODES, {"rows": marks})
    return Dump(_stored_nodes(rows, ids), _key_edges(run_query, rows, ids, before, namespace))


def merged_difference(rows: Sequence[BoltRow], before: Dump) -> Diff:
    """Return what a statement changed, merging nodes that it created under an id that exists.

    Such a node and its edges are added to the existing node. Raises RefusedValue if the statement created a
    node twice with different values.
    """
    old_nodes = {node.element_id: node for node in before.nodes.values()}
    ids = node_ids(rows, old_nodes)
    rows_by_id: dict[str, list[BoltRow]] = {}
    for row in rows:
        rows_by_id.setdefault(ids[row.element_id], []).append(row)
    nodes = {id: _merge_nodes(id, stored, old_nodes) for id, stored in rows_by_id.items()}
    repeated = (row for stored in rows_by_id.values() if len(stored) > 1 for row in stored)
    recreated = {row.element_id for row in repeated if row.element_id not in old_nodes}
    edges: dict[Identity, Edge] = {}
    taken: dict[tuple[str, str, str], set[str]] = {}
    for source, element_id, type, end, stored in _ordered_edges(rows, ids, before):
        ends, properties = (ids[source.element_id], type, ids[end]), edge_properties(temporal_as_text(stored))
        key = _current_key(element_id, ends, stored, before)
        if (*ends, key) in edges and not recreated.isdisjoint((source.element_id, end)):
            edges[(*ends, key)] = Edge(*ends, {**edges[(*ends, key)].properties, **properties}, key)
        else:
            keys = taken.setdefault(ends, set())
            key = unused_key(key, keys)
            keys.add(key)
            edges[(*ends, key)] = Edge(*ends, properties, key)
    old = before.graph()
    return old.difference({**dict.fromkeys(old.nodes), **nodes}, {**dict.fromkeys(old.edges), **edges})


def _merge_nodes(id: str, rows: Sequence[BoltRow], old_nodes: Mapping[str, StoredNode]) -> Node:
    """Merge all nodes that a statement left under one id."""
    labels: list[str] = []
    properties: dict[str, Any] = {}
    for row in rows:
        if row.element_id in old_nodes:
            lost_order = _lost_label_order(row, old_nodes[row.element_id])
            labels = ordered_labels(row.labels, {**lost_order, **row.properties})
            properties = node_properties(temporal_as_text(row.properties))
    new_properties: dict[str, Any] = {}
    for row in rows:
        if row.element_id not in old_nodes:
            stored = node_properties(temporal_as_text(row.properties))
            if name := conflicting_property(new_properties, stored):
                problem = f"the statement makes the node {id!r} twice, with different values of {name!r}"
                raise RefusedValue(f"{problem}; make it once")
            new_properties.update(stored)
    new = {label for row in rows if row.element_id not in old_nodes for label in row.labels}
    return Node(id, (*labels, *sorted(new - set(labels))), {**properties, **new_properties})


def dump_difference(before: Dump, after: Dump) -> Diff:
    """Return the difference between two dumps.

    1, 1.0 and true are different values.
    """
    nodes = compare_tables(before.nodes, after.nodes, _same_stored)
    edges = compare_tables(before.edges, after.edges, _same_stored)
    to_node, to_edge = StoredNode.to_node, StoredEdge.to_edge
    return Diff(*nodes.mapped(to_node, to_node), *edges.mapped(to_edge, to_edge))


def read_rows(run_query: RunQuery) -> list[BoltRow]:
    """Return all nodes of a namespace with their outgoing edges."""
    return [BoltRow(*row) for row in run_query(_ALL, {})]


def _outgoing_edges(rows: Iterable[BoltRow]) -> Iterator[tuple[BoltRow, str, str, str, _Stored]]:
    for row in rows:
        for element_id, type, end, properties in row.edges:
            yield row, element_id, type, end, properties


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def node_ids(rows: Iterable[BoltRow], old_nodes: Mapping[str, StoredNode]) -> dict[str, str]:
    """Assign an id to each node, by element id.

    A node keeps its own id (a new node may share it with others), or gets back the one it lost, or else gets
    a free one. Raises RefusedValue if a value is no valid id, or if two existing nodes would have the same
    one.
    """
    rows = list(rows)
    stored = ((row.element_id, own_id(temporal_as_text(row.properties))) for row in rows)
    ids = {element_id: stored_id for element_id, stored_id in stored if stored_id}
    taken, numbers = set(ids.values()), dict[str, int]()
    for id, times in Counter(id for element_id, id in ids.items() if element_id in old_nodes).items():
        if times > 1:
            raise RefusedValue(f"two nodes would have the id {id!r}; give it to one of them only")

    def sort_key(row: BoltRow) -> tuple[bool, str]:
        properties = node_properties(temporal_as_text(row.properties))
        return row.element_id not in old_nodes, canonical_json([sorted(row.labels), properties])

    for row in sorted((row for row in rows if row.element_id not in ids), key=sort_key):
        # a statement replaced all properties, but it is still the same node
        id = old_nodes[row.element_id].id if row.element_id in old_nodes else ""
        if not id or id in taken:
            id = unused_id(sorted(row.labels), temporal_as_text(row.properties), taken.__contains__, numbers)
        ids[row.element_id] = id
        taken.add(id)
    return ids


def _lost_label_order(row: BoltRow, before: StoredNode | None) -> _Stored:
    """Return the recorded order of a node's labels if a statement removed it."""
    label_order = before.properties.get("_labels") if before else None
    return {"_labels": label_order} if label_order is not None and "_labels" not in row.properties else {}


def _ordered_edges(
    rows: Iterable[BoltRow], ids: Mapping[str, str], before: Dump
) -> list[tuple[BoltRow, str, str, str, _Stored]]:
    """Return the edges in an order that does not depend on the server's.

    Edges with unchanged identity come first and new ones last.
    """

    def sort_key(entry: tuple[BoltRow, str, str, str, _Stored]) -> tuple[int, str]:
        row, element_id, type, end, stored = entry
        ends = (ids[row.element_id], type, ids[end])
        old = before.identity_by_element_id.get(element_id)
        is_new = old is None or old[:3] != ends
        newness = 2 if is_new else int((*ends, _current_key(element_id, ends, stored, before)) != old)
        return newness, canonical_json(edge_properties(temporal_as_text(stored)))

    return sorted(_outgoing_edges(rows), key=sort_key)


def _current_key(element_id: str, ends: tuple[str, str, str], stored: _Stored, before: Dump) -> str:
    """Return the key of an edge: its own, or the one it had before.

    Compares the identity too, because another edge may reuse the element id of a deleted one.
    """
    old = before.identity_by_element_id.get(element_id)
    return old[3] if old is not None and "_key" not in stored and old[:3] == ends else own_key(stored)


def _key_edges(
    run_query: RunQuery, rows: Sequence[BoltRow], ids: Mapping[str, str], before: Dump, namespace: str
) -> dict[Identity, StoredEdge]:
    """Return every edge by its identity.

    A new edge that would duplicate another gets a key, and one that lost its key gets it back.
    """
    edges: dict[Identity, StoredEdge] = {}
    taken: dict[tuple[str, str, str], set[str]] = {}
    marks = []
    for row, element_id, type, end, stored in _ordered_edges(rows, ids, before):
        ends = (ids[row.element_id], type, ids[end])
        keys = taken.setdefault(ends, set())
        key = unused_key(_current_key(element_id, ends, stored, before), keys)
        keys.add(key)
        if key != stored.get("_key", "") or stored.get("_run") != namespace:
            stored |= {"_key": key, "_run": namespace}
            marks.append([row.element_id, element_id, {"_key": key or None, "_run": namespace}])
        edges[(*ends, key)] = StoredEdge((*ends, key), element_id, stored)
    if marks:
        run_query(_MARK_EDGES, {"rows": marks})
    return edges


def _same_stored(one: StoredNode | StoredEdge, other: StoredNode | StoredEdge) -> bool:
    """Compare the labels and the properties, as they are stored or else as elements of a graph."""
    if repr(one[2:]) == repr(other[2:]):
        return True
    first, second = (e.to_edge() if isinstance(e, StoredEdge) else e.to_node() for e in (one, other))
    return same_element(first, second)
