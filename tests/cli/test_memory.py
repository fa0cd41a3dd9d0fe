"""`kgot-lab ask --memory FILE` and `kgot-lab memory FILE`: a second question knows what the first one taught,
until it is retracted.
"""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from support.command_line import FIRST, QUESTION, REST, RETRIEVE, asking, begun, replies
from support.openai_server import openai_server
from support.waiting import AMPLE

from kgot_lab.memory.claims.claims import open_claims

pytestmark = pytest.mark.usefixtures("here")
# what the reference preset asks where its graph answers at once
KNOWING = [RETRIEVE, RETRIEVE, RETRIEVE, *REST[-3:]]
FACT = "Ada Lovelace | born in | London"
PASSWORD = "secret-71c0"


@pytest.fixture
def asked_once(kgot_lab):
    """A memory that one question has taught."""
    with openai_server(*replies(*FIRST, *REST)) as server:
        ran = kgot_lab(*asking(server, "--memory", "memory.db", "--trace", "first.jsonl"))
    assert ran.code == 0, ran.err
    return ran


def test_the_second_question_reads_what_the_first_one_taught_and_says_what_is_old(kgot_lab, asked_once):
    assert "new: Ada Lovelace --[born in]--> London" in asked_once.out
    assert "memory: 1 new claim; 1 fact in all" in asked_once.out
    with openai_server(*replies(*KNOWING)) as server:
        ran = kgot_lab(*asking(server, "--memory", "memory.db", "--json"))
        assert ran.code == 0 and len(server.bodies) == len(KNOWING) < len([*FIRST, *REST]), ran.err
    told = json.loads(ran.out)
    assert told["answer"] == "London" and "the question begins with 1 fact" in ran.err
    (old,) = told["memory"]["old"]
    assert old["sources"] == ["ada.md#1"] and old["object"] == "London" and not told["memory"]["new"]
    assert told["memory"]["learnt"]["new"] == 0 and told["memory"]["facts"] == 1
    with openai_server(*replies(*KNOWING)) as server:
        ran = kgot_lab(*asking(server, "--memory", "memory.db"))
    assert "Answer: London" in ran.out and "known since 20" in ran.out and "from ada.md#1" in ran.out, ran.err


def test_a_memory_is_looked_into_changed_and_changed_back(kgot_lab, asked_once):
    (row,) = json.loads(kgot_lab("memory", "memory.db", "facts", "--json").out)
    assert row["sources"] == ["ada.md#1"] and 0 < row["confidence"] < 1
    assert row["id"][:8] in kgot_lab("memory", "memory.db", "facts", "--about", "London").out
    assert kgot_lab("memory", "memory.db", "facts", "--about", "Paris", "--json").out == "[]\n"
    why = json.loads(kgot_lab("memory", "memory.db", "why", row["id"][:8], "--json").out)
    assert why["holds"]
    assert why["claims"][0]["sentence"] == "Ada Lovelace was born in London in 1815."
    assert why["claims"][0]["said_by"]
    assert [(each["question"], each["answer"]) for each in why["answers"]] == [(QUESTION, "London")]
    assert (
        "ada.md#1 “Ada Lovelace was born in London in 1815.”"
        in kgot_lab("memory", "memory.db", "why", FACT).out
    )
    retracted = kgot_lab("memory", "memory.db", "retract", "--source", "ada.md#1")
    assert "change 2: 1 fact fell" in retracted.out
    assert f"an answer rested on it: {QUESTION} London" in retracted.out
    assert "does not hold" in kgot_lab("memory", "memory.db", "why", FACT).out
    undone = json.loads(kgot_lab("memory", "memory.db", "undo", 2, "--json").out)
    assert undone["risen"] == [{"subject": "Ada Lovelace", "relation": "born in", "object": "London"}]
    assert undone["change"] == 3
    log = json.loads(kgot_lab("memory", "memory.db", "log", "--json").out)
    assert [(each["action"], each["by"]) for each in log[1:]] == [
        ("retract source", "command line"),
        ("undo", "command line"),
    ]
    assert log[1]["of"] == ["ada.md#1"]
    assert "forgot source: ada.md#1" in kgot_lab("memory", "memory.db", "log").out
    assert log[0]["by"].startswith("run ")
    assert "took back change 2" in kgot_lab("memory", "memory.db", "log").out
    then = log[1]["at"]
    assert json.loads(kgot_lab("memory", "memory.db", "facts", "--as-of", then, "--json").out) == []


def test_of_a_document_that_is_named_in_place_of_its_passages_these_are_said(kgot_lab, asked_once):
    for command in (("retract",), ("erase", "--yes")):
        ran = kgot_lab("memory", "memory.db", *command, "--source", "ada.md")
        assert ran.code == 1 and "nothing was changed; its passages are sources: ada.md#1" in ran.err


