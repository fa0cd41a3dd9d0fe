"""The PostgreSQL store, on a server of its own: diffs in, reads in SQL, and looking around."""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support.every import every
from support.waiting import AMPLE, until

from kgot_lab.errors import BadInput, NotInstalled, QueryFailed, StoreUnavailable
from kgot_lab.stores.postgres.server import Server
from kgot_lab.stores.postgres.store import BULK_ELEMENTS, Postgres
from kgot_lab.stores.postgres.tables import quote_identifier, role_name
from kgot_lab.stores.protocol import Schema
from kgot_lab.types import Diff, Edge, Node

pytestmark = pytest.mark.extended

CURIE = Node("Marie Curie", ("Person", "Physicist"), {"born": 1867, "text": "Discovered radium"})
PRIZE = Node("Nobel Prize in Physics", ("Prize",))
PIERRE = Node("Pierre Curie", ("Person",), {"tags": ["radium", {"place": "Paris"}]})
WON = Edge("Marie Curie", "won", "Nobel Prize in Physics", {"year": 1903})
WED = Edge("Pierre Curie", "married", "Marie Curie")
ALL = Diff(added_nodes=(CURIE, PRIZE, PIERRE), added_edges=(WON, WED))

NASTY = (
    "it's", 'say "so"', "{curly} {{twice}}", "back\\slash \\n \\u0041", "a$$b$x$", "%s %(x)s 100%", "-- ; /* */ ;", "select",
    "Robert'); DROP TABLE nodes;--",
    "e\u0301 is \u00e9", "日本語", "🧪👩‍🔬", "line\nbreak\ttab\rreturn", "\u2028\ufeff\x7f\x01", "  padded  ", "null", "\\N", "\\.",
    "x" * 1_000_000,
)  # fmt: skip
NUMBERS = itertools.count(1)
VALUES = (
    0, 1, 1.0, True, False, None, "", -0.0, 0.0, 0.1, -1.5e-7, 1e16, -1e22, 1e308, 5e-324, 1.7976931348623157e308, 2**53 + 1, -(2**70),
    10**400,
    [], {}, [[], [{}]], {"a": {"b": [1, 1.0, True, None]}}, {"": "empty name", "a.b": 1, 'quo"te': 2, "it's": 3}, "-0.0 1e+16",
    ["1e+16", 1e16, -0.0],
)  # fmt: skip


@contextmanager
def a_server() -> Iterator[Server]:
    """A running server, in a folder that root's server can enter too, which pytest's own is not."""
    place = Path(tempfile.mkdtemp(prefix="kgot-postgres-", dir="/tmp"))
    place.chmod(0o755)
    server = Server(place / "server")
    try:
        server.start()
    except (NotInstalled, StoreUnavailable) as error:
        shutil.rmtree(place)
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no PostgreSQL could be started here: {error}")
    try:
        yield server
    finally:
        server.release()
        shutil.rmtree(place)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for all tests that leave it running as it is."""
    with a_server() as shared:
        yield shared


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server for one test that stops it, kills it or sets it up otherwise, so that its neighbours do not
    suffer.
    """
    with a_server() as alone:
        yield alone


@pytest.fixture
def own_curies(own_server, name) -> Iterator[Postgres]:
    with Postgres(path=own_server.folder, namespace=name, seconds=AMPLE) as store:
        store.apply(ALL)
        yield store


@pytest.fixture
def name() -> str:
    """A namespace for each test, with a name that needs quotes."""
    return f"test {next(NUMBERS)}"


@pytest.fixture
def store(server, name) -> Iterator[Postgres]:
    with Postgres(path=server.folder, namespace=name, seconds=AMPLE) as store:
        yield store


@pytest.fixture
def curies(store) -> Postgres:
    store.apply(ALL)
    return store


def asked(server, question, *parameters, user="postgres"):
    """The rows of a question put to the server past the store."""
    import psycopg

    with psycopg.connect(server.conninfo(user), autocommit=True) as connection:
        cursor = connection.execute(question, parameters)
        return cursor.fetchall() if cursor.description else []


# ----------------------------------------------------------------------------------------------


