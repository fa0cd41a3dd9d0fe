"""A scene: the drawn part of a graph as plain data.

It is rendered by the static picture (SVG) and the live view (JSON).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Identity
from kgot_lab.graph.communities import THE_REST, WITHOUT_EDGES
from kgot_lab.graph.encoding import GROUP_LOOK, Encoding, NodeLook, encoded_size, node_caption
from kgot_lab.graph.exchange import UNTYPED
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge, Node
from kgot_lab.viz.graph.collapse import View
from kgot_lab.viz.graph.groups import EVERYTHING_ELSE, Community, EdgeBundle
from kgot_lab.viz.graph.label_placement import control_points, place_edge_labels, place_names
from kgot_lab.viz.graph.layout import (
    NodeExtents,
    NodePairs,
    Points,
    force_layout,
    stretch_to_area,
    untangle_layout,
)
from kgot_lab.viz.graph.marks import MARKS, Highlight, MarkedGraph, Point, mark_graph, mark_kinds
from kgot_lab.viz.graph.places import place_near_neighbours
from kgot_lab.viz.static.drawing import balance_lines, line_width

EDGES_PER_NODE = 4  # more would be a black cloud
_UNCAPTIONED = "\u200b"  # type of the line of a bundle whose number is not written
_MIN_EDGES_OF_TYPE = 15  # number of edges of one type from which the legend gives the type
_SMALL_KINDS = WITHOUT_EDGES, THE_REST, EVERYTHING_ELSE  # drawn smaller, since their size says little


@dataclass(frozen=True)
class NodePlan:
    """A node: its centre, radius, name in lines, and the offset of the name's centre.

    It is not `named` if there is no room.
    """

    place: Point
    radius: float
    lines: tuple[str, ...]
    beside: Point
    named: bool


@dataclass(frozen=True)
class EdgePlan:
    """An edge: the control point of its curve, its label in lines, and the label's centre.

    It is not `worded` if there is no room.
    """

    control: Point
    lines: tuple[str, ...]
    at: Point
    worded: bool


@dataclass(frozen=True)
class DrawingPlan:
    """All positions, in pixels of a drawing area. `name_size` and `word_size` are font sizes."""

    area: tuple[float, float]
    name_size: float
    word_size: float
    nodes: Mapping[str, NodePlan]
    edges: Mapping[Identity, EdgePlan]
    notes: tuple[str, ...] = ()  # the labels of edges that have a number for lack of room

    def fractions(self) -> dict[str, Point]:
        """Return the positions of the nodes as fractions of the area."""
        width, height = self.area
        return {id: (node.place[0] / width, node.place[1] / height) for id, node in self.nodes.items()}

    @property
    def silent(self) -> int:
        """The number of names and edge labels without room."""
        unnamed = sum(not node.named for node in self.nodes.values())
        return unnamed + sum(not edge.worded for edge in self.edges.values())


@dataclass(frozen=True, eq=False)
class Scene:
    """The drawn nodes and edges, and their marks and looks.

    In a `view`, some nodes represent a community, and bundles represent many edges. `places` are fractions of
    the drawing area. A small scene also has a `plan`.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    marked: MarkedGraph
    view: View | None = None
    plan: DrawingPlan | None = None
    places: Mapping[str, Point] = field(default_factory=dict)

    @cached_property
    def groups(self) -> dict[str, Community]:
        """The communities that are drawn as one node, by its id."""
        return (
            {community.id: community for community in self.view.communities if community.hidden}
            if self.view
            else {}
        )

    @property
    def bundles(self) -> tuple[EdgeBundle, ...]:
        """The lines that represent many edges."""
        return self.view.bundles if self.view else ()

    @cached_property
    def most(self) -> int:
        """The number of edges in the thickest bundle."""
        return max((bundle.count for bundle in self.bundles), default=1)

    def bundle_caption(self, bundle: EdgeBundle) -> str:
        """Return the number of the bundle's edges, or "" if they are few."""
        return f"{bundle.count:,}" if bundle.count > self.most / 2 else ""

    @cached_property
    def lines(self) -> tuple[Edge, ...]:
        """The edges, and one for each bundle, with its caption as type."""
        named = ((each, self.bundle_caption(each) or _UNCAPTIONED) for each in self.bundles)
        return (*self.edges, *(Edge(b.source, caption, b.target, key=" bundle") for b, caption in named))

    @cached_property
    def sizes(self) -> dict[str, float]:
        """The diameter in pixels of each group: its area grows with the number of nodes it hides."""
        hidden = (group.hidden for group in self.groups.values() if group.kind not in _SMALL_KINDS)
        largest = max(hidden, default=0)
        return {
            id: 8
            + 34 * sqrt(min(each.hidden / max(largest, 1), 1.0)) * (0.5 if each.kind in _SMALL_KINDS else 1)
            for id, each in self.groups.items()
        }

    @property
    def encoding(self) -> Encoding:
        """The looks of nodes and edges."""
        return self.marked.encoding

    def look(self, node: Node) -> NodeLook:
        """Return the colour and shape of a node.

        A community has the colour of most of its nodes if colours are those of a property.
        """
        if node.id not in self.groups:
            return self.encoding.look(node)
        return NodeLook(self.encoding.looks.get(self.group_kind(node), GROUP_LOOK).colour)

    def group_kind(self, node: Node) -> str:
        """Return the kind of most nodes of a community, or "" if kinds are not those of a property."""
        kinds, view = self.encoding.kinds, self.view
        if kinds is None or view is None:
            return ""
        rows = np.flatnonzero(view.at == view.nodes.index(node)).tolist()
        ((kind, _),) = Counter(kinds.get(view.graph.ids[row], "") for row in rows).most_common(1)
        return kind

    def caption(self, node: Node) -> str:
        """Return the text beside a node."""
        return self.groups[node.id].name if node.id in self.groups else node_caption(node)

    def words(self, edge: Edge) -> str:
        """Return the text along an edge: its type, with the sign of its mark.

        It is "" if the edge is not marked, and has no type or the legend gives one for all edges.
        """
        mark = self.marked.edges.get(edge.identity)
        type = "" if self.type_of_all or edge.type == UNTYPED else edge.type.strip(_UNCAPTIONED)
        return f"{MARKS[mark].sign} {edge.type}" if mark else type

    @cached_property
    def type_of_all(self) -> str:
        """The type of all edges if they are many and have the same one, else "".

        It is in the legend instead of at each edge.
        """
        types = {edge.type.strip(_UNCAPTIONED) for edge in self.lines}
        return (
            types.pop()
            if len(types) == 1 and UNTYPED not in types and len(self.lines) > _MIN_EDGES_OF_TYPE
            else ""
        )

    @property
    def kinds_of_marks(self) -> tuple[str, ...]:
        """The kinds of marks that a legend has to explain: all of a write, even if it made only some."""
        return mark_kinds(self.marked.said, {*self.marked.nodes.values(), *self.marked.edges.values()})

    @property
    def title(self) -> str:
        """The size of the whole graph, in words."""
        graph = self.marked.graph
        if not len(graph):
            return "An empty graph"
        return f"A graph with {format_count(len(graph), 'node')} and {format_count(len(graph.edges), 'edge')}"

    def left_out(self, preference: str) -> str:
        """Describe how many nodes and edges are not drawn.

        `preference` names the nodes that were preferred, such as ", the best connected".
        """
        graph, notes = self.marked.graph, []
        if len(self.nodes) < len(graph):
            notes.append(f"Shows {len(self.nodes):,} of {len(graph):,} nodes{preference}.")
        if len(self.edges) < len(graph.edges):
            notes.append(f"Shows {len(self.edges):,} of {len(graph.edges):,} edges.")
        return " ".join(notes)


