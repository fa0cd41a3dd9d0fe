"""Cached and stored vectors, such as those shipped with the data sets."""

from __future__ import annotations

import hashlib
import io
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.embedder import Embedder, Matrix, checked_texts, normalise_rows
from kgot_lab.embedding.pretrained import MiniLM, MultilingualE5
from kgot_lab.errors import BadInput, UnknownName, short_repr, warn_caller
from kgot_lab.io.files import bundled_path, write_atomically
from kgot_lab.io.sqlite.connection import BUSY_TIMEOUT, has_tables, immediate_transaction
from kgot_lab.text.cleaning import replace_surrogates

# Cached vectors, keyed by a hash of the text.

# Cache files.

# SQLite's messages about a damaged file; the last is quoted
_CACHE_ERRORS = (sqlite3.Error, OSError, UnicodeDecodeError)
_KEYS_PER_STATEMENT = 500  # keys in one statement
CHECKSUM_BYTES = 8  # after each value
# with row ids, two long values share a page; without, each would overflow a page
_APPLICATION = 0x6B676C76  # "kglv"
_CACHE = "CREATE TABLE IF NOT EXISTS cache (key BLOB PRIMARY KEY, value BLOB)"


class CacheFile:
    """A store of bytes by key in an SQLite file that several programs may share.

    It is optional: a failure gives one warning. A broken file is moved aside and a new one started.
    """

    def __init__(self, folder: Path | None, name: str, *, label: str, fallback: str) -> None:
        self._folder, self._name = folder, name
        # for warnings: the name of the cache, and what happens without it
        self._called, self._without = (label, fallback)
        self._warned = set[str]()  # problems already warned about

    @property
    def _path(self) -> Path:
        return (self._folder or _cache_folder()) / self._name

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of these keys. Those that are missing or damaged are left out."""
        found: list[tuple[bytes, Any]] = []
        try:
            if self._path.exists():
                with closing(self._open()) as connection:
                    for start in range(0, len(keys), _KEYS_PER_STATEMENT):
                        batch = keys[start : start + _KEYS_PER_STATEMENT]
                        select = f"SELECT key, CAST(value AS BLOB) FROM cache WHERE key IN ({','.join('?' * len(batch))})"
                        found += connection.execute(select, batch)
        except _CACHE_ERRORS as error:
            self._handle_error(error)
        return {key: value[:-CHECKSUM_BYTES] for key, value in found if is_intact(key, value)}

    def write(self, values: Mapping[bytes, bytes]) -> None:
        """Store values."""
        rows = [(key, value + _checksum(key, value)) for key, value in values.items()]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as connection, connection:
                connection.executemany("INSERT OR REPLACE INTO cache VALUES (?, ?)", rows)
        except _CACHE_ERRORS as error:
            self._handle_error(error)

    def delete(self, keys: Sequence[bytes]) -> None:
        """Delete the values of these keys, with their bytes."""
        try:
            if self._path.exists():
                with closing(self._open()) as connection, connection:
                    connection.execute("PRAGMA secure_delete = ON")
                    connection.executemany("DELETE FROM cache WHERE key = ?", [(key,) for key in keys])
        except _CACHE_ERRORS as error:
            self._handle_error(error)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT)
        try:
            if not has_tables(connection):
                with immediate_transaction(connection):
                    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                    connection.execute(_CACHE)
        except BaseException:
            connection.close()
            raise
        return connection

    def _handle_error(self, error: Exception) -> None:
        damage = isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError)
        what = f"cannot be used now; {self._without}"
        if damage and not isinstance(error, sqlite3.OperationalError):
            what = "is broken; it was put aside and a new one is begun"
            with suppress(OSError):
                self._path.replace(self._path.with_suffix(".broken"))
        if what not in self._warned:  # every batch has the same problem, in reading and writing
            self._warned.add(what)
            warn_caller(f"the {self._called} cache {what} ({error})")


def _cache_folder() -> Path:
    """Return the default cache folder.

    Raises OSError for a user without a home directory.
    """
    from platformdirs import user_cache_path

    try:
        return user_cache_path("kgot_lab")
    except RuntimeError as error:
        raise OSError(str(error)) from error


CACHE_NAME = "embeddings-4.sqlite"


def is_intact(key: object, value: object) -> bool:
    """Return whether a value of a cache, which its checksum follows, is as it was written."""
    if not (isinstance(key, bytes) and isinstance(value, bytes)):
        return False
    return value[-CHECKSUM_BYTES:] == _checksum(key, value[:-CHECKSUM_BYTES])


def _checksum(key: bytes, value: bytes) -> bytes:
    return hashlib.sha256(key + value).digest()[:CHECKSUM_BYTES]


def text_key(digest: str, text: str) -> bytes:
    """Return the SHA-256 of the embedder's digest and the text, the key of a vector."""
    return hashlib.sha256(f"{digest}\0{replace_surrogates(text)}".encode()).digest()


