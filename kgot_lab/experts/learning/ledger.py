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

from kgot_lab.errors import BadInput, UnknownName, require_count, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.editing import MADE_BY_HAND, Editor
from kgot_lab.kgos.schemas.check import Fault
from kgot_lab.loop.events import diff_from_json
from kgot_lab.memory.claims.claim import check_text, from_micros, to_micros, utc_now
from kgot_lab.memory.sqlite_tables import open_tables
from kgot_lab.memory.tables import ClaimRow, Layout, TableBacked, TableStorage
from kgot_lab.types import Diff, Edge, Json, Node

# All SQL of proposals and decisions, common to SQLite and PostgreSQL.

PROPOSAL_TABLES = (
    """CREATE TABLE proposals (id TEXT PRIMARY KEY, graph TEXT NOT NULL, body TEXT NOT NULL, standing TEXT NOT NULL, at BIGINT NOT NULL)""",
    """CREATE TABLE sayings (proposal TEXT NOT NULL, message TEXT NOT NULL, conversation TEXT NOT NULL, said_by TEXT NOT NULL,
         quote TEXT NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (proposal, message))""",
    """CREATE TABLE verdicts (number BIGINT PRIMARY KEY, proposal TEXT NOT NULL, action TEXT NOT NULL, who TEXT NOT NULL,
         at BIGINT NOT NULL, undoes BIGINT, diff TEXT NOT NULL, digest_before TEXT NOT NULL, digest_after TEXT NOT NULL,
         settled BIGINT NOT NULL)""",
)
PROPOSAL_INDEXES = (
    "CREATE INDEX proposals_by_standing ON proposals (graph, standing)",
    "CREATE INDEX sayings_by_conversation ON sayings (conversation)",
    "CREATE INDEX sayings_by_person ON sayings (said_by)",
)
PROPOSALS_LAYOUT = Layout("proposals", 0x6B676C70, PROPOSAL_TABLES, PROPOSAL_INDEXES)  # "kglp"

PROPOSAL = "SELECT id, body, standing, at FROM proposals WHERE id = :id"
WAITING_PROPOSALS = "SELECT id, body, standing, at FROM proposals WHERE standing = 'queued' AND graph = :graph ORDER BY at, id"
ADD_PROPOSAL = (
    "INSERT INTO proposals (id, graph, body, standing, at) VALUES (:id, :graph, :body, 'queued', :at)"
)
STAND = "UPDATE proposals SET standing = :standing WHERE id = :id"
REMOVE_PROPOSALS = "DELETE FROM proposals WHERE id = ANY(:ids)"

SAYINGS = (
    "SELECT message, conversation, said_by, quote, at FROM sayings WHERE proposal = :id ORDER BY at, message"
)
ADD_SAYING = """INSERT INTO sayings (proposal, message, conversation, said_by, quote, at)
  VALUES (:id, :message, :conversation, :said_by, :quote, :at) ON CONFLICT (proposal, message) DO NOTHING"""
WAITING_OF_PERSON = """SELECT count(*) FROM proposals p WHERE p.standing = 'queued'
  AND EXISTS (SELECT 1 FROM sayings s WHERE s.proposal = p.id AND s.said_by = :said_by)"""
SAID_IN = "SELECT DISTINCT proposal FROM sayings WHERE conversation = :conversation"
REMOVE_SAYINGS = "DELETE FROM sayings WHERE conversation = :conversation"
UNSAID_PROPOSALS = """SELECT p.id FROM proposals p WHERE p.id = ANY(:ids) AND p.standing = 'queued'
  AND NOT EXISTS (SELECT 1 FROM sayings s WHERE s.proposal = p.id) AND NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.proposal = p.id)"""

_SHOWN = "v.number, v.proposal, v.action, v.who, v.at, v.undoes, v.diff, v.digest_before, v.digest_after, v.settled"
_OF_GRAPH = f"SELECT {_SHOWN} FROM verdicts v JOIN proposals p ON p.id = v.proposal WHERE p.graph = :graph"
VERDICT = f"SELECT {_SHOWN} FROM verdicts v WHERE v.number = :number"
VERDICTS = f"{_OF_GRAPH} ORDER BY v.number DESC LIMIT :most"
UNSETTLED = f"{_OF_GRAPH} AND v.settled = 0 ORDER BY v.number"
UNDONE_BY = "SELECT number FROM verdicts WHERE undoes = :number"
LAST_VERDICT = "SELECT coalesce(max(number), 0) FROM verdicts"
ADD_VERDICT = """INSERT INTO verdicts (number, proposal, action, who, at, undoes, diff, digest_before, digest_after, settled)
  VALUES (:number, :proposal, :action, :who, :at, :undoes, :diff, :before, :after, :settled)"""
