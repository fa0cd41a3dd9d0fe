"""Graphs as most people bring them: tables of edges, and JSON with nodes and links; what is wrong with one is
told with its place.
"""

from __future__ import annotations

import json

import networkx as nx
import pytest

from kgot_lab.errors import BadInput
from kgot_lab.graph.exchange import from_networkx, to_networkx
from kgot_lab.stores.files import lossless_format, read_graph, read_named_graph
from kgot_lab.types import Edge, Node


def read(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return read_named_graph(path).graph


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.csv", "source,type,target,since\nada,knows,bob,1843\nbob,related_to,carol,\n"),
        ("g.csv", "\ufeffFrom;Relation;To;since\n\nada;knows;bob;1843\n bob ;;carol\n"),
        ("g.tsv", "subject\tpredicate\tobject\tsince\r\nada\tknows\tbob\t1843\r\nbob\t\tcarol\t\r\n"),
        ("g.csv", 'target,"source",since,type\n"bob","ada",1843,knows\ncarol,bob,,\n'),
    ],
)
def test_a_table_of_edges_is_read_whatever_its_columns_are_called(tmp_path, name, text):
    graph = read(tmp_path, name, text)
    assert sorted(graph.ids) == ["ada", "bob", "carol"]
    assert set(map(repr, graph.edges)) == set(
        map(repr, [Edge("ada", "knows", "bob", {"since": 1843}), Edge("bob", "related_to", "carol", {})])
    )
    assert lossless_format(tmp_path / name) == ""


def test_a_line_ends_where_a_file_says_so_and_at_no_other_separator(tmp_path):
    graph = read(tmp_path, "g.csv", "source,type,target\nada\u2028lovelace,knows,bob\x0bof york\n")
    assert [(edge.source, edge.target) for edge in graph.edges] == [("ada\u2028lovelace", "bob\x0bof york")]


def test_cells_may_hold_the_delimiter_and_rows_may_say_one_thing_twice(tmp_path):
    graph = read(
        tmp_path, "g.csv", 'source,target,said\na,b,"one, two\nlines"\na,b,again\na,c,007\na,d,0.5\n'
    )
    told = [(edge.target, edge.key, edge.properties["said"]) for edge in graph.edges]
    assert told == [("b", "", "one, two\nlines"), ("b", "2", "again"), ("c", "", "007"), ("d", "", "0.5")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "who,whom\na,b\n",
            r"line 1: the first line names the columns.*source,type,target; this is 'who', 'whom'",
        ),
        ("source,target\na,b,c\n", r"line 2: 3 cells, and the head has 2"),
        ("source,source,target\na,b,c\n", r"two columns are called 'source'"),
        ('source,target\na,"b\n', r"line 2: not a row of a table"),
    ],
)
def test_a_row_that_is_none_is_told_with_its_line(tmp_path, text, words):
    with pytest.raises(BadInput, match=words):
        read(tmp_path, "g.csv", text)


@pytest.mark.parametrize("name", ["links", "edges"])
def test_node_link_data_of_networkx_is_read_as_networkx_is(tmp_path, name):
    graph = nx.MultiDiGraph()
    graph.add_node("ada", label="person", born=1815)
    graph.add_edge("ada", "engine", "wrote of#2", relation="wrote of", where="notes")
    graph.add_edge("ada", "engine", "wrote of", relation="wrote of")
    assert read(tmp_path, "g.json", nx.node_link_data(graph, edges=name)) == from_networkx(graph)
    again = to_networkx(from_networkx(graph))
    assert read(tmp_path, "g.json", nx.node_link_data(again, edges=name)) == from_networkx(graph)


def test_nodes_of_other_programs_have_types_names_and_numbers(tmp_path):
    nodes = [{"id": 1, "type": "person", "label": "Ada"}, {"id": 2, "labels": ["a", "b"], "name": "Bob"}]
    whole = {"nodes": [*nodes, "carol"]}
    links = [{"from": 1, "to": 2, "label": "knows", "weight": 2}, {"source": 2, "target": "x"}]
    graph = read(tmp_path, "g.json", whole | {"links": links})
    assert set(graph.ids) == {"Ada", "Bob", "carol", "x"}
    assert graph.node("Ada") == Node("Ada", ("person",), {"source_id": "1", "name": "Ada"})
    assert graph.node("Bob").labels == ("a", "b")
    facts = [(edge.type, edge.properties) for edge in graph.edges]
    assert facts == [("knows", {"weight": 2}), ("related_to", {})]
    content = {"nodes": [{"name": "x"}, {"name": "y"}], "links": [{"source": 0, "target": 1}]}
    by_place = read(tmp_path, "d3.json", content)
    assert [(edge.source, edge.target) for edge in by_place.edges] == [("x", "y")]


def test_it_may_be_written_over_many_lines(tmp_path):
    text = json.dumps({"nodes": [{"id": "a"}], "links": [{"source": "a", "target": "b"}]}, indent=2)
    assert read(tmp_path, "g.json", text).ids == ("a", "b")


@pytest.mark.parametrize(
    ("whole", "words"),
    [
        ({"nodes": [{"id": "a"}, {"colour": "red"}], "links": []}, r"node 2: a node without id"),
        ({"nodes": [True], "links": []}, r"node 1: a node without id"),
        ({"nodes": ["a"], "edges": [{"source": "a"}]}, r"link 1: it has no target"),
        ({"nodes": ["a"], "edges": [["a", "b", "c", "d"]]}, r"link 1: a link is an object"),
        ('{\n"nodes": [\n{"id": "a"},]}', r"g.json: not JSON: .*line 3"),
    ],
)
def test_what_is_wrong_with_a_node_or_a_link_is_told_with_its_number(tmp_path, whole, words):
    with pytest.raises(BadInput, match=words):
        read(tmp_path, "g.json", whole)


def test_an_empty_table_and_an_empty_object_are_empty_graphs(tmp_path):
    for name, text in (("g.csv", ""), ("h.csv", "source,target\n"), ("g.json", {"nodes": []})):
        path = tmp_path / name
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        assert len(read_graph(path)) == 0
