"""A node or an edge may be equally large in every store: what is let in is kept exactly, and the rest refused
in one sentence.
"""

from __future__ import annotations

import pytest
from support.every import every
from support.store_kinds import opened

from kgot_lab.errors import BadInput
from kgot_lab.graph.validation import MAX_ELEMENT_BYTES, validate_diff
from kgot_lab.types import Diff, Edge, Node

pytestmark = pytest.mark.extended

ROOM = 1_000  # bytes for what names an element
LARGE = {
    "letters of two bytes": Node("a", ("Text",), {"text": "ä" * ((MAX_ELEMENT_BYTES - ROOM) // 2)}),
    "letters that JSON escapes": Node("a", (), {"text": '"\n' * ((MAX_ELEMENT_BYTES - ROOM) // 4)}),
    "many properties": Node("a", (), {f"p{number:04}": "x" * 15_900 for number in range(1_000)}),
    "a long id": Node("n" * (MAX_ELEMENT_BYTES - ROOM)),
}
TOO_LARGE = {
    "letters": Node("a", (), {"text": "x" * MAX_ELEMENT_BYTES}),
    "letters of two bytes": Node("a", (), {"text": "ä" * 9_000_000}),
    "letters that JSON escapes": Node("a", (), {"text": '"' * 9_000_000}),
    "letters that JSON escapes by six": Node("a", (), {"text": "\x01" * 3_000_000}),
    "many properties": Node("a", (), {f"p{number:04}": "x" * 16_100 for number in range(1_000)}),
    "many numbers": Node("a", (), {"numbers": [12_345_678] * 2_000_000}),
    "many labels": Node("a", tuple(f"{number:04}" * 4_100 for number in range(1_000))),
    "a long id": Node("n" * MAX_ELEMENT_BYTES),
}


@pytest.fixture
def store(kind, tmp_path, request):
    with opened(kind.open(tmp_path, request)) as store:
        yield store


@pytest.mark.parametrize("node", LARGE.values(), ids=LARGE)
def test_what_is_let_in_is_kept_changed_and_removed(store, kind, node):
    if kind.name.startswith("postgres") and node.id != "a":
        pytest.skip("a name that its indexes cannot hold")
    store.apply(Diff(added_nodes=(node,)))
    assert store.graph().node(node.id) == node
    if node is LARGE["letters of two bytes"]:
        changed = Node(node.id, node.labels, {**node.properties, "n": 1})
        store.apply(Diff(changed_nodes=((node, changed),)))
        assert store.graph().node(node.id) == changed
        node = changed
    store.apply(Diff(removed_nodes=(node,)))
    assert not len(store.graph())


def test_an_edge_is_let_in_by_the_same_measure(store):
    ends = (Node("a"), Node("b"))
    edge = Edge("a", "says", "b", {"text": "ä" * ((MAX_ELEMENT_BYTES - ROOM) // 2)})
    store.apply(Diff(added_nodes=ends, added_edges=(edge,)))
    assert store.graph().edges[0] == edge
    with pytest.raises(BadInput, match="bytes as JSON; 16,000,000 can be kept in one node or edge"):
        store.apply(Diff(added_edges=(Edge("b", "says", "a", {"text": "ä" * 8_000_000}),)))


LONG = "".join(map(chr, range(0x4E00, 0x4E00 + 5_000)))  # of which no compression makes a short text


def test_an_id_that_no_index_of_postgres_can_hold_is_refused_in_one_sentence(store, kind):
    node = Node(LONG)
    if kind.name.startswith("postgres"):
        reason = "longer than PostgreSQL can index, about 2,700 bytes; nothing was changed"
        with pytest.raises(BadInput, match=reason):
            store.apply(Diff(added_nodes=(Node("before"), node)))
        assert not len(store.graph())
    else:
        store.apply(Diff(added_nodes=(node,)))
        assert store.graph().node(node.id) == node


@every("node", TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_is_larger_does_not_pass_the_gate_of_all_stores(node):
    with pytest.raises(BadInput, match="bytes as JSON; 16,000,000 can be kept in one node or edge"):
        validate_diff(Diff(added_nodes=(Node("before"), node)))


# no more than 16,000,000 characters each
@pytest.mark.parametrize("name", ["letters that JSON escapes by six", "a long id"])
def test_every_store_asks_the_gate_before_anything_happens(store, name):
    with pytest.raises(BadInput, match="bytes as JSON; 16,000,000 can be kept in one node or edge"):
        store.apply(Diff(added_nodes=(Node("before"), TOO_LARGE[name])))
    assert not len(store.graph())
