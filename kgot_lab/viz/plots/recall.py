"""The plots of a recall report: recall at each depth, two systems question by question, and time against
recall.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from kgot_lab.errors import UnknownName
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.reports import Report
from kgot_lab.evaluation.runs import Run
from kgot_lab.evaluation.significance import Estimate, counts, intervals
from kgot_lab.evaluation.tables import decimal
from kgot_lab.viz.plots.figure import (
    BASELINE_COLOUR,
    BEST,
    FAINT,
    INK,
    MUTED,
    Pen,
    Plot,
    line_pen,
    nothing,
    outside_legend,
    plot,
    plot_drawing,
    short_label,
)

_DEEPEST = 20
_MOST = 10  # systems that a reader can tell apart in a plot
_FEW = 3  # up to here every line can have its band
CONTROL = "control"  # how the name of a system begins that is there to lose
FIFTHS = (0, 0.2, 0.4, 0.6, 0.8, 1)
WON, LOST = "#009E73", "#D55E00"


def recall_curves(report: Report, systems: Sequence[str] = ()) -> Plot:
    """Recall at k for some systems, by default those of `shown`; the baseline and its rival have a band,
    their 95 % interval.

    Of three systems or fewer each has a band; the numbers hold the interval of every system. Raises
    UnknownName.
    """
    names = _known(report, systems) or shown_systems(report)
    depth = min(_DEEPEST, *(run.kept for run in report.runs))
    ks = list(range(1, depth + 1))
    reached = _reached([run for run in report.runs if run.system in names], report, ks)
    with plot_drawing(8.4, 4.6) as (figure, [axes]):
        for number, (name, points) in enumerate(reached.items()):
            marked = name in (report.plan.baseline, rival(report))
            pen = _pen(name, report, list(reached))
            every = {"markevery": (number % 4, 4), "linewidth": 2.2 if marked else 1.2, "zorder": 2 + marked}
            axes.plot(ks, [point.mean for point in points], label=_label(name, report), **pen.line, **every)
            if marked or len(reached) <= _FEW:
                low, high = [point.low for point in points], [point.high for point in points]
                axes.fill_between(ks, low, high, color=pen.colour, alpha=0.14, linewidth=0)
                axes.plot(ks, low, ks, high, color=pen.colour, linestyle=pen.dashes, linewidth=0.5)
        axes.set(xlabel="k", ylabel="recall@k", xlim=(1, depth), xticks=[1, *range(5, depth + 1, 5)])
        outside_legend(axes)
        rows = [
            {
                "system": name,
                "k": k,
                "recall": point.mean,
                "low": point.low,
                "high": point.high,
                "questions": point.n,
            }
            for name, points in reached.items()
            for k, point in zip(ks, points, strict=True)
        ]
        return plot(figure, _told(report, reached, depth), rows)


def scatter(report: Report, first: str = "", second: str = "", *, measure: str = "") -> Plot:
    """Two systems question by question: how many questions lie at each pair of values; by default the
    baseline and its rival.

    Above the diagonal the second system is better. `measure` is one of the report, by default its primary
    one. Raises UnknownName.
    """
    first, second, measure = (
        first or report.plan.baseline,
        second or rival(report),
        measure or report.plan.primary,
    )
    ours, theirs = (report.scores[name].per_query(measure) for name in _known(report, (first, second)))
    pairs = Counter((round(ours[query], 4), round(theirs[query], 4)) for query in ours)
    wins, ties, losses = counts([theirs[query] - ours[query] for query in ours])
    # a fine measure has many pairs: then the size alone says how many
    most, few = (max(pairs.values()), len(pairs) <= 25)
    with plot_drawing(5.2, 5.2) as (figure, [axes]):
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=BASELINE_COLOUR.dashes, zorder=1)
        # small marks on large ones
        for (x, y), count in sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0])):
            colour = WON if y > x else LOST if y < x else FAINT
            size = 160 + 900 * count / most if few else max(9, min(36, 1000 / most) * count)
            axes.scatter([x], [y], s=size, color=colour, alpha=0.55, edgecolor=INK, linewidths=0.5, zorder=2)
            if few:
                axes.text(x, y, str(count), ha="center", va="center", fontsize=9, zorder=3)
        axes.set(xlim=(-0.16, 1.16), ylim=(-0.16, 1.24), aspect="equal", xticks=FIFTHS, yticks=FIFTHS)
        axes.set(xlabel=f"{measure}, {_label(first, report)}", ylabel=f"{measure}, {_label(second, report)}")
        axes.text(-0.12, 1.2, f"{short_label(second)} better: {wins}", fontsize=9, va="top")
        axes.text(1.12, -0.12, f"{short_label(first)} better: {losses}", fontsize=9, ha="right")
        sizes = "" if few else "; the area of a mark counts questions"
        axes.set_title(f"{ties} of {len(ours)} questions the same{sizes}", fontsize=9, color=MUTED)
        said = f"Questions of {report.dataset.name} by {measure}, {first} across and {second} up: {second} is better in {wins}, "
        rows = [{"across": x, "up": y, "questions": count} for (x, y), count in sorted(pairs.items())]
        return plot(figure, f"{said}{first} in {losses}, and {ties} of {len(ours)} are the same.", rows)


def pace(report: Report) -> Plot:
    """The time of a query against the primary measure; the systems of `shown` with name and interval, the
    others as grey points.
    """
    timed = [run for run in report.runs if math.isfinite(run.latency.median) and run.latency.median > 0]
    if not timed:
        return nothing(f"no run of the report on {report.dataset.name} holds times")
    named = shown_systems(report)
    with plot_drawing(8.4, 4.6) as (figure, [axes]):
        for run in sorted(
            timed, key=lambda run: named.index(run.system) if run.system in named else len(named)
        ):
            row, x = report.row(run.system), [1000 * run.latency.median]
            if run.system not in named:
                axes.plot(x, [row.mean], "o", markersize=4, color=FAINT, zorder=1)
                continue
            pen = _pen(run.system, report, named)
            style = {
                "color": pen.colour,
                "fmt": pen.marker,
                "markersize": 13 if pen.marker == "*" else 7,
                "markeredgecolor": INK,
            }
            reach = [[row.mean - row.low], [row.high - row.mean]]
            axes.errorbar(
                x,
                [row.mean],
                yerr=reach,
                label=_label(run.system, report),
                elinewidth=0.8,
                capsize=2,
                markeredgewidth=0.5,
                **style,
            )
        axes.set(
            xscale="log",
            xlabel="median milliseconds of a query",
            ylabel=f"{report.plan.primary}, 95 % interval",
        )
        axes.xaxis.set_major_locator(axes.xaxis.get_major_locator().__class__(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(lambda milliseconds, _: f"{milliseconds:g}")
        axes.xaxis.set_minor_formatter(lambda *_: "")
        axes.margins(x=0.08)
        outside_legend(axes)
        return plot(figure, _format_times(report, timed), [_timed(run, report) for run in timed])


def rival(report: Report) -> str:
    """The system that the plan expected to be best, else the best that is not the baseline, else the
    baseline, which is alone.
    """
    others = [run.system for run in report.runs if run.system != report.plan.baseline]
    if report.plan.expected in others:
        return report.plan.expected
    return others[0] if others else report.plan.baseline


def shown_systems(report: Report) -> list[str]:
    """The systems that the plots name, best first: of many the baseline, its rival, and the best others that
    are no controls.
    """
    systems = [run.system for run in report.runs]
    if len(systems) <= _MOST:
        return systems
    first = [report.plan.baseline, rival(report)]
    best = [system for system in systems if system not in first and not system.startswith(CONTROL)]
    kept = {*first, *best[: _MOST - len(first)]}
    return [system for system in systems if system in kept]


# --- parts
# ------------------------------------------------------------------------------------------------------------


def _known(report: Report, systems: Sequence[str]) -> list[str]:
    """The names as they came, once it is sure that the report has each; raises UnknownName."""
    for name in systems:
        if name not in report.scores:
            raise UnknownName("system", name, report.scores)
    return list(systems)


def _reached(runs: Sequence[Run], report: Report, ks: Sequence[int]) -> dict[str, list[Estimate]]:
    """Mean recall and its interval at each k for each run, all on the same draws of questions."""
    qrels = {query.id: report.dataset.qrels[query.id] for query in report.dataset.queries}
    scores = [score(run, qrels, [f"recall@{k}" for k in ks]) for run in runs]
    values = [list(by_query.values()) for own in scores for by_query in own.values.values()]
    found = intervals(np.array(values), rounds=report.plan.rounds, seed=report.plan.seed)
    return {run.system: found[number * len(ks) : (number + 1) * len(ks)] for number, run in enumerate(runs)}


def _pen(name: str, report: Report, drawn: Sequence[str]) -> Pen:
    if name == report.plan.baseline:
        return BASELINE_COLOUR
    if name == rival(report):
        return BEST
    return line_pen(
        [system for system in drawn if system not in (report.plan.baseline, rival(report))].index(name)
    )


def _label(name: str, report: Report) -> str:
    return (
        short_label(name)
        + " (baseline)" * (name == report.plan.baseline)
        + " (expected)" * (name == report.plan.expected)
    )


def _told(report: Report, reached: dict[str, list[Estimate]], depth: int) -> str:
    at = min(5, depth)
    order = sorted(reached, key=lambda name: (-reached[name][at - 1].mean, name))
    means = ", ".join(f"{name} {decimal(reached[name][at - 1].mean)}" for name in order)
    lines = f"{len(reached)} system" + "s" * (len(reached) != 1)
    return f"Recall at k from 1 to {depth} for {lines} on {report.dataset.name}. At {at}: {means}."


def _format_times(report: Report, timed: Sequence[Run]) -> str:
    fastest = min(timed, key=lambda run: (run.latency.median, run.system))
    best = max(timed, key=lambda run: report.row(run.system).mean)
    said = f"Median time of a query against {report.plan.primary} for {len(timed)} of {len(report.runs)} systems on {report.dataset.name}."
    return f"{said} Fastest: {_at(fastest, report)}. Best: {_at(best, report)}."


def _at(run: Run, report: Report) -> str:
    return f"{run.system}, {1000 * run.latency.median:.3g} ms, {decimal(report.row(run.system).mean)}"


def _timed(run: Run, report: Report) -> dict[str, Any]:
    row, milliseconds = (
        report.row(run.system),
        {"ms": 1000 * run.latency.median, "ms 95 %": 1000 * run.latency.p95},
    )
    return {
        "system": run.system,
        **milliseconds,
        report.plan.primary: row.mean,
        "low": row.low,
        "high": row.high,
    }
