"""Routes on dimensions that drift: what people contradict, told in numbers, and a value that an admin
proposes in its place.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from kgot_lab.experts.http.learning_routes import ProposalShown, shown_proposal
from kgot_lab.experts.http.responses import NOT_FOUND, Admin
from kgot_lab.experts.learning.contradictions import (
    DRIFT_DAYS,
    MOST_DRIFT_DAYS,
    contradiction_proposal,
    drift_of_expert,
)
from kgot_lab.experts.learning.ledger import ProposalSource
from kgot_lab.experts.learning.reviewing import ReviewQueue
from kgot_lab.experts.repository import NotFound
from kgot_lab.experts.service import ExpertService
from kgot_lab.text.surrogates import whole

_Id = Annotated[str, Path(max_length=200)]
_Days = Annotated[int, Query(ge=1, le=MOST_DRIFT_DAYS, description="how far back what people said counts")]


class DriftShown(BaseModel):
    """A value that people contradict: which way it should go, how many say so and how many agree with it.

    `p` is how likely so many would say so were the value right. `quotes` are the caller's own words, and nobody else's.
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


class DriftsShown(BaseModel):
    """What is contradicted, the surest of each graph first; of how many values people spoke, and how many words are older than theirs."""

    days: int
    watched: int
    stale: int
    drifted: list[DriftShown]


class DriftCorrection(BaseModel):
    """Another value for a dimension that people contradict, which then waits for approval as any proposal."""

    model_config: ClassVar[ConfigDict] = {"extra": "forbid"}
    graph: Annotated[str, Field(max_length=100)]
    node: Annotated[str, Field(max_length=500)]
    dimension: Annotated[str, Field(max_length=100)]
    value: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


def drift_router(service: ExpertService, review_queue: ReviewQueue) -> APIRouter:
    """The routes of dimensions that drift."""
    router = APIRouter(prefix="/api/experts/{id}/drift", tags=["learning"])

    @router.get("", response_model=DriftsShown, responses=NOT_FOUND)
    def get_drift(who: Admin, id: _Id, days: _Days = DRIFT_DAYS) -> Any:
        """The values of dimensions that people who talk to an expert contradict; it reads everybody's words
        and tells numbers.
        """
        reports = drift_of_expert(service, id, days=days)
        drifted = [
            {
                **vars(each),
                "graph": graph,
                "quotes": [one.words for one in each.evidence if one.by == who.name],
            }
            for graph, report in reports.items()
            for each in report.found
        ]
        watched, stale = (
            sum(getattr(each, name) for each in reports.values()) for name in ("watched", "stale")
        )
        return whole({"days": days, "watched": watched, "stale": stale, "drifted": drifted})

    @router.post("", response_model=ProposalShown, status_code=201, responses=NOT_FOUND)
    def mend_drift(who: Admin, id: _Id, sent: DriftCorrection, days: _Days = DRIFT_DAYS) -> Any:
        """Propose another value where people contradict one; it waits beside what people propose, until it is
        accepted.
        """
        report = drift_of_expert(service, id, days=days).get(sent.graph)
        asked = (sent.node, sent.dimension)
        found = [each for each in report.found if (each.node, each.dimension) == asked] if report else []
        if not found:
            raise NotFound("contradicted value")
        proposal = contradiction_proposal(sent.graph, found[0], sent.value)
        said = ProposalSource(f"drift by {who.name}", "", who.name, str(found[0]))
        return shown_proposal(review_queue.ledger.propose(proposal, said), who.name)

    return router
