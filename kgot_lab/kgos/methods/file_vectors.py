"""The vectors of nodes in an SQLite file of another program, and what the file says of them."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.stored_vectors import StoredVectors
from kgot_lab.errors import BadInput, shortly
from kgot_lab.io.sqlite_snapshot import private_copy
from kgot_lab.kgos.schemas.profiles import Tables, first_named, quoted_name, tables_of
from kgot_lab.text.counted import counted

_VECTORS = (
    "embedding",
    "embeddings",
    "vector",
    "vectors",
    "embedding_vector",
    "embedding_blob",
    "vec",
    "emb",
)
_IDS = ("node_id", "entity_id", "id", "item_id", "key", "uid", "uuid", "name")
_MODELS = ("embedding_model", "model", "model_name", "embedder", "model_id")
_SIZES = ("embedding_dim", "dimension", "dimensions", "dim", "dims")
_BYTES = {2: "<f2", 4: "<f4", 8: "<f8"}  # of a number


class VectorColumns(NamedTuple):
    """The table that holds vectors and its columns; "" for what it does not say."""

    table: str
    id: str
    vector: str
    model: str
    size: str


def vectors_in_file(path: Path | str) -> StoredVectors:
    """The vectors in an SQLite file, by the ids of their rows: bytes of 32-bit numbers, or of what a column
    of sizes says, or JSON lists.

    The file is copied and the copy is read, as `read_foreign` does. Rows without a vector are left out.
    Raises BadInput for a file without vectors, listing what was looked for, and for vectors of several makers
    or sizes; StoreUnavailable for a file that cannot be copied.
    """
    path = Path(path)
    with private_copy(path) as copied:
        try:
            with closing(sqlite3.connect(copied.path)) as connection:
                connection.execute("PRAGMA trusted_schema = OFF")
                columns = _columns(tables_of(connection), path)
                asked = ", ".join(quoted_name(name) if name else "NULL" for name in columns[1:])
                rows = connection.execute(
                    f"SELECT {asked} FROM {quoted_name(columns.table)} NOT INDEXED"
                ).fetchall()
        except sqlite3.DatabaseError as error:
            raise BadInput(f"{path}: SQLite cannot read it: {error}; give a whole SQLite file") from None
    kept = [row for row in rows if row[0] is not None and row[1] not in (None, "", b"")]
    if not kept:
        raise BadInput(f"{path}: no row of {columns.table} has a vector in {columns.vector}")
    model = _only(
        f"{path}: the vectors in {columns.table} come from several makers", (row[2] for row in kept)
    )
    numbers = [
        _numbers(value, size, f"{path}: the {columns.vector} of {shortly(str(id))}")
        for id, value, _, size in kept
    ]
    _only(f"{path}: the vectors in {columns.table} have several sizes", map(len, numbers))
    return StoredVectors.of([str(row[0]) for row in kept], np.stack(numbers), model=model)


def _columns(tables: Tables, path: Path) -> VectorColumns:
    for table, names in tables.items():
        vector, id = first_named(_VECTORS, names), first_named(_IDS, names)
        if vector and id and vector != id:
            return VectorColumns(table, id, vector, first_named(_MODELS, names), first_named(_SIZES, names))
    there = "; ".join(f"{name}({', '.join(columns)})" for name, columns in tables.items())
    raise BadInput(
        f"{path}: no table has a column of vectors ({', '.join(_VECTORS)}) beside one of ids ({', '.join(_IDS)}). "
        f"It has {counted(len(tables), 'table')}: {there or 'none'}"
    )


def _only(problem: str, values: Iterable[object]) -> str:
    counts = Counter(values)
    if len(counts) > 1:
        told = ", ".join(
            f"{value if value is not None else 'none said'} ({count:,})"
            for value, count in counts.most_common(4)
        )
        raise BadInput(f"{problem}: {told}; vectors of several cannot be compared, so keep those of one")
    (value,) = counts
    return "" if value is None else str(value)


def _numbers(value: object, size: object, what: str) -> NDArray[np.float64]:
    if isinstance(value, bytes):
        width = len(value) / size if isinstance(size, int) and size > 0 else 4
        if width not in _BYTES or len(value) % width:
            told = f"{size} numbers" if size else "numbers of 4 bytes"
            raise BadInput(f"{what} has {len(value):,} bytes, which are no {told}")
        return np.frombuffer(value, _BYTES[int(width)]).astype(np.float64)
    try:
        found = np.asarray(json.loads(str(value)), np.float64)
    except (ValueError, TypeError, RecursionError):
        raise BadInput(f"{what} is neither bytes nor a JSON list of numbers: {shortly(str(value))}") from None
    if found.ndim != 1:
        raise BadInput(f"{what} is no list of numbers: {shortly(str(value))}")
    return found
