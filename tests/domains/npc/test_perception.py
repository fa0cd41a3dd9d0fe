"""Who is beside a character in a scene is perceived, without being told, as long as it is there."""

from __future__ import annotations

import pytest
from support.npc_places import planted_embedder

from kgot_lab.domains.npc.explanations import why_not
from kgot_lab.domains.npc.layers.memory import WorldLayers, hot_context
from kgot_lab.domains.npc.layers.models import Chunk
from kgot_lab.domains.npc.models import Entity, Provenance, Relationship
from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.domains.npc.sessions import WorldReview
from kgot_lab.domains.npc.visibility import query_entities

GRIM = Entity("npc", "Grim")
LYRA = Entity("player", "Lyra", {"class": "ranger", "secret_knowledge": "the king is dead"})
SPY = Entity("npc", "Spy", {"appearance": "a grey cloak", "plans": "to burn it"})
SWORD = Entity("item", "Sword")
FORGE, CRYPT, GUILD = Entity("location", "Forge"), Entity("location", "Crypt"), Entity("faction", "Guild")
HERE = Relationship(LYRA.id, FORGE.id, "LOCATED_AT")


@pytest.fixture
def scene(world):
    """A forge with Grim, and beside him a player and a spy whom he does not know of, each with its own."""
    ties = [
        (GRIM, "LOCATED_AT", FORGE),
        (LYRA, "LOCATED_AT", FORGE),
        (SPY, "LOCATED_AT", FORGE),
        (SPY, "GUARDS", CRYPT),
        (SPY, "MEMBER_OF", GUILD),
        (LYRA, "KNOWS", SPY),
        (SWORD, "LOCATED_AT", FORGE),
    ]
    world.add(
        [GRIM, LYRA, SPY, SWORD, FORGE, CRYPT, GUILD],
        [Relationship(one.id, other.id, type) for one, type, other in ties],
    )
    return world


def names(world, **policy):
    return [each.name for each in world.sight(GRIM.id, **policy).visible_subgraph().entities]


def context(layers, query="gold"):
    return hot_context(layers.memory(GRIM.id), query, limit=600)


def test_a_character_perceives_the_player_and_others_at_the_same_place_and_what_everybody_sees_of_them(scene):
    assert names(scene) == ["Forge", "Grim", "Lyra", "Spy"]
    sight = scene.sight(GRIM.id)
    assert sight.get_entity(LYRA.id).attributes == {"class": "ranger"}
    assert sight.get_entity(SPY.id).attributes == {"appearance": "a grey cloak"}
    assert "Lyra LOCATED_AT Forge" in query_entities(sight)(near="Lyra").text
    assert names(scene, policy=VisibilityPolicy(perceived_types=())) == ["Forge", "Grim"]


def test_the_place_itself_and_a_passer_by_perceive_nobody(scene):
    assert [each.name for each in scene.visible_subgraph(FORGE.id).entities] == ["Forge"]
    assert [each.name for each in scene.visible_subgraph(SWORD.id).entities] == [
        "Forge",
        "Grim",
        "Lyra",
        "Spy",
        "Sword",
    ]
    scene.delete_relationship(GRIM.id, FORGE.id, "LOCATED_AT")
    scene.add_relationship(Relationship(GRIM.id, FORGE.id, "KNOWS"))
    assert names(scene) == ["Forge", "Grim"], "who knows of the forge is not in it"


def test_who_leaves_is_perceived_no_longer_and_who_comes_back_is(scene):
    layers = WorldLayers(scene, planted_embedder())
    layers.chunks.add([Chunk(LYRA.id, "gold for Lyra", None), Chunk(LYRA.id, "gold of the king", ())])
    here = 'here: Lyra (player): {"class":"ranger"}'
    for _ in range(2):
        there = context(layers)
        assert here in there.text.split("\n") and there.scene.places == (FORGE,)
        assert [(each.text, each.hops) for each in there.passages] == [("gold for Lyra", 2)]
        scene.delete_relationship(*HERE.key)
        gone = context(layers)
        assert "Lyra" not in gone.text and "Lyra" not in repr(gone) and gone.passages == ()
        scene.add_relationship(HERE)


def test_the_text_of_a_scene_tells_that_they_are_here_and_nothing_hidden(scene):
    layers = WorldLayers(scene, planted_embedder())
    layers.chunks.add([Chunk(SPY.id, "gold of the spy", (LYRA.id,))])
    told = context(layers).text
    assert 'here: Spy (npc): {"appearance":"a grey cloak"}' in told
    for hidden in ("king is dead", "burn", "Crypt", "Guild", "KNOWS", "gold"):
        assert hidden not in told


@pytest.mark.parametrize("one", [GRIM, SPY], ids=["its own", "the other's"])
def test_whose_being_there_is_secret_or_waits_for_the_game_master_is_not_perceived(scene, one):
    tie = Relationship(one.id, FORGE.id, "LOCATED_AT", {}, Provenance("s1", confidence=0.3))
    scene.delete_relationship(*tie.key)
    scene.add_relationship(tie)
    assert "Spy" not in names(scene)
    WorldReview(scene).accept(tie)
    assert "Spy" in names(scene)
    scene.add_relationship(Relationship(one.id, FORGE.id, "LOCATED_AT", {"secret": True}, Provenance("s1")))
    assert "Spy" not in names(scene)


def test_who_lies_outside_of_its_knowledge_scope_is_not_perceived(scene):
    scene.update_entity(GRIM.id, {"knowledge_scope": ["player", "location"]})
    assert names(scene) == ["Forge", "Grim", "Lyra"]


def test_why_it_knows_of_who_is_beside_it_is_where_both_are(scene):
    assert (
        repr(why_not(scene, GRIM.id, SPY.id))
        == "Grim knows of Spy: Grim – LOCATED_AT – Forge; Spy – LOCATED_AT – Forge."
    )
    scene.add_relationship(Relationship(SPY.id, FORGE.id, "LOCATED_AT", {"secret": True}))
    found = why_not(scene, GRIM.id, SPY.id)
    assert "Spy – LOCATED_AT – Forge (marked as secret)" in found.broken
    scene.add_relationship(found.missing[0])
    assert "Spy" in names(scene)
