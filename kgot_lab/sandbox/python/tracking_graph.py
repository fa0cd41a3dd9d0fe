"""A MultiDiGraph that records what a statement touched.

The cost of a diff then depends on what was written, not on the size of the graph. Every dictionary that
NetworkX builds the graph from is a `Tracked` one: before it changes, it notifies the journal which node or
edge the change belongs to, and the journal saves that element as it was. Copies and subgraphs are of the same
class but never attached to a journal. Runs inside the sandbox: imports the standard library and NetworkX
only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import networkx as nx

Owner = tuple[Hashable, ...]  # (node,) or (source, target, key)
_TrackedDict = TypeVar("_TrackedDict", bound="Tracked")
Before = dict[Any, Any] | None  # an element's attributes before the statement, or None if it did not exist


def untracked(value: Any) -> Any:
    """Return a copy of a value with ordinary dictionaries and lists."""
    if isinstance(value, dict):
        return {key: untracked(item) for key, item in value.items()}
    return [untracked(item) for item in value] if isinstance(value, list) else value


class Journal:
    """The state of the nodes and edges of one graph before they were first touched."""

    def __init__(self, graph: TrackedGraph):
        self.graph, self.on = graph, False
        self.nodes: dict[Hashable, Before] = {}
        self.edges: dict[tuple[Hashable, Hashable, Hashable], Before] = {}

    def touch(self, owner: Owner) -> None:
        """Save the current state of an element if this is the first time it is touched."""
        if not self.on:
            return
        if len(owner) == 1:
            self.node(owner[0])
        elif len(owner) == 3:
            self.edge(*owner)

    def node(self, node: Hashable) -> None:
        """Save the current state of a node if this is the first time it is touched."""
        if self.on and node not in self.nodes:
            attributes = self.graph._node.get(node)
            self.nodes[node] = None if attributes is None else untracked(attributes)

    def edge(self, source: Hashable, target: Hashable, key: Hashable) -> None:
        """Save the current state of an edge if this is the first time it is touched."""
        if self.on and (source, target, key) not in self.edges:
            attributes = self.graph._succ.get(source, {}).get(target, {}).get(key)
            self.edges[source, target, key] = None if attributes is None else untracked(attributes)

    def save_all(self) -> None:
        """Save the state of every node and edge, before a statement that may change them unnoticed."""
        for node in self.graph._node:
            self.node(node)
        for edge in self.graph.edges(keys=True):
            self.edge(*edge)

    def find_all(self) -> bool:
        """Add every node and edge that is new and drop those that are unchanged, after `save_all`.

        Return whether all parts of the graph fit together.
        """
        graph, nodes = self.graph, self.graph._node
        edges = {
            (s, t, k): a
            for s, ends in graph._succ.items()
            for t, keys in ends.items()
            for k, a in keys.items()
        }
        mirrored = {
            (s, t, k): a
            for t, ends in graph._pred.items()
            for s, keys in ends.items()
            for k, a in keys.items()
        }
        for saved, found in ((self.nodes, nodes), (self.edges, edges)):
            for name, after in found.items():
                if name in saved and repr(saved[name]) == repr(after):
                    del saved[name]
                else:
                    saved.setdefault(name, None)
        parts = (*nodes.values(), *edges.values())
        fits = nodes.keys() == graph._succ.keys() == graph._pred.keys() and edges == mirrored
        return fits and all(isinstance(attributes, dict) for attributes in parts)


class Tracked(dict):  # type: ignore[type-arg]
    """A dictionary that notifies the journal before it changes.

    `owner` is its position in the graph.
    """

    __slots__ = ("journal", "owner")

    def __init__(self, *args: Any, **items: Any):
        super().__init__(*args, **items)
        self.journal: Journal | None = None
        self.owner: Owner = ()

    def touch(self, key: Any) -> None:
        """Notify the journal of the element that changes with this key."""

    def attach(self, key: Any, value: Any) -> None:
        """Set the owner of a dictionary that was inserted here."""

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.journal is not None:
            self.touch(key)
            self.attach(key, value)
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        self.touch(key)
        super().__delitem__(key)

    def pop(self, key: Any, *default: Any) -> Any:
        self.touch(key)
        return super().pop(key, *default)

    def popitem(self) -> tuple[Any, Any]:
        if self:
            self.touch(next(reversed(self)))
        return super().popitem()

    def clear(self) -> None:
        for key in self:
            self.touch(key)
        super().clear()

    def update(self, *args: Any, **items: Any) -> None:
        for key, value in dict(*args, **items).items():
            self[key] = value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def __ior__(self, other: Any) -> Tracked:  # type: ignore[misc]
        self.update(other)
        return self

    def __reduce__(self) -> Any:
        return dict, (dict(self),)  # copy.copy and copy.deepcopy give an ordinary dictionary


class Attributes(Tracked):
    """The attributes of one node or edge, or a dictionary nested in them."""

    __slots__ = ()

    def touch(self, key: Any) -> None:
        if self.journal is not None:
            self.journal.touch(self.owner)

    def update(self, *args: Any, **items: Any) -> None:
        self.touch(None)
        dict.update(self, *args, **items)


class TrackedKeys(Tracked):
    """The parallel edges from one node to another, by key.

    Its owner is (source, target).
    """

    __slots__ = ()

    def touch(self, key: Any) -> None:
        if self.journal is not None and len(self.owner) == 2:
            self.journal.edge(*self.owner, key)

    def attach(self, key: Any, value: Any) -> None:
        if isinstance(value, Attributes):
            value.journal, value.owner = self.journal, (*self.owner, key)


class Neighbours(Tracked):
    """The edges of one node, by the node at the other end.

    Its owner is (node, whether they are outgoing).
    """

    __slots__ = ()

    def _ends(self, other: Hashable) -> tuple[Hashable, Hashable]:
        node, outgoing = self.owner
        return (node, other) if outgoing else (other, node)

    def touch(self, key: Any) -> None:
        if self.journal is not None and self.journal.on and len(self.owner) == 2:
            for edge_key in self.get(key, ()):
                self.journal.edge(*self._ends(key), edge_key)

    def attach(self, key: Any, value: Any) -> None:
        if isinstance(value, TrackedKeys) and self.journal is not None:
            value.journal, value.owner = self.journal, self._ends(key)
            for edge_key, attributes in value.items():
                value.touch(edge_key)
                value.attach(edge_key, attributes)


class Adjacency(Tracked):
    """The outgoing or incoming edges of every node.

    Its owner is (whether they are outgoing,).
    """

    __slots__ = ()

    def touch(self, key: Any) -> None:
        neighbours = self.get(key)
        if isinstance(neighbours, Neighbours):
            for other in neighbours:
                neighbours.touch(other)

    def attach(self, key: Any, value: Any) -> None:
        if isinstance(value, Neighbours):
            value.journal, value.owner = self.journal, (key, *self.owner)
            for other, keys in value.items():
                value.attach(other, keys)


class Nodes(Tracked):
    """Every node's attributes."""

    __slots__ = ()

    def touch(self, key: Any) -> None:
        if self.journal is not None:
            self.journal.node(key)

    def attach(self, key: Any, value: Any) -> None:
        if isinstance(value, Attributes):
            value.journal, value.owner = self.journal, (key,)


