"""Places stretched until what is drawn spans the whole drawing area, though names and nodes keep their sizes."""

from __future__ import annotations

import numpy as np

from kgot_lab.viz.graph.layout import Points

_FLAT = 0.25  # of the width: what is flatter is turned toward the diagonal, for nothing else would fill the height


def stretched(points: Points, before: Points, after: Points, area: tuple[float, float]) -> Points:
    """The points, shape (n, 2), on each axis moved and scaled so that all of them span the area from edge to
    edge.

    `before` says how far each thing reaches left and up of its point, `after` right and down, in the same
    unit.
    """
    if not len(points):
        return points
    points = _on_diagonal(points / area) * area
    axes = [_fitted(points[:, axis], before[:, axis], after[:, axis], area[axis]) for axis in (0, 1)]
    return np.stack(axes, axis=1)


def _on_diagonal(points: Points) -> Points:
    """Points that lie nearly on a line along one axis, sheared so that the line becomes a diagonal."""
    wide, tall = np.ptp(points, axis=0)
    middle = points.mean(axis=0)
    sheared: Points = points.copy()
    if tall < _FLAT * wide:
        sheared[:, 1] += (points[:, 0] - middle[0]) * (1 - tall / wide)
    elif wide < _FLAT * tall:
        sheared[:, 0] += (points[:, 1] - middle[1]) * (1 - wide / tall)
    return sheared


def _fitted(line: Points, before: Points, after: Points, length: float) -> Points:
    """Numbers scaled so that, each with its reach, they span the length; the span grows with the scale, so
    halving finds it.
    """
    low, high = 0.0, 50.0
    for _ in range(40):
        scale = (low + high) / 2
        span = (scale * line + after).max() - (scale * line - before).min()
        low, high = (scale, high) if span < length else (low, scale)
    placed: Points = low * line
    placed += (length - (placed + after).max() - (placed - before).min()) / 2
    return placed
