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

from kgot_lab.errors import BadInput, needs_extra
from kgot_lab.evaluation.significance import Estimate
from kgot_lab.io.files import write_atomically
from kgot_lab.text.cleaning import printable_line
from kgot_lab.types import Json
from kgot_lab.viz.static.markup import Markup, escape_value, image_element, shorten, text_width
from kgot_lab.viz.static.table import Table, table

INK, MUTED, FAINT, GRID = "#222222", "#666666", "#919191", "#E5E5E5"
_MAX_NAME_LENGTH = 32  # maximum characters of a name in a plot
_FORMATS = (".svg", ".pdf", ".png")
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
        size = 11 if self.marker == "*" else 5.5
        return {"color": self.colour, "linestyle": self.dashes, "marker": self.marker, "markersize": size}

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
BASELINE_PEN, BEST_PEN = Pen(INK, "o", (0, (4, 2))), Pen("#0072B2", "*")


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
        if path.suffix not in _FORMATS:
            expected = f"a plot is saved as {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}"
            raise BadInput(f"{expected}, not as {path.name}")
        if path.suffix == ".svg":
            return write_atomically(path, self._repr_svg_(), "the plot")
        unset_metadata = ("Creator", "Producer", "CreationDate") if path.suffix == ".pdf" else ("Software",)
        with _style():
            buffer = io.BytesIO()
            metadata = dict.fromkeys(unset_metadata)
            self.figure.savefig(buffer, format=path.suffix[1:], dpi=200, metadata=metadata)
        return write_atomically(path, buffer.getvalue(), "the plot")

    def _repr_svg_(self) -> str:
        return self.svg.replace("<svg", f'<svg xmlns="{_NAMESPACE}"', 1)

    def _repr_html_(self) -> str:
        return image_element(self._repr_svg_(), self.alt)

    def __repr__(self) -> str:
        return self.alt


