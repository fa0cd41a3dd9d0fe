"""Where it is decided what experts learn: graphs as they were read, with all that was accepted; nothing is
written into their files.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from kgot_lab.experts.error_messages import log
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.learning.extracting import learn_from_message
from kgot_lab.experts.learning.ledger import ProposalLedger, ProposalSource, StoredProposal
from kgot_lab.experts.learning.reviewing import GraphReviewer, graph_with_decisions
from kgot_lab.experts.service import ExpertService
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import index_of
from kgot_lab.types import Diff

_MOST_MESSAGES = 20  # of a conversation that are read at once, the last ones


@dataclass
class ReviewQueue:
    """The ledger of proposals, and the graphs of an service with what was accepted: the service reads them
    through this from now on.

    What another process accepted counts at the next question.
    """

    service: ExpertService
    ledger: ProposalLedger
    _learnt: dict[str, tuple[str, tuple[int, bool], PropertyGraph]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.service.graphs.learnt = self.learnt
        self.service.forgetting = self.ledger.forget

    def learnt(self, name: str, base: PropertyGraph) -> PropertyGraph:
        """A graph with all that was accepted for it; where its file was changed since, with what still fits
        it, and the log says so.
        """
        decided = self.ledger.decided(name, most=1)
        if not decided:
            return base
        # one that is not settled has not reached the graph yet
        last = (decided[0].number, decided[0].settled)
        with self._lock:
            kept = self._learnt.get(name)
            if kept is None or kept[:2] != (base.digest, last):
                kept = base.digest, last, self._with_decisions(name, base)
                index_of(kept[2])
                self._learnt[name] = kept
            return kept[2]

    def _with_decisions(self, name: str, base: PropertyGraph) -> PropertyGraph:
        found, misfits = graph_with_decisions(self.ledger, name, base)
        if misfits:
            numbers = ", ".join(map(str, misfits))
            log.warning(
                "the graph %s was changed since it was decided on; passed over, as they fit no more: decisions %s",
                name,
                numbers,
            )
        return found

    def reviewer(self, graph: str, by: str) -> GraphReviewer:
        """Who decides on what waits for a graph; raises UnknownName."""
        return GraphReviewer(self.ledger, _OfLedger(self.service.graphs, graph), graph, by)

    def learn(self, expert: str, conversation: str, owner: str) -> tuple[StoredProposal, ...]:
        """Queue what somebody proposes in their own conversation for the first graph of an expert, read by
        its model.

        Raises NotFound, BadInput and LLMError.
        """
        known = self.service.expert(expert)
        _, messages = self.service.conversation(conversation, expert, owner)
        name, llm = known.graphs[0], self.service.models.named(known.models.get("chat"))
        graph = self.service.graphs.graph(name)
        queued: list[StoredProposal] = []
        for message in [each for each in messages if each.role == "user"][-_MOST_MESSAGES:]:
            said = ProposalSource(message.id, conversation, owner)
            queued += learn_from_message(self.ledger, llm, graph, name=name, text=message.content, said=said)
        return tuple(dict.fromkeys(queued))


@dataclass(frozen=True)
class _OfLedger:
    """A graph as the ledger makes it: a change is made by being on file, so here it is only tried."""

    graphs: GraphFolder
    name: str

    def graph(self) -> PropertyGraph:
        return self.graphs.graph(self.name)

    def apply(self, diff: Diff) -> None:
        self.graph().apply(diff)