def test_a_failing_statement_changes_nothing_and_says_where(curies):
    with pytest.raises(QueryFailed, match=r'column "nme" does not exist\nat character 33, line 2'):
        curies.read("SELECT id\nFROM nodes WHERE id = nme")
    with pytest.raises(QueryFailed, match=r'column "nme" does not exist\nat character 8, line 1'):
        curies.read("SELECT nme FROM nodes")
    with pytest.raises(QueryFailed, match="division by zero"):
        curies.read("SELECT 1 / 0 AS x FROM nodes")
    with pytest.raises(QueryFailed, match=r"changed by diffs \(apply\)"):
        curies.write("DELETE FROM nodes")
    assert curies.graph().to_triples() and len(curies.graph()) == 3 and len(curies.graph().edges) == 2


def test_rows_are_json(store):
    (row,) = store.read(
        "SELECT 1 AS i, 1.50 AS n, 1e308::float8 AS f, 'a' AS t, NULL AS nothing, true AS b, '{\"x\": [1.0]}'::jsonb AS j,"
        " ARRAY['a', 'b'] AS l, DATE '1903-12-10' AS d, 12345678901234567890123::numeric AS big"
    )
    assert row == {
        "i": 1, "n": 1.5, "f": 1e308, "t": "a", "nothing": None, "b": True, "j": {"x": [1.0]}, "l": ["a", "b"], "d": "1903-12-10",
        "big": 12345678901234567890123,
    }  # fmt: skip
    rows = store.read("VALUES (1, 'a'), (2, 'b');  -- done")
    assert rows == ({"column1": 1, "column2": "a"}, {"column1": 2, "column2": "b"})
    up = "WITH RECURSIVE up(n) AS (SELECT 1 UNION SELECT n + 1 FROM up WHERE n < 5) SELECT n FROM up"
    assert [row["n"] for row in store.read(up)] == [1, 2, 3, 4, 5]
    assert store.read("SELECT 1 AS x WHERE false") == ()


def test_parameters_are_never_part_of_the_statement(curies):
    for text in NASTY[:-1]:
        assert curies.read("SELECT %s::text AS given", (text,)) == ({"given": text},)
    assert curies.read("SELECT id FROM nodes WHERE id = ANY(%(ids)s)", {"ids": ["Marie Curie", "x"]}) == (
        {"id": "Marie Curie"},
    )
    assert curies.read("SELECT id FROM nodes WHERE id LIKE '%Marie%'") == ({"id": "Marie Curie"},)
    for parameters in (("a\0b",), ("\ud800",), (1, 2), {"x": 1}):
        with pytest.raises(QueryFailed):
            curies.read("SELECT %s::text AS given", parameters)


def test_a_dict_is_a_parameter_for_json_and_keeps_its_values(store):
    properties = {"a": 1e16, "b": -0.0, "c": [1, 1.0, None, "it's"]}
    ((kept,),) = (row.values() for row in store.read("SELECT %s::jsonb AS given", (properties,)))
    assert written(kept) == written(properties)
    with pytest.raises(QueryFailed):
        store.read("SELECT %s::jsonb AS given", ({"a": math.nan},))


def test_two_columns_of_one_name_are_refused_rather_than_one_lost(store):
    with pytest.raises(QueryFailed, match="two columns have one name"):
        store.read("SELECT 1 AS a, 2 AS a")


# -----------------------------------------------------------------------------------------------------------


def written(value):
    """A value or a node as JSON that keeps 1, 1.0 and -0.0 apart, but not the order of names."""
    return json.dumps([value.id, value.properties] if isinstance(value, Node) else value, sort_keys=True)


def test_text_that_only_looks_like_a_null_byte_is_held(store):
    node = Node("\\u0000", (), {"\\u0000": "\\\\u0000"})
    store.apply(Diff(added_nodes=(node,)))
    assert tuple(store.graph().nodes) == (node,)


