"""SQLite files of memory: searched for damage before anything is written, and what an error of SQLite's means
for who uses one.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from kgot_lab.errors import BadInput, LabError, StoreDamaged, StoreUnavailable

LONGEST_WAIT = 30.0  # seconds to wait for another process that is writing
_CHECKED = 32_000_000  # bytes of a file that is searched for damage whenever it is opened, in about a second


def refuse_damaged(connection: sqlite3.Connection, path: Path | None) -> None:
    """Raise StoreDamaged where the pages of a file that is not too large do not fit together."""
    pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    if pages * size <= _CHECKED:
        said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if said != "ok":
            raise _damaged(" ".join(said.split()), path)


def explain_sqlite_error(error: Exception, path: Path | None) -> LabError:
    """What an error of SQLite's means for who uses the file."""
    where = path or "what is kept in memory"
    if _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(
            f"{where}: another process has been writing to it for {LONGEST_WAIT:g} s; try again when it is done"
        )
    if _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(
        error, UnicodeDecodeError
    ):
        return _damaged(str(error), path)
    if _code(error) == sqlite3.SQLITE_TOOBIG:
        return BadInput(f"{where}: {error}: no text of more than a billion bytes")
    return StoreUnavailable(f"{where}: {error}; see that its folder is there, can be written to and has room")


def _damaged(what: str, path: Path | None) -> StoreDamaged:
    return StoreDamaged(f"{path} is damaged ({what}); nothing was changed: put a copy in its place")


def _code(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
