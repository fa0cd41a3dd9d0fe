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
        ('<node id="a"/>\n<node/>', "line 5: a node without id"),
        (
            '<node id="a"/>\n<node id="b"/>\n<node id="a"/>',
            "line 6: a second node has the id 'a', as the one in line 4",
        ),
        (f'{TWO}\n<edge source="a"/>', "line 5: an edge without source or target"),
        (
            f'{TWO}\n<edge id="e" source="a" target="b"/>\n<edge id="e" source="a" target="b"/>',
            "line 6: a second edge from 'a' to 'b' has the id 'e', as the one in line 5",
        ),
        (
            '<node id="a"><graph edgedefault="directed"><node id="b"/></graph></node>',
            "line 4: a graph within the node 'a'",
        ),
        (
            f'{TWO}\n<edge id="1" source="a" target="b"/><edge id="01" source="a" target="b"/>',
            "of 2 edges only 1 can be told apart",
        ),
    ],
)
def test_what_cannot_be_told_apart_is_refused_by_its_line(file, inside, says):
    with pytest.raises(BadInput, match=rf"g\.graphml: cannot be read as GraphML: {says}"):
        read_graph(file(inside))


def test_two_edges_of_one_id_the_other_way_round_are_one_only_where_there_is_no_direction(file):
    both = f'{TWO}<edge id="e" source="a" target="b"/><edge id="e" source="b" target="a"/>'
    assert len(read_graph(file(both)).edges) == 2
    with pytest.raises(BadInput, match="a second edge from 'b' to 'a' has the id 'e'"):
        read_graph(file(both, way="undirected"))


def test_a_second_graph_is_refused(file):
    with pytest.raises(BadInput, match="line 5: a second graph begins"):
        read_graph(file(TWO, behind='<graph edgedefault="directed"><node id="c"/></graph>'))


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
def test_a_wrong_value_names_its_node_line_and_type(file, type, value):
    with pytest.raises(BadInput, match=f"line 5: the node 'b' has '{value}' where the type is {type}"):
        read_graph(file(f'<node id="a"/>\n<node id="b"><data key="k">{value}</data></node>', key("x", type)))
    reason = f"line 2: the default of the key 'x' has '{value}' where the type is {type}"
    with pytest.raises(BadInput, match=reason):
        read_graph(file(TWO, key("x", type, inside=f"<default>{value}</default>")))


def test_a_type_and_a_key_that_are_none_are_named(file):
    with pytest.raises(BadInput, match="line 2: the key 'k' has the type 'short', which is none of int"):
        read_graph(file(TWO, key("x", "short")))
    reason = "line 4: the edge from 'a' to 'b' has a value of the key 'z', which is not declared"
    with pytest.raises(BadInput, match=reason):
        read_graph(file(f'{TWO}<edge source="a" target="b"><data key="z">1</data></edge>'))


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
    assert "left out: 1 port, 1 description, 1 port of an edge" in told
    with pytest.warns(UserWarning, match=r"g\.graphml: its edges have no direction"):
        assert len(read_graph(path).edges) == 1


def test_what_is_read_as_it_stands_there_is_not_noted(file):
    assert not read_named_graph(file(f'{TWO}<edge source="a" target="b"/>')).note
