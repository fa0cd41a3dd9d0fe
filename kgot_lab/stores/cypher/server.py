"""A graph on a Bolt server such as Neo4j, written in Cypher with Neo4j's own driver."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from kgot_lab.errors import BadInput, QueryFailed, StoreUnavailable
from kgot_lab.graph.changes import inverse
from kgot_lab.graph.validation import fit_diff
from kgot_lab.sandbox import Calculator
from kgot_lab.sandbox.worker.values import RefusedValue
from kgot_lab.stores.cypher.apply import Application, NotOnlyAdded, Turn, Turns, added, counts_truly
from kgot_lab.stores.cypher.connection import GRACE, Ask, BoltLink
from kgot_lab.stores.cypher.dialect import (
    CYPHER,
    cypher_literal,
    refuse_unless_cypher_read,
    refuse_unless_cypher_write,
)
from kgot_lab.stores.cypher.dump import (
    BoltRow,
    Dump,
    DuplicateId,
    NotOurs,
    TooMuch,
    bolt_rows,
    check_texts,
    dump,
    dump_difference,
    merged_difference,
    rows_of,
    settle_ids,
)
from kgot_lab.stores.cypher.namespaces import Confined, bolt_namespaces, confined, delete_bolt_namespace
from kgot_lab.stores.cypher.patterns import Looking
from kgot_lab.stores.protocol import GraphSize, Scalar, Schema
from kgot_lab.stores.statements import LostStatements, require_statement, require_words
from kgot_lab.types import STATEMENT_SECONDS, Diff, Edge, Node, Rows

if TYPE_CHECKING:
    from neo4j import SummaryCounters, Transaction

    from kgot_lab.graph import PropertyGraph

_STRANGE = "MATCH (n {_run: $run}) WHERE n.id IS NULL RETURN count(n)"
_LEAVING = "MATCH (n {_run: $run})-[r]-(m) WHERE m._run IS NULL OR m._run <> $run RETURN count(r)"
_UNKNOWN = "MATCH (n {_run: $run}) WHERE n._kept IS NULL "  # written by stores of earlier versions
_NODES = "MATCH (n {_run: $run}) RETURN count(n)"
_EDGES = "MATCH ({_run: $run})-[r]->({_run: $run}) RETURN count(r)"
ALLOWANCE = 600.0  # seconds that a statement's transaction may last, so that its changes can be read


class CypherServer:
    """A graph in a namespace of a Bolt server's database.

    `kgot_lab.sandbox.cypher.mapping` defines how it is stored. Each of its nodes and edges is marked with the
    namespace, and a statement is rewritten (`confined`) so that it matches no others: neither those of
    another namespace nor any other content of the database, which is never changed. A named database that is
    missing is created if the server can create databases over Bolt. `wipe` empties the namespace first.
    `seconds` is the time limit of one statement. Raises BadInput for a namespace with nodes that no store
    made, or that edges connect to others, and StoreUnavailable if the server cannot be reached.

    A node is found by its element id, which is remembered since it was last seen and checked each time, or
    else by one scan. There is no index: it would need a label on every node, which statements would see in
    labels(n).
    """

    dialect = CYPHER

    def __init__(
        self,
        uri: str,
        *,
        user: str = "neo4j",
        password: str = "",
        database: str | None = None,
        namespace: str = "kgot",
        seconds: float = STATEMENT_SECONDS,
        wipe: bool = False,
    ):
        if not namespace.strip():
            raise BadInput("a namespace is a text that is not blank")
        self.namespace, self._seconds = namespace, seconds
        self._mark = cypher_literal(namespace)
        # whether the server's counters are reliable; tested at the first statement
        self._counts: bool | None = None
        self._calculator = Calculator()
        self._link = BoltLink(uri, user, password, database)
        self._turns = Turns(self._link, namespace)
        self._looking = Looking(self._ask)
        self._lost = LostStatements()
        try:
            self._take(wipe)
        except BaseException:
            self._link.close()
            raise

    def __repr__(self) -> str:
        try:
            counts = f"{self._count(_NODES)} nodes, {self._count(_EDGES)} edges"
        except StoreUnavailable:
            counts = "not reachable"
        return f"<CypherServer {self._link.name}, namespace {self.namespace!r}: {counts}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- statements ---

    def write(self, statement: str) -> Diff:
        """Run a statement in a transaction and store its changes.

        New nodes and edges are recognized by their missing marks. If the server's counters do not prove that
        the statement did nothing else, it is rolled back and run again between two reads of the namespace,
        whose cost grows with the graph. Raises QueryFailed, changing nothing, if the statement is refused or
        fails.
        """
        refuse_unless_cypher_write(statement)
        sent = confined(statement, self._mark)
        with self._lost.minded(statement), self._refusing(sent, statement):
            try:
                try:
                    diff, places = self._link.retry(partial(self._added, statement, sent))
                except NotOnlyAdded:
                    diff, places = self._link.retry(partial(self._compared, statement, sent))
            except (RefusedValue, BadInput) as refusal:
                raise QueryFailed(statement, str(refusal)) from None
        self._looking.places.update(places)
        return diff

    def _added(self, statement: str, sent: Confined) -> tuple[Diff, dict[str, str]]:
        if self._counts is None:
            with self._link.writing() as transaction:
                self._counts = counts_truly(transaction)
                transaction.rollback()
        if not self._counts:
            raise NotOnlyAdded
        with self._turns.taken(self._seconds + ALLOWANCE) as (transaction, _):
            self._require_closed(transaction, statement, sent)
            with self._link.within(self._seconds, statement):
                counters = transaction.run(sent.text).consume().counters
            diff, places = added(self._own_query(transaction), counters)
            _keep(transaction, statement, diff)
        return diff, places

    def _compared(self, statement: str, sent: Confined) -> tuple[Diff, dict[str, str]]:
        with self._turns.taken(self._seconds + ALLOWANCE) as turn:
            transaction = turn.transaction
            before = dump(self._own_query(transaction))
            self._require_closed(transaction, statement, sent)
            with self._link.within(self._seconds, statement):
                counters = transaction.run(sent.text).consume().counters
            rows = rows_of(self._own_query(transaction))
            if self._counts and not _explains(counters, before, rows):
                raise QueryFailed(
                    statement,
                    "it made or removed what is not in this graph, perhaps a node for a variable that is null",
                )
            try:
                after = settle_ids(self._own_query(transaction), rows, before, self.namespace)
            except DuplicateId:
                transaction.rollback()
            else:
                diff = dump_difference(before, after)
                _keep(transaction, statement, diff)
                self._looking.places.clear()
                return diff, (after if diff else before).places()
        diff = merged_difference(rows, before)
        _require_holdable(statement, diff)
        application, places = self._applied(diff, turn)
        self._looking.moved(application.moved, {})
        return diff, places

    def read(self, statement: str) -> Rows:
        """Run a read statement and return its rows, with nodes and relationships as dicts.

        Raises QueryFailed if the statement is refused or fails.
        """
        refuse_unless_cypher_read(statement)
        sent = confined(statement, self._mark)
        with (
            self._lost.minded(statement),
            self._refusing(sent, statement),
            self._link.reading(self._seconds) as transaction,
        ):
            try:
                self._require_closed(transaction, statement, sent)
                with self._link.within(self._seconds + GRACE, statement):
                    return tuple(bolt_rows(transaction, sent.text, self.namespace))
            except (TooMuch, NotOurs) as error:
                raise QueryFailed(statement, str(error)) from None

    def compute(self, code: str, *, seconds: float | None = None) -> str:
        """Run plain Python and return what it prints, or the value of its last expression.

        It runs in a local sandbox, without access to the graph. Raises QueryFailed if the code fails.
        """
        self._link.require_open()
        require_statement(code)
        return self._calculator.compute(code, seconds=seconds)

    # --- the graph ---

    def graph(self) -> PropertyGraph:
        """Return the whole graph in its current state."""
        from kgot_lab.graph import PropertyGraph

        with self._told():
            now = dump(self._ask)
        self._looking.places = now.places()
        return PropertyGraph.of(
            (stored.node() for stored in now.nodes.values()), (stored.edge() for stored in now.edges.values())
        )

    def apply(self, diff: Diff) -> None:
        """Apply a diff in one transaction.

        Raises BadInput, changing nothing, if it does not fit.
        """
        diff = fit_diff(diff)
        with self._link.explained(lambda reason: BadInput(f"the server refuses the diff: {reason}")):
            application, places = self._link.retry(partial(self._applied, diff))
        self._looking.moved(application.moved, places)

    def _applied(self, diff: Diff, found: Turn | None = None) -> tuple[Application, dict[str, str]]:
        """Apply a diff.

        Raises Overtaken if another writer committed since the turn in which the diff was found and rolled
        back.
        """
        with self._turns.taken() as (transaction, _):
            if found is not None:
                self._turns.require_unwritten(found)
            ask = self._own_query(transaction)
            application = Application(ask, self._link.ask, partial(self._looking.locate, ask), self.namespace)
            return application, application.run(diff)

    def undo(self, diff: Diff) -> None:
        """Undo a diff.

        Raises BadInput if the graph has changed in the same elements since.
        """
        self.apply(inverse(diff))

    def close(self) -> None:
        """Close the connections.

        The graph stays on the server.
        """
        self._calculator.close()
        self._link.close()

    # --- queries ---

    def schema(self) -> Schema:
        """Count the nodes per label and the edges per type, by name."""
        with self._told():
            return self._looking.schema()

    def neighbours(self, id: str) -> tuple[Edge, ...]:
        """Return a node's incoming and outgoing edges, in the server's order.

        Empty if there is no such node.
        """
        with self._told():
            return tuple(self._looking.incident([id]).get(id, ()))

    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]:
        """Return the nodes that share words with a query in their name or properties, best first.

        The server finds the candidates. They are scored here.
        """
        require_words(words)
        with self._told():
            return self._looking.search(words, limit)

    def within(self, id: str, hops: int) -> dict[str, int]:
        """Return the nodes within some hops, ignoring direction, each with its distance.

        Empty if there is no such node.
        """
        with self._told():
            return self._looking.within(id, hops)

    def path(self, source: str, target: str, most: int = 6) -> tuple[Edge, ...]:
        """Return a shortest undirected path of at most `most` edges, or () if there is none."""
        with self._told():
            return self._looking.path(source, target, most)

    def holds(self, value: Scalar) -> bool:
        """Return whether the graph contains a text or a number exactly.

        Runs on the server. For what counts as equal see `lookup.holds_value`.
        """
        with self._told():
            return self._looking.holds(value)

    def edges_between(self, ids: Collection[str]) -> tuple[Edge, ...]:
        """Return the edges whose two ends are both among the given nodes, queried on the server."""
        with self._told():
            return self._looking.edges_between(ids)

    # --- namespaces of a database ---

    @classmethod
    def namespaces(cls, uri: str, **login: Any) -> Mapping[str, GraphSize]:
        """Count the nodes and edges of each namespace of a database, by name.

        The login options are those of a store. Raises StoreUnavailable if the server cannot be reached.
        """
        with closing(_link(uri, **login)) as link:
            return bolt_namespaces(link)

    @classmethod
    def delete_namespace(cls, uri: str, namespace: str, **login: Any) -> None:
        """Delete the content of a namespace of a database.

        Raises BadInput if no store made it, and StoreUnavailable.
        """
        with closing(_link(uri, **login)) as link:
            delete_bolt_namespace(link, namespace)

    # --- internal ---

    def _take(self, wipe: bool) -> None:
        """Check that the database exists, and that the namespace belongs to a store and is not connected to
        others.
        """
        with self._told():
            self._link.reach()
        for query, what in (
            (_STRANGE, "nodes that no store made"),
            (_LEAVING, "edges that connect it to what others have"),
        ):
            if number := self._count(query):
                here = f"the namespace {self.namespace!r} of {self._link.name} has {number} {what}"
                raise BadInput(
                    f"{here}; nothing was changed. Name another namespace, or remove them with the server's own tools"
                )
        if wipe:
            delete_bolt_namespace(self._link, self.namespace)
        if self._count(f"{_UNKNOWN} RETURN count(n)"):
            with self._told():
                self._link.retry(self._note_known)

    def _note_known(self) -> None:
        with self._turns.taken() as (transaction, _):
            self._own_query(transaction)(f"{_UNKNOWN} SET n._kept = true", {})

    def _require_closed(self, transaction: Transaction, statement: str, sent: Confined) -> None:
        """Raise QueryFailed if a statement that follows paths of any length could leave the namespace.

        It could by an edge that other programs created.
        """
        if sent.walks and self._own_query(transaction)(_LEAVING, {})[0][0]:
            raise QueryFailed(
                statement,
                "somebody connected this graph with others, so that no path of any length can be followed",
            )

    def _count(self, query: str) -> int:
        with self._told():
            return int(self._ask(query, {})[0][0])

    def _ask(self, query: str, parameters: Mapping[str, Any]) -> list[list[Any]]:
        """Run an internal read query, with the namespace as a parameter, and return its rows."""
        return self._link.ask(query, {"run": self.namespace, **parameters})

    def _own_query(self, transaction: Transaction) -> Ask:
        return lambda query, parameters: transaction.run(
            query, {"run": self.namespace, **parameters}
        ).values()

    def _refusing(self, sent: Confined, statement: str) -> AbstractContextManager[None]:
        """Raise QueryFailed when the server refuses a model's statement.

        The message quotes the statement as it was written.
        """
        return self._link.explained(lambda reason: QueryFailed(statement, sent.unmarked(reason)))

    def _told(self) -> AbstractContextManager[None]:
        """Raise StoreUnavailable if the server refuses an internal query."""
        return self._link.explained(
            lambda reason: StoreUnavailable(f"{self._link.name} does not understand this store: {reason}")
        )


def _link(uri: str, user: str = "neo4j", password: str = "", database: str | None = None) -> BoltLink:
    return BoltLink(uri, user, password, database)


def _explains(counters: SummaryCounters, before: Dump, rows: Sequence[BoltRow]) -> bool:
    """Return whether the namespace grew by as many nodes and edges as the server created.

    If not, the statement created some elsewhere.
    """
    nodes = counters.nodes_created - counters.nodes_deleted
    edges = counters.relationships_created - counters.relationships_deleted
    return (nodes, edges) == (
        len(rows) - len(before.nodes),
        sum(len(row.edges) for row in rows) - len(before.edges),
    )


def _keep(transaction: Transaction, statement: str, diff: Diff) -> None:
    """Roll back a statement that changed nothing.

    Raises QueryFailed if it created an element that is not valid in a graph of this package.
    """
    _require_holdable(statement, diff)
    if not diff:
        transaction.rollback()


def _require_holdable(statement: str, diff: Diff) -> None:
    """Raise QueryFailed if a statement created an element that is not valid in a graph of this package."""
    nodes = [*diff.added_nodes, *(after for _, after in diff.changed_nodes)]
    edges = [*diff.added_edges, *(after for _, after in diff.changed_edges)]
    try:
        check_texts(nodes, edges)
        json.dumps(
            [[dict(node.properties) for node in nodes], [dict(edge.properties) for edge in edges]],
            allow_nan=False,
        )
    except BadInput as error:
        raise QueryFailed(statement, str(error)) from None
    except ValueError:
        raise QueryFailed(statement, "a property must be a finite number, not nan or infinity") from None
