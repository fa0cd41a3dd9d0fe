"""What stands under a node of a drawn graph: what it is called, and not what is said of it."""

import pytest

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.encoding import node_caption
from kgot_lab.types import Node
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
