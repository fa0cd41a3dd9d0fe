import signal
import tracemalloc

import numpy as np
import pytest
from support.every import every
from threadpoolctl import threadpool_info

from benchmarks.join.approximate import IndexEffort, approximate_delta_pairs, approximate_nearest
from benchmarks.join.nearest import nearest
from kgot_lab.errors import BadInput
from kgot_lab.similarity.blocks import Effort, PairSelection
from kgot_lab.similarity.delta import Thresholds
from kgot_lab.similarity.join import delta_pairs, similar_pairs

# --- vectors of chance, and what a search without blocks finds among them ---

ALONE = Effort(threads=1)


def unit(vectors):
    vectors = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def chance_vectors(seed, size=None, dimension=None):
    """Up to 400 vectors, some twice, some of zeros."""
    chance = np.random.default_rng(seed)
    size = int(chance.integers(0, 400)) if size is None else size
    vectors = chance.standard_normal((size, dimension or int(chance.integers(1, 60))))
    if size:
        vectors[chance.integers(0, size, size // 6)] = vectors[chance.integers(0, size, size // 6)]
        vectors[chance.random(size) < 0.05] = 0
    return unit(vectors)


def shaken(vectors, seed, much=0.6):
    """Other vectors of other texts with about the same meaning; what is blank stays blank, and some more is."""
    chance = np.random.default_rng(seed)
    moved = vectors + much * chance.standard_normal(vectors.shape) / max(1, vectors.shape[1]) ** 0.5
    return unit(moved * vectors.any(axis=1, keepdims=True) * (chance.random((len(vectors), 1)) > 0.03))


def products(matrix):
    return matrix.astype(np.float64) @ matrix.T.astype(np.float64)


def cosines(matrix):
    return np.round(products(matrix), 6) + 0.0


def countable(matrices, new=None, groups=None):
    """Which cells of the whole square are pairs that are asked for."""
    size = len(matrices[0])
    told = np.all([matrix.any(axis=1) for matrix in matrices], axis=0)
    cells = told[:, None] & told & (np.arange(size)[:, None] < np.arange(size))
    if new is not None:
        fresh = np.isin(np.arange(size), new)
        cells &= fresh[:, None] | fresh
    if groups is not None:
        cells &= groups[:, None] != groups
    return cells


def brute_similar(matrix, threshold, most, **which):
    values = cosines(matrix)
    rows, columns = np.nonzero(countable([matrix], **which) & (values >= threshold))
    order = np.lexsort((columns, rows, -values[rows, columns]))[:most]
    return rows[order], columns[order], values[rows, columns][order], max(0, len(rows) - most)


def brute_delta(raw, skeleton, thresholds, most, **which):
    alike, near = cosines(skeleton), cosines(raw)
    delta = np.round(alike - near, 6) + 0.0
    cells = countable([raw, skeleton], **which) & (alike >= thresholds.skeleton)
    counts = tuple(
        np.bincount(np.searchsorted((0, 0.05, 0.15), delta[cells], side="right"), minlength=4).tolist()
    )
    rows, columns = np.nonzero(cells & (delta >= thresholds.delta))
    order = np.lexsort((columns, rows, -delta[rows, columns]))[:most]
    at = rows[order], columns[order]
    return *at, alike[at], near[at], delta[at], max(0, len(rows) - most), counts


def brute_nearest(matrix, k, new=None):
    steps, told = np.floor((1.5 - products(matrix)) * 2**30), matrix.any(axis=1)  # about nine places
    lists = []
    for row in range(len(matrix)) if new is None else sorted(set(new)):
        others = np.flatnonzero(told & told[row] & (np.arange(len(matrix)) != row))
        lists += [(row, other) for other in others[np.lexsort((others, steps[row, others]))][:k].tolist()]
    return lists


def same(found, columns):
    given = (found.rows, found.columns, found.similarity, found.dropped)
    return all(np.array_equal(a, b) for a, b in zip(given, columns, strict=True))


def same_pairs(found, columns):
    ends, cosines = (found.rows, found.columns), (found.skeleton, found.raw, found.delta)
    given = (*ends, *cosines, found.dropped, found.candidates)
    return all(np.array_equal(a, b) for a, b in zip(given, columns, strict=True))


def listed(found):
    return list(zip(found.rows.tolist(), found.columns.tolist(), strict=True))


def identical(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in vars(one))


def which(seed, size):
    """All pairs, or those with new rows, or those of different groups."""
    chance = np.random.default_rng(seed + 1000)
    new = chance.integers(0, size, chance.integers(0, 40)) if size and seed % 3 == 1 else None
    return {"new": new, "groups": chance.integers(0, 30, size) if seed % 4 == 1 else None}


# --- what is found ---


@every("seed", range(8))
def test_similar_pairs_are_those_of_the_whole_square(seed):
    matrix, some = chance_vectors(seed), which(seed, len(chance_vectors(seed)))
    for threshold, most in ((-1, 10**6), (0.3, 70), (0.9, 10**6), (0, 1)):
        assert same(
            similar_pairs(matrix, threshold, most=most, effort=ALONE, **some),
            brute_similar(matrix, threshold, most, **some),
        )


@every("seed", range(8))
def test_delta_pairs_are_those_of_the_whole_square(seed):
    skeleton = chance_vectors(seed)
    raw, some = shaken(skeleton, seed), which(seed, len(skeleton))
    for thresholds, most in (
        (Thresholds(), 10**6),
        (Thresholds(-1, -2), 300),
        (Thresholds(0.1, 0), 10**6),
        (Thresholds(0.5, -0.1), 5),
    ):
        assert same_pairs(
            delta_pairs(raw, skeleton, thresholds, most=most, effort=ALONE, **some),
            brute_delta(raw, skeleton, thresholds, most, **some),
        )


@every("seed", range(8))
def test_the_nearest_rows_are_those_of_the_whole_square(seed):
    matrix = chance_vectors(seed)
    new = which(seed, len(matrix))["new"]
    for k in (1, 10, 150):
        assert listed(nearest(matrix, k, new=new, effort=ALONE)) == brute_nearest(matrix, k, new)


def test_many_blocks_and_a_wide_matrix_give_what_the_whole_square_gives():
    skeleton = chance_vectors(3, 1100, 40)
    raw = unit(np.concatenate((shaken(skeleton, 3), shaken(skeleton, 4)), axis=1))
    for thresholds in (Thresholds(), Thresholds(0.2, 0.1)):  # few candidates in a block, and many
        assert same_pairs(
            delta_pairs(raw, skeleton, thresholds, most=500, effort=ALONE),
            brute_delta(raw, skeleton, thresholds, 500),
        )
    assert listed(nearest(skeleton, 4, effort=ALONE)) == brute_nearest(skeleton, 4)


@every("size", [0, 1, 2])
def test_nothing_one_row_and_two_rows_are_fine(size):
    matrix = unit([[3, 4], [4, 3]])[:size]
    some = similar_pairs(matrix, 0.5)
    lists = nearest(matrix, 5)
    pairs = delta_pairs(matrix, matrix, Thresholds(0.5, 0))
    assert len(some) == len(pairs) == (size == 2) and len(lists) == 2 * (size == 2)
    assert listed(lists) == [(0, 1), (1, 0)][: len(lists)] and pairs.candidates == (0, int(size == 2), 0, 0)
    assert repr(some) == (
        "<1 pairs, similarity 0.960 to 0.960; 0 more dropped>" if size == 2 else "<0 pairs; 0 more dropped>"
    )


def test_what_equals_a_threshold_passes():
    skeleton, raw = (
        np.array([[1, 0], [cosine, (1 - cosine**2) ** 0.5]], np.float32) for cosine in (0.45, 0.37)
    )
    (pair,) = delta_pairs(raw, skeleton).delta
    assert pair == 0.08 and delta_pairs(raw, skeleton).skeleton == 0.45
    assert not len(delta_pairs(raw, skeleton, Thresholds(0.450001, 0.08)))
    assert not len(delta_pairs(raw, skeleton, Thresholds(0.45, 0.080001)))
    assert len(delta_pairs(raw, skeleton, Thresholds(0.4500004, 0.0800004))) == 1  # six places are compared
    assert len(similar_pairs(raw, 0.37)) == 1 and not len(similar_pairs(raw, 0.370001))


def test_a_blank_text_never_pairs_whatever_the_threshold():
    matrix = unit([[1, 0], [0, 0], [1, 0.1], [0, 0]])
    assert listed(similar_pairs(matrix, -1)) == [(0, 2)]
    assert listed(nearest(matrix, 3)) == [(0, 2), (2, 0)]
    assert listed(delta_pairs(matrix, unit(np.ones((4, 2))), Thresholds(-1, -2))) == [(0, 2)]
    assert listed(delta_pairs(unit(np.ones((4, 2))), matrix, Thresholds(-1, -2))) == [(0, 2)]


def test_ties_go_to_the_lower_row_and_then_to_the_lower_column():
    matrix = unit(np.ones((500, 3)))
    some = similar_pairs(matrix, 0.5, most=600)
    found = listed(some)
    assert found == [(0, column) for column in range(1, 500)] + [(1, column) for column in range(2, 103)]
    assert some.dropped == 500 * 499 // 2 - 600
    assert listed(nearest(matrix, 2)) == [
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 2),
        *((row, other) for row in range(2, 500) for other in (0, 1)),
    ]


def test_the_best_are_kept_and_the_others_counted():
    skeleton = chance_vectors(5, 400, 8)
    raw = shaken(skeleton, 5)
    all_of_them = delta_pairs(raw, skeleton, Thresholds(-1, -2))
    few = delta_pairs(raw, skeleton, Thresholds(-1, -2), most=10)
    assert listed(few) == listed(all_of_them)[:10]
    assert few.dropped == len(all_of_them) - 10
    assert all_of_them.dropped == 0
    assert few.candidates == all_of_them.candidates and sum(few.candidates) == len(all_of_them)


@every("seed", range(6))
def test_the_old_pairs_and_those_with_a_new_row_are_all_pairs(seed):
    skeleton = chance_vectors(seed, 300, 10)
    raw, thresholds = shaken(skeleton, seed), Thresholds(0.3, 0.05)
    new = np.random.default_rng(seed).choice(300, 20, replace=False)
    old = np.setdiff1d(np.arange(300), new)
    before = [(int(old[i]), int(old[j])) for i, j in listed(delta_pairs(raw[old], skeleton[old], thresholds))]
    added = listed(delta_pairs(raw, skeleton, thresholds, new=new))
    assert sorted(before + added) == sorted(listed(delta_pairs(raw, skeleton, thresholds)))


# --- blocks, memory, threads ---


@every("size", [1, 2, 127, 128, 129, 1000, 1025])
@every("side", [16, 100, 1024])
def test_the_blocks_hold_each_pair_once(size, side):
    for new in (None, np.unique(np.random.default_rng(size).integers(0, size, 9))):
        asked = PairSelection.of([np.ones((size, 1), np.float32)], new)
        seen = np.zeros((size, size), int)
        for tile in asked.plan_tiles(side):
            assert tile.area <= side * side
            rows, columns = asked.pairs_at(tile, np.arange(tile.area))
            wanted = asked.pair_mask(rows, columns)
            np.add.at(seen, (np.minimum(rows, columns)[wanted], np.maximum(rows, columns)[wanted]), 1)
        assert np.array_equal(seen, countable([np.ones((size, 1))], new).astype(int))


def test_memory_and_threads_do_not_show_in_the_result():
    skeleton = chance_vectors(8, 900, 33)
    raw, thresholds = shaken(skeleton, 8), Thresholds(0.1, 0)
    usual = (
        delta_pairs(raw, skeleton, thresholds, most=5000, effort=ALONE),
        nearest(skeleton, 7, effort=ALONE),
        similar_pairs(raw, 0.3, effort=ALONE),
    )
    for memory, threads in ((4 << 20, 1), (8 << 20, 2)):
        options = {"effort": Effort(memory, threads)}
        again = (
            delta_pairs(raw, skeleton, thresholds, most=5000, **options),
            nearest(skeleton, 7, **options),
            similar_pairs(raw, 0.3, most=1000, **options),
        )
        assert identical(usual[0], again[0]) and identical(usual[1], again[1])
        assert listed(again[2]) == listed(usual[2])[:1000]


def peak_of(join, *vectors, **options):
    """The smaller of two peaks: threads that other tests left behind are counted too."""
    peaks = []
    for _ in range(2):
        tracemalloc.start()
        try:
            join(*vectors, **options)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return min(peaks)


@pytest.mark.parametrize("megabytes", [6, pytest.param(24, marks=pytest.mark.extended)])
def test_no_more_memory_is_held_than_allowed(megabytes):
    skeleton = chance_vectors(9, 100 * megabytes, 64)
    raw, copies, everything = shaken(skeleton, 9), unit(np.ones((500, 64))), Thresholds(-1, -2)
    similar_pairs(raw[:9], 0.5)  # what is imported and measured only once
    delta_pairs(raw[:9], skeleton[:9], everything, new=np.arange(5))
    bound, some = {"effort": Effort(megabytes << 20)}, {"effort": Effort(megabytes << 20), "most": 10_000}
    assert peak_of(similar_pairs, skeleton, -1, **some) <= megabytes << 20
    assert peak_of(delta_pairs, raw, skeleton, everything, **some) <= megabytes << 20
    new = np.arange(50 * megabytes)
    assert peak_of(delta_pairs, raw, skeleton, everything, new=new, **some) <= megabytes << 20
    assert peak_of(nearest, skeleton, 5, **bound) <= megabytes << 20
    assert peak_of(nearest, copies, 5, **bound) <= megabytes << 20  # all are equally near


def test_too_little_memory_is_refused_with_the_least_possible():
    matrix = chance_vectors(1, 300, 20)
    for join in (
        lambda memory: similar_pairs(matrix, 0.5, most=1000, effort=Effort(memory)),
        lambda memory: nearest(matrix, 3, effort=Effort(memory)),
    ):
        with pytest.raises(BadInput, match="is the least possible") as refused:
            join(1)
        least = int(str(refused.value).split("; ")[1].split(" ")[0].replace(",", ""))
        join(least)
        with pytest.raises(BadInput):
            join(least - 1)


# --- what is refused ---


@every("wrong", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_named(wrong):
    matrix = unit(np.ones((50, 4)))
    matrix[[17, 30], 2] = wrong
    fine = unit(np.ones((50, 4)))
    for join in (
        lambda: similar_pairs(matrix, 0.5),
        lambda: nearest(matrix, 3),
        lambda: delta_pairs(matrix, fine),
        lambda: delta_pairs(fine, matrix),
        lambda: approximate_nearest(matrix, 3),
    ):
        with pytest.raises(BadInput, match=r"2 of 50 rows hold NaN or infinity; the first is row 17\b"):
            join()


FINE = unit(np.eye(4))


@every(
    ("join", "reason"),
    [
        (lambda: similar_pairs(2 * FINE, 0.5), "4 of 4 rows are not of length 1; the first is row 0"),
        (lambda: similar_pairs(np.full((2, 2), 1e300), 0.5), "row 0"),
        (lambda: similar_pairs(np.full((2, 2), 1e-30), 0.5), "not of length 1"),
        (lambda: similar_pairs([], 0.5), "a matrix of numbers"),
        (lambda: similar_pairs([["a", "b"]], 0.5), "a matrix of numbers"),
        (lambda: similar_pairs(FINE[0], 0.5), "shape"),
        (lambda: similar_pairs(FINE, 1.5), "between -1 and 1"),
        (lambda: similar_pairs(FINE, float("nan")), "between -1 and 1"),
        (lambda: similar_pairs(FINE, 0.5, most=0), "1 or more, not 0"),
        (
            lambda: similar_pairs(FINE, 0.5, effort=Effort(threads=0)),
            "threads must be a number, 1 or more, not 0",
        ),
        (lambda: similar_pairs(FINE, 0.5, new=[4]), "from 0 to 3, not 4"),
        (lambda: similar_pairs(FINE, 0.5, new=[-1, 2]), "from 0 to 3, not -1"),
        (lambda: similar_pairs(FINE, 0.5, new=[0.5]), "whole numbers"),
        (lambda: similar_pairs(FINE, 0.5, groups=[1, 2]), "2 numbers for 4 rows"),
        (lambda: delta_pairs(FINE[:3], FINE), "4 and 3 rows"),
        (lambda: nearest(FINE, 0), "1 or more, not 0"),
        (lambda: approximate_nearest(FINE, 0), "1 or more"),
        (lambda: approximate_nearest(FINE, 1, effort=IndexEffort(weighed=0)), "1 or more"),
        (lambda: approximate_delta_pairs(FINE[:3], FINE), "4 and 3 rows"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(join, reason):
    with pytest.raises(BadInput, match=reason):
        join()


def test_a_matrix_that_fits_is_not_copied_and_not_changed():
    matrix = chance_vectors(2, 400, 30)
    before = matrix.copy()
    matrix.flags.writeable = False
    nearest(matrix, 3)
    similar_pairs(matrix, 0.2)
    assert np.array_equal(matrix, before)
    wide = np.asfortranarray(matrix.astype(np.float64))
    assert identical(similar_pairs(wide, 0.2), similar_pairs(matrix, 0.2))


# --- interruption and progress ---


class Interrupting:
    """Presses Ctrl-C after some blocks."""

    def __init__(self, *when):
        self.when, self.told = when, []

    def __call__(self, done, total):
        self.told.append((done, total))
        if done in self.when:
            signal.raise_signal(signal.SIGINT)


def blas_limits():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


JOINS = {
    "similar": lambda matrix, **options: similar_pairs(matrix, 0.2, **options),
    "delta": lambda matrix, **options: delta_pairs(shaken(matrix, 1), matrix, Thresholds(0.2, 0), **options),
    "nearest": lambda matrix, **options: nearest(matrix, 6, **options),
}


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
def test_an_interrupted_join_ends_and_the_next_one_is_whole(join):
    matrix, limits = chance_vectors(4, 1100, 20), blas_limits()
    whole, pressed = join(matrix, effort=ALONE), Interrupting(3)
    with pytest.raises(KeyboardInterrupt):
        join(matrix, effort=Effort(threads=1, progress=pressed))
    total = pressed.told[0][1]
    assert pressed.told == [(done, total) for done in range(1, 4)] and blas_limits() == limits
    assert identical(join(matrix, effort=ALONE), whole)


# --- Dask ---


@pytest.fixture(scope="module", params=["threads", pytest.param("processes", marks=pytest.mark.extended)])
def client(request):
    distributed = pytest.importorskip("distributed")
    where = {"processes": True, "host": "127.0.0.1"} if request.param == "processes" else {"processes": False}
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, **where)
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
def test_workers_find_what_one_process_finds(join, client):
    matrix, told = chance_vectors(6, 1200, 24), []
    effort = Effort(client=client, progress=lambda *counts: told.append(counts))
    assert identical(join(matrix, effort=effort), join(matrix))
    assert told[-1][0] == told[-1][1] and [done for done, _ in told] == sorted(done for done, _ in told)
    assert identical(join(matrix, effort=Effort(client=client), new=[3, 900]), join(matrix, new=[3, 900]))


# --- approximately ---


def clustered(seed, size=1500, dimension=24):
    chance = np.random.default_rng(seed)
    return unit(
        chance.standard_normal((size // 10, dimension))[chance.integers(0, size // 10, size)]
        + 0.7 * chance.standard_normal((size, dimension))
    )


def test_the_approximately_nearest_have_exact_similarities_and_a_true_recall():
    matrix = clustered(1)
    matrix[[4, 90]] = 0
    found = approximate_nearest(matrix, 8, effort=IndexEffort(sample=1500))
    exact = nearest(matrix, 8)
    values = cosines(matrix)
    assert np.array_equal(found.pairs.similarity, values[found.pairs.rows, found.pairs.columns])
    missing = set(listed(exact)) - set(listed(found.pairs))
    assert (found.expected, found.sample) == (8 * 1498, 1500) and found.found == len(exact) - len(missing)
    assert found.recall == found.found / found.expected > 0.95
    assert not {4, 90} & set(found.pairs.rows.tolist() + found.pairs.columns.tolist())


def test_more_effort_misses_less_and_two_runs_are_the_same():
    matrix = clustered(3)
    little, again, much = (
        approximate_nearest(matrix, 8, effort=IndexEffort(effort, 1500)) for effort in (2, 2, 100)
    )
    assert little.recall < much.recall and identical(little.pairs, again.pairs)


def test_approximate_delta_pairs_are_delta_pairs_and_their_recall_is_true():
    skeleton = clustered(4)
    raw = shaken(skeleton, 4, 1.5)
    exact, groups = delta_pairs(raw, skeleton), np.arange(1500) // 2
    found = approximate_delta_pairs(raw, skeleton, k=30, effort=IndexEffort(sample=1500))
    values = dict(zip(listed(exact), exact.delta.tolist(), strict=True))
    assert all(
        values[pair] == delta
        for pair, delta in zip(listed(found.pairs), found.pairs.delta.tolist(), strict=True)
    )
    assert (found.found, found.expected) == (len(found.pairs), len(exact)) and 0.3 < found.recall < 1
    apart = approximate_delta_pairs(raw, skeleton, k=30, effort=IndexEffort(sample=1500), groups=groups)
    assert apart.expected == len(delta_pairs(raw, skeleton, groups=groups))
    assert (apart.pairs.rows // 2 != apart.pairs.columns // 2).all()


@every("size", [0, 1, 2])
def test_approximately_nothing_one_row_and_two_rows_are_fine(size):
    matrix, told = FINE[:size], []
    found = approximate_nearest(matrix, 3, effort=IndexEffort(progress=lambda *counts: told.append(counts)))
    assert listed(found.pairs) == [(0, 1), (1, 0)] * (size == 2)
    assert told[-1:] == [(2 * size, 2 * size)] * (size > 0)
    assert found.recall == 1 if size == 2 else np.isnan(found.recall)


def test_rows_of_one_group_are_no_pair():
    matrix = unit([[1, 0], [1, 0], [1, 0.1]])
    assert listed(similar_pairs(matrix, 0.5, groups=[7, 7, 1])) == [(0, 2), (1, 2)]


def test_workers_drop_what_one_process_drops(client):
    matrix = chance_vectors(6, 700, 3)
    effort = Effort(client=client)
    assert identical(similar_pairs(matrix, 0.1, most=25, effort=effort), similar_pairs(matrix, 0.1, most=25))
    assert not len(similar_pairs(matrix[:0], 0.1, effort=Effort(client=client)))
