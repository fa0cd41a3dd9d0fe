"""A graph on a real Bolt server: exact diffs of statements, a namespace of its own, fences, limits, and a
server that goes away.
"""

from __future__ import annotations

import itertools
import re
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from support.cypher_statements import STATEMENTS
from support.loopback import free_port

from kgot_lab.errors import BadInput, QueryFailed, StoreUnavailable
from kgot_lab.stores.cypher.server import CypherServer
from kgot_lab.types import Diff, Edge, Node

NUMBERS = itertools.count(1)
PROJECT = Path(__file__).parents[2]


def open_store(server, database, **options):
    login = {"user": server.user, "password": server.password, "database": database}
    return CypherServer(options.pop("uri", server.uri), **login, **options)


@pytest.fixture
def database(bolt_server):
    return bolt_server.database(f"server{next(NUMBERS)}")


@pytest.fixture
def store(bolt_server, database):
    with open_store(bolt_server, database, seconds=60) as store:  # 9,000 rows on a busy machine
        yield store


@pytest.fixture
def driver(bolt_server):
    import neo4j

    with neo4j.GraphDatabase.driver(bolt_server.uri, auth=(bolt_server.user, bolt_server.password)) as driver:
        yield driver


def written(store, *statements):
    """The diff of the last of some statements."""
    return [store.write(statement) for statement in statements][-1]


# ----------------------------------------------------------------------------------------------------------------


def test_the_diff_of_any_statement_leads_from_the_graph_before_to_the_graph_after(store):
    graph = store.graph()
    for statement in STATEMENTS:
        try:
            diff = store.write(statement)
        except QueryFailed as refused:
            assert "two nodes would have the id" in refused.reason
            diff = Diff()
        after = store.graph()
        assert graph.apply(diff) == after, statement
        assert bool(diff) == (graph != after), statement
        graph = after
    assert len(graph) == 0


def test_nodes_are_named_by_what_they_hold(store):
    create = 'CREATE (:Robot {name: "Bob"}), (:Person {id: 7}), (:Thing), (:Thing)'
    diff = written(store, 'CREATE (:Person {name: "Bob", age: 1})', create)
    assert {node.id for node in diff.added_nodes} == {"Bob (Robot)", "7", "Thing 1", "Thing 2"}
    assert {node.id: dict(node.properties) for node in diff.added_nodes}["Bob (Robot)"] == {"name": "Bob"}


def test_parallel_edges_get_keys_that_last(store):
    create = "MATCH (a:A), (b:B) CREATE (a)-[:R {n: 1}]->(b), (a)-[:R {n: 2}]->(b)"
    two = written(store, "CREATE (:A {id: 'a'}), (:B {id: 'b'})", create)
    assert {edge.key for edge in two.added_edges} == {"", "2"}
    one = store.write("MATCH (:A)-[r:R {n: 2}]->() SET r = {n: 3}")
    ((before, after),) = one.changed_edges
    assert before.key == after.key and dict(after.properties) == {"n": 3}
    assert store.write("MATCH (a:A), (b:B) CREATE (a)-[:R]->(b)").added_edges == (
        Edge("a", "R", "b", {}, "3"),
    )


def test_a_statement_that_replaces_all_properties_changes_the_same_node(store):
    store.apply(Diff(added_nodes=(Node("Ada", ("Person", "Author"), {"age": 36}),)))
    (change,) = store.write('MATCH (a {id: "Ada"}) SET a = {name: "Countess"}').changed_nodes
    ada = Node("Ada", ("Person", "Author"), {"age": 36})
    assert change == (ada, Node("Ada", ("Person", "Author"), {"name": "Countess"}))


def test_labels_keep_their_order_when_one_comes_or_goes(store):
    store.apply(Diff(added_nodes=(Node("Ada", ("Person", "Author", "Countess")),)))
    changed = store.write("MATCH (a:Author) SET a:Reader REMOVE a:Author").changed_nodes
    assert changed[0][1].labels == ("Person", "Countess", "Reader")
    before = Node("Ada", ("Person", "Countess", "Reader"))
    store.apply(Diff(changed_nodes=((before, Node("Ada", ("Reader", "Person"))),)))
    assert store.graph().node("Ada").labels == ("Reader", "Person")


