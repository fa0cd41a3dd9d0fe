"""The simulated model: without errors it solves every question in every language, and each rate at 1 breaks
what it is the rate of.
"""

from __future__ import annotations

import pytest
from support.saved_run import save_run

from benchmarks.competence.curves import simulated_ends
from benchmarks.competence.plain_facts import PlainFacts
from benchmarks.competence.simulated import ERROR_RATES, UNANSWERED, Competence, Simulated, made_up
from benchmarks.competence.worlds import World, chain_world
from kgot_lab.errors import BadInput, LLMError
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Asked, Event, Refused, Repaired, Started, Wrote
from kgot_lab.loop.limits import LOCAL, REFERENCE, Limits
from kgot_lab.loop.trace import load_run
from kgot_lab.retrieval.lexical import bm25
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
    return {Triple(e.source, e.type, e.target) for wrote in of(Wrote, events) for e in wrote.diff.added_edges}


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


# ----------------------------------------------------------------------------------------------------


def test_made_up_facts_are_written_where_nothing_checks_them_and_answered_from():
    chain = chain_world(6, 1).gold.chains[0]
    events = run(Competence(invented=1), REFERENCE, chain_world(6, 1))
    false = made_up(chain.steps[0].fact, 0)
    assert graph_of(events) == {false}
    assert events[-1].text == false.object != chain.answer


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


@pytest.mark.parametrize("preset", PRESETS)
def test_a_model_that_misses_every_fact_writes_none_and_does_not_guess(preset):
    events = run(Competence(missed=1), PRESETS[preset])
    assert not graph_of(events)
    assert events[-1].text == UNANSWERED


def test_a_prompt_that_the_loop_does_not_make_is_an_error():
    with pytest.raises(LLMError, match="the loop's own prompts only"):
        Simulated(WORLD.gold)(Prompt((Message("system", "Be brief."), Message("user", "Hello!"))))


@pytest.mark.parametrize("wrong", [-0.1, 1.5, "often", True, float("nan")])
def test_a_rate_is_between_0_and_1(wrong):
    with pytest.raises(BadInput, match="'vote' must be between 0 and 1"):
        Competence(vote=wrong)


def test_broken_statements_are_repaired_as_often_as_they_may_be_and_then_refused():
    events = run(Competence(broken=1), REFERENCE.but(steps=1))
    assert not graph_of(events)
    assert len(of(Repaired, events)) >= REFERENCE.voting.repairs
    assert of(Refused, events)


def test_made_up_facts_are_refused_where_the_sentence_is_looked_at():
    events = run(Competence(invented=1), LOCAL)
    assert not graph_of(events)
    assert {refused.reason for refused in of(Refused, events)} == {"the sentence does not say this"}
    assert events[-1].text == UNANSWERED
