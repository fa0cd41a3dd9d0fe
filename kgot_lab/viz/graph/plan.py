"""Where everything of a small graph goes, once for the still picture and the live view: nodes, names, lines,
and the words along them.

All is in pixels of a drawing area. A wider or higher area may stretch the places and the curves: what lay
apart then lies farther apart, since names and nodes keep their sizes, and no line comes nearer to a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kgot_lab.viz.graph.label_placement import controls, names_placed, words_placed
from kgot_lab.viz.graph.layout import NodePairs, NodeRooms, Points, force_layout, stretched, untangled
from kgot_lab.viz.graph.marks import Place
from kgot_lab.viz.graph.scene import DrawingPlan, EdgePlan, NodePlan, Scene
from kgot_lab.viz.static.drawing import balanced, line_width

PLANNED = 150  # nodes up to which names and words have places of their own
MANY_NODES = 60  # from here on all is smaller
_ATTEMPTS = 3
_LEADING = 1.22  # from line to line, by the size of the type
_STRETCHES = 3  # a stretched drawing has other places for its names, and these may reach less far
# of words along an edge, by their usual width, in the order in which they are tried; 0 for a number
_WIDTHS = (1.0, 0.6, 2.5, 0.0)
_LOOP = 4.4  # radii that a loop is high


def drawing_plan(scene: Scene, area: tuple[float, float], *, positions: Mapping[str, Place]) -> DrawingPlan:
    """Plan a drawing: nodes with `positions`, fractions of the area, stay there; the others are laid out, and
    moved until all reads.

    Where something finds no room other layouts are tried, and the one with most names and words is taken.
    """
    free = not any(node.id in positions for node in scene.nodes)
    plans: list[DrawingPlan] = []
    for attempt in range(_ATTEMPTS if free and len(scene.nodes) <= MANY_NODES else 1):
        draft = _Draft(scene, area)
        draft.lay_out(positions, seed=1000 * attempt)
        draft.write()
        plans.append(draft.plan())
        if not plans[-1].silent and not plans[-1].notes:
            break
    return min(plans, key=lambda plan: (plan.silent, len(plan.notes)))


class _Draft:
    """A plan in the making; rows are nodes and edges in the order given."""

    def __init__(self, scene: Scene, area: tuple[float, float]) -> None:
        self.scene, self.area = scene, area
        self.nodes, self.edges = nodes, edges = scene.nodes, scene.lines
        row = {node.id: number for number, node in enumerate(nodes)}
        self.ends: NodePairs = np.array(
            [(row[edge.source], row[edge.target]) for edge in edges], dtype=np.intp
        ).reshape(-1, 2)
        small = len(nodes) > MANY_NODES
        self.name_size, self.word_size, wide, lines = (
            (10.0, 9.0, 96.0, 3) if small else (12.0, 10.5, 132.0, 4)
        )
        degree = np.bincount(self.ends.ravel(), minlength=len(nodes))
        by_degree = np.minimum(
            (3.5 if small else 6.0) + (1.3 if small else 2.1) * np.sqrt(degree), 11.0 if small else 17.0
        )
        self.radius: Points = np.array(
            [
                scene.sizes[node.id] / 2 if node.id in scene.sizes else by_degree[row[node.id]]
                for node in nodes
            ]
        )
        self.names = [balanced(scene.caption(node), wide, self.name_size, lines) for node in nodes]
        self.word_wide = 0.8 * wide
        self.words = [balanced(scene.words(edge), self.word_wide, self.word_size, 3) for edge in edges]
        signed = np.array([1.4 * self.name_size * (node.id in scene.marked.nodes) for node in nodes])
        self.name_halves = _halves(self.names, self.name_size)
        self.name_halves[:, 0] += signed / 2
        self.word_halves = _halves(self.words, self.word_size)
        self.loops = self.ends[:, 0] == self.ends[:, 1]
        self.points: Points = np.empty((len(nodes), 2))

    def lay_out(self, positions: Mapping[str, Place], *, seed: int) -> None:
        """Find the place of each node."""
        area = np.array(self.area)
        given = np.array(
            [positions.get(node.id, (np.nan, np.nan)) for node in self.nodes], dtype=float
        ).reshape(-1, 2)
        fixed = np.isfinite(given).all(axis=1)
        given[~fixed] = np.nan
        pairs, words = self._pairs()
        points = force_layout(given, pairs, aspect=self.area[0] / self.area[1], seed=seed) * area
        rooms = NodeRooms(self.radius, self.name_halves[:, 0], 2 * self.name_halves[:, 1])
        if not fixed.any():
            points = stretched(points, *self._below(), self.area)
        if not fixed.all():
            points = untangled(points, pairs, rooms, self.area, words, fixed)
        self.points = np.where(fixed[:, None], given * area, points)
        for _ in range(_STRETCHES if not fixed.any() else 0):
            self.points = stretched(self.points, *self._beside(), self.area)

    def write(self) -> None:
        """Find a place for each name and each edge's words, and a way for each edge."""
        self.name_at = names_placed(
            self.points, self.radius, self.name_halves, self.ends[~self.loops], self.area
        )
        self.controls = controls(self.points, self.radius, self.ends, self.area)
        self.word_at = np.zeros((len(self.edges), 2))
        self.notes: list[str] = []
        self.silent = np.array([bool(lines) for lines in self.words], dtype=bool)
        for wide in _WIDTHS:  # what found no room is tried again as broader or narrower lines
            rows = np.flatnonzero(self.silent)
            if not wide:
                self._number(rows)
            elif wide != 1:
                for row in rows.tolist():
                    self.words[row] = balanced(
                        self.scene.words(self.edges[row]), wide * self.word_wide, self.word_size, 4
                    )
            self.word_halves = _halves(self.words, self.word_size)
            if len(rows):
                self._place_edge_label(rows)

    def _number(self, rows: NDArray[np.intp]) -> None:
        """Give edges numbers instead of words, one for each type, and say in notes what they stand for."""
        types = dict.fromkeys(self.edges[row].type for row in rows.tolist())
        numbers = {type: f"({number})" for number, type in enumerate(types, 1)}
        self.notes = [f"{number} {type}" for type, number in numbers.items()]
        for row in rows.tolist():
            self.words[row] = (numbers[self.edges[row].type],)

    def _place_edge_label(self, rows: NDArray[np.intp]) -> None:
        """Find a place for the words of some edges, off everything that has one."""
        shown, said = (
            ~self.name_at.clash,
            ~self.silent & np.array([bool(lines) for lines in self.words], dtype=bool),
        )
        discs = np.stack([self.radius, self.radius], axis=1) + 1
        places = np.concatenate([self.points, self.name_at.middles[shown], self.word_at[said]])
        spaces = np.concatenate([discs, self.name_halves[shown], self.word_halves[said]])
        start, end = self.points[self.ends[:, 0]], self.points[self.ends[:, 1]]
        up = np.stack([np.zeros(len(start)), self.loops * _LOOP * self.radius[self.ends[:, 0]]], axis=1)
        found = words_placed(
            (start - up, self.controls - up, end - up), self.word_halves, rows, (places, spaces), self.area
        )
        self.word_at[rows], self.silent[rows] = found.middles, found.clash

    def plan(self) -> DrawingPlan:
        """The finished plan."""
        nodes = {}
        for number, node in enumerate(self.nodes):
            (x, y), (a, b) = self.points[number].tolist(), self.name_at.middles[number].tolist()
            named = not self.name_at.clash[number] or node.id in self.scene.marked.nodes
            nodes[node.id] = NodePlan(
                (x, y), float(self.radius[number]), self.names[number], (a - x, b - y), named
            )
        edges = {}
        for number, edge in enumerate(self.edges):
            control, at = self.controls[number].tolist(), self.word_at[number].tolist()
            worded = not self.silent[number] or edge.identity in self.scene.marked.edges
            edges[edge.identity] = EdgePlan(
                (control[0], control[1]), self.words[number], (at[0], at[1]), worded
            )
        return DrawingPlan(self.area, self.name_size, self.word_size, nodes, edges, tuple(self.notes))

    # --- what the steps are given ---

    def _pairs(self) -> tuple[NodePairs, Points]:
        """The pairs of nodes that edges join, each once, and the width and height of what is written along
        all edges of a pair.
        """
        room: dict[tuple[int, int], tuple[float, float]] = {}
        for (one, other), (half, high) in zip(self.ends.tolist(), self.word_halves.tolist(), strict=True):
            if one != other:
                wide, tall = room.get((min(one, other), max(one, other)), (0.0, 0.0))
                room[min(one, other), max(one, other)] = (max(wide, 2 * half), tall + 2 * high)
        pairs = sorted(room)
        return np.array(pairs, dtype=np.intp).reshape(-1, 2), np.array(
            [room[pair] for pair in pairs]
        ).reshape(-1, 2)

    def _below(self) -> tuple[Points, Points]:
        """How far each node with the name below it reaches left and up, and right and down."""
        side = np.maximum(self.radius, self.name_halves[:, 0]) + 1
        up = (
            self.radius
            * np.where(np.isin(np.arange(len(self.nodes)), self.ends[self.loops, 0]), 1 + 2 * _LOOP, 1)
            + 1
        )
        return np.stack([side, up], axis=1), np.stack(
            [side, self.radius + 2 * self.name_halves[:, 1] + 4], axis=1
        )

    def _beside(self) -> tuple[Points, Points]:
        """The same with the names where they would be placed now."""
        at = (
            names_placed(
                self.points, self.radius, self.name_halves, self.ends[~self.loops], self.area
            ).middles
            - self.points
        )
        up = self._below()[0][:, 1]
        disc = np.stack([self.radius, self.radius], axis=1) + 1
        before = np.maximum(disc, self.name_halves - at)
        before[:, 1] = np.maximum(before[:, 1], up)
        return before, np.maximum(disc, self.name_halves + at)


def _halves(texts: Sequence[Sequence[str]], size: float) -> Points:
    """Half the width and height of texts in lines, shape (n, 2)."""
    wide = [max((line_width(line, size) for line in lines), default=0.0) / 2 for lines in texts]
    return np.array(
        [(half, len(lines) * size * _LEADING / 2) for half, lines in zip(wide, texts, strict=True)]
    ).reshape(-1, 2)
