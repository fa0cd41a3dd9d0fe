"""Routes by which experts learn: why answers failed, what people propose, and the decisions of those who may
change graphs.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from pydantic import BaseModel

from kgot_lab.experts.http.error_responses import TooBusy, documented, may_change, tenant
from kgot_lab.experts.http.streaming import StreamLimiter
from kgot_lab.experts.http.tokens import Tenant
from kgot_lab.experts.learning.failed_questions import questions_of
from kgot_lab.experts.learning.gaps import gap_report
from kgot_lab.experts.learning.ledger import ProposalVerdict, StoredProposal
from kgot_lab.experts.learning.review_queue import ReviewQueue
from kgot_lab.experts.service import ExpertService

_Who = Annotated[Tenant, Depends(tenant)]
_Admin = Annotated[Tenant, Depends(may_change)]
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


def lessons_router(office: ExpertService, faucet: StreamLimiter, desk: ReviewQueue) -> APIRouter:
    """The routes of learning."""
    router = APIRouter(prefix="/api/experts/{id}", tags=["learning"])

    @router.get("/gaps", response_model=GapsShown, responses=documented(404))
    def get_gaps(who: _Who, id: _Id) -> Any:
        """Why the caller's own questions to an expert failed."""
        expert = office.expert(id)
        name = expert.graphs[0]
        asked = questions_of(office.tables, id, who.name, name)
        found = gap_report(
            office.graphs.graph(name), asked, config=expert.search_config(), embedder=office.embedder
        )
        told = {
            "gaps": found.gaps,
            "settings": found.misconfigured,
            "patterns": found.patterns,
            "regions": found.regions,
        }
        lists = {part: list(map(str, those)) for part, those in told.items()}
        return {"asked": found.asked, "failed": found.failed, "unexplained": len(found.unexplained), **lists}

    @router.post(
        "/conversations/{cid}/learn",
        response_model=list[ProposalShown],
        status_code=201,
        responses=documented(404, 422, 503),
    )
    def learn(who: _Who, id: _Id, cid: _Id) -> Any:
        """Have the expert's model read what the caller said in a conversation; what would change the graph
        waits for approval.
        """
        if not faucet.take():  # it asks a model, as a chat does
            raise TooBusy
        try:
            return [shown_proposal(each, who.name) for each in desk.learn(id, cid, who.name)]
        finally:
            faucet.give_back()

    @router.get("/proposals", response_model=list[ProposalShown], responses=documented(403, 404))
    def list_proposals(who: _Admin, id: _Id) -> Any:
        """What waits for the graphs of an expert, first what most people said."""
        return [
            shown_proposal(each, who.name)
            for name in office.expert(id).graphs
            for each in desk.ledger.queue(name)
        ]

    @router.get("/decisions", response_model=list[DecisionShown], responses=documented(403, 404))
    def list_decisions(who: _Admin, id: _Id) -> Any:
        """The last decisions on the graphs of an expert, the latest first."""
        made = [each for name in office.expert(id).graphs for each in desk.ledger.decided(name)]
        return [_decided(each) for each in sorted(made, key=lambda each: -each.number)]

    @router.put(
        "/proposals/{pid}/accepted", response_model=DecisionShown, responses=documented(403, 404, 422)
    )
    def accept(who: _Admin, id: _Id, pid: _Id) -> Any:
        """Let a proposal change its graph; the twelve rules are asked first."""
        return _decided(desk.reviewer(_graph(id, pid), who.name).accept(pid))

    @router.put(
        "/proposals/{pid}/rejected", response_model=DecisionShown, responses=documented(403, 404, 422)
    )
    def reject(who: _Admin, id: _Id, pid: _Id) -> Any:
        """Let a proposal count for nothing, also when it is said again."""
        return _decided(desk.reviewer(_graph(id, pid), who.name).reject(pid))

    @router.delete("/decisions/{number}", response_model=DecisionShown, responses=documented(403, 404, 422))
    def undo(who: _Admin, id: _Id, number: Annotated[int, Path(ge=0, le=2**31)]) -> Any:
        """Take a decision back: the graph is as it was, and the proposal waits again."""
        proposal = desk.ledger.verdict(number).proposal
        return _decided(desk.reviewer(_graph(id, proposal), who.name).undo(number))

    def _graph(id: str, proposal: str) -> str:
        name = desk.ledger.proposal(proposal).proposal.graph
        office.graphs.graph(name)
        return name if name in office.expert(id).graphs else office.expert(id).graphs[0]

    return router


def shown_proposal(kept: StoredProposal, owner: str) -> dict[str, Any]:
    """A proposal as a door shows it to somebody."""
    quotes = [each.quote for each in kept.said if each.said_by == owner and each.quote]
    about = {"id": kept.proposal.id, "graph": kept.proposal.graph, "says": str(kept.proposal)}
    return about | {"standing": kept.standing, "people": kept.people, "quotes": quotes}


def _decided(verdict: ProposalVerdict) -> dict[str, Any]:
    return {
        "number": verdict.number,
        "proposal": verdict.proposal,
        "action": verdict.action,
        "by": verdict.by,
        "undoes": verdict.undoes,
    }
