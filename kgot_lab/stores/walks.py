"""Walks over edges, level by level: they enumerate nodes, not walks, however dense the graph is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kgot_lab.types import Edge


def reached(start: str, hops: int, ends: Callable[[str], Iterable[str]]) -> dict[str, int]:
    """Each node within some hops of a start, with the least number of hops; `ends` gives the nodes that a
    node's edges touch.
    """
    depth = {start: 0}
    frontier = [start]
    for level in range(1, hops + 1):
        found = dict.fromkeys(end for id in frontier for end in ends(id) if end not in depth)
        depth.update(dict.fromkeys(found, level))
        frontier = list(found)
        if not frontier:
            break
    return depth


def path_between(
    source: str, target: str, most: int, neighbours: Callable[[str], Iterable[Edge]]
) -> tuple[Edge, ...]:
    """A shortest path of at most so many edges, whichever way they point, grown from both ends by the smaller
    side; () if there is none.
    """
    sides: tuple[dict[str, Edge | None], ...] = ({source: None}, {target: None})  # how each node was reached
    frontiers = [[source], [target]]
    meeting = source if source == target else None
    for _ in range(most):
        if meeting is not None or not all(frontiers):
            break
        here = 0 if len(frontiers[0]) <= len(frontiers[1]) else 1
        frontiers[here], meeting = _grown(sides[here], sides[1 - here], frontiers[here], neighbours)
    if meeting is None:
        return ()
    return (*reversed(_back(meeting, sides[0])), *_back(meeting, sides[1]))


def _grown(
    mine: dict[str, Edge | None],
    other: dict[str, Edge | None],
    frontier: list[str],
    neighbours: Callable[[str], Iterable[Edge]],
) -> tuple[list[str], str | None]:
    found: list[str] = []
    for id in frontier:
        for edge in neighbours(id):
            end = edge.target if edge.source == id else edge.source
            if end not in mine:
                mine[end] = edge
                found.append(end)
                if end in other:
                    return found, end
    return found, None


def _back(id: str, reached_by: dict[str, Edge | None]) -> list[Edge]:
    edges: list[Edge] = []
    while (edge := reached_by[id]) is not None:
        edges.append(edge)
        id = edge.source if edge.target == id else edge.target
    return edges
