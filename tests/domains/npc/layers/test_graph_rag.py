"""GraphRAG: texts near in meaning and in the graph, in one statement on PostgreSQL and by two readings
elsewhere, with one ranking.
"""

from __future__ import annotations

import psycopg
import pytest
from support.npc_places import at_postgres, plant_layers, planted_embedder
from support.npc_planted import WORDS, planted

from kgot_lab.domains.npc.layers.memory import WorldLayers
from kgot_lab.domains.npc.layers.models import Chunk, ContextRanking
from kgot_lab.domains.npc.models import Entity, Relationship
from kgot_lab.domains.npc.opening import PostgresWorld, SQLiteWorld
from kgot_lab.errors import BadInput

RANKINGS = (
    ContextRanking(),
    ContextRanking(hops=None, limit=1000),
    ContextRanking(hops=1, limit=3, weight=0.2),
)


def test_both_engines_rank_the_same(layered):
    """Where many texts are alike to the last digit, since they are of few words."""
    assert isinstance(layered["postgres"].chunks.storage, PostgresWorld)
    assert isinstance(layered["sqlite"].chunks.storage, SQLiteWorld)
    compared = 0
    for seed in range(12):
        world = planted(seed)
        found = []
        for layers in layered.values():
            plant_layers(world, layers)
            found.append(
                [
                    layers.memory(npc).query_with_context(query, scope, ranking=ranking)
                    for npc in world.npcs
                    for query in ("gold and debt", "the forge", *WORDS[:2])
                    for scope in (None, sorted(world.entities)[::2])
                    for ranking in RANKINGS
                ]
            )
        for one, other in zip(*found, strict=True):
            assert [(each.entity, each.text, each.hops) for each in one] == [
                (each.entity, each.text, each.hops) for each in other
            ]
            assert [each.score for each in one] == pytest.approx([each.score for each in other], abs=1e-5)
            compared += len(one) > 1
    assert compared > 100


def test_texts_are_ranked_by_meaning_and_nearness(town):
    layers, ids = town
    found = layers.memory(ids["grim"]).query_with_context("gold")
    assert [(each.text, each.hops) for each in found] == [
        ("gold of grim", 0),
        ("gold of elara", 1),
        ("gold of tower", 2),
        ("debt of grim", 0),
    ], "and the coast is three steps away"
    for each in found:
        assert each.score == pytest.approx(0.7 * each.similarity + 0.3 / (1 + each.hops))
    near = layers.memory(ids["grim"]).query_with_context("gold", ranking=ContextRanking(weight=0))
    assert [each.hops for each in near] == [0, 0, 1, 2]
    far = layers.memory(ids["grim"]).query_with_context(
        "gold", ranking=ContextRanking(hops=3, limit=4, weight=1)
    )
    assert {each.text for each in far} == {f"gold of {name}" for name in ("grim", "elara", "tower", "coast")}


def test_a_scope_is_cut_to_what_is_seen_and_an_empty_one_finds_nothing(town):
    layers, ids = town
    memory = layers.memory(ids["grim"])
    assert [
        each.text
        for each in memory.query_with_context("gold", [ids["tower"], ids["spy"], Entity("npc", "x").id])
    ] == ["gold of tower"]
    assert memory.query_with_context("gold", []) == ()
    assert len(memory.query_with_context("gold")) == 4


def test_who_is_not_there_is_told_so_and_who_knows_nothing_finds_nothing(town):
    layers, ids = town
    memory = layers.memory(ids["spy"])
    layers.chunks.add([Chunk(ids["spy"], "what spy does not know", ())])
    assert memory.query_with_context("gold") == ()
    layers.world.delete_entity(ids["spy"])
    with pytest.raises(BadInput, match=f"^there is no entity {ids['spy']}"):
        memory.query_with_context("gold")
    for odd, message in ((" ", "the question is blank"), (7, "the question is a text")):
        with pytest.raises(BadInput, match=message):
            layers.memory(ids["grim"]).query_with_context(odd)
    with pytest.raises(BadInput, match="'ids' is a list"):
        layers.memory(ids["grim"]).query_with_context("gold", ids["grim"])


def test_graph_rag_is_one_statement_on_the_server(postgres_url, monkeypatch):
    sent = []
    execute = psycopg.Connection.execute
    monkeypatch.setattr(
        psycopg.Connection,
        "execute",
        lambda connection, *asked: sent.append(asked[0]) or execute(connection, *asked),
    )
    with at_postgres(postgres_url, "one statement") as world:
        layers = WorldLayers(world, planted_embedder())
        grim, elara = Entity("npc", "grim"), Entity("npc", "elara")
        world.add([grim, elara], [Relationship(grim.id, elara.id, "KNOWS")])
        layers.chunks.add([Chunk(elara.id, "gold", None)])
        memory = layers.memory(grim.id)
        for scope in (None, [elara.id]):
            sent.clear()
            assert [each.text for each in memory.query_with_context("gold", scope)] == ["gold"]
            assert len(sent) == 1


@pytest.fixture
def town(layers):
    """grim KNOWS elara, who is in the tower, which is at the coast; each has a text about gold, grim one
    about a debt; spy is unknown.
    """
    town = {
        name: Entity(type, name)
        for name, type in (("grim", "npc"), ("elara", "npc"), ("tower", "location"), ("coast", "location"))
    }
    town["spy"] = Entity("npc", "spy")
    ties = [("grim", "KNOWS", "elara"), ("elara", "LOCATED_AT", "tower"), ("tower", "LOCATED_AT", "coast")]
    layers.world.add(
        town.values(), [Relationship(town[one].id, town[other].id, type) for one, type, other in ties]
    )
    told = [Chunk(each.id, f"gold of {name}", None if name != "spy" else ()) for name, each in town.items()]
    layers.chunks.add(
        [
            *told,
            Chunk(town["grim"].id, "debt of grim", None),
            Chunk(town["tower"].id, "gold that grim hears of never", ()),
        ]
    )
    return layers, {name: each.id for name, each in town.items()}
