"""All pairs of many vectors in blocks: the pairs wanted, the plan of the blocks, and their products."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgot_lab.arguments import CheckedRecord, bounded
from kgot_lab.embedding.embedder import Matrix
from kgot_lab.errors import BadInput
from kgot_lab.io.dask_workers import run_jobs
from kgot_lab.similarity.delta import DIGITS

RowNumbers = NDArray[np.int64]
PairValues = NDArray[np.float64]
Flags = NDArray[np.bool_]

BLOCK_SIDE = 1280  # rows of a block: its product fits the L3 cache; with a power of two, rows of the product would share cache lines
DIAGONAL_SIDE = 256  # rows of a block on the diagonal, of which half is redundant
MIN_SIDE = 16
DEFAULT_MEMORY = 512 << 20  # bytes
# bytes for a pair of a block if all of its pairs pass, including buffers
BYTES_PER_PAIR = 112


class Tile(NamedTuple):
    """A block of pairs: rows from top to bottom, columns from left to right, exclusive of the ends."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def area(self) -> int:
        return (self.bottom - self.top) * (self.right - self.left)


Columns = tuple[NDArray[Any], ...]


# --- vectors ---


def validate_vectors(vectors: ArrayLike, name: str = "matrix") -> Matrix:
    """Return vectors as a C-contiguous 32-bit matrix, without a copy if they are one already.

    Raises BadInput for a shape other than (n, d), and, naming the row, for NaN, infinity, or a length other
    than 1 or 0.
    """
    array = np.asarray(vectors)
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        problem = f"{name}: give a matrix of numbers, a row for each vector"
        raise BadInput(f"{problem}, not {array.dtype} of shape {array.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        matrix = np.ascontiguousarray(array, np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    for is_invalid, what in (
        (~np.isfinite(lengths), "hold NaN or infinity"),
        ((abs(lengths - 1) > 1e-3) & matrix.any(axis=1), "are not of length 1"),
    ):
        if is_invalid.any():
            raise BadInput(
                f"{name}: {np.count_nonzero(is_invalid)} of {len(matrix)} rows {what}; the first is row {int(np.argmax(is_invalid))}. "
                "Bring rows to length 1 with embeddings.unit(); a blank text has a row of zeros."
            )
    return matrix


def rounding_error_bound(dimension: int) -> float:
    """Bound the error of a 32-bit product of two rows: d * 2^-24 (Higham 2002, 3.1) and a last place.

    The bound is against the exact product after rounding.
    """
    return 1.01 * dimension * 2.0**-24 + 10.0**-DIGITS


