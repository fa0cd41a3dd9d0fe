"""A comparison that may be looked at as often as one likes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.experts.trials.measures import bounded_comparison, log_capitals, ranked_comparison

BAR = math.log(20)
SHARES = st.lists(st.floats(0, 1), max_size=30)
SOME = settings(max_examples=60, deadline=None)


def binomial_bound(rate, count):
    """What a count of chance `rate` passes in about one of a thousand seeds."""
    return count * rate + 3.1 * math.sqrt(count * rate * (1 - rate))


def alarms(gaps):
    """In how many trials, a row each, 0 is excluded at any look."""
    return int((np.maximum(*log_capitals(gaps)).max(axis=1) >= BAR).sum())


EXTREME = [pytest.param(share, marks=pytest.mark.extended) for share in (0.05, 0.9)]


@pytest.mark.parametrize("up", [0.5, *EXTREME])
def test_looking_after_every_thumb_raises_no_more_than_five_in_a_hundred_false_alarms(up):
    chance = np.random.default_rng(4)
    gaps = (chance.random((600, 600)) < up).astype(float) - (chance.random((600, 600)) < up)
    assert alarms(gaps) <= binomial_bound(0.05, 600)


@pytest.mark.parametrize(("up_a", "up_b"), [(0.6, 0.6), (0.5, 0.7), (0.95, 0.9)])
def test_the_true_difference_lies_in_the_interval_of_all_looks(up_a, up_b):
    chance = np.random.default_rng(6)
    gaps = (chance.random((500, 400)) < up_b).astype(float) - (chance.random((500, 400)) < up_a)
    missed = int((np.maximum(*log_capitals(gaps, up_b - up_a)).max(axis=1) >= BAR).sum())
    assert missed <= binomial_bound(0.05, 500)


def test_the_capital_does_not_grow_on_average_under_the_supposed_difference():
    """Exact: the mean over every sequence of six pairs, each weighed by its chance."""
    chances = {-1.0: 0.2, 0.0: 0.5, 1.0: 0.3}
    sequences = np.array(np.meshgrid(*[list(chances)] * 6)).reshape(6, -1).T
    weights = np.prod([[chances[value] for value in row] for row in sequences], axis=1)
    for capital in log_capitals(sequences, 0.1):
        assert np.exp(capital).T @ weights == pytest.approx([0.5] * 6)


def test_the_end_of_the_interval_is_where_the_capital_reaches_the_bar():
    chance = np.random.default_rng(7)
    a, b = chance.random(80), chance.random(80) ** 0.5
    found = bounded_comparison(a, b)
    for end, side in ((found.low, 0), (found.high, 1)):
        inside, outside = (1e-6, -1e-6) if side == 0 else (-1e-6, 1e-6)
        outer, inner = (log_capitals(b - a, end + shift)[side].max() for shift in (outside, inside))
        assert outer >= BAR > inner


def test_a_clear_difference_is_found_and_named():
    found = bounded_comparison([0.0, 0.0, 1.0, 0.0] * 20, [1.0, 1.0, 0.0, 1.0] * 20)
    assert found.higher == "b" and found.low > 0 and found.p < 0.001 and found.e_value > 1000
    assert (found.n_a, found.n_b, found.pairs) == (80, 80, 80)
    assert (found.mean_a, found.mean_b, found.difference) == (0.25, 0.75, 0.5)
    endless = bounded_comparison([0.0] * 1500, [1.0] * 1500)
    assert math.isfinite(endless.e_value) and endless.p >= 0 and endless.higher == "b"
    turned = bounded_comparison([1.0, 1.0, 0.0, 1.0] * 20, [0.0, 0.0, 1.0, 0.0] * 20)
    assert turned.higher == "a"
    assert turned.high == pytest.approx(-found.low)
    assert turned.p == pytest.approx(found.p)


def test_a_value_without_a_partner_waits_and_changes_only_the_means():
    a, b = [0.2, 0.4, 0.1], [0.9, 0.8]
    short, long = bounded_comparison(a[:2], b), bounded_comparison(a, b)
    assert short.mean_a != long.mean_a
    for name in ("low", "high", "p", "pairs"):
        assert getattr(short, name) == getattr(long, name)


def test_without_pairs_nothing_is_known():
    found = bounded_comparison([1.0, 0.0], [])
    assert (found.pairs, found.difference) == (0, None)
    assert (found.low, found.high, found.e_value, found.p) == (-1, 1, 1, 1)
    assert found.higher is None and found.detectable is None and found.mean_b is None and found.steady


@given(SHARES, SHARES)
@SOME
def test_zero_is_outside_the_interval_exactly_where_p_is_at_most_alpha(a, b):
    found = bounded_comparison(a, b)
    if found.steady:
        assert (found.low > 0 or found.high < 0) == (found.p <= 0.05) == (found.higher is not None)
    assert 0 < found.p <= 1 and found.e_value >= 0 and -1 <= found.low <= found.high <= 1


@given(SHARES, SHARES, st.floats(0, 1), st.floats(0, 1))
@SOME
def test_another_pair_never_widens_the_interval_or_raises_p(a, b, more_a, more_b):
    size = min(len(a), len(b))
    before = bounded_comparison(a[:size], b[:size])
    after = bounded_comparison([*a[:size], more_a], [*b[:size], more_b])
    assert after.p <= before.p
    if before.steady and after.steady:
        assert before.low <= after.low and after.high <= before.high


def test_counts_are_compared_on_their_own_scale():
    a, b = [4.0, 3.0, 4.0, 2.0] * 10, [0.0, 1.0, 0.0, 0.0] * 10
    found = bounded_comparison(a, b, most=4)
    assert found.difference == pytest.approx(-3) and found.high < 0 and found.span == 4
    assert found.p == bounded_comparison([value / 4 for value in a], [value / 4 for value in b]).p


def test_seconds_are_compared_by_order_so_that_one_that_hung_counts_as_one():
    chance = np.random.default_rng(8)
    a, b = chance.lognormal(0, 0.5, 200), chance.lognormal(1, 0.5, 200)
    found = ranked_comparison(list(a), list(b))
    assert found.higher == "b" and found.mean_b == pytest.approx(b.mean())
    for stretched in (np.log, lambda seconds: seconds**3):
        assert ranked_comparison(list(stretched(a)), list(stretched(b))).low == found.low
    assert ranked_comparison([*a[:-1], 1e9], list(b)).low == pytest.approx(found.low, abs=0.02)


def test_a_difference_that_turns_round_is_called_unsteady():
    up, down = [1.0] * 60, [0.0] * 60
    found = bounded_comparison([*up, *down, *down], [*down, *up, *up])
    assert not found.steady and found.higher is None and found.low < found.high


def test_about_the_detectable_difference_is_found_in_four_of_five_trials():
    chance = np.random.default_rng(9)
    a, b = ((chance.random(500) < 0.5).astype(float) for _ in "ab")
    true = bounded_comparison(list(a), list(b)).detectable
    assert true is not None and 0.1 < true < 0.25
    gaps = (chance.random((300, 500)) < 0.5 + true / 2).astype(float) - (
        chance.random((300, 500)) < 0.5 - true / 2
    )
    assert 0.7 < alarms(gaps) / 300 < 0.97


@every(
    "wrong",
    [
        lambda: bounded_comparison([1.1], [0.0]),
        lambda: bounded_comparison([math.nan], [0.0]),
        lambda: bounded_comparison([0.0], [0.0], alpha=0),
        lambda: ranked_comparison([math.inf], [0.0]),
        lambda: log_capitals([2.0]),
        lambda: log_capitals([0.0], 1.0),
    ],
)
def test_what_cannot_be_compared_is_refused(wrong):
    with pytest.raises(BadInput):
        wrong()
