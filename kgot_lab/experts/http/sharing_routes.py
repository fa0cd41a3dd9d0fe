"""Routes of sharing: export, import, scores, trials, spans, the marketplace, and questions of peers."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Body, Path, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from kgot_lab.errors import LabError, RefusedEnvelope, UnknownName
from kgot_lab.experts.error_messages import log, reason_logged
from kgot_lab.experts.federation.delegation import (
    ASK_PATH,
    CAPABILITIES_PATH,
    DelegatedQuestion,
    Federation,
    RemoteAnswer,
    open_question,
    refusal_json,
    refusal_status,
    sign_answer,
)
from kgot_lab.experts.federation.marketplace import (
    HASH_MISMATCH,
    AdvertisedExpert,
    AdvertisedGraph,
    fetch_from_marketplace,
    list_marketplace,
    sign_capabilities,
)
from kgot_lab.experts.http.responses import NOT_FOUND, Admin, Caller, MarketAway, StreamLimiter
from kgot_lab.experts.portable import KIND, adapt_expert, expert_scores, expert_to_json, genai_spans
from kgot_lab.experts.repository import NotFound, StoredTrial
from kgot_lab.experts.service import PEER_OWNER, ExpertService
from kgot_lab.experts.trials.verdict import TrialPlan, TrialVerdict, verdict_on
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import index_of
from kgot_lab.text.cleaning import printable_line

_Id = Annotated[str, Path(max_length=200)]
_Json = dict[str, Any]


_OwnGraphs = Annotated[dict[str, Annotated[str, Field(max_length=100)]], Field(max_length=20)]


class ImportSent(BaseModel):
    """An exported expert. The result of an export can be sent unchanged.

    `graphs` maps its graphs to those of this server, and `dry` only checks whether it fits.
    """

    model_config: ClassVar[ConfigDict] = {"extra": "forbid"}
    expert: _Json
    graphs: _OwnGraphs = {}
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
    """Two changes of an expert ({} leaves it unchanged), and the plan stated before the trial begins."""

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


def _imported(service: ExpertService, told: object, sent: ImportSent | MarketImport) -> _Json:
    """Import an exported expert, or only check whether it fits."""
    found = adapt_expert(told, service, graphs=sent.graphs)
    made = None if sent.dry else service.add(found.config)
    return {"id": made and made.id, "name": found.config.name, "warnings": list(found.warnings)}


def sharing_router(service: ExpertService) -> APIRouter:
    """Build the routes for sharing experts."""
    router = APIRouter(prefix="/api", tags=["sharing"])

    @router.get("/experts/{id}/export", response_model=_Json, responses=NOT_FOUND)
    def export_expert(who: Caller, id: _Id) -> Any:
        """Export an expert as portable JSON with a hash, without its graphs."""
        return expert_to_json(service.expert(id), service.graphs)

    @router.post("/import", response_model=ImportedExpert, status_code=201)
    def import_expert(who: Admin, sent: Annotated[ImportSent, Body()]) -> Any:
        """Import an exported expert, if it fits. Missing parts are reported."""
        return _imported(service, sent.expert, sent)

    @router.get("/experts/{id}/scores", response_model=_Json, responses=NOT_FOUND)
    def get_scores(who: Caller, id: _Id) -> Any:
        """Return the benchmark scores of an expert, and the outcomes of its answers so far."""
        return expert_scores(service, id)

    @router.get("/experts/{id}/conversations/{cid}/spans", response_model=_Json, responses=NOT_FOUND)
    def get_spans(who: Caller, id: _Id, cid: _Id) -> Any:
        """Return a conversation as OpenTelemetry spans (OTLP JSON), without its text."""
        return genai_spans(service.expert(id), *service.conversation(cid, id, who.name))

    return router


def trials_router(service: ExpertService) -> APIRouter:
    """Build the routes for comparing configurations of an expert."""
    router = APIRouter(prefix="/api/experts/{id}/trials", tags=["trials"])

    @router.get("", response_model=list[TrialShown], responses=NOT_FOUND)
    def list_trials(who: Caller, id: _Id) -> Any:
        """List the trials of an expert, and what each shows so far."""
        service.expert(id)
        return [_shown(service, id, each) for each in service.tables.trials(id)]

    @router.post("", response_model=TrialShown, status_code=201, responses=NOT_FOUND)
    def start_trial(who: Admin, id: _Id, sent: TrialSent) -> Any:
        """Start a trial of two configurations, on new and existing conversations alike."""
        plan = TrialPlan(sent.primary, sent.alpha, sent.least)
        return _shown(service, id, service.begin_trial(id, sent.a, sent.b, plan))

    @router.delete("/{tid}", response_model=TrialShown, responses=NOT_FOUND)
    def end_trial(who: Admin, id: _Id, tid: _Id) -> Any:
        """Stop a trial. Its results are kept."""
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


# Routes of the marketplace configured for this server: its offers, and importing an expert. No request names
# a location.

_SECONDS = 10.0  # time limit of the marketplace
_AWAY = "the marketplace of this server gives nothing that can be used: the owner of the server finds the reason in its log"


class OfferedExpert(BaseModel):
    """An expert of the marketplace: the name to fetch it by, and the scores its publisher measured."""

    name: str
    description: str
    sha256: str
    scores: dict[str, float] | None


class MarketImport(BaseModel):
    """The name of an expert of the marketplace.

    `graphs` maps its graphs to those of this server, and `dry` only checks whether it fits.
    """

    model_config: ClassVar[ConfigDict] = {"extra": "forbid"}
    name: Annotated[str, Field(min_length=1, max_length=200)]
    graphs: _OwnGraphs = {}
    dry: bool = False


def trading_router(service: ExpertService, market: pathlib.Path | str) -> APIRouter:
    """Build the routes of a marketplace: a folder or an address."""
    router = APIRouter(prefix="/api/market", tags=["sharing"])

    @router.get("", response_model=list[OfferedExpert])
    def list_market(who: Admin) -> Any:
        """List the experts of the marketplace of this server."""
        try:
            return [each.to_json() for each in list_marketplace(market, timeout=_SECONDS)]
        except LabError as error:
            raise _away(error) from None

    @router.post("/import", response_model=ImportedExpert, status_code=201, responses=NOT_FOUND)
    def import_from_market(who: Admin, sent: Annotated[MarketImport, Body()]) -> Any:
        """Import an expert of the marketplace, if its hash is that of the index and it fits.

        Missing parts are reported.
        """
        try:
            told = fetch_from_marketplace(market, sent.name, timeout=_SECONDS)
        except UnknownName:
            raise NotFound("expert in the marketplace") from None
        except LabError as error:
            raise _away(error) from None
        return _imported(service, told, sent)

    return router


def _away(error: LabError) -> MarketAway:
    """Log a failure of the marketplace and return the error for the caller.

    Its message says that a hash does not match, or else nothing that reveals the location of the marketplace.
    """
    log.warning("the marketplace: %s: %s", type(error).__name__, reason_logged(error))
    return MarketAway(HASH_MISMATCH if str(error) == HASH_MISMATCH else _AWAY)


# The routes by which instances ask each other. Messages are opened, answered and signed, and a remote
# question is never forwarded.

_MOST_TOPICS = 50


def federation_router(service: ExpertService, limiter: StreamLimiter, federation: Federation) -> APIRouter:
    """Build the two routes of a federation.

    They are not part of the described API, because only signed bytes are exchanged.
    """
    router = APIRouter(include_in_schema=False)

    @router.post(ASK_PATH)
    async def ask(request: Request) -> Response:
        data = await request.body()
        try:
            question = await run_in_threadpool(open_question, data, federation)
        except RefusedEnvelope as error:
            return JSONResponse(refusal_json(error), refusal_status(error))
        said = await answered_for_peer(service, limiter, question)
        return Response(
            await run_in_threadpool(sign_answer, said, question, federation), media_type="application/json"
        )

    @router.post(CAPABILITIES_PATH)
    async def capabilities(request: Request) -> Response:
        data = await request.body()
        try:
            told = await run_in_threadpool(lambda: sign_capabilities(data, federation, advertised(service)))
        except RefusedEnvelope as error:
            return JSONResponse(refusal_json(error), refusal_status(error))
        return Response(told, media_type="application/json")

    return router


async def answered_for_peer(
    service: ExpertService, limiter: StreamLimiter, question: DelegatedQuestion
) -> RemoteAnswer:
    """Ask an expert the question of a peer, and return its answer, or the reason without internals.

    Conversations of peers are separate from all others.
    """
    expert, owner = question.asked.expert, f"{PEER_OWNER}{question.peer.name}"
    try:
        _, pour = await limiter.begin(partial(service.ask, expert, owner, question.asked.question))
        text, _, done = await pour.whole()
    except NotFound:
        return RemoteAnswer(expert=expert, answer=None, reason="there is no such expert here")
    except LabError:
        return RemoteAnswer(expert=expert, answer=None, reason="the expert could not answer")
    if not text.strip():
        return RemoteAnswer(expert=expert, answer=None, reason="the expert said nothing")
    return RemoteAnswer(expert=expert, answer=text, sources=tuple(node.handle for node in done.cited))


def advertised(service: ExpertService) -> list[AdvertisedExpert]:
    """Describe the experts for peers: the purpose of each, and the sizes of its graphs."""
    offered = []
    for each in service.tables.experts():
        graphs = {name: service.graphs.graph(name) for name in each.graphs}
        topics = [
            name for graph in graphs.values() for name in _best_linked(graph, _MOST_TOPICS // len(graphs))
        ]
        sizes = tuple(
            AdvertisedGraph(name=name, nodes=len(graph), edges=len(graph.edge_keys))
            for name, graph in graphs.items()
        )
        name, about = " ".join(each.name.split()), each.description[:2000]
        offered.append(
            AdvertisedExpert(
                id=each.id,
                name=name,
                description=about,
                topics=tuple(dict.fromkeys(topics)),
                graphs=sizes,
                schema_version=each.schema_version,
            )
        )
    return offered


def _best_linked(graph: PropertyGraph, most: int) -> list[str]:
    """Return the names of the nodes with the most edges, as the topics of a graph."""
    index = index_of(graph)
    rows = sorted(range(len(graph)), key=lambda row: (-int(index.degrees[row]), index.names[row]))[:most]
    return [printable_line(" ".join(index.names[row].split()))[:200] for row in rows]
