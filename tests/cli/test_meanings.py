"""`kgot-lab memory FILE answers`: what the answers in it rest on; `kgot-lab certify TRACE`."""

from __future__ import annotations

import json

import pytest
from support.saying import fact, said, year

from kgot_lab.io.files import bundled_path
from kgot_lab.memory.claims.claims import open_claims

pytestmark = pytest.mark.usefixtures("here")
LONDON, PARIS = "Ada lives_in London", "Ada lives_in Paris"


@pytest.fixture
def moved(here):
    """A memory in which Ada moves, told by two letters, with an answer that rests on her first home."""
    with open_claims("memory.db") as claims:
        claims.learn(
            [said(LONDON, "letter 1", valid_from=year(2010)), said(PARIS, "letter 2", valid_from=year(2019))]
        )
        claims.note_answer("Where does Ada live?", "London", [fact(LONDON)])
    return "memory.db"


def rows(ran):
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_an_answer_says_what_it_rests_on_and_is_hedged_or_withheld_once_that_does_not_hold(kgot_lab, moved):
    (answer,) = rows(kgot_lab("memory", moved, "answers", "--json"))
    assert (answer["question"], answer["ruling"], answer["told"]) == (
        "Where does Ada live?",
        "passes",
        "London",
    )
    assert answer["facts"][0]["state"] == "one source" and answer["facts"][0]["sole_sources"] == ["letter 1"]
    with open_claims(moved) as claims:
        claims.declare("lives_in", "single")
    told = kgot_lab("memory", moved, "answers")
    assert told.out.startswith(
        "hedged: Where does Ada live?\n  London (not certain: Ada – lives_in – London is out of date: it holds"
    )
    assert "in its place Paris" in told.out and "1 answer: 0 passes, 1 hedged, 0 withheld" in told.err
    assert kgot_lab("memory", moved, "retract", "--source", "letter 1").code == 0
    (answer,) = rows(kgot_lab("memory", moved, "answers", "--json"))
    assert answer["ruling"] == "withheld"
    assert answer["told"] == "No answer is given: nothing says: Ada – lives_in – ?."
    assert "London" not in json.dumps(answer) and "London" not in kgot_lab("memory", moved, "answers").out
    # nothing was asked by then
    assert rows(kgot_lab("memory", moved, "answers", "--as-of", "2012-01-01", "--json")) == []


def test_a_recorded_run_is_certified_from_its_trace(kgot_lab):
    ran = kgot_lab("certify", bundled_path("traces/hotpotqa_demo.jsonl"), "--json")
    told = rows(ran)
    assert told["answer"] == "Botswana" and told["ruling"] in ("passes", "hedged", "withheld")
    shown = kgot_lab("certify", bundled_path("traces/hotpotqa_demo.jsonl")).out
    assert shown.startswith(f"{told['ruling']}: {told['question']}\n  {told['told']}\n")
    assert told["facts"][0]["state"] in shown


def test_a_run_without_an_answer_and_a_file_that_is_no_run_are_one_line(kgot_lab, tmp_path):
    lines = bundled_path("traces/hotpotqa_demo.jsonl").read_text().splitlines()
    (tmp_path / "stopped.jsonl").write_text("\n".join(lines[: len(lines) // 2]) + "\n")
    (tmp_path / "none.jsonl").write_text("{}\n")
    for name in ("stopped.jsonl", "none.jsonl", "nowhere.jsonl"):
        ran = kgot_lab("certify", tmp_path / name)
        assert ran.code == 1 and ran.err.startswith("error: ") and ran.out == "" and ran.err.count("\n") == 1
