"""What keeps the log and the texts of a world, and what it may offer beside that: texts and graph searched in
one question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from kgot_lab.domains.npc.layers.models import ChunkMatch, ContextQuery, ContextResult
from kgot_lab.domains.npc.statements import WorldRow
from kgot_lab.embedding.embedder import Matrix


class LayerStorage(Protocol):
    """The tables of a world's layers, on one engine; raises StoreUnavailable and StoreDamaged."""

    def prepare_log(self) -> None: ...  # make its tables, unless they are there
    def prepare_chunks(self) -> None: ...  # raises StoreUnavailable where the engine has no vectors
    def rows(
        self, statement: str, values: Mapping[str, Any] = ...
    ) -> list[WorldRow]: ...  # a statement of `statements`
    def vector(self, row: Matrix) -> str | bytes: ...  # as its table holds one
    def nearest(
        self, vector: Matrix, embedder: str, limit: int
    ) -> tuple[ChunkMatch, ...]: ...  # of all chunks of an embedder's


@runtime_checkable
class GraphRAG(Protocol):
    """A LayerStorage that searches texts with the graph in one question to its database; others are asked
    twice (`graphrag_in_python`).
    """

    def query_with_context(
        self, asked: ContextQuery
    ) -> tuple[ContextResult, ...]: ...  # raises BadInput where nobody is there to ask


@runtime_checkable
class VectorIndex(Protocol):
    """A LayerStorage that can look for the nearest chunks in an index, which finds most of them and reads
    few.
    """

    def prepare_index(self, dimension: int) -> None: ...  # make it, unless it is there
    def nearest_by_index(
        self, vector: Matrix, embedder: str, limit: int, effort: int
    ) -> tuple[ChunkMatch, ...]: ...
