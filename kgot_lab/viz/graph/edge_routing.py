"""Lines bent around the nodes that they do not join, and lines between the same two nodes side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kgot_lab.viz.graph.layout import NodePairs, Points, on_curves

PARALLEL_GAP = 40.0
_TRIED = (0.0, 26.0, -26.0, 46.0, -46.0, 72.0, -72.0, 104.0, -104.0, 144.0, -144.0, 200.0, -200.0)
_SAMPLED = np.linspace(0.0, 1.0, 41)
_CLEAR = 3.0  # pixels between a bent line and the rim of a node of others
_BESIDE = 12.0  # pixels from there on which one prefers
_FAR = 1e9  # pixels, from nodes that no line tried comes near


def controls(points: Points, radius: Points, ends: NodePairs, bounds: tuple[float, float]) -> Points:
    """The control point of each edge, shape (m, 2), in pixels as the points, shape (n, 2): halfway between
    its ends for a straight line.

    `ends` has shape (m, 2), in the order in which parallel edges are to lie; loops get the place of their
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
    """How far each edge is bent so that those between the same nodes do not lie on each other; all of these
    within some room.
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
    """The control point, of those tried, with which a line keeps clear of nodes and is bent least."""
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
    # the rest costs nothing
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
