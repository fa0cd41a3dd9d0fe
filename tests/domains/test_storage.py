"""One contract for the tables of worlds, investments and experts, in files and in schemas of PostgreSQL: kept
when they are opened again, and never made over anything else.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from support.claim_places import InPostgres
from support.npc_places import planted_embedder
from support.small_market import SHARE, with_market

from kgot_lab.domains.investment.accounts import open_accounts
from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.monitor.journal import open_journal
from kgot_lab.domains.npc.layers.memory import WorldLayers
from kgot_lab.domains.npc.layers.models import Chunk, LogEntry
from kgot_lab.domains.npc.models import Entity, Provenance, Relationship
from kgot_lab.domains.npc.opening import open_world
from kgot_lab.errors import BadInput, LabError, StoreUnavailable
from kgot_lab.experts.expert import expert_config
from kgot_lab.experts.learning.ledger import GraphProposal, NodeToAdd, ProposalSource, open_proposals
from kgot_lab.experts.repository import open_experts
from kgot_lab.stores.tables.postgres import PostgresTables

GRIM, ELARA = Entity("npc", "Grimjaw"), Entity("npc", "Elara")
NUMBER = count()
COOK = expert_config({"name": "Cook", "kg_db_id": "cookbook", "persona": {"name": "Cook"}})


def fill_world(world: Any) -> None:
    world.add([GRIM, ELARA], [Relationship(GRIM.id, ELARA.id, "KNOWS", {}, Provenance("s1"))])
    layers = WorldLayers(world, planted_embedder())
    layers.log.append([LogEntry("s1", "gold", None)])
    layers.chunks.add([Chunk(GRIM.id, "gold", None)])


def read_world(world: Any) -> Any:
    layers = WorldLayers(world, planted_embedder())
    told = world.find_entities(), world.get_relationships(GRIM.id)
    return *told, layers.log.last(), layers.chunks.search("gold")


def fill_accounts(accounts: Any) -> None:
    accounts.set_profile("ada")
    accounts.set_position("ada", "LNTN", "0.1", 10)


def fill_journal(journal: Any) -> None:
    journal.begin(journal.next_tick(timedelta(hours=1)))


def read_journal(journal: Any) -> Any:
    tick = journal.next_tick(timedelta(hours=1))
    assert tick.resumed, "the one that was begun"
    return tick.id, tick.due


def fill_proposals(ledger: Any) -> None:
    proposal = GraphProposal("cookbook", (NodeToAdd("technique:x", "technique", "X"),))
    ledger.propose(proposal, ProposalSource("m", "c", "ada", "X is a technique"))


@dataclass(frozen=True)
class Kind:
    """Tables of one kind: what opens them, writes to them, and reads what was written; a table of theirs."""

    opened: Callable[..., Any]
    fill: Callable[[Any], object]
    read: Callable[[Any], Any]
    table: str


KINDS = {
    "world": Kind(open_world, fill_world, read_world, "entities"),
    "graph": Kind(open_investment_graph, with_market, lambda g: g.view().history(SHARE.id), "nodes"),
    "accounts": Kind(open_accounts, fill_accounts, lambda a: a.account("ada"), "positions"),
    "journal": Kind(open_journal, fill_journal, read_journal, "ticks"),
    "experts": Kind(open_experts, lambda t: t.add_expert(COOK), lambda tables: tables.experts(), "experts"),
    "proposals": Kind(open_proposals, fill_proposals, lambda ledger: ledger.queue("cookbook"), "proposals"),
}


@dataclass
class Place:
    """A file or a schema, and what it is asked beside the tables' own ways."""

    name: str
    how: dict[str, Any]
    asked: Callable[..., object]


@pytest.fixture(params=["file", "postgres"])
def place(request, tmp_path) -> Place:
    if request.param == "file":
        path = tmp_path / "kept.db"

        def asked(statement: str) -> None:
            with sqlite3.connect(path) as file:
                file.execute(statement)
            file.close()

        return Place("file", {"place": path}, asked)
    schema = InPostgres(request.getfixturevalue("postgres_url"), f"kept {next(NUMBER)}")
    return Place("postgres", {"place": schema.url, "namespace": schema.namespace}, schema.asked)