SETTLE = "UPDATE verdicts SET settled = 1 WHERE number = :number"
WITHDRAW = "DELETE FROM verdicts WHERE number = :number"


# Proposed edits of a graph as values that can be stored, and their effect on a graph, validated like manual
# edits.

# the editor treats the second as another type, and writes the third itself
_NO_PROPERTIES = ("id", "type", MADE_BY_HAND)


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
        if self.name in _NO_PROPERTIES:
            raise BadInput(f"{self.name!r} is no property that a proposal may change")

    def __str__(self) -> str:
        return f"change {self.name} of {self.id} from {short_repr(self.before)} to {short_repr(self.value)}"


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
        """A hash of the graph and the edits, the same whoever proposes them."""
        return "prop_" + hashlib.sha256(self.to_text().encode()).hexdigest()[:24]

    def __str__(self) -> str:
        return "; ".join(map(str, self.edits))

    def to_text(self) -> str:
        """Return the proposal as JSON text."""
        edits = [{"edit": type(each).__name__, **asdict(each)} for each in self.edits]
        return json.dumps({"graph": self.graph, "edits": edits}, sort_keys=True)

    @staticmethod
    def of_text(text: str) -> GraphProposal:
        """Parse a proposal that `to_text` wrote."""
        told = json.loads(text)
        edits = ({name: value for name, value in each.items() if name != "edit"} for each in told["edits"])
        kinds = (_KINDS[each["edit"]] for each in told["edits"])
        return GraphProposal(
            told["graph"], tuple(kind(**edit) for kind, edit in zip(kinds, edits, strict=True))
        )


@dataclass(frozen=True)
class PlannedChange:
    """What edits would do to a graph: the change, the resulting graph, and the warnings it would cause."""

    diff: Diff
    after: PropertyGraph
    broken: tuple[Fault, ...]


