"""Texts found by meaning with the graph, in Python, for a storage that cannot in one question: the graph and
the texts are read apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from kgot_lab.domains.npc.layers.models import ChunkMatch, ContextQuery, ContextResult, may_know
from kgot_lab.domains.npc.layers.storage import CHUNKS_OF, LayerStorage, chunk_of
from kgot_lab.domains.npc.statements import WorldRow, WorldStorage, uuids
from kgot_lab.domains.npc.visibility import seen_by, steps_over
from kgot_lab.embedding.embedder import Matrix
from kgot_lab.stores.lookup import reached


def graphrag_in_python(
    graph: WorldStorage, texts: LayerStorage, asked: ContextQuery
) -> tuple[ContextResult, ...]:
    """What GraphRAG finds, ranked the same; raises BadInput where nobody is there to ask."""
    with graph.reading():
        seen = seen_by(graph, asked.npc_id, asked.policy)
        steps = steps_over(seen.relationships, (), "out")
        near = reached(asked.npc_id, asked.ranking.steps, lambda id: (to for _, to in steps([id])))
        entities = {each.id: each for each in seen.entities if asked.ranking.hops is None or each.id in near}
        if asked.scope is not None:
            entities = {id: entity for id, entity in entities.items() if id in asked.scope}
        rows = texts.rows(CHUNKS_OF, {"embedder": asked.embedder, "ids": uuids(*entities)})
    found = []
    for match in matches(rows, asked.vector):
        if may_know(match.chunk.audience, asked.npc_id):
            hops = near.get(match.chunk.entity_id)
            found.append((match, hops, asked.ranking.score(match.similarity, hops)))
    found.sort(key=lambda each: (-each[2], each[0].chunk.entity_id, each[0].chunk.id))
    return tuple(
        ContextResult(entities[match.chunk.entity_id], match.chunk.text, match.similarity, hops, score)
        for match, hops, score in found[: asked.ranking.limit]
    )


def matches(rows: Iterable[WorldRow], vector: Matrix) -> list[ChunkMatch]:
    """Chunks of a table and how near each is, by exact cosines."""
    rows = list(rows)
    vectors = (
        np.frombuffer(b"".join(row[-1] for row in rows), "<f4").reshape(len(rows), -1)
        if rows
        else np.zeros((0, len(vector)))
    )
    cosines = vectors.astype(float) @ vector.astype(float)
    return [
        ChunkMatch(chunk_of(row), math.floor(cosine * 1000000 + 0.5) / 1000000)
        for row, cosine in zip(rows, cosines, strict=True)
    ]
