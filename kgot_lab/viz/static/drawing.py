"""A drawing of boxes, bars and texts: an SVG on white that needs nothing else, and what it shows in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput
from kgot_lab.io.files import write_whole
from kgot_lab.viz.static.markup import Markup, element, image, joined, keyed
from kgot_lab.viz.static.table import Sheet, Table

FONTS = "Helvetica, Arial, sans-serif"
# around words that stand on lines
HALO: dict[str, Any] = {
    "stroke": "#fff",
    "stroke_width": 3,
    "stroke_linejoin": "round",
    "paint_order": "stroke",
}
WIDE_HALO: dict[str, Any] = {"stroke": "#fff", "stroke_width": 4, "paint_order": "stroke"}


class StaticPicture:
    """An SVG that needs nothing else, and in `alt` what it shows in words."""

    svg: Markup
    alt: str

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return image(self.svg, self.alt)

    def save(self, path: Path | str) -> Path:
        """Write the SVG to a file and return its path; raises BadInput for another kind of file."""
        if Path(path).suffix != ".svg":
            raise BadInput(f"a picture is saved as .svg, not as {Path(path).name}")
        return write_whole(path, self.svg, "the picture")


@dataclass(frozen=True)
class Drawing(StaticPicture):
    """A drawing of boxes, bars and texts."""

    svg: Markup = field(repr=False)
    alt: str
    sheets: Sequence[Sheet] = field(default=(), repr=False)

    def table(self) -> Table:
        """The same as tables; what has none of its own is told in a sentence."""
        return Table(tuple(self.sheets) or (Sheet(("in words",), ((self.alt,),), 1, "The picture"),))


def drawing(alt: str, width: float, height: float, *inner: Markup, sheets: Sequence[Sheet] = ()) -> Drawing:
    """An SVG of this size on white, with what it shows in words and, if there is more to say, in `sheets` of
    a table.
    """
    background = draw_rect(0, 0, width, height, "#fff")
    return Drawing(keyed(paper(alt, width, height, background, *inner)), alt, tuple(sheets))


# --- what a drawing is made of ---


def paper(
    title: str, width: float, height: float, *inner: Markup, desc: str = "", fonts: str = FONTS
) -> Markup:
    """The root of an SVG that needs nothing else."""
    described = [element("desc", desc)] if desc else []
    return element(
        "svg", element("title", title), *described, *inner, xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}", width=f"{width:.0f}", height=f"{height:.0f}", role="img",
        aria_label=title, font_family=fonts, style="max-width:100%;height:auto",
    )  # fmt: skip


def draw_text(
    line: str, x: float, y: float, size: float, colour: str = "#222222", *, bold: bool = False, **look: object
) -> Markup:
    """A line of text that begins at a place; `look` has other attributes, such as text_anchor."""
    place: dict[str, Any] = {"x": float(x), "y": float(y), "font_size": float(size)}
    return element("text", line, **place, fill=colour, font_weight="bold" if bold else None, **look)


def draw_lines(
    lines: Sequence[str], x: float, y: float, size: float, colour: str = "#222222", *, bold: bool = False,
    leading: float = 0.0,
) -> Markup:  # fmt: skip
    """Lines of text below each other, 1.3 times the size of the type apart, or `leading` pixels."""
    step = leading or 1.3 * size
    return joined(
        draw_text(line, x, y + step * number, size, colour, bold=bold) for number, line in enumerate(lines)
    )


def draw_rect(x: float, y: float, width: float, height: float, fill: str = "none", **look: object) -> Markup:
    """A rectangle by its left upper corner."""
    return element(
        "rect", x=float(x), y=float(y), width=float(width), height=float(height), fill=fill, **look
    )


def draw_circle(x: float, y: float, radius: float, fill: str = "none", **look: object) -> Markup:
    """A circle by its middle."""
    return element("circle", cx=float(x), cy=float(y), r=float(radius), fill=fill, **look)


def draw_path(path: str, colour: str, width: float | None = None, **look: object) -> Markup:
    """A line along an SVG path."""
    return element("path", d=path, fill="none", stroke=colour, stroke_width=width, **look)


def draw_arrow_head(tip: float, back: float, y: float, colour: str, half: float = 4.5) -> Markup:
    """The head of a level arrow, from its tip back to its base."""
    points = f"{tip:.1f},{y:.1f} {back:.1f},{y - half:.1f} {back:.1f},{y + half:.1f}"
    return element("polygon", points=points, fill=colour)
