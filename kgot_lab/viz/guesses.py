"""Guess the winner of each round of a contest before the measurements are shown.

If the contest asks for it, the reader also guesses the margin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict

from kgot_lab.evaluation.reports import Contest
from kgot_lab.types import Json
from kgot_lab.viz.live import Live, LiveOutput, StaticOutput, static_output
from kgot_lab.viz.static.markup import bullet_list, element
from kgot_lab.viz.static.table import Table, sheet


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


def _paper_form(contest: Contest) -> StaticOutput:
    """Build a table of the rounds with boxes to tick, for readers without a live view."""
    best = f"which system has the best {contest.measure} on each set, and how far ahead of the next?"
    instruction = f"Guess before you read on: {contest.asks[:1].lower() + contest.asks[1:] or best}"
    margin = [] if contest.asks else [("by how much?", "")]
    boxes = [*((name, "○") for name in contest.systems), *margin]
    columns = "question" if contest.asks else "set", *(name for name, _ in boxes)
    rows = ((entry.on, *(box for _, box in boxes)) for entry in contest.rounds)
    form = Table((sheet(columns, rows, "Your guesses"),))
    systems = bullet_list(f"{name}: {description}" for name, description in contest.systems.items())
    return static_output(form, element("p", element("b", instruction)), systems, form.html)
