"""The exact nearest rows of each row, by matrix products that never hold all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgot_lab.embedding.embedder import Matrix
from kgot_lab.errors import BadInput
from kgot_lab.similarity.blocks import (
    BYTES_PER_PAIR,
    DEFAULT_EFFORT,
    EXACT_BUFFER_BYTES,
    Columns,
    Effort,
    PairSelection,
    PairValues,
    RowNumbers,
    Tile,
    concatenate_columns,
    exact_products,
    max_block_side,
    round_values,
    rounding_error_bound,
    run_blocks,
    unravel_positions,
    validate_vectors,
)
from kgot_lab.similarity.join import SimilarPairs

_RowIndices = NDArray[np.int32]
BYTES_PER_NEIGHBOUR = 72  # bytes for a neighbour in a list, while lists are sorted
# waiting neighbours, in sizes of all lists: more sorts less often, fewer keeps floors high
_PENDING_LISTS = 1
# resolution of a similarity in a key: about nine decimals, much finer than the margin
_KEY_RESOLUTION = 2**30
_NEIGHBOUR_TYPES = (np.int32, np.int32, np.float32)  # row, neighbour, similarity


def nearest(
    matrix: ArrayLike, k: int, *, new: ArrayLike | None = None, effort: Effort = DEFAULT_EFFORT
) -> SimilarPairs:
    """Find the k other rows most similar to each row, most similar first, ties by column.

    Similarities that are equal to nine decimals are ties. A row of zeros is in no list and has no list. If
    there are fewer than k others, all are listed. With `new`, only the lists of these rows are returned,
    though they may change the other lists too. Options and errors are those of similar_pairs().
    """
    if k < 1:
        raise BadInput(f"the nearest k rows are 1 or more, not {k}")
    vectors = validate_vectors(matrix)
    selection = PairSelection.of([vectors], new)
    asked = selection.size if selection.new is None else len(selection.new)
    entries = 2 * min(k, max(1, selection.size - 1)) * asked
    advice = "A smaller k needs less, or fewer new rows at a time."
    fixed, pair_bytes = EXACT_BUFFER_BYTES + 16 * selection.size, BYTES_PER_PAIR + 2 * BYTES_PER_NEIGHBOUR
    lists, row_bytes = BYTES_PER_NEIGHBOUR * entries, 4 * vectors.shape[1]
    side = max_block_side(effort.memory, fixed + lists, pair_bytes, row_bytes, advice)
    waiting = (effort.memory - fixed - pair_bytes * side**2) // BYTES_PER_NEIGHBOUR - entries
    waiting = max(0, min(waiting, _PENDING_LISTS * entries // 2))
    job = _NearestJob(selection, k, rounding_error_bound(vectors.shape[1]), entries, waiting)
    found: SimilarPairs = run_blocks(job, [vectors], selection.plan_tiles(side), effort)
    return found


@dataclass(frozen=True, eq=False)
class _NeighbourLists:
    """The neighbours found so far in parts, with columns row, other and similarity.

    `floor` is the similarity needed to enter a row's list.
    """

    parts: tuple[Columns, ...]
    floor: Matrix
    held: int = 0
    sorted: int = 0  # entries that are already cut


@dataclass(frozen=True, eq=False)
class _NearestJob:
    """The k nearest of each row. Similarities are within the margin until the lists are made exact."""

    asked: PairSelection
    k: int
    margin: float
    most: int  # neighbours in all lists, before they are cut to k
    waiting: int  # neighbours that wait for being sorted into lists

    def initial(self) -> _NeighbourLists:
        return _NeighbourLists((), np.where(self.asked.blank, np.inf, -2).astype(np.float32))

    def add_block(
        self, found: _NeighbourLists, tile: Tile, matrices: Sequence[Matrix], buffers: Sequence[Matrix]
    ) -> _NeighbourLists:
        """Add the candidates of one more block. Off the diagonal it serves both its rows and its columns."""
        block = self.asked.compute_block(matrices[0], tile, buffers[0])
        rows, columns = self.asked.row_numbers(tile), np.arange(tile.left, tile.right)
        block[self.asked.blank[rows]] = -np.inf
        block[:, self.asked.blank[columns]] = -np.inf
        own = np.flatnonzero((rows >= tile.left) & (rows < tile.right))
        block[own, rows[own] - tile.left] = -np.inf
        both = self.asked.new is None and tile.top != tile.left
        self._raise_floor(found.floor, rows, block)
        reaching = block >= found.floor[rows][:, None]
        if both:
            self._raise_floor(found.floor, columns, block.T)
            reaching |= block >= found.floor[columns]
        positions = np.flatnonzero(reaching)
        i, j = unravel_positions(positions, block.shape[1])
        values, ends = block.reshape(-1)[positions], (rows[i].astype(np.int32), columns[j].astype(np.int32))
        parts = [self._select_entries(found.floor, *ends, values)]
        if both:
            parts.append(self._select_entries(found.floor, *ends[::-1], values))
        held = found.held + sum(len(part[0]) for part in parts)
        found = replace(found, parts=(*found.parts, *parts), held=held)
        if found.held <= found.sorted + self.waiting:
            return found
        found = self._prune(found)
        return found if found.held <= self.most else self._prune_exactly(found, matrices[0])

    def _raise_floor(self, floor: Matrix, owners: RowNumbers, block: Matrix) -> None:
        """Set the floor of rows without one to their k-th best of the block, less both error bounds."""
        low = np.flatnonzero(floor[owners] <= -2)
        if len(low) and block.shape[1] > self.k:
            best = np.partition(block[low], -self.k, axis=1)[:, -self.k]
            floor[owners[low]] = np.maximum(best - 2 * self.margin, -2)

    def _select_entries(
        self, floor: Matrix, owners: _RowIndices, others: _RowIndices, values: Matrix
    ) -> Columns:
        """Return the entries that reach the threshold of their owner."""
        some = np.flatnonzero(values >= floor[owners])
        return owners[some], others[some], values[some]

    def _prune(self, found: _NeighbourLists) -> _NeighbourLists:
        """Remove entries that cannot be among the k nearest.

        These are below the k-th by more than both error bounds.
        """
        owners, others, values = concatenate_columns(found.parts, _NEIGHBOUR_TYPES)
        keys = np.sort(_sort_keys(owners, values.astype(np.float64)))
        starts = np.flatnonzero(np.diff(keys >> 32, prepend=-1))
        # of each row with at least k
        last = keys[starts[np.diff(starts, append=len(keys)) >= self.k] + self.k - 1]
        floor = found.floor.copy()
        reached = 1.5 - (last & (2**32 - 1)) / _KEY_RESOLUTION - 2 * self.margin
        floor[last >> 32] = np.maximum(floor[last >> 32], reached)
        selected = np.flatnonzero(values >= floor[owners])
        part = owners[selected], others[selected], values[selected]
        return _NeighbourLists((part,), floor, len(selected), len(selected))

    def _prune_exactly(self, found: _NeighbourLists, matrix: Matrix) -> _NeighbourLists:
        """Cut the lists to k by exact similarities."""
        owners, others, values = self._k_best(found, matrix)
        part = owners, others, values.astype(np.float32)
        return _NeighbourLists((part,), found.floor, len(owners), len(owners))

    def _k_best(self, found: _NeighbourLists, matrix: Matrix) -> tuple[_RowIndices, _RowIndices, PairValues]:
        """Return the k best of each list, with exact similarities."""
        owners, others, _ = concatenate_columns(found.parts, _NEIGHBOUR_TYPES)
        return k_best_by_owner(owners, others, exact_products(matrix, owners, others), self.k)

    def merge(self, found: _NeighbourLists, more: _NeighbourLists) -> _NeighbourLists:
        """Merge the lists of two parts of the work."""
        return self._prune(_NeighbourLists(found.parts + more.parts, np.maximum(found.floor, more.floor)))

    def result(self, found: _NeighbourLists, matrices: Sequence[Matrix]) -> SimilarPairs:
        """Return the lists in order."""
        return build_similar_pairs(*self._k_best(self._prune(found), matrices[0]))


def k_best_by_owner(
    owners: _RowIndices, others: _RowIndices, values: PairValues, k: int
) -> tuple[_RowIndices, _RowIndices, PairValues]:
    """Keep the best k entries of each owner, sorted by owner, then similarity, then the other row.

    Similarities that are equal to nine decimals are ties.
    """
    keys = _sort_keys(owners, values)
    order = np.argsort(keys)
    if not np.diff(keys[order]).all():
        order = np.lexsort((others, keys))
    starts = np.flatnonzero(np.diff(owners[order], prepend=-1))
    ranks = np.arange(len(owners)) - np.repeat(starts, np.diff(starts, append=len(owners)))
    selected = order[ranks < k]
    return owners[selected], others[selected], values[selected]


def _sort_keys(owners: _RowIndices, values: PairValues) -> RowNumbers:
    """Return integers that sort by owner and then by descending similarity."""
    return (owners.astype(np.int64) << 32) + ((1.5 - values) * _KEY_RESOLUTION).astype(np.int64)


def build_similar_pairs(rows: _RowIndices, columns: _RowIndices, values: PairValues) -> SimilarPairs:
    """Convert lists to pairs with similarities rounded to six decimals."""
    return SimilarPairs(rows.astype(np.int64), columns.astype(np.int64), round_values(values))
