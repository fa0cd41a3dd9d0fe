"""A node with its neighbourhood, laid out for a drawing of a graph that is too large to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from kgot_lab.errors import require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.goals import Limitation, limitations_by_row
from kgot_lab.kgos.methods.index import GraphIndex, graph_index
from kgot_lab.types import Edge, Json

MAX_NEIGHBOURS, _MAX_EDGES = 40, 240  # neighbours, edges


@dataclass(frozen=True)
class PositionedNode:
    """A node of a drawing.

    `links` is its number of neighbours in the graph. x and y are from 0 to 1, and y grows downwards.
    """

    id: str
    name: str
    type: str
    links: int
    x: float
    y: float


@dataclass(frozen=True)
class Neighbourhood:
    """A node, its neighbours with the most edges, and the edges among them, those of the node first."""

    node: PositionedNode
    properties: Mapping[str, Json] = field(hash=False)
    limitations: tuple[Limitation, ...]
    neighbours: tuple[PositionedNode, ...]  # those with the most edges first
    edges: tuple[Edge, ...]
    neighbours_in_all: int
    edges_in_all: int  # among the nodes shown


def lay_out_neighbourhood(graph: PropertyGraph, id: str, *, limit: int = MAX_NEIGHBOURS) -> Neighbourhood:
    """Return a node with its limitations and at most `limit` neighbours, with positions for a drawing.

    The same graph always gives the same positions. Neighbours are on both sides of the node, grouped by edge
    type, so that each has room for a caption. Raises UnknownName if there is no such node, and BadInput if
    `limit` is negative.
    """
    require_count(limit, 0, "limit")
    index = graph_index(graph)
    row = index.row(id)
    table = index.neighbours
    neighbours = table.indices[table.indptr[row] : table.indptr[row + 1]].tolist()
    selected = sorted(neighbours, key=lambda row: (-int(index.degrees[row]), graph.ids[row]))[:limit]
    subgraph = graph.subgraph([id, *(graph.ids[each] for each in selected)])
    # a stable sort: ties in graph order
    edges = sorted(subgraph.edges, key=lambda edge: id not in (edge.source, edge.target))
    positions = _positions(index, id, selected, edges)
    return Neighbourhood(
        node=_positioned_node(index, row, (0.5, 0.5)),
        properties=graph.node_properties[row],
        limitations=limitations_by_row(index, [row]).get(row, ()),
        neighbours=tuple(_positioned_node(index, each, positions[each]) for each in selected),
        edges=tuple(edges[:_MAX_EDGES]),
        neighbours_in_all=len(neighbours),
        edges_in_all=len(edges),
    )


def _positioned_node(index: GraphIndex, row: int, position: tuple[float, float]) -> PositionedNode:
    x, y = position
    names = index.graph.ids[row], index.names[row], index.label_texts[row]
    return PositionedNode(*names, int(index.degrees[row]), round(x, 4), round(y, 4))


def _positions(
    index: GraphIndex, id: str, rows: Sequence[int], edges: Sequence[Edge]
) -> dict[int, tuple[float, float]]:
    """Compute the position of each neighbour: first down the right side, then up the left.

    Neighbours are ordered by the edge that joins them to the node.
    """
    incident: dict[str, tuple[str, bool]] = {}
    for edge in edges:
        if id in (edge.source, edge.target):
            other = edge.target if edge.source == id else edge.source
            incident.setdefault(other, (edge.type, edge.target == id))
    ids = index.graph.ids
    ordered = sorted(rows, key=lambda row: (incident[ids[row]], index.names[row], ids[row]))
    right = (len(ordered) + 1) // 2
    sides = (ordered[:right], 1), (ordered[right:][::-1], -1)
    return {
        row: _side_position(number, len(side_rows), side)
        for side_rows, side in sides
        for number, row in enumerate(side_rows)
    }


def _side_position(number: int, count: int, side: int) -> tuple[float, float]:
    """Return one of `count` evenly spaced positions on a curved line from top to bottom.

    `side` is 1 for the right side and -1 for the left.
    """
    height = (2 * number + 1) / count - 1  # from -1 to 1
    return 0.5 + side * (0.34 + 0.16 * sqrt(1 - height * height)), 0.5 + height / 2
