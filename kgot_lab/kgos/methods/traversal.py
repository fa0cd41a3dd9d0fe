"""Shortest paths with the type and direction of every edge (KG-OS, method 9), and exploration (method 10)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Literal, NamedTuple

import numpy as np

from kgot_lab.errors import require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Ints
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.index import GraphIndex, LevelEdges, Reals, index_of
from kgot_lab.retrieval.neighbours import StepIndices, distinct_integers
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge


class PathStep(NamedTuple):
    """One edge of a path with its two nodes. `backward` means against the arrow."""

    source: str
    edge: Edge
    direction: Literal["forward", "backward"]
    target: str


@dataclass(frozen=True, repr=False)
class PathFound(MethodResult):
    """A shortest path, or why there is none."""

    start: str
    end: str
    found: bool
    steps: tuple[PathStep, ...]
    text: str
    why: tuple[str, ...]

    COLUMNS = ("from", "edge", "direction", "to")

    @property
    def length(self) -> int:
        """The number of edges on the path."""
        return len(self.steps)

    @property
    def ids(self) -> list[str]:
        """The ids on the path, from start to end; empty without a path."""
        return [self.start, *(step.target for step in self.steps)] if self.found else []

    @property
    def title(self) -> str:
        length = format_count(self.length, "edge") if self.found else "none found"
        return f"path from {self.start} to {self.end}: {length}"

    def rows(self) -> Sequence[tuple[str, ...]]:
        return [(step.source, step.edge.type, step.direction, step.target) for step in self.steps]


def trace_path(
    graph: PropertyGraph,
    node_a: str,
    node_b: str,
    *,
    max_depth: int = 5,
    types: Collection[str] | None = None,
    directed: bool = False,
) -> PathFound:
    """Find a shortest path of at most `max_depth` edges by bidirectional search.

    Edges are walked in both directions unless `directed`. Of parallel edges the path names the first that
    points forward, else the first. With `types`, only these are walked. Raises UnknownName for an unknown
    node, with similar ids, or if no edge has such a type. Raises BadInput if the depth is below 1.
    """
    require_count(max_depth, 1, "max_depth", "it is how many edges a path may have")
    index = index_of(graph)
    start, end = index.row(node_a), index.row(node_b)
    absent = index.absent_types(types)
    out = index.ways_of(types, against=0.0 if directed else 1.0)
    back = out.reshape(-1, 2)[:, ::-1].ravel()  # the same edges from their other ends
    sides = (_Side(index, start, out), _Side(index, end, back))
    meeting = start if start == end else -1
    for _ in range(max_depth):
        if meeting >= 0 or any(side.stuck for side in sides):
            break
        here, there = sorted(sides, key=lambda side: side.edges)
        met = here.advance(there)
        meeting = met if met is not None else -1
    if meeting < 0:
        told = [f"no edge of the graph has the type {', '.join(absent)}"] * bool(absent)
        return PathFound(node_a, node_b, False, (), "", (_why_not(sides, max_depth, types, directed), *told))
    found = [
        *reversed(sides[0].back_from(meeting)),
        *(index.turned(place) for place in sides[1].back_from(meeting)),
    ]
    places = [index.first_neighbours(place, out) for place in found]
    steps = tuple(_step(index, place) for place in places)
    text = index.links.path(places) if places else index.names[start]
    return PathFound(node_a, node_b, True, steps, text, (text,))


class _Side:
    """A breadth-first search from one end: the depth of every node, -1 if not reached, and the step that led
    to it.
    """

    def __init__(self, index: GraphIndex, row: int, worth: Reals) -> None:
        self.index, self.worth, self.depth, self.stuck = index, worth, 0, False
        self.depths: Ints = np.full(len(index.graph), -1, np.int32)
        self.depths[row] = 0
        self.came = np.full(len(index.graph), -1, np.int64)
        self.level = np.array([row], np.int32)

    @property
    def edges(self) -> int:
        """The number of edges to search for the next level."""
        indptr = self.index.links.ends.indptr
        return int((indptr[self.level + 1] - indptr[self.level]).sum())

    def advance(self, other: _Side) -> int | None:
        """Search one level, and return the node where both searches meet, the first by id."""
        places, _ = self.index.places(self.level, self.worth)
        ends = self.index.links.ends.indices[places]
        places, ends = places[self.depths[ends] < 0], ends[self.depths[ends] < 0]
        self.depth += 1
        self.came[ends[::-1]] = places[::-1]
        self.depths[ends] = self.depth
        self.level = distinct_integers(ends, len(self.depths)).astype(np.int32)
        self.stuck = not len(self.level)
        met = self.level[other.depths[self.level] >= 0]
        return int(met[np.argmin(self.index.name_order[met])]) if len(met) else None

    def back_from(self, row: int) -> list[int]:
        """Return the steps that led to a row, the last first."""
        places = []
        while self.depths[row] > 0:
            places.append(int(self.came[row]))
            row = int(self.index.links.origins[places[-1]])
        return places


def _step(index: GraphIndex, place: int) -> PathStep:
    ids, links = index.graph.ids, index.links
    direction: Literal["forward", "backward"] = "backward" if links.step_kinds[place] % 2 else "forward"
    return PathStep(
        ids[links.origins[place]],
        index.edge(links.edge_rows[place]),
        direction,
        ids[links.ends.indices[place]],
    )


def _why_not(
    sides: tuple[_Side, _Side], max_depth: int, types: Collection[str] | None, directed: bool
) -> str:
    index = sides[0].index
    limits = "" if types is None else f" of the types {', '.join(sorted(types))}"
    limits += " in the direction of the arrows" * directed
    names = [index.graph.ids[int(np.flatnonzero(side.depths == 0)[0])] for side in sides]
    for side, name in zip(sides, names, strict=True):
        if side.stuck:
            return f"edges{limits} join {name} with {format_count(int((side.depths > 0).sum()), 'other node')} only; max_depth is not why"
    reached = [int((side.depths >= 0).sum()) for side in sides]
    return f"no path within max_depth={max_depth} edges{limits}: {reached[0]:,} nodes lie near {names[0]}, {reached[1]:,} near {names[1]}"


# Explore the neighbourhood of a node by level and importance, with hubs marked (KG-OS, method 10).

_CENTRALITY, _DIVERSITY, _HUB = 0.6, 0.4, 2.0  # KG-OS, section 6


class Explored(NamedTuple):
    """A node near the start: its depth, importance, number of neighbours, whether it is a hub, and how it was
    reached.
    """

    id: str
    depth: int
    importance: float
    degree: int
    is_hub: bool
    edge_types: tuple[str, ...]
    parent: str


@dataclass(frozen=True, repr=False, eq=False)
class Exploration(MethodResult):
    """The nodes around a start node by level, the most important first."""

    start: str
    levels: tuple[tuple[Explored, ...], ...]
    why: tuple[str, ...]

    COLUMNS = ("id", "depth", "importance", "neighbours", "hub", "edge types", "from")

    @property
    def nodes(self) -> tuple[Explored, ...]:
        """The nodes of all levels, the start first."""
        return tuple(node for level in self.levels for node in level)

    @property
    def hubs(self) -> tuple[Explored, ...]:
        """The nodes with more than twice the mean number of neighbours of their level."""
        return tuple(node for node in self.nodes if node.is_hub)

    @property
    def title(self) -> str:
        levels = "".join(
            f", {len(level):,} at depth {depth}" for depth, level in enumerate(self.levels) if depth
        )
        return f"around {self.start}: {format_count(len(self.nodes) - 1, 'node')}{levels}"

    def rows(self) -> Sequence[Explored]:
        return self.nodes


def explore_smart(graph: PropertyGraph, start_node: str, *, depth: int = 2) -> Exploration:
    """List the nodes within `depth` edges of a node in either direction, by level and importance.

    importance = .6 * degree centrality + .4 * edge types at the node / edge types in the graph (decision
    C-M6). Hubs, with more than twice the mean neighbours of their level, are marked. A node's parent is the
    most important node of the level before that it is linked to, ties by id. Raises UnknownName for an
    unknown node, with similar ids, and BadInput.
    """
    require_count(depth, 1, "depth")
    index = index_of(graph)
    root, importance = index.row(start_node), _CENTRALITY * index.centrality + _DIVERSITY * index.diversity
    depths = np.full(len(graph), -1, np.int32)
    depths[root] = 0
    everywhere = index.ways_of()
    levels: list[tuple[Explored, ...]] = [
        (Explored(graph.ids[root], 0, float(importance[root]), int(index.degrees[root]), False, (), ""),)
    ]
    for level in range(depth):
        reached = index.reach(depths, level, everywhere)
        if not len(reached.children):
            break
        depths[reached.children] = level + 1
        levels.append(_level(index, reached, level + 1, importance))
    formula = f"importance = {_CENTRALITY:g} * degree centrality + {_DIVERSITY:g} * share of the edge types"
    why = [f"{formula}; a hub has over {_HUB:g} times the mean neighbours of its level"]
    hubs = [node.id for level in levels for node in level if node.is_hub]
    more = f" and {len(hubs) - 5:,} more" * (len(hubs) > 5)
    why.append(f"hubs: {', '.join(hubs[:5])}{more}" if hubs else "no hub among them")
    if len(levels) == 1:
        why.append(f"no edge joins {start_node} with another node")
    return Exploration(start_node, tuple(levels), tuple(why))


def _level(index: GraphIndex, reached: LevelEdges, depth: int, importance: Reals) -> tuple[Explored, ...]:
    """Return the nodes of one level, the most important first."""
    graph, children = index.graph, distinct_integers(reached.children, len(index.graph))
    order = children[np.lexsort((index.name_order[children], -importance[children]))]
    hubs = index.degrees[order] > _HUB * index.degrees[children].mean()
    parents, types = _parents(index, reached, importance), _types(index, reached)
    rows, size = order.tolist(), len(order)
    return tuple(
        map(
            Explored,
            map(graph.ids.__getitem__, rows),
            repeat(depth, size),
            importance[order].tolist(),
            index.degrees[order].tolist(),
            hubs.tolist(),
            map(types.__getitem__, rows),
            map(graph.ids.__getitem__, parents[order].tolist()),
        )
    )


def _parents(index: GraphIndex, reached: LevelEdges, importance: Reals) -> StepIndices:
    """Return the most important parent of each child."""
    in_order, rank = np.lexsort((index.name_order, -importance)), np.empty(len(index.graph), np.int64)
    rank[in_order] = np.arange(len(index.graph))
    best = np.full(len(index.graph), len(index.graph), np.int64)
    np.minimum.at(best, reached.children, rank[reached.parents])
    return np.where(best < len(index.graph), in_order[np.minimum(best, len(index.graph) - 1)], -1)


def _types(index: GraphIndex, reached: LevelEdges) -> dict[int, tuple[str, ...]]:
    """Return the types of the edges over which each child was reached, in alphabetical order."""
    names = index.graph.type_names
    in_order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.argsort(in_order)
    pairs = distinct_integers(
        reached.children * np.int64(len(names)) + rank[reached.ways // 2], len(index.graph) * len(names)
    )
    children, types = pairs // len(names), [names[in_order[code]] for code in (pairs % len(names)).tolist()]
    starts = np.flatnonzero(np.diff(children, prepend=-1))
    ends = [*starts[1:].tolist(), len(types)]
    return {
        child: tuple(types[a:b])
        for child, a, b in zip(children[starts].tolist(), starts.tolist(), ends, strict=True)
    }