def select_scene(
    graph: PropertyGraph, highlight: Highlight, limit: int, encoding: Encoding | None = None
) -> Scene:
    """Select at most `limit` nodes to draw: the marked ones first, then the best connected.

    Removed nodes and edges are shown too.
    """
    marks = replace(mark_graph(graph, highlight), given=encoding)
    whole, touched = marks.graph, marks.touched
    degree = np.bincount(np.concatenate([whole.sources, whole.targets]), minlength=len(whole)).tolist()
    ids, rows = whole.ids, range(len(whole))
    best = sorted(rows, key=lambda row: (ids[row] not in marks.nodes, ids[row] not in touched, -degree[row]))
    part = whole.subgraph(ids[row] for row in best[:limit])
    marked_first = sorted(part.edges, key=lambda edge: edge.identity not in marks.edges)
    return Scene(tuple(part.nodes), tuple(marked_first[: EDGES_PER_NODE * limit]), marks)


def view_scene(view: View, marks: MarkedGraph) -> Scene:
    """Return the scene of a view of a marked graph."""
    return Scene(view.nodes, view.edges, marks, view)


# The plan of a small graph, used by the static picture and the live view: nodes, names, lines and edge
# labels.
#
# All coordinates are in pixels of a drawing area. A larger area may stretch positions and curves. Items then
# lie farther apart, since names and nodes keep their sizes, and no line comes nearer to a node.

