"""A graph of code with the patterns that templates recognise in it."""

from __future__ import annotations

from collections.abc import Iterable

from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.extraction.patterns import TEMPLATES, CodeView, Template
from kgot_lab.types import Edge, Node


def with_patterns(graph: PropertyGraph, templates: Iterable[Template] = TEMPLATES) -> PropertyGraph:
    """The graph with a node for each pattern that something is built after, an edge that says what shows it,
    and their alternatives.

    An alternative is there where both patterns are. A pattern that is not found has no node.
    """
    view = CodeView(graph)
    nodes: dict[str, Node] = {}
    edges: dict[tuple[str, str, str], Edge] = {}
    known = tuple(templates)
    for template in known:
        for id, why in template.find(view):
            if id not in graph:
                continue
            name = template.id.rpartition(":")[2].replace("-", " ")
            nodes.setdefault(
                template.id,
                Node(template.id, (template.type,), {"name": name, "description": template.description}),
            )
            edges.setdefault(
                (id, "pattern_instance_of", template.id),
                Edge(id, "pattern_instance_of", template.id, {"why": why}),
            )
    for template in known:
        for other in template.alternatives:
            if template.id in nodes and other in nodes:
                one, two = sorted((template.id, other))  # it says the same both ways
                edges[one, "pattern_alternative_to", two] = Edge(one, "pattern_alternative_to", two)
    return PropertyGraph.of([*graph.nodes, *nodes.values()], [*graph.edges, *edges.values()])
