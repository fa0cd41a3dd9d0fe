"""A real HTTP server on this computer that speaks chat completions, and misbehaves on request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from unittest.mock import patch

from kgot_lab.llm import connect
from kgot_lab.llm.openai_compatible import OpenAICompatible, server_at
from kgot_lab.llm.presets import Price, RetryPolicy, Settings
from support.loopback import QuietHandler, serving
from support.waiting import AMPLE

_PRICE, _SETTINGS = Price(1, 2), Settings()


@dataclass(frozen=True)
class Answer:
    """What the server does with one request: sleep, then drop the connection, or send a status, headers and a
    body, or pieces of one.
    """

    body: Any = None  # a str is sent as it is, anything else as JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    sleep: float = 0.0
    drop: bool = False
    pieces: Iterable[str] | None = None  # of a body, each sent as soon as it is there
    breaks: bool = False  # whether the connection ends after the pieces, and the body does not


def says(text: str, **more: Any) -> Answer:
    """A proper chat completion."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return Answer(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [choice],
            "usage": usage,
            **more,
        }
    )


def thinks(text: str | None, thought: int, *, ended: str = "stop", **message: Any) -> Answer:
    """The chat completion of a model that wrote 500 tokens, so many of them hidden; `message` holds what else
    it sends.
    """
    details = {"reasoning_tokens": thought}
    usage = {"prompt_tokens": 1000, "completion_tokens": 500, "completion_tokens_details": details}
    message = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "message": message, "finish_reason": ended}
    return says("", choices=[choice], usage=usage)


def cut(text: str) -> Answer:
    """A chat completion that ended because it had max_tokens."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}
    return says("", choices=[choice])


def ollama_says(text: str, *, thinking: str = "", ended: str = "stop") -> Answer:
    """An answer of Ollama's own API."""
    message = {"role": "assistant", "content": text} | ({"thinking": thinking} if thinking else {})
    return Answer(
        {
            "model": "m",
            "message": message,
            "done": True,
            "done_reason": ended,
            "prompt_eval_count": 90,
            "eval_count": 40,
        }
    )


def ollama_refuses(status: int, message: str) -> Answer:
    """An error of Ollama's own API."""
    return Answer({"error": message}, status)


def refuses(status: int, message: str, headers: Mapping[str, str] | None = None, **more: Any) -> Answer:
    """An error in the OpenAI form."""
    return Answer(
        {"error": {"message": message, "type": "error", "code": None, **more}}, status, headers or {}
    )


def event(told: Any) -> str:
    """A server-sent event."""
    return f"data: {told if isinstance(told, str) else json.dumps(told)}\n\n"


def delta(text: str | None = None, **more: Any) -> str:
    """A piece of a chat completion; `more` stands beside its text."""
    return event(
        {
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {"content": text, **more}, "finish_reason": None}],
        }
    )


def ending(ended: str = "stop", *, usage: bool = True) -> Iterator[str]:
    """The last events of a chat completion."""
    yield event(
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": ended}]}
    )
    if usage:
        yield event(
            {
                "object": "chat.completion.chunk",
                "choices": [],
                "usage": {"prompt_tokens": 1000, "completion_tokens": 500},
            }
        )
    yield event("[DONE]")


def tells(pieces: Iterable[str], *, breaks: bool = False) -> Answer:
    """Events one after another."""
    return Answer(headers={"content-type": "text/event-stream"}, pieces=pieces, breaks=breaks)


def says_on(*texts: str, usage: bool = True) -> Answer:
    """A proper chat completion in pieces."""
    return tells([": a comment\n\n", delta(role="assistant"), *map(delta, texts), *ending(usage=usage)])


@dataclass
class Server:
    """Its address, the answers still to be given (the last one is kept), and the requests it has seen."""

    url: str
    answers: list[Answer | Callable[[dict[str, Any]], Answer]]
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    # whether a client went while it was answered
    hung_up: threading.Event = field(default_factory=threading.Event)
    waits: list[float] = field(default_factory=list)  # seconds that the client of `asking` would have slept
    said: list[str] = field(default_factory=list)  # what that client said meanwhile


@contextmanager
def openai_server(*answers: Answer | Callable[[dict[str, Any]], Answer]) -> Iterator[Server]:
    """Serve these answers, or what functions make of a request, in order on a free port of the loopback."""
    server = Server("", list(answers))

    class Handler(QuietHandler, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            server.bodies.append({"path": self.path, **json.loads(raw)})
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
            if callable(answer):
                answer = answer(json.loads(raw))
            time.sleep(answer.sleep)
            self.close_connection = True
            if answer.pieces is not None:
                self._send_pieces(answer, answer.pieces)
            elif not answer.drop:
                self._send(answer)

        def _send_pieces(self, answer: Answer, pieces: Iterable[str]) -> None:
            self.send_response(answer.status)
            headers = {**answer.headers, "connection": "close", "transfer-encoding": "chunked"}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for piece in pieces:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece.encode()), piece.encode()))
                if not answer.breaks:
                    self.wfile.write(b"0\r\n\r\n")
            except OSError:
                server.hung_up.set()

        def _send(self, answer: Answer) -> None:
            body = (answer.body if isinstance(answer.body, str) else json.dumps(answer.body)).encode()
            own = {"connection": "close", "content-length": str(len(body))}
            self.respond(answer.status, body, {"content-type": "application/json", **answer.headers, **own})

    with serving(Handler) as address:
        server.url = f"{address}/v1"
        yield server


@contextmanager
def asking(
    *answers: Answer | Callable[[dict[str, Any]], Answer],
    model: str = "tiny",
    settings: Settings = _SETTINGS,
    price: Price | None = _PRICE,
    **patience: float,
) -> Iterator[tuple[OpenAICompatible, Server]]:
    """A client of a server with these answers, which sleeps nowhere; a model `ollama:...` is asked by Ollama's
    own protocol.
    """
    with openai_server(*answers) as server:
        options: dict[str, Any] = {
            "sleep": server.waits.append,
            "say": server.said.append,
            "settings": settings,
            "patience": RetryPolicy(**{"timeout": AMPLE, **patience}),  # type: ignore[arg-type]
        }
        if model.startswith("ollama:"):
            with patch.dict("os.environ", OLLAMA_HOST=server.url.removesuffix("/v1")):
                llm = connect(model, **options)
        else:
            llm = OpenAICompatible(*server_at(f"{server.url}#{model}"), price=price, **options)
        assert isinstance(llm, OpenAICompatible)
        with closing(llm):
            yield llm, server
