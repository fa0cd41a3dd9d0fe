"""A vocabulary: which types of nodes and edges a graph may have, what edges join, and which properties belong
to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from kgot_lab.errors import UnknownName
from kgot_lab.types import Edge, Json

# a time is ISO 8601: a date, or a date with a time and a zone
PropertyKind = Literal["text", "number", "time", "any"]
ANY_TYPE = "*"  # as the end of an edge: a node of any type of the vocabulary


@dataclass(frozen=True)
class PropertyRule:
    """A property: its kind, its values where they are few, its bounds, and the other property it goes with.

    With `goes_with=("type", "signal")` it belongs to nodes whose type is signal: on others it is an error,
    missing there a warning.
    """

    name: str
    kind: PropertyKind = "text"
    required: bool = False
    values: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None
    goes_with: tuple[str, Json] | None = None


@dataclass(frozen=True)
class NodeType:
    """A type of node; properties that no rule names are free."""

    name: str
    meaning: str
    properties: tuple[PropertyRule, ...] = ()


@dataclass(frozen=True)
class Ends:
    """What an edge may join: a type and another; `only` gives the properties that need certain values between
    these two.
    """

    source: str
    target: str
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class EdgeType:
    """A type of edge: the ends it may have, and its properties. One that says the same both ways is stored
    once, in the order of ids.

    Of a `single` one a node has one at a time: a later one takes the place of the earlier.
    """

    name: str
    meaning: str
    ends: tuple[Ends, ...]
    properties: tuple[PropertyRule, ...] = ()
    symmetric: bool = False
    single: bool = False


@dataclass(frozen=True)
class Vocabulary:
    """The types of a kind of graph; `instead` says for an edge type that is not one of them what to write in
    its place.
    """

    name: str
    node_types: tuple[NodeType, ...]
    edge_types: tuple[EdgeType, ...]
    instead: Mapping[str, str] = field(default_factory=dict, hash=False)

    def node_type(self, name: str) -> NodeType:
        """A node type by its name; raises UnknownName, which lists them."""
        return _named(name, self.node_types, f"node type of {self.name}")

    def edge_type(self, name: str) -> EdgeType:
        """An edge type by its name; raises UnknownName, which lists them."""
        return _named(name, self.edge_types, f"edge type of {self.name}")

    @property
    def single_types(self) -> tuple[str, ...]:
        """The edge types of which a node has one at a time."""
        return tuple(kind.name for kind in self.edge_types if kind.single)

    def in_order(self, edge: Edge) -> Edge:
        """An edge as it is stored: one that says the same both ways in the order of its ends."""
        symmetric = any(kind.symmetric and kind.name == edge.type for kind in self.edge_types)
        ends = sorted((edge.source, edge.target)) if symmetric else (edge.source, edge.target)
        return Edge(ends[0], edge.type, ends[1], edge.properties)

    def extended(self, *more: NodeType | EdgeType) -> Vocabulary:
        """The same vocabulary with more types."""
        nodes = tuple(each for each in more if isinstance(each, NodeType))
        edges = tuple(each for each in more if isinstance(each, EdgeType))
        return replace(self, node_types=(*self.node_types, *nodes), edge_types=(*self.edge_types, *edges))


_Type = TypeVar("_Type", NodeType, EdgeType)


def _named(name: str, types: tuple[_Type, ...], what: str) -> _Type:
    for each in types:
        if each.name == name:
            return each
    raise UnknownName(what, name, (each.name for each in types))
