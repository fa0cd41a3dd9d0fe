"""Guess first: who wins each round of a contest and by how much, before what was measured is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from kgot_lab.draw.drawing import Drawing, drawing
from kgot_lab.draw.markup import Markup, element
from kgot_lab.draw.table import Sheet, Table
from kgot_lab.draw.wrapping import wrapped
from kgot_lab.evaluation.contest import Contest
from kgot_lab.types import Json
from kgot_lab.viz.live import Live

_WIDTH, _LEFT, _LINE, _ROW = 760, 14, 19, 30
_SIZE, _INK, _MUTED, _EDGE = 13, "#222", "#555", "#999"
_FIRST, _BY = 150, 120  # widths of the first and of the last column


class GuessFirst:
    """What `guess_first` shows; `guessed` is what the reader said when the measured was asked for, by round: a system and by how much."""

    def __init__(self, contest: Contest) -> None:
        self.contest = contest
        self.guessed: dict[str, tuple[str, float | None]] = {}
        systems = [{"name": name, "told": told} for name, told in contest.systems.items()]
        rounds = [asdict(each) for each in contest.rounds]
        data = {"view": "guesses", "measure": contest.measure, "systems": systems, "rounds": rounds}
        self.live = Live(_sheet_of_paper(contest), data, self._heard)

    def table(self) -> Table:
        """What was measured in each round."""
        rows = tuple((each.on, " and ".join(each.first) or "open", each.told) for each in self.contest.rounds)
        return Table((Sheet(("on", "first", "told"), rows, len(rows), "What was measured"),))

    def _ipython_display_(self) -> None:
        self.live._ipython_display_()

    def __repr__(self) -> str:
        said = ", ".join(f"{on}: {system}" for on, (system, _) in self.guessed.items())
        return f"<GuessFirst of {len(self.contest.rounds)} rounds, {said or 'nothing guessed yet'}>"

    def _heard(self, message: Mapping[str, Json]) -> Json:
        known = {each.on for each in self.contest.rounds}
        for guess in message.get("guesses") or ():
            match guess:
                case {"on": str(on), "system": str(system), "by": by} if on in known and system in self.contest.systems:
                    self.guessed[on] = system, float(by) if isinstance(by, int | float) else None
        return {}


def guess_first(contest: Contest) -> GuessFirst:
    """Ask which system wins each round and by how much; what was measured is shown once the reader has guessed.

    Where no live view can draw, the questions stand there to be answered on paper.
    """
    return GuessFirst(contest)


def _sheet_of_paper(contest: Contest) -> Drawing:
    """The questions with boxes to tick: what a reader sees where no live view draws."""
    asked = f"Guess before you read on: which system has the best {contest.measure} on each set, and by how much before the next?"
    lines = list(wrapped(asked, _WIDTH - 2 * _LEFT, _SIZE * 1.1))
    for name, told in contest.systems.items():
        lines += wrapped(f"{name}: {told}", _WIDTH - 2 * _LEFT, _SIZE * 1.05)
    top = len(lines) * _LINE + 26
    height = top + _ROW * (len(contest.rounds) + 1) + 10
    alt = " ".join([asked, *(f"{name}: {told}." for name, told in contest.systems.items()), f"Sets: {', '.join(_sets(contest))}."])
    frame = element("rect", x=0.5, y=0.5, width=_WIDTH - 1, height=height - 1, fill="#fff", stroke=_EDGE)
    words = (_text(line, _LEFT, 24 + _LINE * number, bold=number == 0) for number, line in enumerate(lines))
    return drawing(alt, _WIDTH, height, frame, *words, *_boxes(contest, top))


def _boxes(contest: Contest, top: float) -> Iterator[Markup]:
    step = (_WIDTH - _FIRST - _BY - 2 * _LEFT) / len(contest.systems)
    columns = {name: _FIRST + step * (number + 0.5) for number, name in enumerate(contest.systems)}
    for name, x in columns.items():
        yield _text(name, x, top + 12, anchor="middle", colour=_MUTED)
    yield _text("by how much?", _WIDTH - _BY / 2 - _LEFT, top + 12, anchor="middle", colour=_MUTED)
    for number, on in enumerate(_sets(contest), start=1):
        y = top + 12 + _ROW * number
        yield element("line", x1=_LEFT, x2=_WIDTH - _LEFT, y1=y - 20, y2=y - 20, stroke="#ddd")
        yield _text(on, _LEFT, y)
        yield from (element("circle", cx=x, cy=y - 5, r=7, fill="#fff", stroke=_INK) for x in columns.values())
        yield element("line", x1=_WIDTH - _BY, x2=_WIDTH - 2 * _LEFT, y1=y, y2=y, stroke=_INK)


def _sets(contest: Contest) -> list[str]:
    return [each.on for each in contest.rounds]


def _text(words: str, x: float, y: float, *, bold: bool = False, anchor: str = "start", colour: str = _INK) -> Markup:
    weight = "bold" if bold else "normal"
    return element("text", words, x=float(x), y=float(y), font_size=_SIZE, fill=colour, text_anchor=anchor, font_weight=weight)
