import math

import numpy as np
import pytest

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.measures import Scores
from kgot_lab.evaluation.significance import (
    compare,
    effect_size,
    holm,
    interval,
    proportion,
    sign_flip_p,
    smallest_detectable,
    wins_ties_losses,
)

stats = pytest.importorskip("scipy.stats")


def gaps(seed: int, count: int, shift: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(shift, 1, count)


def flipped(values: np.ndarray, rounds: float) -> float:
    """scipy's p-value for the same test."""
    options = {"permutation_type": "samples", "n_resamples": rounds, "rng": np.random.default_rng(1)}
    return float(
        stats.permutation_test(
            (values, np.zeros_like(values)),
            lambda x, y, axis: (x - y).mean(axis=axis),
            vectorized=True,
            **options,
        ).pvalue
    )


@pytest.mark.parametrize("seed", range(4))
def test_few_differences_give_the_exact_p_of_scipy(seed):
    values = gaps(seed, 9, 0.5)
    assert sign_flip_p(values) == pytest.approx(flipped(values, math.inf), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_many_differences_give_the_p_of_scipy_within_chance(seed):
    values = gaps(seed, 60, 0.2)
    assert sign_flip_p(values, rounds=20_000) == pytest.approx(flipped(values, 20_000), abs=0.012)


def test_the_seed_decides_and_zeros_change_nothing():
    values = gaps(0, 50, 0.2)
    assert sign_flip_p(values, seed=1) == sign_flip_p(values, seed=1) != sign_flip_p(values, seed=2)
    assert sign_flip_p(np.concatenate([values, np.zeros(30)])) == sign_flip_p(values)


@pytest.mark.parametrize("seed", range(3))
def test_an_interval_equals_that_of_scipy_with_the_same_draws(seed):
    values = np.random.default_rng(seed).beta(5, 1, 80)
    rng = np.random.default_rng(7)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=3_000, method="BCa", rng=rng).confidence_interval
    ours = interval(values, rounds=3_000, seed=7)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert ours.mean == pytest.approx(values.mean()) and ours.n == 80


def test_values_that_are_all_the_same_have_an_interval_of_one_point():
    assert interval([0.4, 0.4, 0.4]).low == interval([0.4, 0.4, 0.4]).high == pytest.approx(0.4)


def test_95_of_100_intervals_hold_the_true_mean():
    generator = np.random.default_rng(0)
    samples = generator.choice([0, 0.5, 1], (600, 60), p=[0.1, 0.3, 0.6])
    held = np.mean([own.low <= 0.75 <= own.high for s in samples for own in [interval(s, rounds=600)]])
    assert 0.92 < held < 0.975


def test_5_of_100_true_nulls_are_called_significant():
    generator = np.random.default_rng(1)
    rejected = np.mean(
        [
            sign_flip_p(generator.choice([-0.5, 0, 0.5], 60, p=[0.2, 0.6, 0.2]), rounds=600) <= 0.05
            for _ in range(800)
        ]
    )
    assert 0.02 < rejected < 0.07


def test_the_smallest_detectable_difference_is_found_four_times_in_five():
    generator = np.random.default_rng(2)
    shift = smallest_detectable(generator.normal(0, 1, 20_000)) * math.sqrt(20_000 / 60)
    found = np.mean([sign_flip_p(generator.normal(shift, 1, 60), rounds=500) <= 0.05 for _ in range(500)])
    assert 0.74 < found < 0.86
    assert shift == pytest.approx(2.8016 / math.sqrt(60), rel=0.02)


@pytest.mark.parametrize(
    ("given", "corrected"),
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),  # .01 x 3, .03 x 2, then .04 x 1 is lifted to .06
        ([0.5, 0.6], [1.0, 1.0]),
        ([0.005, 0.011, 0.02, 0.04, 0.13], [0.025, 0.044, 0.06, 0.08, 0.13]),  # a textbook row
    ],
)
def test_holm_by_hand(given, corrected):
    assert holm(given) == pytest.approx(corrected)


def test_holm_keeps_the_family_wise_error_below_5_percent():
    ps = np.random.default_rng(4).random((2_000, 12))
    assert np.mean([min(holm(row)) <= 0.05 for row in ps.tolist()]) < 0.06


def test_effect_size_and_counts():
    values = [0.5, 0.0, -0.5, 0.5, 0.0, 0.5]
    assert wins_ties_losses(values) == (3, 2, 1)
    assert effect_size(values) == pytest.approx(np.mean(values) / np.std(values, ddof=1))
    expected = (0.0, math.inf, -math.inf)
    assert (effect_size([0, 0]), effect_size([0.1, 0.1]), effect_size([-0.1, -0.1])) == expected


