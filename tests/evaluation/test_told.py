"""A report told in rows says what the report holds."""

import pytest

from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.reports import Report, report
from kgot_lab.evaluation.results import Plan
from kgot_lab.evaluation.runs import Run
from kgot_lab.evaluation.tables import format_decimal, format_signed
from kgot_lab.types import Document, Hit, Query
from notebooks.report_rows import format_gain, head_to_head, preregistered_gains, standings


@pytest.fixture(scope="module")
def made() -> Report:
    """Three systems on eight questions with two gold passages each, half of them locked: none, one or both
    found.
    """
    documents = tuple(Document(id, f"text {id}") for id in "abcd")
    queries = tuple(Query(f"question {n}?", f"q{n}") for n in range(8))
    data = Dataset(
        "toy",
        documents,
        queries,
        {query.id: {"a": 1, "b": 1} for query in queries},
        locked=frozenset({"q4", "q5", "q6", "q7"}),
    )
    found = {"none": "cd", "one": "ca", "both": "ab"}
    runs = [
        Run(
            name,
            name,
            "toy",
            20,
            {query.id: tuple(Hit(id, -n) for n, id in enumerate(ids)) for query in queries},
        )
        for name, ids in found.items()
    ]
    return report(runs, data, Plan("one", rounds=200))


def test_each_system_has_its_mean_and_gain_by_part_and_the_baseline_no_gain(made):
    rows = {row["system"]: row for row in standings(made, ["both", "one", "none"])}
    assert (rows["both"]["all"], rows["both"]["gain, all"]) == (format_decimal(1.0), format_signed(0.5))
    found = (rows["none"]["locked"], rows["none"]["gain, locked"])
    assert found == (format_decimal(0.0), format_signed(-0.5))
    assert rows["one"]["gain, all"] == rows["one"]["p Holm, locked"] == "" == format_gain(made, "one")
    assert format_gain(made, "both").startswith(format_signed(0.5)) and " " not in format_gain(made, "both")


def test_the_one_named_before_is_corrected_for_the_reports_and_not_for_all_systems(made):
    row, again = preregistered_gains({"toy": made, "again": made}, "both")
    p = made.comparisons["all"]["both"].p
    assert row["p, of 2"] == again["p, of 2"] == round(min(1, 2 * p), 4)
    assert (row["wins"], row["losses"], row["questions"]) == (8, 0, "all")


def test_two_systems_meet_on_some_of_the_questions_without_the_baseline(made):
    assert head_to_head(made, "none", "both").difference.mean == 1
    assert head_to_head(made, "both", "none", ids={"q1", "q2", "q3"}).losses == 3
