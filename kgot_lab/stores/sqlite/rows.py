"""Rows of an SQLite graph as values, and a question as its full-text index reads one."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kgot_lab.errors import QueryFailed
from kgot_lab.stores.sql import Change, SqlRow, edge_row, node_row, parsed_json
from kgot_lab.types import Diff, Edge, Json, Node, Rows

_MAX_RESULT = 16_000_000  # bytes of rows that one read may return, about
_MOST_WORDS = 500  # words of a question that are looked up

_WORD = re.compile(r"[^\W_]+")


def node_of_sqlite(row: SqlRow) -> Node:
    id, labels, properties = row
    return Node(
        id,
        tuple(json.loads(labels)) if labels != "[]" else (),
        json.loads(properties) if properties != "{}" else {},
    )


def edge_of_sqlite(row: SqlRow) -> Edge:
    source, type, target, key, properties = row
    return Edge(source, type, target, json.loads(properties) if properties != "{}" else {}, key)


def changes_in(journal: Iterable[SqlRow]) -> Iterator[Change]:
    for table, *columns in journal:
        yield Change(table, _decoded(table, columns[:5]), _decoded(table, columns[5:]))


def _decoded(table: str, columns: Sequence[Any]) -> SqlRow | None:
    """A journalled row with its JSON read; raises BadInput."""
    if columns[0] is None:
        return None
    if table == "nodes":
        id, labels, properties, *_ = columns
        return (
            id,
            parsed_json(labels, f"the labels of {id!r}"),
            parsed_json(properties, f"the properties of {id!r}"),
        )
    return *columns[:4], parsed_json(columns[4], f"the properties of {columns[:4]!r}")


def refuse_unfit(diff: Diff) -> None:
    """Raise BadInput where a statement made what is no node or edge: a blank id, labels that are not text,
    numbers out of range.
    """
    for node in (*diff.added_nodes, *(after for _, after in diff.changed_nodes)):
        node_row(node)
    for edge in (*diff.added_edges, *(after for _, after in diff.changed_edges)):
        edge_row(edge)


def sqlite_rows(cursor: sqlite3.Cursor, statement: str) -> Rows:
    names = [column[0] for column in cursor.description]
    for name, times in Counter(names).items():
        if times > 1:
            raise QueryFailed(
                statement, f"{times} columns are called {name!r}; give each a name of its own with AS"
            )
    found: list[dict[str, Json]] = []
    size = 0
    for row in cursor:
        size += sum(len(value) if isinstance(value, str) else 8 for value in row) + 8 * len(row)
        if size > _MAX_RESULT:
            raise QueryFailed(
                statement, f"the answer is larger than {_MAX_RESULT:,} bytes; ask for less, or add a LIMIT"
            )
        found.append({name: _value(name, value, statement) for name, value in zip(names, row, strict=True)})
    return tuple(found)


def _value(name: str, value: Any, statement: str) -> Json:
    if isinstance(value, bytes) or (isinstance(value, float) and not math.isfinite(value)):
        raise QueryFailed(
            statement,
            f"column {name!r} holds {'bytes' if isinstance(value, bytes) else value}, which is not JSON",
        )
    if name in ("labels", "properties") and isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return value  # a text that was only called so
    return value


def terms_of(words: str) -> list[str]:
    """The words of a question, each quoted so that nothing in it is an operator of the full-text index.

    Words that hang together, as in Marie-Curie, are looked for together too; single letters, as in Curie's or
    R&D, only together.
    """
    terms: dict[str, None] = {}
    for chunk in unicodedata.normalize("NFC", words).split():
        parts = _WORD.findall(chunk)
        together = [" ".join(parts)] if parts else []
        terms.update(dict.fromkeys(together + [part for part in parts if len(part) > 1]))
    return [f'"{term}"' for term in terms][:_MOST_WORDS]
