"""The tables of an SQLite graph, rows as values, terms of a search, and which statements may read."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import Any

from kgot_lab.errors import QueryFailed
from kgot_lab.io.files import read_statements
from kgot_lab.types import Json, Rows

_TEXTS = """(SELECT coalesce(group_concat(atom, ' '), '') FROM json_tree({0}.properties) WHERE type IN ('text', 'integer', 'real'))"""
SCHEMA = read_statements(__file__, "schema.sql")
GRAPH_TABLES: tuple[str, ...] = sum(SCHEMA.values(), ())
INDEX_NEW_NODES = f"INSERT INTO words (rowid, name, texts) SELECT number, id, {_TEXTS.format('nodes')} FROM nodes WHERE number > ?"

# Rows of an SQLite graph as values, and the terms of a full-text query.

_MAX_RESULT = 16_000_000  # approximate bytes of rows that one read may return
_MAX_QUERY_WORDS = 500  # words of a query that are looked up

_WORD = re.compile(r"[^\W_]+")


def fetch_rows(cursor: sqlite3.Cursor, statement: str) -> Rows:
    names = [column[0] for column in cursor.description]
    for name, times in Counter(names).items():
        if times > 1:
            problem = f"{times} columns are called {name!r}"
            raise QueryFailed(statement, f"{problem}; give each a name of its own with AS")
    rows: list[dict[str, Json]] = []
    size = 0
    for row in cursor:
        size += sum(len(value) if isinstance(value, str) else 8 for value in row) + 8 * len(row)
        if size > _MAX_RESULT:
            problem = f"the answer is larger than {_MAX_RESULT:,} bytes"
            raise QueryFailed(statement, f"{problem}; ask for less, or add a LIMIT")
        cells = zip(names, row, strict=True)
        rows.append({name: _cell_value(name, value, statement) for name, value in cells})
    return tuple(rows)


def _cell_value(name: str, value: Any, statement: str) -> Json:
    if isinstance(value, bytes) or (isinstance(value, float) and not math.isfinite(value)):
        held = "bytes" if isinstance(value, bytes) else value
        raise QueryFailed(statement, f"column {name!r} holds {held}, which is not JSON")
    if name in ("labels", "properties") and isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return value  # a text that was only called so
    return value


def query_terms(words: str) -> list[str]:
    """Return the words of a query, each quoted so that none is an operator of the full-text index.

    Compound words such as Marie-Curie are also searched as a phrase. Single letters, as in Curie's or R&D,
    are searched only as part of one.
    """
    terms: dict[str, None] = {}
    for chunk in unicodedata.normalize("NFC", words).split():
        parts = _WORD.findall(chunk)
        phrase = [" ".join(parts)] if parts else []
        terms.update(dict.fromkeys(phrase + [part for part in parts if len(part) > 1]))
    return [f'"{term}"' for term in terms][:_MAX_QUERY_WORDS]


# Which actions a statement may perform in an SQLite file.

# the tables of the full-text index
_INDEX_TABLES = {f"words_{part}" for part in ("data", "idx", "content", "docsize", "config")}
_READABLE = _INDEX_TABLES.union(
    "nodes edges facts words json_each json_tree sqlite_master waiting sums".split()
)
_FUNCTIONS = set(
    # Excluded because no time limit stops them: instr, replace, trim and json_patch, whose time is quadratic
    # in length.
    "abs avg bm25 ceil ceiling char checksum coalesce count cume_dist date datetime dense_rank exp first_value floor glob group_concat hex"
    " highlight ifnull iif json json_array json_array_length json_extract json_group_array json_group_object json_insert json_object"
    " json_quote json_remove json_replace json_set json_type json_valid julianday lag last_value lead length like likelihood likely ln"
    " log log10 log2 lower match max min mod nth_value ntile nullif percent_rank pow power quote rank round row_number sign"
    " snippet sqrt strftime substr substring sum time total trunc typeof unicode unixepoch unlikely upper -> ->>".split()
)


@dataclass
class Guard:
    """An authorizer of actions, which SQLite calls while it prepares a statement.

    `refused` is the last action that was not allowed.
    """

    refused: str = ""

    def __call__(
        self, action: int, first: str | None, second: str | None, database: str | None, source: str | None
    ) -> int:
        if _is_allowed(action, first or "", second or ""):
            return sqlite3.SQLITE_OK
        self.refused = " ".join(filter(None, (_ACTIONS.get(action, f"action {action}"), first, second)))
        return sqlite3.SQLITE_DENY


def _is_allowed(action: int, first: str, second: str) -> bool:
    match action:
        case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
            return True
        case sqlite3.SQLITE_READ:
            return first in _READABLE or not second  # without a column it may be the name of a CTE
        case sqlite3.SQLITE_FUNCTION:
            return second.lower() in _FUNCTIONS
        case sqlite3.SQLITE_PRAGMA:
            return (first, second) == ("data_version", "")  # the full-text index asks for it
        case sqlite3.SQLITE_UPDATE:
            # asked when a virtual table is first used; to statements SQLite itself refuses it
            return first == "sqlite_master"
    return False


_ACTIONS = {
    getattr(sqlite3, f"SQLITE_{name}"): name.replace("_", " ")
    for name in "ALTER_TABLE ANALYZE ATTACH CREATE_INDEX CREATE_TABLE CREATE_TEMP_TABLE CREATE_TRIGGER CREATE_VIEW CREATE_VTABLE DELETE"
    " DETACH DROP_INDEX DROP_TABLE DROP_TRIGGER DROP_VIEW FUNCTION INSERT PRAGMA READ REINDEX SAVEPOINT TRANSACTION UPDATE".split()
}
