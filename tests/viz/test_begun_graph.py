"""A run that began with a graph, in every view: its graph is there from the first event on, and what a write
changes of it is marked.
"""

from __future__ import annotations

import pytest

import kgot_lab as lab
from kgot_lab.loop.events import Answered, Started, Wrote
from kgot_lab.loop.trace import Trace

BORN = lab.Edge("Ada", "born in", "London")
BEGUN = lab.PropertyGraph.of([lab.Node("Ada"), lab.Node("London")], [BORN])
CHANGED = lab.Diff(
    added_nodes=(lab.Node("Babbage"),),
    changed_edges=((BORN, lab.Edge("Ada", "born in", "London", {"year": 1815})),),
)


@pytest.fixture
def run():
    events = (
        Started(question="Where?", graph=BEGUN.digest, start=BEGUN, dialect="Python (NetworkX)"),
        Wrote(statement="add", diff=CHANGED),
        Answered(text="London", forced=False, evidence=("Ada --[born in]--> London",)),
    )
    return Trace("run", "", events)


def test_the_stepper_shows_the_graph_from_the_first_event_on(run):
    view = lab.stepper(run)
    data = view.live.widget().data["run"]
    assert [len(graph["nodes"]) for graph in data["graphs"]][data["graph_at"][0]] == 2
    assert len(data["graphs"][data["graph_at"][-1]]["nodes"]) == 3


def test_the_page_and_the_graph_in_the_end_begin_there(run, tmp_path):
    lab.html(run).save(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()
    assert "Babbage" in page and "London" in page
    assert len(lab.graph_after(run.events)) == 3
    assert lab.graph_after(run.events).edges[0].properties == {"year": 1815}
