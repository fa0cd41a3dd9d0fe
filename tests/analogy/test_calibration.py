"""Thresholds chosen on labelled pairs, held against a full search."""

import itertools
import math
import random

import pytest
from support.every import every

from benchmarks.structure.calibration import CalibrationObjective, calibrate_thresholds
from kgot_lab.errors import BadInput
from kgot_lab.similarity.delta import TextPair

AIMS = [
    CalibrationObjective(),
    CalibrationObjective(beta=0.5),
    CalibrationObjective(least_recall=0.6),
    CalibrationObjective(prevalence=0.03),
    CalibrationObjective(prevalence=0.6),
    CalibrationObjective(least_recall=0.5, prevalence=0.03),
]


def chance_pairs(seed: int, count: int = 60, grain: int = 20) -> tuple[list[TextPair], list[bool]]:
    """Pairs with few different similarities, so that there are ties; the analogous ones are more alike in
    skeleton.
    """
    chance = random.Random(seed)
    labels = [chance.random() < 0.4 for _ in range(count - 2)] + [True, False]
    drawn = [(chance.randint(0, grain), min(chance.randint(0, grain) + 4 * yes, grain)) for yes in labels]
    return [TextPair("", "", raw / grain, alike / grain) for raw, alike in drawn], labels


def brute(pairs, labels, value) -> tuple[float, float]:
    """The best thresholds among all values that occur, ties to the stricter."""
    tried = itertools.product({pair.skeleton for pair in pairs}, {pair.delta for pair in pairs})

    def key(at):
        measured = [(pair.skeleton, pair.delta, yes) for pair, yes in zip(pairs, labels, strict=True)]
        passing = [yes for skeleton, delta, yes in measured if skeleton >= at[0] and delta >= at[1]]
        return round(value(sum(passing), len(passing) - sum(passing)), 12), -len(passing), *at

    return max(tried, key=key)


@every("seed", range(3))
@every("aim", AIMS, ids=str)
def test_calibration_finds_what_a_full_search_finds(seed, aim):
    pairs, labels = chance_pairs(seed)
    positives, negatives = sum(labels), len(labels) - sum(labels)

    def precision(right, wrong):
        share = positives / len(labels) if aim.prevalence is None else aim.prevalence
        right, wrong = share * right / positives, (1 - share) * wrong / negatives
        return right / (right + wrong) if right + wrong else 0.0

    def value(right, wrong):
        recall, exact = right / positives, precision(right, wrong)
        if aim.least_recall is not None:
            return exact if recall >= aim.least_recall else -1
        return (1 + aim.beta**2) * exact * recall / (aim.beta**2 * exact + recall) if right else 0.0

    chosen = calibrate_thresholds(
        pairs, labels, embedder="bags", maker="two words", aim=aim, steps=len(pairs) * 4
    )
    assert (chosen.skeleton, chosen.delta) == brute(pairs, labels, value)
    passing = [
        yes for pair, yes in zip(pairs, labels, strict=True) if chosen.are_reached(pair.skeleton, pair.delta)
    ]
    measured = sum(passing) / positives, precision(sum(passing), len(passing) - sum(passing))
    assert (chosen.recall, chosen.precision) == pytest.approx(measured)


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([True], "2 pairs have 1"),
        ([True, True], "2 of 2 are"),
        ([False, False], "0 of 2 are"),
        ([True, "no"], "not 'no'"),
    ],
)
def test_labels_that_tell_nothing_are_refused(labels, told):
    with pytest.raises(BadInput, match=told):
        calibrate_thresholds([TextPair("", "", 0.1, 0.2)] * 2, labels, embedder="bags", maker="two words")


@every(
    "wrong",
    [
        {"beta": 0},
        {"beta": math.nan},
        {"least_recall": 0},
        {"least_recall": 1.1},
        {"prevalence": 0},
        {"prevalence": 1},
    ],
    ids=str,
)
def test_an_aim_out_of_range_is_refused(wrong):
    with pytest.raises(BadInput):
        CalibrationObjective(**wrong)


def test_a_grid_of_no_steps_is_refused():
    with pytest.raises(BadInput, match="1 step or more, not 0"):
        calibrate_thresholds(
            [TextPair("", "", 0.1, 0.2)] * 2, [True, False], embedder="bags", maker="two words", steps=0
        )
