"""A comparison in words: every sentence follows from the figures, and what is not answered yet is said in its
place.
"""

from __future__ import annotations

import pandas as pd
import pytest
from support.birthplaces import SETS, TINY, reader

from kgot_lab.benchmark.comparison.results import ComparisonResults
from kgot_lab.benchmark.questions.question_result import QuestionResult
from notebooks.answers_compared import NOT_YET, contest, gaps_told, spending_told

PLAN = TINY.plan(reader())
ASKED = [(name, question.id) for name, sample in SETS.items() for question in sample.questions]


def findings(**scores) -> ComparisonResults:
    """Results of answers to the first questions, from the F1 of each; `_` stands for the dash in a name."""
    answers = {
        system.replace("_", "-"): {
            key: QuestionResult(key[1], em=float(f1 == 1), f1=f1, token_probability=0.9, evidence_tokens=100 + 100 * (system == "rag"),
                                 prompt_tokens=300, calls=1, seconds=2.0)
            for key, f1 in zip(ASKED, rows, strict=False)
        }
        for system, rows in scores.items()
    }  # fmt: skip
    return ComparisonResults(PLAN, answers)


SOME = findings(closed_book=[0, 0, 0, 0, 0], rag=[1, 1, 0.5, 1, 0], follow_few=[1, 1, 1, 1])


def test_the_first_of_a_round_has_the_best_mean_and_equal_systems_share_it():
    questions = pd.MultiIndex.from_tuples([("one", "a"), ("one", "b"), ("two", "a")], names=["set", "id"])
    f1 = pd.DataFrame({"rag": [1, 0, 1], "paths": [1, 1, 1], "gold": [1, 1, 1]}, index=questions)
    first, second = contest(f1, {"rag": "passages", "paths": "names"}).rounds
    assert (first.on, first.first, first.n, first.ahead) == ("one", ("paths",), 2, 0.5)
    assert first.told == "paths is first with 1.000, .500 before rag, over 2 questions."
    assert (second.first, second.ahead) == (("rag", "paths"), 0.0)
    assert second.told == "rag and paths are equal with 1.000, over 1 question."


def test_a_difference_is_told_with_its_interval_and_what_chance_says_of_it():
    lines = gaps_told(SOME, [("rag", "closed-book"), ("follow-few", "loop")]).lines
    assert lines[0].startswith("rag against closed-book on first: +.833 (")
    assert "on 3 questions, p " in lines[0]
    assert lines[0].endswith("after Holm: the two cannot be told apart.")  # three questions settle nothing
    assert lines[-1] == f"follow-few against loop: {NOT_YET} by loop." and len(lines) == 4
    few = gaps_told(findings(closed_book=[0, 0, 0, 0], rag=[1, 1, 1, 1]), [("rag", "closed-book")]).lines
    assert few[1] == "rag against closed-book on second: not compared, or on too few questions yet."


@pytest.mark.parametrize(("ours", "said"), [(1.0, "more, beyond chance."), (0.0, "less, beyond chance.")])
def test_a_difference_beyond_chance_says_its_direction(ours, said):
    many = {("first", str(number)): QuestionResult(str(number), f1=ours) for number in range(12)}
    others = {key: QuestionResult(key[1], f1=1 - ours) for key in many}
    lines = gaps_told(
        ComparisonResults(PLAN, {"rag": many, "closed-book": others}), [("rag", "closed-book")]
    ).lines
    assert lines[0].endswith(said)


def test_what_an_answer_takes_is_told_beside_others():
    assert spending_told(SOME, "follow-few", ["rag", "loop"]).lines == (
        "follow-few beside rag: 100 tokens of evidence where the other reads 200, 50% of that; 1.0 calls of the model instead of 1.0; "
        "2 seconds instead of 2, 1.0 times as long.",
        "follow-few beside loop: loop has answered no question yet.",
    )
    assert spending_told(SOME, "loop", ["rag"]).lines == (
        "loop has answered no question of this comparison yet, so what it takes is not known.",
    )
