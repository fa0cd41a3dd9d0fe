"""A graph is edited by hand: each change is checked before it is made, told with what it breaks, and taken
back.
"""

import random

import pytest
from support.every import every

from kgot_lab.errors import BadInput, LabError, UnknownName
from kgot_lab.kgos.editing import CURATED_PROPERTY, Editor
from kgot_lab.kgos.schemas.rules import check_rules
from kgot_lab.kgos.schemas.vocabularies import UNIFIED, cookbook
from kgot_lab.stores import InMemory
from kgot_lab.types import Document

COOKBOOK = cookbook()
A, B = "goal:reduce_api_costs", "technique:prompt_caching"


def anything(editor, rng, number):
    """Some change, wise or not."""
    one, two = rng.choice(editor.graph.ids), rng.choice(editor.graph.ids)
    edge = rng.choice(list(editor.graph.edges))
    type = rng.choice([*editor.graph.types(), "feeds_into", "requires", "odd"])
    kind, name = rng.choice(["tool", "goal", "nonsense"]), rng.choice(["x", ""])
    changes = [
        lambda: editor.add_node(f"new{number}", kind, name=name),
        lambda: editor.change_node(one, name=rng.choice(["y", None, "z"])),
        lambda: editor.remove_node(one),
        lambda: editor.add_edge(one, type, two),
        lambda: editor.remove_edge(edge.source, edge.type, edge.target),
        editor.undo,
        editor.redo,
    ]
    return rng.choices(changes, [1, 1, 1, 2, 1, 1, 1])[0]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.extended) for seed in (1, 2))])
def test_what_is_checked_near_a_change_is_what_a_full_check_finds(seed):
    rng, editor = random.Random(seed), Editor(COOKBOOK, by="Ada")
    before, made, refused = set(check_rules(COOKBOOK, UNIFIED).faults), 0, 0
    for number in range(60):
        graph = editor.graph
        try:
            edited = anything(editor, rng, number)()
        except LabError:
            assert editor.graph is graph
            refused += 1
            continue
        after = set(check_rules(editor.graph, UNIFIED).faults)
        assert (set(edited.broken), set(edited.fixed)) == (after - before, before - after), edited
        errors = [fault for fault in edited.broken if fault.level == "error"]
        assert not errors or edited.said.startswith("took back")
        before, made = after, made + 1
    assert made > 15 and refused > 5


def test_a_change_is_marked_and_taken_back_and_made_again():
    editor = Editor(COOKBOOK, by="Ada")
    editor.change_node(A, description="Pay less.")
    node = editor.graph.node(A)
    assert node.properties["description"] == "Pay less." and node.properties[CURATED_PROPERTY]["by"] == "Ada"
    editor.add_edge(B, "optimizes", A, note="seen in the bill")
    changed = editor.graph
    editor.undo(), editor.undo()
    assert editor.graph == COOKBOOK and editor.history == ()
    editor.redo(), editor.redo()
    assert editor.graph == changed and len(editor.history) == 2
    with pytest.raises(BadInput, match="no change was taken back"):
        editor.redo()


@every(
    ("change", "said"),
    [
        (lambda editor: editor.add_node("x", "tool"), "give it one"),
        (lambda editor: editor.add_node("x", "gadget", name="X"), "gadget"),
        (lambda editor: editor.add_node(A, "goal", name="again"), "change_node"),
        (lambda editor: editor.change_node(A, name=None), "give it one"),
        (lambda editor: editor.change_node(A), "already"),
        (lambda editor: editor.change_node("nothing", name="x"), "unknown node"),
        (lambda editor: editor.add_edge(A, "requires", "nothing"), "unknown node"),
        (lambda editor: editor.remove_edge(A, "requires", B), "unknown edge"),
        (lambda editor: editor.remove_node("nothing"), "unknown node"),
        (lambda editor: editor.undo(), "no change to take back"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(change, said):
    editor = Editor(COOKBOOK, by="Ada")
    with pytest.raises(BadInput, match=said):
        change(editor)
    assert editor.graph == COOKBOOK and editor.history == ()


def test_a_circle_of_requirements_is_refused_however_long():
    editor = Editor(COOKBOOK, by="Ada")
    chain = [edge for edge in COOKBOOK.edges if edge.type == "requires"]
    first, second = next((one, two) for one in chain for two in chain if two.source == one.target)
    with pytest.raises(BadInput, match="requires itself"):
        editor.add_edge(second.target, "requires", first.source)


def test_a_store_has_each_change_as_it_is_made():
    with InMemory() as store:
        store.apply(store.graph().diff(COOKBOOK))
        editor = Editor(store.graph(), by="Ada", store=store)
        editor.remove_node(A)
        assert store.graph() == editor.graph and A not in store.graph()
        editor.undo()
        assert store.graph() == editor.graph == COOKBOOK


def test_who_edits_has_a_name_and_what_is_edited_is_a_graph():
    with pytest.raises(BadInput, match="who edits"):
        Editor(COOKBOOK, by=" ")
    with pytest.raises(BadInput, match="PropertyGraph"):
        Editor([Document("a", "b")], by="Ada")
    with pytest.raises(UnknownName):
        Editor(COOKBOOK, by="Ada").find_faults_at("nothing")
