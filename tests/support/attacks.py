"""Attacks on a store by statements, in its own language, the way a hostile or confused model would.

Every attack must be refused, or have no effect: the graph is as it was, nothing of the host is in the rows,
nobody connected to the host's server, and the next statement is right.
"""

from __future__ import annotations

import json
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kgot_lab.errors import QueryFailed
from kgot_lab.sandbox import open_sandbox
from kgot_lab.stores import open_store
from kgot_lab.stores.protocol import Store
from kgot_lab.types import Diff, Edge, Node
from support.hostile import SECRET, HostileStatement
from support.hostile_cypher import HOSTILE_CYPHER
from support.hostile_sparql import HOSTILE_SPARQL
from support.hostile_sql import HOSTILE_POSTGRES, HOSTILE_SQLITE

_SECONDS = 1.0  # an attack may take
_AMPLE = 120.0  # and the statement after it, which must succeed on a busy computer too
PATIENCE = 12.0  # seconds until a runaway must be over, a new worker or connection included
_GRAPH = Diff(
    added_nodes=(
        Node("Ada", ("Person",), {"age": 36}),
        Node("London", ("City",)),
        *(Node(f"n{n}") for n in range(60)),
    ),
    added_edges=(
        Edge("Ada", "livesIn", "London"),
        *(Edge(f"n{n}", "next", f"n{m}") for n in range(60) for m in range(n + 1, 60, 3)),
    ),
)
ATTACKS = {
    "cypher_embedded": HOSTILE_CYPHER,
    "cypher_server": HOSTILE_CYPHER,
    "sparql_embedded": HOSTILE_SPARQL,
    "sparql_server": HOSTILE_SPARQL,
    "sqlite": HOSTILE_SQLITE,
    "postgres": HOSTILE_POSTGRES,
}
_NEXT = {
    "cypher": "MATCH (:Person {id: 'Ada'})-[:livesIn]->(l) RETURN l.id AS place",
    "sparql": "SELECT ?place WHERE { :Ada :livesIn ?place }",
    "sqlite": "SELECT target AS place FROM edges WHERE source = 'Ada'",
    "postgres": "SELECT target AS place FROM edges WHERE source = 'Ada'",
}


@contextmanager
def host() -> Iterator[tuple[dict[str, str], list[object]]]:
    """Places that an attack should not reach: a file with a secret, one that is not there yet, and a server
    that counts who comes.
    """
    connected: list[object] = []
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:

        def count() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connected.append(connection)
                connection.close()

        threading.Thread(target=count, daemon=True).start()
        secret, out = Path(folder) / "secret.csv", Path(folder) / "out"
        secret.write_text(f"{SECRET},1\n")
        yield (
            {
                "SECRET_FILE": str(secret),
                "OUT_FILE": str(out),
                "HOST_URL": f"http://127.0.0.1:{server.getsockname()[1]}/x",
            },
            connected,
        )
        server.shutdown(socket.SHUT_RDWR)


def what_it_got(store: Store, attack: HostileStatement, places: dict[str, str]) -> str:
    """What an attack got: refused and why, or its rows or its diff; the time it took is in the second word."""
    statement = attack.statement
    for name, place in places.items():
        statement = statement.replace(name, place)
    _allow(store, _SECONDS)
    begun = time.monotonic()
    try:
        got = store.read(statement) if attack.do == "read" else store.write(statement)
    except QueryFailed as error:
        return f"refused {time.monotonic() - begun:.1f} s: {error}"
    if isinstance(got, Diff):
        return f"wrote {time.monotonic() - begun:.1f} s: {got}"
    return f"read {time.monotonic() - begun:.1f} s: {json.dumps(got)[:2000]}"


def failings(store: Store, kind: str, got: str, places: dict[str, str], connected: list[object]) -> list[str]:
    """Everything that an attack should not have reached; the graph is put back if it changed."""
    found = []
    if SECRET in got:
        found.append("it read a file of the host")
    if Path(places["OUT_FILE"]).exists():
        found.append("it wrote a file on the host")
    if connected:
        found.append("it reached the host's server")
    _allow(store, _AMPLE)
    graph = store.graph()
    if difference := graph.diff(graph.of(_GRAPH.added_nodes, _GRAPH.added_edges)):
        found.append(f"the graph has changed: {difference}")
        store.apply(difference)
    rows = store.read(next(statement for language, statement in _NEXT.items() if kind.startswith(language)))
    if rows != ({"place": "London"},):
        found.append(f"the next statement read {rows}")
    return found


def open_to_attack(kind: str, **where: Any) -> Store:
    """A store with the graph, and a short time limit."""
    if kind.endswith("embedded"):
        language = kind.split("_")[0]
        where = {"open": lambda: open_sandbox(language=language, seconds=_SECONDS)}
    else:
        where = {**where, "seconds": _SECONDS}
    store = open_store(kind, **where)
    store.apply(_GRAPH)
    return store


def _allow(store: Store, seconds: float) -> None:
    """Set a store's time limit for the statements to come."""
    runner = getattr(store, "_executor", None)
    for holder, name in ((store, "seconds"), (store, "_seconds"), (runner, "seconds")):
        if hasattr(holder, name):
            setattr(holder, name, seconds)
