"""SQLite files of other programs: each profile is found by its columns, the graph is the same in all, and the
file stays as it is.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from support.every import every
from support.foreign_files import EDGES, NODES, TABLES, made, of_profile

from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.foreign_files import read_foreign
from kgot_lab.kgos.schemas.profiles import PROFILES, list_tables
from kgot_lab.types import Edge, Node, Triple

CACHE = {"pricing_tier": 0.1, "description": "Keeps a prefix.", "name": "Prompt caching"}
EXPECTED = PropertyGraph.of(
    [
        Node("cache", ("technique",), CACHE),
        Node("cost", ("goal",), {"name": "Lower cost"}),
        Node("stale", ("limitation",), {"name": "Stale answers"}),
    ],
    [Edge("cache", "enables", "cost", {"weight": 0.5}), Edge("cache", "has_limitation", "stale")],
)
A = ("a", "A", "goal", None)
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, i AS name FROM n"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "graph.db"


@pytest.mark.parametrize("profile", TABLES)
def test_the_same_graph_is_read_whatever_its_tables_are_called_and_no_other_profile_fits(file, profile):
    read = read_foreign(of_profile(file, profile))
    assert (read.profile.name, read.graph, read.unread) == (profile, EXPECTED, ()) and read.check().sound
    with closing(sqlite3.connect(file)) as connection:
        tables = list_tables(connection)
    fitting = [each.name for each in PROFILES if not each.missing_columns(tables)]
    assert fitting == [profile] * (profile != "heuristic")


def test_there_are_six_profiles_and_a_fallback():
    assert {profile.name for profile in PROFILES} | {"heuristic"} == set(TABLES) and len(PROFILES) == 6
    with pytest.raises(BadInput, match="'path' is a path"):
        read_foreign(None)  # type: ignore[arg-type]


def test_capitals_make_no_difference_as_in_sqlite(file):
    made(file, ["Nodes(ID, Name, TYPE, Properties)", "EDGES(Source, Target, Type, Properties)"], NODES, EDGES)
    assert (read_foreign(file).profile.name, read_foreign(file).graph) == ("standard", EXPECTED)


def test_of_two_profiles_that_fit_the_more_specific_is_taken(file):
    tables = ["nodes(id, name, type)", "edges(source, target, type, source_id, target_id, edge_type)"]
    made(file, tables, [("a", "A", "goal"), ("b", "B", "goal")], [("b", "a", "x", "a", "b", "enables")])
    assert read_foreign(file).graph.to_triples()[0].relation == "enables"


# --- the fallback-----------


@pytest.mark.parametrize(
    ("tables", "rows", "profile", "triple"),
    [
        (  # the table whose ids the edges name
            ["authors(id, name)", "papers(id, title, year)", "cites(src, dst)"],
            [[(1, "Ada"), (2, "Bo")], [(10, "On A", 1999), (11, "On B", 2001)], [(11, 10), (11, 11)]],
            "papers(id, title) and cites(src, dst)",
            ("11", "cites", "10"),
        ),
        (  # a primary key of any name
            ["part(part_no TEXT PRIMARY KEY, label)", "uses(source, target)"],
            [[("x7", "Axle"), ("y9", "Hub")], [("x7", "y9")]],
            "part(part_no, label) and uses(source, target)",
            ("x7", "uses", "y9"),
        ),
        (  # edges that name their ends
            ["city(code, name)", "road(start, end, kind)"],
            [[(1, "Bonn"), (2, "Ulm")], [("Bonn", "Ulm", "leads_to")]],
            "city(name, name) and road(start, end, kind)",
            ("Bonn", "leads_to", "Ulm"),
        ),
    ],
)
def test_the_fallback_takes_the_tables_that_fit(file, tables, rows, profile, triple):
    read = read_foreign(made(file, tables, *rows))
    assert str(read.profile) == f"heuristic: {profile}" and read.graph.to_triples()[0] == Triple(*triple)


def test_a_file_that_fits_none_says_what_was_probed_and_what_is_there(file):
    made(file, ["orders(id, customer, total)", "customers(id, name)"], [(1, 2, 3)], [(2, "Ada")])
    with pytest.raises(BadInput) as refused:
        read_foreign(file)
    said = str(refused.value)
    assert all(f"  {name}: " in said for name in TABLES)
    assert "unified: lacks table unified_nodes, table unified_edges" in said
    assert "no table with two ends" in said
    assert "It has 2 tables: customers(id, name); orders(id, customer, total)" in said


@pytest.mark.parametrize(
    ("tables", "rows", "more", "said"),
    [
        (
            ["things(id, name)", "moves(source, target)"],
            [[(1, "A")], [("x", "y"), (1, "z")]],
            "",
            "heuristic: 25% of the ends in moves are in things.id, and half of them should be",
        ),
        (["nodes(id, name)", "edges(source, type)"], [[], []], "", "standard: lacks edges.target"),
        # views are not run, and this one never ends
        (
            ["edges(source, target, type)"],
            [[]],
            f"CREATE VIEW nodes AS {ENDLESS};",
            "standard: lacks table nodes",
        ),
    ],
)
def test_what_makes_no_graph_is_named(file, tables, rows, more, said):
    with pytest.raises(BadInput, match=said):
        read_foreign(made(file, tables, *rows, more=more))


# --- what is wrong with a file ---


def test_no_file_no_sqlite_file_and_an_empty_one_are_refused(tmp_path):
    with pytest.raises(StoreUnavailable, match=r"gone\.db"):
        read_foreign(tmp_path / "gone.db")
    (tmp_path / "text.db").write_text("This is a text and no database at all." * 50)
    with pytest.raises(BadInput, match="file is not a database"):
        read_foreign(tmp_path / "text.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(BadInput, match="It has no tables"):
        read_foreign(tmp_path / "empty.db")


def test_malformed_json_in_one_row_of_ten_thousand_names_that_row_and_leaves_the_graph_usable(file):
    tiers = (json.dumps({"pricing_tier": i / 10_000}) for i in range(10_000))
    nodes = [(f"n{i}", f"Node {i}", "concept", tier) for i, tier in enumerate(tiers)]
    nodes[6_543] = ("n6543", "Node 6543", "concept", '{"pricing_tier": 0.6')
    read = read_foreign(of_profile(file, "standard", nodes, [("n0", "n6543", "enables", None)]))
    (row,) = read.unread
    assert (row.rule, row.table, row.row) == (8, "nodes", 6_544)
    told = "row 6,544 of nodes (node 'n6543'): its properties are no JSON (Expecting ',' delimiter"
    assert str(row).startswith(told)
    assert len(read.graph) == 10_000 and read.graph.node("n6543").properties == {"name": "Node 6543"}
    assert read.graph.node("n9999").properties["pricing_tier"] == 0.9999
    assert [fault.level for fault in read.check()[8].faults] == ["error"]
    assert "row 6,544 of nodes" in repr(read)


@every(
    ("text", "told"),
    [
        ("[1]", "are JSON, but no object"),
        ('"text"', "are JSON, but no object"),
        ('{"a": NaN}', "nan, which is not JSON"),
        ('{"a": 1e999}', "cannot be kept"),
        ('{"a": "\\ud800"}', "half a surrogate pair"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5_000 + "}", "are no JSON"),
        (b"\xff\xfe", "are no JSON"),
        ("{'a': 1}", "are no JSON"),
        ('{"a": 1} trailing', "are no JSON"),
    ],
)
def test_json_that_cannot_be_kept_is_reported(tmp_path_factory, text, told):
    nodes = [("a", "A", "goal", text), ("b", "B", "goal", '{"x": 1}')]
    read = read_foreign(of_profile(tmp_path_factory.mktemp("json") / "graph.db", "hal", nodes, []))
    (row,) = read.unread
    assert (row.rule, row.row) == (8, 1) and told in row.why
    assert [node.properties for node in read.graph.nodes] == [{"name": "A"}, {"x": 1, "name": "B"}]


def test_blank_properties_are_no_properties(file):
    blank = [(f"n{place}", "A", "goal", text) for place, text in enumerate([None, "", "  ", "{}", b"{}"])]
    read = read_foreign(of_profile(file, "hal", blank, []))
    assert read.unread == () and [node.properties for node in read.graph.nodes] == [{"name": "A"}] * 5


def test_an_edge_to_no_node_and_a_node_without_an_id_of_its_own_are_left_out_and_named(file):
    edges = [(*ends, "enables", None) for ends in (("cache", "gone"), (None, "cost"), ("cache", "cost"))]
    nodes = [*NODES, (None, "B", "goal", None), ("cache", "C", "goal", None)]
    read = read_foreign(of_profile(file, "claude", nodes, edges))
    assert len(read.graph.edges) == 1 and read.graph.ids == EXPECTED.ids
    assert [(row.rule, row.row, row.why) for row in read.unread] == [
        (0, 4, "it has no id, so it is left out"),
        (0, 5, "row 1 has its id already, so it is left out"),
        (3, 1, "there is no node 'gone', so it is left out"),
        (3, 2, "there is no node None, so it is left out"),
    ]
    assert not read.check().sound and len(read.check()[3]) == 2


def test_parallel_edges_and_loops_are_kept_apart(file):
    ends, loop = ("cache", "cost", "enables"), ("cost", "cost", "requires", None)
    edges = [(*ends, '{"n": 1}'), loop, (*ends, '{"n": 2}')]
    read = read_foreign(of_profile(file, "standard", NODES, edges))
    told = [(edge.type, edge.key, edge.properties) for edge in read.graph.edges]
    assert told == [("enables", "", {"n": 1}), ("requires", "", {}), ("enables", "2", {"n": 2})]
    assert PropertyGraph.of(read.graph.nodes, read.graph.edges) == read.graph


def test_numbers_are_ids_by_their_digits_and_bytes_and_row_numbers_are_no_properties(file):
    nodes = "nodes(id INTEGER PRIMARY KEY, name, type, rank, vector)"
    tables = [nodes, "edges(id INTEGER PRIMARY KEY, source, target, type, weight)"]
    nodes = [(1, 7, "goal", 0.5, b"\0\1"), (2, "B", None, None, None)]
    made(file, tables, nodes, [(1, "1", 2, "enables", 0.25), (2, 2, 1, None, None)])
    graph = read_foreign(file).graph
    assert graph.node("1").properties == {"name": "7", "rank": 0.5} and graph.node("2").labels == ()
    assert [(edge.type, edge.properties) for edge in graph.edges] == [
        ("enables", {"weight": 0.25}),
        ("related_to", {}),
    ]


def test_json_is_right_where_a_column_says_otherwise_and_names_of_any_letters_are_quoted(file):
    nodes = 'nodes(id, name, type, pricing_tier, properties, "odd ""; DROP TABLE nodes --")'
    tables = [nodes, "edges(source, target, type)"]
    made(file, tables, [("a", "A", "goal", 0.9, '{"pricing_tier": 0.1, "name": "other"}', 5)], [])
    known = {"pricing_tier": 0.1, "name": "A", 'odd "; DROP TABLE nodes --': 5}
    assert read_foreign(file).graph.node("a").properties == known


def test_text_that_is_not_utf8_is_read_with_replacements_and_named(file):
    more = "INSERT INTO nodes VALUES ('b', CAST(x'42fF' AS TEXT), 'goal', '{}'); INSERT INTO nodes VALUES ('v', 'V', 'goal', x'7b7d');"
    read = read_foreign(made(file, TABLES["standard"], [("a", "Ünï", "goal", None)], [], more=more))
    names = [node.properties["name"] for node in read.graph.nodes]
    assert names == ["Ünï", "B\N{REPLACEMENT CHARACTER}", "V"]
    assert [(row.row, row.why.partition(";")[0]) for row in read.unread] == [(2, "a text in it is not UTF-8")]


# --- the file stays as it is


def listing(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_nothing_is_written_in_the_file_or_beside_it(tmp_path, mode):
    file = of_profile(tmp_path / "graph.db", "unified")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
    file.chmod(0o400)
    before = listing(tmp_path)
    assert read_foreign(str(file)).graph == EXPECTED
    assert listing(tmp_path) == before and set(before) == {"graph.db"}


def test_what_a_log_beside_the_file_holds_is_read_and_the_log_stays(tmp_path):
    file = of_profile(tmp_path / "graph.db", "unified")
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("INSERT INTO unified_nodes VALUES ('late', 'Late', 'goal', NULL)")
        before = listing(tmp_path)
        assert "late" in read_foreign(file).graph
        left = {name: kept[0] for name, kept in listing(tmp_path).items()}
        assert left == {name: kept[0] for name, kept in before.items()}
        assert set(before) == {"graph.db", "graph.db-wal", "graph.db-shm"}
