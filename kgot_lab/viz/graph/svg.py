"""Render a scene as a self-contained static SVG.

It has a legend above and a note below, and no scripts or URLs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, require_count, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.encoding import UNLABELLED_LOOK, Encoding, encode, encoded_width, node_caption
from kgot_lab.types import Edge, Json, Node, are_finite
from kgot_lab.viz.graph.marks import (
    MARKS,
    Curve,
    Highlight,
    Point,
    Style,
    draw_badge,
    draw_shape,
    edge_curve,
    line_style,
    loop_curve,
)
from kgot_lab.viz.graph.scene import DrawingPlan, EdgePlan, NodePlan, Scene, drawing_plan, select_scene
from kgot_lab.viz.static.drawing import (
    HALO,
    StaticPicture,
    draw_circle,
    draw_lines,
    draw_path,
    draw_rect,
    draw_text,
    fit_lines,
    svg_root,
)
from kgot_lab.viz.static.markup import Markup, add_picture_key, concat, element, shorten, text_width
from kgot_lab.viz.static.table import Sheet, Table, table

NODE_PREFERENCE = " (changed and best connected first)"  # which nodes are preferred if not all are drawn
# two circles, and two lines: the smallest and the largest
_SIZE_SAMPLE = concat([draw_circle(-6, 0, 2.5, "#777"), draw_circle(3, 0, 6, "#777")])
_WIDTH_SAMPLE = concat([draw_rect(-8, -5, 16, 1, "#777"), draw_rect(-8, 1, 16, 5, "#777")])
NO_NODES = "This graph has no nodes"
_MARGIN = 6.0  # pixels around the drawing
_FARTHEST = 2.0  # of a position, as a fraction of the drawing area
_LEGEND_ROW, _LEGEND_TOP = 22.0, 16.0  # legend: the height of a row, and the position of the first one
_NOTE_HEIGHT, _NOTE_LINES = 15.0, 3
_MAX_TOOLTIP_LINE = 300  # maximum characters of a line of a tooltip
_MAX_TOOLTIP_LINE_LARGE = 60  # with many nodes, tooltips would be most of the file


@dataclass(frozen=True)
class Picture(StaticPicture):
    """A scene as SVG, and the positions of its nodes as fractions of the drawing area.

    Pass the positions to the next picture to keep the nodes in place.
    """

    svg: Markup = field(repr=False)
    alt: str
    positions: Mapping[str, Point] = field(repr=False, hash=False)
    scene: Scene = field(repr=False, compare=False)  # a live view begins with its plan

    @property
    def nodes(self) -> int:
        """The number of nodes drawn."""
        return len(self.scene.nodes)

    @property
    def edges(self) -> int:
        """The number of edges drawn."""
        return len(self.scene.edges)

    def table(self, *, limit: int = 50) -> Table:
        """Return the graph as tables with at most `limit` rows each: marks, if any, nodes and edges."""
        marked = self.scene.marked
        text = {node.id: node_caption(node) for node in marked.graph.nodes}
        rows = [(mark, "node", text[id]) for id, mark in marked.nodes.items()]
        edge_marks = marked.edges.items()
        rows += [(mark, "edge", f"{text[a]} – {type} – {text[b]}") for (a, type, b, _), mark in edge_marks]
        columns, name = ("mark", "of a", "which"), marked.said.rstrip(".")
        marks = [Sheet(columns, tuple(rows[:limit]), len(rows), name)] if rows else []
        return Table((*marks, *table(marked.graph, limit=limit).sheets))

    def __repr__(self) -> str:
        whole = self.scene.marked.graph
        nodes = f"{self.nodes:,} of {len(whole):,} nodes"
        edges = f"{self.edges:,} of {len(whole.edges):,} edges"
        return f"<Picture: {nodes}, {edges}>"


@check_arguments
def svg(
    graph: PropertyGraph,
    *,
    highlight: Highlight = None,
    limit: int = 150,
    width: int = 800,
    height: int = 540,
    positions: Mapping[str, Point] | None = None,
    encoding: Encoding | None = None,
    arrows: bool = True,
) -> Picture:
    """Draw a graph as a static SVG picture.

    `highlight` is the write that led to the graph, a path as the ids of its nodes in order, or a run, of
    which the answer is marked. What a write removed is drawn too. At most `limit` nodes are drawn, and the
    picture says so. `positions` keeps nodes where an earlier picture had them. `encoding` gives their colours and
    sizes, such as that of the scene of an earlier picture. Without `arrows` lines have no arrow heads.
    """
    require_count(limit, 0, "limit", "it is how many nodes are drawn")
    for name, size in (("width", width), ("height", height)):
        require_count(size, 1, name, "it is in pixels", maximum=10_000)
    for id, point in (positions or {}).items():
        if len(point) != 2 or not are_finite(point) or max(map(abs, point)) > _FARTHEST:
            expected = "a position is (x, y), fractions of the drawing area from 0 to 1"
            raise BadInput(f"{expected}, not {short_repr(point)}, as of node {short_repr(id)}")
    encoding = encode(graph) if encoding is None and highlight is None else encoding
    scene = select_scene(graph, highlight, limit, encoding)
    canvas = _SvgRenderer(scene, width, height, arrows=arrows)
    plan = canvas.make_plan(positions or {})
    parts = [
        canvas.draw_background(),
        element("g", *canvas.legend),
        *canvas.draw_graph(plan),
        canvas.draw_note(plan),
    ]
    drawing = svg_root(scene.title, width, height, *parts, desc=_describe_scene(scene))
    all_positions = {**plan.fractions(), **(positions or {})}
    alt = f"{scene.title}. {_describe_scene(scene)}"
    return Picture(add_picture_key(drawing), alt, all_positions, replace(scene, plan=plan))


def _describe_scene(scene: Scene) -> str:
    """Describe the picture in words, for readers who cannot see it."""
    edges = scene.edges[:20]
    facts = (f"{shorten(e.source, 40)} {shorten(e.type, 40)} {shorten(e.target, 40)}" for e in edges)
    change = f"{scene.marked.said} " if scene.marked.said else ""
    omission = f"; and {len(scene.edges) - 20} more" if len(scene.edges) > 20 else ""
    return f"{change}{scene.left_out(NODE_PREFERENCE)} Edges: {'; '.join(facts) or 'none'}{omission}."


# --- the paper ---


class _SvgRenderer:
    """A scene on paper of a given size, in SVG units."""

    def __init__(self, scene: Scene, width: int, height: int, *, arrows: bool = True) -> None:
        self.scene, self.width, self.height, self.arrows = scene, width, height, arrows
        self.legend, rows = self._legend_entries()
        self.top = _MARGIN + _LEGEND_ROW * rows
        self.low = _NOTE_HEIGHT * len(self._note_lines(None))
        self.most = _MAX_TOOLTIP_LINE_LARGE if len(scene.nodes) > 60 else _MAX_TOOLTIP_LINE

    def make_plan(self, positions: Mapping[str, Point]) -> DrawingPlan:
        """Return the position of everything, in pixels of the drawing area."""
        plan = drawing_plan(self.scene, self._area(), positions=positions)
        # labels without room are listed below, which needs space, and may leave others without room
        while (low := _NOTE_HEIGHT * len(self._note_lines(plan))) > self.low:
            self.low = low
            plan = drawing_plan(self.scene, self._area(), positions=plan.fractions())
        return plan

    def _area(self) -> tuple[float, float]:
        return max(self.width - 2 * _MARGIN, 1.0), max(self.height - self.top - self.low - _MARGIN, 1.0)

    # --- drawing ---

    def draw_graph(self, plan: DrawingPlan) -> list[Markup]:
        """Draw lines, then nodes, then text, so that text stays readable."""
        lines = [self._draw_edge(edge, plan) for edge in self.scene.edges]
        words = [self._draw_edge_label(e, plan.edges[e.identity], plan.word_size) for e in self.scene.edges]
        nodes = [self._draw_node(node, plan) for node in self.scene.nodes]
        moved = {"transform": f"translate({_MARGIN:.0f} {self.top:.0f})"}
        return [element("g", *filter(None, part), **moved) for part in (lines, words, nodes) if any(part)]

    def _draw_edge(self, edge: Edge, plan: DrawingPlan) -> Markup:
        style, path = self._edge_style(edge), self._edge_curve(edge, plan)
        return element(
            "g",
            element("title", _edge_tooltip(edge, self.scene.marked.edges.get(edge.identity, ""), self.most)),
            draw_path(path.path, style.colour, style.width, stroke_dasharray=style.dashes),
            element("polygon", points=path.arrow, fill=style.colour) if self.arrows else Markup(),
        )

    def _edge_curve(self, edge: Edge, plan: DrawingPlan) -> Curve:
        one, other = plan.nodes[edge.source], plan.nodes[edge.target]
        if edge.source == edge.target:
            loops = [each.identity for each in self.scene.edges if each.source == each.target == edge.source]
            return loop_curve(one.place, one.radius, loops.index(edge.identity), headed=self.arrows)
        ends = (one.place, self._rim(edge.source, one)), (other.place, self._rim(edge.target, other))
        return edge_curve(*ends, plan.edges[edge.identity].control, headed=self.arrows)

    def _draw_edge_label(self, edge: Edge, planned: EdgePlan, size: float) -> Markup:
        """Draw the label of an edge, or nothing if there is no room.

        Several lines of text are grouped.
        """
        if not planned.worded or not any(planned.lines):
            return Markup()
        return _draw_centred_lines(planned.lines, planned.at, size, self._edge_style(edge).ink)

    def _draw_node(self, node: Node, plan: DrawingPlan) -> Markup:
        mark, planned = self.scene.marked.nodes.get(node.id), plan.nodes[node.id]
        lines = [node_caption(node), *self.scene.encoding.describe(node), mark or ""]
        tooltip = element("title", _tooltip(lines, node.properties, self.most))
        ghost = mark == "removed"
        parts = [tooltip, draw_shape(self.scene.look(node), planned.place, planned.radius, ghost=ghost)]
        if mark:
            parts.append(draw_badge(MARKS[mark], planned.place, planned.radius))
        if planned.named:
            (x, y), (across, down) = planned.place, planned.beside
            ink = MARKS[mark].ink if mark else "#111"
            parts.append(_draw_centred_lines(planned.lines, (x + across, y + down), plan.name_size, ink))
        return element("g", *parts)

    def _edge_style(self, edge: Edge) -> Style:
        mark, widths = self.scene.marked.edges.get(edge.identity), self.scene.encoding.widths
        style = MARKS[mark] if mark else line_style(faint=bool(self.scene.marked.said))
        if not mark and (look := self.scene.encoding.edge_look(edge.source, edge.target)):
            style = replace(style, colour=look.rim)
        return replace(style, width=encoded_width(widths.get(edge.identity, 0.0))) if widths else style

    def _rim(self, id: str, planned: NodePlan) -> float:
        return planned.radius + (5 if id in self.scene.marked.nodes else 0)  # the ring

    # --- legend, note and background ---

    def draw_background(self) -> Markup:
        """Draw a white background, also for dark notebooks, and a note if there is nothing to draw."""
        background = element("rect", width=self.width, height=self.height, fill="#fff")
        if self.scene.nodes:
            return background
        return concat([background, _draw_text(NO_NODES, self.width / 2, self.height / 2, 18, "#555")])

    def _legend_entries(self) -> tuple[list[Markup], int]:
        """Build the legend entries for labels and marks, and return them with the number of rows.

        There are at most two, of communities one: their members are named.
        """
        encoding = self.scene.encoding
        drawn = set(map(encoding.kind, self.scene.nodes))
        used = {kind: look for kind, look in encoding.looks.items() if kind in drawn}
        entries = [(draw_shape(look, (0, 0), 7), shorten(kind, 24)) for kind, look in used.items()]
        if "" in drawn and used:
            entries.append((draw_shape(UNLABELLED_LOOK, (0, 0), 7), encoding.no_kind))
        samples = {"size": _SIZE_SAMPLE, "width": _WIDTH_SAMPLE}
        told = [(samples.get(text.split(":")[0], Markup()), text) for text in encoding.legend]
        entries = told + entries
        marks = {word: draw_badge(MARKS[word], (0, 0), 4) for word in self.scene.kinds_of_marks}
        sample = draw_shape(UNLABELLED_LOOK, (0, 0), 4)
        entries = [(concat([sample, sign]), f" {word}") for word, sign in marks.items()] + entries
        if self.scene.type_of_all:
            bar = draw_rect(-7, -1, 14, 1.5, line_style(faint=False).colour)
            entries.append((bar, f"every edge: {shorten(self.scene.type_of_all, 40)}"))
        items, x, y = [], 20.0, _LEGEND_TOP
        for number, (sample, text) in enumerate(entries):
            space = text_width(text, 12) + 42
            is_last = y > _LEGEND_TOP or encoding.coloured_by == "community"
            if x + space > self.width - (110 if is_last else 10):
                if is_last:
                    omission = f"… {len(entries) - number} more"
                    items.append(_draw_text(omission, x, y + 4, 12, "#333", anchor="start"))
                    break
                x, y = 20.0, _LEGEND_TOP + _LEGEND_ROW
            items.append(element("g", sample, transform=f"translate({x:.0f} {y:.0f})"))
            left = x + (18 if text.startswith(" ") else 13)
            items.append(_draw_text(text, left, y + 4, 12, "#333", anchor="start"))
            x += space
        return items, 0 if not items else 1 + (y > _LEGEND_TOP)

    def draw_note(self, plan: DrawingPlan) -> Markup:
        """Draw the notes on what is left out, and on labels without room."""
        lines = self._note_lines(plan)
        first = self.height - 7 - _NOTE_HEIGHT * (len(lines) - 1)
        return concat(
            _draw_text(line, 12, first + _NOTE_HEIGHT * number, 11, "#333", anchor="start")
            for number, line in enumerate(lines)
        )

    def _note_lines(self, plan: DrawingPlan | None) -> list[str]:
        notes = [self.scene.left_out(NODE_PREFERENCE)]
        if plan:
            notes += plan.notes
            notes.append("Some names or words have no room: the table has them all." if plan.silent else "")
        return fit_lines("  ".join(filter(None, notes)), self.width - 24.0, 11, _NOTE_LINES)[0]


def _draw_centred_lines(lines: Sequence[str], middle: Point, size: float, colour: str) -> Markup:
    """Draw lines of text centred at a point, grouped if there are several."""
    first = middle[1] - (len(lines) - 1) * size * 0.61 + size * 0.35
    texts = draw_lines(
        lines, middle[0], first, size, colour, leading=1.22 * size, text_anchor="middle", **HALO
    )
    return texts if len(lines) == 1 else element("g", texts)


def _draw_text(line: str, x: float, y: float, size: float, colour: str, anchor: str = "middle") -> Markup:
    return draw_text(line, x, y, size, colour, text_anchor=anchor, **HALO)


def _edge_tooltip(edge: Edge, mark: str, most: int) -> str:
    key = f"key: {edge.key}" if edge.key else ""
    about = [f"{edge.source} --[{edge.type}]--> {edge.target}", key, mark]
    return _tooltip(about, edge.properties, most)


def _tooltip(lines: list[str], properties: Mapping[str, Json], most: int) -> str:
    values = (
        f"{name}: {json.dumps(value, ensure_ascii=False, default=str)}" for name, value in properties.items()
    )
    all_lines = filter(None, (*lines, *values))
    return "\n".join(line if len(line) <= most else f"{line[: most - 1]}…" for line in all_lines)
