"""The SQLite store: exact diffs, what a statement may not do, search, and files that are shared, foreign or
damaged.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import pytest
from support.every import every
from support.waiting import AMPLE

from kgot_lab.diagnostics.file_check import check_file
from kgot_lab.errors import BadInput, QueryFailed, StoreDamaged, StoreUnavailable
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.sqlite import file as sqlite_file
from kgot_lab.kgos.query.graph_loading import read_store_file
from kgot_lab.stores.protocol import Schema
from kgot_lab.stores.sqlite.salvage import salvage_sqlite
from kgot_lab.stores.sqlite.store import BULK_ROWS, Sqlite
from kgot_lab.types import Diff, Edge, Node

CURIE = Node("Marie Curie", ("Person", "Physicist"), {"born": 1867, "text": "Discovered radium"})
PRIZE = Node("Nobel Prize in Physics", ("Prize",))
PIERRE = Node("Pierre Curie", ("Person",), {"tags": ["radium", {"place": "Paris"}]})
WON = Edge("Marie Curie", "won", "Nobel Prize in Physics", {"year": 1903})
WED = Edge("Pierre Curie", "married", "Marie Curie")
SELF = Edge("Marie Curie", "taught", "Marie Curie", key="k")
ALL = Diff(added_nodes=(CURIE, PRIZE, PIERRE), added_edges=(WON, WED, SELF))


@pytest.fixture(params=["in memory", "in a file"])
def store(request, tmp_path):
    with Sqlite(":memory:" if request.param == "in memory" else tmp_path / "notes.db") as store:
        store.apply(ALL)
        yield store


@pytest.fixture
def quick():
    """A store whose statements may take a fifth of a second."""
    with Sqlite(seconds=0.2) as store:
        store.apply(ALL)
        yield store


def in_another_process(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-c",
        f"import sys\nfrom kgot_lab.stores.sqlite.store import Sqlite\n{code}",
        *map(str, arguments),
    ]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


# ------------------------------------------------------------------------------------------------------------


def test_parameters_come_as_a_sequence_or_by_name(store):
    store.apply(Diff(added_nodes=(Node("it's", (), {"n": 1}),)))
    query = "SELECT properties ->> 'n' AS n FROM nodes WHERE id = :id"
    assert store.read(query, {"id": "it's"}) == ({"n": 1},)
    with pytest.raises(QueryFailed, match="type 'list' is not supported"):
        store.read("SELECT ?", ([],))
    with pytest.raises(QueryFailed, match="too large"):
        store.read("SELECT ?", (2**64,))


def test_a_large_diff_is_applied_as_a_small_one_is(store):
    nodes = tuple(Node(f"n{number}", ("N",), {"text": f"word{number}"}) for number in range(BULK_ROWS))
    store.apply(Diff(added_nodes=nodes, changed_nodes=((PRIZE, Node(PRIZE.id, (), {"text": "Stockholm"})),)))
    assert store.search(f"word{BULK_ROWS - 1}") == (nodes[-1],)
    assert [node.id for node in store.search("Stockholm")] == [PRIZE.id]
    with pytest.raises(BadInput, match="already there"):
        store.apply(Diff(added_nodes=(*(Node(f"m{number}") for number in range(BULK_ROWS)), CURIE)))
    store.apply(Diff(removed_nodes=(nodes[0],)))
    assert store.search("word0") == ()
    assert store.schema().nodes == BULK_ROWS + 2


# -------------------------------------------------------------------------------------------------

NASTY = [
    "it's \"quoted\" `back` {braces} [brackets] \\ \\n \\u0041 %s :name ?1 $x", "null\0byte", "e\u0301 é 👩‍👩‍👧 \u202e",
    "SELECT", "NULL", "null",
    "-- comment", "/* */", "'; DROP TABLE nodes; --", "a.b", '$."x"', "\n\t line", "x" * 1_000_000,
]  # fmt: skip
VALUES = [
    2**63,
    -(2**200),
    1,
    1.0,
    True,
    None,
    1e308,
    0.1,
    -0.0,
    "",
    [],
    {},
    [[{"": [None]}]],
    {"a": {"b": [1, {"c": None}]}},
]


# ------------------------------------------------------------------------------------------------------------


def test_a_read_returns_a_dict_for_each_row(store):
    assert store.read(
        "SELECT id, properties, 1.5 AS x, NULL AS y FROM nodes WHERE id LIKE '%curie' ORDER BY number"
    ) == (
        {"id": "Marie Curie", "properties": {"born": 1867, "text": "Discovered radium"}, "x": 1.5, "y": None},
        {"id": "Pierre Curie", "properties": {"tags": ["radium", {"place": "Paris"}]}, "x": 1.5, "y": None},
    )
    assert store.read(
        "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 3) SELECT count(*) AS n FROM n"
    ) == ({"n": 3},)
    found = store.read("SELECT name FROM words WHERE words MATCH 'stockholm OR paris'")
    assert found == ({"name": "Pierre Curie"},)
    query = "SELECT value FROM nodes, json_each(labels) WHERE nodes.id = 'Marie Curie'"
    assert store.read(query) == ({"value": "Person"}, {"value": "Physicist"})
    found = store.read("SELECT object FROM facts WHERE relation = 'won'")
    assert found == ({"object": "Nobel Prize in Physics"},)
    found = store.read("SELECT 'not json' AS labels, '{x' AS properties")
    assert found == ({"labels": "not json", "properties": "{x"},)


@every(
    "statement",
    [
        "DELETE FROM nodes",
        "WITH gone AS (DELETE FROM nodes RETURNING *) SELECT * FROM gone",
        "WITH a AS (SELECT 1) DELETE FROM nodes",
        "with a(id) as (values('x')) insert into nodes(id) select id from a",
        "PRAGMA writable_schema = ON",
        "PRAGMA query_only = OFF",
        "SELECT 1; DELETE FROM nodes",
        "SELECT 1;\u00a0DELETE FROM nodes",
        "SELECT 1\uff1b DELETE FROM nodes",
        "/* SELECT */ DELETE FROM nodes",
        "SELECT 1 /* /* */ ; DELETE FROM nodes -- */",
        "-- SELECT\nDELETE FROM nodes",
        "SELECT 1 AS [' ], 2; DELETE FROM nodes; --']",
        "ſelect 1",
        "\ufeffDELETE FROM nodes",
        "EXPLAIN DELETE FROM nodes",
        "BEGIN",
        "REINDEX",
        "ATTACH '{folder}/stolen' AS stolen",
        "VACUUM INTO '{folder}/stolen'",
        "CREATE TABLE stolen AS SELECT * FROM nodes",
        "SELECT load_extension('{folder}/stolen')",
        "SELECT writefile('{folder}/stolen', 'x')",
        "SELECT readfile('/etc/passwd')",
        "SELECT fts3_tokenizer('simple', x'41414141')",
        "SELECT hex(randomblob(1000000000))",
        "SELECT zeroblob(1000000000)",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM pragma_writable_schema",
        "SELECT * FROM dbstat",
        "SELECT * FROM sqlite_stmt",
        "SELECT * FROM fts3tokenize",
        "SELECT * FROM journal",
    ],
)
def test_a_read_cannot_write_nor_look_elsewhere(store, statement, tmp_path):
    before, statement = store.graph(), statement.replace("{folder}", str(tmp_path))
    with pytest.raises(QueryFailed):
        store.read(statement)
    assert store.graph() == before
    assert not (tmp_path / "stolen").exists()


ATTACKS = [
    "DELETE FROM nodes",
    "PRAGMA query_only = OFF",
    "ATTACH ':memory:' AS x",
    "CREATE TEMP TABLE x (y)",
    "SELECT * FROM pragma_database_list",
    "BEGIN",
]


@every("statement", ATTACKS)
def test_the_engine_refuses_what_the_statement_check_would_let_through(store, statement):
    with pytest.raises(sqlite3.Error):
        store._reader.execute(statement)


def test_the_reading_connection_is_read_only_even_without_its_guard(store):
    store._reader.set_authorizer(None)
    store._reader.execute("PRAGMA query_only = OFF")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        store._reader.execute("DELETE FROM nodes")


@pytest.mark.parametrize(
    "statement",
    [
        "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS n FROM n",
        "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 9999) SELECT count(*) AS n FROM n a, n b, n c",
        "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n ORDER BY i",
    ],
)
def test_a_runaway_statement_is_stopped_and_the_store_goes_on(quick, statement):
    with pytest.raises(QueryFailed, match=r"took longer than 0\.2 s"):
        quick.read(statement)
    quick.seconds = AMPLE
    assert quick.read("SELECT count(*) AS n FROM nodes") == ({"n": 3},)


LONG = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 250000)"


@every(
    ("statement", "reason"),
    [
        (f"{LONG} SELECT '{'x' * 100}' AS x FROM r", "add a LIMIT"),
        (f"{LONG} SELECT group_concat('{'x' * 100}') AS x FROM r", "too big"),
        (
            "SELECT source.id, target.id FROM nodes source, nodes target",
            "two columns|2 columns are called 'id'",
        ),
        ("SELECT x'00' AS x", "holds bytes"),
        ("SELECT 9e999 AS x", "holds inf"),
        (f"SELECT 1 WHERE 'a' LIKE '{'%' * 1000}'", "pattern too complex"),
        ("SELECT colour FROM nodes", "no such column: colour"),
    ],
)
def test_an_answer_that_is_too_large_or_no_json_is_refused(store, statement, reason):
    store.seconds = AMPLE  # a busy machine takes longer than a statement may
    with pytest.raises(QueryFailed, match=reason):
        store.read(statement)


# ---------------------------------------------------------------------------------------------------


def test_neighbours_come_both_ways_oldest_first_and_a_loop_once(store):
    assert store.neighbours("Marie Curie") == (WON, WED, SELF)
    assert store.neighbours("nobody") == store.neighbours("\ud800") == ()


@every(
    "question",
    [
        "Who discovered radium?", '"radium" AND (discovered', "radium NEAR(x, 1)", "radium*", "^radium", "NOT radium", "text:radium",
        "radium\0", "- radium", "radium' OR '1'='1", "{radium} : radium +", "the radium-discoverers", "RÁDIUM", "discovers",
        "radium \ud800", "radium " * 3_000,
    ],
)  # fmt: skip
def test_a_raw_question_finds_what_shares_its_words(store, question):
    assert CURIE in store.search(question)


def test_search_keeps_up_with_every_kind_of_change(store):
    polonium = Node("Marie Curie", CURIE.labels, {"text": "polonium"})
    store.apply(Diff(changed_nodes=((CURIE, polonium),)))
    assert [node.id for node in store.search("polonium")] == ["Marie Curie"]
    assert [node.id for node in store.search("radium")] == ["Pierre Curie"]
    store.apply(Diff(removed_edges=(WON, WED, SELF), removed_nodes=(polonium,)))
    store.apply(Diff(added_nodes=(Node("Maria Skłodowska"),)))
    assert [node.id for node in store.search("Skłodowska")] == ["Maria Skłodowska"]
    assert [node.id for node in store.search("Marie")] == []
    assert store.search("polonium") == ()
    store.apply(store.graph().diff(PropertyGraph.of()))
    assert store.search("Curie Skłodowska radium") == ()
    store._connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")


# ----------------------------------------------------------------------------------------


def test_a_file_of_any_name_is_that_file_and_in_its_order_when_it_is_opened_again(tmp_path):
    place = tmp_path / "deep" / "what? is#this %20.db"
    place.parent.mkdir()
    with Sqlite(place) as store:
        store.apply(ALL)
        store.apply(Diff(removed_nodes=(PRIZE,), removed_edges=(WON,), added_nodes=(Node("Aa"),)))
    with Sqlite(str(place)) as store:
        assert store.graph().ids == ("Marie Curie", "Pierre Curie", "Aa")  # oldest first
    names = [file.name for file in place.parent.iterdir() if not file.name.endswith(("-wal", "-shm"))]
    assert names == [place.name]


def test_a_file_that_something_else_made_is_not_touched(tmp_path):
    text, database = tmp_path / "notes.txt", tmp_path / "other.db"
    newer, older = tmp_path / "newer.db", tmp_path / "older.db"
    text.write_text("dear diary, " * 100)
    other = sqlite3.connect(database)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("CREATE TABLE nodes (id TEXT, labels TEXT, properties TEXT)")
    other.commit()
    other.close()
    for path, version in ((newer, 99), (older, 0)):
        Sqlite(path).close()
        changed = sqlite3.connect(path)
        changed.execute(f"PRAGMA user_version = {version}")
        changed.close()
    reasons = {text: "not an SQLite file", database: "something else made"}
    reasons |= {newer: "newer version", older: "older version"}
    for path, reason in reasons.items():
        before = path.read_bytes()
        with pytest.raises(BadInput, match=reason):
            Sqlite(path)
        assert path.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "newer.db",
        "notes.txt",
        "older.db",
        "other.db",
    ]


def test_a_place_that_cannot_be_a_file_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="give another path"):
        Sqlite(tmp_path)
    for place in (tmp_path / "file" / "below", tmp_path / "deep" / "below"):
        with pytest.raises(BadInput, match=r"there is no folder .*: make it first, or name another"):
            Sqlite(place)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("harm", ["truncated", "overwritten"])
def test_a_damaged_file_is_a_clear_error(tmp_path, harm):
    path = tmp_path / "harmed.db"
    with Sqlite(path) as store:
        nodes = tuple(Node(f"n{number}", (), {"text": "x" * 100}) for number in range(3_000))
        store.apply(Diff(added_nodes=nodes))
    data = path.read_bytes()
    overwritten = data[:4096] + b"\xff" * (len(data) - 4096)
    path.write_bytes(data[: len(data) // 2] if harm == "truncated" else overwritten)
    with pytest.raises(StoreUnavailable, match="damaged"), Sqlite(path) as store:
        store.graph()


def test_a_file_of_zero_bytes_becomes_a_graph_and_is_told_unless_its_log_has_changes(tmp_path):
    (tmp_path / "empty.db").touch()
    os.utime(tmp_path / "empty.db", (0, 0))
    with (
        pytest.warns(UserWarning, match="is empty: a new one is begun"),
        Sqlite(tmp_path / "empty.db") as store,
    ):
        assert store.schema() == Schema({}, {}, 0, 0)
    (tmp_path / "lost.db").touch()
    (tmp_path / "lost.db-wal").write_bytes(b"changes")
    with pytest.raises(StoreDamaged, match=r"lost\.db-wal beside it holds changes"):
        Sqlite(tmp_path / "lost.db")
    assert (tmp_path / "lost.db-wal").exists()


def test_a_file_that_another_is_creating_is_not_told_to_be_empty(tmp_path):
    Sqlite(tmp_path / "whole.db").close()
    path = tmp_path / "young.db"
    path.touch()
    with ThreadPoolExecutor() as pool, warnings.catch_warnings(action="error"):
        opened = pool.submit(Sqlite, path)
        path.write_bytes((tmp_path / "whole.db").read_bytes())
        with opened.result() as store:  # without a warning, which would be an error here
            assert store.schema() == Schema({}, {}, 0, 0)


def test_a_write_waits_for_another_process_that_is_writing(tmp_path):
    path = tmp_path / "shared.db"
    Sqlite(path).close()
    code = (
        "store = Sqlite(sys.argv[1])\nwith store._transaction() as writer:\n    print('holds', flush=True)\n"
        "    sys.stdin.readline()\n"
        "    writer.execute(\"INSERT INTO nodes (id) VALUES ('theirs')\")\nstore.close()"
    )
    with in_another_process(code, path) as other, Sqlite(path) as store:
        assert other.stdout.readline() == "holds\n"
        assert store.read("SELECT id FROM nodes") == ()  # a read waits for nobody
        with ThreadPoolExecutor() as pool:
            ours = pool.submit(store.apply, Diff(added_nodes=(Node("ours"),)))
            assert not wait([ours], timeout=0.2).done
            other.stdin.write("now\n")
            other.stdin.flush()
            ours.result()
        assert store.graph().ids == ("theirs", "ours")
    assert other.returncode == 0


ANOTHER = "with Sqlite(sys.argv[1]) as store:\n    print(*(node.id for node in store.graph().nodes))"


def names_seen_by_another_process(path):
    with in_another_process(ANOTHER, path) as process:
        return process.communicate(timeout=AMPLE)[0].split()


@pytest.mark.parametrize("second", ["closed", "kept open"])
def test_a_store_keeps_its_locks_when_the_file_is_opened_once_more(tmp_path, second):
    path, beside = tmp_path / "twice.db", list[Sqlite]()
    with Sqlite(path) as first:
        first.apply(Diff(added_nodes=(Node("Ada"),)))
        beside.append(Sqlite(path))
        if second == "closed":
            beside.pop().close()
        assert names_seen_by_another_process(path) == ["Ada"]
        first.apply(Diff(added_nodes=(Node("Bob"),)))
        assert names_seen_by_another_process(path) == ["Ada", "Bob"]
        for store in beside:
            assert store.graph().ids == ("Ada", "Bob")
            store.close()
    with Sqlite(path) as again:
        assert again.graph().ids == ("Ada", "Bob")


def test_what_was_acknowledged_after_a_second_opening_outlives_a_killed_process(tmp_path):
    path = tmp_path / "killed.db"
    code = (
        "import os, signal, subprocess\nfrom kgot_lab.types import Diff, Node\nstore = Sqlite(sys.argv[1])\n"
        "store.apply(Diff(added_nodes=(Node('Ada'),)))\nSqlite(sys.argv[1]).close()\n"
        "other = 'import sys; from kgot_lab.stores.sqlite.store import Sqlite; Sqlite(sys.argv[1]).close()'\n"
        "subprocess.run([sys.executable, '-c', other, sys.argv[1]], check=True)\n"
        "store.apply(Diff(added_nodes=(Node('Bob'),)))\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    with in_another_process(code, path) as process:
        process.communicate(timeout=AMPLE)
    with Sqlite(path) as store:
        assert store.graph().ids == ("Ada", "Bob")


@pytest.mark.parametrize("harm", ["its locks are lost", "it is deleted"])
def test_a_write_is_not_acknowledged_when_another_took_the_file_or_its_log_away(tmp_path, harm):
    path = tmp_path / "moved.db"
    with Sqlite(path) as store:
        store.apply(Diff(added_nodes=(Node("Ada"),)))
        if harm == "it is deleted":
            path.unlink()
        else:
            # which lets go of all locks that this process has on the file
            shutil.copyfile(path, tmp_path / "copy.db")
            assert names_seen_by_another_process(path) == ["Ada"]  # and takes the log along when it closes
        with pytest.raises(StoreUnavailable, match="deleted or replaced while it was open here"):
            store.apply(Diff(added_nodes=(Node("Bob"),)))


def test_an_index_that_another_program_used_the_tables_of_is_still_right(tmp_path):
    path: Path = tmp_path / "edited.db"
    with Sqlite(path) as store:
        store.apply(ALL)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("UPDATE nodes SET id = 'Irène' WHERE id = 'Pierre Curie'")
    other.execute("PRAGMA foreign_keys = ON")
    other.execute("DELETE FROM nodes WHERE id = 'Marie Curie'")
    other.execute("VACUUM")
    other.close()
    with Sqlite(path) as store:
        assert [node.id for node in store.search("Curie Irène radium")] == ["Irène"]
        assert store.search("Curie") == ()


# -----------------------------------------------------------------------------------------------------------


def test_many_new_nodes_in_the_place_of_the_newest_are_all_found(tmp_path):
    with Sqlite(tmp_path / "graph.db") as store:
        store.apply(Diff(added_nodes=(Node("old"),)))
        fresh = tuple(Node(f"name{number}") for number in range(BULK_ROWS))
        store.apply(Diff(removed_nodes=(Node("old"),), added_nodes=fresh))
        assert store.search("name0") == (Node("name0"),)
        store.verify()


def test_what_is_whole_of_a_damaged_file_can_be_kept_and_the_damaged_one_stays_beside(tmp_path):
    path = tmp_path / "graph.db"
    with Sqlite(path) as store:
        store.apply(ALL)
        nodes = tuple(Node(f"n{number}", (), {"text": "x" * 200}) for number in range(200))
        store.apply(Diff(added_nodes=nodes))
    data = path.read_bytes()
    path.write_bytes(damaged := data.replace(b"1867", b"1868"))
    with pytest.raises(StoreDamaged):
        Sqlite(path)
    assert salvage_sqlite(path).damaged_copy.read_bytes() == damaged
    with Sqlite(path) as store:
        assert len(store.graph()) == 202 and "Marie Curie" not in store.graph() and not store.graph().edges


def test_damage_to_the_log_that_a_killed_process_left_is_said(tmp_path):
    path = tmp_path / "graph.db"
    with Sqlite(path):
        pass
    code = (
        "for n in range(6): Sqlite.apply(store, Diff(added_nodes=(Node(f'n{n}'),)))\nimport os; os._exit(9)"
    )
    begin = "from kgot_lab.types import Diff, Node\nstore = Sqlite(sys.argv[1])\n"
    with in_another_process(f"{begin}{code}", path) as process:
        assert process.wait(AMPLE) == 9
    left = {file.name: file.read_bytes() for file in tmp_path.iterdir() if not file.name.endswith("-shm")}
    wal = left["graph.db-wal"]
    chance, said = random.Random(0), Counter[bool]()
    for place in (None, *(chance.randrange(32 + 24, len(wal)) for _ in range(40))):
        for file in tmp_path.iterdir():
            file.unlink()
        for name, data in left.items():
            (tmp_path / name).write_bytes(data)
        if place is not None:
            (tmp_path / "graph.db-wal").write_bytes(wal[:place] + bytes([wal[place] ^ 1]) + wal[place + 1 :])
        before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        health = check_file(path)
        if place is not None:
            assert {name: (tmp_path / name).read_bytes() for name in before} == before, (
                "nothing is changed, and the log stays"
            )
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with Sqlite(path) as store:
                held = len(store.graph())
        assert bool(warned) == (held < 6) == (place is not None), (place, held)
        assert not warned or re.search(
            rf"the last {6 - held} changes in it are lost.*graph.db-wal.damaged-1", str(warned[0].message)
        )
        assert health.whole != bool(warned)
        assert health.whole or f"the last {6 - held} changes" in health.said, health
        said[bool(warned)] += 1
    assert said[True] == 40


def test_a_file_with_two_names_is_refused_since_each_would_have_a_log_of_its_own(tmp_path):
    path, other = tmp_path / "graph.db", tmp_path / "other.db"
    with Sqlite(path) as store:
        store.apply(Diff(added_nodes=(Node("a"),)))
        other.hardlink_to(path)
        with pytest.raises(StoreUnavailable, match="hard link"):
            Sqlite(other)
        with pytest.raises(StoreUnavailable, match="hard link"):
            store.apply(Diff(added_nodes=(Node("b"),)))
        other.unlink()
        store.apply(Diff(added_nodes=(Node("c"),)))
    with Sqlite(path) as store:
        assert {"a", "c"} <= set(store.graph().ids)


def test_a_statement_that_writes_is_refused_whatever_it_is(store):
    before = store.graph()
    for statement in (
        "INSERT INTO nodes (id) VALUES ('a')",
        "DELETE FROM nodes",
        "DROP TABLE nodes",
        "SELECT 1",
    ):
        with pytest.raises(QueryFailed, match=r"changed by diffs \(apply\)"):
            store.write(statement)
    assert store.graph() == before


# --- files of an older version ---

_FIRST_VERSION = """
CREATE TABLE nodes (
        id TEXT NOT NULL UNIQUE CHECK (id <> ''),
        labels TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(labels) AND json_type(labels) = 'array'),
        properties TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(properties) AND json_type(properties) = 'object'),
        number INTEGER PRIMARY KEY
    ) STRICT;