@dataclass(frozen=True, eq=False)
class PairSelection:
    """The pairs to compare: all of `size` rows, or those with a row of `new` (sorted).

    Pairs with a blank row, or within one group, are excluded.
    """

    size: int
    blank: Flags
    new: RowNumbers | None = None
    groups: RowNumbers | None = None

    @classmethod
    def of(
        cls, matrices: Sequence[Matrix], new: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> PairSelection:
        """Select the pairs of rows to compare.

        Raises BadInput if the matrices differ in their number of rows, or if `new` names rows that do not
        exist.
        """
        size = len(matrices[0])
        if any(len(matrix) != size for matrix in matrices):
            problem = f"the matrices have {' and '.join(str(len(matrix)) for matrix in matrices)} rows"
            raise BadInput(f"{problem}; each node has a row in both")
        numbers = None if new is None else np.unique(_integer_array(new, "new rows"))
        if numbers is not None and len(numbers) and not 0 <= numbers[0] <= numbers[-1] < size:
            problem = f"new rows are numbers from 0 to {size - 1}"
            raise BadInput(f"{problem}, not {numbers[0] if numbers[0] < 0 else numbers[-1]}")
        group_numbers = None if groups is None else _integer_array(groups, "groups")
        if group_numbers is not None and len(group_numbers) != size:
            problem = f"groups has {len(group_numbers)} numbers for {size} rows"
            raise BadInput(f"{problem}; give the number of its group for each row")
        blank = np.any([~matrix.any(axis=1) for matrix in matrices], axis=0)
        new = None if numbers is not None and len(numbers) == size else numbers
        return cls(size, blank, new, group_numbers)

    @property
    def max_pairs(self) -> int:
        """An upper bound on the number of pairs."""
        every = self.size * (self.size - 1) // 2
        return every if self.new is None else min(every, len(self.new) * self.size)

    def row_numbers(self, tile: Tile) -> RowNumbers:
        """Return the row numbers of a block."""
        return np.arange(tile.top, tile.bottom) if self.new is None else self.new[tile.top : tile.bottom]

    def pairs_at(self, tile: Tile, positions: RowNumbers) -> tuple[RowNumbers, RowNumbers]:
        """Return the row and column numbers at positions of a block."""
        rows, columns = unravel_positions(positions, tile.right - tile.left)
        return (rows + tile.top if self.new is None else self.new[rows + tile.top]), columns + tile.left

    def compute_block(self, matrix: Matrix, tile: Tile, buffer: Matrix) -> Matrix:
        """Compute the similarities of a block into `buffer`."""
        span = slice(tile.top, tile.bottom)
        rows = matrix[span] if self.new is None else matrix[self.new[span]]
        block = buffer[: tile.area].reshape(tile.bottom - tile.top, tile.right - tile.left)
        return np.matmul(rows, matrix[tile.left : tile.right].T, out=block)

    def pair_mask(self, rows: RowNumbers, columns: RowNumbers) -> Flags:
        """Return which pairs of a block count: each once, and none of a row with itself."""
        ahead = rows < columns
        if self.new is not None:
            ahead |= (rows != columns) & ~self._new_row_mask[columns]
        if self.blank.any():
            ahead &= ~(self.blank[rows] | self.blank[columns])
        return ahead if self.groups is None else ahead & (self.groups[rows] != self.groups[columns])

    @cached_property
    def _new_row_mask(self) -> Flags:
        """Flags of the new rows."""
        fresh = np.zeros(self.size, bool)
        fresh[self.new] = True
        return fresh

    def plan_tiles(self, side: int) -> list[Tile]:
        """Return the blocks: first the diagonal corners, then the block between two corners, and so on.

        In this way each row meets twice as many others in each round, which keeps the thresholds of its
        nearest-neighbour list high.
        """
        if self.new is not None:
            return list(_split_rectangle(Tile(0, len(self.new), 0, self.size), side))
        count = 1
        while count * min(side, DIAGONAL_SIDE) < self.size:
            count *= 2
        ends = [self.size * number // count for number in range(count + 1)]
        tiles = [Tile(start, stop, start, stop) for start, stop in pairwise(ends) if stop > start]
        for width in (2**power for power in range(count.bit_length() - 1)):
            for start, middle, stop in zip(
                ends[:-1:width][::2], ends[width::width][::2], ends[2 * width :: width][::2], strict=True
            ):
                tiles += _split_rectangle(Tile(start, middle, middle, stop), side)
        return tiles


def _split_rectangle(whole: Tile, side: int) -> Iterator[Tile]:
    for top, bottom in _split_range(whole.top, whole.bottom, side):
        for left, right in _split_range(whole.left, whole.right, side):
            yield Tile(top, bottom, left, right)


def _split_range(start: int, stop: int, side: int) -> list[tuple[int, int]]:
    """Split a range into pieces of similar size, of at most `side`."""
    count = -(-(stop - start) // side)
    ends = [start + (stop - start) * number // max(1, count) for number in range(count + 1)]
    return list(pairwise(ends))


def _integer_array(numbers: ArrayLike, what: str) -> RowNumbers:
    """Convert a list of integers to an array.

    Raises BadInput for anything else.
    """
    array = np.asarray(numbers)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise BadInput(f"{what} are a list of whole numbers, not {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)


def unravel_positions(positions: RowNumbers, width: int) -> tuple[RowNumbers, RowNumbers]:
    """Convert flat positions in a block to rows and columns, faster than divmod."""
    rows = positions // width
    return rows, positions - rows * width


def max_block_side(memory: int, fixed: int, cell: int, row: int, advice: str) -> int:
    """Return the side of the largest block that fits in memory.

    A block takes fixed + row * side + cell * side^2 bytes. Raises BadInput, which names the minimum, if the
    memory is too small.
    """
    minimum = fixed + row * MIN_SIDE + cell * MIN_SIDE**2
    if memory < minimum:
        problem = f"memory={memory:,} bytes are too few for this join"
        raise BadInput(f"{problem}; {minimum:,} is the least possible. {advice}")
    side = int((((row * row + 4 * cell * (memory - fixed)) ** 0.5) - row) / (2 * cell))
    return max(MIN_SIDE, min(BLOCK_SIDE, side))


def concatenate_columns(parts: Sequence[Columns], types: Sequence[type[np.generic]]) -> Columns:
    """Concatenate partial columns into whole columns."""
    return tuple(
        np.concatenate([np.empty(0, type), *(part[number] for part in parts)])
        for number, type in enumerate(types)
    )


def round_values(values: PairValues) -> PairValues:
    """Round values to six decimals."""
    return np.round(values, DIGITS) + 0.0  # + 0.0 turns -0 into 0


# Products of selected pairs of rows: exact, in 64 bits, or as precise as those of a block.

EXACT_BUFFER_BYTES = 2 << 20  # working memory of exact products: less than the L2 cache
_MIN_PARTNERS_FOR_BATCH = 12  # partners of a row on average: from here on one call is faster than one by one
# of the last decimal: closer to a rounding boundary, the order of summation may matter
_ROUNDING_TOLERANCE = 1e-4


def exact_products(matrix: Matrix, rows: RowNumbers, columns: RowNumbers) -> PairValues:
    """Compute the products of pairs of rows in 64 bits, shape (pairs,).

    They are summed one by one, so that the result does not depend on block or thread.
    """
    return _pairwise_products(matrix, rows, columns, np.float64)


def float32_products(matrix: Matrix, rows: RowNumbers, columns: RowNumbers) -> PairValues:
    """Compute the products of pairs of rows in 32 bits, within the margin, like those of a block."""
    return _pairwise_products(matrix, rows, columns, np.float32)


def _pairwise_products(
    matrix: Matrix, rows: RowNumbers, columns: RowNumbers, type: type[np.floating[Any]]
) -> PairValues:
    found = np.empty(len(rows))
    # two rows a pair, and their 64-bit copies
    step = max(1, EXACT_BUFFER_BYTES // ((8 if type is np.float32 else 24) * max(1, matrix.shape[1])))
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        left, right = (matrix[ends[some]].astype(type, copy=False) for ends in (rows, columns))
        found[some] = np.matmul(left[:, None, :], right[:, :, None])[:, 0, 0]
    return found


def rounded_exact_products(matrix: Matrix, rows: RowNumbers, columns: RowNumbers) -> PairValues:
    """Compute the exact products of pairs of rows, rounded to six decimals.

    If the rows are sorted and have many partners each, it takes half the time for the same result. A row is
    then multiplied with all its partners at once, in 64 bits but in another order of summation, which changes
    a product by at most d * 2^-53 (Higham 2002, 3.1). Products so near to a rounding boundary that this could
    matter are computed again, one by one.
    """
    ends = np.flatnonzero(rows[1:] != rows[:-1]) + 1
    if len(rows) < _MIN_PARTNERS_FOR_BATCH * (len(ends) + 1) or (rows[1:] < rows[:-1]).any():
        return round_values(exact_products(matrix, rows, columns))
    found = np.empty(len(rows))
    step = max(1, EXACT_BUFFER_BYTES // (12 * max(1, matrix.shape[1])))
    for start, end in pairwise([0, *ends.tolist(), len(rows)]):
        row = matrix[rows[start]].astype(np.float64)
        for first in range(start, end, step):
            some = slice(first, min(first + step, end))
            found[some] = matrix[columns[some]].astype(np.float64) @ row
    scaled = found * 10.0**DIGITS
    unsure = np.flatnonzero(abs(scaled - np.floor(scaled) - 0.5) < _ROUNDING_TOLERANCE)
    found[unsure] = exact_products(matrix, rows[unsure], columns[unsure])
    return round_values(found)


# Work on blocks, one after the other or on a Dask cluster, and its threads.

_State = TypeVar("_State")


class Job(Protocol[_State]):
    """The work on each block, which returns a new `found`."""

    def initial(self) -> _State: ...
    def add_block(
        self, found: _State, tile: Tile, matrices: Sequence[Matrix], buffers: Sequence[Matrix]
    ) -> _State: ...
    def merge(self, found: _State, more: _State) -> _State: ...
    def result(self, found: _State, matrices: Sequence[Matrix]) -> Any: ...


@dataclass(frozen=True, eq=False)
class Effort(CheckedRecord):
    """Resource limits of a join, and a progress callback. They do not affect the result.

    `memory`: bytes in use besides the vectors, including the result. `threads`: for the products, or None for
    the fastest on this machine. `client`: a Dask client whose workers share the blocks, each with this memory
    and one thread. `progress(done, total)` counts blocks.
    """

    memory: int = bounded(DEFAULT_MEMORY, 1)
    threads: int | None = bounded(None, 1)
    client: Any = None
    progress: Callable[[int, int], None] | None = None


DEFAULT_EFFORT = Effort()


def run_blocks(job: Job[_State], matrices: Sequence[Matrix], tiles: Sequence[Tile], effort: Effort) -> Any:
    """Run a job over all blocks of a plan, here or on the workers of a Dask client, and return its result."""
    progress = effort.progress or (lambda done, total: None)
    if effort.client is None:
        count = effort.threads or fastest_thread_count()
        found = _add_blocks(
            tiles, job, *matrices, threads=count, report=lambda done: progress(done, len(tiles))
        )
        return job.result(found, matrices)
    groups = _split_tiles(tiles, 4 * max(1, sum(effort.client.nthreads().values())))
    shared = effort.client.scatter([job, *matrices], broadcast=True, hash=False)
    found, done = job.initial(), 0
    for number, more in run_jobs(
        effort.client, partial(_add_blocks, threads=effort.threads or 1), groups, *shared
    ):
        found, done = job.merge(found, more), done + len(groups[number])
        progress(done, len(tiles))
    return job.result(found, matrices)


def _add_blocks(
    tiles: Sequence[Tile],
    job: Job[_State],
    *matrices: Matrix,
    threads: int,
    report: Callable[[int], None] = lambda done: None,
) -> _State:
    """Run a job over some blocks, with one array for the product of a block of each matrix."""
    found = job.initial()
    buffers = [np.empty(max((tile.area for tile in tiles), default=0), np.float32) for _ in matrices]
    with blas_threads(threads):
        for done, tile in enumerate(tiles, start=1):
            found = job.add_block(found, tile, matrices, buffers)
            report(done)
    return found


def _split_tiles(tiles: Sequence[Tile], count: int) -> tuple[tuple[Tile, ...], ...]:
    """Split the blocks into runs with about the same number of pairs."""
    areas = np.cumsum([tile.area for tile in tiles])
    ends = np.searchsorted(areas, areas[-1] * np.arange(1, count) / count).tolist() if len(tiles) else []
    bounds = [0, *ends, len(tiles)]
    return tuple(tuple(tiles[start:stop]) for start, stop in pairwise(bounds) if stop > start)


# --- threads ---


def blas_threads(count: int) -> Any:
    """Return a context in which matrix products use this many threads."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(count, user_api="blas")


@cache
def fastest_thread_count() -> int:
    """Measure how many threads multiply blocks fastest on this machine.

    Tries 1, 2, 4 ... cores once. More threads must be at least a tenth faster.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    best, fastest = 1, measure_product_seconds(1)
    for count in sorted({2**power for power in range(1, 9) if 2**power < cores} | {cores} - {1}):
        seconds = measure_product_seconds(count)
        if seconds < 0.9 * fastest:
            best, fastest = count, seconds
    return best


def measure_product_seconds(
    threads: int, dimension: int = 384, rows: int = BLOCK_SIDE, columns: int = BLOCK_SIDE, rounds: int = 7
) -> float:
    """Measure the median time to multiply two blocks of vectors, in seconds."""
    chance = np.random.default_rng(0)
    left, right = (chance.standard_normal((size, dimension), dtype=np.float32) for size in (rows, columns))
    buffer = np.empty((rows, columns), np.float32)
    times = []
    with blas_threads(threads):
        for _ in range(rounds + 1):
            began = time.perf_counter()
            np.matmul(left, right.T, out=buffer)
            times.append(time.perf_counter() - began)
    return statistics.median(times[1:])
