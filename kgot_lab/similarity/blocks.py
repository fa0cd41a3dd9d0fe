"""All pairs of many vectors in blocks: which pairs are asked for, the plan of the blocks, and their products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgot_lab.embedding.embedder import Matrix
from kgot_lab.errors import BadInput
from kgot_lab.similarity.delta import DIGITS

RowNumbers = NDArray[np.int64]
PairValues = NDArray[np.float64]
Flags = NDArray[np.bool_]

SIDE = 1280  # rows of a block: its product stays in the third cache; with a power of two, rows of the product would share cache lines
CORNER = 256  # rows of a block on the diagonal, half of which is computed for nothing
LEAST_SIDE = 16
MEMORY = 512 << 20  # bytes
CELL_BYTES = (
    112  # bytes for a pair of a block when all of its pairs pass, with room for their way into what is kept
)


class Tile(NamedTuple):
    """A block of pairs: rows from top to bottom, columns from left to right, the ends left out."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def area(self) -> int:
        return (self.bottom - self.top) * (self.right - self.left)


Columns = tuple[NDArray[Any], ...]


# --- vectors
# ----------------------------------------------------------------------------------------------------------


def checked_vectors(vectors: ArrayLike, name: str = "matrix") -> Matrix:
    """Vectors as a matrix of 32-bit numbers, rows one after the other in memory; not copied where they are
    one already.

    Raises BadInput for another shape than (n, d), and for a row with NaN or infinity, or a length other than
    1 or 0, naming the row.
    """
    given = np.asarray(vectors)
    if given.ndim != 2 or given.dtype.kind not in "fiub":
        raise BadInput(
            f"{name}: give a matrix of numbers, a row for each vector, not {given.dtype} of shape {given.shape}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        matrix = np.ascontiguousarray(given, np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    for wrong, what in (
        (~np.isfinite(lengths), "hold NaN or infinity"),
        ((abs(lengths - 1) > 1e-3) & matrix.any(axis=1), "are not of length 1"),
    ):
        if wrong.any():
            raise BadInput(
                f"{name}: {np.count_nonzero(wrong)} of {len(matrix)} rows {what}; the first is row {int(np.argmax(wrong))}. "
                "Bring rows to length 1 with embeddings.unit(); a blank text has a row of zeros."
            )
    return matrix


def margin(dimension: int) -> float:
    """How far a product of two rows in 32 bits is from the exact, rounded one at most: d * 2^-24 (Higham
    2002, 3.1) and a last place.
    """
    return 1.01 * dimension * 2.0**-24 + 10.0**-DIGITS


