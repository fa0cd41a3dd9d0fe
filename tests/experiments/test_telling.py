"""Rounds of a guess: each names the system with the best mean, and equal ones share it."""

from __future__ import annotations

import pandas as pd

from notebooks.answers_compared import contest


def test_the_first_of_a_round_has_the_best_mean_and_equal_systems_share_it():
    questions = pd.MultiIndex.from_tuples([("one", "a"), ("one", "b"), ("two", "a")], names=["set", "id"])
    f1 = pd.DataFrame({"rag": [1, 0, 1], "paths": [1, 1, 1], "gold": [1, 1, 1]}, index=questions)
    first, second = contest(f1, {"rag": "passages", "paths": "names"}).rounds
    assert (first.on, first.first, first.n, first.ahead) == ("one", ("paths",), 2, 0.5)
    assert first.told == "paths is first with 1.000, .500 before rag, over 2 questions."
    assert (second.first, second.ahead) == (("rag", "paths"), 0.0)
    assert second.told == "rag and paths are equal with 1.000, over 1 question."
