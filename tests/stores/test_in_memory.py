"""The in-memory store: statements in, diffs out, and looking around without running anything."""

from __future__ import annotations

import sys

import pytest
from support.no_sandbox import no_sandbox
from support.waiting import AMPLE
from support.work import calls

from kgot_lab.errors import NoSandbox
from kgot_lab.sandbox import open_sandbox
from kgot_lab.stores import InMemory, open_store
from kgot_lab.stores.embedded_store import PYTHON
from kgot_lab.stores.protocol import Store
from kgot_lab.types import Diff, Edge, Node, Triple

needs_sandbox = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")

CURIE = Node("Marie Curie", ("Person", "Physicist"), {"born": 1867, "text": "Discovered radium"})
PRIZE = Node("Nobel Prize in Physics", ("Prize",))
PIERRE = Node("Pierre Curie", ("Person",), {"tags": ["radium", {"place": "Paris"}]})
WON = Edge("Marie Curie", "won", "Nobel Prize in Physics", {"year": 1903})
WED = Edge("Pierre Curie", "married", "Marie Curie")
ALL = Diff(added_nodes=(CURIE, PRIZE, PIERRE), added_edges=(WON, WED))


@pytest.fixture
def quiet():
    """A store that runs no statement, and so needs no sandbox."""
    store = InMemory(open=no_sandbox)
    store.apply(ALL)
    return store


@pytest.fixture(scope="module")
def opened():
    with open_sandbox(seconds=AMPLE, memory_mb=256) as sandbox:
        yield sandbox


# -------------------------------------------------------------------------------------------------------


@needs_sandbox
def test_a_fact_is_told_with_its_own_ends_whatever_its_properties_are_named(opened):
    store = InMemory(open=lambda: opened)
    odd = {"subject": "x", "relation": "y", "object": "z", "year": 1}
    store.apply(Diff(added_nodes=(Node("a"), Node("b")), added_edges=(Edge("a", "knows", "b", odd),)))
    told = {"subject": "a", "relation": "knows", "object": "b", "relation_": "y", "year": 1}
    assert store.read("result = facts('a')") == (told,) == store.read("result = G")


@needs_sandbox
def test_diffs_applied_before_and_after_the_first_statement_are_seen_by_statements(opened):
    store = InMemory(open=lambda: opened)
    store.apply(ALL)
    assert store.read("result = len(G)") == (3,)
    store.apply(Diff(added_nodes=(Node("Paris"),)))
    assert store.read("result = names()") == (
        "Marie Curie",
        "Nobel Prize in Physics",
        "Pierre Curie",
        "Paris",
    )
    assert store.read("result = [G.nodes['Marie Curie']]") == (
        {"born": 1867, "text": "Discovered radium", "label": "Person", "labels": ["Person", "Physicist"]},
    )


@needs_sandbox
def test_an_undone_write_is_undone_for_the_next_statement(opened):
    store = InMemory(open=lambda: opened)
    store.apply(ALL)
    diff = store.write("G.remove_node('Marie Curie')")
    assert str(diff) == "-1 node, -2 edges"
    store.undo(diff)
    assert store.read("result = G.edges['Marie Curie', 'Nobel Prize in Physics', 'won']['year']") == (1903,)
    assert set(store.neighbours("Marie Curie")) == {WON, WED}


# ------------------------------------------------------------------------------------------------


def test_looking_around_and_applying_diffs_need_no_sandbox(quiet):
    assert quiet.graph().nodes
    with pytest.raises(NoSandbox):
        quiet.read("result = 1")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("marie", ["Marie Curie"]),
        ("CURIE", ["Marie Curie", "Pierre Curie"]),
        ("pierre curie", ["Pierre Curie", "Marie Curie"]),
        ("who discovered radium?", ["Marie Curie", "Pierre Curie"]),
        ("1867", ["Marie Curie"]),
        ("paris", ["Pierre Curie"]),
        ("nobel_prize", ["Nobel Prize in Physics"]),
        ("unknown", []),
        ("", []),
    ],
)
def test_search_finds_nodes_by_the_words_of_names_and_properties(quiet, words, found):
    assert [node.id for node in quiet.search(words)] == found


def test_a_search_among_ten_thousand_nodes_looks_only_at_those_that_have_its_words():
    store = InMemory(open=no_sandbox)
    nodes = tuple(Node(f"person {i}", ("P",), {"town": f"town {i % 50}"}) for i in range(10_000))
    store.apply(Diff(added_nodes=nodes))
    assert [store.search(f"person {i} town")[0].id for i in range(9)] == [f"person {i}" for i in range(9)]
    assert calls(lambda: store.search("9999")) < 100 < 10_000 < calls(lambda: store.search("person")) < 50_000
    store.apply(Diff(added_nodes=(Node("late"),)))
    assert calls(lambda: store.search("late")) < 100  # the words of the others are not taken in again


# ----------------------------------------------------------------------------------------------------------


def test_a_store_opens_by_name():
    store: Store = open_store("in_memory", open=no_sandbox)
    assert repr(store) == "<InMemory: 0 nodes, 0 edges>"


def test_a_property_whose_name_python_would_spell_in_another_way_keeps_it():
    fact = PYTHON.add([(Triple("a", "b", "c"), {"\ufb01": 1, "fi": 2})])
    assert fact == "add('a', 'b', 'c', fi=2)\nG.edges['a', 'c', 'b'].update({'\ufb01': 1})"
