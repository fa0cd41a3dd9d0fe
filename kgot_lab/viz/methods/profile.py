"""Two nodes beside each other by their dimensions: a line for each from 0 to 1, with a dot for one node and a
square for the other.
"""

from __future__ import annotations

from itertools import groupby

from kgot_lab.kgos.methods.dimension_profile import DimensionProfile, ProfileRow
from kgot_lab.viz.static.briefing import FAINT_INK, STRONG_INK
from kgot_lab.viz.static.drawing import Drawing, draw_circle, draw_path, draw_rect, draw_text, drawing, fitted
from kgot_lab.viz.static.markup import Markup, element
from kgot_lab.viz.static.table import Sheet

_FIRST, _SECOND, _SECOND_INK = "#0072B2", "#D55E00", "#9C4400"
_EDGE, _TOP, _ROW, _HEAD = 24.0, 92.0, 30.0, 30.0
_NAMES, _ENDS, _SCALE = 205.0, 250.0, 250.0  # widths: name, what an end means, the line


def profile_picture(profile: DimensionProfile) -> Drawing:
    """Draw what two nodes have on each dimension, by category, with what 0 and 1 mean at the ends of each
    line; `table` has the numbers.
    """
    y, parts = _TOP, []
    for category, rows in groupby(profile.dimensions, key=lambda row: row.category):
        parts.append(draw_text(category.upper(), _EDGE, y + 14, 12.0, FAINT_INK))
        y += _HEAD
        for row in rows:
            parts.append(_line(row, y))
            y += _ROW
    width = 2 * _EDGE + _NAMES + 2 * _ENDS + _SCALE
    known = "" if profile.dimensions else "Neither has a value on any dimension."
    return drawing(
        _alt(profile), width, y + 24,
        _key(profile.names[0], 34.0, first=True, width=width), _key(profile.names[1], 62.0, first=False, width=width),
        draw_text(known, _EDGE, _TOP + 10, 14.0, "#222222"), *parts, sheets=[_sheet(profile)],
    )  # fmt: skip


def _key(name: str, y: float, *, first: bool, width: float) -> Markup:
    (line,) = fitted(name, width - 2 * _EDGE - 24, 18.0 * 1.08, 1)[0] or [""]
    return element(
        "g",
        _mark(_EDGE + 8, y - 6, first=first),
        draw_text(line, _EDGE + 24, y, 18.0, STRONG_INK if first else _SECOND_INK, bold=True),
    )


def _mark(x: float, y: float, *, first: bool) -> Markup:
    """The dot of the first node, or the square of the second, which leaves room to see a dot at its place."""
    if first:
        return draw_circle(x, y, 6, _FIRST)
    return draw_rect(x - 8, y - 8, 16, 16, stroke=_SECOND, stroke_width=2.6)


def _line(row: ProfileRow, y: float) -> Markup:
    """A dimension: its name, its scale with both ends in words, and the two marks with what lies between
    them.
    """
    left, middle = _EDGE + _NAMES + _ENDS, y + 6
    low, high = (fitted(text, _ENDS - 20, 12.0, 1)[0] or [""] for text in (row.low, row.high))
    places = {True: row.first, False: row.second}
    marks = [
        _mark(left + _SCALE * value, middle, first=first)
        for first, value in places.items()
        if value is not None
    ]
    between = []
    if row.first is not None and row.second is not None:
        ends = sorted((left + _SCALE * row.first, left + _SCALE * row.second))
        between = [draw_path(f"M{ends[0]:.1f} {middle:.1f} H{ends[1]:.1f}", "#888888", 3.0)]
    said = ", ".join("no value" if value is None else f"{value:g}" for value in places.values())
    return element(
        "g", element("title", f"{row.dimension}: {said}; 0 {row.low}, 1 {row.high}"),
        draw_text(row.dimension.replace("_", " "), _EDGE, middle + 4.5, 13.0, "#111111"),
        draw_text(low[0], left - 14, middle + 4, 12.0, FAINT_INK, text_anchor="end"),
        draw_path(f"M{left:.1f} {middle:.1f} H{left + _SCALE:.1f}", "#CCCCCC", 1.0),
        *between, *marks, draw_text(high[0], left + _SCALE + 14, middle + 4, 12.0, FAINT_INK),
    )  # fmt: skip


def _alt(profile: DimensionProfile) -> str:
    """The picture in words."""
    said = [
        f"{row.dimension.replace('_', ' ')} {'no value' if row.first is None else f'{row.first:g}'} and "
        f"{'no value' if row.second is None else f'{row.second:g}'}"
        for row in profile.dimensions
    ]
    return f"{profile.names[0]} beside {profile.names[1]}: {'; '.join(said) or 'no dimensions'}."


def _sheet(profile: DimensionProfile) -> Sheet:
    shown = (
        ("" if value is None else f"{value:g}" for value in (row.first, row.second, row.gap))
        for row in profile.dimensions
    )
    rows = tuple(
        (row.dimension, row.low, row.high, *numbers)
        for row, numbers in zip(profile.dimensions, shown, strict=True)
    )
    return Sheet(
        ("dimension", "at 0", "at 1", *profile.names, "second less first"), rows, len(rows), profile.title
    )
