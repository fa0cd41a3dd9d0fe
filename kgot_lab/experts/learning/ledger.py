"""Edits of a graph that people propose, and their ledger: what waits, and who decided what and when.

Nothing here changes a graph. A reviewer does that, and nothing that a message contains.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, require_count, require_known, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import read_statements
from kgot_lab.kgos.editing import CURATED_PROPERTY, Editor
from kgot_lab.kgos.schemas.check import Fault
from kgot_lab.loop.events import diff_from_json, to_plain
from kgot_lab.memory.claims.claim import from_micros, to_micros, utc_now
from kgot_lab.memory.sqlite_tables import open_tables
from kgot_lab.memory.tables import ClaimRow, Layout, TableBacked
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Diff, Json

# All SQL of proposals and decisions, common to SQLite and PostgreSQL.

PROPOSALS_LAYOUT = Layout("proposals", 0x6B676C70, **read_statements(__file__, "ledger.sql"))  # "kglp"

SELECT_PROPOSAL = "SELECT id, body, standing, at FROM proposals WHERE id = :id"
SELECT_WAITING_PROPOSALS = "SELECT id, body, standing, at FROM proposals WHERE standing = 'queued' AND graph = :graph ORDER BY at, id"
INSERT_PROPOSAL = (
    "INSERT INTO proposals (id, graph, body, standing, at) VALUES (:id, :graph, :body, 'queued', :at)"
)
UPDATE_STANDING = "UPDATE proposals SET standing = :standing WHERE id = :id"
DELETE_PROPOSALS = "DELETE FROM proposals WHERE id = ANY(:ids)"

SELECT_SOURCES = (
    "SELECT message, conversation, said_by, quote, at FROM sayings WHERE proposal = :id ORDER BY at, message"
)
INSERT_SOURCE = """INSERT INTO sayings (proposal, message, conversation, said_by, quote, at)
  VALUES (:id, :message, :conversation, :said_by, :quote, :at) ON CONFLICT (proposal, message) DO NOTHING"""
COUNT_WAITING_OF_PERSON = """SELECT count(*) FROM proposals p WHERE p.standing = 'queued'
  AND EXISTS (SELECT 1 FROM sayings s WHERE s.proposal = p.id AND s.said_by = :said_by)"""
SELECT_PROPOSALS_OF_CONVERSATION = "SELECT DISTINCT proposal FROM sayings WHERE conversation = :conversation"
DELETE_SOURCES = "DELETE FROM sayings WHERE conversation = :conversation"
SELECT_UNSUPPORTED_PROPOSALS = """SELECT p.id FROM proposals p WHERE p.id = ANY(:ids) AND p.standing = 'queued'
  AND NOT EXISTS (SELECT 1 FROM sayings s WHERE s.proposal = p.id) AND NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.proposal = p.id)"""

_VERDICT_COLUMNS = "v.number, v.proposal, v.action, v.who, v.at, v.undoes, v.diff, v.digest_before, v.digest_after, v.settled"
_SELECT_OF_GRAPH = (
    f"SELECT {_VERDICT_COLUMNS} FROM verdicts v JOIN proposals p ON p.id = v.proposal WHERE p.graph = :graph"
)
SELECT_VERDICT = f"SELECT {_VERDICT_COLUMNS} FROM verdicts v WHERE v.number = :number"
SELECT_VERDICTS = f"{_SELECT_OF_GRAPH} ORDER BY v.number DESC LIMIT :most"
SELECT_UNSETTLED = f"{_SELECT_OF_GRAPH} AND v.settled = 0 ORDER BY v.number"
SELECT_UNDOING = "SELECT number FROM verdicts WHERE undoes = :number"
SELECT_LAST_NUMBER = "SELECT coalesce(max(number), 0) FROM verdicts"
INSERT_VERDICT = """INSERT INTO verdicts (number, proposal, action, who, at, undoes, diff, digest_before, digest_after, settled)
  VALUES (:number, :proposal, :action, :who, :at, :undoes, :diff, :before, :after, :settled)"""
MARK_SETTLED = "UPDATE verdicts SET settled = 1 WHERE number = :number"
DELETE_VERDICT = "DELETE FROM verdicts WHERE number = :number"


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


GraphEdit = NodeToAdd | EdgeToAdd | EdgeToRemove | PropertyToChange
_EDIT_CLASSES: Mapping[str, type[GraphEdit]] = {
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
        """A hash of the graph and the edits, the same whoever proposes them."""
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
        kinds = (_EDIT_CLASSES[each["edit"]] for each in data["edits"])
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
        warnings = (warnings | set(result.broken)) - set(result.mended)
    return PlannedChange(graph.diff(editor.graph), editor.graph, tuple(sorted(warnings, key=str)))


def _apply_edit(editor: Editor, edit: GraphEdit) -> Any:
    match edit:
        case NodeToAdd(id, type, name, description):
            details = {"description": description} if description else {}
            return editor.add_node(id, type, name=name, **details)
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
    def people(self) -> int:
        """The number of people who stated it."""
        return len({each.said_by for each in self.said})


@dataclass(frozen=True)
class ProposalVerdict:
    """A decision, "accept", "reject" or "undo": number, person and time, and the digests of a changed graph.

    The digests are those before and after the change.
    """

    number: int
    proposal: str
    action: str
    by: str
    at: datetime
    undoes: int | None
    diff: Diff
    digest_before: str
    digest_after: str
    settled: bool


class ProposalLedger(TableBacked):
    """Proposals and decisions in tables."""

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

    def _stored_proposal(self, row: ClaimRow) -> StoredProposal:
        id, body, standing, at = row
        rows = self.storage.rows(SELECT_SOURCES, {"id": id})
        sources = (
            ProposalSource(message, conversation, person, quote, from_micros(when))
            for message, conversation, person, quote, when in rows
        )
        return StoredProposal(GraphProposal.from_text(body), standing, from_micros(at), tuple(sources))

    # --- decisions ---

    def decisions(self, graph: str, limit: int = 20) -> tuple[ProposalVerdict, ...]:
        """Return at most `limit` of the last decisions on a graph, the latest first."""
        require_count(limit, 1, "limit")
        params = {"graph": graph, "most": limit}
        return tuple(map(_verdict_from_row, self.storage.rows(SELECT_VERDICTS, params)))

    def verdict(self, number: int) -> ProposalVerdict:
        """Return a decision by its number.

        Raises BadInput if there is none.
        """
        rows = self.storage.rows(SELECT_VERDICT, {"number": number})
        if not rows:
            raise BadInput(f"there is no decision {number}: decided() lists them")
        return _verdict_from_row(rows[0])

    def is_undone(self, number: int) -> bool:
        """Return whether a decision was undone."""
        return bool(self.storage.rows(SELECT_UNDOING, {"number": number}))

    def unsettled_decisions(self, graph: str) -> tuple[ProposalVerdict, ...]:
        """Return the decisions for which it is not recorded whether they reached the graph."""
        return tuple(map(_verdict_from_row, self.storage.rows(SELECT_UNSETTLED, {"graph": graph})))

    def record_decision(
        self,
        action: str,
        id: str,
        by: str,
        change: PlannedChange | None = None,
        *,
        before: str = "",
        undoes: int | None = None,
    ) -> ProposalVerdict:
        """Record a decision: one with a change as not yet applied to the graph, any other as settled.

        Call it within `storage.changing()`.
        """
        standings = {"accept": "accepted", "reject": "rejected", "undo": "queued"}
        require_known("decision", standings, action)
        ((last,),) = self.storage.rows(SELECT_LAST_NUMBER)
        diff, after = (Diff(), "") if change is None else (change.diff, change.after.digest)
        decision = {"number": int(last) + 1, "proposal": id, "action": action, "undoes": undoes}
        decider = {"who": checked_text(by, "who decides (by)"), "at": to_micros(self.now(), "now")}
        text, settled = json.dumps(to_plain(diff)), int(change is None)
        effect = {"diff": text, "before": before, "after": after, "settled": settled}
        self.storage.rows(INSERT_VERDICT, decision | decider | effect)
        self.storage.rows(UPDATE_STANDING, {"id": id, "standing": standings[action]})
        return self.verdict(int(last) + 1)

    def settle(self, number: int) -> None:
        """Record that a decision was applied to the graph."""
        self.storage.rows(MARK_SETTLED, {"number": number})

    def withdraw(self, verdict: ProposalVerdict) -> None:
        """Delete the record of a decision that was never applied to the graph."""
        standing = "accepted" if verdict.action == "undo" else "queued"
        self.storage.rows(DELETE_VERDICT, {"number": verdict.number})
        self.storage.rows(UPDATE_STANDING, {"id": verdict.proposal, "standing": standing})


def open_proposals(
    location: Path | str = ":memory:", *, namespace: str | None = None, now: Callable[[], datetime] = utc_now
) -> ProposalLedger:
    """Open the ledger in an SQLite file, in memory, or in PostgreSQL.

    Raises what `open_tables` raises.
    """
    return ProposalLedger(open_tables(PROPOSALS_LAYOUT, location, namespace=namespace), now=now)


def _verdict_from_row(row: ClaimRow) -> ProposalVerdict:
    number, proposal, action, by, at, undoes, diff, before, after, settled = row
    parsed_diff = diff_from_json(json.loads(diff))
    undone_number = None if undoes is None else int(undoes)
    effects = parsed_diff, before, after, bool(settled)
    return ProposalVerdict(int(number), proposal, action, by, from_micros(at), undone_number, *effects)
