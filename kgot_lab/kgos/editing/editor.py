"""Editing a graph by hand, one change after another; what a rule forbids is refused before anything is
written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput, UnknownName, require
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.dict_graph import inverse
from kgot_lab.graph.vocabulary import Vocabulary
from kgot_lab.kgos.editing import EditedIndex, faults_near, touched_by
from kgot_lab.kgos.schemas.check import Fault
from kgot_lab.kgos.schemas.vocabularies import UNIFIED
from kgot_lab.memory.claims.claim import utc_now
from kgot_lab.stores.sql import edge_row, node_row
from kgot_lab.text.counted import counted
from kgot_lab.types import Diff, Edge, Json, Node

MADE_BY_HAND = "curated"  # the property of what was made by hand: who made it, and when


class Keeps(Protocol):
    """What each change is written to as well: a store, or a file."""

    def apply(self, diff: Diff) -> None: ...  # in one step


@dataclass(frozen=True)
class EditMade:
    """A change that was made: what it was, what it broke that held before, and what holds now that did not."""

    said: str
    diff: Diff
    broken: tuple[Fault, ...] = ()
    mended: tuple[Fault, ...] = ()

    def __repr__(self) -> str:
        lines = (
            [f"<{self.said}>"]
            + [f"  {each}" for each in self.broken]
            + [f"  no longer: {each}" for each in self.mended]
        )
        return "\n".join(lines)


class Editor:
    """A graph while it is edited.

    Each change is checked against the twelve rules and the vocabulary before it is written: an error that was
    not there before is refused with BadInput, which says what to do, and nothing changes; a warning is told
    with the change. What a change does not touch is not checked, indexed or embedded again. With a store each
    change is written there too, in one step; `undo` takes it back in both. `now` is the clock of the marks.
    """

    def __init__(
        self,
        graph: PropertyGraph,
        *,
        by: str,
        vocabulary: Vocabulary = UNIFIED,
        store: Keeps | None = None,
        embedder: Embedder | None = None,
        now: Callable[[], datetime] = utc_now,
    ):
        require(graph, PropertyGraph, "what is edited is a PropertyGraph")
        if not isinstance(by, str) or not by.strip():
            raise BadInput("say who edits: by='a name', which is noted with each change")
        self.graph, self.by, self.vocabulary = graph, by.strip(), vocabulary
        self._store, self._now = store, now
        self._done: list[EditMade] = []
        self._undone: list[EditMade] = []
        self._embedder = embedder
        self._index: EditedIndex | None = None

    # --- nodes ---

    def add_node(self, id: str, type: str, /, **properties: Json) -> EditMade:
        """A node that was not there."""
        if id in self.graph:
            raise BadInput(f"the node {id!r} is there already: change_node changes it")
        node = Node(id, (type,), self._changed({}, properties))
        return self._make(f"added node {id}", Diff(added_nodes=(node,)))

    def change_node(self, id: str, /, *, type: str | None = None, **properties: Json) -> EditMade:
        """Another type, or other values of some properties; None takes a property away."""
        before = self.graph.node(id)
        after = Node(
            id, before.labels if type is None else (type,), self._changed(before.properties, properties)
        )
        if (after.labels, _plain(after.properties)) == (before.labels, _plain(before.properties)):
            raise BadInput(f"nothing of the node {id!r} would be another: its values are these already")
        return self._make(f"changed node {id}", Diff(changed_nodes=((before, after),)))

    def remove_node(self, id: str) -> EditMade:
        """A node, with its edges."""
        node = self.graph.node(id)
        edges = tuple(self.graph.neighbours(id, "both"))
        return self._make(
            f"removed node {id} and {counted(len(edges), 'edge')}",
            Diff(removed_nodes=(node,), removed_edges=edges),
        )

    # --- edges ---

    def add_edge(self, source: str, type: str, target: str, /, **properties: Json) -> EditMade:
        """An edge between two nodes that are there."""
        for end in (source, target):
            self.graph.row(end)
        edge = Edge(source, type, target, self._changed({}, properties))
        if any(each.target == target for each in self.graph.neighbours(source, "out", (type,))):
            raise BadInput(f"the edge {source} -{type}-> {target} is there already: change_edge changes it")
        return self._make(f"added edge {source} -{type}-> {target}", Diff(added_edges=(edge,)))

    def change_edge(self, source: str, type: str, target: str, /, **properties: Json) -> EditMade:
        """Other values of some properties of an edge; None takes a property away."""
        before = self._edge(source, type, target)
        after = Edge(source, type, target, self._changed(before.properties, properties), before.key)
        if _plain(after.properties) == _plain(before.properties):
            raise BadInput("nothing of the edge would be another: its values are these already")
        return self._make(f"changed edge {source} -{type}-> {target}", Diff(changed_edges=((before, after),)))

    def remove_edge(self, source: str, type: str, target: str) -> EditMade:
        """An edge."""
        return self._make(
            f"removed edge {source} -{type}-> {target}",
            Diff(removed_edges=(self._edge(source, type, target),)),
        )

    # --- back and forth ---

    def undo(self) -> EditMade:
        """Take the last change back; raises BadInput where there is none."""
        if not self._done:
            raise BadInput("there is no change to take back")
        last = self._done[-1]
        made = EditMade(f"took back: {last.said}", inverse(last.diff), last.mended, last.broken)
        self._write(made.diff)
        self._undone.append(self._done.pop())
        return made

    def redo(self) -> EditMade:
        """Make the change again that was taken back last; raises BadInput where there is none."""
        if not self._undone:
            raise BadInput("no change was taken back")
        last = self._undone[-1]
        self._write(last.diff)
        self._done.append(self._undone.pop())
        return last

    @property
    def history(self) -> tuple[EditMade, ...]:
        """The changes that stand, in their order."""
        return tuple(self._done)

    @property
    def can_redo(self) -> bool:
        """Whether a change was taken back that can be made again."""
        return bool(self._undone)

    @property
    def index(self) -> EditedIndex:
        """The search over the graph as it is, made when it is first asked for and kept up to date since."""
        if self._index is None:
            self._index = EditedIndex(self.graph, self._embedder)
        return self._index

    def faults_at(self, id: str) -> tuple[Fault, ...]:
        """What the rules say near a node; raises UnknownName."""
        self.graph.row(id)
        return tuple(sorted(faults_near(self.graph, self.vocabulary, [id]), key=str))

    # --- how ---

    def _make(self, said: str, diff: Diff) -> EditMade:
        for node in (*diff.added_nodes, *(now for _, now in diff.changed_nodes)):
            node_row(node)  # what no file takes could not be kept
        for edge in (*diff.added_edges, *(now for _, now in diff.changed_edges)):
            edge_row(edge)
        after = self.graph.apply(diff)
        touched = touched_by(diff)
        # what is gone cannot be looked at afterwards, so its neighbours stand for it
        near = touched | {end for edge in diff.removed_edges for end in (edge.source, edge.target)}
        before_faults, after_faults = (
            faults_near(graph, self.vocabulary, near) for graph in (self.graph, after)
        )
        broken = tuple(sorted(after_faults - before_faults, key=str))
        if errors := [str(each) for each in broken if each.level == "error"]:
            raise BadInput("not done: " + "\n".join(errors))
        made = EditMade(said, diff, broken, tuple(sorted(before_faults - after_faults, key=str)))
        self._write(diff, after)
        self._done.append(made)
        self._undone.clear()
        return made

    def _write(self, diff: Diff, after: PropertyGraph | None = None) -> None:
        after = self.graph.apply(diff) if after is None else after
        if self._store is not None:
            self._store.apply(diff)
        self.graph = after
        if self._index is not None:
            self._index.update(after, touched_by(diff))

    def _edge(self, source: str, type: str, target: str) -> Edge:
        found = [each for each in self.graph.neighbours(source, "out", (type,)) if each.target == target]
        if not found:
            there = [
                f"{each.source} -{each.type}-> {each.target}" for each in self.graph.neighbours(source, "out")
            ]
            raise UnknownName("edge", f"{source} -{type}-> {target}", there[:20])
        return found[0]

    def _changed(self, before: Mapping[str, Json], given: Mapping[str, Json]) -> dict[str, Json]:
        if MADE_BY_HAND in given:
            raise BadInput(
                f"{MADE_BY_HAND} says who changed something by hand and when; the editor writes it itself"
            )
        kept = {**before, **given, MADE_BY_HAND: self._mark()}
        return {name: value for name, value in kept.items() if value is not None}

    def _mark(self) -> dict[str, Json]:
        return {"by": self.by, "at": self._now().astimezone(UTC).isoformat(timespec="seconds")}


def _plain(properties: Mapping[str, Json]) -> dict[str, Json]:
    """Properties without the mark, which is another each time."""
    return {name: value for name, value in properties.items() if name != MADE_BY_HAND}
