"""Exact similarity joins: pairs above a threshold, and delta pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kgot_lab.embedding.embedder import Matrix, argsort_descending
from kgot_lab.errors import BadInput
from kgot_lab.similarity.blocks import (
    BYTES_PER_PAIR,
    DEFAULT_EFFORT,
    EXACT_BUFFER_BYTES,
    Columns,
    Effort,
    Flags,
    PairSelection,
    PairValues,
    RowNumbers,
    Tile,
    concatenate_columns,
    float32_products,
    max_block_side,
    round_values,
    rounded_exact_products,
    rounding_error_bound,
    run_blocks,
    validate_vectors,
)
from kgot_lab.similarity.delta import BAND_BOUNDARIES, BANDS, DEFAULT_THRESHOLDS, DIGITS, Thresholds


@dataclass(frozen=True, eq=False, repr=False)
class SimilarPairs:
    """Pairs of rows and their similarity, a cosine rounded to six decimals.

    `dropped` counts the pairs that passed but were beyond `most`.
    """

    rows: RowNumbers
    columns: RowNumbers
    similarity: PairValues
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return format_pairs(len(self), "similarity", self.similarity, self.dropped)


def format_pairs(count: int, name: str, values: PairValues, dropped: int) -> str:
    """Format pairs in one line."""
    spread = f", {name} {values.min():.3f} to {values.max():.3f}" if count else ""
    return f"<{count:,} pairs{spread}; {dropped:,} more dropped>"


MAX_PAIRS = 1_000_000
# of a block: up to this share, candidates are multiplied one by one, above it as a whole block; measured
# break-even
_SPARSE_SHARE = 1 / 40
_BYTES_PER_RESULT = 176  # bytes for a kept pair, including waiting pairs and the selection of the best
_BATCH_SIZE = 4096  # candidates decided together
TOLERANCE = 1e-9  # tolerance, much less than the last decimal, so that rounded values can equal a threshold
# types of a kept pair: row, column, similarity, raw similarity
_PAIR_TYPES = (np.int32, np.int32, np.float32, np.float32)


@dataclass(frozen=True, eq=False, repr=False)
class DeltaPairs:
    """Pairs of rows, row < column, by descending delta, ties by row and column.

    All columns have shape (pairs,). `skeleton` and `raw` are cosines rounded to six decimals, `delta` is
    their difference. `dropped` counts the pairs that passed but were beyond `most`. `candidates` counts, by
    the band of their delta, all pairs whose skeletons are similar enough.
    """

    rows: RowNumbers
    columns: RowNumbers
    skeleton: PairValues
    raw: PairValues
    delta: PairValues
    dropped: int = 0
    candidates: tuple[int, ...] = (0,) * len(BANDS)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return format_pairs(len(self), "delta", self.delta, self.dropped)


def similar_pairs(
    matrix: ArrayLike,
    threshold: float,
    *,
    new: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    most: int = MAX_PAIRS,
    effort: Effort = DEFAULT_EFFORT,
) -> SimilarPairs:
    """Find all pairs of rows, row < column, with a similarity of at least the threshold.

    The most similar come first, ties by row and column. `matrix`: vectors of length 1, shape (n, d), 32 bits.
    A row of zeros (a blank text) has no pair. Similarities are summed in 64 bits and rounded to six decimals
    before comparison, so that block size, threads and client do not affect the result. `new`: only pairs with
    one of these rows. `groups`: a number for each row, and rows of one group are not paired. `most`: how many
    of the best are kept, while the others are counted. `effort`: memory, threads, workers and progress
    callback. Raises BadInput, naming
    the row, for NaN or a length other than 1 or 0, and, naming the minimum, if the memory is too small.
    """
    if not abs(threshold) <= 1:
        raise BadInput(f"a threshold of similarity lies between -1 and 1, not at {threshold}")
    vectors = validate_vectors(matrix)
    selection = PairSelection.of([vectors], new, groups)
    found: SimilarPairs = _join([vectors], Thresholds(threshold, -2.0), selection, most, effort)
    return found


def delta_pairs(
    raw: ArrayLike,
    skeleton: ArrayLike,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    *,
    new: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    most: int = MAX_PAIRS,
    effort: Effort = DEFAULT_EFFORT,
) -> DeltaPairs:
    """Find all pairs of rows whose skeletons are similar, and more similar than their texts.

    Both thresholds are minima. delta = skeleton - raw. `raw` and `skeleton`: the vectors of the texts, (n,
    d), and of their skeletons, (n, d'), of length 1. A row of zeros in either has no pair. A value equal to a
    threshold passes. If few pairs of a block have similar skeletons, only these are compared as texts.
    Options and errors are those of similar_pairs(). Also raises BadInput if the matrices differ in their
    number of rows.
    """
    matrices = [validate_vectors(skeleton, "skeleton"), validate_vectors(raw, "raw")]
    found: DeltaPairs = _join(matrices, thresholds, PairSelection.of(matrices, new, groups), most, effort)
    return found


def _join(
    matrices: Sequence[Matrix], thresholds: Thresholds, selection: PairSelection, most: int, effort: Effort
) -> Any:
    """Find the pairs of one matrix or two that pass the thresholds."""
    if most < 1:
        raise BadInput(f"most is how many pairs are kept, 1 or more, not {most}")
    most = min(most, max(1, selection.max_pairs))
    thresholds = Thresholds(round(thresholds.skeleton, DIGITS), round(thresholds.delta, DIGITS))
    fixed = EXACT_BUFFER_BYTES + 16 * selection.size + _BYTES_PER_RESULT * most
    advice = f"{_BYTES_PER_RESULT * most:,} of them are for most={most:,} kept pairs."
    side = max_block_side(effort.memory, fixed, BYTES_PER_PAIR, 4 * matrices[0].shape[1], advice)
    margin = rounding_error_bound(max(matrix.shape[1] for matrix in matrices))
    job = _ThresholdJob(selection, thresholds, most, margin)
    return run_blocks(job, matrices, selection.plan_tiles(side), effort)


# --- pairs that pass ---


@dataclass(frozen=True, eq=False)
class _FoundPairs:
    """The pairs found so far, in parts. Those below `bar` can no longer be among the best.

    `waiting` are undecided candidates: rows, columns, and both similarities within the margin (NaN if not yet
    computed).
    """

    parts: tuple[Columns, ...]
    passed: int
    candidates: RowNumbers
    held: int = 0
    bar: float = -np.inf
    waiting: tuple[Columns, ...] = ()

    @property
    def undecided(self) -> int:
        return sum(len(part[0]) for part in self.waiting)


@dataclass(frozen=True, eq=False)
class _ThresholdJob:
    """The pairs that pass both thresholds. For one matrix, the similarity is used as the delta."""

    asked: PairSelection
    thresholds: Thresholds
    most: int
    margin: float

    def initial(self) -> _FoundPairs:
        return _FoundPairs((), 0, np.zeros(len(BANDS), np.int64))

    def add_block(
        self, found: _FoundPairs, tile: Tile, matrices: Sequence[Matrix], buffers: Sequence[Matrix]
    ) -> _FoundPairs:
        """Add the pairs of one more block."""
        block = self.asked.compute_block(matrices[0], tile, buffers[0])
        if tile.top == tile.left and self.asked.new is None:
            np.fill_diagonal(block, -np.inf)
        minimum = self.thresholds.skeleton - self.margin
        if block.max() < minimum:  # most blocks end here
            return found
        positions = np.flatnonzero(block >= minimum)
        rows, columns = self.asked.pairs_at(tile, positions)
        wanted = self.asked.pair_mask(rows, columns)
        if not wanted.all():
            positions, rows, columns = positions[wanted], rows[wanted], columns[wanted]
        alike = block.reshape(-1)[positions].astype(np.float64)
        raw = np.full(len(positions), np.nan if len(matrices) > 1 else 0.0)
        if len(matrices) > 1 and len(positions) > _SPARSE_SHARE * block.size:
            block = self.asked.compute_block(matrices[1], tile, buffers[1])
            raw = block.reshape(-1)[positions].astype(np.float64)
        found = replace(found, waiting=(*found.waiting, (rows, columns, alike, raw)))
        return self._decide_waiting(found, matrices) if found.undecided > _BATCH_SIZE else found

    def _decide_waiting(self, found: _FoundPairs, matrices: Sequence[Matrix]) -> _FoundPairs:
        """Decide the waiting pairs. Similarities that leave a doubt are computed exactly."""
        types = (np.int64, np.int64, np.float64, np.float64)
        rows, columns, alike, raw = concatenate_columns(found.waiting, types)
        some = np.flatnonzero(np.isnan(raw))
        if len(some):
            raw[some] = float32_products(matrices[1], rows[some], columns[some])
        delta = alike - raw
        unsure = self._needs_exact_values(alike, delta, found.bar)
        some = np.flatnonzero(unsure)
        alike[some] = rounded_exact_products(matrices[0], rows[some], columns[some])
        if len(matrices) > 1:
            raw[some] = rounded_exact_products(matrices[1], rows[some], columns[some])
        delta[some] = round_values(alike[some] - raw[some])
        enough = alike >= self.thresholds.skeleton - TOLERANCE
        passes = enough & (delta >= self.thresholds.delta - TOLERANCE)
        selected = np.flatnonzero(passes & unsure & (delta >= found.bar - TOLERANCE))
        ends = np.sort(np.stack((rows[selected], columns[selected])).astype(np.int32), axis=0)
        part = (*ends, alike[selected].astype(np.float32), raw[selected].astype(np.float32))
        passed, candidates = int(np.count_nonzero(passes)), count_deltas_by_band(delta[enough])
        more = _FoundPairs((part,), passed, candidates, len(selected), found.bar)
        return self.merge(replace(found, waiting=()), more)

    def _needs_exact_values(self, alike: PairValues, delta: PairValues, bar: float) -> Flags:
        """Return which similarities must be exact: near a threshold or band boundary, or possibly kept."""
        unsure = abs(alike - self.thresholds.skeleton) <= self.margin
        unsure |= delta >= max(self.thresholds.delta, bar) - 2 * self.margin
        for edge in (*BAND_BOUNDARIES, self.thresholds.delta):
            unsure |= abs(delta - edge) <= 2 * self.margin
        return unsure

    def merge(self, found: _FoundPairs, more: _FoundPairs) -> _FoundPairs:
        """Merge the pairs of two parts of the work.

        The best are selected once an eighth too many are held. An early selection sets the bar sooner, so
        that fewer pairs that will be dropped are multiplied exactly.
        """
        parts, passed = found.parts + more.parts, found.passed + more.passed
        candidates, held = found.candidates + more.candidates, found.held + more.held
        waiting = found.waiting + more.waiting
        both = _FoundPairs(parts, passed, candidates, held, max(found.bar, more.bar), waiting)
        return both if both.held <= self.most + self.most // 8 else self._select_best(both)

    def _select_best(self, found: _FoundPairs) -> _FoundPairs:
        """Keep the best pairs, up to the limit."""
        columns = concatenate_columns(found.parts, _PAIR_TYPES)
        delta = round_values(columns[2].astype(np.float64) - columns[3])
        extra = len(delta) - self.most
        if extra <= 0:
            return replace(found, parts=(columns,))
        bar = np.partition(delta, extra)[extra]
        tied = np.flatnonzero(delta == bar)
        tied = tied[np.lexsort((columns[1][tied], columns[0][tied]))]
        above = np.flatnonzero(delta > bar)
        selected = np.concatenate((above, tied[: self.most - len(above)]))
        best = tuple(column[selected] for column in columns)
        return replace(found, parts=(best,), held=self.most, bar=float(bar))

    def result(self, found: _FoundPairs, matrices: Sequence[Matrix]) -> SimilarPairs | DeltaPairs:
        """Return the best pairs in order."""
        found = self._select_best(self._decide_waiting(found, matrices))
        columns = found.parts[0]
        alike, raw = (round_values(column.astype(np.float64)) for column in columns[2:])
        rows, others = (column.astype(np.int64) for column in columns[:2])
        dropped = found.passed - len(rows)
        if len(matrices) > 1:
            return sort_delta_pairs(rows, others, alike, raw, dropped, found.candidates)
        order = _sort_indices(alike, rows, others)
        return SimilarPairs(rows[order], others[order], alike[order], dropped)


def count_deltas_by_band(delta: PairValues) -> RowNumbers:
    """Count the deltas in each band."""
    over = [len(delta), *(int(np.count_nonzero(delta >= step - TOLERANCE)) for step in BAND_BOUNDARIES), 0]
    return np.array([more - less for more, less in pairwise(over)], np.int64)


def sort_delta_pairs(
    rows: RowNumbers,
    columns: RowNumbers,
    skeleton: PairValues,
    raw: PairValues,
    dropped: int,
    candidates: RowNumbers,
) -> DeltaPairs:
    """Sort pairs by descending delta, ties by row and column."""
    delta = round_values(skeleton - raw)
    order = _sort_indices(delta, rows, columns)
    counts = tuple(candidates.tolist())
    return DeltaPairs(rows[order], columns[order], skeleton[order], raw[order], delta[order], dropped, counts)


def _sort_indices(values: PairValues, rows: RowNumbers, columns: RowNumbers) -> RowNumbers:
    """Return the indices that sort pairs by descending value, ties by row and column.

    Values have six decimals, and no pair occurs twice.
    """
    by_pair = np.argsort((rows << 32) | columns)
    return np.asarray(by_pair[argsort_descending(values[by_pair])])
