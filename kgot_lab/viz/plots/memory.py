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
    BASELINE_COLOUR,
    BEST,
    INK,
    Plot,
    bar_pen,
    diagonal,
    legend_below,
    line_pen,
    nothing,
    plot,
    plot_drawing,
    short_label,
    whole_numbers,
)

_DAY = timedelta(days=1)


def lifelines(nodes: Iterable[DatedNode], *, at: datetime, limit: int = 24) -> Plot:
    """Plot the lifetimes of up to `limit` nodes, the next to expire first.

    A line marks the time `at`. Nodes that never expire are only counted.
    """
    given = list(nodes)
    ending = sorted(
        ((each.expires_at, each) for each in given if each.expires_at is not None),
        key=lambda pair: (pair[0], pair[1].node.id),
    )
    shown = ending[:limit]
    if not shown:
        return nothing("none of these nodes expires")
    rows = []
    with plot_drawing(9.6, 1.1 + 0.27 * len(shown)) as (figure, [axes]):
        for number, type in enumerate(dict.fromkeys(each.node.labels[0] for _, each in shown)):
            look = {"height": 0.62, "label": type, **bar_pen(number).fill}
            for place, (end, each) in enumerate(shown):
                if each.node.labels[0] == type:
                    axes.barh(place, end - each.created_at, left=each.created_at, **look)
        axes.use_sticky_edges = False  # leaves a margin before the first bar
        now = {"color": INK, "linewidth": 1.2, "linestyle": BASELINE_COLOUR.dashes}
        axes.axvline(at, label=f"now, {format_time(at)}", **now)
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(shown)), [short_label(display_name(each.node), 48) for _, each in shown])
        axes.set(ylim=(len(shown) - 0.4, -0.6))
        axes.grid(axis="y", visible=False)
        legend_below(figure)
        for end, each in shown:
            told = {
                "node": display_name(each.node),
                "type": each.node.labels[0],
                "created": format_time(each.created_at),
            }
            rows.append(told | {"expires": format_time(end), "days left": (end - at) / _DAY})
        left = sum(end > at for end, _ in ending)
        said = f"{left} of {len(given)} nodes are live at {format_time(at)} and expire later, {len(given) - len(ending)} never"
        return plot(figure, f"{said}; shown are {len(shown)}, the next to expire first.", rows)


# Calibration by review: confidence of claims against the share that people accepted.

_STEPS = 101  # points of the curve


def review_reliability(ledger: ReviewLedger, *, relation: str = "") -> Plot:
    """Plot the share of claims that were accepted and the number decided, by confidence.

    An isotonic fit is drawn too. `relation` is one relation, by default all together.
    """
    judged, which = ledger.judgements(), f" of {relation}" * bool(relation)
    judged = [each for each in judged if relation in ("", each.relation)]
    if not judged:
        return nothing(f"no claim{which} is decided on yet")
    sure, accepted = [each.confidence for each in judged], [float(each.accepted) for each in judged]
    bins, curve = reliability(sure, accepted), isotonic(zip(sure, accepted, strict=True))
    xs = [min(sure) + (max(sure) - min(sure)) * step / (_STEPS - 1) for step in range(_STEPS)]
    with plot_drawing(8.4, 4.0, columns=2) as (figure, (share, count)):
        diagonal(share, "as sure as right")
        dots = line_pen(0).line | {"linestyle": "none", "label": "accepted, claims in tenths"}
        share.plot([row.sure for row in bins], [row.right for row in bins], **dots)
        look = {"color": BEST.colour, "linewidth": 1.8, "label": "isotonic: what a confidence is worth"}
        share.plot(xs, [curve(x) for x in xs], **look)
        middles = [(row.low + row.high) / 2 for row in bins]
        count.bar(middles, [row.n for row in bins], width=0.09, **bar_pen(0).fill)
        limits = (-0.03, 1.03)
        share.set(xlabel="confidence of the claim", ylabel="share accepted", xlim=limits, ylim=limits)
        count.set(xlabel="confidence of the claim", ylabel="claims decided on", xlim=limits)
        whole_numbers(count.yaxis)
        legend_below(figure)
        told = "; ".join(f"{row.right:.0%} of {row.n} at about {row.sure:.2f}" for row in bins)
        numbers = [
            {"confidence": row.sure, "share accepted": row.right, "isotonic": curve(row.sure), "n": row.n}
            for row in bins
        ]
        return plot(figure, f"How often claims were accepted{which}, {len(judged)} in all: {told}.", numbers)


# Simulated reader of news: precision and recall of briefings against the rate of each kind of error.

_MEASURES = ("precision", "recall")


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
        return nothing("no curve was given")
    rows = []
    with plot_drawing(9.0, 4.2, columns=2) as (figure, panels):
        for panel, measure in zip(panels, _MEASURES, strict=True):
            for number, curve in enumerate(curves):
                pen, points = line_pen(number), [point for point in curve.points if getattr(point, measure).n]
                found = [getattr(point, measure) for point in points]
                shift = 0.002 * (number - len(curves) / 2)  # so that error bars do not overlap
                rates, label = [point.rate + shift for point in points], curve.kind.replace("_", " ")
                panel.plot(rates, [each.mean for each in found], label=label, **pen.line)
                ends = [each.low for each in found], [each.high for each in found]
                panel.vlines(rates, *ends, color=pen.colour, linewidth=1)
                rows += [
                    {"errors": curve.kind, "rate": point.rate, "measure": measure, "mean": each.mean, "low": each.low, "high": each.high}
                    for point, each in zip(points, found, strict=True)
                ]  # fmt: skip
            panel.set(xlabel="rate of errors", ylim=(-0.03, 1.03))
            panel.set_title(f"{measure} of briefings (simulated reader)")
        legend_below(figure)
        ends_said = "; ".join(f"{curve.kind}: {_told(curve)}" for curve in curves)
        return plot(figure, f"A simulated reader: briefings as its errors grow. {ends_said}.", rows)


def _told(curve: BriefingCurve) -> str:
    last = curve.points[-1]
    return f"precision {last.precision.mean:.2f} and recall {last.recall.mean:.2f} at {last.rate:g}"