def test_what_a_graph_may_not_hold_is_refused_and_taken_back(store):
    wrong = (
        "CREATE (:A {x: 0.0 / 0.0})",
        "CREATE (:`  ` {id: 'a'})",
        "CREATE ({id: 'a'})-[:` `]->({id: 'b'})",
    )
    for statement in wrong:
        with pytest.raises(QueryFailed) as caught:
            store.write(statement)
        assert len(caught.value.reason) > 10
    assert len(store.graph()) == 0


NASTY = (
    "quote \" ' ` {} [] \\ \\u0041 %s $x ?",
    "a\nb\tc\u2028",
    "é e\u0301 中 🧪",
    'json:{"a": 1}',
    "null \x00 byte",
    "MATCH (n) DELETE n //",
    "",
)


# --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "diff",
    [
        Diff(added_nodes=(Node("a"), Node("b", ("same",))), added_edges=(Edge("a", "same", "b"),)),
        Diff(added_nodes=(Node("a"), Node("b", ("x" * 5000,)))),
    ],
    ids=["a label that is a relation too", "a long label"],
)
def test_what_this_server_cannot_hold_is_refused_whole(store, diff):
    with pytest.raises(BadInput) as caught:
        store.apply(diff)
    assert len(str(caught.value)) > 20 and len(store.graph()) == 0


def test_rows_show_nodes_edges_paths_and_times_as_plain_values(store):
    nodes = (Node("Ada", ("Person", "Author"), {"deep": {"a": [1, None]}}), Node("Bob"))
    store.apply(Diff(added_nodes=nodes, added_edges=(Edge("Ada", "KNOWS", "Bob", {"since": 1.0}, "k"),)))
    ada = {"id": "Ada", "labels": ["Person", "Author"], "deep": {"a": [1, None]}}
    knows = {"subject": "Ada", "relation": "KNOWS", "object": "Bob", "since": 1.0}
    bob = {"id": "Bob", "labels": []}
    query = "MATCH (a)-[r]->() RETURN a, r, type(r) AS type"
    assert store.read(query) == ({"a": ada, "r": knows, "type": "KNOWS"},)
    query = "MATCH ()-[r]->() RETURN [r] AS links, {r: r} AS map"
    assert store.read(query) == ({"links": [knows], "map": {"r": knows}},)
    assert store.read("MATCH p = (:Person)-[]->() RETURN p") == ({"p": [ada, knows, bob]},)
    query = "MATCH (b {id: 'Bob'}) RETURN keys(b) AS k, properties(b) AS p"
    assert store.read(query) == ({"k": ["id"], "p": {"id": "Bob"}},)
    assert store.read(
        'RETURN date("2020-01-02") AS d, [datetime("2020-01-02T03:04:05Z")] AS t, duration("P1D") AS l, 0.0 / 0.0 AS n'
    ) == ({"d": "2020-01-02", "t": ["2020-01-02T03:04:05+00:00"], "l": "P1D", "n": "nan"},)


SNEAKY = (
    'MATCH (a {id: "Ada"}) SET a.age = 1 RETURN a',
    'MATCH (a {id: "Ada"}) /* RETURN a */ SET a.age = 1',
    'MATCH (a {id: "Ada"})\nset\ta.age = 1',
    'MATCH (a {id: "Ada"}) S\\u0045T a.age = 1 RETURN a',
    'MATCH (a {id: "Ada"}) REMOVE a:Person RETURN a',
    'MATCH (a {id: "Ada"}) DETACH DELETE a',
    'MATCH (a {id: "Ada"}) CALL { WITH a SET a.age = 1 } RETURN a',
    'MATCH (a {id: "Ada"}) FOREACH (x IN [1] | SET a.age = x) RETURN a',
    'MERGE (a:Person {id: "Eve"}) RETURN a',
    'MATCH (a) RETURN a UNION CREATE (a {id: "Eve"}) RETURN a',
    'RETURN 1; CREATE ({id: "Eve"})',
    'LOAD CSV FROM "file:///etc/passwd" AS line RETURN line',
    "CALL db.labels() YIELD label CALL dbms.security.createUser('eve', 'x') RETURN label",
    "CALL apoc.load.json('http://127.0.0.1/') YIELD value RETURN value",
    "CREATE INDEX eve FOR (n:Person) ON (n.id)",
    "DROP DATABASE one",
    "CREATE USER eve SET PASSWORD 'x'",
)


