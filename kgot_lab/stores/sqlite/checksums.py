"""Checksums of an SQLite graph's rows, kept in a table of their own, and the search for damage that SQLite
itself does not notice.

SQLite's extension for checksums of pages has to be compiled and loaded, which most Pythons cannot. So a store
puts down a CRC-32 of each row it writes, by triggers of its own connection. Triggers in the file take the
checksum of a row away when any program changes it; rows without one get theirs when a store opens the file.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from kgot_lab.stores.sqlite.tables import Connection

_COLUMNS = {
    "nodes": ("id", "labels", "properties"),
    "edges": ("source", "type", "target", "key", "properties"),
}
FORGETTING = {
    f"sum_{kind}_before_{event}": (kind, event) for kind in _COLUMNS for event in ("UPDATE", "DELETE")
}
SUMS = (
    "CREATE TABLE sums (kind TEXT NOT NULL, number INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (kind, number))"
    " STRICT, WITHOUT ROWID",
    *(
        f"CREATE TRIGGER {name} BEFORE {event} ON {kind} BEGIN DELETE FROM sums WHERE kind = '{kind}' AND number = OLD.number; END"
        for name, (kind, event) in FORGETTING.items()
    ),
)


def _sum_of(kind: str, row: str) -> str:
    # as bytes: a damaged text may be no text at all
    return f"checksum({', '.join(f'CAST({row}.{column} AS BLOB)' for column in _COLUMNS[kind])})"


SUMMING = {
    f"sum_{kind}_after_{event}": f"CREATE TEMP TRIGGER sum_{kind}_after_{event} AFTER {event} ON main.{kind} BEGIN"
    f" INSERT OR REPLACE INTO sums VALUES ('{kind}', NEW.number, {_sum_of(kind, 'NEW')}); END"
    for kind in _COLUMNS
    for event in ("INSERT", "UPDATE")
}
NOT_AS_WRITTEN = "is not as it was written"
GUARDING = {  # those of a connection come before those of the file, which take the checksum away
    f"sound_{kind}_before_{event}": f"CREATE TEMP TRIGGER sound_{kind}_before_{event} BEFORE {event} ON main.{kind}"
    f" WHEN (SELECT sum FROM sums WHERE kind = '{kind}' AND number = OLD.number) <> {_sum_of(kind, 'OLD')}"
    f" BEGIN SELECT RAISE(ABORT, 'a row of {kind} {NOT_AS_WRITTEN}'); END"
    for kind in _COLUMNS
    for event in ("UPDATE", "DELETE")
}
ARRIVING = {name: trigger for name, trigger in SUMMING.items() if name.endswith("INSERT")}
SELECT_SOUND = {
    kind: f"SELECT {', '.join(columns)} FROM {kind} AS row LEFT JOIN sums ON sums.kind = '{kind}' AND sums.number = row.number"
    f" WHERE coalesce(sum, {_sum_of(kind, 'row')}) = {_sum_of(kind, 'row')}"
    for kind, columns in _COLUMNS.items()
}
SELECTED = {  # with its checksum, or NULL, after the others
    kind: f"SELECT {', '.join(columns)}, (SELECT sum FROM sums WHERE sums.kind = '{kind}' AND sums.number = {kind}.number) FROM {kind}"
    for kind, columns in _COLUMNS.items()
}
# of the first version
SELECT_ALL = {kind: f"SELECT {', '.join(columns)} FROM {kind} AS row" for kind, columns in _COLUMNS.items()}
_WITHOUT = {
    kind: f"FROM {kind} WHERE number NOT IN (SELECT number FROM sums WHERE kind = '{kind}')"
    for kind in _COLUMNS
}
_FILL = tuple(
    statement
    for kind in _COLUMNS
    for statement in (
        f"DELETE FROM sums WHERE kind = '{kind}' AND number NOT IN (SELECT number FROM {kind})",
        f"INSERT INTO sums SELECT '{kind}', number, {_sum_of(kind, kind)} {_WITHOUT[kind]}",
    )
)


def newest(connection: sqlite3.Connection) -> dict[str, int]:
    """The largest number of a row of each kind."""
    return {
        kind: connection.execute(f"SELECT coalesce(max(number), 0) FROM {kind}").fetchone()[0]
        for kind in _COLUMNS
    }


def fill_since(connection: sqlite3.Connection, numbers: Mapping[str, int]) -> None:
    """Give the rows that came after those of these numbers their checksums."""
    for kind, number in numbers.items():
        connection.execute(
            f"INSERT INTO sums SELECT '{kind}', number, {_sum_of(kind, kind)} FROM {kind} WHERE number > ?",
            (number,),
        )


def lacks_sums(connection: sqlite3.Connection) -> bool:
    """Whether a row has no checksum: another program wrote it."""
    return any(connection.execute(f"SELECT 1 {without} LIMIT 1").fetchone() for without in _WITHOUT.values())


def fill_sums(connection: sqlite3.Connection) -> None:
    """Give the rows that have no checksum one."""
    for statement in _FILL:
        connection.execute(statement)


def can_sum(connection: sqlite3.Connection) -> None:
    """Let a connection reckon checksums."""
    connection.create_function("checksum", -1, _checksum, deterministic=True)


def is_sound(row: Sequence[Any]) -> bool:
    """Whether a row as `SELECTED` has it is as it was written, as far as it has a checksum."""
    *columns, sum = row
    return sum is None or sum == _checksum(*(column.encode() for column in columns))


def _checksum(*columns: bytes) -> int:
    sum = 0
    for column in columns:
        sum = zlib.crc32(b"%d:%b" % (len(column), column), sum)
    return sum


def damage_in(connection: Connection, schema: Sequence[str]) -> str:
    """What is wrong with a graph's file, whose tables were made by these statements; "" for nothing. Nothing
    is changed in it.
    """
    try:
        with connection.surfacing():
            return _damage_in(connection, schema)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return str(error)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _damage_in(connection: sqlite3.Connection, schema: Sequence[str]) -> str:
    can_write = _begun(connection)
    for (said,) in connection.execute("PRAGMA integrity_check(1)"):
        if said != "ok":
            return str(said).removeprefix("*** in database main ***\n")
    there = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}
    if missing := [statement for statement in schema if statement not in there]:
        return f"the definition {missing[0][:60]!r} … was changed"
    for kind in _COLUMNS:
        wrong = f"SELECT number FROM {kind} LEFT JOIN sums USING (number) WHERE kind = '{kind}' AND sum <> {_sum_of(kind, kind)} LIMIT 1"
        for (number,) in connection.execute(wrong):
            return f"row {number} of {kind} is not as it was written"
    if can_write:
        # changes nothing, but counts as a write
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    nodes, words = connection.execute(
        "SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM words)"
    ).fetchone()
    return "" if nodes == words else f"the index of words has {words:,} of {nodes:,} nodes"


def _begun(connection: sqlite3.Connection) -> bool:
    """Begin a transaction, one that could write if no other process is writing now."""
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("BEGIN IMMEDIATE")
        return True
    except sqlite3.OperationalError:
        connection.execute("BEGIN")
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")
