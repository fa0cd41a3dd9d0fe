"""Edits of a graph that people propose, and their ledger: what waits, and who decided what and when.

Nothing here changes a graph. A reviewer does that, and nothing that a message contains.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, get_args

from kgot_lab.errors import BadInput, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import read_statements
from kgot_lab.io.times import from_micros, to_micros, utc_now
from kgot_lab.kgos.editing import CURATED_PROPERTY, Editor
from kgot_lab.kgos.schemas.check import Fault
from kgot_lab.loop.events import diff_from_json
from kgot_lab.stores.tables.history import Change, RecordedTables, VersionKeys, open_versions, with_history
from kgot_lab.stores.tables.layout import Layout, TableRow
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Diff, Json, Triple

# All SQL of proposals, common to SQLite and PostgreSQL. A proposal without a standing in `versions` is queued. The
# changes that it made to its graph are there too, as a diff, as long as it is accepted.

_DEFINITIONS = read_statements(__file__, "ledger.sql")
_FROM_VERDICTS = _DEFINITIONS.pop("verdicts")
PROPOSALS_LAYOUT = with_history(
    Layout("proposals", 0x6B676C70, **_DEFINITIONS), after=_FROM_VERDICTS
)  # "kglp"

_STANDING = """coalesce((SELECT s.value FROM versions s WHERE s.kind = 'standing' AND s.key = p.id AND s.closed IS NULL),
  'queued')"""
SELECT_PROPOSAL = f"SELECT p.id, p.body, {_STANDING}, p.at FROM proposals p WHERE p.id = :id"
SELECT_WAITING_PROPOSALS = f"""SELECT p.id, p.body, 'queued', p.at FROM proposals p
  WHERE p.graph = :graph AND {_STANDING} = 'queued' ORDER BY p.at, p.id"""
SELECT_PROPOSAL_IDS = "SELECT id FROM proposals WHERE graph = :graph"
INSERT_PROPOSAL = "INSERT INTO proposals (id, graph, body, at) VALUES (:id, :graph, :body, :at)"
DELETE_PROPOSALS = "DELETE FROM proposals WHERE id = ANY(:ids)"

SELECT_SOURCES = (
    "SELECT message, conversation, said_by, quote, at FROM sayings WHERE proposal = :id ORDER BY at, message"
)
INSERT_SOURCE = """INSERT INTO sayings (proposal, message, conversation, said_by, quote, at)
  VALUES (:id, :message, :conversation, :said_by, :quote, :at) ON CONFLICT (proposal, message) DO NOTHING"""
COUNT_WAITING_OF_PERSON = f"""SELECT count(*) FROM proposals p WHERE {_STANDING} = 'queued'
  AND EXISTS (SELECT 1 FROM sayings s WHERE s.proposal = p.id AND s.said_by = :said_by)"""
SELECT_PROPOSALS_OF_CONVERSATION = "SELECT DISTINCT proposal FROM sayings WHERE conversation = :conversation"
DELETE_SOURCES = "DELETE FROM sayings WHERE conversation = :conversation"
SELECT_UNSUPPORTED_PROPOSALS = """SELECT p.id FROM proposals p WHERE p.id = ANY(:ids)
  AND NOT EXISTS (SELECT 1 FROM sayings s WHERE s.proposal = p.id)
  AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.kind = 'standing' AND v.key = p.id)"""
SELECT_ACCEPTED_DIFFS = """SELECT v.opened, v.value FROM versions v JOIN proposals p ON p.id = v.key
  WHERE v.kind = 'diff' AND v.closed IS NULL AND p.graph = :graph ORDER BY v.opened"""
SELECT_CHANGED_PROPOSALS = "SELECT DISTINCT key FROM versions WHERE opened = :change OR closed = :change"


# Proposed edits of a graph as values that can be stored, and their effect on a graph, validated like manual
# edits.

# the editor treats the second as another type, and writes the third itself
_RESERVED_PROPERTIES = ("id", "type", CURATED_PROPERTY)


@dataclass(frozen=True)
class NodeToAdd:
    """A new node: id, type and name."""

    id: str
    type: str
    name: str
    description: str = ""

    def __str__(self) -> str:
        return f"add the {self.type} {self.name}"


@dataclass(frozen=True)
class NodeToRemove:
    """An existing node that is removed with its edges."""

    id: str

    def __str__(self) -> str:
        return f"remove {self.id} with its edges"


@dataclass(frozen=True)
class _EdgeEdit:
    source: str
    type: str
    target: str

    def __str__(self) -> str:
        verb = "add" if isinstance(self, EdgeToAdd) else "remove"
        return f"{verb} {self.source} -{self.type}-> {self.target}"


class EdgeToAdd(_EdgeEdit):
    """A new edge."""


class EdgeToRemove(_EdgeEdit):
    """An existing edge that somebody says is wrong."""


@dataclass(frozen=True)
class PropertyToChange:
    """A new value of a property. `before` is its value when this was proposed, or None if it had none."""

    id: str
    name: str
    value: Json
    before: Json = None

    def __post_init__(self) -> None:
        if self.name in _RESERVED_PROPERTIES:
            raise BadInput(f"{self.name!r} is no property that a proposal may change")

    def __str__(self) -> str:
        return f"change {self.name} of {self.id} from {short_repr(self.before)} to {short_repr(self.value)}"


GraphEdit = NodeToAdd | NodeToRemove | EdgeToAdd | EdgeToRemove | PropertyToChange
EDIT_CLASSES: Mapping[str, type[GraphEdit]] = {each.__name__: each for each in get_args(GraphEdit)}


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
        """A hash of the graph and the edits, the same for every proposer."""
        return "prop_" + hashlib.sha256(self.to_text().encode()).hexdigest()[:24]

    def __str__(self) -> str:
        return "; ".join(map(str, self.edits))

    def to_text(self) -> str:
        """Return the proposal as JSON text."""
        edits = [{"edit": type(edit).__name__, **asdict(edit)} for edit in self.edits]
        return json.dumps({"graph": self.graph, "edits": edits}, sort_keys=True)

    @staticmethod
    def from_text(text: str) -> GraphProposal:
        """Parse a proposal that `to_text` wrote."""
        data = json.loads(text)
        edits = ({name: value for name, value in each.items() if name != "edit"} for each in data["edits"])
        kinds = (EDIT_CLASSES[each["edit"]] for each in data["edits"])
        changes = (kind(**edit) for kind, edit in zip(kinds, edits, strict=True))
        return GraphProposal(data["graph"], tuple(changes))


@dataclass(frozen=True)
class PlannedChange:
    """What edits would do to a graph: the change, the resulting graph, and the warnings it would cause."""

    diff: Diff
    after: PropertyGraph
    broken: tuple[Fault, ...]


def plan_change(
    graph: PropertyGraph, edits: Sequence[GraphEdit], *, by: str, now: Callable[[], datetime] = utc_now
) -> PlannedChange:
    """Compute what edits would change in a graph, marked as made by hand, without writing anything.

    The Editor makes them one after another. Raises BadInput if a rule forbids an edit, its result exists
    already, or a property has another value than when the change was proposed, and UnknownName if a node or
    an edge does not exist.
    """
    editor = Editor(graph, by=by, now=now)
    warnings: set[Fault] = set()
    for edit in edits:
        result = _apply_edit(editor, edit)
        warnings = (warnings | set(result.broken)) - set(result.fixed)
    return PlannedChange(graph.diff(editor.graph), editor.graph, tuple(sorted(warnings, key=str)))


def _apply_edit(editor: Editor, edit: GraphEdit) -> Any:
    match edit:
        case NodeToAdd(id, type, name, description):
            details = {"description": description} if description else {}
            return editor.add_node(id, type, name=name, **details)
        case NodeToRemove(id):
            return editor.remove_node(id)
        case EdgeToAdd(source, type, target):
            return editor.add_edge(source, type, target)
        case EdgeToRemove(source, type, target):
            return editor.remove_edge(source, type, target)
        case PropertyToChange(id, name, value, before):
            current = editor.graph.node(id).properties.get(name)
            if current != before:
                message = f"{name} of {id} is {short_repr(current)} by now, and was {short_repr(before)} when the change was proposed"
                raise BadInput(f"{message}: reject this and propose it again")
            return editor.change_node(id, **{name: value})


MAX_WAITING = 200  # proposals of one person, so that nobody fills the queue alone


@dataclass(frozen=True)
class ProposalSource:
    """The verbatim words that state a proposal, with message, conversation and person."""

    message: str
    conversation: str
    said_by: str
    quote: str = ""
    at: datetime | None = None  # set by the ledger


@dataclass(frozen=True)
class StoredProposal:
    """A proposal with its standing, "queued", "accepted" or "rejected", and everyone who stated it."""

    proposal: GraphProposal
    standing: str
    at: datetime
    said: tuple[ProposalSource, ...]

    @property
    def id(self) -> str:
        """The id of the proposal."""
        return self.proposal.id

    @property
    def people(self) -> int:
        """The number of people who stated it."""
        return len({each.said_by for each in self.said})


class ProposalLedger(RecordedTables):
    """Proposals and decisions in tables. The changes that were accepted are made whenever a graph is read."""

    layout = PROPOSALS_LAYOUT

    # --- proposals ---

    def propose(self, proposal: GraphProposal, said: ProposalSource) -> StoredProposal:
        """Queue a proposal. An existing one keeps its standing and gets another source.

        Raises BadInput if somebody has too many proposals.
        """
        person, quote = (
            checked_text(said.said_by, "who says it (said_by)"),
            checked_text(said.quote, "the quote"),
        )
        with self.storage.changing():
            at = to_micros(self.now(), "now")
            if not self.storage.rows(SELECT_PROPOSAL, {"id": proposal.id}):
                ((waiting,),) = self.storage.rows(COUNT_WAITING_OF_PERSON, {"said_by": person})
                if waiting >= MAX_WAITING:
                    raise BadInput(f"{MAX_WAITING} proposals of one person wait: decide on some first")
                params = {"id": proposal.id, "graph": proposal.graph, "body": proposal.to_text(), "at": at}
                self.storage.rows(INSERT_PROPOSAL, params)
            origin = {"message": said.message, "conversation": said.conversation}
            source = origin | {"said_by": person, "quote": quote}
            self.storage.rows(INSERT_SOURCE, {"id": proposal.id, **source, "at": at})
            return self.proposal(proposal.id)

    def proposal(self, id: str) -> StoredProposal:
        """Return a proposal by its id.

        Raises BadInput if there is none.
        """
        with self.storage.reading():
            rows = self.storage.rows(SELECT_PROPOSAL, {"id": id})
            if not rows:
                raise BadInput("there is no such proposal")
            return self._stored_proposal(rows[0])

    def queue(self, graph: str) -> tuple[StoredProposal, ...]:
        """Return the proposals waiting for a graph, those stated by most people first, then the oldest."""
        with self.storage.reading():
            rows = self.storage.rows(SELECT_WAITING_PROPOSALS, {"graph": graph})
            stored = list(map(self._stored_proposal, rows))
        return tuple(sorted(stored, key=lambda each: -each.people))

    def forget(self, conversation: str) -> int:
        """Remove the words of a conversation, and undecided proposals that nobody else stated.

        Returns the number of proposals removed.
        """
        with self.storage.changing():
            params = {"conversation": conversation}
            ids = [row[0] for row in self.storage.rows(SELECT_PROPOSALS_OF_CONVERSATION, params)]
            self.storage.rows(DELETE_SOURCES, {"conversation": conversation})
            rows = self.storage.rows(SELECT_UNSUPPORTED_PROPOSALS, {"ids": ids}) if ids else []
            removed = [row[0] for row in rows]
            if removed:
                self.storage.rows(DELETE_PROPOSALS, {"ids": removed})
        return len(removed)

    def _stored_proposal(self, row: TableRow) -> StoredProposal:
        id, body, standing, at = row
        rows = self.storage.rows(SELECT_SOURCES, {"id": id})
        sources = (
            ProposalSource(message, conversation, person, quote, from_micros(when))
            for message, conversation, person, quote, when in rows
        )
        return StoredProposal(GraphProposal.from_text(body), standing, from_micros(at), tuple(sources))

    # --- decisions ---

    def accepted_changes(self, graph: str) -> dict[int, Diff]:
        """Return the changes of a graph that are accepted, in order, each with the number of its decision."""
        rows = self.storage.rows(SELECT_ACCEPTED_DIFFS, {"graph": graph})
        return {int(number): diff_from_json(json.loads(diff)) for number, diff in rows}

    def proposal_ids(self, graph: str) -> set[str]:
        """Return the ids of all proposals for a graph, decided on or not."""
        return {id for (id,) in self.storage.rows(SELECT_PROPOSAL_IDS, {"graph": graph})}

    def proposals_changed(self, number: int) -> tuple[StoredProposal, ...]:
        """Return the proposals on which a decision was, or its undo, by its number."""
        with self.storage.reading():
            ids = {id for (id,) in self.storage.rows(SELECT_CHANGED_PROPOSALS, {"change": number})}
            return tuple(map(self.proposal, sorted(ids)))

    def _facts_of(self, keys: VersionKeys) -> set[Triple]:
        """Return the edges that some accepted proposals add."""
        found: set[Triple] = set()
        for id in dict.fromkeys(key for _, key in keys):
            for text in open_versions(self.storage, "diff", id):
                diff = diff_from_json(json.loads(text))
                found |= {Triple(edge.source, edge.type, edge.target) for edge in diff.added_edges}
        return found

    def _restore(self, change: Change, keys: VersionKeys) -> None:
        """Do nothing: a graph is made from the versions when it is read."""


open_proposals = ProposalLedger.open
