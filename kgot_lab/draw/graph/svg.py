"""A graph as a static picture that needs nothing else: positions are computed here, no script and no address is inside."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from kgot_lab.draw.graph.layout import Points, force_layout, spread
from kgot_lab.draw.graph.scene import Highlight, Scene, marked, node_caption, scene_of
from kgot_lab.draw.graph.shapes import (
    DIFF,
    MARKS,
    ROUND,
    Box,
    Curve,
    NodeLook,
    Place,
    Rim,
    Style,
    badge,
    curve,
    free_spots,
    look_of,
    loop,
    shape,
    styles,
)
from kgot_lab.draw.markup import Markup, element, image, joined, keyed, shortened, text_width
from kgot_lab.draw.table import Sheet, Table, table
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.text.counted import counted
from kgot_lab.types import Edge, Json, Node
from kgot_lab.writing import write_whole

TOP, _SIDE, BOTTOM = 62.0, 60.0, 46.0  # the legend, half a caption, the caption of the lowest node and the note
FEW_EDGES = 25  # up to here every edge has a caption, room or not
MANY_EDGES = 120  # from here on only marked ones have; every edge keeps its tooltip
MANY_NODES = 60  # from here on nodes and captions are small
PARALLEL_GAP = 40.0
_FIRST = " (changed and best connected first)"  # which nodes are drawn where there is no room for all


@dataclass(frozen=True)
class Picture:
    """An SVG, and where each node is in it, as fractions of the drawing area: hand them to the next picture to keep nodes in place."""

    svg: Markup = field(repr=False)
    positions: Mapping[str, Place] = field(repr=False, hash=False)
    nodes: int
    edges: int
    all_nodes: int
    all_edges: int
    alt: str  # what it shows, in words
    source: tuple[PropertyGraph, Highlight] = field(repr=False, compare=False)  # what was to be drawn, also what found no room

    def table(self, *, limit: int = 50) -> Table:
        """The same graph as tables, at most `limit` rows of each: what is marked, if anything is, and all nodes and edges."""
        told = marked(*self.source)
        text = {node.id: node.text for node in told.graph.nodes}
        rows = [(mark, "node", text[id]) for id, mark in told.nodes.items()]
        rows += [(mark, "edge", f"{text[one]} – {type} – {text[other]}") for (one, type, other, _), mark in told.edges.items()]
        marks = (Sheet(("mark", "of a", "which"), tuple(rows[:limit]), len(rows), told.said.rstrip(".")),) if rows else ()
        return Table((*marks, *table(told.graph, limit=limit).sheets))

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return image(self.svg, self.alt)

    def __repr__(self) -> str:
        return f"<Picture: {self.nodes:,} of {self.all_nodes:,} nodes, {self.edges:,} of {self.all_edges:,} edges>"

    def save(self, path: Path | str) -> Path:
        """Write the SVG to a file; raises BadInput for another kind of file."""
        if Path(path).suffix != ".svg":
            raise BadInput(f"a picture is saved as .svg, not as {Path(path).name}")
        return write_whole(path, self.svg, "the picture")


def svg(
    graph: PropertyGraph,
    *,
    highlight: Highlight = None,
    limit: int = 150,
    width: int = 800,
    height: int = 540,
    seed: int = 0,
    positions: Mapping[str, Place] | None = None,
    labels: Sequence[str] = (),
) -> Picture:
    """Draw a graph; `highlight` is the write that led to it, what that write took away being drawn too, or a path: ids of nodes in order.

    At most `limit` nodes are drawn and the picture says so; `positions` keeps nodes where an earlier picture had them, and
    `labels`, in the order in which that picture has them, keep their colours and shapes.
    """
    scene = scene_of(graph, highlight, limit)
    scene = replace(scene, labels=tuple(dict.fromkeys((*labels, *scene.labels))))
    canvas = _Canvas(scene, width, height)
    places = canvas.places(positions or {}, seed)
    parts = [canvas.background(), canvas.legend(), *canvas.drawing(places), canvas.note()]  # the note last: it counts what found no room
    drawing = element(
        "svg", element("title", _title(scene)), element("desc", _description(scene)), *parts,
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", width=width, height=height, role="img",
        aria_label=_title(scene), font_family="Helvetica, Arial, sans-serif", style="max-width:100%;height:auto",
    )  # fmt: skip
    said = f"{_title(scene)}. {_description(scene)}"
    fractions = {id: canvas.fraction(place) for id, place in places.items()}
    counts = len(scene.nodes), len(scene.edges), scene.all_nodes, scene.all_edges
    return Picture(keyed(drawing), {**(positions or {}), **fractions}, *counts, said, (graph, highlight))


class _Canvas:
    """A scene on paper of some size, in SVG units."""

    def __init__(self, scene: Scene, width: int, height: int):
        self.scene, self.width, self.height = scene, width, height
        self.area = (max(width - 2 * _SIDE, 1.0), max(height - TOP - BOTTOM, 1.0))
        small = len(scene.nodes) > MANY_NODES
        self.radius, self.font, self.caption_length = (6.0, 9.0, 15) if small else (11.0, 12.0, 24)
        self.most = 60 if small else 300  # letters of a line of a tooltip: with many nodes they would be most of the file
        self.without_caption = 0
        self.looks = {label: look_of(number) for number, label in enumerate(scene.labels)}

    # --- places ---

    def places(self, positions: Mapping[str, Place], seed: int) -> dict[str, Place]:
        """Where each node goes: at its given position, or where the layout finds room."""
        ids = [node.id for node in self.scene.nodes]
        row = {id: number for number, id in enumerate(ids)}
        start: Points = np.array([positions.get(id, (np.nan, np.nan)) for id in ids], dtype=float).reshape(-1, 2)
        ends = [(row[edge.source], row[edge.target]) for edge in self.scene.edges if edge.source != edge.target]
        pairs = np.array(sorted(set(ends)), dtype=np.intp).reshape(-1, 2)
        unit = force_layout(start, pairs, aspect=self.area[0] / self.area[1], seed=seed)
        widest = max((text_width(self._caption(node), self.font) for node in self.scene.nodes), default=0)
        box = (min(widest + 8, 2.2 * _SIDE), 2 * self.radius + self.font + 10)
        points = spread(unit * self.area, box, ~np.isnan(start[:, 0]), self.area) + np.array([_SIDE, TOP])
        middle = self.width / 2
        half = np.minimum([text_width(self._caption(node), self.font) / 2 + 6 for node in self.scene.nodes], middle)
        points[:, 0] = np.clip(points[:, 0], half, self.width - half)  # so that no caption leaves the paper
        return {id: (float(x), float(y)) for id, (x, y) in zip(ids, points, strict=True)}

    def fraction(self, place: Place) -> Place:
        """A place as fractions of the drawing area."""
        return (place[0] - _SIDE) / self.area[0], (place[1] - TOP) / self.area[1]

    # --- drawing ---

    def drawing(self, places: Mapping[str, Place]) -> list[Markup]:
        """Lines, then nodes, then captions, so that captions stay readable."""
        taken = [Box.around((x, y), 2 * self.radius, 2 * self.radius) for x, y in places.values()]
        taken += [self._caption_box(node, places[node.id]) for node in self.scene.nodes]
        curves = self._curves(places)
        lines = [self._line(edge, path) for edge, path in curves]
        captions = [self._edge_caption(edge, path, taken) for edge, path in curves]
        nodes = [self._node(node, places[node.id]) for node in self.scene.nodes]
        return [element("g", *part) for part in (lines, captions, nodes) if part]

    def _curves(self, places: Mapping[str, Place]) -> list[tuple[Edge, Curve]]:
        """A curve of its own for each edge; parallel ones, in either direction, lie side by side."""
        beside: dict[tuple[str, str], list[Edge]] = defaultdict(list)
        for edge in self.scene.edges:
            beside[min(edge.source, edge.target), max(edge.source, edge.target)].append(edge)
        rims = {node.id: self._rim(node) for node in self.scene.nodes}
        curves = []
        for (low, _), edges in beside.items():
            for number, edge in enumerate(sorted(edges, key=lambda edge: edge.identity)):
                if edge.source == edge.target:
                    curves.append((edge, loop(places[edge.source], self.radius, number)))
                else:
                    bend = (number - (len(edges) - 1) / 2) * PARALLEL_GAP * (1 if edge.source == low else -1)
                    curves.append((edge, curve(places[edge.source], places[edge.target], bend, (rims[edge.source], rims[edge.target]))))
        return curves

    def _line(self, edge: Edge, path: Curve) -> Markup:
        style = self._edge_style(edge)
        return element(
            "g",
            element("title", _full_edge(edge, self.scene.edge_marks.get(edge.identity, ""), self.most)),
            element("path", d=path.path, fill="none", stroke=style.colour, stroke_width=style.width, stroke_dasharray=style.dashes),
            element("polygon", points=path.arrow, fill=style.colour),
        )

    def _edge_caption(self, edge: Edge, path: Curve, taken: list[Box]) -> Markup:
        """The edge's type where there is room for it, and in any case when the edge is marked or one of few."""
        mark = self.scene.edge_marks.get(edge.identity)
        text = f"{MARKS[mark].sign} {shortened(edge.type, 22)}" if mark else shortened(edge.type, 22)
        size = self.font - 2
        must = mark is not None or len(self.scene.edges) <= FEW_EDGES
        spots = free_spots(path, text_width(text, size), size + 2, taken) if must or len(self.scene.edges) <= MANY_EDGES else ()
        if not spots and not must:
            self.without_caption += 1
            return Markup()
        x, y = (spots[0].x, spots[0].y) if spots else path.spots[0]
        taken.append(Box(x, y, text_width(text, size), size + 2))
        return _text(text, x, y + size / 3, size, self._edge_style(edge).ink)

    def _node(self, node: Node, place: Place) -> Markup:
        mark = self.scene.node_marks.get(node.id)
        told = element("title", _full_node(node, mark or "", self.most))
        parts = [told, shape(self._look(node), place, self.radius, ghost=mark == "removed")]
        if mark:
            parts.append(badge(MARKS[mark], place, self.radius))
        x, y = place
        parts.append(_text(self._caption(node), x, y + self.radius + self.font + 1, self.font, MARKS[mark].ink if mark else "#111"))
        return element("g", *parts)

    def _look(self, node: Node) -> NodeLook:
        return self.looks[node.labels[0]] if node.labels else ROUND

    def _edge_style(self, edge: Edge) -> Style:
        mark = self.scene.edge_marks.get(edge.identity)
        return MARKS[mark] if mark else styles(faint=bool(self.scene.said))

    def _caption(self, node: Node) -> str:
        return shortened(node_caption(node), self.caption_length)

    def _rim(self, node: Node) -> Rim:
        radius = self.radius + (5 if node.id in self.scene.node_marks else 0)  # the ring
        return Rim(radius, text_width(self._caption(node), self.font) / 2 + 1, self.radius + self.font + 4)

    def _caption_box(self, node: Node, place: Place) -> Box:
        return Box.around((place[0], place[1] + self.radius + self.font - 3), text_width(self._caption(node), self.font), self.font + 2)

    # --- what surrounds it ---

    def background(self) -> Markup:
        """White, also in a dark notebook; and a word where there is nothing to draw."""
        paper = element("rect", width=self.width, height=self.height, fill="#fff")
        if self.scene.nodes:
            return paper
        return joined([paper, _text("empty graph", self.width / 2, self.height / 2, 18, "#555")])

    def legend(self) -> Markup:
        """The labels drawn, each with its shape and colour, and the marks, in at most two rows."""
        used = [label for label in self.scene.labels if any(node.labels[:1] == (label,) for node in self.scene.nodes)]
        entries = [(shape(self.looks[label], (0, 0), 7), shortened(label, 24)) for label in used]
        if any(not node.labels for node in self.scene.nodes):
            entries.append((shape(ROUND, (0, 0), 7), "no label"))
        marks = {*self.scene.node_marks.values(), *self.scene.edge_marks.values()}
        words = () if not self.scene.said else ("path",) if "path" in marks else DIFF
        entries = [(joined([shape(ROUND, (0, 0), 4), badge(MARKS[word], (0, 0), 4)]), f" {word}") for word in words] + entries
        made, x, y = [], 20.0, 20.0
        for number, (sample, text) in enumerate(entries):
            space = text_width(text, 12) + 42
            if x + space > self.width - (110 if y > 20 else 10):
                if y > 20:
                    made.append(_text(f"… {len(entries) - number} more", x, y + 4, 12, "#333", anchor="start"))
                    break
                x, y = 20.0, 44.0
            made.append(element("g", sample, transform=f"translate({x:.0f} {y:.0f})"))
            made.append(_text(text, x + (18 if text.startswith(" ") else 13), y + 4, 12, "#333", anchor="start"))
            x += space
        return element("g", *made)

    def note(self) -> Markup:
        """What is not shown, said in the picture."""
        hidden = "Some edges have no caption for want of room: the table names them all." if self.without_caption else ""
        return _text(f"{self.scene.left_out(_FIRST)} {hidden}".strip(), 12, self.height - 10, 11, "#333", anchor="start")


