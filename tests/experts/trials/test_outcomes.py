"""What may be told of an answer, and what each measure reads off it."""

import pytest
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.experts.trials.measures import (
    MAX_FALSE_CITATIONS,
    TRIAL_MEASURES,
    TrialOutcome,
    find_measure,
    sort_by_settled,
    values_by_variant,
)


def outcome(unit="c1", variant="a", at=0.0, **told):
    return TrialOutcome(test_id="t", variant=variant, unit=unit, at=at, **told)


@every(
    "told",
    [
        {"variant": "c"},
        {"unit": ""},
        {"thumb": 0},
        {"thumb": 2},
        {"told": -1},
        {"told": 2, "cited": 3},
        {"false_citations": 1.5},
        {"seconds_first": -1.0},
        {"seconds_whole": float("inf")},
        {"at": float("nan")},
    ],
)
def test_what_cannot_be_is_refused(told):
    with pytest.raises(BadInput):
        outcome(**told)


def test_each_measure_reads_its_number():
    one = outcome(
        thumb=-1, told=8, cited=2, false_citations=9, seconds_first=0.5, seconds_whole=3.0, intent_right=True
    )
    assert {name: measure.value(one) for name, measure in TRIAL_MEASURES.items()} == {
        "thumbs": 0.0,
        "citation use": 0.25,
        "false citations": MAX_FALSE_CITATIONS,
        "seconds to first token": 0.5,
        "intent accuracy": 1.0,
    }


def test_what_is_not_known_is_no_zero():
    known = {name: measure.value(outcome()) for name, measure in TRIAL_MEASURES.items()}
    assert known.pop("false citations") == 0 and set(known.values()) == {None}


def test_more_is_not_always_better():
    assert [
        TRIAL_MEASURES[name].better_variant("b")
        for name in ("thumbs", "seconds to first token", "false citations")
    ] == ["b", "a", "a"]
    assert TRIAL_MEASURES["seconds to first token"].better_variant(None) is None


def test_a_conversation_counts_once_with_its_first_value():
    turns = [outcome(), outcome(at=1, thumb=1), outcome(at=2, thumb=-1), outcome("c2", "b", at=3, thumb=-1)]
    assert values_by_variant(turns, find_measure("thumbs")) == {"a": [1.0], "b": [0.0]}


def test_outcomes_of_the_same_time_have_one_order_however_they_are_given():
    some = [
        outcome("c2", at=1, thumb=1),
        outcome("c1", at=1),
        outcome("c3", at=0),
        outcome("c1", at=1, thumb=1),
    ]
    assert sort_by_settled(some) == sort_by_settled(some[::-1])
    assert [each.unit for each in sort_by_settled(some)] == ["c3", "c1", "c1", "c2"]
