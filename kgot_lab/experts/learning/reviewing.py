"""Review proposals. Accepted ones change the graph after the rules are checked, and can be undone exactly."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Protocol

from kgot_lab.errors import BadInput, LabError, require
from kgot_lab.experts.error_messages import log
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.learning.extracting import learn_from_message
from kgot_lab.experts.learning.ledger import (
    GraphEdit,
    PlannedChange,
    ProposalLedger,
    ProposalSource,
    ProposalVerdict,
    StoredProposal,
    plan_change,
)
from kgot_lab.experts.service import ExpertService
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import inverse
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Diff

_NO_LIMIT = 2**31 - 1  # decisions


class EditableGraph(Protocol):
    """A graph that accepts changes, such as a store."""

    def graph(self) -> PropertyGraph: ...
    def apply(self, diff: Diff) -> None: ...  # atomic; raises BadInput if it does not fit


def apply_decisions(
    ledger: ProposalLedger, graph: str, base: PropertyGraph
) -> tuple[PropertyGraph, tuple[int, ...]]:
    """Apply to a graph all changes that were accepted for it and not undone.

    `graph` is its name and `base` the graph as read. Also returns the numbers of the decisions that no longer
    fit, because the graph was changed otherwise.
    """
    decisions = [each for each in reversed(ledger.decisions(graph, limit=_NO_LIMIT)) if each.settled]
    undone, misfits = {decision.undoes for decision in decisions}, []
    for verdict in decisions:
        if verdict.action != "accept" or verdict.number in undone:
            continue
        try:
            base = base.apply(verdict.diff)
        except BadInput:
            misfits.append(verdict.number)
    return base, tuple(misfits)


class GraphReviewer:
    """Decides on the proposals for one graph, by name.

    A decision is recorded before the graph changes, and marked as settled afterwards. An interrupted one is
    settled by the digest of the graph when a reviewer is created, or by `settle`.
    """

    def __init__(self, ledger: ProposalLedger, target: EditableGraph, graph: str, by: str) -> None:
        require(ledger, ProposalLedger, "a reviewer decides on a ProposalLedger")
        self.ledger, self.target, self.graph = ledger, target, graph
        self.by = checked_text(by, "who decides (by)")
        self.settle()

    def plan(self, id: str) -> PlannedChange:
        """Compute what a proposal would change in the graph.

        Raises BadInput and UnknownName if it cannot be applied.
        """
        return plan_change(self.target.graph(), self._proposal_edits(id), by=self.by, now=self.ledger.now)

    def accept(self, id: str) -> ProposalVerdict:
        """Accept a waiting proposal and change the graph.

        Raises BadInput if a rule forbids it or it no longer waits, and UnknownName.
        """
        with self.ledger.storage.changing():
            self._require_waiting(id)
            change = self.plan(id)
            before = self.target.graph().digest
            verdict = self.ledger.record_decision("accept", id, self.by, change, before=before)
        return self._apply(verdict)

    def reject(self, id: str) -> ProposalVerdict:
        """Reject a waiting proposal, also for when it is stated again.

        Raises BadInput if it no longer waits.
        """
        with self.ledger.storage.changing():
            self._require_waiting(id)
            return self.ledger.record_decision("reject", id, self.by)

    def undo(self, number: int) -> ProposalVerdict:
        """Undo a decision. The graph is restored, and the proposal waits again.

        Raises BadInput if later changes depend on it.
        """
        with self.ledger.storage.changing():
            verdict = self.ledger.verdict(number)
            self._proposal_edits(verdict.proposal)
            if verdict.action == "undo":
                raise BadInput(f"decision {number} took another back: accept the proposal again")
            if self.ledger.is_undone(number) or not verdict.settled:
                raise BadInput(f"decision {number} does not stand")
            if verdict.action == "reject":
                return self.ledger.record_decision("undo", verdict.proposal, self.by, undoes=number)
            before = self.target.graph()
            inverse_diff = inverse(verdict.diff)
            try:
                change = PlannedChange(inverse_diff, before.apply(inverse_diff), ())
            except BadInput as error:
                note = f"what decision {number} did was changed since, undo that first: {error}"
                raise BadInput(note) from None
            decision, digest = ("undo", verdict.proposal, self.by, change), before.digest
            undo_verdict = self.ledger.record_decision(*decision, before=digest, undoes=number)
        return self._apply(undo_verdict)

    def settle(self) -> tuple[ProposalVerdict, ...]:
        """Settle interrupted decisions and return those that are withdrawn.

        Decisions that were applied to the graph are kept, the others are removed from the ledger.
        """
        withdrawn = []
        with self.ledger.storage.changing():
            for verdict in self.ledger.unsettled_decisions(self.graph):
                if self._is_applied(verdict):
                    self.ledger.settle(verdict.number)
                else:
                    self.ledger.withdraw(verdict)
                    withdrawn.append(verdict)
        return tuple(withdrawn)

    def _is_applied(self, verdict: ProposalVerdict) -> bool:
        """Return whether the graph holds the change of a decision, even after other changes."""
        graph = self.target.graph()
        if graph.digest in (verdict.digest_before, verdict.digest_after):
            return graph.digest == verdict.digest_after
        try:
            graph.apply(inverse(verdict.diff))
        except BadInput:
            return False
        return True

    def _apply(self, verdict: ProposalVerdict) -> ProposalVerdict:
        """Apply a recorded decision to the graph, and mark it as settled, with a lock against `settle`."""
        failure: LabError | None = None
        with self.ledger.storage.changing():
            if verdict.number not in {
                decision.number for decision in self.ledger.unsettled_decisions(self.graph)
            }:
                raise BadInput("somebody settled the ledger after the decision: decide again")
            try:
                self.target.apply(verdict.diff)
            except LabError as error:
                failure = None if self._is_applied(verdict) else error
            if failure is None:
                self.ledger.settle(verdict.number)
            else:
                self.ledger.withdraw(verdict)
        if failure is not None:  # outside the block, so that the withdrawal is committed
            raise failure
        graph_index(self.target.graph())
        return self.ledger.verdict(verdict.number)

    def _require_waiting(self, id: str) -> None:
        self._proposal_edits(id)
        stored = self.ledger.proposal(id)
        if stored.standing != "queued":
            raise BadInput(f"this proposal no longer waits: it is {stored.standing}")

    def _proposal_edits(self, id: str) -> tuple[GraphEdit, ...]:
        proposal = self.ledger.proposal(id).proposal
        if proposal.graph != self.graph:
            raise BadInput(f"this proposal is for the graph {proposal.graph}, and not for {self.graph}")
        return proposal.edits


# What experts have learned: graphs as read, with all accepted changes. Nothing is written into their files.

_MAX_MESSAGES = 20  # of a conversation that are read at once, the latest ones


@dataclass
class ReviewQueue:
    """The ledger of proposals, and the graphs of a service with all accepted changes.

    The service reads its graphs through this from now on. What another process accepts takes effect at the
    next question.
    """

    service: ExpertService
    ledger: ProposalLedger
    _cached: dict[str, tuple[str, tuple[int, bool], PropertyGraph]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.service.graphs.apply_accepted = self.with_accepted_changes
        self.service.forgetting = self.ledger.forget

    def with_accepted_changes(self, name: str, base: PropertyGraph) -> PropertyGraph:
        """Return a graph with all changes that were accepted for it.

        If its file was changed since, the changes that still fit are applied, and the others are logged.
        """
        decided = self.ledger.decisions(name, limit=1)
        if not decided:
            return base
        # one that is not settled was not applied to the graph yet
        last = (decided[0].number, decided[0].settled)
        with self._lock:
            kept = self._cached.get(name)
            if kept is None or kept[:2] != (base.digest, last):
                kept = base.digest, last, self._with_decisions(name, base)
                graph_index(kept[2])
                self._cached[name] = kept
            return kept[2]

    def _with_decisions(self, name: str, base: PropertyGraph) -> PropertyGraph:
        changed, misfits = apply_decisions(self.ledger, name, base)
        if misfits:
            numbers = ", ".join(map(str, misfits))
            log.warning(
                "the graph %s was changed since it was decided on; passed over, as they fit no more: decisions %s",
                name,
                numbers,
            )
        return changed

    def reviewer(self, graph: str, by: str) -> GraphReviewer:
        """Return the reviewer who decides on the proposals for a graph.

        Raises UnknownName if there is no such graph.
        """
        return GraphReviewer(self.ledger, _LedgerGraph(self.service.graphs, graph), graph, by)

    def learn(self, expert: str, conversation: str, owner: str) -> tuple[StoredProposal, ...]:
        """Queue the proposals in an owner's conversation, for the first graph of an expert.

        The expert's model reads the messages. Raises NotFound, BadInput and LLMError.
        """
        configured = self.service.expert(expert)
        _, messages = self.service.conversation(conversation, expert, owner)
        name, llm = configured.graphs[0], self.service.models.open_model(configured.models.get("chat"))
        graph = self.service.graphs.graph(name)
        queued: list[StoredProposal] = []
        for message in [message for message in messages if message.role == "user"][-_MAX_MESSAGES:]:
            source = ProposalSource(message.id, conversation, owner)
            text = message.content
            queued += learn_from_message(self.ledger, llm, graph, name=name, text=text, source=source)
        return tuple(dict.fromkeys(queued))


@dataclass(frozen=True)
class _LedgerGraph:
    """A graph made by the ledger. Recording a change is what makes it, so here it is only tried."""

    graphs: GraphFolder
    name: str

    def graph(self) -> PropertyGraph:
        return self.graphs.graph(self.name)

    def apply(self, diff: Diff) -> None:
        self.graph().apply(diff)
