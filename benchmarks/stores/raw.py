"""The drivers that are measured beside our stores, with the least code: no diffs, no checks, no sandbox, no
namespaces.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.stores.measured import Subject
from benchmarks.stores.raw_languages import (
    ArcadeDB,
    DriverPlace,
    Httpx,
    Neo4jDriver,
    Pyoxigraph,
    texts_of,
)
from kgot_lab.types import Diff


class NetworkX:
    """A MultiDiGraph in this process."""

    def __init__(self, where: DriverPlace):
        import networkx

        self.nx: Any = networkx
        self.graph: Any = networkx.MultiDiGraph()

    def load(self, diff: Diff) -> object:
        self.graph.add_nodes_from(
            (node.id, {"label": node.labels[0], **node.properties}) for node in diff.added_nodes
        )
        return self.graph.add_edges_from(
            (edge.source, edge.target, edge.type, dict(edge.properties)) for edge in diff.added_edges
        )

    def neighbours(self, id: str) -> object:
        return [
            *self.graph.out_edges(id, keys=True, data=True),
            *self.graph.in_edges(id, keys=True, data=True),
        ]

    def search(self, words: Sequence[str]) -> object:
        return [
            id for id, data in self.graph.nodes(data=True) if any(word in texts_of(data) for word in words)
        ][:10]

    def read(self, id: str) -> object:
        return list(self.graph.out_edges(id, keys=True)) if id in self.graph else []

    def write(self, source: str, relation: str, target: str) -> object:
        return self.graph.add_edge(source, target, relation)

    def everything(self) -> object:
        return list(self.graph.nodes(data=True)), list(self.graph.edges(keys=True, data=True))

    def close(self) -> object:
        return None


class Sqlite3:
    """Two tables, two indexes and a full-text index in a file."""

    def __init__(self, where: DriverPlace):
        self.db: Any = sqlite3.connect(f"{where['path']}.raw", isolation_level=None)
        self.db.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
            " CREATE TABLE nodes (id TEXT PRIMARY KEY, labels TEXT, properties TEXT); CREATE VIRTUAL TABLE words USING fts5 (id, texts);"
            " CREATE TABLE edges (source TEXT, type TEXT, target TEXT, properties TEXT);"
            " CREATE INDEX by_source ON edges (source); CREATE INDEX by_target ON edges (target)"
        )

    def load(self, diff: Diff) -> object:
        nodes = [(node.id, json.dumps(node.labels), json.dumps(node.properties)) for node in diff.added_nodes]
        self.db.execute("BEGIN")
        self.db.executemany("INSERT INTO nodes VALUES (?, ?, ?)", nodes)
        self.db.executemany(
            "INSERT INTO words VALUES (?, ?)",
            ((node.id, texts_of(node.properties)) for node in diff.added_nodes),
        )
        edges = (
            (edge.source, edge.type, edge.target, json.dumps(edge.properties)) for edge in diff.added_edges
        )
        self.db.executemany("INSERT INTO edges VALUES (?, ?, ?, ?)", edges)
        return self.db.execute("COMMIT")

    def neighbours(self, id: str) -> object:
        return self.db.execute("SELECT * FROM edges WHERE source = ?1 OR target = ?1", (id,)).fetchall()

    def search(self, words: Sequence[str]) -> object:
        asked = " OR ".join(f'"{word}"' for word in words)
        return self.db.execute(
            "SELECT id FROM words WHERE words MATCH ? ORDER BY rank LIMIT 10", (asked,)
        ).fetchall()

    def read(self, id: str) -> object:
        return self.db.execute("SELECT type, target FROM edges WHERE source = ?", (id,)).fetchall()

    def write(self, source: str, relation: str, target: str) -> object:
        self.db.execute("BEGIN")
        self.db.execute("INSERT OR IGNORE INTO nodes VALUES (?, '[]', '{}')", (target,))
        self.db.execute("INSERT INTO words VALUES (?, '')", (target,))
        self.db.execute("INSERT INTO edges VALUES (?, ?, ?, '{}')", (source, relation, target))
        return self.db.execute("COMMIT")

    def everything(self) -> object:
        return self.db.execute("SELECT * FROM nodes").fetchall(), self.db.execute(
            "SELECT * FROM edges"
        ).fetchall()

    def close(self) -> object:
        return self.db.close()


class Psycopg:
    """Two tables in a schema, filled by COPY."""

    def __init__(self, where: DriverPlace):
        import psycopg

        self.db: Any = psycopg.connect(where["url"], autocommit=True)
        self.db.execute(
            "CREATE SCHEMA raw; SET search_path TO raw;"
            " CREATE TABLE nodes (id text PRIMARY KEY, labels jsonb, properties jsonb, texts text);"
            " CREATE TABLE edges (source text, type text, target text, properties jsonb)"
        )

    def load(self, diff: Diff) -> object:
        with self.db.transaction(), self.db.cursor() as cursor:
            with cursor.copy("COPY nodes FROM STDIN") as copy:
                for node in diff.added_nodes:
                    copy.write_row(
                        (
                            node.id,
                            json.dumps(node.labels),
                            json.dumps(node.properties),
                            texts_of(node.properties),
                        )
                    )
            with cursor.copy("COPY edges FROM STDIN") as copy:
                for edge in diff.added_edges:
                    copy.write_row((edge.source, edge.type, edge.target, json.dumps(edge.properties)))
            for index in (
                "edges (source)",
                "edges (target)",
                "nodes USING gin (to_tsvector('english', texts))",
            ):
                cursor.execute(f"CREATE INDEX ON {index}")
        return self.db.execute("ANALYZE nodes, edges")

    def neighbours(self, id: str) -> object:
        return self.db.execute("SELECT * FROM edges WHERE source = %s OR target = %s", (id, id)).fetchall()

    def search(self, words: Sequence[str]) -> object:
        asked = (
            "SELECT id FROM nodes, to_tsquery('english', %s) AS query WHERE to_tsvector('english', texts) @@ query"
            " ORDER BY ts_rank(to_tsvector('english', texts), query) DESC LIMIT 10"
        )
        return self.db.execute(asked, (" | ".join(words),)).fetchall()

    def read(self, id: str) -> object:
        return self.db.execute("SELECT type, target FROM edges WHERE source = %s", (id,)).fetchall()

    def write(self, source: str, relation: str, target: str) -> object:
        with self.db.transaction():
            self.db.execute("INSERT INTO nodes VALUES (%s, '[]', '{}', '') ON CONFLICT DO NOTHING", (target,))
            return self.db.execute("INSERT INTO edges VALUES (%s, %s, %s, '{}')", (source, relation, target))

    def everything(self) -> object:
        return self.db.execute("SELECT * FROM nodes").fetchall(), self.db.execute(
            "SELECT * FROM edges"
        ).fetchall()

    def close(self) -> object:
        return self.db.close()


RAW_DRIVERS: dict[str, Callable[[DriverPlace], Subject]] = {
    "in_memory": NetworkX,
    "cypher_embedded": ArcadeDB,
    "cypher_server": Neo4jDriver,
    "sparql_embedded": Pyoxigraph,
    "sparql_server": Httpx,
    "sqlite": Sqlite3,
    "postgres": Psycopg,
}
