"""Plots of lessons 20 and 31: the ranks of gold passages by two retrievers, and accuracy by cell of a design."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Query
from kgot_lab.viz.plots.figure import (
    BASELINE_PEN,
    Plot,
    line_pen,
    new_figure,
    place_legend_outside,
    plot,
    short_label,
)

_GUIDE_STYLE = {"color": "#888888", "linewidth": 0.8, "linestyle": BASELINE_PEN.dashes}
PROMPT_PASSAGES = 5  # typical number of passages in a prompt


def cell_shares(shares: Mapping[str, Mapping[str, float]], *, chance: float = 0.25) -> Plot:
    """Plot the accuracy of each system in each cell of a design, a line for each system.

    Another line marks chance. Raises BadInput if there is no system, or if their cells differ.
    """
    cells = list(next(iter(shares.values()), {}))
    if not cells or any(list(row) != cells for row in shares.values()):
        raise BadInput("give the shares of one system or more by cell; the cells of all are the same")
    with new_figure(8.4, 4) as (figure, [axes]):
        for number, (system, row) in enumerate(shares.items()):
            axes.plot(range(len(cells)), [*row.values()], label=short_label(system), **line_pen(number).line)
        axes.axhline(chance, **_GUIDE_STYLE)
        axes.set(ylabel="share of right answers", ylim=(-0.04, 1.04), xticks=range(len(cells)))
        axes.set_xticklabels(cells)
        place_legend_outside(axes)
        rows = [{"system": name} | {c: round(row[c], 3) for c in cells} for name, row in shares.items()]
        text = f"Share of right answers of {len(shares)} systems in {len(cells)} cells; chance is {chance:g}."
        return plot(figure, text, rows)


def lane_ranks(data: Dataset, across: Stage, up: Stage) -> Plot:
    """Plot the ranks that two retrievers give to each gold passage of the questions.

    A passage that a retriever does not find is put at the last rank. A larger dot represents several
    passages. Lines are drawn behind rank 5. The numbers are the ranks and how many passages have them.
    """
    last = len(data.documents)
    dots: Counter[tuple[int, int]] = Counter()
    for query in data.queries:
        xs, ys = (_gold_ranks(retriever, query, data, last) for retriever in (across, up))
        dots.update(zip(xs, ys, strict=True))
    with new_figure(5.6, 5) as (figure, [axes]):
        points = sorted(dots)
        sizes = [25 * dots[point] for point in points]
        axes.scatter(*zip(*points, strict=True), s=sizes, color="#0072B2", alpha=0.6, linewidths=0)
        axes.set(xscale="log", yscale="log", xlabel=f"rank by {across.name}", ylabel=f"rank by {up.name}")
        axes.axvline(PROMPT_PASSAGES + 0.5, color="#D55E00")
        axes.axhline(PROMPT_PASSAGES + 0.5, color="#D55E00")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")
        rows = [{"across": x, "up": y, "passages": dots[x, y]} for x, y in points]
        description = f"Rank of each gold passage of {data.name} by {across.name} across and by {up.name} up: {dots.total()} passages."
        return plot(figure, description, rows)


def _gold_ranks(retriever: Stage, query: Query, data: Dataset, last: int) -> list[int]:
    rank_by_id = {id: rank for rank, id in enumerate(retriever.search(query).ids, start=1)}
    return [rank_by_id.get(id, last) for id in data.qrels[query.id]]
