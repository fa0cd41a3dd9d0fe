"""Picture of two texts side by side: verdict, gauge, texts, skeletons, alignment and role mapping."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgot_lab.analogy.linguistic import Counterpart
from kgot_lab.similarity.delta import BAND_BOUNDARIES, BANDS, band
from kgot_lab.viz.static.drawing import (
    HALO,
    Part,
    draw_circle,
    draw_lines,
    draw_path,
    draw_rect,
    draw_text,
    fit_lines,
    stack_parts,
    svg_root,
)
from kgot_lab.viz.static.markup import Markup, add_picture_key, concat, element, shorten, text_width

# The gauge of a pair: both similarities and their difference on one axis, with the bands of the delta.

_Look = Mapping[str, Any]  # options of draw_text

_INK, _MUTED = "#222", "#595959"
# Okabe and Ito; the last two are dark enough for text
_TEXTS_COLOUR, SKELETONS, MORE, LESS = ("#56B4E9", "#E69F00", "#007A59", "#B34D00")
TINTS = ("#FFFFFF", "#F0F0F0", "#E0E0E0", "#CDCDCD")  # colours of the bands, from negative to high
_BAR_HEIGHT, AXIS_TOP = 15.0, 128.0
_BAR_TOPS = {"texts": 0.0, "skeletons": 27.0, "delta": 71.0}
STRIP_TOP = _BAR_TOPS["delta"] + 22


@dataclass(frozen=True)
class Axis:
    """An axis of cosines from `low` to 1 between two x coordinates."""

    low: float
    left: float
    right: float

    def at(self, cosine: float) -> float:
        """Return the x coordinate of a cosine, clipped to the ends of the axis."""
        share = (min(max(cosine, self.low), 1.0) - self.low) / (1 - self.low)
        return self.left + share * (self.right - self.left)

    def holds(self, cosine: float) -> bool:
        """Return whether a cosine is on the axis."""
        return self.low <= cosine <= 1


def gauge(
    raw: float, skeleton: float, thresholds: tuple[float, float], sides: tuple[float, float]
) -> tuple[Markup, float]:
    """Draw the gauge of a pair between two x coordinates, and return it with its height.

    It has three bars: the similarity of the texts, that of the skeletons, and the delta between them. The
    bands of the delta begin at the similarity of the texts, so the band of a pair is where the similarity of
    its skeletons lies.
    """
    axis = Axis(max(-1.0, min(0.0, math.floor(10 * min(raw, skeleton) - 1) / 10)), *sides)
    (least, by), low = thresholds, _BAR_TOPS["skeletons"]
    delta = f"and a delta of {'+' * (by >= 0)}{_format_number(by)} or more"
    similarity = f"an edge needs {_format_number(least)} or more"
    parts = [
        *_draw_axis(axis),
        _draw_guide(axis, "texts", raw),
        _draw_guide(axis, "skeletons", skeleton),
        _draw_bar(axis, "texts", raw, _TEXTS_COLOUR),
        _draw_bar(axis, "skeletons", skeleton, SKELETONS),
        _draw_threshold(axis, least, (low - 4, low + _BAR_HEIGHT + 5), similarity),
        _draw_threshold(axis, raw + by, (STRIP_TOP - 3, STRIP_TOP + 20), delta),
        *_draw_bands(axis, raw, skeleton),
        *_draw_delta(axis, raw, skeleton),
    ]
    return concat(parts), AXIS_TOP + 22


def _format_number(number: float) -> str:
    """Format a number with at most three decimal places."""
    return f"{round(number, 3):g}"


def _draw_axis(axis: Axis) -> list[Markup]:
    """Draw the axis with a label at every 0.2 and a faint vertical line at every 0.1."""
    tenths = range(round(10 * axis.low), 11)
    elements = [draw_text("cosine", axis.left - 22, AXIS_TOP + 16, 11.0, _MUTED, text_anchor="end")]
    for tenth in tenths:
        x = axis.at(tenth / 10)
        elements.append(draw_path(f"M{x:.1f} -4V{AXIS_TOP}", "#999" if tenth == 0 else "#EEE"))
        if tenth % 2 == 0:
            number = f"{tenth / 10:g}".replace("-", "\u2212")
            elements.append(draw_text(number, x, AXIS_TOP + 16, 11.0, _MUTED, text_anchor="middle"))
    return [*elements, draw_path(f"M{axis.left:.1f} {AXIS_TOP}H{axis.right:.1f}", "#999")]


def _draw_guide(axis: Axis, bar_name: str, value: float) -> Markup:
    """Draw a dotted line from the end of a bar down to the bands."""
    y = _BAR_TOPS[bar_name] + _BAR_HEIGHT
    return draw_path(f"M{axis.at(value):.1f} {y}V{STRIP_TOP}", "#777", stroke_dasharray="2 3")


def _draw_bar(axis: Axis, bar_name: str, value: float, colour: str) -> Markup:
    """Draw a bar from 0 to a value, with its name on the left and the number on the right."""
    y, (start, end) = _BAR_TOPS[bar_name], sorted((axis.at(0), axis.at(value)))
    bar = draw_rect(start, y, max(end - start, 1.5), _BAR_HEIGHT, colour, stroke="#333", stroke_width=0.8)
    name = draw_text(bar_name, axis.left - 10, y + 12, 12.0, text_anchor="end")
    figure = f"{value:.3f}".replace("-", "\u2212")
    number = draw_text(figure, end + 6, y + 12, 12.0, bold=True, **HALO)
    return concat([name, bar, number])


def _draw_threshold(axis: Axis, cosine: float, y_range: tuple[float, float], label: str) -> Markup:
    """Draw a threshold on the axis with its meaning below it, or nothing if it is off the axis."""
    if not axis.holds(cosine):
        return Markup("")
    x, (top, bottom) = axis.at(cosine), y_range
    mark = draw_path(f"M{x:.1f} {top:.1f}V{bottom:.1f}", "#000", 2, stroke_dasharray="3 2")
    half = text_width(label, 11) / 2
    middle = min(max(x, axis.left + half), axis.right + 60 - half)
    text = label.replace("-", "\u2212")
    drawn = draw_text(text, middle, bottom + 11, 11.0, _MUTED, text_anchor="middle", **HALO)
    return concat([mark, drawn])


def _draw_bands(axis: Axis, raw: float, skeleton: float) -> list[Markup]:
    """Draw the bands of the delta as a strip that begins at the similarity of the texts.

    The band of the pair has a dark frame and a bold name.
    """
    ends = [axis.low, *(raw + step for step in BAND_BOUNDARIES), 1.0]
    pair_band, strips = band(skeleton - raw), []
    for name, tint, start, end in zip(BANDS, TINTS, ends, ends[1:], strict=False):
        x, width, is_own = axis.at(start), axis.at(end) - axis.at(start), name == pair_band
        rim, rim_width = (_INK, 2) if is_own else ("#AAA", 0.8)
        if width > 1:
            strip = [draw_rect(x, STRIP_TOP, width, 16.0, tint, stroke=rim, stroke_width=rim_width)]
            if text_width(name, 11) + 4 <= width:
                look: _Look = {"bold": is_own, "text_anchor": "middle"}
                strip.append(draw_text(name, x + width / 2, STRIP_TOP + 12, 11.0, **look))
            strips.append((is_own, concat(strip)))
    # the highlighted frame is drawn over its neighbours'
    return [strip for _, strip in sorted(strips, key=lambda strip: strip[0])]


def _draw_delta(axis: Axis, raw: float, skeleton: float) -> list[Markup]:
    """Draw an arrow from the similarity of the texts to that of the skeletons, with the difference."""
    start, end, y = axis.at(raw), axis.at(skeleton), _BAR_TOPS["delta"] + 8
    delta = round(skeleton - raw, 6) + 0.0
    colour, direction = (MORE, 1) if delta >= 0 else (LESS, -1)
    head = min(9.0, abs(end - start))
    tip = f"M{end:.1f} {y:.1f}L{end - direction * head:.1f} {y - 5:.1f}V{y + 5:.1f}Z"
    shaft = draw_path(f"M{start:.1f} {y:.1f}H{end - direction * head:.1f}", colour, 3)
    label = f"{delta:+.3f}".replace("-", "\u2212")
    number = draw_text(label, max(start, end) + 7, y + 4, 12.0, colour, bold=True, **HALO)
    name = draw_text("delta", axis.left - 10, y + 4, 12.0, text_anchor="end")
    return [name, shaft, element("path", d=tip, fill=colour), number]


_WIDTH, _MARGIN, GUTTER = 860.0, 20.0, 124.0
COLUMN = (_WIDTH - 2 * _MARGIN - GUTTER) / 2
_LEFT, RIGHT = _MARGIN, _WIDTH - _MARGIN - COLUMN  # where the two columns begin
FONT, LEADING, PADDING, _GAP = 13.0, 17.0, 8.0, 6.0
_MAX_ROWS = 8  # rows drawn per section; the table has all of them
MAX_LINES = 5  # lines per unit
# Okabe and Ito's blue; their vermilion and green, dark enough for text
_MATCH_COLOUR, DENIAL_COLOUR, ACCEPTED_COLOUR = ("#0072B2", "#9C4400", "#00614A")
FACES = "Helvetica, Arial, Liberation Sans, Arimo, sans-serif"

_PLAIN: _Look = {"size": FONT}
DENIAL_STYLE: _Look = {"size": 12.0, "colour": DENIAL_COLOUR, "bold": True}
NOTE_STYLE: _Look = {"size": 12.0, "colour": _MUTED, "font_style": "italic"}


@dataclass(frozen=True)
class Unit:
    """A sentence, an event or a skeleton: its text, whether it contains a negation, and a note."""

    text: str
    denied: bool = False
    note: str = ""


@dataclass(frozen=True)
class PictureRow:
    """Two aligned units with their similarity, or one without a counterpart."""

    left: Unit | None = None
    right: Unit | None = None
    similarity: float | None = None
    places: int = 2  # decimal places of the similarity

    @property
    def clash(self) -> bool:
        """Whether two aligned units differ in negation."""
        if self.similarity is None or self.left is None or self.right is None:
            return False
        return self.left.denied != self.right.denied

    @property
    def between(self) -> str:
        """The similarity as text, or why there is none."""
        if self.left is None or self.right is None:
            return "no counterpart"
        if self.similarity is None:
            return "not compared"
        return f"{self.similarity:.{self.places}f}".replace("-", "\u2212")


@dataclass(frozen=True)
class Section:
    """Rows of one kind under a heading.

    A match with a similarity below `least` is drawn, but does not count.
    """

    name: str
    rows: tuple[PictureRow, ...]
    note: str = ""
    least: float = -1.0
    lines: int = MAX_LINES


@dataclass(frozen=True)
class TextComparison:
    """The comparison of two texts, from which the picture and the tables are made."""

    titles: tuple[str, str]
    sign: str  # "yes", "no" or "open"
    headline: str
    reasons: tuple[str, ...]
    raw: float
    skeleton: float
    thresholds: tuple[float, float]  # of the skeletons, and of the delta
    sections: tuple[Section, ...]
    roles: tuple[Counterpart, ...] = ()
    roles_note: str = ""


def comparison_picture(comparison: TextComparison, alt: str) -> Markup:
    """Draw a comparison as a self-contained SVG.

    What does not fit is counted in it.
    """
    sections = (part for section in comparison.sections for part in _section_parts(section))
    groups, y = stack_parts((*_head_parts(comparison), *sections, *_role_parts(comparison)), 16.0)
    background = draw_rect(0.5, 0.5, _WIDTH - 1, y + 5, "#fff", rx=4, stroke="#DDD")
    one, other = (shorten(title, 80) for title in comparison.titles)
    title = f"{one} and {other}: {comparison.headline}"
    return add_picture_key(svg_root(title, _WIDTH, y + 6, background, *groups, desc=alt, fonts=FACES))


# --- text ---


def _omitted_note(left_out: int) -> list[str]:
    return [f"({left_out:,} more characters)"] if left_out else []


# --- head ---


def _head_parts(comparison: TextComparison) -> Iterator[Part]:
    """Yield the verdict, its reasons, the gauge and the column titles."""
    lines, _ = fit_lines(comparison.headline, _WIDTH - 2 * _MARGIN - 30, 17, 2)
    title = draw_lines(lines, _LEFT + 30, 16, 17.0, bold=True, leading=21)
    yield Part(concat([_draw_sign(comparison.sign, _LEFT + 11, 10), title]), 21 * len(lines) + 8)
    for reason in comparison.reasons:
        lines, left_out = fit_lines(reason, _WIDTH - 2 * _MARGIN - 30, FONT, 4)
        lines = [*lines, *_omitted_note(left_out)]
        yield Part(draw_lines(lines, _LEFT + 30, 12, FONT, leading=LEADING), LEADING * len(lines) + 3)
    sides = (_LEFT + 84, _WIDTH - _MARGIN - 64)
    drawn, height = gauge(comparison.raw, comparison.skeleton, comparison.thresholds, sides)
    yield Part(element("g", drawn, transform="translate(0 16)"), height + 28)
    yield _draw_titles(comparison.titles, comparison.raw)


def _draw_sign(sign: str, x: float, y: float) -> Markup:
    """Draw a tick, a cross or an open ring with a dash.

    It is drawn as paths, so no font needs these glyphs.
    """
    signs = {"yes": ("M-5 0.5L-1.5 4L5 -4", ACCEPTED_COLOUR), "no": ("M-4 -4L4 4M4 -4L-4 4", DENIAL_COLOUR)}
    path, colour = signs.get(sign, ("M-4 0H4", _MUTED))
    filled = sign in ("yes", "no")
    ring = draw_circle(0, 0, 10, colour if filled else "#fff", stroke=colour, stroke_width=2)
    tint = "#fff" if filled else colour
    stroke = draw_path(path, tint, 2.4, stroke_linecap="round", stroke_linejoin="round")
    return element("g", ring, stroke, transform=f"translate({x:.1f} {y:.1f})")


def _draw_titles(titles: tuple[str, str], raw: float) -> Part:
    """Draw the titles of the two columns and the similarity of the whole texts."""
    both = [fit_lines(title, COLUMN, 14, 2)[0] for title in titles]
    most = max(map(len, both))
    columns = zip(both, (_LEFT, RIGHT), strict=True)
    drawn = [draw_lines(lines, x, 14, 14.0, bold=True, leading=18) for lines, x in columns]
    rule = draw_path(f"M{_LEFT:.1f} -8H{_WIDTH - _MARGIN:.1f}", "#DDD")
    caption = draw_text("as whole texts", _WIDTH / 2, 31, 11.0, _MUTED, text_anchor="middle")
    joint = _draw_joint(PictureRow(Unit(""), Unit(""), raw, places=3), -1, 9, 14)
    return Part(concat([rule, *drawn, *joint, caption]), 18 * max(most, 2) + 4)


# --- rows ---


def _section_parts(section: Section) -> Iterator[Part]:
    """Yield the heading, the first rows and the count of the rows that are not drawn."""
    yield _draw_heading(section.name, section.note)
    for row in section.rows[:_MAX_ROWS]:
        yield _draw_row(row, section)
    if left_out := section.rows[_MAX_ROWS:]:
        yield _draw_note(f"… and {len(left_out):,} more rows, in the table: {_count_rows(left_out)}.")
    yield Part(Markup(""), 8)


def _draw_heading(name: str, note: str) -> Part:
    small = draw_text(note, _WIDTH - _MARGIN, 13, 11.0, _MUTED, text_anchor="end")
    return Part(concat([draw_text(name, _LEFT, 13, FONT, _MUTED, bold=True), small]), 21)


def _draw_note(text: str) -> Part:
    lines, _ = fit_lines(text, _WIDTH - 2 * _MARGIN, 12, 3)
    return Part(draw_lines(lines, _LEFT, 12, leading=16, **NOTE_STYLE), 16 * len(lines) + 4)


def _count_rows(rows: Sequence[PictureRow]) -> str:
    """Count the rows that are paired, alone on the left and alone on the right."""
    left_only, right_only = sum(row.right is None for row in rows), sum(row.left is None for row in rows)
    paired = len(rows) - left_only - right_only
    counts = ((paired, "in pairs"), (left_only, "alone on the left"), (right_only, "alone on the right"))
    return ", ".join(f"{count:,} {what}" for count, what in counts if count)


def _draw_row(row: PictureRow, section: Section) -> Part:
    """Draw a row: boxes of equal height and the joint between them."""
    boxes = [
        (list(_box_lines(unit, section.lines)), x)
        for unit, x in ((row.left, _LEFT), (row.right, RIGHT))
        if unit is not None
    ]
    height = LEADING * max(len(lines) for lines, _ in boxes) + 2 * PADDING - 3
    joint = _draw_joint(row, section.least, height / 2)
    drawn = (_draw_box(lines, x, height, len(boxes) == 1) for lines, x in boxes)
    return Part(concat([*joint, *drawn]), height + _GAP)


def _box_lines(unit: Unit, max_lines: int) -> Iterator[tuple[str, _Look]]:
    """Yield the lines of a box, each with its text attributes."""
    lines, left_out = fit_lines(unit.text, COLUMN - 2 * PADDING, FONT, max_lines)
    yield from ((line, _PLAIN) for line in lines)
    yield from ((line, NOTE_STYLE) for line in _omitted_note(left_out))
    if unit.denied:
        yield "¬ this denies something", DENIAL_STYLE
    lines, left_out = fit_lines(unit.note, COLUMN - 2 * PADDING, 12, 2)
    yield from ((line, NOTE_STYLE) for line in (*lines, *_omitted_note(left_out)))


def _draw_box(lines: Sequence[tuple[str, _Look]], x: float, height: float, is_alone: bool) -> Markup:
    """Draw lines of text in a frame, dashed if the unit has no counterpart."""
    frame = {"fill": "#F3F5F7", "stroke": "#B5BCC4"}
    if is_alone:
        frame = {"fill": "#fff", "stroke": "#888", "stroke_dasharray": "4 3"}
    texts = [
        draw_text(line, x + PADDING, PADDING + 10 + LEADING * number, **look)
        for number, (line, look) in enumerate(lines)
    ]
    return concat([draw_rect(x, 0.5, COLUMN, height - 1, rx=5, **frame), *texts])


def _draw_joint(row: PictureRow, min_similarity: float, y: float, inset: float = 0) -> list[Markup]:
    """Draw the line between two units with their similarity on it, or a note if one is alone.

    The line is thicker for a higher similarity, and dashed below `min_similarity`. It ends `inset` of both columns.
    """
    if row.similarity is None:
        return [draw_text(row.between, _WIDTH / 2, y + 4, text_anchor="middle", **NOTE_STYLE)]
    if row.similarity < min_similarity:
        look = {"stroke": "#777", "stroke_width": 1.5, "stroke_dasharray": "3 3"}
    else:
        colour = DENIAL_COLOUR if row.clash else _MATCH_COLOUR
        look = {"stroke": colour, "stroke_width": 1.5 + 6 * max(row.similarity, 0) ** 2}
    line = element("path", d=f"M{_LEFT + COLUMN + inset:.1f} {y:.1f}H{RIGHT - inset:.1f}", **look)
    half = 22 if row.places == 2 else 27
    label_box = draw_rect(_WIDTH / 2 - half, y - 10, 2 * half, 20, "#fff", rx=10, stroke=look["stroke"])
    number = draw_text(row.between, _WIDTH / 2, y + 4.5, FONT, bold=True, text_anchor="middle")
    parts = [line, label_box, number]
    if row.clash:
        parts.append(draw_text("≠ one denies", _WIDTH / 2, y + 24, text_anchor="middle", **DENIAL_STYLE))
    return parts


def _role_parts(comparison: TextComparison) -> Iterator[Part]:
    """Yield a row for each two nouns that fill the same role, with the number of times."""
    if not comparison.roles_note:
        return
    yield _draw_heading("Who plays whom", comparison.roles_note)
    for counterpart in comparison.roles[:_MAX_ROWS]:
        colour, dashes = (_MATCH_COLOUR, None) if counterpart.agrees else ("#777", "3 3")
        look = {"stroke": colour, "stroke_width": min(1.5 + counterpart.times, 6), "stroke_dasharray": dashes}
        line = element("path", d=f"M{_LEFT + COLUMN + 4:.1f} 9H{RIGHT - 4:.1f}", **look)
        pill = draw_rect(_WIDTH / 2 - 22, -1, 44, 20, "#fff", rx=10, stroke=colour)
        times = f"{counterpart.times:,} ×" if counterpart.agrees else f"({counterpart.times:,} ×)"
        number = draw_text(times, _WIDTH / 2, 13.5, FONT, text_anchor="middle")
        source, target = _fit_noun(counterpart.source), _fit_noun(counterpart.target)
        left = draw_text(source, _LEFT + COLUMN - 2, 13.5, FONT, bold=True, text_anchor="end")
        right = draw_text(target, RIGHT + 2, 13.5, FONT, bold=True)
        yield Part(concat([left, line, pill, number, right]), 24)
    if left_out := comparison.roles[_MAX_ROWS:]:
        yield _draw_note(f"… and {len(left_out):,} more that are not drawn. The table has them all.")


def _fit_noun(noun: str) -> str:
    lines, left_out = fit_lines(noun, COLUMN, FONT, 1)
    return " ".join([*lines, *_omitted_note(left_out)])
