"""Validation of graph elements.

Each element is checked once and copied, so that later changes to the original have no effect.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from kgot_lab.errors import BadInput, UnknownName, describe_value, short_repr
from kgot_lab.text.cleaning import is_encodable
from kgot_lab.types import Diff, Edge, Json, Node

# maximum bytes of a node or edge as JSON in UTF-8, more than any passage needs
MAX_ELEMENT_BYTES = 16_000_000
MAX_NESTING = 200  # lists and dicts within each other: each takes two of the 1,000 calls within each other that Python allows
_MAX_INTEGER_BITS = 14_000  # of an integer: with more bits, Python cannot parse its digits
_CONTAINERS = (list, dict, tuple)
_FAST_TEXT_LENGTH, _FAST_INTEGER = 100_000, 2**63  # limits of the fast check: characters, and integers
_FAST_TEXT_COUNT = 5  # limit of the fast check: texts that identify an element
# characters of an element, each of at most 6 bytes in JSON: always within the limit
_FAST_ELEMENT_LENGTH = 2_000_000
Element = TypeVar("Element", Node, Edge)


def validate_diff(diff: Diff) -> Diff:
    """Return a diff with validated copies of what it adds and changes.

    Raises BadInput if a store cannot keep it exactly.
    """
    changed: tuple[Any, ...] = (*diff.changed_nodes, *diff.changed_edges)
    for old in (*diff.removed_nodes, *diff.removed_edges, *(before for before, _ in changed)):
        validate_properties(old)
    nodes = tuple(map(validate_node, diff.added_nodes)), tuple(diff.removed_nodes)
    changed_nodes = tuple((before, validate_node(after)) for before, after in diff.changed_nodes)
    edges = tuple(map(validate_edge, diff.added_edges)), tuple(diff.removed_edges)
    changed_edges = tuple((before, validate_edge(after)) for before, after in diff.changed_edges)
    return Diff(*nodes, changed_nodes, *edges, changed_edges)


def validate_node(node: Node) -> Node:
    """Return a copy of a node that a store can keep exactly.

    Raises BadInput if it cannot.
    """
    if _are_plain_texts(node.id, *node.labels) and _are_plain_properties(node.properties):
        return Node(node.id, node.labels, dict(node.properties))
    owner = _name_element(node)
    validate_text(node.id, f"the id of {owner}")
    labels = tuple(validate_text(label, f"a label of {owner}") for label in node.labels)
    validated = Node(node.id, labels, validate_properties(node))
    return _require_size(validated, (node.id, labels), owner)


def validate_edge(edge: Edge) -> Edge:
    """Return a copy of an edge that a store can keep exactly.

    Raises BadInput if it cannot.
    """
    has_plain_texts = edge.key == "" and _are_plain_texts(edge.source, edge.type, edge.target)
    if has_plain_texts and _are_plain_properties(edge.properties):
        return Edge(edge.source, edge.type, edge.target, dict(edge.properties))
    owner = _name_element(edge)
    for text, part in ((edge.source, "source"), (edge.type, "type"), (edge.target, "target")):
        validate_text(text, f"the {part} of {owner}")
    validate_text(edge.key, f"the key of {owner}", allow_blank=True)
    validated = Edge(edge.source, edge.type, edge.target, validate_properties(edge), edge.key)
    return _require_size(validated, edge.identity, owner)


def validate_text(text: object, what: str, *, allow_blank: bool = False) -> str:
    """Return a text that a store can keep.

    Raises BadInput, which names what the text is, for another type, a blank text (unless `blank`), half a
    surrogate pair, or a text that is too long.
    """
    if not isinstance(text, str) or not (allow_blank or text.strip()):
        allowed = "a text" if allow_blank else "a text that is not blank"
        raise BadInput(f"{what} is {allowed}, not {short_repr(text)}")
    if len(text) > MAX_ELEMENT_BYTES:
        raise BadInput(f"{what} has {len(text):,} characters; {MAX_ELEMENT_BYTES:,} can be kept")
    if not is_encodable(text):
        raise BadInput(f"{what} holds half a surrogate pair, which is no text: {short_repr(text)}")
    return str(text)


def validate_value(value: object, owner: str, depth: int = 0) -> Json:
    """Return a copy of a JSON value, with tuples as lists.

    Raises BadInput, which names what the value belongs to, for NaN, sets, bytes and other values that are not
    JSON, and for half a surrogate pair.
    """
    if getattr(type(value), "item", None) and getattr(value, "ndim", None) == 0:
        value = value.item()  # type: ignore[attr-defined]  # a number of NumPy
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return validate_text(value, owner, allow_blank=True)
    if isinstance(value, int) and value.bit_length() <= _MAX_INTEGER_BITS:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if depth > MAX_NESTING:
        raise BadInput(f"{owner} is nested more than {MAX_NESTING} levels deep")
    if isinstance(value, Mapping):
        items = ((_validate_property_name(name, owner), inner) for name, inner in value.items())
        return {name: validate_value(inner, owner, depth + 1) for name, inner in items}
    if isinstance(value, list | tuple):
        return [validate_value(inner, owner, depth + 1) for inner in value]
    problem = f"{owner} is {describe_value(value)}, which is not JSON and cannot be kept"
    raise BadInput(f"{problem}: give text, finite numbers, True, False, None, lists or dicts")


def copy_value(value: Json) -> Json:
    """Copy a value with its nested lists, dicts and tuples. Other objects are shared."""
    if isinstance(value, dict):
        return {name: copy_value(i) if isinstance(i, _CONTAINERS) else i for name, i in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([copy_value(inner) for inner in value]) if type(value) in (list, tuple) else value
    return value


def copy_properties(properties: Mapping[str, Json]) -> dict[str, Json]:
    """Copy properties so that the copy shares no mutable value with the original."""
    if not properties:
        return {}
    return {name: copy_value(v) if isinstance(v, _CONTAINERS) else v for name, v in properties.items()}


def copy_node(node: Node) -> Node:
    """Copy a node, so that changing its properties does not change the graph."""
    return Node(node.id, node.labels, copy_properties(node.properties))


def copy_edge(edge: Edge) -> Edge:
    """Copy an edge, so that changing its properties does not change the graph."""
    return Edge(edge.source, edge.type, edge.target, copy_properties(edge.properties), edge.key)


def _name_element(element: Node | Edge) -> str:
    if isinstance(element, Node):
        return f"node {short_repr(element.id)}"
    return f"edge {short_repr(element.identity)}"


def _require_size(element: Element, identifiers: tuple[object, ...], owner: str) -> Element:
    """Return an element if it and its identifiers are small enough to be stored.

    Raises BadInput otherwise.
    """
    parts = [*identifiers, element.properties]
    size = len(json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_ELEMENT_BYTES:
        limit = f"{MAX_ELEMENT_BYTES:,} can be kept in one node or edge"
        raise BadInput(f"{owner} takes {size:,} bytes as JSON; {limit}")
    return element


def _are_plain_texts(*texts: object) -> bool:
    """Return whether these are texts that need no further checks.

    Most are, and a full check costs more than storing them.
    """
    return len(texts) <= _FAST_TEXT_COUNT and all(
        type(text) is str and text.isascii() and 0 < len(text) <= _FAST_TEXT_LENGTH and not text.isspace()
        for text in texts
    )


def _are_plain_properties(properties: object) -> bool:
    """Return whether these are properties that need no further checks."""
    if type(properties) is not dict:
        return False
    characters = 0
    for name, value in properties.items():
        kind = type(value)
        if type(name) is not str or not name.isascii() or len(name) > _FAST_TEXT_LENGTH:
            return False
        if kind is str and not (len(value) <= _FAST_TEXT_LENGTH and value.isascii()):
            return False
        is_small_integer = kind is int and -_FAST_INTEGER < value < _FAST_INTEGER
        if not (kind is str or kind is bool or is_small_integer or (kind is float and math.isfinite(value))):
            return False
        # a number has at most 24 characters; quotes, a colon and a comma
        characters += len(name) + (len(value) if kind is str else 4) + 1
    return characters <= _FAST_ELEMENT_LENGTH


def validate_properties(element: Node | Edge) -> dict[str, Json]:
    """Return a copy of the properties of an element that graphs and stores can keep exactly.

    Raises BadInput if they cannot.
    """
    if _are_plain_properties(element.properties):
        return dict(element.properties)
    owner = _name_element(element)
    of, items = f"a property of {owner}", element.properties.items()
    return {_validate_property_name(name, owner): validate_value(value, of) for name, value in items}


def _validate_property_name(name: object, owner: str) -> str:
    if not isinstance(name, str):
        raise BadInput(f"a property of {owner} has the name {short_repr(name)}, which is not text")
    return validate_text(name, f"the name of a property of {owner}", allow_blank=True)


# Vocabularies: the types of nodes and edges in a graph, what edges join, and their properties.

# a time is ISO 8601: a date, or a date with a time and a zone
PropertyKind = Literal["text", "number", "time", "any"]
ANY_TYPE = "*"  # an edge end of any type in the vocabulary


@dataclass(frozen=True)
class PropertyRule:
    """A rule for a property: its kind, allowed values, bounds, and the property it depends on.

    With `goes_with=("type", "signal")` it belongs to nodes whose type is signal: on others it is an error,
    and on these its absence is a warning.
    """

    name: str
    kind: PropertyKind = "text"
    required: bool = False
    values: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None
    goes_with: tuple[str, Json] | None = None


@dataclass(frozen=True)
class NodeType:
    """A type of node. Properties without a rule are unrestricted."""

    name: str
    meaning: str
    properties: tuple[PropertyRule, ...] = ()


@dataclass(frozen=True)
class Ends:
    """The node types that an edge may join. `only` restricts property values between these two."""

    source: str
    target: str
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class EdgeType:
    """A type of edge: its possible ends and its properties.

    A symmetric edge is stored once, with its ends sorted by id. A node has one edge of a `single` type at a
    time, and a later one replaces it.
    """

    name: str
    meaning: str
    ends: tuple[Ends, ...]
    properties: tuple[PropertyRule, ...] = ()
    symmetric: bool = False
    single: bool = False


@dataclass(frozen=True)
class Vocabulary:
    """The node and edge types of a kind of graph.

    `instead` maps an edge type that is not one of them to its replacement.
    """

    name: str
    node_types: tuple[NodeType, ...]
    edge_types: tuple[EdgeType, ...]
    instead: Mapping[str, str] = field(default_factory=dict, hash=False)

    def node_type(self, name: str) -> NodeType:
        """Return a node type by its name.

        Raises UnknownName, which lists the types, if there is none.
        """
        return _find_type(name, self.node_types, f"node type of {self.name}")

    def edge_type(self, name: str) -> EdgeType:
        """Return an edge type by its name.

        Raises UnknownName, which lists the types, if there is none.
        """
        return _find_type(name, self.edge_types, f"edge type of {self.name}")

    @property
    def single_types(self) -> tuple[str, ...]:
        """The edge types of which a node has one at a time."""
        return tuple(kind.name for kind in self.edge_types if kind.single)

    def stored_form(self, edge: Edge) -> Edge:
        """Return an edge as it is stored: the ends of a symmetric type are sorted."""
        symmetric = any(kind.symmetric and kind.name == edge.type for kind in self.edge_types)
        ends = sorted((edge.source, edge.target)) if symmetric else (edge.source, edge.target)
        return Edge(ends[0], edge.type, ends[1], edge.properties)

    def with_types(self, *types: NodeType | EdgeType) -> Vocabulary:
        """Return the vocabulary with additional types."""
        nodes = tuple(kind for kind in types if isinstance(kind, NodeType))
        edges = tuple(kind for kind in types if isinstance(kind, EdgeType))
        return replace(self, node_types=(*self.node_types, *nodes), edge_types=(*self.edge_types, *edges))


_Type = TypeVar("_Type", NodeType, EdgeType)


def _find_type(name: str, types: tuple[_Type, ...], what: str) -> _Type:
    for kind in types:
        if kind.name == name:
            return kind
    raise UnknownName(what, name, (kind.name for kind in types))
