"""A graph or some rows as tables, in a notebook and in plain text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from kgot_lab.draw.markup import Markup, element, joined, shortened
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge, Json

CELL = 300  # characters of a cell in HTML
TEXT_CELL = 40  # characters of a cell in plain text
LEFT = "text-align:left"  # Jupyter sets cells to the right, as numbers
ONE = ("value",)  # the column of rows that are single values


@dataclass(frozen=True)
class Sheet:
    """One grid of texts; `total` counts the rows there are, also those not shown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int
    name: str = ""

    @property
    def html(self) -> Markup:
        """The grid as an HTML table."""
        names = element("tr", *(element("th", column, scope="col", style=LEFT) for column in self.columns))
        head = [] if self.columns == ONE else [element("thead", names)]
        body = (element("tr", *(element("td", shortened(cell, CELL), style=LEFT) for cell in row)) for row in self.rows)
        return element("table", element("caption", self.caption, style=LEFT), *head, element("tbody", *body))

    @property
    def text(self) -> str:
        """The grid in plain text, columns aligned."""
        grid = [tuple(shortened(cell, TEXT_CELL) for cell in row) for row in (self.columns, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in grid]
        return "\n".join([self.caption, *lines])

    @property
    def caption(self) -> str:
        """What this is, and how much of it is shown."""
        counted = f"{self.total:,} row" + "s" * (self.total != 1)
        left_out = f", the first {len(self.rows):,} shown" if len(self.rows) < self.total else ""
        return (f"{self.name}: " if self.name else "") + counted + left_out


@dataclass(frozen=True)
class Table:
    """One grid or several; its HTML and its plain text say the same."""

    sheets: tuple[Sheet, ...]

    @property
    def html(self) -> Markup:
        """All grids as HTML."""
        return joined(sheet.html for sheet in self.sheets)

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return "\n\n".join(sheet.text for sheet in self.sheets)


def table(what: PropertyGraph | Iterable[Json], *, limit: int = 50) -> Table:
    """The nodes and edges of a graph, or some rows, at most `limit` of each.

    Rows may be objects (their names become columns), lists (numbered columns) or single values (one column).
    """
    if isinstance(what, PropertyGraph):
        return Table((_nodes(what, limit), _edges(what, limit)))
    rows = list(what)
    return Table((_rows(rows[:limit], len(rows)),))


def cell(value: Json) -> str:
    """A value as the text of a cell: texts as they are, nothing for null, everything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _nodes(graph: PropertyGraph, limit: int) -> Sheet:
    rows = tuple((node.id, ", ".join(node.labels), properties(node.properties)) for node in islice(graph.nodes, limit))
    return Sheet(("id", "labels", "properties"), rows, len(graph), "Nodes")


def _edges(graph: PropertyGraph, limit: int) -> Sheet:
    edges: list[Edge] = list(islice(graph.edges, limit))
    rows = tuple((edge.source, edge.type, edge.target, properties(edge.properties)) for edge in edges)
    return Sheet(("source", "type", "target", "properties"), rows, len(graph.edges), "Edges")


def properties(values: Mapping[str, Json]) -> str:
    """Properties as one line of name = value."""
    return ", ".join(f"{name} = {cell(value)}" for name, value in values.items())


def _rows(rows: Sequence[Json], total: int) -> Sheet:
    if rows and all(isinstance(row, Mapping) for row in rows):
        columns = tuple(dict.fromkeys(name for row in rows for name in row))
        return Sheet(tuple(map(str, columns)), tuple(tuple(cell(row.get(name)) for name in columns) for row in rows), total)
    if rows and all(isinstance(row, list | tuple) for row in rows):
        width = max(map(len, rows))
        padded = ([*row, *[None] * (width - len(row))] for row in rows)
        return Sheet(tuple(str(number) for number in range(1, width + 1)), tuple(tuple(map(cell, row)) for row in padded), total)
    return Sheet(ONE, tuple((cell(row),) for row in rows), total)
