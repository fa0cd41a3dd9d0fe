"""The nearest rows of each row, found exactly by matrix products that never hold all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgot_lab.embedding.embedder import Matrix
from kgot_lab.errors import BadInput
from kgot_lab.similarity.blocks import (
    CELL_BYTES,
    EXACT_BYTES,
    USUAL,
    Columns,
    Effort,
    PairValues,
    RowNumbers,
    Tile,
    WantedPairs,
    checked_vectors,
    exactly,
    margin,
    rounded,
    side_within,
    split_blocks,
    stacked_rows,
)

_Places = NDArray[np.int32]
ENTRY = 72  # bytes for a neighbour in a list, while lists are sorted
_WAITING = 1  # as many neighbours as all lists hold may wait so many times: more wait less often, fewer keep the floors high
_SCALE = 2**30  # steps of a similarity in a key: about the ninth place, far smaller than the margin
_TYPES = (np.int32, np.int32, np.float32)  # row, neighbour, similarity


@dataclass(frozen=True, eq=False, repr=False)
class Similar:
    """Pairs of rows and their similarity, cosines at six places; `dropped` counts the pairs that passed but
    were beyond `most`.
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
    """The k rows most similar to each row, itself left out: by row, the most similar first, ties by column.

    Ties are similarities that are equal to nine places. A row of zeros is in no list and has none; fewer than
    k others are all listed. `new`: only the lists of these rows; the lists of the others may change by them
    too. Options and errors are those of similar_pairs().
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
    """The neighbours found so far in parts, columns row, other, similarity; `floor`: what a similarity must
    reach to be in a row's list.
    """

    parts: tuple[Columns, ...]
    floor: Matrix
    held: int = 0
    sorted: int = 0  # so many of them are cut already


@dataclass(frozen=True, eq=False)
class _Nearest:
    """The k nearest of each row. Similarities are right to within the margin until the lists are made exact."""

    asked: WantedPairs
    k: int
    margin: float
    most: int  # neighbours in all lists, before they are cut to k
    waiting: int  # neighbours that wait for being sorted into lists

    def nothing(self) -> _Lists:
        return _Lists((), np.where(self.asked.blank, np.inf, -2).astype(np.float32))

    def after(self, found: _Lists, tile: Tile, matrices: Sequence[Matrix], rooms: Sequence[Matrix]) -> _Lists:
        """What is found with one more block: a block off the diagonal serves its rows and its columns."""
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
        """Give those owners of a row of the block that have no floor one: their k-th best of the block, with
        room for both errors.
        """
        low = np.flatnonzero(floor[owners] <= -2)
        if len(low) and block.shape[1] > self.k:
            floor[owners[low]] = np.maximum(
                np.partition(block[low], -self.k, axis=1)[:, -self.k] - 2 * self.margin, -2
            )

    def _listed(self, floor: Matrix, owners: _Places, others: _Places, values: Matrix) -> Columns:
        """What reaches the floor of its owner."""
        some = np.flatnonzero(values >= floor[owners])
        return owners[some], others[some], values[some]

    def _cut(self, found: _Lists) -> _Lists:
        """The lists without what is surely not among the k nearest: further under the k-th than both errors
        together.
        """
        owners, others, values = stacked_rows(found.parts, _TYPES)
        keys = np.sort(_keys(owners, values.astype(np.float64)))
        starts = np.flatnonzero(np.diff(keys >> 32, prepend=-1))
        # of each row that has so many
        last = keys[starts[np.diff(starts, append=len(keys)) >= self.k] + self.k - 1]
        floor = found.floor.copy()
        floor[last >> 32] = np.maximum(
            floor[last >> 32], 1.5 - (last & (2**32 - 1)) / _SCALE - 2 * self.margin
        )
        kept = np.flatnonzero(values >= floor[owners])
        return _Lists(((owners[kept], others[kept], values[kept]),), floor, len(kept), len(kept))

    def _exact(self, found: _Lists, matrix: Matrix) -> _Lists:
        """The lists cut to k by exact similarities."""
        owners, others, values = self._best(found, matrix)
        return _Lists(((owners, others, values.astype(np.float32)),), found.floor, len(owners), len(owners))

    def _best(self, found: _Lists, matrix: Matrix) -> tuple[_Places, _Places, PairValues]:
        """The k best of each list, with exact similarities."""
        owners, others, _ = stacked_rows(found.parts, _TYPES)
        return reduced(owners, others, exactly(matrix, owners, others), self.k)

    def together(self, found: _Lists, more: _Lists) -> _Lists:
        """The lists that two parts of the work found."""
        return self._cut(_Lists(found.parts + more.parts, np.maximum(found.floor, more.floor)))

    def result(self, found: _Lists, matrices: Sequence[Matrix]) -> Similar:
        """The lists in order."""
        return similar(*self._best(self._cut(found), matrices[0]))


def reduced(
    owners: _Places, others: _Places, values: PairValues, k: int
) -> tuple[_Places, _Places, PairValues]:
    """The best k of each owner: by owner, the most similar first, ties by the other; what is equal to nine
    places is a tie.
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
    """Numbers that sort by owner and then by falling similarity."""
    return (owners.astype(np.int64) << 32) + ((1.5 - values) * _SCALE).astype(np.int64)


def similar(rows: _Places, columns: _Places, values: PairValues) -> Similar:
    """Lists as pairs, their similarities at six places."""
    return Similar(rows.astype(np.int64), columns.astype(np.int64), rounded(values))


def format_pairs(count: int, name: str, values: PairValues, dropped: int) -> str:
    """Some pairs in a line."""
    spread = f", {name} {values.min():.3f} to {values.max():.3f}" if count else ""
    return f"<{count:,} pairs{spread}; {dropped:,} more dropped>"
