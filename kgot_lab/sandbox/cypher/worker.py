"""The worker program for Cypher: one process with a copy of the graph, since a Java engine cannot be forked.

A statement runs in a transaction that is always rolled back. Its changes are sent to the parent, and come
back as nodes and edges with a later request if they are stored. Requests and replies are those of
`fork_server`. Runs inside the sandbox: imports the standard library and modules of the sandbox only.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kgot_lab.sandbox.cypher.changes import CypherChanges, CypherStatements, TimedOut, WrongKind
from kgot_lab.sandbox.cypher.engine import Database, EdgeRecord, NodeRecord, start_java
from kgot_lab.sandbox.cypher.loading import ChangeLoader, Contents, TypeNames, edge_rid
from kgot_lab.sandbox.cypher.mapping import edge_properties, node_properties, plain_value
from kgot_lab.sandbox.worker import seccomp
from kgot_lab.sandbox.worker.fork_server import (
    REPLIED,
    TIMED_OUT,
    TOO_LARGE,
    drop_privileges,
    send_reply,
    statements,
)
from kgot_lab.sandbox.worker.values import ElementChange, RefusedValue, json_value

_MAX_MESSAGE = 600


class _TooLarge(Exception):
    """The rows of a statement exceed the limit."""


def main() -> None:
    """Serve statements in Cypher from standard input until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    drop_privileges()
    start_java(int(os.environ.get("MEMORY_MB", "512")))
    graph = CypherGraph()
    graph.warm_up()
    if sys.platform == "linux":
        seccomp.install_filter_for_threads(seccomp.engine_filter_program())
    for request in statements(graph):
        send_reply(*_reply(graph, request))
    os._exit(0)  # Java takes long to exit


def _reply(graph: CypherGraph, request: dict[str, Any]) -> tuple[bytes, bytes]:
    """Run a statement and return its outcome and the JSON of its results or changes."""
    try:
        graph.hidden = request.get("without", ())
        reply = graph.answer(request["do"], request["statement"], request["seconds"], request["bytes"])
    except TimedOut:
        return TIMED_OUT, b""
    except _TooLarge:
        return TOO_LARGE, b""
    except RefusedValue as refusal:
        reply = {"error": str(refusal)[:_MAX_MESSAGE]}
    payload = json.dumps(reply, ensure_ascii=False, allow_nan=False).encode(errors="replace")
    return (REPLIED, payload) if len(payload) <= request["bytes"] else (TOO_LARGE, b"")


class CypherGraph:
    """The graph for statements in Cypher."""

    def __init__(self) -> None:
        self._folder = _make_database_folder()
        self.hidden: Iterable[ElementChange] = ()  # edges that a read does not see
        self._open_database(0)

    def _open_database(self, number: int) -> None:
        self._number, self._known = number, Contents()
        self._database = Database(self._folder / str(number))
        self._names, self._statements = TypeNames(self._database), CypherStatements(self._database)
        self._left: set[str] = set()  # types that statements created, which may be empty

    def clear(self) -> None:
        """Remove everything."""
        if self._known.rids or self._database.types():
            self._database.close()
            shutil.rmtree(self._folder / str(self._number), ignore_errors=True)
            self._open_database(self._number + 1)

    def warm_up(self) -> None:
        """Load what the first statement needs, so that loading does not count towards its time."""
        self.answer("write", "CREATE (a:A {id: 'a'})-[:B]->(b:C {id: 'b'})", 30, 10_000)
        self.answer("read", "MATCH (a)-[r]->(b) RETURN a.id, r, b", 30, 10_000)
        self.put((), ())

    def put(self, nodes: Iterable[ElementChange], edges: Iterable[ElementChange]) -> None:
        """Apply claims to the graph."""
        claims = list(nodes), list(edges)
        if any(claims):
            ChangeLoader(self._database, self._names, self._known, *claims).run()
        for type in sorted(self._left, key=len, reverse=True):
            if self._database.kind(type) and self._database.is_empty(type):
                self._database.drop_type(type)
        self._left = set()

    def answer(self, do: str, text: str, seconds: float, max_bytes: int) -> dict[str, Any]:
        """Return the changes of a write or the rows of a read, at most `max_bytes` bytes.

        Raises RefusedValue with the engine's message, TimedOut, and _TooLong.
        """
        answers = {"write": self._write, "read": self._read}
        if do not in answers:
            raise RefusedValue(f"Cypher cannot {do}")
        types = self._database.types()
        try:
            try:
                return answers[do](text, seconds, max_bytes)
            except WrongKind:
                if not self._names.learn(text):
                    raise
                return answers[do](text, seconds, max_bytes)
        finally:
            self._left |= self._database.types() - types

    def _write(self, text: str, seconds: float, max_bytes: int) -> dict[str, Any]:
        statement, _ = self._names.translate(text)
        if self._names.ends_transaction(statement):
            raise RefusedValue("a statement may not be divided into transactions")
        with self._statements.rolled_back(seconds):
            for _ in self._statements.run(statement, writing=True):
                pass
            touched = self._statements.touched()
            return CypherChanges(self._database, self._known, touched, self._names.name).claims()

    def _read(self, text: str, seconds: float, max_bytes: int) -> dict[str, Any]:
        statement, rewritten = self._names.translate(text)
        rows, size = [], 0
        with self._statements.rolled_back(seconds):
            for change in self.hidden:
                self._database.remove(edge_rid(self._database, self._names, self._known, change))
            for found in self._statements.run(statement, writing=False):
                row = {_restore_column(c, rewritten): self._to_json_value(v) for c, v in found.items()}
                rows.append(json_value(row, "a row", reading=True))
                size += len(json.dumps(rows[-1], ensure_ascii=False))
                if size > max_bytes:
                    raise _TooLarge
        return {"rows": rows}

    def _to_json_value(self, value: Any) -> Any:
        """Return a value as a reader of the graph knows it.

        The identity of a node or an edge takes precedence over a property of the same name.
        """
        if isinstance(value, NodeRecord):
            labels = [self._names.name(label) for label in value.labels]
            node = {"id": self._known.ids[value.rid], "labels": labels}
            return node | node_properties(value.stored) | node
        if isinstance(value, EdgeRecord):
            source, target = self._known.ids[value.source], self._known.ids[value.target]
            fact = {"subject": source, "relation": self._names.name(value.type), "object": target}
            return fact | edge_properties(value.stored) | fact
        if isinstance(value, dict):
            return {name: self._to_json_value(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._to_json_value(item) for item in value]
        return plain_value(self._names.name(value) if isinstance(value, str) else value)


def _make_database_folder() -> Path:
    """Create a new folder for databases.

    Removes the folders of killed workers that did not vanish with their sandbox.
    """
    for folder in Path(tempfile.gettempdir()).glob("kgot_lab-cypher-*"):
        if sys.platform == "linux" and not Path(f"/proc/{folder.name.split('-')[2]}").exists():
            shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"kgot_lab-cypher-{os.getpid()}-"))


def _restore_column(column: str, rewritten: dict[str, str]) -> str:
    for text, original in rewritten.items():
        column = column.replace(text, original)
    return column
