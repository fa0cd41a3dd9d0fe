"""Answer scores against cases worked out by hand and the rules published with SQuAD and HotpotQA."""

from __future__ import annotations

import pytest
from support.every import every

from kgot_lab.evaluation.grading import contains_answer, exact_match, f1, normalise_answer


@every(
    ("text", "expected"),
    [
        ("The  Beatles", "beatles"),
        ("an apple, a day.", "apple day"),
        ("Theatre of the absurd", "theatre of absurd"),  # an article only as a whole word
        ("U.S.", "us"),  # punctuation goes, and leaves no space behind
        ("1,000", "1000"),
        ("the", ""),
        ("\tNew\nYork ", "new york"),
        ("Zürich – Süd", "zürich – süd"),  # only ASCII punctuation counts, as published
    ],
)
def test_an_answer_is_normalised_as_published(text, expected):
    assert normalise_answer(text) == expected


def test_an_exact_match_forgives_case_articles_and_punctuation_only():
    assert exact_match("the Eiffel Tower.", "Eiffel tower") == 1.0
    assert exact_match("Eiffel Tower, Paris", "Eiffel Tower") == 0.0
    assert exact_match("", "The") == 1.0  # both are nothing once normalised


@every(
    ("answer", "gold", "expected"),
    [
        ("Eiffel Tower in Paris", "Eiffel Tower", 2 * 0.5 * 1 / 1.5),  # 2 of 4 words, both gold words
        ("Tower", "the Eiffel Tower", 2 * 1 * 0.5 / 1.5),
        ("new new york", "new york", 2 * (2 / 3) * 1 / (5 / 3)),  # a word counts as often as the gold has it
        ("Eiffel Tower", "eiffel tower", 1.0),
        ("London", "Paris", 0.0),
        ("", "Paris", 0.0),
        ("Paris", "", 0.0),
    ],
)
def test_f1_is_the_harmonic_mean_of_shared_words(answer, gold, expected):
    assert f1(answer, gold) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [("yes it is", "yes"), ("yes", "yes it is"), ("no", "yes"), ("noanswer", "noanswer given")],
)
def test_yes_no_and_noanswer_count_only_when_exact(answer, gold):
    assert f1(answer, gold) == 0.0


def test_a_text_holds_an_answer_only_as_whole_words():
    assert contains_answer("Born in the city of London, 1815.", "London")
    assert contains_answer("She lived at The Hague", "Hague")
    assert not contains_answer("Londonderry", "London")
    assert not contains_answer("New Jersey and York", "New York")