@pytest.mark.parametrize("statement", SNEAKY)
def test_a_read_cannot_write_nor_leave_the_graph(store, statement):
    store.apply(Diff(added_nodes=(Node("Ada", ("Person",)),)))
    with pytest.raises(QueryFailed):
        store.read(statement)
    assert tuple(store.graph().nodes) == (Node("Ada", ("Person",)),)


@pytest.mark.parametrize(
    "statement",
    [
        each
        for each in SNEAKY
        if any(word in each for word in ("LOAD", "CALL db", "apoc", "INDEX", "DROP", "USER", ";"))
    ],
)
def test_a_write_cannot_leave_the_graph(store, statement):
    with pytest.raises(QueryFailed):
        store.write(statement)
    assert len(store.graph()) == 0


def test_a_write_that_comes_past_the_first_fence_is_taken_back_by_the_second(store):
    with store._link.read_transaction(5.0) as transaction:
        transaction.run(
            "CREATE ({id: 'Eve', _run: 'kgot'})"
        ).consume()  # ArcadeDB lets it through in the driver's read mode
    assert len(store.graph()) == 0


def test_rows_without_end_are_refused(store):
    many = "UNWIND range(1, 20000) AS n RETURN n"
    long = "UNWIND range(1, 99) AS n RETURN reduce(t = 'x', i IN range(1, 14) | t + t) AS t"
    for statement in (many, long):
        with pytest.raises(QueryFailed, match="return less"):
            store.read(statement)
    assert len(store.read("UNWIND range(1, 9000) AS n RETURN n")) == 9000


# -----------------------------------------------------------------------------------------------


def nodes_in(driver, database):
    """The ids of all nodes but of those by which writers take turns."""
    with driver.session(database=database) as session:
        return session.run("MATCH (n) WHERE NOT n:KgotLabWriters RETURN n.id ORDER BY n.id").value()


@pytest.fixture
def theirs(driver, database):
    """What somebody else keeps in the same database."""
    with driver.session(database=database) as session:
        session.run("CREATE ({id: 'theirs'})-[:R]->(:Person {id: 'too'})").consume()


@pytest.mark.usefixtures("theirs")
def test_what_others_keep_in_the_database_is_not_seen_touched_or_wiped(bolt_server, database, driver):
    with open_store(bolt_server, database) as store:
        assert len(store.graph()) == store.schema().nodes == 0
        assert store.read("MATCH (n) RETURN n.id AS id") == ()
        store.write("CREATE ({id: 'ours'})")
        store.write("MATCH (n) DETACH DELETE n")
        store.write("CREATE ({id: 'ours'})")
    with open_store(bolt_server, database, wipe=True) as store:
        assert len(store.graph()) == 0
        store.write("CREATE ({id: 'new'})")
        assert repr(store).endswith("namespace 'kgot': 1 node, 0 edges>")
    assert nodes_in(driver, database) == ["new", "theirs", "too"]


def test_nodes_that_others_put_into_the_namespace_are_noticed_and_never_taken_over(store, database, driver):
    store.write("CREATE ({id: 'ours'})")
    with driver.session(database=database) as session:
        session.run("CREATE ({id: 'theirs', _run: 'kgot'})").consume()
    for act in (store.graph, lambda: store.write("MATCH (n) SET n.x = 1")):
        with pytest.raises(StoreUnavailable, match="somebody else"):
            act()
    assert nodes_in(driver, database) == ["ours", "theirs"]


def turn_nodes(driver, database):
    with driver.session(database=database) as session:
        return session.run("MATCH (n:KgotLabWriters) RETURN n.of").value()


