"""The file of a store as a graph to begin with: it is read as it is, and nothing is locked, repaired or made
beside it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.foreign_files import EDGES, of_profile

from kgot_lab.errors import BadInput, StoreDamaged
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.query.graph_loading import is_store_file, read_store_file
from kgot_lab.stores import open_store
from kgot_lab.stores.files import write_graph
from kgot_lab.types import Edge, Node, Triple

GRAPH = PropertyGraph.of(
    [Node("Ada", ("Person",), {"born": 1815}), Node("London")], [Edge("Ada", "born in", "London", {}, "k")]
)
MORE = PropertyGraph.of([*GRAPH.nodes, Node("Paris")], GRAPH.edges)
ENDINGS = [".log", ".sqlite", ".db"]


def held(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def stored(path: Path, *graphs: PropertyGraph) -> Path:
    with open_store(path) as store:
        for graph in graphs:
            store.apply(store.graph().diff(graph))
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_graph_of_a_store_is_read_and_the_folder_stays_as_it_is(tmp_path, ending):
    path = stored(tmp_path / f"g{ending}", GRAPH, MORE)
    before = held(tmp_path)
    read = read_store_file(path)
    assert is_store_file(path) and not MORE.diff(read.graph) and not read.note
    assert held(tmp_path) == before


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_store_that_is_open_is_read_too_and_goes_on(tmp_path, ending):
    with open_store(tmp_path / f"g{ending}") as store:
        store.apply(store.graph().diff(GRAPH))
        assert read_store_file(tmp_path / f"g{ending}").graph == GRAPH
        store.apply(store.graph().diff(MORE))
        assert read_store_file(tmp_path / f"g{ending}").graph == store.graph() == MORE


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_empty_file_is_no_store_and_becomes_none(tmp_path, ending):
    path = tmp_path / f"g{ending}"
    path.touch()
    with pytest.raises(BadInput, match=rf"g\{ending} is empty, so it holds no graph"):
        read_store_file(path)
    assert held(tmp_path) == {path.name: b""}


def test_what_a_crash_left_in_the_log_of_sqlite_is_read_and_left_there(tmp_path):
    (tmp_path / "crashed").mkdir()
    with open_store(tmp_path / "g.sqlite") as store:
        store.apply(store.graph().diff(GRAPH))
        for name in ("g.sqlite", "g.sqlite-wal"):
            shutil.copyfile(tmp_path / name, tmp_path / "crashed" / name)
    before = held(tmp_path / "crashed")
    assert before["g.sqlite-wal"] and read_store_file(tmp_path / "crashed" / "g.sqlite").graph == GRAPH
    assert held(tmp_path / "crashed") == before


def test_a_row_that_is_not_as_it_was_written_is_damage(tmp_path):
    path = stored(tmp_path / "g.sqlite", GRAPH)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    path.write_bytes(path.read_bytes().replace(b"1815", b"1915"))
    with pytest.raises(StoreDamaged, match="1 row of nodes not as written"):
        read_store_file(path)


def test_a_foreign_sqlite_file_is_read_by_its_tables_and_the_note_says_which_rows_are_not(tmp_path):
    edges = [*EDGES, ("cache", "gone", "enables", None), ("gone", "cost", "enables", None)]
    read = read_store_file(of_profile(tmp_path / "theirs.db", "claude", edges=edges))
    facts = [(edge.source, edge.type, edge.target) for edge in read.graph.edges]
    assert facts == [("cache", "enables", "cost"), ("cache", "has_limitation", "stale")]
    assert read.note.startswith(
        "tables of the profile claude: nodes(node_id, name, node_type, metadata) and edges(source_node_id,"
    )
    unread = "row 3 of edges (edge 'cache' -enables-> 'gone'): there is no node 'gone'"
    assert f"; 2 rows not read as written: {unread}" in read.note
    assert read.note.endswith(" and 1 more")


def test_numbers_for_ids_give_way_to_names_in_a_file_of_another_program(tmp_path):
    nodes = [(1, "Ada", "Person", None), (2, "London", "City", None)]
    path = of_profile(tmp_path / "theirs.db", "hal", nodes, [(1, 2, "born_in", None)])
    assert read_store_file(path).graph.to_triples() == (Triple("Ada", "born_in", "London"),)


def test_an_sqlite_file_without_a_graph_and_a_text_are_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as connection, connection:
        connection.execute("CREATE TABLE nodes (id)")
    with pytest.raises(BadInput, match="no tables that hold a graph"):
        read_store_file(tmp_path / "theirs.db")
    (tmp_path / "notes.log").write_text("10:15 began")
    with pytest.raises(BadInput, match="a text and no SQLite file"):
        read_store_file(tmp_path / "notes.log")


def test_a_snapshot_is_no_store(tmp_path):
    write_graph(GRAPH, tmp_path / "g.jsonl")
    (tmp_path / "empty.jsonl").touch()
    assert not is_store_file(tmp_path / "g.jsonl") and not is_store_file(tmp_path / "empty.jsonl")


@pytest.mark.skipif(not hasattr(os, "geteuid") or not os.geteuid(), reason="root may write everywhere")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_folder_that_takes_no_files_is_read_from(tmp_path, ending):
    path = stored(tmp_path / f"g{ending}", GRAPH)
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert read_store_file(path).graph == GRAPH
    finally:
        tmp_path.chmod(0o755)
