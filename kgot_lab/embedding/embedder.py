"""What an embedder is, and what its texts and vectors must be."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import getattr_static
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgot_lab.errors import BadInput, described_value
from kgot_lab.text.cleaning import whole

Matrix = NDArray[np.float32]


class Embedder(Protocol):
    """Anything that turns texts into vectors of length 1. Vectors of two embedders compare only where
    `digest` is the same.

    A text in which an embedder knows no word may have a vector of zeros: its cosine with everything is then
    0.
    """

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...  # SHA-256 of what decides the vectors
    @property
    def dimension(self) -> int: ...
    def embed(self, texts: Sequence[str]) -> Matrix: ...  # (len(texts), dimension), rows of length 1 or 0


def checked_embedder(
    embedder: object, parts: Sequence[str] = ("name", "digest", "dimension", "embed")
) -> None:
    """Raise BadInput unless an object has the parts of an embedder that are needed; none is worked out, which
    may take a server.
    """
    missing = [
        part for part in parts if getattr_static(embedder, part, None) is None and not hasattr(embedder, part)
    ]
    if missing or isinstance(embedder, type):
        lacks = f", which has no {missing[0]}" if 0 < len(missing) < len(parts) else ""
        raise BadInput(
            f"an embedder is an object with {', '.join(parts)}, as minilm() gives one, not {described_value(embedder)}{lacks}"
        )


def embeddable(texts: Sequence[str]) -> list[str]:
    """The texts as an embedder may read them; raises BadInput for one text where several are meant."""
    if isinstance(texts, str):
        raise BadInput(f"give a list of texts, not one text: embed([{texts[:40]!r}])")
    return [whole(text) for text in texts]


def unit(vectors: ArrayLike, source: str) -> Matrix:
    """The rows brought to length 1, in 32 bits; a row of zeros stays one. Raises BadInput for NaN or
    infinity, naming the row.
    """
    try:
        rows = np.asarray(vectors, np.float32)
    except (TypeError, ValueError):
        raise BadInput(
            f"{source}: its vectors are not all of one length, or hold what is no number"
        ) from None
    if rows.ndim != 2:
        raise BadInput(
            f"{source}: vectors are the rows of a table, a row for each text, and these have {rows.ndim} dimensions"
        )
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(lengths))
    if len(bad):
        raise BadInput(
            f"{source}: {len(bad)} of {len(rows)} vectors hold NaN or infinity; the first is that of row {bad[0]}"
        )
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)
