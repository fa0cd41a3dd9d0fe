"""The OpenAI protocol for any chat client. A model is an expert.

A conversation is identified by its messages so far, which such a client sends each time. Citations are in the
text, and also annotations of the type url_citation with addresses that show the node on this server.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from kgot_lab.errors import BadInput
from kgot_lab.experts.chat.chat_events import ChatDone, ChatFailed, SourcesEvent, TokenEvent
from kgot_lab.experts.chat.citations import CITATION_PATTERN, CitableNode
from kgot_lab.experts.chat.turn import ExpertTurn
from kgot_lab.experts.http import schemas
from kgot_lab.experts.http.responses import NOT_FOUND, Caller, EventStreamResponse, Pour, StreamLimiter
from kgot_lab.experts.service import ExpertService


class _Loose(BaseModel):
    model_config: ClassVar[ConfigDict] = {"extra": "ignore"}  # clients send many fields that are unused


class ContentPart(_Loose):
    type: Annotated[str, Field(max_length=50)]
    text: Annotated[str, Field(max_length=20_000)] = ""


class CompletionMessage(_Loose):
    role: Annotated[str, Field(max_length=20)]
    content: (
        Annotated[str, Field(max_length=20_000)] | Annotated[list[ContentPart], Field(max_length=50)] | None
    ) = None

    @property
    def text(self) -> str:
        """Its text. Raises BadInput for images or audio, which experts do not accept."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        if odd := [part.type for part in self.content if part.type not in ("text", "input_text")]:
            raise BadInput(f"an expert reads texts, and no {odd[0]}")
        return "\n".join(part.text for part in self.content)


class StreamOptions(_Loose):
    include_usage: bool = False


class CompletionRequest(_Loose):
    """A request of the protocol.

    Sampling parameters are ignored, because the owner of an expert configures it.
    """

    model: schemas.SoundId
    messages: Annotated[list[CompletionMessage], Field(min_length=1, max_length=400)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=1)] | None = 1


def completions_router(service: ExpertService, limiter: StreamLimiter) -> APIRouter:
    """Build the routes under /v1."""
    router = APIRouter(prefix="/v1", tags=["openai"])

    @router.get("/models", response_model=dict[str, Any])
    def list_models(who: Caller) -> Any:
        """List the experts, each as a model."""
        return {
            "object": "list",
            "data": [_model(each.id, each.created_at.timestamp()) for each in service.tables.experts()],
        }

    @router.get("/models/{id}", response_model=dict[str, Any], responses=NOT_FOUND)
    def get_model(who: Caller, id: Annotated[str, Path(max_length=200)]) -> Any:
        """Return an expert as a model."""
        found = service.expert(id)
        return _model(found.id, found.created_at.timestamp())

    @router.post("/chat/completions", response_model=dict[str, Any], responses=NOT_FOUND | schemas.STREAMED)
    async def complete(who: Caller, asked: CompletionRequest, request: Request) -> Any:
        """Ask an expert, named as the model.

        With `stream` the answer comes in pieces, and `data: [DONE]` ends it.
        """
        question, history, wishes = _told(asked.messages)
        turn, pour = await limiter.begin(
            partial(service.ask, asked.model, who.name, question, history=history, wishes=wishes)
        )
        base = str(request.base_url)
        if asked.stream:
            usage = asked.stream_options is not None and asked.stream_options.include_usage
            return EventStreamResponse(pour, _chunks(pour, turn, base, usage=usage))
        async with pour.read_whole(request.receive):
            return await _whole(pour, turn, base)

    return router


def _told(messages: Sequence[CompletionMessage]) -> tuple[str, list[tuple[str, str]], str]:
    """Split messages into the question, the history, and the client's wishes for style.

    The wishes are its system messages.
    """
    said = [(each.role, each.text) for each in messages]
    wishes = "\n".join(text for role, text in said if role in ("system", "developer"))
    talk = [
        (role, text)
        for role, text in said
        if role not in ("system", "developer", "tool", "function") and text
    ]
    if not talk or talk[-1][0] != "user":
        raise BadInput("the last of the messages is the user's, with a text")
    return talk[-1][1], talk[:-1], wishes


def _model(id: str, created: float) -> dict[str, Any]:
    return {"id": id, "object": "model", "created": int(created), "owned_by": "kgot-lab"}


async def _whole(pour: Pour, turn: ExpertTurn, base: str) -> dict[str, Any]:
    text, _, done = await pour.whole()
    message = {
        "role": "assistant",
        "content": text,
        "refusal": None,
        "annotations": _annotations(text, done.cited, base),
    }
    choice = {"index": 0, "message": message, "finish_reason": _ended(done), "logprobs": None}
    return _head(turn, "chat.completion") | {"choices": [choice], "usage": _usage(done)}


async def _chunks(pour: Pour, turn: ExpertTurn, base: str, *, usage: bool) -> AsyncIterator[str]:
    head, text, sources, failed = _head(turn, "chat.completion.chunk"), "", [], False
    yield _chunk(head, {"role": "assistant", "content": ""})
    async for event in pour.events():
        if isinstance(event, SourcesEvent):
            sources = [node.to_json() for node in event.nodes]
        elif isinstance(event, TokenEvent):
            text += event.content
            yield _chunk(head, {"content": event.content})
        elif isinstance(event, ChatFailed):
            told = {"message": event.content, "type": "server_error", "param": None, "code": "model_away"}
            yield f"data: {json.dumps({'error': told})}\n\n"
            failed = True
        elif failed:
            continue  # an end event would mean that the answer is complete
        elif isinstance(event, ChatDone):
            annotations = _annotations(text, event.cited, base)
            yield _chunk(
                head,
                {"annotations": annotations} if annotations else {},
                ended=_ended(event),
                more={"sources": sources},
            )
            if usage:
                yield f"data: {json.dumps(head | {'choices': [], 'usage': _usage(event)})}\n\n"
    yield "data: [DONE]\n\n"


def _chunk(
    head: dict[str, Any],
    delta: dict[str, Any],
    *,
    ended: str | None = None,
    more: dict[str, Any] | None = None,
) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": ended, "logprobs": None}
    return f"data: {json.dumps(head | {'choices': [choice]} | (more or {}))}\n\n"


def _head(turn: ExpertTurn, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{turn.conversation}",
        "object": kind,
        "created": int(time.time()),
        "model": turn.expert.id,
    }


def _ended(done: ChatDone) -> str:
    return "length" if done.cut else "stop"


def _usage(done: ChatDone) -> dict[str, int]:
    read, written = done.usage.prompt_tokens, done.usage.completion_tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _annotations(text: str, cited: Sequence[CitableNode], base: str) -> list[dict[str, Any]]:
    """Return a url_citation annotation for each citation in a text.

    Each has the offsets of the citation and an address that shows the node.
    """
    found = []
    for match in CITATION_PATTERN.finditer(text):
        for node in cited:
            if node.named_in(match.group(1)):
                url = f"{base}pages/node.html#{quote(node.graph)}/{quote(node.id, safe='')}"
                place = {
                    "start_index": match.start(),
                    "end_index": match.end(),
                    "title": node.name,
                    "url": url,
                }
                found.append({"type": "url_citation", "url_citation": place})
    return found
