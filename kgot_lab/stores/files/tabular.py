"""Graphs in tables: edges, nodes, or both in one, with or without a header, as text or Parquet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from kgot_lab.errors import BadInput, short_repr
from kgot_lab.graph.exchange import COLUMNS
from kgot_lab.graph.snapshots import plain_name
from kgot_lab.stores.files.elements import Elements, find_ends
from kgot_lab.types import Json

_DELIMITERS = (",", ";", "\t", "|")
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")
_AMOUNT = re.compile(r"[-+]?(\d*\.\d+|\d+\.?)(e[-+]?\d+)?", re.I)  # a weight, as any program writes it
_TYPED = re.compile(
    r"(.*):(ID|START_ID|END_ID|TYPE|LABEL|[a-z]\w*)(\(.*\))?(\[\])?"
)  # a column of neo4j-admin
_ROLES = {"ID": "_id", "START_ID": "_start", "END_ID": "_end", "TYPE": "_type", "LABEL": "_labels"}
_OF_NODES = ("type", "label", "labels", "name", "title")
_MAX_NAMED_COLUMNS = 8  # columns in an error

Row = tuple[str, Sequence[Any]]  # where it is, and its cells


def read_table(text: str, source: str, *, tabs: bool = False) -> Elements:
    """Read the elements of a graph in a table of separated values.

    Lines at its beginning that begin with # or % are remarks. An empty table is an empty graph. Raises
    BadInput, with the line, if it cannot be read.
    """
    lines = text.split("\n")
    matrix = re.match(r"%%MatrixMarket\s+matrix\s+(\w+)", text, re.I)
    if matrix and matrix[1].lower() != "coordinate":
        raise BadInput(f"{source}: a matrix of all its values is not read: write their coordinates")
    named = re.fullmatch(r'"?sep=(.)"?\s*', lines[0], re.I)
    body = re.match(r"([#%].*\n|\s*\n)*", text[len(lines[0]) + 1 :] if named else text)
    above = (body[0].count("\n") if body else 0) + bool(named) + bool(matrix)
    head = lines[above] if above < len(lines) else ""
    usual = "\t" if tabs and "\t" in head else max(_DELIMITERS, key=head.count)
    delimiter = named[1] if named else usual if usual in head else " "
    rows = csv.reader(io.StringIO("\n".join(lines[above:]), newline=""), delimiter=delimiter, strict=True)
    found = Elements("a table")
    try:
        cut = [(f"{source}, line {rows.line_num + above}", list(map(str.strip, row))) for row in rows]
    except csv.Error as error:
        raise BadInput(f"{source}, line {rows.line_num + above}: not a row of a table: {error}") from None
    is_text = delimiter == " "
    filled = [(location, list(filter(None, row)) if is_text else row) for location, row in cut if any(row)]
    _read_rows(filled, found, is_text=is_text)
    return found


def read_parquet(data: bytes, source: str) -> Elements:
    """Read the elements of a graph in a Parquet file. Raises BadInput if it is damaged or pyarrow is missing."""
    try:
        import pandas as pd

        frame = pd.read_parquet(io.BytesIO(data))
    except ImportError:  # in no extra, since pandas keeps all texts in another way where it is
        raise BadInput(
            f"{source} is Parquet, which needs pandas and pyarrow: pip install pandas pyarrow"
        ) from None
    except (ValueError, OSError) as error:
        raise BadInput(f"{source}: cannot be read as Parquet: {error}") from None
    cells = frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
    rows = enumerate([list(map(str, frame.columns)), *cells])
    found = Elements("a Parquet table")
    _read_rows([(f"{source}, row {number}", row) for number, row in rows], found)
    return found


def _read_rows(rows: Sequence[Row], found: Elements, *, is_text: bool = False) -> None:
    if not rows:
        return
    location, head = rows[0]
    kinds = [_TYPED.fullmatch(name) for name in head]
    columns = [_ROLES.get(kind[2], kind[1]) if kind else name for name, kind in zip(head, kinds, strict=True)]
    ends = find_ends(tuple(columns))
    id = next((name for name in ("_id", "Id", "id", "ID") if name in columns), "")
    found.label_names = "Label" in columns  # of Gephi
    marks = {*columns, *(() if ends else map(plain_name, columns))}
    is_nodes = bool(id) and not marks.isdisjoint(("_labels", "Label", "_id", *(() if ends else _OF_NODES)))
    if len(rows) > 2 and len(head) == len(rows) and [cells[0] for _, cells in rows[1:]] == list(head[1:]):
        raise BadInput(f"{location}: a matrix is not read: list its edges, as in source,target,weight")
    if not ends and not is_nodes:
        if not (columns := _columns_by_content([cells for _, cells in rows], is_text=is_text)):
            present = ", ".join(map(short_repr, head[:_MAX_NAMED_COLUMNS]))
            what = "the first line names the columns, a source, a target and perhaps a type, as in source,type,target"
            other = "if it is DOT, GDF, SIF, METIS or YAML, save it as GraphML"
            raise BadInput(f"{location}: {what}; this is {present}; {other}")
        found.notes.append(f"it has no header, and its columns are read as {', '.join(columns)}")
        rows, ends = [("", columns), *rows], ("source", "target")
    if duplicates := [name for name in columns if name and columns.count(name) > 1]:
        raise BadInput(f"{location}: two columns are called {short_repr(duplicates[0])}: rename one")
    lists = {
        name for name, kind in zip(columns, kinds, strict=False) if kind and (kind[4] or kind[2] == "LABEL")
    }
    typed = dict(zip(columns, kinds, strict=False))
    spaces = {name: kind[3] for name in ends or () if (kind := typed.get(name))}
    spaces = spaces if len(set(spaces.values())) > 1 else {}  # of neo4j-admin: 1 of Person is not 1 of Movie
    texts = {name for name in columns if name in (id, *(ends or ())) or plain_name(name) in COLUMNS["type"]}
    for location, cells in rows[1:]:
        if any(cell != "" for cell in cells[len(columns) :]):
            problem = f"{location}: {len(cells)} cells, and the head has {len(columns)}"
            raise BadInput(f"{problem}: put a cell that holds the delimiter in quotes")
        row = {
            name: cell if name in texts else _parse_cell(cell)
            for name, cell in zip(columns, cells, strict=False)
        }
        row.update({name: str(row[name]).split(";") for name in lists & row.keys()})
        row.update(
            {name: f"{(space or '()')[1:-1]}:{row[name]}" for name, space in spaces.items() if row.get(name)}
        )
        for name in row:
            if (kind := typed.get(name)) and kind[2] == "boolean" and not kind[4] and row[name] != "":
                row[name] = row[name] == "true"
        row = {name: value for name, value in row.items() if name and value not in ("", [""])}
        is_edge = ends and (not is_nodes or not row.keys().isdisjoint(ends))
        (found.add_edge if is_edge else found.add_node)(row, location)


def _columns_by_content(rows: Sequence[Sequence[Any]], *, is_text: bool) -> list[str]:
    """Return names for the columns of edges without a header, or none if the first row looks like one.

    The ends of edges are whole numbers in each row, or rows of one length have ends of the first row again. A
    text, whose words have spaces between them, is no table unless it has numbers.
    """
    widths = set(map(len, rows))
    if min(widths) < 2 or len(widths) > 1:  # lists of neighbours, as METIS writes them
        return []
    are_numbers = [all(_AMOUNT.fullmatch(str(cell)) for cell in column) for column in zip(*rows, strict=True)]
    if are_numbers[:3] == [True, False, True]:  # ends and a relation, an end and a weight, or a person's age
        return []
    is_triple = are_numbers[2:3] == [False]
    ends = [{str(row[0]), str(row[2 if is_triple else 1])} for row in rows]
    is_edge = all(end.isdecimal() for pair in ends for end in pair)
    is_edge |= not is_text and not ends[0].isdisjoint(set().union(*ends[1:]))
    is_edge &= not any("." in end and _AMOUNT.fullmatch(end) for pair in ends for end in pair)
    columns = ["source", "type", "target"] if is_triple else ["source", "target", "weight"][: max(widths)]
    return [*columns, *(f"column {n}" for n in range(4, max(widths) + 1))] if is_edge else []


def _parse_cell(cell: Any) -> Json:
    if not isinstance(cell, str):
        return cell.tolist() if hasattr(cell, "tolist") else cell
    if not _NUMBER.fullmatch(cell):
        return cell
    return float(cell) if "." in cell else int(cell)
