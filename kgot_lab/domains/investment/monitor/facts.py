"""What was read in an item of news: nodes and edges for the graph, and all that was not taken, with the
reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgot_lab.domains.investment.versions import EdgeIds
from kgot_lab.types import Edge, Json, Node


@dataclass(frozen=True)
class NewsFacts:
    """The facts of an item, checked and ready to be written; `refused` says line by line what the model wrote
    that was not taken.
    """

    item: str
    nodes: tuple[Node, ...]  # the item's own node first
    edges: tuple[Edge, ...] = ()
    refused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    # by id: when what the item dates ends, as ISO 8601
    expires: Mapping[str, str] = field(default_factory=dict, hash=False)
    ends: tuple[
        str | EdgeIds, ...
    ] = ()  # the ids of what the item takes back: nodes, and edges by source, type and target

    def to_json(self) -> dict[str, Json]:
        """The facts as the journal keeps them."""
        return {
            "item": self.item,
            "nodes": [[node.id, list(node.labels), dict(node.properties)] for node in self.nodes],
            "edges": [[edge.source, edge.type, edge.target, dict(edge.properties)] for edge in self.edges],
            "refused": list(self.refused),
            "warnings": list(self.warnings),
            "expires": dict(self.expires),
            "ends": [end if isinstance(end, str) else list(end) for end in self.ends],
        }


def facts_from_json(told: Mapping[str, Json]) -> NewsFacts:
    """The facts that the journal keeps."""
    return NewsFacts(
        told["item"],
        tuple(Node(id, tuple(labels), properties) for id, labels, properties in told["nodes"]),
        tuple(Edge(*each) for each in told["edges"]),
        tuple(told["refused"]),
        tuple(told["warnings"]),
        told["expires"],
        tuple(end if isinstance(end, str) else (end[0], end[1], end[2]) for end in told["ends"]),
    )
