"""The embedder protocol, and requirements on its texts and vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgot_lab.arguments import CheckedCalls, has_member
from kgot_lab.errors import BadInput, attribute_errors, describe_value, require
from kgot_lab.text.cleaning import replace_surrogates

Matrix = NDArray[np.float32]


class Embedder(Protocol):
    """Anything that maps texts to vectors of length 1.

    Vectors of two embedders are comparable only if their `digest` is equal. A text without a known word may
    have a vector of zeros, whose cosine with everything is 0.
    """

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...  # SHA-256 of everything that affects the vectors
    @property
    def dimension(self) -> int: ...
    def embed(self, texts: Sequence[str]) -> Matrix: ...  # (len(texts), dimension), rows of length 1 or 0


def checked_embedder(
    embedder: object, parts: Sequence[str] = ("name", "digest", "dimension", "embed")
) -> None:
    """Raise BadInput unless an object has the required attributes of an embedder.

    None is evaluated, since that may call a server.
    """
    if missing := [part for part in parts if not has_member(embedder, part)]:
        lacks = f", which has no {missing[0]}" if 0 < len(missing) < len(parts) else ""
        problem = f"an embedder is an object with {', '.join(parts)}, as minilm() gives one"
        raise BadInput(f"{problem}, not {describe_value(embedder)}{lacks}")


def checked_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts as an embedder can read them.

    Raises BadInput for what is no list of texts, as one text.
    """
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        expected = "what is embedded is a list of texts, as in embed(['one'])"
        raise BadInput(f"{expected}, not {describe_value(texts)}")
    texts = list(texts)
    for kind in set(map(type, texts)):
        require(next(text for text in texts if type(text) is kind), str, "what is embedded is a text")
    return [replace_surrogates(text) for text in texts]


def normalise_rows(vectors: ArrayLike, source: str) -> Matrix:
    """Normalise rows to length 1, in 32 bits. A row of zeros is unchanged.

    Raises BadInput, which names the row, for NaN or infinity, and for vectors that are not a table of
    numbers.
    """
    try:
        rows = np.asarray(vectors, np.float32)
    except (TypeError, ValueError, OverflowError):
        problem = f"{source}: its vectors are not all of one length"
        raise BadInput(f"{problem}, or hold what is no number") from None
    if rows.ndim != 2:
        problem = f"{source}: vectors are the rows of a table, a row for each text"
        raise BadInput(f"{problem}, and these have {rows.ndim} dimensions")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(lengths))
    if len(bad):
        problem = f"{source}: {len(bad)} of {len(rows)} vectors hold NaN or infinity"
        raise BadInput(f"{problem}; the first is that of row {bad[0]}")
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)


class RowEmbedder(CheckedCalls):
    """An embedder whose `_encode` maps a list of texts to rows of numbers, which are checked and normalised.

    A `dimension` of 0 is that of the first rows.
    """

    name: str
    dimension = 0

    def _encode(self, texts: list[str]) -> Any:
        raise NotImplementedError

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Encode texts as unit vectors, shape (len(texts), dimension).

        Raises BadInput for rows of another number or length, and for NaN.
        """
        texts = checked_texts(texts)
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        with attribute_errors(f"the embedder {self.name!r} failed"):
            rows = normalise_rows(self._encode(texts), self.name)
        self.dimension = self.dimension or rows.shape[1]
        if rows.shape != (len(texts), self.dimension) or not self.dimension:
            came = f"{rows.shape[0]} rows of {rows.shape[1]} numbers for {len(texts)} texts"
            raise BadInput(
                f"{self.name} gave {came}: a text has one row, of {self.dimension or 'some'} numbers"
            )
        return rows

    def __repr__(self) -> str:
        return f"<{self.name}, {self.dimension} dimensions>"


# Sorting of scores in descending order, ties by index. They are sorted as integers, which is vectorised.

_LOW = np.uint64(0xFFFFFFFF)


def argsort_descending(scores: NDArray[Any]) -> NDArray[np.int64]:
    """Return the indices that sort scores in descending order, with ties in input order, shape (n,).

    No score may be NaN. Equals `np.argsort(-scores, kind="stable")`, in a half to a quarter of the time
    (benchmarks/join/lanes.py). An unstable sort of integers is vectorised, and the index in the lower half of
    each integer makes them all distinct, so that there is only one order.
    """
    if scores.dtype == np.float32:
        bits = (scores + np.float32(0)).view(np.uint32)  # + 0 turns -0 into 0
        # The bits of a positive float are in the order of its value, so the highest gets the lowest integer.
        keys = np.where(bits >> np.uint32(31), bits, bits ^ np.uint32(0x7FFFFFFF))
        return _argsort_integers(keys, np.arange(len(bits)))
    order = np.argsort(-scores)
    ordered = scores[order]
    lower = ordered[1:] != ordered[:-1]
    return order if lower.all() else _argsort_integers(np.concatenate([[0], np.cumsum(lower)]), order)


def _argsort_integers(numbers: NDArray[Any], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sort indices by their numbers, then by themselves. Both must be below 2^32."""
    keys = (numbers.astype(np.uint64) << np.uint64(32)) | places.astype(np.uint64)
    keys.sort()
    return (keys & _LOW).astype(np.int64)


