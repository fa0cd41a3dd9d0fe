"""Personalised PageRank: a walker who goes along edges from what the question points at, and keeps going back there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.fusion import by_maximum, fused, scores_of
from kgot_lab.retrieval.links import phrase_id
from kgot_lab.retrieval.names import Titles
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Ranking, Triple

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Seeds:
    """Where a walk begins, and how much of it at which node, for the ranking that it is given."""

    name: str
    weights: Callable[[Ranking], Mapping[str, float]]


def pagerank(graph: PropertyGraph, *seeds: Seeds, damping: float = 0.5) -> Stage:
    """Rank the documents of a graph by where a walker is found who begins at the seeds (Page et al. 1998; Haveliwala 2002).

    At each step it follows an edge, whichever way it points, with probability `damping`, or goes back to a seed. Documents are the
    nodes with a text; those never reached keep their earlier order behind the others. A ranking without any seed stays as it is.
    Raises BadInput without seeds, for a damping outside 0 to .99, and for a seed that is no node.
    """
    if not seeds:
        raise BadInput("pagerank() takes the seeds of the walk, for example first_hits(5)")
    walk = RandomWalk(graph, damping)
    documents = [row for row, properties in enumerate(graph.node_properties) if properties.get("text")]
    ids = [graph.ids[row] for row in documents]

    def step(ranking: Ranking) -> Ranking:
        start = np.zeros(len(graph))
        for part in seeds:
            for id, weight in part.weights(ranking).items():
                if id not in graph:
                    raise BadInput(f"{part.name}: the seed {id!r} is no node of {graph}; seeds are ids of its nodes")
                start[graph.row(id)] += weight
        if not start.any():
            return ranking
        found = walk(start)[documents]
        rows = np.flatnonzero(found)
        reached = {ids[row] for row in rows}
        rest = [hit.id for hit in ranking.hits if hit.id not in reached]
        scores = np.concatenate([found[rows], -np.arange(1, len(rest) + 1) / (len(rest) + 1)])  # below 0: never reached
        walked = fused(ranking.query, [*(ids[row] for row in rows), *rest], scores, ())
        return replace(walked, lanes=((1.0, ranking), (1.0, replace(walked, system="pagerank"))))

    return Stage(f"pagerank({damping:g}, {', '.join(part.name for part in seeds)})", step)


class RandomWalk:
    """The walk on one graph: call it with the weight of each node as a seed, shape (nodes,), for the share of time spent at each node.

    Parallel edges count as often as they are there, loops not at all. The result solves
    x = (1 - damping) * s + damping * (P x + s * the share at nodes without edges) to within 1e-9, s being the seeds with sum 1.
    """

    def __init__(self, graph: PropertyGraph, damping: float) -> None:
        if not 0 <= damping <= 0.99:  # nearer to 1 the walk takes very many rounds
            raise BadInput(f"damping is the share of steps along edges, from 0 to .99, not {damping}")
        size, other = len(graph), graph.sources != graph.targets
        sources, targets = graph.sources[other].astype(np.int64), graph.targets[other].astype(np.int64)
        pairs, times = np.unique(np.concatenate([sources * size + targets, targets * size + sources]), return_counts=True)
        self._from, self._to = np.divmod(pairs, max(size, 1))
        degrees = np.bincount(self._from, times, minlength=size)
        self._share, self._lonely = times / degrees[self._from], np.flatnonzero(degrees == 0)
        self._damping, self._size = damping, size

    def __call__(self, weights: _Floats) -> _Floats:
        """The share of time at each node, sum 1; raises BadInput for weights below 0, or none above."""
        if weights.shape != (self._size,) or not np.isfinite(weights).all() or weights.min(initial=0) < 0 or not weights.any():
            raise BadInput(f"seeds are {self._size} weights of 0 or more, at least one above 0")
        seeds: NDArray[Any] = weights / weights.sum()
        shares = seeds
        for _ in range(self._rounds):
            moved = np.bincount(self._to, self._share * shares[self._from], minlength=self._size)
            shares = (1 - self._damping + self._damping * shares[self._lonely].sum()) * seeds + self._damping * moved
        return shares

    @property
    def _rounds(self) -> int:
        return math.ceil(math.log(1e-9) / math.log(self._damping)) if self._damping else 1  # each round takes this share off the error


# --- seeds ------------------------------------------------------------------------------------------------------------


def first_hits(k: int, weight: float = 1.0) -> Seeds:
    """The first k hits, each with its score divided by the largest, times weight. Raises BadInput for k below 1."""
    if k < 1:
        raise BadInput(f"first_hits() takes 1 hit or more, not {k}")

    def weights(ranking: Ranking) -> dict[str, float]:
        shares = weight * by_maximum(scores_of(ranking))[:k]
        return dict(zip(ranking.ids[:k], shares.tolist(), strict=True))

    return Seeds(f"{k} first hits" + f" x{weight:g}" * (weight != 1), weights)


def titles_in_question(titles: Titles, weight: float = 3.0) -> Seeds:
    """The documents whose title stands in the question."""

    def weights(ranking: Ranking) -> dict[str, float]:
        return {id: weight for name in titles.mentioned(ranking.query.text, cased=False) for id in titles[name]}

    return Seeds(f"titles in the question x{weight:g}", weights)


def nearest_triples(triples: Sequence[Triple], embedder: Embedder, k: int = 5) -> Seeds:
    """Both phrases of the k triples whose words mean most nearly what the question means, each with the cosine (as HippoRAG 2 does)."""
    kept = list(dict.fromkeys(triples))
    if not kept:
        raise BadInput("nearest_triples() needs triples")
    matrix = embedder.embed([f"{triple.subject} {triple.relation} {triple.object}" for triple in kept])

    def weights(ranking: Ranking) -> dict[str, float]:
        cosines: NDArray[Any] = matrix @ embedder.embed([ranking.query.text])[0]
        near: dict[str, float] = {}
        for row in np.argsort(-cosines, kind="stable")[:k].tolist():
            for phrase in (kept[row].subject, kept[row].object):
                near[phrase_id(phrase)] = max(near.get(phrase_id(phrase), 0.0), float(cosines[row]))
        return near

    return Seeds(f"{k} nearest triples", weights)