def test_what_nothing_was_learnt_from_cannot_be_retracted_and_what_is_near_it_is_said(kgot_lab, asked_once):
    for command in (("retract",), ("erase", "--yes")):
        typed = kgot_lab("memory", "memory.db", *command, "--source", "aba.md#1")
        assert typed.code == 1
        assert "nothing was learnt from 'aba.md#1'" in typed.err
        assert "near it is ada.md#1" in typed.err
        fact = kgot_lab("memory", "memory.db", *command, "--fact", "Ada Lovelace | born in | Rome")
        assert fact.code == 1 and "nothing is known of Ada Lovelace --[born in]--> Rome" in fact.err
    assert len(json.loads(kgot_lab("memory", "memory.db", "log", "--json").out)) == 1
    assert kgot_lab("memory", "memory.db", "retract", "--source", "ada.md#1").code == 0
    twice = kgot_lab("memory", "memory.db", "retract", "--source", "ada.md#1")
    assert twice.code == 0 and "it is retracted already" in twice.err


def test_a_fact_of_which_nothing_is_known_is_not_said_to_be_one_that_fell(kgot_lab, asked_once):
    assert (
        "nothing is known of it"
        in kgot_lab("memory", "memory.db", "why", "Ada Lovelace | born in | Rome").out
    )


def test_a_retracted_source_is_not_read_by_the_next_question(kgot_lab, asked_once):
    kgot_lab("memory", "memory.db", "retract", "--source", "ada.md#1")
    with openai_server(
        *replies(
            *FIRST, {"statements": ["add('Charles Babbage', 'designed', 'Analytical Engine')"]}, *REST[1:]
        )
    ) as server:
        ran = kgot_lab(*asking(server, "--memory", "memory.db"))
        asked = "".join(json.dumps(body) for body in server.bodies)
    assert ran.code == 0 and "the question begins with 0 facts" in ran.err, ran.err
    assert "born in London in 1815" not in asked and "Analytical Engine" in asked


def test_erasing_asks_first_and_leaves_nothing(kgot_lab, asked_once):
    refused = kgot_lab("memory", "memory.db", "erase", "--fact", FACT)
    assert refused.code == 1 and "1815" in Path("memory.db").read_bytes().decode("latin-1")
    assert (
        "erased: 1 fact, 1 claim, 1 answer"
        in kgot_lab("memory", "memory.db", "erase", "--fact", FACT, "--yes").out
    )
    in_no_id = r"(?<![0-9a-f])1815(?![0-9a-f])"  # four digits may stand by chance in an id
    assert not re.search(in_no_id, Path("memory.db").read_bytes().decode("latin-1"))
    nowhere = kgot_lab("memory", "memory.db", "erase", "--source", "nowhere", "--yes")
    assert nowhere.code == 1 and "nothing was learnt from 'nowhere'" in nowhere.err


def test_a_memory_may_be_on_a_server_by_its_address_whose_password_is_shown_to_nobody(kgot_lab, postgres_url):
    """Asked twice, looked into and erased, as in a file; the address gets a password, which the embedded
    server does not ask for.
    """
    where = conninfo_to_dict(postgres_url)
    rest = urlencode({"host": where["host"], "port": where["port"]})
    address = f"postgresql://{where['user']}:{PASSWORD}@/{where['dbname']}?{rest}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS kgot_claims CASCADE")
    try:
        told = []
        for kept in ([*FIRST, *REST], KNOWING):
            with openai_server(*replies(*kept)) as server:
                told.append(kgot_lab(*asking(server, "--memory", address, "--trace", f"{len(told)}.jsonl")))
        assert "memory: 1 new claim; 1 fact in all" in told[0].out and "known since 20" in told[1].out, told[
            1
        ].err
        with psycopg.connect(postgres_url) as connection:
            assert connection.execute("SELECT count(*) FROM kgot_claims.facts").fetchone() == (1,)
        assert len(json.loads(kgot_lab("memory", address, "facts", "--json").out)) == 1
        refused = kgot_lab("memory", address, "erase", "--fact", FACT)
        assert refused.code == 1 and "for good?" in refused.err
        erased = kgot_lab("memory", address, "erase", "--fact", FACT, "--yes")
        assert "erased: 1 fact" in erased.out and kgot_lab("memory", address, "facts", "--json").out == "[]\n"
        shown = "".join(f"{ran.out}{ran.err}" for ran in (*told, refused, erased))
        assert PASSWORD not in shown
        assert PASSWORD not in "".join(path.read_text() for path in Path().glob("*.jsonl"))
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS kgot_claims CASCADE")


