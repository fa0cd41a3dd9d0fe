"""Which nodes play the part of a node: the same neighbours, type and words of the name (KG-OS, method 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from kgot_lab.errors import require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.index import GraphIndex, Reals, index_of
from kgot_lab.retrieval.neighbours import neighbour_places
from kgot_lab.text.cleaning import counted
from kgot_lab.text.words import named_words

_JACCARD, _TYPE, _NAME = 0.70, 0.20, 0.10  # KG-OS, section 6


class Alike(NamedTuple):
    """A node like another: its score and the three parts it is made of."""

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
    nodes: tuple[Alike, ...]
    why: tuple[str, ...]

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "id",
        "name",
        "type",
        "score",
        "jaccard",
        "type match",
        "name overlap",
    )

    @property
    def title(self) -> str:
        return f"similar to {self.node}: {counted(len(self.nodes), 'node')}"

    def rows(self) -> Sequence[Alike]:
        return self.nodes


def similar_to(graph: PropertyGraph, node: str, k: int = 10) -> SimilarNodes:
    """The nodes most like a node: score = .70 * Jaccard index of the neighbours + .20 * same type + .10 *
    shared words of the names.

    Neighbours count whichever way edges point, each once, the two nodes themselves left out; without any the
    index is 0 (decision C-M7). The type is the same where a label is shared; the names share their common
    words over all their words. Nodes that score 0 are not found. Raises UnknownName for a node that is not
    there, with near ids, and BadInput.
    """
    require_count(k, 1, "k", "it is how many nodes are kept")
    index = index_of(graph)
    row = index.row(node)
    jaccard, types, names = _shared_neighbours(index, row), _same_type(index, row), _shared_words(index, row)
    scores = _JACCARD * jaccard + _TYPE * types + _NAME * names
    scores[row] = 0.0
    found = np.flatnonzero(scores)
    order = found[np.lexsort((index.name_order[found], -scores[found]))]
    why = [f"score = {_JACCARD:g} * Jaccard + {_TYPE:g} * type match + {_NAME:g} * name overlap"]
    if not len(found):
        why.append("no other node shares a neighbour, a label or a word of the name with it")
    elif len(found) > k:
        why.append(f"{len(found) - k:,} more score above 0, k={k} keeps the best")
    kept = order[:k]
    parts = (part[kept].tolist() for part in (scores, jaccard, types, names))
    told = (map(column.__getitem__, kept.tolist()) for column in (graph.ids, index.names, index.kinds))
    nodes = tuple(map(Alike, *told, *parts))
    return SimilarNodes(node, nodes, tuple(why))


def _shared_neighbours(index: GraphIndex, row: int) -> Reals:
    """The Jaccard index of the neighbours of every node with those of one, the pair left out."""
    near = index.neighbours
    mine = near.indices[near.indptr[row] : near.indptr[row + 1]]
    shared = np.bincount(near.indices[neighbour_places(near, mine)[0]], minlength=len(index.graph))
    linked = np.zeros(len(index.graph), np.int64)
    linked[mine] = 1
    # linked to each other: each is in the other's set
    united = len(mine) + index.degrees - shared - 2 * linked
    found: Reals = np.divide(shared, united, out=np.zeros(len(index.graph)), where=united > 0)
    return found


def _same_type(index: GraphIndex, row: int) -> Reals:
    same = np.zeros(len(index.graph))
    for label in index.graph.node_labels[row]:
        same[index.of_label[label]] = 1.0
    return same


def _shared_words(index: GraphIndex, row: int) -> Reals:
    words = set(named_words(index.names[row]))
    shared = np.zeros(len(index.graph))
    for word in words:
        shared[index.of_name_word[word]] += 1
    united = len(words) + index.name_lengths - shared
    found: Reals = np.divide(shared, united, out=np.zeros(len(index.graph)), where=united > 0)
    return found
