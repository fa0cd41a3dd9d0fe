"""The layers of a world in an SQLite file: words by FTS5, vectors by reading those in question."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from kgot_lab.domains.npc.layers import statements as sql
from kgot_lab.domains.npc.layers.models import ChunkMatch
from kgot_lab.domains.npc.layers.storage import LayerStorage, matches
from kgot_lab.domains.npc.opening import SQLiteWorld
from kgot_lab.domains.npc.statements import WorldRow
from kgot_lab.embedding.embedder import Matrix

_IN_SQLITE = {
    "x.audience ? CAST(:npc AS text)": "EXISTS (SELECT 1 FROM json_each(x.audience) AS a WHERE a.value = :npc)",
    sql.TERMS: "json_each(:terms) AS t",
    sql.MATCHED: "JOIN log_words ON log_words MATCH t.value JOIN log x ON x.number = log_words.rowid",
    sql.INDEXED: ":words",
    "words tsvector": "words TEXT",
    "BIGINT GENERATED ALWAYS AS IDENTITY": "INTEGER",
    "pgvector.vector": "BLOB",
}
_LOG_INDEXES = (
    sql.LOG_SESSIONS,
    "CREATE VIRTUAL TABLE log_words USING fts5 (words, content = 'log', content_rowid = 'number', tokenize = 'porter unicode61')",
    "CREATE TRIGGER log_comes AFTER INSERT ON log BEGIN INSERT INTO log_words (rowid, words) VALUES (NEW.number, NEW.words); END",
    """CREATE TRIGGER log_goes AFTER DELETE ON log BEGIN
         INSERT INTO log_words (log_words, rowid, words) VALUES ('delete', OLD.number, OLD.words); END""",
)


class SQLiteLayers(LayerStorage):
    """The layers in the file of a world."""

    def __init__(self, storage: SQLiteWorld) -> None:
        self._storage = storage

    def prepare_log(self) -> None:
        self._storage.define("log", map(_to_sqlite, (sql.LOG_TABLE, *_LOG_INDEXES)))

    def prepare_chunks(self) -> None:
        self._storage.define("chunks", map(_to_sqlite, (sql.CHUNK_TABLE, sql.CHUNK_ENTITIES)))

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[WorldRow]:
        return self._storage.rows(_to_sqlite(statement), values)

    def vector(self, row: Matrix) -> bytes:
        return np.asarray(row, "<f4").tobytes()

    def nearest(self, vector: Matrix, embedder: str, limit: int) -> tuple[ChunkMatch, ...]:
        found = matches(self.rows(sql.CHUNKS, {"embedder": embedder}), vector)
        return tuple(
            sorted(found, key=lambda each: (-each.similarity, each.chunk.entity_id, each.chunk.id))[:limit]
        )


@cache
def _to_sqlite(statement: str) -> str:
    for theirs, ours in _IN_SQLITE.items():
        statement = statement.replace(theirs, ours)
    return statement
