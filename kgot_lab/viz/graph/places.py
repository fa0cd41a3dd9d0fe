"""Lay out the nodes of a graph of any size in the unit square.

A node with a given position keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Ints
from kgot_lab.viz.graph.collapse import MOST_NODES, View
from kgot_lab.viz.graph.communities import communities, communities_of, members
from kgot_lab.viz.graph.layout import (
    Mask,
    NodePairs,
    Points,
    force_layout,
    free_places,
    packed,
    rounded_points,
    scattered,
    spread,
    sunflower,
)
from kgot_lab.viz.graph.marks import Place

_SMALL = 300  # nodes up to which one force layout holds the whole graph
_TOGETHER = 200  # maximum members of a community for a force layout of its own
SPARSE = 4  # maximum edges per member; with more, forces would only make a knot
_ROUNDS = 80
HOLE = 0.2  # share of a disc's radius that is left free for the community's node
STRONGEST = 3  # strongest links per community that attract
BOX = (0.028, 0.042)  # space of a node in a picture of up to 300, as shares of width and height


def places(
    graph: PropertyGraph, *, seed: int = 0, positions: Mapping[str, Place] | None = None, aspect: float = 1.5
) -> dict[str, Place]:
    """Lay out the nodes in the unit square, drawn `aspect` times as wide as high.

    Nodes in `positions` stay exactly there, and the others go near their neighbours. Up to 300 nodes are laid
    out by forces, more by communities, each in its own disc.
    """
    given = _given(graph.ids, positions or {})
    known = ~np.isnan(given[:, 0])
    pairs = _pairs(graph)
    if len(graph) <= _SMALL:
        points = (
            spread(force_layout(given, pairs, aspect=aspect, seed=seed), BOX, known, (1.0, 1.0))
            if len(graph)
            else given
        )
    elif known.any():
        points = _beside(given, pairs)
    else:
        division = communities(graph)
        groups = members(division, np.bincount(pairs.ravel(), minlength=len(graph)))
        points = _in_discs(pairs, groups, aspect=aspect, seed=seed).points
    return _placed(graph.ids, np.where(known[:, None], given, points))


def places_of(
    view: View, *, seed: int = 0, positions: Mapping[str, Place] | None = None, aspect: float = 1.5
) -> dict[str, Place]:
    """Lay out the nodes of a view and the centre of each community, drawn or not, in the unit square.

    A community keeps its position when any is opened, closed or searched: its members are placed around its
    node. Everything in `positions` stays exactly there.
    """
    graph, whole = view.graph, view.whole
    if not whole.ids:
        return places(graph, seed=seed, positions=positions, aspect=aspect)
    wanted = np.zeros(len(graph), dtype=bool)
    wanted[view.shown] = True
    laid = _in_discs(_pairs(graph), whole.members, aspect=aspect, seed=seed, wanted=wanted, hole=HOLE)
    middles = _kept(laid.middles, _given(whole.ids, positions or {}))
    of = whole.division.of[view.shown]
    # members move with a community that has a given position
    points = laid.points[view.shown] + (middles - laid.middles)[of]
    ids = [graph.ids[row] for row in view.shown.tolist()]
    given = _given(ids, positions or {})
    known = ~np.isnan(given[:, 0])
    elsewhere = np.unique(of[known & (np.abs(points - given).max(axis=1, initial=0) > 1e-3)])
    points[known] = given[known]
    # their positions belong to another layout of their community
    points[~known & np.isin(of, elsewhere)] = np.nan
    if np.isnan(points).any():
        things = np.concatenate(
            [points, middles[[whole.number(node.id) for node in view.nodes[len(points) :]]]]
        )
        points = _beside(things, _distinct(view.at[_pairs(graph)], len(things)))[: len(points)]
    return _placed(whole.ids, middles) | _placed(ids, np.where(known[:, None], points, np.clip(points, 0, 1)))


def _kept(middles: Points, given: Points) -> Points:
    """Return the given centres, with a free position for each missing one near its centre in `middles`."""
    known = ~np.isnan(given[:, 0])
    if not known.any():
        return middles
    kept = given.copy()
    kept[~known] = free_places(middles[~known], given[known])
    return kept


# --- communities in discs ---


@dataclass(frozen=True, eq=False)
class _Laid:
    """A layout by communities: the position of each node row, and the centre of each community's disc.

    Positions are points of the unit square.
    """

    points: Points
    middles: Points


def _in_discs(
    pairs: NodePairs,
    groups: Sequence[Ints],
    *,
    aspect: float,
    seed: int,
    wanted: Mask | None = None,
    hole: float = 0.0,
) -> _Laid:
    """Lay out nodes within the discs of their groups.

    To save time, nodes of groups without a wanted node are put at the disc's centre.
    """
    count = sum(map(len, groups))
    of, place_in = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for number, rows in enumerate(groups):
        of[rows], place_in[rows] = number, np.arange(len(rows))
    shares = np.array([len(rows) for rows in groups], dtype=float)
    middles, radii = packed(shares, _strongest(of[pairs], len(groups)), aspect=aspect, seed=seed)
    reach = np.stack([radii / aspect, radii], axis=1)
    if len(groups) == 1:
        reach[0] = 0.48  # a single group need not be round
    middles = middles / (aspect, 1)
    offsets = np.zeros((count, 2))
    within = of[pairs[:, 0]] == of[pairs[:, 1]]
    ordered = pairs[within][np.argsort(of[pairs[within, 0]], kind="stable")]
    starts = np.searchsorted(of[ordered[:, 0]], np.arange(len(groups) + 1))
    for number, rows in enumerate(groups):
        if wanted is None or wanted[rows].any():
            inner = place_in[ordered[starts[number] : starts[number + 1]]]
            offsets[rows] = _in_disc(len(rows), inner, hole, seed)
    turned = _facing(offsets, of, pairs[~within], middles * (aspect, 1))
    return _Laid(middles[of] + reach[of] * turned, middles)


def _in_disc(count: int, pairs: NodePairs, hole: float, seed: int) -> Points:
    """Lay out the members of a community, best connected first, in the unit disc.

    Loosely linked members are laid out by forces, or in discs of their own. Otherwise the best connected are
    placed inside. If there are more than are ever drawn, the first are spread over the whole disc.
    """
    if count == 1 and not hole:
        return np.zeros((1, 2))
    loose = 0 < len(pairs) <= SPARSE * count
    if loose and count <= _TOGETHER:
        square = force_layout(np.full((count, 2), np.nan), pairs, aspect=1, seed=seed, rounds=_ROUNDS)
        return _around(hole, rounded_points(square))
    if loose and count <= 2 * MOST_NODES:
        division = communities_of(pairs.T.astype(np.int32), np.zeros(count, dtype=np.int64))
        if len(division) > 1:
            groups = members(division, np.bincount(pairs.ravel(), minlength=count))
            return _around(hole, rounded_points(_in_discs(pairs, groups, aspect=1, seed=seed).points))
    return scattered(count, hole) if count > MOST_NODES else sunflower(count, hole)


def _around(hole: float, points: Points) -> Points:
    """Move points of the unit disc outwards until none is within `hole` of the centre."""
    radius = np.hypot(*points.T)[:, None]
    moved: Points = points / np.maximum(radius, 1e-9) * (hole + (1 - hole) * radius)
    return moved


def _facing(offsets: Points, of: NDArray[np.int64], crossing: NodePairs, middles: Points) -> Points:
    """Rotate each disc so that its nodes are nearest to those they are linked with in other discs."""
    ends = np.concatenate([crossing, crossing[:, ::-1]])
    toward = middles[of[ends[:, 1]]] - middles[of[ends[:, 0]]]
    toward = toward / np.maximum(np.hypot(*toward.T)[:, None], 1e-9)
    x, y = offsets[ends[:, 0]].T
    along, across = x * toward[:, 0] + y * toward[:, 1], x * toward[:, 1] - y * toward[:, 0]
    sums = (np.bincount(of[ends[:, 0]], weights=part, minlength=len(middles)) for part in (across, along))
    # the rotation with the largest sum of products, as in a Procrustes fit in the plane
    angle = np.arctan2(*sums)[of]
    cosine, sine = np.cos(angle), np.sin(angle)
    x, y = offsets.T
    return np.stack([x * cosine - y * sine, x * sine + y * cosine], axis=1)


def _strongest(ends: NDArray[np.int64], size: int) -> NodePairs:
    """Return pairs of communities: each with the few others with which it shares most edges."""
    links, counts = np.unique(
        np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1) @ np.array([size, 1]), return_counts=True
    )
    pairs = np.stack(np.divmod(links, size), axis=1).astype(np.intp)
    both = np.concatenate([pairs[:, 0], pairs[:, 1]])
    order = np.lexsort((-np.tile(counts, 2), both))
    place = np.arange(len(order)) - np.searchsorted(both[order], both[order])
    return pairs[np.unique(order[place < STRONGEST] % max(len(pairs), 1))]


# --- new nodes in an existing layout ---


def _beside(given: Points, pairs: NodePairs) -> Points:
    """Put each missing point near the mean of its neighbours.

    Nodes that are not connected with a given one are placed below.
    """
    points = given.copy()
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    while (missing := np.isnan(points[:, 0])).any():
        near = ends[missing[ends[:, 0]] & ~missing[ends[:, 1]]]
        if len(near):
            count = np.bincount(near[:, 0], minlength=len(points))
            rows = np.flatnonzero(count)
            sums = (
                np.bincount(near[:, 0], weights=points[near[:, 1], axis], minlength=len(points))
                for axis in (0, 1)
            )
            wanted = np.stack([total[rows] / count[rows] for total in sums], axis=1)
        else:
            rows = _first_of_parts(missing, ends)
            wanted = np.tile((0.5, 1.0), (len(rows), 1))
        points[rows] = free_places(wanted, points[~missing])
    return points


def _first_of_parts(missing: Mask, ends: NodePairs) -> NDArray[np.intp]:
    """Return the missing rows with a higher degree than all their neighbours.

    There is at least one in each connected component.
    """
    rank = np.empty(len(missing), dtype=np.intp)
    rank[np.lexsort((-np.arange(len(missing)), np.bincount(ends[:, 0], minlength=len(missing))))] = np.arange(
        len(missing)
    )
    above = np.full(len(missing), -1)
    np.maximum.at(above, ends[:, 0], rank[ends[:, 1]])
    return np.flatnonzero(missing & (rank > above))


# --- columns ---


def _pairs(graph: PropertyGraph) -> NodePairs:
    """Return the ends of all edges except self-loops, each pair once, in order, shape (m, 2)."""
    return _distinct(np.stack([graph.sources, graph.targets], axis=1).astype(np.int64), len(graph))


def _distinct(ends: NDArray[np.int64], size: int) -> NodePairs:
    """Return the pairs of different numbers below `size`, once each, in order."""
    codes = np.sort(ends[ends[:, 0] != ends[:, 1]] @ np.array([size, 1]))
    codes = codes[np.diff(codes, prepend=-1) > 0]  # np.unique took ten times as long for two million
    return np.stack(np.divmod(codes, max(size, 1)), axis=1).astype(np.intp)


def _given(ids: Sequence[str], positions: Mapping[str, Place]) -> Points:
    """Return the known positions of some ids, shape (n, 2).

    A position that is missing or not finite is NaN.
    """
    points = np.array([positions.get(id, (np.nan, np.nan)) for id in ids], dtype=float).reshape(-1, 2)
    points[~np.isfinite(points).all(axis=1)] = np.nan
    return points


def _placed(ids: Sequence[str], points: Points) -> dict[str, Place]:
    return {id: (x, y) for id, (x, y) in zip(ids, points.tolist(), strict=True)}
