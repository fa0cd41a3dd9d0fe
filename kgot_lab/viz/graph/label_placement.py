"""Label placement: names beside nodes and labels along edges, without overlap where there is room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgot_lab.viz.graph.layout import Mask, NodePairs, Points, box_overlap, curve_points, distance_to_lines

_MAX_ROUNDS = 5
_GAP = 3.0  # pixels between a node and its name
_SIDES = np.array([(0, 1), (0, -1), (1, 0), (-1, 0), (0.8, 0.8), (-0.8, 0.8), (0.8, -0.8), (-0.8, -0.8)])
_SIDE_COSTS = np.array([0.0, 0.5, 0.6, 0.6, 1.0, 1.0, 1.2, 1.2])  # the costs of these sides
# positions of a label along its line, as fractions
_LABEL_FRACTIONS = np.array(
    [0.5, 0.45, 0.55, 0.4, 0.6, 0.35, 0.65, 0.3, 0.7, 0.25, 0.75, 0.2, 0.8, 0.15, 0.85]
)
_OVERLAP_COST, _CROSSING_COST = 30.0, 1.0


@dataclass(frozen=True)
class PlacedLabels:
    """Centres of labels, shape (n, 2), and which of them overlap something else, shape (n,)."""

    middles: Points
    clash: Mask


def place_names(
    points: Points, radius: Points, halves: Points, pairs: NodePairs, bounds: tuple[float, float]
) -> PlacedLabels:
    """Point the name of each node within (0, 0) and `bounds`.

    `halves` is half the width and height of each name.
    """
    count = len(points)
    limit = np.array(bounds)
    middles = np.empty((count, len(_SIDES), 2))
    for number in range(count):
        distance = radius[number] + _GAP + halves[number]
        slanted = np.array([halves[number, 0] + 0.5 * radius[number], distance[1]])
        is_corner = np.abs(_SIDES).sum(axis=1, keepdims=True) > 1
        offsets = np.where(is_corner, np.sign(_SIDES) * slanted, _SIDES * distance)
        middles[number] = points[number] + offsets
    preferred = middles
    middles = np.clip(preferred, halves[:, None], np.maximum(limit - halves, halves)[:, None])
    shift = np.abs(middles - preferred).sum(axis=-1)
    discs = np.stack([radius, radius], axis=1) + 1
    cost = _SIDE_COSTS + shift / 10
    starts, ends = points[pairs[:, 0]], points[pairs[:, 1]]
    for number in range(count):
        on_nodes = box_overlap(middles[number][:, None], halves[number], points, discs)
        cost[number] += _OVERLAP_COST * (on_nodes > 0).sum(axis=1) + on_nodes.sum(axis=1)
        scale = np.maximum(halves[number], 1)
        crossed = distance_to_lines(middles[number][:, None] / scale, starts / scale, ends / scale) < 1
        cost[number] += _CROSSING_COST * crossed.sum(axis=1)
    chosen, clash = _choose_positions(middles, halves + 1, cost)
    return PlacedLabels(middles[np.arange(count), chosen], clash)


def place_edge_labels(
    curves: tuple[Points, Points, Points],
    halves: Points,
    rows: NDArray[np.intp],
    obstacles: tuple[Points, Points],
    bounds: tuple[float, float],
) -> PlacedLabels:
    """Point the labels of some edges on their curves, or just beside them, off the boxes in `obstacles`.

    `curves` has the start, control and end points of all curves, shape (m, 2) each. `halves` is half the
    width and height of each label.
    """
    start, control, end = (points[rows] for points in curves)
    halves = halves[rows]
    on = curve_points(start[:, None], control[:, None], end[:, None], _LABEL_FRACTIONS)
    along = end - start
    across = np.stack([-along[:, 1], along[:, 0]], axis=1) / (np.hypot(*along.T)[:, None] + 1e-9)
    aside = across * ((halves * np.abs(across)).sum(axis=1) + 3)[:, None]
    middles = np.concatenate([on, on + aside[:, None], on - aside[:, None]], axis=1)
    offset_cost = np.abs(_LABEL_FRACTIONS - 0.5) * 3
    cost = np.tile(np.concatenate([offset_cost, offset_cost + 0.8, offset_cost + 0.8]), (len(start), 1))
    one, two, three = (points[:, None] for points in curves)
    sampled = curve_points(one, two, three, np.linspace(0.05, 0.95, 15))
    obstacle_centres, obstacle_halves = obstacles
    limit = np.array(bounds)
    for number, row in enumerate(rows.tolist()):
        options, half = middles[number], halves[number]
        on_obstacles = box_overlap(options[:, None], half + 1, obstacle_centres, obstacle_halves)
        outside = (np.maximum(half - options, 0) + np.maximum(options + half - limit, 0)).sum(axis=1)
        # usually few of thousands
        near = ((sampled > options.min(axis=0) - half) & (sampled < options.max(axis=0) + half)).all(axis=-1)
        near[row] = False
        others = sampled[near]
        near_x = np.abs(options[:, :1] - others[:, 0]) < half[0]
        near_y = np.abs(options[:, 1:] - others[:, 1]) < half[1]
        crossed = (near_x & near_y).sum(axis=1)
        cost[number] += (
            _OVERLAP_COST * (on_obstacles > 0).sum(axis=1)
            + on_obstacles.sum(axis=1)
            + _OVERLAP_COST * (outside > 0)
            + _CROSSING_COST * crossed
        )
    chosen, clash = _choose_positions(middles, halves + 1, cost)
    return PlacedLabels(middles[np.arange(len(start)), chosen], clash)


def _choose_positions(middles: Points, halves: Points, cost: Points) -> tuple[NDArray[np.intp], Mask]:
    """Choose a position for each box by local search, and return which boxes still overlap.

    Each box in turn moves to the best position given the others, until none moves or the rounds are used up.
    `middles` has shape (n, k, 2). `cost`, shape (n, k), is what a position costs by itself, at least _HARD if
    something fixed is in the way.
    """
    rows = np.arange(len(middles))
    chosen = cost.argmin(axis=1) if len(middles) else rows
    for _ in range(_MAX_ROUNDS):
        before = chosen.copy()
        for number in sorted(rows.tolist(), key=lambda row: (-cost[row].min(), row)):
            own = cost[number] + _label_overlap_cost(middles, halves, chosen, number)
            chosen[number] = int(own.argmin())
        if (chosen == before).all():
            break
    positions = middles[rows, chosen]
    depth = box_overlap(positions[:, None], halves[:, None], positions, halves)
    clash = cost[rows, chosen] >= _OVERLAP_COST
    for number in rows.tolist():  # of two that overlap the first stays
        clash[number] |= bool((depth[number, :number][~clash[:number]] > 0).any())
    return chosen, clash


def _label_overlap_cost(middles: Points, halves: Points, chosen: NDArray[np.intp], number: int) -> Points:
    """Return the overlap cost of each position of a box, given the positions of the others."""
    candidates, half = middles[number], halves[number]
    positions = middles[np.arange(len(middles)), chosen]
    # usually few of thousands
    low, high = candidates.min(axis=0) - half - halves, candidates.max(axis=0) + half + halves
    near = ((positions > low) & (positions < high)).all(axis=1)
    near[number] = False
    depth = box_overlap(candidates[:, None], half, positions[near], halves[near])
    cost: Points = _OVERLAP_COST * (depth > 0).sum(axis=1) + depth.sum(axis=1)
    return cost


# Lines bent around other nodes, and parallel edges side by side.

PARALLEL_GAP = 40.0
_BENDS = (0.0, 26.0, -26.0, 46.0, -46.0, 72.0, -72.0, 104.0, -104.0, 144.0, -144.0, 200.0, -200.0)
_CURVE_FRACTIONS = np.linspace(0.0, 1.0, 41)
_MIN_CLEARANCE = 3.0  # minimum pixels between a bent line and the rim of another node
_PREFERRED_CLEARANCE = 12.0  # preferred pixels between them
_FAR_AWAY = 1e9  # distance of nodes that no candidate comes near


def control_points(points: Points, radius: Points, ends: NodePairs, bounds: tuple[float, float]) -> Points:
    """Return the control point of each edge, shape (m, 2), in pixels.

    For a straight line it is halfway between the ends. `points` has shape (n, 2), also in pixels. `ends` has
    shape (m, 2), in the order in which parallel edges are to be drawn. Self-loops get the position of their
    node.
    """
    found = np.empty((len(ends), 2))
    for number, base in enumerate(_parallel_bends(ends, 1.2 * min(bounds))):
        one, other = ends[number]
        found[number] = points[one]
        if one != other:
            found[number] = _bent_control(points, radius, (int(one), int(other)), base, bounds)
    return found


def _parallel_bends(ends: NodePairs, max_width: float) -> NDArray[np.float64]:
    """Return how far to bend each edge so that parallel edges do not overlap.

    All edges between two nodes together take up at most `max_width`.
    """
    parallel: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, (one, other) in enumerate(ends.tolist()):
        parallel[min(one, other), max(one, other)].append(number)
    bends = np.zeros(len(ends))
    for (low, _), numbers in parallel.items():
        gap = min(PARALLEL_GAP, max_width / len(numbers))
        for index, number in enumerate(numbers):
            bends[number] = (index - (len(numbers) - 1) / 2) * gap * (1 if ends[number, 0] == low else -1)
    return bends


def _bent_control(
    points: Points, radius: Points, ends: tuple[int, int], base: float, bounds: Sequence[float]
) -> Points:
    """Return the control point, of those tried, that best balances distance from nodes and small bend."""
    start, end = points[ends[0]], points[ends[1]]
    along = end - start
    across = np.array([-along[1], along[0]]) / (np.hypot(*along) + 1e-9)
    bends = base + np.array(_BENDS)
    candidates = (start + end) / 2 + bends[:, None] * across
    curves = curve_points(start, candidates[:, None], end, _CURVE_FRACTIONS)
    is_other = np.ones(len(points), dtype=bool)
    is_other[list(ends)] = False
    clearance = np.full((len(candidates), int(is_other.sum())), _FAR_AWAY)
    others, rims = points[is_other], radius[is_other]
    margin = (rims + _PREFERRED_CLEARANCE)[:, None]
    # all other nodes cost nothing
    low, high = curves.min(axis=(0, 1)) - margin, curves.max(axis=(0, 1)) + margin
    near = ((others > low) & (others < high)).all(axis=1)
    x, y = others[near].T
    distances = np.hypot(curves[..., :1] - x, curves[..., 1:] - y).min(axis=1, initial=np.inf)
    clearance[:, near] = distances - rims[near]
    outside = (np.maximum(-curves, 0) + np.maximum(curves - np.array(bounds), 0)).max(axis=(1, 2))
    cost = (
        np.abs(bends - base) / 20
        + 100 * (clearance < _MIN_CLEARANCE).sum(axis=1)
        + ((1 - clearance / _PREFERRED_CLEARANCE) * (clearance < _PREFERRED_CLEARANCE)).sum(axis=1)
    )
    best: Points = candidates[int((cost + 10 * (outside > 0) + outside).argmin())]
    return best
