"""A conversation as OpenTelemetry spans by the conventions for generative AI, in the JSON of OTLP; no words
of anybody are in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from kgot_lab import __version__
from kgot_lab.experts.expert import Expert
from kgot_lab.experts.repository import ChatConversation, ChatMessage


def genai_spans(
    expert: Expert, conversation: ChatConversation, messages: Sequence[ChatMessage]
) -> dict[str, Any]:
    """For each answer a span "invoke_agent" with two below it, "retrieval" and "chat", as a request to
    /v1/traces has them.
    """
    trace = hashlib.sha256(conversation.id.encode()).hexdigest()[:32]
    asked: datetime | None = None
    spans: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "user":
            asked = message.at
        elif asked is not None:
            spans += _answered(expert, conversation, message, asked, trace)
            asked = None
    resource = {"attributes": _attributes({"service.name": "kgot-lab", "service.version": __version__})}
    return {
        "resourceSpans": [
            {"resource": resource, "scopeSpans": [{"scope": {"name": "kgot_lab.experts"}, "spans": spans}]}
        ]
    }


def _answered(
    expert: Expert, conversation: ChatConversation, message: ChatMessage, asked: datetime, trace: str
) -> list[dict[str, Any]]:
    about = message.metadata
    read, written = about.get("tokens", (0, 0))
    searched = asked + timedelta(milliseconds=about.get("searched_ms", 0))
    agent: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": expert.id,
        "gen_ai.agent.name": expert.name,
        "gen_ai.conversation.id": conversation.id,
        "kgot.intent": about.get("intent") or "",
        "kgot.citations": len(about.get("citations", ())),
        "kgot.false_citations": len(about.get("false_citations", ())),
    }
    found = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": ",".join(expert.graphs),
        "kgot.nodes": len(about.get("kg_nodes_used", ())),
    }
    chat: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": about.get("model") or "",
        "gen_ai.usage.input_tokens": read,
        "gen_ai.usage.output_tokens": written,
    }
    if "first_token_ms" in about:
        chat["gen_ai.server.time_to_first_token"] = about["first_token_ms"] / 1000
    ended = max(message.at, searched)
    status = {"code": 2} if about.get("failed") else {"code": 1}
    above = _id(message.id, "agent")
    return [
        _span(trace, above, "", f"invoke_agent {expert.name}", asked, ended, agent, status),
        _span(trace, _id(message.id, "search"), above, "retrieval", asked, searched, found, {"code": 1}),
        _span(
            trace,
            _id(message.id, "chat"),
            above,
            f"chat {chat['gen_ai.request.model']}".strip(),
            searched,
            ended,
            chat,
            status,
        ),
    ]


def _span(
    trace: str,
    id: str,
    parent: str,
    name: str,
    start: datetime,
    end: datetime,
    attributes: dict[str, Any],
    status: dict[str, int],
) -> dict[str, Any]:
    told = {
        "traceId": trace,
        "spanId": id,
        "name": name,
        "kind": 1,
        "attributes": _attributes(attributes),
        "status": status,
    }
    times = {"startTimeUnixNano": _nanos(start), "endTimeUnixNano": _nanos(end)}
    return told | times | ({"parentSpanId": parent} if parent else {})


def _attributes(told: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = {int: "intValue", float: "doubleValue", str: "stringValue"}
    return [
        {"key": key, "value": {kinds[type(value)]: str(value) if type(value) is int else value}}
        for key, value in told.items()
    ]


def _nanos(time: datetime) -> str:
    return str(int(time.timestamp() * 1_000_000) * 1_000)


def _id(message: str, part: str) -> str:
    return hashlib.sha256(f"{message} {part}".encode()).hexdigest()[:16]
