"""Graphs in tables of edges, CSV or TSV: a head that names the columns, then a row for each edge."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

from kgot_lab.errors import BadInput, shortly
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.exchange import COLUMNS, UNTYPED
from kgot_lab.io.files import read_regular, utf8_text
from kgot_lab.types import Edge, Json

# of a .csv, as the head shows; programs of some countries write semicolons
_DELIMITERS = (",", ";", "\t", "|")
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")
_MOST_TOLD = 8  # columns in an error
_HEAD = "source,type,target"


def read_edge_list(path: Path | str) -> PropertyGraph:
    """The graph in a table of edges: columns source and target, perhaps type, by these or near names
    (COLUMNS); others are properties.

    Without a type an edge is "related_to"; a cell that is a number is one, but for ids and types. An empty
    file is an empty graph. Raises BadInput, naming file and line.
    """
    path = Path(path)
    try:
        text = utf8_text(read_regular(path), path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read as a table of edges: {error}") from None
    return PropertyGraph.of((), distinct_edges(_edges(text, path)), dangling="add")


def distinct_edges(edges: Iterable[Edge]) -> Iterator[Edge]:
    """The edges, each that has the identity of one before with a number for a key, or behind its key."""
    taken: set[tuple[str, str, str, str]] = set()
    for edge in edges:
        keys = (f"{edge.key}.{number}" if edge.key else str(number) for number in count(2))
        while edge.identity in taken:
            edge = replace(edge, key=next(keys))
        taken.add(edge.identity)
        yield edge


def _edges(text: str, path: Path) -> Iterator[Edge]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text, path), strict=True)
    columns: list[str] = []
    places: dict[str, int] = {}
    try:
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if not columns:
                columns = [cell.strip() for cell in row]
                places = _places(columns, f"{path}, line {rows.line_num}")
                continue
            yield _edge(row, columns, places, f"{path}, line {rows.line_num}")
    except csv.Error as error:
        raise BadInput(f"{path}, line {rows.line_num}: not a row of a table: {error}") from None


def _delimiter(text: str, path: Path) -> str:
    if path.suffix.lower() == ".tsv":
        return "\t"
    head = next((line for line in text.splitlines() if line.strip()), "")
    return max(_DELIMITERS, key=head.count)


def _places(columns: list[str], where: str) -> dict[str, int]:
    """Where source, type and target stand in a row."""
    if twice := [name for name in columns if name and columns.count(name) > 1]:
        raise BadInput(f"{where}: two columns are called {shortly(twice[0])}: rename one")
    called = {name.lower(): place for place, name in reversed([*enumerate(columns)])}
    found = {
        ours: next((called[name] for name in names if name in called), -1) for ours, names in COLUMNS.items()
    }
    if found["source"] < 0 or found["target"] < 0:
        there = ", ".join(map(shortly, columns[:_MOST_TOLD]))
        raise BadInput(
            f"{where}: the first line names the columns, a source, a target and perhaps a type, as in {_HEAD}; this is {there}"
        )
    return found


def _edge(row: list[str], columns: list[str], places: dict[str, int], where: str) -> Edge:
    if len(row) > len(columns) and any(cell.strip() for cell in row[len(columns) :]):
        raise BadInput(
            f"{where}: {len(row)} cells, and the head has {len(columns)}: put a cell that holds the delimiter in quotes"
        )
    cells = [cell.strip() for cell in row] + [""] * (len(columns) - len(row))
    for end in ("source", "target"):
        if not cells[places[end]]:
            raise BadInput(
                f"{where}: the row has no {end}: fill in the column {columns[places[end]]}, or leave the row out"
            )
    type = cells[places["type"]] if places["type"] >= 0 else ""
    properties = {
        name: _value(cells[place])
        for place, name in enumerate(columns)
        if name and cells[place] and place not in places.values()
    }
    return Edge(cells[places["source"]], type or UNTYPED, cells[places["target"]], properties)


def _value(cell: str) -> Json:
    if not _NUMBER.fullmatch(cell):
        return cell
    return float(cell) if "." in cell else int(cell)
