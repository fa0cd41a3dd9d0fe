"""Bad input to a memory of claims: one clear error or the right answer, and nothing lost.

Of the kinds that are not here, elsewhere stand: what a model may send (`test_agent.py`,
`test_reported_elsewhere.py`), malformed claims, circles that nothing holds up and long names
(`claims/test_claims.py`), clocks set back (`claims/test_two_times.py`), and processes that share a place
(`claims/test_claims_last.py`).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from support.saying import fact, inferred, said, year

from kgot_lab.errors import BadInput
from kgot_lab.llm.recorded import Scripted
from kgot_lab.memory.agent import Agent, AgentConfig, EntityMemory
from kgot_lab.memory.claims.certificate import certify
from kgot_lab.memory.claims.claim import Claim
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.knowledge import KnowledgeGraphMemory
from kgot_lab.memory.sqlite import ClaimTripleStore
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.memory.triples import InMemoryTripleStore
from kgot_lab.types import Triple

MILLION = "w" * 1_000_000


@pytest.fixture
def memory():
    with Claims(SQLiteClaims()) as opened:
        yield opened


def on_claims(claims, *replies):
    """A memory of triples on claims, whose model gives these replies."""
    return KnowledgeGraphMemory(ClaimTripleStore(claims), Scripted(replies))


def talking(remembered):
    config = AgentConfig(knowledge_graph=remembered, entity_memory=EntityMemory())
    return Agent(Scripted(lambda _: "Noted."), config=config)


# --- an unknown entity ---


def test_what_is_asked_of_an_entity_that_nobody_named_is_answered_with_nothing_and_changes_nothing(memory):
    memory.learn(said("Ada knows Charles"))
    state, unknown = (memory.graph_hash(claims=True), memory.log()), fact("Mallory owns Acme")
    assert not memory.holds(unknown) and memory.confidence(unknown) == 0 and memory.supports_of(unknown) == ()
    assert memory.facts("Mallory") == ()
    assert memory.current("Mallory", "owns").facts == ()
    assert memory.changes_of("Mallory", "owns") == ()
    assert memory.answers_on(unknown) == ()
    assert memory.triples([unknown]) == ()
    assert certify(memory, [unknown]).ruling == "withheld"
    assert on_claims(memory).build_context(["mallory"]) == ""
    assert memory.erase_fact(unknown).claims == 0
    with pytest.raises(BadInput, match="nothing was learnt of Mallory"):
        memory.retract_fact(unknown)
    assert (memory.graph_hash(claims=True), memory.log()) == state


def test_a_fact_about_an_entity_that_was_unknown_makes_it_known(memory):
    memory.learn(said("Ada knows Charles"))
    memory.learn(said("Charles built Engine"))
    told = on_claims(memory).build_context(["ada"])
    assert told.splitlines()[1:] == ["- Ada knows Charles (1.00)", "- Charles built Engine (1.00)"]


# --- circles of derivation ---


def test_a_derivation_that_a_merge_turns_into_its_own_premise_holds_nothing_up(memory):
    memory.learn(
        [said("Augusta is clever", "letter"), inferred("Ada is clever", "Augusta is clever", source="rule")]
    )
    memory.merge("Ada", "Augusta")
    assert memory.facts() == (fact("Ada is clever"),)
    fallen = memory.retract_source("letter")
    assert fallen.facts == (fact("Ada is clever"),) and memory.facts() == ()
    memory.undo(fallen.change)
    memory.unmerge("Augusta")
    assert memory.facts() == (fact("Ada is clever"), fact("Augusta is clever"))


def test_a_circle_learnt_in_two_steps_is_told_of_as_long_as_something_outside_it_holds(memory):
    memory.learn([said("a is a", "book"), inferred("b is b", "a is a")])
    memory.learn(inferred("a is a", "b is b"))
    made = on_claims(memory)
    assert made.count() == 2 and "a is a" in made.build_context(["b"]) + made.build_context(["a"])
    memory.erase_source("book")
    assert memory.facts() == () and made.build_context(["a", "b"]) == ""


# --- times ---

NAIVE, AWARE = datetime(2020, 1, 1), datetime(2019, 1, 1, tzinfo=timezone(timedelta(hours=9)))


@pytest.mark.parametrize(
    "act",
    [
        lambda memory: said("a is b", valid_from=AWARE, valid_until=NAIVE),
        lambda memory: said("a is b", valid_from=NAIVE, valid_until=AWARE + timedelta(days=999)),
        lambda memory: memory.as_of(valid=NAIVE),
        lambda memory: memory.as_of(known=NAIVE, valid=AWARE),
        lambda memory: memory.current("Ada", "knows", NAIVE),
        lambda memory: certify(memory, [fact("Ada knows Charles")], at=NAIVE),
    ],
)
def test_a_time_without_a_zone_beside_one_with_a_zone_is_one_clear_error(memory, act):
    memory.learn(said("Ada knows Charles", valid_from=AWARE))
    state = memory.graph_hash(claims=True), memory.log()
    with pytest.raises(BadInput, match="without a time zone: say which"):
        act(memory)
    assert (memory.graph_hash(claims=True), memory.log()) == state


@pytest.mark.parametrize("days", [0, -1, -999])
def test_an_interval_that_ends_before_it_begins_or_as_it_begins_is_refused(days):
    with pytest.raises(BadInput, match="that ends before it begins"):
        said("a is b", valid_from=AWARE, valid_until=(AWARE + timedelta(days=days)).astimezone(UTC))


def test_the_clock_of_a_memory_set_back_puts_no_fact_out_of_order(memory):
    times = iter([year(2026), year(2020), year(2027)])
    memory.now = lambda: next(times)
    for town in ("London", "Paris", "Rome"):
        memory.learn(said(f"Ada saw {town}", town))
    assert [triple.object for triple in memory.triples()] == ["London", "Paris", "Rome"]
    assert [change.at.year for change in memory.log()] == [2026, 2026, 2027]


# --- a million characters ---


def long_notes(object):
    return json.dumps([{"subject": "Ada", "relation": "wrote", "object": object, "confidence": 0.9}])


def remembering(kind, memory, *replies):
    if kind == "claims":
        return on_claims(memory, *replies)
    return KnowledgeGraphMemory(InMemoryTripleStore(), Scripted(replies))


@pytest.mark.parametrize("kind", ["claims", "triples"])
@pytest.mark.parametrize("letters", [0, 20_000, 1_000_000])
def test_an_object_of_a_million_letters_from_a_model_breaks_no_turn(memory, kind, letters):
    said_so = MILLION[:letters]  # by the message too, or by the model alone
    agent = talking(remembering(kind, memory, long_notes(said_so or MILLION), "[]"))
    first, later = agent.run(f"Ada wrote {said_so or 'much'}."), agent.run("What did Ada write?")
    assert (first.text, later.text) == ("Noted.", "Noted.")
    assert len(first.context) + len(later.context) < 100_000
    assert [event.kind for event in first.events if event.kind != "not read"] == ["refused"]
    assert memory.facts() == ()


def test_an_object_of_a_million_letters_is_erased_whole_with_what_leads_to_it(tmp_path):
    canary = f"canary-31fe {MILLION}"
    with Claims(SQLiteClaims(tmp_path / "c.db")) as claims:
        claims.learn([Claim(Triple("Ada", "wrote", canary), "book"), said("Ada knows Charles", "letter")])
        claims.erase_source("book")
        assert claims.storage.rows("SELECT count(DISTINCT fact) FROM fact_keys") == [(1,)]
        assert [file.name for file in tmp_path.iterdir() if b"canary-31fe" in file.read_bytes()] == []


# --- two memories on one file ---


def test_what_one_memory_on_a_file_takes_back_the_other_tells_no_more(tmp_path):
    with Claims(SQLiteClaims(tmp_path / "c.db")) as one, Claims(SQLiteClaims(tmp_path / "c.db")) as other:
        notes = json.dumps([{"subject": "Ada", "relation": "knows", "object": "Charles", "confidence": 0.9}])
        agent = talking(on_claims(one, notes, "[]", "[]"))
        agent.run("Ada knows Charles.")
        assert "Charles" in agent.run("Who is Ada?").context
        other.retract_source("turn 1")
        assert agent.run("Who is Ada?").context == ""
