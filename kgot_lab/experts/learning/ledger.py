"""The ledger of proposals: what people said that would change a graph, what waits, and who decided what and
when.

Nothing in it changes a graph: that is done by a reviewer, and by nothing that stands in a message.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kgot_lab.errors import BadInput, UnknownName, require_count
from kgot_lab.experts.learning import proposal_tables as sql
from kgot_lab.experts.learning.ledger import GraphProposal, PlannedChange, diff_as_text
from kgot_lab.loop.events import diff_from_json
from kgot_lab.memory.claims.claim import instant, moment, plain_text, utc_now
from kgot_lab.memory.sqlite_tables import open_tables
from kgot_lab.memory.tables import ClaimRow, TableStorage
from kgot_lab.types import Diff

MOST_WAITING = 200  # proposals of one person, so that nobody fills the queue alone


@dataclass(frozen=True)
class ProposalSource:
    """The words that say a proposal, word for word, in which message and conversation, and by whom."""

    message: str
    conversation: str
    said_by: str
    quote: str = ""
    at: datetime | None = None  # the ledger notes it


@dataclass(frozen=True)
class StoredProposal:
    """A proposal with its standing, "queued", "accepted" or "rejected", and all who said it."""

    proposal: GraphProposal
    standing: str
    at: datetime
    said: tuple[ProposalSource, ...]

    @property
    def people(self) -> int:
        """How many people said it."""
        return len({each.said_by for each in self.said})


@dataclass(frozen=True)
class ProposalVerdict:
    """A decision, "accept", "reject" or "undo": its number, by whom and when, and for a change of the graph
    the digests around it.
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


