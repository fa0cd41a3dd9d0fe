"""Guess the winner of each round of a contest before the measurements are shown.

If the contest asks for it, the reader also guesses the margin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from kgot_lab.evaluation.reports import Contest
from kgot_lab.types import Json
from kgot_lab.viz.live import Live, LiveOutput
from kgot_lab.viz.static.drawing import Drawing, draw_circle, draw_rect, draw_text, drawing, wrapped
from kgot_lab.viz.static.markup import Markup, element
from kgot_lab.viz.static.table import Sheet, Table

_WIDTH, _LEFT, _LINE, _ROW = 760, 14, 19, 30
_SIZE, _INK, _MUTED, _EDGE = 13, "#222", "#555", "#999"
_FIRST, _BY = 150, 120  # widths of the first and of the last column
_LONG = 380  # width of the first column if a round is a question


class GuessFirst(LiveOutput):
    """The result of `guess_first`.

    `guessed` has the reader's guess for each revealed round: a system and a margin.
    """

    def __init__(self, contest: Contest) -> None:
        self.contest = contest
        self.guessed: dict[str, tuple[str, float | None]] = {}
        systems = [{"name": name, "told": told} for name, told in contest.systems.items()]
        rounds = [asdict(each) for each in contest.rounds]
        data = {
            "view": "guesses",
            "asks": contest.asks,
            "measure": contest.measure,
            "systems": systems,
            "rounds": rounds,
        }
        self.live = Live(_sheet_of_paper(contest), data, self._heard)

    def score(self) -> str:
        """Return the number of right guesses, and the most that one constant answer would reach."""
        told = [each for each in self.contest.rounds if each.first and each.on in self.guessed]
        if not told:
            return "nothing guessed yet"
        right = sum(self.guessed[each.on][0] in each.first for each in told)
        constant = max(sum(system in each.first for each in told) for system in self.contest.systems)
        return f"{right} of {len(told)} guesses are right; the same answer everywhere gets at most {constant}"

    def table(self) -> Table:
        """Return a table of what was measured in each round."""
        rows = tuple((each.on, " and ".join(each.first) or "open", each.told) for each in self.contest.rounds)
        return Table((Sheet(("on", "first", "told"), rows, len(rows), "What was measured"),))

    def __repr__(self) -> str:
        said = ", ".join(f"{on}: {system}" for on, (system, _) in self.guessed.items())
        return f"<GuessFirst of {len(self.contest.rounds)} rounds, {said or 'nothing guessed yet'}>"

    def _heard(self, message: Mapping[str, Json]) -> Json:
        known = {each.on for each in self.contest.rounds}
        for guess in message.get("guesses") or ():
            match guess:
                case {"on": str(on), "system": str(system), "by": by} if (
                    on in known and system in self.contest.systems
                ):
                    self.guessed[on] = system, float(by) if isinstance(by, int | float) else None
        return {}


def guess_first(contest: Contest) -> GuessFirst:
    """Let the reader guess which system wins each round before the measurements are shown.

    If the contest has no question of its own, the reader also guesses by how much. Where no live view can be
    drawn, the questions are shown to be answered on paper.
    """
    return GuessFirst(contest)


def _sheet_of_paper(contest: Contest) -> Drawing:
    """Draw the questions with boxes to tick, for readers without a live view."""
    best = f"which system has the best {contest.measure} on each set, and by how much before the next?"
    asked = f"Guess before you read on: {contest.asks[:1].lower() + contest.asks[1:] or best}"
    lines = list(wrapped(asked, _WIDTH - 2 * _LEFT, _SIZE * 1.1))
    for name, told in contest.systems.items():
        lines += wrapped(f"{name}: {told}", _WIDTH - 2 * _LEFT, _SIZE * 1.05)
    top = len(lines) * _LINE + 26
    sets = [
        list(wrapped(each, (_LONG if contest.asks else _FIRST) - 2 * _LEFT, _SIZE)) for each in _sets(contest)
    ]
    height = top + 22 + sum(map(_tall, sets)) + 10
    rounds = f"{'Questions' if contest.asks else 'Sets'}: {', '.join(_sets(contest))}."
    alt = " ".join([asked, *(f"{name}: {told}." for name, told in contest.systems.items()), rounds])
    frame = draw_rect(0.5, 0.5, _WIDTH - 1, height - 1, "#fff", stroke=_EDGE)
    words = (
        draw_text(line, _LEFT, 24 + _LINE * number, _SIZE, _INK, bold=number == 0)
        for number, line in enumerate(lines)
    )
    return drawing(alt, _WIDTH, height, frame, *words, *_boxes(contest, top, sets))


def _boxes(contest: Contest, top: float, sets: Sequence[Sequence[str]]) -> Iterator[Markup]:
    first, last = (_LONG, 0) if contest.asks else (_FIRST, _BY)
    step = (_WIDTH - first - last - 2 * _LEFT) / len(contest.systems)
    columns = {name: first + step * (number + 0.5) for number, name in enumerate(contest.systems)}
    for name, x in columns.items():
        yield draw_text(name, x, top + 12, _SIZE, _MUTED, text_anchor="middle")
    if last:
        yield draw_text(
            "by how much?", _WIDTH - last / 2 - _LEFT, top + 12, _SIZE, _MUTED, text_anchor="middle"
        )
    y = top + 22
    for lines in sets:
        yield element("line", x1=_LEFT, x2=_WIDTH - _LEFT, y1=y, y2=y, stroke="#ddd")
        yield from (
            draw_text(line, _LEFT, y + 20 + _LINE * number, _SIZE, _INK) for number, line in enumerate(lines)
        )
        yield from (draw_circle(x, y + 15, 7, "#fff", stroke=_INK) for x in columns.values())
        if last:
            yield element("line", x1=_WIDTH - last, x2=_WIDTH - 2 * _LEFT, y1=y + 20, y2=y + 20, stroke=_INK)
        y += _tall(lines)


def _tall(lines: Sequence[str]) -> int:
    return _ROW + _LINE * (len(lines) - 1)


def _sets(contest: Contest) -> list[str]:
    return [each.on for each in contest.rounds]
