"""Tables that render as plain text, Markdown, HTML and LaTeX."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kgot_lab.errors import BadInput
from kgot_lab.text.cleaning import printable_line
from kgot_lab.types import Json

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "−": "$-$",
})  # fmt: skip
# prefixes that a spreadsheet reads as a formula (OWASP, CSV injection)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\|*_`[]<>"})


class Cell(NamedTuple):
    """A text, optionally bold."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class Grid:
    """A title, column names, and rows of cells.

    The first column is aligned left, the others right unless they hold only words. In HTML it has the class
    `css`, and no column names unless `headed`.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    words: bool = False
    headed: bool = True
    css: str = "grid"

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise BadInput(f"every row of the table {self.title!r} needs {len(self.columns)} cells")

    @property
    def text(self) -> str:
        """Plain text with aligned columns. Bold cells are marked by a star."""
        marked = [[printable_line(cell.text) + "*" * cell.bold for cell in row] for row in self.rows]
        grid = [[printable_line(column) for column in self.columns], *marked]
        widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
        side = str.ljust if self.words else str.rjust
        aligned = ([row[0].ljust(widths[0]), *map(side, row[1:], widths[1:])] for row in grid)
        lines = ("  ".join(row).rstrip() for row in aligned)
        return "\n".join([*([printable_line(self.title)] if self.title else []), *lines])

    @property
    def markdown(self) -> str:
        """A Markdown table under its title in bold."""
        rules = ("---", *["---" if self.words else "---:"] * (len(self.columns) - 1))
        lines = [" | ".join(map(_markdown, self.columns)), " | ".join(rules)]
        lines += [" | ".join(_format_cell(cell, _markdown, "**{}**") for cell in row) for row in self.rows]
        title = [f"**{_markdown(self.title)}**", ""] if self.title else []
        return "\n".join([*title, *(f"| {line} |" for line in lines)])

    @property
    def html(self) -> str:
        """An HTML table with all text escaped."""
        left = "text-align:left;vertical-align:top" if self.words else "text-align:left"
        right = "text-align:right"
        # Jupyter aligns all cells right
        sides = [left, *[left if self.words else right] * (len(self.columns) - 1)]

        def row(cells: list[str], tag: str, more: str = "") -> str:
            aligned = zip(cells, sides, strict=True)
            made = (f'<{tag}{more} style="{side}">{cell}</{tag}>' for cell, side in aligned)
            return f"<tr>{''.join(made)}</tr>"

        names = row([escaped_cell(name) for name in self.columns], "th", ' scope="col"')
        rows = [[_format_cell(cell, escaped_cell, "<b>{}</b>") for cell in cells] for cells in self.rows]
        body = "".join(row(cells, "td") for cells in rows)
        title = escaped_cell(self.title)
        caption = f'<caption style="text-align:left">{title}</caption>' if title else ""
        head = f"<thead>{names}</thead>" if self.headed else ""
        named = f' class="{escaped_cell(self.css)}"' if self.css else ""
        return f"<table{named}>{caption}{head}<tbody>{body}</tbody></table>"

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html

    @property
    def latex(self) -> str:
        """A LaTeX table with booktabs rules."""
        lines = [" & ".join(map(_latex, self.columns)) + r" \\", r"\midrule"]
        rows = [[_format_cell(cell, _latex, r"\textbf{{{}}}") for cell in row] for row in self.rows]
        lines += [" & ".join(row) + r" \\" for row in rows]
        sides = "l" + ("l" if self.words else "r") * (len(self.columns) - 1)
        tabular = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", *lines, r"\bottomrule", r"\end{tabular}"]
        return "\n".join([r"\begin{table}", rf"\caption{{{_latex(self.title)}}}", *tabular, r"\end{table}"])


def escape_formula(cell: Json) -> Json:
    """Escape a CSV cell that a spreadsheet would read as a formula. Numbers are unchanged."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def format_decimal(number: float) -> str:
    """Format a number with three decimals and no leading 0, as papers print recall."""
    if not math.isfinite(number):
        return "–" if math.isnan(number) else f"{number:+}"
    return f"{number:.3f}".replace("0.", ".", 1) if abs(number) < 0.9995 else f"{number:.3f}"


def format_p_value(p: float) -> str:
    """Format a p-value with three digits, or as <.001."""
    return "<.001" if p < 0.001 else format_decimal(p)


def format_signed(number: float) -> str:
    """Format a number as `format_decimal` does, with its sign."""
    text = format_decimal(abs(number))
    return text if text == ".000" else f"{'−' if number < 0 else '+'}{text}"


def escaped_cell(text: str) -> str:
    """Escape a text for HTML."""
    return html.escape(printable_line(text), quote=True)


def _format_cell(cell: Cell, escape: Callable[[str], str], bold: str) -> str:
    text = escape(cell.text)
    return bold.format(text) if cell.bold and text else text


def _markdown(text: str) -> str:
    return printable_line(text).translate(_MARKDOWN)


def _latex(text: str) -> str:
    return printable_line(text).translate(_LATEX)
