"""Guess the winner of each round of a contest before the measurements are shown.

If the contest asks for it, the reader also guesses the margin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from kgot_lab.evaluation.reports import Contest
from kgot_lab.types import Json
from kgot_lab.viz.live import Live, LiveOutput
from kgot_lab.viz.static.drawing import (
    Drawing,
    draw_circle,
    draw_lines,
    draw_rect,
    draw_text,
    drawing,
    wrap_lines,
)
from kgot_lab.viz.static.markup import Markup, element
from kgot_lab.viz.static.table import Table, sheet

_WIDTH, _MARGIN, _LINE_HEIGHT, _ROW_HEIGHT = 760, 14, 19, 30
_SIZE, _INK, _MUTED, _EDGE = 13, "#222", "#555", "#999"
_FIRST_WIDTH, _MARGIN_WIDTH = 150, 120  # widths of the first and of the last column
_QUESTION_WIDTH = 380  # width of the first column if a round is a question


class GuessFirst(LiveOutput):
    """The result of `guess_first`.

    `guessed` has the reader's guess for each revealed round: a system and a margin.
    """

    def __init__(self, contest: Contest) -> None:
        self.contest = contest
        self.guessed: dict[str, tuple[str, float | None]] = {}
        systems = [{"name": name, "told": description} for name, description in contest.systems.items()]
        rounds = [asdict(entry) for entry in contest.rounds]
        data: dict[str, Json] = {"view": "guesses", "asks": contest.asks, "measure": contest.measure}
        data |= {"systems": systems, "rounds": rounds}
        self.live = Live(_paper_form(contest), data, self._handle_message)

    def score(self) -> str:
        """Return the number of right guesses, and the most that one constant answer would reach."""
        guessed_rounds = [entry for entry in self.contest.rounds if entry.first and entry.on in self.guessed]
        if not guessed_rounds:
            return "nothing guessed yet"
        right = sum(self.guessed[entry.on][0] in entry.first for entry in guessed_rounds)
        times = Counter(system for entry in guessed_rounds for system in entry.first)
        constant = max(times[system] for system in self.contest.systems)
        return f"{right} of {len(guessed_rounds)} guesses are right; the same answer everywhere gets at most {constant}"

    def table(self) -> Table:
        """Return a table of what was measured in each round."""
        rounds = self.contest.rounds
        rows = ((entry.on, " and ".join(entry.first) or "open", entry.told) for entry in rounds)
        return Table((sheet(("on", "first", "told"), rows, "What was measured"),))

    def __repr__(self) -> str:
        said = ", ".join(f"{on}: {system}" for on, (system, _) in self.guessed.items())
        return f"<GuessFirst of {len(self.contest.rounds)} rounds, {said or 'nothing guessed yet'}>"

    def _handle_message(self, message: Mapping[str, Json]) -> Json:
        known = {entry.on for entry in self.contest.rounds}
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


def _paper_form(contest: Contest) -> Drawing:
    """Draw the questions with boxes to tick, for readers without a live view."""
    best = f"which system has the best {contest.measure} on each set, and by how much before the next?"
    instruction = f"Guess before you read on: {contest.asks[:1].lower() + contest.asks[1:] or best}"
    lines = list(wrap_lines(instruction, _WIDTH - 2 * _MARGIN, _SIZE * 1.1))
    for name, description in contest.systems.items():
        lines += wrap_lines(f"{name}: {description}", _WIDTH - 2 * _MARGIN, _SIZE * 1.05)
    top = len(lines) * _LINE_HEIGHT + 26
    width = (_QUESTION_WIDTH if contest.asks else _FIRST_WIDTH) - 2 * _MARGIN
    sets = [list(wrap_lines(name, width, _SIZE)) for name in _round_names(contest)]
    height = top + 22 + sum(map(_row_height, sets)) + 10
    rounds = f"{'Questions' if contest.asks else 'Sets'}: {', '.join(_round_names(contest))}."
    systems = (f"{name}: {description}." for name, description in contest.systems.items())
    alt = " ".join([instruction, *systems, rounds])
    frame = draw_rect(0.5, 0.5, _WIDTH - 1, height - 1, "#fff", stroke=_EDGE)
    top_line = draw_text(lines[0], _MARGIN, 24, _SIZE, _INK, bold=True)
    words = draw_lines(lines[1:], _MARGIN, 24 + _LINE_HEIGHT, _SIZE, _INK, leading=_LINE_HEIGHT)
    return drawing(alt, _WIDTH, height, frame, top_line, words, *_draw_boxes(contest, top, sets))


def _draw_boxes(contest: Contest, top: float, sets: Sequence[Sequence[str]]) -> Iterator[Markup]:
    first, last = (_QUESTION_WIDTH, 0) if contest.asks else (_FIRST_WIDTH, _MARGIN_WIDTH)
    step = (_WIDTH - first - last - 2 * _MARGIN) / len(contest.systems)
    columns = {name: first + step * (number + 0.5) for number, name in enumerate(contest.systems)}
    for name, x in columns.items():
        yield draw_text(name, x, top + 12, _SIZE, _MUTED, text_anchor="middle")
    if last:
        x = _WIDTH - last / 2 - _MARGIN
        yield draw_text("by how much?", x, top + 12, _SIZE, _MUTED, text_anchor="middle")
    y = top + 22
    for lines in sets:
        yield element("line", x1=_MARGIN, x2=_WIDTH - _MARGIN, y1=y, y2=y, stroke="#ddd")
        yield draw_lines(lines, _MARGIN, y + 20, _SIZE, _INK, leading=_LINE_HEIGHT)
        yield from (draw_circle(x, y + 15, 7, "#fff", stroke=_INK) for x in columns.values())
        if last:
            x = _WIDTH - last
            yield element("line", x1=x, x2=_WIDTH - 2 * _MARGIN, y1=y + 20, y2=y + 20, stroke=_INK)
        y += _row_height(lines)


def _row_height(lines: Sequence[str]) -> int:
    return _ROW_HEIGHT + _LINE_HEIGHT * (len(lines) - 1)


def _round_names(contest: Contest) -> list[str]:
    return [each.on for each in contest.rounds]
