"""What review teaches: how sure claims were, against how often people accepted them."""

from __future__ import annotations

from kgot_lab.evaluation.significance import reliability
from kgot_lab.memory.claims.ledger import ReviewLedger, isotonic
from kgot_lab.viz.plots.figure import (
    BASELINE_COLOUR,
    BEST,
    MUTED,
    Plot,
    bar_pen,
    legend_below,
    line_pen,
    nothing,
    plot,
    plot_drawing,
    whole_numbers,
)

_STEPS = 101  # points of the curve


def review_reliability(ledger: ReviewLedger, *, relation: str = "") -> Plot:
    """The share of claims that was accepted for each confidence, with the rising line fitted to them, and how
    many were decided on.

    `relation` is one relation, by default all together.
    """
    judged = [each for each in ledger.judgements() if relation in ("", each.relation)]
    if not judged:
        return nothing(f"no claim{f' of {relation}' * bool(relation)} is decided on yet")
    sure, accepted = [each.confidence for each in judged], [float(each.accepted) for each in judged]
    bins, curve = reliability(sure, accepted), isotonic(zip(sure, accepted, strict=True))
    xs = [min(sure) + (max(sure) - min(sure)) * step / (_STEPS - 1) for step in range(_STEPS)]
    with plot_drawing(8.4, 4.0, columns=2) as (figure, (share, count)):
        share.plot(
            [0, 1],
            [0, 1],
            color=MUTED,
            linewidth=1,
            linestyle=BASELINE_COLOUR.dashes,
            label="as sure as right",
        )
        dots = line_pen(0).line | {"linestyle": "none"}
        share.plot(
            [row.sure for row in bins],
            [row.right for row in bins],
            label="accepted, claims in tenths",
            **dots,
        )
        share.plot(
            xs,
            [curve(x) for x in xs],
            color=BEST.colour,
            linewidth=1.8,
            label="isotonic: what a confidence is worth",
        )
        count.bar(
            [(row.low + row.high) / 2 for row in bins], [row.n for row in bins], width=0.09, **bar_pen(0).fill
        )
        share.set(
            xlabel="confidence of the claim", ylabel="share accepted", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03)
        )
        count.set(xlabel="confidence of the claim", ylabel="claims decided on", xlim=(-0.03, 1.03))
        whole_numbers(count.yaxis)
        legend_below(figure)
        told = "; ".join(f"{row.right:.0%} of {row.n} at about {row.sure:.2f}" for row in bins)
        numbers = [
            {"confidence": row.sure, "share accepted": row.right, "isotonic": curve(row.sure), "n": row.n}
            for row in bins
        ]
        return plot(
            figure,
            f"How often claims were accepted{f' of {relation}' * bool(relation)}, {len(judged)} in all: {told}.",
            numbers,
        )
