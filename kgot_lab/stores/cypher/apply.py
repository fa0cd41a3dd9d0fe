"""Write to a namespace of a Bolt server: apply diffs in batches, find additions, take turns."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from kgot_lab.errors import BadInput, ServerLost, StoreUnavailable
from kgot_lab.graph.changes import Identity, Truth
from kgot_lab.io.processes import ended_after
from kgot_lab.sandbox.cypher.mapping import (
    backticked,
    edge_properties,
    node_properties,
    ordered_labels,
    own_key,
    to_stored_edge,
    to_stored_node,
)
from kgot_lab.stores.cypher.connection import Ask, BoltLink, Late, Overtaken, bolt_reason
from kgot_lab.stores.cypher.dump import MARK_NODES, BoltRow, StoredNode, check_texts, ids_of, timeless
from kgot_lab.types import Diff, Edge, Node

if TYPE_CHECKING:
    from neo4j import SummaryCounters, Transaction

BATCH = 5_000  # rows per statement

Locate = Callable[[Iterable[str]], dict[str, str]]  # returns the element ids of the nodes that exist
_Rows = list[list[Any]]

_NODES = "UNWIND $rows AS row MATCH (n) WHERE elementId(n) = row RETURN n.id, labels(n), properties(n)"
_BETWEEN = (
    "UNWIND $rows AS row MATCH (a)-[r]->(b) WHERE elementId(a) = row[0] AND type(r) = row[1] AND elementId(b) = row[2] "
    "RETURN a.id, type(r), b.id, properties(r), elementId(r)"
)
_TOUCHING = (
    "UNWIND $rows AS row MATCH (n)-[r]-({_run: $run}) WHERE elementId(n) = row "
    "RETURN startNode(r).id, type(r), endNode(r).id, properties(r), elementId(r)"
)
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


class Application:
    """The application of one diff to the database.

    `ask` runs queries inside its transaction, `aside` outside, where a refusal does no harm.
    """

    def __init__(self, ask: Ask, aside: Ask, locate: Locate, namespace: str):
        self._ask, self._aside, self._locate, self._namespace = ask, aside, locate, namespace
        self._places: dict[str, str] = {}  # element ids of nodes
        self._edge_places: dict[Identity, str] = {}
        self.moved: set[str] = set()  # nodes whose element id may have changed

    def run(self, diff: Diff) -> dict[str, str]:
        """Check a diff, apply it, and return the element ids of its nodes.

        Raises BadInput if it does not fit.
        """
        check_texts(
            (*diff.added_nodes, *(after for _, after in diff.changed_nodes)),
            (*diff.added_edges, *(after for _, after in diff.changed_edges)),
        )
        self._check(diff)
        self._remove(diff)
        self._add_nodes(diff.added_nodes)
        self._add_edges(diff.added_edges)
        self._change(diff)
        return self._places

    # --- check ---

    def _check(self, diff: Diff) -> None:
        """Check the elements that the diff touches by the rules of `Truth.check`."""
        nodes, edges = _touched(diff)
        new = {node.id for node in diff.added_nodes}
        ends = {end for identity in edges for end in (identity[0], identity[2])}
        self._places = self._locate(dict.fromkeys(chain(nodes, ends)))
        known = Truth()
        for place_of_all in _batches(
            [self._places[id] for id in dict.fromkeys(chain(nodes, ends)) if id in self._places]
        ):
            for id, labels, stored in self._ask(_NODES, {"rows": place_of_all}):
                known.nodes[id] = Node(
                    id, tuple(ordered_labels(labels, stored)), node_properties(timeless(stored))
                )
                known.incident[id] = {}
        old = [identity for identity in edges if identity[0] not in new and identity[2] not in new]
        between = {
            identity[:3]: None
            for identity in old
            if identity[0] in known.nodes and identity[2] in known.nodes
        }
        wanted = [[self._places[source], type, self._places[target]] for source, type, target in between]
        gone = [self._places[node.id] for node in diff.removed_nodes if node.id in known.nodes]
        for query, rows in ((_BETWEEN, wanted), (_TOUCHING, gone)):
            for batch in _batches(rows):
                for row in self._ask(query, {"rows": batch}):
                    self._learn(known, row)
        known.check(diff)

    def _learn(self, known: Truth, row: list[Any]) -> None:
        source, type, target, stored, place = row
        edge = Edge(source, type, target, edge_properties(timeless(stored)), own_key(stored))
        self._edge_places[edge.identity] = place
        known.edges[edge.identity] = edge
        for end in (source, target):
            known.incident.setdefault(end, {})[edge.identity] = None

    # --- apply ---

    def _remove(self, diff: Diff) -> None:
        self._all(
            _DELETE_EDGES,
            [[self._places[edge.source], self._edge_places[edge.identity]] for edge in diff.removed_edges],
        )
        self._all(_DELETE_NODES, [self._places.pop(node.id) for node in diff.removed_nodes])
        self.moved |= {node.id for node in diff.removed_nodes}

    def _add_nodes(self, nodes: Iterable[Node]) -> None:
        groups: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
        for node in nodes:
            groups[tuple(sorted(set(node.labels)))].append(self._stored(node))
        for names, rows in groups.items():
            labels = list(names)
            made = self._all(
                _CREATE_NODES.format(labels=self._pattern(labels)),
                rows,
                f"the labels {', '.join(labels) or '(none)'}",
            )
            self._places.update({id: place for id, place, _ in made})
            for kept in made[:1]:
                _require_same(sorted(kept[2]), labels, "the labels")

    def _add_edges(self, edges: Iterable[Edge]) -> None:
        groups: dict[str, _Rows] = defaultdict(list)
        for edge in edges:
            groups[edge.type].append(
                [self._places[edge.source], self._places[edge.target], self._stored_edge(edge)]
            )
        for type, rows in groups.items():
            made = self._all(_CREATE_EDGES.format(type=self._spelt(type)), rows, f"the relation {type!r}")
            _require_same({kept for kept, _ in made}, {type}, "the relation")
            _require_same(sum(number for _, number in made), len(rows), "the number of edges")

    def _change(self, diff: Diff) -> None:
        """Update the changed edges and nodes.

        Labels are changed last, because a server may move a node when its labels change.
        """
        rows = [
            [self._places[edge.source], self._edge_places[edge.identity], self._stored_edge(edge)]
            for _, edge in diff.changed_edges
        ]
        self._all(_CHANGE_EDGES, rows)
        self._all(
            _CHANGE_NODES, [[self._places[node.id], self._stored(node)] for _, node in diff.changed_nodes]
        )
        groups: dict[tuple[tuple[str, ...], ...], list[str]] = defaultdict(list)
        for before, after in diff.changed_nodes:
            new, old = set(after.labels) - set(before.labels), set(before.labels) - set(after.labels)
            if new or old:
                groups[tuple(sorted(new)), tuple(sorted(old))].append(self._places.pop(after.id))
                self.moved.add(after.id)
        for changed, places in groups.items():
            parts = [
                f"{verb} n{self._pattern(names)}"
                for verb, names in zip(("SET", "REMOVE"), changed, strict=True)
                if names
            ]
            self._all(
                _CHANGE_LABELS.format(change=" ".join(parts)), places, f"the labels {', '.join(changed[0])}"
            )

    def _all(self, query: str, rows: list[Any], what: str = "") -> _Rows:
        """Run a statement over all rows, in batches.

        Raises BadInput, naming what the server does not accept.
        """
        from neo4j.exceptions import Neo4jError

        try:
            return [row for batch in _batches(rows) for row in self._ask(query, {"rows": batch})]
        except Neo4jError as error:
            if not what or error.is_retryable():
                raise
            raise BadInput(
                f"the server does not take {what}, or what lies there: {bolt_reason(error)}"
            ) from None

    def _pattern(self, labels: Iterable[str]) -> str:
        return "".join(f":{self._spelt(label)}" for label in labels)

    def _spelt(self, name: str) -> str:
        """Return a label or relation in backticks.

        Servers differ in what a backslash means there, so spellings of a name with a backslash are tried out.
        Raises BadInput if none of them works.
        """
        if "\\" not in name:
            return backticked(name)
        for spelling in (name, name.replace("\\u", "\\u005Cu"), name.replace("\\", "\\\\")):
            if self._reads_as(spelling, name):
                return backticked(spelling)
        raise BadInput(f"this server cannot be told the name {name!r}; leave the backslash out")

    def _reads_as(self, spelling: str, name: str) -> bool:
        from neo4j.exceptions import ClientError

        try:
            return self._aside(f"RETURN {{{backticked(spelling)}: 1}} AS map", {}) == [[{name: 1}]]
        except ClientError:
            return False

    def _stored(self, node: Node) -> dict[str, Any]:
        return {
            **to_stored_node(node.id, node.labels, node.properties),
            "_run": self._namespace,
            "_kept": True,
        }

    def _stored_edge(self, edge: Edge) -> dict[str, Any]:
        return {**to_stored_edge(edge.key, edge.properties), "_run": self._namespace}


def _touched(diff: Diff) -> tuple[list[str], list[Identity]]:
    nodes = chain(diff.added_nodes, diff.removed_nodes, (before for before, _ in diff.changed_nodes))
    edges = chain(diff.added_edges, diff.removed_edges, (before for before, _ in diff.changed_edges))
    return [node.id for node in nodes], [edge.identity for edge in edges]


def _batches(rows: list[Any]) -> Iterator[list[Any]]:
    return (rows[start : start + BATCH] for start in range(0, len(rows), BATCH))


def _require_same(kept: object, given: object, what: str) -> None:
    if kept != given:
        raise BadInput(f"the server keeps {what} {given!r} as {kept!r}, so that nothing was changed")


# What a statement added to a namespace, found without reading the rest if the server's counters prove that it
# did nothing else.
#
# Most statements that a model writes only add. New elements are not yet marked as known. If the counters show
# no removals, and no properties or labels set except those of new elements, nothing else has changed:
# everything that a new element has was set, and therefore counted.

_NEW_NODES = "MATCH (n {_run: $run}) WHERE n._kept IS NULL RETURN elementId(n), labels(n), properties(n)"
_NEW_EDGES = (
    "MATCH (a {_run: $run})-[r]->(b {_run: $run}) WHERE r._run IS NULL "
    "RETURN elementId(a), a.id, elementId(r), type(r), elementId(b), b.id, properties(r)"
)  # fmt: skip
_OF_ID = "MATCH (n {_run: $run}) WHERE $ids[n.id] IS NOT NULL RETURN count(n)"
_ALIKE = "UNWIND $rows AS row MATCH (a)-[r]->(b) WHERE elementId(a) = row[0] AND type(r) = row[1] AND elementId(b) = row[2] RETURN count(r)"
_MARK_EDGES = "UNWIND $rows AS row MATCH (a)-[r]->() WHERE elementId(a) = row[0] AND elementId(r) = row[1] SET r._run = $run"


class NotOnlyAdded(Exception):
    """A statement did more than add elements, or names of its additions depend on the rest of the graph."""


def counts_truly(transaction: Transaction) -> bool:
    """Return whether the server's counters report correctly what a statement changed.

    Creates a node as a test. The caller rolls it back.
    """
    counters = transaction.run("CREATE (n {a: 1}) SET n.b = 2").consume().counters
    return counters.nodes_created == 1 and counters.properties_set == 2


def added(ask: Ask, counters: SummaryCounters) -> tuple[Diff, dict[str, str]]:
    """Return the additions of the preceding statement as a diff, and the element id of each new node.

    Gives the new nodes and edges their ids and namespace marks. Raises NotOnlyAdded if the statement did
    anything else.
    """
    if not counters.contains_updates:
        return Diff(), {}
    _require(
        not counters.nodes_deleted and not counters.relationships_deleted and not counters.labels_removed
    )
    rows = (
        [BoltRow(place, labels, stored, []) for place, labels, stored in ask(_NEW_NODES, {})]
        if counters.nodes_created
        else []
    )
    edges = ask(_NEW_EDGES, {}) if counters.relationships_created else []
    _require((counters.nodes_created, counters.relationships_created) == (len(rows), len(edges)))
    _require(counters.labels_added == sum(len(row.labels) for row in rows))
    _require(
        counters.properties_set
        == sum(len(row.properties) for row in rows) + sum(len(edge[-1]) for edge in edges)
    )
    ids = ids_of(rows, {})
    _require(len(set(ids.values())) == len(ids))
    ends = {place: id for edge in edges for place, id in (edge[:2], edge[4:6])} | ids
    _mark_nodes(ask, ids)
    nodes = [StoredNode(ids[row.place], row.place, row.labels, row.properties).node() for row in rows]
    made = [Edge(ends[edge[0]], edge[3], ends[edge[4]], edge_properties(timeless(edge[6]))) for edge in edges]
    _mark_edges(ask, edges)
    return Diff(added_nodes=tuple(nodes), added_edges=tuple(made)), {id: place for place, id in ids.items()}


def _mark_nodes(ask: Ask, ids: dict[str, str]) -> None:
    """Assign ids to new nodes, which no other node may have."""
    if ids:
        ask(MARK_NODES, {"rows": [[place, {"id": id, "_kept": True}] for place, id in ids.items()]})
        _require(ask(_OF_ID, {"ids": dict.fromkeys(ids.values(), True)}) == [[len(ids)]])


def _mark_edges(ask: Ask, edges: list[list[Any]]) -> None:
    """Mark new edges, none of which may have the source, type and target of another."""
    if edges:
        alike = {(edge[0], edge[3], edge[4]) for edge in edges}
        _require(len(alike) == len(edges) and not any("_key" in edge[6] for edge in edges))
        _require(ask(_ALIKE, {"rows": [list(each) for each in alike]}) == [[len(edges)]])
        ask(_MARK_EDGES, {"rows": [[edge[0], edge[2]] for edge in edges]})


def _require(holds: bool) -> None:
    if not holds:
        raise NotOnlyAdded


# Writers of one namespace take turns, because a server cannot lock a node that does not exist yet.
#
# Each namespace has a node of its own without the namespace's mark, so that no statement matches it. A write
# sets it before it reads anything. A server with locks then blocks the next writer until the commit. One
# without (ArcadeDB) refuses the later of two commits, and that write is repeated. If two stores created such
# a node at the same time, both nodes are set from then on: every writer sees at least its own node and all
# that existed before, so any two writers have one in common.

_OWN = "MATCH (w:KgotLabWriters {of: $run}) WHERE w._run IS NULL "  # else a statement could make one that is another namespace's
_TAKE = _OWN + "SET w.written = w.written + $step RETURN w.written"
_READ = _OWN + "RETURN w.written"
_MAKE = "CREATE (:KgotLabWriters {of: $run, written: $start})"
_FORGET = _OWN + "DELETE w"
_WAIT = 60.0  # seconds for another writer's transaction to end


class Turn(NamedTuple):
    """A write transaction with exclusive access to a namespace: if another writer interferes it cannot
    commit.

    `before` holds the values of the turn nodes that it replaced.
    """

    transaction: Transaction
    before: list[int]


class Turns:
    """The turns in which the writers of a namespace write."""

    def __init__(self, link: BoltLink, namespace: str):
        self._link, self._namespace = link, namespace

    @contextmanager
    def taken(self, seconds: float | None = None) -> Iterator[Turn]:
        """Open a write transaction (see `BoltLink.writing`) that begins by taking the turn.

        Raises StoreUnavailable, with nothing changed, if the turn cannot be taken. Raises Overtaken instead
        of an error that may come from another writer's change seen in the middle of this one's.
        """
        while True:
            with self._link.writing(seconds) as transaction:
                if before := self._take(transaction):
                    turn = Turn(transaction, before)
                    with self._believed(turn):
                        yield turn
                    return
                transaction.rollback()
            with (
                self._link.writing() as transaction
            ):  # its own transaction, so that others see the node before this one writes
                start = random.getrandbits(40)  # random, so that it is never mistaken for a deleted one
                transaction.run(_MAKE, run=self._namespace, start=start).consume()

    def require_unwritten(self, turn: Turn) -> None:
        """Raise Overtaken if another writer committed since a turn was taken.

        Transactions that are still open do not count.
        """
        if self.written() != turn.before:
            raise Overtaken

    def written(self) -> list[int]:
        """Return the values of the turn nodes, which change with each committed write."""
        return sorted(number for (number,) in self._link.ask(_READ, {"run": self._namespace}))

    def forget(self, turn: Turn) -> None:
        """Delete the turn nodes when this turn's transaction commits."""
        turn.transaction.run(_FORGET, run=self._namespace).consume()

    @contextmanager
    def _believed(self, turn: Turn) -> Iterator[None]:
        from neo4j.exceptions import DriverError

        try:
            yield
        except (DriverError, Late, ServerLost):  # the server may be away
            raise
        except Exception:
            self.require_unwritten(turn)
            raise

    def _take(self, transaction: Transaction) -> list[int]:
        from neo4j.exceptions import Neo4jError

        step = random.randrange(1, 1 << 20)  # random, so that two writers do not set the same value
        with ended_after(_WAIT, self._link.cut) as late:
            try:
                return sorted(
                    number - step
                    for (number,) in transaction.run(_TAKE, run=self._namespace, step=step).values()
                )
            except Exception as error:
                # the namespace is being deleted
                if isinstance(error, Neo4jError) and (error.code or "").endswith(".EntityNotFound"):
                    raise Overtaken from error
                if not late.is_set():
                    raise
        raise StoreUnavailable(
            f"{self._link.name} did not let us write to the namespace {self._namespace!r} for {_WAIT:g} s: another writer keeps it, or the "
            "server hangs; nothing was changed, so try again later"
        )
