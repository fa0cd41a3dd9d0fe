"""A graph as three dictionaries: the truth a parent process keeps, against which every claim and every diff is checked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain

from kgot_lab.errors import BadInput
from kgot_lab.types import Diff, Edge, Node

Identity = tuple[str, str, str, str]


def inverse(diff: Diff) -> Diff:
    """The diff that undoes a diff."""
    return Diff(
        added_nodes=diff.removed_nodes,
        removed_nodes=diff.added_nodes,
        changed_nodes=tuple((after, before) for before, after in diff.changed_nodes),
        added_edges=diff.removed_edges,
        removed_edges=diff.added_edges,
        changed_edges=tuple((after, before) for before, after in diff.changed_edges),
    )


def same(one: Node | Edge, other: Node | Edge) -> bool:
    """Whether two elements are equal and keep 1, 1.0 and True apart, which Python's == does not."""
    return one == other and json.dumps(one.properties, sort_keys=True) == json.dumps(other.properties, sort_keys=True)


class Truth:
    """Nodes by id, edges by identity, and each node's edges."""

    def __init__(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()):
        self.nodes: dict[str, Node] = {}
        self.edges: dict[Identity, Edge] = {}
        self.incident: dict[str, dict[Identity, None]] = {}
        self.apply(Diff(added_nodes=tuple(nodes), added_edges=tuple(edges)))

    def difference(self, nodes: Mapping[str, Node | None], edges: Mapping[Identity, Edge | None]) -> Diff:
        """The exact diff that makes these elements so (None: absent); raises BadInput when the result would be no graph."""
        diff = Diff(
            added_nodes=tuple(node for id, node in nodes.items() if node and id not in self.nodes),
            removed_nodes=tuple(self.nodes[id] for id, node in nodes.items() if not node and id in self.nodes),
            changed_nodes=tuple(
                (self.nodes[id], node) for id, node in nodes.items() if node and id in self.nodes and not same(self.nodes[id], node)
            ),
            added_edges=tuple(edge for id, edge in edges.items() if edge and id not in self.edges),
            removed_edges=tuple(self.edges[id] for id, edge in edges.items() if not edge and id in self.edges),
            changed_edges=tuple(
                (self.edges[id], edge) for id, edge in edges.items() if edge and id in self.edges and not same(self.edges[id], edge)
            ),
        )
        self.check(diff)
        return diff

    def check(self, diff: Diff) -> None:
        """Raise BadInput unless the diff fits this graph exactly and leaves no edge without its ends."""
        added, removed = {node.id for node in diff.added_nodes}, {node.id for node in diff.removed_nodes}
        gone = {edge.identity for edge in diff.removed_edges}
        new = {edge.identity for edge in diff.added_edges}
        for name in (*_twice(node.id for node in diff.added_nodes), *_twice(edge.identity for edge in diff.added_edges)):
            raise BadInput(f"the diff adds {name!r} twice")
        for node in diff.added_nodes:
            _require(node.id not in self.nodes, f"node {node.id!r} is already there")
        for before in (*diff.removed_nodes, *(before for before, _ in diff.changed_nodes)):
            _require(before.id in self.nodes and same(self.nodes[before.id], before), f"node {before.id!r} is not as the diff says")
        for edge in diff.added_edges:
            _require(edge.identity not in self.edges, f"edge {edge.identity!r} is already there")
            for end in (edge.source, edge.target):
                _require((end in self.nodes or end in added) and end not in removed, f"edge {edge.identity!r} has no node {end!r}")
        for old in (*diff.removed_edges, *(old for old, _ in diff.changed_edges)):
            _require(old.identity in self.edges and same(self.edges[old.identity], old), f"edge {old.identity!r} is not as the diff says")
        for one, other in diff.changed_nodes:
            _require(one.id == other.id and one.id not in removed, f"node {one.id!r} changes into another node")
        for first, second in diff.changed_edges:
            settled = first.identity == second.identity and first.identity not in gone | new
            _require(settled, f"edge {first.identity!r} changes into another edge")
        for id in removed:
            _require(self.incident[id].keys() <= gone, f"node {id!r} is removed but keeps an edge")

    def apply(self, diff: Diff) -> None:
        """Make a diff true; raises BadInput, changing nothing, when it does not fit."""
        self.check(diff)
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
            self.edges[edge.identity] = edge
            for end in (edge.source, edge.target):
                self.incident[end][edge.identity] = None


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BadInput(f"the diff does not fit the graph: {otherwise}")


def _twice(names: Iterable[object]) -> list[object]:
    seen: set[object] = set()
    return [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
