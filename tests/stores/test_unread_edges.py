"""Graph files whose edges stand where no reader looks: refused by the name of the key, never read as a graph
without edges.
"""

from __future__ import annotations

import json

import pytest

from kgot_lab.errors import BadInput
from kgot_lab.stores.files import read_graph, read_named_graph

NODES = [{"id": "a"}, {"id": "b"}]
LINK = {"source": "a", "target": "b"}
UNREAD = {
    # other programs' names for the list
    "langchain": ({"nodes": NODES, "relationships": [{**LINK, "type": "knows"}]}, "'relationships'"),
    "langchain ends": ({"nodes": NODES, "relationships": [{"source": {"id": "a"}, "target": {"id": "b"}}]}, "'relationships'"),
    "apoc": ({"nodes": NODES, "rels": [{"id": "0", "start": {"id": "a"}, "end": {"id": "b"}}]}, "'rels'"),
    "neo4j": ({"nodes": NODES, "relationships": [{"startNode": "a", "endNode": "b"}]}, "'relationships'"),
    "arangodb": ({"nodes": NODES, "connections": [{"_from": "a", "_to": "b"}]}, "'connections'"),
    "capitals": ({"nodes": NODES, "Edges": [LINK]}, "'Edges'"),
    "arcs": ({"nodes": [1, 2], "arcs": [[1, 2]]}, "'arcs'"),
    "triples": ({"nodes": NODES, "triples": [["a", "knows", "b"]]}, "'triples'"),
    "texts": ({"nodes": NODES, "statements": ["a knows b"]}, "'statements'"),
    # adjacency
    "adjacency lists": ({"nodes": NODES, "adjacency": [[{"id": "b"}], []]}, "'adjacency'"),
    "adjacency by id": ({"nodes": NODES, "adjacency": {"a": ["b"]}}, "'adjacency'"),
    "adjacency with values": ({"nodes": NODES, "adj": {"a": {"b": {"weight": 2}}}}, "'adj'"),
    # within another key
    "in the graph": ({"nodes": NODES, "graph": {"edges": [LINK]}}, "'graph'"),
    "by their ids": ({"nodes": NODES, "edgesById": {"e1": LINK}}, "'edgesById'"),
    "two deep": ({"nodes": NODES, "data": {"all": {"e": [{"from_id": "a", "to_id": "b"}]}}}, "'data'"),
    # what an edge of two ends cannot hold
    "hyperedges": ({"nodes": NODES, "hyperedges": [{"id": "h", "nodes": ["a", "b"]}]}, "'hyperedges'"),
    "hyperedges beside links": ({"nodes": NODES, "links": [LINK], "hyperedges": [["a", "b", "c", "d"]]}, "'hyperedges'"),
    # beside edges that are read
    "an empty list": ({"nodes": NODES, "links": [], "relations": [LINK]}, "'relations'"),
    "a full list": ({"nodes": NODES, "edges": [LINK], "relations": [LINK]}, "'relations'"),
    "triples beside links": ({"nodes": NODES, "links": [LINK], "more": [["b", "knows", "a"]]}, "'more'"),
    "links and edges": ({"nodes": NODES, "links": [LINK], "edges": [LINK]}, "both links and edges"),
    # within the nodes
    "neighbours": ({"nodes": [{"id": "a", "neighbours": ["b"]}, {"id": "b"}]}, "node 1: 'neighbours'"),
    "links of a node": ({"nodes": [{"id": "a", "out": [{"target": "b"}]}]}, "node 1: 'out'"),
    "children": ({"nodes": [{"id": "a", "children": [{"id": "b"}]}]}, "node 1: 'children'"),
    # objects and lists that are no object with nodes
    "json graph 1": ({"nodes": {"a": {}}, "edges": [LINK]}, "nodes is"),
    "edges by id": ({"nodes": NODES, "edges": {"e1": LINK}}, "edges is"),
    "json graph 2": ({"graph": {"nodes": {"a": {}}, "edges": [LINK]}}, "'graph'"),
    "cytoscape": ({"elements": {"nodes": [], "edges": [{"data": LINK}]}}, "'elements'"),
    "no nodes": ({"vertices": NODES, "edges": [LINK]}, "'vertices', 'edges'"),
    "a list": ([{"type": "node", "id": "a"}], "a list"),
    "an edge within a line": ({"type": "node", "id": "a", "edges": [{"target": "b"}]}, "edges of the node"),
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
        for read in (read_graph, read_named_graph):
            try:
                wrong.append(f"{name}: read as {read(path)!r}")
            except BadInput as error:
                if words not in str(error) or (
                    "links" not in str(error) and "relationship" not in str(error)
                ):
                    wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", READ)
def test_a_file_without_edges_and_one_with_lists_of_other_things_is_read(tmp_path, name):
    whole, edges = READ[name]
    (path := tmp_path / "g.json").write_text(json.dumps(whole))
    graph = read_graph(path)
    assert (len(graph), len(graph.edges)) == (len(whole["nodes"]), edges)
