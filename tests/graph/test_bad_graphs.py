"""Bad input to graphs, their files and their exchange: refused by name, never altered without a word."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from kgot_lab import open_store, read_graph
from kgot_lab.errors import BadInput, QueryFailed
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.encoding import encode
from kgot_lab.stores import holds_value
from kgot_lab.stores.files import read_named_graph, write_graph
from kgot_lab.types import Diff, Edge, Node
from kgot_lab.viz.html import Page
from kgot_lab.viz.static.table import format_cell


class Unshown:
    """A value that has no text."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


def cyclic() -> dict[str, object]:
    value: dict[str, object] = {}
    value["again"] = [value]
    return value


def deep() -> list[object]:
    value: list[object] = []
    for _ in range(3_000):
        value = [value]
    return value


BAD = {
    "a cycle": cyclic(),
    "a deep list": deep(),
    "a set": {1},
    "bytes": b"x",
    "an object": object(),
    "no text": Unshown(),
    "NaN": float("nan"),
    "infinity": [1.0, float("inf")],
    "NaT": pd.NaT,
    "a complex number": 1j,
    "thousands of digits": 10**5_000,
    "a number for a name": {"inner": {1: 2}},
}
GRAPH = PropertyGraph.of([Node("a", (), {"x": 1})])


def networkx_of(value: object) -> PropertyGraph:
    graph = nx.DiGraph()
    graph.add_node("a", x=value)
    return PropertyGraph.from_networkx(graph)


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_graphs_and_stores_refuse_the_same_properties(value):
    node = Node("a", (), {"x": value})
    edge = Edge("a", "to", "b", {"x": value})
    for act in (
        lambda: PropertyGraph.of([node, node]),
        lambda: PropertyGraph.of((), [edge], dangling="add"),
        lambda: GRAPH.apply(Diff(changed_nodes=((Node("a", (), {"x": 1}), node),))),
        lambda: GRAPH.apply(Diff(removed_nodes=(node,))),
        lambda: open_store().apply(Diff(added_nodes=(node,))),
        lambda: open_store().apply(Diff(removed_nodes=(node,))),
    ):
        with pytest.raises(BadInput, match=r"a property of (node 'a'|edge)"):
            act()


@pytest.mark.parametrize(
    "name", ["a cycle", "a deep list", "an object", "no text", "NaN", "thousands of digits"]
)
def test_a_networkx_graph_with_such_a_value_is_refused(name):
    with pytest.raises(BadInput, match="a property of node 'a'"):
        networkx_of(BAD[name])


def test_a_number_of_numpy_becomes_one_of_python():
    found = PropertyGraph.of([Node("a", (), {"x": np.int64(3), "y": [np.float32(0.5)]})]).node("a").properties
    assert found == {"x": 3, "y": [0.5]} and type(found["x"]) is int


def test_a_key_of_a_multigraph_that_is_a_number_is_no_relation():
    graph = nx.MultiDiGraph()
    for key in ("1", "2", "knows"):
        graph.add_edge("u", "v", key)
    found = [(edge.type, edge.key) for edge in PropertyGraph.from_networkx(graph).edges]
    assert found == [("related_to", "1"), ("related_to", "2"), ("knows", "")]


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("G.add_node(1, a=1)\nG.add_node('1', b=2)", "the ids 1 and '1' have the same text"),
        ("G.add_edge('1', 2)\nG.add_edge(1, '2')", "have the same text"),
    ],
)
def test_two_new_nodes_of_one_text_are_refused(statement, says):
    with pytest.raises(QueryFailed, match=says):
        open_store().write(statement)


@pytest.mark.parametrize("result", ["table", "[table]", "{'found': table}"])
def test_a_table_of_pandas_is_no_result(result):
    with pytest.raises(QueryFailed, match="is a table of pandas: give table"):
        open_store().read(f"import pandas\ntable = pandas.DataFrame({{'a': [1]}})\nresult = {result}")


@pytest.mark.parametrize(
    "text",
    [
        '{"nodes": [{"id": "a", "id": "b"}], "links": []}',
        '{"type": "node", "id": "a", "properties": {"x": 1, "x": 2}}\n{"type": "node", "id": "b"}',
    ],
)
def test_a_key_twice_in_json_is_refused(text, tmp_path):
    (tmp_path / "g.json").write_text(text)
    with pytest.raises(BadInput, match=r"has the key '(id|x)' twice"):
        read_graph(tmp_path / "g.json")


@pytest.mark.parametrize("text", ["[]", "null", '{"nodes": [], "links": []}'])
def test_an_empty_graph_in_json_is_told(text, tmp_path):
    (tmp_path / "g.json").write_text(text)
    with pytest.warns(UserWarning, match="it holds no node"):
        assert not len(read_graph(tmp_path / "g.json"))


def test_what_is_written_and_where_is_checked(tmp_path):
    for act, says in (
        (lambda: write_graph(None, tmp_path / "g.json"), "'graph' is a PropertyGraph, not None"),
        (lambda: write_graph(GRAPH, None), "'path' is a path or a text, not None"),
        (lambda: Page("a", "b").save(None), "'path' is a path or a text, not None"),
    ):
        with pytest.raises(BadInput, match=says):
            act()


@pytest.mark.parametrize(
    "act",
    [
        lambda store: holds_value(store, [1]),
        lambda store: holds_value(store, float("nan")),
        lambda store: store.neighbours(5),
        lambda store: store.search("a", "x"),
        lambda store: read_named_graph([None]),
        lambda store: encode(None),
        lambda store: encode(GRAPH, color=5),
    ],
)
def test_a_query_of_another_type_is_refused(act):
    with pytest.raises(BadInput, match="the argument"):
        act(open_store())


@pytest.mark.parametrize("value", [cyclic(), [Unshown()], 10**5_000], ids=["a cycle", "no text", "digits"])
def test_a_row_is_shown_whatever_its_values_are(value):
    assert len(format_cell(value)) <= 60


def test_a_number_beyond_all_floats_is_a_category():
    graph = PropertyGraph.of([Node("a", (), {"x": 10**400})])
    assert encode(graph, color="x").kinds == {"a": str(10**400)}
