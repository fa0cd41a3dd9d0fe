"""Circles along edges of one type: which nodes lie on one, and a shortest one through a node."""

from __future__ import annotations

from collections import deque

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Csr, Ints, csr


def rows_of_types(graph: PropertyGraph, *types: str) -> Ints:
    """The rows of the edges of some types, in edge order."""
    codes = [code for code, name in enumerate(graph.type_names) if name in types]
    return np.flatnonzero(np.isin(graph.type_codes, codes)).astype(np.int32)


def on_circles(graph: PropertyGraph, type: str) -> Ints:
    """The rows of the nodes that edges of a type lead back to, loops included: in a graph of dependencies
    there are none.

    What no edge enters or leaves is taken away in columns, round by round; where nothing is left, as it
    should be, that was all. The rest is split into strongly connected components, since a node between two
    circles lies on neither.
    """
    rows = rows_of_types(graph, type)
    sources, targets = graph.sources[rows], graph.targets[rows]
    left = np.ones(len(graph), dtype=np.bool_)
    for begin, end in ((sources, targets), (targets, sources)):
        kept = left[begin] & left[end]
        _peel(csr(begin[kept], end[kept], len(graph)), np.bincount(end[kept], minlength=len(graph)), left)
    kept = left[sources] & left[targets]
    loops = sources[sources == targets]
    rest: nx.DiGraph[int] = nx.DiGraph()
    rest.add_edges_from(zip(sources[kept].tolist(), targets[kept].tolist(), strict=True))
    found = [row for part in nx.strongly_connected_components(rest) if len(part) > 1 for row in part]
    return np.unique(np.concatenate((np.array(found, dtype=np.int32), loops)))


def _peel(follow: Csr, entering: NDArray[np.int64], left: NDArray[np.bool_]) -> None:
    """Strike out of `left`, in place, what no edge enters, and then what only such nodes led to."""
    front = np.flatnonzero(left & (entering == 0))
    while len(front):
        left[front] = False
        starts, lengths = follow.indptr[front], follow.indptr[front + 1] - follow.indptr[front]
        steps = np.arange(lengths.sum()) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
        reached, counts = np.unique(follow.indices[steps], return_counts=True)
        entering[reached] -= counts
        front = reached[entering[reached] == 0]


def circle_through(graph: PropertyGraph, type: str, row: int) -> tuple[str, ...]:
    """The ids along a shortest circle from a node back to itself over edges of a type; () where it lies on
    none.
    """
    rows = rows_of_types(graph, type)
    follow = csr(graph.sources[rows], graph.targets[rows], len(graph))
    came_from: dict[int, int] = {}
    queue = deque([row])
    while queue:
        at = queue.popleft()
        for next_ in follow.indices[follow.indptr[at] : follow.indptr[at + 1]].tolist():
            if next_ == row:
                back = [row, at]
                while back[-1] != row:
                    back.append(came_from[back[-1]])
                return tuple(graph.ids[each] for each in reversed(back))
            if next_ not in came_from:
                came_from[next_] = at
                queue.append(next_)
    return ()
