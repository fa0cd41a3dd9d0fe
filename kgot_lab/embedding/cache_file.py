"""Files of what was made once, kept on this computer for the next time."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

# with the file; the last where SQLite's own word quotes the damage
_TROUBLE = (sqlite3.Error, OSError, UnicodeDecodeError)
_MOST_ASKED = 500  # keys of one statement


@dataclass(frozen=True)
class CacheTable:
    """Where a cache keeps its values: the name of its file, of the one table in it, and of the column beside
    `key`.
    """

    file: str
    name: str
    column: str
    type: str
    read: str  # how the column is read


class CacheFile:
    """Values under their keys, in a SQLite file that several programs may share. It is never needed: trouble
    with it is a warning, once.

    A broken file is put aside and a new one begun.
    """

    def __init__(self, folder: Path | None, table: CacheTable, *, called: str, without: str) -> None:
        self._folder, self._table = folder, table
        # in the words of a warning: which cache it is, and what is done without it
        self._called, self._without = (called, without)
        self._told = set[str]()  # what was warned of

    @property
    def _path(self) -> Path:
        return (self._folder or _cache_folder()) / self._table.file

    def read(self, keys: Sequence[bytes]) -> Iterator[list[tuple[bytes, object]]]:
        """The rows with some of the keys, a few hundred keys at a time, as far as they can be read."""
        table = self._table
        try:
            if not self._path.exists():
                return
            with closing(self._open()) as connection:
                for start in range(0, len(keys), _MOST_ASKED):
                    some = keys[start : start + _MOST_ASKED]
                    marks = ",".join("?" * len(some))
                    yield connection.execute(
                        f"SELECT key, {table.read} FROM {table.name} WHERE key IN ({marks})", some
                    ).fetchall()
        except _TROUBLE as error:
            self._give_up(error)

    def write(self, rows: Iterable[tuple[bytes, object]]) -> None:
        """Keep some values."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as connection, connection:
                connection.executemany(f"INSERT OR REPLACE INTO {self._table.name} VALUES (?, ?)", rows)
        except _TROUBLE as error:
            self._give_up(error)

    def _open(self) -> sqlite3.Connection:
        table = self._table
        connection = sqlite3.connect(self._path, timeout=30)
        try:  # with row ids, so that two long values share a page; without, each would spill over one of its own
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {table.name} (key BLOB PRIMARY KEY, {table.column} {table.type})"
            )
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_up(self, error: Exception) -> None:
        broken = isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError) and not isinstance(
            error, sqlite3.OperationalError
        )
        what = (
            "is broken; it was put aside and a new one is begun"
            if broken
            else f"cannot be used now; {self._without}"
        )
        if broken:
            with suppress(OSError):
                self._path.replace(self._path.with_suffix(".broken"))
        if what not in self._told:  # one lot after another meets the same trouble, in reading and in writing
            self._told.add(what)
            warnings.warn(f"the {self._called} cache {what} ({error})", stacklevel=5)


def _cache_folder() -> Path:
    """Where what is made is kept unless a folder is named; raises OSError for a user without a home."""
    from platformdirs import user_cache_path

    try:
        return user_cache_path("kgot_lab")
    except RuntimeError as error:
        raise OSError(str(error)) from error