def test_a_statement_with_a_null_byte_or_half_a_surrogate_is_refused(curies):
    wrong = ("DELETE FROM nodes WHERE id = 'a\0b'", "DELETE FROM nodes --\0")
    for statement in (*wrong, "DELETE FROM nodes WHERE id = '\ud800'"):
        with pytest.raises(QueryFailed):
            curies.read(statement.replace("DELETE", "SELECT id"))
    with pytest.raises(QueryFailed, match="Unicode escape"):
        curies.read("""SELECT '{"a": "\\u0000"}'::jsonb AS x""")
    assert len(curies.graph()) == 3


# -------------------------------------------------------------------------------------

READ_ATTACKS = (
    "DELETE FROM nodes", "delete from nodes returning id", "INSERT INTO nodes VALUES ('x')", "UPDATE nodes SET id = 'x'", "TRUNCATE nodes",
    "TABLE nodes",
    "WITH gone AS (DELETE FROM nodes RETURNING id) SELECT * FROM gone",
    "WITH x AS (SELECT 1), y AS (\n/* a */ INSERT /* b */ INTO nodes VALUES ('x') RETURNING 1) SELECT * FROM y",
    "SELECT * INTO stolen FROM nodes", "SELECT 1; DELETE FROM nodes", "SELECT 1;; DELETE FROM nodes",
    "SELECT 1) AS a; DELETE FROM nodes; SELECT (1",
    "SELECT 1) AS found; COMMIT; DELETE FROM nodes --", "/* SELECT */ DROP TABLE nodes", "-- SELECT\nDROP TABLE nodes",
    "SELECT 1 -- \r; DROP TABLE nodes",
    "SELECT /* /* */ 1; DROP TABLE nodes -- */ */", "SELECT $$a$$", "SELECT $x$'$x$; DROP TABLE nodes; --'",
    "SELECT E'\\'; DROP TABLE nodes; --'",
    "SELECT pg_read_file('/etc/passwd')", "SELECT pg_catalog.pg_read_file('/etc/passwd')", 'SELECT "pg_read_file"(\'/etc/passwd\')',
    "SELECT PG_Read_File /* */ ('/etc/passwd')",
    "SELECT U&\"pg\\005fread_file\"('/etc/passwd')", "SELECT U&\"!0070g_sleep\" UESCAPE '!' (9)", "SELECT * FROM pg_ls_dir('.')",
    "SELECT * FROM ROWS FROM (pg_ls_dir('.')) AS x",
    "SELECT lo_import('/etc/passwd')", "SELECT lo_create(0)", "SELECT pg_sleep(60)", "SELECT set_config('role', 'postgres', false)",
    "SELECT set_config('transaction_read_only', 'off', true)", "SELECT query_to_xml('select pg_sleep(60)', true, true, '')",
    "SELECT pg_terminate_backend(1)",
    "SELECT pg_advisory_lock(1)", "SELECT pg_notify('a', 'b')", "SELECT nextval('nodes_number_seq')", "SELECT dblink('a', 'b')",
    "SELECT ts_stat('SELECT 1')",
    "SELECT * FROM pg_authid", "SELECT * FROM pg_shadow", "SELECT * FROM nodes FOR UPDATE", "SET ROLE postgres", "RESET ROLE", "RESET ALL",
    "SET SESSION AUTHORIZATION postgres",
    "COPY nodes TO '/tmp/stolen'", "COPY (SELECT 1) TO PROGRAM 'id'", "COPY nodes FROM PROGRAM 'id'",
    "DO $$ BEGIN DELETE FROM nodes; END $$", "CALL x()", "EXPLAIN ANALYZE DELETE FROM nodes",
    "PREPARE x AS DELETE FROM nodes", "EXECUTE x", "DECLARE c CURSOR FOR SELECT 1", "LISTEN x", "LOCK TABLE nodes", "VACUUM",
    "CREATE TABLE x (a int)", "LOAD 'x'", "BEGIN", "COMMIT",
    "ROLLBACK", "GRANT ALL ON nodes TO PUBLIC", "COMMENT ON TABLE nodes IS 'x'", "CREATE TEMP TABLE nodes AS SELECT 1", "", ";", "--",
    "ＳＥＬＥＣＴ 1", "SELECT\u00a01",
)  # fmt: skip


