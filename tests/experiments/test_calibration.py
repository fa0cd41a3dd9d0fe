"""Reliability, calibration error and risk against coverage, worked out by hand."""

import pytest

from benchmarks.calibration import Reliability, calibration_error, reliability, risk_area, risk_curve
from kgot_lab.errors import BadInput

SURE, RIGHT = [0.95, 0.92, 0.55, 0.05, 1.0], [1, 0, 1, 0, 1]


def test_answers_fall_into_bins_by_how_sure_the_model_is_and_one_is_in_the_last():
    rows = reliability(SURE, RIGHT)
    assert [(row.low, row.n) for row in rows] == [(0.0, 1), (0.5, 1), (0.9, 3)]
    assert rows[-1] == Reliability(0.9, 1.0, 3, pytest.approx((0.95 + 0.92 + 1) / 3), pytest.approx(2 / 3))


def test_the_error_is_the_gap_between_sure_and_right_weighted_by_how_many():
    assert calibration_error(SURE, RIGHT) == pytest.approx((0.05 + 0.45 + abs(2 - 2.87)) / 5)
    assert calibration_error([1.0, 0.0], [1, 0]) == 0


def test_the_risk_grows_with_the_coverage_when_the_surest_are_right():
    expected = [(0.2, 0.0), (0.4, 0.0), pytest.approx((0.6, 1 / 3)), (0.8, 0.25), pytest.approx((1.0, 0.4))]
    assert risk_curve(SURE, RIGHT) == expected
    assert risk_area(SURE, RIGHT) == pytest.approx((0 + 0 + 1 / 3 + 0.25 + 0.4) / 5)


def test_equally_sure_answers_are_kept_together_so_that_their_order_does_not_matter():
    assert risk_curve([0.5, 0.5], [1, 0]) == risk_curve([0.5, 0.5], [0, 1]) == [(1.0, 0.5)]


@pytest.mark.parametrize(("sure", "right"), [([], []), ([1.2], [1]), ([0.5], [-1]), ([float("nan")], [1])])
def test_what_is_no_pair_of_shares_is_refused(sure, right):
    with pytest.raises(BadInput, match="from 0 to 1"):
        calibration_error(sure, right)
