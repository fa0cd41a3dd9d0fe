"""Products of chosen pairs of rows: exact, in 64 bits, or as near as those of a block."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from kgot_lab.embedding.embedder import Matrix
from kgot_lab.similarity.blocks import PairValues, RowNumbers, rounded
from kgot_lab.similarity.delta import DIGITS

EXACT_BYTES = 2 << 20  # what exact products hold at a time: less than the second cache
_CROWD = 12  # partners of a row on average: so many are multiplied in one call sooner than one by one
_HALF = 1e-4  # of a last place: nearer to its middle the order in which numbers are added up may show in the last place


def exactly(matrix: Matrix, rows: RowNumbers, columns: RowNumbers) -> PairValues:
    """The products of pairs of rows, shape (pairs,): added up in 64 bits one by one, so that no block or
    thread shows in them.
    """
    return _one_by_one(matrix, rows, columns, np.float64)


def roughly(matrix: Matrix, rows: RowNumbers, columns: RowNumbers) -> PairValues:
    """The products of pairs of rows to within the margin: in 32 bits, as those of a block."""
    return _one_by_one(matrix, rows, columns, np.float32)


def _one_by_one(
    matrix: Matrix, rows: RowNumbers, columns: RowNumbers, type: type[np.floating[Any]]
) -> PairValues:
    found = np.empty(len(rows))
    # two rows a pair, and what they become
    step = max(1, EXACT_BYTES // ((8 if type is np.float32 else 24) * max(1, matrix.shape[1])))
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        left, right = (matrix[ends[some]].astype(type, copy=False) for ends in (rows, columns))
        found[some] = np.matmul(left[:, None, :], right[:, :, None])[:, 0, 0]
    return found


def exactly_rounded(matrix: Matrix, rows: RowNumbers, columns: RowNumbers) -> PairValues:
    """The exact products at six places; where the rows come in order and have many partners each, in half the
    time, and the same.

    There a row meets its partners at once, in 64 bits too, but added up in another order: that moves a
    product by d * 2^-53 at most (Higham 2002, 3.1), and those so near to the middle of a last place that it
    could show are multiplied again, one by one.
    """
    ends = np.flatnonzero(rows[1:] != rows[:-1]) + 1
    if len(rows) < _CROWD * (len(ends) + 1) or (rows[1:] < rows[:-1]).any():
        return rounded(exactly(matrix, rows, columns))
    found = np.empty(len(rows))
    step = max(1, EXACT_BYTES // (12 * max(1, matrix.shape[1])))
    for start, end in pairwise([0, *ends.tolist(), len(rows)]):
        row = matrix[rows[start]].astype(np.float64)
        for first in range(start, end, step):
            some = slice(first, min(first + step, end))
            found[some] = matrix[columns[some]].astype(np.float64) @ row
    scaled = found * 10.0**DIGITS
    unsure = np.flatnonzero(abs(scaled - np.floor(scaled) - 0.5) < _HALF)
    found[unsure] = exactly(matrix, rows[unsure], columns[unsure])
    return rounded(found)
