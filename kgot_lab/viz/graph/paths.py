"""How two nodes of a graph belong together."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge


def shortest_path(graph: PropertyGraph, start: str, end: str) -> list[str]:
    """The ids of the nodes on a shortest path, whichever way its edges point (breadth first); none when
    nothing joins the two.

    Raises UnknownName for a node that is not there.
    """
    goal, first = graph.row(end), graph.row(start)
    came = {first: first}
    waiting = deque([first])
    sides = [(rows.indptr.tolist(), rows.indices) for rows in (graph.out_csr, graph.in_csr)]
    while waiting and goal not in came:
        row = waiting.popleft()
        for begins, indices in sides:
            for other in indices[begins[row] : begins[row + 1]].tolist():
                if other not in came:
                    came[other] = row
                    waiting.append(other)
    if goal not in came:
        return []
    way = [goal]
    while way[-1] != first:
        way.append(came[way[-1]])
    return [graph.ids[row] for row in reversed(way)]


def links_of(graph: PropertyGraph, way: Sequence[str]) -> list[Edge]:
    """An edge from each node of a path to the next, against the way only where no other is; raises BadInput
    where there is none.
    """
    return [_link(graph, one, other) for one, other in pairwise(way)]


def _link(graph: PropertyGraph, one: str, other: str) -> Edge:
    found = [
        edge for edge in graph.neighbours(one, "both") if one != other and other in (edge.source, edge.target)
    ]
    if not found:
        raise BadInput(f"no edge joins {one!r} and {other!r}, so they cannot be neighbours on a path")
    return min(found, key=lambda edge: edge.source != one)
