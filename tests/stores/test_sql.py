"""What the SQL stores share: diffs from journals, values as rows, and which statements pass."""

from __future__ import annotations

from itertools import pairwise, starmap

import pytest
from support.every import every

from kgot_lab.errors import BadInput, QueryFailed
from kgot_lab.stores.sql import (
    edge_row,
    journal_diff,
    json_text,
    node_row,
    parse_json,
    refuse_null,
    refuse_unless_sql_read,
    refuse_unless_sql_write,
    sql_dialect,
    sql_literal,
    touched_keys,
)
from kgot_lab.types import Diff, Edge, Node, Triple

ADA, BOB = ("ada", ["Person"], {"born": 1815}), ("bob", [], {})
KNOWS = ("ada", "knows", "bob", "", {})


def change(table, *rows):
    def element(first, *rest):
        *names, properties = rest
        return (
            Node(first, tuple(names[0]), properties)
            if table == "nodes"
            else Edge(first, *names[:2], properties, names[2])
        )

    return tuple(row and element(*row) for row in rows)


# ------------------------------------------------------------------------------------------------------------


def test_a_row_that_came_went_or_changed_is_in_the_diff():
    older = ("ada", ["Person"], {"born": 1816})
    journal = [change("nodes", None, BOB), change("nodes", older, ADA), change("edges", KNOWS, None)]
    ada = (Node("ada", ("Person",), {"born": 1816}), Node("ada", ("Person",), {"born": 1815}))
    removed = (Edge("ada", "knows", "bob"),)
    assert journal_diff(journal) == Diff((Node("bob"),), changed_nodes=(ada,), removed_edges=removed)


def test_several_changes_of_one_row_are_one_change():
    steps = [("ada", [], {"n": number}) for number in range(4)]
    journal = [change("nodes", before, after) for before, after in pairwise(steps)]
    assert journal_diff(journal).changed_nodes == ((Node("ada", (), {"n": 0}), Node("ada", (), {"n": 3})),)


def test_a_change_and_its_undo_vanish():
    assert not journal_diff([change("nodes", None, ADA), change("nodes", ADA, None)])
    assert not journal_diff([change("edges", KNOWS, None), change("edges", None, KNOWS)])
    assert not journal_diff([change("nodes", ADA, BOB), change("nodes", BOB, ADA)])


def test_a_row_with_a_new_identity_is_one_removed_and_one_added():
    changes = (
        ("nodes", ADA, ("lovelace", ["Person"], {"born": 1815})),
        ("edges", KNOWS, ("lovelace", *KNOWS[1:])),
    )
    diff = journal_diff(list(starmap(change, changes)))
    assert [node.id for node in diff.removed_nodes + diff.added_nodes] == ["ada", "lovelace"]
    assert [edge.source for edge in diff.removed_edges + diff.added_edges] == ["ada", "lovelace"]


@pytest.mark.parametrize("after", [1.0, True, "1", [1], None])
def test_values_that_python_calls_equal_may_differ(after):
    diff = journal_diff([change("nodes", ("a", [], {"x": 1}), ("a", [], {"x": after}))])
    assert diff.changed_nodes == ((Node("a", (), {"x": 1}), Node("a", (), {"x": after})),)


def test_the_order_of_labels_counts_and_that_of_properties_does_not():
    assert journal_diff([change("nodes", ("a", ["X", "Y"], {}), ("a", ["Y", "X"], {}))])
    assert not journal_diff([change("nodes", ("a", [], {"x": 1, "y": 2}), ("a", [], {"y": 2, "x": 1}))])


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
    with pytest.raises(BadInput, match="not JSON"):
        parse_json("[" * 100_000, "it")


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


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO nodes (id) VALUES ('a;b')",
        "delete from edges;",
        "WITH a AS (SELECT 1) UPDATE nodes SET labels = '[]'",
    ],
)
def test_a_write_passes(statement):
    refuse_unless_sql_write(statement)


@every(
    "statement",
    [
        "SELECT 1",
        "WITH a AS (SELECT 1) SELECT 1",
        "DROP TABLE nodes",
        "REPLACE INTO nodes VALUES (1)",
        "DELETE FROM a; DELETE FROM b",
        "",
    ],
)
def test_what_is_no_single_write_is_refused(statement):
    with pytest.raises(QueryFailed):
        refuse_unless_sql_write(statement)


@every("piece", ["'a''", "/*", "/**/", "--\n", '"', "$a", "E'\\"])
def test_a_long_statement_is_looked_at_quickly(piece):
    with pytest.raises(QueryFailed):
        refuse_unless_sql_read("SELECT 1 " + piece * 200_000 + "'")


# -----------------------------------------------------------------------------------------------------


def test_the_dialect_spells_what_it_is_given():
    dialect = sql_dialect("SQL")
    assert sql_literal("it's") == "'it''s'"
    assert dialect.node(Node("Bob's", ("A",), {"x": [1]})) == """('Bob''s', '["A"]', '{"x":[1]}')"""
    assert dialect.edge(Edge("a", "r", "b")) == "('a', 'r', 'b', '', '{}')"
    refuse_unless_sql_write(dialect.write_example)
    refuse_unless_sql_read(dialect.read_example)
    refuse_unless_sql_write(dialect.add([(Triple("it's", "a; DELETE", "b"), {"x": "'"})]))
    refuse_unless_sql_read(dialect.about(["it's", "50%_!"], 2))
    refuse_unless_sql_read(dialect.about([], 0))
