"""The 56 dimensions, which nodes lie within bounds on them, and those that are computed."""

from __future__ import annotations

import json
import math
import sqlite3
import sys
from collections import Counter
from contextlib import closing

import numpy as np
import pytest
from support.cookbook import cookbook
from support.every import every

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.dimensions import dimension_filter
from kgot_lab.kgos.schemas.dimensions import (
    DIMENSION_CATEGORIES,
    DIMENSIONS,
    DIMENSIONS_BY_NAME,
    dimension_values,
    to_number,
    validate_bounds,
    within_bounds,
)
from kgot_lab.kgos.schemas.extracted_dimensions import EXTRACTABLE, NOT_EXTRACTABLE, extract_dimensions
from kgot_lab.types import Edge, Node

ROWS = {
    "cheap": '{"pricing_tier": 0.1, "batch_suitability": 1}',
    "edge": '{"pricing_tier": 0.3, "batch_suitability": 0.7}',
    "computed": json.dumps({"pricing_tier": 0.1 + 0.2}),
    "text": '{"pricing_tier": "0.9"}',
    "flag": '{"pricing_tier": true}',
    "huge": '{"pricing_tier": 1e999}',
    "null": '{"pricing_tier": null}',
    "empty": "{}",
    "broken": '{"pricing_tier": 0.2',
}
FILTERS = [
    ({"pricing_tier": (None, 0.3)}, ["cheap", "edge"]),
    ({"pricing_tier": {"exact": 0.3}}, ["edge", "computed"]),  # within a billionth
    ({"pricing_tier": {"min": 0.05, "max": 0.3}, "batch_suitability": {"min": 0.7}}, ["cheap", "edge"]),
    ({"pricing_tier": (None, None)}, ["cheap", "edge", "computed"]),
    ({"pricing_tier": (0.3, None)}, ["edge", "computed"]),
    ({"pricing_tier": (0.9, None)}, []),
    ({"batch_suitability": {"exact": 1}}, ["cheap"]),
    ({"token_efficiency": {"min": 0}}, []),
]


