"""Graphs too large to draw become communities that can be opened: nothing is lost, and what is not shown is
said.
"""

import sys

import networkx as nx
import numpy as np
import pytest
from support.every import every

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.communities import MAX_COMMUNITIES, connected_components, find_communities
from kgot_lab.graph.property_graph import make_read_only
from kgot_lab.types import Edge, Node
from kgot_lab.viz.graph.collapse import (
    MAX_OPENED_NODES,
    close_community,
    collapse_graph,
    make_view,
    open_community,
    reveal_nodes,
)
from kgot_lab.viz.graph.groups import MAX_LINES
from kgot_lab.viz.graph.view import show_graph

EVIL = "</script>\u202e<img src=//e.example>\x00\n\n'\"&"


def of_columns(size, ends, labels=()):
    """A graph of `size` nodes with an edge for each pair of rows, without an Edge object for each."""
    ends = np.asarray(ends, dtype=np.int32).reshape(-1, 2)
    return PropertyGraph(
        ids=tuple(f"n{row}" for row in range(size)),
        node_labels=tuple((labels[row % len(labels)],) for row in range(size)) if labels else ((),) * size,
        node_properties=({},) * size,
        sources=make_read_only(ends[:, 0].copy()),
        targets=make_read_only(ends[:, 1].copy()),
        type_codes=make_read_only((np.arange(len(ends)) % 5).astype(np.int32)),
        type_names=tuple(f"type {code}" for code in range(5)),
        edge_properties=({},) * len(ends),
        edge_keys=tuple(map(str, range(len(ends)))),
    )


