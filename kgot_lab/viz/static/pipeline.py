"""Draw a retrieval pipeline as a diagram of boxes and arrows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from kgot_lab.arguments import check_arguments
from kgot_lab.retrieval.stage import Stage
from kgot_lab.viz.static.drawing import (
    HALO,
    Drawing,
    draw_arrow_head,
    draw_path,
    draw_rect,
    draw_text,
    drawing,
)
from kgot_lab.viz.static.markup import Markup, concat, element, shorten, text_width
from kgot_lab.viz.static.table import sheet

# The parts of a pipeline: steps in sequence, and retrievers in parallel.

MAX_NAME_LENGTH, MAX_BOXES, _MAX_DEPTH = 2000, 40, 12  # limits of a drawn pipeline; any other is one box
_MAX_LINE_LENGTH = 26  # maximum characters of a line in a box
GAP, STEP = 56.0, 34.0  # gap between boxes where arrows join or split, and between steps in sequence
_TRUNCATION = re.compile(r"(.+) % (\d+)", re.DOTALL)


@dataclass(frozen=True)
class StageBox:
    """A step: its name, and its options below it."""

    name: str
    options: str = ""
    kind: str = "step"  # or "join", "keep", "end"

    rows = 1

    @property
    def lines(self) -> tuple[str, ...]:
        """The text in the box."""
        return tuple(shorten(line, _MAX_LINE_LENGTH) for line in (self.name, self.options) if line)

    @property
    def width(self) -> float:
        """The width of the drawing."""
        lines = zip(self.lines, (13, 11), strict=False)
        return max(56.0, *(text_width(line, size) + 22 for line, size in lines))


@dataclass(frozen=True)
class Series:
    """Steps in sequence."""

    parts: tuple[PipelinePart, ...]

    @property
    def rows(self) -> int:
        """The number of rows of boxes."""
        return max(part.rows for part in self.parts)

    @property
    def width(self) -> float:
        """The width of the drawing."""
        return sum(part.width for part in self.parts) + sum(arrow_gap(part) for part in self.parts[1:])


@dataclass(frozen=True)
class Fan:
    """Parallel retrievers, each with a label and a name, and the box that fuses them."""

    branches: tuple[tuple[str, str, PipelinePart], ...]
    join: StageBox

    @property
    def rows(self) -> int:
        """The number of rows of boxes."""
        return sum(branch.rows for _, _, branch in self.branches)

    @property
    def width(self) -> float:
        """The width of the drawing."""
        return max(branch.width for _, _, branch in self.branches) + GAP + self.join.width


PipelinePart: TypeAlias = StageBox | Series | Fan


def pipeline_parts(stage: Stage) -> PipelinePart:
    """Return the parts of which a pipeline is made.

    A pipeline that is too large for a picture becomes one box.
    """
    part = _stage_part(stage)
    is_drawable = len(stage.name) <= MAX_NAME_LENGTH and len(_table_rows(part)) <= MAX_BOXES
    return part if is_drawable else StageBox(stage.name)


def _stage_part(stage: Stage, depth: int = 0) -> PipelinePart:
    names = [f"{label} {each.name}" if label else each.name for label, each in stage.inputs]
    if depth > _MAX_DEPTH:
        return StageBox(stage.name)
    steps, first = list[Stage](), stage
    while len(first.inputs) == 2 and first.name == " >> ".join(each.name for _, each in first.inputs):
        (_, first), (_, last) = first.inputs
        steps.insert(0, last)
    if steps:
        return _flatten_series([_stage_part(each, depth + 1) for each in (first, *steps)])
    if match := _TRUNCATION.fullmatch(stage.name):
        whole = stage.inputs[0][1] if stage.inputs else Stage(match[1], stage.step)
        return _flatten_series([_stage_part(whole, depth + 1), StageBox(f"best {match[2]}", kind="keep")])
    function, bracket, inner = stage.name.partition("(")
    if not (function and bracket and inner.endswith(")")):
        return StageBox(stage.name.strip() or "(no name)")
    options = inner[:-1].removeprefix(", ".join(names)).removeprefix(", ")
    branches = tuple((label, each.name, _stage_part(each, depth + 1)) for label, each in stage.inputs)
    if len(branches) == 1 and not branches[0][0]:
        return _flatten_series([branches[0][2], StageBox(function, options)])
    # fitted on one half of the questions for the other, so a question takes one of the branches
    if branches and inner[:-1] == "; ".join(names):
        options = "one way for each question"
    return Fan(branches, StageBox(function, options, "join")) if branches else StageBox(function, options)


def _flatten_series(parts: Sequence[PipelinePart]) -> Series:
    inner = (part.parts if isinstance(part, Series) else (part,) for part in parts)
    return Series(tuple(chain.from_iterable(inner)))


def arrow_gap(part: PipelinePart) -> float:
    """Return how much room the arrows to a part need."""
    return GAP if isinstance(part, Fan) else STEP


_HEIGHT, _ROW, _EDGE = 32.0, 40.0, 6.0  # heights of a box and of a row, and the margin
_INK, _LINE = "#222222", "#777777"


@check_arguments
def pipeline(stage: Stage, *, colours: Mapping[str, str] | None = None) -> Drawing:
    """Draw the pipeline of a stage from the question to the ranking.

    The retrievers of a fusion are drawn below each other, with arrows
    labelled by weight and as thick as the weight. `colours` maps the name of a retriever to the colour of its
    arrow. The `table` of the drawing has a row for each box.
    """
    whole = Series((StageBox("question", kind="end"), pipeline_parts(stage), StageBox("ranking", kind="end")))
    width, height = whole.width + 2 * _EDGE, _ROW * whole.rows + _EDGE
    pen = _PipelineCanvas(colours or {})
    pen.draw(whole, _EDGE, height / 2, ())
    alt = f"A pipeline from the question to the ranking: {shorten(stage.name, MAX_NAME_LENGTH)}"
    steps = sheet(("number", "step", "options", "after"), _table_rows(whole), "Steps")
    return drawing(alt, width, height, *pen.arrows, *pen.boxes, sheets=[steps])


def _table_rows(whole: PipelinePart) -> Sequence[tuple[str, str, str, str]]:
    """Return the boxes of a pipeline in order: number, step, options and predecessors.

    Predecessors are numbers, with the weights of retrievers.
    """
    rows: list[tuple[str, str, str, str]] = []

    def walk(part: PipelinePart, after: str) -> str:
        match part:
            case StageBox():
                rows.append((str(len(rows) + 1), part.name, part.options, after))
                return rows[-1][0]
            case Series():
                for inner in part.parts:
                    after = walk(inner, after)
                return after
            case Fan():
                ends = [(walk(branch, after), weight) for weight, _, branch in part.branches]
                names = (f"{end} (weight {weight})" if weight else end for end, weight in ends)
                return walk(part.join, ", ".join(names))

    walk(whole, "")
    return rows


# --- the drawing ---


@dataclass(frozen=True)
class ArrowStart:
    """The start of an arrow, its label and its thickness."""

    x: float
    y: float
    label: str = ""
    colour: str = _LINE
    strength: float = 1.4


class _PipelineCanvas:
    """The arrows and boxes drawn so far."""

    def __init__(self, colours: Mapping[str, str]) -> None:
        self.colours = colours
        self.boxes: list[Markup] = []
        self.arrows: list[Markup] = []

    def draw(
        self, part: PipelinePart, x: float, y: float, sources: Sequence[ArrowStart]
    ) -> tuple[ArrowStart, ...]:
        """Draw a part with its left edge at `x` and its middle at `y`, and arrows from its sources.

        Returns where the arrows from the part begin.
        """
        match part:
            case StageBox():
                self.arrows += [_draw_arrow(source, x, y) for source in sources]
                self.boxes.append(_draw_box(part, x, y))
                return (ArrowStart(x + part.width, y),)
            case Series():
                for number, inner in enumerate(part.parts):
                    x += arrow_gap(inner) if number else 0
                    sources = self.draw(inner, x, y, sources)
                    x += inner.width
                return tuple(sources)
            case Fan():
                return self._draw_fan(part, x, y, sources)

    def _draw_fan(
        self, fan: Fan, x: float, y: float, sources: Sequence[ArrowStart]
    ) -> tuple[ArrowStart, ...]:
        top, exits = y - _ROW * fan.rows / 2, []
        for label, name, branch in fan.branches:
            (end,) = self.draw(branch, x, top + _ROW * branch.rows / 2, sources)
            strength = 1.4 + 4.6 * min(float(label or 0), 1.0)
            exits.append(ArrowStart(end.x, end.y, label, self.colours.get(name, _LINE), strength))
            top += _ROW * branch.rows
        return self.draw(fan.join, x + fan.width - fan.join.width, y, exits)


def _draw_box(box: StageBox, x: float, y: float) -> Markup:
    looks = {"end": ("#FFFFFF", 15, 1.0), "join": ("#E8F1F8", 4, 2.0), "keep": ("#F4F4F4", 4, 1.0)}
    fill, corner, rim = looks.get(box.kind, ("#FFFFFF", 4, 1.2))
    edge: dict[str, Any] = {"rx": corner, "stroke": _INK if rim > 1 else "#888888", "stroke_width": rim}
    frame = draw_rect(x, y - _HEIGHT / 2, box.width, _HEIGHT, fill, **edge)
    middle, lines = x + box.width / 2, box.lines
    first = y + 4.5 if len(lines) == 1 else y - 2.0
    texts = [
        _draw_centred_text(line, middle, first + 13 * number, 13 if number == 0 else 11)
        for number, line in enumerate(lines)
    ]
    return element("g", element("title", " ".join(filter(None, (box.name, box.options)))), frame, *texts)


def _draw_centred_text(text: str, x: float, y: float, size: int) -> Markup:
    return draw_text(text, x, y, size, _INK if size == 13 else "#555555", text_anchor="middle")


def _draw_arrow(source: ArrowStart, x: float, y: float) -> Markup:
    """Draw a line that stays on its own row until the gap before its target."""
    tip, turn = x - 1.0, max(source.x, x - GAP + 6)
    bend = (tip - 8 - turn) / 2
    path = f"M{source.x:.1f} {source.y:.1f} H{turn:.1f} C{turn + bend:.1f} {source.y:.1f} {turn + bend:.1f} {y:.1f} {tip - 8:.1f} {y:.1f}"
    line = draw_path(path, source.colour, source.strength)
    parts = [line, draw_arrow_head(tip, tip - 9, y, source.colour)]
    if source.label:
        # on the side away from the bend
        label_offset = 12 + source.strength / 2 if y < source.y - 1 else -5 - source.strength / 2
        x, y = source.x + 7, source.y + label_offset
        parts.append(draw_text(f"{float(source.label):.2g}", x, y, 12, _INK, **HALO))
    return concat(parts)
