"""The plots of a comparison: what is answered is drawn with its interval and count, and what is not answered
yet is said, never blank.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from support.birthplaces import SETS, TINY, reader

from kgot_lab.benchmark.comparison.results import ComparisonResults
from kgot_lab.benchmark.questions.question_result import QuestionResult
from kgot_lab.errors import UnknownName
from kgot_lab.viz.plots.figure import Plot
from notebooks import answer_plots as plots

PLAN = TINY.plan(reader())
ASKED = [(name, question.id) for name, sample in SETS.items() for question in sample.questions]


def findings(tokens=100, **scores) -> ComparisonResults:
    """Results of answers to the first questions, from F1 and likelihood of each; `_` stands for the dash in a
    name.
    """
    answers = {
        system.replace("_", "-"): {
            key: QuestionResult(
                key[1],
                em=float(f1 == 1),
                f1=f1,
                token_probability=likelihood,
                evidence_tokens=tokens,
                seconds=1.0,
            )
            for key, (f1, likelihood) in zip(ASKED, rows, strict=False)
        }
        for system, rows in scores.items()
    }
    return ComparisonResults(PLAN, answers)


SOME = findings(
    closed_book=[(0.0, 0.3), (0.2, 0.35), (0.0, 0.5), (1.0, 0.9), (0.0, 0.3)],
    rag=[(1.0, 0.9), (1.0, 0.95), (0.5, 0.6), (1.0, 0.8), (0.0, 0.7)],
    gold=[(1.0, 0.99), (1.0, 0.9)],
)
NONE = ComparisonResults(PLAN, {})
STAGES = {
    "first": {"rag": {"lovelace": "right", "curie": "right", "newton": "nearly right"}},
    "second": {"rag": {"newton": "right"}, "gold": {"newton": "misread"}},
}


def words(drawn: Plot) -> list[str]:
    return [node.text or "" for node in ET.fromstring(drawn.svg).iter("text")]


def every(found: ComparisonResults, stages=STAGES) -> dict[str, Plot]:
    """All plots of a comparison, by name."""
    names = ("answer_scores", "evidence_scores", "likelihood_trust", "paired_differences")
    made = {name: getattr(plots, name)(found) for name in names}
    return made | {"stages_lost": plots.stages_lost(found, stages)}


def test_each_plot_is_a_picture_with_words_and_numbers_that_asks_for_nothing():
    for name, drawn in every(SOME).items():
        assert drawn.numbers and len(drawn.alt) > 60 and repr(drawn) == drawn.alt, name
        assert ET.fromstring(drawn.svg).get("aria-label") == drawn.alt
        assert "http" not in drawn.svg and not re.search(r"url\((?!#)|<style|<script", drawn.svg)


def test_the_count_stands_beside_each_system_and_one_without_answers_is_said_to_have_none():
    drawn = plots.answer_scores(SOME)
    said = words(drawn)
    names = {"rag, n 3", "rag, n 5", "gold, n 2", "loop, not answered yet"}
    assert names | {"model alone", "ceiling: the gold sentences"} <= set(said)
    assert {"first", "second", "all sets"} <= set(said) and "Not answered yet: follow-few, loop." in drawn.alt
    row = next(row for row in drawn.numbers if (row["system"], row["on"]) == ("rag", "all sets"))
    assert row["n"] == 5 and row["F1"] == 0.7 and row["low"] < 0.7 < row["high"]


def test_f1_stands_over_the_tokens_it_was_read_from_and_none_at_all_has_its_place():
    drawn = plots.evidence_scores(SOME)
    assert {row["evidence tokens"] for row in drawn.numbers} == {100} and "100" in words(drawn)
    nothing_read = plots.evidence_scores(findings(tokens=0, closed_book=[(1.0, None)] * 3))
    numbers = plots.evidence_scores(SOME, on=["first", "second"]).numbers
    assert {row["on"] for row in numbers} == {"first", "second"}
    assert "0 tokens for 1.000 (n 3)" in nothing_read.alt and "0" in words(nothing_read)
    assert "nan" not in nothing_read.svg.lower()


@pytest.mark.extended
def test_how_sure_and_how_right_answers_are_is_told_of_those_that_have_a_likelihood():
    drawn = plots.likelihood_trust(SOME, ["rag", "follow-few"])
    assert "rag, n 5" in words(drawn) and "rag .790 likely and .600 right (n 5)" in drawn.alt
    assert "Without a likelihood so far: follow-few." in drawn.alt
    bins = [row for row in drawn.numbers if "likelihood" in row]
    assert sum(row["n"] for row in bins) == 5
    assert drawn.numbers[-1] == {"system": "rag", "coverage": 1.0, "share wrong": 0.4}
    assert {row["system"] for row in plots.likelihood_trust(SOME).numbers} == {"closed-book", "rag"}
    assert "rag, n 2" in words(plots.likelihood_trust(SOME, ["rag"], on="second"))


def test_a_difference_has_its_interval_and_one_that_is_not_there_yet_its_line():
    drawn = plots.paired_differences(SOME)
    [row] = drawn.numbers
    assert row["difference"] == pytest.approx(0.46) and row["low"] <= 0.46 <= row["high"]
    assert row["questions"] == 5
    assert {"rag − closed-book, n 5", "follow-few − rag", "not answered yet"} <= set(words(drawn))
    by_set = plots.paired_differences(
        findings(closed_book=[(0.0, None)] * 4, rag=[(1.0, None)] * 4), on=["first", "second"]
    )
    assert {"rag − closed-book, first, n 3", "rag − closed-book, second", "too few questions yet"} <= set(
        words(by_set)
    )


def test_a_bar_has_the_stages_that_are_known_and_says_of_how_many():
    drawn = plots.stages_lost(SOME, STAGES)
    # gold has answered no question of the second set
    assert {"4 of 5 known", "1 of 2 known"} - set(words(drawn)) == {"1 of 2 known"}
    assert "rag 3 right, 1 nearly right" in drawn.alt
    assert "Not known yet: closed-book, follow-few, loop, gold." in drawn.alt
    assert "1 of 2 known" in words(plots.stages_lost(SOME, STAGES, ["rag"], on="second"))


def test_where_nothing_is_answered_every_plot_says_so():
    for name, drawn in every(NONE, {}).items():
        assert drawn.alt.startswith("Nothing to draw: ") and "yet" in drawn.alt and any(words(drawn)), name


def test_names_that_the_plan_does_not_have_are_refused():
    for draw in (
        lambda: plots.likelihood_trust(SOME, ["ragg"]),
        lambda: plots.likelihood_trust(SOME, on="third"),
        lambda: plots.answer_scores(SOME, on=["third"]),
        lambda: plots.evidence_scores(SOME, on=["third"]),
        lambda: plots.paired_differences(SOME, on=["third"]),
        lambda: plots.stages_lost(SOME, STAGES, ["ragg"]),
        lambda: plots.stages_lost(SOME, STAGES, on="third"),
    ):
        with pytest.raises(UnknownName):
            draw()
