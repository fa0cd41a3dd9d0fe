"""Which of very many vectors are near another, roughly: a bit for each dimension is read, a thirty-second of
the vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import Matrix, row_products

CAN_COUNT_BITS = hasattr(np, "bitwise_count")  # from numpy 2.0 on
_PLANES = 4  # bits for a number of the query, as in the paper: more is not nearer
_ROWS = 16_384  # rows at a time: their bits stay in the second cache
_WORD = 64  # bits


class SignBits:
    """The signs of vectors that were moved to their mean and turned at random (RaBitQ; Gao and Long 2024, doi
    10.1145/3654970).

    With o = the vector - mean, s = the signs of its turned numbers / sqrt(d) and y = the turned query, o .
    query is near to
    |o|^2 / (s . turned o) * (s . y): without bias, and off by some .04 in 384 dimensions. y is rounded to
    sixteen steps, so that s . y is counted bit by bit. `matrix`: shape (n, d), rows of length 1 or 0. The
    same matrix has the same bits.
    """

    def __init__(self, matrix: Matrix) -> None:
        size, width = matrix.shape
        words = -(-width // _WORD)
        self._turn = np.linalg.qr(np.random.default_rng(0).standard_normal((width, width)))[0].astype(
            np.float32
        )
        self._mean = matrix.mean(axis=0, dtype=np.float64).astype(np.float32)
        self._bits = np.empty((words, size), np.uint64)
        self._scale, self._ones = np.empty(size, np.float32), np.empty(size, np.uint16)
        for start in range(0, size, _ROWS):
            some = slice(start, start + _ROWS)
            moved = matrix[some] - self._mean
            turned = moved @ self._turn.T
            bits = np.zeros((len(turned), words * _WORD), bool)
            bits[:, :width] = turned > 0
            self._bits[:, some] = np.packbits(bits, axis=1, bitorder="little").view(np.uint64).T
            self._ones[some] = np.count_nonzero(bits, axis=1)
            along = np.abs(turned).sum(axis=1)  # sqrt(d) * s . turned o
            self._scale[some] = np.einsum("ij,ij->i", moved, moved) / np.where(along > 0, along, 1)

    def nearest(self, vector: Matrix, count: int) -> NDArray[np.int64]:
        """The rows of the `count` vectors that seem nearest to one, more where several seem as near, in their
        order.
        """
        rough = self.products(vector)
        if count >= len(rough):
            return np.arange(len(rough))
        return np.flatnonzero(rough >= np.partition(rough, -count)[-count])

    def products(self, vector: Matrix) -> NDArray[np.float32]:
        """About the product of each row with a vector, less that of the mean, shape (n,)."""
        turned = row_products(self._turn, vector)
        least = turned.min()
        step = (turned.max() - least) / (2**_PLANES - 1) or np.float32(1)
        levels = np.zeros(len(self._bits) * _WORD, np.uint8)
        levels[: len(turned)] = np.rint((turned - least) / step)
        planes = [
            np.packbits(levels >> plane & 1, bitorder="little").view(np.uint64) for plane in range(_PLANES)
        ]
        found = np.empty(len(self._ones), np.float32)
        for start in range(0, len(found), _ROWS):
            some = slice(start, start + _ROWS)
            # sqrt(d) * s . y is the sum of y where a bit is set, twice, less the sum of all of y
            found[some] = (
                self._counted(some, planes) * (2 * step) + self._ones[some] * (2 * least) - turned.sum()
            )
        found *= self._scale
        return found

    def _counted(self, some: slice, planes: list[NDArray[np.uint64]]) -> NDArray[np.float32]:
        """For some rows, the levels of the query added up where their bit is set."""
        bits = self._bits[:, some]
        both = np.empty(bits.shape[1], np.uint64)
        count, few = np.empty((2, bits.shape[1]), np.uint8)
        total: NDArray[Any] = np.zeros(bits.shape[1], np.uint32 if len(bits) > 64 else np.uint16)
        for plane in reversed(planes):
            total += total
            for word, asked in enumerate(plane):
                np.bitwise_and(bits[word], asked, out=both)
                if word % 3:
                    few += np.bitwise_count(both, out=count)
                else:
                    np.bitwise_count(both, out=few)
                if word % 3 == 2 or word == len(plane) - 1:  # three counts of at most 64 fit in a byte
                    total += few
        return total.astype(np.float32)
