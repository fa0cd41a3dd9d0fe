"""Tables in one SQLite file or in memory, and a function that opens tables in any location.

Many processes may read, and write one after the other.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from kgot_lab.errors import BadInput, StoreUnavailable, require
from kgot_lab.io.processes import OPENED_BEFORE_FORK, prevent_collection, register_for_forks
from kgot_lab.io.sqlite_snapshot import check_before_opening
from kgot_lab.memory.postgres_tables import PostgresTables
from kgot_lab.memory.sqlite import BUSY_TIMEOUT, explain_sqlite_error, refuse_damaged_file
from kgot_lab.memory.tables import (
    CLAIMS_LAYOUT,
    COUNT_UNSCRUBBED,
    MARK_SCRUBBED,
    ClaimRow,
    Layout,
    TableStorage,
)
from kgot_lab.stores.log import is_nonempty_file, require_valid_path
from kgot_lab.stores.opening import resolve_location

# A file of tables: opening, recognition, and the search for damage before anything is written.


def connect_tables(path: Path | None, layout: Layout) -> sqlite3.Connection:
    """Connect to a file of tables, creating it if there is none, or to a database in memory.

    Raises BadInput for a file of another kind or a newer version, StoreDamaged, and StoreUnavailable. The
    file is unchanged after any of them.
    """
    if path is not None:
        require_valid_path(path)
        if is_nonempty_file(path):
            check_before_opening(path, lambda alone: _refuse_foreign_file(alone, path, layout))
    connection: sqlite3.Connection | None = None
    try:
        uri = ":memory:" if path is None else path.absolute().as_uri() + "?mode=rwc"
        options: dict[str, Any] = {"isolation_level": None, "check_same_thread": False}
        connection = sqlite3.connect(uri, BUSY_TIMEOUT, **options, uri=path is not None)
        _prepare_connection(connection, path, layout)
        return connection
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.Error | UnicodeDecodeError):
            raise explain_sqlite_error(error, path) from None
        raise


def _refuse_foreign_file(connection: sqlite3.Connection, path: Path | None, layout: Layout) -> None:
    if _read_pragma(connection, "application_id") != layout.application:
        origin = "an SQLite file that something else made"
        raise BadInput(f"{path}: {origin}, so it was not touched; give another path")
    if (version := _read_pragma(connection, "user_version")) > layout.version:
        origin = f"made by a newer version of this package (format {version}, known is {layout.version})"
        raise BadInput(f"{path}: {origin}, so it was not touched; update the package")


def _prepare_connection(connection: sqlite3.Connection, path: Path | None, layout: Layout) -> None:
    """Search for damage, create the tables in a new file, and set the options of the connection."""
    refuse_damaged_file(connection, path)
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        # before there is a log, so that the file's head identifies it from the beginning
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            # another process may have created them
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                _create_tables(connection, layout)
    _refuse_foreign_file(connection, path, layout)
    if _read_pragma(connection, "user_version") < layout.version:
        _migrate(connection, layout)
    for setting in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -65536"):
        connection.execute(f"PRAGMA {setting}").fetchall()


def _create_tables(connection: sqlite3.Connection, layout: Layout) -> None:
    pragmas = (f"PRAGMA application_id = {layout.application}", f"PRAGMA user_version = {layout.version}")
    added = [table.sqlite for table in layout.later]
    for statement in (*layout.tables, *added, *layout.indexes, *layout.sqlite, *pragmas):
        connection.execute(statement)


def _migrate(connection: sqlite3.Connection, layout: Layout) -> None:
    """Add the missing tables to a file of an earlier version."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        version = _read_pragma(connection, "user_version")
        if version == 0 and layout.repeatable:
            _create_tables(connection, layout)
            return
        for table in layout.later[version - 1 :]:  # none where another process was first
            connection.execute(table.sqlite)
            rows = table.compute_rows(connection.execute(table.read).fetchall())
            connection.executemany(table.insert_statement("?"), rows)
        connection.execute(f"PRAGMA user_version = {layout.version}")


def _read_pragma(connection: sqlite3.Connection, pragma: str) -> int:
    (number,) = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(number)


_ANY_OF_LIST = re.compile(r"= ANY\((:\w+)\)")
_UNNEST = re.compile(r"unnest\((:\w+)\) AS (\w+) \(value\)")


