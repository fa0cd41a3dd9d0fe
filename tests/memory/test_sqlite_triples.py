"""What a file of triples is: the tables of the specification, several processes at once, and files that are
something else.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from kgot_lab.errors import BadInput, LabError, StoreDamaged, StoreUnavailable
from kgot_lab.memory.sqlite import TRIPLE_TABLES, SQLiteTripleStore
from kgot_lab.types import Triple

ALICE = Triple("Alice", "works_at", "Acme Corp", 0.95, 1, datetime(2026, 5, 1, tzinfo=UTC))


def rows(path, statement):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


def fingerprint(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def path(tmp_path):
    """A file that holds one triple and is closed."""
    with SQLiteTripleStore(tmp_path / "knowledge.db") as store:
        store.add([ALICE])
    return tmp_path / "knowledge.db"


def test_the_tables_and_indexes_are_those_of_the_specification(path):
    columns = [
        (name, kind, required, default, key)
        for _, name, kind, required, default, key in rows(path, "PRAGMA table_info(triples)")
    ]
    assert columns == [
        ("id", "INTEGER", 0, None, 1), ("subject", "TEXT", 1, None, 0), ("relation", "TEXT", 1, None, 0), ("object", "TEXT", 1, None, 0),
        ("confidence", "REAL", 0, "1.0", 0), ("source_turn", "INTEGER", 0, None, 0), ("created_at", "TEXT", 0, None, 0),
    ]  # fmt: skip
    indexes = {
        name: [column for _, _, column in rows(path, f"PRAGMA index_info({name})")]
        for _, name, *_ in rows(path, "PRAGMA index_list(triples)")
    }
    assert {name: columns for name, columns in indexes.items() if name.startswith("idx")} == {
        "idx_subject": ["subject"], "idx_object": ["object"], "idx_relation": ["relation"],
    }  # fmt: skip
    assert ["subject", "relation", "object"] in indexes.values()
    assert "AUTOINCREMENT" in rows(path, "SELECT sql FROM sqlite_master")[0][0]


def test_what_was_kept_is_there_when_the_file_is_opened_again(path):
    with SQLiteTripleStore(str(path)) as store:
        assert repr(store.all()) == repr([ALICE]) and store.search(["acme"]) == [ALICE]


def test_two_memories_on_one_file_see_what_the_other_adds(path):
    with SQLiteTripleStore(path) as one, SQLiteTripleStore(path) as other:
        one.add([Triple("Bob", "knows", "Alice")])
        assert other.count() == 2 and len(other.search(["alice"])) == 2
        assert other.delete(subject="Bob") == 1 and one.all() == [ALICE]


def test_a_file_that_another_program_made_by_the_same_tables_is_searched_too(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in TRIPLE_TABLES:
            connection.execute(statement)
        connection.execute(
            "INSERT INTO triples (subject, relation, object, created_at) VALUES ('Ada', 'wrote', 'notes', '1843-01-01T10:00:00')"
        )
        with SQLiteTripleStore(path) as store:
            (found,) = store.search(["ADA"])
            assert found.created_at == datetime(1843, 1, 1, 10, tzinfo=UTC)
            connection.execute(
                "INSERT INTO triples (subject, relation, object) VALUES ('Ada', 'met', 'Charles')"
            )
            store.add([Triple("Ada", "born_in", "London")])
            assert len(store.search(["ada"])) == 3
            assert store.delete(subject="Ada") == 3
            assert store.search(["ada"]) == []


def foreign(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE letters (id, text)")


def other_columns(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE triples (s, p, o)")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda path: path.write_bytes(b"a letter, and no database\n" * 100),
            "not an SQLite file, so it was not touched",
        ),
        (foreign, "no table of triples"),
        (other_columns, "other columns"),
    ],
)
def test_a_file_of_another_kind_is_refused_and_not_changed(tmp_path, make, why):
    path = tmp_path / "file.db"
    make(path)
    before = fingerprint(path)
    with pytest.raises(BadInput, match=why):
        SQLiteTripleStore(path)
    assert fingerprint(path) == before and [file.name for file in tmp_path.iterdir()] == ["file.db"]


@pytest.mark.parametrize("damage", ["zeros", "cut"])
def test_a_damaged_file_is_told_and_not_changed(path, damage):
    with SQLiteTripleStore(path) as store:
        store.add([Triple(f"thing {number}", "is", "x" * 100) for number in range(500)])
    whole = path.read_bytes()
    path.write_bytes(whole[:20_000] if damage == "cut" else whole[:8192] + b"\0" * 8192 + whole[16384:])
    before = fingerprint(path)
    with pytest.raises(StoreDamaged, match="is damaged"):
        SQLiteTripleStore(path)
    assert fingerprint(path) == before


@pytest.mark.parametrize("place", ["", ":memory:", "a\0b", 3, None])
def test_what_is_no_path_is_refused(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LabError):
        SQLiteTripleStore(place)


def test_a_closed_store_and_one_of_a_parent_process_say_so(path):
    store = SQLiteTripleStore(path)
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.count()
    with SQLiteTripleStore(path) as opened:
        if child := os.fork():
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert opened.count() == 1
        else:  # pragma: no cover
            try:
                opened.count()
            except StoreUnavailable as error:
                os._exit("fork" not in str(error))
            finally:
                os._exit(1)


@pytest.mark.parametrize("others", [0, 3000], ids=["among few", "among many"])
@pytest.mark.parametrize(
    "remove",
    [lambda store: store.delete(subject="Quetzalcoatl"), lambda store: store.delete(object="Zanzibar"), lambda store: store.clear()],
    ids=["by subject", "by object", "with everything"],
)  # fmt: skip
def test_the_words_of_deleted_triples_are_not_in_the_closed_file(tmp_path, remove, others):
    path = tmp_path / "knowledge.db"
    with SQLiteTripleStore(path) as store:
        store.add([Triple(f"thing {number}", "is", f"number {number}") for number in range(others)])
        store.add([Triple("Quetzalcoatl", "worshipped_in", "Zanzibar"), ALICE])
    with SQLiteTripleStore(path) as store:
        remove(store)
        assert store.search(["zanzibar"]) == []
    assert [file.name for file in tmp_path.iterdir()] == ["knowledge.db"]
    kept = path.read_bytes().lower()
    assert not [word for word in (b"quetzal", b"worship", b"zanzib") if word in kept]
    with SQLiteTripleStore(path) as store:
        assert len(store.search(["alice", "thing"], top_k=5000)) == store.count()


def test_a_store_that_is_closed_while_another_writes_says_what_stays_in_its_file(path, monkeypatch):
    monkeypatch.setattr("kgot_lab.io.sqlite.connection.BUSY_TIMEOUT", 0.1)
    store = SQLiteTripleStore(path)
    store.delete(subject="Alice")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            StoreUnavailable, match=r"another process has been writing.*words of deleted triples"
        ):
            store.close()
    store.close()
    with SQLiteTripleStore(path) as again:
        assert again.count() == 0
