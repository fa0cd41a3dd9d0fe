"""The contract of a world, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kgot_lab.domains.npc import statements
from kgot_lab.domains.npc.models import (
    Entity,
    EntityFilter,
    Provenance,
    Relationship,
    RelationshipFilter,
)
from kgot_lab.domains.npc.statements import row_key
from kgot_lab.errors import BadInput

ANY_WAY = RelationshipFilter(direction="both")


@pytest.fixture
def three(world):
    """Three entities of a world, added."""
    entities = [
        Entity("npc", "Grimjaw", {"occupation": "blacksmith"}),
        Entity("npc", "Elara"),
        Entity("location", "Ironhold"),
    ]
    world.add(entities)
    return entities


def tied(one, other, type="KNOWS", attributes=None, **provenance):
    return Relationship(one.id, other.id, type, attributes or {}, Provenance(**provenance))


def test_an_entity_is_found_again_as_it_was_added(world):
    attributes = {
        "age": 40,
        "height": 1.5e300,
        "mad": False,
        "titles": ["smith", {"of": "Ironhold"}],
        "🗡": -0.0,
    }
    grim = Entity("npc", "Grímjaw 🗡", attributes)
    world.add_entity(grim)
    found = world.get_entity(grim.id)
    assert found == grim and sorted(map(repr, found.attributes.items())) == sorted(
        map(repr, attributes.items())
    ), "also -0.0 and 1e300"
    assert world.get_entity(grim.id.upper()).created_at == world.get_entity(grim.id).updated_at


def test_an_entity_added_again_takes_on_what_comes_and_says_when(world, three):
    grim = three[0]
    before = world.get_entity(grim.id)
    world.add_entity(
        Entity(
            "player",
            "Grim",
            {"mood": {"now": "calm", "then": None}, "occupation": None, "none": None},
            grim.id,
        )
    )
    after = world.get_entity(grim.id)
    assert (after.type, after.name, after.attributes) == (
        "player",
        "Grim",
        {"mood": {"now": "calm", "then": None}},
    )
    assert after.created_at == before.created_at and after.updated_at > before.updated_at


def test_an_update_changes_attributes_by_key_and_none_takes_one_away(world, three):
    grim = three[0]
    world.update_entity(grim.id, {"mood": "calm", "occupation": None})
    assert world.get_entity(grim.id).attributes == {"mood": "calm"}
    assert world.get_entity(grim.id).updated_at > world.get_entity(grim.id).created_at
    with pytest.raises(BadInput, match="a list of texts"):
        world.update_entity(grim.id, {"public": "mood"})


def test_entities_are_found_by_type_name_and_attributes(world, three):
    grim, elara, ironhold = three
    assert world.find_entities() == (elara, grim, ironhold), "in the order of their names"
    for wanted, found in (
        (EntityFilter(types=("npc",)), (elara, grim)),
        (EntityFilter(name="Grimjaw"), (grim,)),
        (EntityFilter(contains="IRON"), (ironhold,)),
        (EntityFilter(types=("npc", "item"), attributes={"occupation": "blacksmith"}), (grim,)),
        (EntityFilter(attributes={"occupation": "mage"}), ()),
        (EntityFilter(types=("ship",)), ()),
    ):
        assert world.find_entities(wanted) == found


def test_a_relationship_is_found_from_both_ends(world, three):
    grim, elara, ironhold = three
    knows, lives = (
        tied(grim, elara, attributes={"since": "May"}, session_id="s1", confidence=0.85, source="inferred"),
        tied(elara, ironhold, "LOCATED_AT"),
    )
    world.add([], [knows, lives])
    (found,) = world.get_relationships(grim.id)
    assert (found.key, found.attributes, found.standing) == (knows.key, {"since": "May"}, "accepted")
    assert (found.provenance.session_id, found.provenance.confidence, found.provenance.source) == (
        "s1",
        0.85,
        "inferred",
    )
    assert found.provenance.timestamp is not None and found.created_at == found.updated_at
    assert [relationship.key for relationship in world.get_relationships(elara.id, ANY_WAY)] == sorted(
        [knows.key, lives.key]
    )
    assert [
        relationship.key
        for relationship in world.get_relationships(elara.id, RelationshipFilter(direction="in"))
    ] == [knows.key]
    assert world.get_relationships(elara.id, RelationshipFilter(types=("KNOWS",))) == ()
    assert [
        relationship.key
        for relationship in world.get_relationships(grim.id, RelationshipFilter(min_confidence=0.85))
    ] == [knows.key]
    assert world.get_relationships(grim.id, RelationshipFilter(min_confidence=0.86)) == ()


@pytest.mark.parametrize("type", ["ALLIED_WITH", "HOSTILE_TO"])
def test_what_holds_both_ways_is_kept_and_deleted_both_ways(world, three, type):
    grim, elara, _ = three
    world.add_relationship(tied(grim, elara, type, {"since": "May"}))
    for one, other in ((grim, elara), (elara, grim)):
        (found,) = world.get_relationships(one.id)
        assert (found.target_id, found.attributes) == (other.id, {"since": "May"})
    world.delete_relationship(elara.id, grim.id, type)
    assert world.get_relationships(grim.id, ANY_WAY) == ()


def test_a_relationship_takes_on_what_comes_and_says_when(world, three):
    grim, elara, _ = three
    world.add_relationship(tied(grim, elara, attributes={"note": "met", "since": "May"}))
    world.add_relationship(tied(grim, elara, attributes={"note": None, "mood": "warm"}))
    (found,) = world.get_relationships(grim.id)
    assert found.attributes == {"since": "May", "mood": "warm"} and found.updated_at > found.created_at


def test_each_session_supports_a_relationship_for_itself_and_the_best_is_its_summary(world, three):
    grim, elara, _ = three
    world.add_relationship(tied(grim, elara, session_id="s1", confidence=0.5, source="inferred"))
    (found,) = world.get_relationships(grim.id)
    assert found.standing == "queued"
    assert world.get_relationships(grim.id, RelationshipFilter(standing="accepted")) == ()
    world.add_relationship(tied(grim, elara, session_id="s2", confidence=0.7))
    world.add_relationship(tied(grim, elara, session_id="s3", confidence=0.2))
    (found,) = world.get_relationships(grim.id)
    assert (found.standing, found.provenance.session_id, found.provenance.confidence) == (
        "accepted",
        "s2",
        0.7,
    )
    told = [
        (said.session_id, said.confidence, standing)
        for said, standing in world.support(grim.id, elara.id, "KNOWS")
    ]
    assert told == [("s1", 0.5, "queued"), ("s2", 0.7, "accepted"), ("s3", 0.2, "queued")]
    world.add_relationship(tied(grim, elara, session_id="s2", confidence=0.6))
    assert world.get_relationships(grim.id)[0].standing == "queued", (
        "a session that takes back how sure it was"
    )
    world.add_relationship(tied(grim, elara, session_id="s3", confidence=0.1, dm_confirmed=True))
    assert world.get_relationships(grim.id)[0].provenance.dm_confirmed
    world.add_relationship(tied(grim, elara, session_id="s3", confidence=0.1))
    assert world.get_relationships(grim.id)[0].standing == "accepted", (
        "what was confirmed stays so when it is heard again"
    )


def test_deleting_an_entity_takes_its_relationships_and_their_support_along(world, three):
    grim, elara, ironhold = three
    world.add(
        [], [tied(grim, elara), tied(elara, ironhold, "LOCATED_AT"), tied(grim, ironhold, "LOCATED_AT")]
    )
    world.delete_entity(elara.id)
    assert world.find_entities() == (grim, ironhold)
    assert [relationship.target_id for relationship in world.get_relationships(grim.id, ANY_WAY)] == [
        ironhold.id
    ]
    ends = [each.id for each in three]
    told = {"sources": ends, "targets": ends, "types": ["KNOWS", "LOCATED_AT"]}
    world.add_entity(elara)
    assert [row_key(row) for row in world.storage.rows(statements.SUPPORT_AMONG, told)] == [
        (grim.id, ironhold.id, "LOCATED_AT")
    ]


def test_what_is_not_there_is_one_error_everywhere(world, three):
    grim, elara, _ = three
    nobody = Entity("npc", "Nobody")
    for ask in (
        lambda: world.get_entity(nobody.id),
        lambda: world.update_entity(nobody.id, {"mood": "calm"}),
        lambda: world.delete_entity(nobody.id),
        lambda: world.get_relationships(nobody.id),
        lambda: world.neighbours(nobody.id),
        lambda: world.find_path(grim.id, nobody.id),
        lambda: world.find_path(nobody.id, grim.id),
        lambda: world.visible_subgraph(nobody.id),
        lambda: world.visible_subgraph(nobody.id, policy="document"),
        lambda: world.identity_snapshot(nobody.id),
        lambda: world.add_relationship(tied(grim, nobody)),
        lambda: world.add_relationship(tied(nobody, grim, "ALLIED_WITH")),
    ):
        with pytest.raises(BadInput, match=f"^there is no entity {nobody.id}: find_entities"):
            ask()
    for ask in (world.support, world.delete_relationship):
        with pytest.raises(BadInput, match=f"there is no relationship 'KNOWS' from {grim.id} to {elara.id}"):
            ask(grim.id, elara.id, "KNOWS")


def test_many_are_added_all_or_none(world, three):
    grim, elara, _ = three
    with pytest.raises(BadInput, match="there is no entity"):
        world.add([Entity("npc", "New")], [tied(grim, elara), tied(grim, Entity("npc", "Nobody"))])
    for other in (
        Entity("npc", "Other", {}, grim.id),
        replace(grim, type="player"),
        replace(grim, attributes={"a": 2}),
    ):
        with pytest.raises(BadInput, match=f"have the id {grim.id} and contradict each other in "):
            world.add([replace(grim, attributes={"a": 1}), other])
    with pytest.raises(BadInput, match=r"created_at of the entity .* is the time when it is added"):
        world.add([replace(grim, created_at=datetime(1999, 1, 1, tzinfo=UTC))])
    known = tied(grim, elara)
    for given in ({"created_at": datetime(1999, 1, 1, tzinfo=UTC)}, {"standing": "rejected"}):
        with pytest.raises(BadInput, match="has created_at and standing from when it is added"):
            world.add([], [replace(known, **given)])
    with pytest.raises(BadInput, match="each item an Entity"):
        world.add([Entity("npc", "New"), "Newer"])
    assert len(world.find_entities()) == 3 and world.get_relationships(grim.id) == ()
    once = [Entity("npc", "One", {"a": 1}, grim.id), Entity("npc", "One", {"b": 2}, grim.id)]
    world.add(
        once,
        [tied(grim, elara, attributes={"a": 1}), tied(grim, elara, attributes={"b": 2}, session_id="s2")],
    )
    assert world.get_entity(grim.id).attributes == {"occupation": "blacksmith", "a": 1, "b": 2}
    assert world.get_relationships(grim.id)[0].attributes == {"a": 1, "b": 2}
    assert len(world.support(grim.id, elara.id, "KNOWS")) == 2


def test_a_change_that_is_given_up_has_changed_nothing(world, three):
    with pytest.raises(KeyError), world.storage.changing():
        world.delete_entity(three[0].id)
        raise KeyError
    assert len(world.find_entities()) == 3


def test_what_is_put_is_seen_within_the_same_change(world, three):
    grim, elara, _ = three
    with world.storage.changing():
        world.add_relationship(tied(grim, elara))
        assert [neighbour.entity.id for neighbour in world.neighbours(grim.id)] == [elara.id]
        assert {entity.id for entity in world.visible_subgraph(grim.id).entities} == {grim.id, elara.id}
        assert [each.name for each in world.find_path(grim.id, elara.id)] == [grim.name, elara.name]


def test_a_world_has_the_twelve_methods_of_the_document_and_a_view_those_that_read(world, three):
    reading = (
        "get_entity find_entities get_relationships neighbours find_path visible_subgraph identity_snapshot"
    )
    writing = "add_entity update_entity delete_entity add_relationship delete_relationship"
    assert all(callable(getattr(world, name)) for name in f"{reading} {writing}".split())
    view = world.sight(three[0].id)
    assert all(callable(getattr(view, name)) for name in reading.split())
    assert not any(hasattr(view, name) for name in writing.split())
