"""Beside every picture stands a table, on request: what a picture says to the eye is said there in words and
numbers.

That of two texts side by side is in test_structure.py.
"""

from __future__ import annotations

from support.every import every
from viz.test_pages import EVIL

from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.replay.forks import recorded_fork
from kgot_lab.loop.trace import graph_after, load_run
from kgot_lab.retrieval.fusion import weighted
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.types import Document, Edge, Node
from kgot_lab.viz import explore, plots, show_graph, stepper
from kgot_lab.viz.explorer.explorer import Retrievers
from kgot_lab.viz.graph.svg import svg
from kgot_lab.viz.static.pipeline import pipeline
from kgot_lab.viz.static.table import table

RUN = load_run(bundled_path("traces/winter_storm.jsonl"))
FORK = recorded_fork(RUN, load_run(bundled_path("traces/winter_storm_fork_volcano.jsonl")))
DOCUMENTS = [Document("a", "a machine", "A"), Document("b", "another machine", "B")]
BEFORE = PropertyGraph.of(
    [Node("ada"), Node("bob"), Node("old")], [Edge("ada", "knew", "bob"), Edge("old", "near", "bob")]
)
AFTER = PropertyGraph.of(
    [Node("ada", (), {"born": 1815}), Node("bob"), Node(EVIL)], [Edge("ada", "knew", EVIL)]
)


def sheets(picture):
    """The rows of each sheet by its name."""
    return {sheet.name: sheet.rows for sheet in picture.table().sheets}


@every(
    "picture",
    [
        svg(AFTER),
        show_graph(AFTER),
        stepper(RUN),
        explore(Retrievers(text=bm25(DOCUMENTS)), DOCUMENTS, queries=["machine"]),
        explore(Retrievers(text=bm25(DOCUMENTS)), DOCUMENTS, queries=["machine"]).picture,
        plots.votes(RUN),
        plots.growth(RUN),
        pipeline(bm25(DOCUMENTS) % 3),
    ],
    ids=lambda picture: type(picture).__name__,
)
def test_every_picture_has_a_table_with_something_in_it(picture):
    assert sum(sheet.total for sheet in picture.table().sheets) > 0
    assert "<table>" in picture.table()._repr_html_() and EVIL not in picture.table()._repr_html_()


def test_the_table_of_a_graph_says_what_is_marked_and_holds_what_found_no_room():
    found = sheets(svg(AFTER, highlight=BEFORE.diff(AFTER), limit=1))
    marks = found["The last write: " + str(BEFORE.diff(AFTER))]
    both = {(mark, kind) for mark in ("added", "removed") for kind in ("node", "edge")}
    assert {(mark, kind) for mark, kind, _ in marks} == both | {("changed", "node")}
    assert ("removed", "edge", "old – near – bob") in marks
    assert len(found["Nodes"]) == 4 and len(found["Edges"]) == 3


def test_the_table_of_a_path_names_its_nodes_and_edges_in_order():
    marks = sheets(svg(BEFORE, highlight=["ada", "bob", "old"]))["The path: ada – bob – old"]
    assert [which for _, kind, which in marks if kind == "node"] == ["ada", "bob", "old"]
    assert [which for _, kind, which in marks if kind == "edge"] == ["ada – knew – bob", "old – near – bob"]


def test_a_stepper_has_a_row_for_each_event_of_each_run_and_the_graph():
    found = sheets(stepper(RUN, forks=[FORK]))
    (marks,) = set(found) - {"The run", "Fork 1", "Nodes", "Edges"}
    assert marks.startswith("The answer: La Nina contributed")
    assert all(mark == "evidence" for mark, *_ in found[marks])
    assert len(found["The run"]) == len(RUN.events) and len(found["Fork 1"]) == len(FORK.events)
    question = "Why did the US have a winter storm in late January 2026?"
    assert found["The run"][0] == ("0", "Start", "question", question)
    assert found["The run"][-1][2:] == (
        "answer: La Nina contributed to the winter storm, and Arctic…",
        found["The run"][-1][3],
    )
    assert len(found["Nodes"]) == len(graph_after(RUN.events))


def test_a_pipeline_has_a_row_for_each_box_which_says_what_it_comes_after():
    one, other = bm25(DOCUMENTS), bm25(DOCUMENTS) % 5
    assert sheets(pipeline(weighted((0.7, one), (0.3, other), scale="maximum") % 2))["Steps"] == (
        ("1", "question", "", ""),
        ("2", "bm25", "", "1"),
        ("3", "bm25", "", "1"),
        ("4", "best 5", "", "3"),
        ("5", "weighted", "scale=maximum", "2 (weight 0.7), 4 (weight 0.3)"),
        ("6", "best 2", "", "5"),
        ("7", "ranking", "", "6"),
    )


def test_a_table_of_texts_says_the_same_in_markdown_and_latex_and_is_harmless_there():
    made = table([{"name": "Ada", "year": 1815}, {"name": EVIL, "year": None}])
    lines = ["**2 rows**", "", "| name | year |", "| --- | --- |", "| Ada | 1815 |"]
    assert made.markdown.splitlines()[:5] == lines
    assert r"\begin{tabular}{ll}" in made.latex and r"Ada & 1815 \\" in made.latex
    assert "<script" not in made.markdown.replace("\\<", "")
    assert "\u202e" not in made.markdown + made.latex + repr(made)
