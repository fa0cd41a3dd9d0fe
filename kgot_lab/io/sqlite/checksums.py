"""Find damage that SQLite does not notice, by checksums of tables and definitions that are kept in the file.

Of each table the sum of the CRC-32 of its rows is kept. Triggers of this package's connections change it in the
transaction that changes the rows. Triggers in the file count all changes, so that those of other programs, which
do not know the sum, are noticed: it is then computed again.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

from kgot_lab.io.sqlite.connection import (
    Connection,
    immediate_transaction,
    is_searched_at_opening,
    is_unavailable,
    query_number,
)

# by version, what brings a file of the version before it there, within a transaction
Steps = Mapping[int, Callable[[sqlite3.Connection], None]]
_TABLE = """CREATE TABLE IF NOT EXISTS checksums (name TEXT PRIMARY KEY, sum INTEGER NOT NULL, changes INTEGER NOT NULL,
  summed INTEGER NOT NULL) STRICT, WITHOUT ROWID"""  # how many changes were made, and how many of them are in the sum
_DEFINITION = "definition of "
_DEFINITIONS = f"""SELECT '{_DEFINITION}' || name, checksum(sql), 0, 0 FROM sqlite_master
  WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
  UNION ALL SELECT '{_DEFINITION}user_version', user_version, 0, 0 FROM pragma_user_version, pragma_application_id
  WHERE application_id <> 0"""
_TABLES = """SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name <> 'checksums'
  AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"""  # SQLite must not have triggers on those of a full-text index
_WORD_INDEXES = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE % USING fts5%'"
_EVENTS = {"INSERT": " + {NEW}", "UPDATE": " + {NEW} - {OLD}", "DELETE": " - {OLD}"}


def keep_checksums(connection: Connection) -> None:
    """Keep the checksums of all tables, from now on by this connection.

    Those that are missing are computed, in a file that is not too large.
    """
    tables = {name: _columns(connection, name) for name in tables_of(connection)}
    if unsummed_tables(connection) and is_searched_at_opening(connection):
        with immediate_transaction(connection):
            connection.execute(_TABLE)
            unsummed = unsummed_tables(connection)
            for table, columns in tables.items():
                for event in _EVENTS:
                    connection.execute(
                        f"CREATE TRIGGER IF NOT EXISTS count_{table}_{event} AFTER {event} ON {table} BEGIN"
                        f" UPDATE checksums SET changes = changes + 1 WHERE name = '{table}'; END"
                    )
                if table in unsummed:
                    values = (table, _sum_rows(connection, table, columns))
                    connection.execute("INSERT OR REPLACE INTO checksums VALUES (?, ?, 0, 0)", values)
            connection.execute(f"INSERT OR IGNORE INTO checksums {_DEFINITIONS}")
    for table, columns in tables.items():
        rows = {row: f"checksum({', '.join(f'{row}.{name}' for name in columns)})" for row in ("NEW", "OLD")}
        for event, change in _EVENTS.items():
            connection.execute(
                f"CREATE TEMP TRIGGER IF NOT EXISTS sum_{table}_{event} AFTER {event} ON main.{table} BEGIN UPDATE checksums"
                f" SET sum = sum{change.format(**rows)}, summed = summed + 1 WHERE name = '{table}'; END"
            )


def migrate(connection: Connection, steps: Steps) -> str:
    """Bring a file of an older version to the newest, or describe the damage in it, which is then not changed."""
    while (version := query_number(connection, "PRAGMA user_version") + 1) in steps:
        with describe_damage(connection) as damages:
            damages += islice(check_integrity(connection), 1)
        if damages:
            return damages[0]
        with immediate_transaction(connection):
            if query_number(connection, "PRAGMA user_version") < version:  # no other process was first
                steps[version](connection)
                connection.execute(f"PRAGMA user_version = {version}")
                if _has_checksums(connection):
                    connection.execute(f"INSERT OR REPLACE INTO checksums {_DEFINITIONS}")
    return ""


def forget_changed_definitions(connection: sqlite3.Connection) -> None:
    """Delete the checksums of the tables that a step redefined or dropped, to be computed again."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'checksums'").fetchone():
        connection.execute(f"""DELETE FROM checksums WHERE name NOT LIKE '{_DEFINITION}%' AND NOT EXISTS
          (SELECT 1 FROM sqlite_master m JOIN checksums d ON d.name = '{_DEFINITION}' || m.name
           WHERE m.name = checksums.name AND checksum(m.sql) = d.sum)""")
        connection.execute(f"""DELETE FROM checksums WHERE name LIKE '{_DEFINITION}%'
          AND name NOT IN (SELECT name FROM ({_DEFINITIONS}))""")


