"""An approximate index (HNSW) of the texts of a world in PostgreSQL, to compare with the exact search.

The package searches the texts in scope exactly, so that no filter loses a result. The index serves searches of
all texts only, where they are very many.
"""

from __future__ import annotations

from kgot_lab.domains.npc.layers.memory import SemanticIndex
from kgot_lab.domains.npc.layers.models import ChunkMatch
from kgot_lab.domains.npc.layers.storage import SIMILARITY, chunk_from_row
from kgot_lab.domains.npc.opening import PostgresWorld

_OF_DIMENSION = "pgvector.vector_dims(embedding) = {dimension}"  # there may be rows of another embedder
_INDEX = f"""CREATE INDEX chunk_vectors_{{dimension}} ON chunks
  USING hnsw ((embedding::pgvector.vector({{dimension}})) pgvector.vector_ip_ops) WHERE {_OF_DIMENSION}"""
# until the end of the transaction
_EFFORT = "SELECT set_config('hnsw.ef_search', CAST(:effort AS text), true)"
_NEAREST = f"""
WITH near AS MATERIALIZED (
  SELECT x.id FROM chunks x WHERE {_OF_DIMENSION}
  ORDER BY (x.embedding::pgvector.vector({{dimension}})) OPERATOR(pgvector.<#>) CAST(:vector AS pgvector.vector({{dimension}}))
  LIMIT :limit)
SELECT x.id, x.entity_id, x.content, x.audience, {SIMILARITY} AS similarity
FROM near JOIN chunks x ON x.id = near.id WHERE x.embedder = :embedder ORDER BY similarity DESC, x.entity_id, x.id"""


def create_index(chunks: SemanticIndex) -> None:
    """Create the index for the dimension of the embedder, unless it exists. It takes in later chunks."""
    dimension = chunks.embedder.dimension
    _storage(chunks).define(f"chunk_vectors_{dimension}", [_INDEX.format(dimension=dimension)])


def search_by_index(
    chunks: SemanticIndex, query: str, effort: int, limit: int = 10
) -> tuple[ChunkMatch, ...]:
    """Return the nearest of `effort` candidates of the index, which may miss some of the nearest chunks."""
    storage, vector = _storage(chunks), chunks.embed_query(query)
    values = {"vector": storage.vector(vector), "embedder": chunks.embedder.digest, "limit": limit}
    with storage.reading():
        storage.rows(_EFFORT, {"effort": effort})
        rows = storage.rows(_NEAREST.format(dimension=len(vector)), values)
    return tuple(ChunkMatch(chunk_from_row(row), row[-1]) for row in rows)


def _storage(chunks: SemanticIndex) -> PostgresWorld:
    assert isinstance(chunks.storage, PostgresWorld), "only PostgreSQL has such an index"
    return chunks.storage
