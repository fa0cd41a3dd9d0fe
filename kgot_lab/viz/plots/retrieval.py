"""Plots of a recall report: recall at k, two systems question by question, and time against recall."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, require_known
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.reports import Report
from kgot_lab.evaluation.runs import Run
from kgot_lab.evaluation.significance import Estimate, intervals, wins_ties_losses
from kgot_lab.evaluation.tables import format_decimal, format_signed
from kgot_lab.similarity.delta import BAND_BOUNDARIES, BANDS, TextPair, Thresholds, count_by_band
from kgot_lab.types import Edge
from kgot_lab.viz.plots.figure import (
    BASELINE_PEN,
    BEST_PEN,
    FAINT,
    INK,
    MUTED,
    Pen,
    Plot,
    annotate,
    draw_diagonal,
    empty_plot,
    line_pen,
    new_figure,
    place_legend_outside,
    plot,
    short_label,
)

_MAX_K = 20
_MAX_SYSTEMS = 10  # maximum systems that a reader can distinguish in a plot
_MAX_BANDS = 3  # maximum systems of which each has a band
CONTROL_PREFIX = "control"  # prefix of the names of negative controls
SHARE_TICKS = (0, 0.2, 0.4, 0.6, 0.8, 1)
WIN_COLOUR, LOSS_COLOUR = "#009E73", "#D55E00"


@check_arguments
def recall_curves(report: Report, systems: Sequence[str] = ()) -> Plot:
    """Plot recall at k for some systems, by default those of `shown_systems`.

    The baseline and its rival have a band, their 95 % interval. With three systems or fewer each has a band.
    The numbers have the interval of every system. Raises UnknownName if the report lacks a system.
    """
    names = _checked_systems(report, systems) or shown_systems(report)
    depth = min(_MAX_K, *(run.kept for run in report.runs))
    ks = list(range(1, depth + 1))
    recall_by_system = _recall_by_k([run for run in report.runs if run.system in names], report, ks)
    with new_figure(8.4, 4.6) as (figure, [axes]):
        for number, (name, points) in enumerate(recall_by_system.items()):
            is_highlighted = name in (report.plan.baseline, challenger(report))
            pen = _system_pen(name, report, list(recall_by_system))
            width = 2.2 if is_highlighted else 1.2
            style = {"markevery": (number % 4, 4), "linewidth": width, "zorder": 2 + is_highlighted}
            means = [point.mean for point in points]
            axes.plot(ks, means, label=_system_label(name, report), **pen.line, **style)
            if is_highlighted or len(recall_by_system) <= _MAX_BANDS:
                low, high = [point.low for point in points], [point.high for point in points]
                axes.fill_between(ks, low, high, color=pen.colour, alpha=0.14, linewidth=0)
                axes.plot(ks, low, ks, high, color=pen.colour, linestyle=pen.dashes, linewidth=0.5)
        axes.set(xlabel="k", ylabel="recall@k", xlim=(1, depth), xticks=[1, *range(5, depth + 1, 5)])
        place_legend_outside(axes)
        rows = [
            {"system": name, "k": k, "recall": e.mean, "low": e.low, "high": e.high, "questions": e.n}
            for name, points in recall_by_system.items()
            for k, e in zip(ks, points, strict=True)
        ]
        return plot(figure, _format_recall(report, recall_by_system, depth), rows)


@check_arguments
def scatter(report: Report, first: str = "", second: str = "", *, measure: str = "") -> Plot:
    """Plot two systems question by question: how many questions have each pair of values.

    The default systems are the baseline and its rival. Above the diagonal the second system is better.
    `measure` is one of the report, by default its primary one. Raises UnknownName if a system or the measure
    is unknown.
    """
    first, second = first or report.plan.baseline, second or challenger(report)
    measure = measure or report.plan.primary
    systems = _checked_systems(report, (first, second))
    across, up = (report.scores[name].per_query(measure) for name in systems)
    pairs = Counter((round(across[query], 4), round(up[query], 4)) for query in across)
    wins, ties, losses = wins_ties_losses([up[query] - across[query] for query in across])
    # a fine-grained measure has many pairs: then only the size shows the count
    largest, has_few_values = (max(pairs.values()), len(pairs) <= 25)
    with new_figure(5.2, 5.2) as (figure, [axes]):
        draw_diagonal(axes)
        # small marks are drawn over large ones
        for (x, y), count in sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0])):
            colour = WIN_COLOUR if y > x else LOSS_COLOUR if y < x else FAINT
            size = 160 + 900 * count / largest if has_few_values else max(9, min(36, 1000 / largest) * count)
            axes.scatter([x], [y], s=size, color=colour, alpha=0.55, edgecolor=INK, linewidths=0.5, zorder=2)
            if has_few_values:
                axes.text(x, y, str(count), ha="center", va="center", fontsize=9, zorder=3)
        axes.set(xlim=(-0.16, 1.16), ylim=(-0.16, 1.24), aspect="equal")
        axes.set(xticks=SHARE_TICKS, yticks=SHARE_TICKS)
        axes.set_xlabel(f"{measure}, {_system_label(first, report)}")
        axes.set_ylabel(f"{measure}, {_system_label(second, report)}")
        axes.text(-0.12, 1.2, f"{short_label(second)} better: {wins}", fontsize=9, va="top")
        axes.text(1.12, -0.12, f"{short_label(first)} better: {losses}", fontsize=9, ha="right")
        sizes = "" if has_few_values else "; the area of a mark counts questions"
        same = f"{ties} of {len(across)}"
        axes.set_title(f"{same} questions the same{sizes}", fontsize=9, color=MUTED)
        text = f"Questions of {report.dataset.name} by {measure}, {first} across and {second} up: {second} is better in {wins}, "
        rows = [{"across": x, "up": y, "questions": count} for (x, y), count in sorted(pairs.items())]
        return plot(figure, f"{text}{first} in {losses}, and {same} are the same.", rows)


@check_arguments
def pace(report: Report) -> Plot:
    """Plot the time of a query against the primary measure.

    The systems of `shown_systems` have names and intervals, and the others are grey points.
    """
    timed = [run for run in report.runs if math.isfinite(run.latency.median) and run.latency.median > 0]
    if not timed:
        return empty_plot(f"no run of the report on {report.dataset.name} holds times")
    shown = shown_systems(report)
    order = {name: number for number, name in enumerate(shown)}
    with new_figure(8.4, 4.6) as (figure, [axes]):
        for run in sorted(timed, key=lambda run: order.get(run.system, len(shown))):
            row, x = report.row(run.system), [1000 * run.latency.median]
            if run.system not in shown:
                axes.plot(x, [row.mean], "o", markersize=4, color=FAINT, zorder=1)
                continue
            pen, label = _system_pen(run.system, report, shown), _system_label(run.system, report)
            style: dict[str, Any] = {"color": pen.colour, "fmt": pen.marker, "elinewidth": 0.8, "capsize": 2}
            size = 13 if pen.marker == "*" else 7
            style |= {"markersize": size, "markeredgecolor": INK, "markeredgewidth": 0.5}
            error_bar = [[row.mean - row.low], [row.high - row.mean]]
            axes.errorbar(x, [row.mean], yerr=error_bar, label=label, **style)
        axes.set(xscale="log", xlabel="median milliseconds of a query")
        axes.set_ylabel(f"{report.plan.primary}, 95 % interval")
        axes.xaxis.set_major_locator(axes.xaxis.get_major_locator().__class__(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(lambda milliseconds, _: f"{milliseconds:g}")
        axes.xaxis.set_minor_formatter(lambda *_: "")
        axes.margins(x=0.08)
        place_legend_outside(axes)
        return plot(figure, _format_times(report, timed), [_timing_row(run, report) for run in timed])


def challenger(report: Report) -> str:
    """Return the system that the plan expected to be best, or else the best other than the baseline.

    If the baseline is the only system, it is returned.
    """
    others = [run.system for run in report.runs if run.system != report.plan.baseline]
    if report.plan.expected in others:
        return report.plan.expected
    return others[0] if others else report.plan.baseline


def shown_systems(report: Report) -> list[str]:
    """Return the systems that the plots name, best first.

    If there are many, these are the baseline, its rival, and the best others that are not controls.
    """
    systems = [run.system for run in report.runs]
    if len(systems) <= _MAX_SYSTEMS:
        return systems
    first = [report.plan.baseline, challenger(report)]
    best = [system for system in systems if system not in first and not system.startswith(CONTROL_PREFIX)]
    shown = {*first, *best[: _MAX_SYSTEMS - len(first)]}
    return [system for system in systems if system in shown]


# --- parts ---


def _checked_systems(report: Report, systems: Sequence[str]) -> list[str]:
    """Return the names after checking that the report has each.

    Raises UnknownName if one is missing.
    """
    require_known("system", report.scores, *systems)
    return list(systems)


def _recall_by_k(runs: Sequence[Run], report: Report, ks: Sequence[int]) -> dict[str, list[Estimate]]:
    """Return mean recall and its interval at each k for each run, all on the same bootstrap samples."""
    qrels = {query.id: report.dataset.qrels[query.id] for query in report.dataset.queries}
    scores = [score(run, qrels, [f"recall@{k}" for k in ks]) for run in runs]
    values = [list(by_query.values()) for run_scores in scores for by_query in run_scores.values.values()]
    estimates = intervals(np.array(values), rounds=report.plan.rounds, seed=report.plan.seed)
    size = len(ks)
    return {run.system: estimates[n * size : (n + 1) * size] for n, run in enumerate(runs)}


def _system_pen(name: str, report: Report, drawn: Sequence[str]) -> Pen:
    special = {challenger(report): BEST_PEN, report.plan.baseline: BASELINE_PEN}
    return special.get(name) or line_pen([system for system in drawn if system not in special].index(name))


def _system_label(name: str, report: Report) -> str:
    roles = {"baseline": report.plan.baseline, "expected": report.plan.expected}
    return short_label(name) + "".join(f" ({role})" for role, system in roles.items() if system == name)


def _format_recall(report: Report, recall_by_system: dict[str, list[Estimate]], depth: int) -> str:
    at = min(5, depth)
    order = sorted(recall_by_system, key=lambda name: (-recall_by_system[name][at - 1].mean, name))
    means = ", ".join(f"{name} {format_decimal(recall_by_system[name][at - 1].mean)}" for name in order)
    systems = f"{len(recall_by_system)} system" + "s" * (len(recall_by_system) != 1)
    return f"Recall at k from 1 to {depth} for {systems} on {report.dataset.name}. At {at}: {means}."


def _format_times(report: Report, timed: Sequence[Run]) -> str:
    fastest = min(timed, key=lambda run: (run.latency.median, run.system))
    best = max(timed, key=lambda run: report.row(run.system).mean)
    systems = f"{len(timed)} of {len(report.runs)} systems on {report.dataset.name}"
    description = f"Median time of a query against {report.plan.primary} for {systems}."
    return f"{description} Fastest: {_format_point(fastest, report)}. Best: {_format_point(best, report)}."


def _format_point(run: Run, report: Report) -> str:
    return f"{run.system}, {1000 * run.latency.median:.3g} ms, {format_decimal(report.row(run.system).mean)}"


def _timing_row(run: Run, report: Report) -> dict[str, Any]:
    row, times = report.row(run.system), run.latency
    times_row = {"system": run.system, "ms": 1000 * times.median, "ms 95 %": 1000 * times.p95}
    return times_row | {report.plan.primary: row.mean, "low": row.low, "high": row.high}


# Similarity of pairs of texts against that of their skeletons, with the bands of the difference (delta).

_Pairs: TypeAlias = Iterable[TextPair] | Iterable[Edge]
Corner: TypeAlias = NDArray[np.float64]

BAND_PENS = {
    "negative": Pen("#D55E00", "v"),
    "low": Pen("#E69F00", "s"),
    "middle": Pen("#56B4E9", "D"),
    "high": Pen("#0072B2", "o"),
}
BAND_RANGES = {"negative": "delta < 0", "low": "0 to .05", "middle": ".05 to .15", "high": ".15 or more"}
_MAX_SINGLE_MARKS = 400  # maximum pairs drawn individually; with more, those in a cell share a mark
GRID_CELLS = 26  # cells per axis
# areas of a mark in square points: minimum, maximum, number of steps, and that of single pairs
MIN_SIZE, _MAX_SIZE, _SIZE_STEPS, SINGLE_SIZE = (14.0, 150.0, 12, 26.0)


class _Mark(NamedTuple):
    """One or several pairs of a band drawn as one mark: their mean position, and how many were vetoed."""

    band: str
    raw: float
    skeleton: float
    pairs: int
    vetoed: int


@check_arguments
def bands(pairs: _Pairs, *, thresholds: Thresholds | None = None) -> Plot:
    """Plot the similarity of texts against that of their skeletons, with the bands of the delta.

    `pairs` are Pairs or computed edges with `raw` and `skeleton`. Dashed lines separate the bands, and vetoed
    pairs are hollow. `thresholds` draws what an edge needs. If there are more than 400 pairs, nearby ones
    share a mark with an area by their number. Raises BadInput if a pair has no similarities.
    """
    points = [_checked_pair(pair) for pair in pairs]
    if not points:
        return empty_plot("there are no pairs to draw")
    counts, vetoed = count_by_band(pair.band for pair, _ in points), sum(veto for _, veto in points)
    low, high = _frame_corners(points)
    marks = _make_marks(points, (high - low) / GRID_CELLS if len(points) > _MAX_SINGLE_MARKS else None)
    with new_figure(8.2, 5) as (figure, [axes]):
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        axes.set(xlabel="similarity of the texts", ylabel="similarity of the skeletons")
        _draw_band_lines(axes, low, high)
        if thresholds is not None:
            _draw_threshold_region(axes, thresholds, low[0], high[0])
        largest = max(mark.pairs for mark in marks)
        for name in reversed(BANDS):
            _draw_marks(axes, [mark for mark in marks if mark.band == name], BAND_PENS[name], largest)
            label = f"{name} ({BAND_RANGES[name]}): {counts[name]:,}"
            axes.scatter([], [], s=36, label=label, **_mark_style(BAND_PENS[name], hollow=False))
        if vetoed:
            style = _mark_style(Pen(MUTED), hollow=True)
            axes.scatter([], [], s=36, label=f"hollow: vetoed, {vetoed:,}", **style)
        place_legend_outside(axes, gap=0.06)
        if len(points) > _MAX_SINGLE_MARKS:
            axes.get_legend().set_title("the area of a mark counts pairs", {"size": 9})
        return plot(figure, _format_bands(points, counts, vetoed), [mark._asdict() for mark in marks])


# --- parts ---


def _checked_pair(pair: TextPair | Edge) -> tuple[TextPair, bool]:
    """Return a pair with its similarities, and whether a verifier refused it.

    Raises BadInput if the similarities are missing or not finite.
    """
    if isinstance(pair, TextPair):
        return pair, bool(pair.veto)
    try:
        raw, skeleton = (float(pair.properties[name]) for name in ("raw", "skeleton"))
    except (AttributeError, KeyError, TypeError, ValueError):
        type_name = f"{type(pair).__name__}"
        problem = "the plot of bands needs pairs, or edges that say raw and skeleton as delta edges do"
        raise BadInput(f"{problem}; this {type_name} does not") from None
    if not (math.isfinite(raw) and math.isfinite(skeleton)):
        raise BadInput(f"the similarities of {pair.source} and {pair.target} are not finite numbers")
    return TextPair(pair.source, pair.target, raw, skeleton), bool(pair.properties.get("veto"))


def _frame_corners(points: Sequence[tuple[TextPair, bool]]) -> tuple[Corner, Corner]:
    """Return the corners of a frame around the points, with a margin."""
    coordinates = np.array([(pair.raw, pair.skeleton) for pair, _ in points])
    return coordinates.min(axis=0) - 0.04, np.minimum(coordinates.max(axis=0) + 0.04, 1.02)


def _make_marks(points: Sequence[tuple[TextPair, bool]], cell: Corner | None) -> list[_Mark]:
    """Return a mark for each pair, or for each cell and band.

    Vetoed pairs have marks of their own.
    """
    groups: dict[tuple[float, ...], list[tuple[TextPair, bool]]] = {}
    for number, (pair, veto) in enumerate(points):
        cell_key = (number,) if cell is None else (pair.raw // cell[0], pair.skeleton // cell[1])
        groups.setdefault((BANDS.index(pair.band), veto, *cell_key), []).append((pair, veto))
    marks = []
    for _, group in sorted(groups.items(), key=lambda entry: entry[0]):
        raw, skeleton = fmean(pair.raw for pair, _ in group), fmean(pair.skeleton for pair, _ in group)
        marks.append(_Mark(group[0][0].band, raw, skeleton, len(group), sum(veto for _, veto in group)))
    return marks


def _draw_band_lines(axes: Any, low: Corner, high: Corner) -> None:
    """Draw the boundaries between bands, labelled with the delta where they leave the frame."""
    across = np.array([low[0], high[0]])
    for below, above, name in zip(BAND_BOUNDARIES, BAND_BOUNDARIES[1:], BANDS[1:], strict=False):
        style = {"color": BAND_PENS[name].colour, "alpha": 0.12, "linewidth": 0}
        axes.fill_between(across, across + below, across + above, **style)
    for step in BAND_BOUNDARIES:
        axes.plot(across, across + step, color=MUTED, linewidth=0.9, linestyle=(0, (5, 3)), zorder=1)
        label = f"{step:g}".lstrip("0") or "0"
        if high[1] - step <= high[0]:  # the line leaves the frame at the top
            if high[1] - step >= low[0]:
                style = {"ha": "center", "fontsize": 8, "color": MUTED}
                annotate(axes, label, (high[1] - step, high[1]), (0, 3), **style)
        elif high[0] + step >= low[1]:
            annotate(axes, label, (high[0], high[0] + step), (3, -3), ha="left", fontsize=8, color=MUTED)


def _draw_threshold_region(axes: Any, thresholds: Thresholds, left: float, right: float) -> None:
    """Draw the boundary of the region that meets both thresholds."""
    corner = min(max(thresholds.skeleton - thresholds.delta, left), right)
    boundary = [max(thresholds.skeleton, x + thresholds.delta) for x in (left, corner, right)]
    label = f"an edge: skeletons ≥ {format_decimal(thresholds.skeleton)},\ndelta ≥ {format_decimal(thresholds.delta)}"
    axes.plot([left, corner, right], boundary, color=INK, linewidth=1.6, label=label, zorder=3)


def _draw_marks(axes: Any, marks: Sequence[_Mark], pen: Pen, max_pairs: int) -> None:
    """Draw the marks of a band, grouped by size so that the SVG stores each shape once."""
    by_size: dict[tuple[bool, int], list[_Mark]] = {}
    for mark in marks:
        step = round(_SIZE_STEPS * (mark.pairs - 1) / max(1, max_pairs - 1))
        by_size.setdefault((bool(mark.vetoed), step), []).append(mark)
    for (is_hollow, number), group in sorted(by_size.items(), key=lambda entry: entry[0]):
        size = MIN_SIZE + (_MAX_SIZE - MIN_SIZE) * number / _SIZE_STEPS if max_pairs > 1 else SINGLE_SIZE
        coordinates = [mark.raw for mark in group], [mark.skeleton for mark in group]
        axes.scatter(*coordinates, s=size, zorder=2, **_mark_style(pen, hollow=is_hollow))


def _mark_style(pen: Pen, *, hollow: bool) -> dict[str, Any]:
    if hollow:
        return {"marker": pen.marker, "facecolors": "none", "edgecolors": pen.colour, "linewidths": 1}
    return {"marker": pen.marker, "facecolors": pen.colour, "edgecolors": INK, "linewidths": 0.4}


def _format_bands(points: Sequence[tuple[TextPair, bool]], counts: Mapping[str, int], vetoed: int) -> str:
    by_band = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    middle = format_signed(median(pair.delta for pair, _ in points))
    veto_note = f" {vetoed:,} are vetoed." if vetoed else ""
    pairs = f"{len(points):,} pair{'s' * (len(points) != 1)}"
    return f"Similarity of texts against that of their skeletons for {pairs}, by band of delta: {by_band}; median delta {middle}.{veto_note}"