def enable_checksums(connection: Connection) -> None:
    """Enable a connection to compute checksums."""
    connection.create_function("checksum", -1, _checksum, deterministic=True)


def find_damage(connection: Connection) -> str:
    """Describe the damage in a file, or return "" if there is none. Nothing in the file is changed.

    Raises sqlite3.Error if the file cannot be read now.
    """
    with describe_damage(connection) as damages:
        damages += islice(_damages(connection), 1)
    return next(iter(damages), "")


@contextmanager
def describe_damage(connection: Connection) -> Iterator[list[str]]:
    """Add to a list what SQLite says of damage in a block, and end its transaction.

    Raises sqlite3.Error if the file cannot be read now.
    """
    damages: list[str] = []
    try:
        with connection.raise_callback_errors():
            yield damages
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if is_unavailable(error):
            raise
        damages.append(describe_error(error))
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def describe_error(error: Exception) -> str:
    """Return what an SQLite error says of damage."""
    return str(error).replace("user-defined function raised exception", "a text is not UTF-8")


def check_integrity(connection: Connection) -> Iterator[str]:
    """Begin a transaction, and yield the damage that SQLite finds in its own structures and indexes of words.

    Those are searched where no other process is writing. Raises sqlite3.Error if the file cannot be read now, which
    SQLite reports as damage.
    """
    can_write = _begin_transaction(connection)
    (message,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if message != "ok":
        for table in tables_of(connection):
            try:
                connection.execute(f"SELECT count(*) FROM {table} NOT INDEXED").fetchone()
            except sqlite3.Error as error:
                if is_unavailable(error):
                    raise
        yield " ".join(message.removeprefix("*** in database main ***\n").split())
    for (index,) in connection.execute(_WORD_INDEXES).fetchall() if can_write else ():
        # changes nothing, but counts as a write
        connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")


def _damages(connection: Connection) -> Iterator[str]:
    yield from check_integrity(connection)
    if not _has_checksums(connection):
        return
    checksums = connection.execute("SELECT name, iif(changes = summed, sum, NULL) FROM checksums").fetchall()
    definitions = {name: checksum for name, checksum, *_ in connection.execute(_DEFINITIONS)}
    for name, checksum in checksums:
        if name.startswith(_DEFINITION):
            if definitions.get(name) != checksum:
                yield f"the {name} is not as it was written"
        elif _DEFINITION + name not in definitions:
            yield f"the table {name} is missing"
        elif checksum not in (_sum_rows(connection, name, _columns(connection, name)), None):
            yield f"the rows of {name} are not as they were written"


def tables_of(connection: Connection) -> list[str]:
    """Return the names of the tables whose rows have checksums."""
    return [name for (name,) in connection.execute(_TABLES)]


def unsummed_tables(connection: Connection) -> list[str]:
    """Return the tables without a checksum of their rows, as another program changed them."""
    if not _has_checksums(connection):
        return tables_of(connection)
    summed = {name for (name,) in connection.execute("SELECT name FROM checksums WHERE changes = summed")}
    return [name for name in tables_of(connection) if name not in summed]


def _has_checksums(connection: Connection) -> bool:
    return bool(query_number(connection, "SELECT count(*) FROM sqlite_master WHERE name = 'checksums'"))


def _columns(connection: Connection, table: str) -> list[str]:
    """Return the columns that are stored, quoted."""
    query = "SELECT name FROM pragma_table_xinfo(?) WHERE hidden IN (0, 3)"
    return [f'"{name}"' for (name,) in connection.execute(query, (table,))]


def _sum_rows(connection: Connection, table: str, columns: list[str]) -> int:
    # the rows themselves: an index may hold all columns, and is compared with them by SQLite
    total = f"coalesce(sum(checksum({', '.join(columns)})), 0)"
    return query_number(connection, f"SELECT {total} FROM {table} NOT INDEXED")


def _checksum(*columns: Any) -> int:
    return zlib.crc32(ascii(columns).encode())  # the same in every version of Python


def _begin_transaction(connection: Connection) -> bool:
    """Begin a transaction that can write if this connection can, and no other process is writing."""
    if not connection.can_write:
        connection.execute("BEGIN")
        return False
    (timeout,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("BEGIN IMMEDIATE")
        return True
    except sqlite3.OperationalError:
        connection.execute("BEGIN")
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {timeout}")