@contextmanager
def new_figure(
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

    Numbers are rounded to six digits. Call it inside `new_figure`, while the figure's settings apply.
    """
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    label = escape_value(printable_line(alt))
    svg = _clean_svg(text.getvalue()).replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    rounded = (
        {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in row.items()} for row in numbers
    )
    return Plot(Markup(svg), printable_line(alt), tuple(rounded), figure)


def empty_plot(reason: str) -> Plot:
    """Return a plot without numbers that says why there are none."""
    with new_figure(6.4, 1.2) as (figure, [axes]):
        axes.set_axis_off()
        style = {"ha": "center", "va": "center", "fontsize": 11, "color": MUTED, "wrap": True}
        axes.text(0.5, 0.5, short_label(reason, 200), transform=axes.transAxes, **style)
        return plot(figure, f"Nothing to draw: {reason}", ())


def short_label(text: str, length: int = _MAX_NAME_LENGTH) -> str:
    """Shorten a text to one line for a plot, counting wide characters as two.

    A name that begins with an underscore gets a space in front, since matplotlib hides such names.
    """
    line = shorten(printable_line(text), length)
    while text_width(line, 1) > text_width("x" * length, 1):
        line = shorten(line, len(line) - 1)
    return f" {line}" if line.startswith("_") else line


def label_bars(axes: Any, ends: Sequence[float], labels: Sequence[str]) -> None:
    """Write a label after the end of each bar."""
    for row, (end, label) in enumerate(zip(ends, labels, strict=True)):
        annotate(axes, short_label(label, 60), (end, row), va="center")


def annotate(
    axes: Any, text: str, point: tuple[float, float], offset: tuple[float, float] = (4, 0), **style: Any
) -> None:
    """Write a label beside a point, offset in points."""
    axes.annotate(text, point, xytext=offset, textcoords="offset points", **{"fontsize": 9} | style)


def use_integer_ticks(axis: Any) -> None:
    """Put ticks at integers only."""
    axis.get_major_locator().set_params(integer=True)


def place_legend_outside(axes: Any, *, gap: float = 0.01) -> None:
    """Put the legend to the right of a panel.

    `gap` is a fraction of the panel's width.
    """
    style = {"loc": "center left", "frameon": False, "fontsize": 9}
    axes.legend(*axes.get_legend_handles_labels(), bbox_to_anchor=(1 + gap, 0.5), **style)


def place_legend_below(figure: Any) -> None:
    """Put one legend for all panels below them, in as many columns as fit."""
    entries = (zip(*axes.get_legend_handles_labels(), strict=True) for axes in figure.axes)
    by_label = {label: handle for panel in entries for handle, label in panel}
    # inches, including the legend's sample
    entry_width = max((text_width(label, 9) / 72 for label in by_label), default=0.0) + 0.7
    columns = max(1, min(len(by_label), int(figure.get_figwidth() / entry_width)))
    style = {"frameon": False, "fontsize": 9, "handlelength": 2.4, "handleheight": 1.1}
    figure.legend(list(by_label.values()), list(by_label), loc="outside lower center", ncols=columns, **style)


def format_compact(number: float) -> str:
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
    with needs_extra("lab", "matplotlib"):
        import matplotlib
    # the font comes with matplotlib; a pair of dollar signs is not mathematics
    settings: dict[Any, Any] = {
        "svg.fonttype": "none", "svg.hashsalt": "kgot_lab", "pdf.fonttype": 42, "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"], "font.size": 10, "figure.dpi": 100,
        "text.parse_math": False, "hatch.linewidth": 0.6, "axes.edgecolor": MUTED,
    }  # fmt: skip
    with matplotlib.rc_context(), warnings.catch_warnings():
        # missing glyphs: the reader's browser has another font
        warnings.filterwarnings("ignore", message="Glyph")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        yield


def _clean_svg(svg: str) -> str:
    """Clean an SVG of matplotlib for embedding in a page.

    URLs of other sites, page-wide styles and unused ids are removed.
    """
    root = ET.fromstring(svg[svg.index("<svg") :])
    used = set(re.findall(r"#([\w.-]+)", svg))
    for parent in list(root.iter()):
        for child in list(parent):
            if _local_name(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for node in root.iter():
        node.tag, node.tail = _local_name(node.tag), None
        node.text = node.text if node.tag == "text" else None
        kept = ((name, value) for name, value in node.attrib.items() if name != "id" or value in used)
        values = {_local_name(name): value for name, value in kept}
        node.attrib.clear()
        for name, value in values.items():
            node.set(name, _round_coordinates(value) if name in _COORDINATES else value)
        if node.get("transform", "").startswith("rotate(-0 "):
            del node.attrib["transform"]
    root.set("style", "stroke-linejoin:round;stroke-linecap:butt;max-width:100%;height:auto")
    return ET.tostring(root, encoding="unicode")


_COORDINATES = {"d", "x", "y", "points", "transform", "width", "height"}


def _local_name(name: str) -> str:
    return name.rpartition("}")[2]


def _round_coordinates(path: str) -> str:
    """Round coordinates to two decimals.

    A hundredth of a point is finer than any screen.
    """
    rounded = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), path)
    return " ".join(rounded.split())


def bar_plot(
    size: tuple[float, float, float], parts: Mapping[str, Sequence[float]], pens: Mapping[str, Pen], *,
    bars: Sequence[tuple[str, str]], labels: Sequence[str], description: str, rows: Sequence[Mapping[str, Json]],
) -> Plot:  # fmt: skip
    """Plot horizontal stacked bars, each with a name and a label after it.

    `size` is the width, the height of everything but the bars, and the height of a bar, in inches. `labels`
    are the axis label and the lines above the bars, if any. A name may have two lines.
    """
    with new_figure(size[0], size[1] + size[2] * len(bars)) as (figure, [axes]):
        ends = [0.0] * len(bars)
        for name, lengths in parts.items():
            # a part that is 0 everywhere is not in the legend
            rows_with_part = [row for row, length in enumerate(lengths) if length]
            if rows_with_part:
                starts, widths = ([values[row] for row in rows_with_part] for values in (ends, lengths))
                style = {"height": 0.68, "label": short_label(name), **pens[name].fill}
                axes.barh(rows_with_part, widths, left=starts, **style)
            ends = [end + length for end, length in zip(ends, lengths, strict=True)]
        names = ("\n".join(short_label(line, 60) for line in name.split("\n")) for name, _ in bars)
        axes.set_yticks(range(len(bars)), list(names))
        axes.set_ylim(len(bars) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        label_bars(axes, ends, [label for _, label in bars])
        axes.set_xlim(0, max(ends) or 1)
        axes.set_xlabel(labels[0])
        if all(float(end).is_integer() for end in ends):
            use_integer_ticks(axes.xaxis)
        if labels[1:]:
            lines = "\n".join(short_label(line, 110) for line in labels[1:])
            figure.suptitle(lines, x=0.01, ha="left", fontsize=9)
        place_legend_below(figure)
        return plot(figure, description, rows)


def error_bar(estimate: Estimate) -> list[list[float]]:
    """Return the distances from the mean to the interval's ends, as matplotlib takes error bars."""
    return [[estimate.mean - estimate.low], [estimate.high - estimate.mean]]


def draw_diagonal(axes: Any, label: str = "") -> None:
    """Draw the line on which both axes have the same value."""
    style = {"color": MUTED, "linewidth": 1, "linestyle": BASELINE_PEN.dashes, "zorder": 1}
    axes.plot([0, 1], [0, 1], **style | ({"label": label} if label else {}))
