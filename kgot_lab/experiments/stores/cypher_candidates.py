"""The embedded Cypher engines on trial, each behind the same few calls, used as its own package means it to
be used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol

_Row = tuple[Any, ...]
Batch = list[tuple[str, dict[str, Any]]]  # ids and properties of nodes of one label
LinksByRelation = dict[str, list[tuple[str, str]]]  # ids of both ends, by relation


class CypherCandidate(Protocol):
    """One engine with one store of its own on disk; a committed statement is meant to be there after a crash."""

    package: ClassVar[str]
    folders: ClassVar[tuple[str, ...]]  # what it installs
    note: ClassVar[str]
    attacks: ClassVar[Mapping[str, str]]  # what a reader should not be able to do; PATH stands for a file

    def __init__(self, path: Path, *, reading: bool = False) -> None: ...
    def run(
        self, statement: str, parameters: Mapping[str, Any] | None = None, *, reading: bool = False
    ) -> list[_Row]: ...
    def load(self, label: str, nodes: Batch, links: LinksByRelation) -> None: ...
    def close(self) -> None: ...


_ATTACKS = {
    "SET": 'MATCH (n:Person {id: "M. Ward"}) SET n.born = 1',
    "LOAD CSV": "LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line LIMIT 1",
}


class ArcadeCandidate:
    """ArcadeDB, a Java engine that the package brings with its own Java."""

    package: ClassVar[str] = "arcadedb-embedded"
    folders: ClassVar[tuple[str, ...]] = ("arcadedb_embedded", "jpype", "_jpype*.so")
    note: ClassVar[str] = "Cypher 25 of its own grammar; transactions; runs in this process on its own Java"
    attacks: ClassVar[Mapping[str, str]] = {**_ATTACKS, "CALL": "CALL merge.node(['Person'], {id: 'x'})"}

    def __init__(self, path: Path, *, reading: bool = False) -> None:
        import arcadedb_embedded as arcadedb

        options = {
            "heap_size": "1g",
            "jvm_args": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -XX:ErrorFile=/dev/null",
        }
        factory = arcadedb.DatabaseFactory(str(path / "arcadedb"), jvm_kwargs=options)
        self._db = factory.open() if factory.exists() else factory.create()
        self._reading = reading

    def run(
        self, statement: str, parameters: Mapping[str, Any] | None = None, *, reading: bool = False
    ) -> list[_Row]:
        arguments = [dict(parameters)] if parameters else []
        if reading or self._reading:
            return [
                tuple(row.values()) for row in self._db.query("opencypher", statement, *arguments).to_list()
            ]
        with self._db.transaction():
            found = self._db.command("opencypher", statement, *arguments)
            return [tuple(row.values()) for row in found.to_list()] if found is not None else []

    def load(self, label: str, nodes: Batch, links: LinksByRelation) -> None:
        schema = self._db.schema
        schema.create_vertex_type(label)
        for relation in links:
            schema.create_edge_type(relation)
        with self._db.graph_batch(expected_edge_count=sum(map(len, links.values()))) as batch:
            rids = batch.create_vertices(label, [{"id": id, **properties} for id, properties in nodes])
            at = dict(zip((id for id, _ in nodes), rids, strict=True))
            for relation, pairs in links.items():
                batch.new_edges(
                    [at[source] for source, _ in pairs], relation, [at[target] for _, target in pairs]
                )
        schema.create_property(label, "id", "STRING")
        schema.create_index(label, ["id"])

    def close(self) -> None:
        self._db.close()


class KGLite:
    """KGLite, an in-memory engine in Rust with a log on disk."""

    package: ClassVar[str] = "kglite"
    folders: ClassVar[tuple[str, ...]] = ("kglite",)
    note: ClassVar[str] = (
        "in memory with a write-ahead log; every node gets a title, name and type; the first label cannot be changed"
    )
    attacks: ClassVar[Mapping[str, str]] = _ATTACKS

    def __init__(self, path: Path, *, reading: bool = False) -> None:
        kglite = import_module("kglite")
        path.mkdir(exist_ok=True)
        self._graph = kglite.open(str(path / "graph.kgl"))
        if reading:
            self._graph.read_only(True)

    def run(
        self, statement: str, parameters: Mapping[str, Any] | None = None, *, reading: bool = False
    ) -> list[_Row]:
        found = self._graph.cypher(statement, params=dict(parameters or {}))
        return [tuple(row.values()) for row in found.to_list()]

    def load(self, label: str, nodes: Batch, links: LinksByRelation) -> None:
        import pandas as pd

        self._graph.add_nodes(
            pd.DataFrame([{"id": id, **properties} for id, properties in nodes]), label, "id"
        )
        for relation, pairs in links.items():
            self._graph.add_relationships(
                pd.DataFrame(pairs, columns=["s", "t"]), relation, label, "s", label, "t"
            )

    def close(self) -> None:
        self._graph.close()


class Ladybug:
    """Ladybug, the maintained fork of Kuzu, in its mode for undeclared tables."""

    package: ClassVar[str] = "ladybug"
    folders: ClassVar[tuple[str, ...]] = ("ladybug", "ladybug.libs")
    note: ClassVar[str] = (
        "undeclared tables by CREATE GRAPH g ANY; there a text property `id` is lost, so it had `name`; speed with declared tables"
    )
    attacks: ClassVar[Mapping[str, str]] = {
        "SET": _ATTACKS["SET"],
        "LOAD CSV": "LOAD FROM '/etc/passwd' (file_format='csv', delim=':') RETURN * LIMIT 1",
        "COPY TO": "COPY (RETURN 1 AS x) TO 'PATH' (header=false)",
    }

    def __init__(self, path: Path, *, reading: bool = False) -> None:
        ladybug = import_module("ladybug")
        path.mkdir(exist_ok=True)
        fresh = not (path / "graph.lbug").exists()
        self._database = ladybug.Database(str(path / "graph.lbug"), read_only=reading)
        self._connection = ladybug.Connection(self._database)
        for statement in (("CREATE GRAPH g ANY",) if fresh else ()) + ("USE GRAPH g",):
            self._connection.execute(statement)

    def run(
        self, statement: str, parameters: Mapping[str, Any] | None = None, *, reading: bool = False
    ) -> list[_Row]:
        found = self._connection.execute(
            re.sub(r"\bid\b(?=[:,) =<}\]]|$)", "name", statement), dict(parameters or {})
        )
        rows = []
        while found.has_next():
            rows.append(tuple(found.get_next()))
        return rows

    def load(self, label: str, nodes: Batch, links: LinksByRelation) -> None:
        """Into declared tables, since the other mode has no bulk load; the statements of the speed trial
        follow there.
        """
        import pandas as pd

        ladybug = import_module("ladybug")

        self._connection = ladybug.Connection(self._database)
        frame = pd.DataFrame(
            [
                {"name": id, **{f"p_{name}": value for name, value in properties.items()}}
                for id, properties in nodes
            ]
        )
        columns = "".join(
            f", {name} {'INT64' if frame[name].dtype.kind == 'i' else 'STRING'}" for name in frame.columns[1:]
        )
        self._connection.execute(f"CREATE NODE TABLE {label}(name STRING PRIMARY KEY{columns})")
        self._connection.execute(f"COPY {label} FROM $rows", {"rows": frame})
        for relation, pairs in links.items():
            self._connection.execute(f"CREATE REL TABLE {relation}(FROM {label} TO {label})")
            self._connection.execute(
                f"COPY {relation} FROM $rows", {"rows": pd.DataFrame(pairs, columns=["s", "t"])}
            )
        for table in (
            "NODE TABLE Person(name STRING PRIMARY KEY)",
            "NODE TABLE Town(name STRING PRIMARY KEY)",
        ):
            self._connection.execute(f"CREATE {table}")
        self._connection.execute("CREATE REL TABLE BORN_IN(FROM Person TO Town, year INT64)")

    def close(self) -> None:
        self._connection.close()
        self._database.close()


class _Kept:
    """A worker that goes on when the store that used it is closed."""

    def __init__(self, worker: Any):
        self._worker = worker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._worker, name)

    def close(self) -> None:
        """Leave it running."""


class InOurSandbox:
    """What the package made of the engine it chose: ArcadeDB in the sandbox worker, the truth in this
    process.
    """

    package: ClassVar[str] = "arcadedb-embedded"
    folders: ClassVar[tuple[str, ...]] = ArcadeCandidate.folders
    note: ClassVar[str] = (
        "the store cypher_embedded: every statement in bubblewrap, checked and undone there, kept here"
    )
    attacks: ClassVar[Mapping[str, str]] = ArcadeCandidate.attacks

    _worker: ClassVar[Any] = None

    def __init__(self, path: Path, *, reading: bool = False) -> None:
        from kgot_lab.sandbox import open_sandbox
        from kgot_lab.stores.cypher.embedded import CypherEmbedded

        InOurSandbox._worker = InOurSandbox._worker or open_sandbox(language="cypher", seconds=30)
        self._store, self._reading = CypherEmbedded(_Kept(self._worker), path=path / "graph.jsonl"), reading

    def run(
        self, statement: str, parameters: Mapping[str, Any] | None = None, *, reading: bool = False
    ) -> list[_Row]:
        from kgot_lab.stores.cypher.dialect import cypher_literal

        for name, value in (parameters or {}).items():
            statement = statement.replace(f"${name}", cypher_literal(value))
        if reading or self._reading:
            return [tuple(row.values()) for row in self._store.read(statement)]
        self._store.write(statement)
        return []

    def load(self, label: str, nodes: Batch, links: LinksByRelation) -> None:
        from kgot_lab.types import Diff, Edge, Node

        edges = dict.fromkeys(
            (source, relation, target) for relation, pairs in links.items() for source, target in pairs
        )
        self._store.apply(
            Diff(
                added_nodes=tuple(Node(id, (label,), properties) for id, properties in nodes),
                added_edges=tuple(Edge(*each) for each in edges),
            )
        )
        self._store.read("RETURN 1 AS n")

    def close(self) -> None:
        self._store.close()


CANDIDATES: dict[str, type[CypherCandidate]] = {
    "Ladybug": Ladybug,
    "KGLite": KGLite,
    "ArcadeDB": ArcadeCandidate,
    "ArcadeDB, as we run it": InOurSandbox,
}
