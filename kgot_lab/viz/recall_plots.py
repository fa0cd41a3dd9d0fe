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
from kgot_lab.viz.markup import Markup, escaped, shortened

DEEPEST = 20
MOST = 10  # systems that a reader can tell apart in a plot
CONTROL = "control"  # how the name of a system begins that is there to lose
BASELINE, BEST, REST = "#222222", "#0072B2", "#BBBBBB"
OTHERS = ("#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8A6D00", "#777777", "#6A3D9A")
MARKERS = ("s", "^", "v", "D", "P", "X", "<", ">")
DASHES = ("-", (0, (5, 2)))
LONGEST = 32  # letters of a name in a plot


def curves(report: Report) -> Markup:
    """Recall at k for the systems of `shown`; the baseline and its rival have a band, their 95 % interval."""
    runs = _runs(report)
    depth = min(DEEPEST, *(run.kept for run in report.runs))
    ks = list(range(1, depth + 1))
    with _drawing(8.4, 4.6) as (figure, axes):
        for run in runs:
            marked = run.system in (report.plan.baseline, rival(report))
            reached, look = _recall(run, report, ks), _look(run.system, report)
            line = {"color": look["color"], "linestyle": look["linestyle"], "linewidth": 2.4 if marked else 1.2, "zorder": 2 + marked}
            axes.plot(ks, [sum(values) / len(values) for values in reached], label=_label(run.system, report), **line)
            if marked:
                band = intervals(reached, rounds=report.plan.rounds, seed=report.plan.seed)
                low, high = [point.low for point in band], [point.high for point in band]
                axes.fill_between(ks, low, high, color=look["color"], alpha=0.12, linewidth=0)
        axes.set(xlabel="k", ylabel="recall@k", xlim=(1, depth), xticks=[1, *range(5, depth + 1, 5)])
        _legend(axes)
        return _svg(figure, f"Recall at k from 1 to {depth} for {len(runs)} systems on {report.dataset.name}")


def duel(report: Report) -> Markup:
    """The baseline against its rival, question by question: how many questions lie at each pair of values."""
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
    """The time of a query against the primary measure; the systems of `shown` with name and interval, the others as grey points."""
    timed = [run for run in report.runs if math.isfinite(run.latency.median)]
    named = shown(report)
    with _drawing(8.4, 4.6) as (figure, axes):
        for run in sorted(timed, key=lambda run: named.index(run.system) if run.system in named else len(named)):
            row, x = report.row(run.system), [1000 * run.latency.median]
            if run.system not in named:
                axes.plot(x, [row.mean], "o", markersize=4, color=REST, zorder=1)
                continue
            look = _look(run.system, report)
            style = {"color": look["color"], "fmt": look["marker"], "markersize": 12 if look["marker"] == "*" else 7, "linestyle": "none"}
            reach = [[row.mean - row.low], [row.high - row.mean]]
            axes.errorbar(x, [row.mean], yerr=reach, label=_label(run.system, report), elinewidth=0.8, capsize=2, **style)
        axes.set(xscale="log", xlabel="median milliseconds of a query", ylabel=f"{report.plan.primary}, 95 % interval")
        axes.xaxis.set_major_formatter(lambda milliseconds, _: f"{milliseconds:g}")
        axes.xaxis.set_minor_formatter(lambda *_: "")
        axes.margins(x=0.08)
        if timed:
            _legend(axes)
        return _svg(figure, f"Median time of a query against {report.plan.primary} for {len(timed)} systems on {report.dataset.name}")


def rival(report: Report) -> str:
    """The system that the plan expected to be best, else the best that is not the baseline, else the baseline, which is alone."""
    others = [run.system for run in report.runs if run.system != report.plan.baseline]
    if report.plan.expected in others:
        return report.plan.expected
    return others[0] if others else report.plan.baseline


def shown(report: Report) -> list[str]:
    """The systems that the plots name, best first: of many the baseline, its rival, and the best others that are no controls."""
    systems = [run.system for run in report.runs]
    if len(systems) <= MOST:
        return systems
    first = [report.plan.baseline, rival(report)]
    best = [system for system in systems if system not in first and not system.startswith(CONTROL)]
    kept = {*first, *best[: MOST - len(first)]}
    return [system for system in systems if system in kept]


# --- parts ------------------------------------------------------------------------------------------------------------


def _recall(run: Run, report: Report, ks: Sequence[int]) -> list[list[float]]:
    """Recall at each k, query by query."""
    qrels = {query.id: report.dataset.qrels[query.id] for query in report.dataset.queries}
    scores = score(run, qrels, [f"recall@{k}" for k in ks])
    return [list(values.values()) for values in scores.values.values()]


def _runs(report: Report) -> list[Run]:
    named = shown(report)
    return [run for run in report.runs if run.system in named]


def _look(name: str, report: Report) -> dict[str, Any]:
    if name == report.plan.baseline:
        return {"color": BASELINE, "linestyle": (0, (4, 2)), "marker": "o"}
    if name == rival(report):
        return {"color": BEST, "linestyle": "-", "marker": "*"}
    number = [system for system in shown(report) if system not in (report.plan.baseline, rival(report))].index(name)
    return {"color": OTHERS[number % len(OTHERS)], "linestyle": DASHES[number % 2], "marker": MARKERS[number % len(MARKERS)]}


def _label(name: str, report: Report) -> str:
    return _plain(name) + " (baseline)" * (name == report.plan.baseline) + " (expected)" * (name == report.plan.expected)


def _legend(axes: Any) -> None:
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)


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
