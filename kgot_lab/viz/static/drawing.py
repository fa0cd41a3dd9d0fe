"""Draw boxes, bars and texts as a self-contained SVG on white, with a description in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from kgot_lab.arguments import CheckedCalls
from kgot_lab.errors import BadInput
from kgot_lab.io.files import write_atomically
from kgot_lab.viz.static.markup import Markup, add_picture_key, concat, element, image_element, text_width
from kgot_lab.viz.static.table import Sheet, Table

FONTS = "Helvetica, Arial, sans-serif"
# halo around text on top of lines
HALO: dict[str, Any] = {
    "stroke": "#fff",
    "stroke_width": 3,
    "stroke_linejoin": "round",
    "paint_order": "stroke",
}


class StaticPicture(CheckedCalls):
    """A self-contained SVG with a description in `alt`."""

    svg: Markup
    alt: str

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return image_element(self.svg, self.alt)

    def save(self, path: Path | str) -> Path:
        """Write the SVG to a file and return its path.

        Raises BadInput for another suffix.
        """
        if Path(path).suffix != ".svg":
            raise BadInput(f"a picture is saved as .svg, not as {Path(path).name}")
        return write_atomically(path, self.svg, "the picture")


@dataclass(frozen=True)
class Drawing(StaticPicture):
    """A drawing of boxes, bars and texts."""

    svg: Markup = field(repr=False)
    alt: str
    sheets: Sequence[Sheet] = field(default=(), repr=False)

    def table(self) -> Table:
        """Return the drawing's tables, or its description if it has none."""
        return Table(tuple(self.sheets) or (Sheet(("in words",), ((self.alt,),), 1, "The picture"),))


def drawing(alt: str, width: float, height: float, *inner: Markup, sheets: Sequence[Sheet] = ()) -> Drawing:
    """Create an SVG drawing on a white background.

    `alt` describes it in words. `sheets` are tables with further detail.
    """
    background = draw_rect(0, 0, width, height, "#fff")
    return Drawing(add_picture_key(svg_root(alt, width, height, background, *inner)), alt, tuple(sheets))


class Part(NamedTuple):
    """A part of a drawing that consists of parts below each other, drawn from y = 0 down."""

    markup: Markup
    height: float


def stack_parts(parts: Iterable[Part], top: float) -> tuple[list[Markup], float]:
    """Place parts below each other from `top` on, and return them with where the last one ends."""
    placed = []
    for part in parts:
        placed.append(element("g", part.markup, transform=f"translate(0 {top:.1f})"))
        top += part.height
    return placed, top


# --- elements of a drawing ---


def svg_root(
    title: str, width: float, height: float, *inner: Markup, desc: str = "", fonts: str = FONTS
) -> Markup:
    """Build the root element of a self-contained SVG."""
    described = [element("desc", desc)] if desc else []
    return element(
        "svg", element("title", title), *described, *inner, xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}", width=f"{width:.0f}", height=f"{height:.0f}", role="img",
        aria_label=title, font_family=fonts, style="max-width:100%;height:auto",
    )  # fmt: skip


def draw_text(
    line: str, x: float, y: float, size: float, colour: str = "#222222", *, bold: bool = False, **look: object
) -> Markup:
    """Draw a line of text that begins at a point.

    `look` has other attributes, such as text_anchor.
    """
    position: dict[str, Any] = {"x": float(x), "y": float(y), "font_size": float(size)}
    return element("text", line, **position, fill=colour, font_weight="bold" if bold else None, **look)


def draw_lines(
    lines: Sequence[str], x: float, y: float, size: float, colour: str = "#222222", *, leading: float = 0.0,
    **look: Any,
) -> Markup:  # fmt: skip
    """Draw lines of text below each other.

    The line spacing is 1.3 times `size`, or `leading` pixels. `look` is that of `draw_text`.
    """
    step = leading or 1.3 * size
    return concat(draw_text(line, x, y + step * n, size, colour, **look) for n, line in enumerate(lines))


def draw_rect(x: float, y: float, width: float, height: float, fill: str = "none", **look: object) -> Markup:
    """Draw a rectangle, given its upper left corner."""
    return element(
        "rect", x=float(x), y=float(y), width=float(width), height=float(height), fill=fill, **look
    )


def draw_circle(x: float, y: float, radius: float, fill: str = "none", **look: object) -> Markup:
    """Draw a circle, given its centre."""
    return element("circle", cx=float(x), cy=float(y), r=float(radius), fill=fill, **look)


