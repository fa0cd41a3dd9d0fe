"""The OpenAI protocol for any chat client. A model is an expert.

A conversation is identified by its messages so far, which such a client sends each time. Citations are in the
text, and also annotations of the type url_citation with addresses that show the node on this server.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from kgot_lab.errors import BadInput
from kgot_lab.experts.chat.chat_events import ChatDone, ChatFailed, SourcesEvent, TokenEvent
from kgot_lab.experts.chat.citations import CITATION_PATTERN, CitableNode
from kgot_lab.experts.chat.prompting import AnswerOptions
from kgot_lab.experts.chat.turn import ExpertTurn
from kgot_lab.experts.http import schemas
from kgot_lab.experts.http.responses import (
    NOT_FOUND,
    Caller,
    EventStream,
    EventStreamResponse,
    StreamLimiter,
    event_frame,
)
from kgot_lab.experts.service import ExpertService

_Json = dict[str, Any]


# values of parameters that ask for nothing, by name; labels of a request, which have any value
_WITHOUT_EFFECT: dict[str, tuple[Any, ...]] = {
    "top_p": (1,), "frequency_penalty": (0,), "presence_penalty": (0,), "top_logprobs": (0,),
    "tool_choice": ("none", "auto"), "parallel_tool_calls": (True,), "response_format": ({"type": "text"},),
    "modalities": (["text"],), "service_tier": ("auto", "default"), "reasoning_effort": ("none",),
}  # fmt: skip
_LABELS = frozenset({"metadata", "safety_identifier", "prompt_cache_key", "keep_alive"})
_Stop = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(schemas.check_characters)]


class _LenientModel(BaseModel):
    model_config: ClassVar[ConfigDict] = {"extra": "ignore"}  # parts of a message that say nothing


class SamplingRequest(BaseModel):
    """What a client asks of an answer. What is neither honoured nor without effect is refused, by its name."""

    model_config: ClassVar[ConfigDict] = {"extra": "allow"}
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    stop: _Stop | Annotated[list[_Stop], Field(max_length=4)] | None = None

    @model_validator(mode="after")
    def _refuse_what_is_not_honoured(self) -> Self:
        for name, value in (self.model_extra or {}).items():
            is_nothing = value in (None, "", [], {}) or value is False
            if not (is_nothing or name in _LABELS or value in _WITHOUT_EFFECT.get(name, ())):
                honoured = ", ".join(sorted(type(self).model_fields))
                raise ValueError(
                    f"{name[:40]!r} is not honoured by an expert: leave it out; these are: {honoured}"
                )
        return self

    def answer_options(self, style: str, *limits: int | None) -> AnswerOptions:
        """Return the options of an answer of the smallest of some limits of tokens."""
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        most = min((limit for limit in limits if limit is not None), default=None)
        return AnswerOptions(style, most, stop, self.temperature or 0.0, self.seed)


_Text = Annotated[str, Field(max_length=20_000)]


class ContentPart(_LenientModel):
    type: Annotated[str, Field(max_length=50)]
    text: _Text = ""


class CompletionMessage(_LenientModel):
    role: Annotated[str, Field(max_length=20)]
    content: _Text | Annotated[list[ContentPart], Field(max_length=50)] | None = None
    images: list[Any] | None = None  # Ollama's
    tool_calls: list[Any] | None = None

    @property
    def text(self) -> str:
        """Its text. Raises BadInput for images, audio and calls of tools, which experts do not accept."""
        if self.role in ("tool", "function") or self.tool_calls:
            raise BadInput("an expert calls no tools: leave the messages of tools out")
        if self.images:
            raise BadInput("an expert reads texts, and no images")
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        if unsupported := [part.type for part in self.content if part.type not in ("text", "input_text")]:
            raise BadInput(f"an expert reads texts, and no {unsupported[0]}")
        return "\n".join(part.text for part in self.content)


TokenLimit = Annotated[int, Field(ge=1, le=2**31)]


class StreamOptions(_LenientModel):
    include_usage: bool = False


class CompletionRequest(SamplingRequest):
    """A request of the protocol."""

    model: schemas.ValidId
    messages: Annotated[list[CompletionMessage], Field(min_length=1, max_length=400)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=1)] | None = 1
    user: Annotated[str, Field(max_length=100)] = ""  # has conversations of its own
    max_tokens: TokenLimit | None = None
    max_completion_tokens: TokenLimit | None = None


def completions_router(service: ExpertService, limiter: StreamLimiter) -> APIRouter:
    """Build the routes under /v1."""
    router = APIRouter(prefix="/v1", tags=["openai"])

    @router.get("/models", response_model=dict[str, Any])
    def list_models(who: Caller) -> Any:
        """List the experts, each as a model."""
        data = [_model_json(expert.id, expert.created_at.timestamp()) for expert in service.tables.experts()]
        return {"object": "list", "data": data}

    @router.get("/models/{id}", response_model=dict[str, Any], responses=NOT_FOUND)
    def get_model(who: Caller, id: Annotated[str, Path(max_length=200)]) -> Any:
        """Return an expert as a model."""
        found = service.expert(id)
        return _model_json(found.id, found.created_at.timestamp())

    @router.post("/chat/completions", response_model=dict[str, Any], responses=NOT_FOUND | schemas.STREAMED)
    async def complete(who: Caller, asked: CompletionRequest, request: Request) -> Any:
        """Ask an expert, named as the model.

        With `stream` the answer comes in pieces, and `data: [DONE]` ends it.
        """
        question, history, style = split_messages(asked.messages)
        options = asked.answer_options(style, asked.max_tokens, asked.max_completion_tokens)
        owner = who.as_user(asked.user).name if asked.user else who.name
        ask = partial(service.ask, asked.model, owner, question, history=history, options=options)
        turn, stream = await limiter.start_turn(ask)
        base = str(request.base_url)
        if asked.stream:
            usage = asked.stream_options is not None and asked.stream_options.include_usage
            return EventStreamResponse(stream, _completion_chunks(stream, turn, base, usage=usage))
        async with stream.cancel_on_disconnect(request.receive):
            return await _completion_json(stream, turn, base)

    return router


def split_messages(messages: Sequence[CompletionMessage]) -> tuple[str, list[tuple[str, str]], str]:
    """Split messages into the question, the history, and the client's wishes for style.

    The wishes are its system messages.
    """
    texts = [(message.role, message.text) for message in messages]
    wishes = "\n".join(text for role, text in texts if role in ("system", "developer"))
    conversation = [(role, text) for role, text in texts if role not in ("system", "developer") and text]
    if not conversation or conversation[-1][0] != "user":
        raise BadInput("the last of the messages is the user's, with a text")
    return conversation[-1][1], conversation[:-1], wishes


def _model_json(id: str, created: float) -> dict[str, Any]:
    return {"id": id, "object": "model", "created": int(created), "owned_by": "kgot-lab"}


async def _completion_json(stream: EventStream, turn: ExpertTurn, base: str) -> dict[str, Any]:
    text, _, done = await stream.collect()
    annotations = _annotations(text, done.cited, base)
    message = {"role": "assistant", "content": text, "refusal": None, "annotations": annotations}
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(done), "logprobs": None}
    rest = {"choices": [choice], "usage": _usage_json(done), "outcome": done.outcome}
    return _response_head(turn, "chat.completion") | rest


async def _completion_chunks(
    stream: EventStream, turn: ExpertTurn, base: str, *, usage: bool
) -> AsyncIterator[str]:
    head, text, sources, failed = _response_head(turn, "chat.completion.chunk"), "", [], False
    yield _chunk_frame(head, {"role": "assistant", "content": ""})
    async for event in stream.events():
        if isinstance(event, SourcesEvent):
            sources = [node.to_json() for node in event.nodes]
        elif isinstance(event, TokenEvent):
            text += event.content
            yield _chunk_frame(head, {"content": event.content})
        elif isinstance(event, ChatFailed):
            error = {"message": event.content, "type": "server_error", "param": None, "code": "model_away"}
            yield event_frame({"error": error})
            failed = True
        elif failed:
            continue  # an end event would mean that the answer is complete
        elif isinstance(event, ChatDone):
            annotations = _annotations(text, event.cited, base)
            delta, reason = {"annotations": annotations} if annotations else {}, _finish_reason(event)
            yield _chunk_frame(head, delta, finish_reason=reason, sources=sources, outcome=event.outcome)
            if usage:
                yield event_frame(head | {"choices": [], "usage": _usage_json(event)})
    yield "data: [DONE]\n\n"


def _chunk_frame(head: _Json, delta: _Json, *, finish_reason: str | None = None, **extra: Any) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
    return event_frame(head | {"choices": [choice]} | extra)


def _response_head(turn: ExpertTurn, kind: str) -> dict[str, Any]:
    id, created = f"chatcmpl-{turn.conversation}", int(time.time())
    return {"id": id, "object": kind, "created": created, "model": turn.expert.id}


def _finish_reason(done: ChatDone) -> str:
    return "length" if done.cut else "stop"


def _usage_json(done: ChatDone) -> dict[str, int]:
    read, written = done.usage.prompt_tokens, done.usage.completion_tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _annotations(text: str, cited: Sequence[CitableNode], base: str) -> list[dict[str, Any]]:
    """Return a url_citation annotation for each citation in a text.

    Each has the offsets of the citation and an address that shows the node.
    """
    annotations = []
    for match in CITATION_PATTERN.finditer(text):
        for node in cited:
            if node.is_named_in(match.group(1)):
                url = f"{base}pages/node.html#{quote(node.graph)}/{quote(node.id, safe='')}"
                start, end = match.span()
                citation = {"start_index": start, "end_index": end, "title": node.name, "url": url}
                annotations.append({"type": "url_citation", "url_citation": citation})
    return annotations
