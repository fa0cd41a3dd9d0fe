"""What a run shows: each turn of the loop is found where it happens, by its event, and in the table that
data/README.md has.
"""

from __future__ import annotations

import gzip
import json
import runpy
from pathlib import Path

import pytest
from support.loop_script import ADA, FEW, WRITE, call, scripted, votes

from benchmarks.views.run_lessons import LESSONS, KnownAnswer, known_of, lessons_of
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import (
    Answered,
    Computed,
    Forced,
    Read,
    Started,
    ToolCall,
    ToolReturned,
    Voted,
    Wrote,
)
from kgot_lab.loop.trace import Trace, load_run
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import InMemory
from kgot_lab.tools.search import search
from kgot_lab.types import Diff, Document, Edge, Node

ROOT = Path(__file__).parents[2]
TOOL = search(ADA, bm25(ADA), k=2)
BOTH = [{"choice": "RETRIEVE", "text": "result = ["}, *votes("R", "R")]
GIVEN = {"merge": {"reason": "both"}, "tools": call(), "write": WRITE, "parse": {"answer": "1815"}}


def walked(limits=FEW, question="In which year was Ada Lovelace born?", **replies):
    with InMemory() as store:
        events = tuple(think(question, scripted(**{**GIVEN, **replies}), store, [TOOL], limits))
    return Trace("scripted", "", events)


def test_a_vote_that_inserts_and_how_it_was_split():
    vote = [*votes("I", "I", "I"), *votes("R", "I", "I", "R", "I"), *votes("R", "R", "R")]
    run = walked(FEW.but(steps=4), vote=vote)
    shown = lessons_of(run)
    assert [run.events[at].inserts for at in shown["INSERT by vote"]] == [3, 3]
    (split,) = shown["a vote split 3:2"]
    assert (run.events[split].inserts, run.events[split].retrieves) == (3, 2)
    assert "a vote split 2:1" not in shown
    expected = "a vote split 2:1"
    assert expected in lessons_of(walked(FEW.but(votes=3), vote=[*votes("I", "R", "I"), *votes("R", "R")]))


def test_a_step_that_a_rule_decides_is_no_vote():
    assert "INSERT by vote" not in lessons_of(
        Trace("", "", (Voted(choice="INSERT", inserts=0, retrieves=0, invalid=0, possible=0),))
    )


def test_a_refused_read_of_a_vote_that_is_repaired_and_finds_rows():
    run = walked(vote=[*votes("I", "I", "I"), *BOTH], mend={"statement": "result = facts('Ada Lovelace')"})
    shown = lessons_of(run)
    (at,) = shown["a wrong RETRIEVE repaired"]
    assert isinstance(run.events[at], Read) and run.events[at].statement == "result = facts('Ada Lovelace')"
    assert shown["a refused statement repaired"] == (at,)


def test_a_refused_read_that_stays_refused_is_not_repaired():
    run = walked(
        FEW.but(repairs=1),
        vote=[*votes("I", "I", "I"), *BOTH],
        mend={"statement": "result = ["},
        reread={"statement": "result = ["},
    )
    assert not {"a wrong RETRIEVE repaired", "a refused statement repaired"} & set(lessons_of(run))


def test_a_refused_write_that_is_repaired_is_no_repaired_retrieve():
    vote = [*votes("I", "I", "I"), *votes("R", "R", "R")]
    run = walked(vote=vote, write={"statements": ["add("]}, mend={"statement": WRITE["statements"][0]})
    shown = lessons_of(run)
    assert isinstance(run.events[shown["a refused statement repaired"][0]], Wrote)
    assert "a wrong RETRIEVE repaired" not in shown


def test_an_empty_read_that_is_asked_again_and_an_answer_that_is_forced():
    limits = FEW.but(steps=1, forced_reads=1, rereads=1)
    nothing = {"statement": "result = facts('Nobody')"}
    reread = {"statement": "result = facts('No one')"}
    run = walked(limits, vote=votes("I", "I", "I"), forced=nothing, reread=reread, guess={"answer": "1815"})
    shown = lessons_of(run)
    assert [run.events[at].role for at in shown["an empty read asked again"]] == ["read again"]
    assert isinstance(run.events[shown["a forced answer"][0]], Forced)
    assert "a forced answer" not in lessons_of(Trace("", "", (Forced(what="read"),)))


def test_arithmetic_counts_where_python_gave_something():
    made = (
        Computed(code="1", output="1"),
        Computed(code="1/0", output="ZeroDivisionError", failed=True),
        Computed(code="", output=""),
    )
    assert lessons_of(Trace("", "", made)) == {"arithmetic": (0,)}