def opened(kind: Kind, place: Place) -> Any:
    given = {name: value for name, value in place.how.items() if name != "place"}
    return kind.opened(place.how["place"], **given)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_was_written_is_there_when_it_is_opened_again_and_no_other_kind_takes_the_place(kind, place):
    tables = opened(kind, place)
    kind.fill(tables)
    before = kind.read(tables)
    tables.close()
    with pytest.raises(LabError, match="closed"):
        tables.storage.rows("SELECT 1")
    tables = opened(kind, place)
    assert kind.read(tables) == before
    tables.close()
    for name, other in KINDS.items():
        if other is not kind:
            with pytest.raises(BadInput, match="not touched"):
                pytest.fail(f"{name} took it: {opened(other, place)}")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_something_else_made_and_what_is_newer_is_refused_untouched(kind, place):
    foreign = f'"{place.how["namespace"]}".{kind.table}' if place.name == "postgres" else kind.table
    if place.name == "postgres":
        place.asked(f'CREATE SCHEMA "{place.how["namespace"]}"')
    place.asked(f"CREATE TABLE {foreign} (own TEXT)")
    with pytest.raises(BadInput, match="not touched"):
        opened(kind, place)
    place.asked(f"SELECT own FROM {foreign}")
    place.asked(f"DROP TABLE {foreign}")
    if place.name == "postgres":
        place.asked(f'DROP SCHEMA "{place.how["namespace"]}"')
        opened(kind, place).close()
        name = place.asked(
            f"SELECT obj_description(oid) FROM pg_namespace WHERE nspname = '{place.how['namespace']}'"
        )
        mark = str(name[0][0]).rpartition(" ")[0]  # type: ignore[index]
        change = f"""COMMENT ON SCHEMA "{place.how["namespace"]}" IS '{mark} %s'"""
    else:
        place.how["place"].unlink()
        opened(kind, place).close()
        change = "PRAGMA user_version = %s"
    for version, age in ((99, "newer"), (0, "older")):
        place.asked(change % version)
        with pytest.raises(BadInput, match=f"{age} version of this package .format {version},"):
            opened(kind, place)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_place_that_there_is_not_is_one_error_without_its_password(kind, tmp_path):
    (tmp_path / "note.txt").write_text("no database at all " * 100)
    with pytest.raises(BadInput, match=r"not touched|not an SQLite file"):
        kind.opened(tmp_path / "note.txt")
    for address in ("postgresql://ada:secret@127.0.0.1:1/kgot", "mysql://ada:secret@127.0.0.1/kgot"):
        with pytest.raises((StoreUnavailable, BadInput)) as told:
            kind.opened(address)
        assert "secret" not in str(told.value) and told.value.__cause__ is None


def test_a_table_that_was_lost_is_told_and_so_is_who_writes_all_the_time(place, monkeypatch):
    monkeypatch.setattr("kgot_lab.memory.sqlite_tables.BUSY_TIMEOUT", 0.01)
    settings = PostgresTables.settings
    monkeypatch.setattr(
        PostgresTables, "settings", re.sub(r"lock_timeout = \d+", "lock_timeout = 10", settings)
    )
    with opened(KINDS["graph"], place) as graph, opened(KINDS["graph"], place) as other:
        with (
            other.storage.changing(),
            pytest.raises(StoreUnavailable, match="another process has been writing"),
        ):
            with_market(graph)
        assert with_market(graph).view().history(SHARE.id)
        lost = f'"{place.how["namespace"]}".edges' if place.name == "postgres" else "edges"
        place.asked(f"DROP TABLE {lost}")
        with pytest.raises(StoreUnavailable, match=r"put a backup of its schema|no such table"):
            graph.view().edges()
