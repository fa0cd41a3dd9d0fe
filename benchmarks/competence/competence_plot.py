"""Curves of a simulated model: questions solved against the rate of each kind of error, and what a formula
says of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.competence.curves import CompetenceCurve
from kgot_lab.types import Json
from kgot_lab.viz.plots.figure import (
    MUTED,
    Pen,
    Plot,
    empty_plot,
    line_pen,
    new_figure,
    place_legend_below,
    plot,
    short_label,
)

_WIDE = 3  # panels side by side


def competence_curves(given: Sequence[CompetenceCurve] | Mapping[str, Sequence[CompetenceCurve]]) -> Plot:
    """A panel for each kind of error, a line for each setting, bars for 95 % intervals, and crosses for what
    a formula says.

    Curves by name have a panel for each name instead; those in one panel are of one kind of error.
    """
    panels_of = given if isinstance(given, Mapping) else _by_kind(given)
    curves = [curve for each in panels_of.values() for curve in each]
    if not curves:
        return empty_plot("no curve was given")
    pens = {
        name: line_pen(number) for number, name in enumerate(dict.fromkeys(curve.setting for curve in curves))
    }
    columns = min(_WIDE, len(panels_of))
    rows = -(-len(panels_of) // columns)
    with new_figure(3.4 * columns + 0.4, 2.9 * rows + 0.7, rows=rows, columns=columns) as (figure, panels):
        for panel, (name, shown) in zip(panels, panels_of.items(), strict=False):
            for curve in shown:
                _draw(panel, curve, pens[curve.setting])
            panel.set(
                xlabel=f"rate of errors: {shown[0].rate}", ylim=(-0.03, 1.03), title=f"{name} (simulated)"
            )
        for spare in panels[len(panels_of) :]:
            spare.set_axis_off()
        panels[0].set_ylabel("questions solved")
        place_legend_below(figure)
        return plot(figure, _told(curves), [row for curve in curves for row in _numbers(curve)])


def _by_kind(curves: Sequence[CompetenceCurve]) -> dict[str, list[CompetenceCurve]]:
    kinds: dict[str, list[CompetenceCurve]] = {}
    for curve in curves:
        kinds.setdefault(curve.rate, []).append(curve)
    return kinds


def _draw(panel: Any, curve: CompetenceCurve, pen: Pen) -> None:
    rates, solved = [point.rate for point in curve.points], [point.solved for point in curve.points]
    panel.plot(rates, [each.mean for each in solved], label=short_label(curve.setting), **pen.line)
    panel.vlines(
        rates, [each.low for each in solved], [each.high for each in solved], color=pen.colour, linewidth=1
    )
    known = [(point.rate, point.exact) for point in curve.points if point.exact is not None]
    if known:
        panel.plot(*zip(*known, strict=True), "x", color=MUTED, markersize=8, label="by formula")


def _numbers(curve: CompetenceCurve) -> list[dict[str, Json]]:
    return [
        {"errors": curve.rate, "setting": curve.setting, "rate": point.rate, "solved": point.solved.mean, "low": point.solved.low,
         "high": point.solved.high, "wrong": point.wrong.mean, "questions": point.solved.n, "by formula": point.exact, "calls": point.calls}
        for point in curve.points
    ]  # fmt: skip


def _told(curves: Sequence[CompetenceCurve]) -> str:
    ends = (
        f"{curve.rate} errors, {curve.setting}: {curve.points[0].solved.mean:.2f} at {curve.points[0].rate:g}, "
        f"{curve.points[-1].solved.mean:.2f} at {curve.points[-1].rate:g}"
        for curve in curves
    )
    return f"A simulated model: questions solved as its errors grow. {'; '.join(ends)}."
