"""Runs in several languages, side by side."""

from __future__ import annotations

import pytest

from kgot_lab.errors import BadInput
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.events import Answered, Read, Started, Wrote
from kgot_lab.loop.trace import load_run
from kgot_lab.types import Diff, Edge, Node
from notebooks.side_by_side import side_by_side

KINDS = ("in_memory", "cypher_embedded", "sparql_embedded")
EVIL = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def shown():
    return side_by_side([load_run(bundled_path(f"traces/same_question_{kind}.jsonl")) for kind in KINDS])


def test_each_run_has_a_column_with_its_graph_and_its_words(shown):
    page = shown._repr_html_()
    assert page.count("<img") == 3 and page.count('scope="col"') == 3
    assert [texts[0] for texts in shown.told] == ["Python (NetworkX)", "Cypher", "SPARQL"]
    assert all(texts[-1] == "Botswana" for texts in shown.told)


def test_a_fact_and_the_read_are_in_the_language_of_the_run(shown):
    assert [texts[1] for texts in shown.told] == [
        "Ayesha Quraishi --[born in]--> Botswana",
        '("Ayesha Quraishi")-[:`born in`]->("Botswana")',
        ":Ayesha_Quraishi :born_in :Botswana .",
    ]
    python, cypher, sparql = (texts[3] for texts in shown.told)
    assert python.startswith("result = ") and cypher.startswith("MATCH ") and sparql.startswith("SELECT ")


def test_the_table_says_the_same_without_the_pictures(shown):
    (sheet,) = shown.table().sheets
    assert sheet.rows == shown.told and sheet.name in repr(shown)


def test_what_a_model_wrote_cannot_become_markup():
    run = (
        Started(question=EVIL, dialect=EVIL),
        Wrote(
            statement=EVIL,
            diff=Diff(added_nodes=(Node(EVIL), Node("b")), added_edges=(Edge(EVIL, EVIL, "b"),)),
        ),
        Read(statement=EVIL, rows=({EVIL: EVIL}, EVIL), dialect=EVIL),
        Answered(text=EVIL, forced=False),
    )
    page = side_by_side([run])._repr_html_()
    assert "<img src=x" not in page and page.count("&lt;img src=x") >= 6


def test_a_run_that_came_to_nothing_says_so():
    (told,) = side_by_side([(Started(question="?", dialect="Cypher"),)]).told
    texts = ("Cypher", "nothing was written", "0 statements", "no read gave rows", "", "no answer")
    assert told == texts


@pytest.mark.parametrize("runs", [[], [()], [(Answered(text="x", forced=False),)]])
def test_runs_without_a_beginning_are_refused(runs):
    with pytest.raises(BadInput, match="from its first event"):
        side_by_side(runs)
