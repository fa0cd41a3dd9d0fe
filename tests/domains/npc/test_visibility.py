"""Who may know what: planted worlds in which every hidden text is searched for, policies that are wrong, and
each rule by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.npc_asking import told_too_much
from support.npc_oracle import may_see
from support.npc_places import plant
from support.npc_planted import TYPES, canaries, planted

from kgot_lab.domains.npc import opening, policy
from kgot_lab.domains.npc import visibility as visible_in_python
from kgot_lab.domains.npc import visibility as visible_there
from kgot_lab.domains.npc.models import Entity, EntityFilter, Provenance, Relationship
from kgot_lab.domains.npc.policy import DEFAULT_POLICY, PUBLIC_ATTRIBUTES, VisibilityPolicy
from kgot_lab.errors import BadInput

WORLDS = 16  # on each engine; benchmarks/npc/npc_visibility.py looks into a thousand
ENGINES = ["sqlite", "postgres"]


@pytest.mark.parametrize("engine", ENGINES)
def test_nobody_is_told_what_it_may_not_know(engine, fields):
    asked = 0
    for seed in range(WORLDS):
        world = planted(seed)
        plant(world, fields[engine])
        for npc in world.npcs:
            assert told_too_much(fields[engine], world, npc) == [], f"world {seed}"
            asked += 1
    assert asked > 2 * WORLDS, "most worlds have several who ask"


def test_in_a_few_worlds_in_memory_everybody_is_told_what_they_may_know():
    with opening.open_world() as there:
        for seed in range(3):
            plant(world := planted(seed), there)
            assert [told_too_much(there, world, npc) for npc in world.npcs] == [[]] * len(world.npcs)


def test_both_engines_tell_the_same(fields):
    for seed in range(WORLDS // 4):
        world = planted(seed)
        seen = []
        for field in fields.values():
            plant(world, field)
            seen.append(
                [
                    (npc, field.sight(npc).visible_subgraph(), field.identity_snapshot(npc))
                    for npc in world.entities
                ]
            )
        assert seen[0] == seen[1], f"world {seed}"


# --- wrong policies ---


def in_sql(before: str, after: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Install another statement."""

    def install(patch: pytest.MonkeyPatch) -> None:
        assert before in visible_there.VISIBLE
        patch.setattr(opening, "VISIBLE", visible_there.VISIBLE.replace(before, after))

    return install


