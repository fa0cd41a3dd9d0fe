"""Claims in PostgreSQL: whose a schema is, what is said where there is no server, and erased bytes that leave
its log as well.
"""

from __future__ import annotations

import multiprocessing
import threading
from contextlib import suppress

import psycopg
import pytest
from support.claim_places import holding
from support.every import every
from support.saying import fact, inferred, said
from support.waiting import until

from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable
from kgot_lab.memory.claims.claims import open_claims
from kgot_lab.stores.postgres.store import Postgres

CANARY = "canary-77c1"


def test_a_schema_that_holds_no_claims_is_refused_untouched(postgres):
    schema = f'"{postgres.namespace}"'
    postgres.asked(f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.facts (id TEXT)")
    with pytest.raises(BadInput, match="holds no claims, so it was not touched; give another namespace"):
        postgres.opened()
    found = postgres.asked(f"SELECT tablename FROM pg_tables WHERE schemaname = '{postgres.namespace}'")
    assert found == [("facts",)]
    postgres.asked(f"DROP SCHEMA {schema} CASCADE")
    Postgres(postgres.conninfo, namespace=postgres.namespace).close()
    with pytest.raises(BadInput, match="holds no claims"):
        postgres.opened()


def test_a_graph_does_not_take_the_schema_of_claims(postgres):
    postgres.opened().close()
    with pytest.raises(BadInput, match="not one of ours"):
        Postgres(postgres.conninfo, namespace=postgres.namespace, wipe=True)
    postgres.opened().close()


def test_claims_of_a_newer_version_and_damaged_ones_are_told(postgres):
    with postgres.opened() as claims:
        claims.learn(said("Ada is here"))
    postgres.asked(f'DROP TABLE "{postgres.namespace}".premises')
    with (
        postgres.opened() as claims,
        pytest.raises(StoreDamaged, match=r"damaged \(relation .premises. does not exist"),
    ):
        claims.facts()
    postgres.asked(f"""COMMENT ON SCHEMA "{postgres.namespace}" IS 'claims of kgot_lab, version 99'""")
    message = r"newer version of this package .format 99, known is 2., so it was not touched"
    with pytest.raises(BadInput, match=message):
        postgres.opened()


@every(
    ("address", "error", "message"),
    [
        (
            "postgresql://ada:secret@127.0.0.1:1/kgot",
            StoreUnavailable,
            "cannot be reached .*: start the server, or give",
        ),
        ("postgresql://ada:sec/ret@127.0.0.1/kgot", BadInput, "cannot be read"),
        ("postgresql://ada:12/secret@127.0.0.1/kgot", BadInput, "cannot be read"),
        ("postgresql://ada:sec@secret@127.0.0.1/kgot", BadInput, "cannot be read"),
        ("postgresql://ada:secret%zz@127.0.0.1/kgot", BadInput, "cannot be read: .* % %25"),
        ("postgresql://ada:secret@127.0.0.1:port/kgot", BadInput, "cannot be read"),
        ("postgresql://ada:…@127.0.0.1/kgot", BadInput, "has lost its password"),
        ("mysql://ada:secret@127.0.0.1/kgot", BadInput, "in a file or at postgresql://"),
        ("http://ada:secret@127.0.0.1/kgot", BadInput, "in a file or at postgresql://"),
        ("postgresql://ada:secret@", StoreUnavailable, "cannot be reached"),
    ],
)
def test_an_address_that_leads_to_no_server_is_one_error_without_the_password(address, error, message):
    with pytest.raises(error, match=message) as told:
        open_claims(address)
    assert "secret" not in str(told.value) and told.value.__cause__ is None


def test_a_wrong_password_is_one_error_without_it(postgres):
    rules = postgres.data / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all guarded scram-sha-256\n{before}")
    try:
        postgres.asked("CREATE ROLE guarded LOGIN PASSWORD 'right'", "SELECT pg_reload_conf()")
        address = f"postgresql://guarded:wrong-secret@/kgot_lab?host={postgres.data}&port=5432"
        message = 'password authentication failed for user "guarded"'
        with pytest.raises(StoreUnavailable, match=message) as told:
            until(lambda: not _enters(address), "the server asks for passwords")
            open_claims(address)
        assert "secret" not in str(told.value)
    finally:
        rules.write_text(before)
        postgres.asked("DROP ROLE guarded", "SELECT pg_reload_conf()")


def _enters(address: str) -> bool:
    with suppress(psycopg.OperationalError), psycopg.connect(address):
        return True
    return False


def test_what_fits_no_place_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place, how, message in (
        (tmp_path / "claims.db", {"namespace": "mine"}, "only PostgreSQL has namespaces"),
        (3, {}, "'place' is a path or a text"),
        ("postgresql:///kgot", {"namespace": "pg_mine"}, "does not begin with pg_"),
        ("postgresql:///kgot", {"namespace": 3}, "'namespace' is a text"),
        ("host=db.example port=5432 password=hush dbname=kgot", {}, "as an address, not as name=value pairs"),
        ("port=5432 user = me", {"namespace": "mine"}, "as an address, not as name=value pairs"),
    ):
        with pytest.raises(BadInput, match=message) as refused:
            open_claims(place, **how)
        assert "hush" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []
    for name in ("user.db", "my host=3.db"):  # names of files that only look a little like it
        open_claims(name).close()
    assert {"user.db", "my host=3.db"} <= {path.name for path in tmp_path.iterdir()}


def test_a_server_that_ends_a_connection_is_one_error_and_then_found_again(postgres):
    with postgres.opened() as claims:
        claims.learn(said("Ada is here"))
        before = claims.log()
        with (
            pytest.raises(StoreUnavailable, match="went away, and nothing was changed; try again"),
            claims.storage.changing(),
        ):
            claims.learn(said("Ada is there"))
            postgres.asked("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
            claims.learn(said("Ada is away"))
        assert claims.log() == before and claims.facts() == (fact("Ada is here"),)


def test_a_reader_sees_one_time_while_others_write_and_writers_wait_for_each_other(postgres):
    with postgres.opened() as claims, postgres.opened() as other:
        claims.learn(said("Ada is here"))
        with other.storage.reading():
            seen = other.facts()
            claims.learn(said("Ada is there"))
            assert other.facts() == seen
        with claims.storage.changing():
            second = threading.Thread(target=lambda: other.learn(said("Ada is away")))
            second.start()
            until(
                lambda: postgres.asked("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"),
                "the second writer waits",
            )
            claims.learn(said("Ada is back"))
        second.join()
        assert [each.change for each in claims.log()] == [1, 2, 3, 4] and len(claims.facts()) == 4


def test_a_child_forked_within_a_change_leaves_it_to_its_parent(postgres):
    with postgres.opened() as claims:
        with claims.storage.changing():
            claims.learn(said("Ada is here"))
            results = multiprocessing.get_context("fork").SimpleQueue()
            child = multiprocessing.get_context("fork").Process(
                target=lambda: results.put(_what_a_change_says(claims))
            )
            child.start()
            child.join()
            assert "was opened in another process" in results.get()
            claims.learn(said("Ada is there"))
        assert len(claims.facts()) == 2


def _what_a_change_says(claims):
    try:
        claims.learn(said("Ada is away"))
    except StoreUnavailable as error:
        return str(error)


# --- erasing ---


def test_an_erasure_waits_for_older_transactions_that_could_still_read_its_bytes(postgres):
    with postgres.opened() as claims:
        claims.learn([said(f"{CANARY} is {i}", "secret") for i in range(20)])
        with psycopg.connect(postgres.conninfo, autocommit=True) as older:
            older.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            older.execute("SELECT 1")
            erasing = threading.Thread(target=lambda: claims.erase_source("secret"))
            erasing.start()
            until(
                lambda: postgres.asked(f'SELECT * FROM "{postgres.namespace}".unscrubbed'),
                "its rows are deleted",
            )
            # not while it is written again
            until(lambda: postgres.files_with(CANARY), "the bytes of deleted rows stand in a file")
            assert erasing.is_alive()
            older.execute("ROLLBACK")
            erasing.join()
        assert postgres.files_with(CANARY) == []
        assert postgres.asked(f'SELECT * FROM "{postgres.namespace}".unscrubbed') == []


def test_what_is_told_of_the_servers_log_takes_erased_bytes_out_of_all_its_files(postgres):
    with postgres.opened() as claims:
        claims.learn([said(f"{CANARY} is {i}", "secret") for i in range(20)])
        claims.erase_source("secret")
    assert postgres.files_with(CANARY) == [] and holding(postgres.data / "pg_wal", CANARY)
    overwrite = "SELECT pg_switch_wal()", "CHECKPOINT", "SELECT 1"
    postgres.asked("ALTER SYSTEM SET wal_recycle = off", "SELECT pg_reload_conf()")
    try:
        until(lambda: postgres.asked(*overwrite) and not holding(postgres.data, CANARY), "the log is gone")
    finally:
        postgres.asked("ALTER SYSTEM RESET wal_recycle", "SELECT pg_reload_conf()")


# --- one memory, two engines ---


def told(memory):
    """What a memory reports of a history that goes through everything it can do."""
    names = [f"n{i % 7}" for i in range(40)]
    pairs = enumerate(zip(names, names[3:], strict=False))
    lesson = [said(f"{a} {'rs'[i % 2]} {b}", f"d{i % 3}", confidence=0.5 + i % 6 / 10) for i, (a, b) in pairs]
    yield memory.learn(lesson)
    yield memory.learn([inferred(f"x{i} follows y", f"n{i} r n{i + 3}", source="rule") for i in range(4)])
    yield memory.note_answer("q", "yes", [fact("x0 follows y"), fact("n1 s n4")])
    yield memory.merge("n2", "n5")
    fallen = memory.retract_source("d0", by="Ada")
    yield fallen
    yield memory.retract_fact(fact("n1 s n4"))
    yield memory.undo(fallen.change)
    yield memory.erase_source("d2")
    yield memory.declare("r", "single"), memory.current("n1", "r"), memory.changes_of("n2", "s")
    facts, log, declared = memory.facts(), memory.log(), memory.declared()
    yield facts, log, declared, memory.suggested_cardinalities(), memory.propose_merges()
    yield (
        [memory.history(claim.id) for each in memory.facts() for claim in memory.supports_of(each)],
        memory.graph_hash(claims=True),
    )


def test_both_engines_tell_the_same(file, postgres, clock):
    start = clock.time
    with file.opened(now=clock) as claims:
        in_file = list(told(claims))
    clock.time = start
    with postgres.opened(now=clock) as claims:
        assert list(told(claims)) == in_file
