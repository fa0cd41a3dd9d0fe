"""The twelve rules: each with a graph that breaks it and one that does not, alone and on the cookbook."""

from __future__ import annotations

import pytest
from support.cookbook import cookbook
from support.every import every
from support.foreign_files import of_profile
from support.method_graphs import edges_of

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.validation import NodeType
from kgot_lab.kgos.schemas.foreign_files import read_foreign
from kgot_lab.kgos.schemas.rules import TWELVE_RULES, check_rules, cycle_through, nodes_on_cycles
from kgot_lab.kgos.schemas.vocabularies import COOKBOOK, UNIFIED
from kgot_lab.types import Edge, Node


def node(id: str, name: object = "A name", type: str | None = "tool", **properties: object) -> Node:
    return Node(id, (type,) if type else (), {"name": name, **properties})


def graph(text: str = "", *given: Node) -> PropertyGraph:
    """The edges of a text, sound nodes at their ends, and some nodes that are given."""
    edges = edges_of(text)
    nodes = {end: node(end) for edge in edges for end in (edge.source, edge.target)}
    return PropertyGraph.of((nodes | {each.id: each for each in given}).values(), edges)


def breaking(number: int, of: PropertyGraph) -> str:
    """What breaks a rule, in short."""
    found = check_rules(of)[number]
    if found.rule.on == "nodes":
        return ", ".join(sorted(of.ids[row] for row in found.rows))
    edges = (of.edges[int(row)] for row in found.rows)
    return ", ".join(sorted(f"{edge.source} {edge.type} {edge.target}{edge.key}" for edge in edges))


NAMES = [node("a"), node("b", "  "), node("c", ""), node("d", None), node("e", 7), node("f", " x ")]
KINDS = [node("b", type="gadget"), node("c", type=None), Node("d", ("tool", "goal"), {"name": "D"})]
PARALLEL = [Edge("a", "enables", "b", {}, key) for key in ("", "2", "3")]
CASES = [  # rule, a graph, what in it breaks the rule
    (1, graph("", *NAMES), "b, c, d, e"),
    (1, graph("a enables b"), ""),
    (2, graph("", node("a"), *KINDS), "b, c, d"),
    (2, graph("", *(node(each.name, type=each.name) for each in UNIFIED.node_types)), ""),
    (4, graph("a enables a, a enables b"), "a enables a"),
    (4, graph("a enables b, b enables a"), ""),
    (5, PropertyGraph.of([node("a"), node("b")], PARALLEL), "a enables b2, a enables b3"),
    (5, graph("a enables b, b enables a, a reduces b"), ""),
    (6, graph("root enables b", node("alone")), "alone"),
    (6, graph("root enables b, loop enables loop"), ""),
    (7, graph("a enables b, a frobs b"), "a frobs b"),
    (7, graph(", ".join(f"a {each.name} b" for each in UNIFIED.edge_types)), ""),
    (9, graph("a requires b, b requires c, c requires a, x requires a, c requires y"), "a, b, c"),
    (9, graph("a requires a, a requires b"), "a"),
    # m lies between two circles
    (
        9,
        graph("a requires b, b requires a, a requires m, m requires x, x requires y, y requires x"),
        "a, b, x, y",
    ),
    (9, graph("a requires b, b requires c, a requires c, c enables a"), ""),
    (10, graph("l has_workaround w"), "l has_workaround w"),
    (10, graph("t has_limitation l, w has_workaround l"), "w has_workaround l"),
    (10, graph("t has_limitation l, l has_workaround w"), ""),
    (10, graph("t has_limitation l, t has_workaround w"), ""),
    (11, graph("a feeds_into b, b feeds_into a, c feeds_into c"), "a, b, c"),
    (11, graph("a feeds_into b, b feeds_into c, c requires a"), ""),
    (12, graph("t has_limitation l"), "t"),
    (12, graph("t has_limitation l", node("t", no_workaround=False)), "t"),
    (12, graph("t has_limitation l, u has_limitation m, l has_workaround w"), "u"),
    (12, graph("t has_limitation l, t has_limitation m, m has_workaround w"), ""),
    (12, graph("t has_limitation l, t has_workaround w"), ""),
    (12, graph("t has_limitation l", node("t", no_workaround=True)), ""),
]


