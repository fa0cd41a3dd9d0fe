"""Routes by which experts learn: why answers failed, what people propose, and the decisions of those who may
change graphs.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel

from kgot_lab.experts.http.responses import NOT_FOUND, Admin, Caller, StreamLimiter, TooBusy
from kgot_lab.experts.learning.gaps import gap_report, questions_of
from kgot_lab.experts.learning.ledger import StoredProposal
from kgot_lab.experts.learning.reviewing import ReviewQueue
from kgot_lab.experts.service import ExpertService

_Id = Annotated[str, Path(max_length=200)]


class ProposalShown(BaseModel):
    """A change that somebody proposes; `quotes` are the caller's own words that say it, and nobody else's."""

    id: str
    graph: str
    says: str
    standing: str
    people: int
    quotes: list[str]


class DecisionShown(BaseModel):
    number: int
    proposal: str
    action: str
    by: str
    undoes: int | None


class GapsShown(BaseModel):
    """Why the caller's questions failed: what no node says, what settings keep away, what failures have in common, what could be added."""

    asked: int
    failed: int
    gaps: list[str]
    settings: list[str]
    patterns: list[str]
    regions: list[str]
    unexplained: int


def lessons_router(service: ExpertService, limiter: StreamLimiter, review_queue: ReviewQueue) -> APIRouter:
    """The routes of learning."""
    router = APIRouter(prefix="/api/experts/{id}", tags=["learning"])

    @router.get("/gaps", response_model=GapsShown, responses=NOT_FOUND)
    def get_gaps(who: Caller, id: _Id) -> Any:
        """Why the caller's own questions to an expert failed."""
        expert = service.expert(id)
        name = expert.graphs[0]
        asked = questions_of(service.tables, id, who.name, name)
        found = gap_report(
            service.graphs.graph(name), asked, config=expert.search_config(), embedder=service.embedder
        )
        return GapsShown(
            asked=found.asked,
            failed=found.failed,
            gaps=list(map(str, found.gaps)),
            settings=list(map(str, found.misconfigured)),
            patterns=list(map(str, found.patterns)),
            regions=list(map(str, found.regions)),
            unexplained=len(found.unexplained),
        )

    @router.post(
        "/conversations/{cid}/learn", response_model=list[ProposalShown], status_code=201, responses=NOT_FOUND
    )
    def learn(who: Caller, id: _Id, cid: _Id) -> Any:
        """Have the expert's model read what the caller said in a conversation; what would change the graph
        waits for approval.
        """
        if not limiter.take():  # it asks a model, as a chat does
            raise TooBusy
        try:
            return [shown_proposal(each, who.name) for each in review_queue.learn(id, cid, who.name)]
        finally:
            limiter.give_back()

    @router.get("/proposals", response_model=list[ProposalShown], responses=NOT_FOUND)
    def list_proposals(who: Admin, id: _Id) -> Any:
        """What waits for the graphs of an expert, first what most people said."""
        return [
            shown_proposal(each, who.name)
            for name in service.expert(id).graphs
            for each in review_queue.ledger.queue(name)
        ]

    @router.get("/decisions", response_model=list[DecisionShown], responses=NOT_FOUND)
    def list_decisions(who: Admin, id: _Id) -> Any:
        """The last decisions on the graphs of an expert, the latest first."""
        made = [each for name in service.expert(id).graphs for each in review_queue.ledger.decided(name)]
        return sorted(made, key=lambda each: -each.number)

    @router.put("/proposals/{pid}/accepted", response_model=DecisionShown, responses=NOT_FOUND)
    def accept(who: Admin, id: _Id, pid: _Id) -> Any:
        """Let a proposal change its graph; the twelve rules are asked first."""
        return review_queue.reviewer(_graph(id, pid), who.name).accept(pid)

    @router.put("/proposals/{pid}/rejected", response_model=DecisionShown, responses=NOT_FOUND)
    def reject(who: Admin, id: _Id, pid: _Id) -> Any:
        """Let a proposal count for nothing, also when it is said again."""
        return review_queue.reviewer(_graph(id, pid), who.name).reject(pid)

    @router.delete("/decisions/{number}", response_model=DecisionShown, responses=NOT_FOUND)
    def undo(who: Admin, id: _Id, number: Annotated[int, Path(ge=0, le=2**31)]) -> Any:
        """Take a decision back: the graph is as it was, and the proposal waits again."""
        proposal = review_queue.ledger.verdict(number).proposal
        return review_queue.reviewer(_graph(id, proposal), who.name).undo(number)

    def _graph(id: str, proposal: str) -> str:
        name = review_queue.ledger.proposal(proposal).proposal.graph
        service.graphs.graph(name)
        return name if name in service.expert(id).graphs else service.expert(id).graphs[0]

    return router


def shown_proposal(kept: StoredProposal, owner: str) -> dict[str, Any]:
    """A proposal as a door shows it to somebody."""
    quotes = [each.quote for each in kept.said if each.said_by == owner and each.quote]
    about = {"id": kept.proposal.id, "graph": kept.proposal.graph, "says": str(kept.proposal)}
    return about | {"standing": kept.standing, "people": kept.people, "quotes": quotes}
