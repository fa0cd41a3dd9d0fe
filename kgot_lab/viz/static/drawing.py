"""A drawing of boxes, bars and texts: an SVG on white that needs nothing else, and what it shows in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.io.atomic_write import write_whole
from kgot_lab.viz.static.markup import Markup, element, image, keyed
from kgot_lab.viz.static.table import Sheet, Table


@dataclass(frozen=True)
class Drawing:
    """An SVG that needs nothing else, and what it shows in words."""

    svg: Markup = field(repr=False)
    alt: str
    sheets: Sequence[Sheet] = field(default=(), repr=False)

    def table(self) -> Table:
        """The same as tables; what has none of its own is told in a sentence."""
        return Table(tuple(self.sheets) or (Sheet(("in words",), ((self.alt,),), 1, "The picture"),))

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return image(self.svg, self.alt)

    def save(self, path: Path | str) -> Path:
        """Write the SVG to a file and return its path; raises BadInput for another kind of file."""
        if Path(path).suffix != ".svg":
            raise BadInput(f"a drawing is saved as .svg, not as {Path(path).name}")
        return write_whole(path, self.svg, "the picture")


def drawing(alt: str, width: float, height: float, *inner: Markup, sheets: Sequence[Sheet] = ()) -> Drawing:
    """An SVG of this size on white, with what it shows in words and, if there is more to say, in `sheets` of
    a table.
    """
    whole = element(
        "svg", element("title", alt), element("rect", width=width, height=height, fill="#fff"), *inner,
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:.0f} {height:.0f}", width=f"{width:.0f}", height=f"{height:.0f}",
        role="img", aria_label=alt, font_family="Helvetica, Arial, sans-serif", style="max-width:100%;height:auto",
    )  # fmt: skip
    return Drawing(keyed(whole), alt, tuple(sheets))