@pytest.fixture(scope="module", params=("its own server", "postgres", "may_make_roles", "may_not"))
def attacked(request, server) -> Iterator[Postgres]:
    """A store on its own server, and by url as a superuser, as a user that may make roles, and as one that
    may not.
    """
    user = request.param
    if user.startswith("may"):
        roles = "CREATEROLE" if user == "may_make_roles" else "NOCREATEROLE"
        asked(server, f"CREATE ROLE {user} LOGIN {roles}; GRANT CREATE ON DATABASE kgot_lab TO {user}")
    where = {"path": server.folder} if " " in user else {"url": server.conninfo(user)}
    with Postgres(**where, namespace=f"attacked {user}", seconds=AMPLE) as store:
        store.apply(ALL)
        yield store


def test_statements_run_as_a_role_of_their_own_where_one_can_be_made(attacked):
    (row,) = attacked.read("SELECT current_user AS name")
    attacker = "may_not" if attacked.namespace.endswith("may_not") else role_name(attacked.namespace)
    assert row["name"] == attacker


@every("statement", READ_ATTACKS)
def test_a_read_that_is_more_than_a_read_is_refused(attacked, statement):
    with pytest.raises(QueryFailed):
        attacked.read(statement)
    assert repr(attacked).endswith("3 nodes, 2 edges>")


def test_the_role_alone_would_stop_them_too(server, curies, name):
    import psycopg

    with Postgres(path=server.folder, namespace="somebody else's"):
        for statement in (
            "SELECT pg_read_file('/etc/passwd')", "COPY (SELECT 1) TO PROGRAM 'id'", "COPY (SELECT 1) TO '/tmp/x'",
            "CREATE TABLE x (a int)", "SET ROLE postgres",
            "SET SESSION AUTHORIZATION postgres", "SELECT set_config('role', 'postgres', false)", f"TRUNCATE {quote_identifier(name)}.nodes",
            f"DROP TABLE {quote_identifier(name)}.edges",
            'SELECT * FROM "somebody else\'s".nodes', f"UPDATE {quote_identifier(name)}.nodes SET number = DEFAULT",
            f"INSERT INTO {quote_identifier(name)}.nodes (id) VALUES ('x')", f"DELETE FROM {quote_identifier(name)}.edges",
            f"CREATE TABLE {quote_identifier(name)}.x (a int)",
        ):  # fmt: skip
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                asked(server, statement, user=role_name(name))


def test_a_namespace_of_any_name_sees_no_other(curies, server):
    with Postgres(path=server.folder, namespace='Ünï "quoted"; DROP SCHEMA x; -- {}%s') as other:
        assert repr(other).endswith(": 0 nodes, 0 edges>")
        other.apply(Diff(added_nodes=(Node("mine"),)))
        assert len(curies.graph()) == 3 and [node.id for node in other.graph().nodes] == ["mine"]
        with pytest.raises(QueryFailed, match="permission denied"):
            curies.read(f"SELECT id FROM {quote_identifier(other.namespace)}.nodes")


def test_a_wiped_namespace_is_empty(curies, server, name):
    curies.close()
    with Postgres(path=server.folder, namespace=name, wipe=True) as again:
        assert len(again.graph()) == 0
        again.apply(ALL)
        assert again.search("radium")


def test_names_that_only_look_dangerous_may_be_used(curies):
    curies.apply(Diff(added_nodes=(Node("DROP TABLE nodes; --", ("pg_sleep(1)",)),)))
    assert curies.read("SELECT id AS \"delete\" FROM nodes WHERE id LIKE 'DROP%' -- DELETE") == (
        {"delete": "DROP TABLE nodes; --"},
    )
    assert curies.read("SELECT gen_random_uuid()::text AS id")
    where = "length(id) > round(random()) AND lower(id) <> upper(id)"
    assert curies.read(f"SELECT count(*) AS n FROM nodes WHERE {where}")


