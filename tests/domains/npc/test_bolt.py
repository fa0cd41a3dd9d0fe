"""A world on a real Bolt server: who may know what, apart from others of its database, found again, and never
half of a change.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from support.npc_asking import told_too_much
from support.npc_oracle import may_see
from support.npc_places import at_bolt, plant, relationship
from support.npc_planted import canaries, planted

from kgot_lab.domains.npc import visibility_python as visible_in_python
from kgot_lab.domains.npc.layers.session_log import SessionLog
from kgot_lab.domains.npc.models import Entity, Provenance, Relationship
from kgot_lab.domains.npc.opening import open_world
from kgot_lab.errors import BadInput, StoreUnavailable

WORLDS = 2  # the program is that of a file (`visible_in_python`), which is asked about many more
GRIM, ELARA = Entity("npc", "Grimjaw", {"secret_knowledge": "canary-1-1"}), Entity("npc", "Elara")
KNOWS = Relationship(GRIM.id, ELARA.id, "KNOWS", {}, Provenance("s1", confidence=0.5))


@pytest.fixture
def settled(bolt_server):
    """What puts a planted world onto the server."""
    opened = []

    def settle(seed):
        there = planted(seed)
        opened.append(world := at_bolt(bolt_server, f"planted {seed}"))
        if not world.find_entities():
            entities = [
                Entity(each.type, each.name, each.attributes, each.id) for each in there.entities.values()
            ]
            world.add(entities, [relationship(each) for each in there.edges])
        return there, world

    yield settle
    for world in opened:
        world.close()


def test_nobody_is_told_what_it_may_not_know(settled):
    hidden = 0
    for seed in range(WORLDS):
        there, world = settled(seed)
        for npc in there.npcs:
            assert told_too_much(world, there, npc) == [], f"world {seed}"
            hidden += len(canaries(*there.entities.values(), *there.edges) - may_see(there, npc)[2])
    assert hidden > 20 * WORLDS


def test_a_policy_that_is_wrong_is_caught(settled, monkeypatch):
    monkeypatch.setattr(visible_in_python, "as_seen_by_others", lambda entity, policy: entity)
    for seed in range(WORLDS):
        there, world = settled(seed)
        if any(" tells " in each for npc in there.npcs for each in told_too_much(world, there, npc)):
            return
    pytest.fail("nothing was told that may not be")


def test_everyone_sees_what_it_sees_in_a_file(settled):
    with open_world() as file:
        for seed in range(WORLDS):
            there, world = settled(seed)
            plant(there, file)
            for npc in there.npcs:
                one, other = file.visible_subgraph(npc), world.visible_subgraph(npc)
                assert [(each, each.attributes) for each in one.entities] == [
                    (each, each.attributes) for each in other.entities
                ]
                assert [(each.key, each.attributes) for each in one.relationships] == [
                    (each.key, each.attributes) for each in other.relationships
                ]


def test_two_worlds_in_one_database_never_see_each_other(bolt_server):
    with at_bolt(bolt_server, "one world") as one, at_bolt(bolt_server, "other world") as other:
        one.add([GRIM, ELARA], [KNOWS])
        assert other.find_entities() == ()
        with pytest.raises(BadInput, match="there is no entity"):
            other.add_relationship(KNOWS)
        other.add([Entity("npc", "Impostor", id=GRIM.id), ELARA])
        assert one.get_entity(GRIM.id).name == "Grimjaw" and other.get_relationships(
            GRIM.id
        ) == () == other.neighbours(GRIM.id)
        assert one.get_relationships(GRIM.id)[0].key == KNOWS.key
        other.delete_entity(ELARA.id)
        assert [each.name for each in one.find_entities()] == ["Elara", "Grimjaw"]


def test_a_world_is_opened_by_its_address_with_the_login_of_the_environment(bolt_server, monkeypatch):
    monkeypatch.setenv("KGOT_NEO4J_USER", bolt_server.user)
    monkeypatch.setenv("KGOT_NEO4J_PASSWORD", bolt_server.password)
    monkeypatch.setenv("KGOT_NEO4J_DATABASE", bolt_server.database("worlds"))
    for _ in range(2):  # opened again as it was left
        with open_world(bolt_server.uri, namespace="addressed") as world:
            if not world.find_entities():
                world.add([GRIM, ELARA], [KNOWS])
            assert (
                world.find_entities() == (ELARA, GRIM)
                and world.get_relationships(GRIM.id)[0].standing == "queued"
            )
    with pytest.raises(StoreUnavailable, match="was closed; open another one"):
        world.find_entities()
    monkeypatch.setenv("KGOT_NEO4J_PASSWORD", "canary-2-2")
    with pytest.raises(StoreUnavailable, match="does not serve us") as told:
        open_world(bolt_server.uri)
    assert "canary" not in str(told.value)


def test_what_fits_no_world_is_refused(bolt_server):
    with pytest.raises(BadInput, match="leave the user name and password out") as told:
        open_world("bolt://neo4j:canary-3-3@127.0.0.1")
    assert "canary" not in str(told.value)
    with pytest.raises(BadInput, match="a text that is not blank"):
        at_bolt(bolt_server, " ")
    with (
        at_bolt(bolt_server, "no log") as world,
        pytest.raises(BadInput, match="layers lie on a world in SQLite or PostgreSQL"),
    ):
        SessionLog(world)


def test_two_writers_lose_nothing(bolt_server):
    with (
        at_bolt(bolt_server, "written by two") as one,
        at_bolt(bolt_server, "written by two") as other,
        ThreadPoolExecutor(2) as threads,
    ):
        one.add_entity(GRIM)
        writing = [
            threads.submit(
                lambda world=world, name=name: [
                    world.update_entity(GRIM.id, {f"{name}{n}": n}) for n in range(10)
                ]
            )
            for world, name in ((one, "a"), (other, "b"))
        ]
        for each in writing:
            each.result()
        assert one.get_entity(GRIM.id).attributes.keys() - GRIM.attributes.keys() == {
            f"{name}{n}" for name in "ab" for n in range(10)
        }


def test_a_server_that_is_killed_in_mid_transaction_is_one_error_and_nothing_is_lost(bolt_server):
    with at_bolt(bolt_server, "killed") as world:
        world.add([GRIM, ELARA], [KNOWS])
        with pytest.raises(StoreUnavailable, match="cannot be reached") as told, world.storage.changing():
            world.update_entity(GRIM.id, {"mood": "calm"})
            bolt_server.kill()
            world.delete_entity(ELARA.id)
        assert "canary" not in str(told.value) and bolt_server.password not in str(told.value)
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            world.identity_snapshot(GRIM.id)
        bolt_server.start()
        assert world.find_entities() == (ELARA, GRIM) and world.get_relationships(GRIM.id)[0].key == KNOWS.key
        world.update_entity(GRIM.id, {"mood": "calm"})
        assert world.get_entity(GRIM.id).attributes["mood"] == "calm"
