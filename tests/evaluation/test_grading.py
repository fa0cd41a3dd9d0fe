"""Grades in the replies of graders, and SimpleQA's measures against arithmetic done by hand."""

from __future__ import annotations

import pytest
from support.every import every

from kgot_lab.evaluation.grading import Grade, graded_scores, grading_prompt, parse_grade


@every(
    ("reply", "grade", "span"),
    [
        ("A", "correct", "A"),
        ("B.", "incorrect", "B"),
        (" C\n", "not attempted", "C"),
        ("**B**", "incorrect", "B"),
        ("Grade: A", "correct", "A"),
        ("(C)", "not attempted", "C"),
        ("CORRECT", "correct", "CORRECT"),
        ("INCORRECT", "incorrect", "INCORRECT"),
        ("NOT_ATTEMPTED", "not attempted", "NOT_ATTEMPTED"),
        ("C: NOT ATTEMPTED", "not attempted", "C"),
        ("A year is missing.\nC", "not attempted", "C"),
        ("A right answer would name the city, so: B", "incorrect", "B"),
        ("It might be A or B.\nB", "incorrect", "B"),  # the last line decides
        ("It might be A or B.", "unclear", "It might be A or B."),
        ("I cannot say.", "unclear", "I cannot say."),
        ("", "unclear", ""),
        ("a", "unclear", "a"),
        ("Because", "unclear", "Because"),
        ("It's correct", "unclear", "It's correct"),
        ("Vitamin C's", "unclear", "Vitamin C's"),
    ],
)
def test_a_grade_is_what_some_words_of_the_reply_say_and_unclear_where_none_do(reply, grade, span):
    assert parse_grade(reply) == Grade(grade, span)


def test_a_grader_sees_question_right_answer_and_answer():
    asked = grading_prompt("Who built it?", "Anna", "It was Anna.").messages[-1].text
    assert all(words in asked for words in ("Who built it?", "Anna", "It was Anna."))


def test_the_measures_are_those_of_simpleqa():
    scores = graded_scores(["correct"] * 6 + ["incorrect"] * 2 + ["not attempted"] * 2)
    assert (scores.correct.mean, scores.incorrect.mean, scores.not_attempted.mean) == (0.6, 0.2, 0.2)
    assert scores.correct_given_attempted.mean == 0.75 and scores.correct_given_attempted.n == 8
    assert scores.f1.mean == pytest.approx(2 * 0.6 * 0.75 / (0.6 + 0.75))
    shares = (scores.correct, scores.incorrect, scores.not_attempted, scores.correct_given_attempted)
    for estimate in (*shares, scores.f1):
        assert estimate.low < estimate.mean < estimate.high


def test_published_shares_give_the_published_f():
    """73.2102 % correct, 1.6166 % not attempted and 25.1732 % incorrect of 433 are 317, 7 and 109; F is given
    as 73.8.
    """
    scores = graded_scores(["correct"] * 317 + ["not attempted"] * 7 + ["incorrect"] * 109)
    assert round(100 * scores.correct_given_attempted.mean, 4) == 74.4131
    assert round(100 * scores.f1.mean, 1) == 73.8


def test_nothing_graded_has_no_measures():
    assert graded_scores([]).f1.mean == 0 and graded_scores([]).correct.n == 0
    assert graded_scores(["not attempted"] * 3).f1.mean == 0


def test_an_unclear_grade_is_attempted_and_not_correct():
    scores = graded_scores(["correct", "unclear", "not attempted"])
    assert scores.unclear.mean == pytest.approx(1 / 3) and scores.correct_given_attempted.mean == 0.5
