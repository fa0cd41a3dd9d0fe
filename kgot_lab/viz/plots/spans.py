"""Systems side by side: on several data sets with intervals, in each cell of a design; and where two lanes
rank each gold passage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.reports import Report
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Query
from kgot_lab.viz.plots.figure import (
    BASELINE_COLOUR,
    Plot,
    line_pen,
    outside_legend,
    plot,
    plot_drawing,
    short_label,
)

_ALL, _LOCKED, _LINE = "#0072B2", "#D55E00", "#888888"
FIRST = 5  # as many passages as one would put into a prompt


def spans(reports: Mapping[str, Report], systems: Sequence[str]) -> Plot:
    """What some systems reached on each data set: a dot with its 95 % interval for all queries, a diamond for
    the locked ones.

    A line stands where the baseline is. Raises BadInput without a report, and for a system that one of them
    lacks.
    """
    if not reports:
        raise BadInput("there is no report to draw; give one or more by name")
    places = list(range(len(systems)))[::-1]
    rows = []
    with plot_drawing(9.5, 1 + 0.28 * len(systems), columns=len(reports)) as (figure, panels):
        for axes, (name, report) in zip(panels, reports.items(), strict=True):
            found = [report.row(system) for system in systems]
            means = [row.mean for row in found]
            reach = [[row.mean - row.low for row in found], [row.high - row.mean for row in found]]
            axes.errorbar(
                means, places, xerr=reach, fmt="o", color=_ALL, markersize=5, capsize=2, label="all"
            )
            later = (
                [report.row(system, part="locked").mean for system in systems]
                if "locked" in report.parts
                else []
            )
            if later:
                axes.plot(later, places, "D", color=_LOCKED, markersize=4, fillstyle="none", label="locked")
            axes.axvline(
                report.row(report.plan.baseline).mean,
                color=_LINE,
                linewidth=0.8,
                linestyle=BASELINE_COLOUR.dashes,
            )
            labels = [short_label(system) for system in systems] if axes is panels[0] else []
            axes.set(title=name, xlabel=report.plan.primary, yticks=places)
            axes.set_yticklabels(labels or [""] * len(systems))
            for number, row in enumerate(found):
                locked = {"locked": later[number]} if later else {}
                rows.append(
                    {"data": name, "system": row.system, "mean": row.mean, "low": row.low, "high": row.high}
                    | locked
                )
        panels[0].legend(loc="best", frameon=False)
        return plot(
            figure,
            f"{_measures(reports)} of {len(systems)} systems on {', '.join(reports)}, with 95 % intervals.",
            rows,
        )


def cell_shares(shares: Mapping[str, Mapping[str, float]], *, chance: float = 0.25) -> Plot:
    """The share of right answers of each system in each cell of a design, a line for a system, and one where
    chance is.

    Raises BadInput without a system, and where two have other cells.
    """
    cells = list(next(iter(shares.values()), {}))
    if not cells or any(list(row) != cells for row in shares.values()):
        raise BadInput(
            "the shares of each system are by cell, for one system or more, and the cells of all are the same"
        )
    with plot_drawing(8.4, 4) as (figure, [axes]):
        for number, (system, row) in enumerate(shares.items()):
            axes.plot(
                range(len(cells)),
                [row[cell] for cell in cells],
                label=short_label(system),
                **line_pen(number).line,
            )
        axes.axhline(chance, color=_LINE, linewidth=0.8, linestyle=BASELINE_COLOUR.dashes)
        axes.set(ylabel="share of right answers", ylim=(-0.04, 1.04), xticks=range(len(cells)))
        axes.set_xticklabels(cells)
        outside_legend(axes)
        rows = [
            {"system": system} | {cell: round(row[cell], 3) for cell in cells}
            for system, row in shares.items()
        ]
        return plot(
            figure,
            f"Share of right answers of {len(shares)} systems in {len(cells)} cells; chance is {chance:g}.",
            rows,
        )


def lane_ranks(data: Dataset, across: Stage, up: Stage) -> Plot:
    """Where two lanes rank each gold passage of the questions; one that a lane does not find stands at the
    end.

    A larger dot stands for several. Lines are drawn behind rank 5; the numbers are the ranks and how many
    passages have them.
    """
    last = len(data.documents)
    dots: Counter[tuple[int, int]] = Counter()
    for query in data.queries:
        dots.update(zip(_ranks(across, query, data, last), _ranks(up, query, data, last), strict=True))
    with plot_drawing(5.6, 5) as (figure, [axes]):
        places = sorted(dots)
        sizes = [25 * dots[place] for place in places]
        axes.scatter(
            [x for x, _ in places], [y for _, y in places], s=sizes, color=_ALL, alpha=0.6, linewidths=0
        )
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


def _measures(reports: Mapping[str, Report]) -> str:
    return ", ".join(dict.fromkeys(report.plan.primary for report in reports.values()))
