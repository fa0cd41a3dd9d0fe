"""Tables in one SQLite file or in memory. Many processes may read, and write one after the other."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from kgot_lab.errors import BadInput, LabError
from kgot_lab.io.sqlite import checksums
from kgot_lab.io.sqlite.connection import refuse_foreign_head
from kgot_lab.io.sqlite.file import SQLiteFile
from kgot_lab.stores.tables.layout import Layout, TableRow

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

    def __init__(self, layout: Layout, path: Path | str = ":memory:") -> None:
        self.layout = layout
        self.steps = {layout.version: self._upgrade_tables} if layout.upgrade else {}
        super().__init__(None if path == ":memory:" else Path(path))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} in {self._path or 'memory'}>"

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[TableRow]:
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
        for statement in (*self.layout.upgrade, *self.layout.sqlite_upgrade):
            connection.execute(_to_sqlite(statement))
        checksums.forget_changed_definitions(connection)

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        layout = self.layout
        for statement in (*layout.tables, *layout.indexes, *layout.sqlite):
            connection.execute(_to_sqlite(statement))
        connection.execute(f"PRAGMA application_id = {layout.application}")
        connection.execute(f"PRAGMA user_version = {layout.version}")


@cache
def _to_sqlite(statement: str) -> str:
    for pattern, replacement in _TRANSLATIONS:
        statement = re.sub(pattern, replacement, statement)
    return statement
