"""Label placement: names beside nodes and labels along edges, without overlap where there is room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgot_lab.viz.graph.layout import Mask, NodePairs, Points, boxes_meet, distance_to_lines, on_curves

_ROUNDS = 5
_GAP = 3.0  # pixels between a node and its name
_SIDES = np.array([(0, 1), (0, -1), (1, 0), (-1, 0), (0.8, 0.8), (-0.8, 0.8), (0.8, -0.8), (-0.8, -0.8)])
_LIKED = np.array([0.0, 0.5, 0.6, 0.6, 1.0, 1.0, 1.2, 1.2])  # the costs of these sides
# positions of a label along its line, as fractions
_SHARES = np.array([0.5, 0.45, 0.55, 0.4, 0.6, 0.35, 0.65, 0.3, 0.7, 0.25, 0.75, 0.2, 0.8, 0.15, 0.85])
_HARD, _CROSSED = 30.0, 1.0


@dataclass(frozen=True)
class Worded:
    """Centres of labels, shape (n, 2), and which of them overlap something else, shape (n,)."""

    middles: Points
    clash: Mask


def names_placed(
    points: Points, radius: Points, halves: Points, pairs: NodePairs, bounds: tuple[float, float]
) -> Worded:
    """Position the name of each node within (0, 0) and `bounds`.

    `halves` is half the width and height of each name.
    """
    count = len(points)
    limit = np.array(bounds)
    middles = np.empty((count, len(_SIDES), 2))
    for number in range(count):
        away = radius[number] + _GAP + halves[number]
        slanted = np.array([halves[number, 0] + 0.5 * radius[number], away[1]])
        offsets = np.where(
            np.abs(_SIDES).sum(axis=1, keepdims=True) > 1, np.sign(_SIDES) * slanted, _SIDES * away
        )
        middles[number] = points[number] + offsets
    wanted = middles
    middles = np.clip(wanted, halves[:, None], np.maximum(limit - halves, halves)[:, None])
    moved = np.abs(middles - wanted).sum(axis=-1)
    discs = np.stack([radius, radius], axis=1) + 1
    cost = _LIKED + moved / 10
    starts, ends = points[pairs[:, 0]], points[pairs[:, 1]]
    for number in range(count):
        on_nodes = boxes_meet(middles[number][:, None], halves[number], points, discs)
        cost[number] += _HARD * (on_nodes > 0).sum(axis=1) + on_nodes.sum(axis=1)
        scale = np.maximum(halves[number], 1)
        crossed = distance_to_lines(middles[number][:, None] / scale, starts / scale, ends / scale) < 1
        cost[number] += _CROSSED * crossed.sum(axis=1)
    chosen, clash = _settled(middles, halves + 1, cost)
    return Worded(middles[np.arange(count), chosen], clash)


def words_placed(
    curves: tuple[Points, Points, Points],
    halves: Points,
    rows: NDArray[np.intp],
    taken: tuple[Points, Points],
    bounds: tuple[float, float],
) -> Worded:
    """Position the labels of some edges on their curves, or just beside them, off the boxes in `taken`.

    `curves` has the start, control and end points of all curves, shape (m, 2) each. `halves` is half the
    width and height of each label.
    """
    start, control, end = (points[rows] for points in curves)
    halves = halves[rows]
    on = on_curves(start[:, None], control[:, None], end[:, None], _SHARES)
    along = end - start
    across = np.stack([-along[:, 1], along[:, 0]], axis=1) / (np.hypot(*along.T)[:, None] + 1e-9)
    aside = across * ((halves * np.abs(across)).sum(axis=1) + 3)[:, None]
    middles = np.concatenate([on, on + aside[:, None], on - aside[:, None]], axis=1)
    liked = np.abs(_SHARES - 0.5) * 3
    cost = np.tile(np.concatenate([liked, liked + 0.8, liked + 0.8]), (len(start), 1))
    one, two, three = (points[:, None] for points in curves)
    sampled = on_curves(one, two, three, np.linspace(0.05, 0.95, 15))
    places, spaces = taken
    limit = np.array(bounds)
    for number, row in enumerate(rows.tolist()):
        mine, half = middles[number], halves[number]
        on_taken = boxes_meet(mine[:, None], half + 1, places, spaces)
        outside = (np.maximum(half - mine, 0) + np.maximum(mine + half - limit, 0)).sum(axis=1)
        # usually few of thousands
        near = ((sampled > mine.min(axis=0) - half) & (sampled < mine.max(axis=0) + half)).all(axis=-1)
        near[row] = False
        others = sampled[near]
        crossed = (
            (np.abs(mine[:, :1] - others[:, 0]) < half[0]) & (np.abs(mine[:, 1:] - others[:, 1]) < half[1])
        ).sum(axis=1)
        cost[number] += (
            _HARD * (on_taken > 0).sum(axis=1)
            + on_taken.sum(axis=1)
            + _HARD * (outside > 0)
            + _CROSSED * crossed
        )
    chosen, clash = _settled(middles, halves + 1, cost)
    return Worded(middles[np.arange(len(start)), chosen], clash)


def _settled(middles: Points, halves: Points, cost: Points) -> tuple[NDArray[np.intp], Mask]:
    """Choose a position for each box by local search, and return which boxes still overlap.

    Each box in turn moves to the best position given the others, until none moves or the rounds are used up.
    `middles` has shape (n, k, 2). `cost`, shape (n, k), is what a position costs by itself, at least _HARD if
    something fixed is in the way.
    """
    rows = np.arange(len(middles))
    chosen = cost.argmin(axis=1) if len(middles) else rows
    for _ in range(_ROUNDS):
        before = chosen.copy()
        for number in sorted(rows.tolist(), key=lambda row: (-cost[row].min(), row)):
            own = cost[number] + _on_words(middles, halves, chosen, number)
            chosen[number] = int(own.argmin())
        if (chosen == before).all():
            break
    places = middles[rows, chosen]
    depth = boxes_meet(places[:, None], halves[:, None], places, halves)
    clash = cost[rows, chosen] >= _HARD
    for number in rows.tolist():  # of two that overlap the first stays
        clash[number] |= bool((depth[number, :number][~clash[:number]] > 0).any())
    return chosen, clash


def _on_words(middles: Points, halves: Points, chosen: NDArray[np.intp], number: int) -> Points:
    """Return the overlap cost of each position of a box, given the positions of the others."""
    mine, half = middles[number], halves[number]
    places = middles[np.arange(len(middles)), chosen]
    # usually few of thousands
    near = ((places > mine.min(axis=0) - half - halves) & (places < mine.max(axis=0) + half + halves)).all(
        axis=1
    )
    near[number] = False
    depth = boxes_meet(mine[:, None], half, places[near], halves[near])
    cost: Points = _HARD * (depth > 0).sum(axis=1) + depth.sum(axis=1)
    return cost


# Lines bent around other nodes, and parallel edges side by side.

PARALLEL_GAP = 40.0
_TRIED = (0.0, 26.0, -26.0, 46.0, -46.0, 72.0, -72.0, 104.0, -104.0, 144.0, -144.0, 200.0, -200.0)
_SAMPLED = np.linspace(0.0, 1.0, 41)
_CLEAR = 3.0  # minimum pixels between a bent line and the rim of another node
_BESIDE = 12.0  # preferred pixels between them
_FAR = 1e9  # distance of nodes that no candidate comes near


def controls(points: Points, radius: Points, ends: NodePairs, bounds: tuple[float, float]) -> Points:
    """Return the control point of each edge, shape (m, 2), in pixels.

    For a straight line it is halfway between the ends. `points` has shape (n, 2), also in pixels. `ends` has
    shape (m, 2), in the order in which parallel edges are to be drawn. Self-loops get the position of their
    node.
    """
    found = np.empty((len(ends), 2))
    for number, base in enumerate(_side_by_side(ends, 1.2 * min(bounds))):
        one, other = ends[number]
        found[number] = (
            _around(points, radius, (int(one), int(other)), base, bounds) if one != other else points[one]
        )
    return found


def _side_by_side(ends: NodePairs, room: float) -> NDArray[np.float64]:
    """Return how far to bend each edge so that parallel edges do not overlap.

    All edges between two nodes together take up at most `room`.
    """
    beside: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, (one, other) in enumerate(ends.tolist()):
        beside[min(one, other), max(one, other)].append(number)
    bends = np.zeros(len(ends))
    for (low, _), numbers in beside.items():
        gap = min(PARALLEL_GAP, room / len(numbers))
        for place, number in enumerate(numbers):
            bends[number] = (place - (len(numbers) - 1) / 2) * gap * (1 if ends[number, 0] == low else -1)
    return bends


def _around(
    points: Points, radius: Points, ends: tuple[int, int], base: float, bounds: Sequence[float]
) -> Points:
    """Return the control point, of those tried, that best balances distance from nodes and small bend."""
    start, end = points[ends[0]], points[ends[1]]
    along = end - start
    across = np.array([-along[1], along[0]]) / (np.hypot(*along) + 1e-9)
    bends = base + np.array(_TRIED)
    tried = (start + end) / 2 + bends[:, None] * across
    curves = on_curves(start, tried[:, None], end, _SAMPLED)
    strange = np.ones(len(points), dtype=bool)
    strange[list(ends)] = False
    away = np.full((len(tried), int(strange.sum())), _FAR)
    others, rims = points[strange], radius[strange]
    room = (rims + _BESIDE)[:, None]
    # all other nodes cost nothing
    near = ((others > curves.min(axis=(0, 1)) - room) & (others < curves.max(axis=(0, 1)) + room)).all(axis=1)
    x, y = others[near].T
    away[:, near] = (
        np.hypot(curves[..., :1] - x, curves[..., 1:] - y).min(axis=1, initial=np.inf) - rims[near]
    )
    outside = (np.maximum(-curves, 0) + np.maximum(curves - np.array(bounds), 0)).max(axis=(1, 2))
    cost = (
        np.abs(bends - base) / 20
        + 100 * (away < _CLEAR).sum(axis=1)
        + ((1 - away / _BESIDE) * (away < _BESIDE)).sum(axis=1)
    )
    best: Points = tried[int((cost + 10 * (outside > 0) + outside).argmin())]
    return best
