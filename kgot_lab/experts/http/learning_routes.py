"""Routes of learning: failed answers, proposals, drifting dimensions, and the decisions of an admin."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from kgot_lab.errors import BadInput
from kgot_lab.experts.http.responses import NOT_FOUND, Admin, Caller, StreamLimiter
from kgot_lab.experts.learning.contradictions import (
    DRIFT_DAYS,
    MOST_DRIFT_DAYS,
    contradiction_proposal,
    report_drift,
)
from kgot_lab.experts.learning.gaps import gap_report, owner_questions
from kgot_lab.experts.learning.ledger import (
    EDIT_CLASSES,
    GraphEdit,
    GraphProposal,
    ProposalSource,
    StoredProposal,
    plan_change,
)
from kgot_lab.experts.learning.reviewing import LearnedGraphs
from kgot_lab.experts.repository import NotFound
from kgot_lab.experts.service import ExpertService
from kgot_lab.kgos.methods.index import resolve_node
from kgot_lab.stores.tables.review_queue import ReviewDecision
from kgot_lab.text.cleaning import replace_surrogates

_Id = Annotated[str, Path(max_length=200)]


class ProposalSummary(BaseModel):
    """A proposed change. `quotes` are only the caller's own words that state it."""

    id: str
    graph: str
    says: str
    standing: str
    people: int
    quotes: list[str]


class DecisionSummary(BaseModel):
    number: int
    proposal: str
    action: str
    by: str
    undoes: int | None


class GapSummary(BaseModel):
    """Why the caller's questions failed, and what could be added.

    Causes are missing nodes, settings that hide nodes, and common patterns.
    """

    asked: int
    failed: int
    gaps: list[str]
    settings: list[str]
    patterns: list[str]
    regions: list[str]
    unexplained: int


def learning_router(service: ExpertService, limiter: StreamLimiter, learned: LearnedGraphs) -> APIRouter:
    """Build the routes of learning."""
    router = APIRouter(prefix="/api/experts/{id}", tags=["learning"])

    @router.get("/gaps", response_model=GapSummary, responses=NOT_FOUND)
    def get_gaps(who: Caller, id: _Id) -> Any:
        """Explain why the caller's own questions to an expert failed."""
        expert = service.expert(id)
        name = expert.graphs[0]
        questions = owner_questions(service.tables, id, who.name, name)
        graph, config = service.graphs.graph(name), expert.search_config()
        report = gap_report(graph, questions, config=config, embedder=service.embedder)
        counts = {"asked": report.asked, "failed": report.failed, "unexplained": len(report.unexplained)}
        causes = {name: list(map(str, getattr(report, name))) for name in ("gaps", "patterns", "regions")}
        return counts | causes | {"settings": list(map(str, report.misconfigured))}

    @router.post(
        "/conversations/{cid}/learn",
        response_model=list[ProposalSummary],
        status_code=201,
        responses=NOT_FOUND,
    )
    def learn(who: Caller, id: _Id, cid: _Id) -> Any:
        """Extract proposals from the caller's messages in a conversation with the expert's model.

        Changes of the graph wait for approval.
        """
        limiter.acquire()  # it calls a model, as a chat does
        try:
            return [proposal_json(each, who.name) for each in learned.learn(id, cid, who.name)]
        finally:
            limiter.release()

    @router.get("/proposals", response_model=list[ProposalSummary], responses=NOT_FOUND)
    def list_proposals(who: Admin, id: _Id) -> Any:
        """List the proposals waiting for the graphs of an expert, those stated by most people first."""
        waiting = (each for name in service.expert(id).graphs for each in learned.ledger.queue(name))
        return [proposal_json(each, who.name) for each in waiting]

    @router.get("/decisions", response_model=list[DecisionSummary], responses=NOT_FOUND)
    def list_decisions(who: Admin, id: _Id) -> Any:
        """List the last decisions on the graphs of an expert, the latest first."""
        names = service.expert(id).graphs
        decisions = [each for name in names for each in learned.review(name, who.name).decisions()]
        return [_decision_json(each) for each in sorted(decisions, key=lambda decision: -decision.change)]

    @router.put("/proposals/{pid}/accepted", response_model=DecisionSummary, responses=NOT_FOUND)
    def accept(who: Admin, id: _Id, pid: _Id) -> Any:
        """Accept a proposal and change its graph, after checking the twelve rules."""
        effect = learned.review(_graph_name(id, pid), who.name).accept(pid)
        return {"number": effect.change, "proposal": pid, "action": "accept", "by": who.name, "undoes": None}

    @router.put("/proposals/{pid}/rejected", response_model=DecisionSummary, responses=NOT_FOUND)
    def reject(who: Admin, id: _Id, pid: _Id) -> Any:
        """Reject a proposal, also for when it is stated again."""
        effect = learned.review(_graph_name(id, pid), who.name).reject(pid)
        return {"number": effect.change, "proposal": pid, "action": "reject", "by": who.name, "undoes": None}

    @router.delete("/decisions/{number}", response_model=DecisionSummary, responses=NOT_FOUND)
    def undo(who: Admin, id: _Id, number: Annotated[int, Path(ge=0, le=2**31)]) -> Any:
        """Undo a decision. The graph is restored, and the proposal waits again."""
        proposal = next((each.id for each in learned.ledger.proposals_changed(number)), "")
        name = _graph_name(id, proposal) if proposal else service.expert(id).graphs[0]
        effect = learned.review(name, who.name).undo(number)
        change = effect and effect.change
        return {"number": change, "proposal": proposal, "action": "undo", "by": who.name, "undoes": number}

    def _graph_name(id: str, proposal: str) -> str:
        name = learned.ledger.proposal(proposal).proposal.graph
        service.graphs.graph(name)
        return name if name in service.expert(id).graphs else service.expert(id).graphs[0]

    return router


