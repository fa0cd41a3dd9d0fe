"""The game master's review: what waits, and what is told once it was decided."""

from __future__ import annotations

import pytest

from kgot_lab.domains.npc.models import Entity, Provenance, Relationship
from kgot_lab.domains.npc.sessions import WorldReview
from kgot_lab.errors import AlreadyDecided, BadInput

GRIM, ELARA, GUILD = Entity("npc", "Grimjaw"), Entity("npc", "Elara"), Entity("faction", "Guild")


def heard(one, type, other, confidence, session="s1"):
    return Relationship(
        one.id, other.id, type, {}, Provenance(session, confidence=confidence, source="inferred")
    )


@pytest.fixture
def review(world):
    world.add(
        [GRIM, ELARA, GUILD],
        [
            heard(GRIM, "KNOWS", ELARA, 0.4),
            heard(GRIM, "ALLIED_WITH", GUILD, 0.6),
            heard(ELARA, "MEMBER_OF", GUILD, 0.7),
        ],
    )
    return WorldReview(world)


def known(world):
    return {entity.name for entity in world.visible_subgraph(GRIM.id).entities} - {"Grimjaw"}


def test_what_is_not_sure_enough_waits_the_surest_first_and_both_ways_once(review):
    assert [(each.type, each.provenance.confidence, each.standing) for each in review.queue()] == [
        ("ALLIED_WITH", 0.6, "queued"),
        ("KNOWS", 0.4, "queued"),
    ]
    assert known(review.world) == set()


def test_what_is_accepted_is_told_from_then_on_and_stays_so(review):
    for waiting in review.queue():
        review.accept(waiting)
    assert review.queue() == () and known(review.world) == {"Elara", "Guild"}
    assert review.world.get_relationships(GUILD.id)[0].provenance.dm_confirmed, "the other direction too"
    review.world.add_relationship(heard(GRIM, "KNOWS", ELARA, 0.1))
    assert "Elara" in known(review.world)


def test_what_is_rejected_is_not_told_however_often_its_session_says_it(review):
    allied, knows = review.queue()
    review.reject(knows)
    review.world.add_relationship(heard(GRIM, "KNOWS", ELARA, 1.0))
    assert review.queue() == (allied,) and known(review.world) == set()
    assert review.world.neighbours(GRIM.id, types=("KNOWS",)) == ()
    assert review.world.find_path(GRIM.id, ELARA.id, 1) == ()
    review.world.add_relationship(heard(GRIM, "KNOWS", ELARA, 0.7, "s2"))
    assert known(review.world) == {"Elara", "Guild"}, (
        "another session may be believed, and she leads to her guild"
    )
    review.reject(heard(GRIM, "KNOWS", ELARA, 0.7, "s2"))
    assert known(review.world) == set()
    for again in (review.accept, review.reject):
        with pytest.raises(AlreadyDecided, match=r"no longer waits\. It was rejected on"):
            again(knows)
    review.reject(allied)
    assert review.undo().waits and review.queue() == (allied,)


def test_a_decision_on_what_nobody_said_is_one_error(review):
    for wrong, message in (
        (heard(GRIM, "KNOWS", ELARA, 0.4, "s9"), "the session 's9' tells of no relationship 'KNOWS' from"),
        (heard(ELARA, "OWNS", GUILD, 0.4), "the session 's1' tells of no relationship 'OWNS'"),
        ("KNOWS", "what is decided on is a Relationship, as queue"),
    ):
        with pytest.raises(BadInput, match=message):
            review.accept(wrong)