def planted(size, count, blocks, share, seed=0):
    """Pairs of rows of which `share` lie within a block, and the block of each row: row modulo `blocks`."""
    chance = np.random.default_rng(seed)
    sources, targets = chance.integers(0, size, (2, count))
    inside = chance.random(count) < share
    targets = np.where(inside, targets // blocks * blocks + sources % blocks, targets) % size
    return np.stack([sources, targets], axis=1), np.arange(size) % blocks


LARGE = of_columns(2057, planted(2057, 284_178, 11, 0.8)[0], ("Person", "City"))
MIDDLE = of_columns(2400, planted(2400, 9_000, 8, 0.9)[0], ("Person",))
CLIQUE = of_columns(300, np.argwhere(np.triu(np.ones((300, 300)), 1)))


def edges_of(view):
    """All edges of the graph, counted by what is drawn of them."""
    bundled = sum(bundle.count for bundle in view.bundles)
    return len(view.edges) + bundled + sum(community.edges for community in view.communities) + view.left_out


def opened(view, community):
    """The view with the nodes of a community drawn by themselves, the best connected first as far as there is
    room.
    """
    rows = view.whole.members[view.whole.number(community)]
    hidden = rows[view.at[rows] >= len(view.shown)]
    others = sum(each.hidden > 0 and each.id != community for each in view.communities)
    room = view.whole.most - others - len(view.shown)
    drawn = hidden if len(hidden) <= room else hidden[: max(room - 1, 0)]
    return make_view(view.whole, np.concatenate([view.shown, drawn]))


def drawn(view):
    return {node.id for node in view.nodes}


# --- communities ---


def test_planted_communities_are_found():
    found = find_communities(LARGE)
    blocks = planted(2057, 284_178, 11, 0.8)[1]
    assert len(found) == 11 and len(set(zip(found.of.tolist(), blocks.tolist(), strict=True))) == 11
    assert np.array_equal(found.of, find_communities(LARGE).of) and found.how == "by the Louvain method"


def test_many_small_parts_do_not_force_a_large_one_into_a_single_community():
    tree = [(row // 2, row) for row in range(1, 1000)]
    found = find_communities(of_columns(1300, [*tree, *((row, row + 1) for row in range(1000, 1300, 2))]))
    assert len(set(found.of[:1000].tolist())) > 10
    assert len(set(found.of[1000:].tolist())) >= MAX_COMMUNITIES // 5
    assert found.kinds[-1] == "of the smallest groups" and len(found) == MAX_COMMUNITIES


def test_one_community_that_is_nearly_everything_is_divided_by_label():
    complete = np.argwhere(np.triu(np.ones((60, 60)), 1))
    found = find_communities(of_columns(60, complete, ("Person", "City", "Book")))
    assert np.bincount(found.of).tolist() == [20, 20, 20] and "by first label" in found.how


def parts_of(graph, rows):
    """Into how many connected parts some rows of a graph fall."""
    inside = np.isin(graph.sources, rows) & np.isin(graph.targets, rows)
    links = np.stack([graph.sources[inside], graph.targets[inside]])
    return len(set(connected_components(links, len(graph))[rows].tolist()))


@pytest.mark.parametrize("package", [True, False], ids=["scikit-network", "without it"])
def test_every_community_is_connected_and_what_is_none_has_no_edge_to_the_others(monkeypatch, package):
    if not package:
        monkeypatch.setitem(sys.modules, "sknetwork.clustering", None)
    chance = np.random.default_rng(11)
    for _ in range(60):
        size, most = int(chance.integers(1, 400)), int(chance.integers(1, 30))
        ends = chance.integers(0, size, (int(size * chance.choice([0.1, 0.5, 0.9, 1.5, 4])), 2))
        graph = of_columns(size, ends, ("Person", "City", "Book")[: int(chance.integers(0, 4))])
        found = find_communities(graph, most=most)
        assert len(found) <= most and sorted(set(found.of.tolist())) == list(range(len(found)))
        crossing = found.of[np.stack([graph.sources, graph.targets])]
        for number, kind in enumerate(found.kinds):
            rows = np.flatnonzero(found.of == number)
            if kind:
                assert not (crossing[:, crossing[0] != crossing[1]] == number).any()
            else:
                assert parts_of(graph, rows) == 1


def test_there_are_never_more_communities_than_asked_for():
    for most in range(1, 8):
        assert len(find_communities(MIDDLE, most=most)) <= most


def test_connected_parts_are_those_of_networkx():
    chance = np.random.default_rng(4)
    for size, count in ((1, 0), (40, 20), (300, 200), (300, 290)):
        ends = chance.integers(0, size, (2, count))
        graph = nx.Graph(zip(*ends.tolist(), strict=True))
        graph.add_nodes_from(range(size))
        lowest = {row: min(part) for part in nx.connected_components(graph) for row in part}
        assert connected_components(ends.astype(np.int32), size).tolist() == [
            lowest[row] for row in range(size)
        ]


def test_without_the_package_labels_or_connected_parts_make_the_communities_and_the_note_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "sknetwork.clustering", None)
    two = of_columns(10, [(row, row + 1) for row in (0, 1, 3, 4)])
    assert np.bincount(find_communities(two).of).tolist() == [4, 3, 3]
    assert find_communities(two).kinds == ("without edges", "", "")
    view = collapse_graph(LARGE)
    assert [(community.size, community.labels[0][0]) for community in view.communities] == [
        (1029, "Person"),
        (1028, "City"),
    ]
    assert (
        "by first label, not by the Louvain method: this needs scikit-network: pip install 'kgot_lab[lab]'"
        in view.note
    )


# --- a view ---


def test_a_graph_of_few_nodes_is_drawn_whole():
    graph = PropertyGraph.of(
        [Node("Ada"), Node("Byron")], [Edge("Byron", "father of", "Ada"), Edge("Ada", "is", "Ada")]
    )
    view = collapse_graph(graph)
    assert view.nodes == tuple(graph.nodes) and view.edges == tuple(graph.edges)
    assert (view.bundles, view.communities, view.note, view.left_out) == ((), (), "", 0)
    assert view.drawn_as("Ada") == "Ada"
    assert collapse_graph(PropertyGraph.of()).nodes == ()
    assert collapse_graph(PropertyGraph.of([Node("alone")])).nodes == (Node("alone"),)
    assert repr(view) == "<View: 2 of 2 nodes, 0 super nodes, 2 edges, 0 bundles>"


def test_a_large_graph_is_drawn_as_its_communities_and_says_so():
    view = collapse_graph(LARGE)
    assert len(view.nodes) == len(view.communities) == 11 and not view.edges and len(view.bundles) == 55
    assert (
        view.note
        == "2,057 nodes are more than 2,000: drawn as 11 communities, found by the Louvain method; 82% of the edges lie within one."
    )
    assert sum(community.size for community in view.communities) == 2057 and edges_of(view) == 284_178
    assert view.left_out == 0


def test_a_community_is_named_by_what_is_in_it():
    view = collapse_graph(LARGE)
    first = view.communities[0]
    of, ends = view.whole.division.of, np.concatenate([LARGE.sources, LARGE.targets])
    at_home = np.tile(of[LARGE.sources] == of[LARGE.targets], 2)
    inside, all_ends = np.bincount(ends[at_home], minlength=2057), np.bincount(ends, minlength=2057)
    mine = sorted(np.flatnonzero(of == 0).tolist(), key=lambda row: -(inside[row] ** 2) / all_ends[row])
    best = f"n{mine[0]}, n{mine[1]}"
    assert first.title == f"187 nodes: Person 94, City 93; e.g. {best}"
    assert first.labels == (("Person", 94), ("City", 93))
    assert first.name == f"{best} (187 nodes, mostly Person)"
    assert view.nodes[0] == Node(
        first.id, (), {"text": first.title, "nodes": 187, "edges inside": first.edges}
    )


def test_a_bundle_says_how_many_edges_go_which_way_and_of_which_types():
    squares = [(4 * square + a, 4 * square + b) for square in range(4) for a in range(4) for b in range(a)]
    (bundle,) = collapse_graph(of_columns(16, [*squares, (0, 4), (1, 5), (6, 2)]), most=15).bundles
    assert {bundle.forward, bundle.backward} == {1, 2} and bundle.count == 3
    assert bundle.title == "3 edges: type 0 1, type 1 1, type 4 1" and bundle.all_types == 3


def test_every_node_is_drawn_or_in_a_community_and_every_edge_is_counted_once():
    view = collapse_graph(MIDDLE)
    nodes = reveal_nodes(view, ["n5", "n77"])
    for step in (view, opened(view, "community 2"), nodes, opened(nodes, "community 1")):
        assert edges_of(step) == 9_000
        assert {step.drawn_as(id) for id in MIDDLE.ids} == drawn(step)
        assert sum(community.hidden for community in step.communities) + len(step.shown) == 2400
        assert {end for line in (*step.edges, *step.bundles) for end in (line.source, line.target)} <= drawn(
            step
        )


def test_a_hub_of_a_star_is_drawn_beside_the_community_of_its_leaves():
    view = collapse_graph(of_columns(5000, [(0, row) for row in range(1, 5000)]))
    assert "n0" in drawn(view) and len(view.communities) == 1
    (bundle,) = view.bundles
    assert {bundle.source, bundle.target} == {"n0", "community 1"}
    assert bundle.forward == bundle.count == 4999 - len(view.edges)


def test_the_communities_of_a_view_are_not_called_as_a_node_is():
    graph = PropertyGraph.of(
        (Node(f"community {number}") for number in range(10)), [Edge("community 1", "is", "community 2")]
    )
    view = collapse_graph(graph, most=4)
    assert not {community.id for community in view.communities} & set(graph.ids)
    assert {view.drawn_as(id) for id in graph.ids} == drawn(view)


def test_what_a_model_wrote_stays_on_its_line():
    nodes = [Node(f"{EVIL} {number}", (f"{EVIL}!",)) for number in range(9)]
    view = collapse_graph(
        PropertyGraph.of(nodes, [Edge(nodes[0].id, EVIL, node.id) for node in nodes]), most=3
    )
    told = [
        *(community.title for community in view.communities),
        *(bundle.title for bundle in view.bundles),
        view.note,
    ]
    assert all(text.isprintable() for text in told) and len(view.communities) == 1
    assert reveal_nodes(view, [nodes[4].id]).drawn_as(nodes[4].id) == nodes[4].id


def test_a_view_of_no_nodes_is_refused():
    with pytest.raises(BadInput, match="how many nodes are drawn"):
        show_graph(LARGE, most=0)


# --- opening, closing, revealing ---


def test_a_node_that_was_looked_for_is_drawn():
    view = reveal_nodes(collapse_graph(LARGE), ["n5", "n1000", "n5"])
    assert [node.id for node in view.nodes[:2]] == ["n5", "n1000"] and len(view.nodes) == 2 + 11
    assert view.drawn_as("n5") == "n5" and view.drawn_as("n6") == view.community_of("n6")
    assert reveal_nodes(collapse_graph(CLIQUE), ["n5"]).nodes == collapse_graph(CLIQUE).nodes


def test_nodes_drawn_before_give_way_to_what_is_looked_for_and_too_many_are_counted():
    view = opened(collapse_graph(MIDDLE, most=150), "community 1")
    other = next(id for id in MIDDLE.ids if view.community_of(id) == "community 5")
    wider = reveal_nodes(view, [other])
    assert wider.drawn_as(other) == other and len(wider.nodes) <= 150
    assert "drawn before gave way" in wider.note
    crowd = reveal_nodes(view, MIDDLE.ids[:400])
    assert len(crowd.nodes) <= 150 and "of the 400 nodes asked for found no room" in crowd.note


@pytest.mark.extended
@pytest.mark.parametrize(
    "graph",
    [MIDDLE, of_columns(1700, [(row // 2, row) for row in range(1, 1200)])],
    ids=["dense", "a tree and dust"],
)
def test_a_look_into_a_community_shows_few_things_and_leads_down_to_every_node_and_out_again(graph):
    top = collapse_graph(graph, most=150)
    waiting, seen = [(top, community.id) for community in top.communities], set()
    while waiting:
        view, id = waiting.pop()
        inner = open_community(view, id)
        outside = {inner.whole.ids[number] for number in inner.whole.outside}
        rows = set(view.whole.members[view.whole.number(id)].tolist())
        assert len(inner.nodes) <= MAX_OPENED_NODES + 7 and inner.note.startswith("Inside “")
        assert {inner.drawn_as(name) for name in graph.ids} == drawn(inner)
        assert set(inner.shown.tolist()) <= rows
        assert not any({bundle.source, bundle.target} <= outside for bundle in inner.bundles)
        assert inner.whole.outer is view
        seen |= set(inner.shown.tolist())
        groups = [
            community for community in inner.communities if community.hidden and community.id not in outside
        ]
        waiting += [(inner, group.id) for group in groups if len(inner.shown) == 0]
        if 0 < len(inner.shown) < len(rows):
            again = open_community(inner, id)
            assert not set(again.shown.tolist()) & set(inner.shown.tolist()), "the next ones"
    assert len(seen) > 0.7 * len(graph)


def test_unknown_names_are_refused():
    view = collapse_graph(LARGE)
    for act in (opened, close_community):
        with pytest.raises(UnknownName, match="community 1"):
            act(view, "community 99")
    with pytest.raises(UnknownName, match="unknown node"):
        reveal_nodes(view, ["nobody"])


# --- edges ---


def test_of_too_many_edges_each_node_keeps_some():
    view = collapse_graph(CLIQUE)
    ends = np.unique([end for edge in view.edges for end in (edge.source, edge.target)], return_counts=True)[
        1
    ]
    assert len(view.edges) == MAX_LINES and len(ends) == 300 and ends.min() > 10 and ends.max() < 80
    assert view.left_out == 300 * 299 / 2 - MAX_LINES and view.note.startswith("39,850 edges are left out")


def test_marked_edges_are_drawn_first():
    last = [edge.identity for edge in CLIQUE.edges[-20:]]
    left = next(edge.identity for edge in CLIQUE.edges if edge not in collapse_graph(CLIQUE).edges)
    view = collapse_graph(
        CLIQUE, marked=[*last, left, ("n1", "no such type", "n2", ""), ("nobody", "is", "n2", "")]
    )
    assert {*last, left} <= {edge.identity for edge in view.edges} and len(view.edges) == MAX_LINES
    assert "the marked ones and some of each node's" in view.note


@every(
    ("name", "size", "ends", "sizes"),
    [
        ("nothing", 0, [], []),
        ("one node", 1, [], [1]),
        ("two nodes", 2, [(0, 1)], [2]),
        ("a loop", 2, [(0, 0)], [2]),
        ("isolated", 50, [(0, 1)], [48, 2]),
        ("star", 60, [(0, row) for row in range(1, 60)], [60]),
        ("complete", 30, [(a, b) for a in range(30) for b in range(a)], [30]),
        (
            "pairs",
            200,
            [(row, row + 1) for row in range(0, 200, 2)],
            [2] * (MAX_COMMUNITIES - 1) + [200 - 2 * (MAX_COMMUNITIES - 1)],
        ),
    ],
)
def test_a_graph_without_structure_has_few_communities_too(name, size, ends, sizes):
    found = find_communities(of_columns(size, ends))
    assert np.bincount(found.of, minlength=len(found)).tolist() == sizes


def test_a_thousand_parallel_edges_leave_room_for_the_others():
    ends = [(0, 1)] * (2 * MAX_LINES) + [(row, row + 1) for row in range(1, 100)]
    view = collapse_graph(of_columns(101, ends))
    assert len(view.edges) == MAX_LINES
    assert {edge.source for edge in view.edges} == {f"n{row}" for row in range(100)}


@pytest.mark.extended
def test_all_communities_can_be_opened_as_far_as_there_is_room():
    view = collapse_graph(MIDDLE)
    for community in view.communities:
        view = opened(view, community.id)
    assert len(view.nodes) == 2000 and len(view.edges) + len(view.bundles) == MAX_LINES
    assert edges_of(view) == 9_000
    assert (
        f"{view.left_out:,} edges are left out: at most 5,000 lines are drawn, some of each node's."
        in view.note
    )
