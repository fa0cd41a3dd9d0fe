"""Nodes moved until a small graph reads: no name on another, no line through a node of others, few lines that
cross.

One node after the other goes to the best of some hundred places, those around it and some anywhere: a search
that always ends, without chance. What an evaluation costs is the number of places times the lines at the node
times all nodes, so it is for a few hundred nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgot_lab.viz.graph.layout import (
    Mask,
    NodePairs,
    Points,
    boxes_meet,
    crossing,
    distance_to_lines,
    scattered,
)

CLEAR = 7.0  # pixels between a line and the rim of a node that is not its own
# places tried around a node, and anywhere
_RINGS, _ANGLES, _ANYWHERE = ((8.0, 18.0, 36.0, 66.0, 110.0, 170.0), 10, 48)
# what is bad, and how bad
_ON_NAME, _THROUGH, _CROSSES, _UNDER_NAME, _FAR, _SHORT = (10.0, 14.0, 1.2, 1.5, 0.9, 5.0)
_SWEEPS = 10
_WORK = 16_000_000  # distances measured at most, about two seconds: what is left untangled then stays so


@dataclass(frozen=True)
class NodeRooms:
    """What each node takes of the paper, in pixels, shape (n,) each: its radius, half the width of its name,
    the height of its name.
    """

    radius: Points
    half: Points
    high: Points

    @property
    def halves(self) -> Points:
        """Half the width and height of the box around a node and the name below it, shape (n, 2)."""
        return np.stack([np.maximum(self.half, self.radius) + 4, self.radius + self.high / 2 + 4], axis=1)

    @property
    def shift(self) -> Points:
        """From a node to the middle of that box, downwards, shape (n,)."""
        return self.high / 2


def untangled(
    points: Points,
    pairs: NodePairs,
    rooms: NodeRooms,
    bounds: tuple[float, float],
    words: Points,
    fixed: Mask,
) -> Points:
    """The points, shape (n, 2) in pixels, moved within (0, 0) and bounds, the `fixed` ones excepted.

    `pairs` has shape (m, 2), each pair once; `words` is the width and height of what is written along each,
    shape (m, 2).
    """
    search = _Search(points, pairs, rooms, bounds, words)
    moving = np.flatnonzero(~fixed).tolist()
    work = 0
    for sweep in range(_SWEEPS):
        costs = {node: float(search.costs(node, search.points[node : node + 1])[0]) for node in moving}
        worst = sorted(moving, key=lambda node: (-costs[node], node))
        chosen = worst if sweep < 3 else [node for node in worst if costs[node] > _ON_NAME / 2]
        moved = False
        for node in chosen:
            if (work := work + search.work(node)) > _WORK:
                return search.points
            moved |= search.improve(node)
        if not moved:
            break
    return search.points


class _Search:
    def __init__(
        self, points: Points, pairs: NodePairs, rooms: NodeRooms, bounds: tuple[float, float], words: Points
    ) -> None:
        self.points, self.pairs, self.words = points.copy(), pairs, words
        self.radius, self.halves = rooms.radius, rooms.halves
        self.down = np.stack([np.zeros(len(points)), rooms.shift], axis=1)
        self.name_down = np.stack([np.zeros(len(points)), rooms.radius + rooms.high / 2 + 3], axis=1)
        self.name_halves = np.stack([np.maximum(rooms.half, 1), np.maximum(rooms.high / 2, 1)], axis=1)
        # where the middle of a node may be
        self.low, self.high = (self.halves - self.down, np.array(bounds) - self.halves - self.down)
        self.high = np.maximum(self.high, self.low)
        self.points = np.clip(self.points, self.low, self.high)
        self.ideal = float(np.sqrt(bounds[0] * bounds[1] / max(len(points), 1)))
        self.at: list[NDArray[np.intp]] = [
            np.flatnonzero((pairs == node).any(axis=1)) for node in range(len(points))
        ]
        rings = [
            (r * np.cos(a + r), r * np.sin(a + r))
            for r in _RINGS
            for a in np.linspace(0, 2 * np.pi, _ANGLES, endpoint=False)
        ]  # each ring turned a little
        self.steps = np.array([(0.0, 0.0), *rings])
        self.anywhere = (scattered(_ANYWHERE) + 1) / 2

    def work(self, node: int) -> int:
        """How many distances it takes to look for a better place for a node."""
        own, all_nodes, lines = len(self.at[node]), len(self.points), len(self.pairs)
        return (len(self.steps) + _ANYWHERE) * (all_nodes + 3 * lines + own * (2 * all_nodes + lines))

    def improve(self, node: int) -> bool:
        """Move a node to the best place found; whether it moved."""
        low, high = self.low[node], self.high[node]
        tried = np.concatenate(
            [np.clip(self.points[node] + self.steps, low, high), low + self.anywhere * (high - low)]
        )
        costs = self.costs(node, tried)
        best = int(costs.argmin())
        if costs[best] > costs[0] - 0.05:
            return False
        self.points[node] = tried[best]
        return True

    def costs(self, node: int, places: Points) -> Points:
        """How bad each of some places, shape (k, 2), would be for a node."""
        others = np.arange(len(self.points)) != node
        own = np.zeros(len(self.pairs), dtype=bool)
        own[self.at[node]] = True
        cost = self._on_others(node, places, others) + self._under_lines(node, places, ~own)
        if own.any():
            cost += self._line_penalty(node, places, own)
        return cost

    def _on_others(self, node: int, places: Points, others: Mask) -> Points:
        """Its box, name included, on those of other nodes."""
        middle, halves = places[:, None] + self.down[node], self.halves[node]
        depth = boxes_meet(middle, halves, (self.points + self.down)[others], self.halves[others])
        on_others: Points = (_ON_NAME * ((depth > 0) * 0.4 + depth / 20)).sum(axis=1)
        return on_others

    def _under_lines(self, node: int, places: Points, foreign: Mask) -> Points:
        """Lines of others through the node, or across its name."""
        starts, ends = self.points[self.pairs[foreign, 0]], self.points[self.pairs[foreign, 1]]
        cost = _hit(distance_to_lines(places[:, None], starts, ends), self.radius[node]).sum(axis=1)
        scale = self.name_halves[node]
        on_name = (
            distance_to_lines((places + self.name_down[node])[:, None] / scale, starts / scale, ends / scale)
            < 1
        )
        under: Points = cost + _UNDER_NAME * on_name.sum(axis=1)
        return under

    def _line_penalty(self, node: int, places: Points, own: Mask) -> Points:
        """Its own lines through other nodes, across names and other lines, too long, or too short for their
        words.
        """
        mine = self.pairs[own]
        far = np.where(mine[:, 0] == node, mine[:, 1], mine[:, 0])
        start, end = places[:, None], self.points[far]
        across, down = np.abs(start[..., 0] - end[:, 0]), np.abs(start[..., 1] - end[:, 1])
        length = np.hypot(across, down) + 1e-6
        wide = np.minimum(
            self.words[own, 0] / (across / length + 0.05), self.words[own, 1] / (down / length + 0.05)
        )
        need = self.radius[node] + self.radius[far] + 16 + wide
        cost: Points = _FAR * ((length / self.ideal) ** 2).sum(axis=1) ** 0.75 + _SHORT * np.maximum(
            1 - length / need, 0
        ).sum(axis=1)
        rows = np.arange(len(self.points))
        strange = (rows != node) & (rows != far[:, None])  # of each line, the nodes that are none of its ends
        away = distance_to_lines(self.points, start[:, :, None], end[:, None])
        cost += (_hit(away, self.radius) * strange).sum(axis=(1, 2))
        scale = self.name_halves
        on_name = (
            distance_to_lines(
                (self.points + self.name_down) / scale, start[:, :, None] / scale, end[:, None] / scale
            )
            < 1
        )
        cost += _UNDER_NAME * (on_name & strange).sum(axis=(1, 2))
        if (~own).any():
            c, d = self.points[self.pairs[~own, 0]], self.points[self.pairs[~own, 1]]
            cost += _CROSSES * crossing(start[:, :, None], end[:, None], c, d).sum(axis=(1, 2))
        return cost


def _hit(distance: Points, radius: Points) -> Points:
    """How bad lines so near to the middle of a node are: nothing from CLEAR pixels beside its rim on."""
    clear = radius + CLEAR
    hit: Points = _THROUGH * np.maximum(1 - distance / clear, 0)
    return hit