def _decision_json(decision: ReviewDecision) -> dict[str, Any]:
    names = {"number": "change", "proposal": "item", "action": "action", "by": "by", "undoes": "undoes"}
    return {name: getattr(decision, field) for name, field in names.items()}


def proposal_json(stored: StoredProposal, owner: str) -> dict[str, Any]:
    """Format a proposal for an API response, with the quotes of `owner` only."""
    quotes = [each.quote for each in stored.said if each.said_by == owner and each.quote]
    fields = {"id": stored.proposal.id, "graph": stored.proposal.graph, "says": str(stored.proposal)}
    return fields | {"standing": stored.standing, "people": stored.people, "quotes": quotes}


# A node or an edge that is edited in the page: a proposal, which an admin accepts at once.


class GraphEditRequest(BaseModel):
    """An edit: its kind, and the fields of that kind. Nodes go by id, or by name where they exist."""

    model_config: ClassVar[ConfigDict] = {"extra": "forbid"}
    edit: Literal["NodeToAdd", "NodeToRemove", "EdgeToAdd", "EdgeToRemove", "PropertyToChange"]
    id: Annotated[str, Field(max_length=500)] = ""
    type: Annotated[str, Field(max_length=100)] = ""
    name: Annotated[str, Field(max_length=500)] = ""
    description: Annotated[str, Field(max_length=20_000)] = ""
    source: Annotated[str, Field(max_length=500)] = ""
    target: Annotated[str, Field(max_length=500)] = ""
    value: Any = None
    before: Any = None


