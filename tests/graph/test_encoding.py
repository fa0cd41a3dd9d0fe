"""Colours, sizes and widths by a property: in the still picture, in the live view, and in pyvis."""

import networkx as nx
import numpy as np
import pytest

from kgot_lab import show
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.encoding import encode
from kgot_lab.types import Edge, Node
from kgot_lab.viz.external_requests import find_external_requests

KARATE = PropertyGraph.from_networkx(nx.karate_club_graph())


def of_values(*values):
    return PropertyGraph.of([Node(str(n), (), {"v": value}) for n, value in enumerate(values)])


def test_the_karate_club_is_coloured_by_its_club_in_every_drawing():
    view = show(nx.karate_club_graph(), color="club", size="degree", width="weight")
    data = view.live.data
    nodes = {node["id"]: node for node in data["nodes"]}
    clubs = {id: node.properties["club"] for id, node in zip(KARATE.ids, KARATE.nodes, strict=True)}
    looks = {club: {nodes[id]["colour"] for id in nodes if clubs[id] == club} for club in clubs.values()}
    assert all(len(colours) == 1 for colours in looks.values()) and looks["Mr. Hi"] != looks["Officer"]
    assert [(kind["name"], kind["count"]) for kind in data["legend"]] == [("Mr. Hi", 17), ("Officer", 17)]
    assert data["scales"] == ("size: degree, 1 to 17", "width: weight, 1 to 7", "colour: club")
    assert all(text in view.picture.svg for text in (*data["scales"], "Mr. Hi", "Officer"))
    degrees = {id: KARATE.degree(id) for id in KARATE.ids}
    assert sorted(nodes, key=lambda id: nodes[id]["size"])[-1] == max(degrees, key=degrees.__getitem__)
    widths = {edge["width"] for edge in data["edges"]}
    assert min(widths) == 1 and max(widths) == 6 and len(widths) == 7
    network = KARATE.to_pyvis(color="club", size="degree", width="weight")
    assert {node["id"]: node["color"]["background"] for node in network.nodes} == {
        id: node["colour"] for id, node in nodes.items()
    }
    assert {edge["width"] for edge in network.edges} == widths


@pytest.mark.parametrize(
    ("values", "legend"),
    [
        ((1, 2, 3), ["1", "2", "3"]),
        ((0.1, np.float32(0.5), np.float64(0.9), np.int64(1)), ["0.10", "0.50", "0.90", "1"]),
        (range(1, 11), ["1 to 2", "3 to 4", "5 to 6", "7 to 8", "9 to 10"]),
        ((1, 2, 9, 40, 300, 5000), ["1 to 2", "9", "40", "300", "5000"]),
        ((7, 7, 7), ["7"]),
        (("b", "a", "b"), ["b", "a"]),
        ((True, False, True), ["True", "False"]),
        ((1, "one", 1), ["1", "one"]),
        ((["x", "y"], ["x"]), ["x, y", "x"]),
        ((None, "", 3), ["3"]),
        ((None, ""), []),
    ],
)
def test_numbers_are_a_scale_and_everything_else_is_categories(values, legend):
    graph = of_values(*values)
    encoding = encode(graph, color="v")
    assert list(encoding.looks) == legend
    assert {encoding.kind(node) for node in graph.nodes} - {""} == set(legend)


def test_classes_are_in_the_order_of_their_numbers():
    values = np.random.default_rng(3).normal(0, 10, 200).tolist()
    encoding = encode(of_values(*values), color="v")
    rank = {kind: number for number, kind in enumerate(encoding.looks)}
    by_value = [rank[encoding.kinds[str(n)]] for n in np.argsort(values)]
    assert by_value == sorted(by_value) and set(by_value) == {0, 1, 2, 3, 4}


def test_more_categories_than_looks_share_one_and_the_legend_says_how_many():
    encoding = encode(of_values(*"abcdefghijklmnopqrstuvwxyz0123456789ABCD"), color="v")
    assert len(encoding.looks) == 36 and list(encoding.looks)[-1] == "5 others"


def test_what_is_missing_is_told():
    graph = PropertyGraph.of(
        [Node("a", (), {"n": 1}), Node("b", (), {"n": 3}), Node("c")], [Edge("a", "r", "b")]
    )
    view = show(graph, color="n", size="n")
    assert "size: n, 1 to 3, 1 without" in view.picture.svg and "no n" in view.picture.svg
    with pytest.raises(UnknownName, match=r"'m'.* Known: community, degree, n"):
        show(graph, color="m")
    with pytest.raises(UnknownName, match="property of edges 'w'"):
        show(graph, width="w")
    with pytest.raises(BadInput, match="needs numbers"):
        show(KARATE, size="club")
    with pytest.raises(BadInput, match="those of a graph"):
        show([{"a": 1}], color="a")


def test_groups_have_the_colour_of_most_of_their_nodes():
    blocks = nx.planted_partition_graph(8, 6, 0.9, 0.01, seed=1)
    nx.set_node_attributes(blocks, {node: f"block {node // 6 % 4}" for node in blocks}, "part")
    data = show(blocks, color="part", most=12).live.data
    colours = {node["colour"] for node in data["nodes"] if node.get("community")}
    assert (
        len(colours)
        == 4
        == len({kind["label"] for kind in data["legend"]} & {node["kind"] for node in data["nodes"]})
    )
    assert {kind["colour"] for kind in data["legend"]} == colours


def test_pyvis_draws_offline_and_shows_no_html_of_the_graph(tmp_path):
    graph = PropertyGraph.of(
        [Node("a", ("T",), {"said": "<a href='x' onerror=alert(1)>"}), Node("b")], [Edge("a", "r", "b")]
    )
    network = graph.to_pyvis()
    network.get_node("a")["color"] = "red"
    network.save_graph(str(tmp_path / "graph.html"))
    page = (tmp_path / "graph.html").read_text()
    assert find_external_requests(page, beside=True) == () and '"red"' in page
    assert "href" not in network.get_node("a")["title"] and "types: T" in network.get_node("a")["title"]
    with pytest.raises(BadInput, match=r"2,001 nodes by itself.*subgraph"):
        PropertyGraph.of(Node(str(n)) for n in range(2001)).to_pyvis()


def test_igraph_and_rdf_hold_the_same_graph():
    converted = KARATE.to_igraph()
    assert converted.vs["name"] == converted.vs["id"] == list(KARATE.ids)
    assert converted.vs["club"][0] == "Mr. Hi" and converted.es["relation"][0] == "related_to"
    assert [(e.source, e.target) for e in converted.es] == list(
        zip(KARATE.sources, KARATE.targets, strict=True)
    )
    named = PropertyGraph.of(
        [Node("x", ("T",), {"name": "Ada", "id": 7})], [Edge("x", "r", "x"), Edge("x", "r", "x", {}, "k")]
    )
    assert named.to_igraph().vs[0].attributes() == {"id": "x", "id_": 7, "name": "Ada", "label": "T"}
    assert named.to_igraph().ecount() == 2 and named.to_igraph().es.attributes() == ["relation"]
    assert PropertyGraph.of().to_igraph().vcount() == 0
    found = KARATE.to_rdf().query("PREFIX : <urn:kgot:> SELECT ?x { ?x :club 'Officer' }")
    assert len(list(found)) == 17


def test_a_graph_without_directions_has_no_arrows_elsewhere():
    assert KARATE.to_pyvis().directed and not KARATE.to_pyvis(directed=False).directed
    plain = KARATE.to_igraph(directed=False)
    assert not plain.is_directed() and plain.ecount() == 78 and "weight" in plain.es.attributes()