class TrackedItems(list):  # type: ignore[type-arg]
    """A list among the attributes, which notifies the journal before it changes in place."""

    __slots__ = ("journal", "owner")
    journal: Journal
    owner: Owner

    def __reduce__(self) -> Any:
        return list, (list(self),)


def _notifying_method(name: str) -> Callable[..., Any]:
    change = getattr(list, name)

    def method(self: TrackedItems, *args: Any, **options: Any) -> Any:
        self.journal.touch(self.owner)
        return change(self, *args, **options)

    return method


_MUTATING_METHODS = (
    "append extend insert remove pop clear sort reverse __setitem__ __delitem__ __iadd__ __imul__"
)
for _name in _MUTATING_METHODS.split():
    setattr(TrackedItems, _name, _notifying_method(_name))


def track_value(value: Any, journal: Journal, owner: Owner) -> Any:
    """Return a JSON value whose lists and dictionaries notify the journal before they change in place."""
    if isinstance(value, list):
        items = TrackedItems(track_value(item, journal, owner) for item in value)
        items.journal, items.owner = journal, owner
        return items
    if isinstance(value, dict):
        nested = Attributes({key: track_value(item, journal, owner) for key, item in value.items()})
        nested.journal, nested.owner = journal, owner
        return nested
    return value


class TrackedGraph(nx.MultiDiGraph):  # type: ignore[type-arg]
    """A MultiDiGraph built from tracked dictionaries.

    It records changes only after `track`.
    """

    node_dict_factory = Nodes
    node_attr_dict_factory = Attributes
    adjlist_outer_dict_factory = Adjacency
    adjlist_inner_dict_factory = Neighbours
    edge_key_dict_factory = TrackedKeys
    edge_attr_dict_factory = Attributes
    _node: Nodes
    _succ: Adjacency
    _pred: Adjacency


def track(graph: TrackedGraph) -> Journal:
    """Create the journal of an empty graph.

    Nothing is recorded until its `on` is set.
    """
    journal = Journal(graph)
    graph._node.journal = graph._succ.journal = graph._pred.journal = journal
    graph._succ.owner, graph._pred.owner = (True,), (False,)
    return journal


# --- adding to a graph that is not tracked: NetworkX's own methods would notify the journal of each
# dictionary, which takes five times as long ---


def insert_node(journal: Journal, id: str, attributes: dict[str, Any]) -> None:
    """Add a node to the graph, or replace its attributes, without recording it."""
    graph = journal.graph
    attributes_dict = graph._node.get(id)
    if attributes_dict is None:
        attributes_dict = _owned_dict(Attributes, journal, (id,))
        dict.__setitem__(graph._node, id, attributes_dict)
        dict.__setitem__(graph._succ, id, _owned_dict(Neighbours, journal, (id, True)))
        dict.__setitem__(graph._pred, id, _owned_dict(Neighbours, journal, (id, False)))
    _fill_attributes(attributes_dict, attributes, journal)


def insert_edge(journal: Journal, identity: tuple[str, str, str], attributes: dict[str, Any]) -> None:
    """Add an edge (source, target, key) to the graph, or replace its attributes, without recording it."""
    graph, (source, target, key) = journal.graph, identity
    keys = graph._succ[source].get(target)
    if keys is None:
        keys = _owned_dict(TrackedKeys, journal, (source, target))
        dict.__setitem__(graph._succ[source], target, keys)
        dict.__setitem__(graph._pred[target], source, keys)
    attributes_dict = keys.get(key)
    if attributes_dict is None:
        attributes_dict = _owned_dict(Attributes, journal, identity)
        dict.__setitem__(keys, key, attributes_dict)
    _fill_attributes(attributes_dict, attributes, journal)


def _owned_dict(kind: type[_TrackedDict], journal: Journal, owner: Owner) -> _TrackedDict:
    """Create an empty dictionary that knows its owner."""
    part = kind.__new__(kind)
    part.journal, part.owner = journal, owner
    return part


def _fill_attributes(target: Attributes, attributes: dict[str, Any], journal: Journal) -> None:
    dict.clear(target)
    for name, value in attributes.items():
        tracked = value if isinstance(value, str) else track_value(value, journal, target.owner)
        dict.__setitem__(target, name, tracked)
