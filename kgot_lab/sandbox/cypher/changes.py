"""Convert the records that a statement touched to claims of what changed: nodes by id, edges by identity.

A node that a statement creates under an existing id is merged into that node, as are its edges. A node that
loses its id keeps it. Nothing depends on the order in which an engine lists new elements: on a server the
same statement leads to the same graph. Runs inside the sandbox: imports the standard library and modules of
the sandbox only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from kgot_lab.sandbox.cypher.engine import Database, EdgeRecord, NodeRecord
from kgot_lab.sandbox.cypher.loading import Contents, EdgeGroup
from kgot_lab.sandbox.cypher.mapping import (
    conflicting_property,
    edge_properties,
    node_properties,
    ordered_labels,
    own_id,
    own_key,
    unused_key,
)
from kgot_lab.sandbox.worker.values import ElementChange, RefusedValue, canonical_json, json_value, unused_id

# One statement in ArcadeDB: a transaction that is always rolled back, its rows, and the records it touched.
#
# The engine's record events report what a statement touched, so the cost depends on the statement and not on
# the graph. Only Java collects them: a listener written in Python would be called for every record. Runs
# inside the sandbox: imports the standard library and modules of the sandbox only.

_LANGUAGE = "opencypher"


class TimedOut(Exception):
    """A statement exceeded its time limit."""


class Spent(Exception):
    """A statement committed some of its changes, so the database no longer equals the parent's graph."""


class WrongKind(RefusedValue):
    """A statement names a type that the engine cannot represent.

    It is a relation with the name of a label, or contains characters that are not accepted.
    """


@dataclass(frozen=True)
class TouchedRecords:
    """The effects of a statement: existing records, deleted records, and which of the former are new."""

    nodes: list[NodeRecord]
    edges: list[EdgeRecord]
    gone_nodes: list[str]
    gone_edges: list[EdgeRecord]
    new: frozenset[str]


