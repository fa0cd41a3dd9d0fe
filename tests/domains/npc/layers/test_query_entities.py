"""The tool memory.query_entities: it tells what one of those in a world sees, and of what is hidden nothing,
not even that it is there.
"""

from __future__ import annotations

import pytest
from support.loop_script import FEW, WRITE, scripted, votes

from kgot_lab.domains.npc.models import Entity, Relationship
from kgot_lab.domains.npc.visibility import query_entities
from kgot_lab.errors import BadInput, ToolFailed
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import ToolReturned
from kgot_lab.stores import InMemory


@pytest.fixture
def grim(world):
    """What grim sees: elara, whom he knows, and the tower she is in; but not the vault, which he owns in
    secret.
    """
    town = {
        "grim": Entity("npc", "Grim"),
        "elara": Entity(
            "npc", "Elara\nof the Tower", {"occupation": "mage", "secret_knowledge": "the vault"}
        ),
        "tower": Entity("location", "Tower"),
        "vault": Entity("location", "Vault"),
    }
    ties = [
        ("grim", "KNOWS", "elara", {}),
        ("elara", "LOCATED_AT", "tower", {}),
        ("grim", "OWNS", "vault", {"secret": True}),
    ]
    world.add(
        town.values(),
        [Relationship(town[one].id, town[other].id, type, how) for one, type, other, how in ties],
    )
    return world.sight(town["grim"].id)


ELARA = 'Elara of the Tower (npc): {"occupation":"mage"}'
KNOWS = "Grim KNOWS Elara of the Tower"
LIVES = "Elara of the Tower LOCATED_AT Tower"


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ({}, {ELARA, "Grim (npc)", "Tower (location)", KNOWS, LIVES}),
        ({"name": "ELARA"}, {ELARA, KNOWS, LIVES}),
        ({"type": "Location"}, {"Tower (location)", LIVES}),
        ({"near": "tower"}, {ELARA, "Tower (location)", KNOWS, LIVES}),
        ({"near": "Tower", "type": "npc", "name": ""}, {ELARA, KNOWS, LIVES}),
    ],
)
def test_it_tells_who_is_seen_and_how_they_are_related(grim, asked, lines):
    assert set(query_entities(grim)(**asked).text.splitlines()) == lines


def test_what_is_hidden_and_what_is_not_there_are_told_in_the_same_words(grim):
    told = set()
    for asked in (
        {"name": "Vault"},
        {"name": "Nowhere"},
        {"near": "Vault"},
        {"near": "Nowhere"},
        {"type": "item"},
    ):
        with pytest.raises(ToolFailed) as error:
            query_entities(grim)(**asked)
        told.add(str(error.value))
    assert len(told) == 1 and "Vault" not in told.pop()


def test_more_than_fits_is_said_and_what_it_does_not_take_is_refused(grim, world):
    assert query_entities(grim, most=2)().text.splitlines()[-1] == "and 1 more: ask by name, type or near"
    for asked, message in (
        ({"id": grim.npc_id}, "'id' is unknown"),
        ({"name": "a\0b"}, "holds a NUL"),
        ({"near": []}, "near must be a text"),
    ):
        with pytest.raises(ToolFailed, match=message):
            query_entities(grim)(**asked)
    world.delete_entity(grim.npc_id)
    with pytest.raises(ToolFailed, match=f"there is no entity {grim.npc_id}"):
        query_entities(grim)()
    with pytest.raises(BadInput, match="is bound to what one sees"):
        query_entities(world)


def test_the_loop_calls_it_by_its_name(grim):
    call = {"calls": [{"tool": "memory.query_entities", "arguments": {"near": "Grim", "type": "npc"}}]}
    vote = votes(*"IIIRRR")
    model = scripted(vote=vote, merge={"reason": "x"}, write=WRITE, parse={"answer": "x"}, tools=call)
    with InMemory() as store:
        events = list(think("Whom does Grim know?", model, store, [query_entities(grim)], FEW))
    (returned,) = [event for event in events if isinstance(event, ToolReturned)]
    assert set(returned.text.splitlines()) == {ELARA, "Grim (npc)", KNOWS, LIVES}
