"""The routes by which instances ask each other: what is signed is opened, answered and signed; a question from afar is never passed on."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from kgot_lab.errors import LLMError, RefusedEnvelope, UnknownName
from kgot_lab.experts.chat.happening import ChatDone, ChatFailed, TokenTold
from kgot_lab.experts.delegation.answering import (
    ASK_PATH,
    CAPABILITIES_PATH,
    Federation,
    answered_question,
    refusal_json,
    refusal_status,
)
from kgot_lab.experts.delegation.capabilities import AdvertisedExpert, AdvertisedGraph, signed_capabilities
from kgot_lab.experts.delegation.messages import RemoteAnswer, RemoteQuestion
from kgot_lab.experts.delegation.peers import Peer
from kgot_lab.experts.keeping import NotThere
from kgot_lab.experts.office import PEER_OWNER, ExpertOffice
from kgot_lab.graph import PropertyGraph
from kgot_lab.methods.index import index_of
from kgot_lab.text.harmless import harmless

_MOST_TOPICS = 50


def federation_router(office: ExpertOffice, federation: Federation) -> APIRouter:
    """The two routes of a federation; they are no part of the API that is described, since only signed bytes pass through."""
    router = APIRouter(include_in_schema=False)

    @router.post(ASK_PATH)
    async def ask(request: Request) -> Response:
        data = await request.body()
        answer = partial(answered_for_peer, office)
        return await run_in_threadpool(_signed, lambda: answered_question(data, federation, answer))

    @router.post(CAPABILITIES_PATH)
    async def capabilities(request: Request) -> Response:
        data = await request.body()
        return await run_in_threadpool(_signed, lambda: signed_capabilities(data, federation, advertised(office)))

    return router


def answered_for_peer(office: ExpertOffice, asked: RemoteQuestion, by: Peer) -> RemoteAnswer:
    """What an expert answers to a peer, whose conversations are apart from all others; raises UnknownName and LLMError."""
    try:
        turn = office.ask(asked.expert, f"{PEER_OWNER}{by.name}", asked.question)
    except NotThere:
        raise UnknownName("expert", asked.expert, ()) from None
    text, done = "", ChatDone("")
    for event in turn.events():
        if isinstance(event, TokenTold):
            text += event.content
        elif isinstance(event, ChatFailed):
            raise LLMError(event.content)
        elif isinstance(event, ChatDone):
            done = event
    if not text.strip():
        return RemoteAnswer(asked.expert, None, reason="the expert said nothing")
    return RemoteAnswer(asked.expert, text, tuple(node.handle for node in done.cited))


def advertised(office: ExpertOffice) -> list[AdvertisedExpert]:
    """The experts as they are offered to peers: what each is for, and how large its graphs are."""
    offered = []
    for each in office.tables.experts():
        graphs = {name: office.graphs.graph(name) for name in each.graphs}
        topics = [name for graph in graphs.values() for name in _best_linked(graph, _MOST_TOPICS // len(graphs))]
        sizes = tuple(AdvertisedGraph(name, len(graph), len(graph.edge_keys)) for name, graph in graphs.items())
        name, about = " ".join(each.name.split()), each.description[:2000]
        offered.append(AdvertisedExpert(each.id, name, about, tuple(dict.fromkeys(topics)), sizes, each.schema_version))
    return offered


def _best_linked(graph: PropertyGraph, most: int) -> list[str]:
    """The names of the best linked nodes, which say what a graph is about."""
    index = index_of(graph)
    rows = sorted(range(len(graph)), key=lambda row: (-int(index.degrees[row]), index.names[row]))[:most]
    return [harmless(" ".join(index.names[row].split()))[:200] for row in rows]


def _signed(make: object) -> Response:
    try:
        return Response(make(), media_type="application/json")  # type: ignore[operator]
    except RefusedEnvelope as error:
        return JSONResponse(refusal_json(error), refusal_status(error))
