"""Vectors that are kept: a file that comes with a data set, and a cache on this computer."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kgot_lab.bundled import bundled
from kgot_lab.errors import BadInput
from kgot_lab.retrieval.embeddings import Embedder, Matrix, MiniLM, encodable

log = logging.getLogger(__name__)


def text_key(digest: str, text: str) -> bytes:
    """SHA-256 of the embedder's digest and the text: the name under which a vector is kept."""
    return hashlib.sha256(f"{digest}\0{encodable(text)}".encode()).digest()


def minilm(folder: Path | None = None) -> Embedder:
    """all-MiniLM-L6-v2 with the vectors that come with the data and a cache in `folder` (the user's cache folder by default)."""
    embedder = Cached(MiniLM(), folder)
    try:
        return Stocked(embedder, Vectors.load(bundled("hotpotqa-train-100/vectors.npz"), embedder))
    except BadInput as error:  # vectors of another release of the model: slower, not wrong
        log.info("the bundled vectors are not used: %s", error)
        return embedder


# --- vectors in a file ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of some texts: ids, keys of the texts, a row of length 1 each, and the embedder they come from."""

    ids: tuple[str, ...]
    keys: tuple[bytes, ...]
    matrix: Matrix
    model: str
    digest: str

    @staticmethod
    def of(ids: Sequence[str], texts: Sequence[str], embedder: Embedder) -> Vectors:
        """The vectors of some texts, computed now."""
        keys = tuple(text_key(embedder.digest, text) for text in texts)
        return Vectors(tuple(ids), keys, embedder.embed(texts), embedder.name, embedder.digest)

    def save(self, path: Path) -> None:
        """Write a compressed npz file; numbers are kept in 16 bits, which moves a cosine by less than .001."""
        keys = np.frombuffer(b"".join(self.keys), np.uint8).reshape(-1, 32)
        half = self.matrix.astype(np.float16)
        np.savez_compressed(path, ids=np.array(self.ids), keys=keys, matrix=half, model=np.array(self.model), digest=np.array(self.digest))

    @staticmethod
    def load(path: Path, embedder: Embedder) -> Vectors:
        """Read what `save` wrote; raises BadInput for a broken file, or vectors that do not come from this embedder."""
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                ids, keys, matrix = tuple(file["ids"].tolist()), tuple(map(bytes, file["keys"])), file["matrix"].astype(np.float32)
                model, digest = str(file["model"]), str(file["digest"])
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise BadInput(f"{path.name} does not hold vectors ({error})") from error
        if (model, digest) != (embedder.name, embedder.digest):
            raise BadInput(f"the vectors in {path.name} come from {model} {digest[:8]}, not from {embedder.name} {embedder.digest[:8]}")
        if matrix.shape != (len(ids), embedder.dimension) or len(keys) != len(ids):
            raise BadInput(f"{path.name} has {matrix.shape} numbers for {len(ids)} texts; {(len(ids), embedder.dimension)} were expected")
        return Vectors(ids, keys, matrix / np.linalg.norm(matrix, axis=1, keepdims=True), model, digest)


class Stocked:
    """An embedder that already has the vectors of some texts; it computes only the others.

    Raises BadInput when those vectors come from another embedder.
    """

    def __init__(self, embedder: Embedder, stock: Vectors) -> None:
        if (stock.digest, stock.matrix.shape[1]) != (embedder.digest, embedder.dimension):
            raise BadInput(f"these vectors come from {stock.model} {stock.digest[:8]}, not from {embedder.name} {embedder.digest[:8]}")
        self.name, self.digest, self.dimension = embedder.name, embedder.digest, embedder.dimension
        self._embedder, self._stock = embedder, dict(zip(stock.keys, stock.matrix, strict=True))

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector of length 1 per text, shape (len(texts), dimension)."""
        keys = [text_key(self.digest, text) for text in texts]
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        missing = [row for row, key in enumerate(keys) if key not in self._stock]
        for row in set(range(len(texts))).difference(missing):
            vectors[row] = self._stock[keys[row]]
        if missing:
            vectors[missing] = self._embedder.embed([texts[row] for row in missing])
        return vectors


# --- vectors in a cache -----------------------------------------------------------------------------------------------


class Cached:
    """An embedder that remembers every text in a SQLite file, which several programs may share.

    The cache is never needed: where it cannot be read or written the vectors are computed, and a warning says so.
    A broken file is put aside and a new one begun.
    """

    _chunk = 256  # texts computed between two writes: what an interruption can lose

    def __init__(self, embedder: Embedder, folder: Path | None = None) -> None:
        self.name, self.digest, self.dimension = embedder.name, embedder.digest, embedder.dimension
        self._embedder, self._path = embedder, (folder or _cache_folder()) / "embeddings-1.sqlite"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector of length 1 per text, shape (len(texts), dimension)."""
        keys = [text_key(self.digest, text) for text in texts]
        wanted = dict(zip(keys, texts, strict=True))
        known = self._read(list(wanted))
        missing = [key for key in wanted if key not in known]
        for start in range(0, len(missing), self._chunk):
            some = missing[start : start + self._chunk]
            fresh = dict(zip(some, self._embedder.embed([wanted[key] for key in some]), strict=True))
            self._write(fresh)
            known |= fresh
        return np.array([known[key] for key in keys], np.float32).reshape(len(keys), self.dimension)

    def _read(self, keys: list[bytes]) -> dict[bytes, Matrix]:
        known: dict[bytes, Matrix] = {}
        if not self._path.exists():
            return known
        try:
            with closing(self._open()) as connection:
                for some in _groups(keys, 500):
                    marks = ",".join("?" * len(some))
                    rows = connection.execute(f"SELECT key, CAST(vector AS BLOB) FROM vectors WHERE key IN ({marks})", some)
                    known |= {bytes(key): np.frombuffer(blob, np.float32) for key, blob in rows if self._sound(blob)}
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
        return known

    def _write(self, fresh: dict[bytes, Matrix]) -> None:
        rows = [(key, vector.astype(np.float32).tobytes()) for key, vector in fresh.items()]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as connection, connection:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=30)
        try:
            connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _sound(self, blob: object) -> bool:
        if not isinstance(blob, bytes) or len(blob) != 4 * self.dimension:
            return False
        return bool(abs(np.linalg.norm(np.frombuffer(blob, np.float32)) - 1) < 1e-3)

    def _give_up(self, error: Exception) -> None:
        broken = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        what = "is broken; it was put aside and a new one is begun" if broken else "cannot be used now; vectors are computed"
        if broken:
            with suppress(OSError):
                self._path.replace(self._path.with_suffix(".broken"))
        log.warning("the embedding cache %s: %s", what, error)
        warnings.warn(f"the embedding cache {what} ({error})", stacklevel=4)


def _groups(items: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    yield from (items[start : start + size] for start in range(0, len(items), size))


def _cache_folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("kgot_lab")
