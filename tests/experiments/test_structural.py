"""The tables of the answers of systems, and the results they come from."""

import pytest

from benchmarks.structure.analogies import Choice, Choices
from benchmarks.structure.answered import Answers, save_answers, save_choices
from benchmarks.structure.tables import (
    accuracies,
    best_control,
    gains,
    gaps,
    graded,
    kept,
    worst_cells,
)


def asked(cells=False):
    sides = [(far, trap) for far in (True, False) for trap in ("similar", "dissimilar")]
    questions = tuple(
        Choice(f"q{n:02}", f"s{n}", ("right", "a", "b", "c"), 0, group=f"g{n // 2}",
               far=sides[n % 4][0] if cells else None, trap=sides[n % 4][1] if cells else "")
        for n in range(40)
    )  # fmt: skip
    return Choices(
        "drawn cells" if cells else "drawn", questions, frozenset(f"q{n:02}" for n in range(30, 40))
    )


def said(system, kind, right):
    """Answers that are right for the questions whose number a rule lets through."""
    values = {f"q{n:02}": (1.0, 0.0, 0.0, 0.0) if right(n) else (0.0, 1.0, 0.0, 0.0) for n in range(40)}
    return Answers(system, kind, "drawn", values)


SAID = {
    each.system: each
    for each in (
        said("surface", "surface", lambda n: n % 4 == 0),
        said("lucky on the test split", "control", lambda n: n >= 30),
        said("fitted surface", "control", lambda n: n % 2 == 0),
        said("own", "structure", lambda n: n % 4 != 3),
    )
}


def test_the_best_control_is_chosen_on_the_dev_questions_alone():
    assert best_control(asked(), SAID, fitted=False) == "surface"
    assert best_control(asked(), SAID, fitted=True) == "fitted surface"


def test_a_gain_is_paired_and_told_apart_for_test_questions_and_groups():
    own, other = (graded(SAID[name], asked()) for name in ("own", "fitted surface"))
    found = gaps(asked(), own, other)
    assert [len(found[part]) for part in ("all", "test", "groups")] == [40, 10, 20]
    assert found["all"].mean() == pytest.approx(0.25) and found["test"].mean() == pytest.approx(0.2)
    (row,) = gains("own", [(asked(), SAID)], fitted=True).rows
    assert [cell.text for cell in row[:5]] == ["drawn", "fitted surface", ".750", ".500", "+.250"]
    assert row[4].bold


def test_results_give_the_same_tables_without_a_model(tmp_path):
    drawn = asked(cells=True)
    save_choices(drawn, tmp_path / "questions" / "drawn cells.jsonl.gz")
    save_answers([Answers(each.system, each.kind, drawn.name, each.scores) for each in SAID.values()], drawn,
                 tmp_path / "answers" / "drawn cells.jsonl.gz")  # fmt: skip
    ((some, found),) = kept(tmp_path)
    assert accuracies(some, found).text == accuracies(drawn, SAID).text


def test_before_the_test_questions_are_evaluated_only_the_others_are_read(tmp_path):
    drawn = asked(cells=True)
    save_choices(drawn, tmp_path / "questions" / "drawn cells.jsonl.gz")
    part = {f"q{n:02}" for n in range(30)}
    some = Answers("own", "structure", drawn.name, {id: SAID["own"].scores[id] for id in part})
    save_answers([some], drawn.dev, tmp_path / "answers" / "drawn cells.jsonl.gz")
    ((found, _),) = kept(tmp_path)
    assert {question.id for question in found.questions} == part


def test_the_worst_cell_is_shown_and_bold_only_above_chance():
    grid = worst_cells([(asked(cells=True), SAID)])
    worst = {row[0].text: row[1] for row in grid.rows}
    assert worst["own"].text.startswith(".000") and not worst["own"].bold
