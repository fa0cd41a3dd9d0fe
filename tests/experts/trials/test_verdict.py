"""A winner only where one may be named, and each reason to name none."""

import random
from dataclasses import replace

import pytest

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.experts.trials.verdict import TrialPlan, mismatch_p_value, trial_verdict
from notebooks.simulated_raters import NO_EFFECT, SimulatedVariant, simulated_outcomes

BETTER = SimulatedVariant(up=0.9, judged=0.8)
AS_OFTEN = SimulatedVariant(up=0.5, judged=0.8)


def clear(seed=0, **changed):
    """Outcomes in which b is much the better by thumbs."""
    return simulated_outcomes(400, a=AS_OFTEN, b=replace(BETTER, **changed), seed=seed)


def whys(verdict):
    return [each.why for each in verdict.declined]


def test_a_clear_difference_has_a_winner_either_way_round():
    assert trial_verdict(clear()).winner == "b"
    turned = trial_verdict(simulated_outcomes(400, a=BETTER, b=AS_OFTEN))
    assert turned.winner == turned.decision == "a" and turned.comparisons["thumbs"].high < 0
    assert "a is better" in str(turned) and "at 0.05 over all looks" in turned.correction


def test_without_a_difference_it_says_what_would_have_shown():
    verdict = trial_verdict(simulated_outcomes(400, seed=3))
    assert (verdict.winner, verdict.decision, whys(verdict)) == (None, "undecided", ["no difference"])
    assert f"{verdict.comparisons['thumbs'].detectable:.2g} or more" in str(verdict)


def test_few_raters_decide_nothing_however_alike_they_are():
    some = clear()[:60]
    verdict = trial_verdict(some)
    assert whys(verdict) == ["too few"] and "of at least 30 each" in str(verdict)
    assert trial_verdict(some, TrialPlan(least=5)).comparisons == verdict.comparisons


def test_raters_who_stay_silent_with_one_variant_leave_it_undecided():
    verdict = trial_verdict(clear(judged=0.3))
    assert whys(verdict) == ["silent"]
    assert verdict.decision == "undecided"
    assert verdict.comparisons["thumbs"].higher == "b"
    by_use = trial_verdict(clear(judged=0.3, use=0.8), TrialPlan(primary="citation use"))
    assert by_use.winner == "b", "where thumbs decide nothing, silence does not matter"


def test_variants_out_of_balance_are_invalid():
    lost = [each for number, each in enumerate(clear()) if each.variant == "a" or number % 2]
    verdict = trial_verdict(lost)
    assert whys(verdict) == ["unbalanced"] and verdict.decision == "invalid" and verdict.winner is None
    stated = simulated_outcomes(900, a=AS_OFTEN, b=BETTER, shares=(0.7, 0.3))
    assert trial_verdict(stated, TrialPlan(shares=(0.7, 0.3))).winner == "b"
    assert whys(trial_verdict(stated)) == ["unbalanced"]


def test_a_configuration_that_was_changed_in_the_middle_is_invalid():
    outcomes = [
        replace(each, digest="new") if each.variant == "b" and each.at > 200 else each for each in clear()
    ]
    verdict = trial_verdict(outcomes)
    assert whys(verdict) == ["changed"]
    assert verdict.decision == "invalid"
    assert "configuration of b" in str(verdict)


def test_two_variants_that_are_one_configuration_are_invalid():
    assert whys(trial_verdict([replace(each, digest="same") for each in clear()])) == ["same"]
    assert trial_verdict([replace(each, digest="") for each in clear()]).winner == "b"


def test_a_conversation_in_both_variants_is_invalid():
    outcomes = clear()
    first = next(outcome for outcome in outcomes if outcome.variant == "a")
    moved = replace(first, variant="b", digest="simulation of b", at=1000.0)
    assert whys(trial_verdict([*outcomes, moved])) == ["moved"]


def test_thumbs_against_citation_use_is_told_and_names_no_winner():
    verdict = trial_verdict(clear(use=0.2))
    assert whys(verdict) == ["disagree"] and "thumbs speaks for b and citation use against it" in str(verdict)
    other = trial_verdict(clear(use=0.2), TrialPlan(primary="citation use"))
    assert whys(other) == ["disagree"] and "citation use speaks for a" in str(other)


