"""Shortest paths with the type and direction of every edge (KG-OS, method 9), and exploration (method 10)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import Literal, NamedTuple

import numpy as np

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Ints
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.index import GraphIndex, LevelEdges, Reals, graph_index
from kgot_lab.retrieval.neighbours import StepIndices, distinct_integers, neighbour_steps
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


@check_arguments
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
    index = graph_index(graph)
    start, end = index.row(node_a), index.row(node_b)
    absent = index.absent_types(types) if types else []
    out = back = None
    if directed or types is not None:
        out = index.edge_type_weights(types, against=0.0 if directed else 1.0)
        back = out.reshape(-1, 2)[:, ::-1].ravel()  # the same edges from their other ends
    one, other = sides = _SearchSide(index, start, out, back), _SearchSide(index, end, back, out)
    meeting = start if start == end else -1
    for _ in range(max_depth):
        if meeting >= 0 or not (len(one.level) and len(other.level)):
            break
        meeting = one.advance(other) if one.edges <= other.edges else other.advance(one)
    if meeting < 0:
        remarks = [f"no edge of the graph has the type {', '.join(absent)}"] if absent else []
        missing = _explain_missing_path(sides, max_depth, types, directed)
        return PathFound(node_a, node_b, False, (), "", (missing, *remarks))
    rows = [*reversed(one.rows_back_from(meeting)), meeting, *other.rows_back_from(meeting)]
    forward_steps = [_first_step_between(index, *ends, out) for ends in pairwise(rows)]
    steps = tuple(_build_step(index, step) for step in forward_steps)
    text = index.links.path(forward_steps) if forward_steps else index.names[start]
    return PathFound(node_a, node_b, True, steps, text, (text,))


class _SearchSide:
    """A breadth-first search from one end: the depth of each node, with 1 for that end and 0 if not reached.

    `onward` and `back` are the weights of the steps away from the end and to it, None if all are followed.
    """

    def __init__(self, index: GraphIndex, row: int, onward: Reals | None, back: Reals | None) -> None:
        self.index, self.row, self.onward, self.back, self.depth = index, row, onward, back, 1
        self.depths: Ints = np.zeros(len(index.graph), np.int32)
        self.depths[row] = 1
        self.level: Ints = np.array([row], np.int32)
        self.edges = 1  # the number to search for the next level

    def advance(self, other: _SearchSide) -> int:
        """Search one level, and return the node where both searches meet, the first by id, or -1."""
        level = _neighbours(self.index, self.level, self.onward)
        self.depth += 1
        met = level[other.depths[level] > 0]
        if len(met):
            row = int(met[np.argmin(self.index.name_order[met])])
            self.depths[row] = self.depth
            return row
        if self.depth > 2 or self.onward is not None:  # the neighbours of one node are distinct
            level = distinct_integers(level[self.depths[level] == 0], len(self.depths)).astype(np.int32)
        self.depths[level], self.level = self.depth, level
        self.edges = int(np.add.reduce(self.index.degrees[level]))
        return -1

    def rows_back_from(self, row: int) -> list[int]:
        """Return the rows that led to a row, the last first."""
        rows: list[int] = []
        for depth in range(int(self.depths[row]) - 1, 1, -1):
            near = _neighbours(self.index, np.array([row], np.int32), self.back)
            row = int(near[self.depths[near] == depth].min())
            rows.append(row)
        return rows if row == self.row else [*rows, self.row]


def _neighbours(index: GraphIndex, rows: Ints, type_weights: Reals | None) -> Ints:
    """Return the neighbours of some rows, over steps with a weight above 0, or over all."""
    near = index.neighbours if type_weights is None else index.links.ends
    if len(rows) == 1 and type_weights is None:
        return near.indices[near.indptr[rows[0]] : near.indptr[rows[0] + 1]]
    steps, _ = neighbour_steps(near, rows)
    if type_weights is not None:
        steps = steps[type_weights[index.links.step_kinds[steps]] > 0]
    return near.indices[steps]


def _first_step_between(index: GraphIndex, start: int, end: int, type_weights: Reals | None) -> int:
    """Return the first step from a row to another, over types with a weight above 0.

    A step along an arrow comes before one against it.
    """
    ends, kinds = index.links.ends, index.links.step_kinds
    first, last = ends.indptr[start], ends.indptr[start + 1]
    same = ends.indices[first:last] == end
    if type_weights is not None:
        same &= type_weights[kinds[first:last]] > 0
    return int(first + same.argmax())


def _build_step(index: GraphIndex, step: int) -> PathStep:
    ids, links = index.graph.ids, index.links
    direction: Literal["forward", "backward"] = "backward" if links.step_kinds[step] % 2 else "forward"
    edge, end = index.edge(links.edge_rows[step]), ids[links.ends.indices[step]]
    return PathStep(ids[links.origins[step]], edge, direction, end)


def _explain_missing_path(
    sides: tuple[_SearchSide, _SearchSide], max_depth: int, types: Collection[str] | None, directed: bool
) -> str:
    index = sides[0].index
    limits = "" if types is None else f" of the types {', '.join(sorted(types))}"
    limits += " in the direction of the arrows" * directed
    names = [index.graph.ids[side.row] for side in sides]
    reached = [int((side.depths > 0).sum()) for side in sides]
    for side, name, found in zip(sides, names, reached, strict=True):
        if not len(side.level):
            return f"edges{limits} join {name} with {format_count(found - 1, 'other node')} only; max_depth is not why"
    return f"no path within max_depth={max_depth} edges{limits}: {reached[0]:,} nodes lie near {names[0]}, {reached[1]:,} near {names[1]}"


# Explore the neighbourhood of a node by level and importance, with hubs marked (KG-OS, method 10).

_CENTRALITY_WEIGHT, _DIVERSITY_WEIGHT, _HUB_FACTOR = 0.6, 0.4, 2.0  # KG-OS, section 6


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
    def nodes(self) -> tuple[Explored, ...]:  # type: ignore[override]
        """The nodes of all levels, the start first."""
        return tuple(node for level in self.levels for node in level)

    @property
    def hubs(self) -> tuple[Explored, ...]:
        """The nodes with more than twice the mean number of neighbours of their level."""
        return tuple(node for node in self.nodes if node.is_hub)

    @property
    def title(self) -> str:
        levels = "".join(f", {len(ids):,} at depth {depth}" for depth, ids in enumerate(self.levels) if depth)
        return f"around {self.start}: {format_count(len(self.nodes) - 1, 'node')}{levels}"


@check_arguments
def explore_smart(graph: PropertyGraph, start_node: str, *, depth: int = 2) -> Exploration:
    """List the nodes within `depth` edges of a node in either direction, by level and importance.

    importance = .6 * degree centrality + .4 * edge types at the node / edge types in the graph. Hubs, with
    more than twice the mean neighbours of their level, are marked. A node's parent is the most important node
    of the level before that it is linked to, ties by id. Raises UnknownName for an unknown node, with similar
    ids, and BadInput.
    """
    require_count(depth, 1, "depth")
    index = graph_index(graph)
    root = index.row(start_node)
    importance = _CENTRALITY_WEIGHT * index.centrality + _DIVERSITY_WEIGHT * index.diversity
    depths = np.full(len(graph), -1, np.int32)
    depths[root] = 0
    everywhere = index.edge_type_weights()
    start = Explored(graph.ids[root], 0, float(importance[root]), int(index.degrees[root]), False, (), "")
    levels: list[tuple[Explored, ...]] = [(start,)]
    rows = np.array([root])
    for level in range(1, depth + 1):
        reached = index.next_level(depths, rows, everywhere)
        rows = distinct_integers(reached.children, len(graph))
        if not len(rows):
            break
        depths[rows] = level
        levels.append(_explored_level(index, reached, level, importance))
    formula = f"importance = {_CENTRALITY_WEIGHT:g} * degree centrality + {_DIVERSITY_WEIGHT:g} * share of the edge types"
    why = [f"{formula}; a hub has over {_HUB_FACTOR:g} times the mean neighbours of its level"]
    hubs = [node.id for level in levels for node in level if node.is_hub]
    more = f" and {len(hubs) - 5:,} more" if len(hubs) > 5 else ""
    why.append(f"hubs: {', '.join(hubs[:5])}{more}" if hubs else "no hub among them")
    if len(levels) == 1:
        why.append(f"no edge joins {start_node} with another node")
    return Exploration(start_node, tuple(levels), tuple(why))


def _explored_level(
    index: GraphIndex, reached: LevelEdges, depth: int, importance: Reals
) -> tuple[Explored, ...]:
    """Return the nodes of one level, the most important first."""
    graph, children = index.graph, distinct_integers(reached.children, len(index.graph))
    order = children[np.lexsort((index.name_order[children], -importance[children]))]
    hubs = index.degrees[order] > _HUB_FACTOR * index.degrees[children].mean()
    parents, types = _best_parents(index, reached, importance), _edge_types_by_child(index, reached)
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


def _best_parents(index: GraphIndex, reached: LevelEdges, importance: Reals) -> StepIndices:
    """Return the most important parent of each child."""
    in_order, rank = np.lexsort((index.name_order, -importance)), np.empty(len(index.graph), np.int64)
    rank[in_order] = np.arange(len(index.graph))
    best = np.full(len(index.graph), len(index.graph), np.int64)
    np.minimum.at(best, reached.children, rank[reached.parents])
    return np.where(best < len(index.graph), in_order[np.minimum(best, len(index.graph) - 1)], -1)


def _edge_types_by_child(index: GraphIndex, reached: LevelEdges) -> dict[int, tuple[str, ...]]:
    """Return the types of the edges over which each child was reached, in alphabetical order."""
    names = index.graph.type_names
    in_order = sorted(range(len(names)), key=names.__getitem__)
    codes = reached.children * np.int64(len(names)) + np.argsort(in_order)[reached.ways // 2]
    pairs = distinct_integers(codes, len(index.graph) * len(names))
    children, types = pairs // len(names), [names[in_order[code]] for code in (pairs % len(names)).tolist()]
    starts = np.flatnonzero(np.diff(children, prepend=-1))
    ends = [*starts[1:].tolist(), len(types)]
    bounds = zip(children[starts].tolist(), starts.tolist(), ends, strict=True)
    return {child: tuple(types[first:last]) for child, first, last in bounds}
