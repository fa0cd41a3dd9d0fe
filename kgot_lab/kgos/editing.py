"""Edit a graph by hand, one change at a time. A change that breaks a rule is refused before anything is
written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, UnknownName, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import inverse
from kgot_lab.graph.validation import Vocabulary, validate_diff
from kgot_lab.io.times import utc_now
from kgot_lab.kgos.schemas.check import Fault, edge_text
from kgot_lab.kgos.schemas.rules import check_rules
from kgot_lab.kgos.schemas.vocabularies import UNIFIED
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Diff, Edge, Json, Node

# Check the rules only where a change touches the graph.

_LOCAL_RULES = (1, 2, 4, 5, 6, 7)  # rules that look at a node or an edge, and at what touches it
# rules that follow these edge types
_PATH_RULES = {(9,): ("requires",), (11,): ("feeds_into",), (10, 12): ("has_limitation", "has_workaround")}


def affected_nodes(diff: Diff) -> set[str]:
    """Return the ids of the nodes that a change affects.

    They are the added, removed and changed nodes, and the ends of the added, removed and changed edges.
    """
    nodes = [*diff.added_nodes, *diff.removed_nodes, *(after for _, after in diff.changed_nodes)]
    edges = [*diff.added_edges, *diff.removed_edges, *(after for _, after in diff.changed_edges)]
    return {node.id for node in nodes} | {end for edge in edges for end in (edge.source, edge.target)}


def find_faults_near(graph: PropertyGraph, vocabulary: Vocabulary, touched: Iterable[str]) -> set[Fault]:
    """Check the rules at some nodes, at their edges, and along the edge types that rules follow.

    The rest of the graph is not checked. A change affects no other answer of a rule, so full checks before
    and after it differ in these faults alone.
    """
    existing = [id for id in touched if id in graph]
    if not existing:
        return set()
    affected = {f"node {short_repr(id)}" for id in existing}
    edges = (edge for id in existing for edge in graph.neighbours(id, "both"))
    affected |= {edge_text(edge.source, edge.type, edge.target) for edge in edges}
    near = graph.neighbourhood(existing, hops=1)
    found = {f for f in check_rules(near, vocabulary, only=_LOCAL_RULES).faults if f.where in affected}
    for rules, types in _PATH_RULES.items():
        if not set(types).isdisjoint(graph.type_names):
            reachable = graph.subgraph(_reachable_nodes(graph, existing, types))
            found.update(check_rules(reachable, vocabulary, only=rules).faults)
    return found


def _reachable_nodes(graph: PropertyGraph, start: Iterable[str], types: Collection[str]) -> set[str]:
    """Return the nodes reachable from `start` over edges of some types, in either direction."""
    reached = frontier = set(start)
    while frontier:
        edges = (edge for id in frontier for edge in graph.neighbours(id, "both", types))
        frontier = {end for edge in edges for end in (edge.source, edge.target)} - reached
        reached = reached | frontier
    return reached


CURATED_PROPERTY = "curated"  # the property of what was edited by hand: who edited it, and when


class DiffStore(Protocol):
    """A store or a file to which each change is written as well."""

    def apply(self, diff: Diff) -> None: ...  # in one step


@dataclass(frozen=True)
class Edit:
    """A change that was made, with the faults that it added and those that it fixed."""

    said: str
    diff: Diff
    broken: tuple[Fault, ...] = ()
    fixed: tuple[Fault, ...] = ()

    def __repr__(self) -> str:
        broken = [f"  {fault}" for fault in self.broken]
        lines = [f"<{self.said}>", *broken, *(f"  no longer: {fault}" for fault in self.fixed)]
        return "\n".join(lines)


@check_arguments
class Editor:
    """A graph while it is edited.

    Each change is checked against the twelve rules and the vocabulary before it is written. A new error is
    refused with BadInput, which says what to do, and nothing changes. A new warning is reported with the
    change. What a change does not touch is not checked again. With a store, each change
    is written there too, in one step, and `undo` reverts it in both. `now` is the clock of the marks.
    """

    def __init__(
        self,
        graph: PropertyGraph,
        *,
        by: str,
        vocabulary: Vocabulary = UNIFIED,
        store: DiffStore | None = None,
        now: Callable[[], datetime] = utc_now,
    ):
        if not isinstance(by, str) or not by.strip():
            raise BadInput("say who edits: by='a name', which is noted with each change")
        self.graph, self.by, self.vocabulary = graph, by.strip(), vocabulary
        self._store, self._now = store, now
        self._done: list[Edit] = []
        self._undone: list[Edit] = []

    # --- nodes ---

    def add_node(self, id: str, type: str, /, **properties: Json) -> Edit:
        """Add a node.

        Raises BadInput if there is already a node with this id.
        """
        if id in self.graph:
            raise BadInput(f"the node {id!r} is there already: change_node changes it")
        node = Node(id, (type,), self._changed({}, properties))
        return self._apply_change(f"added node {id}", Diff(added_nodes=(node,)))

    def change_node(self, id: str, /, *, type: str | None = None, **properties: Json) -> Edit:
        """Change the type of a node or the values of some properties.

        None removes a property.
        """
        before = self.graph.node(id)
        labels = before.labels if type is None else (type,)
        after = Node(id, labels, self._changed(before.properties, properties))
        if labels == before.labels and _without_mark(after.properties) == _without_mark(before.properties):
            raise BadInput(f"nothing of the node {id!r} would be another: its values are these already")
        return self._apply_change(f"changed node {id}", Diff(changed_nodes=((before, after),)))

    def remove_node(self, id: str) -> Edit:
        """Remove a node and its edges."""
        node = self.graph.node(id)
        edges = tuple(self.graph.neighbours(id, "both"))
        diff = Diff(removed_nodes=(node,), removed_edges=edges)
        return self._apply_change(f"removed node {id} and {format_count(len(edges), 'edge')}", diff)

    # --- edges ---

    def add_edge(self, source: str, type: str, target: str, /, **properties: Json) -> Edit:
        """Add an edge between two existing nodes.

        Raises BadInput if the edge already exists.
        """
        for end in (source, target):
            self.graph.row(end)
        edge = Edge(source, type, target, self._changed({}, properties))
        if any(neighbour.target == target for neighbour in self.graph.neighbours(source, "out", (type,))):
            raise BadInput(f"the edge {source} -{type}-> {target} is there already: change_edge changes it")
        return self._apply_change(f"added edge {source} -{type}-> {target}", Diff(added_edges=(edge,)))

    def change_edge(self, source: str, type: str, target: str, /, **properties: Json) -> Edit:
        """Change the values of some properties of an edge.

        None removes a property.
        """
        before = self._find_edge(source, type, target)
        after = Edge(source, type, target, self._changed(before.properties, properties), before.key)
        if _without_mark(after.properties) == _without_mark(before.properties):
            raise BadInput("nothing of the edge would be another: its values are these already")
        diff = Diff(changed_edges=((before, after),))
        return self._apply_change(f"changed edge {source} -{type}-> {target}", diff)

    def remove_edge(self, source: str, type: str, target: str) -> Edit:
        """Remove an edge."""
        diff = Diff(removed_edges=(self._find_edge(source, type, target),))
        return self._apply_change(f"removed edge {source} -{type}-> {target}", diff)

    # --- undo and redo ---

    def undo(self) -> Edit:
        """Undo the last change.

        Raises BadInput if there is none.
        """
        if not self._done:
            raise BadInput("there is no change to take back")
        last = self._done[-1]
        made = Edit(f"took back: {last.said}", inverse(last.diff), last.fixed, last.broken)
        self._write(made.diff)
        self._undone.append(self._done.pop())
        return made

    def redo(self) -> Edit:
        """Redo the change that was undone last.

        Raises BadInput if there is none.
        """
        if not self._undone:
            raise BadInput("no change was taken back")
        last = self._undone[-1]
        self._write(last.diff)
        self._done.append(self._undone.pop())
        return last

    @property
    def history(self) -> tuple[Edit, ...]:
        """The changes in effect, in their order."""
        return tuple(self._done)

    @property
    def can_redo(self) -> bool:
        """Whether an undone change can be redone."""
        return bool(self._undone)

    def find_faults_at(self, id: str) -> tuple[Fault, ...]:
        """Check the rules near a node and return the faults found.

        Raises UnknownName if the graph has no such node.
        """
        self.graph.row(id)
        return tuple(sorted(find_faults_near(self.graph, self.vocabulary, [id]), key=str))

    # --- internals ---

    def _apply_change(self, summary: str, diff: Diff) -> Edit:
        validate_diff(diff)  # raises for values that no file format can store
        after = self.graph.apply(diff)
        touched = affected_nodes(diff)
        # a removed node can no longer be checked, so its neighbours are checked instead
        near = touched | {end for edge in diff.removed_edges for end in (edge.source, edge.target)}
        old_faults, new_faults = (find_faults_near(g, self.vocabulary, near) for g in (self.graph, after))
        broken = tuple(sorted(new_faults - old_faults, key=str))
        if errors := [str(each) for each in broken if each.level == "error"]:
            raise BadInput("not done: " + "\n".join(errors))
        made = Edit(summary, diff, broken, tuple(sorted(old_faults - new_faults, key=str)))
        self._write(diff, after)
        self._done.append(made)
        self._undone.clear()
        return made

    def _write(self, diff: Diff, after: PropertyGraph | None = None) -> None:
        after = self.graph.apply(diff) if after is None else after
        if self._store is not None:
            self._store.apply(diff)
        self.graph = after

    def _find_edge(self, source: str, type: str, target: str) -> Edge:
        found = [
            neighbour
            for neighbour in self.graph.neighbours(source, "out", (type,))
            if neighbour.target == target
        ]
        if not found:
            outgoing = [f"{e.source} -{e.type}-> {e.target}" for e in self.graph.neighbours(source, "out")]
            raise UnknownName("edge", f"{source} -{type}-> {target}", outgoing[:20])
        return found[0]

    def _changed(self, before: Mapping[str, Json], changes: Mapping[str, Json]) -> dict[str, Json]:
        if CURATED_PROPERTY in changes:
            raise BadInput(f"{CURATED_PROPERTY} says who changed what by hand and when; the editor writes it")
        mark = {"by": self.by, "at": self._now().astimezone(UTC).isoformat(timespec="seconds")}
        merged = {**before, **changes, CURATED_PROPERTY: mark}
        return {name: value for name, value in merged.items() if value is not None}


def _without_mark(properties: Mapping[str, Json]) -> dict[str, Json]:
    """Return properties without the manual-edit mark, which differs at each edit."""
    return {name: value for name, value in properties.items() if name != CURATED_PROPERTY}