def test_the_lock_of_writers_is_seen_by_no_statement_and_goes_with_the_namespace(
    store, bolt_server, database, driver
):
    store.write("CREATE (:City {id: 'ours'})")
    assert turn_nodes(driver, database) == ["kgot"]
    assert store.read("MATCH (n:KgotLabWriters) RETURN n") == ()
    assert store.read("MATCH (n) RETURN count(n) AS n") == ({"n": 1},)
    assert not store.write("MATCH (n:KgotLabWriters) DETACH DELETE n")
    assert not store.write("MATCH (n:KgotLabWriters) SET n.written = 0")
    assert store.schema().labels == {"City": 1}
    login = {"user": bolt_server.user, "password": bolt_server.password, "database": database}
    assert CypherServer.namespaces(bolt_server.uri, **login) == {"kgot": (1, 0)}
    with driver.session(database=database) as session:
        CypherServer.delete_namespace(bolt_server.uri, "kgot", **login)
        assert session.run("MATCH (n) RETURN count(n)").value() == [0]
        assert store.write("CREATE ({id: 'again'})") and turn_nodes(driver, database) == ["kgot"]
        open_store(bolt_server, database, wipe=True).close()
        assert session.run("MATCH (n) RETURN count(n)").value() == [0]


def test_what_a_statement_makes_is_not_taken_for_the_lock_of_another_namespace(store, bolt_server, database):
    store.write("CREATE (:KgotLabWriters {id: 'false', of: 'theirs', written: 1})")
    before = store.graph()
    with open_store(bolt_server, database, namespace="theirs") as theirs:
        theirs.apply(Diff(added_nodes=(Node("a"),)))
    open_store(bolt_server, database, namespace="theirs", wipe=True).close()
    assert store.graph() == before


@pytest.mark.parametrize("wipe", [False, True])
def test_a_namespace_that_no_store_made_is_refused(bolt_server, database, driver, wipe):
    with driver.session(database=database) as session:
        session.run("CREATE ({name: 'theirs', _run: 'kgot'})").consume()
    with pytest.raises(BadInput, match="1 nodes that no store made"):
        open_store(bolt_server, database, wipe=wipe)
    with driver.session(database=database) as session:
        assert session.run("MATCH (n) RETURN n.name").value() == ["theirs"]


def test_an_edge_that_leads_out_of_the_namespace_cannot_be_followed(store, bolt_server, database, driver):
    store.write("CREATE ({id: 'a'})-[:R]->({id: 'b'})")
    with driver.session(database=database) as session:
        leave = "MATCH (a {id: 'a'}), (b {id: 'b'}) CREATE (a)-[:R]->({id: 'theirs'})-[:R]->(b)"
        session.run(leave).consume()
    walk = "MATCH p = ({id: 'a'})-[*]->(x) RETURN [n IN nodes(p) | n.id] AS ids"
    for statement in (walk, "MATCH (a)-[*2]->(b) SET b.found = true"):
        with pytest.raises(QueryFailed, match="connected this graph with others"):
            (store.write if "SET" in statement else store.read)(statement)
    assert store.read("MATCH ({id: 'a'})-->(x) RETURN x.id AS id") == ({"id": "b"},)
    assert [edge.target for edge in store.neighbours("a")] == ["b"]
    assert len(store.graph().edges) == 1 and store.schema().edges == 1
    with pytest.raises(BadInput, match="2 edges that connect it to what others have"):
        open_store(bolt_server, database, wipe=True)


def test_a_graph_of_an_earlier_version_is_gone_on_with(bolt_server, database, driver):
    with driver.session(database=database) as session:
        create = "CREATE ({id: 'a', _run: 'kgot'})-[:R {_run: 'kgot'}]->({id: 'b', _run: 'kgot'})"
        session.run(create).consume()
    with open_store(bolt_server, database) as store:
        assert store.graph().ids == ("a", "b")
        assert str(store.write("MATCH (a {id: 'a'}) CREATE (a)-[:R]->({id: 'c'})")) == "+1 node, +1 edge"


# -------------------------------------------------------------------------------------------


def test_what_cannot_be_opened_says_why_and_never_the_password(bolt_server, database):
    cases = {
        "cannot be reached": {"uri": f"bolt://127.0.0.1:{free_port()}"},
        "does not serve us": {"password": "a secret guess"},
        "no such database": {"database": "missing"},
        "not the address": {"uri": "http//nonsense"},
        "blank": {"namespace": " "},
    }
    for reason, options in cases.items():
        login = {"uri": bolt_server.uri, "user": bolt_server.user, "password": bolt_server.password}
        given = {**login, "database": database} | options
        with pytest.raises((StoreUnavailable, BadInput), match=reason) as caught:
            CypherServer(given.pop("uri"), **given)
        assert given["password"] not in str(caught.value)
    with open_store(bolt_server, database) as store:
        assert bolt_server.password not in repr(store) + repr(vars(store)) + repr(vars(store._link))


