"""What a command writes over: no file of another program, and nothing that another command wrote in the
meantime.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import FIRST, REST, WRITE, asking, replies
from support.openai_server import Answer, openai_server

from kgot_lab.cli.output_files import SavedGraph, save_graph
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.snapshots import write_snapshot
from kgot_lab.stores.files import read_graph, write_graph
from kgot_lab.types import Edge, Node

pytestmark = pytest.mark.usefixtures("here")

GRAPH = PropertyGraph.of(
    [Node("Ada Lovelace"), Node("London")], [Edge("Ada Lovelace", "born in", "London", {"year": 1815})]
)
OTHER = PropertyGraph.of([Node("of another command")])
FOREIGN = {
    "own.ttl": '@prefix ex: <http://example.org/> .\nex:ada ex:name "Ada"@en ; ex:knows ex:charles .\n',
    "remarks.ttl": "# what we know, checked by hand\n<urn:a> <urn:b> <urn:c> .\n",
    "own.graphml": '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="w" for="node" attr.name="weight" attr.type="double">'
    '<default>2.5</default></key><graph edgedefault="directed"><node id="a"/></graph></graphml>',
    "neo4j.jsonl": '{"type":"node","id":"0","labels":["Person"],"properties":{"name":"Ada"}}\n',
}


def after(answer: Answer, do: Callable[[], object]) -> Callable[[dict[str, Any]], Answer]:
    """An answer that is sent once something else was done."""

    def answered(_: dict[str, Any]) -> Answer:
        do()
        return answer

    return answered


def another_graph(path: str) -> Callable[[], object]:
    return lambda: write_snapshot(OTHER, path, variant="networkx")


@pytest.mark.parametrize("name", FOREIGN)
def test_a_graph_is_not_saved_over_the_file_of_another_program(kgot_lab, server, name):
    Path(name).write_text(FOREIGN[name])
    ran = kgot_lab(*asking(server, "--graph", name, "--save-graph", name))
    assert ran.code == 1, ran.err
    assert f"--save-graph {name} is not as this program writes a graph" in ran.err, ran.err
    assert "name another" in ran.err, ran.err
    assert Path(name).read_text() == FOREIGN[name] and not server.bodies


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("g.ttl", "turtle"),
        ("g.graphml", "graphml"),
        ("g.jsonl", "networkx"),
        ("g.json", "apoc"),
        ("g.jsonl", "apoc"),
    ],
)
def test_a_graph_of_ours_is_saved_over_in_the_form_it_has(kgot_lab, server, name, form):
    write_graph(GRAPH, name, form)
    ran = kgot_lab(*asking(server, "--graph", name, "--save-graph", name))
    assert ran.code == 0 and f"written to {name}" in ran.err, ran.err
    saved = read_graph(name)
    write_graph(saved, "fresh", form)
    assert GRAPH.edges[0].identity in {edge.identity for edge in saved.edges}
    assert Path(name).read_bytes() == Path("fresh").read_bytes()


def test_a_graph_that_came_to_the_place_of_another_in_the_meantime_stays_and_both_are_kept(kgot_lab, here):
    first, *rest = replies(*FIRST, *REST)
    with openai_server(after(first, another_graph("learnt.jsonl")), *rest) as model:
        ran = kgot_lab(*asking(model, "--save-graph", "learnt.jsonl", "--trace", "run.jsonl"))
        asked = len(model.bodies)
        assert ran.code == 1 and "learnt.jsonl was written by another command in the meantime" in ran.err, (
            ran.err
        )
        assert "kgot-lab resume run.jsonl --save-graph learnt-2.jsonl" in ran.err
        assert read_graph("learnt.jsonl") == OTHER
        assert kgot_lab("resume", "run.jsonl", "--save-graph", "learnt-2.jsonl").code == 0
        assert len(read_graph("learnt-2.jsonl").edges) == 1 and len(model.bodies) == asked


def test_a_graph_that_was_changed_while_a_run_began_with_it_is_not_written_over(kgot_lab, here):
    write_snapshot(GRAPH, "graph.jsonl", variant="networkx")
    first, *rest = replies(*FIRST, *REST)
    with openai_server(after(first, another_graph("graph.jsonl")), *rest) as model:
        ran = kgot_lab(
            *asking(model, "--graph", "graph.jsonl", "--save-graph", "graph.jsonl", "--trace", "run.jsonl")
        )
    assert ran.code == 1 and "--save-graph graph-2.jsonl" in ran.err and read_graph("graph.jsonl") == OTHER, (
        ran.err
    )
    assert "Answer: London" in ran.out
    ran = kgot_lab("resume", "run.jsonl", "--save-graph", "graph-2.jsonl")
    (edge,) = read_graph("graph-2.jsonl").edges
    assert ran.code == 0 and edge.identity == GRAPH.edges[0].identity and edge.properties["year"] == 1815, (
        ran.err
    )
    assert edge.properties["sentence"], (
        "the run read a sentence that says the fact, which it gained as a support"
    )


def test_a_stopped_run_is_not_saved_over_a_graph_that_came_in_the_meantime(kgot_lab, here):
    with openai_server(*replies(*FIRST, *REST)) as model:
        assert (
            kgot_lab(
                *asking(model, "--save-graph", "learnt.jsonl", "--trace", "run.jsonl", "--max-calls", "5")
            ).code
            == 1
        )
        another_graph("learnt.jsonl")()
        asked = len(model.bodies)
        ran = kgot_lab("resume", "run.jsonl", "--max-calls", "50")
        assert ran.code == 1
        assert "--save-graph learnt.jsonl holds another graph" in ran.err
        assert len(model.bodies) == asked
        assert kgot_lab("resume", "run.jsonl", "--max-calls", "50", "--save-graph", "mine.jsonl").code == 0
    assert read_graph("learnt.jsonl") == OTHER and len(read_graph("mine.jsonl").edges) == 1


def test_where_a_resumed_run_is_saved_is_in_the_command_that_goes_on_with_it(kgot_lab, here):
    with openai_server(*replies(*FIRST, *REST)) as model:
        assert kgot_lab(*asking(model, "--trace", "run.jsonl", "--max-calls", "3")).code == 1
        ran = kgot_lab(
            "resume", "run.jsonl", "--max-calls", "5", "--save-graph", "mine.jsonl", "--snapshots", "snaps"
        )
    assert ran.code == 1 and "--save-graph mine.jsonl --snapshots snaps" in ran.err, ran.err


def test_a_run_is_not_saved_over_the_graph_beside_its_trace(kgot_lab, server):
    write_snapshot(GRAPH, "graph.jsonl", variant="networkx")
    assert kgot_lab(*asking(server, "--graph", "graph.jsonl", "--trace", "run.jsonl")).code == 0
    ran = kgot_lab("resume", "run.jsonl", "--save-graph", "run.start.jsonl")
    assert ran.code == 1, ran.err
    assert "are the same file, run.start.jsonl" in ran.err, ran.err
    assert read_graph("run.start.jsonl") == GRAPH, ran.err


def test_a_run_that_has_its_answer_says_that_a_file_holds_another_graph(kgot_lab, server):
    assert kgot_lab(*asking(server, "--save-graph", "learnt.jsonl", "--trace", "run.jsonl")).code == 0
    assert "learnt.jsonl" not in kgot_lab("resume", "run.jsonl").err
    another_graph("learnt.jsonl")()
    ran = kgot_lab("resume", "run.jsonl")
    assert ran.code == 0 and "note: learnt.jsonl holds another graph than this run made" in ran.err
    another_graph("theirs.jsonl")()
    ran = kgot_lab("resume", "run.jsonl", "--save-graph", "theirs.jsonl")
    assert ran.code == 1 and "theirs.jsonl holds another graph than this run made" in ran.err
    assert read_graph("learnt.jsonl") == read_graph("theirs.jsonl") == OTHER


def test_an_extracted_graph_is_not_written_over_one_that_came_in_the_meantime(kgot_lab, here):
    first, *rest = replies(WRITE, {"statements": []})
    with openai_server(after(first, another_graph("graph.jsonl")), *rest) as model:
        ran = kgot_lab("extract", "my papers", "--model", f"{model.url}#m", "--trace", "x.jsonl")
        assert ran.code == 1 and "graph.jsonl was written by another command in the meantime" in ran.err, (
            ran.err
        )
        assert read_graph("graph.jsonl") == OTHER and "--out graph-2.jsonl" in ran.err
        asked, again = len(model.bodies), shlex.split(ran.err.strip().split("made by: ")[-1])
        assert kgot_lab(*again[1:]).code == 0
        assert len(read_graph("graph-2.jsonl").edges) == 1 and len(model.bodies) == asked


def test_snapshots_of_another_run_stay_and_those_of_this_one_are_made_again_elsewhere(kgot_lab, here):
    theirs = lambda: write_snapshot(OTHER, "snaps/snapshot_1.json", variant="networkx")  # noqa: E731
    first, *rest = replies(*FIRST, *REST)
    with openai_server(after(first, theirs), *rest) as model:
        ran = kgot_lab(*asking(model, "--snapshots", "snaps", "--trace", "run.jsonl"))
        asked = len(model.bodies)
        assert ran.code == 0 and read_graph("snaps/snapshot_1.json") == OTHER, ran.err
        assert "snapshot_1.json is of another run" in ran.err
        assert "kgot-lab resume run.jsonl --snapshots snaps-2" in ran.err
        assert kgot_lab("resume", "run.jsonl", "--snapshots", "snaps-2").code == 0
        assert len(read_graph("snaps-2/snapshot_1.json").edges) == 1 and len(model.bodies) == asked


def test_a_graph_that_cannot_be_saved_leaves_no_empty_file(here):
    with pytest.raises(BadInput, match="cannot hold the name"):
        save_graph(PropertyGraph.of([Node("null \x00")]), [], SavedGraph(here / "learnt.graphml"))
    assert not (here / "learnt.graphml").exists()
