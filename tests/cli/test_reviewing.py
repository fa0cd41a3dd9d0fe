"""`kgot-lab memory FILE waiting` and `decide`: what a run could not ground waits, and counts when somebody
accepts it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.command_line import FIRST, REST, RETRIEVE, asking, begun, replies
from support.openai_server import openai_server
from support.saying import fact, inferred, said
from support.waiting import AMPLE

from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.claims.claims import open_claims
from kgot_lab.types import Triple

pytestmark = pytest.mark.usefixtures("here")
UNGROUNDED = {"statements": ['add("Ada Lovelace", "visited", "Turin")']}
LONDON = said(
    "Ada lives_in London",
    "letter",
    confidence=0.5,
    span=Span(27, 46, "Ada lives in London"),
    said_by="Charles",
)
KNOWS = said("Ada knows Mary", "novel", confidence=0.6)
COLOURS = ("\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x08", "\u202e")
BREAKS = ("\r", "\n", "\x0b", "\x85", "\u2028")


@pytest.fixture
def waiting(here):
    """A memory in which two claims wait, the second surer and the first of more consequence."""
    with open_claims("memory.db") as claims:
        claims.learn(
            [
                KNOWS,
                LONDON,
                said("Ada lives_in Paris", "novel"),
                inferred("Ada lives_in England", "Ada lives_in London"),
            ]
        )


def told(ran):
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def decided(kgot_lab, claim, *words):
    return kgot_lab("memory", "memory.db", "decide", claim.id[:8], *words)


@pytest.mark.extended
def test_what_a_run_could_not_ground_counts_for_the_next_question_once_it_is_accepted(kgot_lab):
    with openai_server(
        *replies(*FIRST, UNGROUNDED, *[RETRIEVE] * 3, {"needed": False}, *[{"answer": "Turin"}] * 2)
    ) as server:
        ran = kgot_lab(*asking(server, "--memory", "memory.db"))
    assert "memory: 1 new claim (1 to review); 0 facts in all" in ran.out, ran.err
    (row,) = told(kgot_lab("memory", "memory.db", "waiting", "--json"))
    assert (row["object"], row["confidence"], row["sentence"]) == ("Turin", 0.5, "") and row["said_by"]
    assert (
        "no sentence is noted that says it"
        in kgot_lab("memory", "memory.db", "waiting", row["claim"][:8]).out
    )
    accepted = kgot_lab("memory", "memory.db", "decide", row["claim"][:8], "accept", "--by", "Grace")
    assert "accepted: Ada Lovelace --[visited]--> Turin\nchange 2: 1 fact began to hold" in accepted.out
    with openai_server(*replies(RETRIEVE, RETRIEVE, RETRIEVE, *REST[-3:])) as server:
        ran = kgot_lab(*asking(server, "--memory", "memory.db"))
    assert "the question begins with 1 fact" in ran.err, ran.err


def test_what_waits_is_listed_with_what_a_decision_would_change_first(kgot_lab, waiting):
    listed = kgot_lab("memory", "memory.db", "waiting")
    assert listed.out.splitlines() == [
        f"{LONDON.id[:8]}  0.50  +2  Ada --[lives_in]--> London  [letter]",
        f"{KNOWS.id[:8]}  0.60  +1  Ada --[knows]--> Mary  [novel]",
    ]
    assert "2 claims to decide on" in listed.err
    first, second = told(kgot_lab("memory", "memory.db", "waiting", "--json"))
    assert (first["claim"], second["claim"]) == (LONDON.id, KNOWS.id) and len(first["starts"]) == 2


def test_one_is_shown_with_its_sentence_what_it_would_change_and_what_it_contradicts(kgot_lab, waiting):
    with open_claims("memory.db") as claims:
        claims.declare("lives_in", "single")
    shown = kgot_lab("memory", "memory.db", "waiting", LONDON.id[:8]).out
    assert (
        "  “Ada lives in London”\n  from letter, characters 27 to 46; said by Charles\n  Confidence 0.50, not calibrated"
        in shown
    )
    assert "begins to hold: Ada --[lives_in]--> England" in shown
    assert "it contradicts: Ada --[lives_in]--> Paris" in shown
    row = told(kgot_lab("memory", "memory.db", "waiting", LONDON.id[:8], "--json"))
    assert row["sentence"] == "Ada lives in London" and row["single"] and row["others"] == [
        {"subject": "Ada", "relation": "lives_in", "object": "Paris"}
    ]  # fmt: skip


def test_a_decision_is_in_the_log_by_name_and_undone_as_every_change_is(kgot_lab, waiting):
    accepted = told(decided(kgot_lab, LONDON, "accept", "--by", "Grace", "--json"))
    assert (accepted["claim"], accepted["verdict"], accepted["change"]) == (LONDON.id, "accept", 2)
    assert len(accepted["risen"]) == 2
    rejected = decided(kgot_lab, KNOWS, "reject")
    assert rejected.out == "rejected: Ada --[knows]--> Mary\nchange 3: nothing fell\n"
    assert (
        "Nothing waits. A claim does whose confidence is below 0.7"
        in kgot_lab("memory", "memory.db", "waiting").err
    )
    undone = told(kgot_lab("memory", "memory.db", "undo", 2, "--json"))
    assert undone["fallen"] == accepted["risen"]
    log = told(kgot_lab("memory", "memory.db", "log", "--json"))[1:]
    assert [(each["action"], each["by"]) for each in log] == [
        ("accept", "Grace"),
        ("reject", "command line"),
        ("undo", "command line"),
    ]
    (row,) = told(kgot_lab("memory", "memory.db", "waiting", "--json"))
    assert row["claim"] == LONDON.id


def test_an_override_gives_another_object_or_another_confidence(kgot_lab, waiting):
    assert "holds: Ada --[lives_in]--> Rome" in decided(kgot_lab, LONDON, "override", "--object", "Rome").out
    assert decided(kgot_lab, KNOWS, "override", "--confidence", 0.9).code == 0
    with open_claims("memory.db") as claims:
        assert claims.facts() == tuple(
            map(fact, ("Ada knows Mary", "Ada lives_in Paris", "Ada lives_in Rome"))
        )
        assert claims.confidence(KNOWS.fact) == pytest.approx(0.9)


def test_of_two_processes_that_decide_on_one_claim_at_once_one_is_told_that_it_came_second(kgot_lab, waiting):
    words = ["memory", "memory.db", "decide", LONDON.id]
    both = [begun([*words, "accept", "--by", "Grace"]), begun([*words, "reject", "--by", "Mary"])]
    ended = [(process.communicate(timeout=AMPLE), process.returncode) for process in both]
    assert sorted(code for _, code in ended) == [0, 1], ended
    (said_of_second,) = [err for (_, err), code in ended if code]
    with open_claims("memory.db") as claims:
        _, decision = claims.log()
    assert f"no longer waits. It was {decision.action}ed by {decision.by} on 20" in said_of_second


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ["waiting", "abcdefg"],
            "no claim that waits has an id that begins with 'abcdefg': `kgot-lab memory FILE waiting` lists them",
        ),
        (["decide", "1", "accept"], "no claim that waits has an id that begins with '1'"),
        (["decide", " ", "accept"], "is blank"),
        (["decide", LONDON.id, "acept"], "did you mean 'accept'? Known: accept, override, reject"),
        (["decide", LONDON.id, "accept", "--object", "Rome"], "is given with override"),
        (["decide", LONDON.id, "override"], "--confidence (another confidence)"),
        (["decide", LONDON.id, "override", "--confidence", "7"], "a number from 0 to 1"),
        (["decide", LONDON.id, "override", "--object", "London"], "accept it"),
        (["decide", LONDON.id, "accept", "--by", " "], "after --by is blank"),
    ],
)
def test_what_cannot_be_decided_is_one_line_and_changes_nothing(kgot_lab, waiting, words, why):
    ran = kgot_lab("memory", "memory.db", *words)
    assert ran.code == 1
    assert why in ran.err
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert not ran.out
    with open_claims("memory.db") as claims:
        assert len(claims.log()) == 1


def test_a_claim_that_was_decided_on_retracted_or_erased_says_what_became_of_it(kgot_lab, waiting):
    decided(kgot_lab, LONDON, "reject", "--by", "Mary")
    assert "no longer waits. It was rejected by Mary on 20" in decided(kgot_lab, LONDON, "accept").err
    kgot_lab("memory", "memory.db", "retract", "--source", "novel")
    assert (
        "no longer waits. It was dropped by command line on 20"
        in kgot_lab("memory", "memory.db", "waiting", KNOWS.id).err
    )
    kgot_lab("memory", "memory.db", "erase", "--source", "novel", "--yes")
    assert "error: Nothing waits." in decided(kgot_lab, KNOWS, "accept").err


@pytest.mark.parametrize("words", [["waiting"], ["decide", LONDON.id, "accept"]])
def test_a_file_that_is_no_memory_is_refused(kgot_lab, words):
    assert "not an SQLite file" in kgot_lab("memory", "my papers/ada.md", *words).err
    assert "there is no memory at none.db" in kgot_lab("memory", "none.db", *words).err
    assert not Path("none.db").exists()


texts = (
    st.text(max_size=12)
    | st.lists(st.sampled_from([*COLOURS, *BREAKS, "\u200b", "word", "|", "["]), max_size=6).map("".join)
).filter(lambda text: text.strip() and "\0" not in text)
hostile = st.builds(
    lambda parts, source, sentence, by: Claim(
        Triple(*parts), source, Span(0, 9, sentence), by, confidence=0.5
    ),
    st.tuples(texts, texts, texts),
    texts,
    texts,
    texts,
)


@pytest.mark.extended
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(hostile, min_size=1, max_size=4, unique_by=lambda claim: claim.id), texts)
def test_no_text_in_a_claim_breaks_a_line_or_commands_the_terminal(kgot_lab, claims, by):
    Path("memory.db").unlink(missing_ok=True)
    with open_claims("memory.db") as memory:
        memory.learn(claims)
    listed = kgot_lab("memory", "memory.db", "waiting")
    assert sorted(line[:8] for line in listed.out.split("\n")[:-1]) == sorted(c.id[:8] for c in claims)
    first = claims[0].id
    shown = kgot_lab("memory", "memory.db", "waiting", first)
    as_json = kgot_lab("memory", "memory.db", "waiting", first, "--json")
    assert shown.out.count("\n") == 5
    assert told(as_json)["claim"] == first
    assert as_json.out.isascii()
    assert as_json.out.count("\n") == 1
    accepted = kgot_lab("memory", "memory.db", "decide", first, "accept", "--by", by)
    second = kgot_lab("memory", "memory.db", "decide", first, "accept")
    assert accepted.out.count("\n") == 3 and second.code == 1 and second.err.count("\n") == 1
    for ran in (listed, shown, accepted, second, kgot_lab("memory", "memory.db", "log")):
        assert all(letter.isprintable() or letter in "\n\u200c\u200d" for letter in ran.out + ran.err)