@pytest.mark.parametrize("values", [[1.0], [], [1.0, math.nan], [[1.0, 2.0]]])
def test_what_cannot_be_tested_is_refused(values):
    for method in (sign_flip_p, interval, effect_size, wins_ties_losses, smallest_detectable):
        with pytest.raises(BadInput):
            method(values)


# --- compare ---


def scored(system: str, values: list[float]) -> Scores:
    return Scores(system, "toy", {"recall@5": {f"q{number}": value for number, value in enumerate(values)}})


def test_systems_are_compared_pair_by_pair_with_the_baseline():
    base = [0.5] * 40
    family = {
        "base": scored("base", base),
        "same": scored("same", base),
        "better": scored("better", [1.0] * 10 + base[10:]),
    }
    family["worse"] = scored("worse", [0.0] * 4 + base[4:])
    made = compare(family, "base")
    assert [row.system for row in made.rows] == ["same", "better", "worse"] and made.own.mean == 0.5
    better = made["better"]
    assert better.difference.mean == pytest.approx(0.125) and better.difference.low > 0
    assert (better.wins, better.ties, better.losses) == (10, 30, 0)
    assert better.own.mean == pytest.approx(0.625)
    assert better.p == 2 / 1024 and better.p_holm == pytest.approx(3 * better.p)
    assert made["worse"].p == 2 / 16 and made["same"].p == 1.0
    assert "10/30/0" in repr(made) and "base (baseline)" in repr(made) and "<b>" in made._repr_html_()


def test_queries_are_paired_by_id_and_not_by_their_order():
    turned = Scores("turned", "toy", {"recall@5": {"q1": 1.0, "q0": 0.0}})
    assert compare({"base": scored("base", [0.0, 1.0]), "turned": turned}, "base")["turned"].ties == 2


def test_a_comparison_that_is_not_paired_is_refused():
    with pytest.raises(BadInput, match="same queries"):
        compare({"a": scored("a", [0, 1, 1]), "b": scored("b", [0, 1])}, "a")
    with pytest.raises(UnknownName, match="Known: a"):
        compare({"a": scored("a", [0, 1, 1])}, "c")
    with pytest.raises(UnknownName):
        compare({"a": scored("a", [0, 1, 1])}, "a")["b"]
    with pytest.raises(UnknownName):
        compare({"a": scored("a", [0, 1, 1])}, "a", "recall@7")


def test_the_interval_of_a_share_is_wilsons():
    from scipy.stats import binomtest

    for right, of in ((0, 5), (3, 10), (10, 10), (77, 1000)):
        expected = binomtest(right, of).proportion_ci(0.95, "wilson")
        found = proportion(right, of)
        assert (found.mean, found.n) == (right / of, of)
        assert found.low == pytest.approx(expected.low, abs=1e-9)
        assert found.high == pytest.approx(expected.high, abs=1e-9)
    assert proportion(0, 0).high == 0
    with pytest.raises(BadInput, match="so many"):
        proportion(3, 2)


VALUES = [0.0, 0.2, 1.0, 0.4, 0.9, 0.1, 0.7, 0.3]


def test_groups_of_one_are_the_usual_interval_and_test():
    alone = [str(number) for number in range(len(VALUES))]
    found, usual = interval(VALUES, alone), interval(VALUES)
    expected = pytest.approx((usual.mean, usual.low, usual.high, usual.n))
    assert (found.mean, found.low, found.high, found.n) == expected
    assert sign_flip_p(VALUES, alone) == sign_flip_p(VALUES)


def test_the_same_value_twice_in_a_group_is_no_more_evidence_than_once():
    twice = [value for value in VALUES for _ in range(2)]
    groups = [str(number // 2) for number in range(2 * len(VALUES))]
    grouped, once, naive = interval(twice, groups), interval(VALUES), interval(twice)
    assert (grouped.low, grouped.high) == pytest.approx((once.low, once.high)) and grouped.n == 16
    assert grouped.high - grouped.low > naive.high - naive.low
    assert sign_flip_p(twice, groups) == sign_flip_p(VALUES) > sign_flip_p(twice)


def test_one_group_alone_has_no_interval():
    for few, needed in (([], "two queries or more"), ([1.0, 2.0], "two groups or more")):
        for judge in (interval, sign_flip_p):
            with pytest.raises(BadInput, match=needed):
                judge(few, ["a"] * len(few))
    with pytest.raises(BadInput, match="finite"):
        interval([1.0, math.nan], ["a", "b"])


def test_p_values_worked_out_by_hand():
    assert sign_flip_p([1.0, 1.0, 1.0, 0.0, 0.0]) == 2 / 8  # all three up or all three down, of eight flips
    assert sign_flip_p([0.1, 0.1, 0.1, -0.3]) == 1.0
    assert sign_flip_p([0.0, 0.0]) == 1.0
    assert sign_flip_p([0.2] * 40, rounds=999) == 1 / 1000  # never 0
