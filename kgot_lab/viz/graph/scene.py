"""A scene: what is drawn of a graph, as plain data. The still picture (SVG) and the live view (JSON) both
render it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt

import numpy as np

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.dict_graph import Identity
from kgot_lab.text.counted import counted
from kgot_lab.types import Edge, Node
from kgot_lab.viz.graph.collapse import View
from kgot_lab.viz.graph.communities import THE_REST, WITHOUT_EDGES
from kgot_lab.viz.graph.groups import EVERYTHING_ELSE, Community, EdgeBundle
from kgot_lab.viz.graph.marks import (
    GROUP,
    MARKS,
    ROUND,
    Highlight,
    Marked,
    NodeLook,
    Place,
    kinds_of_marks,
    look_of,
    marked,
    node_caption,
)

EDGES_PER_NODE = 4  # more would be a black cloud
_OFTEN = 15  # edges of one type from which on it is said once
_NO_COMMUNITY = WITHOUT_EDGES, THE_REST, EVERYTHING_ELSE  # drawn smaller, since their number says little


@dataclass(frozen=True)
class NodePlan:
    """A node: its middle, its radius, its name in lines, and the middle of these, counted from its own; not
    `named` for want of room.
    """

    place: Place
    radius: float
    lines: tuple[str, ...]
    beside: Place
    named: bool


@dataclass(frozen=True)
class EdgePlan:
    """An edge: the control point of its curve, its words in lines, and the middle of these; not `worded` for
    want of room.
    """

    control: Place
    lines: tuple[str, ...]
    at: Place
    worded: bool


@dataclass(frozen=True)
class DrawingPlan:
    """Where everything is, in pixels of a drawing area; `name_size` and `word_size` are those of the type."""

    area: tuple[float, float]
    name_size: float
    word_size: float
    nodes: Mapping[str, NodePlan]
    edges: Mapping[Identity, EdgePlan]
    notes: tuple[str, ...] = ()  # what edges say that have a number for want of room

    def fractions(self) -> dict[str, Place]:
        """Where the nodes are, as fractions of the area."""
        return {
            id: (node.place[0] / self.area[0], node.place[1] / self.area[1])
            for id, node in self.nodes.items()
        }

    @property
    def silent(self) -> int:
        """How many names and words of edges have no room."""
        return sum(not node.named for node in self.nodes.values()) + sum(
            not edge.worded for edge in self.edges.values()
        )


@dataclass(frozen=True, eq=False)
class Scene:
    """Nodes and edges that are drawn, and what is marked among them; `labels` in the order of their colours.

    Of a `view` some nodes stand for a community, and bundles for many edges. `places` are fractions of the
    drawing area; a small scene has a `plan` too.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    marked: Marked
    labels: tuple[str, ...]
    view: View | None = None
    plan: DrawingPlan | None = None
    places: Mapping[str, Place] = field(default_factory=dict)

    @cached_property
    def groups(self) -> dict[str, Community]:
        """The communities that are drawn as one node, by its id."""
        return {each.id: each for each in self.view.communities if each.hidden} if self.view else {}

    @property
    def bundles(self) -> tuple[EdgeBundle, ...]:
        """The lines that stand for many edges."""
        return self.view.bundles if self.view else ()

    @cached_property
    def most(self) -> int:
        """How many edges the thickest bundle stands for."""
        return max((bundle.count for bundle in self.bundles), default=1)

    def bundle_caption(self, bundle: EdgeBundle) -> str:
        """The number of its edges, if they are many."""
        return f"{bundle.count:,}" if bundle.count > self.most / 2 else ""

    @cached_property
    def lines(self) -> tuple[Edge, ...]:
        """The edges, and one for each bundle, called as the line is."""
        bundled = (
            Edge(each.source, self.bundle_caption(each), each.target, key=" bundle") for each in self.bundles
        )
        return (*self.edges, *bundled)

    @cached_property
    def sizes(self) -> dict[str, float]:
        """The diameter in pixels of each group: its area grows with the number of nodes it hides."""
        hidden = (each.hidden for each in self.groups.values() if each.kind not in _NO_COMMUNITY)
        largest = max(hidden, default=0)
        return {
            id: 8
            + 34 * sqrt(min(each.hidden / max(largest, 1), 1.0)) * (0.5 if each.kind in _NO_COMMUNITY else 1)
            for id, each in self.groups.items()
        }

    def look(self, node: Node) -> NodeLook:
        """The colour and shape of a node, by its first label."""
        if node.id in self.groups:
            return GROUP
        return look_of(self.labels.index(node.labels[0])) if node.labels else ROUND

    def caption(self, node: Node) -> str:
        """What is written beside a node."""
        return self.groups[node.id].name if node.id in self.groups else node_caption(node)

    def words(self, edge: Edge) -> str:
        """What is written along an edge: its type, with the sign of its mark; nothing where the legend says
        it of all edges.
        """
        mark = self.marked.edges.get(edge.identity)
        return f"{MARKS[mark].sign} {edge.type}" if mark else "" if self.type_of_all else edge.type

    @cached_property
    def type_of_all(self) -> str:
        """The type of all edges, if they are many and have the same one: it need not be said at each."""
        types = {edge.type for edge in self.lines}
        return types.pop() if len(types) == 1 and len(self.lines) > _OFTEN else ""

    @property
    def kinds_of_marks(self) -> tuple[str, ...]:
        """The kinds of marks that a legend has to explain: all of a write, even if it made only some."""
        return kinds_of_marks(self.marked.said, {*self.marked.nodes.values(), *self.marked.edges.values()})

    @property
    def title(self) -> str:
        """How large the graph is of which this is drawn."""
        graph = self.marked.graph
        if not len(graph):
            return "An empty graph"
        return f"A graph with {counted(len(graph), 'node')} and {counted(len(graph.edges), 'edge')}"

    def left_out(self, first: str) -> str:
        """What is not drawn, in words, and which nodes came `first`: such as ", the best connected"."""
        graph, said = self.marked.graph, []
        if len(self.nodes) < len(graph):
            said.append(f"Shows {len(self.nodes):,} of {len(graph):,} nodes{first}.")
        if len(self.edges) < len(graph.edges):
            said.append(f"Shows {len(self.edges):,} of {len(graph.edges):,} edges.")
        return " ".join(said)


def scene_of(graph: PropertyGraph, highlight: Highlight, limit: int, labels: Sequence[str] = ()) -> Scene:
    """At most `limit` nodes: the marked ones first, then the best connected; removed nodes and edges are
    shown too.
    """
    told = marked(graph, highlight)
    whole, touched = told.graph, told.touched
    degree = (
        np.bincount(whole.sources, minlength=len(whole)) + np.bincount(whole.targets, minlength=len(whole))
    ).tolist()
    best = sorted(
        range(len(whole)),
        key=lambda row: (whole.ids[row] not in told.nodes, whole.ids[row] not in touched, -degree[row], row),
    )
    part = whole.subgraph(whole.ids[row] for row in best[:limit])
    marked_first = sorted(part.edges, key=lambda edge: edge.identity not in told.edges)
    return Scene(
        nodes=tuple(part.nodes),
        edges=tuple(marked_first[: EDGES_PER_NODE * limit]),
        marked=told,
        labels=tuple(dict.fromkeys((*labels, *told.labels))),
    )


def scene_of_view(view: View, told: Marked) -> Scene:
    """What a view of a marked graph draws."""
    return Scene(view.nodes, view.edges, told, told.labels, view)
