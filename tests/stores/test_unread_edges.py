"""Edges under any of the names that programs give them are read; those that stand elsewhere, or have more
than two ends, are refused by the name of their key, never read as a graph without edges.
"""

from __future__ import annotations

import json

import pytest

from kgot_lab.errors import BadInput
from kgot_lab.stores.files import read_graph, read_named_graph

NODES = [{"id": "a"}, {"id": "b"}]
LINK = {"source": "a", "target": "b"}
KEPT = {  # as other programs write one edge from a to b
    "langchain": {"nodes": NODES, "relationships": [{**LINK, "type": "knows"}]},
    "langchain ends": {"nodes": NODES, "relationships": [{"source": {"id": "a"}, "target": {"id": "b"}}]},
    "apoc": {"nodes": NODES, "rels": [{"id": "0", "start": {"id": "a"}, "end": {"id": "b"}}]},
    "neo4j": {"nodes": NODES, "relationships": [{"startNode": "a", "endNode": "b"}]},
    "neo4j rows": {"results": [{"data": [{"graph": {"nodes": NODES, "relationships": [{"startNode": "a", "endNode": "b"}]}}]}]},
    "arangodb": {"nodes": NODES, "connections": [{"_from": "a", "_to": "b"}]},
    "capitals": {"nodes": NODES, "Edges": [LINK]},
    "arcs": {"nodes": ["a", "b"], "arcs": [["a", "b"]]},
    "triples": {"nodes": NODES, "triples": [["a", "knows", "b"]]},
    "weights": {"nodes": NODES, "edges": [["a", "b", 0.5]]},
    "adjacency lists": {"nodes": NODES, "adjacency": [[{"id": "b"}], []]},
    "adjacency by id": {"nodes": NODES, "adjacency": {"a": ["b"]}},
    "adjacency with values": {"nodes": NODES, "adj": {"a": {"b": {"weight": 2}}}},
    "an empty list": {"nodes": NODES, "links": [], "relations": [LINK]},
    "json graph 1": {"nodes": {"a": {}, "b": {"label": "B"}}, "edges": [LINK]},
    "json graph 2": {"graph": {"nodes": {"a": {}, "b": {}}, "edges": [LINK]}},
    "edges by id": {"nodes": NODES, "edges": {"e1": LINK}},
    "cytoscape": {"elements": {"nodes": [{"data": each} for each in NODES], "edges": [{"data": LINK}]}},
    "cytoscape flat": {"elements": [*({"data": each} for each in NODES), {"group": "edges", "data": {"id": "e", **LINK}}]},
    "graphology": {"options": {"type": "mixed"}, "nodes": [{"key": "a"}, {"key": "b"}], "edges": [{"key": "e", **LINK}]},
    "no nodes": {"vertices": NODES, "edges": [LINK]},
    "graph documents": [{"nodes": NODES, "relationships": [{**LINK, "type": "knows"}]}],
    "records": [{"type": "node", "id": "a"}, {"type": "relationship", "label": "x", "start": {"id": "a"}, "end": {"id": "b"}}],
    "a memory": {"entities": [{"name": "a"}, {"name": "b"}], "relations": [{"from": "a", "to": "b", "relationType": "knows"}]},
    "edges alone": [["a", "knows", "b"]],
}  # fmt: skip
UNREAD = {
    "texts": ({"nodes": NODES, "statements": ["a knows b"]}, "'statements'"),
    "in the graph": ({"nodes": NODES, "graph": {"edges": [LINK]}}, "'graph'"),
    "by their ids": ({"nodes": NODES, "edgesById": {"e1": LINK}}, "'edgesById'"),
    "two deep": ({"nodes": NODES, "data": {"all": {"e": [{"from_id": "a", "to_id": "b"}]}}}, "'data'"),
    "hyperedges": ({"nodes": NODES, "hyperedges": [{"id": "h", "nodes": ["a", "b"]}]}, "'hyperedges'"),
    "hyperedges beside links": ({"nodes": NODES, "links": [LINK], "hyperedges": [["a", "b", "c", "d"]]}, "'hyperedges'"),
    "triples beside links": ({"nodes": NODES, "links": [LINK], "more": [["b", "knows", "a"]]}, "'more'"),
    "neighbours": ({"nodes": [{"id": "a", "neighbours": ["b"]}, {"id": "b"}]}, "'neighbours' of the node 'a'"),
    "links of a node": ({"nodes": [{"id": "a", "out": [{"target": "b"}]}]}, "'out' of the node 'a'"),
    "children": ({"nodes": [{"id": "a", "children": [{"id": "b"}]}]}, "'children' of the node 'a'"),
    "an edge within a line": ({"type": "node", "id": "a", "edges": [{"target": "b"}]}, "'edges' of the node 'a'"),
    "settings": ({"colour": "red"}, "a graph in JSON is"),
    "lists that do not fit": ({"nodes": NODES, "adjacency": [["b"]]}, "1 lists of neighbours for 2 nodes; links"),
}  # fmt: skip
READ = {
    "no edges": ({"nodes": NODES}, 0),
    "an empty list of links": ({"nodes": NODES, "links": []}, 0),
    "empty lists of both": ({"nodes": NODES, "links": [], "edges": []}, 0),
    "of networkx": ({"directed": True, "multigraph": False, "graph": {}, "nodes": NODES, "edges": []}, 0),
    "empty lists of others": ({"nodes": NODES, "relationships": [], "graph": []}, 0),
    "values of nodes": ({"nodes": [{"id": "a", "aliases": ["A", "a"], "at": [1, 2]}], "edges": []}, 0),
    "the full one of two": ({"nodes": NODES, "links": [], "edges": [LINK]}, 1),
    "categories": ({"nodes": NODES, "links": [LINK], "categories": [{"name": "A"}]}, 1),
    "defaults": (
        {"nodes": NODES, "links": [LINK], "graph": {"edge_default": {"weight": 1}, "tags": ["x"]}},
        1,
    ),
    "places": ({"nodes": NODES, "links": [LINK], "places": {"a": [0, 1], "b": [1, 1]}}, 1),
}


@pytest.mark.parametrize("indent", [None, 2])
def test_edges_that_would_not_be_read_are_refused_by_the_name_of_their_key(tmp_path, indent):
    wrong = []
    for name, (whole, words) in UNREAD.items():
        if indent and whole == UNREAD["an edge within a line"][0]:
            continue
        (path := tmp_path / "g.json").write_text(json.dumps(whole, indent=indent))
        try:
            wrong.append(f"{name}: read as {read_graph(path)!r}")
        except BadInput as error:
            if words.partition(";")[0] not in str(error):
                wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", KEPT)
def test_an_edge_is_read_whatever_its_list_is_called(tmp_path, name):
    (path := tmp_path / "g.json").write_text(json.dumps(KEPT[name]))
    graph = read_named_graph(path).graph
    assert [(edge.source, edge.target) for edge in graph.edges] in ([("a", "b")], [("a", "B")])
    if "knows" in json.dumps(KEPT[name]):
        assert graph.edges[0].type == "knows"


@pytest.mark.parametrize("name", READ)
def test_a_file_without_edges_and_one_with_lists_of_other_things_is_read(tmp_path, name):
    whole, edges = READ[name]
    (path := tmp_path / "g.json").write_text(json.dumps(whole))
    graph = read_graph(path)
    assert (len(graph), len(graph.edges)) == (len(whole["nodes"]), edges)
