"""What may be given to a world, and the one error that says what may not."""

from __future__ import annotations

from datetime import datetime

import pytest
from support.every import every

from kgot_lab.domains.npc.models import (
    Entity,
    EntityFilter,
    Provenance,
    Relationship,
    RelationshipFilter,
    check_id,
)
from kgot_lab.errors import BadInput

HERE, THERE = Entity("npc", "Grimjaw").id, Entity("npc", "Elara").id


def test_an_id_is_made_where_none_is_given_and_written_in_one_way():
    assert HERE != THERE and check_id(HERE.upper()) == HERE
    assert Entity("npc", "Grimjaw", id=HERE.upper().replace("-", "")).id == HERE


def test_a_type_may_be_any_text():
    assert Entity("ship", "The Gull").type == "ship"
    assert Relationship(HERE, THERE, "OWES MONEY TO").type == "OWES MONEY TO"


@every(
    ("given", "message"),
    [
        (lambda: Entity("npc", " "), "the name of an entity is blank"),
        (lambda: Entity("npc", "x" * 401), "has 401 characters: say it in 400 or fewer"),
        (lambda: Entity("", "Grimjaw"), "the type of an entity is blank"),
        (lambda: Entity("npc", 3), "is a text, not 3"),
        (lambda: Entity("npc", "Grim\0jaw"), "holds a NUL"),
        (
            lambda: Entity("npc", "Grimjaw", id="grim"),
            "the id of an entity is a UUID, such as .* which 'grim' is not",
        ),
        (lambda: Entity("npc", "Grimjaw", id=None), "'id' is a text, not None"),
        (lambda: Entity("npc", "Grimjaw", "strong"), "'attributes' is a dictionary"),
        (lambda: Entity("npc", "Grimjaw", {3: "three"}), "the name of an attribute of an entity is a text"),
        (lambda: Entity("npc", "Grimjaw", {"age": float("nan")}), "not JSON and cannot be kept"),
        (lambda: Entity("npc", "Grimjaw", {"age": {1, 2}}), "not JSON and cannot be kept"),
        (lambda: Entity("npc", "Grimjaw", {"said": ["a\0b"]}), "holds a null byte"),
        (
            lambda: Entity("npc", "Grimjaw", {"knowledge_scope": "location"}),
            "'knowledge_scope' of an entity is a list of texts",
        ),
        (
            lambda: Entity("npc", "Grimjaw", {"public": ["mood", 3]}),
            "'public' of an entity is a list of texts",
        ),
        (lambda: Relationship(HERE, "there", "KNOWS"), "a UUID"),
        (lambda: Relationship(HERE, THERE, ""), "the type of a relationship is blank"),
        (
            lambda: Relationship(HERE, THERE, "KNOWS", {"secret": "yes"}),
            "'secret' of a relationship is true or false",
        ),
        (
            lambda: Relationship(HERE, THERE, "KNOWS", provenance=0.9),
            "'provenance' is a Provenance",
        ),
        (lambda: Provenance(confidence=1.1), "a number from 0 to 1, not 1.1"),
        (lambda: Provenance(source="guessed"), "unknown source of a provenance"),
        (lambda: Provenance(timestamp=datetime(2026, 2, 20)), "without a time zone"),
        (lambda: Provenance(dm_confirmed=1), "'dm_confirmed' is True or False, not 1"),
        (lambda: EntityFilter(types="npc"), "types are texts in a tuple"),
        (lambda: RelationshipFilter(direction="up"), "unknown direction 'up'"),
        (lambda: RelationshipFilter(min_confidence=7), "min_confidence is a number from 0 to 1"),
        (lambda: RelationshipFilter(standing="known"), "unknown standing 'known'"),
    ],
)
def test_what_does_not_fit_is_one_clear_error(given, message):
    with pytest.raises(BadInput, match=message):
        given()


def test_a_backslash_that_looks_like_a_nul_is_a_text_like_any_other():
    assert Entity("npc", "Grimjaw", {"said": "\\u0000"}).attributes == {"said": "\\u0000"}


def test_half_a_surrogate_pair_is_refused_in_a_name_and_in_attributes():
    for name, attributes in (("Grim\ud800", {}), ("Grim", {"said": ["\ud800"]})):
        with pytest.raises(BadInput, match="half a surrogate pair"):
            Entity("npc", name, attributes)
