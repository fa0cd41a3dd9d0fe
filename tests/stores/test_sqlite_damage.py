"""Damage to an SQLite graph: a changed row is neither read nor sealed again, a lost log is told, and what is
whole can be kept.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from support.waiting import AMPLE, until

from kgot_lab.diagnostics.file_check import check_file, salvage_file
from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable
from kgot_lab.io.sqlite import connection
from kgot_lab.stores.sqlite.salvage import salvage_sqlite
from kgot_lab.stores.sqlite.store import Sqlite
from kgot_lab.types import Diff, Edge, Node

CURIE = Node("Marie Curie", ("Person", "Physicist"), {"born": 1867, "text": "Discovered radium"})
PRIZE = Node("Nobel Prize in Physics", ("Prize",))
WON = Edge("Marie Curie", "won", "Nobel Prize in Physics", {"year": 1903})
ALL = Diff(added_nodes=(CURIE, PRIZE), added_edges=(WON,))


def with_a_changed_row(path, monkeypatch):
    """A store on a file that is too large to be searched at opening, in which one node and one edge are not
    as they were written.
    """
    monkeypatch.setattr(connection, "MAX_CHECKED_BYTES", 0)
    with Sqlite(path) as store:
        store.apply(ALL)
    path.write_bytes(path.read_bytes().replace(b"1867", b"1868").replace(b"1903", b"1904"))
    return Sqlite(path)


def test_a_row_that_is_not_as_it_was_written_is_not_sealed_again_by_a_write(tmp_path, monkeypatch):
    path = tmp_path / "graph.db"
    with with_a_changed_row(path, monkeypatch) as store:
        with pytest.raises(StoreDamaged, match=r"is not as it was written.*kgot-lab doctor --salvage"):
            store.apply(Diff(removed_edges=(WON,)))
        store.apply(Diff(added_nodes=(Node("new"),)))
        with pytest.raises(StoreDamaged):
            store.verify()


def test_what_the_stores_own_ways_read_is_compared_with_its_checksum(tmp_path, monkeypatch):
    with with_a_changed_row(tmp_path / "graph.db", monkeypatch) as store:
        won = store.read("SELECT source, target FROM edges WHERE properties LIKE '%1904%'")[0]
        for look in (
            store.graph,
            lambda: store.search("Marie"),
            lambda: store.neighbours(won["source"]),
            lambda: store.apply(Diff(removed_nodes=(CURIE,))),
        ):
            with pytest.raises(StoreDamaged, match="is not as it was written"):
                look()


def test_a_row_that_another_program_changed_is_read_and_written_as_any(tmp_path):
    with Sqlite(path := tmp_path / "graph.db") as store:
        store.apply(ALL)
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE nodes SET properties = '{\"born\": 1900}'")
        assert {node.properties["born"] for node in store.graph().nodes} == {1900}
        ada = next(iter(store.graph().nodes))
        store.apply(Diff(changed_nodes=((ada, Node(ada.id, ada.labels)),)))
        store.verify()


@pytest.mark.parametrize(
    ("within", "act"),
    [
        ("zlib.crc32", lambda store: store.apply(Diff(added_nodes=(Node("other"),)))),
        ("kgot_lab.stores.sqlite.tables._is_allowed", lambda store: store.read("SELECT id FROM nodes")),
    ],
)
def test_an_interruption_within_a_function_of_the_database_is_no_refusal(tmp_path, monkeypatch, within, act):
    with Sqlite(tmp_path / "graph.db") as store:
        store.apply(ALL)
        whole = store.graph()
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(within, lambda *_: signal.raise_signal(signal.SIGINT))
            act(store)
        assert store.graph() == whole
        store.apply(Diff(added_nodes=(Node("new"),)))
        store.verify()


def test_an_interruption_while_a_file_is_searched_is_no_damage(tmp_path, monkeypatch):
    with Sqlite(tmp_path / "graph.db") as store:
        store.apply(ALL)
    monkeypatch.setattr("zlib.crc32", lambda *_: signal.raise_signal(signal.SIGINT))
    for look in (Sqlite, check_file):
        with pytest.raises(KeyboardInterrupt):
            look(tmp_path / "graph.db")


# --- what the doctor says of a file and its log ---

WRITES = (
    "from kgot_lab.types import Diff, Node\nstore = Sqlite(sys.argv[1])\n"
    "for n in range(20): Sqlite.apply(store, Diff(added_nodes=(Node(f'n{n}', (), {'text': 'some text ' * 9}),)))\n"
    "import os; os._exit(9)"
)


def command(code, path):
    """A command that runs code on the store class with a path."""
    return [
        sys.executable,
        "-c",
        f"import sys\nfrom kgot_lab.stores.sqlite.store import Sqlite\n{code}",
        str(path),
    ]


@pytest.fixture
def killed(tmp_path):
    """A graph with what a process left beside it that was killed after twenty writes."""
    assert subprocess.run(command(WRITES, tmp_path / "graph.db"), timeout=AMPLE).returncode == 9
    return tmp_path / "graph.db"


def beside(path, part):
    return path.with_name(path.name + part)


def contents(folder):
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}


def test_a_look_changes_nothing_at_a_file_that_a_killed_process_left(killed):
    before = contents(killed.parent)
    assert set(before) == {"graph.db", "graph.db-wal", "graph.db-shm"}
    health = check_file(killed)
    assert health.whole and "20 nodes, 0 edges, every row is as it was written" in health.said
    assert contents(killed.parent) == before


def test_a_look_leaves_nothing_beside_a_file_that_was_closed(tmp_path):
    with Sqlite(tmp_path / "graph.db") as store:
        store.apply(ALL)
    before = contents(tmp_path)
    health = check_file(tmp_path / "graph.db")
    assert health.whole and "2 nodes, 1 edge, every row" in health.said
    assert "was taken away, FILE-wal, would not show" in health.said
    assert contents(tmp_path) == before and list(before) == ["graph.db"]


@pytest.mark.parametrize("left", [-1, 0.5, 40, 0, None])
def test_a_log_that_lost_its_end_is_told_by_its_index(killed, left):
    log = beside(killed, "-wal")
    data = log.read_bytes()
    if left is None:
        log.unlink()
    else:
        log.write_bytes(data[: int(len(data) * left)] if isinstance(left, float) else data[:left])
    before = contents(killed.parent)
    health = check_file(killed)
    assert not health.whole and "lost its end: of" in health.said, health
    assert contents(killed.parent) == before


@pytest.mark.parametrize("cut", [1, 100, 4096, 4096 + 24 + 1])
def test_a_log_without_its_index_that_ends_within_a_change_is_told(killed, cut):
    beside(killed, "-shm").unlink()
    log = beside(killed, "-wal")
    log.write_bytes(log.read_bytes()[:-cut])
    health = check_file(killed)
    assert not health.whole and "cut off: a write that did not end, or damage to the last one" in health.said


def test_a_write_that_did_not_end_is_no_loss_where_the_index_says_so(killed):
    log = beside(killed, "-wal")
    data = log.read_bytes()
    log.write_bytes(data + data[32 : 32 + 24 + 1000])  # a page of the same log, cut short
    assert check_file(killed).whole
    with Sqlite(killed) as store:
        assert len(store.graph()) == 20


def test_a_file_that_is_open_elsewhere_is_looked_at_and_not_salvaged(tmp_path):
    path = tmp_path / "graph.db"
    code = "with Sqlite(sys.argv[1]) as store:\n    print(store, flush=True)\n    sys.stdin.read()"
    Sqlite(path).close()
    with subprocess.Popen(
        command(code, path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline()
        assert check_file(path).whole
        with pytest.raises(StoreUnavailable, match="open in another process"):
            salvage_sqlite(path)
        other.stdin.close()


@pytest.mark.extended
def test_a_file_that_is_being_written_to_is_whole(tmp_path):
    path = tmp_path / "graph.db"
    code = WRITES.replace("range(20)", "range(10**6)")
    code = code.replace("Sqlite.apply", "print(n, flush=True) or Sqlite.apply")
    with subprocess.Popen(command(code, path), stdout=subprocess.DEVNULL) as other:
        until(lambda: beside(path, "-wal").exists(), "the writer has begun")
        seen = []
        for _ in range(12):
            try:
                seen.append(check_file(path))
            except StoreUnavailable as error:
                assert "is being written to now" in str(error)
        other.kill()
    assert all(health.whole for health in seen), [health for health in seen if not health.whole]
    assert check_file(path).whole


def test_a_file_that_is_open_here_is_not_read_beside_its_store(tmp_path):
    with Sqlite(tmp_path / "graph.db") as store:
        for look in (check_file, salvage_sqlite):
            with pytest.raises(StoreUnavailable, match=r"verify\(\)"):
                look(tmp_path / "graph.db")
        store.apply(ALL)
    assert check_file(tmp_path / "graph.db").whole


def test_a_whole_file_with_two_names_is_told_whole(tmp_path):
    with Sqlite(tmp_path / "graph.db") as store:
        store.apply(ALL)
    (tmp_path / "other.db").hardlink_to(tmp_path / "graph.db")
    health = check_file(tmp_path / "other.db")
    assert health.whole and "other names (hard links), and stores open none such" in health.said


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write to any folder")
def test_a_whole_file_in_a_folder_that_nobody_may_write_to_is_told_whole(killed):
    killed.parent.chmod(0o555)
    try:
        assert check_file(killed).whole
    finally:
        killed.parent.chmod(0o755)


# --- salvage ---


@pytest.mark.parametrize("whose", ["another program", "a newer version"])
def test_a_file_that_is_not_ours_is_no_broken_one_and_is_not_salvaged(tmp_path, whose):
    path = tmp_path / "graph.db"
    if whose == "a newer version":
        with Sqlite(path) as store:
            store.apply(ALL)
    with closing(sqlite3.connect(path)) as other, other:
        if whose == "another program":
            other.execute("CREATE TABLE nodes (id, labels, properties, number)")
            other.execute("CREATE TABLE edges (source, type, target, key, properties, number)")
            other.execute("INSERT INTO nodes VALUES ('Ada', '[]', '{}', 1)")
        else:
            other.execute("PRAGMA user_version = 9")
    before = contents(tmp_path)
    for look in (check_file, salvage_file, salvage_sqlite):
        with pytest.raises(BadInput, match=r"of another program|something else made|newer version"):
            look(path)
    assert contents(tmp_path) == before


def test_a_salvage_tells_how_much_it_kept_and_a_refused_one_leaves_nothing(killed):
    beside(killed, "-shm").unlink()
    with Sqlite(killed) as store:
        store.apply(Diff(added_edges=(Edge("n1", "knows", "n2"), Edge("n3", "knows", "n4"))))
    with closing(sqlite3.connect(killed)) as other, other:
        other.execute("UPDATE sums SET sum = sum + 1 WHERE kind = 'nodes' AND number = 4")
    assert not check_file(killed).whole
    salvaged = salvage_file(killed)
    assert salvaged.summary == "kept 19 of 20 nodes and 1 of 2 edges"
    assert check_file(killed).whole
    killed.write_bytes(killed.read_bytes()[:4096] + bytes(range(256)) * 200)
    before = contents(killed.parent)
    for _ in range(3):
        with pytest.raises(StoreDamaged, match="not one whole row"):
            salvage_file(killed)
    assert contents(killed.parent) == before


def test_rows_of_a_file_that_was_cut_between_two_pages_are_kept(tmp_path):
    path = tmp_path / "graph.db"
    nodes = tuple(Node(f"n{number}", (), {"text": f"some text {number} " * 20}) for number in range(300))
    with Sqlite(path) as store:
        store.apply(Diff(added_nodes=nodes))
    path.write_bytes(path.read_bytes()[: -8 * 4096])
    assert not check_file(path).whole
    told = salvage_file(path).summary
    with Sqlite(path) as store:
        kept = len(store.graph())
    assert kept > 150 and told.startswith(f"kept {kept} of "), (kept, told)