LONG = "UNWIND range(1, 2000) AS a UNWIND range(1, 2000) AS b WITH count(*) AS c "  # seconds, and ArcadeDB keeps to no time limit


def test_a_statement_that_takes_too_long_is_cut_off_and_the_next_one_works(bolt_server, database):
    with open_store(bolt_server, database, seconds=0.3) as store:
        with pytest.raises(QueryFailed, match=r"took longer than 0\.3 s"):
            store.write(LONG + LONG.replace("c ", "d ") + "CREATE ({id: 'late'})")
        with pytest.raises(QueryFailed, match="took longer"):
            store.read(LONG + LONG.replace("c ", "d ") + "RETURN d")
        assert store.read("RETURN 1 AS n") == ({"n": 1},)
        assert len(store.graph()) == 0


def test_a_server_that_goes_away_gives_one_clear_error_and_when_it_is_back_all_works(store, bolt_server):
    store.write("CREATE (:Person {id: 'Ada'})-[:KNOWS]->(:Person {id: 'Bob'})")
    bolt_server.kill()
    try:
        acts = (store.graph, partial(store.write, "CREATE ()"), partial(store.read, "RETURN 1"))
        acts = (*acts, partial(store.neighbours, "Ada"))
        for act in (*acts, lambda: store.apply(Diff(added_nodes=(Node("Eve"),)))):
            with pytest.raises(StoreUnavailable, match="try again"):
                act()
        assert "not reachable" in repr(store)
    finally:
        bolt_server.start()
    assert store.neighbours("Ada") == (Edge("Ada", "KNOWS", "Bob"),)
    assert store.write("CREATE (:Person {id: 'Eve'})") == Diff(added_nodes=(Node("Eve", ("Person",)),))
    assert set(store.graph().ids) == {"Ada", "Bob", "Eve"}


class Gate:
    """Stands between a store and its server, and breaks the line at the word COMMIT, before or after the
    server has heard it.
    """

    COMMIT = b"\x00\x02\xb0\x12\x00\x00"
    breaks = False

    def __init__(self, port, heard):
        self.server, self.heard = port, heard
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"bolt://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                inside, _ = self.listener.accept()
            except OSError:
                return
            outside = socket.create_connection(("127.0.0.1", self.server))
            for ends in ((inside, outside), (outside, inside)):
                threading.Thread(target=self.pump, args=ends, daemon=True).start()

    def pump(self, source, target):
        with suppress(OSError):
            while data := source.recv(65536):
                commit = self.breaks and self.COMMIT in data
                if self.heard or not commit:
                    target.sendall(data)
                if commit:
                    break
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.mark.parametrize("heard", [False, True], ids=["before", "after"])
def test_a_line_that_breaks_while_a_change_is_kept_leaves_no_false_certainty(bolt_server, database, heard):
    gate = Gate(bolt_server.port, heard)
    with gate.listener, open_store(bolt_server, database, uri=gate.uri) as store:
        store.write("CREATE ({id: 'sure'})")
        gate.breaks = True
        with pytest.raises(StoreUnavailable, match="may be there or not"):
            store.write("CREATE ({id: 'unsure'})")
        gate.breaks = False
        assert "sure" in store.graph().ids


# -----------------------------------------------------------------------------------------------


def test_the_servers_of_the_compose_file_are_pinned_and_listen_on_this_machine_only():
    lines = [line.strip() for line in (PROJECT / "compose.yaml").read_text().splitlines()]
    images, ports = ([line for line in lines if line.startswith(start)] for start in ("image:", "ports:"))
    assert len(images) == len(ports) == 3
    assert all(re.search(r":\d+\.\d+\.\d+-\w+$", image) for image in images)
    assert all('["127.0.0.1:' in port for port in ports)


def test_without_docker_the_command_says_what_it_needs():
    command = [sys.executable, str(PROJECT / "benchmarks/stores/servers.py")]
    done = subprocess.run(command, env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "needs Docker" in done.stderr and not done.stdout
