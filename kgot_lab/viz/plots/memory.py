"""Plots of memory: lifetimes of nodes, reliability of reviewed claims, and simulated briefings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from kgot_lab.domains.investment.view import DatedNode, display_name
from kgot_lab.evaluation.significance import Estimate, reliability
from kgot_lab.memory.claims.claim import format_time
from kgot_lab.memory.claims.ledger import ReviewLedger, isotonic
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


def review_reliability(ledger: ReviewLedger, *, relation: str = "") -> Plot:
    """Plot the share of claims that were accepted and the number decided, by confidence.

    An isotonic fit is drawn too. `relation` is one relation, by default all together.
    """
    judged, scope = ledger.judgements(), (f" of {relation}" if relation else "")
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


# Simulated reader of news: precision and recall of briefings against the rate of each kind of error.

_BRIEFING_MEASURES = ("precision", "recall")


class BriefingPoint(Protocol):
    """Precision and recall of a reader's briefings at one error rate."""

    @property
    def rate(self) -> float: ...
    @property
    def precision(self) -> Estimate: ...
    @property
    def recall(self) -> Estimate: ...


class BriefingCurve(Protocol):
    """Points at several rates of one kind of error."""

    @property
    def kind(self) -> str: ...
    @property
    def points(self) -> Sequence[BriefingPoint]: ...


def briefing_curves(curves: Sequence[BriefingCurve]) -> Plot:
    """Plot precision and recall of briefings against the error rate, with 95 % intervals.

    Each kind of error has a line.
    """
    if not curves:
        return empty_plot("no curve was given")
    rows = []
    with new_figure(9.0, 4.2, columns=2) as (figure, panels):
        for panel, measure in zip(panels, _BRIEFING_MEASURES, strict=True):
            for number, curve in enumerate(curves):
                pen, points = line_pen(number), [point for point in curve.points if getattr(point, measure).n]
                estimates = [getattr(point, measure) for point in points]
                shift = 0.002 * (number - len(curves) / 2)  # so that error bars do not overlap
                rates, label = [point.rate + shift for point in points], curve.kind.replace("_", " ")
                panel.plot(rates, [estimate.mean for estimate in estimates], label=label, **pen.line)
                ends = [estimate.low for estimate in estimates], [estimate.high for estimate in estimates]
                panel.vlines(rates, *ends, color=pen.colour, linewidth=1)
                rows += [
                    {"errors": curve.kind, "rate": point.rate, "measure": measure, "mean": each.mean, "low": each.low, "high": each.high}
                    for point, each in zip(points, estimates, strict=True)
                ]  # fmt: skip
            panel.set(xlabel="rate of errors", ylim=(-0.03, 1.03))
            panel.set_title(f"{measure} of briefings (simulated reader)")
        place_legend_below(figure)
        summary = "; ".join(f"{curve.kind}: {_format_last_point(curve)}" for curve in curves)
        return plot(figure, f"A simulated reader: briefings as its errors grow. {summary}.", rows)


def _format_last_point(curve: BriefingCurve) -> str:
    last = curve.points[-1]
    return f"precision {last.precision.mean:.2f} and recall {last.recall.mean:.2f} at {last.rate:g}"
