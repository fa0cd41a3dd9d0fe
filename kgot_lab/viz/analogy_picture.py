"""Picture of two texts side by side: verdict, gauge, texts, skeletons, alignment and role mapping."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgot_lab.analogy.linguistic import Counterpart
from kgot_lab.similarity.delta import BAND_BOUNDARIES, BANDS, band
from kgot_lab.viz.static.drawing import HALO, draw_circle, draw_path, draw_rect, fitted, paper
from kgot_lab.viz.static.markup import Markup, element, joined, keyed, shortened, text_width

# The gauge of a pair: both similarities and their difference on one axis, with the bands of the delta.

_INK, _MUTED = "#222", "#595959"
# Okabe and Ito; the last two are dark enough for text
_TEXTS, SKELETONS, MORE, LESS = ("#56B4E9", "#E69F00", "#007A59", "#B34D00")
TINTS = ("#FFFFFF", "#F0F0F0", "#E0E0E0", "#CDCDCD")  # colours of the bands, from negative to high
_BAR, AXIS = 15.0, 128.0
_LANES = {"texts": 0.0, "skeletons": 27.0, "delta": 71.0}
STRIP = _LANES["delta"] + 22


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
    (least, by), low = thresholds, _LANES["skeletons"]
    delta = f"and a delta of {'+' * (by >= 0)}{_short(by)} or more"
    parts = [
        *_scale(axis),
        *(_guide(axis, lane, value) for lane, value in (("texts", raw), ("skeletons", skeleton))),
        _bar(axis, "texts", raw, _TEXTS),
        _bar(axis, "skeletons", skeleton, SKELETONS),
        _threshold(axis, least, (low - 4, low + _BAR + 5), f"an edge needs {_short(least)} or more"),
        _threshold(axis, raw + by, (STRIP - 3, STRIP + 20), delta),
        *_bands(axis, raw, skeleton),
        *_delta(axis, raw, skeleton),
    ]
    return joined(parts), AXIS + 22


def _short(number: float) -> str:
    """Format a number with at most three decimal places."""
    return f"{round(number, 3):g}"


def _said(text: str, x: float, y: float, size: float = 12.0, **look: object) -> Markup:
    return element("text", text, x=x, y=y, font_size=size, **{"fill": _INK, **look})


def _scale(axis: Axis) -> list[Markup]:
    """Draw the axis with a label at every 0.2 and a faint vertical line at every 0.1."""
    tenths = range(round(10 * axis.low), 11)
    made = [_said("cosine", axis.left - 22, AXIS + 16, 11.0, text_anchor="end", fill=_MUTED)]
    for tenth in tenths:
        x = axis.at(tenth / 10)
        made.append(draw_path(f"M{x:.1f} -4V{AXIS}", "#999" if tenth == 0 else "#EEE"))
        if tenth % 2 == 0:
            number = f"{tenth / 10:g}".replace("-", "\u2212")
            made.append(_said(number, x, AXIS + 16, 11.0, text_anchor="middle", fill=_MUTED))
    return [*made, draw_path(f"M{axis.left:.1f} {AXIS}H{axis.right:.1f}", "#999")]


def _guide(axis: Axis, lane: str, value: float) -> Markup:
    """Draw a dotted line from the end of a bar down to the bands."""
    return draw_path(f"M{axis.at(value):.1f} {_LANES[lane] + _BAR}V{STRIP}", "#777", stroke_dasharray="2 3")


def _bar(axis: Axis, lane: str, value: float, colour: str) -> Markup:
    """Draw a bar from 0 to a value, with its name on the left and the number on the right."""
    y, (start, end) = _LANES[lane], sorted((axis.at(0), axis.at(value)))
    bar = draw_rect(start, y, max(end - start, 1.5), _BAR, colour, stroke="#333", stroke_width=0.8)
    name = _said(lane, axis.left - 10, y + 12, text_anchor="end")
    number = _halo(f"{value:.3f}".replace("-", "\u2212"), end + 6, y + 12, font_weight="bold")
    return joined([name, bar, number])


def _halo(text: str, x: float, y: float, size: float = 12.0, **look: object) -> Markup:
    """Draw text with a halo, so that it is readable on top of a line."""
    return _said(text, x, y, size, **HALO, **look)


def _threshold(axis: Axis, cosine: float, reach: tuple[float, float], words: str) -> Markup:
    """Draw a threshold on the axis with its meaning below it, or nothing if it is off the axis."""
    if not axis.holds(cosine):
        return Markup("")
    x, (top, bottom) = axis.at(cosine), reach
    mark = draw_path(f"M{x:.1f} {top:.1f}V{bottom:.1f}", "#000", 2, stroke_dasharray="3 2")
    half = text_width(words, 11) / 2
    middle = min(max(x, axis.left + half), axis.right + 60 - half)
    said = words.replace("-", "\u2212")
    return joined([mark, _halo(said, middle, bottom + 11, 11.0, text_anchor="middle", fill=_MUTED)])


def _bands(axis: Axis, raw: float, skeleton: float) -> list[Markup]:
    """Draw the bands of the delta as a strip that begins at the similarity of the texts.

    The band of the pair has a dark frame and a bold name.
    """
    ends = [axis.low, *(raw + step for step in BAND_BOUNDARIES), 1.0]
    own, strips = band(skeleton - raw), []
    for name, tint, start, end in zip(BANDS, TINTS, ends, ends[1:], strict=False):
        x, width = axis.at(start), axis.at(end) - axis.at(start)
        frame = dict(
            zip(("stroke", "stroke_width"), (_INK, 2) if name == own else ("#AAA", 0.8), strict=True)
        )
        if width > 1:
            strip = [draw_rect(x, STRIP, width, 16.0, tint, **frame)]
            if text_width(name, 11) + 4 <= width:
                look = {"font_weight": "bold"} if name == own else {}
                strip.append(_said(name, x + width / 2, STRIP + 12, 11.0, text_anchor="middle", **look))
            strips.append((name == own, joined(strip)))
    # the highlighted frame is drawn over its neighbours'
    return [strip for _, strip in sorted(strips, key=lambda each: each[0])]


def _delta(axis: Axis, raw: float, skeleton: float) -> list[Markup]:
    """Draw an arrow from the similarity of the texts to that of the skeletons, with the difference."""
    start, end, y = axis.at(raw), axis.at(skeleton), _LANES["delta"] + 8
    delta = round(skeleton - raw, 6) + 0.0
    colour, way = (MORE, 1) if delta >= 0 else (LESS, -1)
    head = min(9.0, abs(end - start))
    tip = f"M{end:.1f} {y:.1f}L{end - way * head:.1f} {y - 5:.1f}V{y + 5:.1f}Z"
    shaft = draw_path(f"M{start:.1f} {y:.1f}H{end - way * head:.1f}", colour, 3)
    words = f"{delta:+.3f}".replace("-", "\u2212")
    number = _halo(words, max(start, end) + 7, y + 4, font_weight="bold", fill=colour)
    name = _said("delta", axis.left - 10, y + 4, text_anchor="end")
    return [name, shaft, element("path", d=tip, fill=colour), number]


_WIDTH, _EDGE, GUTTER = 860.0, 20.0, 124.0
COLUMN = (_WIDTH - 2 * _EDGE - GUTTER) / 2
_LEFT, RIGHT = _EDGE, _WIDTH - _EDGE - COLUMN  # where the two columns begin
FONT, LEADING, PADDING, _GAP = 13.0, 17.0, 8.0, 6.0
_ROWS = 8  # rows drawn per section; the table has all of them
LINES = 5  # lines per unit
# Okabe and Ito's blue; their vermilion and green, dark enough for text
_JOINS, DENIES, STANDS = ("#0072B2", "#9C4400", "#00614A")
FACES = "Helvetica, Arial, Liberation Sans, Arimo, sans-serif"

_Look = Mapping[str, object]
_PLAIN: _Look = {}
DENIAL: _Look = {"fill": DENIES, "font_weight": "bold", "font_size": 12.0}
ASIDE: _Look = {"fill": _MUTED, "font_style": "italic", "font_size": 12.0}


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
        return (
            self.similarity is not None
            and self.left is not None
            and self.right is not None
            and self.left.denied != self.right.denied
        )

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
    lines: int = LINES


@dataclass(frozen=True)
class Likeness:
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


@dataclass(frozen=True)
class PicturePart:
    """A part of the picture, drawn from y = 0 down."""

    drawn: Markup
    height: float


def picture(told: Likeness, alt: str) -> Markup:
    """Draw a comparison as a self-contained SVG.

    What does not fit is counted in it.
    """
    placed, y = [], 16.0
    sections = (part for section in told.sections for part in _section(section))
    for part in (*_head(told), *sections, *_roles(told)):
        placed.append(element("g", part.drawn, transform=f"translate(0 {y:.1f})"))
        y += part.height
    background = draw_rect(0.5, 0.5, _WIDTH - 1, y + 5, "#fff", rx=4, stroke="#DDD")
    one, other = (shortened(title, 80) for title in told.titles)
    title = f"{one} and {other}: {told.headline}"
    return keyed(paper(title, _WIDTH, y + 6, background, *placed, desc=alt, fonts=FACES))


# --- text ---


def _more(left_out: int) -> list[str]:
    return [f"({left_out:,} more characters)"] if left_out else []


def _text(text: str, x: float, y: float, **look: object) -> Markup:
    return element("text", text, x=x, y=y, **{"font_size": FONT, "fill": _INK, **look})


# --- head ---


def _head(told: Likeness) -> Iterator[PicturePart]:
    """Yield the verdict, its reasons, the gauge and the column titles."""
    lines, _ = fitted(told.headline, _WIDTH - 2 * _EDGE - 30, 17, 2)
    look = {"font_size": 17.0, "font_weight": "bold"}
    title = [_text(line, _LEFT + 30, 16 + 21 * number, **look) for number, line in enumerate(lines)]
    yield PicturePart(joined([_sign(told.sign, _LEFT + 11, 10), *title]), 21 * len(lines) + 8)
    for reason in told.reasons:
        lines, left_out = fitted(reason, _WIDTH - 2 * _EDGE - 30, FONT, 4)
        lines = [*lines, *_more(left_out)]
        drawn = joined(_text(line, _LEFT + 30, 12 + LEADING * number) for number, line in enumerate(lines))
        yield PicturePart(drawn, LEADING * len(lines) + 3)
    drawn, height = gauge(told.raw, told.skeleton, told.thresholds, (_LEFT + 84, _WIDTH - _EDGE - 64))
    yield PicturePart(element("g", drawn, transform="translate(0 16)"), height + 28)
    yield _titles(told.titles, told.raw)


def _sign(sign: str, x: float, y: float) -> Markup:
    """Draw a tick, a cross or an open ring with a dash.

    It is drawn as paths, so no font needs these glyphs.
    """
    signs = {"yes": ("M-5 0.5L-1.5 4L5 -4", STANDS), "no": ("M-4 -4L4 4M4 -4L-4 4", DENIES)}
    path, colour = signs.get(sign, ("M-4 0H4", _MUTED))
    filled = sign in ("yes", "no")
    ring = draw_circle(0, 0, 10, colour if filled else "#fff", stroke=colour, stroke_width=2)
    tint = "#fff" if filled else colour
    stroke = draw_path(path, tint, 2.4, stroke_linecap="round", stroke_linejoin="round")
    return element("g", ring, stroke, transform=f"translate({x:.1f} {y:.1f})")


def _titles(titles: tuple[str, str], raw: float) -> PicturePart:
    """Draw the titles of the two columns and the similarity of the whole texts."""
    both = [fitted(title, COLUMN, 14, 2)[0] for title in titles]
    most = max(map(len, both))
    drawn = [
        _text(line, x, 14 + 18 * number, font_size=14.0, font_weight="bold")
        for lines, x in zip(both, (_LEFT, RIGHT), strict=True)
        for number, line in enumerate(lines)
    ]
    rule = draw_path(f"M{_LEFT:.1f} -8H{_WIDTH - _EDGE:.1f}", "#DDD")
    caption = _text("as whole texts", _WIDTH / 2, 31, text_anchor="middle", font_size=11.0, fill=_MUTED)
    joint = _joint(PictureRow(Unit(""), Unit(""), raw, places=3), -1, 9, 14)
    return PicturePart(joined([rule, *drawn, *joint, caption]), 18 * max(most, 2) + 4)


# --- rows ---


def _section(section: Section) -> Iterator[PicturePart]:
    """Yield the heading, the first rows and the count of the rows that are not drawn."""
    yield _heading(section.name, section.note)
    for row in section.rows[:_ROWS]:
        yield _row(row, section)
    if left_out := section.rows[_ROWS:]:
        yield _aside(
            f"… and {len(left_out):,} more rows that are not drawn: {_counted(left_out)}. The table has them all."
        )
    yield PicturePart(Markup(""), 8)


def _heading(name: str, note: str) -> PicturePart:
    small = _text(note, _WIDTH - _EDGE, 13, font_size=11.0, text_anchor="end", fill=_MUTED)
    return PicturePart(joined([_text(name, _LEFT, 13, font_weight="bold", fill=_MUTED), small]), 21)


def _aside(words: str) -> PicturePart:
    lines, _ = fitted(words, _WIDTH - 2 * _EDGE, 12, 3)
    return PicturePart(
        joined(_text(line, _LEFT, 12 + 16 * number, **ASIDE) for number, line in enumerate(lines)),
        16 * len(lines) + 4,
    )


def _counted(rows: Sequence[PictureRow]) -> str:
    """Count the rows that are paired, alone on the left and alone on the right."""
    ours, theirs = sum(row.right is None for row in rows), sum(row.left is None for row in rows)
    named = (
        (len(rows) - ours - theirs, "in pairs"),
        (ours, "alone on the left"),
        (theirs, "alone on the right"),
    )
    return ", ".join(f"{count:,} {what}" for count, what in named if count)


def _row(row: PictureRow, section: Section) -> PicturePart:
    """Draw a row: boxes of equal height and the joint between them."""
    boxes = [
        (list(_lines(unit, section.lines)), x)
        for unit, x in ((row.left, _LEFT), (row.right, RIGHT))
        if unit is not None
    ]
    height = LEADING * max(len(lines) for lines, _ in boxes) + 2 * PADDING - 3
    alone = len(boxes) == 1
    return PicturePart(
        joined(
            [*_joint(row, section.least, height / 2), *(_box(lines, x, height, alone) for lines, x in boxes)]
        ),
        height + _GAP,
    )


def _lines(unit: Unit, most: int) -> Iterator[tuple[str, _Look]]:
    """Yield the lines of a box, each with its text attributes."""
    lines, left_out = fitted(unit.text, COLUMN - 2 * PADDING, FONT, most)
    yield from ((line, _PLAIN) for line in lines)
    yield from ((line, ASIDE) for line in _more(left_out))
    if unit.denied:
        yield "¬ this denies something", DENIAL
    lines, left_out = fitted(unit.note, COLUMN - 2 * PADDING, 12, 2)
    yield from ((line, ASIDE) for line in (*lines, *_more(left_out)))


def _box(lines: Sequence[tuple[str, _Look]], x: float, height: float, alone: bool) -> Markup:
    """Draw lines of text in a frame, dashed if the unit has no counterpart."""
    frame = (
        {"fill": "#fff", "stroke": "#888", "stroke_dasharray": "4 3"}
        if alone
        else {"fill": "#F3F5F7", "stroke": "#B5BCC4"}
    )
    words = [
        _text(line, x + PADDING, PADDING + 10 + LEADING * number, **look)
        for number, (line, look) in enumerate(lines)
    ]
    return joined([draw_rect(x, 0.5, COLUMN, height - 1, rx=5, **frame), *words])


def _joint(row: PictureRow, least: float, y: float, short: float = 0) -> list[Markup]:
    """Draw the line between two units with their similarity on it, or a note if one is alone.

    The line is thicker for a higher similarity, and dashed below `least`. It ends `short` of both columns.
    """
    if row.similarity is None:
        return [_text(row.between, _WIDTH / 2, y + 4, text_anchor="middle", **ASIDE)]
    if row.similarity < least:
        look = {"stroke": "#777", "stroke_width": 1.5, "stroke_dasharray": "3 3"}
    else:
        look = {
            "stroke": DENIES if row.clash else _JOINS,
            "stroke_width": 1.5 + 6 * max(row.similarity, 0) ** 2,
        }
    line = element("path", d=f"M{_LEFT + COLUMN + short:.1f} {y:.1f}H{RIGHT - short:.1f}", **look)
    half = 22 if row.places == 2 else 27
    pill = draw_rect(_WIDTH / 2 - half, y - 10, 2 * half, 20, "#fff", rx=10, stroke=look["stroke"])
    parts = [line, pill, _text(row.between, _WIDTH / 2, y + 4.5, text_anchor="middle", font_weight="bold")]
    if row.clash:
        parts.append(_text("≠ one denies", _WIDTH / 2, y + 24, text_anchor="middle", **DENIAL))
    return parts


def _roles(told: Likeness) -> Iterator[PicturePart]:
    """Yield a row for each two nouns that fill the same role, with the number of times."""
    if not told.roles_note:
        return
    yield _heading("Who plays whom", told.roles_note)
    for each in told.roles[:_ROWS]:
        colour, dashes = (_JOINS, None) if each.agrees else ("#777", "3 3")
        look = {"stroke": colour, "stroke_width": min(1.5 + each.times, 6), "stroke_dasharray": dashes}
        line = element("path", d=f"M{_LEFT + COLUMN + 4:.1f} 9H{RIGHT - 4:.1f}", **look)
        pill = draw_rect(_WIDTH / 2 - 22, -1, 44, 20, "#fff", rx=10, stroke=colour)
        number = _text(
            f"{each.times:,} ×" if each.agrees else f"({each.times:,} ×)",
            _WIDTH / 2,
            13.5,
            text_anchor="middle",
        )
        ours = _text(_noun(each.source), _LEFT + COLUMN - 2, 13.5, text_anchor="end", font_weight="bold")
        yield PicturePart(
            joined(
                [ours, line, pill, number, _text(_noun(each.target), RIGHT + 2, 13.5, font_weight="bold")]
            ),
            24,
        )
    if left_out := told.roles[_ROWS:]:
        yield _aside(f"… and {len(left_out):,} more that are not drawn. The table has them all.")


def _noun(noun: str) -> str:
    lines, left_out = fitted(noun, COLUMN, FONT, 1)
    return " ".join([*lines, *_more(left_out)])