class ProposalLedger:
    """Proposals and decisions in tables; `now` is its clock."""

    def __init__(self, storage: TableStorage, *, now: Callable[[], datetime] = utc_now) -> None:
        self.storage, self.now = storage, now

    def __repr__(self) -> str:
        return f"<ProposalLedger in {self.storage!r}>"

    def close(self) -> None:
        self.storage.close()

    # --- what was said
    # ------------------------------------------------------------------------------------------------

    def propose(self, proposal: GraphProposal, said: ProposalSource) -> StoredProposal:
        """Queue a proposal; one that is there keeps its standing, with who says it too. Raises BadInput where
        somebody has too many.
        """
        who, quote = plain_text(said.said_by, "who says it (said_by)"), plain_text(said.quote, "the quote")
        with self.storage.changing():
            at = instant(self.now(), "now")
            if not self.storage.rows(sql.PROPOSAL, {"id": proposal.id}):
                ((waiting,),) = self.storage.rows(sql.WAITING_OF_PERSON, {"said_by": who})
                if waiting >= MOST_WAITING:
                    raise BadInput(
                        f"{MOST_WAITING} proposals of one person wait already: decide on some of them first"
                    )
                told = {"id": proposal.id, "graph": proposal.graph, "body": proposal.to_text(), "at": at}
                self.storage.rows(sql.ADD_PROPOSAL, told)
            where = {
                "message": said.message,
                "conversation": said.conversation,
                "said_by": who,
                "quote": quote,
            }
            self.storage.rows(sql.ADD_SAYING, {"id": proposal.id, **where, "at": at})
            return self.proposal(proposal.id)

    def proposal(self, id: str) -> StoredProposal:
        """A proposal by its id; raises BadInput where there is none."""
        with self.storage.reading():
            found = self.storage.rows(sql.PROPOSAL, {"id": id})
            if not found:
                raise BadInput("there is no such proposal")
            return self._kept(found[0])

    def queue(self, graph: str) -> tuple[StoredProposal, ...]:
        """What waits for a graph: first what most people said, then what was said first."""
        with self.storage.reading():
            kept = [self._kept(row) for row in self.storage.rows(sql.WAITING_PROPOSALS, {"graph": graph})]
        return tuple(sorted(kept, key=lambda each: -each.people))

    def forget(self, conversation: str) -> int:
        """Remove the words of a conversation, and what waits that nobody else said and nobody decided on; how
        many proposals went.
        """
        with self.storage.changing():
            ids = [row[0] for row in self.storage.rows(sql.SAID_IN, {"conversation": conversation})]
            self.storage.rows(sql.REMOVE_SAYINGS, {"conversation": conversation})
            unsaid = [row[0] for row in self.storage.rows(sql.UNSAID_PROPOSALS, {"ids": ids})] if ids else []
            if unsaid:
                self.storage.rows(sql.REMOVE_PROPOSALS, {"ids": unsaid})
        return len(unsaid)

    def _kept(self, row: ClaimRow) -> StoredProposal:
        id, body, standing, at = row
        rows = self.storage.rows(sql.SAYINGS, {"id": id})
        said = (
            ProposalSource(message, talk, who, quote, moment(when))
            for message, talk, who, quote, when in rows
        )
        return StoredProposal(GraphProposal.of_text(body), standing, moment(at), tuple(said))

    # --- what was decided
    # ---------------------------------------------------------------------------------------------

    def decided(self, graph: str, most: int = 20) -> tuple[ProposalVerdict, ...]:
        """The last decisions on a graph, at most so many, the latest first."""
        require_count(most, 1, "most")
        return tuple(map(_verdict, self.storage.rows(sql.VERDICTS, {"graph": graph, "most": most})))

    def verdict(self, number: int) -> ProposalVerdict:
        """A decision by its number; raises BadInput where there is none."""
        found = self.storage.rows(sql.VERDICT, {"number": number})
        if not found:
            raise BadInput(f"there is no decision {number}: decided() lists them")
        return _verdict(found[0])

    def undone(self, number: int) -> bool:
        """Whether a decision was taken back."""
        return bool(self.storage.rows(sql.UNDONE_BY, {"number": number}))

    def unsettled(self, graph: str) -> tuple[ProposalVerdict, ...]:
        """The decisions of which it is not on file whether they reached the graph."""
        return tuple(map(_verdict, self.storage.rows(sql.UNSETTLED, {"graph": graph})))

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
        """Note a decision: with a change as one that has yet to reach the graph, else as settled. Called
        within `storage.changing()`.
        """
        standings = {"accept": "accepted", "reject": "rejected", "undo": "queued"}
        if action not in standings:
            raise UnknownName("decision", action, standings)
        ((last,),) = self.storage.rows(sql.LAST_VERDICT)
        diff, after = (Diff(), "") if change is None else (change.diff, change.after.digest)
        decided = {"number": int(last) + 1, "proposal": id, "action": action, "undoes": undoes}
        by_whom = {"who": plain_text(by, "who decides (by)"), "at": instant(self.now(), "now")}
        change_made = {
            "diff": diff_as_text(diff),
            "before": before,
            "after": after,
            "settled": int(change is None),
        }
        self.storage.rows(sql.ADD_VERDICT, decided | by_whom | change_made)
        self.storage.rows(sql.STAND, {"id": id, "standing": standings[action]})
        return self.verdict(int(last) + 1)

    def settle(self, number: int) -> None:
        """Note that a decision reached the graph."""
        self.storage.rows(sql.SETTLE, {"number": number})

    def withdraw(self, verdict: ProposalVerdict) -> None:
        """Take a decision off the file that never reached the graph."""
        standing = "accepted" if verdict.action == "undo" else "queued"
        self.storage.rows(sql.WITHDRAW, {"number": verdict.number})
        self.storage.rows(sql.STAND, {"id": verdict.proposal, "standing": standing})


def open_proposals(
    place: Path | str = ":memory:", *, namespace: str | None = None, now: Callable[[], datetime] = utc_now
) -> ProposalLedger:
    """The ledger in an SQLite file, in memory, or in PostgreSQL; raises what `open_tables` does."""
    return ProposalLedger(open_tables(sql.PROPOSALS_LAYOUT, place, namespace=namespace), now=now)


def _verdict(row: ClaimRow) -> ProposalVerdict:
    number, proposal, action, by, at, undoes, diff, before, after, settled = row
    read = diff_from_json(json.loads(diff))
    undone = None if undoes is None else int(undoes)
    return ProposalVerdict(
        int(number), proposal, action, by, moment(at), undone, read, before, after, bool(settled)
    )