@dataclass(frozen=True, eq=False)
class WantedPairs:
    """Which pairs are asked for: all of `size` rows, or those with a row of `new` (sorted); none with a blank
    row, or of one group.
    """

    size: int
    blank: Flags
    new: RowNumbers | None = None
    groups: RowNumbers | None = None

    @classmethod
    def of(
        cls, matrices: Sequence[Matrix], new: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> WantedPairs:
        """The pairs of the rows of matrices that belong together; raises BadInput when lengths differ, and
        for rows that are not there.
        """
        size = len(matrices[0])
        if any(len(matrix) != size for matrix in matrices):
            raise BadInput(
                f"the matrices have {' and '.join(str(len(matrix)) for matrix in matrices)} rows; each node has a row in both"
            )
        numbers = None if new is None else np.unique(_whole(new, "new rows"))
        if numbers is not None and len(numbers) and not 0 <= numbers[0] <= numbers[-1] < size:
            raise BadInput(
                f"new rows are numbers from 0 to {size - 1}, not {numbers[0] if numbers[0] < 0 else numbers[-1]}"
            )
        together = None if groups is None else _whole(groups, "groups")
        if together is not None and len(together) != size:
            raise BadInput(
                f"groups has {len(together)} numbers for {size} rows; give the number of its group for each row"
            )
        blank = np.any([~matrix.any(axis=1) for matrix in matrices], axis=0)
        return cls(size, blank, None if numbers is not None and len(numbers) == size else numbers, together)

    @property
    def pairs(self) -> int:
        """How many pairs there may be."""
        every = self.size * (self.size - 1) // 2
        return every if self.new is None else min(every, len(self.new) * self.size)

    def numbers(self, tile: Tile) -> RowNumbers:
        """The numbers of the rows of a block."""
        return np.arange(tile.top, tile.bottom) if self.new is None else self.new[tile.top : tile.bottom]

    def pairs_at(self, tile: Tile, places: RowNumbers) -> tuple[RowNumbers, RowNumbers]:
        """The numbers of the rows and of the columns at some places of a block."""
        rows, columns = split_blocks(places, tile.right - tile.left)
        return (rows + tile.top if self.new is None else self.new[rows + tile.top]), columns + tile.left

    def product(self, matrix: Matrix, tile: Tile, room: Matrix) -> Matrix:
        """The similarities of a block, written into `room`."""
        rows = (
            matrix[tile.top : tile.bottom] if self.new is None else matrix[self.new[tile.top : tile.bottom]]
        )
        block = room[: tile.area].reshape(tile.bottom - tile.top, tile.right - tile.left)
        return np.matmul(rows, matrix[tile.left : tile.right].T, out=block)

    def wanted(self, rows: RowNumbers, columns: RowNumbers) -> Flags:
        """Which of the pairs of a block count: each once, with itself never."""
        ahead = rows < columns
        if self.new is not None:
            ahead |= (rows != columns) & ~self._fresh[columns]
        if self.blank.any():
            ahead &= ~(self.blank[rows] | self.blank[columns])
        return ahead if self.groups is None else ahead & (self.groups[rows] != self.groups[columns])

    @cached_property
    def _fresh(self) -> Flags:
        """Which rows are new."""
        fresh = np.zeros(self.size, bool)
        fresh[self.new] = True
        return fresh

    def tiles(self, side: int) -> list[Tile]:
        """The blocks: first the corners at the diagonal, then what lies between two corners, between two
        pairs of corners, and so on.

        So each row meets twice as many others at each round, which keeps the floors of its list of nearest
        rows high.
        """
        if self.new is not None:
            return list(_rectangle(Tile(0, len(self.new), 0, self.size), side))
        count = 1
        while count * min(side, CORNER) < self.size:
            count *= 2
        ends = [self.size * number // count for number in range(count + 1)]
        tiles = [Tile(start, stop, start, stop) for start, stop in pairwise(ends) if stop > start]
        for width in (2**power for power in range(count.bit_length() - 1)):
            for start, middle, stop in zip(
                ends[:-1:width][::2], ends[width::width][::2], ends[2 * width :: width][::2], strict=True
            ):
                tiles += _rectangle(Tile(start, middle, middle, stop), side)
        return tiles


def _rectangle(whole: Tile, side: int) -> Iterator[Tile]:
    for top, bottom in _pieces(whole.top, whole.bottom, side):
        for left, right in _pieces(whole.left, whole.right, side):
            yield Tile(top, bottom, left, right)


def _pieces(start: int, stop: int, side: int) -> list[tuple[int, int]]:
    """Pieces of like size, of `side` at most."""
    count = -(-(stop - start) // side)
    ends = [start + (stop - start) * number // max(1, count) for number in range(count + 1)]
    return list(pairwise(ends))


def _whole(numbers: ArrayLike, what: str) -> RowNumbers:
    """A list of whole numbers as an array; raises BadInput for anything else."""
    given = np.asarray(numbers)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise BadInput(f"{what} are a list of whole numbers, not {given.dtype} of shape {given.shape}")
    return given.astype(np.int64)


def split_blocks(places: RowNumbers, width: int) -> tuple[RowNumbers, RowNumbers]:
    """Places of a block as row and column; quicker than divmod."""
    rows = places // width
    return rows, places - rows * width


def side_within(memory: int, fixed: int, cell: int, row: int, advice: str) -> int:
    """The side of the largest block that fits: fixed + row * side + cell * side^2 bytes; raises BadInput with
    the least possible.
    """
    least = fixed + row * LEAST_SIDE + cell * LEAST_SIDE**2
    if memory < least:
        raise BadInput(
            f"memory={memory:,} bytes are too few for this join; {least:,} is the least possible. {advice}"
        )
    side = int((((row * row + 4 * cell * (memory - fixed)) ** 0.5) - row) / (2 * cell))
    return max(LEAST_SIDE, min(SIDE, side))


def stacked_rows(parts: Sequence[Columns], types: Sequence[type[np.generic]]) -> Columns:
    """Columns in parts as whole columns."""
    return tuple(
        np.concatenate([np.empty(0, type), *(part[number] for part in parts)])
        for number, type in enumerate(types)
    )


def rounded(values: PairValues) -> PairValues:
    """Values at six places."""
    return np.round(values, DIGITS) + 0.0  # + 0.0 makes 0 of -0
