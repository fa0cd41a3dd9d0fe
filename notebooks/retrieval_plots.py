"""The plot of lesson 31: accuracy by cell of a design."""

from __future__ import annotations

from collections.abc import Mapping

from kgot_lab.errors import BadInput
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
