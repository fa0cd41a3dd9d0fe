"""Graphs in files: every form gives back what was written, and a bad file is named."""

from __future__ import annotations

import os

import pytest

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.stores.files import WRITERS, read_graph, read_named_graph, write_graph
from kgot_lab.types import Edge, Node

ENDINGS = {"apoc": ".jsonl", "networkx": ".json", "graphml": ".graphml", "turtle": ".ttl"}
NASTY = "quote \" ' brace {} \\ ` line\u2028 é 中 🧪 \r\n\t<&> ]]>"
ODD = PropertyGraph.of(
    [
        Node(
            'a é <"&',
            ("B", "A"),
            {
                "x": NASTY,
                "i": 1,
                "f": 1.0,
                "minus": -0.0,
                "e": 1e308,
                "b": True,
                "n": None,
                "l": [1, {"a": None}],
            },
        ),
        Node(
            "b",
            (),
            {
                "big": 2**80,
                "": "no name",
                "label": "z",
                "labels": "q",
                "t": "json:x",
                "spaces": "  x  ",
                "empty": "",
                "id": 5,
            },
        ),
        Node("bare"),
    ],
    [
        Edge('a é <"&', "won", "b", {"x": 1, "relation": "zz", "id": "9", "key": "k"}),
        Edge('a é <"&', "won", "b", {}, "2"),
        Edge("b", "is in", "b", {"x": 1.5}),
    ],
)


@pytest.fixture(params=WRITERS)
def form(request):
    return request.param


def test_every_form_gives_back_what_was_written(form, tmp_path):
    path = tmp_path / f"graph{ENDINGS[form]}"
    write_graph(ODD, path, form)
    assert not ODD.diff(read_graph(path))
    write_graph(PropertyGraph.of(), path, form)
    assert len(read_graph(path)) == 0


@pytest.mark.parametrize("number", range(5))
def test_a_snapshot_goes_through_every_form_without_loss(form, number, tmp_path):
    graph = read_graph(bundled_path(f"kgot-snapshots/data_{number}.json"))
    write_graph(graph, tmp_path / f"graph{ENDINGS[form]}", form)
    assert read_graph(tmp_path / f"graph{ENDINGS[form]}") == graph


def test_the_ending_says_the_form(tmp_path):
    for ending in (".json", ".jsonl", ".graphml", ".ttl", ".TTL"):
        write_graph(ODD, tmp_path / f"graph{ending}")
        assert read_graph(tmp_path / f"graph{ending}") == ODD


@pytest.mark.parametrize(
    "content", ["not a graph at all <", '{"type": "node"}', "<graphml><node/></graphml>", "\x00\x01"]
)
def test_a_file_that_cannot_be_read_is_named(form, content, tmp_path):
    path = tmp_path / f"bad{ENDINGS[form]}"
    path.write_text(content)
    with pytest.raises(BadInput, match="bad"):
        read_graph(path)


def test_a_missing_file_is_named(form, tmp_path):
    with pytest.raises(BadInput, match="absent"):
        read_graph(tmp_path / f"absent{ENDINGS[form]}")


def test_an_unknown_ending_lists_the_known_ones(tmp_path):
    with pytest.raises(UnknownName, match=r"\.graphml"):
        write_graph(ODD, tmp_path / "graph.xlsx")
    assert not list(tmp_path.iterdir())


def test_what_xml_cannot_hold_is_refused_by_name_and_kept_as_a_value(tmp_path):
    kept = PropertyGraph.of([Node("a", (), {"p": "null \x00, half \ud800"})])
    write_graph(kept, tmp_path / "kept.graphml")
    assert read_graph(tmp_path / "kept.graphml") == kept
    with pytest.raises(BadInput, match="cannot hold the name"):
        write_graph(PropertyGraph.of([Node("null \x00")]), tmp_path / "refused.graphml")
    assert not (tmp_path / "refused.graphml").exists()


def test_a_graph_of_another_program_is_read(tmp_path):
    (tmp_path / "other.graphml").write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="d0" for="node" attr.name="weight" attr.type="double"/>'
        '<graph edgedefault="undirected"><node id="n0"><data key="d0">1.5</data></node><node id="n1"/><edge source="n0" target="n1"/>'
        "</graph></graphml>"
    )
    assert "its edges have no direction" in read_named_graph(tmp_path / "other.graphml").note
    graph = read_graph(tmp_path / "other.graphml")
    assert graph.node("n0").properties == {"weight": 1.5} and len(graph.edges) == 1


@pytest.mark.parametrize(
    "begins", [b"<?xml version='1.0' encoding='utf-42'?><graphml/>", b"<graphml><node/></graphml>", b""]
)
def test_a_damaged_graphml_file_is_refused_in_one_sentence(tmp_path, begins):
    (tmp_path / "g.graphml").write_bytes(begins)
    with pytest.raises(BadInput, match=r"g\.graphml: cannot be read as GraphML or GEXF: ."):
        read_graph(tmp_path / "g.graphml")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("ending", [".json", ".jsonl", ".graphml", ".ttl"])
def test_a_pipe_is_no_graph_and_is_not_waited_for(tmp_path, ending):
    os.mkfifo(tmp_path / f"g{ending}")
    with pytest.raises(BadInput, match="not a regular file but a pipe"):
        read_graph(tmp_path / f"g{ending}")
