"""Routes of sharing: export, import, scores, trials, the marketplace, and questions of peers."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Body, Path, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from kgot_lab.errors import LabError, UnknownName
from kgot_lab.experts.error_messages import format_for_log, log
from kgot_lab.experts.federation.delegation import (
    ASK_PATH,
    CAPABILITIES_PATH,
    DelegatedQuestion,
    Federation,
    RemoteAnswer,
    open_question,
)
from kgot_lab.experts.federation.marketplace import (
    HASH_MISMATCH,
    AdvertisedExpert,
    AdvertisedGraph,
    fetch_from_marketplace,
    list_marketplace,
    sign_capabilities,
)
from kgot_lab.experts.http.responses import NOT_FOUND, Admin, Caller, MarketUnavailable, StreamLimiter
from kgot_lab.experts.portable import EXPORT_KIND, adapt_expert, expert_scores, expert_to_json
from kgot_lab.experts.repository import NotFound, StoredTrial
from kgot_lab.experts.service import PEER_OWNER_PREFIX, ExpertService
from kgot_lab.experts.trials.verdict import TrialPlan, TrialVerdict, trial_with_verdict
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.text.cleaning import printable_line

_Id = Annotated[str, Path(max_length=200)]
_Json = dict[str, Any]


_OwnGraphs = Annotated[dict[str, Annotated[str, Field(max_length=100)]], Field(max_length=20)]


class _ImportOptions(BaseModel):
    model_config: ClassVar[ConfigDict] = {"extra": "forbid"}
    graphs: _OwnGraphs = {}
    dry: bool = False


class ImportRequest(_ImportOptions):
    """An exported expert. The result of an export can be sent unchanged.

    `graphs` maps its graphs to those of this server, and `dry` only checks whether it fits.
    """

    expert: _Json

    @model_validator(mode="before")
    @classmethod
    def _wrap_export(cls, data: Any) -> Any:
        return {"expert": data} if isinstance(data, Mapping) and data.get("kind") == EXPORT_KIND else data


class ImportedExpert(BaseModel):
    id: str | None
    name: str
    warnings: list[str]


class TrialRequest(BaseModel):
    """Two changes of an expert ({} leaves it unchanged), and the plan stated before the trial begins."""

    model_config: ClassVar[ConfigDict] = {"extra": "forbid"}
    a: _Json = {}
    b: _Json
    primary: Literal[
        "thumbs", "citation use", "false citations", "seconds to first token", "intent accuracy"
    ] = "thumbs"
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    least: Annotated[int, Field(ge=2, le=1_000_000)] = 30


class TrialSummary(BaseModel):
    id: str
    begun: str
    ended: str | None
    decision: str = "undecided"
    declined: list[str] = ["no answer is settled yet"]
    costs: list[str] = []
    correction: str = ""
    comparisons: dict[str, _Json] = {}


def _import_expert(service: ExpertService, data: object, request: _ImportOptions) -> _Json:
    """Import an exported expert, or only check whether it fits."""
    adapted = adapt_expert(data, service, graphs=request.graphs)
    expert = None if request.dry else service.add(adapted.config)
    return {"id": expert and expert.id, "name": adapted.config.name, "warnings": list(adapted.warnings)}


def sharing_router(service: ExpertService) -> APIRouter:
    """Build the routes for sharing experts."""
    router = APIRouter(prefix="/api", tags=["sharing"])

    @router.get("/experts/{id}/export", response_model=_Json, responses=NOT_FOUND)
    def export_expert(who: Caller, id: _Id) -> Any:
        """Export an expert as portable JSON with a hash, without its graphs."""
        return expert_to_json(service.expert(id), service.graphs)

    @router.post("/import", response_model=ImportedExpert, status_code=201)
    def import_expert(who: Admin, sent: Annotated[ImportRequest, Body()]) -> Any:
        """Import an exported expert, if it fits. Missing parts are reported."""
        return _import_expert(service, sent.expert, sent)

    @router.get("/experts/{id}/scores", response_model=_Json, responses=NOT_FOUND)
    def get_scores(who: Caller, id: _Id) -> Any:
        """Return the benchmark scores of an expert, and the outcomes of its answers so far."""
        return expert_scores(service, id)

    return router


def trials_router(service: ExpertService) -> APIRouter:
    """Build the routes for comparing configurations of an expert."""
    router = APIRouter(prefix="/api/experts/{id}/trials", tags=["trials"])

    @router.get("", response_model=list[TrialSummary], responses=NOT_FOUND)
    def list_trials(who: Caller, id: _Id) -> Any:
        """List the trials of an expert, and what each shows so far."""
        service.expert(id)
        return [_trial_json(service, id, trial) for trial in service.tables.trials(id)]

    @router.post("", response_model=TrialSummary, status_code=201, responses=NOT_FOUND)
    def start_trial(who: Admin, id: _Id, sent: TrialRequest) -> Any:
        """Start a trial of two configurations, on new and existing conversations alike."""
        plan = TrialPlan(sent.primary, sent.alpha, sent.least)
        return _trial_json(service, id, service.begin_trial(id, sent.a, sent.b, plan))

    @router.delete("/{tid}", response_model=TrialSummary, responses=NOT_FOUND)
    def end_trial(who: Admin, id: _Id, tid: _Id) -> Any:
        """Stop a trial. Its results are kept."""
        trial_with_verdict(service.tables, id, tid, service.tables.now())
        service.tables.end_trial(tid)
        (trial,) = (trial for trial in service.tables.trials(id) if trial.id == tid)
        return _trial_json(service, id, trial)

    return router


def _trial_json(service: ExpertService, expert: str, trial: StoredTrial) -> _Json:
    verdict = trial_with_verdict(service.tables, expert, trial.id, service.tables.now())[1]
    begun, ended = trial.begun.isoformat(), trial.ended and trial.ended.isoformat()
    return {"id": trial.id, "begun": begun, "ended": ended} | (_verdict_json(verdict) if verdict else {})


def _verdict_json(verdict: TrialVerdict) -> _Json:
    rows, names = {}, ("n_a", "n_b", "difference", "low", "high")
    for name, row in verdict.comparisons.items():
        fields = {field: getattr(row, field) for field in names}
        rows[name] = {"a": row.mean_a, "b": row.mean_b, **fields, "p": verdict.corrected.get(name, row.p)}
    return {
        "decision": verdict.decision,
        "declined": [each.text for each in verdict.declined],
        "costs": list(verdict.costs),
        "correction": verdict.correction,
        "comparisons": rows,
    }


# Routes of the marketplace configured for this server: its offers, and importing an expert. No request names
# a location.

_MARKET_TIMEOUT = 10.0  # time limit of the marketplace
_MARKET_UNUSABLE = "the marketplace of this server gives nothing that can be used: the owner of the server finds the reason in its log"


class OfferedExpert(BaseModel):
    """An expert of the marketplace: the name to fetch it by, and the scores its publisher measured."""

    name: str
    description: str
    sha256: str
    scores: dict[str, float] | None


class MarketImportRequest(_ImportOptions):
    """The name of an expert of the marketplace.

    `graphs` maps its graphs to those of this server, and `dry` only checks whether it fits.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]


