"""`kgot-lab memory FILE … --user NAME` and `kgot-lab ask --memory FILE --user NAME`: what a user said is recalled,
corrected and erased at the command line, and never that of another user.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import replies
from support.every import every
from support.openai_server import openai_server

pytestmark = pytest.mark.usefixtures("here")
ANA = ("--user", "ana")
READ = [
    *[{"statement": "result = facts()"}] * 5,
    {"needed": False},
]  # what the reference preset asks of a graph alone


@pytest.fixture
def memory(kgot_lab):
    """The command line on a file with what Ana and Bob said."""

    def run(*words):
        return kgot_lab("memory", "me.db", *words)

    run("add", "I work at Acme. I live in Rome.", *ANA, "--at", "2026-03-01")
    run("add", "I left Acme; I'm at Borealis now.", *ANA, "--at", "2026-06-01T10:00+02:00")
    run("add", "I live in Kiel.", "--user", "bob", "--at", "2026-03-01")
    return run


def objects(ran) -> list[str]:
    assert ran.code == 0, ran.err
    return [fact["object"] for fact in json.loads(ran.out)]


def test_facts_are_those_of_a_user_at_a_time_and_never_the_sentences(memory):
    assert objects(memory("facts", *ANA, "--json")) == ["Rome", "Borealis"]
    assert objects(memory("facts", *ANA, "--as-of", "2026-04-01", "--json")) == ["Acme", "Rome"]
    assert objects(memory("facts", *ANA, "--about", "Rome", "--json")) == ["Rome"]
    assert objects(memory("facts", "--user", "bob", "--json")) == ["Kiel"]
    assert sorted(objects(memory("facts", "--json"))) == ["Borealis", "Kiel", "Rome"]
    assert "said" not in memory("facts").out and "ana/2026-03-01" in memory("facts", *ANA).out


def test_recall_is_asked_of_another_time(memory):
    assert "Borealis" in memory("recall", "Where do I work?", *ANA).out
    asked = ("recall", "Where do I work?", *ANA, "--as-of", "2026-04-01", "--json")
    (first, *_) = json.loads(memory(*asked).out)
    assert first["line"] == "- 2026-03-01: I work at Acme." and first["facts"][0]["object"] == "Acme"


def test_a_correction_and_a_forgotten_message_are_undone_by_their_numbers(memory):
    assert "lives_in]--> Bergen" in memory("correct", "ana | lives_in | Rome", "Bergen", *ANA).out
    assert "Bergen" in objects(memory("facts", *ANA, "--json"))
    (last,) = json.loads(memory("history", *ANA, "--json").out)[2:]
    assert memory("undo", last["change"], "--user", "bob").code == 1
    memory("undo", last["change"], *ANA)
    assert objects(memory("facts", *ANA, "--json")) == ["Rome", "Borealis"]
    id = json.loads(memory("facts", *ANA, "--json").out)[1]["id"]
    forgotten = json.loads(memory("forget", "--fact", id[:8], *ANA, "--json").out)
    assert "Borealis" not in memory("recall", "Borealis", *ANA).out
    assert memory("undo", forgotten["change"], *ANA).code == 0
    assert "took back change" in memory("log", *ANA).out and "bob" not in memory("log", *ANA).out
    assert "Borealis" in memory("recall", "Borealis", *ANA).out


def test_the_log_says_what_happened_and_why_says_who_took_a_fact_back(memory):
    forgotten = memory("forget", "--fact", "ana | lives_in | Rome", *ANA).out
    assert "2 facts fell" in forgotten and "said" not in forgotten
    why = memory("why", "ana | lives_in | Rome").out
    assert "(does not hold)" in why and "(retracted by ana on 2026" in why
    log = memory("log", *ANA).out
    assert "told: I live in Rome." in log and "forgot source: ana/2026" in log and "learn" not in log
    memory("correct", "ana | works_at | Borealis", "Bolt", *ANA)
    assert "corrected: Correction: ana works at Bolt, not Borealis." in memory("log", *ANA).out


def test_erasing_takes_a_message_or_all_of_one_user(memory):
    refused = memory("erase", *ANA)
    assert refused.code == 1 and "everything that ana said" in refused.err
    assert "erased: " in memory("erase", "--fact", "ana | lives_in | Rome", *ANA, "--yes").out
    assert objects(memory("facts", *ANA, "--json")) == ["Borealis"]
    assert memory("erase", *ANA, "--yes").code == 0
    assert memory("recall", "Where do I work?", *ANA).out == ""
    assert objects(memory("facts", "--json")) == ["Kiel"]
    assert b"Borealis" not in b"".join(path.read_bytes() for path in Path().glob("me.db*"))


def test_a_message_without_a_fact_is_forgotten_and_erased_by_its_words(memory):
    for text in ("My locker is number 42.", "The locker is blue."):
        memory("add", text, *ANA, "--at", "2026-07-01")
    assert "2 messages of 'ana' have the words 'locker'" in memory("forget", "locker", *ANA).err
    assert "fell" in memory("forget", "locker is number 42", *ANA).out
    assert "42" not in memory("recall", "locker", *ANA).out
    assert memory("erase", "locker", *ANA, "--yes").code == 1  # a whole sentence
    assert "erased: " in memory("erase", "the locker is blue", *ANA, "--yes").out
    assert "blue" not in memory("recall", "locker", *ANA).out


@every("words", [["recall", "Rome"], ["facts"], ["history"], ["erase", "--yes"]])
def test_a_user_who_has_said_nothing_is_named(memory, words):
    assert "'Anna' has said nothing in me.db" in memory(*words, "--user", "Anna").err


@every(
    "words, says",
    [
        (["forget", *ANA], "--source ID or --fact FACT"),
        (["forget", "--source", "a", "--fact", "b", *ANA], "one of them"),
        (["forget", "--fact", "bob | lives_in | Kiel", *ANA], "nothing is known of bob"),
        (["forget", "--source", "bob/2026-03-01T00:00:00+00:00", *ANA], "nothing was learnt from"),
        (["erase", "--fact", "bob | lives_in | Kiel", *ANA, "--yes"], "nothing is known of bob"),
        (["erase", "--yes"], "--source ID or --fact FACT"),
        (["erase", "I live in Kiel.", "--yes"], "--user NAME"),
        (["forget", "I live in Kiel.", *ANA], "'ana' has said nothing that is"),
        (["forget", "Rome", "--source", "a", *ANA], "one of them"),
        (["correct", "ana | lives_in | Oslo", "Bergen", *ANA], "does not hold"),
        (["correct", "ana | lives_in | Rome", " ", *ANA], "blank"),
        (["add", "I live in Oslo.", *ANA, "--at", "soon"], "a time is such as"),
        (["add", "I live in Oslo.", *ANA, "--at", "2999-01-01"], "not said yet"),
        (["recall", "Rome", "--user", "a/b"], "the name of a user"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(memory, words, says):
    before = memory("log").out
    ran = memory(*words)
    assert ran.code == 1 and says in ran.err and ran.err.count("\n") == 1, ran.err
    assert memory("log").out == before


@every(
    "words",
    [
        ["recall", "x"],
        ["facts"],
        ["history"],
        ["forget", "--source", "x"],
        ["correct", "a | b | c", "d"],
        ["erase"],
    ],
)
def test_nothing_but_add_makes_a_file(kgot_lab, words):
    ran = kgot_lab("memory", "none.db", *words, *ANA)
    assert ran.code == 1 and "there is no memory at none.db" in ran.err and not Path("none.db").exists()


def test_a_question_begins_with_what_the_user_said_and_leaves_the_memory_as_it_was(kgot_lab, memory):
    before = memory("log").out
    with openai_server(*replies(*READ, *[{"answer": "Borealis"}] * 2)) as server:
        ask = ("ask", "Where do I work?", "--model", f"{server.url}#m", "--memory", "me.db", *ANA)
        ran = kgot_lab(*ask, "--trace", "run.jsonl", "--json")
        prompt = server.bodies[0]["messages"][-1]["content"]
    assert ran.code == 0 and "begins with 3 sentences, and nothing is learnt" in ran.err, ran.err
    assert "what the user ana said" in prompt and "2026-06-01: I left Acme" in prompt and "Kiel" not in prompt
    told = json.loads(ran.out)
    assert told["answer"] == "Borealis" and memory("log").out == before
    sources = {each["source"] for each in json.loads(memory("recall", "work", *ANA, "--json").out)}
    cited = {support["document"] for each in told["supports"] for support in each}
    assert cited and cited <= sources and "I left Acme" in str(told["supports"])
    resumed = kgot_lab("resume", "run.jsonl")
    assert resumed.code == 0 and memory("log").out == before, resumed.err


def test_a_question_is_asked_of_an_earlier_time_of_the_user(kgot_lab, memory):
    with openai_server(*replies(*READ, *[{"answer": "Acme"}] * 2)) as server:
        ask = ("ask", "Where do I work?", "--model", f"{server.url}#m", "--memory", "me.db", *ANA)
        ran = kgot_lab(*ask, "--as-of", "2026-04-01")
        assert "Borealis" not in json.dumps(server.bodies)
    assert "Answer: Acme" in ran.out, ran.err


@every(
    "words, says",
    [
        (["--user", "ana"], "name it with --memory FILE"),
        (["--memory", "none.db", *ANA], "there is no memory at none.db"),
        (["--memory", "me.db", "--user", "a/b"], "the name of a user"),
        (["--memory", "me.db", "--user", "nobody"], "'nobody' has said nothing"),
    ],
)
def test_a_question_to_no_memory_is_refused_before_a_model_is_asked(kgot_lab, memory, words, says):
    ran = kgot_lab("ask", "Where do I work?", *words)
    assert ran.code == 1 and says in ran.err and not Path("none.db").exists()
