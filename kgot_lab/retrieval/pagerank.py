"""Personalised PageRank, seeded at what the question mentions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import Embedder, argsort_descending, row_products
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.entity_linking import NameIndex, phrase_id
from kgot_lab.retrieval.fusion import fused_ranking, ranking_scores, scale_by_maximum
from kgot_lab.retrieval.neighbours import concatenate_ranges
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Ranking, Triple

# Random walk with restart: the share of time at each node.

_Floats = NDArray[np.float64]
_Rows = NDArray[np.int64]
WALK_ERROR = 1e-9  # maximum error of all shares together
_PUSH_FROM_LINKS = 200_000  # links from both ends; rounds over this many take about 30 ms
_MIN_RESIDUAL = 0.25  # of the average residual per link: a node with less is not pushed yet
_MAX_FRONTIER = 1 / 8  # of all links: following more one by one is slower than a round over all


class RandomWalk:
    """A random walk with restart on one graph.

    The share of time at each node solves x = (1 - damping) * s + damping * (P x + s * the share at nodes
    without edges), where s is the seeds with sum 1. Parallel edges count each, loops not at all.
    """

    def __init__(self, graph: PropertyGraph, damping: float) -> None:
        if not 0 <= damping <= 0.99:  # closer to 1 it needs very many rounds
            raise BadInput(f"damping is the share of steps along edges, from 0 to .99, not {damping}")
        size, other = len(graph), graph.sources != graph.targets
        sources, targets = graph.sources[other].astype(np.int64), graph.targets[other].astype(np.int64)
        both = np.concatenate([sources * size + targets, targets * size + sources])
        pairs, times = np.unique(both, return_counts=True)
        self._from, self._to = np.divmod(pairs, max(size, 1))
        self._degrees = np.bincount(self._from, times, minlength=size)
        self._share, self._lonely = times / self._degrees[self._from], np.flatnonzero(self._degrees == 0)
        # start of each node's links
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(self._from, minlength=size))])
        self._damping, self._size = damping, size

    def reached_shares(
        self, rows: _Rows, weights: _Floats, error: float = WALK_ERROR
    ) -> tuple[_Rows, _Floats]:
        """Compute the nodes that a walk from weighted rows reaches, and the share of time at each.

        Each row is listed once. Up to 200,000 links, each counted from both ends, the shares are right to
        within 1e-9 and have sum 1. In a larger graph the work grows with the neighbourhood of the seeds: all
        shares together lack at most `error`, and a node with less may be missing. Raises BadInput if a weight
        is below 0 or none is above 0.
        """
        if not np.isfinite(weights).all() or weights.min(initial=0) < 0 or not weights.any():
            raise BadInput("the seeds of a walk are weights of 0 or more, at least one above 0")
        if len(self._to) > _PUSH_FROM_LINKS and self._damping:
            return self._forward_push(rows, weights / weights.sum(), error)
        begin = np.zeros(self._size)
        begin[rows] = weights
        shares = self._power_iteration(begin / begin.sum())
        found = np.flatnonzero(shares)
        return found, shares[found]

    def _power_iteration(self, seeds: _Floats) -> _Floats:
        """Iterate over all nodes until the remaining error is small enough."""
        shares = seeds
        for _ in range(self._round_count):
            moved = self._one_step(shares)
            lonely = self._damping * shares[self._lonely].sum()
            shares = (1 - self._damping + lonely) * seeds + self._damping * moved
        return shares

    def _forward_push(self, rows: _Rows, seeds: _Floats, error: float) -> tuple[_Rows, _Floats]:
        """Compute the shares by forward push (Andersen, Chung and Lang 2006).

        Of the residual at a node, 1 - damping is added to its share and the rest moves along its links. The
        shares lack the shares of a walk from the residual, so the total residual is the error. Nodes with
        little residual for each link are skipped. If many nodes remain, the other rounds run over all nodes
        at once and take no longer than without a push.
        """
        # What ends at a node without links would restart at the seeds in proportion. So it is dropped, and
        # the result is normalised at the end.
        total = 1 - self._damping * float(seeds[self._degrees[rows] == 0].sum())
        settled, residuals, seen = np.zeros(self._size), np.zeros(self._size), np.zeros(self._size, bool)
        residuals[rows], seen[rows] = seeds, True
        while (remaining := (waiting := residuals[rows]).sum()) > error * total:
            degrees = np.maximum(self._degrees[rows], 1)
            pushed = waiting > _MIN_RESIDUAL * remaining / degrees[waiting > 0].sum() * degrees
            frontier, pushed_residual = rows[pushed], waiting[pushed]
            start, end = self._starts[frontier], self._starts[frontier + 1]
            if (end - start).sum() > len(self._to) * _MAX_FRONTIER:
                return self._finish_push(settled, residuals, error * total, total)
            settled[frontier] += (1 - self._damping) * pushed_residual
            residuals[frontier] = 0
            links, owners = concatenate_ranges(start, end)
            ends = self._to[links]
            np.add.at(residuals, ends, self._share[links] * (self._damping * pushed_residual)[owners])
            new_rows = np.unique(ends[~seen[ends]])
            seen[new_rows] = True
            rows = np.concatenate([rows, new_rows])
        found = np.sort(rows[settled[rows] > 0])
        return found, settled[found] / total

    def _finish_push(
        self, settled: _Floats, residuals: _Floats, error: float, total: float
    ) -> tuple[_Rows, _Floats]:
        """Run the remaining rounds of a push over all nodes at once."""
        while residuals.sum() > error:
            settled = settled + (1 - self._damping) * residuals
            residuals = self._damping * self._one_step(residuals)
        found = np.flatnonzero(settled)
        return found, settled[found] / total

    def _one_step(self, shares: _Floats) -> _Floats:
        """Move the shares of all nodes one step along the links."""
        moved = self._share * shares[self._from]
        return np.asarray(np.bincount(self._to, moved, minlength=self._size), np.float64)

    @property
    def _round_count(self) -> int:
        # each round multiplies the error by `damping`
        return math.ceil(math.log(WALK_ERROR) / math.log(self._damping)) if self._damping else 1


@dataclass(frozen=True)
class Seeds:
    """The restart distribution of a walk, as weights of nodes, for a given ranking."""

    name: str
    weights: Callable[[Ranking], Mapping[str, float]]


def pagerank(graph: PropertyGraph, *seeds: Seeds, damping: float = 0.5, error: float = WALK_ERROR) -> Stage:
    """Rank the documents of a graph by personalised PageRank (Page et al. 1998; Haveliwala 2002).

    At each step the walker follows an edge, in either direction, with probability `damping`, or returns to a
    seed. Documents are the nodes with a text. Those never reached keep their earlier order after the others.
    A ranking without any seed is unchanged. In a graph of more than 100,000 edges the walk spreads from the
    seeds until all scores together lack at most `error`, and a node with less may count as never reached. A
    larger error saves time if hubs bring everything near. Raises BadInput without seeds, for a damping
    outside 0 to .99, an error outside 1e-9 to .1, and for a seed that is not a node.
    """
    if not seeds:
        raise BadInput("pagerank() takes the seeds of the walk, for example first_hits(5)")
    if not WALK_ERROR <= error <= 0.1:
        raise BadInput(f"pagerank() takes an error from {WALK_ERROR:g} to 0.1, not {error}")
    walk = RandomWalk(graph, damping)
    has_text = np.array([bool(properties.get("text")) for properties in graph.node_properties], bool)

    def step(ranking: Ranking) -> Ranking:
        start: dict[int, float] = {}
        for part in seeds:
            for id, weight in part.weights(ranking).items():
                if id not in graph:
                    problem = f"{part.name}: the seed {id!r} is no node of {graph}"
                    raise BadInput(f"{problem}; seeds are ids of its nodes")
                start[graph.row(id)] = start.get(graph.row(id), 0.0) + weight
        weights = np.array(list(start.values()))
        if not weights.any():
            return ranking
        rows, shares = walk.reached_shares(np.array(list(start)), weights, error)
        ids, shares = [graph.ids[row] for row in rows[has_text[rows]].tolist()], shares[has_text[rows]]
        reached = set(ids)
        unreached = [hit.id for hit in ranking.hits if hit.id not in reached]
        # negative scores: never reached
        scores = np.concatenate([shares, -np.arange(1, len(unreached) + 1) / (len(unreached) + 1)])
        walked = fused_ranking(ranking.query, [*ids, *unreached], scores, ())
        return replace(walked, inputs=((1.0, ranking), (1.0, replace(walked, system="pagerank"))))

    options = [f"error={error:g}"] if error != WALK_ERROR else []
    return Stage(f"pagerank({', '.join([f'{damping:g}', *(part.name for part in seeds), *options])})", step)


# --- seeds ---


def first_hits(k: int, weight: float = 1.0) -> Seeds:
    """Seed the walk at the first k hits, with `weight` times score over maximum.

    Raises BadInput for `k` below 1.
    """
    if k < 1:
        raise BadInput(f"first_hits() takes 1 hit or more, not {k}")

    def weights(ranking: Ranking) -> dict[str, float]:
        shares = weight * scale_by_maximum(ranking_scores(ranking))[:k]
        return dict(zip(ranking.ids[:k], shares.tolist(), strict=True))

    return Seeds(f"{k} first hits" + (f" x{weight:g}" if weight != 1 else ""), weights)


def titles_in_question(titles: NameIndex, weight: float = 3.0) -> Seeds:
    """Seed the walk at the documents whose title is in the question."""

    def weights(ranking: Ranking) -> dict[str, float]:
        names = titles.find_names(ranking.query.text, cased=False)
        return {id: weight for name in names for id in titles[name]}

    return Seeds(f"titles in the question x{weight:g}", weights)


def nearest_triples(triples: Sequence[Triple], embedder: Embedder, k: int = 5) -> Seeds:
    """Seed the walk at both phrases of the k triples nearest to the question, weighted by cosine.

    HippoRAG 2 does the same. Raises BadInput without triples.
    """
    kept = list(dict.fromkeys(triples))
    if not kept:
        raise BadInput("nearest_triples() needs triples")
    matrix = embedder.embed([f"{triple.subject} {triple.relation} {triple.object}" for triple in kept])

    def weights(ranking: Ranking) -> dict[str, float]:
        cosines = row_products(matrix, embedder.embed([ranking.query.text])[0])
        near: dict[str, float] = {}
        for row in argsort_descending(cosines)[:k].tolist():
            for phrase in (kept[row].subject, kept[row].object):
                near[phrase_id(phrase)] = max(near.get(phrase_id(phrase), 0.0), float(cosines[row]))
        return near

    return Seeds(f"{k} nearest triples", weights)
