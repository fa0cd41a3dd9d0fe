"""The shortest way between two nodes, with the type and the direction of every edge on it (KG-OS, method 9)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from kgot_lab.errors import require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Ints
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.index import GraphIndex, Reals, index_of
from kgot_lab.retrieval.neighbours import each_once
from kgot_lab.text.cleaning import counted
from kgot_lab.types import Edge


class PathStep(NamedTuple):
    """One edge of a path, the node it comes from and the node it leads to; backward is against the arrow."""

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

    COLUMNS: ClassVar[tuple[str, ...]] = ("from", "edge", "direction", "to")

    @property
    def length(self) -> int:
        """How many edges the path has."""
        return len(self.steps)

    @property
    def ids(self) -> list[str]:
        """The ids on the path, from start to end; none where there is no path."""
        return [self.start, *(step.target for step in self.steps)] if self.found else []

    @property
    def title(self) -> str:
        return f"path from {self.start} to {self.end}: " + (
            counted(self.length, "edge") if self.found else "none found"
        )

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
    """A shortest path of at most `max_depth` edges, by a search from both ends at once; edges are walked both
    ways unless `directed`.

    Of parallel edges the path names the first that goes forward, else the first. With `types`, only these are
    walked. Raises UnknownName for a node that is not there, with near ids, or where no edge has such a type,
    and BadInput.
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
    """A breadth-first search from one end: the depth of every node, -1 where it has not come, and the step
    that led there.
    """

    def __init__(self, index: GraphIndex, row: int, worth: Reals) -> None:
        self.index, self.worth, self.depth, self.stuck = index, worth, 0, False
        self.depths: Ints = np.full(len(index.graph), -1, np.int32)
        self.depths[row] = 0
        self.came = np.full(len(index.graph), -1, np.int64)
        self.level = np.array([row], np.int32)

    @property
    def edges(self) -> int:
        """How many edges the next level is found over."""
        indptr = self.index.links.ends.indptr
        return int((indptr[self.level + 1] - indptr[self.level]).sum())

    def advance(self, other: _Side) -> int | None:
        """Walk one level; the node where both searches meet, of several the first by id."""
        places, _ = self.index.places(self.level, self.worth)
        ends = self.index.links.ends.indices[places]
        places, ends = places[self.depths[ends] < 0], ends[self.depths[ends] < 0]
        self.depth += 1
        self.came[ends[::-1]] = places[::-1]
        self.depths[ends] = self.depth
        self.level = each_once(ends, len(self.depths)).astype(np.int32)
        self.stuck = not len(self.level)
        met = self.level[other.depths[self.level] >= 0]
        return int(met[np.argmin(self.index.name_order[met])]) if len(met) else None

    def back_from(self, row: int) -> list[int]:
        """The steps that led to a row, the last first."""
        places = []
        while self.depths[row] > 0:
            places.append(int(self.came[row]))
            row = int(self.index.links.origins[places[-1]])
        return places


def _step(index: GraphIndex, place: int) -> PathStep:
    ids, links = index.graph.ids, index.links
    direction: Literal["forward", "backward"] = "backward" if links.ways[place] % 2 else "forward"
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
            return f"edges{limits} join {name} with {counted(int((side.depths > 0).sum()), 'other node')} only; max_depth is not why"
    reached = [int((side.depths >= 0).sum()) for side in sides]
    return f"no path within max_depth={max_depth} edges{limits}: {reached[0]:,} nodes lie near {names[0]}, {reached[1]:,} near {names[1]}"
