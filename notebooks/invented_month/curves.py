"""How precise and how complete briefings are against the rate at which the reader of the news errs, one curve
for each kind of error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kgot_lab.errors import UnknownName
from kgot_lab.evaluation.significance import Estimate
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal
from kgot_lab.types import Json

from .month import GoldMonth
from .reader import READING_ERRORS, ReadingErrors, SimulatedReader
from .scoring import BriefingPoint, briefing_point, score_month
from .telling import tell_month

ALL_KINDS = "all kinds"  # each kind of error at the rate


@dataclass(frozen=True)
class BriefingCurve:
    """Points for rates of one kind of error of a simulated reader, or of all kinds at once; the others are 0."""

    kind: str
    points: tuple[BriefingPoint, ...]

    @property
    def as_json(self) -> dict[str, Json]:
        """The curve as plain values."""
        return {"kind": self.kind, "points": [asdict(point) for point in self.points]}

    @classmethod
    def of_json(cls, told: dict[str, Any]) -> BriefingCurve:
        """A curve from the values of `as_json`."""
        points = (
            BriefingPoint(row["rate"], Estimate(**row["precision"]), Estimate(**row["recall"]), row["kinds"])
            for row in told["points"]
        )
        return cls(told["kind"], tuple(points))


def briefing_curve(month: GoldMonth, kind: str, rates: Iterable[float], *, seeds: int = 5) -> BriefingCurve:
    """Tell a month with a simulated reader at each rate of a kind of error, once for each seed; raises
    UnknownName for the kind.

    An error that is drawn at a rate is drawn at every higher one.
    """
    if kind not in (ALL_KINDS, *READING_ERRORS):
        raise UnknownName("kind of reading error", kind, (ALL_KINDS, *READING_ERRORS))
    points = []
    for rate in rates:
        given = dict.fromkeys(READING_ERRORS if kind == ALL_KINDS else [kind], rate)
        readers = [SimulatedReader(month, ReadingErrors(**given, seed=seed)) for seed in range(seeds)]
        points.append(
            briefing_point(rate, [score_month(month, tell_month(month, reader).told) for reader in readers])
        )
    return BriefingCurve(kind, tuple(points))


def briefing_grid(curves: Sequence[BriefingCurve]) -> Grid:
    """Curves as a table that says it is of a simulation: precision and recall of each kind, and the frequent
    errors at the highest rate.
    """
    rates = sorted({point.rate for curve in curves for point in curve.points})
    rows = []
    for curve in curves:
        points = {point.rate: point for point in curve.points}
        for name in ("precision", "recall"):
            found: list[Estimate | None] = [
                getattr(points[rate], name) if rate in points else None for rate in rates
            ]
            rows.append(
                (
                    Cell(f"{curve.kind}, {name}"),
                    *(Cell(estimate_told(each) if each else "") for each in found),
                )
            )
    return Grid(
        "Simulated reader: briefings by rate of errors, with 95 % intervals",
        ("errors", *(f"{rate:g}" for rate in rates)),
        tuple(rows),
    )


def kinds_grid(curves: Sequence[BriefingCurve], title: str) -> Grid:
    """What went wrong, by kind: a row for each way to be wrong, a column for each curve's highest rate; a
    month's average.
    """
    last = {f"{curve.kind} {curve.points[-1].rate:g}": curve.points[-1].kinds for curve in curves}
    kinds = list(dict.fromkeys(kind for told in last.values() for kind in told))
    rows = tuple(
        (Cell(kind), *(Cell(f"{told[kind]:.1f}" if kind in told else "") for told in last.values()))
        for kind in kinds
    )
    return Grid(title, ("briefings of a month", *last), rows)


def estimate_told(estimate: Estimate) -> str:
    """An estimate with its interval; nothing where there was nothing to count."""
    return (
        f"{format_decimal(estimate.mean)} ({format_decimal(estimate.low)} to {format_decimal(estimate.high)})"
        if estimate.n
        else "–"
    )
