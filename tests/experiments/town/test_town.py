"""The invented town: its author and the program agree on who knows of what, and an evening of play is heard
into it once.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from support.npc_places import at_postgres
from support.town_rows import rows_of

from kgot_lab.domains.npc.explanations import why_not
from kgot_lab.domains.npc.opening import open_world
from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.domains.npc.sessions import WorldReview
from kgot_lab.errors import LLMError
from kgot_lab.memory.extraction import extract_by_schema
from notebooks.town import (
    Competence,
    SimulatedExtractor,
    document_leak,
    fact_outcomes,
    replay_evening,
    said_in,
    settled,
    world_at,
    written_evening,
    written_town,
)

TOWN, EVENING = written_town(), written_evening()
NAMES = {id: key for key, id in TOWN.ids.items()}
FLAWLESS = SimulatedExtractor(said_in(EVENING))
FLAWED = Competence(missed=0.1, invented=0.1, read=0.15, assured=0.5)


def extractor(competence):
    return SimulatedExtractor(said_in(EVENING), competence, names=[entity.name for entity in TOWN.entities])


def sees(world, npc, thing):
    return thing in {entity.id for entity in world.visible_subgraph(npc).entities}


@pytest.fixture(params=["sqlite", "postgres"])
def world(request, tmp_path):
    begins = EVENING.lines[0].at
    if request.param == "sqlite":
        opened = open_world(tmp_path / "town.db", now=lambda: begins)
    else:
        opened = at_postgres(
            request.getfixturevalue("postgres_url"), f"town {tmp_path.name}", now=lambda: begins
        )
    with opened as world:
        yield settled(TOWN, world)


def test_author_and_program_agree_on_every_question_and_on_the_reason(world):
    assert len(TOWN.entities) > 40 and Counter(gold.knows for gold in TOWN.gold) == {True: 13, False: 13}
    for gold in TOWN.gold:
        found = why_not(world, gold.npc, gold.thing)
        asked = NAMES[gold.npc], NAMES[gold.thing]
        assert (found.knows, sees(world, gold.npc, gold.thing)) == (gold.knows, gold.knows), asked
        if gold.knows:
            assert found.way[-1].key == gold.edge, asked
        elif gold.edge:
            assert (gold.edge, gold.why_not) in {
                (each.relationship.key, each.reason) for each in found.breaks
            }, asked
        else:
            assert (found.breaks, found.scope) == ((), gold.why_not == "nothing"), asked


def test_another_policy_does_not_agree_with_the_author():
    looser, world = VisibilityPolicy(knows_depth=2), settled(TOWN)
    assert [
        NAMES[gold.thing]
        for gold in TOWN.gold
        if why_not(world, gold.npc, gold.thing, policy=looser).knows != gold.knows
    ]


def test_the_author_is_right_on_every_moment_of_the_evening_where_nothing_is_misheard():
    assert len(EVENING.lines) > 40 and len({each.knows for each in EVENING.asked}) == 2
    worlds = {at: world_at(TOWN, EVENING, FLAWLESS, at) for at in {each.at for each in EVENING.asked}}
    for asked in EVENING.asked:
        assert sees(worlds[asked.at], asked.npc, asked.thing) == asked.knows, (
            NAMES[asked.npc],
            NAMES[asked.thing],
            asked.at,
        )


@pytest.mark.parametrize("competence", [Competence(), FLAWED], ids=["flawless", "flawed"])
def test_an_evening_that_is_played_again_changes_no_row(world, competence):
    first = replay_evening(world, EVENING, extractor(competence))
    held = rows_of(world)
    second = replay_evening(world, EVENING, extractor(competence))
    assert rows_of(world) == held
    assert sum(len(each.heard.new) for each in first) > 15 and not any(each.heard.new for each in second)
    assert {ruling for each in second for _, ruling in each.decided} <= {"left"}


def test_what_is_sure_is_accepted_without_the_game_master_also_a_lie_and_the_rest_waits_for_a_decision():
    world = settled(TOWN)
    played = replay_evening(world, EVENING, FLAWLESS)
    found = {(outcome.author, outcome.outcome) for outcome in fact_outcomes(world, played)}
    assert found == {
        ("true", "accepted at once"), ("false", "accepted at once"), ("true", "waited, accepted"), ("false", "waited, rejected"),
        ("later", "waited, left"), ("true", "nobody of that name"),
    }  # fmt: skip
    expected = {"before the evening", "evening, line 40"}
    assert {each.provenance.session_id for each in WorldReview(world).queue()} == expected


def test_the_query_of_the_document_tells_secrets_of_the_town_and_the_policy_does_not():
    world = settled(TOWN)
    leak = document_leak(world, TOWN.ids["ilse"])
    assert {"Baron Rudiger", "The River Runners"} <= {entity.name for entity in leak.entities}
    assert ("Brother Odo", "secret_knowledge") in {(each.name, name) for each, name in leak.attributes}
    assert not any(sees(world, TOWN.ids["ilse"], entity.id) for entity in leak.entities)


def standing(world):
    return {
        (relationship.key, relationship.standing)
        for id in NAMES
        for relationship in world.get_relationships(id)
    }


@pytest.mark.extended
def test_an_evening_that_was_stopped_goes_on_to_the_same_end(world):
    whole = settled(TOWN)
    replay_evening(whole, EVENING, FLAWLESS)
    replay_evening(world, EVENING, FLAWLESS, until=EVENING.moment("20:50"))
    replay_evening(world, EVENING, FLAWLESS)
    assert standing(world) == standing(whole) and len(standing(whole)) > len(TOWN.relationships)


def test_each_kind_of_error_shows_and_what_a_line_does_not_say_is_refused():
    world = settled(TOWN)
    found = fact_outcomes(world, replay_evening(world, EVENING, extractor(FLAWED)))
    kinds = Counter((each.author, each.outcome) for each in found)
    assert kinds["true", "missed"] and kinds["not said", "waited, rejected"]
    assert kinds["not said", "accepted at once"]
    assert kinds["not said", "refused: the line does not say it"]
    always = extractor(Competence(invented=1))
    read = [extract_by_schema(always, line.told) for line in EVENING.lines if line.facts]
    assert all(each.refused and not each.triples for each in read)


def test_the_moment_at_which_a_secret_is_told_is_that_of_the_line():
    told = next(line for line in EVENING.lines if "break my word" in line.text).at
    ilse, crypt = TOWN.ids["ilse"], TOWN.ids["crypt"]
    before, after = (world_at(TOWN, EVENING, FLAWLESS, at) for at in (told - timedelta(minutes=1), told))
    assert not sees(before, ilse, crypt) and sees(after, ilse, crypt)


def test_the_simulated_extractor_knows_only_what_it_has_gold_for():
    with pytest.raises(LLMError, match="texts only that it has gold for"):
        extract_by_schema(FLAWLESS, "Ada knows Bob.")
