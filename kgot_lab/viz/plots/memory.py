"""Plots of memory: lifetimes of nodes and reliability of reviewed claims."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from kgot_lab.domains.investment.view import DatedNode, display_name
from kgot_lab.evaluation.significance import reliability
from kgot_lab.memory.claims.claim import format_time
from kgot_lab.memory.claims.review import ClaimReview, isotonic
from kgot_lab.viz.plots.figure import (
    BASELINE_PEN,
    BEST_PEN,
    INK,
    Plot,
    bar_pen,
    draw_diagonal,
    empty_plot,
    line_pen,
    new_figure,
    place_legend_below,
    plot,
    short_label,
    use_integer_ticks,
)

_DAY = timedelta(days=1)


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


# Calibration by review: confidence of claims against the share that people accepted.

_CURVE_POINTS = 101  # points of the curve


def review_reliability(review: ClaimReview, *, relation: str = "") -> Plot:
    """Plot the share of claims that were accepted and the number decided, by confidence.

    An isotonic fit is drawn too. `relation` is one relation, by default all together.
    """
    judged, scope = review.judgements(), (f" of {relation}" if relation else "")
    judged = [each for each in judged if relation in ("", each.relation)]
    if not judged:
        return empty_plot(f"no claim{scope} is decided on yet")
    values, accepted = ([each.confidence for each in judged], [float(each.accepted) for each in judged])
    bins, curve = reliability(values, accepted), isotonic(zip(values, accepted, strict=True))
    low, width = min(values), max(values) - min(values)
    xs = [low + width * step / (_CURVE_POINTS - 1) for step in range(_CURVE_POINTS)]
    with new_figure(8.4, 4.0, columns=2) as (figure, (share, count)):
        draw_diagonal(share, "as sure as right")
        dots = line_pen(0).line | {"linestyle": "none", "label": "accepted, claims in tenths"}
        share.plot([row.sure for row in bins], [row.right for row in bins], **dots)
        style = {"color": BEST_PEN.colour, "linewidth": 1.8, "label": "isotonic: what a confidence is worth"}
        share.plot(xs, [curve(x) for x in xs], **style)
        middles = [(row.low + row.high) / 2 for row in bins]
        count.bar(middles, [row.n for row in bins], width=0.09, **bar_pen(0).fill)
        limits = (-0.03, 1.03)
        share.set(xlabel="confidence of the claim", ylabel="share accepted", xlim=limits, ylim=limits)
        count.set(xlabel="confidence of the claim", ylabel="claims decided on", xlim=limits)
        use_integer_ticks(count.yaxis)
        place_legend_below(figure)
        summary = "; ".join(f"{row.right:.0%} of {row.n} at about {row.sure:.2f}" for row in bins)
        numbers = [
            {"confidence": row.sure, "share accepted": row.right, "isotonic": curve(row.sure), "n": row.n}
            for row in bins
        ]
        text = f"How often claims were accepted{scope}, {len(judged)} in all: {summary}."
        return plot(figure, text, numbers)