MAX_PLANNED_NODES = 150  # maximum nodes of a scene with a plan
FEW_NODES, MANY_NODES = 20, 60  # with fewer nodes they are larger, with more everything is smaller
_ATTEMPTS = 3
_LEADING = 1.22  # line height, relative to the font size
_STRETCH_ROUNDS = 3  # repetitions, since names are placed differently in a stretched drawing
# relative widths of edge labels, in the order in which they are tried; 0 for a number
_LABEL_WIDTHS = (1.0, 0.6, 2.5, 0.0)
_LOOP_HEIGHT = 4.4  # height of a self-loop in radii


def drawing_plan(scene: Scene, area: tuple[float, float], *, positions: Mapping[str, Point]) -> DrawingPlan:
    """Plan the positions of nodes, names and edge labels.

    Nodes with `positions`, as fractions of the area, stay there. The others are laid out and moved until
    everything is readable. If something has no room, other layouts are tried, and the one with the most names
    and labels is used.
    """
    is_free = not any(node.id in positions for node in scene.nodes)
    plans: list[DrawingPlan] = []
    for attempt in range(_ATTEMPTS if is_free and len(scene.nodes) <= MANY_NODES else 1):
        draft = _Draft(scene, area)
        draft.lay_out(positions, seed=1000 * attempt)
        draft.place_labels()
        plans.append(draft.plan())
        if not plans[-1].silent and not plans[-1].notes:
            break
    return min(plans, key=lambda plan: (plan.silent, len(plan.notes)))


