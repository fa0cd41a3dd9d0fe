"""The comparison with other systems: what is asked is what the plan says, the rule for declining, PageRank."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from benchmarks.own_folders.run import load_rows
from benchmarks.rivals.name_graphs import pagerank
from benchmarks.rivals.questions import SEEN_SQUAD, SQUAD, choose
from benchmarks.rivals.score import declines, judge

PLAN = Path(__file__).parents[2] / "benchmarks" / "results" / "rivals" / "README.md"


def test_the_questions_and_documents_are_those_of_the_plan() -> None:
    chosen = choose()
    plan = PLAN.read_text("utf-8")
    assert chosen.listing in plan
    assert chosen.sha256 in plan
    assert len(chosen.texts) == 4
    said = [(question.kind, question.said) for question in chosen.questions]
    assert (said.count(("squad2", True)), said.count(("squad2", False)), said.count(("two hops", True))) == (
        4,
        4,
        6,
    )
    asked = {question.id for question in chosen.questions}
    assert not asked & {row["id"] for row in load_rows(SQUAD, "test")[:SEEN_SQUAD]}


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "unknown",
        "The answer is unknown.",
        "the documents do not say",
        "Sorry, I'm not able to provide an answer to that question.[no-context]",
        "I am sorry but I am unable to answer this question given the provided data.",
        "# Answer\n\nThe provided context does not mention who led the troops. Richard came later.",
        "Based on the data, there is no information about it. It may be 1204.",
        "The text doesn't specify the title.",
        "The date is not stated in the documents.",
    ],
)
def test_an_answer_that_declines(answer: str) -> None:
    assert declines(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "November 1979",
        "No",
        "The Normans were unknown to many, but Rollo led them in 911.",
        "He died in London. He was a director. The text does not say where he was buried.",
        "### Overview\nThe answer is Jasna Žalica, an actress [Data: Entities (3)].",
        "380 years",
    ],
)
def test_an_answer_that_does_not_decline(answer: str) -> None:
    assert not declines(answer)


def test_a_guess_told_as_a_guess_is_answered_and_not_claimed() -> None:
    question = next(question for question in choose().questions if not question.said)
    guess = judge(question, {"id": question.id, "answer": "1973", "outcome": "not in the sources"})
    assert (guess["answered"], guess["claimed"], guess["f1"]) == (True, False, 0.0)


def test_pagerank_is_that_of_networkx() -> None:
    weights = np.array([[0, 2, 1, 0], [2, 0, 0, 0], [1, 0, 0, 0], [0, 3, 0, 0.0]])
    weights[2] = 0  # a node that leads nowhere
    seeds = np.array([0.5, 0, 0.25, 0.25])
    graph = nx.from_numpy_array(weights, create_using=nx.DiGraph)
    theirs = nx.pagerank(graph, alpha=0.5, personalization=dict(enumerate(seeds)), tol=1e-12, max_iter=500)
    assert pagerank(weights, seeds, 0.5) == pytest.approx(list(theirs.values()), abs=1e-8)
