"""All that a namespace of a Bolt server's database holds, and what a statement changed of it: found out by comparing before and after.

A statement knows nothing of our ids, keys and marks: what it made is given them, and what it took away of them is put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.graph.changes import changes, same_value
from kgot_lab.graph.truth import Identity
from kgot_lab.sandbox.inside.cypher_mapping import edge_properties, free_id, labels_of, node_properties
from kgot_lab.stores.cypher.link import Ask
from kgot_lab.stores.cypher.rows import timeless
from kgot_lab.types import Diff, Edge, Node

_ALL = (  # one row for each node: one for each edge would cost twice as much
    "MATCH (n {_run: $run}) RETURN elementId(n), labels(n), properties(n), "
    "[(n)-[r]->(m {_run: $run}) | [elementId(r), type(r), elementId(m), properties(r)]]"
)
MARK_NODES = "UNWIND $rows AS row MATCH (n) WHERE elementId(n) = row[0] SET n += row[1]"
_MARK_EDGES = "UNWIND $rows AS row MATCH (a)-[r]->() WHERE elementId(a) = row[0] AND elementId(r) = row[1] SET r += row[2]"

_Stored = dict[str, Any]  # properties as the database has them


class StoredNode(NamedTuple):
    """A node as it lies in the database; `place` is the server's own id, which need not outlive a transaction."""

    id: str
    place: str
    labels: list[str]
    properties: _Stored

    def node(self) -> Node:
        """The node it stands for."""
        return Node(self.id, tuple(labels_of(self.labels, self.properties)), node_properties(timeless(self.properties)))


class StoredEdge(NamedTuple):
    """An edge as it lies in the database."""

    identity: Identity
    place: str
    properties: _Stored

    def edge(self) -> Edge:
        """The edge it stands for."""
        source, type, target, key = self.identity
        return Edge(source, type, target, edge_properties(timeless(self.properties)), key)


class BoltRow(NamedTuple):
    place: str
    labels: list[str]
    properties: _Stored
    edges: list[list[Any]]  # each place, type, place of the target, properties


@dataclass(frozen=True)
class Dump:
    """All nodes by id and all edges by identity."""

    nodes: Mapping[str, StoredNode]
    edges: Mapping[Identity, StoredEdge]

    def places(self) -> dict[str, str]:
        """Where each node is."""
        return {id: node.place for id, node in self.nodes.items()}


def dump(ask: Ask) -> Dump:
    """Read the whole namespace; raises StoreUnavailable when somebody else has put nodes into it since it was opened."""
    rows = _rows(ask)
    foreign = sum("_kept" not in row.properties or not _is_name(row.properties.get("id")) for row in rows)
    ids = {row.place: row.properties["id"] for row in rows} if not foreign else {}
    if foreign or len(set(ids.values())) < len(rows):
        what = f"{foreign} nodes of others" if foreign else "several nodes of one id"
        raise StoreUnavailable(f"the namespace now holds {what}: somebody else writes to it, and this store needs one for itself")
    edges = ((StoredEdge((ids[row.place], type, ids[end], _key(own)), place, own)) for row, place, type, end, own in _edges(rows))
    return Dump(
        {ids[row.place]: StoredNode(ids[row.place], row.place, row.labels, row.properties) for row in rows},
        {edge.identity: edge for edge in edges},
    )


def settle_ids(ask: Ask, before: Dump, namespace: str) -> Dump:
    """Read the namespace after a statement of a transaction, and give what is new ids, marks and, where edges are parallel, keys."""
    rows = _rows(ask)
    was = {node.place: node for node in before.nodes.values()}
    ids = ids_of(rows, was)
    marks = []
    for row in rows:
        id = ids[row.place]
        hidden = {"id": id, "_run": namespace, "_kept": True, **_lost_labels(row, before.nodes.get(id))}
        if any(name not in row.properties or repr(row.properties[name]) != repr(value) for name, value in hidden.items()):
            marks.append([row.place, hidden])
            row.properties.update(hidden)
    if marks:
        ask(MARK_NODES, {"rows": marks})
    nodes = {ids[row.place]: StoredNode(ids[row.place], row.place, row.labels, row.properties) for row in rows}
    return Dump(nodes, _keyed(ask, rows, ids, before, namespace))