# The product of many vectors with one, on the thread that asks for it.

# OpenBLAS uses several threads from 9,216 numbers on. On a busy computer its threads spin while waiting for
# each other: 8 ms in place of .3 for 6,119 rows of 384. So rows are multiplied in smaller blocks, all in one
# call of numpy.
_ONE_THREAD_NUMBERS = 8_192
_THREADED_NUMBERS = 1 << 25  # numbers, 128 MB: from here on threads are faster


def row_products(matrix: Matrix, vector: Matrix) -> NDArray[np.float32]:
    """Multiply each row by a vector, (n, d) with (d,) to (n,), like `matrix @ vector` within rounding.

    Below 128 MB, and for rows of at most 2,048 numbers, it runs on one thread, whatever the BLAS settings
    are. It does not change them.
    """
    rows, width = matrix.shape
    fits = _ONE_THREAD_NUMBERS // max(width, 1)
    # a multiple of the kernel's rows, so that each is summed as in the whole matrix
    block = fits - fits % (16 if fits >= 16 else 4)
    if block < 1 or rows <= block or matrix.size >= _THREADED_NUMBERS or not matrix.flags.c_contiguous:
        return np.asarray(matrix @ vector)
    full_rows = rows // block * block
    products = np.empty(rows, np.result_type(matrix, vector))
    blocks = matrix[:full_rows].reshape(-1, block, width)
    np.matmul(blocks, vector, out=products[:full_rows].reshape(-1, block))
    np.matmul(matrix[full_rows:], vector, out=products[full_rows:])
    return products


# Approximate nearest vectors by sign bits: one bit a dimension, a thirty-second of the vector.

CAN_COUNT_BITS = hasattr(np, "bitwise_count")  # from numpy 2.0 on
_PLANES = 4  # bits for a number of the query, as in the paper: more is no better
_ROWS = 16_384  # rows at a time: their bits fit the L2 cache
_WORD = 64  # bits


class SignBits:
    """Sign bits of centred and randomly rotated vectors (RaBitQ; Gao and Long 2024, doi 10.1145/3654970).

    With o = the vector - mean, s = the signs of its rotation / sqrt(d) and y = the rotated query, o . query
    is approximated by |o|^2 / (s . rotated o) * (s . y). The estimate is unbiased, with an error of about .04
    in 384 dimensions. y is quantised to sixteen levels, so that s . y is computed by counting bits. `matrix`:
    shape (n, d), rows of length 1 or 0. The same matrix gives the same bits.
    """

    def __init__(self, matrix: Matrix) -> None:
        size, width = matrix.shape
        words = -(-width // _WORD)
        turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((width, width)))
        self._turn = turn.astype(np.float32)
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

    def nearest(self, vector: Matrix, count: int, farthest: int = 0) -> NDArray[np.int64]:
        """Return the rows of the `count` vectors that seem nearest to a vector, in ascending order.

        With `farthest`, also those of so many that seem farthest. More rows are returned if several seem equally near.
        """
        rough = self.approximate_products(vector)
        if count + farthest >= len(rough):
            return np.arange(len(rough))
        ordered = np.partition(rough, (farthest, -count))
        return np.flatnonzero((rough >= ordered[-count]) | (rough < ordered[farthest]))

    def approximate_products(self, vector: Matrix) -> NDArray[np.float32]:
        """Approximate the product of each row with a vector, less that of the mean, shape (n,)."""
        turned = row_products(self._turn, vector)
        least = turned.min()
        step = (turned.max() - least) / (2**_PLANES - 1) or np.float32(1)
        levels = np.zeros(len(self._bits) * _WORD, np.uint8)
        levels[: len(turned)] = np.rint((turned - least) / step)
        bits = (np.packbits(levels >> plane & 1, bitorder="little") for plane in range(_PLANES))
        planes = [plane.view(np.uint64) for plane in bits]
        found = np.empty(len(self._ones), np.float32)
        for start in range(0, len(found), _ROWS):
            some = slice(start, start + _ROWS)
            # sqrt(d) * s . y is the sum of y where a bit is set, twice, less the sum of all of y
            set_sums = self._sum_levels(some, planes) * (2 * step) + self._ones[some] * (2 * least)
            found[some] = set_sums - turned.sum()
        found *= self._scale
        return found

    def _sum_levels(self, some: slice, planes: list[NDArray[np.uint64]]) -> NDArray[np.float32]:
        """Sum, for some rows, the levels of the query at the bits that are set."""
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
