"""Write to a namespace of a Bolt server: apply diffs in batches, and lock the namespace."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from kgot_lab.errors import BadInput, ServerLost, StoreUnavailable
from kgot_lab.io.processes import watchdog
from kgot_lab.sandbox.cypher.mapping import (
    backticked,
    to_stored_edge,
    to_stored_node,
)
from kgot_lab.stores.cypher import dump
from kgot_lab.stores.cypher.connection import (
    BoltLink,
    RunQuery,
    StatementTimeout,
    WriteConflict,
    server_message,
)
from kgot_lab.types import Diff, Edge, Node

if TYPE_CHECKING:
    from neo4j import Transaction

BATCH = 5_000  # rows per statement

_Rows = list[list[Any]]

_DELETE_EDGES = (
    "UNWIND $rows AS row MATCH (a)-[r]->() WHERE elementId(a) = row[0] AND elementId(r) = row[1] DELETE r"
)
_DELETE_NODES = "UNWIND $rows AS row MATCH (n) WHERE elementId(n) = row DELETE n"
_CREATE_NODES = "UNWIND $rows AS row CREATE (n{labels}) SET n = row RETURN n.id, elementId(n), labels(n)"
_CREATE_EDGES = (
    "UNWIND $rows AS row MATCH (a) WHERE elementId(a) = row[0] MATCH (b) WHERE elementId(b) = row[1] "
    "CREATE (a)-[r:{type}]->(b) SET r = row[2] RETURN type(r), count(r)"
)
_CHANGE_NODES = "UNWIND $rows AS row MATCH (n) WHERE elementId(n) = row[0] SET n = row[1]"
_CHANGE_EDGES = "UNWIND $rows AS row MATCH (a)-[r]->() WHERE elementId(a) = row[0] AND elementId(r) = row[1] SET r = row[2]"
_CHANGE_LABELS = "UNWIND $rows AS row MATCH (n) WHERE elementId(n) = row {change}"


class DiffApplication:
    """The application of one diff to the database.

    `run_query` runs queries inside its transaction, `run_outside` outside, where a refusal does no harm.
    """

    def __init__(self, run_query: RunQuery, run_outside: RunQuery, namespace: str):
        self._run_query = run_query
        self._run_outside = run_outside
        self._namespace = namespace

    def run(self, diff: Diff) -> None:
        """Check a diff against the namespace and apply it.

        Raises BadInput if it does not fit.
        """
        before = dump.read_dump(self._run_query)
        before.graph().check(diff)
        self._element_ids = {id: node.element_id for id, node in before.nodes.items()}
        self._edge_element_ids = {identity: edge.element_id for identity, edge in before.edges.items()}
        self._remove(diff)
        self._add_nodes(diff.added_nodes)
        self._add_edges(diff.added_edges)
        self._change(diff)

    # --- apply ---

    def _remove(self, diff: Diff) -> None:
        ids, edge_ids = self._element_ids, self._edge_element_ids
        rows = [[ids[edge.source], edge_ids[edge.identity]] for edge in diff.removed_edges]
        self._run_batched(_DELETE_EDGES, rows)
        self._run_batched(_DELETE_NODES, [ids[node.id] for node in diff.removed_nodes])

    def _add_nodes(self, nodes: Iterable[Node]) -> None:
        groups: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
        for node in nodes:
            groups[tuple(sorted(set(node.labels)))].append(self._node_record(node))
        for names, rows in groups.items():
            labels = list(names)
            query = _CREATE_NODES.format(labels=self._label_pattern(labels))
            created = self._run_batched(query, rows, f"the labels {', '.join(labels) or '(none)'}")
            self._element_ids.update({id: element_id for id, element_id, _ in created})
            for stored in created[:1]:
                _require_same(sorted(stored[2]), labels, "the labels")

    def _add_edges(self, edges: Iterable[Edge]) -> None:
        groups: dict[str, _Rows] = defaultdict(list)
        for edge in edges:
            ends = self._element_ids[edge.source], self._element_ids[edge.target]
            groups[edge.type].append([*ends, self._edge_record(edge)])
        for type, rows in groups.items():
            query = _CREATE_EDGES.format(type=self._quoted_name(type))
            created = self._run_batched(query, rows, f"the relation {type!r}")
            _require_same({stored_type for stored_type, _ in created}, {type}, "the relation")
            _require_same(sum(number for _, number in created), len(rows), "the number of edges")

    def _change(self, diff: Diff) -> None:
        """Update the changed edges and nodes.

        Labels are changed last, because a server may move a node when its labels change.
        """
        rows = [
            [self._element_ids[edge.source], self._edge_element_ids[edge.identity], self._edge_record(edge)]
            for _, edge in diff.changed_edges
        ]
        self._run_batched(_CHANGE_EDGES, rows)
        rows = [[self._element_ids[node.id], self._node_record(node)] for _, node in diff.changed_nodes]
        self._run_batched(_CHANGE_NODES, rows)
        groups: dict[tuple[tuple[str, ...], ...], list[str]] = defaultdict(list)
        for before, after in diff.changed_nodes:
            new, old = set(after.labels) - set(before.labels), set(before.labels) - set(after.labels)
            if new or old:
                groups[tuple(sorted(new)), tuple(sorted(old))].append(self._element_ids[after.id])
        for label_changes, element_ids in groups.items():
            named = zip(("SET", "REMOVE"), label_changes, strict=True)
            parts = [f"{verb} n{self._label_pattern(names)}" for verb, names in named if names]
            change_labels = _CHANGE_LABELS.format(change=" ".join(parts))
            self._run_batched(change_labels, element_ids, f"the labels {', '.join(label_changes[0])}")

    def _run_batched(self, query: str, rows: list[Any], subject: str = "") -> _Rows:
        """Run a statement over all rows, in batches.

        Raises BadInput, naming what the server does not accept.
        """
        from neo4j.exceptions import Neo4jError

        try:
            return [row for batch in _batches(rows) for row in self._run_query(query, {"rows": batch})]
        except Neo4jError as error:
            if not subject or error.is_retryable():
                raise
            problem = f"the server does not take {subject}, or what lies there"
            raise BadInput(f"{problem}: {server_message(error)}") from None

    def _label_pattern(self, labels: Iterable[str]) -> str:
        return "".join(f":{self._quoted_name(label)}" for label in labels)

    def _quoted_name(self, name: str) -> str:
        """Return a label or relation in backticks.

        Servers differ in what a backslash means there, so spellings of a name with a backslash are tried out.
        Raises BadInput if none of them works.
        """
        if "\\" not in name:
            return backticked(name)
        for spelling in (name, name.replace("\\u", "\\u005Cu"), name.replace("\\", "\\\\")):
            if self._server_reads(spelling, name):
                return backticked(spelling)
        raise BadInput(f"this server cannot be told the name {name!r}; leave the backslash out")

    def _server_reads(self, spelling: str, name: str) -> bool:
        from neo4j.exceptions import ClientError

        try:
            return self._run_outside(f"RETURN {{{backticked(spelling)}: 1}} AS map", {}) == [[{name: 1}]]
        except ClientError:
            return False

    def _node_record(self, node: Node) -> dict[str, Any]:
        stored = to_stored_node(node.id, node.labels, node.properties)
        return {**stored, "_run": self._namespace, "_kept": True}

    def _edge_record(self, edge: Edge) -> dict[str, Any]:
        return {**to_stored_edge(edge.key, edge.properties), "_run": self._namespace}


def _batches(rows: list[Any]) -> Iterator[list[Any]]:
    return (rows[start : start + BATCH] for start in range(0, len(rows), BATCH))


def _require_same(stored: object, expected: object, subject: str) -> None:
    if stored != expected:
        raise BadInput(f"the server keeps {subject} {expected!r} as {stored!r}, so that nothing was changed")


# Writers of one namespace exclude each other by a lock node, because a server cannot lock a node that does not
# exist yet.
#
# Each namespace has a node of its own without the namespace's mark, so that no statement matches it. A write
# sets it before it reads anything. A server with locks then blocks the next writer until the commit. One
# without (ArcadeDB) refuses the later of two commits, and that write is repeated. If two stores created such
# a node at the same time, both nodes are set from then on: every writer sees at least its own node and all
# that existed before, so any two writers have one in common.

_MATCH_LOCK = "MATCH (w:KgotLabWriters {of: $run}) WHERE w._run IS NULL "  # else a statement could make one that is another namespace's
_SET_LOCK = _MATCH_LOCK + "SET w.written = w.written + $step RETURN w.written"
_READ_LOCK = _MATCH_LOCK + "RETURN w.written"
_CREATE_LOCK = "CREATE (:KgotLabWriters {of: $run, written: $start})"
_DELETE_LOCK = _MATCH_LOCK + "DELETE w"
_LOCK_TIMEOUT = 60.0  # seconds for another writer's transaction to end


class LockedTransaction(NamedTuple):
    """A write transaction with exclusive access to a namespace: if another writer interferes it cannot
    commit.

    `before` holds the values of the lock nodes that it replaced.
    """

    transaction: Transaction
    before: list[int]


class WriteLock:
    """The lock that the writers of a namespace hold one at a time."""

    def __init__(self, link: BoltLink, namespace: str):
        self._link, self._namespace = link, namespace

    @contextmanager
    def acquire(self, seconds: float | None = None) -> Iterator[LockedTransaction]:
        """Open a write transaction (see `BoltLink.write_transaction`) that begins by taking the lock.

        Raises StoreUnavailable, with nothing changed, if the lock cannot be taken. Raises WriteConflict instead
        of an error that may come from another writer's change seen in the middle of this one's.
        """
        while True:
            with self._link.write_transaction(seconds) as transaction:
                if before := self._set_lock(transaction):
                    locked = LockedTransaction(transaction, before)
                    with self._detect_conflict(locked):
                        yield locked
                    return
                transaction.rollback()
            # its own transaction, so that others see the node before this one writes
            with self._link.write_transaction() as transaction:
                start = random.getrandbits(40)  # random, so that it is never mistaken for a deleted one
                transaction.run(_CREATE_LOCK, run=self._namespace, start=start).consume()

    def require_unwritten(self, locked: LockedTransaction) -> None:
        """Raise WriteConflict if another writer committed since the lock was taken.

        Transactions that are still open do not count.
        """
        rows = self._link.run_query(_READ_LOCK, {"run": self._namespace})  # changed by each committed write
        if sorted(number for (number,) in rows) != locked.before:
            raise WriteConflict

    def delete_lock(self, locked: LockedTransaction) -> None:
        """Delete the lock nodes when this transaction commits."""
        locked.transaction.run(_DELETE_LOCK, run=self._namespace).consume()

    @contextmanager
    def _detect_conflict(self, locked: LockedTransaction) -> Iterator[None]:
        from neo4j.exceptions import DriverError

        try:
            yield
        except (DriverError, StatementTimeout, ServerLost):  # the server may be away
            raise
        except Exception:
            self.require_unwritten(locked)
            raise

    def _set_lock(self, transaction: Transaction) -> list[int]:
        from neo4j.exceptions import Neo4jError

        step = random.randrange(1, 1 << 20)  # random, so that two writers do not set the same value
        with watchdog(_LOCK_TIMEOUT, self._link.cut) as timed_out:
            try:
                locked = transaction.run(_SET_LOCK, run=self._namespace, step=step).values()
                return sorted(number - step for (number,) in locked)
            except Exception as error:
                # the namespace is being deleted
                if isinstance(error, Neo4jError) and (error.code or "").endswith(".EntityNotFound"):
                    raise WriteConflict from error
                if not timed_out.is_set():
                    raise
        raise StoreUnavailable(
            f"{self._link.name} did not let us write to the namespace {self._namespace!r} for {_LOCK_TIMEOUT:g} s: another writer "
            "keeps it, or the server hangs; nothing was changed, so try again later"
        )
