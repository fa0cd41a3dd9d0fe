"""Graphs by chance for the methods, with loops and parallel edges, and the same as NetworkX has them."""

from __future__ import annotations

import networkx as nx
import numpy as np

from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge, Node

TYPES = ("requires", "enables", "feeds_into", "relates_to")


def chance_graph(seed: int, nodes: int = 30, edges: int = 70, *, weights: bool = False) -> PropertyGraph:
    """A directed multigraph: some nodes are alone, some edges are loops, some run in parallel, of one type
    and of several.
    """
    chance = np.random.default_rng(seed)
    words, kinds = ["cache", "token", "agent", "prompt", "index"], ["tool", "pattern", "goal"]
    made = [
        Node(
            f"n{i}",
            (str(chance.choice(kinds)),) if chance.random() < 0.9 else (),
            {"name": " ".join(chance.choice(words, 2))},
        )
        for i in range(nodes)
    ]
    ends = chance.integers(0, max(nodes - 3, 1), (edges, 2)).tolist()
    types = chance.choice(TYPES, edges).tolist()
    return PropertyGraph.of(
        made,
        [
            Edge(
                f"n{a}",
                str(type),
                f"n{b}",
                {"weight": float(chance.integers(1, 9)) / 4} if weights and key % 2 else {},
                str(key),
            )
            for key, ((a, b), type) in enumerate(zip(ends, types, strict=True))
        ],
    )


def as_networkx(graph: PropertyGraph) -> nx.MultiDiGraph[str]:
    """The graph with `type` and `weight` on its edges, loops left out."""
    made: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    made.add_nodes_from(graph.ids)
    made.add_edges_from(
        (edge.source, edge.target, {"type": edge.type, "weight": edge.properties.get("weight", 1.0)})
        for edge in graph.edges
        if edge.source != edge.target
    )
    return made


def edges_of(text: str) -> list[Edge]:
    """Some edges as they are written: "a requires b, b enables c"."""
    return [Edge(*each.split(" ")) for each in text.split(", ") if each]


def linked(text: str, *nodes: Node) -> PropertyGraph:
    """A graph of the edges of a text, of the nodes at their ends, and of some that are given."""
    edges = edges_of(text)
    ends = {end: Node(end) for edge in edges for end in (edge.source, edge.target)}
    return PropertyGraph.of((ends | {node.id: node for node in nodes}).values(), edges)
