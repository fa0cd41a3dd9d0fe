"""Two systems on one question: who was right, six chosen by a rule, and a contest that no constant guess
wins.
"""

from dataclasses import replace

import pytest

from kgot_lab.benchmark.comparison.plan import drawn_samples
from kgot_lab.benchmark.comparison.results import ComparisonResults
from kgot_lab.errors import BadInput
from kgot_lab.io.files import bundled_path
from notebooks import answers_compared as duel


@pytest.fixture(scope="module")
def every():
    folder = bundled_path("benchmarks/results/graph_pays")
    return duel.duels(ComparisonResults.load(folder), drawn_samples(), duel.load_losses(folder))


def test_every_question_that_both_answered_has_an_outcome_and_the_rows_count_them(every):
    rows = duel.outcome_rows(every)
    assert [row["questions"] for row in rows] == [70, 150, 150, 370] and rows[-1]["graph"] == 89
    assert rows[-1]["RAG"] == 24
    assert all(sum(row[winner] for winner in duel.WINNERS) == row["questions"] for row in rows)


def test_the_six_show_each_outcome_and_one_constant_guess_gets_two_at_most(every):
    contest = duel.duel_contest(duel.one_of_each(every))
    first = [each.first[0] for each in contest.rounds]
    assert len(first) == 6 and set(first) == set(duel.WINNERS) and max(map(first.count, first)) == 2
    assert contest.asks and "Right: " in contest.rounds[0].told


@pytest.mark.extended
def test_an_outcome_that_nothing_has_is_named(every):
    only_right = [replace(each, rag=each.graph) for each in every if each.graph.em == 1]
    with pytest.raises(BadInput, match="no question of 2wiki ended so that 'RAG' fits"):
        duel.one_of_each(only_right, [("both", "2wiki"), ("RAG", "2wiki")])


@pytest.mark.extended
def test_the_wrong_answers_of_the_chosen_have_nothing_of_the_right_one_and_an_end_that_is_known(every):
    for each in duel.one_of_each(every):
        assert {each.rag.f1, each.graph.f1} <= {0.0, 1.0} and all(each.ends)
        assert [end == "right" for end in each.ends] == [each.rag.em == 1, each.graph.em == 1]
