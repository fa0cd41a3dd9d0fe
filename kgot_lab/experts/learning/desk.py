"""Where it is decided what experts learn: graphs as they were read, with all that was accepted; nothing is written into their files."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.learning.extracting import learn_from_message
from kgot_lab.experts.learning.ledger import KeptProposal, ProposalLedger, ProposalSaid
from kgot_lab.experts.learning.reviewing import GraphReviewer, held_graph
from kgot_lab.experts.office import ExpertOffice
from kgot_lab.graph import PropertyGraph
from kgot_lab.methods.index import index_of
from kgot_lab.types import Diff

_MOST_MESSAGES = 20  # of a conversation that are read at once, the last ones


@dataclass
class LearningDesk:
    """The ledger of proposals, and the graphs of an office with what was accepted: the office reads them through this from now on.

    What another process accepted counts at the next question.
    """

    office: ExpertOffice
    ledger: ProposalLedger
    _learnt: dict[str, tuple[str, tuple[int, bool], PropertyGraph]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.office.graphs.learnt = self.learnt
        self.office.forgetting = self.ledger.forget

    def learnt(self, name: str, base: PropertyGraph) -> PropertyGraph:
        """A graph with all that was accepted for it; raises BadInput where it is another than that was accepted for."""
        decided = self.ledger.decided(name, most=1)
        if not decided:
            return base
        last = (decided[0].number, decided[0].settled)  # one that is not settled has not reached the graph yet
        with self._lock:
            kept = self._learnt.get(name)
            if kept is None or kept[:2] != (base.digest, last):
                kept = base.digest, last, held_graph(self.ledger, name, base).graph()
                index_of(kept[2])
                self._learnt[name] = kept
            return kept[2]

    def reviewer(self, graph: str, by: str) -> GraphReviewer:
        """Who decides on what waits for a graph; raises UnknownName."""
        return GraphReviewer(self.ledger, _OfLedger(self.office.graphs, graph), graph, by)

    def learn(self, expert: str, conversation: str, owner: str) -> tuple[KeptProposal, ...]:
        """Queue what somebody proposes in their own conversation for the first graph of an expert, read by its model.

        Raises NotThere, BadInput and LLMError.
        """
        known = self.office.expert(expert)
        _, messages = self.office.conversation(conversation, expert, owner)
        name, llm = known.graphs[0], self.office.models.named(known.models.get("chat"))
        graph = self.office.graphs.graph(name)
        queued: list[KeptProposal] = []
        for message in [each for each in messages if each.role == "user"][-_MOST_MESSAGES:]:
            said = ProposalSaid(message.id, conversation, owner)
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
