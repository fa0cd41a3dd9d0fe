"""Rank nodes by keywords (KG-OS, method 11), by links to seeds (method 12) and by similarity (method 5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import require_amount, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.formatting import MethodResult, NodesFound
from kgot_lab.kgos.methods.index import GraphIndex, Reals, graph_index
from kgot_lab.retrieval.neighbours import INCOMING_BOOST, OUTGOING_BOOST, neighbour_steps
from kgot_lab.retrieval.stage import best
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import name_tokens, searched_words


@check_arguments
def keyword_match(graph: PropertyGraph, query: str, k: int | None = None) -> NodesFound:
    """Rank the nodes by how many different query words their name, labels or properties contain.

    A word may be inside a longer word, as in SQL LIKE '%word%'. Stop words and single letters are left out,
    and so are the names of properties: "description" would match every node. All nodes are returned, or the
    best `k`. Raises BadInput.
    """
    if k is not None:
        require_count(k, 1, "k", "it is how many nodes are kept")
    index = graph_index(graph)
    ranking = index.substring_retriever.search(query)
    selected = ranking if k is None else best(ranking, k)
    words = list(dict.fromkeys(searched_words(query)))
    none_left = "no word to look for: stop words and single letters are left out"
    words_text = f"words looked for: {', '.join(words)}" if words else none_left
    cut = (
        [f"{len(ranking.hits) - len(selected.hits):,} more hold one, k={k} keeps the best"]
        if len(selected.hits) < len(ranking.hits)
        else []
    )
    none = ["no name, label or text holds any of them"] if words and not ranking.hits else []
    rows, scores = index.rows_and_scores(selected)
    hits = index.hits(rows.tolist(), scores.tolist())
    return NodesFound(f"keyword match for {query!r}", hits, (words_text, *cut, *none))


# Rank by the links to some nodes, over chosen edge types (KG-OS, method 12).


@check_arguments
def edge_type_boost(
    graph: PropertyGraph,
    seeds: Iterable[str],
    boost_types: Collection[str] | Mapping[str, float] | None = None,
) -> NodesFound:
    """Rank the nodes that the seeds are linked to by the number of edges, weighted by direction.

    boost(d) = .5 * edges from a seed + .3 * edges to a seed, over the largest. With
    `boost_types`, only edges of these types count, each equally or as a mapping says: {"enables": 1,
    "relates_to": 0.5}. A self-loop boosts nothing. A seed is found if another seed is linked to it.
    As a stage of a pipeline it is `retrieval.neighbours.around`. Raises UnknownName for an unknown seed, or
    if no edge has such a type.
    """
    index = graph_index(graph)
    rows = index.rows(seeds)
    for name, value in boost_types.items() if isinstance(boost_types, Mapping) else ():
        require_amount(value, f"the weight of {name}", positive=True)
    absent = index.absent_types(boost_types)
    weights = index.edge_type_weights(boost_types, along=OUTGOING_BOOST, against=INCOMING_BOOST)
    boosts, first = index.links.boosts(rows, weights)
    order = index.rows_by_score(boosts)
    paths = (index.links.path([step]) for step in first[order].tolist())
    nodes = index.hits(order.tolist(), boosts[order].tolist(), paths)
    along = "any type" if boost_types is None else ", ".join(sorted(boost_types))
    weighted = f"outgoing +{OUTGOING_BOOST:g}, incoming +{INCOMING_BOOST:g}, divided by the largest"
    why = [f"edges followed: {along}; {weighted}"]
    if absent:
        why.append(f"no edge of the graph has the type {', '.join(absent)}")
    if not nodes:
        why.append("no seeds were given" if not len(rows) else "no such edge joins a seed with another node")
    return NodesFound(f"edge-type boost from {format_count(len(rows), 'seed')}", nodes, tuple(why))


# Rank by similarity to a node: neighbours, type and words of the name (KG-OS, method 5).

_JACCARD_WEIGHT, _TYPE_WEIGHT, _NAME_WEIGHT = 0.70, 0.20, 0.10  # KG-OS, section 6


class SimilarNode(NamedTuple):
    """A similar node, with its score and the three parts of it."""

    id: str
    name: str
    type: str
    score: float
    jaccard: float
    type_match: float
    name_overlap: float


@dataclass(frozen=True, repr=False)
class SimilarNodes(MethodResult):
    """The nodes most like one, best first, ties broken by id."""

    node: str
    nodes: tuple[SimilarNode, ...]
    why: tuple[str, ...]

    COLUMNS = ("id", "name", "type", "score", "jaccard", "type match", "name overlap")

    @property
    def title(self) -> str:
        return f"similar to {self.node}: {format_count(len(self.nodes), 'node')}"


@check_arguments
def similar_to(graph: PropertyGraph, node: str, k: int = 10) -> SimilarNodes:
    """Rank the nodes most like a node by .70 * Jaccard + .20 * same type + .10 * name overlap.

    Jaccard is the index of their sets of neighbours, in either direction, without the two nodes; it is 0
    without neighbours. Types are the same if a label is shared. Name overlap is the share of
    common words in all words of both names. Nodes with score 0 are left out. Raises UnknownName for an
    unknown node, with similar ids, and BadInput.
    """
    require_count(k, 1, "k", "it is how many nodes are kept")
    index = graph_index(graph)
    row = index.row(node)
    jaccard, types, names = _neighbour_jaccard(index, row), _type_match(index, row), _name_overlap(index, row)
    scores = _JACCARD_WEIGHT * jaccard + _TYPE_WEIGHT * types + _NAME_WEIGHT * names
    scores[row] = 0.0
    order = index.rows_by_score(scores)
    why = [
        f"score = {_JACCARD_WEIGHT:g} * Jaccard + {_TYPE_WEIGHT:g} * type match + {_NAME_WEIGHT:g} * name overlap"
    ]
    if not len(order):
        why.append("no other node shares a neighbour, a label or a word of the name with it")
    elif len(order) > k:
        why.append(f"{len(order) - k:,} more score above 0, k={k} keeps the best")
    selected = order[:k]
    parts = (part[selected].tolist() for part in (scores, jaccard, types, names))
    identities = (map(c.__getitem__, selected.tolist()) for c in (graph.ids, index.names, index.label_texts))
    return SimilarNodes(node, tuple(map(SimilarNode, *identities, *parts)), tuple(why))


def _neighbour_jaccard(index: GraphIndex, row: int) -> Reals:
    """Return the Jaccard index of each node's neighbours with those of one node, without the pair."""
    near = index.neighbours
    mine = near.indices[near.indptr[row] : near.indptr[row + 1]]
    shared = np.bincount(near.indices[neighbour_steps(near, mine)[0]], minlength=len(index.graph))
    linked = np.zeros(len(index.graph), np.int64)
    linked[mine] = 1
    # if two nodes are linked, each is in the other's set
    united = len(mine) + index.degrees - shared - 2 * linked
    found: Reals = np.divide(shared, united, out=np.zeros(len(index.graph)), where=united > 0)
    return found


def _type_match(index: GraphIndex, row: int) -> Reals:
    same = np.zeros(len(index.graph))
    for label in index.graph.node_labels[row]:
        same[index.rows_by_label[label]] = 1.0
    return same


def _name_overlap(index: GraphIndex, row: int) -> Reals:
    words = set(name_tokens(index.names[row]))
    shared = np.zeros(len(index.graph))
    for word in words:
        shared[index.rows_by_name_word[word]] += 1
    united = len(words) + index.name_lengths - shared
    found: Reals = np.divide(shared, united, out=np.zeros(len(index.graph)), where=united > 0)
    return found
