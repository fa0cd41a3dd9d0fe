"""What was said in a session, decided by the game master or moved is taken back, in a file and on a server."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

import psycopg
import pytest
from support.npc_places import at_postgres, planted_embedder

from kgot_lab.domains.npc.explanations import why_not
from kgot_lab.domains.npc.layers.memory import WorldLayers
from kgot_lab.domains.npc.layers.models import Chunk
from kgot_lab.domains.npc.models import Entity, Provenance, Relationship, RelationshipFilter
from kgot_lab.domains.npc.opening import open_world
from kgot_lab.domains.npc.sessions import WorldReview, import_statements
from kgot_lab.errors import AlreadyDecided, BadInput
from kgot_lab.types import Triple

ODO, NELL, GUILD = Entity("npc", "Odo", {"mood": "calm"}), Entity("npc", "Nell"), Entity("faction", "Guild")
FORGE, CRYPT = Entity("location", "Forge"), Entity("location", "Crypt")
MONDAY = [Triple("Odo", "knows", "Nell", 0.9), Triple("Nell", "allied with", "Guild", 0.4)]


@pytest.fixture
def town(world):
    world.add([ODO, NELL, GUILD, FORGE, CRYPT])
    return world


def state(world):
    """All that is in a world but when it was changed."""
    ties = [world.get_relationships(each.id) for each in world.find_entities()]
    supports = [world.support(*tie.key) for of_one in ties for tie in of_one]
    attributes = [(each.attributes, each.standing) for of_one in ties for each in of_one]
    return world.find_entities(), ties, attributes, supports


def test_a_session_is_taken_back_and_brought_back_exactly(town):
    before = state(town)
    heard = import_statements(town, MONDAY, Provenance("monday"))
    after = state(town)
    undone = town.undo(heard.change, by="Grace")
    assert state(town) == before and (undone.erased, undone.overtaken) == (0, ())
    town.undo(undone.change)
    assert state(town) == after
    assert [(each.action, each.by, each.of) for each in town.log()] == [
        ("add", "", ()),
        ("add", "monday", ("monday",)),
        ("undo", "Grace", ()),
        ("undo", "", ("monday",)),
    ]


def test_what_another_session_says_too_stays(town):
    first = import_statements(town, MONDAY[:1], Provenance("monday"))
    import_statements(town, MONDAY[:1], Provenance("tuesday"))
    town.undo(first.change)
    ((said, standing),) = town.support(ODO.id, NELL.id, "KNOWS")
    assert (said.session_id, standing) == ("tuesday", "accepted")


def test_a_decision_of_the_game_master_is_taken_back_and_its_statement_waits_again(town):
    import_statements(town, MONDAY, Provenance("monday"))
    review = WorldReview(town, "Grace")
    (waiting,) = review.queue()
    before = state(town)
    one, other = ("Nell", "Guild") if waiting.source_id == NELL.id else ("Guild", "Nell")
    for verdict, risen in (("accept", [(one, "ALLIED_WITH", other)]), ("reject", [])):
        effect = review.decide(waiting, verdict)
        assert [fact.identity for fact in effect.risen] == risen and review.queue() == ()
        with pytest.raises(
            AlreadyDecided, match=f"'{one} – ALLIED_WITH – {other}' no longer waits. It was {verdict}ed by G"
        ):
            review.decide(waiting, "reject")
        assert review.undo().facts == effect.risen and review.undo() is None
        assert review.queue() == (waiting,) and state(town) == before


def test_an_undo_names_the_later_changes_that_must_be_undone_first(town):
    empty = state(town)
    heard = import_statements(town, MONDAY, Provenance("monday"))
    review = WorldReview(town)
    decided = review.accept(review.queue()[0]).change
    with pytest.raises(BadInput, match=f"was changed again since, by {decided}: undo that first"):
        town.undo(heard.change)
    town.undo(decided)
    town.undo(heard.change)
    assert state(town) == empty and review.queue() == ()

    ann = Entity("npc", "Ann")
    added = town.add_entity(ann)
    tied = town.add_relationship(Relationship(ann.id, ODO.id, "KNOWS"))
    before = state(town)
    with pytest.raises(BadInput, match=rf"on which change {tied} builds: undo that first"):
        town.undo(added)
    assert state(town) == before
    undone = town.undo(tied)
    town.undo(added)
    with pytest.raises(BadInput, match=f"there is no entity {ann.id}"):
        town.undo(undone.change)


def test_what_cannot_be_undone_is_one_error(town):
    change = town.update_entity(ODO.id, {"mood": "grim"})
    assert town.update_entity(ODO.id, {"mood": "grim"}) is None, "nothing was changed"
    town.undo(change)
    assert town.get_entity(ODO.id).attributes == {"mood": "calm"}
    with pytest.raises(BadInput, match=f"change {change} was undone, last by change {change + 1}"):
        town.undo(change)
    with pytest.raises(BadInput, match="there is no change 99: the log"):
        town.undo(99)
    town.delete_entity(NELL.id)
    with pytest.raises(BadInput, match="erased something, which nothing brings back"):
        town.undo(town.log()[-1].change)
    assert NELL.id not in str(town.storage.rows("SELECT * FROM versions"))
    layers = WorldLayers(town, planted_embedder())
    ann = Entity("npc", "Ann")
    added = town.add_entity(ann)
    layers.chunks.add([Chunk(ann.id, "gold", None)])
    with pytest.raises(BadInput, match="there are texts about the entity"):
        town.undo(added)


def test_who_comes_to_another_place_is_no_longer_at_the_first_and_the_history_stays(town):
    def at(place, **how):
        return Relationship(ODO.id, place.id, "LOCATED_AT", {}, Provenance(**how))

    town.add([], [at(FORGE)])
    town.add_relationship(at(CRYPT, session_id="rumour", confidence=0.2))
    standings = {tie.target_id: tie.standing for tie in town.get_relationships(ODO.id)}
    assert standings == {FORGE.id: "accepted", CRYPT.id: "queued"}, "a rumour that waits ends nothing"
    moved = town.add_relationship(at(CRYPT, session_id="monday"))
    ties = town.get_relationships(ODO.id)
    assert {tie.target_id: tie.standing for tie in ties} == {FORGE.id: "ended", CRYPT.id: "accepted"}
    assert [each.entity.name for each in town.neighbours(ODO.id)] == ["Crypt"]
    assert [each.name for each in town.visible_subgraph(ODO.id).entities] == ["Crypt", "Odo"]
    assert "ended when it came to another place" in repr(why_not(town, ODO.id, FORGE.id))
    (left,) = town.get_relationships(ODO.id, RelationshipFilter(standing="ended"))
    assert left.key == at(FORGE).key
    back = import_statements(town, [Triple("Odo", "located at", "Forge")], Provenance())
    assert len(back.new) == 1
    assert [each.name for each in town.visible_subgraph(ODO.id).entities] == ["Forge", "Odo"]
    for change, there, elsewhere in ((back.change, "Crypt", "Forge"), (moved, "Forge", "Crypt")):
        undone = town.undo(change)
        assert undone.risen == (Triple("Odo", "LOCATED_AT", there),), "the report has what is true again"
        assert undone.facts == (Triple("Odo", "LOCATED_AT", elsewhere),)
        assert str(undone) == "1 fact fell; 1 fact began to hold"
    assert {tie.target_id: tie.standing for tie in town.get_relationships(ODO.id)} == standings


def test_places_that_one_change_adds_stand_beside_each_other(town):
    town.add([], [Relationship(ODO.id, place.id, "LOCATED_AT") for place in (FORGE, CRYPT)])
    assert {tie.standing for tie in town.get_relationships(ODO.id)} == {"accepted"}


def test_changes_are_undone_after_a_file_was_opened_again(tmp_path):
    with open_world(tmp_path / "town.db") as world:
        world.add([ODO, NELL])
        before, heard = state(world), import_statements(world, MONDAY[:1], Provenance("monday"))
    with open_world(tmp_path / "town.db") as world:
        undone = world.undo(heard.change)
        assert state(world) == before
    with open_world(tmp_path / "town.db") as world:
        world.undo(undone.change)
        assert [tie.type for tie in world.get_relationships(ODO.id)] == ["KNOWS"]


def test_a_file_of_the_version_before_has_a_history_from_its_next_change_on(tmp_path):
    path = tmp_path / "town.db"
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with open_world(path, now=lambda: at) as world:
        world.add([ODO, NELL], [Relationship(ODO.id, NELL.id, "KNOWS", {"since": "May"})])
        before = state(world)
    with sqlite3.connect(path) as file:  # as version 1 left it
        for table in ("changes", "versions"):
            file.execute(f"DROP TABLE {table}")
            file.execute("DELETE FROM checksums WHERE name LIKE ?", (f"%{table}%",))
        file.execute("DELETE FROM checksums WHERE name LIKE 'definition%'")
        file.execute("PRAGMA user_version = 1")
    file.close()
    with open_world(path) as world:
        assert state(world) == before and world.log() == ()
        changes = [
            world.update_entity(ODO.id, {"mood": None, "hunger": 1}),
            world.add_relationship(Relationship(ODO.id, NELL.id, "KNOWS", {"since": "June"})),
        ]
    with open_world(path) as world:
        for change in changes:
            world.undo(change)
        assert state(world) == before


def test_a_schema_of_the_version_before_has_a_history_from_its_next_change_on(postgres_url):
    def opened():
        return at_postgres(postgres_url, "an older town")

    with opened() as world:
        world.add([ODO, NELL], [Relationship(ODO.id, NELL.id, "KNOWS")])
        before = state(world)
    with psycopg.connect(postgres_url, autocommit=True) as server:  # as version 1 left it
        for table in ("changes", "versions"):
            server.execute(f'DROP TABLE "an older town".{table}')
        server.execute("""COMMENT ON SCHEMA "an older town" IS 'world of kgot_lab, version 1'""")
    with opened() as world:
        assert state(world) == before and world.log() == ()
        change = world.update_entity(ODO.id, {"mood": "grim"})
    with opened() as world:
        world.undo(change)
        assert state(world) == before
