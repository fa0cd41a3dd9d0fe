"""What was said becomes relationships among those it names."""

from __future__ import annotations

import pytest

from kgot_lab.domains.npc.models import Entity, Provenance
from kgot_lab.domains.npc.sessions import import_statements
from kgot_lab.errors import BadInput
from kgot_lab.types import Triple


@pytest.fixture
def people(world):
    made = {
        name: Entity("npc", name) for name in ("Brother Odo", "Odo", "Captain Vetch", "Old Nell", "Old Harl")
    }
    world.add(made.values())
    return made


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("captain vetch", "Captain Vetch"),
        ("the Captain", "Captain Vetch"),
        ("Odo", "Odo"),
        ("Old", None),
        ("Gerrit", None),
        ("the", None),
    ],
)
def test_an_end_is_the_entity_of_that_name_or_the_only_one_whose_name_holds_it(name, meant, world, people):
    triple = Triple("Brother Odo", "is afraid of", name, 0.8)
    heard = import_statements(world, [triple], Provenance("monday"))
    assert [each.key for each in heard.new] == (
        [(people["Brother Odo"].id, people[meant].id, "IS_AFRAID_OF")] if meant else []
    )
    assert heard.unplaced == (() if meant else (triple,))


def test_what_is_sure_is_accepted_and_what_is_not_waits_and_a_session_says_it_once(world, people):
    triples = [Triple("Odo", "knows", "Old Nell", 0.9), Triple("Odo", "owns", "Old Harl", 0.4)]
    first, again = (import_statements(world, triples, Provenance("monday")) for _ in range(2))
    assert len(first.new) == 2 and again.new == () and len(again.known) == 2
    assert {
        (relationship.type, relationship.standing)
        for relationship in world.get_relationships(people["Odo"].id)
    } == {
        ("KNOWS", "accepted"),
        ("OWNS", "queued"),
    }
    import_statements(world, triples[:1], Provenance("tuesday"))
    assert len(world.support(people["Odo"].id, people["Old Nell"].id, "KNOWS")) == 2


def test_what_is_no_triple_is_refused(world):
    with pytest.raises(BadInput, match="each item a Triple"):
        import_statements(world, [("Odo", "knows", "Ilse")], Provenance("s1"))


def test_nobody_is_related_to_itself(world, people):
    triple = Triple("Captain Vetch", "knows", "Vetch")
    assert import_statements(world, [triple], Provenance("monday")).unplaced == (triple,)
