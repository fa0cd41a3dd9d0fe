"""Reports side by side: the numbers behind the pictures are those of the reports."""

import xml.etree.ElementTree as ET

import pytest

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.reports import report
from kgot_lab.evaluation.results import Plan
from kgot_lab.evaluation.runs import Run
from kgot_lab.types import Document, Hit, Query
from kgot_lab.viz import plots

DATA = Dataset(
    "toy",
    tuple(Document(id, f"text {id}") for id in "abcdefgh"),
    tuple(Query(f"question {n}?", f"q{n}") for n in range(4)),
    {f"q{n}": {"a": 1, "b": 1} for n in range(4)},
    test_ids=frozenset({"q2", "q3"}),
)


def made(data, **found):
    hits = {
        name: {query.id: tuple(Hit(id, -n) for n, id in enumerate(ids)) for query in data.queries}
        for name, ids in found.items()
    }
    return report(
        [Run(name, name, data.name, 20, hits[name]) for name in hits], data, Plan("one", rounds=200)
    )


def test_each_dot_is_a_row_of_its_report_and_the_diamond_of_the_test_questions():
    pytest.importorskip("matplotlib")
    reports = {"first": made(DATA, one="ac", both="ab"), "second": made(DATA, one="ca", both="ba")}
    drawn = plots.spans(reports, ["both", "one"])
    rows = {(row["data"], row["system"]): row for row in drawn.numbers}
    assert rows["first", "both"]["mean"] == 1 and rows["second", "one"]["test"] == 0.5 and len(rows) == 4
    words = [node.text or "" for node in ET.fromstring(drawn.svg).iter("text")]
    assert {"first", "second", "both"} <= set(words)


def test_a_plot_is_drawn_by_its_name_and_an_unknown_name_lists_those_there_are():
    pytest.importorskip("matplotlib")
    reports = {"first": made(DATA, one="ac", both="ab")}
    assert plots.plot_named("spans", reports, ["one"]) == plots.spans(reports, ["one"])
    assert set(plots.PLOTS) == set(plots.__all__) - {"PLOTS", "Plot", "plot_named"}
    with pytest.raises(UnknownName, match="lifelines"):
        plots.plot_named("lifeline")


def test_a_report_without_test_questions_has_no_diamonds_and_no_report_is_refused():
    pytest.importorskip("matplotlib")
    open_data = Dataset("open", DATA.documents, DATA.queries, DATA.qrels)
    assert "test" not in plots.spans({"open": made(open_data, one="ac", both="ab")}, ["both"]).numbers[0]
    with pytest.raises(BadInput):
        plots.spans({}, ["both"])
