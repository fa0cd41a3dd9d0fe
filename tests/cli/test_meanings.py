"""`kgot-lab memory FILE` on what relations and names mean, and what the answers in it rest on; `kgot-lab
certify TRACE`.
"""

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
        claims.learn(
            [
                said("Ada_Byron wrote notes", "book"),
                said("Ada_Byron knows Charles", "book"),
                said("ada-byron knows Charles", "blog"),
            ]
        )
        claims.note_answer("Where does Ada live?", "London", [fact(LONDON)])
    return "memory.db"


def rows(ran):
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_a_declared_relation_changes_what_answers_and_keeps_both_facts(kgot_lab, moved):
    assert [
        row["now"] for row in rows(kgot_lab("memory", moved, "changes", "Ada", "lives_in", "--json"))
    ] == [False, True]
    both = rows(kgot_lab("memory", moved, "changes", "Ada", "lives_in", "--json"))[1]
    # nobody has said that one lives in one place
    assert both["objects"] == ["London", "Paris"] and not both["contested"]
    assert (
        rows(kgot_lab("memory", moved, "declare", "lives_in", "single", "--by", "Grace", "--json"))["change"]
        == 3
    )
    told = kgot_lab("memory", moved, "changes", "Ada", "lives_in")
    assert told.out.splitlines() == [
        "  London   from 2010-01-01 until 2019-01-01",
        "* Paris   from 2019-01-01",
    ]
    assert len(rows(kgot_lab("memory", moved, "facts", "--about", "Ada", "--json"))) == 2
    assert (
        "nothing was changed: lives_in is single already"
        in kgot_lab("memory", moved, "declare", "lives_in", "single").out
    )
    assert kgot_lab("memory", moved, "undo", 3).code == 0
    assert rows(kgot_lab("memory", moved, "changes", "Ada", "lives_in", "--json"))[1]["objects"] == [
        "London",
        "Paris",
    ]


def test_relations_are_suggested_with_counts_and_count_for_nothing_before_they_are_declared(kgot_lab, moved):
    kgot_lab("memory", moved, "declare", "lives_in", "single")
    listed = kgot_lab("memory", moved, "relations")
    assert listed.out.splitlines()[0] == "lives_in: declared single"
    assert "knows: single? 0 of 2 subjects with several objects" in listed.out
    assert "once it is declared" in listed.err
    assert {row["relation"] for row in rows(kgot_lab("memory", moved, "relations", "--json"))} == {
        "lives_in",
        "knows",
        "wrote",
    }
    slip = kgot_lab("memory", moved, "declare", "livesin", "single")
    assert slip.code == 0 and "no fact has the relation 'livesin' yet" in slip.err
    wrong = kgot_lab("memory", moved, "declare", "lives_in", "one")
    assert wrong.code == 1 and "unknown cardinality" in wrong.err
    assert "nothing is known of that" in kgot_lab("memory", moved, "changes", "Ada", "livesin").err


def test_names_are_proposed_merged_and_unmerged_exactly(kgot_lab, moved):
    with open_claims(moved) as claims:
        before = claims.graph_hash(claims=True)
    (proposed,) = rows(kgot_lab("memory", moved, "names", "--json"))
    assert {proposed["kept"], proposed["other"]} == {"Ada_Byron", "ada-byron"}
    assert proposed["reasons"]
    assert not proposed["merged"]
    assert f"merge {proposed['kept']!r} {proposed['other']!r}?" in kgot_lab("memory", moved, "names").out
    assert kgot_lab("memory", moved, "merge", "Ada_Byron", "ada-byron").code == 0
    assert rows(kgot_lab("memory", moved, "names", "--json")) == [
        {"kept": "Ada_Byron", "other": "ada-byron", "merged": True, "reasons": []}
    ]
    (knows,) = rows(kgot_lab("memory", moved, "facts", "--about", "Charles", "--json"))
    assert set(knows["sources"]) == {"book", "blog"}
    assert "circle" in kgot_lab("memory", moved, "merge", "ada-byron", "Ada_Byron").err
    assert "no fact names 'Adda'" in kgot_lab("memory", moved, "merge", "Ada_Byron", "Adda").err
    assert kgot_lab("memory", moved, "unmerge", "ada-byron").code == 0
    with open_claims(moved) as claims:
        assert claims.graph_hash(claims=True) == before


def test_an_answer_says_what_it_rests_on_and_is_hedged_or_withheld_once_that_does_not_hold(kgot_lab, moved):
    (answer,) = rows(kgot_lab("memory", moved, "answers", "--json"))
    assert (answer["question"], answer["ruling"], answer["told"]) == (
        "Where does Ada live?",
        "passes",
        "London",
    )
    assert answer["facts"][0]["state"] == "one source" and answer["facts"][0]["sole_sources"] == ["letter 1"]
    kgot_lab("memory", moved, "declare", "lives_in", "single")
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
