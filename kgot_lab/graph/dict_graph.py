"""A graph as three dictionaries: the truth a parent process keeps, against which every claim and every diff
is checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain

from kgot_lab.errors import BadInput, require
from kgot_lab.graph.changes import require_each_once
from kgot_lab.types import Diff, Edge, Node

Identity = tuple[str, str, str, str]


def inverse(diff: Diff) -> Diff:
    """The diff that undoes a diff; raises BadInput for what is none."""
    require(diff, Diff, "what is taken back from a store is a Diff")
    return Diff(
        added_nodes=diff.removed_nodes,
        removed_nodes=diff.added_nodes,
        changed_nodes=tuple((after, before) for before, after in diff.changed_nodes),
        added_edges=diff.removed_edges,
        removed_edges=diff.added_edges,
        changed_edges=tuple((after, before) for before, after in diff.changed_edges),
    )


def same_element(one: Node | Edge, other: Node | Edge) -> bool:
    """Whether two elements are equal and keep 1, 1.0 and True apart, which Python's == does not."""
    return one == other and json.dumps(one.properties, sort_keys=True) == json.dumps(
        other.properties, sort_keys=True
    )


class Truth:
    """Nodes by id, edges by identity, and each node's edges."""

    def __init__(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()):
        self.nodes: dict[str, Node] = {}
        self.edges: dict[Identity, Edge] = {}
        self.incident: dict[str, dict[Identity, None]] = {}
        self.apply(Diff(added_nodes=tuple(nodes), added_edges=tuple(edges)))

    def difference(self, nodes: Mapping[str, Node | None], edges: Mapping[Identity, Edge | None]) -> Diff:
        """The exact diff that makes these elements so (None: absent); raises BadInput when the result would
        be no graph.
        """
        diff = Diff(
            added_nodes=tuple(node for id, node in nodes.items() if node and id not in self.nodes),
            removed_nodes=tuple(
                self.nodes[id] for id, node in nodes.items() if not node and id in self.nodes
            ),
            changed_nodes=tuple(
                (self.nodes[id], node)
                for id, node in nodes.items()
                if node and id in self.nodes and not same_element(self.nodes[id], node)
            ),
            added_edges=tuple(edge for id, edge in edges.items() if edge and id not in self.edges),
            removed_edges=tuple(
                self.edges[id] for id, edge in edges.items() if not edge and id in self.edges
            ),
            changed_edges=tuple(
                (self.edges[id], edge)
                for id, edge in edges.items()
                if edge and id in self.edges and not same_element(self.edges[id], edge)
            ),
        )
        self.check(diff)
        return diff

    def check(self, diff: Diff) -> None:
        """Raise BadInput unless the diff fits this graph exactly, names nothing twice, and leaves no edge
        without its ends.
        """
        require_each_once(diff)
        added, new = (
            {node.id: None for node in diff.added_nodes},
            {edge.identity: None for edge in diff.added_edges},
        )
        removed, gone = (
            {node.id for node in diff.removed_nodes},
            {edge.identity for edge in diff.removed_edges},
        )
        for id in added:
            if id in self.nodes:
                raise _misfit(f"node {id!r} is already there")
        for before in chain(diff.removed_nodes, (before for before, _ in diff.changed_nodes)):
            if before.id not in self.nodes or not same_element(self.nodes[before.id], before):
                raise _misfit(f"node {before.id!r} is not as the diff says")
        for identity in new:
            if identity in self.edges:
                raise _misfit(f"edge {identity!r} is already there")
            for end in (identity[0], identity[2]):
                if (end not in self.nodes and end not in added) or end in removed:
                    raise _misfit(f"edge {identity!r} has no node {end!r}")
        for old in chain(diff.removed_edges, (old for old, _ in diff.changed_edges)):
            if old.identity not in self.edges or not same_element(self.edges[old.identity], old):
                raise _misfit(f"edge {old.identity!r} is not as the diff says")
        for one, other in diff.changed_nodes:
            if one.id != other.id or one.id in removed:
                raise _misfit(f"node {one.id!r} changes into another node")
        for first, second in diff.changed_edges:
            if first.identity != second.identity or first.identity in gone or first.identity in new:
                raise _misfit(f"edge {first.identity!r} changes into another edge")
        for id in removed:
            if not self.incident[id].keys() <= gone:
                raise _misfit(f"node {id!r} is removed but keeps an edge")

    def apply(self, diff: Diff) -> None:
        """Make a diff true; raises BadInput, changing nothing, when it does not fit."""
        self.check(diff)
        self.take(diff)

    def take(self, diff: Diff) -> None:
        """Make a diff true that was checked."""
        for edge in diff.removed_edges:
            del self.edges[edge.identity]
            for end in {edge.source, edge.target}:
                del self.incident[end][edge.identity]
        for node in diff.removed_nodes:
            del self.nodes[node.id], self.incident[node.id]
        for node in chain(diff.added_nodes, (after for _, after in diff.changed_nodes)):
            self.nodes[node.id] = node
            self.incident.setdefault(node.id, {})
        for edge in chain(diff.added_edges, (after for _, after in diff.changed_edges)):
            identity = edge.identity
            self.edges[identity] = edge
            self.incident[edge.source][identity] = None
            self.incident[edge.target][identity] = None


def _misfit(why: str) -> BadInput:
    return BadInput(f"the diff does not fit the graph: {why}")
