"""A walker on a graph who keeps going back to where she began, and how much of her time she spends at each
node.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph

_Floats = NDArray[np.float64]
_Rows = NDArray[np.int64]
WALK_ERROR = 1e-9  # what the shares of all nodes together may lack
_FEW = 200_000  # links from both ends; so many take some 30 ms by rounds over all
_LEAST = 0.25  # of what waits for a link on average: a node where less waits for each is not pushed yet
_MANY = 1 / 8  # of all links: so many are followed one by one in the time of a round over all


class RandomWalk:
    """The walk on one graph: call it with the weight of each node as a seed, shape (nodes,), for the share of
    time spent at each node.

    Parallel edges count as often as they are there, loops not at all. The result solves x = (1 - damping) * s
    + damping * (P x + s * the share at nodes without edges) to within 1e-9, s being the seeds with sum 1.
    """

    def __init__(self, graph: PropertyGraph, damping: float) -> None:
        if not 0 <= damping <= 0.99:  # nearer to 1 the walk takes very many rounds
            raise BadInput(f"damping is the share of steps along edges, from 0 to .99, not {damping}")
        size, other = len(graph), graph.sources != graph.targets
        sources, targets = graph.sources[other].astype(np.int64), graph.targets[other].astype(np.int64)
        pairs, times = np.unique(
            np.concatenate([sources * size + targets, targets * size + sources]), return_counts=True
        )
        self._from, self._to = np.divmod(pairs, max(size, 1))
        self._degrees = np.bincount(self._from, times, minlength=size)
        self._share, self._lonely = times / self._degrees[self._from], np.flatnonzero(self._degrees == 0)
        # where the links of a node begin
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(self._from, minlength=size))])
        self._damping, self._size = damping, size

    def __call__(self, weights: _Floats) -> _Floats:
        """The share of time at each node, sum 1; raises BadInput for weights below 0, or none above."""
        if weights.shape != (self._size,):
            raise self._refused()
        self._check(weights)
        return self._round_by_round(weights / weights.sum())

    def reached(self, rows: _Rows, weights: _Floats, error: float = WALK_ERROR) -> tuple[_Rows, _Floats]:
        """The nodes a walk reaches that begins at some rows, each given once with its weight, in their order,
        and the shares of time there.

        They are those of a call up to 200,000 links, each counted from both ends. In a larger graph the work
        grows with what lies near the seeds: all shares together lack `error` at most, and a node that has
        less may be missing. Raises BadInput as a call does.
        """
        self._check(weights)
        if len(self._to) > _FEW and self._damping:
            return self._pushed(rows, weights / weights.sum(), error)
        begin = np.zeros(self._size)
        begin[rows] = weights
        shares = self._round_by_round(begin / begin.sum())
        found = np.flatnonzero(shares)
        return found, shares[found]

    def _check(self, weights: _Floats) -> None:
        if not np.isfinite(weights).all() or weights.min(initial=0) < 0 or not weights.any():
            raise self._refused()

    def _refused(self) -> BadInput:
        return BadInput(f"seeds are {self._size} weights of 0 or more, at least one above 0")

    def _round_by_round(self, seeds: _Floats) -> _Floats:
        """Every node at once, so many times that what is left out is too small."""
        shares = seeds
        for _ in range(self._rounds):
            moved = self._moved(shares)
            shares = (
                1 - self._damping + self._damping * shares[self._lonely].sum()
            ) * seeds + self._damping * moved
        return shares

    def _pushed(self, rows: _Rows, seeds: _Floats, error: float) -> tuple[_Rows, _Floats]:
        """Forward push (Andersen, Chung and Lang 2006): of what waits at a node 1 - damping stays, the rest
        goes on along its links.

        shares = what stays + the shares of a walk from all that waits: so what waits is the error. Nodes
        where little waits for each link wait on. Where they are many all the same, the other rounds are for
        every node at once, and take no longer than without a push.
        """
        # What ends at a node without links would begin anew at the seeds, in proportion: so it is left out,
        # and all is divided at the end.
        whole = 1 - self._damping * float(seeds[self._degrees[rows] == 0].sum())
        stays, waits, known = np.zeros(self._size), np.zeros(self._size), np.zeros(self._size, bool)
        waits[rows], known[rows] = seeds, True
        while (left := (waiting := waits[rows]).sum()) > error * whole:
            degrees = np.maximum(self._degrees[rows], 1)
            pushed = waiting > _LEAST * left / degrees[waiting > 0].sum() * degrees
            front, handed = rows[pushed], waiting[pushed]
            starts, links = self._starts[front], self._starts[front + 1] - self._starts[front]
            if (count := int(links.sum())) > len(self._to) * _MANY:
                return self._pushed_everywhere(stays, waits, error * whole, whole)
            stays[front] += (1 - self._damping) * handed
            waits[front] = 0
            links_of = np.repeat(starts - np.cumsum(links) + links, links) + np.arange(count)
            ends = self._to[links_of]
            np.add.at(waits, ends, self._share[links_of] * np.repeat(self._damping * handed, links))
            fresh = np.unique(ends[~known[ends]])
            known[fresh] = True
            rows = np.concatenate([rows, fresh])
        found = np.sort(rows[stays[rows] > 0])
        return found, stays[found] / whole

    def _pushed_everywhere(
        self, stays: _Floats, waits: _Floats, error: float, whole: float
    ) -> tuple[_Rows, _Floats]:
        """The other rounds of a push, all nodes at once."""
        while waits.sum() > error:
            stays = stays + (1 - self._damping) * waits
            waits = self._damping * self._moved(waits)
        found = np.flatnonzero(stays)
        return found, stays[found] / whole

    def _moved(self, shares: _Floats) -> _Floats:
        """One step along the links from everywhere."""
        return np.asarray(
            np.bincount(self._to, self._share * shares[self._from], minlength=self._size), np.float64
        )

    @property
    def _rounds(self) -> int:
        # each round takes this share off the error
        return math.ceil(math.log(WALK_ERROR) / math.log(self._damping)) if self._damping else 1