def test_a_statement_that_runs_too_long_is_stopped(server):
    with Postgres(path=server.folder, namespace="slow", seconds=0.3) as store:
        for attempt in (
            lambda: store.read(
                "SELECT count(*) AS n FROM generate_series(1, 100000) AS a, generate_series(1, 100000) AS b"
            ),
            lambda: store.read(
                "WITH RECURSIVE up(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up) SELECT n FROM up WHERE n < 0"
            ),
        ):
            with pytest.raises(QueryFailed, match=r"longer than 0\.3 seconds"):
                attempt()
        store.seconds = AMPLE
        assert store.read("SELECT count(*) AS n FROM nodes") == ({"n": 0},)


def test_more_rows_than_anyone_wants_are_refused(store):
    for statement in (
        "SELECT repeat('x', 100) AS x FROM generate_series(1, 10000000)",
        "SELECT repeat('x', 100000000) AS x",
        "SELECT 1 AS a FROM generate_series(1, 10000000)",
    ):
        with pytest.raises(QueryFailed, match="returned more than"):
            store.read(statement)
    assert store.read("SELECT 1 AS a") == ({"a": 1},)


# ------------------------------------------------------------------------------------------------------------


def test_a_large_load_has_all_indexes_and_checks_afterwards(store, server, name):
    indexes = (
        "SELECT indexname FROM pg_indexes WHERE schemaname = %s"
        " UNION SELECT conname FROM pg_constraint WHERE connamespace = %s::regnamespace ORDER BY 1"
    )
    before = asked(server, indexes, name, quote_identifier(name))
    numbers = range(BULK_ELEMENTS)
    nodes = tuple(Node(f"n{n}", ("Number",), {"text": f"the number {n}"}) for n in numbers)
    edges = tuple(Edge(f"n{number}", "next", f"n{number + 1}") for number in range(BULK_ELEMENTS - 1))
    with pytest.raises(BadInput, match="no node"):
        store.apply(Diff(added_nodes=nodes, added_edges=(*edges, Edge("n0", "next", "nowhere"))))
    assert len(store.graph()) == 0 and asked(server, indexes, name, quote_identifier(name)) == before
    store.apply(Diff(added_nodes=nodes, added_edges=edges))
    assert asked(server, indexes, name, quote_identifier(name)) == before
    assert tuple(store.graph().nodes) == nodes and tuple(store.graph().edges) == edges
    assert store.search("number 1234", 1) == (nodes[1234],)
    with pytest.raises(BadInput, match="no node"):
        store.apply(Diff(added_edges=(Edge("n0", "r", "nowhere"),)))
    store.apply(Diff(added_nodes=tuple(Node(f"m{number}") for number in range(BULK_ELEMENTS + 1))))
    assert store.schema() == Schema(
        {"Number": BULK_ELEMENTS}, {"next": BULK_ELEMENTS - 1}, 2 * BULK_ELEMENTS + 1, BULK_ELEMENTS - 1
    )


# ---------------------------------------------------------------------------------------------------


def test_the_graph_comes_in_the_order_it_was_written(store):
    for id in "zebra", "Ant", "mole":
        store.apply(Diff(added_nodes=(Node(id),)))
    ends = ("zebra", "b", "Ant"), ("Ant", "a", "mole"), ("zebra", "a", "zebra")
    store.apply(Diff(added_edges=tuple(Edge(*each) for each in ends)))
    store.apply(Diff(changed_nodes=((Node("zebra"), Node("zebra", ("Animal",))),)))
    assert [node.id for node in store.graph().nodes] == ["zebra", "Ant", "mole"]
    assert [edge.type for edge in store.graph().edges] == ["b", "a", "a"]
    assert store.neighbours("zebra") == (Edge("zebra", "b", "Ant"), Edge("zebra", "a", "zebra"))
    assert store.neighbours("nobody") == store.neighbours("a\0") == store.neighbours("\ud800") == ()
    assert repr(store).endswith("3 nodes, 3 edges>")


