"""The simulated model: without errors it solves every question in every language, and each rate at 1 breaks
what it is the rate of.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from kgot_lab.retrieval.lexical import bm25
from support.saved_run import save_run

from benchmarks.competence.curves import simulated_ends
from benchmarks.competence.plain_facts import PlainFacts
from benchmarks.competence.simulated import ERROR_RATES, UNANSWERED, Competence, Simulated, made_up
from benchmarks.competence.worlds import World, chain_world
from kgot_lab.errors import BadInput, LLMError
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered, Asked, Event, Refused, Repaired, Started, Voted, Wrote
from kgot_lab.loop.limits import LOCAL, REFERENCE, Limits
from kgot_lab.loop.trace import load_run
from kgot_lab.stores import open_store
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Tool
from kgot_lab.types import Diff, Message, Prompt, Triple

WORLD = chain_world(12, 2)
PRESETS = {"reference": REFERENCE, "local": LOCAL}


def tools(world: World = WORLD) -> list[Tool]:
    return [search(world.documents, bm25(world.documents), k=2)]


def run(competence: Competence, limits: Limits, world: World = WORLD, number: int = 0) -> list[Event]:
    """The events of one question, over plain facts."""
    chain = world.gold.chains[number]
    return list(think(chain.question, Simulated(world.gold, competence), PlainFacts(), tools(world), limits))


def of(kind: type, events: list[Event]) -> list:
    return [event for event in events if isinstance(event, kind)]


def graph_of(events: list[Event]) -> set[Triple]:
    return {
        Triple(edge.source, edge.type, edge.target)
        for wrote in of(Wrote, events)
        for edge in wrote.diff.added_edges
    }


def right(competence: Competence, limits: Limits, world: World = WORLD) -> int:
    return sum(end.right for end in simulated_ends(world.gold, tools(world), competence, limits))


# --- without errors
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["in_memory", "cypher_embedded", "sparql_embedded", "fused"])
def test_without_errors_every_question_is_solved_in_every_language(kind):
    if kind in ("cypher_embedded", "fused"):
        pytest.importorskip("arcadedb_embedded")
    if kind in ("sparql_embedded", "fused"):
        pytest.importorskip("pyoxigraph")
    model = Simulated(WORLD.gold)
    with open_store(kind) as store:
        for limits in (*PRESETS.values(), REFERENCE.but(reading="whole graph")):
            for chain in WORLD.gold.chains[: 1 if kind == "fused" else 2]:
                events = list(think(chain.question, model, store, tools(), limits))
                assert events[-1].text == chain.answer, (kind, limits.preset, chain.question)
                graph = store.graph()
                store.apply(Diff(removed_nodes=tuple(graph.nodes), removed_edges=tuple(graph.edges)))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("hops", [1, 2])
def test_without_errors_a_whole_world_is_solved_at_both_presets(hops, preset):
    world = chain_world(40, hops)
    assert right(Competence(), PRESETS[preset], world) == 40


def test_plain_facts_and_python_come_to_the_same_ends_with_the_same_errors():
    competence = Competence(**dict.fromkeys(ERROR_RATES, 0.3))
    world = World(WORLD.documents, replace(WORLD.gold, chains=WORLD.gold.chains[:4]))
    plain = simulated_ends(world.gold, tools(), competence, LOCAL)
    python = simulated_ends(world.gold, tools(), competence, LOCAL, store=lambda: open_store("in_memory"))
    assert plain == python, (
        "in operations mode no statement is the model's own, so not even the broken ones differ"
    )


def test_a_question_with_spaces_around_it_is_the_same_question():
    spaced = replace(
        WORLD.gold, chains=(replace(WORLD.gold.chains[0], question=f"  {WORLD.gold.chains[0].question} "),)
    )
    assert [end.right for end in simulated_ends(spaced, tools(), Competence(), REFERENCE)] == [True]


# --- one rate at 1
# ----------------------------------------------------------------------------------------------------


def test_wrong_votes_end_a_run_after_its_first_fact():
    events = run(Competence(vote=1), REFERENCE)
    assert graph_of(events) == {WORLD.gold.chains[0].steps[0].fact}
    assert [voted.choice for voted in of(Voted, events)] == ["INSERT", "RETRIEVE"], (
        "an empty graph has nothing to read"
    )
    assert events[-1].text == UNANSWERED
    assert right(Competence(vote=1), REFERENCE) == 0


def test_wrong_votes_cost_turns_and_no_answer_where_one_fact_is_enough():
    world = chain_world(6, 1)
    events = run(Competence(vote=1), REFERENCE, world)
    assert [voted.choice for voted in of(Voted, events)] == ["INSERT"] * REFERENCE.steps
    assert right(Competence(vote=1), REFERENCE, world) == 6


@pytest.mark.parametrize("preset", PRESETS)
def test_a_model_that_misses_every_fact_writes_none_and_does_not_guess(preset):
    events = run(Competence(missed=1), PRESETS[preset])
    assert not graph_of(events)
    assert events[-1].text == UNANSWERED


def test_made_up_facts_are_written_where_nothing_checks_them_and_answered_from():
    chain = chain_world(6, 1).gold.chains[0]
    events = run(Competence(invented=1), REFERENCE, chain_world(6, 1))
    false = made_up(chain.steps[0].fact, 0)
    assert graph_of(events) == {false}
    assert events[-1].text == false.object != chain.answer


def test_made_up_facts_are_refused_where_the_sentence_is_looked_at():
    events = run(Competence(invented=1), LOCAL)
    assert not graph_of(events)
    assert {refused.reason for refused in of(Refused, events)} == {"the sentence does not say this"}
    assert events[-1].text == UNANSWERED


def test_broken_statements_are_mended_as_often_as_they_may_be_and_then_refused():
    events = run(Competence(broken=1), REFERENCE.but(steps=1))
    assert not graph_of(events)
    assert len(of(Repaired, events)) >= REFERENCE.repairs
    assert of(Refused, events)


def test_no_statement_breaks_where_the_loop_spells_them():
    assert run(Competence(), LOCAL)[1:] == [
        replace(event, model="simulated:" + str(Competence())) if isinstance(event, Asked) else event
        for event in run(Competence(broken=1), LOCAL)[1:]
    ]


def test_wrong_reads_leave_the_graph_whole_and_the_question_unanswered():
    events = run(Competence(read=1), REFERENCE)
    assert graph_of(events) == {step.fact for step in WORLD.gold.chains[0].steps}
    assert events[-1].text == UNANSWERED
    assert right(Competence(read=1), REFERENCE) == 0


def test_wrong_names_do_no_harm_where_the_loop_reads_about_all_that_was_looked_up():
    assert right(Competence(read=1), LOCAL) == len(WORLD.gold.chains)


# --- what it is
# ---------------------------------------------------------------------------------------------------------


def test_its_name_says_in_every_trace_that_it_is_simulated_and_at_which_rates(tmp_path):
    name = "simulated:vote=.1,missed=0,invented=.25,broken=0,read=1,split=0,assured=0,seed=7"
    competence = Competence(vote=0.1, invented=0.25, read=1, seed=7)
    assert Simulated(WORLD.gold, competence).name == name
    events = run(competence, LOCAL)
    save_run(events, tmp_path / "run.jsonl")
    kept = list(load_run(tmp_path / "run.jsonl").events)
    assert of(Started, kept)[0].planning == name
    assert {asked.model for asked in of(Asked, kept)} == {name}


def test_the_same_seed_errs_in_the_same_places_and_another_elsewhere():
    def ends(seed: int) -> list[bool]:
        competence = Competence(**dict.fromkeys(ERROR_RATES, 0.3), seed=seed)
        return [end.right for end in simulated_ends(WORLD.gold, tools(), competence, REFERENCE.but(steps=3))]

    assert ends(1) == ends(1)
    assert len({tuple(ends(seed)) for seed in range(4)}) > 1


def test_runs_with_other_limits_err_alike_as_far_as_their_prompts_are_the_same():
    competence = Competence(missed=0.5, vote=0.2, broken=0.3)
    for number in range(6):
        few, many = (run(competence, REFERENCE.but(steps=steps), number=number) for steps in (2, 7))
        begun = [event for event in few[1:] if event.step < 2 and not isinstance(event, Answered)]
        assert many[1 : len(begun) + 1] == begun


def test_ballots_at_temperature_0_are_one_reply():
    prompts = [asked.prompt for asked in of(Asked, run(Competence(), REFERENCE)) if asked.role == "vote"]
    model = Simulated(WORLD.gold, Competence(vote=0.5))
    seeds = [replace(prompts[0], seed=seed) for seed in range(20)]
    assert len({model(replace(each, temperature=0.0)).text for each in seeds}) == 1
    assert len({model(each).text for each in seeds}) == 2


def test_more_ballots_are_more_often_right():
    world = chain_world(25, 3)
    solved = [right(Competence(vote=0.2), REFERENCE.but(votes=votes), world) for votes in (1, 3, 5)]
    assert solved == sorted(solved) and solved[0] < solved[-1]


# --- what it cannot do
# --------------------------------------------------------------------------------------------------


def test_a_question_without_gold_is_an_error_that_names_it():
    with pytest.raises(LLMError, match=r"no gold for the question 'Who is it\?'"):
        list(think("Who is it?", Simulated(WORLD.gold), PlainFacts(), tools(), REFERENCE))


def test_a_prompt_that_the_loop_does_not_make_is_an_error():
    with pytest.raises(LLMError, match="the loop's own prompts only"):
        Simulated(WORLD.gold)(Prompt((Message("system", "Be brief."), Message("user", "Hello!"))))


@pytest.mark.parametrize("wrong", [-0.1, 1.5, "often", True, float("nan")])
def test_a_rate_is_between_0_and_1(wrong):
    with pytest.raises(BadInput, match="'vote' must be between 0 and 1"):
        Competence(vote=wrong)
