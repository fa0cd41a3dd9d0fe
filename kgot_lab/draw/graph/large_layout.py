"""Where the nodes of a large drawing go, all of them at once: the time grows with their number, not with its square."""

from __future__ import annotations

import math

import numpy as np

from kgot_lab.draw.graph.layout import NodePairs, Points


def large_layout(start: Points, pairs: NodePairs, *, rounds: int = 120, sample: int = 150, seed: int = 0) -> Points:
    """A layout of many points: the forces of ForceAtlas2 (Jacomy 2014), repulsion from a new random sample each round (Gove 2019).

    `start` has one row for each node, shape (n, 2), in the unit square; rows that are not NaN stay where they are. `pairs` has
    shape (m, 2). A round costs n times `sample` distances. Hubs end up apart, each amid its own neighbours.
    """
    rng = np.random.default_rng(seed)
    moving = np.isnan(start[:, :1])
    points: Points = np.where(moving, rng.random(start.shape), start)
    weight = np.bincount(pairs.ravel(), minlength=len(points))[:, None] + 1.0
    for step in np.linspace(0.1, 0.001, rounds):
        some = rng.choice(len(points), min(sample, len(points)), replace=False)
        near = _weighted_nearness(points, points[some], weight[some, 0])
        push = points * near.sum(axis=1, keepdims=True) - near @ points[some]
        force = 0.05 * push / len(some) / math.sqrt(len(points)) - 0.3 * (points - 0.5) / np.sqrt(weight)
        pull = points[pairs[:, 0]] - points[pairs[:, 1]]
        np.add.at(force, pairs[:, 0], -pull / weight[pairs[:, 0]])
        np.add.at(force, pairs[:, 1], pull / weight[pairs[:, 1]])
        length = np.linalg.norm(force, axis=1, keepdims=True) + 1e-12
        points = np.where(moving, points + force / length * np.minimum(length, step), points)
    return _evened(points) if moving.all() else points


def _weighted_nearness(points: Points, others: Points, weight: Points) -> Points:
    """One over the squared distance of each point to each other one, times the other's weight; shape (points, others)."""
    across, down = np.subtract.outer(points[:, 0], others[:, 0]), np.subtract.outer(points[:, 1], others[:, 1])
    nearness: Points = weight / (across * across + down * down + 1e-7)
    return nearness


def _evened(points: Points) -> Points:
    """The points stretched over the unit square, and a little from where they are dense to where they are not."""
    low, high = points.min(axis=0), points.max(axis=0)
    evened: Points = 0.7 * (points - low) / (high - low) + 0.3 * points.argsort(axis=0).argsort(axis=0) / (len(points) - 1)
    return evened
