"""What the doctor says of a file: whole or broken, and what to do."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing

import numpy as np
import pytest
from support.saved_run import save_run

from kgot_lab.benchmark.questions.question_result import QuestionResult, append_result
from kgot_lab.diagnostics.file_check import back_up_file, check_file, salvage_file
from kgot_lab.embedding.vectors import CACHE_NAME, CachedEmbedder
from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable
from kgot_lab.experts.repository import open_experts
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.query.graph_loading import read_store_file
from kgot_lab.loop.events import Answered
from kgot_lab.loop.state import Entry, Ledger
from kgot_lab.memory.claims.claim import Claim
from kgot_lab.memory.claims.claims import open_claims
from kgot_lab.memory.sqlite import TRIPLE_TABLES, SQLiteTripleStore
from kgot_lab.stores import open_store
from kgot_lab.stores.files import write_graph
from kgot_lab.types import Diff, Edge, Node, Triple

NODES = tuple(Node(f"n{number}", ("Person",), {"text": f"some text of {number}"}) for number in range(20))
EDGES = tuple(Edge(f"n{number}", "knows", f"n{number * 7 % 20}") for number in range(20))


class Sines:
    """An embedder that needs no model."""

    name, digest, dimension = "sines", "1", 8

    def embed(self, texts):
        rows = [np.sin(np.arange(1, 9) * (1 + len(text))) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32)


@pytest.fixture
def files(tmp_path):
    """A file of each kind, by what the doctor calls it."""
    with open_store(str(tmp_path / "graph.db")) as store:
        for node in NODES:
            store.apply(Diff(added_nodes=(node,)))
        store.apply(Diff(added_edges=EDGES))
    CachedEmbedder(Sines(), tmp_path).embed([text * "x" for text in range(1, 9)])
    save_run([Answered(text="London", forced=False)], tmp_path / "run.jsonl")
    Ledger((Entry("r", 1, "INSERT", "m", "?", "!", 1, 1, 0.1, 0.0),)).save(tmp_path / "ledger.jsonl")
    write_graph(PropertyGraph.of(NODES, EDGES), tmp_path / "graph.graphml")
    with open_claims(tmp_path / "memory.db") as claims:
        claims.learn(Claim(Triple(f"n{number}", "is", "some text"), "book") for number in range(100))
    with closing(sqlite3.connect(tmp_path / "triples.db")) as triples, triples:
        for statement in TRIPLE_TABLES:
            triples.execute(statement)
        values = [(f"n{number}",) for number in range(100)]
        triples.executemany(
            "INSERT INTO triples (subject, relation, object) VALUES (?, 'is', 'some text')", values
        )
    open_experts(tmp_path / "experts.db").close()
    return {
        "a graph in SQLite": tmp_path / "graph.db", "a cache": tmp_path / CACHE_NAME,
        "a trace": tmp_path / "run.jsonl", "a ledger": tmp_path / "ledger.jsonl", "a graph file": tmp_path / "graph.graphml",
        "a memory of claims": tmp_path / "memory.db", "a store of triples": tmp_path / "triples.db", "experts": tmp_path / "experts.db",
    }  # fmt: skip


def test_files_that_are_whole_are_said_to_be_and_are_not_changed(files):
    for kind, path in files.items():
        before = path.read_bytes()
        health = check_file(path)
        assert (health.kind, health.whole) == (kind, True), health
        assert path.read_bytes() == before


@pytest.mark.parametrize(
    "kind",
    ["a graph in SQLite", "a cache", "a trace", "a memory of claims"],
)
def test_a_changed_letter_is_found_in_every_file_that_has_checks(files, kind):
    path = files[kind]
    data = path.read_bytes()
    place = (
        data.find(b"London" if kind == "a trace" else b"some text") if kind != "a cache" else len(data) - 100
    )
    path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    health = check_file(path)
    assert (health.kind, health.whole) == (kind, False) and len(health.said) > 30, health


def test_a_damaged_store_is_salvaged(files):
    path = files["a graph in SQLite"]
    data = path.read_bytes().replace(b"some text of 9", b"some text of 8")
    path.write_bytes(data)
    assert "kgot-lab doctor --salvage" in check_file(path).said
    assert salvage_file(path).damaged_copy.read_bytes() == data
    assert check_file(path).whole


NOT_OURS = {
    "node_link.json": '{"directed": true, "multigraph": false, "nodes": [{"id": "Ada"}], "links": []}',
    "indented.json": '{\n "directed": true,\n "nodes": [],\n "links": []\n}',
    "plan.json": '{"plan": 1, "set": "gaia", "questions": 3}',
    "results.json": '{"by level": {"all": {"questions": 3}}}',
    "totals.json": '{"run": {"seconds": 3}, "tools": {}}',
    "untraced.json": '{"seconds": 1.5}',
    "tool_times.jsonl": '{"tool": "wikipedia", "seconds": 0.2, "ok": true}\n',
    "list.json": "[1, 2]",
    "other.jsonl": '{"run": "a", "loss": 0.1}\n{"run": "a", "loss": 0.05}\n',
    "trace.json": '{"trace": "of another program"}',
}


@pytest.mark.parametrize("name", NOT_OURS)
def test_json_of_another_kind_is_no_broken_file(tmp_path, name):
    (tmp_path / name).write_text(NOT_OURS[name], encoding="utf-8")
    with pytest.raises(BadInput, match="is no file that the doctor knows"):
        check_file(tmp_path / name)


def test_results_of_questions_are_known(tmp_path):
    append_result(tmp_path / "results.jsonl", QuestionResult("q1", "London"))
    append_result(tmp_path / "results.jsonl", QuestionResult("q2", "Paris"))
    health = check_file(tmp_path / "results.jsonl")
    assert (health.kind, health.whole) == ("results of questions", True)
    assert "of 2 questions; it can be read" in health.said


def test_a_trace_without_its_first_line_is_told_so(files):
    path = files["a trace"]
    path.write_bytes(path.read_bytes().partition(b"\n")[2])
    health = check_file(path)
    assert (health.kind, health.whole) == ("a trace", False)
    assert "its first line, which says of which run it is," in health.said


@pytest.mark.parametrize("cut", [30, 60])
def test_a_graph_in_lines_that_was_cut_short_is_broken(tmp_path, cut):
    write_graph(PropertyGraph.of(NODES, EDGES), tmp_path / "graph.jsonl")
    assert check_file(tmp_path / "graph.jsonl").whole
    (tmp_path / "graph.jsonl").write_bytes((tmp_path / "graph.jsonl").read_bytes()[:cut])
    health = check_file(tmp_path / "graph.jsonl")
    assert (health.kind, health.whole) == ("a graph file", False)


def test_a_memory_that_was_cut_short_is_a_broken_memory_and_nothing_offers_to_salvage_it(files):
    path = files["a memory of claims"]
    path.write_bytes(path.read_bytes()[:20_000])
    health = check_file(path)
    assert (health.kind, health.whole) == ("a memory of claims", False) and "restore a copy" in health.said, (
        health
    )
    with pytest.raises(BadInput, match="only a graph in SQLite can be salvaged"):
        salvage_file(path)


def test_a_file_that_is_not_ours_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("notes")
    for path in (tmp_path / "notes.txt", tmp_path / "absent.log", tmp_path):
        with pytest.raises(BadInput):
            check_file(path)
    (tmp_path / "graph.graphml").write_text("<graphml>")
    with pytest.raises(BadInput, match="restore a copy"):
        salvage_file(tmp_path / "graph.graphml")


def test_a_backup_is_made_beside_a_writer_and_replaces_nothing(files, tmp_path):
    path, copy = files["a memory of claims"], tmp_path / "copy.db"
    with open_claims(path) as claims:
        claims.learn(Claim(Triple("Ada", "lives in", "London"), "letter"))
        command = [sys.executable, "-m", "kgot_lab", "doctor", str(path), "--backup"]
        done = subprocess.run([*command, str(copy)], capture_output=True, text=True)
        assert done.returncode == 0 and f"whole  {copy}: a memory of claims" in done.stdout, done
    with open_claims(copy) as claims:
        assert len(claims.from_source("letter")) == 1
    with pytest.raises(BadInput, match="replaces nothing"):
        back_up_file(path, copy)
    with pytest.raises(BadInput, match="copy it as any file"):
        back_up_file(files["a trace"], tmp_path / "other.db")
    with pytest.raises(StoreUnavailable, match="no backup"):
        back_up_file(path, tmp_path / "absent" / "copy.db")


def test_what_is_left_of_a_cut_graph_is_salvaged(tmp_path):
    path = tmp_path / "graph.db"
    nodes = tuple(Node(f"n{number}", (), {"text": f"some text of {number} " * 9}) for number in range(300))
    edges = tuple(Edge(f"n{number}", "knows", f"n{number * 7 % 300}") for number in range(300))
    with open_store(str(path)) as store:
        store.apply(Diff(added_nodes=nodes, added_edges=edges))
    data = path.read_bytes()
    for lost in range(500, 60_000, 5_000):  # also within a page
        path.write_bytes(data[:-lost])
        assert salvage_file(path).summary.startswith("kept ") and check_file(path).whole


def test_a_copy_beside_a_log_of_another_time_is_refused_unchanged(files, tmp_path):
    path = files["a memory of claims"]
    copy = path.read_bytes()
    with open_claims(path) as claims:
        claims.learn(
            Claim(Triple(f"m{number}", "is", "a longer text " * 40), "page") for number in range(300)
        )
        log, index = (
            path.with_name("memory.db-wal").read_bytes(),
            path.with_name("memory.db-shm").read_bytes(),
        )
    (tmp_path / "copy").mkdir()
    other = tmp_path / "copy" / "memory.db"
    other.write_bytes(copy[: len(copy) // 4096 // 2 * 4096])
    other.with_name("memory.db-wal").write_bytes(log[: len(log) // 2])
    other.with_name("memory.db-shm").write_bytes(index)
    before = other.read_bytes()
    with warnings.catch_warnings(), pytest.raises(StoreDamaged, match="take FILE-wal and FILE-shm away"):
        warnings.simplefilter("ignore")
        open_claims(other)
    assert other.read_bytes() == before


def test_a_log_without_its_file_is_not_deleted(files):
    path = files["a memory of claims"]
    with open_claims(path) as claims:
        claims.learn(Claim(Triple("Ada", "lives in", "London"), "letter"))
        log = path.with_name("memory.db-wal").read_bytes()
    path.unlink()
    path.with_name("memory.db-wal").write_bytes(log)
    with pytest.raises(StoreDamaged, match=r"it is missing, and memory\.db-wal beside it holds changes"):
        open_claims(path)
    assert path.with_name("memory.db-wal").read_bytes() == log and not path.exists()


def test_tables_of_other_programs_are_not_taken_for_ours(tmp_path):
    for name, table in {"one.db": "triples (a, b)", "two.db": "cache (key, value)"}.items():
        with closing(sqlite3.connect(tmp_path / name)) as other, other:
            other.execute(f"CREATE TABLE {table}")
        with pytest.raises(BadInput, match="of another program"):
            check_file(tmp_path / name)


# --- what another program changed ---


def _changed_by_another_program(path, *statements):
    with closing(sqlite3.connect(path)) as other, other:
        for statement in statements:
            other.execute(statement)


def test_the_doctor_says_that_an_edge_has_lost_a_node_and_a_salvage_drops_it(files):
    path = files["a graph in SQLite"]
    _changed_by_another_program(path, "DELETE FROM nodes WHERE id = 'n3'")
    health = check_file(path)
    assert not health.whole and "has lost a node" in health.said and "--salvage" in health.said
    with open_store(str(path)) as store, pytest.raises(StoreDamaged, match=r"has lost a node.*--salvage"):
        store.graph()
    with pytest.raises(StoreDamaged, match=r"has lost a node.*--salvage"):
        read_store_file(path)
    assert salvage_file(path).summary == "kept 19 of 19 nodes and 18 of 20 edges"
    with open_store(str(path)) as store:
        assert len(store.graph()) == 19


@pytest.mark.parametrize(
    "statement",
    ["UPDATE nodes SET properties = '{}' WHERE id = 'n3'", "INSERT INTO nodes (id) VALUES ('Ada')"],
)
def test_the_doctor_says_that_another_program_wrote_rows_of_a_graph(files, statement):
    path = files["a graph in SQLite"]
    _changed_by_another_program(path, statement)
    health = check_file(path)
    assert health.whole and "another program wrote 1 row, where a changed value would not show" in health.said
    open_store(str(path)).close()
    assert "every row is as it was written" in check_file(path).said


def test_the_doctor_counts_no_rows_of_indexes(tmp_path):
    with open_claims(tmp_path / "memory.db") as claims:
        claims.learn(Claim(Triple("Ada", "born in", "London"), "book"))
    with SQLiteTripleStore(tmp_path / "triples.db") as triples:
        triples.add([Triple("Ada", "born in", "London")])
    assert ": 4 rows," in str(check_file(tmp_path / "memory.db"))  # the fact, claim, change and its version
    assert ": a memory of claims: 4 rows," in str(check_file(tmp_path / "triples.db"))


def test_a_salvage_that_was_killed_leaves_nothing_that_stops_the_next_one(files):
    path = files["a graph in SQLite"]
    _changed_by_another_program(path, "DELETE FROM nodes WHERE id = 'n3'")
    for part in (".new", ".new-wal", ".new-shm", ".damaged.part"):
        path.with_name(path.name + part).write_bytes(path.read_bytes()[:5000])
    path.with_name(path.name + ".damaged-1").write_bytes(path.read_bytes())
    assert salvage_file(path).damaged_copy.name == "graph.db.damaged-1"
    assert check_file(path).whole
    assert sorted(each.name for each in path.parent.glob("graph.db?*")) == ["graph.db.damaged-1"]


@pytest.mark.parametrize("kind", ["a graph in SQLite", "a memory of claims", "a store of triples", "experts"])
@pytest.mark.parametrize("byte", [16, 19, 21, 22, 23])
def test_damage_in_the_head_of_a_file_is_not_taken_for_a_file_of_another_program(files, kind, byte):
    path = files[kind]
    data = bytearray(path.read_bytes())
    data[byte] ^= 4
    path.write_bytes(data)
    openers = {"a graph in SQLite": open_store, "a memory of claims": open_claims, "experts": open_experts}
    with pytest.raises(StoreDamaged, match="is damaged"):
        openers.get(kind, SQLiteTripleStore)(str(path))
    assert not check_file(path).whole


def test_a_damaged_head_does_not_matter_where_the_log_has_the_whole_one(tmp_path):
    path = tmp_path / "memory.db"
    with open_claims(path) as claims, closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")  # keeps the log
        reader.execute("SELECT * FROM facts").fetchone()
        claims.learn(Claim(Triple("Ada", "born in", "London"), "book"))
        for name in ("memory.db", "memory.db-wal"):
            data = bytearray((tmp_path / name).read_bytes())
            (tmp_path / f"copy of {name}").write_bytes(data)
    copy = tmp_path / "copy of memory.db"
    data = bytearray(copy.read_bytes())
    data[21] ^= 4
    copy.write_bytes(data)
    with open_claims(copy) as claims:
        assert len(claims.triples()) == 1
