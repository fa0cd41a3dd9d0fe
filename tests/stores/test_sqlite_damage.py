"""Damage to an SQLite graph: a changed row is neither read nor sealed anew, a lost log is told, and what is whole can be kept."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing

import pytest

from kgot_lab.errors import StoreDamaged
from kgot_lab.examine.own_files import examine_file
from kgot_lab.stores.sqlite import file
from kgot_lab.stores.sqlite.store import Sqlite
from kgot_lab.types import Diff, Edge, Node

CURIE = Node("Marie Curie", ("Person", "Physicist"), {"born": 1867, "text": "Discovered radium"})
PRIZE = Node("Nobel Prize in Physics", ("Prize",))
WON = Edge("Marie Curie", "won", "Nobel Prize in Physics", {"year": 1903})
ALL = Diff(added_nodes=(CURIE, PRIZE), added_edges=(WON,))


def with_a_changed_row(path, monkeypatch):
    """A store on a file that is too large to be searched at opening, in which one node and one edge are not as they were written."""
    monkeypatch.setattr(file, "CHECKED", 0)
    with Sqlite(path) as store:
        store.apply(ALL)
    path.write_bytes(path.read_bytes().replace(b"1867", b"1868").replace(b"1903", b"1904"))
    return Sqlite(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE nodes SET properties = json_set(properties, '$.new', 1)", "DELETE FROM nodes", "UPDATE nodes SET id = id || '.'",
        "UPDATE edges SET key = 'k'", "DELETE FROM edges", "DELETE FROM nodes WHERE id = 'Nobel Prize in Physics'",
        "INSERT INTO facts (subject, relation, object, properties) SELECT source, type, target, '{\"new\": 1}' FROM edges",
    ],
)  # fmt: skip
def test_a_row_that_is_not_as_it_was_written_is_not_sealed_anew_by_a_write(tmp_path, monkeypatch, statement):
    path = tmp_path / "graph.db"
    with with_a_changed_row(path, monkeypatch) as store:
        with pytest.raises(StoreDamaged, match=r"a row of \w+ is not as it was written.*kgot-lab doctor --salvage"):
            store.write(statement)
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
            lambda: store.path(won["source"], won["target"]),
            lambda: store.edges_between(list(won.values())),
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
        store.write("UPDATE nodes SET properties = '{}'")
        store.verify()


@pytest.mark.parametrize("within", ["kgot_lab.stores.sqlite.file.parsed_json", "zlib.crc32", "kgot_lab.stores.sqlite.file._may"])
def test_an_interruption_within_a_function_of_the_database_is_no_refusal(tmp_path, monkeypatch, within):
    with Sqlite(tmp_path / "graph.db") as store:
        store.apply(ALL)
        whole = store.graph()
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(within, lambda *_: signal.raise_signal(signal.SIGINT))
            store.write("INSERT INTO facts (subject, relation, object) SELECT source, type, target FROM edges")
        assert store.graph() == whole
        store.apply(Diff(added_nodes=(Node("new"),)))
        store.verify()


def test_an_interruption_while_a_file_is_searched_is_no_damage(tmp_path, monkeypatch):
    with Sqlite(tmp_path / "graph.db") as store:
        store.apply(ALL)
    monkeypatch.setattr("zlib.crc32", lambda *_: signal.raise_signal(signal.SIGINT))
    for look in (Sqlite, examine_file):
        with pytest.raises(KeyboardInterrupt):
            look(tmp_path / "graph.db")