class _Draft:
    """A plan under construction. Rows are nodes and edges in the order given."""

    def __init__(self, scene: Scene, area: tuple[float, float]) -> None:
        self.scene, self.area = scene, area
        self.nodes, self.edges = nodes, edges = scene.nodes, scene.lines
        row = {node.id: number for number, node in enumerate(nodes)}
        ends = [(row[edge.source], row[edge.target]) for edge in edges]
        self.ends: NodePairs = np.array(ends, dtype=np.intp).reshape(-1, 2)
        is_large = len(nodes) > MANY_NODES
        sizes = (10.0, 9.0, 96.0, 3) if is_large else (12.0, 10.5, 132.0, 4)
        self.name_size, self.word_size, wide, lines = sizes
        degree = np.bincount(self.ends.ravel(), minlength=len(nodes))
        larger = 2.0 * (len(nodes) <= FEW_NODES)
        least, growth, most = (3.0, 1.5, 13.0) if is_large else (5.0 + larger, 2.4, 18.0 + larger)
        encoded = scene.encoding.sizes
        by_degree = np.minimum(least + growth * np.sqrt(degree), most)
        by_number = [encoded_size(encoded.get(node.id, 0.0), least, 1.2 * most) for node in nodes]
        diameters, drawn = scene.sizes, by_number if encoded else by_degree
        radii = [diameters[id] / 2 if id in diameters else drawn[number] for id, number in row.items()]
        self.radius: Points = np.array(radii)
        self.names = [balance_lines(scene.caption(node), wide, self.name_size, lines) for node in nodes]
        self.word_wide = 0.8 * wide
        self.words = [balance_lines(scene.words(edge), self.word_wide, self.word_size, 3) for edge in edges]
        signed = np.array([1.4 * self.name_size * (node.id in scene.marked.nodes) for node in nodes])
        self.name_halves = _half_sizes(self.names, self.name_size)
        self.name_halves[:, 0] += signed / 2
        self.word_halves = _half_sizes(self.words, self.word_size)
        self.loops = self.ends[:, 0] == self.ends[:, 1]
        self.straight = self.ends[~self.loops]
        self.points: Points = np.empty((len(nodes), 2))

    def lay_out(self, positions: Mapping[str, Point], *, seed: int) -> None:
        """Compute the position of each node."""
        area = np.array(self.area)
        placed = [positions.get(node.id, (np.nan, np.nan)) for node in self.nodes]
        start = np.array(placed, dtype=float).reshape(-1, 2)
        fixed = np.isfinite(start).all(axis=1)
        start[~fixed] = np.nan
        pairs, label_sizes = self._connected_pairs()
        if fixed.any():
            points = place_near_neighbours(start, pairs) * area
        else:
            points = force_layout(len(start), pairs, aspect=self.area[0] / self.area[1], seed=seed) * area
        extents = NodeExtents(self.radius, self.name_halves[:, 0], 2 * self.name_halves[:, 1])
        if not fixed.any():
            points = stretch_to_area(points, *self._extents_with_name_below(), self.area)
        if not fixed.all():
            points = untangle_layout(points, pairs, extents, self.area, label_sizes, fixed)
        self.points = np.where(fixed[:, None], start * area, points)
        for _ in range(_STRETCH_ROUNDS if not fixed.any() else 0):
            self.points = stretch_to_area(self.points, *self._extents_with_placed_name(), self.area)

    def place_labels(self) -> None:
        """Compute the positions of names and edge labels, and the curve of each edge."""
        self.name_at = place_names(self.points, self.radius, self.name_halves, self.straight, self.area)
        self.controls = control_points(self.points, self.radius, self.ends, self.area)
        self.word_at = np.zeros((len(self.edges), 2))
        self.notes: list[str] = []
        self.silent = np.array([bool(lines) for lines in self.words], dtype=bool)
        for wide in _LABEL_WIDTHS:  # labels without room are tried again with wider or narrower lines
            rows = np.flatnonzero(self.silent)
            if not wide:
                self._number_labels(rows)
            elif wide != 1:
                for row in rows.tolist():
                    text = self.scene.words(self.edges[row])
                    self.words[row] = balance_lines(text, wide * self.word_wide, self.word_size, 4)
            self.word_halves = _half_sizes(self.words, self.word_size)
            if len(rows):
                self._place_edge_labels(rows)

    def _number_labels(self, rows: NDArray[np.intp]) -> None:
        """Replace the labels of edges by numbers, one for each type, and explain them in notes."""
        types = dict.fromkeys(self.edges[row].type for row in rows.tolist())
        numbers = {type: f"({number})" for number, type in enumerate(types, 1)}
        self.notes = [f"{number} {type}" for type, number in numbers.items()]
        for row in rows.tolist():
            self.words[row] = (numbers[self.edges[row].type],)

    def _place_edge_labels(self, rows: NDArray[np.intp]) -> None:
        """Point the labels of some edges, off everything that is already placed."""
        shown = ~self.name_at.clash
        has_label = ~self.silent & np.array([bool(lines) for lines in self.words], dtype=bool)
        discs = np.stack([self.radius, self.radius], axis=1) + 1
        centres = np.concatenate([self.points, self.name_at.middles[shown], self.word_at[has_label]])
        half_sizes = np.concatenate([discs, self.name_halves[shown], self.word_halves[has_label]])
        start, end = self.points[self.ends[:, 0]], self.points[self.ends[:, 1]]
        rise = self.loops * _LOOP_HEIGHT * self.radius[self.ends[:, 0]]
        up = np.stack([np.zeros(len(start)), rise], axis=1)
        curves = (start - up, self.controls - up, end - up)
        placed = place_edge_labels(curves, self.word_halves, rows, (centres, half_sizes), self.area)
        self.word_at[rows], self.silent[rows] = placed.middles, placed.clash

    def plan(self) -> DrawingPlan:
        """Return the finished plan."""
        nodes = {}
        for number, node in enumerate(self.nodes):
            (x, y), (a, b) = self.points[number].tolist(), self.name_at.middles[number].tolist()
            named = not self.name_at.clash[number] or node.id in self.scene.marked.nodes
            radius, lines = float(self.radius[number]), self.names[number]
            nodes[node.id] = NodePlan((x, y), radius, lines, (a - x, b - y), named)
        edges = {}
        for number, edge in enumerate(self.edges):
            (x, y), (a, b) = self.controls[number].tolist(), self.word_at[number].tolist()
            worded = not self.silent[number] or edge.identity in self.scene.marked.edges
            edges[edge.identity] = EdgePlan((x, y), self.words[number], (a, b), worded)
        return DrawingPlan(self.area, self.name_size, self.word_size, nodes, edges, tuple(self.notes))

    # --- inputs of the steps ---

    def _connected_pairs(self) -> tuple[NodePairs, Points]:
        """Return each pair of connected nodes once, and the size of the text along its edges.

        The size is the width and height of all labels of a pair together, shape (m, 2).
        """
        label_sizes: dict[tuple[int, int], tuple[float, float]] = {}
        for (one, other), (half, high) in zip(self.ends.tolist(), self.word_halves.tolist(), strict=True):
            if one != other:
                wide, tall = label_sizes.get((min(one, other), max(one, other)), (0.0, 0.0))
                label_sizes[min(one, other), max(one, other)] = (max(wide, 2 * half), tall + 2 * high)
        pairs = sorted(label_sizes)
        sizes = np.array([label_sizes[pair] for pair in pairs]).reshape(-1, 2)
        return np.array(pairs, dtype=np.intp).reshape(-1, 2), sizes

    def _extents_with_name_below(self) -> tuple[Points, Points]:
        """Return how far each node extends with its name below it.

        Returns two arrays: left and up, then right and down.
        """
        side = np.maximum(self.radius, self.name_halves[:, 0]) + 1
        has_loop = np.isin(np.arange(len(self.nodes)), self.ends[self.loops, 0])
        up = self.radius * np.where(has_loop, 1 + 2 * _LOOP_HEIGHT, 1) + 1
        down = self.radius + 2 * self.name_halves[:, 1] + 4
        return np.stack([side, up], axis=1), np.stack([side, down], axis=1)

    def _extents_with_placed_name(self) -> tuple[Points, Points]:
        """Return how far each node extends with its name where it would be placed now."""
        names = place_names(self.points, self.radius, self.name_halves, self.straight, self.area)
        at = names.middles - self.points
        up = self._extents_with_name_below()[0][:, 1]
        disc = np.stack([self.radius, self.radius], axis=1) + 1
        before = np.maximum(disc, self.name_halves - at)
        before[:, 1] = np.maximum(before[:, 1], up)
        return before, np.maximum(disc, self.name_halves + at)


def _half_sizes(texts: Sequence[Sequence[str]], size: float) -> Points:
    """Return half the width and height of multi-line texts, shape (n, 2)."""
    wide = [max((line_width(line, size) for line in lines), default=0.0) / 2 for lines in texts]
    halves = [(half, len(lines) * size * _LEADING / 2) for half, lines in zip(wide, texts, strict=True)]
    return np.array(halves).reshape(-1, 2)
