"""What lies around the first nodes of a search, and the edges between all that is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kgot_lab.kgos.methods.index import BoolColumn, GraphIndex
from kgot_lab.kgos.methods.search.configuration import RetrievalConfig
from kgot_lab.kgos.methods.search.results import Invoked, NearNode
from kgot_lab.text.cleaning import counted
from kgot_lab.types import Edge

_MOST = 20  # neighbours told of one node: in a dense graph it has hundreds


def expanded(
    index: GraphIndex, hits: Sequence[Sequence[int]], config: RetrievalConfig, kept: BoolColumn
) -> tuple[tuple[NearNode, ...], tuple[Edge, ...], list[Invoked]]:
    """The neighbours of the first hits within some edges, the edges to them and between the hits, and the
    trace.

    A hit has a row for each node that it stands for. Of each node at most twenty neighbours, the best linked
    first; what the filters would not have kept is marked (decision C-O2).
    """
    rows = [row for hit in hits for row in hit]
    around: dict[int, int] = {}
    left = 0
    level = [row for hit in hits[: config.expanded] for row in hit]
    for _ in range(config.expand_depth):
        found: dict[int, int] = {}
        for row in level:
            near, more = _nearest(index, row, {*rows, *around, *found})
            found |= near
            left += more
        around |= found
        level = list(found)
    neighbours = tuple(
        NearNode(
            index.graph.ids[row],
            index.names[row],
            index.kinds[row],
            index.links.path([place]),
            bool(kept[row]),
        )
        for row, place in around.items()
    )
    numbers = dict.fromkeys(
        [*_between(index, rows), *(int(index.links.edge_rows[place]) for place in around.values())]
    )
    outside = sum(not each.within for each in neighbours)
    told = (
        counted(len(neighbours), "neighbour")
        + f", {outside} outside the filters" * bool(outside)
        + f", {left:,} more left out" * bool(left)
    )
    why = f"the first {counted(min(config.expanded, len(hits)), 'node')}, {config.expand_depth} deep"
    return (
        neighbours,
        tuple(map(index.edge, numbers)),
        [Invoked("neighbours", why, told)] if config.expand_depth and level else [],
    )


def _nearest(index: GraphIndex, row: int, known: set[int]) -> tuple[dict[int, int], int]:
    """The neighbours of a row that are not known, each with the first step to it, the best linked first, and
    how many more there are.
    """
    first, last = int(index.links.ends.indptr[row]), int(index.links.ends.indptr[row + 1])
    ends = index.links.ends.indices[first:last]
    steps: dict[int, int] = {}
    for place, end in enumerate(ends.tolist(), start=first):
        if end not in known:
            steps.setdefault(end, place)
    order = sorted(steps, key=lambda end: (-int(index.degrees[end]), int(index.name_order[end])))[:_MOST]
    return {end: steps[end] for end in order}, len(steps) - len(order)


def _between(index: GraphIndex, rows: Sequence[int]) -> Iterator[int]:
    """The rows of the edges between some nodes, in the order of the nodes."""
    some = np.array(rows, np.int32)
    told = np.zeros(len(index.graph), bool)
    told[some] = True
    places, _ = index.places(some, index.ways_of(against=0.0))
    return iter(index.links.edge_rows[places[told[index.links.ends.indices[places]]]].tolist())