@check_arguments
class _Wrapper:
    """An embedder around another one, with its name, digest and dimension."""

    _embedder: Embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def digest(self) -> str:
        return self._embedder.digest

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def has_vectors(self, texts: Sequence[str]) -> bool:
        """Return whether the cache, if there is one, has the vectors of all texts."""
        return isinstance(self._embedder, _Wrapper) and self._embedder.has_vectors(texts)

    def forget(self, texts: Sequence[str]) -> None:
        """Delete the vectors of texts from the cache, if there is one."""
        if isinstance(self._embedder, _Wrapper):
            self._embedder.forget(texts)


def without_cache(embedder: Embedder) -> Embedder:
    """Return the embedder that computes vectors, which stores none."""
    while isinstance(embedder, _Wrapper):
        embedder = embedder._embedder
    return embedder


@check_arguments
class CachedEmbedder(_Wrapper):
    """An embedder with a cache in an SQLite file that several programs may share.

    Texts are computed in batches, longest first, and stored at once, so an interruption loses little.
    `progress(done, total)` counts the missing texts, before the first batch of `chunk` texts and after each,
    which is the most that an interruption loses. The cache is optional: if it cannot be read or written, the
    vectors are computed and one warning is given. A broken file is moved aside and a new one started.
    """

    def __init__(
        self,
        embedder: Embedder,
        folder: Path | None = None,
        *,
        progress: Callable[[int, int], object] | None = None,
        chunk: int = 256,
    ) -> None:
        self._embedder, self._progress, self._chunk = embedder, progress, chunk
        self._file = CacheFile(folder, CACHE_NAME, label="embedding", fallback="vectors are computed")

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Encode texts as unit vectors, shape (len(texts), dimension)."""
        keys = [text_key(self.digest, text) for text in checked_texts(texts)]
        wanted = dict(zip(keys, texts, strict=True))
        known = self._read(list(wanted))
        missing = [key for key in wanted if key not in known]
        missing.sort(key=lambda key: (-len(wanted[key]), key))
        for start in range(0, len(missing), self._chunk):
            self._report_progress(start, len(missing))
            batch = missing[start : start + self._chunk]
            computed = dict(zip(batch, self._embedder.embed([wanted[key] for key in batch]), strict=True))
            self._write(computed)
            known.update(computed)
        self._report_progress(len(missing), len(missing))
        return np.array([known[key] for key in keys], np.float32).reshape(len(keys), self.dimension)

    def has_vectors(self, texts: Sequence[str]) -> bool:
        """Return whether the vectors of all texts are stored."""
        keys = list({text_key(self.digest, text) for text in checked_texts(texts)})
        return len(self._read(keys)) == len(keys)

    def forget(self, texts: Sequence[str]) -> None:
        """Delete the vectors of texts, with their bytes."""
        self._file.delete([text_key(self.digest, text) for text in texts])

    def _report_progress(self, done: int, total: int) -> None:
        if self._progress and total:
            self._progress(done, total)

    def _read(self, keys: list[bytes]) -> dict[bytes, Matrix]:
        """Return the stored vectors of the right size and of length 1."""
        size = 4 * self.dimension
        stored = {key: value for key, value in self._file.read(keys).items() if len(value) == size}
        matrix = np.frombuffer(b"".join(stored.values()), np.float32).reshape(-1, self.dimension)
        is_unit = np.abs(np.einsum("ij,ij->i", matrix, matrix) - 1) < 2e-3
        return {key: row for key, row, is_one in zip(stored, matrix, is_unit, strict=True) if is_one}

    def _write(self, fresh: Mapping[bytes, Matrix]) -> None:
        self._file.write({key: vector.astype(np.float32).tobytes() for key, vector in fresh.items()})

    def __repr__(self) -> str:
        return f"<{self.name}, {self.dimension} dimensions, cached>"


class InMemoryVectors:
    """An embedder that keeps the vectors of texts given to `add_texts` in memory.

    With it a benchmark times only search.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.digest, self.dimension = embedder.name, embedder.digest, embedder.dimension
        self._embedder, self._known = embedder, dict[str, Matrix]()

    def add_texts(self, texts: Sequence[str]) -> None:
        """Compute and keep the vectors of texts."""
        self._known |= dict(zip(texts, self._embedder.embed(texts), strict=True))

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Encode texts as unit vectors, shape (len(texts), dimension)."""
        if all(text in self._known for text in texts):
            vectors = np.array([self._known[text] for text in texts], np.float32)
            return vectors.reshape(len(texts), self.dimension)
        return self._embedder.embed(texts)


# data sets shipped with MiniLM's vectors
BUNDLED_VECTORS = ("hotpotqa-train-100", "musique-train-100", "2wiki-fastgraphrag-101", "musique-498")


@check_arguments
def minilm(folder: Path | None = None, *, progress: Callable[[int, int], object] | None = None) -> Embedder:
    """Load all-MiniLM-L6-v2 with the bundled vectors and a cache in `folder`.

    The default is the user's cache folder. `progress(done, total)` counts the texts in neither that are
    computed. Raises NotInstalled for a missing package.
    """
    paths = []
    for name in BUNDLED_VECTORS:
        with suppress(UnknownName):
            paths.append(bundled_path(f"{name}/vectors.npz"))
    return VectorFiles(CachedEmbedder(MiniLM(), folder, progress=progress), *paths)


def multilingual_e5(
    folder: Path | None = None, *, progress: Callable[[int, int], object] | None = None
) -> Embedder:
    """Load multilingual-e5-small with a cache in `folder`; the arguments are those of `minilm`.

    Raises NotInstalled for a missing package.
    """
    # a second or two of work, which Ctrl-C waits for
    return CachedEmbedder(MultilingualE5(), folder, progress=progress, chunk=8)


@check_arguments
class VectorFiles(_Wrapper):
    """An embedder with files of vectors, each opened when one of its texts is needed.

    Other texts are computed. Files of another embedder, and broken ones, are ignored with a warning: slower,
    but still correct.
    """

    def __init__(self, embedder: Embedder, *paths: Path) -> None:
        self._embedder, self._paths = embedder, paths
        self._stock: dict[bytes, Matrix] = {}
        self._opened: set[Path] = set()

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Encode texts as unit vectors, shape (len(texts), dimension)."""
        wanted = {text_key(self.digest, text) for text in checked_texts(texts)}
        for path, keys in self._keys.items():
            if path not in self._opened and not wanted.isdisjoint(keys):
                self._opened.add(path)
                self._open(path)
        return _look_up_or_embed(self._embedder, texts, self._stock)

    @cached_property
    def _keys(self) -> dict[Path, frozenset[bytes]]:
        """The keys of the texts in each file, which are a small part of it."""
        keys = {}
        for path in self._paths:
            try:
                file = _read_arrays(path, ("keys", "model", "digest"))
                _check_origin(str(file["model"]), str(file["digest"]), self._embedder)
                keys[path] = frozenset(map(bytes, file["keys"]))
            except BadInput as error:
                _warn_unused(path, error)
        return keys

    def _open(self, path: Path) -> None:
        try:
            found = StoredVectors.load(path)
            found.require_embedder(self._embedder)
            self._stock.update(zip(found.keys, found.matrix, strict=True))
        except BadInput as error:
            _warn_unused(path, error)

    def __repr__(self) -> str:
        return f"<{self.name}, {self.dimension} dimensions, {len(self._paths)} files of vectors>"