CREATE TABLE edges (
        source TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE ON UPDATE CASCADE,
        type TEXT NOT NULL CHECK (type <> ''),
        target TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE ON UPDATE CASCADE,
        key TEXT NOT NULL DEFAULT '',
        properties TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(properties) AND json_type(properties) = 'object'),
        number INTEGER PRIMARY KEY,
        UNIQUE (source, type, target, key)
    ) STRICT;
CREATE INDEX edges_by_target ON edges (target, source, type, key);
CREATE INDEX edges_by_type ON edges (type);
CREATE INDEX nodes_by_labels ON nodes (labels);
CREATE VIEW facts (subject, relation, object, key, properties) AS SELECT source, type, target, key, properties FROM edges;
CREATE VIRTUAL TABLE words USING fts5 (name, texts, tokenize = 'porter unicode61');
CREATE TABLE waiting (yes);
CREATE TRIGGER words_come AFTER INSERT ON nodes WHEN NOT EXISTS (SELECT yes FROM waiting) BEGIN INSERT INTO words (rowid, name, texts) VALUES (NEW.number, NEW.id, (SELECT coalesce(group_concat(atom, ' '), '') FROM json_tree(NEW.properties) WHERE type IN ('text', 'integer', 'real'))); END;
CREATE TRIGGER words_go AFTER DELETE ON nodes BEGIN DELETE FROM words WHERE rowid = OLD.number; END;
CREATE TRIGGER words_change AFTER UPDATE OF id, properties, number ON nodes BEGIN
        DELETE FROM words WHERE rowid = OLD.number; INSERT INTO words (rowid, name, texts) VALUES (NEW.number, NEW.id, (SELECT coalesce(group_concat(atom, ' '), '') FROM json_tree(NEW.properties) WHERE type IN ('text', 'integer', 'real'))); END;