def marketplace_router(service: ExpertService, market: pathlib.Path | str) -> APIRouter:
    """Build the routes of a marketplace: a folder or an address."""
    router = APIRouter(prefix="/api/market", tags=["sharing"])

    @router.get("", response_model=list[OfferedExpert])
    def list_market(who: Admin) -> Any:
        """List the experts of the marketplace of this server."""
        try:
            return [each.to_json() for each in list_marketplace(market, timeout=_MARKET_TIMEOUT)]
        except LabError as error:
            raise _market_error(error) from None

    @router.post("/import", response_model=ImportedExpert, status_code=201, responses=NOT_FOUND)
    def import_from_market(who: Admin, sent: Annotated[MarketImportRequest, Body()]) -> Any:
        """Import an expert of the marketplace, if its hash is that of the index and it fits.

        Missing parts are reported.
        """
        try:
            data = fetch_from_marketplace(market, sent.name, timeout=_MARKET_TIMEOUT)
        except UnknownName:
            raise NotFound("expert in the marketplace") from None
        except LabError as error:
            raise _market_error(error) from None
        return _import_expert(service, data, sent)

    return router


def _market_error(error: LabError) -> MarketUnavailable:
    """Log a failure of the marketplace and return the error for the caller.

    Its message says that a hash does not match, or else nothing that reveals the location of the marketplace.
    """
    log.warning("the marketplace: %s: %s", type(error).__name__, format_for_log(error))
    return MarketUnavailable(HASH_MISMATCH if str(error) == HASH_MISMATCH else _MARKET_UNUSABLE)


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
        question = await run_in_threadpool(open_question, await request.body(), federation)
        answer = await answer_peer(service, limiter, question)
        reply = "answer", answer.to_json(), question.envelope
        sealed = await run_in_threadpool(federation.sign_reply, *reply)
        return Response(sealed, media_type="application/json")

    @router.post(CAPABILITIES_PATH)
    async def capabilities(request: Request) -> Response:
        data = await request.body()
        reply = await run_in_threadpool(
            lambda: sign_capabilities(data, federation, advertise_experts(service))
        )
        return Response(reply, media_type="application/json")

    return router


