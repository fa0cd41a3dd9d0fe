"""Ollama's protocol for its clients. A model is an expert, with or without `:latest`.

Answers are lines of JSON, or one object with `"stream": false`. Errors are {"error": "a message"}.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from kgot_lab import __version__
from kgot_lab.experts.chat.chat_events import ChatDone, ChatFailed, TokenEvent
from kgot_lab.experts.expert import Expert
from kgot_lab.experts.http import schemas
from kgot_lab.experts.http.openai_api import CompletionMessage, SamplingRequest, split_messages
from kgot_lab.experts.http.responses import (
    ERRORS,
    NOT_FOUND,
    Caller,
    EventStream,
    EventStreamResponse,
    StreamLimiter,
)
from kgot_lab.experts.service import ExpertService

_Json = dict[str, Any]
_Text = Annotated[str, Field(max_length=20_000)]


class OllamaOptions(SamplingRequest):
    """Options of Ollama that are honoured. A `num_predict` of -1 is no limit."""

    num_predict: Annotated[int, Field(ge=-1, le=2**31)] | None = None


class _OllamaRequest(SamplingRequest):
    model: schemas.ValidId
    stream: bool | None = True
    options: OllamaOptions | None = None


class OllamaChat(_OllamaRequest):
    messages: Annotated[list[CompletionMessage], Field(max_length=400, default_factory=list)]


class OllamaGenerate(_OllamaRequest):
    prompt: _Text = ""
    system: _Text = ""


class OllamaError(BaseModel):
    error: str


class OllamaModel(BaseModel):
    model: schemas.ValidId


def ollama_router(service: ExpertService, limiter: StreamLimiter) -> APIRouter:
    """Build the routes of Ollama under /api."""
    errors = {status: {**about, "model": OllamaError} for status, about in (ERRORS | NOT_FOUND).items()}
    router = APIRouter(prefix="/api", tags=["ollama"], responses=errors)
    lines: dict[int | str, _Json] = {
        200: {"content": {"application/x-ndjson": {"schema": {"type": "object"}}}}
    }

    @router.get("/version", response_model=_Json)
    def version() -> Any:
        """Return the version of this server."""
        return {"version": __version__}

    @router.get("/tags", response_model=_Json)
    def list_models(who: Caller) -> Any:
        """List the experts, each as a model."""
        return {"models": list(map(_model_json, service.tables.experts()))}

    @router.post("/show", response_model=_Json)
    def show_model(who: Caller, asked: OllamaModel) -> Any:
        """Return an expert as a model."""
        expert = service.expert(asked.model.removesuffix(":latest"))
        rest = {"system": expert.persona.instructions, "template": "", "parameters": "", "model_info": {}}
        return _model_json(expert) | rest | {"capabilities": ["completion"]}

    @router.post("/chat", response_model=_Json, responses=lines)
    async def chat(who: Caller, asked: OllamaChat, request: Request) -> Any:
        """Ask an expert with the messages so far. Without any, say that it is loaded."""
        return await answer(who.name, asked, asked.messages, request, "message")

    @router.post("/generate", response_model=_Json, responses=lines)
    async def generate(who: Caller, asked: OllamaGenerate, request: Request) -> Any:
        """Ask an expert a question by itself. Without one, say that it is loaded."""
        texts = {"system": asked.system, "user": asked.prompt} if asked.prompt else {}
        messages = [CompletionMessage(role=role, content=text) for role, text in texts.items()]
        return await answer(who.name, asked, messages, request, "response")

    async def answer(
        owner: str, asked: _OllamaRequest, messages: Sequence[CompletionMessage], request: Request, field: str
    ) -> Any:
        expert = service.expert(asked.model.removesuffix(":latest"))
        if not messages:
            return _line(asked.model, field, "") | {"done": True, "done_reason": "load"}
        question, history, style = split_messages(messages)
        sampling = asked.options or OllamaOptions()
        most = sampling.num_predict if sampling.num_predict != -1 else None
        options = sampling.answer_options(style, most)
        ask = partial(service.ask, expert.id, owner, question, history=history, options=options)
        _, stream = await limiter.start_turn(ask)
        if asked.stream is False:
            async with stream.cancel_on_disconnect(request.receive):
                text, _, done = await stream.collect()
            return _line(asked.model, field, text) | _end(done)
        content = _lines(stream, asked.model, field)
        return EventStreamResponse(stream, content, media_type="application/x-ndjson")

    return router


async def _lines(stream: EventStream, model: str, field: str) -> AsyncIterator[str]:
    async for event in stream.events():
        if isinstance(event, TokenEvent):
            yield json.dumps(_line(model, field, event.content)) + "\n"
        elif isinstance(event, ChatFailed):
            yield json.dumps({"error": event.content}) + "\n"
            return  # an end would mean that the answer is complete
        elif isinstance(event, ChatDone):
            yield json.dumps(_line(model, field, "") | _end(event)) + "\n"


def _line(model: str, field: str, text: str) -> _Json:
    content = text if field == "response" else {"role": "assistant", "content": text}
    return {"model": model, "created_at": datetime.now(UTC).isoformat(), field: content, "done": False}


def _end(done: ChatDone) -> _Json:
    nanoseconds = round(done.usage.seconds * 1e9)
    counts = {"prompt_eval_count": done.usage.prompt_tokens, "eval_count": done.usage.completion_tokens}
    reason = "length" if done.cut else "stop"
    return {
        "done": True,
        "done_reason": reason,
        "total_duration": nanoseconds,
        **counts,
        "outcome": done.outcome,
    }


def _model_json(expert: Expert) -> _Json:
    details = {"format": "expert", "family": "kgot-lab", "families": ["kgot-lab"], "parent_model": ""}
    details |= {"parameter_size": "", "quantization_level": ""}
    name = f"{expert.id}:latest"
    names = {"name": name, "model": name, "digest": expert.digest, "size": 0}
    return names | {"modified_at": expert.updated_at.isoformat(), "details": details}
