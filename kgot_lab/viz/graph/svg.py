"""Render a scene as a self-contained static SVG.

It has a legend above and a note below, and no scripts or URLs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge, Json, Node
from kgot_lab.viz.graph.marks import (
    MARKS,
    ROUND,
    Curve,
    Highlight,
    Place,
    Style,
    badge,
    curve,
    look_of,
    loop,
    shape,
    styles,
)
from kgot_lab.viz.graph.scene import DrawingPlan, EdgePlan, NodePlan, Scene, drawing_plan, scene_of
from kgot_lab.viz.static.drawing import HALO, StaticPicture, draw_path, draw_rect, draw_text, fitted, paper
from kgot_lab.viz.static.markup import Markup, element, joined, keyed, shortened, text_width
from kgot_lab.viz.static.table import Sheet, Table, table

WHICH_FIRST = " (changed and best connected first)"  # which nodes are preferred if not all are drawn
NO_NODES = "This graph has no nodes"
_EDGE = 6.0  # pixels around the drawing
_ROW, _FIRST_ROW = 22.0, 16.0  # legend: the height of a row, and the position of the first one
_NOTE, _NOTE_LINES = 15.0, 3
_TOLD = 300  # maximum characters of a line of a tooltip
_TOLD_OF_MANY = 60  # with many nodes, tooltips would be most of the file


@dataclass(frozen=True)
class Picture(StaticPicture):
    """A scene as SVG, and the positions of its nodes as fractions of the drawing area.

    Pass the positions to the next picture to keep the nodes in place.
    """

    svg: Markup = field(repr=False)
    alt: str
    positions: Mapping[str, Place] = field(repr=False, hash=False)
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
        told = self.scene.marked
        text = {node.id: node.text for node in told.graph.nodes}
        rows = [(mark, "node", text[id]) for id, mark in told.nodes.items()]
        rows += [
            (mark, "edge", f"{text[one]} – {type} – {text[other]}")
            for (one, type, other, _), mark in told.edges.items()
        ]
        columns, name = ("mark", "of a", "which"), told.said.rstrip(".")
        marks = [Sheet(columns, tuple(rows[:limit]), len(rows), name)] if rows else []
        return Table((*marks, *table(told.graph, limit=limit).sheets))

    def __repr__(self) -> str:
        whole = self.scene.marked.graph
        nodes = f"{self.nodes:,} of {len(whole):,} nodes"
        edges = f"{self.edges:,} of {len(whole.edges):,} edges"
        return f"<Picture: {nodes}, {edges}>"


def svg(
    graph: PropertyGraph,
    *,
    highlight: Highlight = None,
    limit: int = 150,
    width: int = 800,
    height: int = 540,
    positions: Mapping[str, Place] | None = None,
    labels: Sequence[str] = (),
    arrows: bool = True,
) -> Picture:
    """Draw a graph as a static SVG picture.

    `highlight` is the write that led to the graph, a path as the ids of its nodes in order, or a run, of
    which the answer is marked. What a write removed is drawn too. At most `limit` nodes are drawn, and the
    picture says so. `positions` keeps nodes where an earlier picture had them. `labels`, in the order of that
    picture, keep their colours and shapes. Without `arrows` lines have no arrow heads.
    """
    scene = scene_of(graph, highlight, limit, labels)
    sheet = _Paper(scene, width, height, arrows=arrows)
    plan = sheet.planned(positions or {})
    parts = [sheet.background(), sheet.legend(), *sheet.drawing(plan), sheet.note(plan)]
    drawing = paper(scene.title, width, height, *parts, desc=_description(scene))
    places = {**plan.fractions(), **(positions or {})}
    return Picture(keyed(drawing), f"{scene.title}. {_description(scene)}", places, replace(scene, plan=plan))


def _description(scene: Scene) -> str:
    """Describe the picture in words, for readers who cannot see it."""
    facts = (
        f"{shortened(e.source, 40)} {shortened(e.type, 40)} {shortened(e.target, 40)}"
        for e in scene.edges[:20]
    )
    change = f"{scene.marked.said} " * bool(scene.marked.said)
    more = f"; and {len(scene.edges) - 20} more" if len(scene.edges) > 20 else ""
    return f"{change}{scene.left_out(WHICH_FIRST)} Edges: {'; '.join(facts) or 'none'}{more}."


# --- the paper ---


class _Paper:
    """A scene on paper of a given size, in SVG units."""

    def __init__(self, scene: Scene, width: int, height: int, *, arrows: bool = True) -> None:
        self.scene, self.width, self.height, self.arrows = scene, width, height, arrows
        self.entries, rows = self._legend_entries()
        self.top = _EDGE + _ROW * rows
        self.low = _NOTE * len(self._note_lines(None))
        self.most = _TOLD_OF_MANY if len(scene.nodes) > 60 else _TOLD

    def planned(self, positions: Mapping[str, Place]) -> DrawingPlan:
        """Return the position of everything, in pixels of the drawing area."""
        plan = drawing_plan(self.scene, self._area(), positions=positions)
        low = _NOTE * len(self._note_lines(plan))
        if low > self.low:  # labels without room are listed below, which needs space
            self.low = low
            plan = drawing_plan(self.scene, self._area(), positions=plan.fractions())
        return plan

    def _area(self) -> tuple[float, float]:
        return max(self.width - 2 * _EDGE, 1.0), max(self.height - self.top - self.low - _EDGE, 1.0)

    # --- drawing ---

    def drawing(self, plan: DrawingPlan) -> list[Markup]:
        """Draw lines, then nodes, then text, so that text stays readable."""
        lines = [self._line(edge, plan) for edge in self.scene.edges]
        words = [self._words(edge, plan.edges[edge.identity], plan.word_size) for edge in self.scene.edges]
        nodes = [self._node(node, plan) for node in self.scene.nodes]
        moved = {"transform": f"translate({_EDGE:.0f} {self.top:.0f})"}
        return [element("g", *filter(None, part), **moved) for part in (lines, words, nodes) if any(part)]

    def _line(self, edge: Edge, plan: DrawingPlan) -> Markup:
        style, path = self._edge_style(edge), self._curve(edge, plan)
        return element(
            "g",
            element("title", _full_edge(edge, self.scene.marked.edges.get(edge.identity, ""), self.most)),
            draw_path(path.path, style.colour, style.width, stroke_dasharray=style.dashes),
            element("polygon", points=path.arrow, fill=style.colour) if self.arrows else Markup(),
        )

    def _curve(self, edge: Edge, plan: DrawingPlan) -> Curve:
        one, other = plan.nodes[edge.source], plan.nodes[edge.target]
        if edge.source == edge.target:
            loops = [each.identity for each in self.scene.edges if each.source == each.target == edge.source]
            return loop(one.place, one.radius, loops.index(edge.identity), headed=self.arrows)
        ends = (one.place, self._rim(edge.source, one)), (other.place, self._rim(edge.target, other))
        return curve(*ends, plan.edges[edge.identity].control, headed=self.arrows)

    def _words(self, edge: Edge, planned: EdgePlan, size: float) -> Markup:
        """Draw the label of an edge, or nothing if there is no room.

        Several lines of text are grouped.
        """
        if not planned.worded or not any(planned.lines):
            return Markup()
        return _lines(planned.lines, planned.at, size, self._edge_style(edge).ink)

    def _node(self, node: Node, plan: DrawingPlan) -> Markup:
        mark, planned = self.scene.marked.nodes.get(node.id), plan.nodes[node.id]
        told = element("title", _full_node(node, mark or "", self.most))
        parts = [told, shape(self.scene.look(node), planned.place, planned.radius, ghost=mark == "removed")]
        if mark:
            parts.append(badge(MARKS[mark], planned.place, planned.radius))
        if planned.named:
            (x, y), (across, down) = planned.place, planned.beside
            ink = MARKS[mark].ink if mark else "#111"
            parts.append(_lines(planned.lines, (x + across, y + down), plan.name_size, ink))
        return element("g", *parts)

    def _edge_style(self, edge: Edge) -> Style:
        mark = self.scene.marked.edges.get(edge.identity)
        return MARKS[mark] if mark else styles(faint=bool(self.scene.marked.said))

    def _rim(self, id: str, planned: NodePlan) -> float:
        return planned.radius + (5 if id in self.scene.marked.nodes else 0)  # the ring

    # --- legend, note and background ---

    def background(self) -> Markup:
        """Draw a white background, also for dark notebooks, and a note if there is nothing to draw."""
        paper = element("rect", width=self.width, height=self.height, fill="#fff")
        if self.scene.nodes:
            return paper
        return joined([paper, _text(NO_NODES, self.width / 2, self.height / 2, 18, "#555")])

    def _legend_entries(self) -> tuple[list[Markup], int]:
        """Build the legend entries for labels and marks, and return them with the number of rows, at most
        two.
        """
        drawn = {node.labels[0] for node in self.scene.nodes if node.labels}
        used = [label for label in self.scene.labels if label in drawn]
        looks = {label: look_of(number) for number, label in enumerate(self.scene.labels)}
        entries = [(shape(looks[label], (0, 0), 7), shortened(label, 24)) for label in used]
        if any(not node.labels for node in self.scene.nodes) and used:
            entries.append((shape(ROUND, (0, 0), 7), "no label"))
        marks = {word: badge(MARKS[word], (0, 0), 4) for word in self.scene.kinds_of_marks}
        sample = shape(ROUND, (0, 0), 4)
        entries = [(joined([sample, sign]), f" {word}") for word, sign in marks.items()] + entries
        if self.scene.type_of_all:
            bar = draw_rect(-7, -1, 14, 1.5, styles(faint=False).colour)
            entries.append((bar, f"every line: {shortened(self.scene.type_of_all, 40)}"))
        made, x, y = [], 20.0, _FIRST_ROW
        for number, (sample, text) in enumerate(entries):
            space = text_width(text, 12) + 42
            if x + space > self.width - (110 if y > _FIRST_ROW else 10):
                if y > _FIRST_ROW:
                    more = f"… {len(entries) - number} more"
                    made.append(_text(more, x, y + 4, 12, "#333", anchor="start"))
                    break
                x, y = 20.0, _FIRST_ROW + _ROW
            made.append(element("g", sample, transform=f"translate({x:.0f} {y:.0f})"))
            left = x + (18 if text.startswith(" ") else 13)
            made.append(_text(text, left, y + 4, 12, "#333", anchor="start"))
            x += space
        return made, 0 if not made else 1 + (y > _FIRST_ROW)

    def legend(self) -> Markup:
        """Draw the legend of shapes, colours and marks."""
        return element("g", *self.entries)

    def note(self, plan: DrawingPlan) -> Markup:
        """Draw the notes on what is left out, and on labels without room."""
        lines = self._note_lines(plan)
        first = self.height - 7 - _NOTE * (len(lines) - 1)
        return joined(
            _text(line, 12, first + _NOTE * number, 11, "#333", anchor="start")
            for number, line in enumerate(lines)
        )

    def _note_lines(self, plan: DrawingPlan | None) -> list[str]:
        said = [self.scene.left_out(WHICH_FIRST)]
        if plan:
            said += plan.notes
            said.append("Some names or words have no room: the table has them all." if plan.silent else "")
        return fitted("  ".join(filter(None, said)), self.width - 24.0, 11, _NOTE_LINES)[0]


def _lines(lines: Sequence[str], middle: Place, size: float, colour: str) -> Markup:
    """Draw lines of text centred at a point, grouped if there are several."""
    first = middle[1] - (len(lines) - 1) * size * 0.61 + size * 0.35
    made = [
        _text(line, middle[0], first + number * size * 1.22, size, colour)
        for number, line in enumerate(lines)
    ]
    return made[0] if len(made) == 1 else element("g", *made)


def _text(line: str, x: float, y: float, size: float, colour: str, anchor: str = "middle") -> Markup:
    return draw_text(line, x, y, size, colour, text_anchor=anchor, **HALO)


def _full_node(node: Node, mark: str, most: int) -> str:
    about = [node.text, f"id: {node.id}", f"labels: {', '.join(node.labels) or 'none'}", mark]
    return _full(about, node.properties, most)


def _full_edge(edge: Edge, mark: str, most: int) -> str:
    key = f"key: {edge.key}" if edge.key else ""
    about = [f"{edge.source} --[{edge.type}]--> {edge.target}", key, mark]
    return _full(about, edge.properties, most)


def _full(lines: list[str], properties: Mapping[str, Json], most: int) -> str:
    values = (
        f"{name}: {json.dumps(value, ensure_ascii=False, default=str)}" for name, value in properties.items()
    )
    told = filter(None, (*lines, *values))
    return "\n".join(line if len(line) <= most else f"{line[: most - 1]}…" for line in told)
