"""What every triple store does: the same for both kinds."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.memory.sqlite import SQLiteTripleStore
from kgot_lab.memory.triples import InMemoryTripleStore, check_keywords, check_triples, newest_triples
from kgot_lab.types import Triple

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
OFFICE = [
    Triple("Alice", "works_at", "Acme Corp", 0.95, 1, NOON),
    Triple("Acme Corp", "headquartered_in", "Seattle", 0.95),
    Triple("Alice", "manages", "Atlas project", 0.9),
    Triple("Bob", "reports_to", "Alice", 0.8),
]


def said(triples):
    return [triple.identity for triple in triples]


def test_triples_are_equal_when_they_say_the_same_and_show_only_what_was_given():
    plain, noted = Triple("a", "b", "c"), Triple("a", "b", "c", 0.5, 3, NOON)
    assert plain == noted and hash(plain) == hash(noted) and len({plain, noted}) == 1
    assert repr(plain) == "Triple(subject='a', relation='b', object='c')"
    assert repr(Triple("a", "b", "c", 0.5)) == "Triple(subject='a', relation='b', object='c', confidence=0.5)"


def test_what_was_added_comes_back_with_all_six_fields_in_the_order_of_adding(store):
    store.add(OFFICE)
    assert store.all() == OFFICE and store.count() == 4
    first, second, *_ = store.all()
    assert (first.confidence, first.source_turn, first.created_at) == (0.95, 1, NOON)
    assert (second.confidence, second.source_turn, second.created_at) == (0.95, None, None)


def test_a_query_by_any_parts_is_exact(store):
    store.add(OFFICE)
    assert said(store.query(subject="Alice")) == said([OFFICE[0], OFFICE[2]])
    assert said(store.query(object="Alice")) == said([OFFICE[3]])
    assert said(store.query(relation="manages")) == said([OFFICE[2]])
    assert said(store.query("Alice", None, "Acme Corp")) == said([OFFICE[0]])
    assert store.query(subject="alice") == store.query(subject="Acme") == [] and store.query() == OFFICE


def test_a_duplicate_leaves_the_first_as_it_was(store):
    store.add([Triple("A", "r", "B", 0.4, 1), Triple("A", "r", "B", 0.9, 2)])
    store.add([Triple("A", "r", "B", 1.0, 3, NOON)])
    (kept,) = store.all()
    assert (store.count(), kept.confidence, kept.source_turn, kept.created_at) == (1, 0.4, 1, None)
    store.add([Triple("C", "r", "D"), Triple("A", "r", "D"), Triple("C", "r", "D", 0.5)])
    assert said(store.all()) == [("A", "r", "B"), ("C", "r", "D"), ("A", "r", "D")]


def test_a_deletion_says_how_many_and_takes_them_out_of_the_search_too(store):
    store.add(OFFICE)
    assert store.delete(subject="Alice") == 2 and store.delete(subject="Alice") == 0
    assert said(store.search(["Alice"])) == said([OFFICE[3]]) and store.count() == 2
    store.add(OFFICE)
    assert len(store.search(["Alice"])) == 3 and store.delete("Bob", "reports_to", "Alice") == 1


def test_deleting_without_a_part_names_clear(store):
    store.add(OFFICE)
    with pytest.raises(BadInput, match=r"call clear\(\)"):
        store.delete()
    assert store.count() == 4
    store.clear()
    assert store.count() == 0 and store.all() == store.search(["Alice"]) == []
    store.add(OFFICE)
    assert len(store.search(["Alice"])) == 3


@every(
    ("keyword", "found"),
    [
        ("acme", {"Acme Corp"}),
        ("ACME CORP", {"Acme Corp"}),
        ("corp acme", set()),  # the words stand together
        ("A", set()),
        ("works_at", {"Acme Corp"}),
        ("works", {"Acme Corp"}),
        ('"cme co"', {"Acme Corp"}),
        ('"lic"', {"Acme Corp"}),
        ('"orks_a"', {"Acme Corp"}),
        ('"k s_a"', set()),
        ("“CME”", {"Acme Corp"}),
        ("strasse", {"Große Straße"}),
        ("STRASSE", {"Große Straße"}),
        ('"oße str"', {"Große Straße"}),
        ("e\u0301cole", {"École"}),
        ("北京", {"北京"}),
        ("R&D", {"R&D"}),
        ('"r&d"', {"R&D"}),
        ('"&"', {"R&D"}),
        ("?", set()),
        ("", set()),
        ('""', set()),
        ('"', set()),
        ('AND OR NOT * ^ : "', set()),
    ],
)
def test_a_keyword_is_whole_words_whatever_their_case_and_quoted_a_text_within(store, keyword, found):
    things = ["Acme Corp", "Große Straße", "École", "北京", "R&D"]
    store.add([Triple("Alice", "works_at", things[0]), *(Triple("x", "is", thing) for thing in things[1:])])
    assert {triple.object for triple in store.search([keyword])} == found


def test_a_search_orders_by_keywords_then_confidence_then_recency_then_adding(store):
    later = NOON + timedelta(hours=1)
    store.add(
        [
            Triple("A", "r", "first", 0.9),
            Triple("A", "r", "turn 2", 0.9, 2),
            Triple("A", "r", "noon", 0.9, 1, NOON),
            Triple("A", "r", "second", 0.9),
            Triple("A", "r", "later", 0.9, 0, later),
            Triple("A", "r", "sure", 0.95),
            Triple("A", "r", "B both", 0.1),
            Triple("other", "s", "thing"),
        ]
    )
    order = ["B both", "sure", "later", "noon", "turn 2", "first", "second"]
    assert [triple.object for triple in store.search(["a", "b"])] == order
    assert [triple.object for triple in store.search(["a", "b", "A"], top_k=3)] == order[:3]
    assert store.search(["a"], top_k=0) == store.search([]) == []


def test_times_are_compared_as_moments_and_kept_in_utc(store):
    east = timezone(timedelta(hours=9))
    store.add(
        [
            Triple("a", "r", "earlier", created_at=datetime(2026, 5, 1, 20, tzinfo=east)),
            Triple("a", "r", "later", created_at=NOON),
        ]
    )
    assert [triple.object for triple in store.search(["a"])] == ["later", "earlier"]
    kept = store.query(object="earlier")[0].created_at
    assert kept == datetime(2026, 5, 1, 11, tzinfo=UTC) and kept.utcoffset() == timedelta(0)


def test_the_newest_are_those_added_last(store):
    store.add(OFFICE)
    assert newest_triples(store, 2) == OFFICE[2:]
    assert newest_triples(store, 0) == []
    assert newest_triples(store, 99) == OFFICE


BAD = {
    "no triple": (lambda: ("a", "b", "c"), "keeps Triple|each item a Triple"),
    "an empty subject": (lambda: Triple("", "r", "o"), "must not be blank"),
    "a relation of spaces": (lambda: Triple("s", " \n", "o"), "must not be blank"),
    "an object that is a number": (lambda: Triple("s", "r", 3), "three texts, not"),
    "a million characters": (lambda: Triple("s", "r", "x" * 1_000_000), "1,000,000 characters"),
    "half a surrogate": (lambda: Triple("s", "r", "\ud800"), "surrogate"),
    "a NUL": (lambda: Triple("s\0", "r", "o"), "NUL"),
    "confidence above 1": (lambda: Triple("s", "r", "o", 1.01), "from 0 to 1, not 1.01"),
    "confidence below 0": (lambda: Triple("s", "r", "o", -0.1), "from 0 to 1"),
    "confidence NaN": (lambda: Triple("s", "r", "o", float("nan")), "from 0 to 1, not nan"),
    "confidence in words": (lambda: Triple("s", "r", "o", "high"), "from 0 to 1"),
    "confidence true": (lambda: Triple("s", "r", "o", True), "from 0 to 1"),
    "a turn below 0": (lambda: Triple("s", "r", "o", 1, -1), "source_turn"),
    "a turn that is too large": (lambda: Triple("s", "r", "o", 1, 10**30), "source_turn"),
    "a time without a zone": (
        lambda: Triple("s", "r", "o", 1, 1, datetime(2026, 5, 1)),
        "without a time zone",
    ),
    "a time as text": (lambda: Triple("s", "r", "o", 1, 1, "2026-05-01"), "is a datetime"),
    "a time before all": (
        lambda: Triple("s", "r", "o", 1, 1, datetime.min.replace(tzinfo=timezone(timedelta(hours=9)))),
        "in UTC",
    ),
}


@every("name", BAD)
def test_a_bad_triple_is_refused_in_one_sentence_and_none_of_its_list_is_kept(store, name):
    bad, why = BAD[name]
    with pytest.raises(BadInput, match=why) as told:
        store.add([Triple("good", "r", "o"), bad()])
    assert store.count() == 0 and len(str(told.value)) < 320 and "\n" not in str(told.value)


@pytest.mark.parametrize(
    "act",
    [
        lambda store: store.add(Triple("a", "b", "c")),
        lambda store: store.add("abc"),
        lambda store: store.search("Alice"),
        lambda store: store.search([3]),
        lambda store: store.search(["a"], top_k=-1),
        lambda store: store.search([f"word{number}" for number in range(500)]),
        lambda store: store.query(subject=3),
        lambda store: store.query(subject="\ud800"),
        lambda store: store.delete(object=["a"]),
    ],
)
def test_what_cannot_be_asked_is_refused(store, act):
    store.add(OFFICE)
    with pytest.raises(BadInput):
        act(store)
    assert store.count() == 4


def test_numbers_of_numpy_are_numbers(store):
    store.add([Triple("a", "b", "c", np.float32(0.5))])
    assert type(store.all()[0].confidence) is float


def test_texts_are_data(store):
    nasty = ["x'); DROP TABLE triples; --", 'a" OR "b']
    nasty += ["line\nbreak", "%_*", "ﬁ ﬀ", "\u202egnp"]
    store.add([Triple(text, "says", text[::-1]) for text in nasty])
    assert [triple.subject for triple in store.all()] == nasty
    for text in nasty:
        assert said(store.query(subject=text)) == [(text, "says", text[::-1])]
        store.search([text, f'"{text}"'])
    assert store.delete(relation="says") == len(nasty)


def test_several_threads_lose_nothing(store):
    def write(name):
        for number in range(50):
            store.add([Triple(name, "counts", str(number))])
            store.search([name])

    threads = [Thread(target=write, args=(f"thread{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.count() == 200 and len(store.search(["thread3"], top_k=100)) == 50


WORDS = st.sampled_from(
    ["a", "A b", "b_c", "Straße", "strasse", "É", "e\u0301", "c-d", "İ", "ﬁ x", "x.y z", "क्षि", "ab", "1"]
)
TRIPLES = st.builds(
    Triple, WORDS, WORDS, WORDS, st.sampled_from([0, 0.5, 1]), st.none() | st.integers(0, 3),
    st.none() | st.sampled_from([NOON, NOON + timedelta(days=1)]),
)  # fmt: skip
KEYWORDS = st.lists(
    WORDS
    | WORDS.map(lambda word: f'"{word[1:] or word}"')
    | WORDS.map(lambda word: f'"{word[:-1] or word}"'),
    max_size=4,
)


class PlainTriples:
    """Triples in a dictionary, and in plain Python what both stores promise."""

    def __init__(self):
        self.kept = {}

    def add(self, triples):
        for triple in check_triples(triples):
            self.kept.setdefault(triple.identity, triple)

    def delete(self, subject):
        gone = [triple for triple in self.all() if triple.subject == subject]
        return len([self.kept.pop(triple.identity) for triple in gone])

    def all(self):
        return list(self.kept.values())

    def search(self, keywords, top_k):
        checked = check_keywords(keywords, top_k)

        def rank(triple):
            matched = sum(keyword.is_in(*triple.identity) for keyword in checked)
            turn = -1 if triple.source_turn is None else triple.source_turn
            return matched, triple.confidence, triple.created_at is not None, triple.created_at or NOON, turn

        return sorted(filter(lambda triple: rank(triple)[0], self.all()), key=rank, reverse=True)[:top_k]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.lists(TRIPLES, max_size=5))), KEYWORDS, st.integers(0, 8))
def test_both_stores_hold_and_find_what_a_dictionary_does_whatever_is_done(steps, keywords, top_k):
    with TemporaryDirectory() as folder, SQLiteTripleStore(Path(folder) / "a.db") as kept:
        stores = (PlainTriples(), InMemoryTripleStore(), kept)
        for adds, triples in steps:
            if adds:
                for store in stores:
                    store.add(triples)
            elif triples:
                assert len({store.delete(subject=triples[0].subject) for store in stores}) == 1
        plain, *others = ([repr(triple) for triple in store.all()] for store in stores)
        assert others == [plain, plain]
        plain, *others = ([repr(triple) for triple in store.search(keywords, top_k)] for store in stores)
        assert others == [plain, plain]


def test_a_forked_child_has_a_copy_of_what_is_in_memory():
    store = InMemoryTripleStore()
    store.add([Triple("Alice", "knows", "Bob")])
    if not (child := os.fork()):
        store.add([Triple("Bob", "knows", "Carol")])
        os._exit(store.count() != 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.count() == 1
