"""What is fresh until when: a bar for each node of an investment graph, from its creation to its end."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from kgot_lab.domains.investment.view import DatedNode, shown_name
from kgot_lab.memory.claims.claim import format_time
from kgot_lab.viz.plots.figure import (
    BASELINE_COLOUR,
    INK,
    Plot,
    bar_pen,
    legend_below,
    nothing,
    plot,
    plot_drawing,
    short_label,
)

_DAY = timedelta(days=1)


def lifelines(nodes: Iterable[DatedNode], *, at: datetime, limit: int = 24) -> Plot:
    """When some nodes expire, the next one first, at most `limit` of them; a line stands at a time. What
    never expires is counted only.
    """
    given = list(nodes)
    ending = sorted(
        (each for each in given if each.expires_at is not None),
        key=lambda each: (each.expires_at, each.node.id),
    )
    shown = ending[:limit]
    if not shown:
        return nothing("none of these nodes expires")
    types = list(dict.fromkeys(each.node.labels[0] for each in shown))
    rows = []
    with plot_drawing(9.6, 1.1 + 0.27 * len(shown)) as (figure, [axes]):
        for number, type in enumerate(types):
            for place, each in enumerate(shown):
                if each.node.labels[0] == type and each.expires_at is not None:
                    lasts = each.expires_at - each.created_at
                    axes.barh(
                        place, lasts, left=each.created_at, height=0.62, label=type, **bar_pen(number).fill
                    )
        axes.use_sticky_edges = False  # room before the first bar
        axes.axvline(
            at, color=INK, linewidth=1.2, linestyle=BASELINE_COLOUR.dashes, label=f"now, {format_time(at)}"
        )
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(shown)), [short_label(shown_name(each.node), 48) for each in shown])
        axes.set(ylim=(len(shown) - 0.4, -0.6))
        axes.grid(axis="y", visible=False)
        legend_below(figure)
        for each in shown:
            assert each.expires_at is not None
            told = {
                "node": shown_name(each.node),
                "type": each.node.labels[0],
                "created": format_time(each.created_at),
            }
            rows.append(
                told | {"expires": format_time(each.expires_at), "days left": (each.expires_at - at) / _DAY}
            )
        left = sum(each.expires_at > at for each in ending if each.expires_at)
        said = f"{left} of {len(given)} nodes are live at {format_time(at)} and expire later, {len(given) - len(ending)} never"
        return plot(figure, f"{said}; shown are {len(shown)}, the next to expire first.", rows)
