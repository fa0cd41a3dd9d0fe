"""The twelve rules against SHACL: pyshacl finds the same nodes and edges, with the same severities, in graphs
made by chance.
"""

from __future__ import annotations

import random

import pytest
from support.cookbook import cookbook
from support.every import every
from support.foreign_files import of_profile
from support.shacl_oracle import SHAPES, as_rdf, verdict, verdict_on

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.validation import Vocabulary
from kgot_lab.kgos.schemas.foreign_files import read_foreign
from kgot_lab.kgos.schemas.rules import TWELVE_RULES, check_rules
from kgot_lab.kgos.schemas.vocabularies import COOKBOOK, UNIFIED
from kgot_lab.types import Edge, Node

TYPES = [
    ("requires", "feeds_into"),
    ("has_limitation", "has_workaround"),
    ("requires", "has_limitation", "has_workaround", "enables", "frobs"),
]
IN_SHACL = {"error": "Violation", "warning": "Warning", "info": "Info"}
SEEDS = range(40)


def by_chance(seed: int) -> PropertyGraph:
    """A small graph in which every rule that a graph can break is broken now and then."""
    chance = random.Random(seed)
    ids = [f"n{i}" for i in range(chance.randint(1, 7))]
    nodes = []
    for id in ids:
        labels = chance.choice([("tool",), ("tool",), ("goal",), ("gadget",), (), ("tool", "goal")])
        name = chance.choice(["A", "B", "C", " ", "", None, 7])
        nodes.append(Node(id, labels, {"name": name} | chance.choice([{}, {}, {"no_workaround": True}])))
    edges, types = {}, TYPES[seed % len(TYPES)]
    for number in range(chance.randint(0, 9)):
        edge = Edge(chance.choice(ids), chance.choice(types), chance.choice(ids), {}, str(number))
        edges[edge.identity] = edge
    return PropertyGraph.of(nodes, edges.values())


def ours(graph: PropertyGraph, vocabulary: Vocabulary = UNIFIED) -> dict[int, set[str]]:
    found = {}
    for each in check_rules(graph, vocabulary).broken:
        rows = each.rows.tolist()
        on_nodes = each.rule.on == "nodes"
        found[each.rule.number] = {graph.ids[row] if on_nodes else str(row) for row in rows}
    return found


@pytest.mark.extended
@every("seed", SEEDS[::4])
def test_pyshacl_finds_the_same_in_a_graph_made_by_chance(seed):
    graph = by_chance(seed)
    theirs = verdict_on(graph, UNIFIED)
    assert ours(graph) == dict(theirs.broken)
    broken = [rule for rule in TWELVE_RULES if rule.number in theirs.broken]
    assert theirs.severity == {rule.number: IN_SHACL[rule.severity] for rule in broken}


def test_each_rule_is_broken_and_kept_in_some_of_these_graphs():
    broken = [set(ours(by_chance(seed))) for seed in SEEDS]
    for number in set(SHAPES) - {3}:
        assert 3 <= sum(number in each for each in broken) <= len(broken) - 3, number


def test_pyshacl_finds_the_same_in_a_piece_of_the_cookbook_whose_edges_were_cut():
    piece = cookbook().neighbourhood(["technique:reranking"], 1)
    theirs = verdict_on(piece, COOKBOOK)
    assert len(piece) > 8 and ours(piece, COOKBOOK) == dict(theirs.broken)


def test_pyshacl_names_the_edges_that_the_reader_leaves_out(tmp_path):
    nodes = [("a", "A", "tool", None), ("b", "B", "goal", None)]
    edges = [("a", "b", "enables", None), ("a", "gone", "requires", None), ("lost", "gone", "requires", None)]
    read = read_foreign(of_profile(tmp_path / "g.db", "unified", nodes, edges))
    of_nodes = ((id, (type,), {"name": name}) for id, name, type, _ in nodes)
    rdf = as_rdf(of_nodes, ((source, type, target) for source, target, type, _ in edges))
    left_out = {str(row.row - 1) for row in read.unread if row.rule == 3}
    assert verdict(rdf, UNIFIED).broken[3] == left_out == {"1", "2"}
