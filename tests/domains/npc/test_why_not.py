"""Why someone does not know: in planted worlds what is said to be missing is missing, and with it the thing
is known.
"""

from __future__ import annotations

import random

import pytest
from support.npc_oracle import may_see
from support.npc_places import plant
from support.npc_planted import planted

from kgot_lab.domains.npc.explanations import why_not
from kgot_lab.domains.npc.models import Entity, Provenance, Relationship
from kgot_lab.domains.npc.opening import open_world
from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.domains.npc.sessions import WorldReview
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.errors import BadInput

WORLDS = 12
POLICIES = [
    VisibilityPolicy(),
    VisibilityPolicy(knows_depth=2),
    VisibilityPolicy(spreading=("KNOWS", "OWNS")),
]


class Undone(Exception):
    """Ends a change that is to leave nothing."""


def is_known(world: NpcWorld, npc: str, thing: str, policy: VisibilityPolicy) -> bool:
    return thing in {entity.id for entity in world.visible_subgraph(npc, policy=policy).entities}


def is_known_with(
    world: NpcWorld, added: Relationship, npc: str, thing: str, policy: VisibilityPolicy
) -> bool:
    """Whether a thing would be known with one more relationship, which is taken back again."""
    known = False
    with pytest.raises(Undone), world.storage.changing():
        world.add_relationship(added)
        known = is_known(world, npc, thing, policy)
        raise Undone
    return known


@pytest.mark.parametrize("policy", POLICIES, ids=["as it is", "KNOWS leads two steps", "other types spread"])
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_with_what_is_missing_a_thing_is_known_and_without_it_it_is_not(engine, policy, fields):
    world, tried = fields[engine], 0
    for seed in range(WORLDS if engine == "sqlite" else 2):
        there = planted(seed)
        plant(there, world)
        for npc in there.npcs:
            for thing in random.Random(seed).sample(sorted(there.entities), 4):
                found = why_not(world, npc, thing, policy=policy)
                assert found.knows == is_known(world, npc, thing, policy), (seed, found)
                assert bool(found.missing) == (not found.knows and found.scope), (seed, found)
                for added in found.missing:
                    assert is_known_with(world, added, npc, thing, policy), (seed, found, added)
                    tried += 1
    assert tried > 5


def test_who_is_said_to_know_is_who_the_oracle_lets_know_and_the_way_is_a_way():
    with open_world() as world:
        for seed in range(WORLDS):
            there = planted(seed)
            plant(there, world)
            told = {(edge.source, edge.target, edge.type) for edge in there.edges if edge.accepted}
            for npc in there.npcs:
                found = {id: why_not(world, npc, id) for id in there.entities}
                assert {id for id, each in found.items() if each.knows} == may_see(there, npc)[0]
                for id, each in found.items():
                    ends = [npc, *(step.target_id for step in each.way)]
                    if each.way and each.way[-1].source_id == id:  # who is beside it is where it is
                        assert [step.type for step in each.way] == ["LOCATED_AT"] * 2
                        assert ends[1] == ends.pop() and each.way[0].source_id == npc
                        ends[-1] = id
                    else:
                        assert [step.source_id for step in each.way] == ends[:-1]
                    assert {step.key for step in each.way} <= told
                    assert not each.knows or ends[-1] == id


def test_what_nobody_adds_alone_makes_a_thing_known_where_it_lies_outside_of_scope():
    me, thing = Entity("npc", "Ada", {"knowledge_scope": ["npc"]}), Entity("item", "key")
    with open_world() as world:
        world.add([me, thing])
        found = why_not(world, me.id, thing.id)
        assert not found.knows and not found.scope and found.missing == ()
        world.add_relationship(Relationship(me.id, thing.id, "KNOWS"))
        assert not why_not(world, me.id, thing.id).knows
        assert (
            repr(why_not(world, me.id, thing.id))
            == "Ada does not know of key: it lies outside of knowledge_scope."
        )


@pytest.mark.parametrize(
    ("attributes", "confidence", "rejected", "reason"),
    [
        ({"secret": True}, 1, False, "secret"),
        ({"hidden": True}, 1, False, "secret"),
        ({}, 0.5, False, "waits"),
        ({}, 0.5, True, "rejected"),
    ],
)
def test_what_is_there_and_not_told_is_named_and_would_do_if_it_were_told(
    attributes, confidence, rejected, reason
):
    me, thing = Entity("npc", "Ada"), Entity("npc", "Bob")
    tie = Relationship(me.id, thing.id, "KNOWS", attributes, Provenance("monday", confidence=confidence))
    with open_world() as world:
        world.add([me, thing], [tie])
        if rejected:
            WorldReview(world).reject(tie)
        found = why_not(world, me.id, thing.id)
        assert [(each.relationship.key, each.reason) for each in found.breaks] == [(tie.key, reason)]
        assert [each.key for each in found.missing] == [tie.key]
        world.add_relationship(found.missing[0])
        assert why_not(world, me.id, thing.id).knows


def test_an_end_that_is_not_there_is_said():
    me = Entity("npc", "Ada")
    with open_world() as world:
        world.add([me])
        assert repr(why_not(world, me.id, me.id)) == "Ada knows of Ada."
        with pytest.raises(BadInput, match="there is no entity"):
            why_not(world, me.id, "00000000-0000-4000-8000-000000000000")
