"""Which nodes hold the words of a query anywhere: the lane that needs no statistics (KG-OS, method 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from kgot_lab.errors import require, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.methods.index import index_of
from kgot_lab.methods.printed import MethodResult, NodeHit
from kgot_lab.retrieval.stage import best
from kgot_lab.text.counted import counted
from kgot_lab.text.words import searched_words


@dataclass(frozen=True, repr=False)
class NodesFound(MethodResult):
    """Nodes from best to worst, ties broken by id, and what they were asked for."""

    asked: str
    nodes: tuple[NodeHit, ...]
    why: tuple[str, ...] = ()

    COLUMNS: ClassVar[tuple[str, ...]] = ("id", "name", "type", "score", "why")

    @property
    def title(self) -> str:
        return f"{self.asked}: {counted(len(self.nodes), 'node')}"

    @property
    def scores(self) -> dict[str, float]:
        """The score of each node found, by id."""
        return {node.id: node.score for node in self.nodes}

    def rows(self) -> Sequence[NodeHit]:
        return self.nodes


def keyword_match(graph: PropertyGraph, query: str, k: int | None = None) -> NodesFound:
    """The nodes whose name, labels or properties hold words of a query, even inside a longer word: score = how many different ones.

    As SQL LIKE '%word%' has it. Stop words and single letters are left out, and so are the names of the properties: "description" would
    match every node. All are found, or the best `k`. Raises BadInput.
    """
    require(query, str, "a query is a text")
    if k is not None:
        require_count(k, 1, "k", "it is how many nodes are kept")
    index = index_of(graph)
    ranking = index.substrings.search(query)
    kept = ranking if k is None else best(ranking, k)
    words = list(dict.fromkeys(searched_words(query)))
    told = f"words looked for: {', '.join(words)}" if words else "no word to look for: stop words and single letters are left out"
    cut = [f"{len(ranking.hits) - len(kept.hits):,} more hold one, k={k} keeps the best"] * (len(kept.hits) < len(ranking.hits))
    none = ["no name, label or text holds any of them"] * bool(words and not ranking.hits)
    return NodesFound(f"keyword match for {query!r}", hits_of(graph, kept.hits), (told, *cut, *none))


def hits_of(graph: PropertyGraph, hits: Sequence[tuple[str, float]], why: dict[str, str] | None = None) -> tuple[NodeHit, ...]:
    """Hits with the names and labels of their nodes."""
    index, told = index_of(graph), why or {}
    rows = [graph.row(id) for id, _ in hits]
    return tuple(
        NodeHit(id, index.names[row], index.kinds[row], score, told.get(id, "")) for (id, score), row in zip(hits, rows, strict=True)
    )
