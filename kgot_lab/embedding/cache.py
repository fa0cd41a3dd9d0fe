"""Vectors that were computed once, kept on this computer under a hash of the text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from kgot_lab.embedding.cache import CacheFile, CacheTable
from kgot_lab.embedding.embedder import Embedder, Matrix, embeddable
from kgot_lab.text.cleaning import whole

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
