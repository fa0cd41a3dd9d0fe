"""One statement in ArcadeDB: a transaction that leaves nothing behind, its rows, and what it touched.

The engine's own record events say what a statement touched, so what that costs follows the statement and not
the graph. Java alone keeps them: a listener written in Python would be called for every record. Runs inside
the sandbox: imports the standard library and its sisters only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kgot_lab.sandbox.cypher.engine import Database, EdgeRecord, NodeRecord
from kgot_lab.sandbox.worker.values import RefusedValue

_LANGUAGE = "opencypher"


class TimedOut(Exception):
    """A statement took longer than it may."""


class Spent(Exception):
    """A statement kept some of what it did, so that the database is no longer the parent's."""


class WrongKind(RefusedValue):
    """A statement names a type as the engine cannot hold it: a relation where a label has the name, or
    letters it does not take.
    """


@dataclass(frozen=True)
class Touched:
    """What a statement did: the records that are there now, those that are not any more, and which of the
    first are new.
    """

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
        self._listeners = [self._listener(kind) for kind in ("Create", "Update", "Delete")]

    @contextmanager
    def undone(self, seconds: float) -> Iterator[None]:
        """A transaction for one statement, which may take some seconds and leaves nothing behind.

        Raises Refused with the engine's message, WrongKind, TimedOut, or Spent, after which the process must
        end.
        """
        events, self._deadline = self._db.getEvents(), time.monotonic() + seconds
        self._db.getConfiguration().setValue(
            self._timeout, self._database.java("java.lang.Long")(max(1, int(seconds * 1000)))
        )
        for listener in self._listeners:
            events.registerListener(listener)
        self._db.begin()
        try:
            yield
            if not self._db.isTransactionActive():
                raise Spent("the statement ended its own transaction")
        except self._database.throwable as error:
            raise _meaning(error) from None
        finally:
            while self._db.isTransactionActive():
                self._db.rollback()
            for listener in self._listeners:
                events.unregisterListener(listener)
            for records in self._events.values():
                records.clear()

    def run(self, statement: str, *, writing: bool) -> Iterator[dict[str, Any]]:
        """The rows of a statement, as far as they are asked for, nodes and edges in them as records."""
        if writing and self._db.getQueryEngine(_LANGUAGE).analyze(statement).isDDL():
            raise RefusedValue("a statement may not change indexes or constraints")
        rows = (self._db.command if writing else self._db.query)(_LANGUAGE, statement)
        while rows.hasNext():
            row = rows.next()
            yield {str(name): self._database.value(row.getProperty(name)) for name in row.getPropertyNames()}

    def touched(self) -> Touched:
        """What the statement has done, while its transaction lasts; raises TimedOut."""
        created, updated, deleted = (self._elements(kind) for kind in ("Create", "Update", "Delete"))
        made, ended = (Counter(rid for rid, _ in records) for records in (created, deleted))
        first = dict(reversed(deleted))
        done = Touched([], [], [], [], frozenset(made))
        for rid in dict.fromkeys(rid for rid, _ in (*created, *updated, *deleted)):
            if time.monotonic() > self._deadline:
                raise TimedOut
            there = rid not in ended or self._database.exists(rid)
            # it was there before; the engine gives a number out again
            if ended[rid] + there > made[rid] and rid in ended:
                if isinstance(first[rid], self._database.vertex):
                    done.gone_nodes.append(rid)
                else:
                    done.gone_edges.append(self._database.edge_of(first[rid], only="_key"))
            if there:
                record = self._database.record(rid)
                if isinstance(record, self._database.vertex):
                    done.nodes.append(self._database.node_of(record))
                else:
                    done.edges.append(self._database.edge_of(record))
        return done

    def _elements(self, kind: str) -> list[tuple[str, Any]]:
        """Nodes and edges among the records of one kind of event; the engine's other records are its own
        affair.
        """
        kinds = (self._database.vertex, self._database.link)
        return [
            (str(record.getIdentity()), record) for record in self._events[kind] if isinstance(record, kinds)
        ]

    def _listener(self, kind: str) -> Any:
        """A listener that appends records to a list of Java's."""
        java = self._database.java
        lists, types = java("java.util.ArrayList"), java("java.lang.invoke.MethodType")
        listener, record = (
            java(f"com.arcadedb.event.AfterRecord{kind}Listener"),
            java("com.arcadedb.database.Record"),
        )
        self._events[kind] = lists()
        appends = types.methodType(java("java.lang.Boolean").TYPE, java("java.lang.Object").class_)
        add = java("java.lang.invoke.MethodHandles").publicLookup().findVirtual(lists.class_, "add", appends)
        handle = add.bindTo(self._events[kind]).asType(
            types.methodType(java("java.lang.Void").TYPE, record.class_)
        )
        return java("java.lang.invoke.MethodHandleProxies").asInterfaceInstance(listener.class_, handle)


_WRONG_KIND = (
    "is not an edge type",
    "is not a vertex type",
    "cannot be used as a ",
    "Cannot create bucket",
    "File name too long",
    "Invalid bucket name",
    "non valid characters",
)


def _meaning(error: Any) -> Exception:
    """What an error of Java's means here; the innermost message says most."""
    chain = [error]
    while chain[-1].getCause() is not None:
        chain.append(chain[-1].getCause())
    names = [str(each.getClass().getSimpleName()) for each in chain]
    if "TimeoutException" in names:
        return TimedOut()
    if "OutOfMemoryError" in names:
        return RefusedValue("the statement needs more memory than it may have")
    said = [str(each.getMessage()) for each in reversed(chain) if each.getMessage() is not None]
    wrong = any(sign in message for sign in _WRONG_KIND for message in said)
    return (WrongKind if wrong else RefusedValue)(said[0] if said else names[-1])
