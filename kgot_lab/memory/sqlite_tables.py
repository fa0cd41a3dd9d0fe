"""The tables of claims in an SQLite file or in memory, with permanent erasure."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from kgot_lab.errors import StoreUnavailable
from kgot_lab.io.sqlite.connection import BUSY_TIMEOUT
from kgot_lab.memory import tables
from kgot_lab.stores.tables.sqlite import SQLiteTables


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
