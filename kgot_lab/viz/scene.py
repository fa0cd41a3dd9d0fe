"""What a picture shows of a graph: which nodes and edges, and what is marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Diff, Edge, Node

EDGES_PER_NODE = 4  # more would be a black cloud

Identity = tuple[str, str, str, str]


@dataclass(frozen=True)
class Scene:
    """The part of a graph that is drawn; marks say "added", "removed" or "changed"."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    node_marks: Mapping[str, str]
    edge_marks: Mapping[Identity, str]
    labels: tuple[str, ...]  # first labels in order of first use, over the whole graph: so that colours stay as it grows
    all_nodes: int
    all_edges: int


def scene_of(graph: PropertyGraph, highlight: Diff | None, limit: int) -> Scene:
    """At most `limit` nodes: those in the diff first, then the best connected; removed nodes and edges are shown too."""
    diff = highlight or Diff()
    whole = _with_removed(graph, diff)
    node_marks, edge_marks = _node_marks(diff), _edge_marks(diff)
    touched = set(node_marks) | {end for source, _, target, _ in edge_marks for end in (source, target)}
    degree = (np.bincount(whole.sources, minlength=len(whole)) + np.bincount(whole.targets, minlength=len(whole))).tolist()
    best = sorted(range(len(whole)), key=lambda row: (whole.ids[row] not in node_marks, whole.ids[row] not in touched, -degree[row], row))
    part = whole.subgraph(whole.ids[row] for row in best[:limit])
    marked_first = sorted(part.edges, key=lambda edge: edge.identity not in edge_marks)
    return Scene(
        nodes=tuple(part.nodes),
        edges=tuple(marked_first[: EDGES_PER_NODE * limit]),
        node_marks=node_marks,
        edge_marks=edge_marks,
        labels=tuple(dict.fromkeys(labels[0] for labels in whole.node_labels if labels)),
        all_nodes=len(whole),
        all_edges=len(whole.edges),
    )


def _with_removed(graph: PropertyGraph, diff: Diff) -> PropertyGraph:
    """The graph after a write, together with what the write took away."""
    if not (diff.removed_nodes or diff.removed_edges):
        return graph
    nodes = {node.id: node for node in (*diff.removed_nodes, *graph.nodes)}
    edges = {edge.identity: edge for edge in (*diff.removed_edges, *graph.edges)}
    ordered = [*graph.ids, *(id for id in nodes if id not in graph)]  # ghosts last: the others keep their colours
    return PropertyGraph.of((nodes[id] for id in ordered), edges.values(), dangling="add")


def _node_marks(diff: Diff) -> dict[str, str]:
    return (
        {node.id: "removed" for node in diff.removed_nodes}
        | {node.id: "changed" for _, node in diff.changed_nodes}
        | {node.id: "added" for node in diff.added_nodes}
    )


def _edge_marks(diff: Diff) -> dict[Identity, str]:
    return (
        {edge.identity: "removed" for edge in diff.removed_edges}
        | {edge.identity: "changed" for _, edge in diff.changed_edges}
        | {edge.identity: "added" for edge in diff.added_edges}
    )
