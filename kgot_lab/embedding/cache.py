"""Vectors that were computed once, kept on this computer under a hash of the text."""

from __future__ import annotations

import hashlib
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kgot_lab.embedding.embedder import Embedder, Matrix, embeddable
from kgot_lab.text.cleaning import whole

# Files of what was made once, kept on this computer for the next time.

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


CACHE_NAME = "embeddings-3.sqlite"  # 2 had no checks of its vectors
VECTOR_CHECK = 8  # bytes
_VECTORS = CacheTable(CACHE_NAME, "vectors", "vector", "BLOB", "CAST(vector AS BLOB)")


def vector_check(key: bytes, vector: bytes) -> bytes:
    """What is kept behind a vector: the first 8 bytes of the SHA-256 of its name and of itself."""
    return hashlib.sha256(key + vector).digest()[:VECTOR_CHECK]


def text_key(digest: str, text: str) -> bytes:
    """SHA-256 of the embedder's digest and the text: the name under which a vector is kept."""
    return hashlib.sha256(f"{digest}\0{whole(text)}".encode()).digest()


class Cached:
    """An embedder that remembers every text in a SQLite file, which several programs may share.

    Texts are computed a few at a time, the longest first, and written at once, so an interruption loses
    little; before the first and after each lot `progress(done, total)` is told how many of the texts that
    were missing are there. The cache is never needed: where it cannot be read or written the vectors are
    computed, and a warning says so, once. A broken file is put aside and a new one begun.
    """

    _chunk = 256  # texts computed between two writes: what an interruption can lose

    def __init__(
        self,
        embedder: Embedder,
        folder: Path | None = None,
        *,
        progress: Callable[[int, int], object] | None = None,
    ) -> None:
        self._embedder, self._progress = embedder, progress
        self._file = CacheFile(folder, _VECTORS, called="embedding", without="vectors are computed")

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def digest(self) -> str:
        return self._embedder.digest

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector of length 1 per text, shape (len(texts), dimension)."""
        keys = [text_key(self.digest, text) for text in embeddable(texts)]
        wanted = dict(zip(keys, texts, strict=True))
        known = self._read(list(wanted))
        missing = sorted(
            (key for key in wanted if key not in known), key=lambda key: (-len(wanted[key]), key)
        )
        for start in range(0, len(missing), self._chunk):
            self._tell(start, len(missing))
            some = missing[start : start + self._chunk]
            fresh = dict(zip(some, self._embedder.embed([wanted[key] for key in some]), strict=True))
            self._write(fresh)
            known.update(fresh)
        self._tell(len(missing), len(missing))
        return np.array([known[key] for key in keys], np.float32).reshape(len(keys), self.dimension)

    def _tell(self, done: int, total: int) -> None:
        if self._progress and total:
            self._progress(done, total)

    def _read(self, keys: list[bytes]) -> dict[bytes, Matrix]:
        known: dict[bytes, Matrix] = {}
        for rows in self._file.read(keys):
            known.update(self._sound(rows))
        return known

    def _sound(self, rows: Iterable[tuple[bytes, object]]) -> Iterator[tuple[bytes, Matrix]]:
        """The rows that hold a vector of this size as it was written, and of length 1; damaged ones are
        computed again.
        """
        size = 4 * self.dimension
        whole = {
            key: blob[:size]
            for key, blob in rows
            if isinstance(blob, bytes) and blob[size:] == vector_check(key, blob[:size])
        }
        matrix = np.frombuffer(b"".join(whole.values()), np.float32).reshape(-1, self.dimension)
        sound = np.abs(np.einsum("ij,ij->i", matrix, matrix) - 1) < 2e-3
        yield from ((key, row) for key, row, good in zip(whole, matrix, sound, strict=True) if good)

    def _write(self, fresh: Mapping[bytes, Matrix]) -> None:
        blobs = ((key, vector.astype(np.float32).tobytes()) for key, vector in fresh.items())
        self._file.write([(key, blob + vector_check(key, blob)) for key, blob in blobs])

    def __repr__(self) -> str:
        return f"<{self.name}, {self.dimension} dimensions, cached>"


class Remembered:
    """An embedder that keeps, in memory, the vectors of the texts that `remember` was given: so a benchmark
    times the search alone.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.digest, self.dimension = embedder.name, embedder.digest, embedder.dimension
        self._embedder, self._known = embedder, dict[str, Matrix]()

    def remember(self, texts: Sequence[str]) -> None:
        """Compute and keep the vectors of some texts."""
        self._known |= dict(zip(texts, self._embedder.embed(texts), strict=True))

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector of length 1 per text, shape (len(texts), dimension)."""
        if all(text in self._known for text in texts):
            return np.array([self._known[text] for text in texts], np.float32).reshape(
                len(texts), self.dimension
            )
        return self._embedder.embed(texts)
