"""The embedder of searches: all-MiniLM where it is installed, with the vectors of a graph computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import NotInstalled
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.kgos.methods.search.multi_graph import MultiGraph
from kgot_lab.types import full_text

BY_WORDS, DEFAULT = "none", "minilm"
_UNASKED = 2_000  # nodes whose vectors are computed unless an embedder is named, in about ten seconds


@dataclass
class SearchEmbedder:
    """The embedder of searches by its name, loaded when a search first needs it.

    "none" searches by words only. None is all-MiniLM if it is installed, and if the graph has few nodes or
    their vectors were computed before. These are in the cache of the user, by the text of a node and the digest of
    the embedder. `progress(done, total)` counts the texts that are computed.
    """

    name: str | None = None
    progress: Callable[[int, int], object] | None = None

    def select(self, graph: PropertyGraph | MultiGraph) -> tuple[Embedder | None, str]:
        """Return the embedder for a graph, or None, and what a search goes by, in words.

        Raises what `embedder_by_name` raises for a name that was given.
        """
        if self.name == BY_WORDS:
            return None, "searched by words only: the embedder is none"
        try:
            embedder = self._embedder
        except NotInstalled as error:
            if self.name is not None:
                raise
            return None, f"searched by words only: no embedder; {error}"
        graph = graph.graph if isinstance(graph, MultiGraph) else graph
        if self.name is None and len(graph) > _UNASKED:
            texts = list(map(full_text, graph_index(graph).documents))
            if not getattr(embedder, "has_vectors", lambda _: False)(texts):
                many = f"the vectors of {len(graph):,} nodes are not computed"
                return None, f"searched by words only: {many}; --embedder {DEFAULT} computes them, once"
        return embedder, f"searched by words and meaning ({embedder.name})"

    @cached_property
    def _embedder(self) -> Embedder:
        from kgot_lab.embedding.embedders import embedder_by_name  # brings the client of servers

        return embedder_by_name(self.name or DEFAULT, progress=self.progress)