def test_an_erasure_names_the_runs_whose_traces_still_hold_what_they_read(kgot_lab, asked_once):
    """The text goes from the memory's files; the trace is the run's, and is found by the name that is told."""
    text = b"was born in London in 1815"
    # what counts for nothing is erased as well
    assert kgot_lab("memory", "memory.db", "retract", "--source", "ada.md#1").code == 0
    ran = kgot_lab("memory", "memory.db", "erase", "--source", "ada.md#1", "--yes", "--json")
    (run,) = json.loads(ran.out)["runs"]
    assert f"may still be in the traces and recordings of {run}" in ran.err
    assert [path.name for path in Path().glob("memory.db*") if text in path.read_bytes()] == []
    with Path("first.jsonl").open() as trace:
        assert f"run {json.loads(trace.readline())['run']}" == run
        assert text in Path("first.jsonl").read_bytes()


@pytest.mark.extended
def test_a_run_that_was_stopped_learns_when_it_is_gone_on_with(kgot_lab):
    with openai_server(*replies(*FIRST, *REST)) as server:
        ran = kgot_lab(*asking(server, "--memory", "memory.db", "--trace", "run.jsonl", "--max-calls", 5))
        assert ran.code == 1
        with open_claims("memory.db", new=False) as claims:
            assert not claims.log()
        resumed = kgot_lab(*ran.again[1:], "--max-calls", 50)
        assert "Answer: London" in resumed.out and "memory: 1 new claim" in resumed.out, resumed.err
        again = kgot_lab("resume", "run.jsonl", "--documents", "my papers", "--model", f"{server.url}#m")
    assert "memory: 0 new claims; 1 fact in all" in again.out


@pytest.mark.extended
def test_two_commands_that_ask_at_once_with_one_file_leave_the_facts_of_both(kgot_lab):
    together = threading.Barrier(2)

    def last(answer):
        def once_both_are_there(_):
            together.wait(AMPLE)  # neither knew what the other learns, and both learn now
            return replies({"answer": answer})[0]

        return once_both_are_there

    engine = {"statements": ['add("Charles Babbage", "designed", "Analytical Engine")']}
    find = {"calls": [{"tool": "search", "arguments": {"query": "Charles Babbage"}}]}
    question, told = "What did Charles Babbage design?", "Analytical Engine"
    with (
        openai_server(*replies(*FIRST, *REST[:-1]), last("London")) as one,
        openai_server(*replies(*FIRST[:3], find, engine, *REST[1:-2], {"answer": told}), last(told)) as other,
    ):
        words = (
            asking(one, "--memory", "memory.db", "--trace", "one.jsonl"),
            asking(other, "--memory", "memory.db", "--trace", "other.jsonl"),
        )
        words[1][1] = question
        both = [begun(word) for word in words]
        ended = [process.communicate(timeout=AMPLE) for process in both]
    assert [process.returncode for process in both] == [0, 0], ended
    assert all("begins with 0 facts" in err and "memory: 1 new claim" in out for out, err in ended), ended
    facts = json.loads(kgot_lab("memory", "memory.db", "facts", "--json").out)
    assert [(fact["object"], fact["sources"]) for fact in facts] == [
        ("London", ["ada.md#1"]),
        (told, ["babbage.md#1"]),
    ]
    with open_claims("memory.db") as claims:
        assert len({change.by for change in claims.log()}) == len(claims.log()) == 2
        assert [[each.id for each in claims.answers_on(fact)] for fact in claims.facts()] == [
            [QUESTION],
            [question],
        ]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["ask", QUESTION, "--memory", "my papers"], "is a folder"),
        (["ask", QUESTION, "--memory", "my papers/ada.md"], "not an SQLite file"),
        (["ask", QUESTION, "--memory", "new.db"], "or --memory FILE where facts hold in it"),
        (["ask", QUESTION, "--memory", "new.db", "--as-of", "yesterday"], "a time is such as"),
        (["ask", QUESTION, "--memory", "new.db", "--keep"], "leave one out"),
        (["ask", QUESTION, "--as-of", "2026-11-23"], "name it with --memory"),
        (["memory", "none.db", "facts"], "there is no memory at none.db"),
        (["memory", "my papers/ada.md", "log"], "not an SQLite file"),
    ],
)
def test_what_cannot_be_done_is_one_line_before_a_model_is_asked(kgot_lab, words, why):
    ran = kgot_lab(*words)
    assert ran.code == 1 and why in ran.err and ran.err.startswith("error: ") and ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["why", "abcdef"], "no fact is called 'abcdef'"),
        (["retract"], "--source ID or --fact FACT"),
        (["erase", "--source", "a", "--fact", "b"], "one of them"),
        (["undo", 9], "there is no change 9"),
        (["undo", 10**30], "it is too large"),
    ],
)
def test_what_a_memory_does_not_know_is_said(kgot_lab, asked_once, words, why):
    ran = kgot_lab("memory", "memory.db", *words)
    assert ran.code == 1 and why in ran.err
