"""Texts about the entities of a world, found by meaning (L2)."""

from __future__ import annotations

from collections.abc import Iterable

from kgot_lab.domains.npc.layers import statements as sql
from kgot_lab.domains.npc.layers.models import Chunk, ChunkMatch
from kgot_lab.domains.npc.layers.storage import VectorIndex, audience_text, layers_of
from kgot_lab.domains.npc.models import fit_id
from kgot_lab.domains.npc.statements import uuids
from kgot_lab.domains.npc.world import NpcWorld, require_entities
from kgot_lab.embedding.embedder import Embedder, Matrix, checked_embedder
from kgot_lab.errors import BadInput, require, require_count
from kgot_lab.memory.claims.claim import plain_text

MOST_EFFORT = 1_000  # that pgvector takes


class SemanticIndex:
    """Chunks with the vectors of one embedder; its own methods see all of them, as a world's author does.

    Raises BadInput where another embedder's are there, StoreUnavailable for a server without pgvector.
    """

    def __init__(self, world: NpcWorld, embedder: Embedder) -> None:
        checked_embedder(embedder)
        self.world, self.embedder, self.storage = world, embedder, layers_of(world)
        self.storage.prepare_chunks()
        self._refuse_others()

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Add some chunks, all or none, or in the place of those with their ids; raises BadInput where an
        entity is not there.
        """
        chunks = list(chunks)
        for chunk in chunks:
            require(
                chunk, Chunk, "what is added to the texts of a world is a Chunk(entity_id, text, audience)"
            )
        vectors = self.embedder.embed([each.text for each in chunks])
        with self.world.storage.changing():
            self._refuse_others()
            require_entities(
                self.world.storage, {id for each in chunks for id in (each.entity_id, *(each.audience or ()))}
            )
            for each, vector in zip(chunks, vectors, strict=True):
                id, entity = uuids(each.id, each.entity_id)
                told = {
                    "text": each.text,
                    "audience": audience_text(each.audience),
                    "embedder": self.embedder.digest,
                }
                self.storage.rows(
                    sql.PUT_CHUNK, {"id": id, "entity": entity, "vector": self.storage.vector(vector), **told}
                )

    def delete(self, id: str) -> None:
        """Delete a chunk; raises BadInput where it is not there."""
        (given,) = uuids(fit_id(id))
        with self.world.storage.changing():
            if not self.storage.rows(sql.CHUNK_THERE, {"id": given}):
                raise BadInput(f"there is no chunk {given}")
            self.storage.rows(sql.DELETE_CHUNK, {"id": given})

    def search(self, query: str, limit: int = 10, *, effort: int | None = None) -> tuple[ChunkMatch, ...]:
        """The chunks nearest in meaning, whoever may know them, by exact cosines.

        With an effort, most of them: those that an index (HNSW) finds among so many candidates, `limit` at
        least and 1000 at most. It is for an author with very many texts; what someone in the world knows is
        never looked up in it. Without an index every text is looked at. Raises BadInput.
        """
        require_count(limit, 1, "limit", "how many texts are found")
        if effort is None:
            return self.storage.nearest(self.vector_of(query), self.embedder.digest, limit)
        require_count(effort, limit, "effort", "how many texts are looked at, limit or more")
        if effort > MOST_EFFORT:
            raise BadInput(
                f"effort is {MOST_EFFORT:,} at most, not {effort:,}: without one every text is looked at"
            )
        return self._indexed().nearest_by_index(self.vector_of(query), self.embedder.digest, limit, effort)

    def index(self) -> None:
        """Make the index that a search with an effort looks into, unless it is there; chunks that come later
        are in it too.

        Raises BadInput for a storage that has none.
        """
        self._indexed().prepare_index(self.embedder.dimension)

    def _indexed(self) -> VectorIndex:
        if not isinstance(self.storage, VectorIndex):
            raise BadInput("only a world in PostgreSQL has an index of vectors: search without an effort")
        return self.storage

    def vector_of(self, query: str) -> Matrix:
        """The vector of a question, shape (dimension,)."""
        vector: Matrix = self.embedder.embed([plain_text(query, "the question")])[0]
        return vector

    def _refuse_others(self) -> None:
        if self.storage.rows(sql.OTHER_EMBEDDERS, {"embedder": self.embedder.digest}):
            raise BadInput(
                f"the texts of this world have the vectors of another embedder than {self.embedder.name}: open it with that one"
            )
