"""Search several graphs as one: namespaced ids, edges across graphs, joint scores, and merged hits for the
same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kgot_lab.errors import BadInput, describe_value, require, require_amount, require_known
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import GraphIndex, node_name
from kgot_lab.types import Edge, Node, Ranking

SEPARATOR = ":"
# the id, the score, and the ids of all nodes that are the same thing
MergedHit = tuple[str, float, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class MultiGraph:
    """Several graphs in one, with the weight of each in a ranking.

    Each id is prefixed with the name of its graph and a colon, as in "python-kg:caching". Every method takes
    `graph`. A search over this is normalised over all graphs at once, and then weighted.
    """

    graph: PropertyGraph
    weights: Mapping[str, float]

    @classmethod
    def of(
        cls,
        graphs: Mapping[str, PropertyGraph],
        across: Iterable[Edge] = (),
        *,
        weights: Mapping[str, float] | None = None,
    ) -> MultiGraph:
        """Combine named graphs into one, with `across` edges whose ends have namespaces.

        Raises BadInput and UnknownName for invalid names, weights or ends.
        """
        if not isinstance(graphs, Mapping) or not graphs:
            raise BadInput(f"graphs are a dictionary of PropertyGraph by name, not {describe_value(graphs)}")
        for name, graph in graphs.items():
            if not isinstance(name, str) or not name or SEPARATOR in name:
                problem = f"the name of a graph is a text without {SEPARATOR!r}, which ends it in an id"
                raise BadInput(f"{problem}; {name!r} is not")
            require(graph, PropertyGraph, f"the graph {name!r} is a PropertyGraph")
        for name, weight in (weights or {}).items():
            require_known("graph", graphs, name)
            require_amount(weight, f"the weight of the graph {name}", positive=True)
        nodes = [_namespaced_node(name, node) for name, graph in graphs.items() for node in graph.nodes]
        edges = [
            replace(edge, source=add_namespace(name, edge.source), target=add_namespace(name, edge.target))
            for name, graph in graphs.items()
            for edge in graph.edges
        ]
        across = tuple(across)
        for edge in across:
            for end in (edge.source, edge.target):
                if end.partition(SEPARATOR)[0] not in graphs:
                    told = f"{edge.source!r} --[{edge.type}]--> {edge.target!r}"
                    raise BadInput(f"the edge {told} joins graphs: {end!r} names none of them first")
        graph_weights = {name: (weights or {}).get(name, 1.0) for name in graphs}
        return cls(PropertyGraph.of(nodes, [*edges, *across]), graph_weights)


def add_namespace(name: str, id: str) -> str:
    """Return the id of a node among several graphs."""
    return f"{name}{SEPARATOR}{id}"


def _namespaced_node(name: str, node: Node) -> Node:
    """Return a node with its id in a namespace.

    A node whose only name is its id keeps that name, without the namespace.
    """
    called = node.properties if node_name("", node.properties) else {**node.properties, "name": node.id}
    return replace(node, id=add_namespace(name, node.id), properties=called)


def merge_hits(
    several: MultiGraph | None, index: GraphIndex, ranking: Ranking, limit: int
) -> list[MergedHit]:
    """Return the first hits, with nodes of the same name and type merged.

    Among several graphs, each score is multiplied by the weight of its graph. A merged hit is the node with
    the highest score and cites the others. Names and types are compared without case.
    """
    if several is None:
        return [(id, score, (id,)) for id, score in ranking.hits[:limit]]
    ids = ranking.ids
    rows = np.array([index.graph.row(id) for id in ids], np.int64)
    weights = np.array([several.weights[id.partition(SEPARATOR)[0]] for id in ids])
    scores = np.array([hit.score for hit in ranking.hits]) * weights
    first: dict[tuple[str, str], tuple[str, float, list[str]]] = {}
    for position in np.lexsort((index.name_order[rows], -scores)).tolist():
        row = int(rows[position])
        same = index.names[row].casefold(), index.label_texts[row].casefold()
        first.setdefault(same, (ids[position], float(scores[position]), []))[2].append(ids[position])
    return [(id, score, tuple(sources)) for id, score, sources in first.values()][:limit]