def test_who_wins_is_known_where_the_head_of_a_trace_says_the_right_answer_and_that_of_rag():
    answered = (Answered(text="Oregon", forced=False),)
    about = {"gold": "Oregon", "rag": {"answer": "New York"}}
    assert known_of(Trace("", "", answered, about)) == KnownAnswer("Oregon", "New York")
    assert lessons_of(Trace("", "", answered, about)) == {"the graph wins over RAG": (0,)}
    expected = {"RAG wins over the graph": (0,)}
    assert lessons_of(Trace("", "", answered), KnownAnswer("New York", "New York")) == expected
    assert (
        lessons_of(Trace("", "", answered), KnownAnswer("Oregon", "Oregon"))
        == {}
        == lessons_of(Trace("", "", answered))
    )


def test_a_row_is_misread_where_it_holds_the_right_answer_and_another_is_given():
    rows = ({"subject": "M. Ward", "relation": "from", "object": "Portland, Oregon"},)
    events = (
        Read(statement="a", rows=rows),
        Read(statement="b", rows=("Maine",)),
        Answered(text="Portland", forced=False),
    )
    assert lessons_of(Trace("", "", events), KnownAnswer("Oregon")) == {"a row misread": (0,)}
    assert lessons_of(Trace("", "", events), KnownAnswer("Portland")) == {}
    said_by_itself = (Read(statement="result = ['Oregon']", rows=("Oregon",), constant=(0,)), events[-1])
    assert lessons_of(Trace("", "", said_by_itself), KnownAnswer("Oregon")) == {}


@pytest.mark.parametrize(
    ("second", "is_path"), [("M. Ward lives in Oregon.", True), ("M. Ward of Oregon made Vincent.", False)]
)
def test_a_path_of_two_hops_is_one_whose_ends_no_passage_names_together(second, is_path):
    passages = (Document("a", "Vincent is an album by M. Ward."), Document("b", second))
    edges = (Edge("Vincent", "album by", "M. Ward"), Edge("M. Ward", "lives in", "Oregon"))
    events = (
        Started(question="Who made Vincent, and in which state does he live?"),
        ToolReturned(call=ToolCall("search"), text="", sources=passages),
        Wrote(
            statement="",
            diff=Diff(added_nodes=tuple(map(Node, ("Vincent", "M. Ward", "Oregon"))), added_edges=edges),
        ),
        Answered(
            text="Oregon",
            forced=False,
            evidence=tuple(f"{e.source} --[{e.type}]--> {e.target}" for e in edges),
        ),
    )
    assert lessons_of(Trace("", "", events)) == ({"a path of two hops": (3,)} if is_path else {})


# --- the bundled runs ---


RUNS = {path.stem: load_run(path) for path in sorted(bundled_path("traces").glob("*.jsonl"))}


def test_the_table_in_the_readme_of_the_data_is_what_the_command_prints():
    told = runpy.run_path(str(ROOT / "benchmarks" / "views" / "run_events.py"))
    assert told["table_of_lessons"](RUNS) in bundled_path("README.md").read_text(encoding="utf-8"), (
        "run python -m benchmarks.views.run_events --table"
    )


def test_every_event_worth_teaching_happens_in_a_bundled_run():
    shown = {name for run in RUNS.values() for name in lessons_of(run)}
    assert set(LESSONS) - shown == set()


def test_only_one_of_them_is_shown_by_a_script_and_by_no_run_of_the_real_model():
    real = {
        name for title, run in RUNS.items() if not title.startswith("simulated_") for name in lessons_of(run)
    }
    assert set(LESSONS) - real == {"a wrong RETRIEVE repaired"}


def test_the_facts_of_the_bridge_come_from_two_texts_and_the_answer_is_right():
    run = RUNS["bridge_two_hops"]
    assert run.answer == known_of(run).gold and len(run.events[-1].passages) > 1


def test_what_the_head_of_a_bundled_run_says_of_rag_is_what_was_measured():
    results = ROOT / "benchmarks" / "results" / "hotpotqa_develop_rag.jsonl"
    lines = results.read_text(encoding="utf-8").splitlines()
    measured = {row["id"]: row for row in map(json.loads, lines[1:])}
    named = [run.about for run in RUNS.values() if "rag" in run.about]
    assert len(named) > 3
    for about in named:
        row = measured[about["question"]]
        assert (row["answer"], row["gold"]) == (about["rag"]["answer"], about["gold"])


def test_no_bundled_run_is_large():
    assert all(path.stat().st_size < 300_000 for path in bundled_path("traces").glob("*.jsonl"))


def test_only_questions_to_tune_on_are_shown():
    kept_back: set[str] = set()
    for folder in ("hotpotqa-train-100", "musique-train-100"):
        split = json.loads(bundled_path(f"{folder}/split.json").read_text(encoding="utf-8"))
        rows = map(
            json.loads,
            gzip.decompress(bundled_path(f"{folder}/queries.jsonl.gz").read_bytes()).decode().splitlines(),
        )
        kept_back |= {row["text"].strip() for row in rows if row["_id"] not in split["develop"]}
    assert len(kept_back) > 100 and not kept_back & {run.question.strip() for run in RUNS.values()}
