"""Which vectors a search by meaning compares: those an embedder makes of the texts of the nodes, or those
that were stored.
"""

from __future__ import annotations

from typing import NamedTuple

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.errors import require
from kgot_lab.kgos.methods.index import GraphIndex
from kgot_lab.retrieval.stage import Stage


class Meant(NamedTuple):
    """The lane of meaning, and where its vectors come from."""

    lane: Stage
    told: str


def lane_of_meaning(
    index: GraphIndex, embedder: Embedder | None, vectors: StoredVectors | None
) -> Meant | None:
    """The lane over stored vectors, the query embedded with what they say made them; else that of an
    embedder; else none.

    Raises BadInput where embedder and vectors do not belong together, and what `query_embedder` raises.
    """
    if vectors is None:
        return (
            None
            if embedder is None
            else Meant(index.meaning(embedder), f"cosine of the vectors of {embedder.name}")
        )
    require(
        vectors,
        StoredVectors,
        "stored vectors are StoredVectors.of(ids, vectors, model=...) or StoredVectors.load(path)",
    )
    if embedder is None:
        from kgot_lab.embedding.embedders import (
            query_embedder,
        )  # brings the client of servers, which most searches do without

        embedder = query_embedder(vectors)
    lane = index.meaning_of(vectors, embedder)
    lacking = len(index.graph) - sum(id in index.graph for id in vectors.ids)
    told = f"cosine of the stored vectors, {vectors.model or 'which do not say what made them'}; the query by {embedder.name}"
    return Meant(lane, told + f"; {lacking:,} nodes have none" * bool(lacking))
