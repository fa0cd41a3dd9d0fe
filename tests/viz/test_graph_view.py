"""The Python half of the graph view: what it draws, and what it answers to a reader in the browser."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from itertools import pairwise

import networkx as nx
import pytest

from kgot_lab.api.show import show
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.encoding import encode
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.replay.forks import edited_index, run_note
from kgot_lab.loop.trace import load_run
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.types import Diff, Edge, Node
from kgot_lab.viz import html, show_graph, stepper
from kgot_lab.viz.graph.groups import EVERYTHING_ELSE
from kgot_lab.viz.graph.marks import path_edges
from kgot_lab.viz.graph.view import find_text
from kgot_lab.viz.graph.view_data import NO_GROUP_OPENS, group_views
from kgot_lab.viz.live import placeholder


def tell(view, **message):
    """What Python answers to a message of the browser."""
    return view._handle_message(message)


def drawn(view):
    """The ids of what the browser draws."""
    return {node["id"] for node in view.live.data["nodes"]}


@pytest.fixture(scope="module")
def islands():
    """Three hundred nodes in six dense groups, joined in a ring by single edges; the last two nodes stand
    apart.
    """
    edges = [
        Edge(f"n{50 * g + i}", "near", f"n{50 * g + (i * 7 + k) % 50}")
        for g in range(6)
        for i in range(50)
        for k in (1, 2, 3)
    ]
    ring = [Edge(f"n{50 * g}", "bridge", f"n{(50 * g + 50) % 300}") for g in range(6)]
    proper = {edge.identity: edge for edge in (*edges, *ring) if edge.source != edge.target}
    nodes = [Node(f"n{i}", ("Place",), {"name": f"Name {i}", "code": f"z{i}z"}) for i in range(300)]
    return PropertyGraph.of(
        [*nodes, Node("far 1"), Node("far 2")], [*proper.values(), Edge("far 1", "near", "far 2")]
    )


@pytest.fixture(scope="module")
def shown(islands):
    """The islands, of which at most forty things are drawn; laid out once, for what only reads it and for
    copies.
    """
    return show_graph(islands, most=40)


@pytest.fixture
def view(shown):
    """A view of the islands to do something with."""
    return deepcopy(shown)


@pytest.mark.extended
def test_a_search_looks_through_nodes_that_are_not_drawn_and_through_properties(view):
    assert "n123" not in drawn(view)
    answer = tell(view, find="z123z", turn=0)
    assert answer["pick"] == view.picked == "n123"
    assert answer["said"] == "1 of 1 that hold “z123z”: Name 123 (code: z123z)"
    assert "n123" in drawn(view)
    assert tell(view, find="nothing like it") == {
        "said": "Nothing holds “nothing like it”: no name, no relation, no property"
    }


def test_the_same_search_again_goes_to_the_next_node_and_round(view):
    assert [tell(view, find="name 2", turn=turn)["pick"] for turn in range(2)] == ["n2", "n20"]
    found = [tell(view, find="name 21", turn=turn)["pick"] for turn in range(12)]
    assert len(set(found)) == 11 and found[11] == found[0]


def test_a_path_is_found_in_the_whole_graph_and_its_nodes_are_drawn(view, islands):
    answer = tell(view, path=["n10", "n160"])
    way = answer["way"]
    assert way[0] == "n10" and way[-1] == "n160" and set(way) <= drawn(view)
    assert len(way) == len(nx.shortest_path(nx.Graph(islands.to_networkx()), "n10", "n160"))
    steps = answer["said"].count("near") + answer["said"].count("bridge")
    assert steps == len(path_edges(islands, way)) == len(way) - 1


def test_a_path_keeps_the_arrows_of_its_edges_and_goes_with_them_where_it_can():
    told = [("ada", "knew", "charles"), ("ann", "mother of", "ada")]
    told += [("charles", "heard of", "ada"), ("ann", "wed", "george")]
    family = PropertyGraph.of(
        [Node(name) for name in ("ada", "ann", "charles", "george")], [Edge(*each) for each in told]
    )
    shown = show_graph(family)
    assert (
        tell(shown, path=["charles", "george"])["said"]
        == "Path: charles — heard of → ada ← mother of — ann — wed → george"
    )
    assert (
        tell(shown, path=["george", "charles"])["said"]
        == "Path: george ← wed — ann — mother of → ada — knew → charles"
    )


def test_a_search_finds_relations_and_what_is_said_of_nodes_and_edges_and_tells_which(view, islands):
    answer = tell(view, find="BRIDGE", turn=1)
    edge = answer["graph"]["edges"][answer["edge"]]
    assert (edge["source"], edge["type"], edge["target"]) == ("n50", "bridge", "n100")
    assert {"n50", "n100"} <= drawn(view)
    assert answer["said"] == "2 of 6 that hold “BRIDGE”: Name 50 — bridge → Name 100" and view.picked == ""
    story = "The engine was never built, though Babbage asked for money again and again, until the minister had enough of it."
    told = [Edge("ada", "wrote", "notes", {"sentence": story}), Edge("engine", "built of", "brass")]
    small = PropertyGraph.of([Node("ada", ("Engineer",)), Node("notes"), Node("engine"), Node("brass")], told)
    found = find_text(small, "engine")
    assert [found.describe(number).split(": ", 1)[1] for number in range(len(found))] == [
        "engine",
        "ada (types: Engineer)",
        "ada — wrote → notes (sentence: The engine was never built, though Babbage asked for money a…)",
    ]
    assert found.describe(0).startswith("1 of 3 that hold “engine” (2 nodes, 1 relation): ")
    excerpt = find_text(small, "minister").describe(0)
    assert excerpt.endswith("(sentence: …ey again and again, until the minister had enough of it.)")
    assert "ada" in find_text(small, "built").describe(1)
    assert find_text(small, "built").describe(0).endswith("engine — built of → brass")


def test_an_edge_for_which_no_line_is_drawn_is_told_and_its_source_is_picked(view, islands, monkeypatch):
    monkeypatch.setattr("kgot_lab.viz.graph.collapse._LINES_OF_FEW", 0)
    answer = tell(view, find="bridge", turn=0)
    assert "edge" not in answer and answer["pick"] == "n0" and "its source is marked" in answer["said"]


def test_where_there_is_no_path_it_is_said(view):
    assert "not connected" in tell(view, path=["n10", "far 1"])["said"]
    group = next(node["id"] for node in view.live.data["nodes"] if node.get("community"))
    assert "a group of them" in tell(view, path=["n10", group])["said"]


def test_groups_open_and_close_and_the_object_shown_again_is_as_the_reader_left_it(view):
    group = max(view.view.communities, key=lambda community: -community.hidden).id
    before = drawn(view)
    answer = tell(view, open=group)
    assert drawn(view) == {node["id"] for node in answer["graph"]["nodes"]} != before
    assert answer["graph"]["inside"]
    assert answer["graph"]["note"].startswith("Inside “far 1, far 2 (2 nodes)”. ")
    tell(view, close="")
    assert drawn(view) == before and not view.live.data["inside"]
    tell(view, find="z123z")
    tell(view, close="n123")
    assert drawn(view) == before


@pytest.mark.extended
def test_a_page_without_python_gets_what_its_groups_open_into_as_python_would_draw_it(view, islands):
    data, before = view.standalone_data(), view.live.data
    groups = [node["id"] for node in data["nodes"] if node.get("community")]
    assert set(data["opens"]) == set(groups) and view.live.data is before
    largest = max(
        (community for community in view.view.communities if community.hidden),
        key=lambda community: community.hidden,
    ).id
    kept = data["kept"][data["opens"][largest]]
    assert {**tell(view, open=largest)["graph"], "opens": kept["opens"]} == {**kept, "arrows": True}
    groups, whole = [group for group in view.view.communities if group.hidden], view.view.whole
    outside = [group for group in groups if whole.number(group.id) in whole.outside]
    assert [kept["opens"][group.id] for group in outside if group.kind == EVERYTHING_ELSE] == [""]
    groups = [group for group in outside if group.kind != EVERYTHING_ELSE]
    assert all(kept["opens"][group.id] == data["opens"][group.id] for group in groups)


@pytest.mark.extended
def test_what_opens_on_a_page_is_bounded_and_the_others_are_said_to_stay_closed(view):
    sizes = [len(json.dumps(kept, separators=(",", ":"))) for kept in view.standalone_data()["kept"].values()]
    some = group_views(view.view, view._marks, {}, budget=sizes[0] + sizes[1])
    assert 1 <= len(some["kept"]) <= 3 and "groups open; opening the others" in some["alone"]
    closed = {"opens": {}, "kept": {}, "alone": NO_GROUP_OPENS}
    assert group_views(view.view, view._marks, {}, budget=10) == closed


@pytest.mark.extended
def test_the_changes_of_a_write_are_drawn_first_and_what_is_hidden_is_counted(islands):
    added = tuple(Node(f"new {i}") for i in range(60))
    write = Diff(added_nodes=added)
    shown = show_graph(islands.apply(write), highlight=write, most=40)
    again = show_graph(islands.apply(write), highlight=write, most=40)
    assert drawn(shown) == drawn(again) and sum(id.startswith("new ") for id in drawn(shown)) >= 20
    assert "of 60 marked nodes are inside groups." in shown.live.data["note"]


def test_nonsense_from_a_browser_is_ignored(view):
    messages = ({}, {"picked": "nobody"}, {"open": "n1"}, {"close": "x"}, {"expand": 7}, {"path": ["n1"]})
    for message in (*messages, {"find": None}):
        assert tell(view, **message) == {}
    assert view.picked == ""


def test_a_path_as_highlight_must_be_in_the_graph():
    graph = PropertyGraph.from_triples([]).apply(
        Diff(added_nodes=(Node("a"), Node("b"), Node("c")), added_edges=(Edge("a", "to", "b"),))
    )
    assert show_graph(graph, highlight=["a", "b"]).live.data["marks"] == ["path"]
    assert show_graph(graph, highlight=[]).live.data["marks"] == []
    for wrong, error in (
        (["a", "c"], BadInput),
        (["a", "a"], BadInput),
        ("ab", BadInput),
        (["a", "nobody"], UnknownName),
    ):
        with pytest.raises(error):
            show_graph(graph, highlight=wrong)


def test_a_shortest_path_is_as_short_as_networkx_says(view, islands):
    plain = nx.Graph(islands.to_networkx())
    for start, end in (("n0", "n299"), ("n7", "n7"), ("n51", "n260")):
        way = tell(view, path=[start, end])["way"]
        assert len(way) == len(nx.shortest_path(plain, start, end))
    assert "No path leads from" in tell(view, path=["n0", "far 2"])["said"]


def test_no_text_can_end_the_place_of_a_live_view():
    held = placeholder({"view": "graph", "title": "</script><script>alert(1)</script>"})
    assert held.count("<script") == held.count("</script") == 1 and "alert(1)" in held


@pytest.mark.extended
@pytest.mark.parametrize("name", ["winter_storm_fork_volcano", "hotpotqa_two_hops_fork_oregon"])
def test_what_a_person_wrote_is_called_so_wherever_a_fork_is_shown(name):
    run = load_run(bundled_path(f"traces/{name}.jsonl"))
    text = html(run).text
    assert run_note(run) and text.count("(written by hand)") >= 2 and "was written by hand" in text
    shown = stepper(run)
    assert "written by hand" in shown.picture.alt and shown.live.data["origin"] == run_note(run)
    event = shown.live.data["run"]["events"][edited_index(run)]
    assert "(written by hand)" in event["caption"] and "local:" not in event["words"]


@pytest.mark.parametrize("nothing", [None, 7, [], ["text"]])
def test_what_is_neither_a_run_nor_a_report_is_refused(nothing):
    with pytest.raises(BadInput):
        html(nothing)


@pytest.mark.extended
def test_what_was_searched_and_the_way_that_was_asked_for_have_their_lines_in_a_large_graph():
    numbers = random.Random(1)
    triples = [
        (f"Person {n}", "knows", f"Person {numbers.randrange(900)}") for n in range(900) for _ in range(4)
    ]
    view = show_graph([*triples, ("Person 7", "works with", "Person 800")])
    found = view._handle_message({"find": "works with"})
    assert found["graph"]["edges"][found["edge"]]["type"] == "works with"
    walked = view._handle_message({"path": ["Person 7", "Person 333"]})
    drawn = {frozenset((edge["source"], edge["target"])) for edge in walked["graph"]["edges"]}
    assert {frozenset(step) for step in pairwise(walked["way"])} <= drawn
    assert "1 of" in (said := view._handle_message({"find": "person 7"})["said"])
    assert said.endswith(": Person 7")


def test_a_node_without_a_name_can_be_picked():
    view = show_graph(PropertyGraph.of([Node("a", (), {"name": " "}), Node("B")], [Edge("a", "knows", "B")]))
    nameless = next(node["id"] for node in view.live.data["nodes"] if node["text"] == "(no name)")
    view._handle_message({"picked": nameless})
    assert view.picked == "a"


def test_an_undirected_networkx_graph_is_drawn_without_arrows_and_a_directed_one_with():
    lines, arrows = nx.path_graph(3), nx.path_graph(3, create_using=nx.DiGraph)
    lines.add_edge(1, 1)
    assert "<polygon" not in show_graph(lines).picture.svg and "<polygon" in show_graph(arrows).picture.svg
    assert [show_graph(graph).live.data["arrows"] for graph in (lines, arrows)] == [False, True]
    assert "<polygon" in show_graph(lines, arrows=True).picture.svg


@pytest.mark.filterwarnings("ignore::UserWarning")  # of what was understood
@pytest.mark.parametrize(
    "write, suffix", [(nx.write_graphml, "graphml"), (nx.write_gexf, "gexf"), (nx.write_gml, "gml")]
)
def test_a_file_without_directions_is_drawn_without_arrows(tmp_path, write, suffix):
    for name, graph in (("lines", nx.path_graph(3)), ("arrows", nx.path_graph(3, create_using=nx.DiGraph))):
        write(graph, tmp_path / f"{name}.{suffix}")
    drawn = {name: show(tmp_path / f"{name}.{suffix}").live.data["arrows"] for name in ("lines", "arrows")}
    assert drawn == {"lines": False, "arrows": True}


def test_a_graph_without_types_has_no_words_on_edges_and_no_legend_of_labels():
    view = show_graph(nx.path_graph(4))
    assert view.live.data["legend"] == [] and "related_to" not in view.live.data["type_of_all"]
    assert not any(edge["caption"] for edge in view.live.data["edges"])
    assert {
        kind["name"]
        for kind in show_graph(PropertyGraph.of([Node("a", ("Town",)), Node("b")])).live.data["legend"]
    } == {
        "Town",
        "no label",
    }


def test_edges_inside_a_community_have_its_colour():
    graph = PropertyGraph.from_networkx(nx.barbell_graph(6, 0))
    view = show_graph(graph)
    colours = {node["id"]: node["colour"] for node in view.live.data["nodes"]}
    for edge in view.live.data["edges"]:
        ends = {colours[edge["source"]], colours[edge["target"]]}
        assert {edge.get("colour")} == (ends if len(ends) == 1 else {None})
    assert encode(graph).edge_look("0", "1").rim.lower() in str(view.picture.svg).lower()


def test_half_a_surrogate_pair_does_not_stop_a_view():
    assert replace_surrogates({"a\ud800": ["b\ud800", 1, None, ("ü",)]}) == {"a?": ["b?", 1, None, ["ü"]]}


@pytest.mark.extended
def test_a_run_that_is_no_fork_says_nothing_of_the_kind():
    run = load_run(bundled_path("traces/winter_storm.jsonl"))
    assert run_note(run) == "" and edited_index(run) == -1 and "written by hand" not in html(run).text
