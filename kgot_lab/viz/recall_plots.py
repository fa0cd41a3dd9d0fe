"""The plots of the recall report, as SVG that can stand inside an HTML page: no address, no script, text as text."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kgot_lab.errors import NotInstalled
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.reports import Report
from kgot_lab.evaluation.runs import Run
from kgot_lab.evaluation.significance import intervals
from kgot_lab.evaluation.tables import harmless
from kgot_lab.viz.markup import Markup, escaped, shortened, text_width
from kgot_lab.viz.shapes import Box

DEEPEST = 20
BASELINE, BEST = "#222222", "#0072B2"
OTHERS = ("#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8A6D00", "#777777")
LONGEST = 32  # letters of a name in a plot
PIXEL = 100 / 72  # pixels of a point, at the resolution of a figure
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)))


def curves(report: Report) -> Markup:
    """Recall at k for every system; the baseline and the best have a band, their 95 % interval."""
    names = [run.system for run in report.runs]
    depth = min(DEEPEST, *(run.kept for run in report.runs))
    ks = list(range(1, depth + 1))
    with _drawing(8.4, 4.6) as (figure, axes):
        for name, run in zip(names, report.runs, strict=True):
            marked = name in (report.plan.baseline, rival(report))
            reached = _recall(run, report, ks)
            width = 2.4 if marked else 1.1
            axes.plot(ks, [sum(values) / len(values) for values in reached], label=_plain(name), linewidth=width, **_look(name, report))
            if marked:
                band = intervals(reached, rounds=report.plan.rounds, seed=report.plan.seed)
                low, high = [point.low for point in band], [point.high for point in band]
                axes.fill_between(ks, low, high, color=_look(name, report)["color"], alpha=0.12, linewidth=0)
        axes.set(xlabel="k", ylabel="recall@k", xlim=(1, depth), xticks=[1, *range(5, depth + 1, 5)])
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
        return _svg(figure, f"Recall at k from 1 to {depth} for {len(names)} systems on {report.dataset.name}")


def duel(report: Report) -> Markup:
    """The baseline against the best other system, question by question: how many questions lie at each pair of values."""
    first, second, measure = report.plan.baseline, rival(report), report.plan.primary
    ours, theirs = (report.scores[name].per_query(measure) for name in (first, second))
    pairs = Counter((round(ours[query], 4), round(theirs[query], 4)) for query in ours)
    most = max(pairs.values())
    with _drawing(4.8, 4.6) as (figure, axes):
        axes.plot([0, 1], [0, 1], color="#999999", linewidth=1, zorder=1)
        for (x, y), count in sorted(pairs.items()):
            colour = "#009E73" if y > x else "#D55E00" if y < x else "#BBBBBB"
            axes.scatter([x], [y], s=160 + 900 * count / most, color=colour, alpha=0.55, linewidths=0, zorder=2)
            axes.text(x, y, str(count), ha="center", va="center", fontsize=9, zorder=3)
        axes.set(xlim=(-0.16, 1.16), ylim=(-0.16, 1.16), aspect="equal")
        axes.set(xlabel=f"{measure}, {_plain(first)} (baseline)", ylabel=f"{measure}, {_plain(second)}")
        return _svg(figure, f"Questions by {measure} of {first} and of {second} on {report.dataset.name}")


def pace(report: Report) -> Markup:
    """The time of a query against the primary measure with its interval, every system named at the side."""
    timed = [run for run in report.runs if math.isfinite(run.latency.median)]
    rows = [report.row(run.system) for run in timed]
    with _drawing(8.4, 4.6) as (figure, axes):
        for run, row in zip(timed, rows, strict=True):
            reach = [[row.mean - row.low], [row.high - row.mean]]
            look = _look(run.system, report)["color"]
            axes.errorbar([1000 * run.latency.median], [row.mean], yerr=reach, fmt="o", markersize=6, color=look, elinewidth=0.8, capsize=2)
        axes.set(xscale="log", xlabel="median milliseconds of a query", ylabel=f"{report.plan.primary}, 95 % interval")
        axes.xaxis.set_major_formatter(lambda milliseconds, _: f"{milliseconds:g}")
        axes.margins(x=0.2)
        figure.draw_without_rendering()  # settles where the points are, in pixels
        points = [axes.transData.transform((1000 * run.latency.median, row.mean)) for run, row in zip(timed, rows, strict=True)]
        spots = _spots([(float(x), float(y)) for x, y in points], [_plain(run.system) for run in timed])
        for run, row, (side, up) in zip(timed, rows, spots, strict=True):
            axes.annotate(
                _plain(run.system), (1000 * run.latency.median, row.mean), (side * 7, up), textcoords="offset points", fontsize=9,
                va="center", ha="left" if side > 0 else "right", color=_look(run.system, report)["color"],
            )  # fmt: skip
        return _svg(figure, f"Median time of a query against {report.plan.primary} for {len(timed)} systems on {report.dataset.name}")


def rival(report: Report) -> str:
    """The best system that is not the baseline, or the baseline where it is alone."""
    return next((run.system for run in report.runs if run.system != report.plan.baseline), report.plan.baseline)


# --- parts ------------------------------------------------------------------------------------------------------------


def _recall(run: Run, report: Report, ks: Sequence[int]) -> list[list[float]]:
    """Recall at each k, query by query."""
    qrels = {query.id: report.dataset.qrels[query.id] for query in report.dataset.queries}
    scores = score(run, qrels, [f"recall@{k}" for k in ks])
    return [list(values.values()) for values in scores.values.values()]


def _look(name: str, report: Report) -> dict[str, Any]:
    if name == report.plan.baseline:
        return {"color": BASELINE, "linestyle": (0, (4, 2))}
    if name == rival(report):
        return {"color": BEST, "linestyle": "-"}
    others = [run.system for run in report.runs if run.system not in (report.plan.baseline, rival(report))]
    number = others.index(name)
    return {"color": OTHERS[number % len(OTHERS)], "linestyle": DASHES[number // len(OTHERS) % len(DASHES)]}


def _spots(points: Sequence[tuple[float, float]], names: Sequence[str]) -> list[tuple[int, int]]:
    """For each point the side its name goes to (1 right, -1 left) and how far up, in points, so that names cover as little as can be."""
    taken = [Box(x, y, 8 * PIXEL, 8 * PIXEL) for x, y in points]
    chosen = []
    for (x, y), name in zip(points, names, strict=True):
        width = text_width(name, 9 * PIXEL)
        tried = [(side, up) for up in (0, 8, -8, 16, -16, 24, -24, 32, -32) for side in (1, -1)]
        boxes = {(side, up): Box(x + side * (7 * PIXEL + width / 2), y + up * PIXEL, width, 11 * PIXEL) for side, up in tried}
        best = min(tried, key=lambda spot: (sum(boxes[spot].touches(other) for other in taken), tried.index(spot)))
        taken.append(boxes[best])
        chosen.append(best)
    return chosen


def _plain(name: str) -> str:
    """A name as a plot can show it: one short line, and no pair of dollars, which would be read as mathematics."""
    return shortened(harmless(name), LONGEST).replace("$", r"\$")


@contextmanager
def _drawing(width: float, height: float) -> Iterator[tuple[Any, Any]]:
    """An empty plot of this many inches; pyplot and its global state stay out of it."""
    try:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise NotInstalled("benchmark", "matplotlib") from None
    style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "kgot_lab", "font.family": "sans-serif"}
    style |= {"font.sans-serif": ["DejaVu Sans"], "font.size": 10, "figure.dpi": 100}  # that font comes with matplotlib
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a letter that font lacks: the reader's browser has another
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        axes.grid(color="#E5E5E5", linewidth=0.7)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        yield figure, axes


def _svg(figure: Any, description: str) -> Markup:
    """A figure as an <svg> element without the names of other sites that matplotlib writes into a file."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    drawn = text.getvalue()
    drawn = re.sub(r' xmlns(:\w+)?="[^"]*"', "", drawn[drawn.index("<svg") :])
    drawn = re.sub(r'<style type="text/css">.*?</style>', "", drawn, flags=re.DOTALL)  # it would apply to the whole page
    return Markup(drawn.replace("<svg", f'<svg role="img" aria-label="{escaped(description)}"', 1))