@every("number, of, expected", CASES, ids=[f"{number}: {expected}" for number, _, expected in CASES])
def test_a_rule_finds_what_breaks_it_and_nothing_else(number, of, expected):
    assert breaking(number, of) == expected


def test_a_rule_about_rows_of_a_file_finds_them_when_it_is_read(tmp_path):
    def report(nodes, edges):
        (tmp_path / "g.db").unlink(missing_ok=True)
        return read_foreign(of_profile(tmp_path / "g.db", "unified", nodes, edges)).check()

    sound = report([("a", "A", "goal", "{}")], [("a", "a", "enables", None)])
    broken = report([("a", "A", "goal", "{")], [("a", "a", "enables", "[]"), ("a", "b", "enables", None)])
    assert [(len(sound[number]), len(broken[number])) for number in (3, 8)] == [(0, 1), (0, 2)]
    assert all(str(fault).startswith("error at row ") for fault in (*broken[3].faults, *broken[8].faults))


def test_there_are_twelve_rules_with_the_documents_severities_and_each_was_tried_both_ways():
    assert [rule.number for rule in TWELVE_RULES] == list(range(1, 13))
    assert "".join(rule.severity[0] for rule in TWELVE_RULES) == "eeewwwweewei"
    tried = {(number, bool(expected)) for number, _, expected in CASES}
    assert tried == {(number, breaks) for number in {*range(1, 13)} - {3, 8} for breaks in (True, False)}


def test_the_cookbook_passes_all_twelve_and_a_change_of_it_is_noticed():
    of = cookbook()
    report = check_rules(of, COOKBOOK)
    assert report.broken == () and report.sound and str(report) == "12 of 12 rules hold"
    nodes, edges = list(of.nodes), list(of.edges)
    step = next(edge for edge in edges if edge.type == "requires")
    back = Edge(step.target, "requires", step.source)
    fewer = [edge for edge in edges if edge.type != "has_workaround"]
    changed = [check_rules(PropertyGraph.of(nodes, each), COOKBOOK) for each in ([*edges, back], fewer, [])]
    assert len(changed[0][9]) >= 2 and len(changed[1][12]) > 10 and len(changed[2][6]) == 291


def test_a_fault_says_where_it_is_and_what_to_do():
    said = list(map(str, check_rules(graph("a requires b, b requires a", node("b", "", "gadget"))).faults))
    assert said[0] == "error at node 'b': its name is a str (''); give it one"
    told = "error at node 'b': its type is 'gadget', which is not in the vocabulary; give it"
    assert said[1].startswith(told)
    circle = "it requires itself: 'a' -requires-> 'b' -requires-> 'a'; take the edge out that is wrong"
    assert f"error at node 'a': {circle}" in said


def test_a_report_counts_by_severity_and_shows_the_first_of_many():
    report = check_rules(graph("t has_limitation l", *(node(f"n{i}") for i in range(1_000))))
    assert str(report) == "10 of 12 rules hold; found: 1,000 warning, 1 info" and report.sound
    assert "  … 997 more" in repr(report) and len(repr(report).splitlines()) == 8
    loop = check_rules(graph("a requires a"))
    assert [each.rule.number for each in loop.broken] == [4, 9], "a loop of requires breaks two rules"


def test_only_the_rules_and_types_that_are_asked_for_are_tried():
    report = check_rules(graph("", node("a", "")), only=[1, 6])
    assert [each.rule.number for each in report.found] == [1, 6]
    gadget, known = graph("", node("a", type="gadget")), UNIFIED.with_types(NodeType("gadget", "a thing"))
    assert len(check_rules(gadget)[2]) == 1 and len(check_rules(gadget, known)[2]) == 0
    assert check_rules(PropertyGraph.of()).broken == ()
    with pytest.raises(UnknownName, match="rule '13'"):
        check_rules(graph(), only=[13])
    with pytest.raises(BadInput, match="PropertyGraph"):
        check_rules([("a", "requires", "b")])


def test_a_long_chain_and_a_long_circle_are_told_apart():
    text = ", ".join(f"n{i} requires n{i + 1}" for i in range(2_999))
    line, ring = graph(text), graph(f"{text}, n2999 requires n0")
    assert len(nodes_on_cycles(line, "requires")) == 0 and len(nodes_on_cycles(ring, "requires")) == 3_000
    assert cycle_through(line, "requires", 0) == () and len(cycle_through(ring, "requires", 5)) == 3_001
