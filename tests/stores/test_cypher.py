"""Cypher: which statements are let through, what they change, and that hostile ones change nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest
from support import cypher_shapes as shapes
from support.every import every
from support.waiting import AMPLE

from kgot_lab.errors import QueryFailed
from kgot_lab.sandbox import Sandbox, open_sandbox
from kgot_lab.stores.cypher.dialect import CYPHER, cypher_literal
from kgot_lab.stores.cypher.statements import refuse_unless_cypher_read, refuse_unless_cypher_write
from kgot_lab.types import Diff, Edge, Node, Triple

pytest.importorskip("arcadedb_embedded")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox that is tested here needs Linux")


ADA, LONDON = Node("Ada", ("Person",), {"born": 1815}), Node("London", ("City",))
BORN = Edge("Ada", "BORN_IN", "London", {"source": "p1"})


@pytest.fixture(scope="module")
def engine() -> Iterator[Sandbox]:
    with open_sandbox(language="cypher", seconds=AMPLE) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(engine: Sandbox) -> Sandbox:
    engine.reset((ADA, LONDON), (BORN,))
    return engine


def written(sandbox: Sandbox, statement: str) -> Diff:
    diff = sandbox.write(statement)
    sandbox.apply(diff)
    return diff


def agrees(sandbox: Sandbox) -> bool:
    """Whether the engine's graph is the parent's, which a write that touches everything would tell."""
    diff = sandbox.write("MATCH (n) SET n.touched = 1 WITH n OPTIONAL MATCH (n)-[r]->() SET r.touched = 1")
    changed = (*diff.changed_nodes, *diff.changed_edges)
    touched = all(after.properties == {**before.properties, "touched": 1} for before, after in changed)
    counts = (len(diff.changed_nodes), len(diff.changed_edges))
    same_labels = all(before.labels == after.labels for before, after in diff.changed_nodes)
    others = (diff.added_nodes, diff.removed_nodes, diff.added_edges, diff.removed_edges)
    same_size = counts == (len(sandbox._truth.nodes), len(sandbox._truth.edges))
    return touched and same_labels and not any(others) and same_size


# --- the forty shapes ---


@pytest.mark.parametrize("shape", shapes.CYPHER_SHAPES, ids=lambda shape: shape.name)
def test_a_shape_that_models_write_does_what_it_says(engine: Sandbox, shape) -> None:
    engine.reset((), ())
    for statement in shapes.SHAPES_BEGIN_WITH:
        written(engine, statement)
    statement = shape.statement
    for name, value in shape.parameters.items():
        statement = statement.replace(f"${name}", cypher_literal(value))
    if shape.look:
        refuse_unless_cypher_write(statement)
        written(engine, statement)
        statement = shape.look
    refuse_unless_cypher_read(statement)
    got = [repr(tuple(row.values())) for row in engine.read(statement)]
    wanted = [repr(row) for row in shape.rows]
    assert (got if shape.ordered else sorted(got)) == (wanted if shape.ordered else sorted(wanted))
    assert agrees(engine)


# --- what a write changes, exactly ---


def test_a_changed_type_is_a_changed_node_that_keeps_its_edges(sandbox: Sandbox) -> None:
    diff = written(sandbox, 'MATCH (n {id: "Ada"}) REMOVE n:Person SET n:Mathematician, n.died = 1852')
    assert diff == Diff(changed_nodes=((ADA, Node("Ada", ("Mathematician",), {"born": 1815, "died": 1852})),))
    assert agrees(sandbox)


def test_a_node_made_under_an_id_that_is_there_adds_to_that_node(sandbox: Sandbox) -> None:
    diff = written(sandbox, 'CREATE (n:Writer {id: "Ada", died: 1852})-[:LIVED_IN]->(:City {id: "London"})')
    assert diff.changed_nodes == ((ADA, Node("Ada", ("Person", "Writer"), {"born": 1815, "died": 1852})),)
    assert diff.added_edges == (Edge("Ada", "LIVED_IN", "London"),) and not diff.added_nodes


def test_a_fact_that_is_made_again_with_another_label_is_the_same_fact(sandbox: Sandbox) -> None:
    again = 'MERGE (a:Writer {id: "Ada"}) MERGE (b:Place {id: "London"}) MERGE (a)-[r:BORN_IN]->(b) SET r.year = 1815'
    diff = written(sandbox, again)
    changed = Edge("Ada", "BORN_IN", "London", {"source": "p1", "year": 1815})
    assert diff.changed_edges == ((BORN, changed),) and not diff.added_edges
    assert not written(sandbox, again) and agrees(sandbox)
    statement = 'UNWIND [1, 2] AS n CREATE (:Person {id: "Mary", m: 1})-[:KNEW {n: n}]->(:Person {id: "Ada"})'
    twice = written(sandbox, statement)
    assert twice.added_edges == (Edge("Mary", "KNEW", "Ada", {"n": 2}),) and twice.added_nodes == (
        Node("Mary", ("Person",), {"m": 1}),
    )


def test_a_node_without_an_id_gets_its_name_or_a_number(sandbox: Sandbox) -> None:
    diff = written(sandbox, 'CREATE (:Person {name: "Mary"}), (:City {name: "London"}), (:Thing), (:Thing)')
    assert {node.id for node in diff.added_nodes} == {"Mary", "London (City)", "Thing 1", "Thing 2"}


def test_a_node_that_loses_its_id_keeps_it(sandbox: Sandbox) -> None:
    assert written(sandbox, 'MATCH (n {id: "Ada"}) SET n = {name: "Ada L."}').changed_nodes[0][1] == Node(
        "Ada", ("Person",), {"name": "Ada L."}
    )
    assert agrees(sandbox)


def test_a_new_id_moves_the_node_and_its_edges(sandbox: Sandbox) -> None:
    diff = written(sandbox, 'MATCH (n {id: "Ada"}) SET n.id = "Ada Lovelace"')
    assert (diff.removed_nodes, diff.removed_edges) == ((ADA,), (BORN,))
    assert diff.added_edges == (Edge("Ada Lovelace", "BORN_IN", "London", {"source": "p1"}),)
    assert agrees(sandbox)


def test_two_nodes_cannot_get_one_id(sandbox: Sandbox) -> None:
    with pytest.raises(QueryFailed, match="two nodes would have the id 'London'"):
        sandbox.write('MATCH (n {id: "Ada"}) SET n.id = "London"')


def test_parallel_edges_keep_their_keys_whatever_a_statement_does_to_them(sandbox: Sandbox) -> None:
    again = 'MATCH (a {id: "Ada"}), (b {id: "London"}) CREATE (a)-[:BORN_IN {source: "p%d"}]->(b)'
    assert written(sandbox, again % 2).added_edges == (
        Edge("Ada", "BORN_IN", "London", {"source": "p2"}, "2"),
    )
    assert written(sandbox, again % 3).added_edges[0].key == "3"
    statement = 'MATCH ()-[r:BORN_IN]->() WHERE r.source = "p2" SET r = {year: 1815}'
    changed = written(sandbox, statement).changed_edges
    before, after = (
        Edge("Ada", "BORN_IN", "London", values, "2") for values in ({"source": "p2"}, {"year": 1815})
    )
    assert changed == ((before, after),)
    assert written(sandbox, 'MATCH ()-[r:BORN_IN]->() WHERE r.source = "p1" DELETE r').removed_edges == (
        BORN,
    )
    written(sandbox, 'MATCH (n {id: "Ada"}) SET n:Writer')
    assert {edge.key for edge in sandbox._truth.edges.values()} == {"2", "3"} and agrees(sandbox)


def test_a_refused_diff_leaves_the_engine_as_it_was(sandbox: Sandbox) -> None:
    sandbox.write('CREATE (:New {id: "new"})-[:NEWER]->(:New {id: "newer"})')  # not applied
    assert sandbox.read("MATCH (n:New) RETURN n") == () and agrees(sandbox)
    labels = sandbox.read("CALL db.labels() YIELD label RETURN label ORDER BY label")
    assert labels == ({"label": "City"}, {"label": "Person"})


def test_a_graph_of_odd_values_lies_in_the_engine_exactly(engine: Sandbox) -> None:
    values = {
        "quotes": "\"'`{}\\ \\u0041 $x", "unicode": "é e\u0301 東京 😀 \u2028", "long": "x" * 1_000_000, "empty": "", "": "none",
        "a.b": 1, "@rid": 2, "@type": "t", "id": "own", "_labels": [1], "id_": 3, "big": 2**70, "small": -(2**63),
        "nested": {"a": [1, {"b": None}]}, "none": None, "mixed": [1, "a", 1.5], "floats": [0.1, -0.0, 1e308, 5e-324], "list": [],
        "json": "json:[1]", "bools": [True, False], "one": 1.0,
    }  # fmt: skip
    labels = ("Zeta", "Alpha", "a,b~c*", "it's `odd`", "漢" * 40, "BORN_IN", "L" * 300)
    nodes = (Node("n", labels, values), Node("m" * 5_000, ("Alpha",)), Node("`o'\"\n\\", (), {"born": 1}))
    edges = tuple(
        Edge("n", type, "`o'\"\n\\", {**values, "long": "", "_key": "mine", "_src": 1, "in": 2}, key)
        for type in ("BORN_IN", "Alpha", "a,b", "born in", "`x`", "r" * 300)
        for key in ("", "2", "other key")
    )
    engine.reset(nodes, edges)
    assert agrees(engine)
    assert engine.read(
        'MATCH (n:Alpha)-[r:Alpha]->() RETURN type(r) AS t, "Alpha" IN labels(n) AS l LIMIT 1'
    ) == ({"t": "Alpha", "l": True},)
    written(engine, "MATCH (n:Zeta) REMOVE n:Zeta SET n:Last")
    assert engine._truth.nodes["n"].labels == (*labels[1:], "Last") and agrees(engine)
    written(engine, "MATCH (n) DETACH DELETE n")
    assert engine.read("MATCH (n) RETURN count(n) AS n") == ({"n": 0},)


def test_a_name_may_be_a_label_and_a_relation_in_one_statement(sandbox: Sandbox) -> None:
    diff = written(sandbox, "CREATE (a:Award {id: 'x'})-[:Award {year: 1}]->(b:Award:`a,b` {id: 'y'})")
    assert diff.added_edges == (Edge("x", "Award", "y", {"year": 1}),)
    assert sandbox.read(
        "MATCH (a:Award)-[r:Award]->(b) WHERE type(r) = 'Award' RETURN type(r), labels(b), r"
    ) == (
        {
            "type(r)": "Award",
            "labels(b)": ["Award", "a,b"],
            "r": {"subject": "x", "relation": "Award", "object": "y", "year": 1},
        },
    )
    written(sandbox, "MATCH (n {id: 'Ada'}), (m {id: 'x'}) CREATE (n)-[:Person]->(m)")
    assert sandbox.read("MATCH (p:Person)-[r:Person]->(a) RETURN a.id") == ({"a.id": "x"},)
    assert agrees(sandbox)


WALK = (
    'MERGE (a:Person {id: "Grace"}) MERGE (b:City {id: "New York"}) MERGE (a)-[r:BORN_IN]->(b) SET r.year = 1906',
    'MATCH (a {id: "Grace"}), (b {id: "Ada"}) CREATE (a)-[:READ]->(b), (a)-[:READ]->(b), (b)-[:SELF]->(b)',
    "MATCH (a:Person) SET a:Programmer:Woman",
    'MATCH (a {id: "Grace"}) SET a.id = "Grace Hopper", a.born = 1906',
    "MATCH ()-[r:READ]->() SET r += {page: 1} WITH r LIMIT 1 SET r = {}",
    'MATCH (a {id: "Ada"}) REMOVE a:Person, a:Woman SET a = {name: "Ada"}',
    'MATCH (a {id: "Grace Hopper"})-[r:READ]->() WITH r LIMIT 1 DELETE r',
    "MATCH (a:Programmer) MERGE (a)-[:KNOWS]->(c:Thing {name: 'COBOL'}) REMOVE a:Programmer",
    "MATCH (a)-[r]->(b) WITH a, b, collect(r) AS rs FOREACH (r IN rs | SET r.seen = true) CREATE (b)-[:BACK]->(a)",
    'MATCH (c {name: "COBOL"}) SET c.id = "COBOL", c:Language REMOVE c.name',
    'MATCH (a {id: "Ada"}) DETACH DELETE a CREATE (:Person {id: "Ada"})',
    "MATCH (n:City) SET n:Place REMOVE n:City WITH n MATCH (n)-[r]-() DELETE r",
    "UNWIND range(1, 400) AS i MERGE (n:Number {id: toString(i)}) "
    "WITH n, i WHERE i > 1 MATCH (m {id: toString(i - 1)}) CREATE (m)-[:NEXT]->(n)",
    "MATCH (n:Number) WHERE toInteger(n.id) % 2 = 0 DETACH DELETE n",
    "MATCH (n) DETACH DELETE n",
)  # fmt: skip


def test_engine_and_parent_agree_after_every_statement_of_a_long_walk(sandbox: Sandbox) -> None:
    for statement in WALK:
        assert written(sandbox, statement), statement
        assert agrees(sandbox), statement


@pytest.mark.extended
def test_many_elements_are_taken_in_and_changed(engine: Sandbox) -> None:
    nodes = tuple(Node(f"n{number}", ("Thing",), {"rank": number}) for number in range(3_000))
    edges = tuple(Edge(f"n{number}", "NEXT", f"n{(number + 1) % 3_000}") for number in range(3_000))
    engine.reset(nodes, edges)
    assert engine.read('MATCH (a:Thing {id: "n7"})-[:NEXT*2]->(b) RETURN b.id, b.rank') == (
        {"b.id": "n9", "b.rank": 9},
    )
    more = tuple(Node(f"m{number}", ("Thing", "New")) for number in range(1_000))
    has = tuple(Edge("n0", "HAS", node.id) for node in more)
    engine.apply(Diff(added_nodes=more, removed_edges=edges[:1_000], added_edges=has))
    found = engine.read('MATCH (a:Thing {id: "n0"})-[r]->(b:New) RETURN count(b) AS new')
    assert found == ({"new": 1_000},) and agrees(engine)
    assert len(written(engine, "MATCH (n:New) DETACH DELETE n").removed_edges) == 1_000


# --- reading ---


def test_rows_show_nodes_edges_and_paths_as_a_reader_knows_them(sandbox: Sandbox) -> None:
    (row,) = sandbox.read(
        "MATCH p = (a)-[r]->(b) RETURN a, r, p, date('2020-01-02') AS day, 1.0 / 0 AS endless, {x: [a.born, null]} AS map"
    )
    ada = {"id": "Ada", "labels": ["Person"], "born": 1815}
    born = {"subject": "Ada", "relation": "BORN_IN", "object": "London", "source": "p1"}
    assert (row["a"], row["r"], row["p"]) == (ada, born, [ada, born, {"id": "London", "labels": ["City"]}])
    assert (row["day"], row["endless"], row["map"]) == ("2020-01-02", "inf", {"x": [1815, None]})


def test_nodes_and_edges_are_told_as_they_are_whatever_their_properties_are_named(sandbox: Sandbox) -> None:
    odd = {"subject": "x", "relation": "", "object": "z", "id": "i", "year": 1}
    nodes = (Node("a", ("P",), {"labels": "none"}), Node("b"))
    sandbox.apply(Diff(added_nodes=nodes, added_edges=(Edge("a", "knows", "b", odd),)))
    node = {"id": "a", "labels": ["P"]}
    edge = {"subject": "a", "relation": "knows", "object": "b", "id": "i", "year": 1}
    assert sandbox.read("MATCH p = (n {id: 'a'})-[r]->() RETURN n, r, [r] AS l") == (
        {"n": node, "r": edge, "l": [edge]},
    )


def test_an_error_is_the_engines_own_message(sandbox: Sandbox) -> None:
    with pytest.raises(QueryFailed, match="Variable 'm' not defined"):
        sandbox.read("MATCH (n) RETURN m")
    with pytest.raises(QueryFailed, match="must be a finite number"):
        sandbox.write("MATCH (n) SET n.x = 1.0 / 0")


# --- the dialect ---

NASTY = "a \"b\" \\u0041 \\ `c`\n{d} 'e' 東京 \x00"


def test_facts_of_any_text_are_added_by_one_statement(sandbox: Sandbox) -> None:
    properties = {"year": 1903, "share": 0.5, "text": NASTY, "a b": [1, 2], "nested": {"x": [None]}}
    properties |= {"least": -(2**63), "no": False}
    facts = [(Triple("Ada", NASTY, "London"), properties), (Triple(NASTY, "BORN_IN", "Ada"), {})]
    facts.append((Triple("Ada", "BORN_IN", "London"), {"n": 1}))
    refuse_unless_cypher_write(CYPHER.add(facts))
    diff = written(sandbox, CYPHER.add(facts))
    assert diff.added_nodes == (Node(NASTY),) and not diff.changed_nodes
    assert set(diff.added_edges) == {Edge("Ada", NASTY, "London", properties), Edge(NASTY, "BORN_IN", "Ada")}
    assert diff.changed_edges == ((BORN, Edge("Ada", "BORN_IN", "London", {"source": "p1", "n": 1})),)
    assert not written(sandbox, CYPHER.add(facts))


def test_facts_about_names_come_nearest_first_whatever_the_case(sandbox: Sandbox) -> None:
    facts = [(Triple("London", "IN", "England"), {"since": 927}), (Triple("England", "IN", "Europe"), {})]
    written(sandbox, CYPHER.add(facts))
    about = CYPHER.about(["ADA", "nobody"], 2)
    refuse_unless_cypher_read(about)
    rows = [tuple(row.values()) for row in sandbox.read(about)]
    assert rows == [
        ("Ada", "BORN_IN", "London", {"source": "p1"}),
        ("London", "IN", "England", {"since": 927}),
    ]
    assert len(sandbox.read(CYPHER.about(["lond"], 1))) == 2  # no node of that name, so all that contain it


def test_elements_are_spelled_as_a_pattern_spells_them() -> None:
    node = Node("Marie Curie", ("Person", "a b"), {"born": 1867})
    assert CYPHER.node(node) == '(:Person:`a b` {id: "Marie Curie", born: 1867})'
    assert CYPHER.node(Node("x")) == '({id: "x"})'
    edge = Edge("Ada", "born in", "London", {"year": 1815})
    assert CYPHER.edge(edge) == '("Ada")-[:`born in` {year: 1815}]->("London")'


# --- the allow-list ---

READS = (
    "MATCH (show:Show)-[:CREATE|DELETED*1..3]->(b) WHERE show.set = 1 RETURN {set: 1, create: b.load}, count(*) AS c "
    "ORDER BY c DESC SKIP 1 LIMIT 5;",
    "RETURN 'SET x = 1; // no comment' AS t // SET\n UNION ALL /* MERGE */ RETURN 'DELETE \\'n\\'' AS t",
    "MATCH (n) RETURN n.`SET`, n.`LOAD CSV` AS `CREATE (n)`",
    "MATCH (n) WHERE EXISTS { (n)-->(m) WHERE m.x = 1 } AND COUNT { (n)--() } > 1 CALL { WITH n MATCH (n)--(o) RETURN o LIMIT 1 } RETURN o",
    "CALL db.labels() YIELD label RETURN label",
    "MATCH (n) WITH * WHERE n.x STARTS WITH 'a' AND NOT n.y ENDS WITH 'b' OR n.z IS NOT NULL RETURN DISTINCT "
    "n{.*, k: CASE WHEN n.x THEN 1 ELSE 0 END}",
    "MATCH p = shortestPath((a)-[*..5]-(b)) RETURN [n IN nodes(p) | n.id], reduce(s = 0, x IN [1, 2] | s + x), "
    "date.truncate('year', date())",
    'RETURN 1e5 + 0x1F + 1_000 + 1.5e-3 * 2, "café \\u00e9", $load',
)  # fmt: skip


@every("statement", READS)
def test_a_read_may_say_this(statement: str) -> None:
    refuse_unless_cypher_read(statement)


HIDDEN_WRITES = {
    "MATCH (n) SET n.x = 1": "SET",
    "MATCH (n) WITH n SET n.x = 1 RETURN n": "SET",
    "MATCH (n) WITH * sEt n.x = 1": "SET",
    "CALL { CREATE (n) RETURN n } RETURN n": "CREATE",
    "MATCH (n) WHERE true MERGE (m:X) RETURN m": "MERGE",
    "MATCH (n)/**/DETACH/**/DELETE/**/n": "DETACH",
    "FOREACH (x IN [1] | CREATE (:X))": "FOREACH",
    "MATCH (n) \\u0053ET n.x = 1": "escape",
    'RETURN "\\u0022 SET n.x = 1 //"': "escape",
    "MATCH (n) ſET n.x = 1": "SET",
    "MATCH (n) S\u200bET n.x = 1": "invisible",
    "MATCH (n) /* /* */ SET n.x = 1 */ RETURN n": "comment",
    "MATCH (n) // a comment?\rSET n.x = 1\n RETURN n": "comment",
    "MATCH (n) RETURN 1SET n.x = 1": "space after the number",
    "MATCH (n) RETURN `n` INSERT (:X)": "INSERT",
    'RETURN "an open text SET n.x = 1': "has no end",
    "MATCH (n) RETURN n; MATCH (n) DELETE n": "several statements",
    "EXPLAIN MATCH (n) DELETE n": "EXPLAIN",
    "PROFILE MATCH (n) DELETE n": "PROFILE",
}


@pytest.mark.parametrize("statement", HIDDEN_WRITES)
def test_a_write_hidden_in_a_read_is_named_and_refused(statement: str, sandbox: Sandbox) -> None:
    with pytest.raises(QueryFailed, match=HIDDEN_WRITES[statement]):
        refuse_unless_cypher_read(statement)
    with suppress(QueryFailed):  # the engine's own read mode and the undone transaction, without the list
        sandbox.read(statement)
    assert sandbox.read("MATCH (n) RETURN count(n) AS n") == ({"n": 2},) and agrees(sandbox)


ELSEWHERE = {
    "LOAD CSV FROM 'file:///etc/passwd' AS line CREATE (n {id: line[0]})": "LOAD",
    "CREATE (a:X {id: 'a'}) WITH a LOAD CSV FROM 'http://127.0.0.1/' AS line SET a.x = line": "LOAD CSV",
    "CALL apoc.load.json('file:///etc/passwd') YIELD value RETURN value": "apoc.load.json",
    "CALL `db`.`labels`()": "CALL",
    "CALL dbms.listConfig()": "dbms.listconfig",
    "CALL merge.node(['X'], {id: 'x'})": "merge.node",
    "CREATE (n {id: apoc.text.join(['a'], '')})": "apoc.text.join",
    "CREATE (n {id: file('/etc/passwd')})": "function file",
    "CREATE INDEX FOR (n:Person) ON (n.id)": "CREATE INDEX",
    "CREATE CONSTRAINT c FOR (n:Person) REQUIRE n.id IS UNIQUE": "CREATE CONSTRAINT",
    "CREATE OR REPLACE DATABASE other": "CREATE OR",
    "CREATE USER eve SET PASSWORD 'x'": "CREATE USER",
    "DROP INDEX x": "DROP",
    "SHOW DATABASES": "SHOW",
    "USE other MATCH (n) DELETE n": "USE",
    "GRANT ROLE admin TO eve": "GRANT",
    "MATCH (n) CALL { WITH n SET n.x = 1 } IN TRANSACTIONS OF 1 ROWS": "TRANSACTIONS",
    "USING PERIODIC COMMIT CREATE (n)": "USING",
    "CREATE (n {id: 'a'}); CREATE (m {id: 'b'})": "several statements",
    "COMMIT": "COMMIT",
    "// only a comment": "empty",
}


@pytest.mark.parametrize("statement", ELSEWHERE)
def test_what_reaches_beyond_the_graph_is_named_and_refused(statement: str, sandbox: Sandbox) -> None:
    with pytest.raises(QueryFailed):
        refuse_unless_cypher_read(statement)
    with pytest.raises(QueryFailed, match=ELSEWHERE[statement]):
        refuse_unless_cypher_write(statement)
    for run in (sandbox.read, sandbox.write):  # the engine in its sandbox, without the list
        try:
            assert "root:" not in repr(run(statement))
        except QueryFailed as error:
            assert "root:" not in str(error)
    assert sandbox.read("MATCH (n) RETURN count(n) AS n") == ({"n": 2},) and agrees(sandbox)


# --- runaway statements ---

RUNAWAY = {
    "MATCH (a), (b) WHERE a.id + b.id = 'x' RETURN count(*)": "longer than 1 seconds",
    "MATCH (a), (b), (c) RETURN a.id + b.id + c.id": "longer than 1 seconds|more than 1,000,000 bytes",
    "UNWIND range(1, 1000000) AS i UNWIND range(1, 1000000) AS j RETURN sum(i * j)": "longer than 1 seconds",
    "RETURN reduce(s = 'ab', x IN range(1, 40) | s + s)": "more memory",
    "RETURN reduce(s = 0, x IN range(1, 1000000) | s + reduce(t = 0, y IN range(1, 3000) | t + y))": "starts afresh",
}


@pytest.fixture(scope="module")
def hurried() -> Iterator[Sandbox]:
    with open_sandbox(language="cypher", seconds=AMPLE, memory_mb=256) as sandbox:
        sandbox.reset(tuple(Node(f"n{number}", ("Thing",)) for number in range(10_000)), ())
        sandbox.read("RETURN 1 AS n")
        yield sandbox


@pytest.mark.extended  # a write that never ends is stopped in a quick test
@pytest.mark.parametrize("statement", RUNAWAY)
def test_a_runaway_statement_is_stopped_and_the_next_one_works(statement: str, hurried: Sandbox) -> None:
    hurried.seconds = 1
    with pytest.raises(QueryFailed, match=RUNAWAY[statement]):
        hurried.read(statement)
    hurried.seconds = AMPLE
    assert hurried.read("MATCH (n:Thing) RETURN count(n) AS n") == ({"n": 10_000},)


def test_a_write_that_never_ends_is_stopped_and_undone(hurried: Sandbox) -> None:
    hurried.seconds = 1
    # a busy engine may be ended before it can say so
    with pytest.raises(QueryFailed, match=r"longer than 1 seconds|starts afresh"):
        hurried.write("MATCH (a), (b) CREATE (a)-[:X]->(b)")
    hurried.seconds = AMPLE
    assert hurried.read("MATCH ()-[r]->() RETURN count(r) AS n") == ({"n": 0},)


@pytest.mark.extended
def test_the_worker_runs_as_an_ordinary_process_when_asked_to_and_writes_nothing_where_it_was_started(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_sandbox("unsafe", language="cypher", seconds=AMPLE, unsafe=True) as sandbox:
        sandbox.reset((ADA, LONDON), (BORN,))
        with pytest.raises(QueryFailed, match=r"(?i)not allowed|disabled"):
            sandbox.read("LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line")
        assert sandbox.read("MATCH (a)-[r]->(b) RETURN b.id") == ({"b.id": "London"},)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("edges", "statement", "left"),
    [
        (
            (Edge("Ada", "K", "London", {"w": 2}, "2"),),
            "MATCH (a)-[r:K]->(b) SET r = {w: 9}",
            {"2": {"w": 9}},
        ),
        ((Edge("Ada", "K", "London", {"w": 2}, "k"),), "MATCH (a)-[r:K]->(b) SET r = {}", {"k": {}}),
        ((Edge("Ada", "K", "London", {}, "k"),), "MATCH (a)-[r:K]->(b) SET r._key = '6'", {"6": {}}),
        (
            (Edge("Ada", "K", "London"), Edge("Ada", "K", "London", {}, "2")),
            "MATCH (a)-[r:K {_key: '2'}]->(b) SET r = {w: 1}",
            {"": {}, "2": {"w": 1}},
        ),
    ],
)
def test_a_keyed_edge_stays_one_edge_when_a_statement_replaces_its_properties(
    sandbox, edges, statement, left
):
    sandbox.apply(Diff(added_edges=edges))
    for _ in range(2):
        written(sandbox, statement)
        keyed = [edge for edge in sandbox._truth.edges.values() if edge.type == "K"]
        assert {edge.key: dict(edge.properties) for edge in keyed} == left
    assert agrees(sandbox)
