"""A database that goes away in the middle of a transaction and comes back: one clear error, nothing half
done, no secret in it.
"""

from __future__ import annotations

import sqlite3

import pytest
from support.small_market import LANTERN, NOW, SHARE, STANDING, event, with_market

from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable


def test_a_server_that_goes_away_in_a_write_is_one_error_and_then_found_again(postgres, clock):
    with open_investment_graph(postgres.url, namespace=postgres.namespace, now=clock) as graph:
        with_market(graph)
        before = graph.view().graph()
        happened, edges = event("Lantern beats its forecast", LANTERN)
        with (
            pytest.raises(StoreUnavailable, match="went away, and nothing was changed; try again"),
            graph.storage.changing(),
        ):
            graph.write([happened])
            postgres.asked("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
            graph.write(edges=edges)
        assert graph.view().graph() == before
        assert graph.write([happened], edges).nodes == (happened.id,)


def test_what_breaks_in_the_middle_of_a_write_is_taken_back(graph):
    with_market(graph)
    before = graph.view().graph()
    happened, edges = event("Lantern beats its forecast", LANTERN)
    with pytest.raises(RuntimeError), graph.storage.changing():
        graph.write([happened], edges)
        graph.expire(SHARE.id)
        raise RuntimeError
    assert graph.view().graph() == before and len(graph.view().nodes()) == len(STANDING)


def test_a_file_that_another_process_writes_to_is_told_and_works_again(tmp_path, clock, monkeypatch):
    path = tmp_path / "graph.db"
    monkeypatch.setattr("kgot_lab.memory.sqlite_tables.LONGEST_WAIT", 0.01)
    with open_investment_graph(path, now=clock) as graph:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="another process has been writing"):
            graph.write([SHARE])
        other.execute("ROLLBACK")
        other.close()
        assert graph.write([SHARE])


def test_what_is_no_graph_is_refused_and_what_is_damaged_told(tmp_path):
    (tmp_path / "other.db").write_bytes(b"no graph at all" * 100)
    with pytest.raises(BadInput, match="not touched"):
        open_investment_graph(tmp_path / "other.db")
    with open_investment_graph(tmp_path / "graph.db") as graph:
        with_market(graph)
        graph.storage.rows("DROP TABLE edges")
        with pytest.raises(StoreUnavailable):
            graph.view().edges()


def test_tables_that_a_schema_has_lost_are_told(postgres, clock):
    with with_market(open_investment_graph(postgres.url, namespace=postgres.namespace, now=clock)) as graph:
        postgres.asked(f'DROP TABLE "{postgres.namespace}".edges')
        with pytest.raises(StoreDamaged, match="put a backup of its schema in its place"):
            graph.view(at=NOW).edges()


@pytest.mark.parametrize(
    "address", ["postgresql://ada:secret@127.0.0.1:1/kgot", "mysql://ada:secret@127.0.0.1/kgot"]
)
def test_an_address_that_leads_nowhere_is_one_error_without_the_password(address):
    with pytest.raises((StoreUnavailable, BadInput)) as told:
        open_investment_graph(address)
    assert "secret" not in str(told.value) and told.value.__cause__ is None
