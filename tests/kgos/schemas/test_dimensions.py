"""The 56 dimensions, and which nodes lie within bounds on them: in the columns of a graph and in SQL, with
the same answers.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from contextlib import closing

import numpy as np
import pytest
from support.every import every

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.dimensions import (
    DIMENSION_CATEGORIES,
    DIMENSIONS,
    as_number,
    dimension,
    require_bounds,
    sql_condition,
    values_of,
    within,
)
from kgot_lab.types import Node

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
    {"pricing_tier": (None, 0.3)},
    {"pricing_tier": {"exact": 0.3}},
    {"pricing_tier": {"min": 0.05, "max": 0.3}, "batch_suitability": {"min": 0.7}},
    {"pricing_tier": (None, None)},
    {"pricing_tier": (0.9, None)},
    {"batch_suitability": {"exact": 1}},
    {"token_efficiency": {"min": 0}},
]


def parsed(text: str) -> dict[str, object]:
    try:
        return json.loads(text)
    except ValueError:
        return {}


GRAPH = PropertyGraph.of(Node(id, properties=parsed(text)) for id, text in ROWS.items())


def kept(filters: dict[str, object]) -> list[str]:
    return [GRAPH.ids[row] for row in np.flatnonzero(within(GRAPH, filters).kept)]


def test_there_are_fifty_six_dimensions_in_nine_categories_of_the_documents_sizes():
    assert len({each.name for each in DIMENSIONS}) == len(DIMENSIONS) == 56
    sizes = Counter(each.category for each in DIMENSIONS)
    assert [sizes[category] for category in DIMENSION_CATEGORIES] == [8, 6, 7, 6, 8, 7, 5, 3, 6]
    assert all(each.low and each.high and each.low != each.high for each in DIMENSIONS)


def test_a_dimension_is_found_by_its_name_and_says_what_its_ends_mean():
    assert dimension("pricing_tier").category == "performance and cost"
    assert "0 nothing, or nearly nothing, 1 much for every call" in str(dimension("pricing_tier"))
    with pytest.raises(UnknownName, match="did you mean 'pricing_tier'"):
        dimension("price_tier")


def test_bounds_are_inclusive_and_exactly_means_within_a_billionth():
    assert kept(FILTERS[0]) == ["cheap", "edge"]
    assert kept({"pricing_tier": (0.3, None)}) == ["edge", "computed"]
    assert kept({"pricing_tier": {"exact": 0.3}}) == ["edge", "computed"]


def test_what_is_missing_and_what_is_no_number_is_left_out_and_counted():
    found = within(GRAPH, {"pricing_tier": (0, 1)})
    assert (found.lacking, found.no_number, found.incomplete) == ({"pricing_tier": 3}, {"pricing_tier": 3}, 6)
    assert str(found) == (
        "3 of 9 nodes with 0 <= pricing_tier <= 1; 3 nodes without pricing_tier; 3 nodes whose pricing_tier is no number"
    )
    assert "0 of 9 nodes with token_efficiency; 9 nodes without token_efficiency" in str(
        within(GRAPH, {"token_efficiency": (None, None)})
    )


@every("filters", FILTERS, ids=str)
def test_sql_keeps_the_nodes_that_the_columns_keep_whatever_stands_in_the_rows(filters):
    condition, parameters = sql_condition(filters, "properties")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE nodes (id TEXT, properties TEXT)")
        connection.executemany("INSERT INTO nodes VALUES (?, ?)", ROWS.items())
        found = [
            id
            for (id,) in connection.execute(
                f"SELECT id FROM nodes WHERE {condition} ORDER BY rowid", parameters
            )
        ]
    assert found == kept(filters)


def test_a_value_is_a_json_number_or_none():
    assert as_number(1) == 1.0 and as_number(0.5) == 0.5
    for value in (None, True, "0.9", [0.9], math.inf, math.nan, 10**400):
        assert math.isnan(as_number(value)), value
    assert np.isnan(values_of(PropertyGraph.of(), "pricing_tier")).tolist() == []


def test_a_name_is_one_of_the_fifty_six_or_declared():
    with pytest.raises(UnknownName, match="did you mean 'pricing_tier'"):
        require_bounds({"pricing_teir": (0, 1)})
    with pytest.raises(UnknownName):
        require_bounds({"confidence": (0, 1)})
    with pytest.raises(UnknownName):
        require_bounds({"x') OR 1=1 --": (0, 1)})
    assert require_bounds({"confidence": {"min": 2}}, declared=["confidence"]) == {"confidence": (2.0, None)}
    with pytest.raises(BadInput, match=r"\['confidence'\]"):
        require_bounds({"conf": (0, 1)}, declared="confidence")


@every(
    ("given", "told"),
    [
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
    ],
)
def test_bounds_that_make_no_sense_are_refused_with_the_reason(given, told):
    with pytest.raises(BadInput, match=told):
        within(GRAPH, {"pricing_tier": given})


@pytest.mark.parametrize("filters", [{}, None, [("pricing_tier", (0, 1))]])
def test_a_filter_without_dimensions_is_refused(filters):
    with pytest.raises(BadInput, match="pricing_tier"):
        within(GRAPH, filters)


def test_a_quotation_mark_in_a_declared_name_cannot_leave_its_place_in_sql():
    with pytest.raises(BadInput, match="quotation mark"):
        sql_condition({'a"b': (0, 1)}, declared=['a"b'])
    assert '"odd ""name"' in sql_condition({"pricing_tier": (0, 1)}, 'odd "name')[0]