async def answer_peer(
    service: ExpertService, limiter: StreamLimiter, question: DelegatedQuestion
) -> RemoteAnswer:
    """Ask an expert the question of a peer, and return its answer, or the reason without internals.

    Conversations of peers are separate from all others.
    """
    expert, owner = question.asked.expert, f"{PEER_OWNER_PREFIX}{question.peer.name}"
    try:
        _, stream = await limiter.start_turn(partial(service.ask, expert, owner, question.asked.question))
        text, _, done = await stream.collect()
    except NotFound:
        return RemoteAnswer(expert=expert, answer=None, reason="there is no such expert here")
    except LabError:
        return RemoteAnswer(expert=expert, answer=None, reason="the expert could not answer")
    if not text.strip():
        return RemoteAnswer(expert=expert, answer=None, reason="the expert said nothing")
    return RemoteAnswer(expert=expert, answer=text, sources=tuple(node.handle for node in done.cited))


def advertise_experts(service: ExpertService) -> list[AdvertisedExpert]:
    """Describe the experts for peers: the purpose of each, and the sizes of its graphs.

    A graph that is still being read at the start is described without topics, with no node.
    """
    experts, unread = [], PropertyGraph.of([], [])
    for expert in service.tables.experts():
        graphs = {
            name: unread if name in service.loading else service.graphs.graph(name) for name in expert.graphs
        }
        limit = _MOST_TOPICS // len(graphs)
        topics = [name for graph in graphs.values() if graph for name in _most_connected_names(graph, limit)]
        sizes = tuple(
            AdvertisedGraph(name=name, nodes=len(graph), edges=len(graph.edge_keys))
            for name, graph in graphs.items()
        )
        name, description = " ".join(expert.name.split()), expert.description[:2000]
        experts.append(
            AdvertisedExpert(
                id=expert.id,
                name=name,
                description=description,
                topics=tuple(dict.fromkeys(topics)),
                graphs=sizes,
                schema_version=expert.schema_version,
            )
        )
    return experts


def _most_connected_names(graph: PropertyGraph, limit: int) -> list[str]:
    """Return the names of the nodes with the most edges, as the topics of a graph."""
    index = graph_index(graph)
    rows = sorted(range(len(graph)), key=lambda row: (-int(index.degrees[row]), index.names[row]))[:limit]
    return [printable_line(" ".join(index.names[row].split()))[:200] for row in rows]
