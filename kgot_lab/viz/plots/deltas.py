"""How alike pairs of texts are against how alike their skeletons are, with the bands of the difference (the
delta) between the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kgot_lab.errors import BadInput
from kgot_lab.evaluation.tables import decimal, signed
from kgot_lab.similarity.delta import BANDS, STEPS, Pair, Thresholds, per_band
from kgot_lab.types import Edge
from kgot_lab.viz.plots.figure import INK, MUTED, Pen, Plot, nothing, outside_legend, plot, plot_drawing

_Pairs: TypeAlias = Iterable[Pair] | Iterable[Edge]
Corner: TypeAlias = NDArray[np.float64]

PENS = {
    "negative": Pen("#D55E00", "v"),
    "low": Pen("#E69F00", "s"),
    "middle": Pen("#56B4E9", "D"),
    "high": Pen("#0072B2", "o"),
}
SPANS = {"negative": "delta < 0", "low": "0 to .05", "middle": ".05 to .15", "high": ".15 or more"}
_MOST = 400  # pairs drawn one by one; of more, those of a cell share a mark
CELLS = 26  # along each side
# area of a mark in square points, and steps from one to the other
SMALLEST, _LARGEST, _SIZES, ALONE = (14.0, 150.0, 12, 26.0)


class _Mark(NamedTuple):
    """Some pairs of one band that are drawn as one: where on average, and how many of them a verifier
    refused.
    """

    band: str
    raw: float
    skeleton: float
    pairs: int
    vetoed: int


def bands(pairs: _Pairs, *, thresholds: Thresholds | None = None) -> Plot:
    """Similarity of the texts across, of their skeletons up, dashed lines between the bands of delta; vetoed
    pairs are hollow.

    `pairs` are Pairs or computed edges with `raw` and `skeleton`. `thresholds` draws what an edge needs. Of
    more than 400 pairs those that lie together share a mark whose area says how many. Raises BadInput for
    what has no similarities.
    """
    points = [_point(pair) for pair in pairs]
    if not points:
        return nothing("there are no pairs to draw")
    counts, vetoed = per_band(pair.band for pair, _ in points), sum(veto for _, veto in points)
    low, high = _frame(points)
    marks = _marks(points, (high - low) / CELLS if len(points) > _MOST else None)
    with plot_drawing(8.2, 5) as (figure, [axes]):
        axes.set(
            xlim=(low[0], high[0]),
            ylim=(low[1], high[1]),
            xlabel="similarity of the texts",
            ylabel="similarity of the skeletons",
        )
        _lines(axes, low, high)
        if thresholds is not None:
            _needed(axes, thresholds, low[0], high[0])
        most = max(mark.pairs for mark in marks)
        for name in reversed(BANDS):
            _drawn(axes, [mark for mark in marks if mark.band == name], PENS[name], most)
            axes.scatter(
                [],
                [],
                s=36,
                label=f"{name} ({SPANS[name]}): {counts[name]:,}",
                **_ink(PENS[name], hollow=False),
            )
        if vetoed:
            axes.scatter([], [], s=36, label=f"hollow: vetoed, {vetoed:,}", **_ink(Pen(MUTED), hollow=True))
        outside_legend(axes, gap=0.06)
        if len(points) > _MOST:
            axes.get_legend().set_title("the area of a mark counts pairs", {"size": 9})
        return plot(figure, _told(points, counts, vetoed), [mark._asdict() for mark in marks])


# --- parts
# ------------------------------------------------------------------------------------------------------------


def _point(pair: Pair | Edge) -> tuple[Pair, bool]:
    """A pair with its similarities, and whether a verifier refused it."""
    if isinstance(pair, Pair):
        return pair, bool(pair.veto)
    try:
        raw, skeleton = (float(pair.properties[name]) for name in ("raw", "skeleton"))
    except (AttributeError, KeyError, TypeError, ValueError):
        said = f"{type(pair).__name__}"
        raise BadInput(
            f"the plot of bands needs pairs, or edges that say raw and skeleton as delta edges do; this {said} does not"
        ) from None
    if not (math.isfinite(raw) and math.isfinite(skeleton)):
        raise BadInput(f"the similarities of {pair.source} and {pair.target} are not finite numbers")
    return Pair(pair.source, pair.target, raw, skeleton), bool(pair.properties.get("veto"))


def _frame(points: Sequence[tuple[Pair, bool]]) -> tuple[Corner, Corner]:
    """The corners of a frame around the points, with some room."""
    places = np.array([(pair.raw, pair.skeleton) for pair, _ in points])
    return places.min(axis=0) - 0.04, np.minimum(places.max(axis=0) + 0.04, 1.02)


def _marks(points: Sequence[tuple[Pair, bool]], cell: Corner | None) -> list[_Mark]:
    """A mark for each pair, or for those of a cell and a band together; hollow and full ones apart."""
    together: dict[tuple[float, ...], list[tuple[Pair, bool]]] = {}
    for number, (pair, veto) in enumerate(points):
        place = (number,) if cell is None else (pair.raw // cell[0], pair.skeleton // cell[1])
        together.setdefault((BANDS.index(pair.band), veto, *place), []).append((pair, veto))
    return [
        _Mark(
            some[0][0].band,
            fmean(pair.raw for pair, _ in some),
            fmean(pair.skeleton for pair, _ in some),
            len(some),
            sum(v for _, v in some),
        )
        for _, some in sorted(together.items(), key=lambda each: each[0])
    ]


def _lines(axes: Any, low: Corner, high: Corner) -> None:
    """Where one band ends and the next begins, the delta written where the line leaves the frame."""
    across = np.array([low[0], high[0]])
    for below, above, name in zip(STEPS, STEPS[1:], BANDS[1:], strict=False):
        axes.fill_between(
            across, across + below, across + above, color=PENS[name].colour, alpha=0.12, linewidth=0
        )
    for step in STEPS:
        axes.plot(across, across + step, color=MUTED, linewidth=0.9, linestyle=(0, (5, 3)), zorder=1)
        top = high[1] - step <= high[0]
        if not top and high[0] + step < low[1]:
            continue  # it does not pass through
        end, aside, side = (
            ((high[1] - step, high[1]), (0, 3), "center")
            if top
            else ((high[0], high[0] + step), (3, -3), "left")
        )
        if top and end[0] < low[0]:
            continue
        axes.annotate(
            f"{step:g}".lstrip("0") or "0",
            end,
            xytext=aside,
            textcoords="offset points",
            ha=side,
            fontsize=8,
            color=MUTED,
        )


def _needed(axes: Any, thresholds: Thresholds, left: float, right: float) -> None:
    """What both thresholds ask for of a pair."""
    corner = min(max(thresholds.skeleton - thresholds.delta, left), right)
    needed = [max(thresholds.skeleton, x + thresholds.delta) for x in (left, corner, right)]
    label = f"an edge: skeletons ≥ {decimal(thresholds.skeleton)},\ndelta ≥ {decimal(thresholds.delta)}"
    axes.plot([left, corner, right], needed, color=INK, linewidth=1.6, label=label, zorder=3)


def _drawn(axes: Any, marks: Sequence[_Mark], pen: Pen, most: int) -> None:
    """The marks of a band, those of one size together: an SVG then holds their shape once."""
    by_size: dict[tuple[bool, int], list[_Mark]] = {}
    for mark in marks:
        by_size.setdefault(
            (bool(mark.vetoed), round(_SIZES * (mark.pairs - 1) / max(1, most - 1))), []
        ).append(mark)
    for (hollow, number), some in sorted(by_size.items(), key=lambda each: each[0]):
        size = SMALLEST + (_LARGEST - SMALLEST) * number / _SIZES if most > 1 else ALONE
        axes.scatter(
            [mark.raw for mark in some],
            [mark.skeleton for mark in some],
            s=size,
            zorder=2,
            **_ink(pen, hollow=hollow),
        )


def _ink(pen: Pen, *, hollow: bool) -> dict[str, Any]:
    if hollow:
        return {"marker": pen.marker, "facecolors": "none", "edgecolors": pen.colour, "linewidths": 1}
    return {"marker": pen.marker, "facecolors": pen.colour, "edgecolors": INK, "linewidths": 0.4}


def _told(points: Sequence[tuple[Pair, bool]], counts: Mapping[str, int], vetoed: int) -> str:
    by_band = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    middle = signed(median(pair.delta for pair, _ in points))
    refused = f" {vetoed:,} are vetoed." if vetoed else ""
    pairs = f"{len(points):,} pair{'s' * (len(points) != 1)}"
    return f"Similarity of texts against that of their skeletons for {pairs}, by band of delta: {by_band}; median delta {middle}.{refused}"
