"""All layers of a world, and what one of those in it knows by them."""

from __future__ import annotations

from collections.abc import Iterable

from kgot_lab.domains.npc.layers.memory import SemanticIndex, SessionLog
from kgot_lab.domains.npc.layers.models import (
    DEFAULT_RANKING,
    ContextQuery,
    ContextRanking,
    ContextResult,
    fit_ids,
)
from kgot_lab.domains.npc.layers.storage import GraphRAG, graphrag_in_python
from kgot_lab.domains.npc.policy import DEFAULT_POLICY, VisibilityPolicy
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import require


class WorldLayers:
    """A world with its log (L1) and its texts (L2) beside the graph (L3); raises what SemanticIndex does."""

    def __init__(self, world: NpcWorld, embedder: Embedder) -> None:
        self.world = world
        self.log, self.chunks = SessionLog(world), SemanticIndex(world, embedder)

    def memory(self, npc_id: str, *, policy: VisibilityPolicy = DEFAULT_POLICY) -> NpcMemory:
        """What someone knows, for as long as that one is there."""
        return NpcMemory(self, npc_id, policy)


class NpcMemory:
    """What one of those in a world knows: the graph that it sees, the log that it heard, and the texts that
    it may know.
    """

    def __init__(self, layers: WorldLayers, npc_id: str, policy: VisibilityPolicy = DEFAULT_POLICY) -> None:
        self._layers = layers
        self.sight = layers.world.sight(npc_id, policy=policy)
        self.log = layers.log.log_of(npc_id)
        self.npc_id = self.sight.npc_id

    def __repr__(self) -> str:
        return f"<what {self.npc_id} knows>"

    def query_with_context(
        self, query: str, scope: Iterable[str] | None = None, *, ranking: ContextRanking = DEFAULT_RANKING
    ) -> tuple[ContextResult, ...]:
        """The texts that are near in meaning and in the graph: of the entities in `scope` (ids; None: all)
        those that it sees.

        One question to a storage that has GraphRAG, else the graph and the texts are read apart. Raises
        BadInput.
        """
        require(ranking, ContextRanking, "a ranking of texts is a ContextRanking(hops, limit, weight)")
        ids = None if scope is None else fit_ids(scope, "a scope")
        chunks = self._layers.chunks
        vector, embedder = chunks.vector_of(query), chunks.embedder.digest
        asked = ContextQuery(self.npc_id, vector, embedder, ids, ranking, self.sight.policy)
        if isinstance(chunks.storage, GraphRAG):
            return chunks.storage.query_with_context(asked)
        return graphrag_in_python(chunks.world.storage, chunks.storage, asked)
