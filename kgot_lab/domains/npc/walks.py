"""Shortest paths, a level at a time: one question for each level to a database, and no walk is counted out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kgot_lab.domains.npc.models import Relationship
from kgot_lab.graph.property_graph import Direction

StepsFrom = Callable[[list[str]], Iterable[tuple[str, str]]]  # from some ids, every step there is: from, to


def shortest_way(start: str, end: str, steps: StepsFrom, depth: int) -> list[str]:
    """The ids on a shortest path of at most so many steps, of several the one that comes of the smallest ids;
    [] where there is none.
    """
    came_from, ahead = {start: ""}, [start]
    for _ in range(depth):
        if end in came_from or not ahead:
            break
        new: dict[str, str] = {}
        for source, target in sorted(steps(ahead)):
            if target not in came_from:
                new.setdefault(target, source)
        came_from |= new
        ahead = sorted(new)
    if end not in came_from:
        return []
    path = [end]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]


def steps_over(
    relationships: Iterable[Relationship], types: tuple[str, ...], direction: Direction
) -> StepsFrom:
    """The steps over some relationships that are at hand."""
    there: dict[str, list[tuple[str, str]]] = {}
    for each in relationships:
        if not types or each.type in types:
            ways = {"out": [(each.source_id, each.target_id)], "in": [(each.target_id, each.source_id)]}
            for source, target in ways[direction] if direction != "both" else ways["out"] + ways["in"]:
                there.setdefault(source, []).append((source, target))
    return lambda ids: [step for id in ids for step in there.get(id, ())]
