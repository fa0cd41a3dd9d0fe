"""Storage of a world's layers on SQLite and PostgreSQL, and GraphRAG.

GraphRAG takes two queries in Python and one in PostgreSQL.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from heapq import nsmallest
from typing import Any

import numpy as np

from kgot_lab.domains.npc import visibility
from kgot_lab.domains.npc.layers import models
from kgot_lab.domains.npc.models import build_unchecked
from kgot_lab.domains.npc.opening import PostgresWorld, SQLiteWorld
from kgot_lab.domains.npc.statements import (
    DEFINITIONS,
    WorldRow,
    parse_json_column,
    to_entity,
    to_utc,
    uuids,
)
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.embedding.embedder import Matrix
from kgot_lab.errors import BadInput, describe_value, require
from kgot_lab.stores.lookup import nodes_within
from kgot_lab.stores.postgres.rows import pgvector_text
from kgot_lab.stores.postgres.tables import quote_identifier
from kgot_lab.stores.sql import json_text

# The queries of the layers, in PostgreSQL's dialect.

CHUNK_VECTORS = """CREATE INDEX chunk_vectors_{dimension} ON chunks
  USING hnsw ((embedding::pgvector.vector({dimension})) pgvector.vector_ip_ops) WHERE {of_dimension}"""
OF_DIMENSION = "pgvector.vector_dims(embedding) = {dimension}"  # may have rows of another embedder

AUDIENCE_CONDITION = "(x.audience IS NULL OR x.audience ? CAST(:npc AS text))"  # the rule of `may_know`
HEARD_CONDITION = f"({AUDIENCE_CONDITION} OR x.speaker_id = :npc)"

ALWAYS_TRUE = "true"

INDEXED = "to_tsvector('pg_catalog.english', :words)"
APPEND = f"""INSERT INTO log (session_id, speaker_id, text, audience, at, words)
  VALUES (:session, :speaker, :text, :audience, :at, {INDEXED})"""
_ENTRY_COLUMNS = "x.number, x.session_id, x.speaker_id, x.text, x.audience, x.at"
TERMS = "unnest(CAST(:terms AS text[])) AS t (value)"
MATCHED = "JOIN log x ON x.words @@ plainto_tsquery('pg_catalog.english', t.value)"

PUT_CHUNK = """INSERT INTO chunks (id, entity_id, content, audience, embedder, embedding)
  VALUES (:id, :entity, :text, :audience, :embedder, :vector) ON CONFLICT (id) DO UPDATE SET entity_id = excluded.entity_id,
  content = excluded.content, audience = excluded.audience, embedder = excluded.embedder, embedding = excluded.embedding"""
CHUNK_EXISTS = "SELECT 1 FROM chunks x WHERE x.id = :id"
DELETE_CHUNK = "DELETE FROM chunks WHERE id = :id"
_CHUNK_COLUMNS = "x.id, x.entity_id, x.content, x.audience"
CHUNKS = f"SELECT {_CHUNK_COLUMNS}, x.embedding FROM chunks x WHERE x.embedder = :embedder"
CHUNKS_OF = f"{CHUNKS} AND x.entity_id = ANY(:ids)"
OTHER_EMBEDDERS = "SELECT 1 FROM chunks x WHERE x.embedder <> :embedder LIMIT 1"


def select_entries_with_words(condition: str) -> str:
    """Build the statement that finds entries with some words: those with more of them first, then the latest.

    `condition` says which are searched. No score of the index itself decides the order, because it would depend on
    entries that others heard.
    """
    return f"""SELECT {_ENTRY_COLUMNS} FROM {TERMS} {MATCHED}
  WHERE {condition} GROUP BY x.number ORDER BY count(*) DESC, x.number DESC LIMIT :limit"""


def select_last_entries(condition: str) -> str:
    """Build the statement that finds the last entries."""
    return f"SELECT {_ENTRY_COLUMNS} FROM log x WHERE {condition} ORDER BY x.number DESC LIMIT :limit"


# Conversion of rows to entries and chunks.


def entry_from_row(row: WorldRow) -> models.LogEntry:
    """Convert a row to an entry."""
    _, session, speaker, text, audience, at = row
    values = {"session_id": session, "text": text, "audience": _parse_audience(audience), "at": to_utc(at)}
    return build_unchecked(models.LogEntry, **values, speaker_id=speaker and str(speaker))


def chunk_from_row(row: WorldRow) -> models.Chunk:
    """Convert the first columns of a row to a chunk."""
    id, entity, text, audience = row[0], row[1], row[2], _parse_audience(row[3])
    return build_unchecked(models.Chunk, entity_id=str(entity), text=text, audience=audience, id=str(id))


def audience_text(audience: models.Audience) -> str | None:
    """Serialize an audience for its column."""
    return None if audience is None else json_text(list(audience), "an audience")


def _parse_audience(value: Any) -> models.Audience:
    return None if value is None else tuple(parse_json_column(value))


def cosines_of_rows(rows: Sequence[WorldRow], vector: Matrix) -> list[float]:
    """Return the exact cosines of the chunks in some rows, to six digits."""
    vectors = np.frombuffer(b"".join(row[-1] for row in rows), "<f4").reshape(len(rows), len(vector))
    cosines = vectors.astype(float) @ vector.astype(float)
    return [math.floor(cosine * 1000000 + 0.5) / 1000000 for cosine in cosines]


# GraphRAG as one statement for PostgreSQL, so that hidden data never leaves the server.
#
# Distances are exact and computed for the texts in scope only, without an index on vectors, so that filtering
# loses no result. Vectors have length 1 or 0, so their inner product is the cosine, and 0 for a text without
# a known word.

_SIMILARITY = (
    "floor(-(x.embedding OPERATOR(pgvector.<#>) CAST(:vector AS pgvector.vector)) * 1000000 + 0.5) / 1000000"
)

NEAREST = f"""
SELECT x.id, x.entity_id, x.content, x.audience, {_SIMILARITY} AS similarity
FROM chunks x WHERE x.embedder = :embedder ORDER BY similarity DESC, x.entity_id, x.id LIMIT :limit"""

# until the end of the transaction
EFFORT = "SELECT set_config('hnsw.ef_search', CAST(:effort AS text), true)"
NEAREST_BY_INDEX = f"""
WITH near AS MATERIALIZED (
  SELECT x.id FROM chunks x WHERE {OF_DIMENSION.format(dimension="{dimension}")}
  ORDER BY (x.embedding::pgvector.vector({{dimension}})) OPERATOR(pgvector.<#>) CAST(:vector AS pgvector.vector({{dimension}}))
  LIMIT :limit)
SELECT x.id, x.entity_id, x.content, x.audience, {_SIMILARITY} AS similarity
FROM near JOIN chunks x ON x.id = near.id WHERE x.embedder = :embedder ORDER BY similarity DESC, x.entity_id, x.id"""

CONTEXT = f"""{visibility.SEEN},
ties AS MATERIALIZED (
  SELECT r.source_id, r.target_id FROM {visibility.SEEN_RELATIONSHIPS} UNION ALL
  SELECT r.target_id, r.source_id FROM {visibility.SEEN_RELATIONSHIPS} AND r.rel_type = 'LOCATED_AT'),
reached (id, hops) AS (
  SELECT id, 0 FROM me
  UNION
  SELECT t.target_id, n.hops + 1 FROM reached n JOIN ties t ON t.source_id = n.id WHERE n.hops < :steps),
nearest AS (SELECT id, min(hops) AS hops FROM reached GROUP BY id),
alike AS (
  SELECT x.id, x.entity_id, x.content, n.hops, {_SIMILARITY} AS similarity
  FROM seen e JOIN chunks x ON x.entity_id = e.id LEFT JOIN nearest n ON n.id = e.id
  WHERE x.embedder = :embedder AND {AUDIENCE_CONDITION} AND (n.hops IS NOT NULL OR :everywhere)
    AND (CAST(:scope AS uuid[]) IS NULL OR e.id = ANY(CAST(:scope AS uuid[])))),
found AS (
  SELECT *, CAST(:weight AS float8) * similarity + (1 - CAST(:weight AS float8)) * coalesce(1 / CAST(1 + hops AS float8), 0) AS score
  FROM alike ORDER BY score DESC, entity_id, id LIMIT :limit)
SELECT {visibility.SEEN_ENTITY}, f.content, f.similarity, f.hops, f.score
FROM me LEFT JOIN found f ON true LEFT JOIN seen e ON e.id = f.entity_id ORDER BY f.score DESC, f.entity_id, f.id"""


def query_parameters(query: models.ContextQuery, vector: str) -> dict[str, Any]:
    """Return the parameters of the statement."""
    ranking = query.ranking
    return {
        **visibility.policy_parameters(query.npc_id, query.policy),
        **vars(ranking),
        "vector": vector,
        "embedder": query.embedder,
        "scope": None if query.scope is None else uuids(*query.scope),
        "steps": ranking.steps,
        "everywhere": ranking.hops is None,
    }


# The layers of a world in an SQLite file: lexical search by FTS5, vectors by a scan of the texts in scope.


class SQLiteLayers:
    """The layers in the file of a world. Raises StoreUnavailable and StoreDamaged."""

    def __init__(self, storage: SQLiteWorld) -> None:
        self._storage = storage

    def prepare_log(self) -> None:
        self._storage.define("log", (*DEFINITIONS["log"], *DEFINITIONS["log_words_sqlite"]))

    def prepare_chunks(self) -> None:
        self._storage.define("chunks", DEFINITIONS["chunks"])

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[WorldRow]:
        return self._storage.rows(statement, values)

    def vector(self, row: Matrix) -> bytes:
        return np.asarray(row, "<f4").tobytes()

    def nearest(self, vector: Matrix, embedder: str, limit: int) -> tuple[models.ChunkMatch, ...]:
        rows = self.rows(CHUNKS, {"embedder": embedder})
        ranked = zip(cosines_of_rows(rows, vector), rows, strict=True)
        best = nsmallest(limit, ranked, key=lambda each: (-each[0], each[1][1], each[1][0]))
        return tuple(models.ChunkMatch(chunk_from_row(row), cosine) for cosine, row in best)

    def query_with_context(self, query: models.ContextQuery) -> tuple[models.ContextResult, ...]:
        """Return what the one statement of PostgreSQL does, in the same order, from graph and texts in turn.

        Raises BadInput if the character does not exist.
        """
        with self._storage.reading():
            seen = visibility.visible_world(self._storage, query.npc_id, query.policy)
            steps = visibility.steps_over(seen.relationships, (), "out")
            at_place = visibility.steps_over(seen.relationships, ("LOCATED_AT",), "in")
            hops_by_id = nodes_within(
                query.npc_id, query.ranking.steps, lambda ids: (to for _, to in (*steps(ids), *at_place(ids)))
            )
            entities = {entity.id: entity for entity in seen.entities}
            for ids in (hops_by_id if query.ranking.hops else None, query.scope):
                entities = {id: each for id, each in entities.items() if ids is None or id in ids}
            rows = self.rows(CHUNKS_OF, {"embedder": query.embedder, "ids": uuids(*entities)})
        rows = [row for row in rows if models.may_know(_parse_audience(row[3]), query.npc_id)]
        scored = (
            (-query.ranking.score(cosine, hops_by_id.get(row[1])), row[1], row[0], row[2], cosine)
            for cosine, row in zip(cosines_of_rows(rows, query.vector), rows, strict=True)
        )
        return tuple(
            models.ContextResult(entities[entity], text, cosine, hops_by_id.get(entity), -score)
            for score, entity, _, text, cosine in nsmallest(query.ranking.limit, scored)
        )


# The layers of a world on PostgreSQL: its full-text search, pgvector, and both with the graph in one
# statement.


class PostgresLayers:
    """The layers in the schema of a world, with an approximate index of the nearest chunks.

    Raises StoreUnavailable, also where the server has no vectors, and StoreDamaged.
    """

    def __init__(self, storage: PostgresWorld) -> None:
        self._storage = storage
        self._vectors = ""  # the schema of pgvector, once chunks are used

    def prepare_log(self) -> None:
        self._storage.define("log", (*DEFINITIONS["log"], *DEFINITIONS["log_words_postgres"]))

    def prepare_chunks(self) -> None:
        self._vectors = self._storage.vectors()
        definitions = (_with_vector_schema(each, self._vectors) for each in DEFINITIONS["chunks"])
        self._storage.define("chunks", definitions)

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[WorldRow]:
        return self._storage.rows(_with_vector_schema(statement, self._vectors), values)

    def vector(self, row: Matrix) -> str:
        return pgvector_text(row)

    def nearest(self, vector: Matrix, embedder: str, limit: int) -> tuple[models.ChunkMatch, ...]:
        rows = self.rows(NEAREST, {"vector": self.vector(vector), "embedder": embedder, "limit": limit})
        return tuple(models.ChunkMatch(chunk_from_row(row), row[-1]) for row in rows)

    def prepare_index(self, dimension: int) -> None:
        condition = OF_DIMENSION.format(dimension=dimension)
        definition = CHUNK_VECTORS.format(dimension=dimension, of_dimension=condition)
        self._storage.define(f"chunk_vectors_{dimension}", (_with_vector_schema(definition, self._vectors),))

    def nearest_by_index(
        self, vector: Matrix, embedder: str, limit: int, effort: int
    ) -> tuple[models.ChunkMatch, ...]:
        with self._storage.reading():
            self.rows(EFFORT, {"effort": effort})
            statement = NEAREST_BY_INDEX.format(dimension=len(vector))
            rows = self.rows(statement, {"vector": self.vector(vector), "embedder": embedder, "limit": limit})
        return tuple(models.ChunkMatch(chunk_from_row(row), row[-1]) for row in rows)

    def query_with_context(self, asked: models.ContextQuery) -> tuple[models.ContextResult, ...]:
        rows = self.rows(CONTEXT, query_parameters(asked, self.vector(asked.vector)))
        if not rows:  # not even the row of the character
            raise visibility.missing_entity_error(asked.npc_id)
        # a character without results has one row
        return tuple(models.ContextResult(to_entity(row[:6]), *row[6:]) for row in rows if row[0] is not None)


@cache
def _with_vector_schema(statement: str, vectors: str) -> str:
    """Insert the schema of pgvector into a statement.

    It is on no search path, because it may contain tables of other worlds.
    """
    return statement.replace("pgvector.", f"{quote_identifier(vectors)}.")


# The layers for each storage of a world.


def layers_of(world: NpcWorld) -> SQLiteLayers | PostgresLayers:
    """Return the layers of a world, stored in the same database.

    Raises BadInput if its storage has none.
    """
    require(world, NpcWorld, "layers lie on an NpcWorld")
    if isinstance(world.storage, SQLiteWorld):
        return SQLiteLayers(world.storage)
    if isinstance(world.storage, PostgresWorld):
        return PostgresLayers(world.storage)
    raise BadInput(f"layers lie on a world in SQLite or PostgreSQL, not in {describe_value(world.storage)}")
