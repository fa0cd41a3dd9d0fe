"""A common style for all plots: SVG that is readable in grey, with a description and numbers.

Colours are those of Okabe and Ito (2008). A marker and a dash pattern (lines, points) or a hatch (bars)
encode the same as a colour.
"""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.evaluation.significance import Estimate
from kgot_lab.io.files import write_whole
from kgot_lab.text.cleaning import printable_line
from kgot_lab.types import Json
from kgot_lab.viz.static.markup import Markup, escaped, image, shortened, text_width
from kgot_lab.viz.static.table import Table, table

INK, MUTED, FAINT, GRID = "#222222", "#666666", "#919191", "#E5E5E5"
_LONGEST = 32  # maximum characters of a name in a plot
_KINDS = (".svg", ".pdf", ".png")
_NAMESPACE = "http://www.w3.org/2000/svg"


@dataclass(frozen=True)
class Pen:
    """The look of a series: its colour, and what distinguishes it in grey."""

    colour: str
    marker: str = "o"
    dashes: Any = "-"
    hatch: str = ""

    @property
    def line(self) -> dict[str, Any]:
        """Matplotlib options of a line."""
        return {
            "color": self.colour,
            "linestyle": self.dashes,
            "marker": self.marker,
            "markersize": 11 if self.marker == "*" else 5.5,
        }

    @property
    def fill(self) -> dict[str, Any]:
        """Matplotlib options of a bar."""
        return {"facecolor": self.colour, "hatch": self.hatch, "edgecolor": INK, "linewidth": 0.7}


_COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#D55E00", "#0072B2")
# pale colours are darker, for contrast with white; no yellow
_LINES = ("#C28600", "#009E73", "#CC79A7", "#B34D00", "#2A8BC5", "#777777")
_MARKERS = ("s", "^", "v", "D", "P", "X", "<", ">")
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
# hatches of lines only: dots need 180 kB in an SVG
_HATCHES = ("", "////", r"\\\\", "----", "xxxx", "||||", "++++", "//")
BASELINE_COLOUR, BEST = Pen(INK, "o", (0, (4, 2))), Pen("#0072B2", "*")


def line_pen(number: int) -> Pen:
    """Return the pen of the line with this number.

    The first 8 differ in marker, and in colour or dash.
    """
    return Pen(_LINES[number % len(_LINES)], _MARKERS[number % len(_MARKERS)], _DASHES[number % len(_DASHES)])


def bar_pen(number: int) -> Pen:
    """Return the pen of the bar part with this number.

    The first 8 differ in hatch, the first 56 in colour or hatch.
    """
    return Pen(_COLOURS[number % len(_COLOURS)], hatch=_HATCHES[number % len(_HATCHES)])


@dataclass(frozen=True, repr=False)
class Plot:
    """A plot: SVG, description in words, and numbers as rows. `figure` is the matplotlib figure."""

    svg: Markup  # as an element of an HTML page, so without a namespace
    alt: str
    numbers: tuple[Mapping[str, Json], ...] = field(hash=False)
    figure: Any = field(compare=False)

    def table(self, *, limit: int = 50) -> Table:
        """Return at most `limit` rows of the plot's numbers as a table."""
        (sheet,) = table(self.numbers, limit=limit).sheets
        return Table((replace(sheet, name="The numbers of the plot"),))

    def save(self, path: Path | str) -> Path:
        """Write the picture as .svg, .pdf or .png (200 dpi), always with the same bytes.

        Raises BadInput for another suffix.
        """
        path = Path(path)
        if path.suffix not in _KINDS:
            raise BadInput(f"a plot is saved as {', '.join(_KINDS[:-1])} or {_KINDS[-1]}, not as {path.name}")
        if path.suffix == ".svg":
            return write_whole(path, self._repr_svg_(), "the plot")
        unsigned = ("Creator", "Producer", "CreationDate") if path.suffix == ".pdf" else ("Software",)
        with _style():
            drawn = io.BytesIO()
            self.figure.savefig(drawn, format=path.suffix[1:], dpi=200, metadata=dict.fromkeys(unsigned))
        return write_whole(path, drawn.getvalue(), "the plot")

    def _repr_svg_(self) -> str:
        return self.svg.replace("<svg", f'<svg xmlns="{_NAMESPACE}"', 1)

    def _repr_html_(self) -> str:
        return image(self._repr_svg_(), self.alt)

    def __repr__(self) -> str:
        return self.alt


