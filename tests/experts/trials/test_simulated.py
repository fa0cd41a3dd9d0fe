"""Simulated raters do what they are said to do, and say that they are simulated."""

from statistics import fmean, median

import pytest

from kgot_lab.errors import BadInput
from notebooks.simulated_raters import SimulatedVariant, simulated_outcomes


def test_a_seed_gives_the_same_outcomes_and_another_one_others():
    assert simulated_outcomes(50, seed=1) == simulated_outcomes(50, seed=1) != simulated_outcomes(50, seed=2)
    for outcome in simulated_outcomes(20):
        assert outcome.test_id.startswith("simulation") and outcome.digest.startswith("simulation")


def test_rates_come_out_as_set():
    side = SimulatedVariant(up=0.7, judged=0.25, use=0.3, false=0.5, seconds=2.0, intent=0.9)
    some = [outcome for outcome in simulated_outcomes(6000, a=side, seed=4) if outcome.variant == "a"]
    thumbs = [each.thumb > 0 for each in some if each.thumb]
    assert len(thumbs) / len(some) == pytest.approx(0.25, abs=0.03)
    assert fmean(thumbs) == pytest.approx(0.7, abs=0.05)
    assert fmean(each.cited / each.told for each in some) == pytest.approx(0.3, abs=0.02)
    assert fmean(each.false_citations for each in some) == pytest.approx(0.5, abs=0.05)
    assert median(each.seconds_first for each in some) == pytest.approx(2.0, abs=0.1)
    assert all(each.seconds_whole > each.seconds_first for each in some)
    assert fmean(each.intent_right for each in some) == pytest.approx(0.9, abs=0.02)


def test_a_conversation_keeps_its_variant_over_its_turns():
    some = simulated_outcomes(30, turns=4)
    assert len(some) == 120 and len({(each.unit, each.variant) for each in some}) == 30
    assert [each.at for each in some] == sorted({each.at for each in some})


def test_rates_that_are_none_are_refused():
    for wrong in ({"up": 1.2}, {"judged": -0.1}, {"false": -1}, {"seconds": 0}):
        with pytest.raises(BadInput):
            SimulatedVariant(**wrong)
    with pytest.raises(BadInput):
        simulated_outcomes(3, turns=0)