def in_python(name: str, other: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """Install another rule."""
    return lambda patch: patch.setattr(visible_in_python, name, other)


def both(name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """Install another value that both programs read."""

    def install(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(policy, name, value)
        patch.setattr(visible_there, name, value)

    return install


WIDER = {**PUBLIC_ATTRIBUTES, "npc": ("appearance", "mood")}
WRONG = {
    "what an acquaintance knows": VisibilityPolicy(knows_depth=2),
    "HOSTILE_TO and OWNS spread": VisibilityPolicy(spreading=(*policy.SPREADING_TYPES, "HOSTILE_TO", "OWNS")),
    "things at a place are perceived": VisibilityPolicy(perceived_types=TYPES),
    "KNOWS is public": VisibilityPolicy(public_types=(*policy.PUBLIC_TYPES, "KNOWS")),
    "an attribute too many is public": VisibilityPolicy(public_attributes=WIDER),
    "marks are overlooked": (
        in_python("is_public_relationship", lambda relationship: relationship.standing == "accepted"),
        in_sql(" AND NOT r.secret", ""),
    ),
    "what waits for review counts": (
        in_python(
            "is_public_relationship",
            lambda relationship: not {"secret", "hidden"} & relationship.attributes.keys(),
        ),
        in_sql("r.standing = 'accepted' AND ", ""),
    ),
    "the scope is overlooked": (
        in_python("is_in_scope", lambda entity, me: True),
        in_sql("me.scope IS NULL", "true"),
    ),
    "others are seen whole": (
        in_python("public_form_of_entity", lambda entity, policy: entity),
        in_sql("CASE WHEN e.self THEN e.attributes", "CASE WHEN true THEN e.attributes"),
    ),
    "who said it is told of others": (
        in_python("public_form_of_relationship", lambda relationship: relationship),
        in_sql("CASE WHEN source.self THEN r.provenance", "CASE WHEN true THEN r.provenance"),
    ),
    "a list of public attributes opens secret knowledge": (
        both("NEVER_PUBLIC", ("knowledge_scope", "public")),
    )
    * 2,
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_policy_that_is_wrong_is_caught(wrong, engine, fields, monkeypatch):
    installed, used = WRONG[wrong], DEFAULT_POLICY
    if isinstance(installed, VisibilityPolicy):
        used = installed
    else:
        installed[ENGINES.index(engine)](monkeypatch)
    for seed in range(WORLDS):
        world = planted(seed)
        plant(world, fields[engine])
        if any(
            " tells " in each
            for npc in world.npcs
            for each in told_too_much(fields[engine], world, npc, used)
        ):
            return
    pytest.fail(f"in {WORLDS} worlds nothing was told that may not be")


# --- what the query of the document tells ---


def test_the_query_of_the_document_tells_secrets(fields):
    """Of the planted worlds, the same on both engines: everyone's attributes whole, what acquaintances know,
    and what is marked.
    """
    told: dict[str, set[str]] = {"sqlite": set(), "postgres": set()}
    for engine, field in fields.items():
        for seed in range(5):
            world = planted(seed)
            plant(world, field)
            for npc in world.npcs:
                seen = field.visible_subgraph(npc, policy="document")
                told[engine] |= canaries(seen) - may_see(world, npc)[2]
                assert seen.relationships == ()
    assert told["sqlite"] == told["postgres"] and len(told["sqlite"]) > 20


@pytest.fixture
def town(world):
    """The town of the rules below, by name: grim is the one who asks."""
    names = {
        **dict.fromkeys(("grim", "elara", "elara_secret", "foe", "spy", "stranger"), "npc"),
        **dict.fromkeys(("hideout", "tower", "coast"), "location"),
        **dict.fromkeys(("guild", "order"), "faction"),
        "sword": "item",
    }
    town = {
        name: Entity(type, name, {"secret_knowledge": f"{name} knows", "appearance": f"{name} looks"})
        for name, type in names.items()
    }
    ties = [
        ("grim", "HOSTILE_TO", "foe", {}),
        ("foe", "LOCATED_AT", "hideout", {}),
        ("grim", "KNOWS", "elara", {"note": "an old friend"}),
        ("elara", "KNOWS", "elara_secret", {}),
        ("elara", "LOCATED_AT", "tower", {"note": "for a reason", "since": "May", "public": ["since"]}),
        ("tower", "LOCATED_AT", "coast", {}),
        ("grim", "MEMBER_OF", "guild", {}),
        ("guild", "ALLIED_WITH", "order", {"secret": True}),
        ("grim", "OWNS", "sword", {"hidden": True}),
        ("spy", "KNOWS", "grim", {}),
        ("spy", "MEMBER_OF", "guild", {}),
    ]
    world.add(
        town.values(),
        [Relationship(town[one].id, town[other].id, type, how) for one, type, other, how in ties],
    )
    world.add_relationship(
        Relationship(town["grim"].id, town["stranger"].id, "KNOWS", {}, Provenance("s1", confidence=0.69))
    )
    return {name: entity.id for name, entity in town.items()}


def seen_names(world, npc, **how):
    return {entity.name for entity in world.visible_subgraph(npc, **how).entities}


def test_what_is_seen_is_found_by_asking_for_it_and_nothing_by_what_is_hidden(world, town):
    sight = world.sight(town["grim"])
    for asked, found in (
        ({"appearance": "elara looks"}, ["elara"]),
        ({"secret_knowledge": "grim knows"}, ["grim"]),
        ({"secret_knowledge": "elara knows"}, []),
    ):
        assert [entity.name for entity in sight.find_entities(EntityFilter(attributes=asked))] == found
    assert [relationship.type for relationship in sight.get_relationships(town["elara"])] == ["LOCATED_AT"]
    assert len(sight.find_path(town["grim"], town["coast"])) == 4
    assert [(neighbour.entity.name, neighbour.depth) for neighbour in sight.neighbours(town["elara"], 3)] == [
        ("tower", 1),
        ("coast", 2),
    ]


def test_what_is_hidden_and_what_is_not_there_are_told_in_the_same_words(world, town):
    sight, nowhere = world.sight(town["grim"]), Entity("npc", "nobody").id
    for ask in (
        sight.get_entity,
        sight.get_relationships,
        sight.neighbours,
        lambda id: sight.find_path(town["grim"], id),
        lambda id: sight.find_path(id, town["grim"]),
        sight.identity_snapshot,
        sight.visible_subgraph,
    ):
        told = []
        for id in (town["hideout"], nowhere):
            with pytest.raises(BadInput) as error:
                ask(id)
            told.append(str(error.value).replace(id, "it"))
        assert told[0] == told[1] and "hideout" not in told[0]


def test_who_is_deleted_while_asked_is_told_of_once(world, town):
    sight = world.sight(town["grim"])
    world.delete_entity(town["elara"])
    assert seen_names(world, town["grim"]) == {"grim", "foe", "guild"}
    world.delete_entity(town["grim"])
    for ask in (
        sight.visible_subgraph,
        sight.identity_snapshot,
        sight.find_entities,
        lambda: sight.get_entity(town["guild"]),
    ):
        with pytest.raises(BadInput, match=f"^there is no entity {town['grim']}"):
            ask()


def test_a_policy_that_fits_none_is_refused(world, town):
    for made, message in (
        (lambda: VisibilityPolicy(knows_depth=0), "knows_depth must be 1 or more"),
        (lambda: VisibilityPolicy(knows_depth=10**9), "knows_depth must be 1 or more, at most 100"),
        (
            lambda: VisibilityPolicy(public_attributes={"npc": ("secret_knowledge",)}),
            "'secret_knowledge' is never public",
        ),
        (lambda: VisibilityPolicy(spreading="KNOWS"), "'spreading' is a list"),
        (lambda: world.visible_subgraph(town["grim"], policy="all"), 'or "document", not'),
        (
            lambda: world.sight(town["grim"], policy="document"),
            "'policy' is a VisibilityPolicy",
        ),
    ):
        with pytest.raises(BadInput, match=message):
            made()