def planned_change(
    graph: PropertyGraph, edits: Sequence[GraphEdit], *, by: str, now: Callable[[], datetime] = utc_now
) -> PlannedChange:
    """Compute what edits would change in a graph, marked as made by hand, without writing anything.

    The Editor makes them one after another. Raises BadInput if a rule forbids an edit, its result exists
    already, or a property has another value than when the change was proposed, and UnknownName if a node or
    an edge does not exist.
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
                changed = f"{name} of {id} is {short_repr(there)} by now, and was {short_repr(before)} when the change was proposed"
                raise BadInput(f"{changed}: reject this and propose it anew")
            return editor.change_node(id, **{name: value})


def diff_as_text(diff: Diff) -> str:
    """Return a change as JSON text, which `kgot_lab.loop.events.diff_from_json` reads."""
    return json.dumps({name: [_plain(each) for each in value] for name, value in vars(diff).items()})


def _plain(value: Any) -> Json:
    if isinstance(value, Node):
        return {"id": value.id, "labels": list(value.labels), "properties": dict(value.properties)}
    if isinstance(value, Edge):
        return {**vars(value), "properties": dict(value.properties)}
    return [_plain(each) for each in value]  # before and after


MOST_WAITING = 200  # proposals of one person, so that nobody fills the queue alone


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
    """Proposals and decisions in tables. `now` is its clock."""

    def __init__(self, storage: TableStorage, *, now: Callable[[], datetime] = utc_now) -> None:
        self.storage, self.now = storage, now

    # --- proposals ---

    def propose(self, proposal: GraphProposal, said: ProposalSource) -> StoredProposal:
        """Queue a proposal. An existing one keeps its standing and gets another source.

        Raises BadInput if somebody has too many proposals.
        """
        who, quote = check_text(said.said_by, "who says it (said_by)"), check_text(said.quote, "the quote")
        with self.storage.changing():
            at = to_micros(self.now(), "now")
            if not self.storage.rows(PROPOSAL, {"id": proposal.id}):
                ((waiting,),) = self.storage.rows(WAITING_OF_PERSON, {"said_by": who})
                if waiting >= MOST_WAITING:
                    raise BadInput(
                        f"{MOST_WAITING} proposals of one person wait already: decide on some of them first"
                    )
                told = {"id": proposal.id, "graph": proposal.graph, "body": proposal.to_text(), "at": at}
                self.storage.rows(ADD_PROPOSAL, told)
            where = {
                "message": said.message,
                "conversation": said.conversation,
                "said_by": who,
                "quote": quote,
            }
            self.storage.rows(ADD_SAYING, {"id": proposal.id, **where, "at": at})
            return self.proposal(proposal.id)

    def proposal(self, id: str) -> StoredProposal:
        """Return a proposal by its id.

        Raises BadInput if there is none.
        """
        with self.storage.reading():
            found = self.storage.rows(PROPOSAL, {"id": id})
            if not found:
                raise BadInput("there is no such proposal")
            return self._kept(found[0])

    def queue(self, graph: str) -> tuple[StoredProposal, ...]:
        """Return the proposals waiting for a graph, those stated by most people first, then the oldest."""
        with self.storage.reading():
            kept = [self._kept(row) for row in self.storage.rows(WAITING_PROPOSALS, {"graph": graph})]
        return tuple(sorted(kept, key=lambda each: -each.people))

    def forget(self, conversation: str) -> int:
        """Remove the words of a conversation, and undecided proposals that nobody else stated.

        Returns the number of proposals removed.
        """
        with self.storage.changing():
            ids = [row[0] for row in self.storage.rows(SAID_IN, {"conversation": conversation})]
            self.storage.rows(REMOVE_SAYINGS, {"conversation": conversation})
            unsaid = [row[0] for row in self.storage.rows(UNSAID_PROPOSALS, {"ids": ids})] if ids else []
            if unsaid:
                self.storage.rows(REMOVE_PROPOSALS, {"ids": unsaid})
        return len(unsaid)

    def _kept(self, row: ClaimRow) -> StoredProposal:
        id, body, standing, at = row
        rows = self.storage.rows(SAYINGS, {"id": id})
        said = (
            ProposalSource(message, talk, who, quote, from_micros(when))
            for message, talk, who, quote, when in rows
        )
        return StoredProposal(GraphProposal.of_text(body), standing, from_micros(at), tuple(said))

    # --- decisions ---

    def decided(self, graph: str, most: int = 20) -> tuple[ProposalVerdict, ...]:
        """Return at most `most` of the last decisions on a graph, the latest first."""
        require_count(most, 1, "most")
        return tuple(map(_verdict, self.storage.rows(VERDICTS, {"graph": graph, "most": most})))

    def verdict(self, number: int) -> ProposalVerdict:
        """Return a decision by its number.

        Raises BadInput if there is none.
        """
        found = self.storage.rows(VERDICT, {"number": number})
        if not found:
            raise BadInput(f"there is no decision {number}: decided() lists them")
        return _verdict(found[0])

    def undone(self, number: int) -> bool:
        """Return whether a decision was undone."""
        return bool(self.storage.rows(UNDONE_BY, {"number": number}))

    def unsettled_decisions(self, graph: str) -> tuple[ProposalVerdict, ...]:
        """Return the decisions for which it is not recorded whether they reached the graph."""
        return tuple(map(_verdict, self.storage.rows(UNSETTLED, {"graph": graph})))

    def note(
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
        if action not in standings:
            raise UnknownName("decision", action, standings)
        ((last,),) = self.storage.rows(LAST_VERDICT)
        diff, after = (Diff(), "") if change is None else (change.diff, change.after.digest)
        decided = {"number": int(last) + 1, "proposal": id, "action": action, "undoes": undoes}
        by_whom = {"who": check_text(by, "who decides (by)"), "at": to_micros(self.now(), "now")}
        change_made = {
            "diff": diff_as_text(diff),
            "before": before,
            "after": after,
            "settled": int(change is None),
        }
        self.storage.rows(ADD_VERDICT, decided | by_whom | change_made)
        self.storage.rows(STAND, {"id": id, "standing": standings[action]})
        return self.verdict(int(last) + 1)

    def settle(self, number: int) -> None:
        """Record that a decision was applied to the graph."""
        self.storage.rows(SETTLE, {"number": number})

    def withdraw(self, verdict: ProposalVerdict) -> None:
        """Delete the record of a decision that was never applied to the graph."""
        standing = "accepted" if verdict.action == "undo" else "queued"
        self.storage.rows(WITHDRAW, {"number": verdict.number})
        self.storage.rows(STAND, {"id": verdict.proposal, "standing": standing})


def open_proposals(
    place: Path | str = ":memory:", *, namespace: str | None = None, now: Callable[[], datetime] = utc_now
) -> ProposalLedger:
    """Open the ledger in an SQLite file, in memory, or in PostgreSQL.

    Raises what `open_tables` raises.
    """
    return ProposalLedger(open_tables(PROPOSALS_LAYOUT, place, namespace=namespace), now=now)


def _verdict(row: ClaimRow) -> ProposalVerdict:
    number, proposal, action, by, at, undoes, diff, before, after, settled = row
    read = diff_from_json(json.loads(diff))
    undone = None if undoes is None else int(undoes)
    return ProposalVerdict(
        int(number), proposal, action, by, from_micros(at), undone, read, before, after, bool(settled)
    )