@pytest.mark.parametrize(
    ("question", "best"),
    (
        ("Who won the Nobel Prize in Physics?", "Nobel Prize in Physics"), ("radium", "Marie Curie"), ("discovering", "Marie Curie"),
        ("PIERRE", "Pierre Curie"),
        ("paris", "Pierre Curie"), ("1867", "Marie Curie"), ("prize_in_physics", "Nobel Prize in Physics"),
        ("physics/chemistry", "Nobel Prize in Physics"),
        ('"radium" & | ! ( ) : * <-> \\ \'', "Marie Curie"), ("radium:*A & !x", "Marie Curie"), ("{radium}", "Marie Curie"), ("the", None),
        ("", None), ("?!", None),
        ("\0radium\0", "Marie Curie"), ("\ud800 radium", "Marie Curie"), ("'; DROP TABLE nodes; --", None),
        ("x" * 50_000 + " radium", "Marie Curie"), ("%s %(words)s radium", "Marie Curie"),
    ),
)  # fmt: skip
def test_a_raw_question_finds_the_nodes_that_share_its_words(curies, question, best):
    found = curies.search(question, 5)
    assert (found[0].id if found else None) == best


def test_a_name_of_little_words_is_found(store):
    odd = Node("who is this", (), {"text": "the the the"})
    store.apply(Diff(added_nodes=(Node("The Who"), Node("It"), odd)))
    assert [node.id for node in store.search("The Who", 1)] == ["The Who"]
    assert [node.id for node in store.search("it")] == ["It"]


def test_a_long_text_of_many_words_can_be_held_and_found(store):
    text = " ".join(f"word{number}" for number in range(120_000))
    store.apply(Diff(added_nodes=(Node("long", (), {"text": text}),)))
    assert len(text) > 1_000_000 and store.search("word77")[0].id == "long"


# -------------------------------------------------------------------------------------------------------


def test_a_schema_that_is_not_ours_is_refused_and_not_touched(server):
    create = "CREATE SCHEMA theirs; CREATE TABLE theirs.nodes (id text)"
    asked(server, f"{create}; INSERT INTO theirs.nodes VALUES ('precious')")
    for wipe in (False, True):
        with pytest.raises(BadInput, match="not one of ours"):
            Postgres(path=server.folder, namespace="theirs", wipe=wipe)
        with pytest.raises(BadInput, match="not one of ours"):
            Postgres(path=server.folder, namespace="public", wipe=wipe)
    assert asked(server, "SELECT id FROM theirs.nodes") == [("precious",)]
    tables = asked(server, "SELECT tablename FROM pg_tables WHERE schemaname IN ('theirs', 'public')")
    assert tables == [("nodes",)]


def test_a_wipe_stops_at_what_others_built(server, name):
    with Postgres(path=server.folder, namespace=name) as store:
        store.apply(ALL)
    asked(server, f"CREATE VIEW public.people AS SELECT id FROM {quote_identifier(name)}.nodes")
    with pytest.raises(BadInput, match="people"):
        Postgres(path=server.folder, namespace=name, wipe=True)
    asked(server, "DROP VIEW public.people")
    with Postgres(path=server.folder, namespace=name) as store:
        assert len(store.graph()) == 3


@pytest.mark.parametrize("namespace", ("", " ", "a\0b", "x" * 64, "é" * 32, "pg_mine", "\ud800"))
def test_a_name_that_no_schema_can_have_is_refused(server, namespace):
    with pytest.raises(BadInput, match=r"a namespace is|'namespace' holds"):
        Postgres(path=server.folder, namespace=namespace)


# ------------------------------------------------------------------------


def test_an_edge_never_outlives_its_node_however_two_stores_race(store, server, name):
    refused = []

    def link(writer):
        for _ in range(40):
            try:
                writer.apply(Diff(added_edges=(Edge("a", "r", "b"),)))
            except BadInput as error:
                refused.append(str(error))

    def cut(writer):
        for _ in range(40):
            with suppress(BadInput):  # the edge came in between
                writer.apply(Diff(removed_nodes=(Node("a"),), removed_edges=writer.neighbours("a")))
                writer.apply(Diff(added_nodes=(Node("a"),)))

    store.apply(Diff(added_nodes=(Node("a"), Node("b"))))
    with Postgres(path=server.folder, namespace=name) as other, ThreadPoolExecutor() as pool:
        for done in [pool.submit(link, store), pool.submit(cut, other)]:
            done.result()
    assert all("no node" in text or "already there" in text or "does not fit" in text for text in refused)
    assert store.graph().ids and set(store.graph().edges) <= {Edge("a", "r", "b")}


