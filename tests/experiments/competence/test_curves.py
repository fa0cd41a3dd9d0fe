"""The curves of a simulated model against exact formulas, each point within an interval that one in a
thousand misses; seeds are fixed.
"""

from __future__ import annotations

from functools import partial

import pytest

from benchmarks.competence.curves import LoopSetting, competence_curve
from benchmarks.competence.exact import (
    at_least,
    majority_errs,
    solved_despite_inventions,
    solved_despite_misses,
    solved_despite_reads,
    solved_despite_votes,
)
from benchmarks.competence.simulated import Competence, Simulated
from benchmarks.competence.worlds import chain_world
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.significance import proportion
from kgot_lab.llm.structured import compact_schema, parse
from kgot_lab.loop import prompts
from kgot_lab.loop.limits import LOCAL, REFERENCE
from kgot_lab.loop.prompts import Vote
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores.embedded_store import PYTHON
from kgot_lab.tools.search import search
from kgot_lab.types import Prompt

WORLD = chain_world(100, 2)
TOOLS = [search(WORLD.documents, bm25(WORLD.documents), k=2)]


def curve(rate, setting, *rates):
    return competence_curve(WORLD.gold, TOOLS, rate, setting, rates)


@pytest.mark.parametrize("votes", [1, 3, 5])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_a_majority_of_votes_errs_as_often_as_the_binomial_says(votes, rate):
    model, turns = Simulated(WORLD.gold, Competence(vote=rate)), 400
    shown = {"situation": prompts.format_situation(WORLD.gold.chains[0].question, (), "")}
    shown |= {"calls": prompts.format_calls(()), "retrieve": prompts.retrieve_request(PYTHON)}
    start = prompts.Prompts()("vote", **shown)

    def errs(seed: int) -> bool:
        reply = model(Prompt(start, compact_schema(Vote), 0.7, seed)).text
        return parse(reply, Vote).choice == "RETRIEVE"

    wrong = sum(sum(errs(t * votes + number) for number in range(votes)) > votes / 2 for t in range(turns))
    measured = proportion(wrong, turns, confidence=0.999)
    assert measured.low <= majority_errs(votes, rate) <= measured.high


@pytest.mark.parametrize(
    ("rate", "limits", "exact"),
    [
        ("vote", REFERENCE.but(votes=1), partial(solved_despite_votes, 2, 1)),
        ("vote", REFERENCE, partial(solved_despite_votes, 2, 5)),
        ("missed", REFERENCE.but(steps=3), partial(solved_despite_misses, 2, 3)),
        ("invented", REFERENCE, partial(solved_despite_inventions, 2)),
        ("read", REFERENCE.but(votes=3), partial(solved_despite_reads, 3)),
    ],
    ids=["one vote", "five votes", "three steps", "inventions", "reads"],
)
def test_the_loop_solves_as_many_as_the_formula_says(rate, limits, exact):
    for point in curve(rate, LoopSetting("reference", limits, exact), 0.3).points:
        measured = proportion(round(point.solved.mean * point.solved.n), point.solved.n, confidence=0.999)
        assert measured.low <= point.exact <= measured.high, (rate, point)


def test_only_made_up_facts_give_wrong_answers_and_none_where_they_are_looked_at():
    small = chain_world(20, 2)
    points = [
        competence_curve(small.gold, [_tool(20)], "invented", LoopSetting(x.preset, x), [0.5]).points[0]
        for x in (REFERENCE, LOCAL)
    ]
    reference, local = points
    assert reference.wrong.mean > 0.1
    assert local.wrong.mean == 0 and local.solved.mean < 1, "what is refused is missing"


def _tool(questions: int):
    documents = chain_world(questions, 2).documents
    return search(documents, bm25(documents), k=2)


def test_formulas_at_their_ends():
    assert at_least(0, 5, 0.3) == pytest.approx(1)
    assert at_least(2, 2, 0.5) == pytest.approx(0.25)
    assert majority_errs(5, 0.5) == pytest.approx(0.5)
    assert majority_errs(3, 0.1) == pytest.approx(3 * 0.01 * 0.9 + 0.001)
    assert solved_despite_votes(1, 5, 0.9) == 1
    with pytest.raises(BadInput, match="between 0 and 1"):
        at_least(1, 2, 1.5)
