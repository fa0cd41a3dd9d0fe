"""A few facts as boxes in columns, so that no line can pass through a box that is not its end.

A line joins boxes of neighbouring columns and runs in the gap between them; all boxes of a column are equally
wide. What would not run so, a fact within a column or over a column, is left out: what was drawn is handed
back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgot_lab.types import Edge
from kgot_lab.viz.static.drawing import draw_arrow_head, draw_path, draw_rect, fitted, line_width
from kgot_lab.viz.static.markup import Markup, element

_STRONG, STRONG_INK, TINT = "#0072B2", "#005A8C", "#E8F1F8"
_FAINT, FAINT_INK = "#A6A6A6", "#666666"
# of a line's turn, in a box, of a caption, between boxes, of an arrow
_BEND, _PAD, _LANE, _ROW_GAP, _HEAD = (56.0, 12.0, 22.0, 14.0, 9.0)
# of a node's caption, its lines, the size of the caption of a line
_WIDEST, _LINES, _CAPTION = (190.0, 3, 13.0)
_LONGEST = 200.0  # of the caption of a line


@dataclass(frozen=True)
class FactSelection:
    """What is to be drawn: facts, the names of their nodes, the node in the middle, and the facts that stand
    out.
    """

    facts: Sequence[Edge]
    names: Mapping[str, str]
    hub: str
    telling: Sequence[Edge]
    is_answer: bool  # whether the hub is the answer itself


@dataclass
class _Box:
    lines: list[str]
    size: float
    strong: bool
    x: float = 0.0
    y: float = 0.0  # of its middle, as x is of its left edge
    width: float = 0.0
    height: float = 0.0


@dataclass(frozen=True)
class FactGraph:
    """The drawing of some facts, its size, and the facts that are in it."""

    markup: Markup
    width: float
    height: float
    drawn: tuple[Edge, ...]


def fact_graph(told: FactSelection) -> FactGraph:
    """Draw facts around a node: what leads to it on the left, where it leads on the right, farther facts
    farther out.
    """
    if not told.facts:
        return FactGraph(Markup(), 0.0, 0.0, ())
    sides = _columns(told)
    drawn = [edge for edge in told.facts if abs(sides[edge.source] - sides[edge.target]) == 1]
    canvas = _FactCanvas(told, sides, drawn)
    boxes = [canvas.node(id) for id in canvas.boxes]
    markup = element("g", *(canvas.line(edge) for edge in drawn), *boxes)
    return FactGraph(markup, canvas.width, canvas.height, tuple(drawn))


def _columns(told: FactSelection) -> dict[str, int]:
    """The column of each node, 0 for the hub: how many facts away it is, to the left of what it leads to."""
    sides: dict[str, int] = {}
    # a part that does not hang together with the hub has a middle of its own
    roots = [told.hub, *(edge.source for edge in told.facts)]
    for root in roots:
        if root in sides:
            continue
        sides[root], queue = 0, [root]
        for node in queue:
            for edge in told.facts:
                if node not in (edge.source, edge.target):
                    continue
                other = edge.target if edge.source == node else edge.source
                if other not in sides:
                    out = 1 if sides[node] > 0 or (sides[node] == 0 and edge.source == node) else -1
                    sides[other] = sides[node] + out
                    queue.append(other)
    return sides


class _FactCanvas:
    """Where each box and each line is."""

    def __init__(self, told: FactSelection, sides: Mapping[str, int], drawn: Sequence[Edge]) -> None:
        self.told, self.sides, self.drawn = told, sides, drawn
        strong = {end for edge in told.telling for end in (edge.source, edge.target)}
        self.boxes = {
            id: self._box(id, id in strong)
            for id in sorted(sides, key=lambda id: (id != told.hub, id not in strong))
        }
        self.columns = {
            side: [id for id in self.boxes if sides[id] == side] for side in sorted(set(sides.values()))
        }
        self._order()
        self.height = max(self._stacked(ids) for ids in self.columns.values())
        # before each column but the first
        self.gaps = {side: self._gap(side) for side in list(self.columns)[1:]}
        self.width = self._place()

    def _box(self, id: str, strong: bool) -> _Box:
        hub = id == self.told.hub
        size = 19.0 if hub else 15.0 if strong else 13.0
        lines, _ = fitted(self.told.names[id], _WIDEST, size * (1.08 if strong else 1.0), _LINES)
        degree = max(len(self._lines_at(id, out)) for out in (-1, 1))
        height = max(
            size * 1.3 * len(lines) + (18 if hub else 12), degree * (_LANE if not hub else _HEAD + 4) + 4
        )
        return _Box(
            lines or [""],
            size,
            strong,
            width=max(line_width(line, size, bold=strong) for line in lines or [""]),
            height=height,
        )

    def _lines_at(self, id: str, out: int) -> list[Edge]:
        """The drawn lines on one side of a box."""
        ends = (
            (edge, edge.target if edge.source == id else edge.source)
            for edge in self.drawn
            if id in (edge.source, edge.target)
        )
        return [edge for edge, other in ends if self.sides[other] == self.sides[id] + out]

    def _order(self) -> None:
        """Boxes of outer columns stand in the order of those they hang on, so that few lines cross."""
        for side in sorted(self.columns, key=abs):
            inner = self.columns.get(side - 1 if side > 0 else side + 1, []) if abs(side) > 1 else []
            if inner:
                self.columns[side].sort(
                    key=lambda id: min(map(inner.index, self._inner(id)), default=len(inner))
                )

    def _inner(self, id: str) -> list[str]:
        ends = {
            end
            for edge in self.drawn
            if id in (edge.source, edge.target)
            for end in (edge.source, edge.target)
        }
        return [end for end in ends if abs(self.sides[end]) < abs(self.sides[id])]

    def _stacked(self, ids: Sequence[str]) -> float:
        return sum(self.boxes[id].height for id in ids) + _ROW_GAP * (len(ids) - 1)

    def _gap(self, side: int) -> float:
        """How wide the gap before a column is: its longest caption and the turn of its lines."""
        own = [
            edge
            for edge in self.drawn
            if {self.sides[edge.source], self.sides[edge.target]} == {side - 1, side}
        ]
        return (
            max((line_width(self._caption(edge), _CAPTION, bold=True) for edge in own), default=0.0)
            + 20
            + _BEND
        )

    def _place(self) -> float:
        x = 0.0
        for side, ids in self.columns.items():
            x += self.gaps.get(side, 0.0)
            width = max(self.boxes[id].width for id in ids) + 2 * _PAD
            y = (self.height - self._stacked(ids)) / 2
            for id in ids:
                box = self.boxes[id]
                box.x, box.width, box.y = x, width, y + box.height / 2
                y += box.height + _ROW_GAP
            x += width
        return x

    def _caption(self, edge: Edge) -> str:
        return (fitted(edge.type, _LONGEST, _CAPTION * 1.08, 1)[0] or [""])[0]

    # --- drawing ---

    def _slot(self, id: str, edge: Edge, out: int) -> tuple[float, float]:
        """Where a line meets a box: the lines of a side stand below each other, in the order of their other
        ends.
        """
        box = self.boxes[id]
        mine = self._lines_at(id, out)
        mine.sort(
            key=lambda one: (
                self.boxes[one.target if one.source == id else one.source].y,
                self.drawn.index(one),
            )
        )
        # room for captions where lines begin
        step = _LANE if abs(self.sides[id] + out) < abs(self.sides[id]) else _HEAD + 4
        y = box.y + (mine.index(edge) - (len(mine) - 1) / 2) * step
        return (box.x + box.width if out > 0 else box.x), y

    def line(self, edge: Edge) -> Markup:
        """A line with its caption: level beside the outer box, then turning to the inner one, with a head at
        its target.
        """
        strong = edge in self.told.telling
        inner, outer = sorted((edge.source, edge.target), key=lambda id: abs(self.sides[id]))
        out = self.sides[outer] - self.sides[inner]
        (x0, y0), (x1, y1) = self._slot(outer, edge, -out), self._slot(inner, edge, out)
        start, end = (
            x0 - out * (_HEAD if edge.target == outer else 0),
            x1 + out * (_HEAD if edge.target == inner else 0),
        )
        turn, middle = end + out * (_BEND - 8), end + out * (_BEND - 8) / 2
        path = f"M{start:.1f} {y0:.1f} H{turn:.1f} C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {end:.1f} {y1:.1f}"
        colour, ink = (_STRONG, STRONG_INK) if strong else (_FAINT, FAINT_INK)
        tip, back, y = (x0, start, y0) if edge.target == outer else (x1, end, y1)
        look = {
            "font_size": _CAPTION,
            "fill": ink,
            "text_anchor": "middle",
            "font_weight": "bold" if strong else None,
        }
        said = f"{self.told.names[edge.source]} – {edge.type} – {self.told.names[edge.target]}"
        return element(
            "g", element("title", said),
            draw_path(path, colour, 3.0 if strong else 1.2),
            draw_arrow_head(tip, back, y, colour),
            element("text", self._caption(edge), x=(start + turn) / 2, y=y0 - 6, **look),
        )  # fmt: skip

    def node(self, id: str) -> Markup:
        """A box with a node's caption; the answer is filled, what no telling fact touches has a pale rim."""
        box, answer = self.boxes[id], id == self.told.hub and self.told.is_answer
        fill, rim = (_STRONG, _STRONG) if answer else (TINT, _STRONG) if box.strong else ("#FFFFFF", _FAINT)
        ink = "#FFFFFF" if answer else "#111111" if box.strong else FAINT_INK
        look: dict[str, Any] = {"rx": 8, "stroke": rim, "stroke_width": 2.0 if box.strong else 1.0}
        frame = draw_rect(box.x, box.y - box.height / 2, box.width, box.height, fill, **look)
        first = box.y - (len(box.lines) - 1) * box.size * 0.65 + box.size * 0.35
        look = {
            "font_size": box.size,
            "fill": ink,
            "text_anchor": "middle",
            "font_weight": "bold" if box.strong else None,
        }
        middle = box.x + box.width / 2
        lines = (
            element("text", line, x=middle, y=first + number * box.size * 1.3, **look)
            for number, line in enumerate(box.lines)
        )
        return element("g", element("title", self.told.names[id]), frame, *lines)
