"""What the SQL stores share: values as rows, and which statements pass."""

from __future__ import annotations

import pytest
from support.every import every

from kgot_lab.errors import BadInput, QueryFailed
from kgot_lab.stores.sql import (
    edge_row,
    json_text,
    node_row,
    refuse_null,
    refuse_unless_sql_read,
    sql_dialect,
    touched_keys,
)
from kgot_lab.types import Diff, Edge, Node


def test_the_touched_rows_are_those_a_diff_names_and_the_ends_of_what_it_adds():
    added, removed = Edge("a", "r", "b"), Edge("c", "r", "d")
    diff = Diff(added_nodes=(Node("a"),), added_edges=(added,), removed_edges=(removed,))
    assert touched_keys(diff) == (["a", "b"], [("a", "r", "b", ""), ("c", "r", "d", "")])


# -----------------------------------------------------------------------------------------------------------

VALUES = [
    "it's \"quoted\" {braces} \\ \\n \\u0041", "null byte \0", "e\u0301 👩‍👩‍👧 \u202eright to left", "\ud7ff\ue000\uffff", "", " ",
    "SELECT", "x" * 1_000_000, 2**63, -(2**200), 1, 1.0, True, False, None, 1e308, 5e-324, 0.1, -0.0, [], {}, [[[]]],
    {"": {"a.b": [None, {"'": '"'}]}},
]  # fmt: skip


def test_nesting_has_a_limit():
    deep: list = []
    for _ in range(2_000):
        deep = [deep]
    with pytest.raises(BadInput, match="nested"):
        json_text(deep, "it")


@every(
    "row",
    [
        lambda: node_row(Node("a\ud800")),
        lambda: edge_row(Edge("a", "r", "b", key="\ud800")),
    ],
)
def test_an_element_that_is_none_is_refused(row):
    with pytest.raises(BadInput):
        row()


@pytest.mark.parametrize("value", [{"a": ["b", {"c": "d\0"}]}, {"\0": 1}, ["\\\0"]])
def test_a_null_byte_is_found_however_deep(value):
    with pytest.raises(BadInput, match="it holds a null byte"):
        refuse_null(json_text(value, "it"), "it")
    assert refuse_null(json_text(["\\u0000"], "it"), "it") == r'["\\u0000"]'


# -------------------------------------------------------------------------------------------------------


@every(
    "statement",
    [
        "SELECT 1",
        "select * from nodes where id = 'DELETE; -- it''s' ;  -- done",
        "WITH near AS (SELECT id FROM nodes) SELECT * FROM near",
        "VALUES (1)",
        "/* why */ SELECT \"update\", replace('a', 'b', 'c') FROM (SELECT 1 AS \"update\")",
        "SELECT labels[1] FROM nodes",
        "SELECT '/*' AS a, '*/' AS b",
        "SELECT updated, inserted_at, into_x FROM nodes",
    ],
)
def test_a_read_passes(statement):
    refuse_unless_sql_read(statement)


@every(
    "statement",
    [
        "",
        " -- nothing",
        "DELETE FROM nodes",
        "WITH gone AS (DELETE FROM nodes RETURNING *) SELECT * FROM gone",
        "WITH a AS (SELECT 1) INSERT INTO nodes SELECT 1",
        "with a as (select 1) update nodes set id = 1",
        "WITH a AS (SELECT 1) MERGE INTO nodes USING a ON true WHEN MATCHED THEN DO NOTHING",
        "SELECT * INTO fresh FROM nodes",
        "SELECT 1INTO fresh",
        "SELECT 1; DELETE FROM nodes",
        "SELECT 1;;",
        "EXPLAIN ANALYZE DELETE FROM nodes",
        "PRAGMA writable_schema = 1",
        "ATTACH 'x' AS y",
        "COPY nodes TO '/tmp/x'",
        "SELECT 1 /* /* */ ; DELETE FROM nodes -- */",
        "/* a /* b */ DELETE FROM nodes; /* */ SELECT 1 */",
        "SELECT 1 -- \r; DELETE FROM nodes",
        "/* SELECT 1",
        "SELECT 'a",
        'SELECT "a',
        "SELECT `a`; DELETE FROM nodes",
        "SELECT $$a$$",
        "SELECT $x$ ' $x$; DELETE FROM nodes; --'",
        "SELECT E'\\''; DELETE FROM nodes; --'",
        "SELECT\0 1",
        "ſelect 1",
        "ＳＥＬＥＣＴ 1",
        "\ufeffSELECT 1",
    ],
)
def test_what_is_no_plain_read_is_refused(statement):
    with pytest.raises(QueryFailed) as failed:
        refuse_unless_sql_read(statement)
    assert failed.value.statement == statement


def test_a_bracket_is_refused_where_it_may_be_a_quote():
    with pytest.raises(QueryFailed):
        refuse_unless_sql_read("SELECT 1 AS [' ], 2; DELETE FROM nodes; --']", brackets=False)


@every("piece", ["'a''", "/*", "/**/", "--\n", '"', "$a", "E'\\"])
def test_a_long_statement_is_looked_at_quickly(piece):
    with pytest.raises(QueryFailed):
        refuse_unless_sql_read("SELECT 1 " + piece * 200_000 + "'")


# -----------------------------------------------------------------------------------------------------


def test_statements_that_a_loop_makes_are_refused_and_the_example_reads():
    dialect = sql_dialect("SQL")
    refuse_unless_sql_read(dialect.read_example)
    for make in (dialect.add, dialect.label):
        with pytest.raises(BadInput, match="changed by diffs"):
            make([])
