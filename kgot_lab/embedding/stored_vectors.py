"""Vectors that somebody made before, by id, and what they say of themselves."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from kgot_lab.embedding.embedder import Embedder, Matrix, unit
from kgot_lab.errors import BadInput, shortly


@dataclass(frozen=True, eq=False, repr=False)
class StoredVectors:
    """A vector of length 1 (or 0) for each id, and what they say of themselves: the embedder's name and
    digest, "" for nothing.
    """

    ids: tuple[str, ...]
    matrix: Matrix
    model: str = ""
    digest: str = ""

    @classmethod
    def of(
        cls, ids: Iterable[str], vectors: ArrayLike, *, model: str = "", digest: str = ""
    ) -> StoredVectors:
        """Vectors of one's own, a row for each id; raises BadInput for rows that do not fit, NaN, and an id
        that is there twice.
        """
        if isinstance(ids, str):
            raise BadInput(f"the ids are a list, one for each row of the vectors, not one text: [{ids!r}]")
        ids, matrix = tuple(ids), unit(vectors, model or "the stored vectors")
        if len(ids) != len(matrix):
            raise BadInput(f"{len(ids)} ids do not fit {len(matrix)} vectors; give one id for each row")
        if len(set(ids)) < len(ids):
            twice = next(id for number, id in enumerate(ids) if id in ids[:number])
            raise BadInput(f"the id {shortly(twice)} has two vectors; which one is meant?")
        return cls(ids, matrix, model, digest)

    @classmethod
    def load(cls, path: Path | str) -> StoredVectors:
        """Those in an npz file with the arrays ids and matrix, perhaps model and digest, as `Vectors.save`
        writes it; raises BadInput.
        """
        path = Path(path)
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                told = {name: str(file[name]) for name in ("model", "digest") if name in file}
                ids, matrix = [str(id) for id in file["ids"].tolist()], file["matrix"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, TypeError) as error:
            raise BadInput(
                f"{path.name} does not hold vectors ({error}); it is an npz file with the arrays ids and matrix"
            ) from None
        return cls.of(ids, matrix, **told)

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return int(self.matrix.shape[1])

    def refuse_other(self, embedder: Embedder) -> None:
        """Raise BadInput for an embedder whose vectors these cannot be compared with: of another dimension,
        name or digest.
        """
        if embedder.dimension != self.dimension:
            raise BadInput(
                f"{embedder.name} gives {embedder.dimension} numbers, and the stored vectors have {self.dimension}: their cosine means "
                "nothing; embed the query with what made them, or embed the nodes again"
            )
        if self.digest and self.digest != embedder.digest:
            raise BadInput(
                f"the stored vectors come from {self.model or 'an embedder'} {self.digest[:8]}, not from {embedder.name} "
                f"{embedder.digest[:8]}: their cosine means nothing; embed the nodes again, or give what made them as the embedder"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        said = f"made by {self.model}" if self.model else "which do not say what made them"
        return f"<{len(self):,} vectors of {self.dimension} numbers, {said}>"
