"""Tables in one SQLite file, or in memory: many processes may read it and, one after the other, write to it."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.io.processes import ELSEWHERE, keep_for_ever, tell_of_forks
from kgot_lab.memory.sqlite import LONGEST_WAIT, explain_sqlite_error
from kgot_lab.memory.sqlite_tables import opened_tables
from kgot_lab.memory.tables import CLAIMS_LAYOUT, SCRUBBED, TO_SCRUB, ClaimRow, Layout

_ANY = re.compile(r"= ANY\((:\w+)\)")
_EACH = re.compile(r"unnest\((:\w+)\) AS (\w+) \(value\)")


class SQLiteTables:
    """A TableStorage of a layout in a file, made if there is none there, or in memory (":memory:").

    Raises BadInput for a file that is not one, which is not touched, StoreUnavailable for one that cannot be
    opened, and StoreDamaged.
    """

    def __init__(self, layout: Layout, path: Path | str = ":memory:") -> None:
        self.layout = layout
        self.path = None if path == ":memory:" else Path(path)
        self._lock = threading.RLock()
        self._foreign = False
        self._connection = opened_tables(self.path, layout)
        tell_of_forks(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} in {self.path or 'memory'}>"

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[ClaimRow]:
        given = {
            name: json.dumps(list(value)) if isinstance(value, list | tuple | set) else value
            for name, value in (values or {}).items()
        }
        with self._lock, self._told():
            return self._connection.execute(_in_sqlite(statement), given).fetchall()

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        with self._transaction("BEGIN IMMEDIATE"):
            yield

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

    def close(self) -> None:
        with self._lock:
            if not self._foreign:
                self._connection.close()

    def forked(self) -> None:
        """In a child: SQLite must not even close a connection there."""
        keep_for_ever(self._connection)
        self._foreign = True

    @contextmanager
    def _told(self) -> Iterator[None]:
        """In the place of an error of SQLite's, raise one that says what to do."""
        if self._foreign:
            raise StoreUnavailable(f"{self.path or f'a memory of {self.layout.name}'} {ELSEWHERE}")
        try:
            yield
        except sqlite3.ProgrammingError as error:
            if "closed" not in str(error):
                raise
            raise BadInput(f"{self!r} was closed: open it again") from None
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise explain_sqlite_error(error, self.path) from None


class SQLiteClaims(SQLiteTables):
    """A ClaimStorage in a file, made if there is none there, or in memory (":memory:"); raises what every
    file of tables does.
    """

    def __init__(self, path: Path | str = ":memory:") -> None:
        super().__init__(CLAIMS_LAYOUT, path)
        if self.rows(TO_SCRUB) != [(0,)]:  # what was to erase its bytes was stopped before it had
            self.scrub()

    def scrub(self) -> None:
        """Write the file anew without what was deleted, and empty its log; raises StoreUnavailable while
        another process reads.
        """
        with self._lock, self._told():
            self._connection.execute("VACUUM")
            self._empty_log()
            self._connection.execute(SCRUBBED)
            self._empty_log()

    def _empty_log(self) -> None:
        until = time.monotonic() + LONGEST_WAIT
        while self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] and self.path:
            if time.monotonic() > until:
                wait = "its bytes leave the log when that is done and the file is opened again"
                raise StoreUnavailable(
                    f"{self.path}: erased, but another process has been reading it for {LONGEST_WAIT:g} s; {wait}"
                )
            time.sleep(0.01)


@cache
def _in_sqlite(statement: str) -> str:
    return _EACH.sub(r"json_each(\1) AS \2", _ANY.sub(r"IN (SELECT value FROM json_each(\1))", statement))
