"""Review proposals. Accepted ones change the graph after the rules are checked, and can be undone exactly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from kgot_lab.errors import BadInput, require_count
from kgot_lab.experts.error_messages import log
from kgot_lab.experts.learning.extracting import learn_from_message
from kgot_lab.experts.learning.ledger import (
    GraphProposal,
    PlannedChange,
    ProposalLedger,
    ProposalSource,
    StoredProposal,
    plan_change,
)
from kgot_lab.experts.service import ExpertService
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.loop.events import to_plain
from kgot_lab.stores.tables.history import LAST_CHANGE, Change, ChangeEffect
from kgot_lab.stores.tables.review_queue import ReviewDecision, ReviewQueue
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Diff

_NO_LIMIT = 2**31 - 1  # decisions


def apply_accepted(
    graph: PropertyGraph, changes: Mapping[int, Diff]
) -> tuple[PropertyGraph, tuple[int, ...]]:
    """Make the accepted changes of a graph, by the numbers of their decisions, in the graph as it was read.

    Also returns the numbers of the decisions that no longer fit, because the graph was changed otherwise.
    """
    misfits = []
    for number, diff in changes.items():
        try:
            graph = graph.apply(diff)
        except BadInput:
            misfits.append(number)
    return graph, tuple(misfits)


class GraphReview(ReviewQueue[StoredProposal]):
    """The review of the proposals for one graph, by name.

    `base` returns the graph as it was read, without what was accepted. The decision is what changes a graph: all
    that is accepted is made in it whenever it is read.
    """

    def __init__(
        self, ledger: ProposalLedger, graph: str, base: Callable[[], PropertyGraph], by: str
    ) -> None:
        super().__init__(ledger, checked_text(by, "who decides (by)"))
        self.ledger, self.name, self._base = ledger, graph, base

    def graph(self) -> PropertyGraph:
        """Return the graph with all that was accepted."""
        return apply_accepted(self._base(), self.ledger.accepted_changes(self.name))[0]

    def queue(self) -> tuple[StoredProposal, ...]:
        """Return the waiting proposals, those stated by most people first, then the oldest."""
        return self.ledger.queue(self.name)

    def plan(self, id: str) -> PlannedChange:
        """Compute what a proposal would change in the graph.

        Raises BadInput and UnknownName if it cannot be applied.
        """
        proposal = self.ledger.proposal(id).proposal
        return plan_change(self.graph(), proposal.edits, by=self.by, now=self.ledger.now)

    def undo(self, change: int | None = None) -> ChangeEffect | None:
        """Undo a decision by its number, or the last one that was made here. The graph is as it was before.

        Raises BadInput if later changes depend on it, and if it is of another graph.
        """
        if change is None and self.decided:
            change, _ = self.decided.pop()
        if change is None:
            return None
        with self.ledger.storage.changing():
            for stored in self.ledger.proposals_changed(change):
                self._require_own(stored)
            before = self._misfits()
            effect = super().undo(change)
            if misfits := self._misfits() - before:
                later = ", ".join(map(str, sorted(misfits)))
                raise BadInput(f"decision {later} builds on what decision {change} did: undo that first")
            return effect

    def decisions(self, most: int = 20) -> tuple[ReviewDecision, ...]:
        """Return at most `most` of the last decisions and undos on this graph, the latest first."""
        require_count(most, 1, "most")
        own = self.ledger.proposal_ids(self.name)
        return tuple(islice((each for each in super().decisions(_NO_LIMIT) if each.item in own), most))

    def _misfits(self) -> set[int]:
        return set(apply_accepted(self._base(), self.ledger.accepted_changes(self.name))[1])

    def _decide(self, action: str, id: str, standing: str) -> ChangeEffect:
        with self.ledger.storage.changing():
            self._require_own(self.ledger.proposal(id))
            if not self.waits(id):
                raise self._already_decided(id)
            return super()._decide(action, id, standing)

    def _require_own(self, stored: StoredProposal) -> None:
        if stored.proposal.graph != self.name:
            raise BadInput(f"this proposal is for the graph {stored.proposal.graph}, and not for {self.name}")

    def _id(self, item: StoredProposal | str) -> str:
        return item.id if isinstance(item, StoredProposal) else item

    def _standing(self, id: str) -> str:
        return self.ledger.proposal(id).standing

    def _subject(self, id: str) -> GraphProposal:
        return self.ledger.proposal(id).proposal

    def _set_standing(self, change: Change, id: str, standing: str) -> None:
        if standing == "accepted":
            change.open("diff", id, json.dumps(to_plain(self.plan(id).diff)))
        change.record("standing", id, "queued", standing)


# What experts have learned: graphs as read, with all accepted changes. Nothing is written into their files.

_MAX_MESSAGES = 20  # of a conversation that are read at once, the latest ones


@dataclass
class LearnedGraphs:
    """The ledger of proposals, and the graphs of a service with all accepted changes.

    The service reads its graphs through this from now on. What another process accepts takes effect at the
    next question.
    """

    service: ExpertService
    ledger: ProposalLedger
    # by name: digest as read, number of the last change of the ledger, and the graph with what was accepted
    _cached: dict[str, tuple[str, int, PropertyGraph]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.service.graphs.apply_accepted = self.with_accepted_changes
        self.service.forgetting = self.ledger.forget

    def with_accepted_changes(self, name: str, base: PropertyGraph) -> PropertyGraph:
        """Return a graph with all changes that were accepted for it.

        If its file was changed since, the changes that still fit are applied, and the others are logged.
        """
        last = next((int(number) for number, _ in self.ledger.storage.rows(LAST_CHANGE)), 0)
        with self._lock:
            kept = self._cached.get(name)
            if kept is None or kept[:2] != (base.digest, last):
                graph, misfits = apply_accepted(base, self.ledger.accepted_changes(name))
                if misfits:
                    numbers = ", ".join(map(str, misfits))
                    log.warning(
                        "the graph %s was changed since it was decided on; passed over, as they fit no more: decisions %s",
                        name,
                        numbers,
                    )
                graph_index(graph)
                kept = self._cached[name] = base.digest, last, graph
            return kept[2]

    def review(self, graph: str, by: str) -> GraphReview:
        """Return the review of the proposals for a graph.

        Raises UnknownName if there is no such graph.
        """
        graphs = self.service.graphs
        graphs.graph(graph)
        return GraphReview(self.ledger, graph, lambda: graphs.base_graph(graph), by)

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
