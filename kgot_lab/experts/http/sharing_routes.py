"""Routes for experts that travel and are compared: export, import, scores, trials, spans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Body, Path
from pydantic import BaseModel, ConfigDict, Field, model_validator

from kgot_lab.experts.http.responses import NOT_FOUND, Admin, Caller
from kgot_lab.experts.portable import KIND, expert_scores, exported, genai_spans, taken
from kgot_lab.experts.repository import StoredTrial
from kgot_lab.experts.service import ExpertService
from kgot_lab.experts.trials.verdict import TrialPlan, TrialVerdict, verdict_on

_Id = Annotated[str, Path(max_length=200)]
_Json = dict[str, Any]


class ImportSent(BaseModel):
    """An exported expert; `graphs` says which graph of this server stands for one of its own, `dry` only looks whether it fits.

    What an export gave may be sent as it is.
    """

    model_config: ClassVar[ConfigDict] = {"extra": "forbid"}
    expert: _Json
    graphs: Annotated[dict[str, Annotated[str, Field(max_length=100)]], Field(max_length=20)] = {}
    dry: bool = False

    @model_validator(mode="before")
    @classmethod
    def _of_export(cls, told: Any) -> Any:
        return {"expert": told} if isinstance(told, Mapping) and told.get("kind") == KIND else told


class ImportedExpert(BaseModel):
    id: str | None
    name: str
    warnings: list[str]


class TrialSent(BaseModel):
    """Two changes of an expert ({}: as it is), and what is stated before the trial begins."""

    model_config: ClassVar[ConfigDict] = {"extra": "forbid"}
    a: _Json = {}
    b: _Json
    primary: Literal[
        "thumbs", "citation use", "false citations", "seconds to first token", "intent accuracy"
    ] = "thumbs"
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    least: Annotated[int, Field(ge=2, le=1_000_000)] = 30


class TrialShown(BaseModel):
    id: str
    begun: str
    ended: str | None
    decision: str
    declined: list[str]
    costs: list[str]
    correction: str
    comparisons: dict[str, _Json]


def sharing_router(service: ExpertService) -> APIRouter:
    """The routes of experts that are shared."""
    router = APIRouter(prefix="/api", tags=["sharing"])

    @router.get("/experts/{id}/export", response_model=_Json, responses=NOT_FOUND)
    def export_expert(who: Caller, id: _Id) -> Any:
        """An expert as portable JSON, without its graphs, with a hash."""
        return exported(service.expert(id), service.graphs)

    @router.post("/import", response_model=ImportedExpert, status_code=201)
    def import_expert(who: Admin, sent: Annotated[ImportSent, Body()]) -> Any:
        """Take an exported expert in, if it fits; what is lacking is told."""
        found = taken(sent.expert, service, graphs=sent.graphs)
        made = None if sent.dry else service.add(found.config)
        return {"id": made and made.id, "name": found.config.name, "warnings": list(found.warnings)}

    @router.get("/experts/{id}/scores", response_model=_Json, responses=NOT_FOUND)
    def get_scores(who: Caller, id: _Id) -> Any:
        """What was measured of an expert, and what came of its answers so far."""
        return expert_scores(service, id)

    @router.get("/experts/{id}/conversations/{cid}/spans", response_model=_Json, responses=NOT_FOUND)
    def get_spans(who: Caller, id: _Id, cid: _Id) -> Any:
        """A conversation as OpenTelemetry spans (OTLP JSON), without words."""
        return genai_spans(service.expert(id), *service.conversation(cid, id, who.name))

    return router


def trials_router(service: ExpertService) -> APIRouter:
    """The routes of experts that are compared."""
    router = APIRouter(prefix="/api/experts/{id}/trials", tags=["trials"])

    @router.get("", response_model=list[TrialShown], responses=NOT_FOUND)
    def list_trials(who: Caller, id: _Id) -> Any:
        """The trials of an expert, and what each shows so far."""
        service.expert(id)
        return [_shown(service, id, each) for each in service.tables.trials(id)]

    @router.post("", response_model=TrialShown, status_code=201, responses=NOT_FOUND)
    def start_trial(who: Admin, id: _Id, sent: TrialSent) -> Any:
        """Begin a trial of two configurations on new and old conversations alike."""
        plan = TrialPlan(sent.primary, sent.alpha, sent.least)
        return _shown(service, id, service.begin_trial(id, sent.a, sent.b, plan))

    @router.delete("/{tid}", response_model=TrialShown, responses=NOT_FOUND)
    def end_trial(who: Admin, id: _Id, tid: _Id) -> Any:
        """End a trial; what it showed stays."""
        verdict_on(service.tables, id, tid, service.tables.now())
        service.tables.end_trial(tid)
        (trial,) = (each for each in service.tables.trials(id) if each.id == tid)
        return _shown(service, id, trial)

    return router


def _shown(service: ExpertService, expert: str, trial: StoredTrial) -> _Json:
    verdict = verdict_on(service.tables, expert, trial.id, service.tables.now())[1]
    about = {
        "id": trial.id,
        "begun": trial.begun.isoformat(),
        "ended": trial.ended and trial.ended.isoformat(),
    }
    return about | (_verdict(verdict) if verdict else _NOTHING_YET)


_NOTHING_YET: _Json = {
    "decision": "undecided",
    "declined": ["no answer is settled yet"],
    "costs": [],
    "correction": "",
    "comparisons": {},
}


def _verdict(verdict: TrialVerdict) -> _Json:
    rows = {
        name: {
            "a": row.mean_a,
            "b": row.mean_b,
            **{field: getattr(row, field) for field in ("n_a", "n_b", "difference", "low", "high")},
            "p": verdict.corrected.get(name, row.p),
        }
        for name, row in verdict.comparisons.items()
    }
    return {
        "decision": verdict.decision,
        "declined": [each.text for each in verdict.declined],
        "costs": list(verdict.costs),
        "correction": verdict.correction,
        "comparisons": rows,
    }
