"""The layers of a world on PostgreSQL: words by its text search, vectors by pgvector, and both with the graph
in one statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from kgot_lab.domains.npc.layers import statements as sql
from kgot_lab.domains.npc.layers.models import ChunkMatch, ContextQuery, ContextResult
from kgot_lab.domains.npc.layers.storage import (
    CONTEXT,
    EFFORT,
    NEAREST,
    NEAREST_BY_INDEX,
    GraphRAG,
    LayerStorage,
    VectorIndex,
    chunk_of,
    found_of,
    query_parameters,
)
from kgot_lab.domains.npc.opening import PostgresWorld
from kgot_lab.domains.npc.statements import WorldRow
from kgot_lab.domains.npc.visibility import no_entity
from kgot_lab.embedding.embedder import Matrix
from kgot_lab.stores.postgres.rows import pgvector_text
from kgot_lab.stores.postgres.tables import quoted


class PostgresLayers(LayerStorage, GraphRAG, VectorIndex):
    """The layers in the schema of a world."""

    def __init__(self, storage: PostgresWorld) -> None:
        self._storage = storage
        self._vectors = ""  # the schema of pgvector, once chunks are asked for

    def prepare_log(self) -> None:
        self._storage.define("log", (sql.LOG_TABLE, sql.LOG_SESSIONS, sql.LOG_WORDS))

    def prepare_chunks(self) -> None:
        self._vectors = self._storage.vectors()
        self._storage.define("chunks", (_spelt(sql.CHUNK_TABLE, self._vectors), sql.CHUNK_ENTITIES))

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[WorldRow]:
        return self._storage.rows(_spelt(statement, self._vectors), values)

    def vector(self, row: Matrix) -> str:
        return pgvector_text(row)

    def nearest(self, vector: Matrix, embedder: str, limit: int) -> tuple[ChunkMatch, ...]:
        rows = self.rows(NEAREST, {"vector": self.vector(vector), "embedder": embedder, "limit": limit})
        return tuple(ChunkMatch(chunk_of(row), row[-1]) for row in rows)

    def prepare_index(self, dimension: int) -> None:
        made = sql.CHUNK_VECTORS.format(
            dimension=dimension, of_dimension=sql.OF_DIMENSION.format(dimension=dimension)
        )
        self._storage.define(f"chunk_vectors_{dimension}", (_spelt(made, self._vectors),))

    def nearest_by_index(
        self, vector: Matrix, embedder: str, limit: int, effort: int
    ) -> tuple[ChunkMatch, ...]:
        with self._storage.reading():
            self.rows(EFFORT, {"effort": effort})
            statement = NEAREST_BY_INDEX.format(dimension=len(vector))
            rows = self.rows(statement, {"vector": self.vector(vector), "embedder": embedder, "limit": limit})
        return tuple(ChunkMatch(chunk_of(row), row[-1]) for row in rows)

    def query_with_context(self, asked: ContextQuery) -> tuple[ContextResult, ...]:
        rows = self.rows(CONTEXT, query_parameters(asked, self.vector(asked.vector)))
        if not rows:  # not even the row of who asks
            raise no_entity(asked.npc_id)
        return found_of(rows)


@cache
def _spelt(statement: str, vectors: str) -> str:
    """A statement with the schema of pgvector, which is on no search path: it may hold tables of other
    worlds.
    """
    return statement.replace("pgvector.", f"{quoted(vectors)}.")
