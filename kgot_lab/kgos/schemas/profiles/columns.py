"""The values of a table, column by column, and the properties that its rows hold in JSON and in columns of
their own.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from kgot_lab.errors import BadInput, shortly
from kgot_lab.graph.validation import fit_value
from kgot_lab.kgos.schemas.profiles import quoted_name
from kgot_lab.kgos.schemas.rules import Unread
from kgot_lab.types import Json

_RISKY = re.compile(r"\\u|\d[eE]\+?\d{3}")  # what may become half a surrogate pair, or an infinite number
_LONG = 300  # characters of JSON within which no number is infinite by its digits alone, and nothing nests too deeply
_Told = Callable[[int], str]  # what a row is called in a report, by its place


@dataclass(frozen=True)
class TableColumns:
    """The values of a table by its columns, and the places of the rows with a text that is not UTF-8, whose
    letters were replaced.

    `number` is the column that only numbers the rows, if there is one.
    """

    table: str
    rows: int
    values: Mapping[str, Sequence[Json]]
    number: str = ""
    replaced: tuple[int, ...] = ()

    def texts(self, column: str) -> list[str | None]:
        """A column as texts, numbers by their digits; None for NULL, for bytes, and where there is no such
        column.
        """
        if not column:
            return [None] * self.rows
        return [
            value if type(value) is str else None if value is None or type(value) is bytes else str(value)
            for value in self.values[column]
        ]


class _Replaced(str):
    """A text that was not UTF-8."""


def table_columns(connection: sqlite3.Connection, table: str) -> TableColumns:
    """All values of a table, in the order of its rows; raises sqlite3.Error."""
    told = connection.execute(f"PRAGMA table_info({quoted_name(table)})").fetchall()
    names, keys = [row[1] for row in told], [row for row in told if row[5]]
    number = keys[0][1] if len(keys) == 1 and keys[0][2].upper() == "INTEGER" else ""
    asked = f"SELECT {', '.join(map(quoted_name, names))} FROM {quoted_name(table)} NOT INDEXED"  # an index would give them in its own order
    replaced: tuple[int, ...] = ()
    try:
        rows = connection.execute(asked).fetchall()
    except sqlite3.OperationalError as error:
        if "UTF-8" not in str(error):
            raise
        connection.text_factory = _decoded
        rows = connection.execute(asked).fetchall()
        connection.text_factory = str
        replaced = tuple(
            place for place, row in enumerate(rows) if any(type(value) is _Replaced for value in row)
        )
        rows = [tuple(str(value) if type(value) is _Replaced else value for value in row) for row in rows]
    values = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(names, ())
    return TableColumns(table, len(rows), values, number, replaced)


def row_properties(
    columns: TableColumns, in_json: str, besides: Collection[str], told: _Told
) -> tuple[list[dict[str, Json]], list[Unread]]:
    """The properties of each row, and the rows whose JSON is malformed, which have none of it.

    They are those in a column of JSON and the other columns, `besides` left out; where both have a name, JSON
    is right, since that is where SQL looks for dimensions. NULL, blank JSON and bytes, which are mostly
    vectors, are no properties.
    """
    unread: list[Unread] = []
    of_json: list[dict[str, Json]] = [{}] * columns.rows
    if in_json:
        texts = columns.values[in_json]
        table: dict[Json, dict[str, Json]] = {}
        wrong: dict[Json, str] = {}
        for text in set(texts):  # many rows say the same
            try:
                table[text] = _object(text)
            except BadInput as error:
                table[text], wrong[text] = {}, str(error)
        of_json = [table[text] for text in texts]
        if wrong:
            unread += [
                Unread(
                    8,
                    columns.table,
                    place + 1,
                    told(place),
                    f"its {in_json} {wrong[text]}, so it has none of them",
                )
                for place, text in enumerate(texts)
                if text in wrong
            ]
    own = {
        name: _plain(column)
        for name, column in columns.values.items()
        if name != in_json and name not in besides
    }
    more = {name: column for name, column in own.items() if any(value is not None for value in column)}
    if not more:
        return of_json, unread
    rows = zip(*more.values(), strict=True)
    if not any(None in column for column in more.values()):
        return [
            dict(zip(more, row, strict=True)) | known for row, known in zip(rows, of_json, strict=True)
        ], unread
    given = (
        {name: value for name, value in zip(more, row, strict=True) if value is not None} for row in rows
    )
    return [each | known for each, known in zip(given, of_json, strict=True)], unread


def _object(text: Json) -> dict[str, Json]:
    """The object that JSON writes; raises BadInput, which says what is wrong, and nothing for NULL and
    blanks.
    """
    if text is None:
        return {}
    # as most are: to be kept as it is
    if type(text) is str and text.startswith("{") and len(text) <= _LONG and not _RISKY.search(text):
        try:
            found, end = _scan(text, 0)
        except (StopIteration, ValueError):
            end = -1
        if end == len(text):
            return found  # type: ignore[no-any-return]
    try:
        text = text.decode() if isinstance(text, bytes) else str(text)
        found = _DECODER.decode(text) if text.strip() else {}
    except RecursionError:
        raise BadInput("are nested too deeply") from None
    except ValueError as error:  # malformed JSON, no UTF-8, a number of thousands of digits
        raise BadInput(f"are no JSON ({error}: {shortly(text)})") from None
    if not isinstance(found, dict):
        raise BadInput(f"are JSON, but no object: {shortly(text)}")
    try:
        return dict(fit_value(found, "a property"))
    except BadInput as error:
        raise BadInput(f"cannot be kept ({error})") from None


def _plain(column: Sequence[Json]) -> Sequence[Json]:
    """A column in which bytes and infinite numbers, which are no JSON, are None."""
    if not {float, bytes} & set(map(type, column)):
        return column
    return [
        None if type(value) is bytes or (type(value) is float and math.isinf(value)) else value
        for value in column
    ]


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _Replaced(data.decode(errors="replace"))


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
# a value at a place of a text, and where it ends; StopIteration where there is none
_scan: Callable[[str, int], tuple[Json, int]] = _DECODER.scan_once  # type: ignore[attr-defined]
