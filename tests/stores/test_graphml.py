"""GraphML of other programs: nothing in it is lost without a word, and what cannot be read is told by its
line.
"""

from __future__ import annotations

import networkx as nx
import pytest

from kgot_lab.errors import BadInput
from kgot_lab.stores.files import read_graph, read_named_graph

HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
TWO = '<node id="a"/><node id="b"/>'


@pytest.fixture
def file(tmp_path):
    """A file with a directed graph of some lines, after keys that are declared."""

    def written(inside: str, keys: str = "", way: str = "directed", behind: str = ""):
        path = tmp_path / "g.graphml"
        path.write_text(f'{HEAD}{keys}\n<graph edgedefault="{way}">\n{inside}\n</graph>{behind}</graphml>')
        return path

    return written


def key(name: str, type: str = "string", of: str = "node", inside: str = "") -> str:
    return f'<key id="k" for="{of}" attr.name="{name}" attr.type="{type}">{inside}</key>'


def test_the_id_of_an_edge_is_no_relation(file):
    edges = '<edge id="e0" source="a" target="b"/><edge id="e1" source="a" target="b"/>'
    graph = read_graph(file(f"{TWO}{edges}"))
    assert [(edge.type, edge.key) for edge in graph.edges] == [("related_to", "e0"), ("related_to", "e1")]


@pytest.mark.parametrize("name", ["relation", "relationship", "label", "type"])
def test_an_attribute_names_the_relation_as_ever(file, name):
    edge = '<edge id="e0" source="a" target="b"><data key="k">knows</data></edge>'
    graph = read_graph(file(f"{TWO}{edge}", key(name, of="edge")))
    assert [(edge.type, edge.key) for edge in graph.edges] == [("knows", "e0")]


def test_a_graph_that_networkx_wrote_is_read(tmp_path):
    theirs = nx.MultiDiGraph()
    theirs.add_edge("Ada", "London", relation="born in", since=1815)
    theirs.add_edge("Ada", "London", relation="lived in")
    nx.write_graphml(theirs, tmp_path / "nx.graphml")
    assert {edge.type: dict(edge.properties) for edge in read_graph(tmp_path / "nx.graphml").edges} == {
        "born in": {"since": 1815}, "lived in": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        ('<node id="a"/>\n<node/>', "node 2: a node without id"),
        (f'{TWO}\n<edge source="a"/>', "edge 1: an edge without source or target"),
        (f'{TWO}<hyperedge><endpoint node="a"/></hyperedge>', "it has hyperedges"),
    ],
)
def test_what_no_edge_can_hold_is_refused(file, inside, says):
    with pytest.raises(BadInput, match=rf"g\.graphml: {says}"):
        read_graph(file(inside, key("x")))


def test_edges_of_one_id_are_kept_apart(file):
    both = f'{TWO}<edge id="e" source="a" target="b"/><edge id="e" source="a" target="b"/><edge id="01" source="a" target="b"/>'
    assert [edge.key for edge in read_graph(file(both)).edges] == ["e", "e.2", "01"]


def test_a_second_graph_is_refused(file):
    with pytest.raises(BadInput, match="2 graphs in <graphml>, and one is read"):
        read_graph(file(TWO, behind='<graph edgedefault="directed"><node id="c"/></graph>'))


def test_nodes_and_edges_within_nodes_are_read(file):
    inner = '<graph edgedefault="directed"><node id="b"/><edge source="a" target="b"/></graph>'
    read = read_named_graph(file(f'<node id="a">{inner}</node>'))
    assert len(read.graph.edges) == 1 and "left out: 1 border of a group" in read.note


def test_a_group_of_yed_is_read_with_what_is_in_it(file):
    inner = '<graph edgedefault="directed"><node id="b"/></graph>'
    group = f'<node id="g" yfiles.foldertype="group">{inner}</node>'
    assert set(read_graph(file(group)).ids) == {"g", "b"}


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("double", "much"),
        ("int", "1.5"),
        ("long", "1e3"),
        ("boolean", "perhaps"),
        ("float", "1,5"),
        ("integer", "one"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_left_out_and_counted(file, type, value):
    nodes = f'<node id="a"/>\n<node id="b"><data key="k">{value}</data></node>'
    read = read_named_graph(file(nodes, key("x", type)))
    assert read.graph.node("b").properties == {} and read.note == f"left out: 1 value that is no {type}"


def test_an_attribute_of_an_unknown_type_is_left_out_and_counted(file):
    edge = '<edge source="a" target="b"><data key="k">0x1, 0x2</data><data key="z">1</data></edge>'
    read = read_named_graph(file(f"{TWO}{edge}", key("x", "vector_float", of="edge")))
    assert read.graph.edges[0].properties == {}
    assert read.note == "left out: 1 value of the type vector_float, 1 value of the type undeclared"


@pytest.mark.parametrize("of", ["node", "all"])
def test_a_default_is_the_value_of_those_that_have_none(file, of):
    nodes = '<node id="a"/><node id="b"><data key="k">1</data></node>'
    graph = read_graph(file(nodes, key("w", "double", of, "<default>2.5</default>")))
    assert (graph.node("a").properties, graph.node("b").properties) == ({"w": 2.5}, {"w": 1.0})


def test_a_default_names_the_relation_of_edges_that_have_none(file):
    label = key("label", of="edge", inside="<default>knows</default>")
    graph = read_graph(file(f'{TWO}<edge source="a" target="b"/>', label))
    assert [edge.type for edge in graph.edges] == ["knows"]


def test_labels_as_neo4j_exports_them_are_told_apart(file):
    node = '<node id="n0" labels=":Person:Poet"><data key="k">:Person:Poet</data></node>'
    graph = read_graph(file(node, key("labels")))
    assert graph.node("n0").labels == ("Person", "Poet")


def test_what_is_read_otherwise_than_it_stands_there_is_noted(file):
    edge = '<edge source="a" target="b" sourceport="p"/>'
    inside = f'<node id="a"><port name="p"/><desc>of a</desc></node>{edge}'
    path = file(inside, way="undirected")
    told = read_named_graph(path).note
    assert "its edges have no direction, and point here as they are listed" in told
    assert "1 node made of what edges name" in told
    assert "left out: 1 port, 1 desc, 1 port of an edge" in told


def test_what_is_read_as_it_stands_there_is_not_noted(file):
    assert not read_named_graph(file(f'{TWO}<edge source="a" target="b"/>')).note