def test_a_difference_that_turns_round_names_no_winner():
    late = [
        replace(outcome, at=outcome.at + 1000, unit=f"late {outcome.unit}")
        for outcome in simulated_outcomes(400, a=BETTER, b=AS_OFTEN)
    ]
    assert whys(trial_verdict([*clear(), *late])) == ["unsteady"]


def test_a_winner_that_is_slower_is_said_to_be():
    verdict = trial_verdict(clear(seconds=3.0, false=1.5))
    assert verdict.winner == "b" and verdict.costs == ("false citations", "seconds to first token")
    assert "worse by false citations, seconds to first token" in str(verdict)


def test_the_other_measures_are_corrected_and_name_no_winner():
    verdict = trial_verdict(simulated_outcomes(400, b=replace(NO_EFFECT, seconds=5.0), seed=3))
    assert verdict.winner is None and verdict.comparisons["seconds to first token"].higher == "b"
    assert "thumbs" not in verdict.corrected and len(verdict.corrected) == 4
    own = verdict.comparisons["seconds to first token"].p
    assert verdict.corrected["seconds to first token"] == pytest.approx(4 * own)


@pytest.mark.extended
def test_false_winners_are_few_over_whole_verdicts():
    winners = [trial_verdict(simulated_outcomes(200, b=NO_EFFECT, seed=seed)).winner for seed in range(60)]
    # of 60; more at a rate of .05 in four of a thousand
    assert sum(winner is not None for winner in winners) <= 8


def test_the_order_in_which_outcomes_are_given_changes_nothing():
    outcomes = clear()
    mixed = random.Random(1).sample(outcomes, len(outcomes))
    assert trial_verdict(mixed) == trial_verdict(outcomes)
    at_once = [replace(outcome, at=outcome.at // 10) for outcome in outcomes]  # ten at a time
    assert trial_verdict(random.Random(2).sample(at_once, len(at_once))) == trial_verdict(at_once)


def test_many_answers_of_one_conversation_are_no_more_than_one():
    long = simulated_outcomes(60, turns=20, seed=2)
    row = trial_verdict(long).comparisons
    assert row["citation use"].n_a + row["citation use"].n_b == 60
    assert row["thumbs"].n_a + row["thumbs"].n_b <= 60


def test_a_verdict_prints_as_a_table_with_its_correction():
    told = repr(trial_verdict(clear()))
    assert told.startswith("simulation:0: b is better") and "primary" in told and told.endswith("name none.")
    assert "<table" in trial_verdict(clear())._repr_html_()


def test_two_trials_in_one_and_none_at_all_are_refused():
    with pytest.raises(BadInput, match="not of 2: simulation:0, simulation:1"):
        trial_verdict([*clear(), *clear(seed=1)])
    with pytest.raises(BadInput, match="none yet"):
        trial_verdict([])


def test_a_plan_that_promises_nothing_is_refused():
    with pytest.raises(UnknownName):
        TrialPlan(primary="stars")
    for wrong in ({"alpha": 0}, {"least": 1}, {"shares": (1, 1)}):
        with pytest.raises(BadInput):
            TrialPlan(**wrong)


# --- the balance of the variants ---


def test_a_mismatch_needs_the_more_conversations_the_smaller_it_is():
    assert mismatch_p_value(50, 50) == 1.0 and mismatch_p_value(60, 40) > 0.001 > mismatch_p_value(600, 400)
    with pytest.raises(BadInput):
        mismatch_p_value(-1, 3)
    assert mismatch_p_value(0, 0) == 1.0
    assert mismatch_p_value(0, 400) < 1e-20
    assert mismatch_p_value(800, 200, (0.8, 0.2)) == 1.0


def test_a_mismatch_may_be_looked_for_after_every_conversation():
    chance, false = random.Random(3), 0
    for _ in range(300):
        in_a, least = 0, 1.0
        for number in range(1, 301):
            in_a += chance.random() < 0.5
            least = min(least, mismatch_p_value(in_a, number - in_a))
        false += least < 0.05
    assert false <= 26  # of 300 at a rate of .05: 15 and three deviations
