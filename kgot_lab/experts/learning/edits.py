"""Edits of a graph that somebody proposes, as values that can be kept, and what they would make of a graph,
checked as by hand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from kgot_lab.errors import BadInput, shortly
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.editing.editor import MADE_BY_HAND, Editor
from kgot_lab.kgos.schemas.check import Fault
from kgot_lab.memory.claims.claim import utc_now
from kgot_lab.types import Diff, Edge, Json, Node

# the editor takes the second for another type, and writes the third itself
_NO_PROPERTIES = ("id", "type", MADE_BY_HAND)


@dataclass(frozen=True)
class NodeToAdd:
    """A node that is not there, by its id, its type and what it is called."""

    id: str
    type: str
    name: str
    description: str = ""

    def __str__(self) -> str:
        return f"add the {self.type} {self.name}"


@dataclass(frozen=True)
class _EdgeEdit:
    source: str
    type: str
    target: str

    def __str__(self) -> str:
        verb = "add" if isinstance(self, EdgeToAdd) else "remove"
        return f"{verb} {self.source} -{self.type}-> {self.target}"


class EdgeToAdd(_EdgeEdit):
    """An edge that is not there."""


class EdgeToRemove(_EdgeEdit):
    """An edge that is there, and that somebody says is wrong."""


@dataclass(frozen=True)
class PropertyToChange:
    """Another value of a property; `before` is the one that it had when this was proposed, None where it had
    none.
    """

    id: str
    name: str
    value: Json
    before: Json = None

    def __post_init__(self) -> None:
        if self.name in _NO_PROPERTIES:
            raise BadInput(f"{self.name!r} is no property that a proposal may change")

    def __str__(self) -> str:
        return f"change {self.name} of {self.id} from {shortly(self.before)} to {shortly(self.value)}"


GraphEdit = NodeToAdd | EdgeToAdd | EdgeToRemove | PropertyToChange
_KINDS: Mapping[str, type[GraphEdit]] = {
    each.__name__: each for each in (NodeToAdd, EdgeToAdd, EdgeToRemove, PropertyToChange)
}


@dataclass(frozen=True)
class GraphProposal:
    """Edits of a graph, by its id, that are made together or not at all."""

    graph: str
    edits: tuple[GraphEdit, ...]

    def __post_init__(self) -> None:
        if not self.edits:
            raise BadInput("a proposal has at least one edit")

    @property
    def id(self) -> str:
        """The same for the same edits of the same graph, whoever proposes them."""
        return "prop_" + hashlib.sha256(self.to_text().encode()).hexdigest()[:24]

    def __str__(self) -> str:
        return "; ".join(map(str, self.edits))

    def to_text(self) -> str:
        """The proposal as JSON."""
        edits = [{"edit": type(each).__name__, **asdict(each)} for each in self.edits]
        return json.dumps({"graph": self.graph, "edits": edits}, sort_keys=True)

    @staticmethod
    def of_text(text: str) -> GraphProposal:
        """The proposal that `to_text` wrote."""
        told = json.loads(text)
        edits = ({name: value for name, value in each.items() if name != "edit"} for each in told["edits"])
        kinds = (_KINDS[each["edit"]] for each in told["edits"])
        return GraphProposal(
            told["graph"], tuple(kind(**edit) for kind, edit in zip(kinds, edits, strict=True))
        )


@dataclass(frozen=True)
class PlannedChange:
    """What some edits would make of a graph: the change, the graph after it, and what it would break that is
    no error.
    """

    diff: Diff
    after: PropertyGraph
    broken: tuple[Fault, ...]


def planned_change(
    graph: PropertyGraph, edits: Sequence[GraphEdit], *, by: str, now: Callable[[], datetime] = utc_now
) -> PlannedChange:
    """What some edits would make of a graph, as the Editor makes them one after another, marked as made by
    hand; nothing is written.

    Raises BadInput for what a rule forbids, for what is there already, and where a property has another value
    than when the change was proposed; UnknownName for a node or an edge that is not there.
    """
    editor = Editor(graph, by=by, now=now)
    broken: set[Fault] = set()
    for each in edits:
        made = _made(editor, each)
        broken = (broken | set(made.broken)) - set(made.mended)
    return PlannedChange(graph.diff(editor.graph), editor.graph, tuple(sorted(broken, key=str)))


def _made(editor: Editor, edit: GraphEdit) -> Any:
    match edit:
        case NodeToAdd(id, type, name, description):
            return editor.add_node(
                id, type, name=name, **({"description": description} if description else {})
            )
        case EdgeToAdd(source, type, target):
            return editor.add_edge(source, type, target)
        case EdgeToRemove(source, type, target):
            return editor.remove_edge(source, type, target)
        case PropertyToChange(id, name, value, before):
            there = editor.graph.node(id).properties.get(name)
            if there != before:
                changed = f"{name} of {id} is {shortly(there)} by now, and was {shortly(before)} when the change was proposed"
                raise BadInput(f"{changed}: reject this and propose it anew")
            return editor.change_node(id, **{name: value})


def diff_as_text(diff: Diff) -> str:
    """A change as JSON, which `kgot_lab.loop.events.diff_from_json` reads."""
    return json.dumps({name: [_plain(each) for each in value] for name, value in vars(diff).items()})


def _plain(value: Any) -> Json:
    if isinstance(value, Node):
        return {"id": value.id, "labels": list(value.labels), "properties": dict(value.properties)}
    if isinstance(value, Edge):
        return {**vars(value), "properties": dict(value.properties)}
    return [_plain(each) for each in value]  # before and after
