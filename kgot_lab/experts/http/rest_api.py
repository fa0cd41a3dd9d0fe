"""The REST API: experts, chats with them as server-sent events, conversations, and direct graph methods."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Body, Path, Query, Response

from kgot_lab.errors import UnknownName
from kgot_lab.experts.chat.chat_events import ThoughtEvent
from kgot_lab.experts.expert import Expert
from kgot_lab.experts.http import schemas
from kgot_lab.experts.http.responses import (
    NOT_FOUND,
    Admin,
    Caller,
    EventStream,
    EventStreamResponse,
    ExpertId,
    StreamLimiter,
    event_frame,
)
from kgot_lab.experts.neighbourhood import lay_out_neighbourhood
from kgot_lab.experts.repository import ALL_EXPERTS, NotFound
from kgot_lab.experts.service import ExpertService
from kgot_lab.kgos.methods.compose_for import Composition, compose_for
from kgot_lab.kgos.methods.impact_analysis import impact_analysis
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.kgos.methods.ranking import similar_to
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.kgos.schemas.dimensions import DIMENSION_CATEGORIES, DIMENSIONS
from kgot_lab.retrieval.fusion import normalised_weights
from kgot_lab.text.cleaning import replace_surrogates

if TYPE_CHECKING:
    from kgot_lab.graph import PropertyGraph

_ConversationId = Annotated[str, Path(max_length=200, description="the id of a conversation")]
_GraphName = Annotated[str, Path(max_length=100, description="the id of a graph", examples=["cookbook"])]
_NODE_EXAMPLES = ["technique:prompt_caching"]
_NodeId = Annotated[str, Path(max_length=500, description="the id of a node", examples=_NODE_EXAMPLES)]
_Limit = Annotated[int, Query(ge=1, le=200)]
_Offset = Annotated[int, Query(ge=0, le=10**9)]
_CONVERSATION = "/experts/{id}/conversations/{cid}"
_OPINION = f"{_CONVERSATION}/messages/{{mid}}/opinion"
_EXAMPLE_EXPERT: dict[str, Any] = {
    "name": "Python Expert",
    "description": "Answers questions on building applications on language models",
    "kg_db_id": "cookbook",
    "persona": {"name": "Cook", "instructions": "You explain trade-offs.", "greeting": "Ask me anything."},
    "retrieval": {"methods": ["hybrid", "intent"], "alpha": 0.35, "beta": 0.4, "gamma": 0.15, "delta": 0.1},
    "custom_goal_mappings": {"debug": {"boost_types": ["has_limitation", "has_workaround"]}},
}
_Json = dict[str, Any]
_PAGE_SIZE = 50  # experts of a page by default


def rest_routers(service: ExpertService, limiter: StreamLimiter) -> tuple[APIRouter, ...]:
    """Build the routes under /api: experts, chats, graphs."""
    return _expert_routes(service), _chat_routes(service, limiter), _graph_routes(service)


def _expert_routes(service: ExpertService) -> APIRouter:
    router = APIRouter(prefix="/api/experts", tags=["experts"])

    @router.get("", response_model=list[schemas.ExpertSummary], responses=schemas.PAGED)
    def list_experts(
        who: Caller,
        response: Response,
        limit: Annotated[int | None, Query(ge=1, le=200, description="by default all")] = None,
        after: Annotated[str | None, Query(max_length=200, description="the last expert's id before")] = None,
    ) -> Any:
        """List experts, the oldest first, with the number of the caller's conversations with each.

        Returns all, or a page with the address of the next one in `Link`.
        """
        size = limit or (ALL_EXPERTS if after is None else _PAGE_SIZE)
        page, has_more = service.experts(who.name, size, after)
        if has_more:
            last = quote(str(page[-1]["id"]), safe="")
            response.headers["link"] = f'</api/experts?limit={size}&after={last}>; rel="next"'
        return page

    @router.post("", response_model=schemas.CreatedExpert, status_code=201)
    def create_expert(who: Admin, data: Annotated[_Json, Body(examples=[_EXAMPLE_EXPERT])]) -> Any:
        """Create an expert."""
        return service.create(data)

    @router.get("/{id}", response_model=schemas.ExpertDetails, responses=NOT_FOUND)
    def get_expert(who: Caller, id: ExpertId) -> Any:
        """Return an expert with all its settings."""
        return _expert_details(service.expert(id))

    @router.put("/{id}", response_model=schemas.ExpertDetails, responses=NOT_FOUND)
    def update_expert(
        who: Admin,
        id: ExpertId,
        change: Annotated[_Json, Body(examples=[{"retrieval": {"alpha": 0.3, "delta": 0.2}}])],
    ) -> Any:
        """Change some fields of an expert.

        Objects are merged, lists are replaced, and null resets a field to its default.
        """
        return _expert_details(service.update(id, change))

    @router.delete("/{id}", response_model=schemas.DeletedExpert, responses=NOT_FOUND)
    def delete_expert(who: Admin, id: ExpertId, delete_conversations: bool = False) -> Any:
        """Delete an expert, and on request all its conversations, which otherwise remain their owners'.

        Its id is never used again.
        """
        count = service.delete(id, conversations=delete_conversations)
        return {"deleted": True, "conversations_deleted": count}

    created: _Json = {"response_model": schemas.CreatedExpert, "status_code": 201}

    @router.post("/{id}/duplicate", responses=NOT_FOUND, **created)
    def duplicate_expert(who: Admin, id: ExpertId, copy: schemas.DuplicateRequest) -> Any:
        """Copy an expert under another name, with some fields changed."""
        return service.duplicate(id, copy.new_name, copy.overrides)

    return router


def _chat_routes(service: ExpertService, limiter: StreamLimiter) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["chat"])

    @router.post(
        "/experts/{id}/chat",
        status_code=200,  # the response class does not set it
        response_class=EventStreamResponse,
        responses=NOT_FOUND | schemas.STREAMED,
    )
    async def chat(who: Caller, id: ExpertId, asked: schemas.ChatRequest) -> Any:
        """Ask an expert and stream the answer as server-sent events.

        The events are conversation_start, injection_meta, sources, token …, done. An `error` may come instead
        of tokens, or after some. A false citation is marked in the text.
        """
        history = [(each.role, each.content) for each in asked.history]
        ask = partial(service.ask, conversation_id=asked.conversation_id, history=history, model=asked.model)
        _, stream = await limiter.start_turn(partial(ask, id, who.name, asked.query))
        return EventStreamResponse(stream, _event_frames(stream, trace=asked.trace))

    @router.get("/experts/{id}/conversations", response_model=schemas.ConversationPage, responses=NOT_FOUND)
    def list_conversations(who: Caller, id: ExpertId, limit: _Limit = 20, offset: _Offset = 0) -> Any:
        """List the caller's conversations with an expert, the latest first.

        Conversations with a deleted expert are listed too, if they were not deleted with it.
        """
        page, total = service.conversations(id, who.name, limit=limit, offset=offset)
        return {"conversations": page, "total": total, "limit": limit, "offset": offset}

    @router.get("/conversations", response_model=schemas.OwnedConversationPage)
    def list_owned(
        who: Caller,
        gone: Annotated[bool, Query(description="only those with experts that were deleted")] = False,
        limit: _Limit = 20,
        offset: _Offset = 0,
    ) -> Any:
        """List the caller's conversations with all experts, the latest first.

        Each is read and deleted under the id of its expert.
        """
        owned = service.tables.owned_conversations
        page, total = owned(who.name, expert_deleted=gone, limit=limit, offset=offset)
        return {"conversations": page, "total": total, "limit": limit, "offset": offset}

    @router.get(_CONVERSATION, response_model=schemas.ConversationDetails, responses=NOT_FOUND)
    def get_conversation(who: Caller, id: ExpertId, cid: _ConversationId) -> Any:
        """Return a conversation with all messages, and the evidence of each answer."""
        conversation, messages = service.conversation(cid, id, who.name)
        thumbs = service.tables.ratings(cid)
        shown = [
            {"id": message.id, "role": message.role, "content": message.content, "timestamp": message.at}
            | {"metadata": dict(message.metadata), "thumb": thumbs.get(message.id)}
            for message in messages
        ]
        begun = conversation.started_at
        return {"id": conversation.id, "expert_id": id, "started_at": begun, "messages": shown}

    @router.delete(_CONVERSATION, response_model=schemas.Deleted, responses=NOT_FOUND)
    def delete_conversation(who: Caller, id: ExpertId, cid: _ConversationId) -> Any:
        """Delete a conversation."""
        service.remove_conversation(cid, id, who.name)
        return {"deleted": True}

    @router.put(_OPINION, response_model=schemas.StoredRating, responses=NOT_FOUND)
    def put_opinion(
        who: Caller, id: ExpertId, cid: _ConversationId, mid: _ConversationId, opinion: schemas.RatingRequest
    ) -> Any:
        """Rate an answer with a thumb, 1 or -1."""
        service.tables.rate_answer(mid, opinion.thumb, conversation=cid, expert=id, owner=who.name)
        return {"kept": True}

    @router.delete(_OPINION, response_model=schemas.Deleted, responses=NOT_FOUND)
    def delete_opinion(who: Caller, id: ExpertId, cid: _ConversationId, mid: _ConversationId) -> Any:
        """Remove the rating of an answer."""
        service.tables.remove_rating(mid, conversation=cid, expert=id, owner=who.name)
        return {"deleted": True}

    return router


def _graph_routes(service: ExpertService) -> APIRouter:
    router = APIRouter(prefix="/api/kgos", tags=["graphs"])

    @router.post("/query/{db_id}", response_model=_Json, responses=NOT_FOUND)
    def query_graph(who: Caller, db_id: _GraphName, asked: schemas.QueryRequest) -> Any:
        """Search a graph with four retrievers: dense, lexical, graph and intent."""
        graph, config = _find_graph(service, db_id), asked.config.search_config()
        result = intent_search(graph, asked.query, config=config, embedder=service.embedder)
        edges: dict[str, list[_Json]] = defaultdict(list)
        for edge in result.edges:
            edges[edge.source].append({"type": edge.type, "target": edge.target})
        results = [
            {
                "node": _node_json(graph, node.id, properties=True),
                "score": node.score,
                "method": node.method,
                "edge_annotations": edges[node.id],
                "limitations": [one._asdict() for one in result.limitations.get(node.id, ())],
            }
            for node in result.nodes
        ]
        plan, best = result.answers.get("compose_for"), result.intents.best
        return {
            "intent": {"category": best.name if best else None, "score": best.score if best else 0.0},
            "results": results,
            "total": len(results),
            "query": asked.query,
            "composition_plan": _plan_json(graph, plan) if isinstance(plan, Composition) else None,
            "why": list(result.why),
        }

    @router.post("/impact/{db_id}/{node_id:path}", response_model=_Json, responses=NOT_FOUND)
    def impact(who: Caller, db_id: _GraphName, node_id: _NodeId, asked: schemas.ImpactRequest) -> Any:
        """Return what a change of a node reaches, by depth, with risks."""
        graph = _find_graph(service, db_id, node_id)
        analysis = impact_analysis(graph, node_id, direction=asked.direction, max_depth=asked.max_depth)
        by_depth: dict[str, list[_Json]] = {}
        for each in analysis.nodes:
            node = {"id": each.id, "name": each.name}
            entry = {"node": node, "risk": each.risk, "distance_risk": each.distance_risk}
            by_depth.setdefault(str(each.depth), []).append(entry)
        return {
            "node_id": node_id,
            "direction": asked.direction,
            "total_impacted": len(analysis.nodes),
            "risk_by_depth": by_depth,
            "critical_path": list(analysis.critical_path),
        }

    @router.post("/compose/{db_id}", response_model=_Json, responses=NOT_FOUND)
    def compose(who: Caller, db_id: _GraphName, asked: schemas.ComposeRequest) -> Any:
        """Plan the steps to reach a goal."""
        graph = _find_graph(service, db_id)
        return _plan_json(graph, compose_for(graph, asked.goal, max_tools=asked.max_tools))

    @router.post("/similar/{db_id}/{node_id:path}", response_model=_Json, responses=NOT_FOUND)
    def similar(who: Caller, db_id: _GraphName, node_id: _NodeId, asked: schemas.SimilarRequest) -> Any:
        """Find nodes whose neighbours, type and name are similar to those of a node."""
        graph = _find_graph(service, db_id, node_id)
        rows = []
        scores = ("score", "jaccard", "type_match", "name_overlap")
        for each in similar_to(graph, node_id, k=asked.k).nodes:
            node = {"id": each.id, "name": each.name, "type": each.type}
            rows.append({"node": node} | {name: getattr(each, name) for name in scores})
        return {"source_node": _node_json(graph, node_id), "similar": rows}

    @router.get("/graphs/{db_id}", response_model=schemas.GraphSummary, responses=NOT_FOUND)
    def graph_size(who: Caller, db_id: _GraphName) -> Any:
        """Return the size of a graph and its most frequent node types, at most 12."""
        graph = _find_graph(service, db_id)
        types = dict(Counter(graph_index(graph).label_texts).most_common(12))
        summary = {"id": db_id, "nodes": len(graph), "edges": len(graph.edges), "types": types}
        return replace_surrogates(summary)

    @router.get("/node/{db_id}/{node_id:path}", response_model=schemas.NodeNeighbourhood, responses=NOT_FOUND)
    def get_node(who: Caller, db_id: _GraphName, node_id: _NodeId) -> Any:
        """Return a node with its properties, limitations and neighbours, laid out for a drawing.

        At most 40 neighbours are returned, those with the most edges first.
        """
        neighbourhood = lay_out_neighbourhood(_find_graph(service, db_id, node_id), node_id)
        fields: _Json = {**vars(neighbourhood), "graph": db_id, "node": vars(neighbourhood.node)}
        fields["limitations"] = [limitation._asdict() for limitation in neighbourhood.limitations]
        fields["neighbours"] = list(map(vars, neighbourhood.neighbours))
        fields["edges"] = [{"source": e.source, "type": e.type, "target": e.target} for e in fields["edges"]]
        return replace_surrogates(fields | {"properties": dict(neighbourhood.properties)})

    @router.get("/dimensions", response_model=schemas.DimensionList)
    def list_dimensions(who: Caller) -> Any:
        """List the 56 dimensions, and what the ends of each mean."""
        shown = []
        for dimension in DIMENSIONS:
            ends = {"low_description": dimension.low, "high_description": dimension.high, "range": [0.0, 1.0]}
            names = {"name": dimension.name, "category": dimension.category, "description": str(dimension)}
            shown.append(names | ends)
        found = Counter(dimension.category for dimension in DIMENSIONS)
        counts = {name: found[name] for name in DIMENSION_CATEGORIES}
        return {"dimensions": shown, "total": len(shown), "categories": counts}

    return router


async def _event_frames(stream: EventStream, *, trace: bool) -> AsyncIterator[str]:
    """Format each event as one `data:` line of a server-sent-event stream.

    Events of the train of thought are left out without `trace`.
    """
    async for event in stream.events():
        if trace or not isinstance(event, ThoughtEvent):
            yield event_frame(event.to_json())


def _find_graph(service: ExpertService, name: str, node: str | None = None) -> PropertyGraph:
    """Return a graph by its name, after checking that it has a node."""
    try:
        graph = service.graphs.graph(name)
    except UnknownName as error:
        raise NotFound("graph", str(error)) from None
    if node is not None and node not in graph:
        raise NotFound("node")
    return graph


def _node_json(graph: PropertyGraph, id: str, *, properties: bool = False) -> _Json:
    index, row = graph_index(graph), graph.row(id)
    fields: _Json = {"id": id, "name": index.names[row], "type": index.label_texts[row]}
    return fields | {"properties": dict(graph.node_properties[row])} if properties else fields


def _plan_json(graph: PropertyGraph, plan: Composition) -> _Json:
    names = {step.tool: step.name for step in plan.steps}
    steps = [
        {"order": number, "tool": each.name, "action": each.action, "node_id": each.tool}
        for number, each in enumerate(plan.steps, 1)
    ]
    edges = []
    for each in plan.edges:
        ends = {"from": names.get(each.source, each.source), "to": names.get(each.target, each.target)}
        edges.append(ends | {"type": each.type, "validated": True})
    fields = {"goal": plan.goal, "steps": steps, "edges": edges, "prerequisites": list(plan.prerequisites)}
    return fields | {"warnings": list(plan.warnings), "is_valid": bool(plan.steps) and plan.sound}


def _expert_details(expert: Expert) -> _Json:
    config = expert.search_config()
    weights = normalised_weights(config.weights, *config.retrievers)
    effective = {name: getattr(weights, name) for name in ("embedding", "text", "graph", "intent")}
    return {**expert.model_dump(), "effective_weights": effective}
