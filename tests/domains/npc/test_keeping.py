"""Where worlds are kept: apart from each other, brought up to date, never over anyone else's, and found again
when a server is.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from support.npc_places import at_postgres

from kgot_lab.domains.npc.models import Entity, Provenance, Relationship
from kgot_lab.domains.npc.opening import open_world
from kgot_lab.domains.npc.statements import WORLD_LAYOUT
from kgot_lab.errors import BadInput, StoreUnavailable

GRIM, ELARA = Entity("npc", "Grimjaw", {"secret_knowledge": "canary-1-1"}), Entity("npc", "Elara")
KNOWS = Relationship(GRIM.id, ELARA.id, "KNOWS", {}, Provenance("s1", confidence=0.5))


def asked(conninfo, *statements):
    with psycopg.connect(conninfo, autocommit=True) as connection:
        cursors = [connection.execute(statement) for statement in statements]
        return cursors[-1].fetchall() if cursors[-1].description else []


# --- apart ---


def test_two_worlds_in_one_database_never_see_each_other(postgres_url):
    """No statement has a filter to forget: a table without a schema is one's own, and one that is spelt out
    is refused.
    """
    with at_postgres(postgres_url, "one world") as one, at_postgres(postgres_url, "other world") as other:
        one.add([GRIM, ELARA], [KNOWS])
        assert other.find_entities() == ()
        assert (
            other.storage.rows("SELECT * FROM entities") == other.storage.rows("SELECT * FROM support") == []
        )
        other.add_entity(Entity("npc", "Impostor", id=GRIM.id))
        assert one.get_entity(GRIM.id).name == "Grimjaw"
        with pytest.raises(BadInput, match="there is no entity"):
            other.add_relationship(KNOWS)
        for statement in (
            'SELECT * FROM "one world".entities',
            'DELETE FROM "one world".relationships',
            f"""INSERT INTO "one world".entities (type, name) VALUES ('npc', '{GRIM.name}')""",
            "CREATE TABLE mine (id TEXT)",
        ):
            with pytest.raises(StoreUnavailable, match=r"permission denied for schema o.+ world"):
                other.storage.rows(statement)
        other.delete_entity(GRIM.id)
        assert {entity.name for entity in one.find_entities()} == {"Grimjaw", "Elara"}


def test_a_login_that_may_make_no_roles_keeps_worlds_apart_by_their_schemas(postgres_url):
    asked(postgres_url, "CREATE ROLE plain LOGIN", "GRANT CREATE ON DATABASE kgot_lab TO plain")
    login = make_conninfo(postgres_url, user="plain")
    with at_postgres(login, "plain one") as one, at_postgres(login, "plain other") as other:
        one.add([GRIM, ELARA], [KNOWS])
        assert other.find_entities() == () and one.storage.rows("SELECT current_user") == [("plain",)]
        other.add_entity(Entity("npc", "Impostor", id=GRIM.id))
        assert one.get_entity(GRIM.id).name == "Grimjaw" and other.get_relationships(GRIM.id) == ()


# --- versions and whose it is ---


def test_statements_that_make_the_tables_run_twice_change_nothing(postgres_url, tmp_path):
    with open_world(tmp_path / "town.db") as world, at_postgres(postgres_url, "twice") as there:
        for each in (world, there):
            each.add([GRIM, ELARA], [KNOWS])
        for statement in WORLD_LAYOUT.sqlite:
            world.storage.rows(statement)
        asked(postgres_url, "SET search_path = twice", *WORLD_LAYOUT.postgres)
        assert world.find_entities() == there.find_entities() == (ELARA, GRIM)


# --- several at once ---


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request, tmp_path):
    """What opens one and the same world."""
    if request.param == "sqlite":
        return lambda: open_world(tmp_path / "town.db")
    return lambda: at_postgres(request.getfixturevalue("postgres_url"), "several")


def test_who_is_deleted_and_comes_back_while_others_ask_is_there_or_is_not(opened):
    with opened() as one, opened() as other, ThreadPoolExecutor(1) as threads:
        one.add([GRIM, ELARA], [Relationship(GRIM.id, ELARA.id, "KNOWS")])

        def come_and_go():
            for _ in range(20):
                other.delete_entity(GRIM.id)
                other.add([GRIM], [Relationship(GRIM.id, ELARA.id, "KNOWS")])

        busy, seen = threads.submit(come_and_go), []
        while not busy.done():
            try:
                world = one.visible_subgraph(GRIM.id)
                seen.append(({entity.name for entity in world.entities}, len(world.relationships)))
            except BadInput as error:
                assert str(error).startswith(f"there is no entity {GRIM.id}:")
        busy.result()
        assert all(each == ({"Grimjaw", "Elara"}, 1) for each in seen), (
            "it is seen with what it knows, or not at all"
        )
        for entity in (GRIM, ELARA):
            one.delete_entity(entity.id)


def test_two_writers_of_one_entity_lose_nothing(opened):
    with opened() as one, opened() as other, ThreadPoolExecutor(2) as threads:
        one.add_entity(GRIM)

        def write(world, name):
            for number in range(20):
                world.update_entity(GRIM.id, {f"{name}{number}": number})

        list(threads.map(write, (one, other), "ab"))
        kept = one.get_entity(GRIM.id).attributes.keys() - GRIM.attributes.keys()
        one.delete_entity(GRIM.id)
    assert kept == {f"{name}{number}" for name in "ab" for number in range(20)}


# --- what a server says and is asked ---


def test_no_error_of_the_server_shows_what_a_row_holds(postgres_url):
    with at_postgres(postgres_url, "quiet") as world:
        world.add_entity(GRIM)
        asked(postgres_url, "ALTER TABLE quiet.entities ADD CHECK (name <> 'Gone')")
        for wrong in (
            lambda: world.add_entity(Entity("npc", "Gone", id=GRIM.id)),
            lambda: world.storage.rows(
                """INSERT INTO entities (type, name, attributes) VALUES ('npc', 'x', '{"a": "canary-1-1\\u0000"}')"""
            ),
        ):
            with pytest.raises((BadInput, StoreUnavailable)) as told:
                wrong()
            assert "canary" not in str(told.value) and told.value.__suppress_context__


def test_what_an_npc_sees_is_one_statement_on_the_server(postgres_url, monkeypatch):
    sent = []
    execute = psycopg.Connection.execute
    monkeypatch.setattr(
        psycopg.Connection,
        "execute",
        lambda connection, *asked: sent.append(asked[0]) or execute(connection, *asked),
    )
    with at_postgres(postgres_url, "counted") as world:
        world.add([GRIM, ELARA], [KNOWS])
        for ask in (
            world.visible_subgraph,
            world.identity_snapshot,
            world.neighbours,
            world.get_relationships,
            world.get_entity,
        ):
            sent.clear()
            ask(GRIM.id)
            assert len(sent) == 1
