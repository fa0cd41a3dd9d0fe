"""A context of claims reads what a message leads to: the same as from reading everything, and no more where
there is much.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.saying import fact

from kgot_lab.memory import sqlite
from kgot_lab.memory.claims.claim import Claim, triple_key
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.knowledge import KnowledgeGraphMemory
from kgot_lab.memory.sqlite import ClaimTripleStore
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.memory.triples import MAX_TEXT_LENGTH, InMemoryTripleStore
from kgot_lab.types import Triple

LONG_AGO = datetime(1843, 5, 1, tzinfo=UTC)
TOWNS = ("London", "new York", "New-York City", "Übersee", "ada", "Bern", "★")
PEOPLE = ("Ada", "Ada Lovelace", "ada_lovelace", "Augusta Byron", "London", "user", "★")
VERBS = ("lives_in", "knows", "works at")
ASKED = (
    "ada",
    "lovelace",
    "ada lovelace",
    "york",
    '"new y"',
    '"w york c"',
    "bern",
    "übersee",
    "lives",
    "works at",
    "byron",
    "★",
    '"★"',
)


def read_whole(beliefs):
    """The same beliefs in a store that looks through everything."""
    store = InMemoryTripleStore()
    store.add(triple for triple in beliefs.triples() if max(map(len, triple.identity)) <= MAX_TEXT_LENGTH)
    return store


def fill(memory, seed, facts=40):
    """Facts by chance: several sources, some retracted, some names merged, some relations with one object."""
    chance = random.Random(seed)
    drawn = [Triple(chance.choice(PEOPLE), chance.choice(VERBS), chance.choice(TOWNS)) for _ in range(facts)]
    for start in range(0, facts, 5):
        claims = [
            Claim(each, f"s{chance.randrange(8)}", confidence=chance.choice((0.5, 0.7, 0.9)))
            for each in drawn[start : start + 5]
        ]
        memory.learn(claims)
    memory.retract_source(f"s{chance.randrange(8)}")
    for kept, other in chance.sample(
        [("Ada Lovelace", "Augusta Byron"), ("Bern", "★"), ("Ada", "ada_lovelace")], k=2
    ):
        memory.merge(kept, other)
    memory.erase_fact(drawn[0])


@pytest.mark.parametrize("seed", range(2))
def test_what_words_lead_to_is_what_reading_everything_finds_in_the_same_order(memory, seed, monkeypatch):
    fill(memory, seed)
    for most in (sqlite.MAX_FACTS_READ, 3):
        monkeypatch.setattr(sqlite, "MAX_FACTS_READ", most)
        believed, whole = ClaimTripleStore(memory), read_whole(memory)
        for keywords in [*([word] for word in ASKED), ["ada", "bern", "knows"], list(ASKED), []]:
            everything = len(whole.all()) + 1
            assert believed.search(keywords, everything) == whole.search(keywords, everything)
            assert most == 3 or believed.search(keywords, 4) == whole.search(keywords, 4)
        assert believed.all() == whole.all()
    monkeypatch.undo()
    for name in PEOPLE + TOWNS:
        assert ClaimTripleStore(memory).query(name) == read_whole(memory).query(subject=name)


@pytest.mark.extended
@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1)), min_size=1, max_size=6
    ),
    st.data(),
)
def test_any_word_of_any_text_leads_to_its_fact(texts, data):
    facts = [Triple(*text) for text in texts if all(part.strip() and "\0" not in part for part in text)]
    with Claims(SQLiteClaims()) as claims:
        claims.learn([Claim(each, "s") for each in facts])
        for part in (part for each in facts for part in triple_key(each)):
            begin, end = sorted(data.draw(st.tuples(st.integers(0, len(part)), st.integers(0, len(part)))))
            for keyword in (part, part[begin:end], f'"{part[begin:end]}"'):
                assert ClaimTripleStore(claims).search([keyword], 99) == read_whole(claims).search(
                    [keyword], 99
                )


def test_a_turn_reads_what_its_message_leads_to_and_not_the_rest(memory, monkeypatch):
    read = []
    rows = memory.storage.rows

    def counting(statement, values=None):
        found = rows(statement, values or {})
        read.append(len(found))
        return found

    def rows_for_a_turn():
        read.clear()
        told = KnowledgeGraphMemory(ClaimTripleStore(memory)).build_context(["ada", "lives"])
        return told, sum(read)

    memory.learn([Claim(fact("Ada lives_in London"), "book"), Claim(fact("London lies_in England"), "book")])
    monkeypatch.setattr(memory.storage, "rows", counting)
    told, before = rows_for_a_turn()
    memory.learn([Claim(fact(f"Bob{number} saw Town{number}"), "letter") for number in range(200)])
    assert rows_for_a_turn() == (told, before) and "- London lies_in England (1.00)" in told


def test_of_a_word_in_very_many_facts_the_newest_are_looked_at_and_older_ones_where_too_few_hold(
    memory, monkeypatch
):
    monkeypatch.setattr(sqlite, "MAX_FACTS_READ", 5)
    for number in range(20):
        sure, since = 0.9 if number else 1.0, LONG_AGO + timedelta(days=number)
        memory.learn(Claim(fact(f"Ada saw Town{number}"), f"s{number}", confidence=sure, valid_from=since))
    found = ClaimTripleStore(memory)
    assert [each.object for each in found.search(["saw"], 3)] == ["Town19", "Town18", "Town17"]
    for number in range(2, 20):
        memory.retract_source(f"s{number}")
    assert [each.object for each in found.search(["saw"], 3)] == ["Town0", "Town1"]


def test_an_erased_fact_leads_nowhere_and_leaves_no_key(memory):
    memory.learn([Claim(fact("Ada knows Canary"), "letter"), Claim(fact("Ada knows Bob"), "book")])
    keys = "SELECT count(*), count(DISTINCT fact) FROM fact_keys"
    ((before, _),) = memory.storage.rows(keys)
    memory.erase_source("letter")
    assert memory.storage.rows(keys) == [(before - 5, 1)]
    memory.learn(Claim(fact("Ada knows Canary"), "letter"))
    assert memory.storage.rows(keys) == [(before, 2)]


def test_a_fact_that_was_first_a_premise_or_under_an_answer_is_found_once_it_holds(memory):
    premise, noted = fact("Ada born_in London"), fact("Bob born_in Cork")
    memory.learn(Claim(fact("Ada is British"), "rule", kind="inferred", premises=(premise,)))
    memory.note_answer("a1", "Cork", [noted])
    assert ClaimTripleStore(memory).search(["born"]) == []
    memory.learn([Claim(premise, "book"), Claim(noted, "book")])
    assert [each.subject for each in ClaimTripleStore(memory).search(["born"])] == ["Ada", "Bob"]


def test_a_triple_store_is_a_view_on_claims_of_every_kind(memory):
    store = ClaimTripleStore(memory)
    lives, born = Triple("Ada", "lives_in", "London", 0.8, 3, LONG_AGO), Triple("Ada", "born_in", "Bern")
    store.add([born, lives, Triple("Ada", "born_in", "Bern", 0.9, 1)])
    assert repr(store.all()) == repr(store.query(subject="Ada")) == repr([born, lives])
    assert repr(store.search(["london", '"ern"'])) == repr([born, lives])
    assert store.newest(1) == store.query(relation="lives_in") == [lives] and store.newest(9) == [born, lives]
    memory.learn(Claim(Triple(*lives.identity), "book", confidence=0.5))  # waits for review
    assert [each.source for each in memory.supports_of(lives)] == ["turn 3"] and store.count() == 2
    memory.learn(Claim(Triple(*lives.identity), "letter"))
    assert store.query(object="London")[0].confidence == 1.0
    memory.merge("Ada", "Augusta")
    store.add([Triple("Augusta", "lives_in", "London"), Triple("Augusta", "knows", "Bob")])
    assert store.newest(2) == [lives, Triple("Ada", "knows", "Bob")] and store.count() == 3
    effect = memory.retract_source("turn 3")
    assert effect.facts == () and store.query(object="London") == [lives]
    assert store.delete(subject="Ada", relation="lives_in") == 1 and memory.claims_on(lives) == ()
    store.clear()
    assert store.all() == store.search(["ada"]) == [] and memory.recorded_facts() == ()
