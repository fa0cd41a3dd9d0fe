"""Curves of a simulated reader of news: precision and recall of briefings against the rate of each kind of
error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kgot_lab.evaluation.significance import Estimate
from kgot_lab.viz.plots.figure import Plot, legend_below, line_pen, nothing, plot, plot_drawing

_MEASURES = ("precision", "recall")


class BriefingPoint(Protocol):
    """Precision and recall of the briefings of a reader at one rate of errors."""

    @property
    def rate(self) -> float: ...
    @property
    def precision(self) -> Estimate: ...
    @property
    def recall(self) -> Estimate: ...


class BriefingCurve(Protocol):
    """Points for rates of one kind of error."""

    @property
    def kind(self) -> str: ...
    @property
    def points(self) -> Sequence[BriefingPoint]: ...


def briefing_curves(curves: Sequence[BriefingCurve]) -> Plot:
    """A panel for precision and one for recall, a line for each kind of error, bars for 95 % intervals."""
    if not curves:
        return nothing("no curve was given")
    rows = []
    with plot_drawing(9.0, 4.2, columns=2) as (figure, panels):
        for panel, measure in zip(panels, _MEASURES, strict=True):
            for number, curve in enumerate(curves):
                pen, points = line_pen(number), [point for point in curve.points if getattr(point, measure).n]
                found = [getattr(point, measure) for point in points]
                shift = 0.002 * (number - len(curves) / 2)  # so that bars stand beside each other
                rates = [point.rate + shift for point in points]
                panel.plot(
                    rates, [each.mean for each in found], label=curve.kind.replace("_", " "), **pen.line
                )
                panel.vlines(
                    rates,
                    [each.low for each in found],
                    [each.high for each in found],
                    color=pen.colour,
                    linewidth=1,
                )
                rows += [
                    {
                        "errors": curve.kind,
                        "rate": point.rate,
                        "measure": measure,
                        "mean": each.mean,
                        "low": each.low,
                        "high": each.high,
                    }
                    for point, each in zip(points, found, strict=True)
                ]
            panel.set(
                xlabel="rate of errors",
                ylim=(-0.03, 1.03),
                title=f"{measure} of briefings (simulated reader)",
            )
        legend_below(figure)
        ends = (f"{curve.kind}: {_told(curve)}" for curve in curves)
        return plot(figure, f"A simulated reader: briefings as its errors grow. {'; '.join(ends)}.", rows)


def _told(curve: BriefingCurve) -> str:
    last = curve.points[-1]
    return f"precision {last.precision.mean:.2f} and recall {last.recall.mean:.2f} at {last.rate:g}"
