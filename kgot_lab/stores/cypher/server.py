"""A graph on a server that speaks Bolt, such as Neo4j, written to in Cypher with Neo4j's own driver."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Self

from kgot_lab.errors import BadInput, QueryFailed, StoreUnavailable
from kgot_lab.graph.truth import inverse
from kgot_lab.sandbox.calculator import Calculator
from kgot_lab.stores.cypher.added import NotOnlyAdded, added, counts_truly
from kgot_lab.stores.cypher.apply import Application
from kgot_lab.stores.cypher.dialect import CYPHER, refuse_unless_cypher_read, refuse_unless_cypher_write
from kgot_lab.stores.cypher.dump import check_texts, dump, dump_difference, settle_ids
from kgot_lab.stores.cypher.link import GRACE, Ask, BoltLink
from kgot_lab.stores.cypher.looking import Looking
from kgot_lab.stores.cypher.rows import TooMuch, bolt_rows
from kgot_lab.stores.protocol import Schema
from kgot_lab.types import Diff, Edge, Node, Rows

if TYPE_CHECKING:
    from neo4j import Transaction

    from kgot_lab.graph import PropertyGraph

_FOREIGN = "MATCH (n) WHERE n._run IS NULL OR n._run <> $run RETURN count(n)"
_WIPE = "MATCH (n) WITH n LIMIT 10000 DETACH DELETE n RETURN count(n)"
ALLOWANCE = 600.0  # seconds that a statement's transaction may go on for, so that what it changed can be read


class CypherServer:
    """A graph in a database of a Bolt server, which it has for itself; `kgot_lab.sandbox.inside.cypher_mapping` says how it lies there.

    A statement sees the whole database, so a store takes one only if every node in it bears its namespace; each run can have a database
    of its own where the server keeps several. One that is named and missing is made where the server makes databases over Bolt.
    `wipe` empties the database first, whoever's nodes it holds; nothing else ever does. `seconds` is the time for one statement.

    A node is found by the server's own id for it, remembered since it was last seen and checked each time, or else by one scan. There is
    no index: it would need a label on every node, which statements would see in labels(n).
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
        seconds: float = 5.0,
        wipe: bool = False,
    ):
        if not namespace.strip():
            raise BadInput("a namespace is a text that is not blank")
        self._namespace, self._seconds = namespace, seconds
        self._counts: bool | None = None  # whether the server's counts can be relied on; tried at the first statement
        self._calculator = Calculator()
        self._link = BoltLink(uri, user, password, database)
        self._looking = Looking(self._link.ask)
        try:
            self._take(wipe)
        except BaseException:
            self._link.close()
            raise

    def __repr__(self) -> str:
        try:
            counts = f"{self._count('MATCH (n) RETURN count(n)')} nodes, {self._count('MATCH ()-[r]->() RETURN count(r)')} edges"
        except StoreUnavailable:
            counts = "not reachable"
        return f"<CypherServer {self._link.name}: {counts}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- statements ---

    def write(self, statement: str) -> Diff:
        """Run a statement in a transaction and keep what it changed; raises QueryFailed, changing nothing.

        What it added is found by our marks, which new nodes and edges lack. When the server's counts do not prove that it did no more,
        it is taken back and run again between two readings of the whole database, whose cost grows with the graph.
        """
        refuse_unless_cypher_write(statement)
        with self._link.explained(partial(QueryFailed, statement)):
            try:
                diff, places = self._added(statement)
            except NotOnlyAdded:
                diff, places = self._compared(statement)
        self._looking.places.update(places)
        return diff

    def _added(self, statement: str) -> tuple[Diff, dict[str, str]]:
        if self._counts is None:
            with self._link.writing() as transaction:
                self._counts = counts_truly(transaction)
                transaction.rollback()
        if not self._counts:
            raise NotOnlyAdded
        with self._link.writing(self._seconds + ALLOWANCE) as transaction:
            with self._link.within(self._seconds):
                counters = transaction.run(statement).consume().counters
            diff, places = added(_asking(transaction), counters, self._namespace)
            _keep(transaction, statement, diff)
        return diff, places

    def _compared(self, statement: str) -> tuple[Diff, dict[str, str]]:
        before = dump(self._link.ask, self._namespace)
        with self._link.writing(self._seconds + ALLOWANCE) as transaction:
            with self._link.within(self._seconds):
                transaction.run(statement).consume()
            after = settle_ids(_asking(transaction), before, self._namespace)
            diff = dump_difference(before, after)
            _keep(transaction, statement, diff)
        self._looking.places.clear()
        return diff, (after if diff else before).places()

    def read(self, statement: str) -> Rows:
        """The rows a statement finds, nodes and relationships as dicts; raises QueryFailed."""
        refuse_unless_cypher_read(statement)
        with self._link.explained(partial(QueryFailed, statement)), self._link.reading(self._seconds) as transaction:
            try:
                with self._link.within(self._seconds + GRACE):
                    return tuple(bolt_rows(transaction, statement))
            except TooMuch as error:
                raise QueryFailed(statement, str(error)) from None

    def compute(self, code: str) -> str:
        """What plain Python prints, or its last expression's value, in a sandbox here and away from the graph; raises QueryFailed."""
        return self._calculator.compute(code)

    # --- the graph ---

    def graph(self) -> PropertyGraph:
        """The whole graph as it is now."""
        from kgot_lab.graph import PropertyGraph

        with self._told():
            now = dump(self._link.ask, self._namespace)
        self._looking.places = now.places()
        return PropertyGraph.of((stored.node() for stored in now.nodes.values()), (stored.edge() for stored in now.edges.values()))

    def apply(self, diff: Diff) -> None:
        """Make a diff part of the graph, in one transaction; raises BadInput, changing nothing, when it does not fit."""
        with self._link.explained(lambda reason: BadInput(f"the server refuses the diff: {reason}")), self._link.writing() as transaction:
            ask = _asking(transaction)
            application = Application(ask, self._link.ask, partial(self._looking.locate, ask), self._namespace)
            places = application.run(diff)
        self._looking.moved(application.moved, places)

    def undo(self, diff: Diff) -> None:
        """Take a diff back; raises BadInput when the graph has changed since in the same places."""
        self.apply(inverse(diff))

    def close(self) -> None:
        """Close the connections; the graph stays on the server."""
        self._calculator.close()
        self._link.close()

    # --- looking around ---

    def schema(self) -> Schema:
        """How many nodes have each label and how many edges each type, by name."""
        with self._told():
            return self._looking.schema()

    def neighbours(self, id: str) -> tuple[Edge, ...]:
        """A node's edges, both ways, in the server's order; none if there is no such node."""
        with self._told():
            return tuple(self._looking.incident([id]).get(id, ()))

    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]:
        """The nodes that share words with a query, in their name or properties, best first: found on the server, weighed here."""
        with self._told():
            return self._looking.search(words, limit)

    def within(self, id: str, hops: int) -> dict[str, int]:
        """Each node within some hops, whichever way the edges point, with the least number of hops; none if there is no such node."""
        with self._told():
            return self._looking.within(id, hops)

    def path(self, source: str, target: str, most: int = 6) -> tuple[Edge, ...]:
        """A shortest path of at most so many edges, whichever way they point; none if there is none."""
        with self._told():
            return self._looking.path(source, target, most)

    # --- inside ---

    def _take(self, wipe: bool) -> None:
        """Make sure that the database is there, and ours alone."""
        with self._told():
            self._link.reach()
            while wipe and self._wiped():
                pass
        foreign = self._count(_FOREIGN)
        if foreign:
            raise BadInput(
                f"{self._link.name} holds {foreign} nodes that are not of the namespace {self._namespace!r}; nothing was changed. "
                "Name another database, which a server that keeps several can have for each run, or let wipe=True delete all that is there"
            )

    def _wiped(self) -> int:
        """Delete some thousand nodes, whoever's they are; how many."""
        with self._link.writing() as transaction:
            return int(_asking(transaction)(_WIPE, {})[0][0])

    def _count(self, query: str) -> int:
        with self._told():
            return int(self._link.ask(query, {"run": self._namespace})[0][0])

    def _told(self) -> AbstractContextManager[None]:
        """Our own queries: when the server refuses one, the store cannot be used."""
        return self._link.explained(lambda reason: StoreUnavailable(f"{self._link.name} does not understand this store: {reason}"))


def _asking(transaction: Transaction) -> Ask:
    return lambda query, parameters: transaction.run(query, dict(parameters)).values()


def _keep(transaction: Transaction, statement: str, diff: Diff) -> None:
    """Take a statement back that changed nothing; raise QueryFailed when it made what no graph of ours may hold."""
    nodes = [*diff.added_nodes, *(after for _, after in diff.changed_nodes)]
    edges = [*diff.added_edges, *(after for _, after in diff.changed_edges)]
    try:
        check_texts(nodes, edges)
        json.dumps([[dict(node.properties) for node in nodes], [dict(edge.properties) for edge in edges]], allow_nan=False)
    except BadInput as error:
        raise QueryFailed(statement, str(error)) from None
    except ValueError:
        raise QueryFailed(statement, "a property must be a finite number, not nan or infinity") from None
    if not diff:
        transaction.rollback()
