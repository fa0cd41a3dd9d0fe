"""A comparison in words: every sentence follows from the figures, and what is not answered yet is said in its
place.
"""

from __future__ import annotations

from collections import Counter

import pytest
from support.birthplaces import SETS, TINY, reader

from kgot_lab.benchmark.comparison.results import ComparisonResults
from kgot_lab.benchmark.questions.question_result import QuestionResult
from notebooks.answers_compared import (
    NOT_YET,
    contest,
    cost_rows,
    gaps_told,
    losses_told,
    progress_rows,
    score_rows,
    spending_told,
    trust_told,
)

PLAN = TINY.plan(reader())
ASKED = [(name, question.id) for name, sample in SETS.items() for question in sample.questions]
FOUR = {"closed-book": "alone", "rag": "passages", "follow-few": "names", "gold": "the ceiling"}


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


def test_who_is_first_is_told_over_the_questions_that_all_have_answered():
    first, second = contest(SOME, FOUR).rounds
    expected = ("first", ("follow-few",), 3, pytest.approx(1 / 6))
    assert (first.on, first.first, first.n, first.ahead) == expected
    told = "follow-few is first with 1.000, .167 before rag, over the 3 questions that closed-book, rag and follow-few have all answered"
    assert first.told == f"{told}; {NOT_YET}: gold."
    # on one of the two questions, and equal
    assert (second.first, second.n, second.ahead) == (("rag", "follow-few"), 1, 0.0)
    assert second.told.startswith("rag and follow-few are equal with 1.000, over the 1 question that ")
    assert repr(contest(SOME, FOUR)).splitlines()[0] == f"first: {first.told}"


def test_a_difference_is_told_with_its_interval_and_what_chance_says_of_it():
    lines = gaps_told(SOME, [("rag", "closed-book"), ("follow-few", "loop")]).lines
    assert lines[0].startswith("rag against closed-book on first: +.833 (")
    assert "on 3 questions, p " in lines[0]
    assert lines[0].endswith("after Holm: the two cannot be told apart.")  # three questions settle nothing
    assert lines[-1] == f"follow-few against loop: {NOT_YET} by loop." and len(lines) == 4
    few = gaps_told(findings(closed_book=[0, 0, 0, 0], rag=[1, 1, 1, 1]), [("rag", "closed-book")]).lines
    assert few[1] == "rag against closed-book on second: not compared, or on too few questions yet."


def test_where_most_answers_were_lost_is_told_of_those_known():
    stages = {
        "first": {
            "rag": {"lovelace": "right", "curie": "misread", "newton": "misread"},
            "follow-few": {"lovelace": "right"},
        }
    }
    lines = losses_told(SOME, stages, ["rag", "follow-few", "closed-book", "loop"]).lines
    assert lines[0].startswith(
        "rag: of 3 answers known, 1 right and 0 nearly; of the 2 lost, the most (2) at “misread” (the answer stood "
    )
    assert lines[1] == "follow-few: of 1 answer known, 1 right and 0 nearly; none was lost."
    assert lines[2:] == ("closed-book: no trace of it was looked at yet.", f"loop: {NOT_YET}.")


@pytest.mark.parametrize(("ours", "said"), [(1.0, "more, beyond chance."), (0.0, "less, beyond chance.")])
def test_a_difference_beyond_chance_says_its_direction(ours, said):
    many = {("first", str(number)): QuestionResult(str(number), f1=ours) for number in range(12)}
    others = {key: QuestionResult(key[1], f1=1 - ours) for key in many}
    lines = gaps_told(
        ComparisonResults(PLAN, {"rag": many, "closed-book": others}), [("rag", "closed-book")]
    ).lines
    assert lines[0].endswith(said)


def test_a_round_is_open_until_two_have_answered_the_same_questions():
    for found in (findings(), findings(rag=[1]), ComparisonResults(PLAN, {})):
        [first, _] = contest(found, FOUR).rounds
        assert (first.first, first.ahead) == ((), None)
        assert first.told.startswith("open, since no two have answered")
        assert f"{NOT_YET}: closed-book" in first.told


def test_how_far_a_likelihood_can_be_trusted_is_told_in_a_sentence():
    rag, none = trust_told(SOME, ["rag", "loop"]).lines
    assert rag.startswith(
        "rag held its 5 answers .900 likely on average, and .600 are right: too sure by .300. Of its surer half "
    )
    assert none == f"loop: {NOT_YET}."
    assert "too sure" not in trust_told(findings(rag=[1] * 9), ["rag"]).lines[0]


def test_what_an_answer_takes_is_told_beside_others():
    assert spending_told(SOME, "follow-few", ["rag", "loop"]).lines == (
        "follow-few beside rag: 100 tokens of evidence where the other reads 200, 50% of that; 1.0 calls of the model instead of 1.0; "
        "2 seconds instead of 2, 1.0 times as long.",
        "follow-few beside loop: loop has answered no question yet.",
    )
    assert spending_told(SOME, "loop", ["rag"]).lines == (
        "loop has answered no question of this comparison yet, so what it takes is not known.",
    )


def test_every_system_of_the_plan_has_its_row_answered_or_not():
    for rows in (progress_rows(SOME), score_rows(SOME), cost_rows(SOME)):
        assert [row["system"] for row in rows] == list(TINY.systems)
        assert all(row.keys() == rows[0].keys() for row in rows)
    progress = {row["system"]: row for row in progress_rows(SOME)}
    found = (progress["rag"]["second"], progress["follow-few"]["second"], progress["loop"]["first"])
    assert found == ("2 of 2", "1 of 2", "0 of 1")
    assert Counter(row["all sets"] for row in score_rows(SOME))[NOT_YET] == 2
    assert score_rows(SOME)[1]["all sets"].startswith(".700 [")
    assert score_rows(SOME)[1]["all sets"].endswith("n 5")
