"""Exact similarity joins: pairs above a threshold, delta pairs, and the nearest rows of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgot_lab.embedding.embedder import Matrix, argsort_descending
from kgot_lab.errors import BadInput
from kgot_lab.similarity.blocks import (
    CELL_BYTES,
    EXACT_BYTES,
    MEMORY,
    USUAL,
    Columns,
    Effort,
    Flags,
    PairValues,
    RowNumbers,
    Stopped,
    Tile,
    WantedPairs,
    checked_vectors,
    exactly,
    exactly_rounded,
    margin,
    roughly,
    rounded,
    side_within,
    split_blocks,
    stacked_rows,
)
from kgot_lab.similarity.delta import BANDS, DIGITS, SPECIFIED, STEPS, Thresholds

# The exact nearest rows of each row, by matrix products that never hold all pairs.

_Places = NDArray[np.int32]
ENTRY = 72  # bytes for a neighbour in a list, while lists are sorted
_WAITING = 1  # waiting neighbours, in sizes of all lists: more sorts less often, fewer keeps floors high
_SCALE = 2**30  # resolution of a similarity in a key: about nine decimals, much finer than the margin
_NEAREST_TYPES = (np.int32, np.int32, np.float32)  # row, neighbour, similarity


@dataclass(frozen=True, eq=False, repr=False)
class Similar:
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


def nearest(matrix: ArrayLike, k: int, *, new: ArrayLike | None = None, effort: Effort = USUAL) -> Similar:
    """Find the k other rows most similar to each row, most similar first, ties by column.

    Similarities that are equal to nine decimals are ties. A row of zeros is in no list and has no list. If
    there are fewer than k others, all are listed. With `new`, only the lists of these rows are returned,
    though they may change the other lists too. Options and errors are those of similar_pairs().
    """
    if k < 1:
        raise BadInput(f"the nearest k rows are 1 or more, not {k}")
    vectors = checked_vectors(matrix)
    asked = WantedPairs.of([vectors], new)
    entries = 2 * min(k, max(1, asked.size - 1)) * (asked.size if asked.new is None else len(asked.new))
    advice = "A smaller k needs less, or fewer new rows at a time."
    side = side_within(
        effort.memory,
        EXACT_BYTES + 16 * asked.size + ENTRY * entries,
        CELL_BYTES + 2 * ENTRY,
        4 * vectors.shape[1],
        advice,
    )
    waiting = (
        effort.memory - EXACT_BYTES - 16 * asked.size - (CELL_BYTES + 2 * ENTRY) * side**2
    ) // ENTRY - entries
    job = _Nearest(asked, k, margin(vectors.shape[1]), entries, max(0, min(waiting, _WAITING * entries // 2)))
    found: Similar = effort.walk(job, [vectors], asked.tiles(side)).run()
    return found


@dataclass(frozen=True, eq=False)
class _Lists:
    """The neighbours found so far in parts, with columns row, other and similarity.

    `floor` is the similarity needed to enter a row's list.
    """

    parts: tuple[Columns, ...]
    floor: Matrix
    held: int = 0
    sorted: int = 0  # entries that are already cut


@dataclass(frozen=True, eq=False)
class _Nearest:
    """The k nearest of each row. Similarities are within the margin until the lists are made exact."""

    asked: WantedPairs
    k: int
    margin: float
    most: int  # neighbours in all lists, before they are cut to k
    waiting: int  # neighbours that wait for being sorted into lists

    def nothing(self) -> _Lists:
        return _Lists((), np.where(self.asked.blank, np.inf, -2).astype(np.float32))

    def after(self, found: _Lists, tile: Tile, matrices: Sequence[Matrix], rooms: Sequence[Matrix]) -> _Lists:
        """Add the candidates of one more block. Off the diagonal it serves both its rows and its columns."""
        block = self.asked.product(matrices[0], tile, rooms[0])
        rows, columns = self.asked.numbers(tile), np.arange(tile.left, tile.right)
        block[self.asked.blank[rows]] = -np.inf
        block[:, self.asked.blank[columns]] = -np.inf
        own = np.flatnonzero((rows >= tile.left) & (rows < tile.right))
        block[own, rows[own] - tile.left] = -np.inf
        both = self.asked.new is None and tile.top != tile.left
        self._lift(found.floor, rows, block)
        reaching = block >= found.floor[rows][:, None]
        if both:
            self._lift(found.floor, columns, block.T)
            reaching |= block >= found.floor[columns]
        places = np.flatnonzero(reaching)
        i, j = split_blocks(places, block.shape[1])
        values, ends = block.reshape(-1)[places], (rows[i].astype(np.int32), columns[j].astype(np.int32))
        parts = [
            self._listed(found.floor, *ends, values),
            *([self._listed(found.floor, *ends[::-1], values)] if both else []),
        ]
        found = replace(
            found, parts=(*found.parts, *parts), held=found.held + sum(len(part[0]) for part in parts)
        )
        if found.held <= found.sorted + self.waiting:
            return found
        found = self._cut(found)
        return found if found.held <= self.most else self._exact(found, matrices[0])

    def _lift(self, floor: Matrix, owners: RowNumbers, block: Matrix) -> None:
        """Set the floor of rows without one to their k-th best of the block, less both error bounds."""
        low = np.flatnonzero(floor[owners] <= -2)
        if len(low) and block.shape[1] > self.k:
            floor[owners[low]] = np.maximum(
                np.partition(block[low], -self.k, axis=1)[:, -self.k] - 2 * self.margin, -2
            )

    def _listed(self, floor: Matrix, owners: _Places, others: _Places, values: Matrix) -> Columns:
        """Return the entries that reach the threshold of their owner."""
        some = np.flatnonzero(values >= floor[owners])
        return owners[some], others[some], values[some]

    def _cut(self, found: _Lists) -> _Lists:
        """Remove entries that cannot be among the k nearest.

        These are below the k-th by more than both error bounds.
        """
        owners, others, values = stacked_rows(found.parts, _NEAREST_TYPES)
        keys = np.sort(_keys(owners, values.astype(np.float64)))
        starts = np.flatnonzero(np.diff(keys >> 32, prepend=-1))
        # of each row with at least k
        last = keys[starts[np.diff(starts, append=len(keys)) >= self.k] + self.k - 1]
        floor = found.floor.copy()
        floor[last >> 32] = np.maximum(
            floor[last >> 32], 1.5 - (last & (2**32 - 1)) / _SCALE - 2 * self.margin
        )
        kept = np.flatnonzero(values >= floor[owners])
        return _Lists(((owners[kept], others[kept], values[kept]),), floor, len(kept), len(kept))

    def _exact(self, found: _Lists, matrix: Matrix) -> _Lists:
        """Cut the lists to k by exact similarities."""
        owners, others, values = self._best(found, matrix)
        return _Lists(((owners, others, values.astype(np.float32)),), found.floor, len(owners), len(owners))

    def _best(self, found: _Lists, matrix: Matrix) -> tuple[_Places, _Places, PairValues]:
        """Return the k best of each list, with exact similarities."""
        owners, others, _ = stacked_rows(found.parts, _NEAREST_TYPES)
        return reduced(owners, others, exactly(matrix, owners, others), self.k)

    def together(self, found: _Lists, more: _Lists) -> _Lists:
        """Merge the lists of two parts of the work."""
        return self._cut(_Lists(found.parts + more.parts, np.maximum(found.floor, more.floor)))

    def result(self, found: _Lists, matrices: Sequence[Matrix]) -> Similar:
        """Return the lists in order."""
        return similar(*self._best(self._cut(found), matrices[0]))


def reduced(
    owners: _Places, others: _Places, values: PairValues, k: int
) -> tuple[_Places, _Places, PairValues]:
    """Keep the best k entries of each owner, sorted by owner, then similarity, then the other row.

    Similarities that are equal to nine decimals are ties.
    """
    keys = _keys(owners, values)
    order = np.argsort(keys)
    if not np.diff(keys[order]).all():
        order = np.lexsort((others, keys))
    starts = np.flatnonzero(np.diff(owners[order], prepend=-1))
    ranks = np.arange(len(owners)) - np.repeat(starts, np.diff(starts, append=len(owners)))
    kept = order[ranks < k]
    return owners[kept], others[kept], values[kept]


def _keys(owners: _Places, values: PairValues) -> RowNumbers:
    """Return integers that sort by owner and then by descending similarity."""
    return (owners.astype(np.int64) << 32) + ((1.5 - values) * _SCALE).astype(np.int64)


def similar(rows: _Places, columns: _Places, values: PairValues) -> Similar:
    """Convert lists to pairs with similarities rounded to six decimals."""
    return Similar(rows.astype(np.int64), columns.astype(np.int64), rounded(values))


def format_pairs(count: int, name: str, values: PairValues, dropped: int) -> str:
    """Format pairs in one line."""
    spread = f", {name} {values.min():.3f} to {values.max():.3f}" if count else ""
    return f"<{count:,} pairs{spread}; {dropped:,} more dropped>"


__all__ = [
    "MEMORY",
    "MOST_PAIRS",
    "Effort",
    "Pairs",
    "Similar",
    "Stopped",
    "delta_pairs",
    "nearest",
    "similar_pairs",
]

MOST_PAIRS = 1_000_000
# of a block: up to this share, candidates are multiplied one by one, above it as a whole block; measured
# break-even
_FEW = 1 / 40
_KEPT = 176  # bytes for a kept pair, including waiting pairs and the selection of the best
_LOT = 4096  # candidates decided together
HAIR = 1e-9  # tolerance, much less than the last decimal, so that rounded values can equal a threshold
# types of a kept pair: row, column, similarity, raw similarity
_TYPES = (np.int32, np.int32, np.float32, np.float32)


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
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
    most: int = MOST_PAIRS,
    effort: Effort = USUAL,
) -> Similar:
    """Find all pairs of rows, row < column, with a similarity of at least the threshold.

    The most similar come first, ties by row and column. `matrix`: vectors of length 1, shape (n, d), 32 bits.
    A row of zeros (a blank text) has no pair. Similarities are summed in 64 bits and rounded to six decimals
    before comparison, so that block size, threads and client do not affect the result. `new`: only pairs with
    one of these rows. `groups`: a number for each row, and rows of one group are not paired. `most`: how many
    of the best are kept, while the others are counted. `effort`: memory, threads, workers and progress
    callback. An interrupt raises Stopped, a KeyboardInterrupt that can be resumed. Raises BadInput, naming
    the row, for NaN or a length other than 1 or 0, and, naming the minimum, if the memory is too small.
    """
    if not abs(threshold) <= 1:
        raise BadInput(f"a threshold of similarity lies between -1 and 1, not at {threshold}")
    vectors = checked_vectors(matrix)
    found: Similar = _joined(
        [vectors], Thresholds(threshold, -2.0), WantedPairs.of([vectors], new, groups), most, effort
    )
    return found


def delta_pairs(
    raw: ArrayLike,
    skeleton: ArrayLike,
    thresholds: Thresholds = SPECIFIED,
    *,
    new: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    most: int = MOST_PAIRS,
    effort: Effort = USUAL,
) -> Pairs:
    """Find all pairs of rows whose skeletons are similar, and more similar than their texts.

    Both thresholds are minima. delta = skeleton - raw. `raw` and `skeleton`: the vectors of the texts, (n,
    d), and of their skeletons, (n, d'), of length 1. A row of zeros in either has no pair. A value equal to a
    threshold passes. If few pairs of a block have similar skeletons, only these are compared as texts.
    Options and errors are those of similar_pairs(). Also raises BadInput if the matrices differ in their
    number of rows.
    """
    matrices = [checked_vectors(skeleton, "skeleton"), checked_vectors(raw, "raw")]
    found: Pairs = _joined(matrices, thresholds, WantedPairs.of(matrices, new, groups), most, effort)
    return found


def _joined(
    matrices: Sequence[Matrix], thresholds: Thresholds, asked: WantedPairs, most: int, effort: Effort
) -> Any:
    """Find the pairs of one matrix or two that pass the thresholds."""
    if most < 1:
        raise BadInput(f"most is how many pairs are kept, 1 or more, not {most}")
    most = min(most, max(1, asked.pairs))
    thresholds = Thresholds(round(thresholds.skeleton, DIGITS), round(thresholds.delta, DIGITS))
    fixed = EXACT_BYTES + 16 * asked.size + _KEPT * most
    side = side_within(
        effort.memory,
        fixed,
        CELL_BYTES,
        4 * matrices[0].shape[1],
        f"{_KEPT * most:,} of them are for most={most:,} kept pairs.",
    )
    job = _Passing(asked, thresholds, most, margin(max(matrix.shape[1] for matrix in matrices)))
    return effort.walk(job, matrices, asked.tiles(side)).run()


# --- pairs that pass ---


@dataclass(frozen=True, eq=False)
class _Found:
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
class _Passing:
    """The pairs that pass both thresholds. For one matrix, the similarity is used as the delta."""

    asked: WantedPairs
    thresholds: Thresholds
    most: int
    margin: float

    def nothing(self) -> _Found:
        return _Found((), 0, np.zeros(len(BANDS), np.int64))

    def after(self, found: _Found, tile: Tile, matrices: Sequence[Matrix], rooms: Sequence[Matrix]) -> _Found:
        """Add the pairs of one more block."""
        block = self.asked.product(matrices[0], tile, rooms[0])
        if tile.top == tile.left and self.asked.new is None:
            np.fill_diagonal(block, -np.inf)
        least = self.thresholds.skeleton - self.margin
        if block.max() < least:  # most blocks end here
            return found
        places = np.flatnonzero(block >= least)
        rows, columns = self.asked.pairs_at(tile, places)
        wanted = self.asked.wanted(rows, columns)
        if not wanted.all():
            places, rows, columns = places[wanted], rows[wanted], columns[wanted]
        alike = block.reshape(-1)[places].astype(np.float64)
        raw = np.full(len(places), np.nan if len(matrices) > 1 else 0.0)
        if len(matrices) > 1 and len(places) > _FEW * block.size:
            raw = self.asked.product(matrices[1], tile, rooms[1]).reshape(-1)[places].astype(np.float64)
        found = replace(found, waiting=(*found.waiting, (rows, columns, alike, raw)))
        return self._decided(found, matrices) if found.undecided > _LOT else found

    def _decided(self, found: _Found, matrices: Sequence[Matrix]) -> _Found:
        """Decide the waiting pairs. Similarities that leave a doubt are computed exactly."""
        rows, columns, alike, raw = stacked_rows(found.waiting, (np.int64, np.int64, np.float64, np.float64))
        some = np.flatnonzero(np.isnan(raw))
        if len(some):
            raw[some] = roughly(matrices[1], rows[some], columns[some])
        delta = alike - raw
        unsure = self._unsure(alike, delta, found.bar)
        some = np.flatnonzero(unsure)
        alike[some] = exactly_rounded(matrices[0], rows[some], columns[some])
        if len(matrices) > 1:
            raw[some] = exactly_rounded(matrices[1], rows[some], columns[some])
        delta[some] = rounded(alike[some] - raw[some])
        enough = alike >= self.thresholds.skeleton - HAIR
        passes = enough & (delta >= self.thresholds.delta - HAIR)
        kept = np.flatnonzero(passes & unsure & (delta >= found.bar - HAIR))
        ends = np.sort(np.stack((rows[kept], columns[kept])).astype(np.int32), axis=0)
        part = (*ends, alike[kept].astype(np.float32), raw[kept].astype(np.float32))
        more = _Found((part,), int(np.count_nonzero(passes)), banded(delta[enough]), len(kept), found.bar)
        return self.together(replace(found, waiting=()), more)

    def _unsure(self, alike: PairValues, delta: PairValues, bar: float) -> Flags:
        """Return which similarities must be exact: near a threshold or band boundary, or possibly kept."""
        unsure = abs(alike - self.thresholds.skeleton) <= self.margin
        unsure |= delta >= max(self.thresholds.delta, bar) - 2 * self.margin
        for edge in (*STEPS, self.thresholds.delta):
            unsure |= abs(delta - edge) <= 2 * self.margin
        return unsure

    def together(self, found: _Found, more: _Found) -> _Found:
        """Merge the pairs of two parts of the work.

        The best are selected once an eighth too many are held. An early selection sets the bar sooner, so
        that fewer pairs that will be dropped are multiplied exactly.
        """
        bar = max(found.bar, more.bar)
        candidates, held = found.candidates + more.candidates, found.held + more.held
        both = _Found(
            found.parts + more.parts,
            found.passed + more.passed,
            candidates,
            held,
            bar,
            found.waiting + more.waiting,
        )
        return both if both.held <= self.most + self.most // 8 else self._picked(both)

    def _picked(self, found: _Found) -> _Found:
        """Keep the best pairs, up to the limit."""
        columns = stacked_rows(found.parts, _TYPES)
        delta = rounded(columns[2].astype(np.float64) - columns[3])
        extra = len(delta) - self.most
        if extra <= 0:
            return replace(found, parts=(columns,))
        bar = np.partition(delta, extra)[extra]
        tied = np.flatnonzero(delta == bar)
        tied = tied[np.lexsort((columns[1][tied], columns[0][tied]))]
        above = np.flatnonzero(delta > bar)
        kept = np.concatenate((above, tied[: self.most - len(above)]))
        return replace(
            found, parts=(tuple(column[kept] for column in columns),), held=self.most, bar=float(bar)
        )

    def result(self, found: _Found, matrices: Sequence[Matrix]) -> Similar | Pairs:
        """Return the best pairs in order."""
        found = self._picked(self._decided(found, matrices))
        columns = found.parts[0]
        alike, raw = (rounded(column.astype(np.float64)) for column in columns[2:])
        rows, others = (column.astype(np.int64) for column in columns[:2])
        dropped = found.passed - len(rows)
        if len(matrices) > 1:
            return ordered_pairs(rows, others, alike, raw, dropped, found.candidates)
        order = _in_order(alike, rows, others)
        return Similar(rows[order], others[order], alike[order], dropped)


def banded(delta: PairValues) -> RowNumbers:
    """Count the deltas in each band."""
    over = [len(delta), *(int(np.count_nonzero(delta >= step - HAIR)) for step in STEPS), 0]
    return np.array([more - less for more, less in pairwise(over)], np.int64)


def ordered_pairs(
    rows: RowNumbers,
    columns: RowNumbers,
    skeleton: PairValues,
    raw: PairValues,
    dropped: int,
    candidates: RowNumbers,
) -> Pairs:
    """Sort pairs by descending delta, ties by row and column."""
    delta = rounded(skeleton - raw)
    order = _in_order(delta, rows, columns)
    counts = tuple(candidates.tolist())
    return Pairs(rows[order], columns[order], skeleton[order], raw[order], delta[order], dropped, counts)


def _in_order(values: PairValues, rows: RowNumbers, columns: RowNumbers) -> RowNumbers:
    """Return the indices that sort pairs by descending value, ties by row and column.

    Values have six decimals, and no pair occurs twice.
    """
    by_pair = np.argsort((rows << 32) | columns)
    return np.asarray(by_pair[argsort_descending(values[by_pair])])
