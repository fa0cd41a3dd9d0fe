"""What stands under a node of a drawn graph: what it is called, and not what is said of it."""

import pytest

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.encoding import node_caption
from kgot_lab.types import Edge, Node
from kgot_lab.viz.graph.view import show_graph


@pytest.mark.parametrize(
    ("properties", "caption"),
    [
        ({"name": "run", "description": "This function converts another."}, "run"),
        ({"name": "doc", "text": "A passage."}, "A passage."),
        ({"description": "What has no name."}, "What has no name."),
        ({}, "id"),
    ],
)
def test_a_name_stands_before_a_description_and_a_text_before_both(properties, caption):
    node = Node("id", (), properties)
    assert node_caption(node) == caption
    assert caption in show_graph(PropertyGraph.of([node])).picture.svg


def test_a_path_is_told_by_the_names_of_its_nodes():
    nodes = [Node(id, (), {"name": id.upper(), "description": f"This function does {id}."}) for id in "ab"]
    view = show_graph(PropertyGraph.of(nodes, [Edge("a", "calls", "b")]), highlight=["a", "b"])
    assert view.live.data["note"] == "The path: A – B." and "The path: A – B." in view.picture.alt


def test_below_a_saved_picture_stands_no_address_of_an_object():
    widget = show_graph(PropertyGraph.of([Node("a")])).live.widget()
    assert widget._repr_mimebundle_()[0]["text/plain"] == "(live view: run this cell to use it)"
