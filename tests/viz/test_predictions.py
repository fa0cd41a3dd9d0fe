"""Predict, then reveal: what the reader is asked, that nothing told before gives it away, and that no
constant guess wins.
"""

from __future__ import annotations

import pytest
from support.constant_guess import constant_guess
from support.loop_script import ADA, FEW, WRITE, call, scripted, votes

from kgot_lab.io.files import bundled_path
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered, Chose, Read, Refused, Repaired, Voted, Wrote
from kgot_lab.loop.trace import graph_after, load_run
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import InMemory
from kgot_lab.tools.search import search
from kgot_lab.viz.stepping.predictions import QUESTION_KINDS, Prediction, predictions
from kgot_lab.viz.stepping.stepper import stepper

TRACES = sorted(bundled_path("traces").glob("*.jsonl"))
# the others are in the extended tier
QUICK = {"hotpotqa_demo", "same_question_cypher_embedded", "winter_storm"}
RUNS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.extended] * (path.stem not in QUICK))
    for path in TRACES
]


@pytest.fixture(params=RUNS)
def trace(request):
    return load_run(request.param)


@pytest.fixture(scope="module")
def mended():
    """A run whose first write and first read were refused and repaired; one read of it finds nothing."""
    texts = ("result = [", "result = facts('Nobody')")
    samples = [*({"choice": "RETRIEVE", "text": text} for text in texts), *votes("R", "R", "R")]
    llm = scripted(
        vote=[*votes("I", "I", "I"), *samples], tools=call(), merge={"reason": "both"}, parse={"answer": "London"},
        write={"statements": ["add("]}, mend=[{"statement": WRITE["statements"][0]}, {"statement": "result = facts('London')"}],
    )  # fmt: skip
    with InMemory() as store:
        return tuple(think("Where was Ada Lovelace born?", llm, store, [search(ADA, bm25(ADA), k=2)], FEW))


def of(kind, asked):
    return [each for each in asked if each.kind == kind]


# --- every decision is asked about ---


def test_every_vote_every_tool_choice_of_a_model_and_the_answer_is_asked_about(trace):
    asked = predictions(trace.events)
    held = [at for at, event in enumerate(trace.events) if isinstance(event, Voted) and event.votes]
    assert [each.reveal for each in of("vote", asked)] == held
    assert all(isinstance(trace.events[each.reveal], Chose) for each in of("tool", asked))
    assert [trace.events[each.reveal].text for each in of("answer", asked)] == [trace.answer]


def test_every_write_from_sentences_has_a_question_on_a_fact(trace):
    asked = of("fact", predictions(trace.events))
    for each in asked:
        fact = each.quoted.splitlines()[0]
        edges = [
            f"{edge.source} --[{edge.type}]--> {edge.target}" for edge in graph_after(trace.events).edges
        ]
        event = trace.events[each.reveal]
        if each.truth == "kept":
            assert fact in edges
        else:
            assert isinstance(event, Refused) and fact in event.statement.splitlines()
        assert isinstance(event, Wrote | Refused)


def test_statements_are_asked_about_once_with_what_became_of_them(mended):
    asked = of("statement", predictions(mended))
    assert [(each.quoted[:22], each.truth) for each in asked] == [
        ("add(", "refused"),
        (WRITE["statements"][0][:22], "more"),
        ("result = [", "refused"),
        ("result = facts('Nobody')"[:22], "no rows"),
        ("result = facts()", "few"),
        ("result = facts('London')"[:22], "few"),
    ]
    assert [type(mended[each.reveal]) for each in asked][:2] == [Repaired, Wrote]


def test_a_write_that_was_spelled_for_the_model_is_not_asked_about():
    run = load_run(bundled_path("traces/winter_storm.jsonl"))
    assert all(isinstance(run.events[each.reveal], Read) for each in of("statement", predictions(run.events)))


# --- a question can be answered, and is not given away ---


def test_a_question_comes_before_what_it_asks_and_the_right_choice_is_there_once(trace):
    for prediction in predictions(trace.events):
        assert 0 < prediction.before <= prediction.reveal < len(trace.events)
        values = [value for value, _ in prediction.choices]
        assert values.count(prediction.truth) == 1 and 2 <= len(values) == len(set(values))
        keys = [choice["key"] for choice in prediction.as_json()["choices"]]
        assert len(set(keys)) == len(keys) and all(len(key) == 1 for key in keys)


def test_the_same_run_is_asked_about_the_same_way_each_time(trace):
    assert predictions(trace.events) == predictions(list(trace.events))
    assert stepper(trace).live.data["run"]["questions"] == [
        prediction.as_json() for prediction in predictions(trace.events)
    ]


# --- it cannot be won with one key ---


def test_always_giving_the_commonest_answer_is_right_less_than_three_times_in_five():
    guess = constant_guess(asked for path in TRACES for asked in predictions(load_run(path).events))
    assert guess.questions > 80 and set(guess.kinds) == set(QUESTION_KINDS)
    assert guess.share < 0.6 and guess.right_with_key / guess.questions < 0.4


def test_a_constant_guess_is_counted_kind_by_kind():
    def asked(kind, *truths):
        return [Prediction(kind, 1, 1, "?", "", (("a", "A"), ("b", "B")), truth) for truth in truths]

    guess = constant_guess([*asked("vote", "a", "a", "b"), *asked("fact", "b")])
    assert (guess.questions, guess.right, guess.share) == (4, 3, 0.75)
    assert guess.kinds == {"fact": (1, "b", 1), "vote": (3, "a", 2)} and guess.right_with_key == 2
    assert constant_guess([]).share == 0.0


def test_the_words_of_a_question_on_a_text_do_not_hold_its_answer(trace):
    for each in of("tool", predictions(trace.events)):
        assert dict(each.choices)[each.truth] not in each.told
    for each in of("answer", predictions(trace.events)):
        before = trace.events[: each.before]
        assert not any(isinstance(event, Answered) for event in before)
