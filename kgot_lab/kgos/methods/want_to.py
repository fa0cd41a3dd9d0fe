"""What helps to reach a goal: what says so, what enables that, and what that requires (KG-OS, method 2)."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from kgot_lab.errors import BadInput, require, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Ints
from kgot_lab.kgos.methods.formatting import NodesFound
from kgot_lab.kgos.methods.index import GraphIndex, Reals, index_of
from kgot_lab.retrieval.fusion import WEIGHTS, columns
from kgot_lab.retrieval.lexical import INTENT_VERBS
from kgot_lab.retrieval.neighbours import BOOST_AGAINST, BOOST_ALONG, BOOST_SEEDS
from kgot_lab.text.words import searched_words

# from what helps to what it helps; the last is ours
ENABLING = ("enables", "optimizes", "reduces", "contributes_to")
REQUIRING = ("requires",)  # from what is wanted to what it cannot be had without


def want_to(
    graph: PropertyGraph, goal: str, k: int = 10, *, boost_types: Collection[str] | None = None
) -> NodesFound:
    """The nodes that help to reach a goal, best first: score = 2/3 of the text score + 1/3 of the boost, ties
    broken by id.

    Text: BM25 (k1 1.5, b .75, the eight intent verbs five times as heavy) and FTS5, of the two the larger,
    each over its maximum. Boost: from the ten best, against `enables`, `optimizes`, `reduces` and
    `contributes_to` to what enables them (+.3), along `requires` to their prerequisites (+.5), over the
    largest; the document has both directions reversed (decision C-M1). With `boost_types`, as a mapping of
    goals has them, these are followed instead and both ways. The shares are those of text and graph in the
    preset for goals. Raises BadInput for a goal that is no text or blank.
    """
    require(goal, str, "a goal is a text")
    if not goal.strip():
        raise BadInput("the goal is blank; say what is wanted, as in 'reduce API costs'")
    require_count(k, 1, "k", "it is how many nodes are kept")
    index = index_of(graph)
    found, text = columns(index.goals.search(goal), graph.ids)
    texts = np.zeros(len(graph))
    texts[found] = text
    seeds = found[:BOOST_SEEDS].astype(np.int32)
    boosts, first = index.links.boosts(seeds, _worth(index, boost_types))
    weights = WEIGHTS["goal-oriented"]
    scores = (weights.text * texts + weights.graph * boosts) / (weights.text + weights.graph)
    rows = np.flatnonzero(scores)
    order = rows[np.lexsort((index.name_order[rows], -scores[rows]))][:k]
    told = (_path(index, row, texts, first) for row in order.tolist())
    nodes = index.hits(order.tolist(), scores[order].tolist(), told)
    return NodesFound(
        f"want to {goal!r}", nodes, tuple(_reasons(index, goal, len(found), boost_types, len(rows) - k))
    )


def _worth(index: GraphIndex, boost_types: Collection[str] | None) -> Reals:
    if boost_types is not None:
        return index.ways_of(boost_types, along=BOOST_ALONG, against=BOOST_AGAINST)
    return index.ways_of(ENABLING, along=0.0, against=BOOST_AGAINST) + index.ways_of(
        REQUIRING, along=BOOST_ALONG, against=0.0
    )


def _path(index: GraphIndex, row: int, texts: Reals, first: Ints) -> str:
    told = [f"text {texts[row]:.2f}"] if texts[row] else []
    return "; ".join([*told, index.links.path([int(first[row])])] if first[row] >= 0 else told)


def _reasons(
    index: GraphIndex, goal: str, found: int, boost_types: Collection[str] | None, more: int
) -> list[str]:
    words = list(dict.fromkeys(searched_words(goal)))
    told = ", ".join(f"{word} (5 times as heavy)" if word in INTENT_VERBS else word for word in words)
    why = [
        f"words looked for: {told}"
        if words
        else "no word to look for: stop words and single letters are left out"
    ]
    types = [*ENABLING, *REQUIRING] if boost_types is None else sorted(boost_types)
    if not found:
        why.append("no node holds one of them")
    elif not set(types) & set(index.graph.type_names):
        why.append(f"no edge of the graph has one of the types {', '.join(types)}")
    elif more > 0:
        why.append(f"{more:,} more score above 0")
    return why
