"""Where the nodes of a picture go: a force layout, and room for captions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Pairs = NDArray[np.intp]
Mask = NDArray[np.bool_]

ROUNDS = 200
GRID = 30  # places tried in each direction for a node that joins a picture


def force_layout(start: Points, pairs: Pairs, *, aspect: float, seed: int) -> Points:
    """Points in the unit square, by attraction along pairs and repulsion between all (Fruchterman and Reingold 1991).

    `start` has one row for each node, shape (n, 2); rows that are not NaN stay where they are, and the others then go to
    the free place nearest to their neighbours. `pairs` has shape (m, 2); `aspect` is the width of the picture over its height.
    """
    if not len(start):
        return start
    ideal = float(0.8 * np.sqrt(aspect / len(start)))
    if not np.isnan(start).all():
        return _joined(start * (aspect, 1), pairs, ideal, aspect) / (aspect, 1)
    points = np.random.default_rng(seed).random(start.shape) * (aspect, 1)
    degree = np.bincount(pairs.ravel(), minlength=len(points))
    gravity = (0.4 + 3 / (1 + degree) ** 4)[:, None]  # what hangs loose is held closer, or it would push the rest into a corner
    for step in np.linspace(0.15, 0.002, ROUNDS):
        force = _forces(points, pairs, ideal) - gravity * (points - points.mean(axis=0))
        length = np.linalg.norm(force, axis=1, keepdims=True) + 1e-12
        points = points + force / length * np.minimum(length, step)
    return _filling(points)


def _joined(points: Points, pairs: Pairs, ideal: float, aspect: float) -> Points:
    """The points with each missing one at the place, of a grid, where the same forces as above would leave it with the least energy."""
    points = points.copy()
    grid = np.stack(np.meshgrid(np.linspace(0, aspect, GRID), np.linspace(0, 1, GRID)), axis=-1).reshape(-1, 2)
    missing = np.flatnonzero(np.isnan(points[:, 0])).tolist()
    while missing:
        placed = ~np.isnan(points[:, 0])
        ends = np.concatenate([pairs, pairs[:, ::-1]])
        linked = np.bincount(ends[placed[ends[:, 1]], 0], minlength=len(points))
        node = max(missing, key=lambda row: (linked[row], -row))  # neighbours of what is there come first
        missing.remove(node)
        near = np.unique(ends[(ends[:, 0] == node) & placed[ends[:, 1]], 1])
        away = np.linalg.norm(grid[:, None] - points[placed][None], axis=2) + 1e-3
        along = np.linalg.norm(grid[:, None] - points[near][None], axis=2)
        energy = ((ideal / away) ** 2).sum(axis=1) + ((along / ideal) ** 2).sum(axis=1)
        points[node] = grid[energy.argmin()]
    return points


def _forces(points: Points, pairs: Pairs, ideal: float) -> Points:
    apart = points[:, None] - points[None]
    distance = np.linalg.norm(apart, axis=2) + 1e-6
    near = distance < 6 * ideal  # far ones do not push, or unconnected parts would drift out of sight
    force: Points = (apart * (near * ideal**2 / distance**2)[..., None]).sum(axis=1)
    pull = points[pairs[:, 0]] - points[pairs[:, 1]]
    pull = pull * np.linalg.norm(pull, axis=1, keepdims=True) / ideal
    np.add.at(force, pairs[:, 0], -pull)
    np.add.at(force, pairs[:, 1], pull)
    return force


def _filling(points: Points) -> Points:
    """The points turned so that they are widest from left to right, and stretched over the unit square; few points stay near its middle."""
    turned = points - points.mean(axis=0)
    if len(points) > 1:
        turned = turned @ np.linalg.svd(turned, full_matrices=False)[2].T
        turned = turned * np.where(turned[0] > 0, -1, 1)  # the signs of an SVD are arbitrary: the first node goes left
    low, high = turned.min(axis=0), turned.max(axis=0)
    extent = np.where(high - low > 1e-6, high - low, np.inf)
    share = min(1.0, (len(points) + 2) / 8)
    filled: Points = 0.5 + ((turned - low) / extent - np.where(np.isinf(extent), 0, 0.5)) * share
    return filled


def spread(points: Points, size: tuple[float, float], fixed: Mask, bounds: tuple[float, float]) -> Points:
    """The points moved, the fixed ones excepted, until boxes of this size around them hardly overlap; all within (0, 0) and bounds."""
    box, weight = np.array(size), np.where(fixed, 0.0, 1.0)
    points = points.copy()
    for _ in range(100):
        apart = points[:, None] - points[None]
        overlap = box - np.abs(apart)
        clash = (overlap > 0).all(axis=2) & ~np.eye(len(points), dtype=bool)
        if not clash.any():
            break
        sideways = overlap[..., 0] / box[0] < overlap[..., 1] / box[1]
        index = np.arange(len(points))
        sign = np.where(apart == 0, np.where(index[:, None] < index[None], -1, 1)[..., None], np.sign(apart))
        push = np.where(np.stack([sideways, ~sideways], axis=2), overlap * sign, 0) * clash[..., None]
        points = np.clip(points + 0.3 * push.sum(axis=1) * weight[:, None], 0, bounds)
    return points