def parsed(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return {name: value for name, value in found.items() if value != math.inf}  # no graph keeps it


GRAPH = PropertyGraph.of(Node(id, properties=parsed(text)) for id, text in ROWS.items())


def test_there_are_fifty_six_dimensions_in_nine_categories_of_the_documents_sizes():
    assert len({dimension.name for dimension in DIMENSIONS}) == len(DIMENSIONS) == 56
    sizes = Counter(dimension.category for dimension in DIMENSIONS)
    assert [sizes[category] for category in DIMENSION_CATEGORIES] == [8, 6, 7, 6, 8, 7, 5, 3, 6]
    assert all(
        dimension.low and dimension.high and dimension.low != dimension.high for dimension in DIMENSIONS
    )
    assert "0 nothing, or nearly nothing, 1 much for every call" in str(DIMENSIONS_BY_NAME["pricing_tier"])


LARGEST = sys.float_info.max  # a number beyond it is infinite to SQLite
NUMBER_BETWEEN = (
    "CASE WHEN json_valid(properties) THEN CASE WHEN json_type(properties, ?) IN ('integer', 'real') "
    "THEN json_extract(properties, ?) BETWEEN ? AND ? ELSE 0 END ELSE 0 END"
)


@every("filters, ids", FILTERS)
def test_columns_and_sql_keep_the_same_nodes_whatever_stands_in_the_rows(filters, ids):
    kept = np.ones(len(GRAPH), bool)
    for name, bounds in validate_bounds(filters).items():
        kept &= within_bounds(dimension_values(GRAPH, name), bounds)
    conditions, parameters = ["1"], []
    for name, (low, high) in validate_bounds(filters).items():
        slack = 1e-9 if low == high else 0.0
        lowest, highest = (
            (low or 0) - slack if low is not None else -LARGEST,
            LARGEST if high is None else high + slack,
        )
        conditions.append(NUMBER_BETWEEN)
        parameters += [f'$."{name}"'] * 2 + [lowest, highest]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE nodes (id TEXT, properties TEXT)")
        connection.executemany("INSERT INTO nodes VALUES (?, ?)", ROWS.items())
        query = f"SELECT id FROM nodes WHERE {' AND '.join(conditions)} ORDER BY rowid"
        found = connection.execute(query, parameters).fetchall()
    assert [id for (id,) in found] == ids == [GRAPH.ids[row] for row in np.flatnonzero(kept)]


def test_a_filter_says_what_it_left_out_and_names_what_is_no_number():
    found = dimension_filter(GRAPH, {"pricing_tier": {"min": 0.2}})
    said = "0.2 <= pricing_tier leaves out 1 outside, 4 without a value, 2 with something else than a number (text"
    assert found.ids == ["edge", "computed"] and found.why[0].startswith(f"{said} has '0.9', flag has True")
    assert dimension_filter(GRAPH, {"pricing_tier": {"min": 0.2}}, limit=1).ids == ["edge"]


def test_a_value_is_a_json_number_or_none():
    assert to_number(1) == 1.0 and to_number(0.5) == 0.5
    for value in (None, True, "0.9", [0.9], math.inf, math.nan, 10**400):
        assert math.isnan(to_number(value)), value


@every(
    "filters, said",
    [
        ({"pricing_teir": (0, 1)}, "did you mean 'pricing_tier'"),
        ({"confidence": (0, 1)}, "unknown dimension"),
        ({"x') OR 1=1 --": (0, 1)}, "unknown dimension"),
        ({}, "at least one"),
        (None, "pricing_tier"),
        ([("pricing_tier", (0, 1))], "pricing_tier"),
        *(
            ({"pricing_tier": given}, said)
            for given, said in (
                ((0.5, 0.1), "no number lies between"),
                ((math.nan, 1), "must be numbers"),
                (("0.1", None), "must be numbers"),
                ((None, True), "must be numbers"),
                ((0.1,), "a pair"),
                (0.3, "a pair"),
                ({}, "exact"),
                ({"min": 0.1, "exact": 0.2}, "exact"),
                ({"over": 0.1}, "exact"),
                ((None, 1.5), "from 0 to 1"),
                ({"min": -0.1}, "from 0 to 1"),
            )
        ),
    ],
)
def test_bounds_that_make_no_sense_are_refused_with_the_reason(filters, said):
    with pytest.raises(BadInput, match=said):
        validate_bounds(filters)


def test_a_declared_name_may_have_any_number():
    assert validate_bounds({"confidence": {"min": 2}}, declared=["confidence"]) == {"confidence": (2.0, None)}
    with pytest.raises(BadInput, match=r"\['confidence'\]"):
        validate_bounds({"conf": (0, 1)}, declared="confidence")
    with pytest.raises(UnknownName, match="did you mean 'pricing_tier'"):  # one that no node has
        dimension_filter(GRAPH, {"pricing_teir": {"min": 0}})


# --- computed from edges and texts

TOLD = PropertyGraph.of(
    [
        Node("hub", properties={"description": "It streams tokens and more tokens, and has a high price."}),
        Node("free", properties={"name": "Free and cheap", "relationship_richness": 0.9}),
        Node("dear", properties={"name": "Prompt", "description": "An expensive cost; the price is a fee."}),
        Node("alone"),
        Node("sum", properties={"price_per_call": 0.02, "text": "the the the the cat"}),
    ],
    [
        Edge("hub", "requires", "free"),
        Edge("hub", "requires", "dear"),
        Edge("hub", "requires", "dear", {}, "2"),
        Edge("dear", "requires", "free"),
        Edge("alone", "enables", "alone"),
    ],
)
NAN = math.nan


def test_every_dimension_is_extractable_or_said_not_to_be():
    assert {*EXTRACTABLE, *NOT_EXTRACTABLE} == set(DIMENSIONS_BY_NAME)
    assert not set(EXTRACTABLE) & set(NOT_EXTRACTABLE)
    assert {"code_generation_strength", "extraction_accuracy", "emergence_potential"} <= set(NOT_EXTRACTABLE)
    assert f"not extractable: {', '.join(NOT_EXTRACTABLE)}" in repr(extract_dimensions(TOLD))


@every(
    "name, values",
    [
        ("relationship_richness", [1, 1, 1, 0, 0]),  # distinct neighbours over the greatest
        ("implementation_complexity", [1, 0, 1 / 3, 0, 0]),
        # words by the rule of succession: free, cheap; expensive, cost, price, fee; and a price in numbers
        ("pricing_tier", [2 / 3, 1 / 4, 5 / 6, NAN, 1]),
        ("streaming_support", [2 / 3, NAN, NAN, NAN, NAN]),
        ("token_efficiency", [1 / 3, NAN, NAN, NAN, NAN]),
        ("knowledge_density", [6 / 11, NAN, 5 / 9, NAN, 1 / 5]),  # of texts of some length
    ],
)
def test_edges_and_words_speak_for_an_end_and_silence_is_no_value(name, values):
    assert extract_dimensions(TOLD).values[name].tolist() == pytest.approx(values, abs=1e-6, nan_ok=True)


def test_what_a_graph_has_no_edges_texts_or_nodes_for_has_no_value():
    found = extract_dimensions(PropertyGraph.from_triples([("a", "enables", "b")]))
    assert np.isnan(found.values["implementation_complexity"]).all()
    assert "nothing in this graph speaks for: implementation_complexity" in repr(found)
    assert extract_dimensions(PropertyGraph.of()).values["pricing_tier"].tolist() == []
    with pytest.raises(BadInput, match="PropertyGraph"):
        extract_dimensions([Node("a")])


def test_every_computed_value_lies_on_the_scale_and_comes_out_the_same_again():
    one, two = extract_dimensions(cookbook()), extract_dimensions(cookbook())
    for name in EXTRACTABLE:
        known = one.values[name][~np.isnan(one.values[name])]
        assert known.size and known.min() >= 0 and known.max() <= 1, name
        np.testing.assert_array_equal(one.values[name], two.values[name])
