"""How many questions the loop solves with a model that errs: one curve for each kind of error and each
setting of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks.competence.gold import GoldSet
from benchmarks.competence.plain_facts import PlainFacts
from benchmarks.competence.simulated import ERROR_RATES, UNANSWERED, Competence, Simulated
from kgot_lab.errors import UnknownName
from kgot_lab.evaluation.grading import exact_match
from kgot_lab.evaluation.significance import Estimate, proportion
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal
from kgot_lab.loop.controller import solve, think
from kgot_lab.loop.events import Asked, Refused, Wrote
from kgot_lab.loop.limits import Limits
from kgot_lab.stores.protocol import Store
from kgot_lab.tools.tool import Tool
from kgot_lab.types import Json


@dataclass(frozen=True)
class SimulatedEnd:
    """How a simulated run ended: its answer, whether it is the right one, and what the run took."""

    id: str
    answer: str
    right: bool
    calls: int  # of the model
    writes: int
    refused: int

    @property
    def answered(self) -> bool:
        """Whether it gave an answer, right or wrong."""
        return self.answer != UNANSWERED


def simulated_ends(
    gold: GoldSet,
    tools: Sequence[Tool],
    competence: Competence,
    limits: Limits,
    *,
    store: Callable[[], Store] = PlainFacts,
) -> tuple[SimulatedEnd, ...]:
    """Ask the loop every question of a gold, each with a new store, of a model of this competence."""
    llm, found = Simulated(gold, competence), []
    for chain in gold.chains:
        with closing(store()) as graph:
            events = list(think(chain.question, llm, graph, tools, limits))
        answered = solve(iter(events))
        calls, writes, refused = (
            sum(isinstance(event, kind) for event in events) for kind in (Asked, Wrote, Refused)
        )
        right = bool(exact_match(answered.text, chain.answer))
        found.append(SimulatedEnd(chain.id, answered.text, right, calls, writes, refused))
    return tuple(found)


@dataclass(frozen=True)
class CurvePoint:
    """Questions solved and questions answered wrongly at one rate, and what a formula says of the first where
    there is one.

    `calls` is how often the model was asked for each question, on average; None in what was measured before
    that was noted.
    """

    rate: float
    solved: Estimate
    wrong: Estimate
    exact: float | None = None
    calls: float | None = None


@dataclass(frozen=True, repr=False)
class CompetenceCurve:
    """Questions solved against one rate of errors, all others 0, with one setting of the loop; of a simulated
    model.
    """

    rate: str
    setting: str
    limits: Limits
    points: tuple[CurvePoint, ...]

    @property
    def as_json(self) -> dict[str, Json]:
        """The curve as plain values."""
        return {
            "rate": self.rate,
            "setting": self.setting,
            "limits": self.limits.as_json(),
            "points": list(map(asdict, self.points)),
        }

    def __repr__(self) -> str:
        told = ", ".join(f"{point.rate:g}: {format_decimal(point.solved.mean)}" for point in self.points)
        return f"<simulated, {self.rate} errors, {self.setting}: {told}>"


@dataclass(frozen=True)
class LoopSetting:
    """A setting of the loop under its name, and what a formula says of the questions solved at a rate, where
    there is one.
    """

    name: str
    limits: Limits
    exact: Callable[[float], float] | None = None


def competence_curve(
    gold: GoldSet,
    tools: Sequence[Tool],
    rate: str,
    setting: LoopSetting,
    rates: Iterable[float],
    *,
    competence: Competence | None = None,
) -> CompetenceCurve:
    """Solved questions as one rate of errors grows, with 95 % intervals; `competence` holds the other rates
    and the seed.

    The same questions and seed serve every point, and an error that is drawn at a rate is drawn at every
    higher one. Raises UnknownName.
    """
    if rate not in ERROR_RATES:
        raise UnknownName("rate of errors", rate, ERROR_RATES)
    points = []
    for value in rates:
        changed: dict[str, Any] = {rate: value}
        ends = simulated_ends(gold, tools, replace(competence or Competence(), **changed), setting.limits)
        solved, wrong = (sum(end.right for end in ends), sum(end.answered and not end.right for end in ends))
        exact = setting.exact(value) if setting.exact else None
        calls = sum(end.calls for end in ends) / len(ends)
        points.append(
            CurvePoint(value, proportion(solved, len(ends)), proportion(wrong, len(ends)), exact, calls)
        )
    return CompetenceCurve(rate, setting.name, setting.limits, tuple(points))


def curves_grid(curves: Sequence[CompetenceCurve], title: str) -> Grid:
    """Curves over the same rates as a table that says it is of a simulation: a row each, below it what a
    formula says, and the calls.
    """
    rates = [f"{point.rate:g}".replace("0.", ".") for point in curves[0].points] if curves else []
    rows: list[tuple[Cell, ...]] = []
    for curve in curves:
        shown = (
            f"{format_decimal(point.solved.mean)} ({format_decimal(point.solved.low)} to {format_decimal(point.solved.high)})"
            for point in curve.points
        )
        rows.append((Cell(f"{curve.rate}, {curve.setting}"), *map(Cell, shown)))
        if any(point.exact is not None for point in curve.points):
            exact = ("" if point.exact is None else format_decimal(point.exact) for point in curve.points)
            rows.append((Cell("    by formula"), *map(Cell, exact)))
        if any(point.calls is not None for point in curve.points):
            calls = ("" if point.calls is None else f"{point.calls:.1f}" for point in curve.points)
            rows.append((Cell("    calls a question"), *map(Cell, calls)))
    return Grid(f"Simulated model: {title}", ("errors, setting", *rates), tuple(rows))
