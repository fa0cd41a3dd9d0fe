"""Dimensions computed from edges and texts, those that nothing can compute, and what drifted between two
graphs.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from support.cookbook import cookbook, rows

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.dimensions.catalogue import BY_NAME, DIMENSIONS
from kgot_lab.kgos.schemas.dimensions.drift import Shift, drift
from kgot_lab.kgos.schemas.dimensions.extracted import EXTRACTABLE, NOT_EXTRACTABLE, extract_dimensions
from kgot_lab.types import Edge, Node

GRAPH = PropertyGraph.of(
    [
        Node("hub", properties={"description": "It streams tokens and more tokens, and has a high price."}),
        Node("free", properties={"name": "Free and cheap", "relationship_richness": 0.9}),
        Node("dear", properties={"name": "Prompt", "description": "An expensive cost; the price is a fee."}),
        Node("alone"),
    ],
    [
        Edge("hub", "requires", "free"),
        Edge("hub", "requires", "dear"),
        Edge("hub", "requires", "dear", {}, "2"),
        Edge("dear", "requires", "free"),
        Edge("alone", "enables", "alone"),
    ],
)


def test_every_dimension_is_extractable_or_said_not_to_be():
    assert {*EXTRACTABLE, *NOT_EXTRACTABLE} == set(BY_NAME) and not set(EXTRACTABLE) & set(NOT_EXTRACTABLE)
    assert len(EXTRACTABLE) + len(NOT_EXTRACTABLE) == len(DIMENSIONS)
    assert {"code_generation_strength", "extraction_accuracy", "emergence_potential"} <= set(NOT_EXTRACTABLE)
    assert f"not extractable: {', '.join(NOT_EXTRACTABLE)}" in repr(extract_dimensions(GRAPH))


def test_richness_is_the_degree_centrality_of_distinct_neighbours_over_the_greatest():
    assert extract_dimensions(GRAPH).values["relationship_richness"].tolist() == [1, 1, 1, 0]
    star = PropertyGraph.from_triples([("hub", "has", leaf) for leaf in "abcd"])
    assert extract_dimensions(star).values["relationship_richness"].tolist() == [1, 0.25, 0.25, 0.25, 0.25]


def test_complexity_is_the_number_of_requirements_over_the_greatest():
    assert extract_dimensions(GRAPH).values["implementation_complexity"].tolist() == pytest.approx(
        [1, 0, 1 / 3, 0], abs=1e-6
    )


def test_what_a_graph_has_no_edges_for_has_no_value():
    found = extract_dimensions(PropertyGraph.from_triples([("a", "enables", "b")]))
    assert np.isnan(found.values["implementation_complexity"]).all()
    assert "nothing in this graph speaks for: implementation_complexity" in repr(found)


def test_words_speak_for_an_end_by_the_rule_of_succession_and_silence_is_no_value():
    found = extract_dimensions(GRAPH)
    assert found.of("free")["pricing_tier"] == 0.25  # (0 + 1) / (0 + 2 + 2)
    assert found.of("dear")["pricing_tier"] == pytest.approx(5 / 6, abs=1e-6)  # expensive, cost, price, fee
    assert (
        found.of("hub")["streaming_support"] == pytest.approx(2 / 3, abs=1e-6)
        and found.of("hub")["token_efficiency"] == 0.333333
    )
    assert "pricing_tier" not in found.of("alone") and "streaming_support" not in found.of("free")


def test_a_price_in_numbers_counts_more_than_words():
    graph = PropertyGraph.of(
        [Node("a", properties={"price_per_call": 0.02, "name": "free"}), Node("b", properties={"cost": 0.08})]
    )
    assert extract_dimensions(graph).values["pricing_tier"].tolist() == [0.25, 1]


def test_density_is_the_share_of_different_telling_words_in_texts_of_some_length():
    graph = PropertyGraph.of(
        [
            Node("a", properties={"text": "the the the the cat"}),
            Node("b", properties={"text": "dense terse prose"}),
        ]
    )
    values = extract_dimensions(graph).values["knowledge_density"]
    assert values[0] == 0.2 and math.isnan(values[1])


def test_computed_values_fill_in_and_never_overwrite():
    filled = extract_dimensions(GRAPH).filled()
    assert filled.node("free").properties["relationship_richness"] == 0.9
    assert filled.node("hub").properties["relationship_richness"] == 1.0
    assert list(filled.edges) == list(GRAPH.edges)


def test_every_computed_value_lies_on_the_scale_and_comes_out_the_same_again():
    graph = cookbook()
    one, two = extract_dimensions(graph), extract_dimensions(graph)
    for name in EXTRACTABLE:
        known = one.values[name][~np.isnan(one.values[name])]
        assert known.size and known.min() >= 0 and known.max() <= 1, name
        np.testing.assert_array_equal(one.values[name], two.values[name])


def test_a_graph_without_texts_edges_or_nodes_is_no_trouble():
    assert extract_dimensions(PropertyGraph.of()).values["pricing_tier"].tolist() == []
    assert extract_dimensions(PropertyGraph.of([Node("a")])).of("a") == {"relationship_richness": 0}
    with pytest.raises(BadInput, match="PropertyGraph"):
        extract_dimensions([Node("a")])


# --- drift
# --------------------------------------------------------------------------------------------------------------


def rated() -> PropertyGraph:
    """The cookbook with the values of its first rater."""
    ratings = {row["id"]: row["ratings"] for row in rows("ratings_a.jsonl")}
    graph = cookbook()
    return PropertyGraph.of(
        (replace(node, properties={**node.properties, **ratings.get(node.id, {})}) for node in graph.nodes),
        graph.edges,
    )


def altered(graph: PropertyGraph, changes: dict[tuple[str, str], object]) -> PropertyGraph:
    nodes = []
    for node in graph.nodes:
        mine = {name: value for (id, name), value in changes.items() if id == node.id}
        nodes.append(replace(node, properties={**node.properties, **mine}))
    return PropertyGraph.of(nodes, graph.edges)


def test_a_copy_of_a_graph_has_not_drifted():
    graph = rated()
    report = drift(graph, altered(graph, {}))
    assert report.silent and report.changed == frozenset() and len(report.dimensions) > 30
    assert repr(report) == f"0 of {len(report.dimensions)} dimensions drifted"


@pytest.mark.parametrize("seed", range(5))
def test_a_report_names_exactly_the_values_that_were_altered(seed):
    graph, chance = rated(), random.Random(seed)
    there = [(node.id, name) for node in graph.nodes for name in node.properties if name in BY_NAME]
    changes: dict[tuple[str, str], object] = {}
    for id, name in chance.sample(there, 25):
        changes[id, name] = chance.choice([None, "0.5", (graph.node(id).properties[name] + 0.3) % 1.0])
    report = drift(graph, altered(graph, changes))
    assert report.changed == set(changes) and not report.silent


def test_a_report_says_how_far_values_moved_and_the_farthest_first():
    before = PropertyGraph.of(
        [Node(id, properties={"pricing_tier": value}) for id, value in (("a", 0.5), ("b", 0.2), ("c", 0.9))]
    )
    after = altered(before, {("a", "pricing_tier"): 0.4, ("b", "pricing_tier"): 0.8})
    found = drift(before, after)["pricing_tier"]
    assert found.moved == (Shift("b", 0.2, 0.8), Shift("a", 0.5, 0.4)) and found.compared == 3
    assert str(found) == "pricing_tier: 2 of 3 values moved, mean 0.533 → 0.700: b 0.2 → 0.8, a 0.5 → 0.4"
    assert [shift.id for shift in drift(before, after, least=0.2)["pricing_tier"].moved] == ["b"]


def test_nodes_of_one_graph_only_are_named_and_not_compared():
    before = PropertyGraph.of([Node("a", properties={"pricing_tier": 0.5}), Node("old")])
    after = PropertyGraph.of(
        [Node("a", properties={"token_efficiency": 0.5}), Node("new", properties={"pricing_tier": 1})]
    )
    report = drift(before, after)
    assert (report.only_before, report.only_after) == (("old",), ("new",))
    assert report["pricing_tier"].gone == ("a",) and report["token_efficiency"].came == ("a",)
    assert "1 node only before; 1 node only after" in repr(
        report
    ) and "pricing_tier: 0 of 0 values moved; 1 node lost it" in repr(report)
    with pytest.raises(
        BadInput,
        match=r"neither graph has values of 'learning_curve'; they have those of pricing_tier, token_efficiency",
    ):
        report["learning_curve"]


def test_only_the_fifty_six_and_what_is_declared_are_compared():
    before, after = (PropertyGraph.of([Node("a", properties={"confidence": value})]) for value in (0.1, 0.9))
    assert drift(before, after).silent
    assert drift(before, after, declared=["confidence"]).changed == {("a", "confidence")}
    with pytest.raises(BadInput, match="least"):
        drift(before, after, least=-1)