@contextmanager
def plot_drawing(
    width: float, height: float, *, rows: int = 1, columns: int = 1
) -> Iterator[tuple[Any, list[Any]]]:
    """Yield an empty figure of this size in inches, and its panels row by row.

    pyplot and the user's own matplotlib settings are not used.
    """
    with _style():
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axes in panels:
            axes.grid(color=GRID, linewidth=0.7)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        yield figure, panels


def plot(figure: Any, alt: str, numbers: Sequence[Mapping[str, Json]]) -> Plot:
    """Convert a drawn figure to a Plot.

    Numbers are rounded to six digits. Call it inside `plot_drawing`, while the figure's settings apply.
    """
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    said = printable_line(alt)
    drawn = _bare(text.getvalue()).replace("<svg", f'<svg role="img" aria-label="{escaped(said)}"', 1)
    rows = tuple({name: _six(value) for name, value in row.items()} for row in numbers)
    return Plot(Markup(drawn), said, rows, figure)


def nothing(why: str) -> Plot:
    """Return a plot without numbers that says why there are none."""
    with plot_drawing(6.4, 1.2) as (figure, [axes]):
        axes.set_axis_off()
        look = {"ha": "center", "va": "center", "fontsize": 11, "color": MUTED}
        axes.text(0.5, 0.5, short_label(why, 90), transform=axes.transAxes, **look)
        return plot(figure, f"Nothing to draw: {why}", ())


def short_label(text: str, length: int = _LONGEST) -> str:
    """Shorten a text to one line for a plot, counting wide characters as two.

    A name that begins with an underscore gets a space in front, since matplotlib hides such names.
    """
    line = shortened(printable_line(text), length)
    while text_width(line, 1) > text_width("x" * length, 1):
        line = shortened(line, len(line) - 1)
    return f" {line}" if line.startswith("_") else line


def stacked(
    axes: Any,
    bars: Sequence[str],
    parts: Mapping[str, Sequence[float]],
    pens: Mapping[str, Pen] | None = None,
) -> None:
    """Draw horizontal stacked bars, the first on top.

    Without `pens`, parts take theirs in order.
    """
    ends = [0.0] * len(bars)
    for number, (name, lengths) in enumerate(parts.items()):
        pen = pens[name] if pens else bar_pen(number)
        # a part that is 0 everywhere is not in the legend
        places = [place for place, length in enumerate(lengths) if length]
        if places:
            begun, own = [ends[place] for place in places], [lengths[place] for place in places]
            axes.barh(places, own, left=begun, height=0.68, label=short_label(name), **pen.fill)
        ends = [end + length for end, length in zip(ends, lengths, strict=True)]
    axes.set_yticks(range(len(bars)), [short_label(bar) for bar in bars])
    axes.set(ylim=(len(bars) - 0.4, -0.6), xlim=(0, max(ends) or 1))
    axes.grid(axis="y", visible=False)


def counted_bars(axes: Any, ends: Sequence[float], words: Sequence[str]) -> None:
    """Write a label after the end of each bar."""
    for place, (end, said) in enumerate(zip(ends, words, strict=True)):
        annotate(axes, short_label(said, 60), (end, place), va="center")


def annotate(
    axes: Any, words: str, place: tuple[float, float], offset: tuple[float, float] = (4, 0), **look: Any
) -> None:
    """Write a label beside a point, offset in points."""
    axes.annotate(words, place, xytext=offset, textcoords="offset points", **{"fontsize": 9} | look)


def whole_numbers(axis: Any) -> None:
    """Put ticks at integers only."""
    axis.get_major_locator().set_params(integer=True)


def outside_legend(axes: Any, *, gap: float = 0.01) -> None:
    """Put the legend to the right of a panel.

    `gap` is a fraction of the panel's width.
    """
    look = {"loc": "center left", "frameon": False, "fontsize": 9}
    axes.legend(*axes.get_legend_handles_labels(), bbox_to_anchor=(1 + gap, 0.5), **look)


def legend_below(figure: Any) -> None:
    """Put one legend for all panels below them, in as many columns as fit."""
    named = (zip(*axes.get_legend_handles_labels(), strict=True) for axes in figure.axes)
    by_label = {label: handle for panel in named for handle, label in panel}
    # inches, including the legend's sample
    widest = max((text_width(label, 9) / 72 for label in by_label), default=0.0) + 0.7
    columns = max(1, min(len(by_label), int(figure.get_figwidth() / widest)))
    look = {"frameon": False, "fontsize": 9, "handlelength": 2.4, "handleheight": 1.1}
    figure.legend(list(by_label.values()), list(by_label), loc="outside lower center", ncols=columns, **look)


