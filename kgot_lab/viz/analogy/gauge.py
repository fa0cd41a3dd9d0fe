"""The gauge of a pair: both similarities and their difference on one axis, with the bands of the difference."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kgot_lab.similarity.delta import BANDS, STEPS, band
from kgot_lab.viz.static.drawing import draw_path, draw_rect
from kgot_lab.viz.static.markup import Markup, element, joined, text_width

_INK, _MUTED = "#222", "#595959"
# Okabe and Ito; the last two dark enough for a number
_TEXTS, SKELETONS, MORE, LESS = ("#56B4E9", "#E69F00", "#007A59", "#B34D00")
TINTS = ("#FFFFFF", "#F0F0F0", "#E0E0E0", "#CDCDCD")  # of the bands, from negative to high
_BAR, AXIS = 15.0, 128.0
_LANES = {"texts": 0.0, "skeletons": 27.0, "delta": 71.0}
STRIP = _LANES["delta"] + 22


@dataclass(frozen=True)
class Axis:
    """Cosines from `low` to 1 between two places on the paper."""

    low: float
    left: float
    right: float

    def at(self, cosine: float) -> float:
        """Where a cosine stands; what lies outside stands at the end."""
        share = (min(max(cosine, self.low), 1.0) - self.low) / (1 - self.low)
        return self.left + share * (self.right - self.left)

    def holds(self, cosine: float) -> bool:
        """Whether a cosine is on the axis."""
        return self.low <= cosine <= 1


def gauge(
    raw: float, skeleton: float, thresholds: tuple[float, float], sides: tuple[float, float]
) -> tuple[Markup, float]:
    """Three lanes between two sides: the similarity of the texts, that of the skeletons, the way from one to
    the other; and their height.

    The bands of the delta begin at the similarity of the texts, so the band of a pair is where the similarity
    of its skeletons lies.
    """
    axis = Axis(max(-1.0, min(0.0, math.floor(10 * min(raw, skeleton) - 1) / 10)), *sides)
    least, by = thresholds
    parts = [
        *_scale(axis),
        *(_guide(axis, lane, value) for lane, value in (("texts", raw), ("skeletons", skeleton))),
        _bar(axis, "texts", raw, _TEXTS),
        _bar(axis, "skeletons", skeleton, SKELETONS),
        _threshold(
            axis,
            least,
            (_LANES["skeletons"] - 4, _LANES["skeletons"] + _BAR + 5),
            f"an edge needs {_short(least)} or more",
        ),
        _threshold(
            axis, raw + by, (STRIP - 3, STRIP + 20), f"and a delta of {'+' * (by >= 0)}{_short(by)} or more"
        ),
        *_bands(axis, raw, skeleton),
        *_delta(axis, raw, skeleton),
    ]
    return joined(parts), AXIS + 22


def _short(number: float) -> str:
    """A number at three places at most."""
    return f"{round(number, 3):g}"


def _said(text: str, x: float, y: float, size: float = 12.0, **look: object) -> Markup:
    return element("text", text, x=x, y=y, font_size=size, **{"fill": _INK, **look})


def _scale(axis: Axis) -> list[Markup]:
    """The axis: a number at every fifth, and a faint line up from it."""
    tenths = range(round(10 * axis.low), 11)
    made = [_said("cosine", axis.left - 22, AXIS + 16, 11.0, text_anchor="end", fill=_MUTED)]
    for tenth in tenths:
        x = axis.at(tenth / 10)
        made.append(draw_path(f"M{x:.1f} -4V{AXIS}", "#999" if tenth == 0 else "#EEE"))
        if tenth % 2 == 0:
            made.append(
                _said(
                    f"{tenth / 10:g}".replace("-", "\u2212"),
                    x,
                    AXIS + 16,
                    11.0,
                    text_anchor="middle",
                    fill=_MUTED,
                )
            )
    return [*made, draw_path(f"M{axis.left:.1f} {AXIS}H{axis.right:.1f}", "#999")]


def _guide(axis: Axis, lane: str, value: float) -> Markup:
    """A dotted line from the end of a bar down to the bands."""
    return draw_path(f"M{axis.at(value):.1f} {_LANES[lane] + _BAR}V{STRIP}", "#777", stroke_dasharray="2 3")


def _bar(axis: Axis, lane: str, value: float, colour: str) -> Markup:
    """A bar from 0 to a value, its name before it and the number behind it."""
    y, (start, end) = _LANES[lane], sorted((axis.at(0), axis.at(value)))
    bar = draw_rect(start, y, max(end - start, 1.5), _BAR, colour, stroke="#333", stroke_width=0.8)
    name = _said(lane, axis.left - 10, y + 12, text_anchor="end")
    return joined(
        [name, bar, _halo(f"{value:.3f}".replace("-", "\u2212"), end + 6, y + 12, font_weight="bold")]
    )


def _halo(text: str, x: float, y: float, size: float = 12.0, **look: object) -> Markup:
    """Words that stay readable on a line."""
    return _said(
        text, x, y, size, stroke="#fff", stroke_width=3, stroke_linejoin="round", paint_order="stroke", **look
    )


def _threshold(axis: Axis, cosine: float, reach: tuple[float, float], words: str) -> Markup:
    """A mark on the axis with its meaning below it; nothing where the axis does not reach."""
    if not axis.holds(cosine):
        return Markup("")
    x, (top, bottom) = axis.at(cosine), reach
    mark = draw_path(f"M{x:.1f} {top:.1f}V{bottom:.1f}", "#000", 2, stroke_dasharray="3 2")
    half = text_width(words, 11) / 2
    middle = min(max(x, axis.left + half), axis.right + 60 - half)
    return joined(
        [
            mark,
            _halo(
                words.replace("-", "\u2212"),
                middle,
                bottom + 11,
                size=11.0,
                text_anchor="middle",
                fill=_MUTED,
            ),
        ]
    )


def _bands(axis: Axis, raw: float, skeleton: float) -> list[Markup]:
    """The bands as a strip that begins at the similarity of the texts; the one the pair lies in has a dark
    frame and a bold name.
    """
    ends = [axis.low, *(raw + step for step in STEPS), 1.0]
    own, strips = band(skeleton - raw), []
    for name, tint, start, end in zip(BANDS, TINTS, ends, ends[1:], strict=False):
        x, width = axis.at(start), axis.at(end) - axis.at(start)
        frame = (
            {"stroke": _INK, "stroke_width": 2} if name == own else {"stroke": "#AAA", "stroke_width": 0.8}
        )
        if width > 1:
            strip = [draw_rect(x, STRIP, width, 16.0, tint, **frame)]
            if text_width(name, 11) + 4 <= width:
                look = {"font_weight": "bold"} if name == own else {}
                strip.append(_said(name, x + width / 2, STRIP + 12, 11.0, text_anchor="middle", **look))
            strips.append((name == own, joined(strip)))
    # the frame of the own one over its neighbours'
    return [strip for _, strip in sorted(strips, key=lambda each: each[0])]


def _delta(axis: Axis, raw: float, skeleton: float) -> list[Markup]:
    """An arrow from the similarity of the texts to that of the skeletons, and the difference in numbers."""
    start, end, y = axis.at(raw), axis.at(skeleton), _LANES["delta"] + 8
    delta = round(skeleton - raw, 6) + 0.0
    colour, way = (MORE, 1) if delta >= 0 else (LESS, -1)
    head = min(9.0, abs(end - start))
    tip = f"M{end:.1f} {y:.1f}L{end - way * head:.1f} {y - 5:.1f}V{y + 5:.1f}Z"
    shaft = draw_path(f"M{start:.1f} {y:.1f}H{end - way * head:.1f}", colour, 3)
    number = _halo(
        f"{delta:+.3f}".replace("-", "\u2212"), max(start, end) + 7, y + 4, font_weight="bold", fill=colour
    )
    name = _said("delta", axis.left - 10, y + 4, text_anchor="end")
    return [name, shaft, element("path", d=tip, fill=colour), number]
