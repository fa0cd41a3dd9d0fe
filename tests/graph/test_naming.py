"""The nodes of graphs that other programs wrote go by their names."""

import pytest

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.snapshots import use_names_as_ids
from kgot_lab.stores.files import read_graph, read_named_graph, write_graph
from kgot_lab.types import Edge, Node

APOC = """\
{"type":"node","id":"0","labels":["Person"],"properties":{"name":"Ada Lovelace","born":1815}}
{"type":"node","id":"1","labels":["City"],"properties":{"name":"London"}}
{"type":"node","id":"2","labels":["City"],"properties":{"title":["London"]}}
{"type":"node","id":"3","labels":["Note"]}
{"type":"relationship","id":"0","label":"BORN_IN","start":{"id":"0"},"end":{"id":"1"}}
"""
TURTLE = """\
@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix other: <http://example.com/> .
ex:Q7259 a ex:Person ; rdfs:label "Ada Lovelace"@en ; ex:bornIn ex:Q84 ; ex:born 1815 ; ex:knows ex:Charles%20Babbage .
ex:Q84 skos:prefLabel "London" ; ex:in ex:England . ex:England other:in ex:Q84 .
"""


def test_nodes_of_neo4js_export_go_by_their_names_and_keep_their_numbers(tmp_path):
    (tmp_path / "all.json").write_text(APOC)
    read = read_named_graph(tmp_path / "all.json")
    assert read.graph.ids == ("Ada Lovelace", "London (1)", "London (2)", "3")
    ada = read.graph.node("Ada Lovelace")
    assert ada.properties == {"source_id": "0", "name": "Ada Lovelace", "born": 1815}
    assert [edge.identity[:3] for edge in read.graph.edges] == [("Ada Lovelace", "BORN_IN", "London (1)")]
    note = "3 of 4 nodes by their names, not by numbers or IRIs (kept as source_id)"
    assert read.note == f"the graph of another program: {note}"


def test_nodes_and_relations_of_turtle_go_by_their_names_where_those_mean_one_thing(tmp_path):
    pytest.importorskip("pyoxigraph")
    (tmp_path / "all.ttl").write_text(TURTLE)
    read = read_named_graph(tmp_path / "all.ttl")
    assert set(read.graph.ids) == {"Ada Lovelace", "London", "Charles Babbage", "England"}
    ada = read.graph.node("Ada Lovelace")
    assert ada.labels == ("Person",) and ada.properties["born"] == 1815
    assert ada.properties["source_id"] == "http://example.org/Q7259"
    types = {edge.type for edge in read.graph.edges}
    assert types == {"bornIn", "knows", "http://example.org/in", "http://example.com/in"}
    assert "2 relations by the last part of the IRI" in read.note


def test_a_name_never_takes_the_place_of_another_node():
    rome = [Node("2", (), {"name": "Rome"}), Node("3", (), {"name": "Rome (2)"})]
    nodes = [Node("1", (), {"name": "Paris"}), Node("Paris"), *rome]
    assert use_names_as_ids(PropertyGraph.of([*nodes, Node("4", (), {"name": "Rome"})])).graph.ids == (
        "Paris (1)", "Paris", "Rome (2)′", "Rome (2)", "Rome (4)",
    )  # fmt: skip


@pytest.mark.parametrize("ending", [".jsonl", ".graphml", ".ttl"])
def test_a_graph_of_ours_comes_back_as_it_was(tmp_path, ending):
    nodes = [Node("Ada Lovelace", ("P",), {"name": "Ada"}), Node("London")]
    graph = PropertyGraph.of(nodes, [Edge("Ada Lovelace", "born in", "London")])
    write_graph(graph, tmp_path / f"g{ending}")
    assert read_named_graph(tmp_path / f"g{ending}").graph == read_graph(tmp_path / f"g{ending}") == graph
    assert use_names_as_ids(graph).graph is graph
