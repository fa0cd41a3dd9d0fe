"""What lies around a node, level by level, the important first and hubs marked (KG-OS, method 10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import ClassVar, NamedTuple

import numpy as np

from kgot_lab.errors import require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.index import GraphIndex, LevelEdges, Reals, index_of
from kgot_lab.retrieval.neighbours import Places, each_once
from kgot_lab.text.cleaning import counted

_CENTRALITY, _DIVERSITY, _HUB = 0.6, 0.4, 2.0  # KG-OS, section 6


class Explored(NamedTuple):
    """A node around the start: its depth, importance and number of neighbours, whether it is a hub, and how
    it was reached.
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
    """The levels around a node: of each the nodes, the most important first."""

    start: str
    levels: tuple[tuple[Explored, ...], ...]
    why: tuple[str, ...]

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "id",
        "depth",
        "importance",
        "neighbours",
        "hub",
        "edge types",
        "from",
    )

    @property
    def nodes(self) -> tuple[Explored, ...]:
        """The nodes of all levels, the start first."""
        return tuple(node for level in self.levels for node in level)

    @property
    def hubs(self) -> tuple[Explored, ...]:
        """The nodes with more than twice the neighbours that their level has on the mean."""
        return tuple(node for node in self.nodes if node.is_hub)

    @property
    def title(self) -> str:
        levels = ", ".join(
            f"{len(level):,} at depth {depth}" for depth, level in enumerate(self.levels) if depth
        )
        return f"around {self.start}: {counted(len(self.nodes) - 1, 'node')}" + (
            f", {levels}" if levels else ""
        )

    def rows(self) -> Sequence[Explored]:
        return self.nodes


def explore_smart(graph: PropertyGraph, start_node: str, *, depth: int = 2) -> Exploration:
    """The nodes within some edges of a node, whichever way these point, by level and importance; hubs are
    marked.

    importance = .6 * degree centrality + .4 * types of edges at the node / types in the graph (decision
    C-M6). A hub has more than twice the mean neighbours of its level. A node's parent is the most important
    node of the level before it is linked to; ties by id. Raises UnknownName for a node that is not there,
    with near ids, and BadInput.
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
    why += (
        [f"hubs: {', '.join(hubs[:5])}" + f" and {len(hubs) - 5:,} more" * (len(hubs) > 5)]
        if hubs
        else ["no hub among them"]
    )
    if len(levels) == 1:
        why.append(f"no edge joins {start_node} with another node")
    return Exploration(start_node, tuple(levels), tuple(why))


def _level(index: GraphIndex, reached: LevelEdges, depth: int, importance: Reals) -> tuple[Explored, ...]:
    """The nodes of one level, the most important first."""
    graph, children = index.graph, each_once(reached.children, len(index.graph))
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


def _parents(index: GraphIndex, reached: LevelEdges, importance: Reals) -> Places:
    """The most important parent of each child."""
    in_order, rank = np.lexsort((index.name_order, -importance)), np.empty(len(index.graph), np.int64)
    rank[in_order] = np.arange(len(index.graph))
    best = np.full(len(index.graph), len(index.graph), np.int64)
    np.minimum.at(best, reached.children, rank[reached.parents])
    return np.where(best < len(index.graph), in_order[np.minimum(best, len(index.graph) - 1)], -1)


def _types(index: GraphIndex, reached: LevelEdges) -> dict[int, tuple[str, ...]]:
    """The types of the edges over which each child was reached, in alphabetical order."""
    names = index.graph.type_names
    in_order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.argsort(in_order)
    pairs = each_once(
        reached.children * np.int64(len(names)) + rank[reached.ways // 2], len(index.graph) * len(names)
    )
    children, types = pairs // len(names), [names[in_order[code]] for code in (pairs % len(names)).tolist()]
    starts = np.flatnonzero(np.diff(children, prepend=-1))
    ends = [*starts[1:].tolist(), len(types)]
    return {
        child: tuple(types[a:b])
        for child, a, b in zip(children[starts].tolist(), starts.tolist(), ends, strict=True)
    }