class CypherStatements:
    """Runs the statements of one database, one at a time."""

    def __init__(self, database: Database):
        self._database, self._db = database, database.db
        self._timeout = database.java("com.arcadedb.GlobalConfiguration").COMMAND_TIMEOUT
        self._events: dict[str, Any] = {}
        self._deadline = 0.0
        self._listeners = [self._make_listener(kind) for kind in ("Create", "Update", "Delete")]

    @contextmanager
    def rolled_back(self, seconds: float) -> Iterator[None]:
        """Open a transaction for one statement that is limited to `seconds` and always rolled back.

        Raises RefusedValue with the engine's message, WrongKind, TimedOut, or Spent, after which the process
        must end.
        """
        events, self._deadline = self._db.getEvents(), time.monotonic() + seconds
        milliseconds = self._database.java("java.lang.Long")(max(1, int(seconds * 1000)))
        self._db.getConfiguration().setValue(self._timeout, milliseconds)
        for listener in self._listeners:
            events.registerListener(listener)
        self._db.begin()
        try:
            yield
            if not self._db.isTransactionActive():
                raise Spent("the statement ended its own transaction")
        except self._database.throwable as error:
            raise _translate_error(error) from None
        finally:
            while self._db.isTransactionActive():
                self._db.rollback()
            for listener in self._listeners:
                events.unregisterListener(listener)
            for records in self._events.values():
                records.clear()

    def run(self, statement: str, *, writing: bool) -> Iterator[dict[str, Any]]:
        """Run a statement and yield its rows lazily, with nodes and edges as records.

        Raises RefusedValue for a write that changes indexes or constraints.
        """
        if writing and self._db.getQueryEngine(_LANGUAGE).analyze(statement).isDDL():
            raise RefusedValue("a statement may not change indexes or constraints")
        rows = (self._db.command if writing else self._db.query)(_LANGUAGE, statement)
        while rows.hasNext():
            row = rows.next()
            yield {str(name): self._database.value(row.getProperty(name)) for name in row.getPropertyNames()}

    def touched(self) -> TouchedRecords:
        """Return the records that the statement created, updated and deleted, while its transaction is open.

        Raises TimedOut after the deadline.
        """
        created, updated, deleted = (self._touched_elements(kind) for kind in ("Create", "Update", "Delete"))
        both = (created, deleted)
        creation_counts, deletion_counts = (Counter(rid for rid, _ in records) for records in both)
        first_deleted = dict(reversed(deleted))
        done = TouchedRecords([], [], [], [], frozenset(creation_counts))
        for rid in dict.fromkeys(rid for rid, _ in (*created, *updated, *deleted)):
            if time.monotonic() > self._deadline:
                raise TimedOut
            exists = rid not in deletion_counts or self._database.exists(rid)
            # it existed before: the engine reuses record numbers
            if deletion_counts[rid] + exists > creation_counts[rid] and rid in deletion_counts:
                if isinstance(first_deleted[rid], self._database.vertex):
                    done.gone_nodes.append(rid)
                else:
                    done.gone_edges.append(self._database.edge_of(first_deleted[rid], only="_key"))
            if exists:
                record = self._database.record(rid)
                if isinstance(record, self._database.vertex):
                    done.nodes.append(self._database.node_of(record))
                else:
                    done.edges.append(self._database.edge_of(record))
        return done

    def _touched_elements(self, kind: str) -> list[tuple[str, Any]]:
        """Return the nodes and edges among the records of one kind of event.

        The engine's other records are internal to it.
        """
        kinds = (self._database.vertex, self._database.link)
        return [(str(r.getIdentity()), r) for r in self._events[kind] if isinstance(r, kinds)]

    def _make_listener(self, kind: str) -> Any:
        """Create a listener that appends records to a Java list."""
        java = self._database.java
        lists, types = java("java.util.ArrayList"), java("java.lang.invoke.MethodType")
        listener = java(f"com.arcadedb.event.AfterRecord{kind}Listener")
        record = java("com.arcadedb.database.Record")
        self._events[kind] = lists()
        appends = types.methodType(java("java.lang.Boolean").TYPE, java("java.lang.Object").class_)
        add = java("java.lang.invoke.MethodHandles").publicLookup().findVirtual(lists.class_, "add", appends)
        handle_type = types.methodType(java("java.lang.Void").TYPE, record.class_)
        handle = add.bindTo(self._events[kind]).asType(handle_type)
        return java("java.lang.invoke.MethodHandleProxies").asInterfaceInstance(listener.class_, handle)


_WRONG_KIND_MESSAGES = (
    "is not an edge type",
    "is not a vertex type",
    "cannot be used as a ",
    "Cannot create bucket",
    "File name too long",
    "Invalid bucket name",
    "non valid characters",
)


def _translate_error(error: Any) -> Exception:
    """Translate a Java error, using the innermost message, which is the most specific."""
    chain = [error]
    while chain[-1].getCause() is not None:
        chain.append(chain[-1].getCause())
    names = [str(cause.getClass().getSimpleName()) for cause in chain]
    if "TimeoutException" in names:
        return TimedOut()
    if "OutOfMemoryError" in names:
        return RefusedValue("the statement needs more memory than it may have")
    messages = [str(cause.getMessage()) for cause in reversed(chain) if cause.getMessage() is not None]
    is_wrong_kind = any(phrase in message for phrase in _WRONG_KIND_MESSAGES for message in messages)
    return (WrongKind if is_wrong_kind else RefusedValue)(messages[0] if messages else names[-1])


_Identity = tuple[str, str, str, str]


