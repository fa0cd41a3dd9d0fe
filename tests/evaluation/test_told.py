"""A report told in rows says what the report holds."""

import pytest

from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.reports import Report, report
from kgot_lab.evaluation.results import Plan
from kgot_lab.evaluation.runs import Run
from kgot_lab.evaluation.tables import format_signed
from kgot_lab.types import Document, Hit, Query
from notebooks.report_rows import format_gain, head_to_head


@pytest.fixture(scope="module")
def made() -> Report:
    """Three systems on eight questions with two gold passages each, half of them held out: none, one or both
    found.
    """
    documents = tuple(Document(id, f"text {id}") for id in "abcd")
    queries = tuple(Query(f"question {n}?", f"q{n}") for n in range(8))
    data = Dataset(
        "toy",
        documents,
        queries,
        {query.id: {"a": 1, "b": 1} for query in queries},
        test_ids=frozenset({"q4", "q5", "q6", "q7"}),
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


def test_a_gain_is_signed_and_has_its_interval_and_the_baseline_has_none(made):
    gains = [format_gain(made, system, part) for system, part in (("both", "all"), ("none", "test"))]
    assert gains[0].startswith(format_signed(0.5)) and gains[1].startswith(format_signed(-0.5))
    assert " " not in gains[0] and format_gain(made, "one") == ""


def test_two_systems_meet_on_some_of_the_questions_without_the_baseline(made):
    assert head_to_head(made, "none", "both").difference.mean == 1
    assert head_to_head(made, "both", "none", ids={"q1", "q2", "q3"}).losses == 3
