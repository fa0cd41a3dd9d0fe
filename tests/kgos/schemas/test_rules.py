"""The twelve rules: each with a graph that breaks it and one that does not, alone and on the cookbook."""

from __future__ import annotations

from itertools import pairwise

import pytest
from support.cookbook import cookbook
from support.every import every
from support.foreign_files import of_profile

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.validation import NodeType
from kgot_lab.kgos.schemas.foreign_files import read_foreign
from kgot_lab.kgos.schemas.rules import TWELVE_RULES, check_rules, circle_through, on_circles
from kgot_lab.kgos.schemas.vocabularies import COOKBOOK, UNIFIED
from kgot_lab.types import Edge, Node


def node(id: str, name: object = "A name", type: str | None = "tool", **properties: object) -> Node:
    return Node(id, (type,) if type else (), {"name": name, **properties})


def graph(*things: Node | Edge) -> PropertyGraph:
    """Some nodes and edges; the ends of edges are added as sound nodes."""
    edges = [each for each in things if isinstance(each, Edge)]
    nodes = {end: node(end) for edge in edges for end in (edge.source, edge.target)}
    return PropertyGraph.of(
        [*({**nodes, **{each.id: each for each in things if isinstance(each, Node)}}).values()], edges
    )


def breaking(number: int, of: PropertyGraph) -> list[str]:
    """What breaks a rule, in short."""
    found = check_rules(of)[number]
    if found.rule.on == "nodes":
        return [of.ids[row] for row in found.rows]
    return [
        f"{edge.source} {edge.type} {edge.target}{edge.key and f' {edge.key}'}"
        for edge in (of.edges[int(row)] for row in found.rows)
    ]


def chain(type: str, *ids: str) -> list[Edge]:
    return [Edge(a, type, b) for a, b in pairwise(ids)]


CASES = [  # rule, a graph, what in it breaks the rule
    (
        1,
        graph(node("a"), node("b", "  "), node("c", ""), node("d", None), node("e", 7)),
        ["b", "c", "d", "e"],
    ),
    (1, graph(node("a"), node("b", " x ")), []),
    (
        2,
        graph(
            node("a"),
            node("b", type="gadget"),
            node("c", type=None),
            Node("d", ("tool", "goal"), {"name": "D"}),
        ),
        ["b", "c", "d"],
    ),
    (2, graph(*(node(each.name, type=each.name) for each in UNIFIED.node_types)), []),
    (4, graph(Edge("a", "enables", "a"), Edge("a", "enables", "b")), ["a enables a"]),
    (4, graph(Edge("a", "enables", "b"), Edge("b", "enables", "a")), []),
    (
        5,
        graph(
            Edge("a", "enables", "b"),
            Edge("a", "enables", "b", {"n": 2}, "2"),
            Edge("a", "enables", "b", {}, "3"),
        ),
        ["a enables b 2", "a enables b 3"],
    ),
    (5, graph(Edge("a", "enables", "b"), Edge("b", "enables", "a"), Edge("a", "reduces", "b")), []),
    (6, graph(node("alone"), Edge("root", "enables", "b")), ["alone"]),
    (6, graph(Edge("root", "enables", "b"), Edge("loop", "enables", "loop")), []),
    (7, graph(Edge("a", "enables", "b"), Edge("a", "frobs", "b"), Edge("a", "", "b")), ["a frobs b", "a  b"]),
    (7, graph(*(Edge("a", each.name, "b") for each in UNIFIED.edge_types)), []),
    (
        9,
        graph(
            *chain("requires", "a", "b", "c", "a"), *chain("requires", "x", "a"), *chain("requires", "c", "y")
        ),
        ["a", "b", "c"],
    ),
    (9, graph(Edge("a", "requires", "a"), Edge("a", "requires", "b")), ["a"]),
    (
        9,
        graph(*chain("requires", "a", "b", "a", "m", "x", "y", "x")),
        ["a", "b", "x", "y"],
    ),  # m lies between two circles
    (9, graph(*chain("requires", "a", "b", "c"), Edge("a", "requires", "c"), Edge("c", "enables", "a")), []),
    (10, graph(Edge("l", "has_workaround", "w")), ["l has_workaround w"]),
    (10, graph(Edge("t", "has_limitation", "l"), Edge("w", "has_workaround", "l")), ["w has_workaround l"]),
    (10, graph(Edge("t", "has_limitation", "l"), Edge("l", "has_workaround", "w")), []),
    (10, graph(Edge("t", "has_limitation", "l"), Edge("t", "has_workaround", "w")), []),
    (11, graph(*chain("feeds_into", "a", "b", "a"), Edge("c", "feeds_into", "c")), ["a", "b", "c"]),
    (11, graph(*chain("feeds_into", "a", "b", "c"), Edge("c", "requires", "a")), []),
    (12, graph(Edge("t", "has_limitation", "l")), ["t"]),
    (12, graph(node("t", no_workaround=False), Edge("t", "has_limitation", "l")), ["t"]),
    (
        12,
        graph(
            Edge("t", "has_limitation", "l"),
            Edge("u", "has_limitation", "m"),
            Edge("l", "has_workaround", "w"),
        ),
        ["u"],
    ),
    (
        12,
        graph(
            Edge("t", "has_limitation", "l"),
            Edge("t", "has_limitation", "m"),
            Edge("m", "has_workaround", "w"),
        ),
        [],
    ),
    (12, graph(Edge("t", "has_limitation", "l"), Edge("t", "has_workaround", "w")), []),
    (12, graph(node("t", no_workaround=True), Edge("t", "has_limitation", "l")), []),
]


