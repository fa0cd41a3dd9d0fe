"""The simulated model in the mode `paths`: it reads what its texts hold, its curves follow the formulas, and
it says how likely it is.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import pytest

from benchmarks.competence.curves import LoopSetting, SimulatedEnd, competence_curve, simulated_ends
from benchmarks.competence.exact import (
    solved_despite_hop_misreadings,
    solved_despite_misreadings,
    solved_despite_splits,
)
from benchmarks.competence.plain_facts import PlainFacts
from benchmarks.competence.simulated import LIKELY, UNANSWERED, UNCHECKED, UNLIKELY, Competence, Simulated
from benchmarks.competence.texts import misread_names, told_answer
from benchmarks.competence.worlds import World, chain_world, comparing_world
from kgot_lab.errors import LLMError
from kgot_lab.evaluation.significance import proportion
from kgot_lab.loop.controller import think
from kgot_lab.loop.limits import Limits
from kgot_lab.loop.modes.paths.comparison import comparison_prompt
from kgot_lab.loop.modes.paths.question_form import hops_prompt, parse_hops
from kgot_lab.loop.modes.paths.reading import answer_prompt, rejection_reason
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Tool

ONE, TWO = chain_world(60, 1), chain_world(60, 2)
# a question is asked of its best path, and hop by hop, of nothing else
ONCE = UNCHECKED.but(wide_tokens=0, steps=1)


def tools(world: World, found: int = 2) -> list[Tool]:
    return [search(world.documents, bm25(world.documents), k=found)]


def ends(
    world: World, competence: Competence, limits: Limits = UNCHECKED, found: int = 2
) -> tuple[SimulatedEnd, ...]:
    return simulated_ends(world.gold, tools(world, found), competence, limits)


def right(*given) -> int:
    return sum(end.right for end in ends(*given))


# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_a_model_without_faults_solves_every_chain_in_mode_paths(hops):
    assert right(chain_world(12, hops), Competence()) == 12


# ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "world", "limits", "found", "assured", "exact"),
    [
        ("read", ONE, ONCE, 2, 0.0, partial(solved_despite_misreadings, 1)),
        ("read", ONE, UNCHECKED, 2, 0.0, partial(solved_despite_misreadings, 3)),
        ("read", ONE, UNCHECKED, 2, 0.5, partial(solved_despite_misreadings, 3, assured=0.5)),
        ("read", ONE, UNCHECKED, 2, 1.0, partial(solved_despite_misreadings, 1)),
        ("read", TWO, ONCE, 1, 0.0, partial(solved_despite_hop_misreadings, 2)),
        ("read", TWO, ONCE, 1, 1.0, partial(solved_despite_hop_misreadings, 2, assured=1.0)),
        ("split", TWO, ONCE, 1, 0.0, solved_despite_splits),
    ],
    ids=[
        "read once",
        "read three times",
        "half look sure",
        "all look sure",
        "two hops",
        "two hops, all look sure",
        "split",
    ],
)
def test_a_model_that_errs_at_a_rate_leaves_as_many_solved_as_the_formula_says(
    rate, world, limits, found, assured, exact
):
    setting = LoopSetting("paths", limits, exact)
    competence = Competence(assured=assured)
    curve = competence_curve(world.gold, tools(world, found), rate, setting, [0.3], competence=competence)
    (point,) = curve.points
    measured = proportion(round(point.solved.mean * point.solved.n), point.solved.n, confidence=0.999)
    assert measured.low <= point.exact <= measured.high


def test_formulas_of_readings_at_their_ends():
    assert solved_despite_misreadings(3, 0) == 1 == solved_despite_hop_misreadings(3, 0)
    assert solved_despite_misreadings(2, 0.5) == pytest.approx(0.75)
    assert solved_despite_misreadings(9, 0.3, assured=1) == pytest.approx(0.7)
    assert solved_despite_hop_misreadings(2, 0.5, assured=1) == pytest.approx(0.125)


# --------------------------------------------------------------------------------------------------


def test_how_likely_an_answer_is_tells_right_from_wrong_as_far_as_it_is_set_to():
    chain = ONE.gold.chains[0]
    text = f"[{chain.steps[0].title}] {chain.steps[0].sentence}"
    asked = replace(answer_prompt(chain.question, text), likelihood=True)

    def likelihood(prompt, **rates) -> float:
        return math.exp(Simulated(ONE.gold, Competence(**rates))(prompt).logprob)

    assert likelihood(asked) == pytest.approx(LIKELY)
    assert likelihood(asked, read=1) == pytest.approx(UNLIKELY)
    assert likelihood(asked, read=1, assured=1) == pytest.approx(LIKELY)
    unknown = replace(answer_prompt(chain.question, ""), likelihood=True)
    assert likelihood(unknown, read=1, assured=1) == pytest.approx(UNLIKELY), (
        "what it does not know it does not assert"
    )
    assert Simulated(ONE.gold)(unknown).text == UNANSWERED
    assert Simulated(ONE.gold)(replace(asked, likelihood=False)).logprob is None


def test_hops_and_questions_of_each_are_those_of_the_gold():
    chain, pair = TWO.gold.chains[0], comparing_world(2, 2).gold
    assert parse_hops(Simulated(TWO.gold)(hops_prompt(chain.question)).text) == list(chain.hops)
    assert (
        Simulated(pair)(comparison_prompt(pair.chains[0].question)).text
        == "Who is the teacher of X?\nWhen was #1 born?"
    )
    expected = "Who is the teacher of X?"
    assert Simulated(pair, Competence(split=1))(comparison_prompt(pair.chains[0].question)).text == expected


def test_a_misreading_stands_in_the_text_and_is_wrong():
    chain, page = ONE.gold.chains[0], ONE.documents[0]
    text = "\n".join(f"[{page.title}] {sentence}." for sentence in page.text.removesuffix(".").split(". "))
    found = misread_names(ONE.gold, chain.question, text, chain.answer)
    assert found and chain.answer not in found
    assert not any(rejection_reason(chain.question, name, text) for name in found)
    choice = comparing_world(2).gold.chains[0]
    sentences = "\n".join(f"[{step.title}] {step.sentence}" for step in choice.steps)
    expected = [step.fact.subject for step in choice.steps if step.fact.subject != choice.answer]
    assert misread_names(comparing_world(2).gold, choice.question, sentences, choice.answer) == expected


def test_a_question_without_gold_is_an_error_in_mode_paths_too():
    with pytest.raises(LLMError, match=r"no gold for the question 'Who is it\?'"):
        list(think("Who is it?", Simulated(ONE.gold), PlainFacts(), tools(ONE), UNCHECKED))


def test_a_text_is_read_rightly_exactly_where_it_holds_the_fact_that_is_asked():
    chain = TWO.gold.chains[0]
    first, last = (f"[{step.title}] {step.sentence}" for step in chain.steps)
    assert told_answer(TWO.gold, chain.question, f"{first}\n{last}") == chain.answer
    assert told_answer(TWO.gold, chain.question, last) == ""
    assert told_answer(TWO.gold, chain.resolved[1], last) == chain.answer
    assert told_answer(TWO.gold, chain.resolved[1], first) == ""
    assert told_answer(TWO.gold, chain.steps[1].of("Nobody Known"), f"{first}\n{last}") == "", (
        "a hop about a name that gold does not know"
    )
