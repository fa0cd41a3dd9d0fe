"""Diffs between graphs, and a mutable graph that diffs are applied to."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from kgot_lab.errors import BadInput, require
from kgot_lab.types import Diff, Edge, Json, Node

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
W = TypeVar("W")
Element = TypeVar("Element", Node, Edge)


class Changes(NamedTuple, Generic[V]):
    """The values added, the values removed, and the pairs (before, after) that differ, as in a Diff."""

    added: tuple[V, ...]
    removed: tuple[V, ...]
    changed: tuple[tuple[V, V], ...]

    def mapped(self, old: Callable[[V], W], new: Callable[[V], W]) -> Changes[W]:
        """Return what two functions make of the old and of the new values."""
        changed = tuple((old(before), new(after)) for before, after in self.changed)
        return Changes(tuple(map(new, self.added)), tuple(map(old, self.removed)), changed)


def compare_tables(
    before: Mapping[K, V], after: Mapping[K, V], is_same: Callable[[V, V], bool]
) -> Changes[V]:
    """Return the values added, removed and changed between two tables, in the order of the tables."""
    added = tuple(value for key, value in after.items() if key not in before)
    removed = tuple(value for key, value in before.items() if key not in after)
    common = ((value, after[key]) for key, value in before.items() if key in after)
    return Changes(added, removed, tuple(pair for pair in common if not is_same(*pair)))


def require_distinct_elements(diff: Diff) -> None:
    """Raise BadInput if a diff names a node or an edge twice, since the result would depend on the order."""
    changed_nodes = (before.id for before, _ in diff.changed_nodes)
    changed_edges = (before.identity for before, _ in diff.changed_edges)
    nodes = chain(diff.added_nodes, diff.removed_nodes)
    _refuse_duplicates(chain((node.id for node in nodes), changed_nodes))
    edges = chain(diff.added_edges, diff.removed_edges)
    _refuse_duplicates(chain((edge.identity for edge in edges), changed_edges))


def _refuse_duplicates(names: Iterable[Hashable]) -> None:
    seen: set[Hashable] = set()
    for name in names:
        if name in seen:
            rule = "each node and each edge is added, removed or changed at most once in a diff"
            raise BadInput(f"the diff names {name!r} twice; {rule}")
        seen.add(name)


def same_properties(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two sets of properties are the same JSON.

    Key order and tuple or list do not matter. 1, 1.0 and true differ. NaN equals NaN.
    """
    if one is other or not (one or other):
        return True
    return len(one) == len(other) and _canonical(one) == _canonical(other)


def _canonical(properties: Mapping[str, Any]) -> str:
    return json.dumps(dict(properties), sort_keys=True, default=repr)


def merged_properties(before: Mapping[str, Json], changes: Mapping[str, Json]) -> dict[str, Json]:
    """Merge changes into properties. A value of None removes a property."""
    return {name: value for name, value in {**before, **changes}.items() if value is not None}


# A mutable graph as three dictionaries: the parent process's copy, against which every diff is checked.

Identity = tuple[str, str, str, str]


def inverse(diff: Diff) -> Diff:
    """Return the diff that undoes a diff.

    Raises BadInput if `diff` is not a Diff.
    """
    require(diff, Diff, "what is taken back from a store is a Diff")
    nodes = tuple((after, before) for before, after in diff.changed_nodes)
    edges = tuple((after, before) for before, after in diff.changed_edges)
    return Diff(diff.removed_nodes, diff.added_nodes, nodes, diff.removed_edges, diff.added_edges, edges)


def same_element(one: Node | Edge, other: Node | Edge) -> bool:
    """Return whether two elements of one identity have the same labels and the same properties as JSON."""
    if isinstance(one, Node) and isinstance(other, Node) and tuple(one.labels) != tuple(other.labels):
        return False
    return same_properties(one.properties, other.properties)


