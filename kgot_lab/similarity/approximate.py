"""Approximate nearest rows and delta pairs by an index, with measured recall."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from kgot_lab.embedding.embedder import Matrix
from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.similarity.blocks import (
    Effort,
    JobProgress,
    RowNumbers,
    WantedPairs,
    checked_vectors,
    exactly,
    rounded,
)
from kgot_lab.similarity.delta import DIGITS, SPECIFIED, Thresholds
from kgot_lab.similarity.join import (
    HAIR,
    Pairs,
    Similar,
    banded,
    delta_pairs,
    nearest,
    ordered_pairs,
    reduced,
    similar,
)

LINKS = 16  # links of a node in the index, twice as many on the lowest level
_LOT = 4096  # rows added or searched at a time, between checks for an interrupt

Sort = TypeVar("Sort", Similar, Pairs)


@dataclass(frozen=True, eq=False)
class IndexEffort:
    """Settings of an index, of the measurement of its recall, and a progress callback.

    `weighed`: candidate neighbours when a row is added, where more is slower and misses less. `sample` rows,
    chosen by `seed`, are also searched exactly. With more than 1 of `threads` two runs may differ.
    `progress(done, total)` counts rows.
    """

    weighed: int = 64
    sample: int = 1000
    seed: int = 0
    threads: int = 1
    progress: JobProgress | None = None


_LIGHT = IndexEffort()


@dataclass(frozen=True, eq=False, repr=False)
class Approximate(Generic[Sort]):
    """Pairs found with an index: their similarities are exact, but some pairs may be missing.

    Of the `expected` pairs that an exact search finds for a random sample of rows, `found` were found too.
    """

    pairs: Sort
    found: int
    expected: int
    sample: int

    @property
    def recall(self) -> float:
        """The recall on the sample, or NaN if there was nothing to find."""
        return self.found / self.expected if self.expected else float("nan")

    def __repr__(self) -> str:
        return f"{self.pairs!r}, approximate: {self.found:,} of {self.expected:,} found in a sample of {self.sample:,} rows"


def approximate(matrix: ArrayLike, k: int, *, effort: IndexEffort = _LIGHT) -> Approximate[Similar]:
    """Find the approximate k rows most similar to each row, like nearest(), and measure the recall.

    The recall is measured on a random sample of rows that are also searched exactly. `matrix`: vectors of
    length 1, shape (n, d). A row of zeros is in no list. The index is HNSW (Malkov and Yashunin 2016) over
    vectors in 8 bits, and takes about n * (d + 160) bytes. Raises BadInput as nearest() does, and
    NotInstalled without faiss.
    """
    if k < 1 or effort.sample < 1:
        raise BadInput(f"k and the sample are 1 or more, not {k} and {effort.sample}")
    vectors = checked_vectors(matrix)
    rows, columns = _candidates(vectors, WantedPairs.of([vectors]), 2 * k, effort)
    values = exactly(vectors, rows, columns)
    # used by both
    ends = (
        np.concatenate((rows, columns)).astype(np.int32),
        np.concatenate((columns, rows)).astype(np.int32),
    )
    pairs = similar(*reduced(*ends, np.concatenate((values, values)), k))
    looked = _sampled(len(vectors), effort)
    exact = nearest(vectors, k, new=looked, effort=Effort(threads=effort.threads))
    least = np.full(len(vectors), 2.0)
    np.minimum.at(least, exact.rows, exact.similarity)
    return Approximate(
        pairs, int(np.count_nonzero(pairs.similarity >= least[pairs.rows])), len(exact), len(looked)
    )


def approximate_delta(
    raw: ArrayLike,
    skeleton: ArrayLike,
    thresholds: Thresholds = SPECIFIED,
    *,
    k: int = 50,
    groups: ArrayLike | None = None,
    effort: IndexEffort = _LIGHT,
) -> Approximate[Pairs]:
    """Find delta pairs among the approximate k nearest skeletons of each row, with the recall on a sample.

    Each candidate pair is decided exactly. Pairs outside the k nearest skeletons of both rows are missed, and
    the recall, measured on a sample of rows, estimates how many. `candidates` counts the pairs examined.
    Options and errors are those of approximate(), shapes and `groups` those of delta_pairs().
    """
    if k < 1 or effort.sample < 1:
        raise BadInput(f"k and the sample are 1 or more, not {k} and {effort.sample}")
    alike_in, near_in = checked_vectors(skeleton, "skeleton"), checked_vectors(raw, "raw")
    asked = WantedPairs.of([alike_in, near_in], None, groups)
    rows, columns = _candidates(alike_in, asked, k, effort)
    alike = rounded(exactly(alike_in, rows, columns))
    some = np.flatnonzero((alike >= round(thresholds.skeleton, DIGITS) - HAIR) & asked.wanted(rows, columns))
    rows, columns, alike = rows[some], columns[some], alike[some]
    near = rounded(exactly(near_in, rows, columns))
    delta = rounded(alike - near)
    kept = np.flatnonzero(delta >= round(thresholds.delta, DIGITS) - HAIR)
    pairs = ordered_pairs(rows[kept], columns[kept], alike[kept], near[kept], 0, banded(delta))
    looked = _sampled(len(alike_in), effort)
    exact = delta_pairs(
        near_in,
        alike_in,
        thresholds,
        new=looked,
        groups=groups,
        most=1,
        effort=Effort(threads=effort.threads),
    )
    touched = np.isin(pairs.rows, looked) | np.isin(pairs.columns, looked)
    return Approximate(pairs, int(np.count_nonzero(touched)), len(exact) + exact.dropped, len(looked))


def _candidates(
    vectors: Matrix, asked: WantedPairs, k: int, effort: IndexEffort
) -> tuple[RowNumbers, RowNumbers]:
    """Return pairs of rows, row < column, of which one is among the approximate k nearest of the other."""
    if effort.weighed < 1 or effort.threads < 1:
        raise BadInput(
            f"the neighbours weighed and the threads are 1 or more, not {effort.weighed} and {effort.threads}"
        )
    rows = np.flatnonzero(~asked.blank)
    keys = [np.empty(0, np.int64)]
    with _faiss(effort.threads) as faiss:
        # Chosen by trial on 100,000 clustered vectors of 384 numbers, one core, the 10 nearest of all:
        # faiss-cpu 1.15.1 with 8-bit vectors takes 35 s for a recall of .92 and 52 s for .957; usearch 2.26.6
        # in 16 bits 38 s for .943 and 48 s for .960; hnswlib 0.8.0 60 s for .939; IVF lists of faiss 64 s for
        # .87. The first two are even; faiss-cpu needs no other package and is the older hand. hnswlib had its
        # last release in 2023 and no wheels.
        index = faiss.IndexHNSWSQ(
            vectors.shape[1], faiss.ScalarQuantizer.QT_8bit, LINKS, faiss.METRIC_INNER_PRODUCT
        )
        index.hnsw.efConstruction, index.hnsw.efSearch = effort.weighed, max(effort.weighed // 2, k + 1)
        for start, lot in _lots(rows):
            if not index.is_trained:
                index.train(vectors[rows[:: max(1, len(rows) // 20_000)]])
            index.add(vectors[lot])
            _tell(effort.progress, start + len(lot), 2 * len(rows))
        for start, lot in _lots(rows):
            places = index.search(vectors[lot], k + 1)[1]
            found = places >= 0
            owners, others = np.repeat(lot, found.sum(axis=1)), rows[places[found]]
            keys.append(
                np.minimum(owners, others)[owners != others] * len(vectors)
                + np.maximum(owners, others)[owners != others]
            )
            _tell(effort.progress, len(rows) + start + len(lot), 2 * len(rows))
    first, second = np.divmod(np.unique(np.concatenate(keys)), max(1, len(vectors)))
    return first, second


def _sampled(size: int, effort: IndexEffort) -> RowNumbers:
    return np.sort(np.random.default_rng(effort.seed).choice(size, min(effort.sample, size), replace=False))


def _lots(rows: RowNumbers) -> Iterator[tuple[int, RowNumbers]]:
    return ((start, rows[start : start + _LOT]) for start in range(0, len(rows), _LOT))


def _tell(progress: JobProgress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)


@contextmanager
def _faiss(threads: int) -> Iterator[Any]:
    """Import faiss and run it on this many threads.

    Raises NotInstalled without faiss.
    """
    try:
        import faiss
    except ImportError:
        raise NotInstalled("bench", "faiss-cpu") from None
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(before)