def _text(text: str, x: float, y: float, size: float, colour: str, anchor: str = "middle") -> Markup:
    return element(
        "text", text, x=float(x), y=float(y), font_size=float(size), fill=colour, text_anchor=anchor,
        stroke="#fff", stroke_width=3, stroke_linejoin="round", paint_order="stroke",
    )  # fmt: skip


def _title(scene: Scene) -> str:
    if not scene.all_nodes:
        return "An empty graph"
    return f"A graph with {counted(scene.all_nodes, 'node')} and {counted(scene.all_edges, 'edge')}"


def _description(scene: Scene) -> str:
    """What the picture shows, in words, for those who do not see it."""
    facts = (f"{shortened(e.source, 40)} {shortened(e.type, 40)} {shortened(e.target, 40)}" for e in scene.edges[:20])
    change = f"{scene.said} " * bool(scene.said)
    more = f"; and {len(scene.edges) - 20} more" if len(scene.edges) > 20 else ""
    return f"{change}{scene.left_out(_FIRST)} Edges: {'; '.join(facts) or 'none'}{more}."


def _full_node(node: Node, mark: str, most: int) -> str:
    return _full([node.text, f"id: {node.id}", f"labels: {', '.join(node.labels) or 'none'}", mark], node.properties, most)


def _full_edge(edge: Edge, mark: str, most: int) -> str:
    return _full([f"{edge.source} --[{edge.type}]--> {edge.target}", f"key: {edge.key}" if edge.key else "", mark], edge.properties, most)


def _full(lines: list[str], properties: Mapping[str, Json], most: int) -> str:
    values = (f"{name}: {json.dumps(value, ensure_ascii=False, default=str)}" for name, value in properties.items())
    return "\n".join(line if len(line) <= most else f"{line[: most - 1]}…" for line in (*lines, *values) if line)
