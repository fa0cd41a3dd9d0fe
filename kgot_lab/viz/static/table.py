"""Show a graph or some rows as tables, in notebooks and in plain text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import require_count, short_repr
from kgot_lab.evaluation.tables import Cell, Grid
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Json
from kgot_lab.viz.static.markup import Markup, concat, shorten

MAX_CELL_LENGTH = 300  # maximum characters of a cell in HTML
MAX_TEXT_CELL_LENGTH = 40  # maximum characters of a cell in plain text
ALIGN_LEFT = "text-align:left"  # Jupyter aligns cells to the right
VALUE_COLUMN = ("value",)  # the column of rows that are single values


@check_arguments
@dataclass(frozen=True)
class Sheet:
    """A table of texts with truncated cells. `total` counts all rows, including those not shown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int
    name: str = ""
    max_cell_length: ClassVar[int] = MAX_CELL_LENGTH

    def grid(self, max_length: int = 0) -> Grid:
        """Return the table as a Grid, which displays itself, in Markdown and LaTeX too.

        Cells are truncated to `max_length` characters, by default those of a cell in HTML.
        """
        max_length = max_length or self.max_cell_length
        rows = tuple(tuple(Cell(shorten(cell, max_length)) for cell in row) for row in self.rows)
        columns = tuple(shorten(column, max_length) for column in self.columns)
        return Grid(self.caption, columns, rows, words=True, headed=self.columns != VALUE_COLUMN, css="")

    @property
    def html(self) -> Markup:
        """The table in HTML."""
        return Markup(self.grid().html)

    @property
    def text(self) -> str:
        """The table in plain text, columns aligned."""
        return self.grid(MAX_TEXT_CELL_LENGTH).text

    @property
    def caption(self) -> str:
        """The name, and how many of the rows are shown."""
        row_count = f"{self.total:,} row" + "s" * (self.total != 1)
        shown_note = f", the first {len(self.rows):,} shown" if len(self.rows) < self.total else ""
        return (f"{self.name}: " if self.name else "") + row_count + shown_note


@check_arguments
@dataclass(frozen=True)
class Table:
    """One or several tables, with the same content in HTML and plain text."""

    sheets: tuple[Sheet, ...]

    @property
    def html(self) -> Markup:
        """All grids as HTML."""
        return concat(sheet.html for sheet in self.sheets)

    @property
    def markdown(self) -> str:
        """All grids in Markdown."""
        return "\n\n".join(sheet.grid().markdown for sheet in self.sheets)

    @property
    def latex(self) -> str:
        """All grids in LaTeX, for the booktabs package."""
        return "\n\n".join(sheet.grid().latex for sheet in self.sheets)

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return "\n\n".join(sheet.text for sheet in self.sheets)


@check_arguments
def table(what: PropertyGraph | Iterable[Json], *, limit: int = 50) -> Table:
    """Create tables of the nodes and edges of a graph, or one of some rows.

    Each table has at most `limit` rows. Rows may be objects (their names become columns), lists (numbered
    columns) or single values (one column).
    """
    require_count(limit, 1, "limit")
    if isinstance(what, PropertyGraph):
        nodes = (
            (n.id, ", ".join(n.labels), format_properties(n.properties)) for n in islice(what.nodes, limit)
        )
        edges = (
            (e.source, e.type, e.target, format_properties(e.properties)) for e in islice(what.edges, limit)
        )
        node_sheet = sheet(("id", "labels", "properties"), nodes, "Nodes", len(what))
        edge_sheet = sheet(("source", "type", "target", "properties"), edges, "Edges", len(what.edges))
        return Table((node_sheet, edge_sheet))
    rows = list(what)
    return Table((_rows_sheet(rows[:limit], len(rows)),))


def format_cell(value: Json) -> str:
    """Format a value for a cell: strings unchanged, null as "", everything else as JSON."""
    if value is None:
        return ""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except Exception:  # a cycle, or a value whose text is an error
        return short_repr(value)


def format_properties(values: Mapping[str, Json]) -> str:
    """Format properties on one line as name = value."""
    return ", ".join(f"{name} = {format_cell(value)}" for name, value in values.items())


def _rows_sheet(rows: Sequence[Json], total: int) -> Sheet:
    if any(rows) and all(isinstance(row, Mapping) for row in rows):
        columns = list(dict.fromkeys(name for row in rows for name in row))
        named = (tuple(format_cell(row.get(name)) for name in columns) for row in rows)
        return sheet(map(str, columns), named, total=total)
    if rows and all(isinstance(row, list | tuple) for row in rows):
        width = max(map(len, rows))
        padded = (map(format_cell, [*row, *[None] * (width - len(row))]) for row in rows)
        return sheet(map(str, range(1, width + 1)), padded, total=total)
    return sheet(VALUE_COLUMN, ((format_cell(row),) for row in rows), total=total)


def sheet(
    columns: Iterable[str], rows: Iterable[Iterable[str]], name: str = "", total: int | None = None
) -> Sheet:
    """Create a table from columns and rows.

    `total` is the number of rows there are, by default those in `rows`.
    """
    row_tuples = tuple(map(tuple, rows))
    return Sheet(tuple(columns), row_tuples, len(row_tuples) if total is None else total, name)