def dump_difference(before: Dump, after: Dump) -> Diff:
    """What changed; 1, 1.0 and true are different values."""
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
            raise BadInput(f"the type of an edge must be a text that is not blank, and its key a text: {edge}"[:300])


def _rows(ask: Ask) -> list[BoltRow]:
    return [BoltRow(*row) for row in ask(_ALL, {})]


def _edges(rows: Iterable[BoltRow]) -> Iterator[tuple[BoltRow, str, str, str, _Stored]]:
    for row in rows:
        for place, type, end, properties in row.edges:
            yield row, place, type, end, properties


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _key(properties: _Stored) -> str:
    key = properties.get("_key", "")
    return key if isinstance(key, str) else ""


def ids_of(rows: Iterable[BoltRow], was: Mapping[str, StoredNode]) -> dict[str, str]:
    """An id for each node, by its place: those that kept theirs come first, then those that were ours before, then new ones with one."""

    def trust(row: BoltRow) -> int:
        own = row.properties.get("id")
        if not _is_name(own):
            return 0
        kept = row.place in was and was[row.place].id == own
        return 3 if kept else 2 if "_kept" in row.properties else 1

    ids: dict[str, str] = {}
    taken: set[str] = set()
    for row in sorted(rows, key=trust, reverse=True):
        own, before = row.properties.get("id"), was[row.place].id if row.place in was else ""
        if trust(row) and own not in taken:
            id = str(own)
        elif not trust(row) and before and before not in taken:  # a statement replaced all properties: it is the same node still
            id = before
        else:
            id = free_id(sorted(row.labels), timeless(row.properties), taken)
        ids[row.place] = id
        taken.add(id)
    return ids


def _lost_labels(row: BoltRow, before: StoredNode | None) -> _Stored:
    """The noted order of a node's labels, where a statement took the note away."""
    noted = before.properties.get("_labels") if before else None
    return {"_labels": noted} if noted is not None and "_labels" not in row.properties else {}


def _keyed(ask: Ask, rows: list[BoltRow], ids: Mapping[str, str], before: Dump, namespace: str) -> dict[Identity, StoredEdge]:
    """Every edge by its identity; a new one that would be another's double gets a key, and one that lost its key has it again."""
    was = {edge.place: edge.identity for edge in before.edges.values()}
    edges: dict[Identity, StoredEdge] = {}
    marks = []

    def identified(source: BoltRow, place: str, type: str, end: str, own: _Stored) -> Identity:
        bare = (ids[source.place], type, ids[end])
        old = was.get(place, ("", "", "", ""))  # a place may have been taken by another edge
        return (*bare, old[3] if "_key" not in own and old[:3] == bare else _key(own))

    for each in sorted(_edges(rows), key=lambda each: identified(*each) != was.get(each[1])):
        row, place, _, _, own = each
        identity = identified(*each)
        key = identity[3]
        others = (f"{key}.{number}" if key else str(number) for number in count(2))
        while identity in edges:
            identity = (*identity[:3], next(others))
        if identity[3] != own.get("_key", "") or own.get("_run") != namespace:
            own |= {"_key": identity[3], "_run": namespace}
            marks.append([row.place, place, {"_key": identity[3] or None, "_run": namespace}])
        edges[identity] = StoredEdge(identity, place, own)
    if marks:
        ask(_MARK_EDGES, {"rows": marks})
    return edges


def _alike(one: StoredNode | StoredEdge, other: StoredNode | StoredEdge) -> bool:
    if repr(one.properties) == repr(other.properties):
        return isinstance(one, StoredEdge) or one.labels == other.labels or one.node().labels == other.node().labels  # type: ignore[union-attr]
    mine, its = (each.edge() if isinstance(each, StoredEdge) else each.node() for each in (one, other))
    return same_value(mine.properties, its.properties) and getattr(mine, "labels", ()) == getattr(its, "labels", ())
