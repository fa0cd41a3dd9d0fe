"""Texts found by meaning with the graph, as one statement for PostgreSQL: what may not be seen does not leave
the server.

Distances are exact and worked out for the texts in scope alone, without an index on vectors, so that no
filter leaves fewer than there are. Vectors have length 1 or 0, so their inner product is the cosine, and 0
for a text without a known word.
"""

from __future__ import annotations

from typing import Any

from kgot_lab.domains.npc.layers.models import ContextQuery, ContextResult
from kgot_lab.domains.npc.layers.storage import AUDIENCE, OF_DIMENSION
from kgot_lab.domains.npc.statements import WorldRow, entity_of, uuids
from kgot_lab.domains.npc.visibility import SEEN, SEEN_ENTITY, SEEN_RELATIONSHIPS, policy_parameters

_SIMILARITY = (
    "floor(-(x.embedding OPERATOR(pgvector.<#>) CAST(:vector AS pgvector.vector)) * 1000000 + 0.5) / 1000000"
)

NEAREST = f"""
SELECT x.id, x.entity_id, x.content, x.audience, {_SIMILARITY} AS similarity
FROM chunks x WHERE x.embedder = :embedder ORDER BY similarity DESC, x.entity_id, x.id LIMIT :limit"""

EFFORT = (
    "SELECT set_config('hnsw.ef_search', CAST(:effort AS text), true)"  # until the end of the transaction
)
NEAREST_BY_INDEX = f"""
WITH near AS MATERIALIZED (
  SELECT x.id FROM chunks x WHERE {OF_DIMENSION.format(dimension="{dimension}")}
  ORDER BY (x.embedding::pgvector.vector({{dimension}})) OPERATOR(pgvector.<#>) CAST(:vector AS pgvector.vector({{dimension}}))
  LIMIT :limit)
SELECT x.id, x.entity_id, x.content, x.audience, {_SIMILARITY} AS similarity
FROM near JOIN chunks x ON x.id = near.id WHERE x.embedder = :embedder ORDER BY similarity DESC, x.entity_id, x.id"""

CONTEXT = f"""{SEEN},
ties AS MATERIALIZED (SELECT r.source_id, r.target_id FROM {SEEN_RELATIONSHIPS}),
reached (id, hops) AS (
  SELECT id, 0 FROM me
  UNION
  SELECT t.target_id, n.hops + 1 FROM reached n JOIN ties t ON t.source_id = n.id WHERE n.hops < :steps),
nearest AS (SELECT id, min(hops) AS hops FROM reached GROUP BY id),
alike AS (
  SELECT x.id, x.entity_id, x.content, n.hops, {_SIMILARITY} AS similarity
  FROM seen e JOIN chunks x ON x.entity_id = e.id LEFT JOIN nearest n ON n.id = e.id
  WHERE x.embedder = :embedder AND {AUDIENCE} AND (n.hops IS NOT NULL OR :everywhere)
    AND (CAST(:scope AS uuid[]) IS NULL OR e.id = ANY(CAST(:scope AS uuid[])))),
found AS (
  SELECT *, CAST(:weight AS float8) * similarity + (1 - CAST(:weight AS float8)) * coalesce(1 / CAST(1 + hops AS float8), 0) AS score
  FROM alike ORDER BY score DESC, entity_id, id LIMIT :limit)
SELECT {SEEN_ENTITY}, f.content, f.similarity, f.hops, f.score
FROM me LEFT JOIN found f ON true LEFT JOIN seen e ON e.id = f.entity_id ORDER BY f.score DESC, f.entity_id, f.id"""


def query_parameters(asked: ContextQuery, vector: str) -> dict[str, Any]:
    """The values of the statement."""
    ranking = asked.ranking
    return {
        **policy_parameters(asked.npc_id, asked.policy),
        "vector": vector,
        "embedder": asked.embedder,
        "scope": None if asked.scope is None else uuids(*asked.scope),
        "steps": ranking.steps,
        "everywhere": ranking.hops is None,
        "weight": ranking.weight,
        "limit": ranking.limit,
    }


def found_of(rows: list[WorldRow]) -> tuple[ContextResult, ...]:
    """What its rows tell; who asks has one even where nothing was found."""
    return tuple(ContextResult(entity_of(row[:6]), *row[6:]) for row in rows if row[0] is not None)
