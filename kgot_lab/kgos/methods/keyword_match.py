"""Which nodes hold the words of a query anywhere: the lane that needs no statistics (KG-OS, method 11)."""

from __future__ import annotations

from kgot_lab.errors import require, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.formatting import NodesFound
from kgot_lab.kgos.methods.index import index_of
from kgot_lab.retrieval.fusion import columns
from kgot_lab.retrieval.stage import best
from kgot_lab.text.words import searched_words


def keyword_match(graph: PropertyGraph, query: str, k: int | None = None) -> NodesFound:
    """The nodes whose name, labels or properties hold words of a query, even inside a longer word: score =
    how many different ones.

    As SQL LIKE '%word%' has it. Stop words and single letters are left out, and so are the names of the
    properties: "description" would match every node. All are found, or the best `k`. Raises BadInput.
    """
    require(query, str, "a query is a text")
    if k is not None:
        require_count(k, 1, "k", "it is how many nodes are kept")
    index = index_of(graph)
    ranking = index.substrings.search(query)
    kept = ranking if k is None else best(ranking, k)
    words = list(dict.fromkeys(searched_words(query)))
    told = (
        f"words looked for: {', '.join(words)}"
        if words
        else "no word to look for: stop words and single letters are left out"
    )
    cut = [f"{len(ranking.hits) - len(kept.hits):,} more hold one, k={k} keeps the best"] * (
        len(kept.hits) < len(ranking.hits)
    )
    none = ["no name, label or text holds any of them"] * bool(words and not ranking.hits)
    rows, scores = columns(kept, graph.ids)
    return NodesFound(
        f"keyword match for {query!r}", index.hits(rows.tolist(), scores.tolist()), (told, *cut, *none)
    )