def _look_up_or_embed(embedder: Embedder, texts: Sequence[str], stock: Mapping[bytes, Matrix]) -> Matrix:
    """Return the vectors of texts from stock, and compute the missing ones."""
    keys = [text_key(embedder.digest, text) for text in checked_texts(texts)]
    vectors = np.zeros((len(texts), embedder.dimension), np.float32)
    missing = [row for row, key in enumerate(keys) if key not in stock]
    for row, key in enumerate(keys):
        if key in stock:
            vectors[row] = stock[key]
    if missing:
        vectors[missing] = embedder.embed([texts[row] for row in missing])
    return vectors


def _read_arrays(path: Path, names: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Read arrays of an npz file. Raises BadInput unless it is one that holds all but the optional ones."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {name: file[name] for name in (*names, *(name for name in optional if name in file))}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, TypeError) as error:
        problem = f"{path.name} does not hold vectors ({error})"
        raise BadInput(f"{problem}; it is an npz file with the arrays {', '.join(names)}") from error


def _check_origin(model: str, digest: str, embedder: Embedder) -> None:
    if digest != embedder.digest:
        raise BadInput(
            f"the stored vectors come from {model or 'an embedder'} {digest[:8]}, not from {embedder.name} "
            f"{embedder.digest[:8]}: their cosine means nothing; embed the nodes again, or give what made them as the embedder"
        )


def _warn_unused(path: Path, error: BadInput) -> None:
    warn_caller(f"{path.name} is not used, the texts are embedded again: {error}")


# Existing vectors by id, with the name and digest of their embedder.


@check_arguments
@dataclass(frozen=True, eq=False, repr=False)
class StoredVectors:
    """A vector of length 1 (or 0) for each id, with the name and digest of the embedder, "" if unknown.

    `keys` are those of the embedded texts, one for each row, if they are known.
    """

    ids: tuple[str, ...]
    matrix: Matrix
    model: str = ""
    digest: str = ""
    keys: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        if len(self.keys) not in (0, len(self.ids)):
            problem = f"{len(self.keys)} keys of texts do not fit {len(self.ids)} vectors"
            raise BadInput(f"{problem}; give one for each")

    @classmethod
    def of(
        cls, ids: Iterable[str], vectors: ArrayLike, *, model: str = "", digest: str = ""
    ) -> StoredVectors:
        """Wrap existing vectors, one row for each id.

        Raises BadInput if the numbers of ids and rows differ, for NaN, and for a duplicate id.
        """
        ids, matrix = tuple(ids), normalise_rows(vectors, model or "the stored vectors")
        if len(ids) != len(matrix):
            raise BadInput(f"{len(ids)} ids do not fit {len(matrix)} vectors; give one id for each row")
        if len(set(ids)) < len(ids):
            twice = next(id for number, id in enumerate(ids) if id in ids[:number])
            raise BadInput(f"the id {short_repr(twice)} has two vectors; which one is meant?")
        return cls(ids, matrix, model, digest)

    @classmethod
    def of_texts(cls, ids: Iterable[str], texts: Sequence[str], embedder: Embedder) -> StoredVectors:
        """Compute the vectors of texts, one for each id. Raises as `of` does."""
        keys = tuple(text_key(embedder.digest, text) for text in texts)
        made = cls.of(ids, embedder.embed(texts), model=embedder.name, digest=embedder.digest)
        return replace(made, keys=keys)

    def save(self, path: Path) -> None:
        """Write a compressed npz file, with numbers in 16 bits, by which a cosine changes by less than .001."""
        keys = np.frombuffer(b"".join(self.keys), np.uint8).reshape(-1, 32)
        ids, model, digest = map(np.array, (self.ids, self.model, self.digest))
        packed = io.BytesIO()
        np.savez_compressed(
            packed, ids=ids, keys=keys, matrix=self.matrix.astype(np.float16), model=model, digest=digest
        )
        path = path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz")
        write_atomically(path, packed.getvalue(), "the vectors")

    @classmethod
    def load(cls, path: Path | str) -> StoredVectors:
        """Load an npz file with the arrays ids and matrix, and optionally model, digest and keys, as `save`
        writes it.

        Raises BadInput if the file does not hold vectors.
        """
        file = _read_arrays(Path(path), ("ids", "matrix"), ("model", "digest", "keys"))
        ids, matrix = map(str, np.atleast_1d(file.pop("ids")).tolist()), file.pop("matrix")
        keys = tuple(map(bytes, file.pop("keys", ())))
        stored = cls.of(ids, matrix, **{name: str(value) for name, value in file.items()})
        return replace(stored, keys=keys)

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        return int(self.matrix.shape[1])

    def require_embedder(self, embedder: Embedder) -> None:
        """Raise BadInput for an embedder with another dimension, name or digest.

        Its vectors would not be comparable with these.
        """
        if embedder.dimension != self.dimension:
            raise BadInput(
                f"{embedder.name} gives {embedder.dimension} numbers, and the stored vectors have {self.dimension}: their cosine means "
                "nothing; embed the query with what made them, or embed the nodes again"
            )
        if self.digest:
            _check_origin(self.model, self.digest, embedder)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        origin = f"made by {self.model}" if self.model else "which do not say what made them"
        return f"<{len(self):,} vectors of {self.dimension} numbers, {origin}>"
