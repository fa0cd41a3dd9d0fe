"""The SQL of a world's layers, common to SQLite and PostgreSQL, and GraphRAG: one statement, or in Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import nsmallest
from typing import Any

import numpy as np

from kgot_lab.domains.npc import visibility
from kgot_lab.domains.npc.layers import models
from kgot_lab.domains.npc.models import build_unchecked
from kgot_lab.domains.npc.statements import WorldRow, WorldStorage, parse_json_column, to_utc, uuids
from kgot_lab.embedding.embedder import Matrix
from kgot_lab.stores.lookup import nodes_within
from kgot_lab.stores.sql import json_text

# The queries of the layers, in PostgreSQL's dialect.

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


# GraphRAG as one statement for PostgreSQL, so that hidden data never leaves the server.
#
# Distances are exact and computed for the texts in scope only, without an index on vectors, so that filtering
# loses no result. Vectors have length 1 or 0, so their inner product is the cosine, and 0 for a text without
# a known word.

SIMILARITY = (
    "floor(-(x.embedding OPERATOR(pgvector.<#>) CAST(:vector AS pgvector.vector)) * 1000000 + 0.5) / 1000000"
)

NEAREST = f"""
SELECT x.id, x.entity_id, x.content, x.audience, {SIMILARITY} AS similarity
FROM chunks x WHERE x.embedder = :embedder ORDER BY similarity DESC, x.entity_id, x.id LIMIT :limit"""

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
  SELECT x.id, x.entity_id, x.content, n.hops, {SIMILARITY} AS similarity
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


# GraphRAG in Python, for a world in this process: graph and texts are read in turn.


def context_in_python(storage: WorldStorage, query: models.ContextQuery) -> tuple[models.ContextResult, ...]:
    """Return what the one statement of PostgreSQL does, in the same order.

    Raises BadInput if the character does not exist.
    """
    with storage.reading():
        seen = visibility.visible_world(storage, query.npc_id, query.policy)
        steps = visibility.steps_over(seen.relationships, (), "out")
        at_place = visibility.steps_over(seen.relationships, ("LOCATED_AT",), "in")
        hops_by_id = nodes_within(
            query.npc_id, query.ranking.steps, lambda ids: (to for _, to in (*steps(ids), *at_place(ids)))
        )
        entities = {entity.id: entity for entity in seen.entities}
        for ids in (hops_by_id if query.ranking.hops else None, query.scope):
            entities = {id: each for id, each in entities.items() if ids is None or id in ids}
        rows = storage.rows(CHUNKS_OF, {"embedder": query.embedder, "ids": uuids(*entities)})
    rows = [row for row in rows if models.may_know(_parse_audience(row[3]), query.npc_id)]
    scored = (
        (-query.ranking.score(cosine, hops_by_id.get(row[1])), row[1], row[0], row[2], cosine)
        for cosine, row in zip(_cosines(rows, query.vector), rows, strict=True)
    )
    return tuple(
        models.ContextResult(entities[entity], text, cosine, hops_by_id.get(entity), -score)
        for score, entity, _, text, cosine in nsmallest(query.ranking.limit, scored)
    )


def nearest_in_python(
    storage: WorldStorage, vector: Matrix, embedder: str, limit: int
) -> tuple[models.ChunkMatch, ...]:
    """Return the chunks with the largest cosine, in the order of the statement of PostgreSQL."""
    rows = storage.rows(CHUNKS, {"embedder": embedder})
    ranked = zip(_cosines(rows, vector), rows, strict=True)
    best = nsmallest(limit, ranked, key=lambda each: (-each[0], each[1][1], each[1][0]))
    return tuple(models.ChunkMatch(chunk_from_row(row), cosine) for cosine, row in best)


def _cosines(rows: Sequence[WorldRow], vector: Matrix) -> list[float]:
    """Return the exact cosines of the chunks in some rows, to six digits."""
    vectors = np.frombuffer(b"".join(row[-1] for row in rows), "<f4").reshape(len(rows), len(vector))
    cosines = vectors.astype(float) @ vector.astype(float)
    return [math.floor(cosine * 1000000 + 0.5) / 1000000 for cosine in cosines]
