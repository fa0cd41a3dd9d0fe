"""Plots of memory: lifetimes of nodes and reliability of reviewed claims."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from kgot_lab.arguments import check_arguments
from kgot_lab.domains.investment.view import DatedNode, display_name
from kgot_lab.io.times import format_time
from kgot_lab.viz.plots.figure import (
    BASELINE_PEN,
    INK,
    Plot,
    bar_pen,
    empty_plot,
    new_figure,
    place_legend_below,
    plot,
    short_label,
)

_DAY = timedelta(days=1)


@check_arguments
def lifelines(nodes: Iterable[DatedNode], *, at: datetime, limit: int = 24) -> Plot:
    """Plot the lifetimes of up to `limit` nodes, the next to expire first.

    A line marks the time `at`. Nodes that never expire are only counted.
    """
    all_nodes = list(nodes)
    dated = ((node.expires_at, node) for node in all_nodes if node.expires_at is not None)
    ending = sorted(dated, key=lambda pair: (pair[0], pair[1].node.id))
    shown = ending[:limit]
    if not shown:
        return empty_plot("none of these nodes expires")
    rows = []
    with new_figure(9.6, 1.1 + 0.27 * len(shown)) as (figure, [axes]):
        for number, type in enumerate(dict.fromkeys(each.node.labels[0] for _, each in shown)):
            style = {"height": 0.62, "label": type, **bar_pen(number).fill}
            for position, (end, each) in enumerate(shown):
                if each.node.labels[0] == type:
                    axes.barh(position, end - each.created_at, left=each.created_at, **style)
        axes.use_sticky_edges = False  # leaves a margin before the first bar
        now = {"color": INK, "linewidth": 1.2, "linestyle": BASELINE_PEN.dashes}
        axes.axvline(at, label=f"now, {format_time(at)}", **now)
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(shown)), [short_label(display_name(each.node), 48) for _, each in shown])
        axes.set(ylim=(len(shown) - 0.4, -0.6))
        axes.grid(axis="y", visible=False)
        place_legend_below(figure)
        for end, each in shown:
            name, created = display_name(each.node), format_time(each.created_at)
            row = {"node": name, "type": each.node.labels[0], "created": created}
            rows.append(row | {"expires": format_time(end), "days left": (end - at) / _DAY})
        live_count = sum(end > at for end, _ in ending)
        summary = f"{live_count} of {len(all_nodes)} nodes are live at {format_time(at)} and expire later, {len(all_nodes) - len(ending)} never"
        return plot(figure, f"{summary}; shown are {len(shown)}, the next to expire first.", rows)