def test_two_stores_may_make_one_namespace_at_once(server, name):
    with ThreadPoolExecutor() as pool:
        stores = list(pool.map(lambda _: Postgres(path=server.folder, namespace=name), range(4)))
    for number, store in enumerate(stores):
        store.apply(Diff(added_nodes=(Node(f"n{number}"),)))
    assert len(stores[0].graph()) == 4
    for store in stores:
        store.close()


def test_a_server_that_goes_away_and_comes_back_is_one_error(own_curies, own_server):
    curies, server = own_curies, own_server
    url = server.conninfo()
    with Postgres(url, namespace=curies.namespace) as remote:
        assert len(remote.graph()) == 3
        server.stop()
        with pytest.raises(StoreUnavailable, match="went away, and nothing was changed"):
            remote.apply(Diff(added_nodes=(Node("new"),)))
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            remote.read("SELECT 1 AS a")
        assert repr(remote).endswith(": out of reach>")
        server.start()
        assert remote.read("SELECT count(*) AS n FROM nodes") == ({"n": 3},)
        remote.apply(Diff(removed_edges=(WON, WED)))
        with pytest.raises(StoreUnavailable):  # this store still holds a connection to the server that was
            curies.schema()
        assert curies.schema().nodes == 3
        curies.apply(Diff(added_edges=(WON,)))


def test_a_store_starts_its_own_server_again(own_curies, own_server):
    curies = own_curies
    own_server.stop()
    with pytest.raises(StoreUnavailable, match="went away"):
        curies.search("radium")
    assert curies.search("radium") and curies.neighbours("Pierre Curie")


def test_a_connection_that_is_cut_during_a_write_changes_nothing(curies, server, name):
    import psycopg

    with psycopg.connect(server.conninfo()) as blocker:
        blocker.execute(f"LOCK TABLE {quote_identifier(name)}.nodes IN ACCESS EXCLUSIVE MODE")
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(curies.apply, Diff(added_nodes=(Node("new"),)))
            cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid <> pg_backend_pid()"
            while not asked(server, cut):
                assert not waiting.done()
            with pytest.raises(StoreUnavailable, match="nothing was changed"):
                waiting.result()
    assert len(curies.graph()) == 3


def set_up(server, store, **settings):
    """Change a server's settings, and wait until the store's own connection goes by them: each takes note of
    them in its own time.
    """
    for setting, value in settings.items():
        asked(server, f"ALTER SYSTEM SET {setting} = '{value}'")
        asked(server, "SELECT pg_reload_conf()")
        asks = f"SELECT current_setting('{setting}') AS value"
        until(lambda: store._link.fetch_rows(asks) == [(value,)], f"{setting} is {value!r}")  # noqa: B023


def commits_wait(server) -> bool:
    """Whether a commit waits for a standby; one that does is let go."""
    with ThreadPoolExecutor() as pool:
        probe = pool.submit(asked, server, "SELECT pg_logical_emit_message(true, 'probe', '')")
        waited = False
        while not probe.done():
            cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            waited = bool(asked(server, cancel)) or waited
        probe.result()
    return waited


def test_a_connection_that_is_cut_during_the_commit_is_said_to_leave_a_doubt(own_curies, own_server):
    curies, server = own_curies, own_server
    # so that a commit waits for a server that is not there
    set_up(server, curies, synchronous_standby_names="nobody")
    # that they shall is told to them by the checkpointer, in its own time
    until(lambda: commits_wait(server), "commits wait")
    try:
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(curies.apply, Diff(removed_edges=(WON, WED)))
            end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            while not asked(server, end):
                assert not waiting.done()
            with pytest.raises(StoreUnavailable, match="nobody can tell whether it kept the change"):
                waiting.result()
    finally:
        set_up(server, curies, synchronous_standby_names="")
    assert len(curies.graph().edges) == 0


