"""What a file of triples is: claims, which other programs read and write in the layout of the document; several
processes at once, and files of earlier versions and of something else.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from kgot_lab.errors import BadInput, LabError, StoreDamaged, StoreUnavailable
from kgot_lab.io.sqlite.checksums import enable_checksums, keep_checksums
from kgot_lab.io.sqlite.connection import connect, immediate_transaction
from kgot_lab.memory.claims.claim import Claim
from kgot_lab.memory.claims.claims import open_claims
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


def test_other_programs_read_the_triples_in_the_layout_of_the_document(path):
    with SQLiteTripleStore(path) as store:
        store.add([Triple("Ada", "born_in", "London", 0.5, None, datetime(1815, 12, 10, 1, 2, 3, 4, UTC))])
    assert rows(path, "SELECT * FROM triples ORDER BY id") == [
        (1, "Alice", "works_at", "Acme Corp", 0.95, 1, "2026-05-01T00:00:00.000000+00:00"),
        (2, "Ada", "born_in", "London", 0.5, None, "1815-12-10T01:02:03.000004+00:00"),
    ]
    columns = [name for _, name, *_ in rows(path, "PRAGMA table_info(triples)")]
    assert columns == "id subject relation object confidence source_turn created_at".split()


def test_triples_that_other_programs_write_are_learnt_and_a_known_one_changes_nothing(path):
    write = "INSERT INTO triples (subject, relation, object, confidence) VALUES (?, ?, ?, ?)"
    with SQLiteTripleStore(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(write, ("Alice", "works_at", "Acme Corp", 0.1))
        other.execute(write, ("Bob", "knows", "Alice", None))
        assert repr(store.query(subject="Alice")) == repr([ALICE])
        assert store.search(["bob"]) == [Triple("Bob", "knows", "Alice")] and store.count() == 2
        assert store.delete(subject="Bob") == 1
    assert [subject for (subject,) in rows(path, "SELECT subject FROM triples")] == ["Alice"]


def test_rows_of_other_programs_that_are_no_triples_stay_and_that_is_told(path):
    bad = (("Ada", "is", "sure", 7, None), (" ", "is", "blank", 1, None), ("Ada", "met", "Bob", 1, "noon"))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        columns = "subject, relation, object, confidence, created_at"
        other.executemany(f"INSERT INTO triples ({columns}) VALUES (?, ?, ?, ?, ?)", bad)
        other.execute("INSERT INTO triples (subject, relation, object) VALUES ('Ada', 'knows', 'Bob')")
    for _ in range(2):
        with pytest.warns(UserWarning, match="3 rows of another program cannot be read .* stay"):
            store = SQLiteTripleStore(path)
        with store:
            assert store.all() == [ALICE, Triple("Ada", "knows", "Bob")] and store.count() == 2
    assert len(rows(path, "SELECT * FROM triples")) == 5


def test_what_was_kept_is_there_when_the_file_is_opened_again(path):
    with SQLiteTripleStore(str(path)) as store:
        assert repr(store.all()) == repr([ALICE]) and store.search(["acme"]) == [ALICE]


def test_two_memories_on_one_file_see_what_the_other_adds(path):
    with SQLiteTripleStore(path) as one, SQLiteTripleStore(path) as other:
        one.add([Triple("Bob", "knows", "Alice")])
        assert other.count() == 2 and len(other.search(["alice"])) == 2
        assert other.delete(subject="Bob") == 1 and one.all() == [ALICE]


def older(path, *triples, words=True):
    """Make a file of triples as earlier versions and other programs did."""
    with closing(connect(path.as_uri())) as connection:
        for statement in TRIPLE_TABLES:
            connection.execute(statement)
        if words:
            connection.execute("CREATE TABLE triple_words (word TEXT, id INTEGER, PRIMARY KEY (word, id))")
            connection.execute("INSERT INTO triple_words VALUES ('quetzalcoatl', 1)")
        enable_checksums(connection)
        keep_checksums(connection)
        columns = "subject, relation, object, confidence, source_turn, created_at"
        with immediate_transaction(connection):
            connection.executemany(f"INSERT INTO triples ({columns}) VALUES (?, ?, ?, ?, ?, ?)", triples)


@pytest.mark.parametrize("words", [True, False], ids=["an earlier version", "another program"])
def test_a_file_in_the_layout_of_the_document_becomes_claims_and_loses_nothing(tmp_path, words):
    path = tmp_path / "older.db"
    first = ("Ada", "wrote", "notes", None, 3, "1843-01-01T10:00:00")
    older(path, first, ("Ada", "met", "Charles", 0.25, None, None), words=words)
    with pytest.warns(UserWarning, match="2 triples of an earlier .* became claims"):
        store = SQLiteTripleStore(path)
    with store:
        found = store.search(["ADA"])
        assert repr(found) == repr(store.all()) == repr(
            [
                Triple("Ada", "wrote", "notes", 1.0, 3, datetime(1843, 1, 1, 10, tzinfo=UTC)),
                Triple("Ada", "met", "Charles", 0.25),
            ]
        )  # fmt: skip
    with open_claims(path) as claims:
        assert claims.from_source("turn 3")[0].fact == found[0]
    with SQLiteTripleStore(path) as store:
        assert store.delete(subject="Ada") == 2
    assert b"Charles" not in path.read_bytes()


def test_words_that_were_deleted_from_an_older_file_do_not_come_back(tmp_path):
    path = tmp_path / "older.db"
    older(path, *((f"thing {n}", "is", f"Quetzalcoatl {n}", 1, None, None) for n in range(50)))
    with closing(
        sqlite3.connect(path, isolation_level=None)
    ) as connection:  # which leaves them in free pages
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("DELETE FROM triples WHERE id > 1")
        connection.execute("UPDATE triples SET object = 'a feather'")
    assert b"Quetzalcoatl" in path.read_bytes()
    with pytest.warns(UserWarning, match="1 triple of"):
        SQLiteTripleStore(path).close()
    assert b"quetzalcoatl" not in path.read_bytes().lower() and b"a feather" in path.read_bytes()


def test_a_file_of_claims_is_read_where_nothing_can_be_written(tmp_path, monkeypatch):
    with open_claims(tmp_path / "c.db") as claims:
        claims.learn(Claim(Triple("Ada", "knows", "Bob"), "book"))
    monkeypatch.setattr("kgot_lab.io.sqlite.file._opening_mode", lambda _: "mode=ro")
    with SQLiteTripleStore(tmp_path / "c.db") as store:
        assert store.all() == store.search(["ada"]) == [Triple("Ada", "knows", "Bob")]
        with pytest.raises(StoreUnavailable):
            store.delete(subject="Ada")


def test_an_older_file_that_cannot_be_written_to_is_told_and_not_changed(tmp_path, monkeypatch):
    older(path := tmp_path / "older.db")
    before = fingerprint(path)
    monkeypatch.setattr("kgot_lab.io.sqlite.file._opening_mode", lambda _: "mode=ro")
    with pytest.raises(StoreUnavailable, match="open a copy in another folder"):
        SQLiteTripleStore(path)
    assert fingerprint(path) == before


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
        (foreign, "something else made"),
        (other_columns, "something else made"),
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


@pytest.mark.parametrize("others", [0, 1000], ids=["among few", "among many"])
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
