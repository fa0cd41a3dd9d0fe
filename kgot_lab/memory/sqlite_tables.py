"""Tables in one SQLite file or in memory, and a function that opens tables in any location.

Many processes may read, and write one after the other.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, LabError, StoreUnavailable, require
from kgot_lab.io.processes import Closing
from kgot_lab.io.sqlite import checksums
from kgot_lab.io.sqlite.connection import BUSY_TIMEOUT, refuse_foreign_head
from kgot_lab.io.sqlite.file import SQLiteFile
from kgot_lab.memory import tables
from kgot_lab.memory.postgres_tables import PostgresTables
from kgot_lab.memory.tables import ClaimRow, Layout, TableStorage
from kgot_lab.stores.opening import resolve_location

# from the dialect of PostgreSQL
_TRANSLATIONS = (
    (r"= ANY\((:\w+)\)", r"IN (SELECT value FROM json_each(\1))"),
    (r"unnest\((?:CAST\()?(:\w+)[^)]*\)+ AS (\w+) \(value\)", r"json_each(\1) AS \2"),
    (r"(\w+\.\w+) \? CAST\((:\w+) AS text\)", r"EXISTS (SELECT 1 FROM json_each(\1) WHERE value = \2)"),
    (r"to_tsvector\('[\w.]+', (:\w+)\)", r"\1"),
    # an index of the words of a column is a table
    (
        r"(\w+) (\w+) ON \w+\.(\w+) @@ plainto_tsquery\('[\w.]+', ([\w.]+)\)",
        r"\1_\3 ON \1_\3 MATCH \4 JOIN \1 \2 ON \2.number = \1_\3.rowid",
    ),
    (r"\b(UUID|JSONB|TIMESTAMPTZ|tsvector)\b", "TEXT"),
    (r"BIGINT GENERATED ALWAYS AS IDENTITY", "INTEGER"),
    (r"pgvector\.vector", "BLOB"),
)


class SQLiteTables(SQLiteFile):
    """A TableStorage of a layout in an SQLite file, created if it is missing, or in memory (":memory:").

    Raises BadInput for a file of another kind or a newer version, which is not changed, StoreUnavailable if it
    cannot be opened, and StoreDamaged.
    """

    settings = ("secure_delete = ON", *SQLiteFile.settings)
    steps: checksums.Steps
    closed_error: ClassVar[type[LabError]] = BadInput

    @check_arguments
    def __init__(self, layout: Layout, path: Path | str = ":memory:") -> None:
        self.layout = layout
        self.steps = {layout.version: self._upgrade_tables} if layout.upgrade else {}
        super().__init__(None if path == ":memory:" else Path(path))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} in {self._path or 'memory'}>"

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[ClaimRow]:
        parameters = {
            name: json.dumps(list(value)) if isinstance(value, list | tuple | set) else value
            for name, value in (values or {}).items()
        }
        with self._connected() as connection:
            return connection.execute(_to_sqlite(statement), parameters).fetchall()

    def insert(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        with self._connected() as connection:
            connection.executemany(_to_sqlite(statement), rows)

    def reading(self) -> AbstractContextManager[object]:
        return self._transaction("BEGIN")

    def changing(self) -> AbstractContextManager[object]:
        return self._transaction()

    def _refuse_foreign(self, connection: sqlite3.Connection) -> None:
        refuse_foreign_head(connection, self._path, self.layout.application, self.layout.version, self.steps)

    def _upgrade_tables(self, connection: sqlite3.Connection) -> None:
        for statement in (*self.layout.upgrade, *tables.HISTORY_TABLES["sqlite"]):
            connection.execute(_to_sqlite(statement))
        checksums.forget_changed_definitions(connection)

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        layout = self.layout
        for statement in (*layout.tables, *layout.indexes, *layout.sqlite):
            connection.execute(_to_sqlite(statement))
        connection.execute(f"PRAGMA application_id = {layout.application}")
        connection.execute(f"PRAGMA user_version = {layout.version}")


class SQLiteClaims(SQLiteTables):
    """A ClaimStorage in an SQLite file, created if it is missing, or in memory (":memory:").

    Raises what `SQLiteTables` raises.
    """

    def __init__(self, path: Path | str = ":memory:") -> None:
        super().__init__(tables.CLAIMS_LAYOUT, path)
        # what was to erase its bytes was stopped before it had
        if self._connection.can_write and self.rows(tables.COUNT_UNSCRUBBED) != [(0,)]:
            self.scrub()

    def scrub(self) -> None:
        """Rewrite the file without what was deleted, and empty its log.

        Raises StoreUnavailable while another process reads.
        """
        with self._connected() as connection:
            for statement in ("VACUUM", tables.MARK_SCRUBBED):
                connection.execute(statement)
                self._empty_log(connection)

    def _empty_log(self, connection: sqlite3.Connection) -> None:
        deadline = time.monotonic() + BUSY_TIMEOUT
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] and self._path:
            if time.monotonic() > deadline:
                hint = "its bytes leave the log when that is done and the file is opened again"
                reading = f"another process has been reading it for {BUSY_TIMEOUT:g} s"
                raise StoreUnavailable(f"{self._path}: erased, but {reading}; {hint}")
            time.sleep(0.01)


@cache
def _to_sqlite(statement: str) -> str:
    for pattern, replacement in _TRANSLATIONS:
        statement = re.sub(pattern, replacement, statement)
    return statement


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
    schema = "kgot_" + layout.name.replace(" ", "_")
    in_file, on_server = partial(SQLiteTables, layout), partial(PostgresTables, layout, namespace=schema)
    return open_at(place, layout.name, in_file, on_server, namespace=namespace)


class TableBacked(Closing):
    """An object stored in its own tables, which are closed with it and at the end of a `with` block.

    `now` is its clock.
    """

    layout: ClassVar[Layout]

    def __init__(self, storage: TableStorage, *, now: Callable[[], datetime] | None = None) -> None:
        self.storage, self.now = storage, now or partial(datetime.now, UTC)

    @classmethod
    def open(
        cls,
        place: Path | str = ":memory:",
        *,
        namespace: str | None = None,
        **options: Callable[[], datetime],
    ) -> Self:
        """Open the tables in an SQLite file, in memory (":memory:"), or in PostgreSQL by address, as `open_tables`."""
        return cls(open_tables(cls.layout, place, namespace=namespace), **options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} in {self.storage!r}>"

    def close(self) -> None:
        """Close the tables."""
        self.storage.close()


def open_at(
    place: Path | str,
    noun: str,
    in_file: Callable[[Path | str], _OpenedTables],
    on_server: Callable[..., _OpenedTables],
    *,
    namespace: str | None = None,
    example: str = "memory.db",
) -> _OpenedTables:
    """Call `in_file` with the place, or `on_server` with it and the namespace if there is one.

    Raises BadInput if the place is neither a file nor an address, and for a file with a namespace.
    """
    require(place, (str, Path), f"{noun} are kept in a file or at an address")
    if isinstance(place, str) and "://" in place:
        if place.partition("://")[0].lower() not in ("postgresql", "postgres"):
            raise BadInput(f"{noun} are kept in a file or at postgresql://HOST/NAME, and at no other address")
        resolve_location(place)
        return on_server(place) if namespace is None else on_server(place, namespace=namespace)
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
    return in_file(place)
