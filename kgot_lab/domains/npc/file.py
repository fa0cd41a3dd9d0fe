"""A world in one SQLite file, or in memory."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.domains.npc.schema import SQLITE_MIGRATIONS, WORLD_VERSION, in_sqlite
from kgot_lab.domains.npc.storage import WorldRow
from kgot_lab.domains.npc.things import VisibleWorld
from kgot_lab.domains.npc.visible_here import visible_here
from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.inherited import ELSEWHERE, keep_for_ever, tell_of_forks
from kgot_lab.memory.files import LONGEST_WAIT, refuse_damaged, refuse_other_kinds, said_of_file
from kgot_lab.stores.log import holds_something, require_path

WORLD_APPLICATION = 0x6B676C77  # "kglw": how a file of a world is told from any other
_ANY = re.compile(r"= ANY\((:\w+)\)")


class SQLiteWorld:
    """A WorldStorage in a file, made if there is none there, or in memory (":memory:").

    Raises BadInput for a file that is not one, which is not touched, StoreUnavailable for one that cannot be opened, and StoreDamaged.
    """

    def __init__(self, path: Path | str = ":memory:") -> None:
        self.path = None if path == ":memory:" else Path(path)
        self._lock = threading.RLock()
        self._foreign = False
        self._connection = _opened(self.path)
        tell_of_forks(self)

    def __repr__(self) -> str:
        return f"<SQLiteWorld in {self.path or 'memory'}>"

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[WorldRow]:
        with self._lock, self._told():
            return self._connection.execute(_in_file(statement), _all_written(values or {})).fetchall()

    def each(self, statement: str, values: Sequence[Mapping[str, Any]]) -> None:
        with self.changing(), self._told():
            self._connection.executemany(_in_file(statement), map(_all_written, values))

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    def visible(self, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld | None:
        return visible_here(self, npc_id, policy)

    def close(self) -> None:
        with self._lock:
            if not self._foreign:
                self._connection.close()

    def forked(self) -> None:
        """In a child: SQLite must not even close a connection there."""
        keep_for_ever(self._connection)
        self._foreign = True

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._lock:
            with self._told():
                outermost = not self._connection.in_transaction
                if outermost:
                    self._connection.execute(begin)
            try:
                yield
                if outermost:
                    with self._told():
                        self._connection.execute("COMMIT")
            except BaseException:
                if outermost and not self._foreign and self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """In the place of an error of SQLite's, raise one that says what to do."""
        if self._foreign:
            raise StoreUnavailable(f"{self.path or 'a world in memory'} {ELSEWHERE}")
        try:
            yield
        except sqlite3.ProgrammingError as error:
            if "closed" not in str(error):
                raise
            raise BadInput(f"{self!r} was closed: open it again") from None
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise said_of_file(error, self.path) from None


def _opened(path: Path | None) -> sqlite3.Connection:
    """A connection to the file of a world, brought to the last version; what is no such file has not been written to."""
    if path is not None:
        _refuse_foreign(path)
    connection: sqlite3.Connection | None = None
    try:
        where = ":memory:" if path is None else path.absolute().as_uri() + "?mode=rwc"
        connection = sqlite3.connect(where, LONGEST_WAIT, isolation_level=None, check_same_thread=False, uri=path is not None)
        refuse_damaged(connection, path)
        _migrate(connection)
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {setting}").fetchall()
        return connection
    except BaseException as error:
        if connection is not None:
            connection.close()
        raise said_of_file(error, path) if isinstance(error, sqlite3.Error | UnicodeDecodeError) else error from None


def _refuse_foreign(path: Path) -> None:
    """Raise BadInput unless a file is absent, empty or that of a world; its folder is made if there is none."""
    require_path(path)
    if not holds_something(path):
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", LONGEST_WAIT, uri=True)) as connection:
            application, version, tables = _head(connection)
    except sqlite3.DatabaseError as error:
        refuse_other_kinds(error, path)
        raise said_of_file(error, path) from None
    if application != WORLD_APPLICATION and (application or tables):
        raise BadInput(f"{path}: an SQLite file that something else made, so it was not touched; give another path")
    if version > WORLD_VERSION:
        newer = f"made by a newer version of this package (format {version}, known is {WORLD_VERSION})"
        raise BadInput(f"{path}: {newer}, so it was not touched; update the package")


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables from the version that a file is of to the last."""
    if _head(connection)[1] < WORLD_VERSION:
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            for migration in SQLITE_MIGRATIONS[_head(connection)[1] :]:  # another process may have done it
                for statement in migration:
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {WORLD_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {WORLD_VERSION}")


def _head(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """What a file says of itself: its application, its version, and how many tables and indexes it has."""
    asked = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    application, version, tables = (int(connection.execute(each).fetchone()[0]) for each in asked)
    return application, version, tables


def _all_written(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _written(value) for name, value in values.items()}


def _written(value: Any) -> Any:
    """A value as the file holds it: ids and times are texts, a list is one of JSON."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, list | tuple | set):
        return json.dumps([_written(each) for each in value])
    return str(value) if isinstance(value, UUID) else value


@cache
def _in_file(statement: str) -> str:
    return _ANY.sub(r"IN (SELECT value FROM json_each(\1))", in_sqlite(statement))