def edits_router(service: ExpertService, learned: LearnedGraphs) -> APIRouter:
    """Build the routes of edits of a graph."""
    router = APIRouter(prefix="/api/kgos/edits", tags=["learning"])

    @router.post("/{db_id}", response_model=dict[str, Any], status_code=201, responses=NOT_FOUND)
    def edit_graph(
        who: Caller, db_id: _Id, edits: Annotated[list[GraphEditRequest], Field(min_length=1, max_length=20)]
    ) -> Any:
        """Edit a graph, checked against the twelve rules. What a user edits waits for an admin.

        Returns the proposal, the number of the decision if it is made, and the rules that it breaks.
        """
        if db_id not in service.graphs.names():
            raise NotFound("graph")
        graph = service.graphs.graph(db_id)
        new = {each.id for each in edits if each.edit == "NodeToAdd"}

        def to_edit(sent: GraphEditRequest) -> GraphEdit:
            kind = EDIT_CLASSES[sent.edit]
            if sent.edit == "NodeToAdd" and not (sent.id.strip() and sent.type.strip() and sent.name.strip()):
                raise BadInput("a new node has an id, a type and a name")
            values = {field.name: getattr(sent, field.name) for field in fields(kind)}
            ends = [name for name in ("id", "source", "target") if name in values and values[name] not in new]
            values |= {name: resolve_node(graph, values[name]) for name in ends}
            return kind(**values)

        proposal = GraphProposal(db_id, tuple(map(to_edit, edits)))
        planned = plan_change(graph, proposal.edits, by=who.name)
        source = ProposalSource(f"edit by {who.name}", "", who.name, str(proposal))
        stored = learned.ledger.propose(proposal, source)
        number = learned.review(db_id, who.name).accept(stored.id).change if who.role == "admin" else None
        made = proposal_json(learned.ledger.proposal(stored.id), who.name)
        return made | {"number": number, "warnings": list(map(str, planned.broken))}

    @router.delete("/{db_id}/{number}", response_model=DecisionSummary, responses=NOT_FOUND)
    def undo_edit(who: Admin, db_id: _Id, number: Annotated[int, Path(ge=0, le=2**31)]) -> Any:
        """Undo a change of a graph."""
        if db_id not in service.graphs.names():
            raise NotFound("graph")
        effect = learned.review(db_id, who.name).undo(number)
        change = effect and effect.change
        return {"number": change, "proposal": "", "action": "undo", "by": who.name, "undoes": number}

    return router


# Routes of drifting dimensions: contradictions as numbers, and a value that an admin proposes instead.

_Days = Annotated[int, Query(ge=1, le=MOST_DRIFT_DAYS, description="how far back what people said counts")]


class DriftSummary(BaseModel):
    """A value that people contradict: its direction, and how many contradict or confirm it.

    `p` is the probability of so many contradictions if the value is right. `quotes` are only the caller's own
    words.
    """

    graph: str
    node: str
    dimension: str
    value: float
    way: str
    against: int
    agreeing: int
    p: float
    quotes: list[str]


class DriftList(BaseModel):
    """Contradicted values, the most significant of each graph first.

    Also the number of values mentioned, and of messages older than their values.
    """

    days: int
    watched: int
    stale: int
    drifted: list[DriftSummary]


class DriftCorrection(BaseModel):
    """Another value for a dimension that people contradict. It waits for approval like any proposal."""

    model_config: ClassVar[ConfigDict] = {"extra": "forbid"}
    graph: Annotated[str, Field(max_length=100)]
    node: Annotated[str, Field(max_length=500)]
    dimension: Annotated[str, Field(max_length=100)]
    value: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


def drift_router(service: ExpertService, learned: LearnedGraphs) -> APIRouter:
    """Build the routes of drifting dimensions."""
    router = APIRouter(prefix="/api/experts/{id}/drift", tags=["learning"])

    @router.get("", response_model=DriftList, responses=NOT_FOUND)
    def get_drift(who: Admin, id: _Id, days: _Days = DRIFT_DAYS) -> Any:
        """Report the dimension values that people who talk to an expert contradict.

        Everybody's messages are read. The response has numbers, and quotes of the caller only.
        """
        reports = report_drift(service, id, days=days)
        drifted = [
            {
                **vars(each),
                "graph": graph,
                "quotes": [one.words for one in each.evidence if one.by == who.name],
            }
            for graph, report in reports.items()
            for each in report.found
        ]
        watched = sum(report.watched for report in reports.values())
        stale = sum(report.stale for report in reports.values())
        return replace_surrogates({"days": days, "watched": watched, "stale": stale, "drifted": drifted})

    @router.post("", response_model=ProposalSummary, status_code=201, responses=NOT_FOUND)
    def propose_correction(who: Admin, id: _Id, sent: DriftCorrection, days: _Days = DRIFT_DAYS) -> Any:
        """Propose another value where people contradict one. It waits for approval like any proposal."""
        report = report_drift(service, id, days=days).get(sent.graph)
        node_dimension = (sent.node, sent.dimension)
        found = report.found if report else ()
        contradicted = [each for each in found if (each.node, each.dimension) == node_dimension]
        if not contradicted:
            raise NotFound("contradicted value")
        proposal = contradiction_proposal(sent.graph, contradicted[0], sent.value)
        source = ProposalSource(f"drift by {who.name}", "", who.name, str(contradicted[0]))
        return proposal_json(learned.ledger.propose(proposal, source), who.name)

    return router
