"""A retrieval pipeline as a diagram: the name of a stage is its algebra, and here it becomes boxes and arrows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kgot_lab.draw.drawing import Drawing, drawing
from kgot_lab.draw.markup import Markup, element, joined, shortened, text_width
from kgot_lab.retrieval.stage import Stage

JOINS = frozenset({"weighted", "rrf", "strongest"})  # their arguments are lanes, side by side
STARTS = frozenset({"around", "jaccard", "neighbours", "pass-through"})  # their first argument is the stage that they start from
MOST_LETTERS, MOST_BOXES, DEEPEST = 2000, 40, 12  # of a name that is taken apart; any other is one box
LONGEST = 26  # letters of a line in a box
HEIGHT, ROW, EDGE = 32.0, 40.0, 6.0  # of a box, of a row of boxes, around everything
GAP, STEP = 56.0, 34.0  # between boxes where arrows meet or part, and where one follows the other
INK, LINE = "#222222", "#777777"
WEIGHT = re.compile(r"(\d+(?:\.\d+)?(?:e-?\d+)?) (.+)", re.DOTALL)
KEEP = re.compile(r"(.+) % (\d+)", re.DOTALL)


@dataclass(frozen=True)
class Sketch:
    """The boxes and arrows of a pipeline, to stand in a drawing."""

    markup: Markup
    width: float
    height: float


def pipeline(stage: Stage, *, colours: Mapping[str, str] | None = None) -> Drawing:
    """The pipeline of a stage from the question to the ranking, taken apart by its name; what cannot be taken apart is one box.

    Lanes of a fusion stand below each other, with their weights on arrows that are as strong. `colours` paints the arrow of a lane
    by the lane's name.
    """
    drawn = sketch(stage, colours or {})
    alt = f"A pipeline from the question to the ranking: {shortened(stage.name, MOST_LETTERS)}"
    return drawing(alt, drawn.width, drawn.height, drawn.markup)


def sketch(stage: Stage, colours: Mapping[str, str]) -> Sketch:
    """What `pipeline` draws, without the paper."""
    whole = Series((Box("question", kind="end"), parsed(stage.name), Box("ranking", kind="end")))
    width, height = whole.width + 2 * EDGE, ROW * whole.rows + EDGE
    pen = _Pen(colours)
    pen.draw(whole, EDGE, height / 2, ())
    return Sketch(joined([*pen.arrows, *pen.boxes]), width, height)


# --- what a name says -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """One step: its name, and its options below it."""

    name: str
    options: str = ""
    kind: str = "step"  # or "join", "keep", "end"

    rows = 1

    @property
    def lines(self) -> tuple[str, ...]:
        """What is written in it."""
        return tuple(shortened(line, LONGEST) for line in (self.name, self.options) if line)

    @property
    def width(self) -> float:
        """How wide it is drawn."""
        return max(56.0, *(text_width(line, size) + 22 for line, size in zip(self.lines, (13, 11), strict=False)))


@dataclass(frozen=True)
class Series:
    """One thing after the other."""

    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        """How many rows of boxes it takes."""
        return max(part.rows for part in self.parts)

    @property
    def width(self) -> float:
        """How wide it is drawn."""
        return sum(part.width for part in self.parts) + sum(_gap(part) for part in self.parts[1:])


@dataclass(frozen=True)
class Fan:
    """Lanes side by side, each with a label and its own name, and the box that joins them."""

    lanes: tuple[tuple[str, str, Part], ...]
    join: Box

    @property
    def rows(self) -> int:
        """How many rows of boxes it takes."""
        return sum(lane.rows for _, _, lane in self.lanes)

    @property
    def width(self) -> float:
        """How wide it is drawn."""
        return max(lane.width for _, _, lane in self.lanes) + GAP + self.join.width


Part: TypeAlias = Box | Series | Fan


def parsed(name: str) -> Part:
    """The parts of a pipeline by its name; a name that is too long, too deep or not well formed is one box."""
    if len(name) > MOST_LETTERS or not _balanced(name):
        return Box(name or "(no name)")
    part = _parsed(name)
    return part if sum(1 for _ in _boxes(part)) <= MOST_BOXES else Box(name)


def _parsed(name: str) -> Part:
    then = _split(name, " >> ")
    if len(then) > 1:
        return _series([_parsed(part) for part in then])
    if found := KEEP.fullmatch(name):
        return _series([_parsed(found[1]), Box(f"best {found[2]}", kind="keep")])
    if name.startswith("(") and _closing(name) == len(name) - 1:
        return _parsed(name[1:-1])
    verb, bracket, rest = name.partition("(")
    if not (verb and bracket and _closing(name) == len(name) - 1):
        return Box(name.strip() or "(no name)")
    return _call(verb, rest[:-1])


def _call(verb: str, inner: str) -> Part:
    """A step with something in brackets: lanes, the stage it starts from, or options."""
    halves, arguments = _split(inner, "; "), _split(inner, ", ")
    if len(halves) > 1:  # fitted on one half of the questions for the other, so a question goes one of these ways
        return Fan(tuple(("", half, _parsed(half)) for half in halves), Box(verb, "one way for each question", "join"))
    if verb in JOINS:
        lanes = tuple(_lane(argument) for argument in arguments if not re.match(r"\w+=", argument))
        options = ", ".join(argument for argument in arguments if re.match(r"\w+=", argument))
        return Fan(lanes, Box(verb, options, "join")) if lanes else Box(verb, inner)
    if verb in STARTS:
        return _series([_parsed(arguments[0]), Box(verb, ", ".join(arguments[1:]))])
    return Box(verb, inner)


def _lane(argument: str) -> tuple[str, str, Part]:
    """The weight of a lane, its name, and its parts."""
    found = WEIGHT.fullmatch(argument)
    weight, name = (found[1], found[2]) if found else ("", argument)
    return weight, name, _parsed(name)


def _series(parts: Sequence[Part]) -> Series:
    return Series(tuple(inner for part in parts for inner in (part.parts if isinstance(part, Series) else (part,))))


def _boxes(part: Part) -> Iterator[Box]:
    match part:
        case Box():
            yield part
        case Series():
            for inner in part.parts:
                yield from _boxes(inner)
        case Fan():
            for _, _, lane in part.lanes:
                yield from _boxes(lane)
            yield part.join


def _balanced(name: str) -> bool:
    depths = list(_depths(name))
    return not depths or (min(depths) >= 0 and depths[-1] == 0 and max(depths) <= DEEPEST)


def _depths(text: str) -> Iterator[int]:
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        yield depth


def _closing(text: str) -> int:
    """Where the first bracket of a balanced text closes."""
    opened = text.index("(")
    return next(at for at, depth in enumerate(_depths(text)) if at > opened and depth == 0)


def _split(text: str, mark: str) -> list[str]:
    """A text cut at a mark, but not inside brackets."""
    depths, parts, start = list(_depths(text)), [], 0
    for found in re.finditer(re.escape(mark), text):
        if depths[found.start()] == 0:
            parts.append(text[start : found.start()])
            start = found.end()
    return [*parts, text[start:]]


# --- the drawing ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exit:
    """Where an arrow begins, what it says, and how strong it is."""

    x: float
    y: float
    label: str = ""
    colour: str = LINE
    strength: float = 1.4


class _Pen:
    """What is drawn so far."""

    def __init__(self, colours: Mapping[str, str]) -> None:
        self.colours = colours
        self.boxes: list[Markup] = []
        self.arrows: list[Markup] = []

    def draw(self, part: Part, x: float, y: float, sources: Sequence[Exit]) -> tuple[Exit, ...]:
        """Draw a part whose left edge is at x and whose middle is at y, with arrows from its sources; where its own arrows begin."""
        match part:
            case Box():
                self.arrows += [_arrow(source, x, y) for source in sources]
                self.boxes.append(_box(part, x, y))
                return (Exit(x + part.width, y),)
            case Series():
                for number, inner in enumerate(part.parts):
                    x += _gap(inner) if number else 0
                    sources = self.draw(inner, x, y, sources)
                    x += inner.width
                return tuple(sources)
            case Fan():
                return self._fan(part, x, y, sources)

    def _fan(self, fan: Fan, x: float, y: float, sources: Sequence[Exit]) -> tuple[Exit, ...]:
        top, exits = y - ROW * fan.rows / 2, []
        for label, name, lane in fan.lanes:
            (end,) = self.draw(lane, x, top + ROW * lane.rows / 2, sources)
            strength = 1.4 + 4.6 * min(float(label), 1.0) if WEIGHT.fullmatch(f"{label} x") else 1.4
            exits.append(Exit(end.x, end.y, label, self.colours.get(name, LINE), strength))
            top += ROW * lane.rows
        return self.draw(fan.join, x + fan.width - fan.join.width, y, exits)


def _gap(part: Part) -> float:
    """How much room the arrows to a part need."""
    return GAP if isinstance(part, Fan) else STEP


def _box(box: Box, x: float, y: float) -> Markup:
    look = {"end": ("#FFFFFF", 15, 1.0), "join": ("#E8F1F8", 4, 2.0), "keep": ("#F4F4F4", 4, 1.0)}.get(box.kind, ("#FFFFFF", 4, 1.2))
    fill, corner, rim = look
    frame = element(
        "rect", x=x, y=y - HEIGHT / 2, width=box.width, height=HEIGHT, rx=corner, fill=fill, stroke=INK if rim > 1 else "#888888",
        stroke_width=rim,
    )  # fmt: skip
    middle, lines = x + box.width / 2, box.lines
    first = y + 4.5 if len(lines) == 1 else y - 2.0
    said = [_text(line, middle, first + 13 * number, 13 if number == 0 else 11) for number, line in enumerate(lines)]
    return element("g", element("title", " ".join(filter(None, (box.name, box.options)))), frame, *said)


def _text(text: str, x: float, y: float, size: int) -> Markup:
    return element("text", text, x=x, y=y, font_size=size, fill=INK if size == 13 else "#555555", text_anchor="middle")


def _arrow(source: Exit, x: float, y: float) -> Markup:
    """A line that stays on its own row until the gap before its goal."""
    tip, turn = x - 1.0, max(source.x, x - GAP + 6)
    bend = (tip - 8 - turn) / 2
    path = f"M{source.x:.1f} {source.y:.1f} H{turn:.1f} C{turn + bend:.1f} {source.y:.1f} {turn + bend:.1f} {y:.1f} {tip - 8:.1f} {y:.1f}"
    head = f"{tip:.1f},{y:.1f} {tip - 9:.1f},{y - 4.5:.1f} {tip - 9:.1f},{y + 4.5:.1f}"
    line = element("path", d=path, fill="none", stroke=source.colour, stroke_width=source.strength)
    parts = [line, element("polygon", points=head, fill=source.colour)]
    if source.label:
        away = 12 + source.strength / 2 if y < source.y - 1 else -5 - source.strength / 2  # off the side to which the line bends
        label = {"x": source.x + 7, "y": source.y + away, "font_size": 12, "fill": INK, "stroke": "#fff", "stroke_width": 3}
        parts.append(element("text", _number(source.label), paint_order="stroke", **label))
    return joined(parts)


def _number(label: str) -> str:
    """A weight with two decimals at most; any other label as it is."""
    return f"{float(label):.2g}" if WEIGHT.fullmatch(f"{label} x") else label
