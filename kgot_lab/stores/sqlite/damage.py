"""Find damage in a graph that SQLite does not notice, by checksums of its rows.

SQLite's extension for page checksums must be compiled and loaded, which most Pythons cannot do. So a store
saves a CRC-32 of each row that it writes in a table, by triggers of its own connection. Triggers in the file
remove the checksum of a row when any program changes it. Rows without one get theirs when a store opens the
file.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from kgot_lab.io.sqlite.checksums import check_integrity, describe_damage
from kgot_lab.io.sqlite.connection import Connection, query_number
from kgot_lab.types import Triple

_COLUMNS: dict[str, tuple[str, ...]] = {"nodes": ("id", "labels", "properties")}
_COLUMNS["edges"] = ("source", "type", "target", "key", "properties")


def _checksum_sql(kind: str, row: str) -> str:
    # as bytes: a damaged text may not be valid UTF-8
    return f"checksum({', '.join(f'CAST({row}.{column} AS BLOB)' for column in _COLUMNS[kind])})"


CHECKSUM_MISMATCH = "is not as it was written"
CHECKSUM_TRIGGERS = {
    f"sum_{kind}_after_{event}": f"CREATE TEMP TRIGGER sum_{kind}_after_{event} AFTER {event} ON main.{kind} {unless} BEGIN"
    f" INSERT OR REPLACE INTO sums VALUES ('{kind}', NEW.number, {_checksum_sql(kind, 'NEW')}); END"
    for kind in _COLUMNS
    for event, unless in (("INSERT", "WHEN NOT EXISTS (SELECT yes FROM waiting)"), ("UPDATE", ""))
}
CHECKSUM_TRIGGERS |= {  # triggers of a connection run before those of the file, which remove the checksum
    f"sound_{kind}_before_{event}": f"CREATE TEMP TRIGGER sound_{kind}_before_{event} BEFORE {event} ON main.{kind}"
    f" WHEN (SELECT sum FROM sums WHERE kind = '{kind}' AND number = OLD.number) <> {_checksum_sql(kind, 'OLD')}"
    f" BEGIN SELECT RAISE(ABORT, 'a row of {kind} {CHECKSUM_MISMATCH}'); END"
    for kind in _COLUMNS
    for event in ("UPDATE", "DELETE")
}
SELECT_SOUND_ROWS = {
    kind: f"SELECT {', '.join(columns)} FROM {kind} AS row LEFT JOIN sums ON sums.kind = '{kind}' AND sums.number = row.number"
    f" WHERE coalesce(sum, {_checksum_sql(kind, 'row')}) = {_checksum_sql(kind, 'row')}"
    for kind, columns in _COLUMNS.items()
}
SELECT_WITH_CHECKSUM = {  # with its checksum, or NULL, after the others
    kind: f"SELECT {', '.join(columns)}, (SELECT sum FROM sums WHERE sums.kind = '{kind}' AND sums.number = {kind}.number) FROM {kind}"
    for kind, columns in _COLUMNS.items()
}
_IS_MISSING = {
    kind: f"NOT EXISTS (SELECT 1 FROM sums WHERE sums.kind = '{kind}' AND sums.number = row.number)"
    for kind in _COLUMNS
}


def last_row_numbers(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the largest row number of each kind."""
    queries = {kind: f"SELECT coalesce(max(number), 0) FROM {kind}" for kind in _COLUMNS}
    return {kind: query_number(connection, query) for kind, query in queries.items()}


def count_without_checksum(connection: sqlite3.Connection) -> int:
    """Count the rows that have no checksum, because another program wrote them."""
    queries = (f"SELECT count(*) FROM {kind} AS row WHERE {missing}" for kind, missing in _IS_MISSING.items())
    return sum(query_number(connection, query) for query in queries)


def fill_checksums(connection: sqlite3.Connection, since: Mapping[str, int] | None = None) -> None:
    """Add checksums to the rows that have none, or to all that are newer than those of the given numbers."""
    for kind, missing in _IS_MISSING.items():
        condition = missing if since is None else f"row.number > {since[kind]}"
        rows = f"SELECT '{kind}', number, {_checksum_sql(kind, 'row')} FROM {kind} AS row WHERE {condition}"
        connection.execute(f"INSERT OR REPLACE INTO sums {rows}")


def find_dangling_edge(connection: sqlite3.Connection) -> str:
    """Describe an edge without one of its nodes, which programs that do not enforce foreign keys leave, or return ""."""
    query = "SELECT source, type, target FROM edges WHERE source NOT IN (SELECT id FROM nodes) OR target NOT IN (SELECT id FROM nodes)"
    edge = connection.execute(f"{query} LIMIT 1").fetchone()
    problem = "has lost a node, which another program deleted"
    return f"the edge {Triple(*edge)} {problem}" if edge else ""


def enable_checksums(connection: sqlite3.Connection) -> None:
    """Enable a connection to compute checksums."""
    connection.create_function("checksum", -1, _checksum, deterministic=True)


def has_valid_checksum(row: Sequence[Any]) -> bool:
    """Return whether a row, as selected by `SELECT_WITH_CHECKSUM`, matches its checksum.

    A row without a checksum counts as sound.
    """
    *columns, checksum = row
    return checksum is None or checksum == _checksum(*(column.encode() for column in columns))


def _checksum(*columns: bytes | None) -> int:
    checksum = 0
    for column in (each or b"" for each in columns):  # None in a damaged row
        checksum = zlib.crc32(b"%d:%b" % (len(column), column), checksum)
    return checksum


def find_damage(connection: Connection, schema: Sequence[str]) -> str:
    """Describe the damage in a graph's file, or return "" if there is none.

    `schema` holds the statements that created its tables. Nothing in the file is changed. Raises sqlite3.Error if
    the file cannot be read now.
    """
    with describe_damage(connection) as damages:
        damages.append(_search_tables(connection, schema))
    return damages[0]


def _search_tables(connection: Connection, schema: Sequence[str]) -> str:
    for damage in check_integrity(connection):
        return damage
    definitions = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}
    if missing := [statement for statement in schema if statement not in definitions]:
        return f"the definition {missing[0][:60]!r} … was changed"
    for kind in _COLUMNS:
        query = f"SELECT number FROM {kind} LEFT JOIN sums USING (number) WHERE kind = '{kind}' AND sum <> {_checksum_sql(kind, kind)} LIMIT 1"
        for (number,) in connection.execute(query):
            return f"row {number} of {kind} is not as it was written"
    query = "SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM words)"
    nodes, words = connection.execute(query).fetchone()
    return "" if nodes == words else f"the index of words has {words:,} of {nodes:,} nodes"
