"""A file of tables: how it is opened, told from others, and found to be damaged before anything is written."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.io.sqlite_snapshot import check_before_opening
from kgot_lab.memory.sqlite import LONGEST_WAIT, explain_sqlite_error, refuse_damaged
from kgot_lab.memory.tables import Layout
from kgot_lab.stores.log import holds_something, require_path


def opened_tables(path: Path | None, layout: Layout) -> sqlite3.Connection:
    """A connection to a file of tables, made if there is none there, or to one in memory.

    Raises BadInput for a file of another kind or a newer version, StoreDamaged, and StoreUnavailable; none of
    them has written to it.
    """
    if path is not None:
        require_path(path)
        if holds_something(path):
            check_before_opening(path, lambda alone: _refuse_foreign_head(alone, path, layout))
    connection: sqlite3.Connection | None = None
    try:
        where = ":memory:" if path is None else path.absolute().as_uri() + "?mode=rwc"
        connection = sqlite3.connect(
            where, LONGEST_WAIT, isolation_level=None, check_same_thread=False, uri=path is not None
        )
        _prepare(connection, path, layout)
        return connection
    except BaseException as error:
        if connection is not None:
            connection.close()
        raise (
            explain_sqlite_error(error, path)
            if isinstance(error, sqlite3.Error | UnicodeDecodeError)
            else error
        ) from None


def _refuse_foreign_head(connection: sqlite3.Connection, path: Path | None, layout: Layout) -> None:
    if _number(connection, "application_id") != layout.application:
        raise BadInput(
            f"{path}: an SQLite file that something else made, so it was not touched; give another path"
        )
    if (version := _number(connection, "user_version")) > layout.version:
        newer = f"made by a newer version of this package (format {version}, known is {layout.version})"
        raise BadInput(f"{path}: {newer}, so it was not touched; update the package")


def _prepare(connection: sqlite3.Connection, path: Path | None, layout: Layout) -> None:
    """Search for damage, make the tables where the file is new, and set what lasts as long as the connection."""
    refuse_damaged(connection, path)
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        # before there is a log, so that the file's head says from the first what it is
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            # another process may have made them
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                _make(connection, layout)
    _refuse_foreign_head(connection, path, layout)
    if _number(connection, "user_version") < layout.version:
        _bring_up(connection, layout)
    for setting in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -65536"):
        connection.execute(f"PRAGMA {setting}").fetchall()


def _make(connection: sqlite3.Connection, layout: Layout) -> None:
    head = (f"PRAGMA application_id = {layout.application}", f"PRAGMA user_version = {layout.version}")
    later = [table.sqlite for table in layout.later]
    for statement in (*layout.tables, *later, *layout.indexes, *layout.sqlite, *head):
        connection.execute(statement)


def _bring_up(connection: sqlite3.Connection, layout: Layout) -> None:
    """Give a file of an earlier version the tables that it lacks."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        version = _number(connection, "user_version")
        if version == 0 and layout.repeatable:
            _make(connection, layout)
            return
        for table in layout.later[version - 1 :]:  # none where another process was first
            connection.execute(table.sqlite)
            connection.executemany(
                table.insert("?"), table.rows_of(connection.execute(table.read).fetchall())
            )
        connection.execute(f"PRAGMA user_version = {layout.version}")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    (number,) = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(number)