class SQLiteTables:
    """A TableStorage of a layout in an SQLite file, created if it is missing, or in memory (":memory:").

    Raises BadInput for a file of another kind, which is not changed, StoreUnavailable if it cannot be opened,
    and StoreDamaged.
    """

    def __init__(self, layout: Layout, path: Path | str = ":memory:") -> None:
        self.layout = layout
        self.path = None if path == ":memory:" else Path(path)
        self._lock = threading.RLock()
        self._foreign = False
        self._connection = connect_tables(self.path, layout)
        register_for_forks(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} in {self.path or 'memory'}>"

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[ClaimRow]:
        parameters = {
            name: json.dumps(list(value)) if isinstance(value, list | tuple | set) else value
            for name, value in (values or {}).items()
        }
        with self._lock, self._convert_errors():
            return self._connection.execute(_to_sqlite(statement), parameters).fetchall()

    def reading(self) -> AbstractContextManager[None]:
        return self._transaction("BEGIN")

    def changing(self) -> AbstractContextManager[None]:
        return self._transaction("BEGIN IMMEDIATE")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._lock:
            with self._convert_errors():
                outermost = not self._connection.in_transaction
                if outermost:
                    self._connection.execute(begin)
            try:
                yield
                if outermost:
                    with self._convert_errors():
                        self._connection.execute("COMMIT")
            except BaseException:
                if outermost and not self._foreign and self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._lock:
            if not self._foreign:
                self._connection.close()

    def after_fork(self) -> None:
        """Detach the connection in a forked child, where SQLite must not even close it."""
        prevent_collection(self._connection)
        self._foreign = True

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Replace an SQLite error by one that says what to do."""
        if self._foreign:
            raise StoreUnavailable(f"{self.path or f'a memory of {self.layout.name}'} {OPENED_BEFORE_FORK}")
        try:
            yield
        except sqlite3.ProgrammingError as error:
            if "closed" not in str(error):
                raise
            raise BadInput(f"{self!r} was closed: open it again") from None
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise explain_sqlite_error(error, self.path) from None


class SQLiteClaims(SQLiteTables):
    """A ClaimStorage in an SQLite file, created if it is missing, or in memory (":memory:").

    Raises what `SQLiteTables` raises.
    """

    def __init__(self, path: Path | str = ":memory:") -> None:
        super().__init__(CLAIMS_LAYOUT, path)
        if self.rows(COUNT_UNSCRUBBED) != [(0,)]:  # what was to erase its bytes was stopped before it had
            self.scrub()

    def scrub(self) -> None:
        """Rewrite the file without what was deleted, and empty its log.

        Raises StoreUnavailable while another process reads.
        """
        with self._lock, self._convert_errors():
            self._connection.execute("VACUUM")
            self._empty_log()
            self._connection.execute(MARK_SCRUBBED)
            self._empty_log()

    def _empty_log(self) -> None:
        deadline = time.monotonic() + BUSY_TIMEOUT
        while self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] and self.path:
            if time.monotonic() > deadline:
                hint = "its bytes leave the log when that is done and the file is opened again"
                reading = f"another process has been reading it for {BUSY_TIMEOUT:g} s"
                raise StoreUnavailable(f"{self.path}: erased, but {reading}; {hint}")
            time.sleep(0.01)


@cache
def _to_sqlite(statement: str) -> str:
    listed = _ANY_OF_LIST.sub(r"IN (SELECT value FROM json_each(\1))", statement)
    return _UNNEST.sub(r"json_each(\1) AS \2", listed)


# Open tables by the name of a file, in memory, or by the address of a PostgreSQL server.

_OpenedTables = TypeVar("_OpenedTables", bound=TableStorage)
# as libpq takes it: host=… dbname=…
_LIBPQ_PAIRS = re.compile(r"\s*(?:\w+\s*=\s*\S+\s+)*(?:host|hostaddr|dbname|user|password)\s*=")


def open_tables(
    layout: Layout, place: Path | str = ":memory:", *, namespace: str | None = None
) -> TableStorage:
    """Open tables in an SQLite file, in memory (":memory:"), or in PostgreSQL by address (postgresql://).

    `namespace` names the schema in PostgreSQL. Raises BadInput if the place is invalid or contains something
    else. Raises StoreUnavailable, StoreDamaged or NotInstalled if opening fails.
    """
    schema = "kgot_" + layout.name.replace(" ", "_") if namespace is None else namespace
    return open_at(
        place,
        layout.name,
        in_file=lambda: SQLiteTables(layout, place),
        on_server=lambda url: PostgresTables(layout, url, namespace=schema),
        namespace=namespace,
    )


def open_at(
    place: Path | str,
    noun: str,
    *,
    in_file: Callable[[], _OpenedTables],
    on_server: Callable[[str], _OpenedTables],
    namespace: str | None = None,
    example: str = "memory.db",
) -> _OpenedTables:
    """Call `in_file` or `on_server`, depending on the kind of place, and return the result.

    Raises BadInput if the place is neither a file nor an address, and for a file with a namespace.
    """
    require(place, (str, Path), f"{noun} are kept in a file or at an address")
    if isinstance(place, str) and "://" in place:
        if place.partition("://")[0].lower() not in ("postgresql", "postgres"):
            raise BadInput(f"{noun} are kept in a file or at postgresql://HOST/NAME, and at no other address")
        resolve_location(place)
        return on_server(place)
    # otherwise a file would be created whose name may be a password
    if isinstance(place, str) and _LIBPQ_PAIRS.match(place):
        remedy = "give the server as an address, not as name=value pairs"
        raise BadInput(f"{noun} are kept in a file or at postgresql://HOST/NAME: {remedy}")
    if namespace is not None:
        raise BadInput("only PostgreSQL has namespaces: leave that of a file out")
    if not str(place).strip():
        raise BadInput(f"{noun} are kept in a file: give its name, such as {example}")
    if (path := Path(place)).is_dir():
        raise BadInput(f"{path} is a folder: name a file in it, such as {path / example}")
    return in_file()
