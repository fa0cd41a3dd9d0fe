"""The routes by which instances ask each other: what is signed is opened, answered and signed; a question
from afar is never passed on.
"""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from kgot_lab.errors import LabError, RefusedEnvelope
from kgot_lab.experts.federation.delegation import (
    ASK_PATH,
    CAPABILITIES_PATH,
    DelegatedQuestion,
    Federation,
    RemoteAnswer,
    accepted_question,
    refusal_json,
    refusal_status,
    signed_answer,
)
from kgot_lab.experts.federation.marketplace import AdvertisedExpert, AdvertisedGraph, signed_capabilities
from kgot_lab.experts.http.responses import StreamLimiter
from kgot_lab.experts.repository import NotFound
from kgot_lab.experts.service import PEER_OWNER, ExpertService
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import index_of
from kgot_lab.text.harmless import harmless

_MOST_TOPICS = 50


def federation_router(service: ExpertService, limiter: StreamLimiter, federation: Federation) -> APIRouter:
    """The two routes of a federation; they are no part of the API that is described, since only signed bytes
    pass through.
    """
    router = APIRouter(include_in_schema=False)

    @router.post(ASK_PATH)
    async def ask(request: Request) -> Response:
        data = await request.body()
        try:
            question = await run_in_threadpool(accepted_question, data, federation)
        except RefusedEnvelope as error:
            return JSONResponse(refusal_json(error), refusal_status(error))
        said = await answered_for_peer(service, limiter, question)
        return Response(
            await run_in_threadpool(signed_answer, said, question, federation), media_type="application/json"
        )

    @router.post(CAPABILITIES_PATH)
    async def capabilities(request: Request) -> Response:
        data = await request.body()
        try:
            told = await run_in_threadpool(lambda: signed_capabilities(data, federation, advertised(service)))
        except RefusedEnvelope as error:
            return JSONResponse(refusal_json(error), refusal_status(error))
        return Response(told, media_type="application/json")

    return router


async def answered_for_peer(
    service: ExpertService, limiter: StreamLimiter, question: DelegatedQuestion
) -> RemoteAnswer:
    """What an expert answers to a peer, whose conversations are apart from all others, or why there is no
    answer, without the inside.
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
    """The experts as they are offered to peers: what each is for, and how large its graphs are."""
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
    """The names of the best linked nodes, which say what a graph is about."""
    index = index_of(graph)
    rows = sorted(range(len(graph)), key=lambda row: (-int(index.degrees[row]), index.names[row]))[:most]
    return [harmless(" ".join(index.names[row].split()))[:200] for row in rows]