class CypherChanges:
    """The claims of one statement, read while its transaction is open.

    Raises RefusedValue if its effects cannot be represented in a graph.
    """

    def __init__(
        self, database: Database, known: Contents, touched: TouchedRecords, name: Callable[[str], str]
    ):
        self._database, self._known, self._touched, self._name = database, known, touched, name
        self._ids: dict[str, str] = {}  # the current ids of nodes, by record number, if changed
        self._made: dict[str, list[str]] = {}  # record numbers of nodes created under an id, by id
        self._said: dict[str, dict[str, Any]] = {}  # the properties with which those were created
        # record numbers of nodes created under an id that existed, or that others got as well
        self._again: set[str] = set()
        self._bases: dict[str, list[str]] = {}  # labels before new nodes of the id added theirs
        self.nodes: dict[str, ElementChange] = {}
        self.edges: dict[_Identity, ElementChange] = {}
        renamed = self._find_nodes()
        self._find_edges([edge for rid in renamed for edge in database.edges_at(rid)])

    def claims(self) -> dict[str, list[ElementChange]]:
        """Return all claims, removals included."""
        return {"nodes": list(self.nodes.values()), "edges": list(self.edges.values())}

    def id(self, rid: str) -> str:
        """Return the id of a node by its record number."""
        return self._ids.get(rid) or self._known.ids[rid]

    # --- nodes ---

    def _find_nodes(self) -> list[str]:
        """Record the changes of nodes as claims, and return the record numbers of those whose id changed."""
        deleted = [self._known.ids[rid] for rid in self._touched.gone_nodes if rid in self._known.ids]
        self.nodes.update({id: [id] for id in deleted})
        known = [node for node in self._touched.nodes if node.rid in self._known.ids]
        existing = [node for node in known if node.rid not in self._touched.new]
        renamed = []
        for node in existing:
            old_id = self._known.ids[node.rid]
            id = own_id(node.stored) or old_id
            if id != old_id:
                if self._exists(id):
                    raise RefusedValue(f"two nodes would have the id {id!r}; give it to one of them only")
                self.nodes[old_id] = [old_id]
                renamed.append(node.rid)
            self._record_change(id, node, old_id)
        created = [node for node in self._touched.nodes if node.rid in self._touched.new]
        for node in created:
            if id := own_id(node.stored):
                self._record_created(id, node)
        nameless, numbers = (node for node in created if not own_id(node.stored)), dict[str, int]()
        for node in sorted(
            nameless, key=lambda node: canonical_json([self._labels(node, ""), node_properties(node.stored)])
        ):
            id = unused_id(self._labels(node, ""), {**node.stored, "id": None}, self._exists, numbers)
            self._record_change(id, node, id)
        return renamed

    def _record_created(self, id: str, node: NodeRecord) -> None:
        """Record a new node that has its own id as a claim.

        Raises RefusedValue if the statement creates it twice with different values.
        """
        first_properties, properties = self._said.setdefault(id, {}), node_properties(node.stored)
        if name := conflicting_property(first_properties, properties):
            problem = f"the statement makes the node {id!r} twice, with different values of {name!r}"
            raise RefusedValue(f"{problem}; make it once")
        first_properties.update(properties)
        exists, created = self._exists(id), self._made.setdefault(id, [])
        created.append(node.rid)
        if exists:
            self._again.update(created)
        else:
            self._bases[id] = []
        self._record_change(id, node, id, adds=exists)

    def _exists(self, id: str) -> bool:
        return len(self.nodes[id]) > 1 if id in self.nodes else id in self._known.rids

    def _labels(self, node: NodeRecord, before: str) -> list[str]:
        labels = [self._name(label) for label in node.labels]
        recorded = self._known.labels.get(before)
        return ordered_labels(labels, {"_labels": recorded, **node.stored} if recorded else node.stored)

    def _record_change(self, id: str, node: NodeRecord, before: str, *, adds: bool = False) -> None:
        labels = self._labels(node, before)
        properties = _check_properties(node_properties(node.stored), f"of {id!r}")
        if adds:
            _, old_labels, old_properties = self.nodes.get(id) or self._stored_change(id)
            base_labels = self._bases.setdefault(id, old_labels)
            labels = [*base_labels, *sorted({*old_labels, *labels} - set(base_labels))]
            properties = {**old_properties, **properties}
        self.nodes.pop(id, None)  # so that it comes after the removal of the element that had the id before
        self.nodes[id] = [id, labels, properties]
        self._ids[node.rid] = id

    def _stored_change(self, id: str) -> ElementChange:
        node = self._database.node(self._known.rids[id])
        return [id, self._labels(node, id), node_properties(node.stored)]

    # --- edges ---

    def _find_edges(self, moved: Iterable[EdgeRecord]) -> None:
        """Record the changes of edges as claims.

        Edges between the same two nodes are settled together, since they differ only by their keys.
        """
        touched = {edge.rid: edge for edge in (*self._touched.edges, *moved)}
        existing = [edge for edge in touched.values() if edge.rid not in self._touched.new]
        deleted: dict[EdgeGroup, list[EdgeRecord]] = {}
        rerouted = (edge for edge in existing if self._between(edge, before=True) != self._between(edge))
        for edge in (*self._touched.gone_edges, *rerouted):
            deleted.setdefault(self._between(edge, before=True), []).append(edge)
        present: dict[EdgeGroup, list[EdgeRecord]] = {}
        for edge in touched.values():
            present.setdefault(self._between(edge), []).append(edge)
        for between in {**deleted, **present}:
            self._assign_keys(between, deleted.get(between, []), present.get(between, []))

    def _between(self, edge: EdgeRecord, *, before: bool = False) -> EdgeGroup:
        old_ids = self._known.ids if before else {}
        ends = (edge.source, edge.target)
        source, target = (old_ids[end] if end in old_ids else self.id(end) for end in ends)
        return source, self._name(edge.type), target

    def _assign_keys(self, between: EdgeGroup, deleted: list[EdgeRecord], present: list[EdgeRecord]) -> None:
        """Assign a key to each edge between two nodes: its own, or its previous one, or the next free one."""
        old_keys = self._known.keys.get(between, ())
        created = [e for e in present if e.rid in self._touched.new or e.source not in self._known.ids]
        existing = [edge for edge in present if edge not in created]
        created.sort(key=lambda edge: canonical_json(edge_properties(edge.stored)))
        is_single = old_keys in ((), ("",))  # one edge without its own key, the usual case
        keys_left = (
            list(old_keys[len(deleted) :])
            if is_single
            else [key for key in old_keys if key not in [own_key(edge.stored) for edge in deleted]]
        )
        if is_single and any(self._between(edge, before=True) == between for edge in existing):
            keys_left = []  # it is there, perhaps under another key
        edge_by_key = {own_key(edge.stored): edge for edge in existing if is_single or "_key" in edge.stored}
        # a statement may have changed keys, or replaced all properties including the key
        if existing and not is_single:
            rids = {edge.rid for edge in present}
            all_edges = self._database.edges_between(present[0].type, present[0].source, present[0].target)
            other_keys = {own_key(edge.stored) for edge in all_edges if edge.rid not in rids}
            free_keys = [key for key in keys_left if key not in other_keys and key not in edge_by_key]
            unassigned = [edge for edge in existing if edge not in edge_by_key.values()]
            edge_by_key.update(zip(free_keys, unassigned, strict=False))
            keys_left = [key for key in keys_left if key in other_keys or key in edge_by_key]
        for edge in created:
            key = own_key(edge.stored)
            # it could not see what it repeats
            if key in {*keys_left, *edge_by_key} and not self._again.isdisjoint((edge.source, edge.target)):
                old = edge_by_key.get(key) or self._edge_before(between, edge.type, key)
                edge_by_key[key] = replace(edge, stored={**old.stored, **edge.stored})
            else:
                edge_by_key[unused_key(key, {*keys_left, *edge_by_key})] = edge
        source, type, target = between
        for key in old_keys:
            if key not in keys_left and key not in edge_by_key:
                self.edges[(*between, key)] = [source, type, target, key]
        for key, edge in edge_by_key.items():
            properties = _check_properties(edge_properties(edge.stored), f"of {source} -> {target}")
            self.edges[(*between, key)] = [source, type, target, key, properties]

    def _edge_before(self, between: EdgeGroup, type: str, key: str) -> EdgeRecord:
        """Return an edge that existed before and still does."""
        found = self._database.edges_between(type, self._known.rids[between[0]], self._known.rids[between[2]])
        return next(edge for edge in found if own_key(edge.stored) == key)


def _check_properties(properties: dict[str, Any], of: str) -> dict[str, Any]:
    return {name: json_value(value, f"property {name!r} {of}") for name, value in properties.items()}
