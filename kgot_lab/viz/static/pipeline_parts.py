"""The parts of a retrieval pipeline by its name, which is its algebra: steps, one after the other, and lanes
side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kgot_lab.viz.static.markup import shortened, text_width

_JOINS = frozenset({"weighted", "rrf", "strongest"})  # their arguments are lanes, side by side
# their first argument is the stage that they start from
STARTS = frozenset({"around", "jaccard", "neighbours", "pass-through"})
MOST_LETTERS, MOST_BOXES, _DEEPEST = 2000, 40, 12  # of a name that is taken apart; any other is one box
_LONGEST = 26  # characters of a line in a box
GAP, STEP = 56.0, 34.0  # between boxes where arrows meet or part, and where one follows the other
WEIGHT = re.compile(r"(\d+(?:\.\d+)?(?:e-?\d+)?) (.+)", re.DOTALL)
_KEEP = re.compile(r"(.+) % (\d+)", re.DOTALL)


@dataclass(frozen=True)
class StageBox:
    """One step: its name, and its options below it."""

    name: str
    options: str = ""
    kind: str = "step"  # or "join", "keep", "end"

    rows = 1

    @property
    def lines(self) -> tuple[str, ...]:
        """What is written in it."""
        return tuple(shortened(line, _LONGEST) for line in (self.name, self.options) if line)

    @property
    def width(self) -> float:
        """How wide it is drawn."""
        return max(
            56.0, *(text_width(line, size) + 22 for line, size in zip(self.lines, (13, 11), strict=False))
        )


@dataclass(frozen=True)
class Series:
    """One thing after the other."""

    parts: tuple[PipelinePart, ...]

    @property
    def rows(self) -> int:
        """How many rows of boxes it takes."""
        return max(part.rows for part in self.parts)

    @property
    def width(self) -> float:
        """How wide it is drawn."""
        return sum(part.width for part in self.parts) + sum(gap(part) for part in self.parts[1:])


@dataclass(frozen=True)
class Fan:
    """Lanes side by side, each with a label and its own name, and the box that joins them."""

    lanes: tuple[tuple[str, str, PipelinePart], ...]
    join: StageBox

    @property
    def rows(self) -> int:
        """How many rows of boxes it takes."""
        return sum(lane.rows for _, _, lane in self.lanes)

    @property
    def width(self) -> float:
        """How wide it is drawn."""
        return max(lane.width for _, _, lane in self.lanes) + GAP + self.join.width


PipelinePart: TypeAlias = StageBox | Series | Fan


def parsed_pipeline(name: str) -> PipelinePart:
    """The parts of a pipeline by its name; a name that is too long, too deep or not well formed is one box."""
    if len(name) > MOST_LETTERS or not _balanced(name):
        return StageBox(name or "(no name)")
    part = _parsed(name)
    return part if sum(1 for _ in _boxes(part)) <= MOST_BOXES else StageBox(name)


def _parsed(name: str) -> PipelinePart:
    then = _split(name, " >> ")
    if len(then) > 1:
        return _series([_parsed(part) for part in then])
    if found := _KEEP.fullmatch(name):
        return _series([_parsed(found[1]), StageBox(f"best {found[2]}", kind="keep")])
    if name.startswith("(") and _closing(name) == len(name) - 1:
        return _parsed(name[1:-1])
    verb, bracket, rest = name.partition("(")
    if not (verb and bracket and _closing(name) == len(name) - 1):
        return StageBox(name.strip() or "(no name)")
    return _call(verb, rest[:-1])


def _call(verb: str, inner: str) -> PipelinePart:
    """A step with something in brackets: lanes, the stage it starts from, or options."""
    halves, arguments = _split(inner, "; "), _split(inner, ", ")
    # fitted on one half of the questions for the other, so a question goes one of these ways
    if len(halves) > 1:
        return Fan(
            tuple(("", half, _parsed(half)) for half in halves),
            StageBox(verb, "one way for each question", "join"),
        )
    if verb in _JOINS:
        lanes = tuple(_lane(argument) for argument in arguments if not re.match(r"\w+=", argument))
        options = ", ".join(argument for argument in arguments if re.match(r"\w+=", argument))
        return Fan(lanes, StageBox(verb, options, "join")) if lanes else StageBox(verb, inner)
    if verb in STARTS:
        return _series([_parsed(arguments[0]), StageBox(verb, ", ".join(arguments[1:]))])
    return StageBox(verb, inner)


def _lane(argument: str) -> tuple[str, str, PipelinePart]:
    """The weight of a lane, its name, and its parts."""
    found = WEIGHT.fullmatch(argument)
    weight, name = (found[1], found[2]) if found else ("", argument)
    return weight, name, _parsed(name)


def _series(parts: Sequence[PipelinePart]) -> Series:
    return Series(
        tuple(inner for part in parts for inner in (part.parts if isinstance(part, Series) else (part,)))
    )


def _boxes(part: PipelinePart) -> Iterator[StageBox]:
    match part:
        case StageBox():
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
    return not depths or (min(depths) >= 0 and depths[-1] == 0 and max(depths) <= _DEEPEST)


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


def gap(part: PipelinePart) -> float:
    """How much room the arrows to a part need."""
    return GAP if isinstance(part, Fan) else STEP
