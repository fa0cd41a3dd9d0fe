"""Open an SQLite file with a graph, recognize such a file, and search it for damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from kgot_lab.errors import LabError, StoreDamaged, StoreUnavailable
from kgot_lab.graph.validation import MAX_ELEMENT_BYTES
from kgot_lab.io.processes import prevent_collection
from kgot_lab.io.sqlite.connection import (
    Connection,
    connect,
    damage_error,
    file_error,
    has_tables,
    immediate_transaction,
    is_searched_at_opening,
    refuse_foreign_head,
)
from kgot_lab.io.sqlite.file import SQLiteFile
from kgot_lab.stores.sqlite import damage, tables

APPLICATION = 0x6B676C62  # "kglb": the application id of files made by this package
SALVAGE_ADVICE = "restore a copy, or keep what is whole: kgot-lab doctor --salvage"
_VERSION = 2  # 1 had no checksums of rows
_MIN_SQLITE_VERSION = (3, 38)  # the first SQLite with STRICT tables, memory shared by name, and ->>
# bytes of a row: those of an element, and what SQLite itself puts there; bounds what functions build
MAX_READ_BYTES = MAX_ELEMENT_BYTES + 1_000_000
# bytes of a LIKE pattern: matching takes as long as pattern times text, and no time limit stops it
MAX_PATTERN_BYTES = 250


def _add_checksums(connection: sqlite3.Connection) -> None:
    for statement in tables.SCHEMA["version_2"]:
        connection.execute(statement)
    damage.fill_checksums(connection)


STEPS = {2: _add_checksums}


class GraphFile(SQLiteFile):
    """A graph in an SQLite file or in memory, with two connections, of which only the first can write.

    Raises BadInput for a file of another kind, which is not changed, StoreUnavailable if the file cannot be
    opened, and StoreDamaged if it is damaged.
    """

    settings = (*SQLiteFile.settings, "foreign_keys = ON")
    steps = STEPS
    _reader: Connection

    def __init__(self, path: Path | None) -> None:
        if sqlite3.sqlite_version_info < _MIN_SQLITE_VERSION:
            problem = f"this Python has SQLite {sqlite3.sqlite_version}"
            raise StoreUnavailable(f"{problem}; {'.'.join(map(str, _MIN_SQLITE_VERSION))} or newer is needed")
        self._guard = tables.Guard()
        super().__init__(path)

    def after_fork(self) -> None:
        """Detach the connections in a forked child, where what SQLite knows of the file's locks does not hold."""
        if self._over is None:
            prevent_collection(self._reader)
        super().after_fork()

    def verify(self) -> None:
        """Search the whole file for damage, as opening a small one does.

        Raises StoreDamaged if there is any.
        """
        with self._lock:
            self._require_open()
            if self._path is not None:
                self._refuse_damage()

    def _connect(self) -> Connection:
        if self._path is None:
            self._uri = f"file:/kgot_lab-{uuid4().hex}?vfs=memdb"
            return _limited(connect(self._uri), MAX_READ_BYTES)
        self._uri = f"{self._path.absolute().as_uri()}?{self._mode.replace('rwc', 'ro')}"
        connection = _limited(super()._connect(), MAX_READ_BYTES)
        damage.enable_checksums(connection)  # those of rows
        return connection

    def _prepare(self, connection: Connection) -> None:
        super()._prepare(connection)
        self._reader = _limited(connect(self._uri if self._path else f"{self._uri}&mode=ro"), MAX_READ_BYTES)
        self._reader.execute("PRAGMA query_only = ON")
        self._reader.set_authorizer(self._guard)

    def _refuse_foreign(self, connection: sqlite3.Connection) -> None:
        require_own_format(connection, self._path)

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        pragmas = (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {_VERSION}")
        for statement in (*tables.GRAPH_TABLES, *pragmas):
            connection.execute(statement)

    def _find_damage(self, connection: Connection) -> str:
        if has_tables(connection):
            return damage.find_damage(connection, tables.GRAPH_TABLES)
        return super()._find_damage(connection)

    def _keep_checksums(self, connection: Connection) -> None:
        """Keep a checksum of each row, and compute those that are missing in a file that is not too large."""
        if is_searched_at_opening(connection) and damage.count_without_checksum(connection):
            with immediate_transaction(connection):
                damage.fill_checksums(connection)
        for statement in damage.CHECKSUM_TRIGGERS.values():
            connection.execute(statement)

    @contextmanager
    def _bulk_insert(self) -> Iterator[None]:
        """Index the rows that are added in a block, and compute their checksums, together at its end.

        Nothing may be deleted meanwhile, since a new row could reuse its number.
        """
        writer, last_numbers = self._connection, damage.last_row_numbers(self._connection)
        writer.execute("INSERT INTO waiting VALUES (1)")
        yield
        writer.execute("DELETE FROM waiting")
        writer.execute(tables.INDEX_NEW_NODES, (last_numbers["nodes"],))
        if self._path is not None:
            damage.fill_checksums(writer, last_numbers)

    def _close_connections(self) -> None:
        self._reader.close()
        self._connection.close()  # last, since it cleans up the file

    def _explain(self, error: Exception) -> LabError:
        return unavailable_error(error, self._path) or StoreUnavailable(f"{self._location}: {error}")

    @property
    def _location(self) -> str:
        return str(self._path or "the graph in memory")

    @property
    def _advice(self) -> str:
        return f"{SALVAGE_ADVICE} {self._path}"


def unavailable_error(error: Exception, path: Path | None) -> StoreUnavailable | None:
    """Return the error to raise if an SQLite error concerns the file rather than a statement, or None."""
    if str(error).endswith(damage.CHECKSUM_MISMATCH):
        return damaged_error(path, str(error))
    return file_error(error, path, f"{SALVAGE_ADVICE} {path}")


def damaged_error(path: Path | None, problem: str) -> StoreDamaged:
    """Create the error for a damaged file."""
    return damage_error(path, problem, f"{SALVAGE_ADVICE} {path}")


def require_own_format(connection: sqlite3.Connection, path: Path | None) -> None:
    """Raise BadInput if a file is not made by this package or of another version.

    Raises sqlite3.Error if that cannot be read.
    """
    refuse_foreign_head(connection, path, APPLICATION, _VERSION, STEPS)


def _limited(connection: Connection, max_bytes: int) -> Connection:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max_bytes)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN_BYTES)
    return connection