def test_another_process_that_closes_its_store_leaves_the_server_to_us(curies, server, name):
    other = "import sys; from kgot_lab.stores.postgres.store import *\nwith Postgres(path=sys.argv[1], namespace=sys.argv[2]) as it: print(it)"
    command = [sys.executable, "-c", other, server.folder, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"<Postgres {name}: 3 nodes, 2 edges>\n"
    assert curies.search("radium")


def test_a_server_that_was_killed_is_started_again_with_all_that_was_written(own_curies, own_server):
    curies, server = own_curies, own_server
    curies.apply(Diff(added_nodes=(Node("late"),)))
    os.kill(int((server.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def all_of_it() -> int:
        with suppress(StoreUnavailable):
            return len(curies.graph())
        return 0

    assert until(all_of_it, "the server is back") == 4


def test_the_first_to_open_a_server_that_was_killed_finds_all_that_was_written(own_curies, own_server):
    own_curies.apply(Diff(added_nodes=(Node("late"),)))
    os.kill(int((own_server.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
    it = "from kgot_lab.stores.postgres.store import *\nwith Postgres(path=sys.argv[1], namespace=sys.argv[2]) as it: print(it)"
    command = [sys.executable, "-c", f"import sys; {it}", own_server.folder, own_curies.namespace]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"<Postgres {own_curies.namespace}: 4 nodes, 2 edges>\n", "")


def test_a_server_that_cannot_finish_is_ended_all_the_same(own_server, monkeypatch):
    """As one does whose disk is full: its last act before it stops, to write all down, never ends."""
    monkeypatch.setattr("kgot_lab.stores.postgres.server._STOP_SECONDS", 1)
    ((writer,),) = asked(own_server, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
    os.kill(writer, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        own_server.stop()
        assert time.monotonic() - begun < AMPLE / 4
    finally:
        with suppress(ProcessLookupError):
            os.kill(writer, signal.SIGKILL)
    own_server.start()
    assert asked(own_server, "SELECT 1") == [(1,)]


def test_a_server_that_is_gone_when_it_is_told_to_end_is_no_error(own_server, monkeypatch):
    """What happens on a busy computer: pg_ctl gives up waiting, the server ends after all, and the signal
    meets nobody.
    """
    import psutil

    started, end = own_server._server, own_server._server._stop

    def end_and_miss():
        end()
        raise psutil.NoSuchProcess(1)

    monkeypatch.setattr(started, "_stop", end_and_miss)
    own_server.stop()
    own_server.start()
    assert asked(own_server, "SELECT 1") == [(1,)]
    own_server.release()


def test_an_interrupted_read_leaves_a_store_that_works(curies):
    with pytest.raises(KeyboardInterrupt), curies._owner_link.transaction("BEGIN") as connection:
        connection.execute("DELETE FROM edges")
        raise KeyboardInterrupt
    assert len(curies.graph().edges) == 2


# -------------------------------------------------------------------------------------------


def test_the_server_listens_on_no_network_port(server):
    assert asked(server, "SELECT current_setting('listen_addresses')") == [("",)]
    assert (server.data.stat().st_mode & 0o777) == 0o700


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root's server runs as somebody else")
def test_a_private_folder_is_named_and_stays_private(server, tmp_path):
    tmp_path.chmod(0o700)
    with pytest.raises(StoreUnavailable, match="cannot enter"):
        Postgres(path=tmp_path / "pg")
    assert tmp_path.stat().st_mode & 0o777 == 0o700 and not (tmp_path / "pg").exists()


def test_a_folder_that_holds_something_else_is_not_touched(server, tmp_path):
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(BadInput, match="not touched"):
        Postgres(path=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("folder", ("/tmp/with space", "/tmp/$(id)", "/tmp/" + "long" * 30, "/tmp/é"))
def test_a_folder_whose_name_no_socket_can_have_is_refused(folder):
    with pytest.raises(BadInput, match="give another path"):
        Postgres(path=folder)


def test_a_server_that_is_not_there_is_one_clear_error():
    with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
        Postgres("postgresql://me:secret@127.0.0.1:1/x")
    assert "secret" not in str(caught.value)
    with pytest.raises(BadInput, match="a url or a path"):
        Postgres("postgresql://127.0.0.1:1/x", path="/tmp/x")