INSERT INTO nodes (id, properties) VALUES ('Ada', '{"born":1815}'), ('London', '{}');
INSERT INTO edges (source, type, target) VALUES ('Ada', 'born in', 'London');
PRAGMA application_id = 1801940066;
PRAGMA user_version = 1;
"""  # noqa: E501


def _of_the_first_version(path):
    with closing(sqlite3.connect(path)) as other:
        other.executescript(_FIRST_VERSION)
    return path


def test_a_graph_of_the_version_before_checksums_is_read_and_gets_them(tmp_path):
    path = _of_the_first_version(tmp_path / "graph.db")
    assert "2 nodes, 1 edge, it can be read, and holds no checksum" in check_file(path).said
    assert len(read_store_file(path).graph) == 2
    with Sqlite(path) as store:
        assert len(store.graph()) == 2 and store.search("London")
        store.apply(Diff(added_nodes=(Node("Babbage"),)))
    health = check_file(path)
    assert health.whole and "3 nodes, 1 edge, every row is as it was written" in health.said
    path.write_bytes(path.read_bytes().replace(b'"born":1815', b'"born":1816'))
    with pytest.raises(StoreDamaged, match="not as it was written"):
        Sqlite(path)


def test_a_damaged_graph_of_an_older_version_is_not_changed(tmp_path):
    path = _of_the_first_version(tmp_path / "graph.db")
    data = path.read_bytes()
    path.write_bytes(data[: 4096 * 3] + bytes(4096) + data[4096 * 4 :])
    before = path.read_bytes()
    with pytest.raises(StoreDamaged):
        Sqlite(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, 3])
def test_a_graph_of_a_version_from_which_no_steps_lead_here_is_refused(tmp_path, version):
    path = _of_the_first_version(tmp_path / "graph.db")
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(BadInput, match="version of this package"):
        Sqlite(path)


def test_a_file_that_another_creates_meanwhile_has_not_lost_its_contents(tmp_path, monkeypatch):
    path, refuse_lost_file = tmp_path / "graph.db", sqlite_file._refuse_lost_file

    def refuse_after_another_came(path):
        monkeypatch.setattr(sqlite_file, "_refuse_lost_file", refuse_lost_file)
        others.append(Sqlite(path))
        others[0].apply(Diff(added_nodes=(Node("Ada"),)))  # is in the log
        refuse_lost_file(path)

    others = list[Sqlite]()
    monkeypatch.setattr(sqlite_file, "_refuse_lost_file", refuse_after_another_came)
    with Sqlite(path) as store:
        assert len(store.graph()) == 1
    others[0].close()
