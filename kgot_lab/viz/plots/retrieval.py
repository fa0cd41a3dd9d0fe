"""Plots of a recall report: recall at k, two systems question by question, and time against recall."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from statistics import fmean, median
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.reports import Report
from kgot_lab.evaluation.runs import Run
from kgot_lab.evaluation.significance import Estimate, intervals, wins_ties_losses
from kgot_lab.evaluation.tables import format_decimal, format_signed
from kgot_lab.retrieval.stage import Stage
from kgot_lab.similarity.delta import BANDS, STEPS, Pair, Thresholds, per_band
from kgot_lab.types import Edge, Query
from kgot_lab.viz.plots.figure import (
    BASELINE_COLOUR,
    BEST,
    FAINT,
    INK,
    MUTED,
    Pen,
    Plot,
    annotate,
    diagonal,
    line_pen,
    nothing,
    outside_legend,
    plot,
    plot_drawing,
    short_label,
)

_DEEPEST = 20
_MOST_SYSTEMS = 10  # maximum systems that a reader can distinguish in a plot
_FEW = 3  # maximum systems of which each has a band
CONTROL = "control"  # prefix of the names of negative controls
FIFTHS = (0, 0.2, 0.4, 0.6, 0.8, 1)
WON, LOST = "#009E73", "#D55E00"


def recall_curves(report: Report, systems: Sequence[str] = ()) -> Plot:
    """Plot recall at k for some systems, by default those of `shown_systems`.

    The baseline and its rival have a band, their 95 % interval. With three systems or fewer each has a band.
    The numbers have the interval of every system. Raises UnknownName if the report lacks a system.
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
                "recall": each.mean,
                "low": each.low,
                "high": each.high,
                "questions": each.n,
            }
            for name, points in reached.items()
            for k, each in zip(ks, points, strict=True)
        ]
        return plot(figure, _format_recall(report, reached, depth), rows)


