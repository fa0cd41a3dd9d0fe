"""Work on blocks, one after the other or shared out among processes, which can be interrupted and continued;
and its threads.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from kgot_lab.embedding.embedder import Matrix
from kgot_lab.errors import BadInput
from kgot_lab.similarity.blocks import MEMORY, SIDE, Tile

JobProgress = Callable[[int, int], None]
_Found = TypeVar("_Found")


class Job(Protocol[_Found]):
    """What is done with each block. `found` is a value: a step gives a new one, so that an interrupted step
    leaves no trace.
    """

    def nothing(self) -> _Found: ...
    def after(
        self, found: _Found, tile: Tile, matrices: Sequence[Matrix], rooms: Sequence[Matrix]
    ) -> _Found: ...
    def together(self, found: _Found, more: _Found) -> _Found: ...
    def result(self, found: _Found, matrices: Sequence[Matrix]) -> Any: ...


@dataclass(frozen=True, eq=False)
class Effort:
    """What a join may take, and whom it tells how far it is; it does not show in the result.

    `memory`: bytes held at a time beside the vectors, the result included. `threads`: of the products; None:
    what is fastest here. `client`: a Dask client, whose workers share the blocks, each with this memory and
    one thread. `progress(done, total)` counts blocks.
    """

    memory: int = MEMORY
    threads: int | None = None
    client: Any = None
    progress: JobProgress | None = None

    def walk(self, job: Job[_Found], matrices: Sequence[Matrix], tiles: Sequence[Tile]) -> BlockWalk[_Found]:
        """A walk that takes no more; raises BadInput for no thread."""
        if self.threads is not None and self.threads < 1:
            raise BadInput(f"a join runs on 1 thread or more, not {self.threads}")
        return BlockWalk(job, matrices, tiles, self)


USUAL = Effort()


class Stopped(KeyboardInterrupt):
    """A join that was interrupted. Its finished blocks are kept: so_far() is what they hold, go_on() does the
    others and gives it all.
    """

    def __init__(self, walk: BlockWalk[Any]) -> None:
        super().__init__(
            f"interrupted after {walk.done} of {walk.total} blocks; go_on() does the others, so_far() gives what was found"
        )
        self._walk = walk

    def so_far(self) -> Any:
        """What the finished blocks hold, in the form the join has."""
        return self._walk.found()

    def go_on(self) -> Any:
        """Do the other blocks and give the whole result; may be interrupted again."""
        return self._walk.run()


class BlockWalk(Generic[_Found]):
    """A job on every block of a plan; with a Dask client, groups of blocks are its tasks, and the result is
    the same.
    """

    def __init__(
        self, job: Job[_Found], matrices: Sequence[Matrix], tiles: Sequence[Tile], effort: Effort
    ) -> None:
        self._job, self._matrices, self._client, self._progress = (
            job,
            tuple(matrices),
            effort.client,
            effort.progress,
        )
        self._threads = effort.threads or (best_threads() if effort.client is None else 1)
        groups = _groups(
            tiles, 1 if effort.client is None else 4 * max(1, sum(effort.client.nthreads().values()))
        )
        # one value, so that an interruption finds it before or after a block, never between
        self._state = (0, groups, job.nothing())
        self.total = len(tiles)

    @property
    def done(self) -> int:
        """How many blocks are finished."""
        return self._state[0]

    def found(self) -> Any:
        """The result of the finished blocks."""
        return self._job.result(self._state[2], self._matrices)

    def run(self) -> Any:
        """Do the blocks that are not yet done and give the result; raises Stopped when interrupted."""
        try:
            if self._client is None:
                self._alone()
            else:
                self._with_others()
            return self.found()
        except KeyboardInterrupt:
            raise Stopped(self) from None

    def _alone(self) -> None:
        done, groups, found = self._state
        tiles = [tile for group in groups for tile in group]
        rooms = _rooms(tiles, self._matrices)
        with blas_threads(self._threads):
            for tile in tiles[done:]:
                found = self._job.after(found, tile, self._matrices, rooms)
                self._state = (self.done + 1, groups, found)
                self._tell()

    def _with_others(self) -> None:
        import distributed

        as_completed: Any = distributed.as_completed  # it has no types
        client, left = self._client, dict(enumerate(self._state[1]))
        shared = client.scatter([self._job, *self._matrices], broadcast=True, hash=False)
        futures = {
            client.submit(_group, tiles, self._threads, *shared, pure=False): number
            for number, tiles in left.items()
        }
        try:
            for future in as_completed(futures):
                found = self._job.together(self._state[2], future.result())
                finished = left.pop(futures[future])
                self._state = (self.done + len(finished), tuple(left.values()), found)
                self._tell()
        finally:
            client.cancel(list(futures))

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self.done, self.total)


def _rooms(tiles: Sequence[Tile], matrices: Sequence[Matrix]) -> list[Matrix]:
    """Room for the product of the largest block, a room for each matrix."""
    return [np.empty(max((tile.area for tile in tiles), default=0), np.float32) for _ in matrices]


def _group(tiles: Sequence[Tile], threads: int, job: Job[_Found], *matrices: Matrix) -> _Found:
    """A Dask task: all that some blocks hold."""
    found, rooms = job.nothing(), _rooms(tiles, matrices)
    with blas_threads(threads):
        for tile in tiles:
            found = job.after(found, tile, matrices, rooms)
    return found


def _groups(tiles: Sequence[Tile], count: int) -> tuple[tuple[Tile, ...], ...]:
    """The blocks in runs of about the same number of pairs."""
    areas = np.cumsum([tile.area for tile in tiles])
    ends = np.searchsorted(areas, areas[-1] * np.arange(1, count) / count).tolist() if len(tiles) else []
    bounds = [0, *ends, len(tiles)]
    return tuple(tuple(tiles[start:stop]) for start, stop in pairwise(bounds) if stop > start)


# --- threads
# ----------------------------------------------------------------------------------------------------------


def blas_threads(count: int) -> Any:
    """A context in which matrix products run on so many threads."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(count, user_api="blas")


@cache
def best_threads() -> int:
    """How many threads multiply blocks fastest here: 1, 2, 4 ... cores are tried once, and more must be a
    tenth faster to be taken.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    best, fastest = 1, seconds_a_product(1)
    for count in sorted({2**power for power in range(1, 9) if 2**power < cores} | {cores} - {1}):
        seconds = seconds_a_product(count)
        if seconds < 0.9 * fastest:
            best, fastest = count, seconds
    return best


def seconds_a_product(
    threads: int, dimension: int = 384, rows: int = SIDE, columns: int = SIDE, rounds: int = 7
) -> float:
    """The median time of multiplying two blocks of vectors, in seconds."""
    chance = np.random.default_rng(0)
    left, right = (chance.standard_normal((size, dimension), dtype=np.float32) for size in (rows, columns))
    room = np.empty((rows, columns), np.float32)
    times = []
    with blas_threads(threads):
        for _ in range(rounds + 1):
            began = time.perf_counter()
            np.matmul(left, right.T, out=room)
            times.append(time.perf_counter() - began)
    return statistics.median(times[1:])
