"""Dimensions computed from edges and texts, those that nothing can compute."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.cookbook import cookbook

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.dimensions import BY_NAME, DIMENSIONS
from kgot_lab.kgos.schemas.extracted_dimensions import EXTRACTABLE, NOT_EXTRACTABLE, extract_dimensions
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