def scatter(report: Report, first: str = "", second: str = "", *, measure: str = "") -> Plot:
    """Plot two systems question by question: how many questions have each pair of values.

    The default systems are the baseline and its rival. Above the diagonal the second system is better.
    `measure` is one of the report, by default its primary one. Raises UnknownName if a system or the measure
    is unknown.
    """
    first, second = first or report.plan.baseline, second or rival(report)
    measure = measure or report.plan.primary
    ours, theirs = (report.scores[name].per_query(measure) for name in _known(report, (first, second)))
    pairs = Counter((round(ours[query], 4), round(theirs[query], 4)) for query in ours)
    wins, ties, losses = wins_ties_losses([theirs[query] - ours[query] for query in ours])
    # a fine-grained measure has many pairs: then only the size shows the count
    most, few = (max(pairs.values()), len(pairs) <= 25)
    with plot_drawing(5.2, 5.2) as (figure, [axes]):
        diagonal(axes)
        # small marks are drawn over large ones
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
    """Plot the time of a query against the primary measure.

    The systems of `shown_systems` have names and intervals, and the others are grey points.
    """
    timed = [run for run in report.runs if math.isfinite(run.latency.median) and run.latency.median > 0]
    if not timed:
        return nothing(f"no run of the report on {report.dataset.name} holds times")
    named = shown_systems(report)
    order = {name: number for number, name in enumerate(named)}
    with plot_drawing(8.4, 4.6) as (figure, [axes]):
        for run in sorted(timed, key=lambda run: order.get(run.system, len(named))):
            row, x = report.row(run.system), [1000 * run.latency.median]
            if run.system not in named:
                axes.plot(x, [row.mean], "o", markersize=4, color=FAINT, zorder=1)
                continue
            pen, label = _pen(run.system, report, named), _label(run.system, report)
            look: dict[str, Any] = {
                "color": pen.colour,
                "fmt": pen.marker,
                "markersize": 13 if pen.marker == "*" else 7,
            }
            look |= {"markeredgecolor": INK, "markeredgewidth": 0.5, "elinewidth": 0.8, "capsize": 2}
            far = [[row.mean - row.low], [row.high - row.mean]]
            axes.errorbar(x, [row.mean], yerr=far, label=label, **look)
        axes.set(xscale="log", xlabel="median milliseconds of a query")
        axes.set_ylabel(f"{report.plan.primary}, 95 % interval")
        axes.xaxis.set_major_locator(axes.xaxis.get_major_locator().__class__(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(lambda milliseconds, _: f"{milliseconds:g}")
        axes.xaxis.set_minor_formatter(lambda *_: "")
        axes.margins(x=0.08)
        outside_legend(axes)
        return plot(figure, _format_times(report, timed), [_timed(run, report) for run in timed])


def rival(report: Report) -> str:
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
    if len(systems) <= _MOST_SYSTEMS:
        return systems
    first = [report.plan.baseline, rival(report)]
    best = [system for system in systems if system not in first and not system.startswith(CONTROL)]
    kept = {*first, *best[: _MOST_SYSTEMS - len(first)]}
    return [system for system in systems if system in kept]


# --- parts ---


def _known(report: Report, systems: Sequence[str]) -> list[str]:
    """Return the names after checking that the report has each.

    Raises UnknownName if one is missing.
    """
    for name in systems:
        if name not in report.scores:
            raise UnknownName("system", name, report.scores)
    return list(systems)


def _reached(runs: Sequence[Run], report: Report, ks: Sequence[int]) -> dict[str, list[Estimate]]:
    """Return mean recall and its interval at each k for each run, all on the same bootstrap samples."""
    qrels = {query.id: report.dataset.qrels[query.id] for query in report.dataset.queries}
    scores = [score(run, qrels, [f"recall@{k}" for k in ks]) for run in runs]
    values = [list(by_query.values()) for own in scores for by_query in own.values.values()]
    found = intervals(np.array(values), rounds=report.plan.rounds, seed=report.plan.seed)
    return {run.system: found[number * len(ks) : (number + 1) * len(ks)] for number, run in enumerate(runs)}


def _pen(name: str, report: Report, drawn: Sequence[str]) -> Pen:
    special = {rival(report): BEST, report.plan.baseline: BASELINE_COLOUR}
    return special.get(name) or line_pen([system for system in drawn if system not in special].index(name))


def _label(name: str, report: Report) -> str:
    roles = {"baseline": report.plan.baseline, "expected": report.plan.expected}
    return short_label(name) + "".join(f" ({role})" for role, system in roles.items() if system == name)


def _format_recall(report: Report, reached: dict[str, list[Estimate]], depth: int) -> str:
    at = min(5, depth)
    order = sorted(reached, key=lambda name: (-reached[name][at - 1].mean, name))
    means = ", ".join(f"{name} {format_decimal(reached[name][at - 1].mean)}" for name in order)
    lines = f"{len(reached)} system" + "s" * (len(reached) != 1)
    return f"Recall at k from 1 to {depth} for {lines} on {report.dataset.name}. At {at}: {means}."


def _format_times(report: Report, timed: Sequence[Run]) -> str:
    fastest = min(timed, key=lambda run: (run.latency.median, run.system))
    best = max(timed, key=lambda run: report.row(run.system).mean)
    said = f"Median time of a query against {report.plan.primary} for {len(timed)} of {len(report.runs)} systems on {report.dataset.name}."
    return f"{said} Fastest: {_at(fastest, report)}. Best: {_at(best, report)}."


def _at(run: Run, report: Report) -> str:
    return f"{run.system}, {1000 * run.latency.median:.3g} ms, {format_decimal(report.row(run.system).mean)}"


def _timed(run: Run, report: Report) -> dict[str, Any]:
    row, times = report.row(run.system), run.latency
    told = {"system": run.system, "ms": 1000 * times.median, "ms 95 %": 1000 * times.p95}
    return told | {report.plan.primary: row.mean, "low": row.low, "high": row.high}


# Comparison of systems on several data sets and in the cells of a design, and of the ranks of gold passages
# by two retrievers.

_ALL, _LOCKED = "#0072B2", "#D55E00"
_GUIDE = {"color": "#888888", "linewidth": 0.8, "linestyle": BASELINE_COLOUR.dashes}
FIRST = 5  # typical number of passages in a prompt


def spans(reports: Mapping[str, Report], systems: Sequence[str]) -> Plot:
    """Plot the means of some systems on each data set.

    A dot with its 95 % interval is for all queries, a diamond for the test split. A line marks the baseline.
    Raises BadInput if there is no report or one of them lacks a system.
    """
    if not reports:
        raise BadInput("there is no report to draw; give one or more by name")
    places, rows = list(range(len(systems)))[::-1], []
    with plot_drawing(9.5, 1 + 0.28 * len(systems), columns=len(reports)) as (figure, panels):
        for axes, (name, report) in zip(panels, reports.items(), strict=True):
            found = [report.row(system) for system in systems]
            far = [[row.mean - row.low for row in found], [row.high - row.mean for row in found]]
            look = {"fmt": "o", "color": _ALL, "markersize": 5, "capsize": 2, "label": "all"}
            axes.errorbar([row.mean for row in found], places, xerr=far, **look)
            split = (
                [report.row(system, part="locked").mean for system in systems]
                if "locked" in report.parts
                else []
            )
            if split:
                axes.plot(split, places, "D", color=_LOCKED, markersize=4, fillstyle="none", label="locked")
            axes.axvline(report.row(report.plan.baseline).mean, **_GUIDE)
            axes.set(title=name, xlabel=report.plan.primary, yticks=places)
            axes.set_yticklabels(map(short_label, systems) if axes is panels[0] else [""] * len(systems))
            for row, locked in zip_longest(found, split):
                told = {
                    "data": name,
                    "system": row.system,
                    "mean": row.mean,
                    "low": row.low,
                    "high": row.high,
                }
                rows.append(told | ({"locked": locked} if split else {}))
        panels[0].legend(loc="best", frameon=False)
        measures = ", ".join(dict.fromkeys(report.plan.primary for report in reports.values()))
        said = f"{measures} of {len(systems)} systems on {', '.join(reports)}, with 95 % intervals."
        return plot(figure, said, rows)


def cell_shares(shares: Mapping[str, Mapping[str, float]], *, chance: float = 0.25) -> Plot:
    """Plot the accuracy of each system in each cell of a design, a line for each system.

    Another line marks chance. Raises BadInput if there is no system, or if their cells differ.
    """
    cells = list(next(iter(shares.values()), {}))
    if not cells or any(list(row) != cells for row in shares.values()):
        raise BadInput(
            "the shares of each system are by cell, for one system or more, and the cells of all are the same"
        )
    with plot_drawing(8.4, 4) as (figure, [axes]):
        for number, (system, row) in enumerate(shares.items()):
            axes.plot(
                range(len(cells)), list(row.values()), label=short_label(system), **line_pen(number).line
            )
        axes.axhline(chance, **_GUIDE)
        axes.set(ylabel="share of right answers", ylim=(-0.04, 1.04), xticks=range(len(cells)))
        axes.set_xticklabels(cells)
        outside_legend(axes)
        rows = [
            {"system": name} | {cell: round(row[cell], 3) for cell in cells} for name, row in shares.items()
        ]
        said = f"Share of right answers of {len(shares)} systems in {len(cells)} cells; chance is {chance:g}."
        return plot(figure, said, rows)


def lane_ranks(data: Dataset, across: Stage, up: Stage) -> Plot:
    """Plot the ranks that two retrievers give to each gold passage of the questions.

    A passage that a retriever does not find is put at the last rank. A larger dot represents several
    passages. Lines are drawn behind rank 5. The numbers are the ranks and how many passages have them.
    """
    last = len(data.documents)
    dots: Counter[tuple[int, int]] = Counter()
    for query in data.queries:
        dots.update(zip(_ranks(across, query, data, last), _ranks(up, query, data, last), strict=True))
    with plot_drawing(5.6, 5) as (figure, [axes]):
        places = sorted(dots)
        sizes = [25 * dots[place] for place in places]
        axes.scatter(*zip(*places, strict=True), s=sizes, color=_ALL, alpha=0.6, linewidths=0)
        axes.set(xscale="log", yscale="log", xlabel=f"rank by {across.name}", ylabel=f"rank by {up.name}")
        axes.axvline(FIRST + 0.5, color=_LOCKED)
        axes.axhline(FIRST + 0.5, color=_LOCKED)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")
        rows = [{"across": x, "up": y, "passages": dots[x, y]} for x, y in places]
        said = f"Rank of each gold passage of {data.name} by {across.name} across and by {up.name} up: {dots.total()} passages."
        return plot(figure, said, rows)


def _ranks(lane: Stage, query: Query, data: Dataset, last: int) -> list[int]:
    place = {id: rank for rank, id in enumerate(lane.search(query).ids, start=1)}
    return [place.get(id, last) for id in data.qrels[query.id]]


# Similarity of pairs of texts against that of their skeletons, with the bands of the difference (delta).

_Pairs: TypeAlias = Iterable[Pair] | Iterable[Edge]
Corner: TypeAlias = NDArray[np.float64]

PENS = {
    "negative": Pen("#D55E00", "v"),
    "low": Pen("#E69F00", "s"),
    "middle": Pen("#56B4E9", "D"),
    "high": Pen("#0072B2", "o"),
}
SPANS = {"negative": "delta < 0", "low": "0 to .05", "middle": ".05 to .15", "high": ".15 or more"}
_MOST_PAIRS = 400  # maximum pairs drawn individually; with more, those in a cell share a mark
CELLS = 26  # cells per axis
# areas of a mark in square points: minimum, maximum, number of steps, and that of single pairs
SMALLEST, _LARGEST, _SIZES, ALONE = (14.0, 150.0, 12, 26.0)


class _Mark(NamedTuple):
    """One or several pairs of a band drawn as one mark: their mean position, and how many were vetoed."""

    band: str
    raw: float
    skeleton: float
    pairs: int
    vetoed: int


def bands(pairs: _Pairs, *, thresholds: Thresholds | None = None) -> Plot:
    """Plot the similarity of texts against that of their skeletons, with the bands of the delta.

    `pairs` are Pairs or computed edges with `raw` and `skeleton`. Dashed lines separate the bands, and vetoed
    pairs are hollow. `thresholds` draws what an edge needs. If there are more than 400 pairs, nearby ones
    share a mark with an area by their number. Raises BadInput if a pair has no similarities.
    """
    points = [_point(pair) for pair in pairs]
    if not points:
        return nothing("there are no pairs to draw")
    counts, vetoed = per_band(pair.band for pair, _ in points), sum(veto for _, veto in points)
    low, high = _frame(points)
    marks = _marks(points, (high - low) / CELLS if len(points) > _MOST_PAIRS else None)
    with plot_drawing(8.2, 5) as (figure, [axes]):
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        axes.set(xlabel="similarity of the texts", ylabel="similarity of the skeletons")
        _lines(axes, low, high)
        if thresholds is not None:
            _needed(axes, thresholds, low[0], high[0])
        most = max(mark.pairs for mark in marks)
        for name in reversed(BANDS):
            _drawn(axes, [mark for mark in marks if mark.band == name], PENS[name], most)
            label = f"{name} ({SPANS[name]}): {counts[name]:,}"
            axes.scatter([], [], s=36, label=label, **_ink(PENS[name], hollow=False))
        if vetoed:
            axes.scatter([], [], s=36, label=f"hollow: vetoed, {vetoed:,}", **_ink(Pen(MUTED), hollow=True))
        outside_legend(axes, gap=0.06)
        if len(points) > _MOST_PAIRS:
            axes.get_legend().set_title("the area of a mark counts pairs", {"size": 9})
        return plot(figure, _format_bands(points, counts, vetoed), [mark._asdict() for mark in marks])


# --- parts ---


def _point(pair: Pair | Edge) -> tuple[Pair, bool]:
    """Return a pair with its similarities, and whether a verifier refused it.

    Raises BadInput if the similarities are missing or not finite.
    """
    if isinstance(pair, Pair):
        return pair, bool(pair.veto)
    try:
        raw, skeleton = (float(pair.properties[name]) for name in ("raw", "skeleton"))
    except (AttributeError, KeyError, TypeError, ValueError):
        said = f"{type(pair).__name__}"
        raise BadInput(
            f"the plot of bands needs pairs, or edges that say raw and skeleton as delta edges do; this {said} does not"
        ) from None
    if not (math.isfinite(raw) and math.isfinite(skeleton)):
        raise BadInput(f"the similarities of {pair.source} and {pair.target} are not finite numbers")
    return Pair(pair.source, pair.target, raw, skeleton), bool(pair.properties.get("veto"))


def _frame(points: Sequence[tuple[Pair, bool]]) -> tuple[Corner, Corner]:
    """Return the corners of a frame around the points, with a margin."""
    places = np.array([(pair.raw, pair.skeleton) for pair, _ in points])
    return places.min(axis=0) - 0.04, np.minimum(places.max(axis=0) + 0.04, 1.02)


def _marks(points: Sequence[tuple[Pair, bool]], cell: Corner | None) -> list[_Mark]:
    """Return a mark for each pair, or for each cell and band.

    Vetoed pairs have marks of their own.
    """
    together: dict[tuple[float, ...], list[tuple[Pair, bool]]] = {}
    for number, (pair, veto) in enumerate(points):
        place = (number,) if cell is None else (pair.raw // cell[0], pair.skeleton // cell[1])
        together.setdefault((BANDS.index(pair.band), veto, *place), []).append((pair, veto))
    marks = []
    for _, some in sorted(together.items(), key=lambda each: each[0]):
        raw, skeleton = fmean(pair.raw for pair, _ in some), fmean(pair.skeleton for pair, _ in some)
        marks.append(_Mark(some[0][0].band, raw, skeleton, len(some), sum(veto for _, veto in some)))
    return marks


def _lines(axes: Any, low: Corner, high: Corner) -> None:
    """Draw the boundaries between bands, labelled with the delta where they leave the frame."""
    across = np.array([low[0], high[0]])
    for below, above, name in zip(STEPS, STEPS[1:], BANDS[1:], strict=False):
        look = {"color": PENS[name].colour, "alpha": 0.12, "linewidth": 0}
        axes.fill_between(across, across + below, across + above, **look)
    for step in STEPS:
        axes.plot(across, across + step, color=MUTED, linewidth=0.9, linestyle=(0, (5, 3)), zorder=1)
        words = f"{step:g}".lstrip("0") or "0"
        if high[1] - step <= high[0]:  # the line leaves the frame at the top
            if high[1] - step >= low[0]:
                look = {"ha": "center", "fontsize": 8, "color": MUTED}
                annotate(axes, words, (high[1] - step, high[1]), (0, 3), **look)
        elif high[0] + step >= low[1]:
            annotate(axes, words, (high[0], high[0] + step), (3, -3), ha="left", fontsize=8, color=MUTED)


def _needed(axes: Any, thresholds: Thresholds, left: float, right: float) -> None:
    """Draw the boundary of the region that meets both thresholds."""
    corner = min(max(thresholds.skeleton - thresholds.delta, left), right)
    needed = [max(thresholds.skeleton, x + thresholds.delta) for x in (left, corner, right)]
    label = f"an edge: skeletons ≥ {format_decimal(thresholds.skeleton)},\ndelta ≥ {format_decimal(thresholds.delta)}"
    axes.plot([left, corner, right], needed, color=INK, linewidth=1.6, label=label, zorder=3)


def _drawn(axes: Any, marks: Sequence[_Mark], pen: Pen, most: int) -> None:
    """Draw the marks of a band, grouped by size so that the SVG stores each shape once."""
    by_size: dict[tuple[bool, int], list[_Mark]] = {}
    for mark in marks:
        step = round(_SIZES * (mark.pairs - 1) / max(1, most - 1))
        by_size.setdefault((bool(mark.vetoed), step), []).append(mark)
    for (hollow, number), some in sorted(by_size.items(), key=lambda each: each[0]):
        size = SMALLEST + (_LARGEST - SMALLEST) * number / _SIZES if most > 1 else ALONE
        places = [mark.raw for mark in some], [mark.skeleton for mark in some]
        axes.scatter(*places, s=size, zorder=2, **_ink(pen, hollow=hollow))


def _ink(pen: Pen, *, hollow: bool) -> dict[str, Any]:
    if hollow:
        return {"marker": pen.marker, "facecolors": "none", "edgecolors": pen.colour, "linewidths": 1}
    return {"marker": pen.marker, "facecolors": pen.colour, "edgecolors": INK, "linewidths": 0.4}


def _format_bands(points: Sequence[tuple[Pair, bool]], counts: Mapping[str, int], vetoed: int) -> str:
    by_band = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    middle = format_signed(median(pair.delta for pair, _ in points))
    refused = f" {vetoed:,} are vetoed." if vetoed else ""
    pairs = f"{len(points):,} pair{'s' * (len(points) != 1)}"
    return f"Similarity of texts against that of their skeletons for {pairs}, by band of delta: {by_band}; median delta {middle}.{refused}"
