"""Approximate nearest rows and delta pairs by an index, with measured recall."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.join.nearest import build_similar_pairs, k_best_by_owner, nearest
from kgot_lab.embedding.embedder import Matrix
from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.similarity.blocks import (
    Effort,
    PairSelection,
    RowNumbers,
    exact_products,
    round_values,
    validate_vectors,
)
from kgot_lab.similarity.delta import DEFAULT_THRESHOLDS, DIGITS, Thresholds
from kgot_lab.similarity.join import (
    TOLERANCE,
    DeltaPairs,
    SimilarPairs,
    count_deltas_by_band,
    delta_pairs,
    sort_delta_pairs,
)

HNSW_LINKS = 16  # links of a node in the index, twice as many on the lowest level
_BATCH_SIZE = 4096  # rows added or searched at a time, between checks for an interrupt

PairsT = TypeVar("PairsT", SimilarPairs, DeltaPairs)


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
    progress: Callable[[int, int], None] | None = None


DEFAULT_INDEX_EFFORT = IndexEffort()


@dataclass(frozen=True, eq=False, repr=False)
class ApproximateResult(Generic[PairsT]):
    """Pairs found with an index: their similarities are exact, but some pairs may be missing.

    Of the `expected` pairs that an exact search finds for a random sample of rows, `found` were found too.
    """

    pairs: PairsT
    found: int
    expected: int
    sample: int

    @property
    def recall(self) -> float:
        """The recall on the sample, or NaN if there was nothing to find."""
        return self.found / self.expected if self.expected else float("nan")

    def __repr__(self) -> str:
        return f"{self.pairs!r}, approximate: {self.found:,} of {self.expected:,} found in a sample of {self.sample:,} rows"


def approximate_nearest(
    matrix: ArrayLike, k: int, *, effort: IndexEffort = DEFAULT_INDEX_EFFORT
) -> ApproximateResult[SimilarPairs]:
    """Find the approximate k rows most similar to each row, like nearest(), and measure the recall.

    The recall is measured on a random sample of rows that are also searched exactly. `matrix`: vectors of
    length 1, shape (n, d). A row of zeros is in no list. The index is HNSW (Malkov and Yashunin 2016) over
    vectors in 8 bits, and takes about n * (d + 160) bytes. Raises BadInput as nearest() does, and
    NotInstalled without faiss.
    """
    if k < 1 or effort.sample < 1:
        raise BadInput(f"k and the sample are 1 or more, not {k} and {effort.sample}")
    vectors = validate_vectors(matrix)
    rows, columns = _find_candidates(vectors, PairSelection.of([vectors]), 2 * k, effort)
    values = exact_products(vectors, rows, columns)
    owners, others = (np.concatenate(ends).astype(np.int32) for ends in ((rows, columns), (columns, rows)))
    pairs = build_similar_pairs(*k_best_by_owner(owners, others, np.concatenate((values, values)), k))
    sample = _sample_rows(len(vectors), effort)
    exact = nearest(vectors, k, new=sample, effort=Effort(threads=effort.threads))
    lowest = np.full(len(vectors), 2.0)
    np.minimum.at(lowest, exact.rows, exact.similarity)
    right = int(np.count_nonzero(pairs.similarity >= lowest[pairs.rows]))
    return ApproximateResult(pairs, right, len(exact), len(sample))


def approximate_delta_pairs(
    raw: ArrayLike,
    skeleton: ArrayLike,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    *,
    k: int = 50,
    groups: ArrayLike | None = None,
    effort: IndexEffort = DEFAULT_INDEX_EFFORT,
) -> ApproximateResult[DeltaPairs]:
    """Find delta pairs among the approximate k nearest skeletons of each row, with the recall on a sample.

    Each candidate pair is decided exactly. Pairs outside the k nearest skeletons of both rows are missed, and
    the recall, measured on a sample of rows, estimates how many. `candidates` counts the pairs examined.
    Options and errors are those of approximate_nearest(), shapes and `groups` those of delta_pairs().
    """
    if k < 1 or effort.sample < 1:
        raise BadInput(f"k and the sample are 1 or more, not {k} and {effort.sample}")
    alike_in, near_in = validate_vectors(skeleton, "skeleton"), validate_vectors(raw, "raw")
    selection = PairSelection.of([alike_in, near_in], None, groups)
    rows, columns = _find_candidates(alike_in, selection, k, effort)
    alike = round_values(exact_products(alike_in, rows, columns))
    enough = alike >= round(thresholds.skeleton, DIGITS) - TOLERANCE
    some = np.flatnonzero(enough & selection.pair_mask(rows, columns))
    rows, columns, alike = rows[some], columns[some], alike[some]
    near = round_values(exact_products(near_in, rows, columns))
    delta = round_values(alike - near)
    selected = np.flatnonzero(delta >= round(thresholds.delta, DIGITS) - TOLERANCE)
    found = rows[selected], columns[selected], alike[selected], near[selected]
    pairs = sort_delta_pairs(*found, 0, count_deltas_by_band(delta))
    sample, threads = _sample_rows(len(alike_in), effort), Effort(threads=effort.threads)
    exact = delta_pairs(near_in, alike_in, thresholds, new=sample, groups=groups, most=1, effort=threads)
    touched = np.isin(pairs.rows, sample) | np.isin(pairs.columns, sample)
    return ApproximateResult(pairs, int(np.count_nonzero(touched)), len(exact) + exact.dropped, len(sample))


def _find_candidates(
    vectors: Matrix, selection: PairSelection, k: int, effort: IndexEffort
) -> tuple[RowNumbers, RowNumbers]:
    """Return pairs of rows, row < column, of which one is among the approximate k nearest of the other."""
    if effort.weighed < 1 or effort.threads < 1:
        problem = "the neighbours weighed and the threads are 1 or more"
        raise BadInput(f"{problem}, not {effort.weighed} and {effort.threads}")
    rows = np.flatnonzero(~selection.blank)
    keys = [np.empty(0, np.int64)]
    with _faiss_on_threads(effort.threads) as faiss:
        # Chosen by trial on 100,000 clustered vectors of 384 numbers, one core, the 10 nearest of all:
        # faiss-cpu 1.15.1 with 8-bit vectors takes 35 s for a recall of .92 and 52 s for .957; usearch 2.26.6
        # in 16 bits 38 s for .943 and 48 s for .960; hnswlib 0.8.0 60 s for .939; IVF lists of faiss 64 s for
        # .87. The first two are even; faiss-cpu needs no other package and is the older hand. hnswlib had its
        # last release in 2023 and no wheels.
        kind, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexHNSWSQ(vectors.shape[1], kind, HNSW_LINKS, metric)
        index.hnsw.efConstruction, index.hnsw.efSearch = effort.weighed, max(effort.weighed // 2, k + 1)
        for start, batch in _batches(rows):
            if not index.is_trained:
                index.train(vectors[rows[:: max(1, len(rows) // 20_000)]])
            index.add(vectors[batch])
            _report_progress(effort.progress, start + len(batch), 2 * len(rows))
        for start, batch in _batches(rows):
            positions = index.search(vectors[batch], k + 1)[1]
            found = positions >= 0
            owners, others = np.repeat(batch, found.sum(axis=1)), rows[positions[found]]
            owners, others = owners[owners != others], others[owners != others]
            keys.append(np.minimum(owners, others) * len(vectors) + np.maximum(owners, others))
            _report_progress(effort.progress, len(rows) + start + len(batch), 2 * len(rows))
    first, second = np.divmod(np.unique(np.concatenate(keys)), max(1, len(vectors)))
    return first, second


def _sample_rows(size: int, effort: IndexEffort) -> RowNumbers:
    return np.sort(np.random.default_rng(effort.seed).choice(size, min(effort.sample, size), replace=False))


def _batches(rows: RowNumbers) -> Iterator[tuple[int, RowNumbers]]:
    return ((start, rows[start : start + _BATCH_SIZE]) for start in range(0, len(rows), _BATCH_SIZE))


def _report_progress(progress: Callable[[int, int], None] | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)


@contextmanager
def _faiss_on_threads(threads: int) -> Iterator[Any]:
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
