"""Lay out the nodes of a graph of any size in the unit square.

A node with a given position keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.communities import find_communities, members_by_community, partition_rows
from kgot_lab.graph.property_graph import Ints
from kgot_lab.viz.graph.collapse import MAX_NODES, View
from kgot_lab.viz.graph.layout import Mask, NodePairs, Points, force_layout, quasirandom_points
from kgot_lab.viz.graph.marks import Point

_MAX_FORCE_MEMBERS = 200  # maximum members of a community for a force layout of its own
MAX_SPARSE_DEGREE = 4  # maximum edges per member; with more, forces would only make a knot
_FORCE_ROUNDS = 80
HOLE_RADIUS = 0.2  # share of a disc's radius that is left free for the community's node
MAX_LINKS = 3  # strongest links per community that attract


def node_positions(
    graph: PropertyGraph, *, positions: Mapping[str, Point] | None = None, aspect: float = 1.5
) -> dict[str, Point]:
    """Lay out the nodes in the unit square, drawn `aspect` times as wide as high.

    Nodes in `positions` stay exactly there, and the others go near their neighbours. Without any, nodes are laid
    out by communities, each in its own disc.
    """
    fixed = _known_positions(graph.ids, positions or {})
    is_fixed = ~np.isnan(fixed[:, 0])
    pairs = _edge_pairs(graph)
    if is_fixed.any() or not len(graph):
        points = place_near_neighbours(fixed, pairs)
    else:
        division = find_communities(graph)
        groups = members_by_community(division, np.bincount(pairs.ravel(), minlength=len(graph)))
        points, _ = _layout_in_discs(pairs, groups, aspect=aspect)
    return _positions_by_id(graph.ids, np.where(is_fixed[:, None], fixed, points))


def view_positions(
    view: View, *, positions: Mapping[str, Point] | None = None, aspect: float = 1.5
) -> dict[str, Point]:
    """Lay out the nodes of a view and the centre of each community, drawn or not, in the unit square.

    A community keeps its position when any is opened, closed or searched: its members are placed around its
    node. Everything in `positions` stays exactly there.
    """
    graph, whole = view.graph, view.whole
    if not whole.ids:
        return node_positions(graph, positions=positions, aspect=aspect)
    is_shown = np.zeros(len(graph), dtype=bool)
    is_shown[view.shown] = True
    whole_points, centres = _layout_in_discs(
        _edge_pairs(graph), whole.members, aspect=aspect, wanted=is_shown, hole=HOLE_RADIUS
    )
    middles = _fill_missing_centres(centres, _known_positions(whole.ids, positions or {}))
    community_of = whole.division.of[view.shown]
    # members move with a community that has a given position
    points = whole_points[view.shown] + (middles - centres)[community_of]
    ids = [graph.ids[row] for row in view.shown.tolist()]
    fixed = _known_positions(ids, positions or {})
    is_fixed = ~np.isnan(fixed[:, 0])
    displaced = np.unique(community_of[is_fixed & (np.abs(points - fixed).max(axis=1, initial=0) > 1e-3)])
    points[is_fixed] = fixed[is_fixed]
    # their positions belong to another layout of their community
    points[~is_fixed & np.isin(community_of, displaced)] = np.nan
    if np.isnan(points).any():
        numbers = [whole.number(node.id) for node in view.nodes[len(points) :]]
        items = np.concatenate([points, middles[numbers]])
        pairs = _distinct_pairs(view.at[_edge_pairs(graph)], len(items))
        points = place_near_neighbours(items, pairs)[: len(points)]
    places = np.where(is_fixed[:, None], points, np.clip(points, 0, 1))
    return _positions_by_id(whole.ids, middles) | _positions_by_id(ids, places)


def _fill_missing_centres(middles: Points, fixed: Points) -> Points:
    """Return the given centres, with a free position for each missing one near its centre in `middles`."""
    is_fixed = ~np.isnan(fixed[:, 0])
    if not is_fixed.any():
        return middles
    centres = fixed.copy()
    centres[~is_fixed] = free_grid_positions(middles[~is_fixed], fixed[is_fixed])
    return centres


# --- communities in discs ---


def _layout_in_discs(
    pairs: NodePairs, groups: Sequence[Ints], *, aspect: float, wanted: Mask | None = None, hole: float = 0.0
) -> tuple[Points, Points]:
    """Lay out nodes within the discs of their groups, in the unit square.

    Returns the position of each node row, and the centre of each group's disc. To save time, nodes of groups
    without a wanted node are put at the disc's centre.
    """
    count = sum(map(len, groups))
    group_of, rank_in_group = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for number, rows in enumerate(groups):
        group_of[rows], rank_in_group[rows] = number, np.arange(len(rows))
    shares = np.array([len(rows) for rows in groups], dtype=float)
    links = _strongest_links(group_of[pairs], len(groups))
    middles, radii = pack_discs(shares, links, aspect=aspect)
    reach = np.stack([radii / aspect, radii], axis=1)
    if len(groups) == 1:
        reach[0] = 0.48  # a single group need not be round
    middles = middles / (aspect, 1)
    offsets = np.zeros((count, 2))
    within = group_of[pairs[:, 0]] == group_of[pairs[:, 1]]
    ordered = pairs[within][np.argsort(group_of[pairs[within, 0]], kind="stable")]
    starts = np.searchsorted(group_of[ordered[:, 0]], np.arange(len(groups) + 1))
    for number, rows in enumerate(groups):
        if wanted is None or wanted[rows].any():
            inner_pairs = rank_in_group[ordered[starts[number] : starts[number + 1]]]
            offsets[rows] = _layout_in_disc(len(rows), inner_pairs, hole)
    turned = _rotate_discs(offsets, group_of, pairs[~within], middles * (aspect, 1))
    return middles[group_of] + reach[group_of] * turned, middles


def _layout_in_disc(count: int, pairs: NodePairs, hole: float) -> Points:
    """Lay out the members of a community, best connected first, in the unit disc.

    Loosely linked members are laid out by forces, or in discs of their own. Otherwise the first are spread over
    the whole disc, since there may be more than are ever drawn.
    """
    if count == 1 and not hole:
        return np.zeros((1, 2))
    is_sparse = 0 < len(pairs) <= MAX_SPARSE_DEGREE * count
    if is_sparse and count <= _MAX_FORCE_MEMBERS:
        square = force_layout(count, pairs, aspect=1, rounds=_FORCE_ROUNDS)
        return _clear_centre(hole, square_to_disc(square))
    if is_sparse and count <= 2 * MAX_NODES:
        division = partition_rows(pairs.T.astype(np.int32), np.zeros(count, dtype=np.int64))
        if len(division) > 1:
            groups = members_by_community(division, np.bincount(pairs.ravel(), minlength=count))
            square, _ = _layout_in_discs(pairs, groups, aspect=1)
            return _clear_centre(hole, square_to_disc(square))
    return quasirandom_points(count, hole)


def _clear_centre(hole: float, points: Points) -> Points:
    """Move points of the unit disc outwards until none is within `hole` of the centre."""
    radius = np.hypot(*points.T)[:, None]
    moved: Points = points / np.maximum(radius, 1e-9) * (hole + (1 - hole) * radius)
    return moved


def _rotate_discs(
    offsets: Points, group_of: NDArray[np.int64], crossing: NodePairs, middles: Points
) -> Points:
    """Rotate each disc so that its nodes are nearest to those they are linked with in other discs."""
    ends = np.concatenate([crossing, crossing[:, ::-1]])
    toward = middles[group_of[ends[:, 1]]] - middles[group_of[ends[:, 0]]]
    toward = toward / np.maximum(np.hypot(*toward.T)[:, None], 1e-9)
    x, y = offsets[ends[:, 0]].T
    along, across = x * toward[:, 0] + y * toward[:, 1], x * toward[:, 1] - y * toward[:, 0]
    starts, count = group_of[ends[:, 0]], len(middles)
    sums = (np.bincount(starts, weights=part, minlength=count) for part in (across, along))
    # the rotation with the largest sum of products, as in a Procrustes fit in the plane
    angle = np.arctan2(*sums)[group_of]
    cosine, sine = np.cos(angle), np.sin(angle)
    x, y = offsets.T
    return np.stack([x * cosine - y * sine, x * sine + y * cosine], axis=1)


def _strongest_links(ends: NDArray[np.int64], size: int) -> NodePairs:
    """Return pairs of communities: each with the few others with which it shares most edges."""
    codes = np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1) @ np.array([size, 1])
    links, counts = np.unique(codes, return_counts=True)
    pairs = np.stack(np.divmod(links, size), axis=1).astype(np.intp)
    both = np.concatenate([pairs[:, 0], pairs[:, 1]])
    order = np.lexsort((-np.tile(counts, 2), both))
    rank = np.arange(len(order)) - np.searchsorted(both[order], both[order])
    return pairs[np.unique(order[rank < MAX_LINKS] % max(len(pairs), 1))]


# --- new nodes in an existing layout ---


def place_near_neighbours(fixed: Points, pairs: NodePairs) -> Points:
    """Put each missing point near the mean of its neighbours.

    Nodes that are not connected with a given one are placed below.
    """
    points = fixed.copy()
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    while (missing := np.isnan(points[:, 0])).any():
        links = ends[missing[ends[:, 0]] & ~missing[ends[:, 1]]]
        if len(links):
            count = np.bincount(links[:, 0], minlength=len(points))
            rows = np.flatnonzero(count)
            starts, ends_placed = links[:, 0], points[links[:, 1]]
            sums = (np.bincount(starts, ends_placed[:, axis], len(points)) for axis in (0, 1))
            preferred = np.stack([total[rows] / count[rows] for total in sums], axis=1)
        else:
            rows = _component_heads(missing, ends)
            preferred = np.tile((0.5, 1.0), (len(rows), 1))
        points[rows] = free_grid_positions(preferred, points[~missing])
    return points


def _component_heads(missing: Mask, ends: NodePairs) -> NDArray[np.intp]:
    """Return the missing rows with a higher degree than all their neighbours.

    There is at least one in each connected component.
    """
    rank = np.empty(len(missing), dtype=np.intp)
    order = np.lexsort((-np.arange(len(missing)), np.bincount(ends[:, 0], minlength=len(missing))))
    rank[order] = np.arange(len(missing))
    above = np.full(len(missing), -1)
    np.maximum.at(above, ends[:, 0], rank[ends[:, 1]])
    return np.flatnonzero(missing & (rank > above))


# --- discs, boxes and grids ---


def pack_discs(shares: Points, pairs: NodePairs, *, aspect: float) -> tuple[Points, Points]:
    """Pack discs in a rectangle of width `aspect` and height 1, without overlap and linked ones nearby.

    Returns their centres, shape (k, 2), and radii, shape (k,). Areas are proportional to `shares`, shape
    (k,), except for those too small to see.
    """
    bounds = np.array([aspect, 1.0])
    middles = force_layout(len(shares), pairs, aspect=aspect) * bounds
    radii = np.sqrt(np.maximum(shares / shares.sum(), 0.004) * aspect / np.pi)
    radii = np.minimum(radii, bounds.min() / 2)
    while not (touching := _separate_discs(middles, radii, bounds))[1]:
        middles, radii = touching[0], 0.96 * radii
    return _fill_bounds(touching[0], radii, bounds)


def _separate_discs(middles: Points, radii: Points, bounds: Points) -> tuple[Points, bool]:
    """Move discs apart within the bounds, small ones further, and return whether none overlap."""
    needed = radii[:, None] + radii
    # two discs at the same point must separate too
    nudge = 1e-6 * (np.arange(len(radii))[:, None] - np.arange(len(radii)))[..., None]
    yielding = (radii**2 / (radii[:, None] ** 2 + radii**2))[..., None]
    for _ in range(60):
        apart = middles[:, None] - middles + nudge
        distance = np.hypot(apart[..., 0], apart[..., 1])
        overlap = np.where(np.eye(len(radii), dtype=bool), 0.0, needed - distance)
        if overlap.max() < 1e-4:
            return middles, True
        push = apart / (distance[..., None] + 1e-9) * np.maximum(overlap, 0)[..., None] * yielding
        middles = np.clip(middles + 0.7 * push.sum(axis=1), radii[:, None], bounds - radii[:, None])
    return middles, False


def _fill_bounds(middles: Points, radii: Points, bounds: Points) -> tuple[Points, Points]:
    """Enlarge the discs and spread them to fill the bounds, then shrink each a little."""
    low, high = (middles - radii[:, None]).min(axis=0), (middles + radii[:, None]).max(axis=0)
    scale = float((bounds / (high - low)).min())
    middles, radii = (middles - (low + high) / 2) * scale, radii * scale
    reach = np.abs(middles).max(axis=0)
    spread_factor = np.where(reach > 1e-6, (bounds / 2 - radii.max()) / np.maximum(reach, 1e-6), 1.0)
    return bounds / 2 + middles * np.clip(spread_factor, 1.0, 1.5), 0.93 * radii


def square_to_disc(square: Points) -> Points:
    """Map points of the unit square to the unit disc.

    Circles that touch the middles of the square's sides become circles.
    """
    x, y = (2 * square - 1).T
    return np.stack([x * np.sqrt(1 - y * y / 2), y * np.sqrt(1 - x * x / 2)], axis=1)


def free_grid_positions(preferred: Points, occupied: Points) -> Points:
    """Return for each wanted point the nearest grid position that is free or least crowded.

    Points lie in the unit square and are placed in turn.
    """
    side = int(np.clip(np.ceil(2 * np.sqrt(len(preferred) + len(occupied))), 8, 100))
    middle = (np.arange(side) + 0.5) / side
    across, down = (axis.ravel() for axis in np.meshgrid(middle, middle))
    occupancy = np.zeros(side * side)
    cell = np.clip((occupied * side).astype(np.intp), 0, side - 1)
    np.add.at(occupancy, cell[:, 1] * side + cell[:, 0], 1.0)
    positions = np.empty_like(preferred)
    for row, (x, y) in enumerate(preferred.tolist()):
        best = int(((across - x) ** 2 + (down - y) ** 2 + occupancy).argmin())
        occupancy[best] += 1.0
        positions[row] = across[best], down[best]
    return positions


# --- columns ---


def _edge_pairs(graph: PropertyGraph) -> NodePairs:
    """Return the ends of all edges except self-loops, each pair once, in order, shape (m, 2)."""
    return _distinct_pairs(np.stack([graph.sources, graph.targets], axis=1).astype(np.int64), len(graph))


def _distinct_pairs(ends: NDArray[np.int64], size: int) -> NodePairs:
    """Return the pairs of different numbers below `size`, once each, in order."""
    codes = np.sort(ends[ends[:, 0] != ends[:, 1]] @ np.array([size, 1]))
    codes = codes[np.diff(codes, prepend=-1) > 0]  # np.unique took ten times as long for two million
    return np.stack(np.divmod(codes, max(size, 1)), axis=1).astype(np.intp)


def _known_positions(ids: Sequence[str], positions: Mapping[str, Point]) -> Points:
    """Return the known positions of some ids, shape (n, 2).

    A position that is missing or not finite is NaN.
    """
    points = np.array([positions.get(id, (np.nan, np.nan)) for id in ids], dtype=float).reshape(-1, 2)
    points[~np.isfinite(points).all(axis=1)] = np.nan
    return points


def _positions_by_id(ids: Sequence[str], points: Points) -> dict[str, Point]:
    return {id: (x, y) for id, (x, y) in zip(ids, points.tolist(), strict=True)}
