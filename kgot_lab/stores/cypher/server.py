"""A graph on a Bolt server such as Neo4j, written in Cypher with Neo4j's own driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import BadInput, QueryFailed, StoreUnavailable
from kgot_lab.graph.validation import validate_diff
from kgot_lab.sandbox import Calculator
from kgot_lab.sandbox.worker.values import RefusedValue
from kgot_lab.stores.cypher import apply as cypher_apply
from kgot_lab.stores.cypher import dump
from kgot_lab.stores.cypher.connection import GRACE_SECONDS, BoltLink, RunQuery
from kgot_lab.stores.cypher.dialect import (
    CYPHER,
    cypher_literal,
    refuse_unless_cypher_read,
    refuse_unless_cypher_write,
)
from kgot_lab.stores.cypher.namespaces import (
    COUNT_FOREIGN_NODES,
    ConfinedStatement,
    bolt_namespaces,
    confine_statement,
    delete_bolt_namespace,
)
from kgot_lab.stores.cypher.patterns import NodeLookup
from kgot_lab.stores.protocol import GraphSize, UndoableStore
from kgot_lab.stores.statements import LostStatements, require_statement
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import STATEMENT_SECONDS, Diff, Rows

if TYPE_CHECKING:
    from neo4j import SummaryCounters, Transaction

    from kgot_lab.graph import PropertyGraph

_COUNT_LEAVING_EDGES = "MATCH (n {_run: $run})-[r]-(m) WHERE m._run IS NULL OR m._run <> $run RETURN count(r)"
_MATCH_UNKNOWN = "MATCH (n {_run: $run}) WHERE n._kept IS NULL "  # written by stores of earlier versions
_COUNT_NODES = "MATCH (n {_run: $run}) RETURN count(n)"
_COUNT_EDGES = "MATCH ({_run: $run})-[r]->({_run: $run}) RETURN count(r)"
# seconds that a statement's transaction may last, so that its changes can be read
TRANSACTION_ALLOWANCE = 600.0


class CypherServer(NodeLookup, UndoableStore):
    """A graph in a namespace of a Bolt server's database.

    `kgot_lab.sandbox.cypher.mapping` defines how it is stored. Each of its nodes and edges is marked with the
    namespace, and a statement is rewritten (`confine_statement`) so that it matches no others: neither those of
    another namespace nor any other content of the database, which is never changed. A named database that is
    missing is created if the server can create databases over Bolt. `wipe` empties the namespace first.
    `seconds` is the time limit of one statement. Raises BadInput for a namespace with nodes that no store
    made, or that edges connect to others, and StoreUnavailable if the server cannot be reached.

    Nodes are found by a scan. There is no index: it would need a label on every node, which statements would
    see in labels(n).
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
        self._calculator = Calculator(seconds=seconds)
        self._link = BoltLink(uri, user, password, database)
        self._write_lock = cypher_apply.WriteLock(self._link, namespace)
        self._lost_statements = LostStatements()
        try:
            self._claim_namespace(wipe)
        except BaseException:
            self._link.close()
            raise

    def __repr__(self) -> str:
        try:
            counts = f"{format_count(self._count(_COUNT_NODES), 'node')}, {format_count(self._count(_COUNT_EDGES), 'edge')}"
        except StoreUnavailable:
            counts = "not reachable"
        return f"<CypherServer {self._link.name}, namespace {self.namespace!r}: {counts}>"

    # --- statements ---

    def write(self, statement: str) -> Diff:
        """Run a statement in a transaction and store its changes.

        The namespace is read before and after the statement, since servers do not say what a statement
        changed. Raises QueryFailed, changing nothing, if the statement is refused or fails.
        """
        refuse_unless_cypher_write(statement)
        sent = confine_statement(statement, self._mark)
        with self._lost_statements.guard(statement), self._statement_errors(sent, statement):
            try:
                return self._link.retry(partial(self._write_compared, statement, sent))
            except (RefusedValue, BadInput) as refusal:
                raise QueryFailed(statement, str(refusal)) from None

    def _write_compared(self, statement: str, sent: ConfinedStatement) -> Diff:
        has_counters = self._has_reliable_counters
        with self._write_lock.acquire(self._seconds + TRANSACTION_ALLOWANCE) as locked:
            transaction = locked.transaction
            run_query = self._transaction_query(transaction)
            before = dump.read_dump(run_query)
            self._require_no_leaving_edges(transaction, statement, sent)
            with self._link.time_limit(self._seconds, statement):
                counters = transaction.run(sent.text).consume().counters
            rows = dump.read_rows(run_query)
            if has_counters and not _counters_match(counters, before, rows):
                problem = "it made or removed what is not in this graph"
                raise QueryFailed(statement, f"{problem}, perhaps a node for a variable that is null")
            try:
                after = dump.assign_ids(run_query, rows, before, self.namespace)
            except dump.DuplicateId:
                transaction.rollback()
            else:
                diff = dump.dump_difference(before, after)
                _require_storable(statement, diff)
                if not diff:
                    transaction.rollback()
                return diff
        diff = dump.merged_difference(rows, before)
        _require_storable(statement, diff)
        self._apply_diff(diff, locked)
        return diff

    @cached_property
    def _has_reliable_counters(self) -> bool:
        """Whether the server's counters say correctly what a statement created, tested once by creating a node."""
        with self._link.write_transaction() as transaction:
            counters = transaction.run("CREATE (n {a: 1}) SET n.b = 2").consume().counters
            transaction.rollback()
        return counters.nodes_created == 1 and counters.properties_set == 2

    def read(self, statement: str) -> Rows:
        """Run a read statement and return its rows, with nodes and relationships as dicts.

        Raises QueryFailed if the statement is refused or fails.
        """
        refuse_unless_cypher_read(statement)
        sent = confine_statement(statement, self._mark)
        with (
            self._lost_statements.guard(statement),
            self._statement_errors(sent, statement),
            self._link.read_transaction(self._seconds) as transaction,
        ):
            try:
                self._require_no_leaving_edges(transaction, statement, sent)
                with self._link.time_limit(self._seconds + GRACE_SECONDS, statement):
                    return tuple(dump.bolt_rows(transaction, sent.text, self.namespace))
            except (dump.ResultTooLarge, dump.ForeignElement) as error:
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

        current = dump.read_dump(self._query)
        edges = (stored.to_edge() for stored in current.edges.values())
        return PropertyGraph.of((stored.to_node() for stored in current.nodes.values()), edges)

    def apply(self, diff: Diff) -> None:
        """Apply a diff in one transaction.

        Raises BadInput, changing nothing, if it does not fit.
        """
        diff = validate_diff(diff)
        with self._link.convert_errors(lambda reason: BadInput(f"the server refuses the diff: {reason}")):
            self._link.retry(partial(self._apply_diff, diff))

    def _apply_diff(self, diff: Diff, since: cypher_apply.LockedTransaction | None = None) -> None:
        """Apply a diff.

        Raises WriteConflict if another writer committed since the transaction in which the diff was found and
        rolled back.
        """
        with self._write_lock.acquire() as (transaction, _):
            if since is not None:
                self._write_lock.require_unwritten(since)
            run_query = self._transaction_query(transaction)
            cypher_apply.DiffApplication(run_query, self._link.run_query, self.namespace).run(diff)

    def close(self) -> None:
        """Close the connections.

        The graph stays on the server.
        """
        self._calculator.close()
        self._link.close()

    # --- namespaces of a database ---

    @classmethod
    def namespaces(cls, uri: str, **login: Any) -> Mapping[str, GraphSize]:
        """Count the nodes and edges of each namespace of a database, by name.

        The login options are those of a store. Raises StoreUnavailable if the server cannot be reached.
        """
        with closing(BoltLink(uri, **login)) as link:
            return bolt_namespaces(link)

    @classmethod
    def delete_namespace(cls, uri: str, namespace: str, **login: Any) -> None:
        """Delete the content of a namespace of a database.

        Raises BadInput if no store made it, and StoreUnavailable.
        """
        with closing(BoltLink(uri, **login)) as link:
            delete_bolt_namespace(link, namespace)

    # --- internal ---

    def _claim_namespace(self, wipe: bool) -> None:
        """Check that the database exists, and that the namespace belongs to a store and is not connected to
        others.
        """
        with self._link.internal_errors():
            self._link.require_database()
        for query, content in (
            (COUNT_FOREIGN_NODES, "nodes that no store made"),
            (_COUNT_LEAVING_EDGES, "edges that connect it to what others have"),
        ):
            if count := self._count(query):
                problem = f"the namespace {self.namespace!r} of {self._link.name} has {count} {content}"
                how = "Name another namespace, or remove them with the server's own tools"
                raise BadInput(f"{problem}; nothing was changed. {how}")
        if wipe:
            delete_bolt_namespace(self._link, self.namespace)
        if self._count(f"{_MATCH_UNKNOWN} RETURN count(n)"):
            with self._link.internal_errors():
                self._link.retry(self._mark_known_nodes)

    def _mark_known_nodes(self) -> None:
        with self._write_lock.acquire() as (transaction, _):
            self._transaction_query(transaction)(f"{_MATCH_UNKNOWN} SET n._kept = true", {})

    def _require_no_leaving_edges(
        self, transaction: Transaction, statement: str, sent: ConfinedStatement
    ) -> None:
        """Raise QueryFailed if a statement that follows paths of any length could leave the namespace.

        It could by an edge that other programs created.
        """
        count = self._transaction_query(transaction)
        if sent.has_variable_length_path and count(_COUNT_LEAVING_EDGES, {})[0][0]:
            problem = "somebody connected this graph with others"
            raise QueryFailed(statement, f"{problem}, so that no path of any length can be followed")

    def _count(self, query: str) -> int:
        return int(self._query(query, {})[0][0])

    def _query(self, query: str, parameters: Mapping[str, Any]) -> list[list[Any]]:
        """Run an internal read query, with the namespace as a parameter, and return its rows."""
        with self._link.internal_errors():
            return self._link.run_query(query, {"run": self.namespace, **parameters})

    def _transaction_query(self, transaction: Transaction) -> RunQuery:
        return lambda query, p: transaction.run(query, {"run": self.namespace, **p}).values()

    def _statement_errors(self, sent: ConfinedStatement, statement: str) -> AbstractContextManager[None]:
        """Raise QueryFailed when the server refuses a model's statement.

        The message quotes the statement as it was written.
        """
        return self._link.convert_errors(lambda reason: QueryFailed(statement, sent.remove_marks(reason)))


def _counters_match(counters: SummaryCounters, before: dump.Dump, rows: Sequence[dump.BoltRow]) -> bool:
    """Return whether the namespace grew by as many nodes and edges as the server created.

    If not, the statement created some elsewhere.
    """
    nodes = counters.nodes_created - counters.nodes_deleted
    edges = counters.relationships_created - counters.relationships_deleted
    new_edges = sum(len(row.edges) for row in rows) - len(before.edges)
    return (nodes, edges) == (len(rows) - len(before.nodes), new_edges)


def _require_storable(statement: str, diff: Diff) -> None:
    """Raise QueryFailed if a statement created an element that is not valid in a graph of this package."""
    try:
        validate_diff(diff)
    except BadInput as error:
        raise QueryFailed(statement, str(error)) from None