class MutableGraph:
    """A mutable graph: nodes by id, edges by identity, and each node's edges."""

    def __init__(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()):
        self.nodes: dict[str, Node] = {}
        self.edges: dict[Identity, Edge] = {}
        self.incident: dict[str, dict[Identity, None]] = {}
        self.apply(Diff(added_nodes=tuple(nodes), added_edges=tuple(edges)))

    def difference(self, nodes: Mapping[str, Node | None], edges: Mapping[Identity, Edge | None]) -> Diff:
        """Return the exact diff that leads to these elements (None: absent).

        Raises BadInput if the result would not be a valid graph.
        """
        diff = Diff(*_table_changes(self.nodes, nodes), *_table_changes(self.edges, edges))
        self.check(diff)
        return diff

    def check(self, diff: Diff) -> None:
        """Raise BadInput unless a diff fits exactly, has no duplicates, and leaves no dangling edge."""
        require_distinct_elements(diff)
        added = {node.id: None for node in diff.added_nodes}
        new = {edge.identity: None for edge in diff.added_edges}
        removed = {node.id for node in diff.removed_nodes}
        gone = {edge.identity for edge in diff.removed_edges}
        for id in added:
            if id in self.nodes:
                raise _misfit_error(f"node {id!r} is already there")
        for before in chain(diff.removed_nodes, (before for before, _ in diff.changed_nodes)):
            if before.id not in self.nodes or not same_element(self.nodes[before.id], before):
                raise _misfit_error(f"node {before.id!r} is not as the diff says")
        for identity in new:
            if identity in self.edges:
                raise _misfit_error(f"edge {identity!r} is already there")
            for end in (identity[0], identity[2]):
                if (end not in self.nodes and end not in added) or end in removed:
                    raise _misfit_error(f"edge {identity!r} has no node {end!r}")
        for old_element in chain(diff.removed_edges, (old_element for old_element, _ in diff.changed_edges)):
            stored = self.edges.get(old_element.identity)
            if stored is None or not same_element(stored, old_element):
                raise _misfit_error(f"edge {old_element.identity!r} is not as the diff says")
        for old_node, new_node in diff.changed_nodes:
            if old_node.id != new_node.id or old_node.id in removed:
                raise _misfit_error(f"node {old_node.id!r} changes into another node")
        for old_edge, new_edge in diff.changed_edges:
            identity = old_edge.identity
            if identity != new_edge.identity or identity in gone or identity in new:
                raise _misfit_error(f"edge {old_edge.identity!r} changes into another edge")
        for id in removed:
            if not self.incident[id].keys() <= gone:
                raise _misfit_error(f"node {id!r} is removed but keeps an edge")

    def apply(self, diff: Diff) -> None:
        """Apply a diff. Raises BadInput, without any change, if it does not fit."""
        self.check(diff)
        self.apply_checked(diff)

    def apply_checked(self, diff: Diff) -> None:
        """Apply a diff that was checked."""
        for edge in diff.removed_edges:
            del self.edges[edge.identity]
            for end in {edge.source, edge.target}:
                del self.incident[end][edge.identity]
        for node in diff.removed_nodes:
            del self.nodes[node.id], self.incident[node.id]
        for node in diff.written_nodes:
            self.nodes[node.id] = node
            self.incident.setdefault(node.id, {})
        for edge in diff.written_edges:
            identity = edge.identity
            self.edges[identity] = edge
            self.incident[edge.source][identity] = None
            self.incident[edge.target][identity] = None


def _table_changes(table: Mapping[K, Element], states: Mapping[K, Element | None]) -> Changes[Element]:
    """Return what leads from a table to new states of some of its elements, None for absent."""
    before = {key: table[key] for key in states if key in table}
    return compare_tables(before, {key: new for key, new in states.items() if new}, same_element)


def _misfit_error(why: str) -> BadInput:
    return BadInput(f"the diff does not fit the graph: {why}")


# Provenance of facts: all documents and sentences, in the properties of the edge.

# provenance: for the reader and the evidence, not for the prompt
PROVENANCE_PROPERTIES = {"source", "sentence"}


@dataclass(frozen=True)
class Support:
    """A document that states a fact, by its id, and the sentence. The id is "" for a text without one."""

    source: str
    sentence: str


def supports_of(properties: Mapping[str, Json]) -> tuple[Support, ...]:
    """Return the supports in an edge's properties.

    `source` and `sentence` are a text each for one support, and parallel lists for several.
    """
    sources, sentences = _text_list(properties.get("source")), _text_list(properties.get("sentence"))
    longest = max(len(sources), len(sentences))
    sources, sentences = ([*texts, *[""] * (longest - len(texts))] for texts in (sources, sentences))
    return tuple(map(Support, sources, sentences))


def support_properties(supports: Iterable[Support]) -> dict[str, Json]:
    """Build the properties that record supports, without duplicates."""
    distinct = tuple(dict.fromkeys(supports))
    sources, sentences = [support.source for support in distinct], [support.sentence for support in distinct]
    if len(distinct) == 1:
        return {"source": sources[0], "sentence": sentences[0]}
    return {"source": sources, "sentence": sentences}


def latest_sentence(properties: Mapping[str, Json]) -> str:
    """Return the latest sentence that supports a fact, or "" if there is none."""
    return next((support.sentence for support in reversed(supports_of(properties)) if support.sentence), "")


def supporting_sentences(edges: Iterable[Edge]) -> frozenset[str]:
    """Return all sentences that support some facts."""
    return frozenset(s.sentence for edge in edges for s in supports_of(edge.properties) if s.sentence)


def merge_supports(diff: Diff) -> Diff:
    """Return a diff in which changed edges keep their old supports and add the new ones.

    Two pairs of texts may be in an edge's properties in any order, as in RDF. Pairs from before the change
    are taken to be unchanged.
    """
    merged = [(before, after, _keep_old_supports(before, after)) for before, after in diff.changed_edges]
    changed = tuple((before, edge) for before, after, edge in merged if edge is after or edge != before)
    return replace(diff, changed_edges=changed)


def _keep_old_supports(before: Edge, after: Edge) -> Edge:
    old_supports = supports_of(before.properties)
    if set(old_supports) <= set(supports_of(after.properties)):
        return after
    supports = (*old_supports, *_added_supports(old_supports, after.properties))
    return replace(after, properties={**after.properties, **support_properties(supports)})


def _added_supports(old_supports: Sequence[Support], properties: Mapping[str, Json]) -> tuple[Support, ...]:
    """Return the supports that a change added, whether it replaced the old ones or was mixed with them."""
    sources, sentences = _text_list(properties.get("source")), _text_list(properties.get("sentence"))
    if not all(old.source in sources and old.sentence in sentences for old in old_supports):
        return supports_of(properties)
    common_source = sources[0] if len(set(sources)) == 1 else ""
    for support in old_supports:
        for texts, text in ((sources, support.source), (sentences, support.sentence)):
            if text in texts:
                texts.remove(text)
    return supports_of({"source": sources or [common_source] * len(sentences), "sentence": sentences})


def _text_list(value: Json) -> list[str]:
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)]