def compact(number: float) -> str:
    """Format a number with about three digits, such as 12,345 and 41.2 and .05."""
    if number == 0 or abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}".removesuffix(".0") if abs(number) >= 1 else f"{number:.2g}"


# --- parts ---


@contextmanager
def _style() -> Iterator[None]:
    """Apply the settings of every plot, whatever a notebook has set for its own.

    Raises NotInstalled if matplotlib is missing.
    """
    try:
        import matplotlib
    except ImportError:
        raise NotInstalled("lab", "matplotlib") from None
    # the font comes with matplotlib; a pair of dollar signs is not mathematics
    ours: dict[Any, Any] = {
        "svg.fonttype": "none", "svg.hashsalt": "kgot_lab", "pdf.fonttype": 42, "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"], "font.size": 10, "figure.dpi": 100,
        "text.parse_math": False, "hatch.linewidth": 0.6, "axes.edgecolor": MUTED,
    }  # fmt: skip
    with matplotlib.rc_context(), warnings.catch_warnings():
        # missing glyphs: the reader's browser has another font
        warnings.filterwarnings("ignore", message="Glyph")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(ours)
        yield


def _bare(drawn: str) -> str:
    """Clean an SVG of matplotlib for embedding in a page.

    URLs of other sites, page-wide styles and unused ids are removed.
    """
    root = ET.fromstring(drawn[drawn.index("<svg") :])
    used = set(re.findall(r"#([\w.-]+)", drawn))
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for inner in root.iter():
        inner.tag, inner.tail = _local(inner.tag), None
        inner.text = inner.text if inner.tag == "text" else None
        values = {
            _local(name): value for name, value in inner.attrib.items() if name != "id" or value in used
        }
        inner.attrib.clear()
        inner.attrib.update(
            {name: _short(value) if name in _COORDINATES else value for name, value in values.items()}
        )
        if inner.get("transform", "").startswith("rotate(-0 "):
            del inner.attrib["transform"]
    root.set("style", "stroke-linejoin:round;stroke-linecap:butt;max-width:100%;height:auto")
    return ET.tostring(root, encoding="unicode")


_COORDINATES = {"d", "x", "y", "points", "transform", "width", "height"}


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _short(coordinates: str) -> str:
    """Round coordinates to two decimals.

    A hundredth of a point is finer than any screen.
    """
    short = re.sub(
        r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), coordinates
    )
    return " ".join(short.split())


def _six(value: Json) -> Json:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def bar_plot(
    size: tuple[float, float, float], parts: Mapping[str, Sequence[float]], pens: Mapping[str, Pen], *,
    bars: Sequence[tuple[str, str]], labels: Sequence[str], said: str, rows: Sequence[Mapping[str, Json]], room: float = 1.0,
) -> Plot:  # fmt: skip
    """Plot horizontal stacked bars, each with a name and a label after it.

    `size` is the width, the height of everything but the bars, and the height of a bar, in inches. `labels`
    are the axis label and optionally a title. `room` is a factor that widens the axis.
    """
    with plot_drawing(size[0], size[1] + size[2] * len(bars)) as (figure, [axes]):
        stacked(axes, [name for name, _ in bars], parts, pens)
        ends = list(map(sum, zip(*parts.values(), strict=True)))
        counted_bars(axes, ends, [words for _, words in bars])
        axes.set_xlim(0, room * max(ends) or 1)
        axes.set_xlabel(labels[0])
        whole_numbers(axes.xaxis)
        if labels[1:]:
            axes.set_title(short_label(labels[1], 110), fontsize=9, loc="left")
        legend_below(figure)
        return plot(figure, said, rows)


def reach(estimate: Estimate) -> list[list[float]]:
    """Return the distances from the mean to the interval's ends, as matplotlib takes error bars."""
    return [[estimate.mean - estimate.low], [estimate.high - estimate.mean]]


def diagonal(axes: Any, label: str = "") -> None:
    """Draw the line on which both axes have the same value."""
    look = {"color": MUTED, "linewidth": 1, "linestyle": BASELINE_COLOUR.dashes, "zorder": 1}
    axes.plot([0, 1], [0, 1], **look | ({"label": label} if label else {}))