@every(
    ("number", "of", "expected"),
    CASES,
    ids=[f"{number}-{'breaks' if bad else 'holds'}" for number, _, bad in CASES],
)
def test_a_rule_finds_what_breaks_it_and_nothing_else(number, of, expected):
    assert sorted(breaking(number, of)) == sorted(expected)


@pytest.mark.parametrize(
    ("number", "nodes", "edges", "expected"),
    [
        (3, [("a", "A", "goal", None)], [("a", "b", "enables", None)], 1),
        (3, [("a", "A", "goal", None)], [("a", "a", "enables", None)], 0),
        (8, [("a", "A", "goal", "{")], [("a", "a", "enables", "[]")], 2),
        (8, [("a", "A", "goal", "{}")], [("a", "a", "enables", None)], 0),
    ],
    ids=["3-breaks", "3-holds", "8-breaks", "8-holds"],
)
def test_a_rule_about_rows_of_a_file_finds_them_when_it_is_read(tmp_path, number, nodes, edges, expected):
    report = read_foreign(of_profile(tmp_path / "g.db", "unified", nodes, edges)).check()
    assert len(report[number]) == expected
    assert all(str(fault).startswith("error at row 1 of unified_") for fault in report[number].faults)


def test_there_are_twelve_rules_with_the_documents_severities_and_each_was_tried_both_ways():
    assert [each.number for each in TWELVE_RULES] == list(range(1, 13))
    assert "".join(each.severity[0] for each in TWELVE_RULES) == "eeewwwweewei"
    tried = {(number, bool(expected)) for number, _, expected in CASES} | {
        (3, True),
        (3, False),
        (8, True),
        (8, False),
    }
    assert tried == {(number, breaks) for number in range(1, 13) for breaks in (True, False)}


def test_the_cookbook_passes_all_twelve():
    of = cookbook()
    assert (len(of), len(of.edges)) == (291, 729)
    report = check_rules(of, COOKBOOK)
    assert report.broken == () and report.sound and str(report) == "12 of 12 rules hold"


def test_one_edge_or_property_taken_from_the_cookbook_or_added_is_noticed():
    of = cookbook()
    nodes, edges = list(of.nodes), list(of.edges)
    step = next(edge for edge in edges if edge.type == "requires")
    assert (
        len(
            check_rules(
                PropertyGraph.of(nodes, [*edges, Edge(step.target, "requires", step.source)]), COOKBOOK
            )[9]
        )
        >= 2
    )
    fewer = [edge for edge in edges if edge.type != "has_workaround"]
    assert len(check_rules(PropertyGraph.of(nodes, fewer), COOKBOOK)[12]) > 10
    assert len(check_rules(PropertyGraph.of(nodes, []), COOKBOOK)[6]) == 291


def test_a_fault_says_where_it_is_and_what_to_do():
    of = graph(*chain("requires", "a", "b", "a"), node("b", "", "gadget"))
    said = list(map(str, check_rules(of).faults))
    assert said[0] == "error at node 'b': its name is a str (''); give it one"
    assert said[1].startswith(
        "error at node 'b': its type is 'gadget', which is not in the vocabulary; give it one type"
    )
    assert (
        "error at node 'a': it requires itself: 'a' -requires-> 'b' -requires-> 'a'; take the edge out that is wrong"
        in said
    )


def test_a_report_counts_by_severity_and_shows_the_first_of_many():
    report = check_rules(graph(*(node(f"n{i}") for i in range(1_000)), Edge("t", "has_limitation", "l")))
    assert str(report) == "10 of 12 rules hold; found: 1,000 warning, 1 info" and report.sound
    assert "  … 997 more" in repr(report) and len(repr(report).splitlines()) == 8


def test_a_loop_of_requires_breaks_two_rules():
    report = check_rules(graph(Edge("a", "requires", "a")))
    assert [each.rule.number for each in report.broken] == [4, 9]


def test_only_the_rules_that_are_asked_for_are_tried():
    report = check_rules(graph(node("a", "")), only=[1, 6])
    assert [each.rule.number for each in report.found] == [1, 6]
    with pytest.raises(UnknownName, match="rule '13'"):
        check_rules(graph(), only=[13])
    with pytest.raises(BadInput, match="PropertyGraph"):
        check_rules([("a", "requires", "b")])


def test_a_vocabulary_of_ones_own_decides():
    of = graph(node("a", type="gadget"))
    assert (
        len(check_rules(of)[2]) == 1
        and len(check_rules(of, UNIFIED.extended(NodeType("gadget", "a thing")))[2]) == 0
    )


def test_an_empty_graph_breaks_nothing():
    assert check_rules(PropertyGraph.of()).broken == ()


def test_a_long_chain_and_a_long_circle_are_told_apart():
    ids = [f"n{i}" for i in range(3_000)]
    line = graph(*chain("requires", *ids))
    ring = graph(*chain("requires", *ids, ids[0]))
    assert len(on_circles(line, "requires")) == 0 and len(on_circles(ring, "requires")) == 3_000
    assert circle_through(line, "requires", 0) == () and len(circle_through(ring, "requires", 5)) == 3_001
