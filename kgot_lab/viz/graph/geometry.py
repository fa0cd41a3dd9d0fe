"""Distances and crossings of many points, lines and boxes at once."""

from __future__ import annotations

import numpy as np

from kgot_lab.viz.graph.layout import Mask, Points


def distance_to_lines(points: Points, starts: Points, ends: Points) -> Points:
    """How far points lie from straight lines; the three broadcast to shape (..., 2), and the result has shape
    (...).
    """
    across, down = (
        ends[..., 0] - starts[..., 0],
        ends[..., 1] - starts[..., 1],
    )  # axis by axis: sums over an axis of two are slow
    x, y = points[..., 0] - starts[..., 0], points[..., 1] - starts[..., 1]
    share = np.clip((x * across + y * down) / (across * across + down * down + 1e-9), 0, 1)
    distances: Points = np.hypot(x - share * across, y - share * down)
    return distances


def crossing(a: Points, b: Points, c: Points, d: Points) -> Mask:
    """Whether the line from a to b crosses the one from c to d; shapes broadcast to (..., 2), lines that only
    touch do not count.
    """
    crosses: Mask = (_side(a, b, c) * _side(a, b, d) < 0) & (_side(c, d, a) * _side(c, d, b) < 0)
    return crosses


def on_curves(starts: Points, controls: Points, ends: Points, shares: Points) -> Points:
    """Points on curves of second order; three arrays of shape (..., 1, 2) and shares (s,) give shape (..., s,
    2).
    """
    t = shares[:, None]
    found: Points = (1 - t) ** 2 * starts + 2 * t * (1 - t) * controls + t**2 * ends
    return found


def boxes_meet(middles: Points, halves: Points, others: Points, other_halves: Points) -> Points:
    """How deep boxes lie in each other, 0 where they do not; each is a middle and half its width and height,
    shape (..., 2).
    """
    across = halves[..., 0] + other_halves[..., 0] - np.abs(middles[..., 0] - others[..., 0])
    down = halves[..., 1] + other_halves[..., 1] - np.abs(middles[..., 1] - others[..., 1])
    depth: Points = np.maximum(np.minimum(across, down), 0)
    return depth


def _side(a: Points, b: Points, c: Points) -> Points:
    side: Points = (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (
        c[..., 0] - a[..., 0]
    )
    return side
