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
from kgot_lab.viz.plots.figure import Plot, empty_plot, line_pen, new_figure, place_legend_below, plot

from .month import GoldMonth
from .reader import READING_ERRORS, ReadingErrors, SimulatedReader
from .scoring import BriefingPoint, briefing_point, score_month
from .telling import tell_month

ALL_KINDS = "all kinds"  # each kind of error at the rate
_MEASURES = ("precision", "recall")


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
        for name in _MEASURES:
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


def briefing_curves(curves: Sequence[BriefingCurve]) -> Plot:
    """Plot precision and recall of briefings against the error rate, with 95 % intervals.

    Each kind of error has a line.
    """
    if not curves:
        return empty_plot("no curve was given")
    rows = []
    with new_figure(9.0, 4.2, columns=2) as (figure, panels):
        for panel, measure in zip(panels, _MEASURES, strict=True):
            for number, curve in enumerate(curves):
                pen, points = line_pen(number), [point for point in curve.points if getattr(point, measure).n]
                estimates = [getattr(point, measure) for point in points]
                shift = 0.002 * (number - len(curves) / 2)  # so that error bars do not overlap
                rates, label = [point.rate + shift for point in points], curve.kind.replace("_", " ")
                panel.plot(rates, [estimate.mean for estimate in estimates], label=label, **pen.line)
                ends = [estimate.low for estimate in estimates], [estimate.high for estimate in estimates]
                panel.vlines(rates, *ends, color=pen.colour, linewidth=1)
                rows += [
                    {"errors": curve.kind, "rate": point.rate, "measure": measure, "mean": each.mean, "low": each.low, "high": each.high}
                    for point, each in zip(points, estimates, strict=True)
                ]  # fmt: skip
            panel.set(xlabel="rate of errors", ylim=(-0.03, 1.03))
            panel.set_title(f"{measure} of briefings (simulated reader)")
        place_legend_below(figure)
        summary = "; ".join(f"{curve.kind}: {_format_last_point(curve)}" for curve in curves)
        return plot(figure, f"A simulated reader: briefings as its errors grow. {summary}.", rows)


def _format_last_point(curve: BriefingCurve) -> str:
    last = curve.points[-1]
    return f"precision {last.precision.mean:.2f} and recall {last.recall.mean:.2f} at {last.rate:g}"
