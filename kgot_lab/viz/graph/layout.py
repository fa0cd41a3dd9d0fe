"""Graph layout: force-directed placement, disc packing, room for captions, and search for free positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
NodePairs = NDArray[np.intp]
Mask = NDArray[np.bool_]
Size = tuple[float, float]  # width and height

_FORCE_ROUNDS = 200
# share of the width: a flatter layout is sheared toward the diagonal, since scaling alone would not fill the
# height
_MIN_FLATNESS = 0.25
_MAX_IN_LINE = 3  # so few points may lie in a line
_FEW, _ROOM_OF_FEW, _ROOM_OF_EACH = 6, (90.0, 60.0), (90.0, 50.0)  # pixels that few points span


def force_layout(
    count: int, pairs: NodePairs, *, aspect: float, seed: int = 0, rounds: int = _FORCE_ROUNDS
) -> Points:
    """Lay out points in the unit square by force-directed placement (Fruchterman and Reingold 1991).

    The result has shape (count, 2). `pairs` has shape (m, 2). `aspect` is the width of the picture over its
    height.
    """
    if not count:
        return np.empty((0, 2))
    ideal = float(0.8 * np.sqrt(aspect / count))
    points = np.random.default_rng(seed).random((count, 2)) * (aspect, 1)
    degree = np.bincount(pairs.ravel(), minlength=len(points))
    # nodes of low degree are held closer, or they would push the rest into a corner
    gravity = (0.4 + 3 / (1 + degree) ** 4)[:, None]
    for step in np.linspace(0.15, 0.002, rounds):
        force = _forces(points, pairs, ideal) - gravity * (points - points.mean(axis=0))
        length = np.linalg.norm(force, axis=1, keepdims=True) + 1e-12
        points = points + force / length * np.minimum(length, step)
    return _fill_square(points)


def _forces(points: Points, pairs: NodePairs, ideal: float) -> Points:
    x, y = points.T
    # computed per coordinate and summed over rows, which is faster than a third axis
    across, down = (x - x[:, None], y - y[:, None])
    distance = np.sqrt(across * across + down * down) + 1e-6
    near = distance < 6 * ideal  # distant nodes do not repel, or unconnected components would drift away
    push = near * ideal**2 / (distance * distance)
    force: Points = np.stack([(across * push).sum(axis=0), (down * push).sum(axis=0)], axis=1)
    pull = points[pairs[:, 0]] - points[pairs[:, 1]]
    pull = pull * np.linalg.norm(pull, axis=1, keepdims=True) / ideal
    np.add.at(force, pairs[:, 0], -pull)
    np.add.at(force, pairs[:, 1], pull)
    return force


def _fill_square(points: Points) -> Points:
    """Rotate the points to be widest horizontally, and stretch them over the unit square.

    Few points stay near its middle.
    """
    turned = points - points.mean(axis=0)
    if len(points) > 1:
        turned = turned @ np.linalg.svd(turned, full_matrices=False)[2].T
        # the signs of an SVD are arbitrary: the first node goes left
        turned = turned * np.where(turned[0] > 0, -1, 1)
    low, high = turned.min(axis=0), turned.max(axis=0)
    extent = np.where(high - low > 1e-6, high - low, np.inf)
    share = min(1.0, (len(points) + 2) / 8)
    filled: Points = 0.5 + ((turned - low) / extent - np.where(np.isinf(extent), 0, 0.5)) * share
    return filled


def quasirandom_points(count: int, hole: float = 0.0) -> Points:
    """Return `count` points of the unit disc of which every prefix is evenly spread (Roberts 2018, R2).

    No point is within `hole` of the centre.
    """
    number, plastic = np.arange(1, count + 1), 1.32471795724474602596
    radius = np.sqrt(hole**2 + (1 - hole**2) * (number / plastic % 1))
    angle = 2 * np.pi * (number / plastic**2 % 1)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


# --- stretching: positions fill the drawing area, names and nodes keep their sizes ---


def stretch_to_area(points: Points, before: Points, after: Points, area: Size) -> Points:
    """Move and scale the points, shape (n, 2), on each axis to span the area from edge to edge.

    Few points span its middle only, since names far from each other are read badly. `before` is how far each
    item extends left of and above its point, `after` right of and below, in the same unit.
    """
    if not len(points):
        return points
    points = _shear_to_diagonal(points / area) * area if len(points) > _MAX_IN_LINE else points
    room = np.array(area)
    if len(points) <= _FEW:
        room = np.minimum(room, np.array(_ROOM_OF_FEW) + len(points) * np.array(_ROOM_OF_EACH))
    axes = [_scale_to_length(points[:, axis], before[:, axis], after[:, axis], room[axis]) for axis in (0, 1)]
    centred: Points = np.stack(axes, axis=1) + (np.array(area) - room) / 2
    return centred


def _shear_to_diagonal(points: Points) -> Points:
    """Shear points that are nearly on a horizontal or vertical line, so that they lie on a diagonal."""
    wide, tall = np.ptp(points, axis=0)
    middle = points.mean(axis=0)
    sheared: Points = points.copy()
    if tall < _MIN_FLATNESS * wide:
        sheared[:, 1] += (points[:, 0] - middle[0]) * (1 - tall / wide)
    elif wide < _MIN_FLATNESS * tall:
        sheared[:, 0] += (points[:, 1] - middle[1]) * (1 - wide / tall)
    return sheared


def _scale_to_length(line: Points, before: Points, after: Points, length: float) -> Points:
    """Scale numbers by bisection so that, with their extents, they span `length`."""
    low, high = 0.0, 50.0
    for _ in range(40):
        scale = (low + high) / 2
        span = (scale * line + after).max() - (scale * line - before).min()
        low, high = (scale, high) if span < length else (low, scale)
    placed: Points = low * line
    placed += (length - (placed + after).max() - (placed - before).min()) / 2
    return placed


# --- distances and crossings of many points, lines and boxes at once ---


def distance_to_lines(points: Points, starts: Points, ends: Points) -> Points:
    """Return the distance of points from line segments.

    The three arguments broadcast to shape (..., 2), the result has shape (...).
    """
    # computed per coordinate: sums over an axis of length two are slow
    across, down = (ends[..., 0] - starts[..., 0], ends[..., 1] - starts[..., 1])
    x, y = points[..., 0] - starts[..., 0], points[..., 1] - starts[..., 1]
    share = np.clip((x * across + y * down) / (across * across + down * down + 1e-9), 0, 1)
    distances: Points = np.hypot(x - share * across, y - share * down)
    return distances


def segments_cross(a: Points, b: Points, c: Points, d: Points) -> Mask:
    """Return whether segment a–b crosses segment c–d.

    Shapes broadcast to (..., 2). Segments that only touch do not cross.
    """
    cd_apart = _orientation(a, b, c) * _orientation(a, b, d) < 0
    crosses: Mask = cd_apart & (_orientation(c, d, a) * _orientation(c, d, b) < 0)
    return crosses


def curve_points(starts: Points, controls: Points, ends: Points, shares: Points) -> Points:
    """Evaluate quadratic Bézier curves.

    Three arrays of shape (..., 1, 2) and `shares` of shape (s,) give shape (..., s, 2).
    """
    t = shares[:, None]
    found: Points = (1 - t) ** 2 * starts + 2 * t * (1 - t) * controls + t**2 * ends
    return found


def box_overlap(middles: Points, halves: Points, others: Points, other_halves: Points) -> Points:
    """Return how deep boxes overlap, 0 where they do not.

    Each box is a centre and half its width and height, shape (..., 2).
    """
    across = halves[..., 0] + other_halves[..., 0] - np.abs(middles[..., 0] - others[..., 0])
    down = halves[..., 1] + other_halves[..., 1] - np.abs(middles[..., 1] - others[..., 1])
    depth: Points = np.maximum(np.minimum(across, down), 0)
    return depth


def _orientation(a: Points, b: Points, c: Points) -> Points:
    ab, ac = b - a, c - a
    side: Points = ab[..., 0] * ac[..., 1] - ab[..., 1] * ac[..., 0]
    return side


# Local search for a readable layout of a small graph: no overlapping names, no line through other nodes, few
# crossings.
#
# Each node in turn moves to the best of some hundred positions, around it and anywhere. The search is
# deterministic and always ends. An evaluation costs the number of positions times the node's lines times all
# nodes, so it is for a few hundred nodes.

MIN_CLEARANCE = 7.0  # pixels between a line and the rim of a node that is not its end
# radii and angles of the positions tried around a node, and the number tried anywhere
_RINGS, _ANGLES, _RANDOM_POSITIONS = ((8.0, 18.0, 36.0, 66.0, 110.0, 170.0), 10, 48)
# costs
_OVERLAP_COST = 10.0
_THROUGH_COST = 14.0
_CROSSING_COST = 1.2
_UNDER_NAME_COST = 1.5
_LENGTH_COST = 0.9
_SHORTNESS_COST = 5.0
_MAX_SWEEPS = 10
_MAX_DISTANCES = 16_000_000  # maximum distance computations, about two seconds; then the search stops


@dataclass(frozen=True)
class NodeExtents:
    """The space of each node in pixels, shape (n,) each: radius, half the name's width, name's height."""

    radius: Points
    half: Points
    high: Points


def untangle_layout(
    points: Points, pairs: NodePairs, extents: NodeExtents, bounds: Size, label_sizes: Points, fixed: Mask
) -> Points:
    """Move the points that are not `fixed` to reduce overlaps and crossings, by local search.

    `points` has shape (n, 2) in pixels and stays within (0, 0) and `bounds`. `pairs` has shape (m, 2), each
    pair once. `label_sizes` is the width and height of the text along each pair, shape (m, 2).
    """
    search = _LayoutSearch(points, pairs, extents, bounds, label_sizes)
    moving = np.flatnonzero(~fixed).tolist()
    distances = 0
    for sweep in range(_MAX_SWEEPS):
        costs = {node: float(search.costs(node, search.points[node : node + 1])[0]) for node in moving}
        worst = sorted(moving, key=lambda node: (-costs[node], node))
        chosen = worst if sweep < 3 else [node for node in worst if costs[node] > _OVERLAP_COST / 2]
        moved = False
        for node in chosen:
            if (distances := distances + search.distance_count(node)) > _MAX_DISTANCES:
                return search.points
            moved |= search.improve(node)
        if not moved:
            break
    return search.points


class _LayoutSearch:
    def __init__(
        self, points: Points, pairs: NodePairs, extents: NodeExtents, bounds: Size, label_sizes: Points
    ) -> None:
        self.points, self.pairs, self.words = points.copy(), pairs, label_sizes
        self.radius = radius = extents.radius
        # half the size of the box around a node and the name below it, and the offset to its centre
        sides = np.maximum(extents.half, radius) + 4, radius + extents.high / 2 + 4
        self.halves = np.stack(sides, axis=1)
        self.down = np.stack([np.zeros(len(points)), extents.high / 2], axis=1)
        self.name_down = np.stack([np.zeros(len(points)), extents.radius + extents.high / 2 + 3], axis=1)
        self.name_halves = np.stack([np.maximum(extents.half, 1), np.maximum(extents.high / 2, 1)], axis=1)
        # bounds of a node's centre
        self.low, self.high = (self.halves - self.down, np.array(bounds) - self.halves - self.down)
        self.high = np.maximum(self.high, self.low)
        self.points = np.clip(self.points, self.low, self.high)
        self.ideal = float(np.sqrt(bounds[0] * bounds[1] / max(len(points), 1)))
        self.at = [np.flatnonzero((pairs == node).any(axis=1)) for node in range(len(points))]
        angles = np.linspace(0, 2 * np.pi, _ANGLES, endpoint=False)
        # each ring is rotated a little
        rings = [(r * np.cos(a + r), r * np.sin(a + r)) for r in _RINGS for a in angles]
        self.steps = np.array([(0.0, 0.0), *rings])
        self.anywhere = (quasirandom_points(_RANDOM_POSITIONS) + 1) / 2

    def distance_count(self, node: int) -> int:
        """Return the number of distances computed in a search for a better position of a node."""
        own, all_nodes, lines = len(self.at[node]), len(self.points), len(self.pairs)
        return (len(self.steps) + _RANDOM_POSITIONS) * (all_nodes + 3 * lines + own * (2 * all_nodes + lines))

    def improve(self, node: int) -> bool:
        """Move a node to the best position found, and return whether it moved."""
        low, high = self.low[node], self.high[node]
        around = np.clip(self.points[node] + self.steps, low, high)
        candidates = np.concatenate([around, low + self.anywhere * (high - low)])
        costs = self.costs(node, candidates)
        best = int(costs.argmin())
        if costs[best] > costs[0] - 0.05:
            return False
        self.points[node] = candidates[best]
        return True

    def costs(self, node: int, points: Points) -> Points:
        """Return the cost of each position, shape (k, 2), for a node."""
        others = np.arange(len(self.points)) != node
        own = np.zeros(len(self.pairs), dtype=bool)
        own[self.at[node]] = True
        cost = self._box_overlap_cost(node, points, others) + self._foreign_line_cost(node, points, ~own)
        if own.any():
            cost += self._own_line_cost(node, points, own)
        return cost

    def _box_overlap_cost(self, node: int, points: Points, others: Mask) -> Points:
        """Return the cost of overlap between the node's box, name included, and those of other nodes."""
        middle, halves = points[:, None] + self.down[node], self.halves[node]
        depth = box_overlap(middle, halves, (self.points + self.down)[others], self.halves[others])
        on_others: Points = (_OVERLAP_COST * ((depth > 0) * 0.4 + depth / 20)).sum(axis=1)
        return on_others

    def _foreign_line_cost(self, node: int, points: Points, foreign: Mask) -> Points:
        """Return the cost of other nodes' lines through the node or across its name."""
        starts, ends = self.points[self.pairs[foreign, 0]], self.points[self.pairs[foreign, 1]]
        distances = distance_to_lines(points[:, None], starts, ends)
        cost = _line_through_cost(distances, self.radius[node]).sum(axis=1)
        scale = self.name_halves[node]
        names = (points + self.name_down[node])[:, None] / scale
        on_name = distance_to_lines(names, starts / scale, ends / scale) < 1
        under: Points = cost + _UNDER_NAME_COST * on_name.sum(axis=1)
        return under

    def _own_line_cost(self, node: int, points: Points, own: Mask) -> Points:
        """Return the cost of the node's own lines.

        Lines cost more if they pass through other nodes, cross names or other lines, are long, or are too
        short for their text.
        """
        own_pairs = self.pairs[own]
        far = np.where(own_pairs[:, 0] == node, own_pairs[:, 1], own_pairs[:, 0])
        start, end = points[:, None], self.points[far]
        across, down = np.abs(start[..., 0] - end[:, 0]), np.abs(start[..., 1] - end[:, 1])
        length = np.hypot(across, down) + 1e-6
        words = self.words[own]
        wide = np.minimum(words[:, 0] / (across / length + 0.05), words[:, 1] / (down / length + 0.05))
        need = self.radius[node] + self.radius[far] + 16 + wide
        if len(self.points) <= _FEW:  # or pairs would be specks
            need = np.maximum(need, 0.4 * self.ideal)
        cost: Points = _LENGTH_COST * ((length / self.ideal) ** 2).sum(axis=1) ** 0.75
        cost += _SHORTNESS_COST * np.maximum(1 - length / need, 0).sum(axis=1)
        rows = np.arange(len(self.points))
        is_other = (rows != node) & (rows != far[:, None])  # for each line, the nodes that are not its ends
        distances = distance_to_lines(self.points, start[:, :, None], end[:, None])
        cost += (_line_through_cost(distances, self.radius) * is_other).sum(axis=(1, 2))
        scale = self.name_halves
        names = (self.points + self.name_down) / scale
        on_name = distance_to_lines(names, start[:, :, None] / scale, end[:, None] / scale) < 1
        cost += _UNDER_NAME_COST * (on_name & is_other).sum(axis=(1, 2))
        if (~own).any():
            c, d = self.points[self.pairs[~own, 0]], self.points[self.pairs[~own, 1]]
            cost += _CROSSING_COST * segments_cross(start[:, :, None], end[:, None], c, d).sum(axis=(1, 2))
        return cost


def _line_through_cost(distance: Points, radius: Points) -> Points:
    """Return the cost of lines at this distance from a node's centre.

    It is 0 from CLEAR pixels beyond the node's rim on.
    """
    clear = radius + MIN_CLEARANCE
    cost: Points = _THROUGH_COST * np.maximum(1 - distance / clear, 0)
    return cost