def draw_path(path: str, colour: str, width: float | None = None, **look: object) -> Markup:
    """Draw a line along an SVG path."""
    return element("path", d=path, fill="none", stroke=colour, stroke_width=width, **look)


def draw_arrow_head(tip: float, back: float, y: float, colour: str) -> Markup:
    """Draw the head of a horizontal arrow, from its tip back to its base."""
    points = f"{tip:.1f},{y:.1f} {back:.1f},{y - 4.5:.1f} {back:.1f},{y + 4.5:.1f}"
    return element("polygon", points=points, fill=colour)


# Text wrapping, since SVG does not break lines.

# where a name of a program, a file or a page has parts: after -, _, / and :, before a dot, between lower and upper case
_PART_END = re.compile(r"[-_/:](?=[^\W_])|(?<=\w)(?=\.[^\W\d])|(?<=[a-z])(?=[A-Z])")
WIDE_CHARACTERS, NARROW_CHARACTERS = frozenset("MWm@%&\u2014\u2026"), frozenset(" fijlrtI.,:;!|'()[]-")


def wrap_lines(text: str, width: float, size: float) -> Iterator[str]:
    """Wrap a text into lines of at most this width.

    Lines break at spaces, after hyphens, between Chinese characters, and inside a word that fills a line, between
    its parts if it has any.
    """
    line, start = " ".join(text.split()), 0
    long_words = (word for word in re.finditer(r"\S+", line) if line_width(word[0], size) > width)
    parts = {word.start() + part.end() for word in long_words for part in _PART_END.finditer(word[0])}
    while start < len(line):
        end, stop, used = start, 0, 0.0
        while end < len(line) and (used := used + _max_character_width(line[end], size)) <= width:
            end += 1
            sign = line[end - 1]
            if line[end : end + 1] == " " or sign == "-" or end in parts or text_width(sign, 1) == 1:
                stop = end
        cut = end if end == len(line) else stop or max(end, start + 1)
        yield line[start:cut].rstrip()
        start = cut + (line[cut : cut + 1] == " ")


def fit_lines(text: str, width: float, size: float, max_lines: int) -> tuple[list[str], int]:
    """Return the first lines of a text, and the number of characters that do not fit."""
    lines = list(islice(wrap_lines(text, width, size), max_lines + 1))
    if len(lines) <= max_lines:
        return lines, 0
    # space for the ellipsis
    last = next(wrap_lines(lines[max_lines - 1], width - 1.4 * size, size), "")
    shown = [*lines[: max_lines - 1], last]
    omitted = len("".join(text.split())) - len("".join(" ".join(shown).split()))
    return [*shown[:-1], f"{last} …"], omitted


@lru_cache(maxsize=4096)  # each step of a run has the same names again
def balance_lines(text: str, width: float, size: float, max_lines: int) -> tuple[str, ...]:
    """Wrap a text into as few lines as possible, of about equal length.

    Lines have at most this width, or that of the longest word up to twice the width, so that it stays whole. Text
    beyond `max_lines` lines is truncated.
    """
    broken = "".join(" " if text_width(character, 1) == 1 else character for character in text)
    words = _PART_END.sub(r"\g<0> ", broken).split()
    longest = max((line_width(word, size) for word in words), default=0.0)
    width = max(width, min(longest, 2 * width))
    lines, omitted = fit_lines(text, width, size, max_lines)
    if len(lines) < 2 or omitted:
        return tuple(lines)
    low, high = min(max(width / 2, longest), width), width
    while high - low > size / 2:  # bisection for the narrowest width that needs no more lines
        middle = (low + high) / 2
        fits = len(fit_lines(text, middle, size, len(lines) + 1)[0]) <= len(lines)
        low, high = (low, middle) if fits else (middle, high)
    return tuple(fit_lines(text, high, size, len(lines))[0])


def _max_character_width(character: str, size: float) -> float:
    """Estimate the maximum width of a character.

    It is finer than the average by which texts are measured, for lines that fill a box.
    """
    if character in WIDE_CHARACTERS:
        correction = 0.4
    elif character in NARROW_CHARACTERS:
        correction = -0.24
    else:
        correction = 0.18 if character.isupper() else 0.0
    return text_width(character, size) + size * correction


def line_width(text: str, size: float, *, bold: bool = False) -> float:
    """Estimate the maximum width of a line in a sans-serif font of this size, in the same unit."""
    return sum(_max_character_width(character, size) for character in text) * (1.08 if bold else 1.0)
