"""Responses of all protocols: errors and event streams.

An error has a status, a code and a message that says what to do, without internals. A stream stops the model
when the client disconnects.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing, suppress
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from kgot_lab.errors import (
    BadInput,
    LabError,
    RefusedEnvelope,
    StoreUnavailable,
    require_known,
)
from kgot_lab.experts.chat.chat_events import (
    AnswerRecord,
    ChatDone,
    ChatEvent,
    ChatFailed,
    SourceNode,
    TokenEvent,
)
from kgot_lab.experts.chat.turn import ExpertTurn
from kgot_lab.experts.error_messages import MODEL_ERRORS, failure_message
from kgot_lab.experts.federation.delegation import refusal_reply
from kgot_lab.experts.http.auth import error_body
from kgot_lab.experts.http.schemas import ApiErrorBody
from kgot_lab.experts.http.tokens import Tenant
from kgot_lab.experts.repository import NotFound
from kgot_lab.llm.structured import first_problem

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_DESCRIPTIONS = {
    400: "The request is no request",
    401: "No token, or none that holds",
    403: "The caller may not do this",
    408: "The body did not come in time",
    413: "The body is too large",
    415: "The body is not JSON",
    421: "The server is not called that",
    422: "What was sent cannot be used",
    429: "Too often",
    503: "Busy, or a part that is needed is away: try again later",
}
ERRORS: dict[int | str, dict[str, Any]] = {  # of every route, for OpenAPI
    status: {"model": ApiErrorBody, "description": said} for status, said in _DESCRIPTIONS.items()
}
_NONE = "There is none, or it is not the caller's"
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": ApiErrorBody, "description": _NONE}}
_MAX_FIELD_LENGTH = 300  # characters of a message that may repeat the request


class Forbidden(LabError):
    """The caller may not do this."""


class TooBusy(LabError):
    """The limit of running chats is reached."""

    def __init__(self) -> None:
        super().__init__("too many chats are going on: try again in a moment")


class TurnFailed(LabError):
    """There is no answer. The message is for the caller, and a known cause was logged."""


class MarketUnavailable(LabError):
    """The marketplace of the server is not usable. The message is for the caller."""


def request_tenant(request: Request) -> Tenant:
    """Return the tenant of a request.

    Raises Forbidden if there is none.
    """
    tenant_of_token: Tenant | None = request.scope.get("tenant")
    if tenant_of_token is None:
        raise Forbidden("this needs a token")
    return tenant_of_token


def require_admin(request: Request) -> Tenant:
    """Return the tenant of a request if it may change experts.

    Raises Forbidden if the tenant is no admin.
    """
    caller = request_tenant(request)
    if caller.role != "admin":
        raise Forbidden("only an admin changes experts: ask for a token of that role")
    return caller


def refuse_unknown_parameters(request: Request) -> None:
    """Raise BadInput for a parameter of an address of the REST API that would have no effect.

    It is one that the route does not have, or a second value.
    """
    if not request.url.path.startswith("/api/"):  # chat clients send what is not used
        return
    known = {each.alias for each in request.scope["route"].dependant.query_params}
    require_known("parameter of this address", known, *request.query_params)
    for name, times in Counter(name for name, _ in request.query_params.multi_items()).items():
        if times > 1:
            raise BadInput(f"the parameter {name!r} is given {times} times, and only one would be used")


Caller = Annotated[Tenant, Depends(request_tenant)]
Admin = Annotated[Tenant, Depends(require_admin)]
ExpertId = Annotated[str, Path(max_length=200, description="the id of an expert", examples=["expert_cook"])]


def describe_error(error: LabError) -> tuple[int, str, str]:
    """Return the status, code and message for a LabError."""
    status, code = next((entry for kind, entry in _STATUSES.items() if isinstance(error, kind)), _UNAVAILABLE)
    is_for_caller = isinstance(error, BadInput | Forbidden | TooBusy | MarketUnavailable | TurnFailed)
    return status, code, str(error) if is_for_caller else failure_message(error)


_STATUSES: Mapping[type[LabError], tuple[int, str]] = {  # the first match counts
    NotFound: (404, "not_there"),
    Forbidden: (403, "forbidden"),
    TooBusy: (503, "too_busy"),
    MarketUnavailable: (503, "market_away"),
    TurnFailed: (503, "model_away"),
    BadInput: (422, "bad_input"),
    StoreUnavailable: (503, "store_away"),
    **dict.fromkeys(MODEL_ERRORS, (503, "model_away")),
}
_UNAVAILABLE = 503, "unavailable"


def register_error_handlers(app: FastAPI) -> None:
    """Register the error handlers of an application."""

    @app.exception_handler(LabError)
    async def lab_error(request: Request, error: LabError) -> JSONResponse:
        return _error_json(request, *describe_error(error))

    @app.exception_handler(RefusedEnvelope)
    async def refused_envelope(request: Request, error: RefusedEnvelope) -> JSONResponse:
        return JSONResponse(*refusal_reply(error))

    @app.exception_handler(RequestValidationError)
    async def validation_error(request: Request, error: RequestValidationError) -> JSONResponse:
        return _error_json(request, 422, "bad_input", _describe_validation_error(error.errors()))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        code = {404: "not_there", 405: "wrong_method"}.get(error.status_code, "refused")
        return _error_json(request, error.status_code, code, str(error.detail), dict(error.headers or {}))


def _describe_validation_error(problems: Sequence[Mapping[str, Any]]) -> str:
    """Describe the first validation error of a request: the field, and what is wrong with it."""
    if (kind := problems[0]["type"]) == "json_invalid":
        return "the body is no JSON"
    where, problem = first_problem(
        [{**each, "loc": [step for step in each["loc"] if step != "body"]} for each in problems]
    )
    problem = "it has to be a JSON object" if kind in ("dict_type", "model_attributes_type") else problem
    return f"{where[:_MAX_FIELD_LENGTH]}: {problem}" if where else f"the body: {problem}"


def _error_json(
    request: Request, status: int, code: str, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    # it may contain half of a surrogate pair, which no response can hold
    message = message.encode("utf-8", "replace").decode()
    retry_headers = {"retry-after": "5"} if status == 503 else {}
    body = error_body(request.url.path, status, code, message)
    return JSONResponse(body, status, headers={**(headers or {}), **retry_headers})


# Events of a chat, generated in a thread and sent to a client that may disconnect at any time, which stops
# the model.

_QUEUE_SIZE = 32  # events queued for a slow client


class StreamLimiter:
    """Limits how many chats run at once over all protocols, each in its own thread."""

    def __init__(self, streams: int, seconds: float):
        self._streams, self._seconds = streams, seconds
        self.running = 0  # chats
        self._lock = threading.Lock()

    def acquire(self) -> None:
        """Reserve a slot. Raises TooBusy if there is none."""
        with self._lock:
            if self.running >= self._streams:
                raise TooBusy
            self.running += 1

    def release(self) -> None:
        with self._lock:
            self.running -= 1

    async def start_turn(self, ask: Callable[[], ExpertTurn]) -> tuple[ExpertTurn, EventStream]:
        """Start a question and return its turn and its running answer.

        Raises TooBusy if the limit is reached, and what `ask` raises.
        """
        self.acquire()
        try:
            turn = await run_in_threadpool(ask)
        except BaseException:
            self.release()
            raise
        stream = EventStream(asyncio.get_running_loop(), self._seconds)
        # a daemon: a model that hangs does not keep the server from ending
        threading.Thread(target=stream.produce, args=(turn.events(), self.release), daemon=True).start()
        return turn, stream


class EventStream:
    """Events that a thread generates and a client reads.

    When the client leaves, they are closed in the thread, which releases the slot.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float):
        self._loop, self._seconds = loop, seconds
        self._queue: asyncio.Queue[ChatEvent | None] = asyncio.Queue(_QUEUE_SIZE)
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Record that nobody reads any more, in the event loop. The model is stopped at its next token."""
        self._cancelled.set()
        while not self._queue.empty():
            self._queue.get_nowait()
        self._queue.put_nowait(None)

    @asynccontextmanager
    async def cancel_on_disconnect(self, receive: Receive) -> AsyncIterator[None]:
        """Stop the events if the client disconnects while it waits for the whole answer.

        `receive` reports the disconnect.
        """

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            self.cancel()

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
            self.cancel()

    def produce(self, events: Generator[ChatEvent, None, None], on_end: Callable[[], None]) -> None:
        """Generate the events until the last one, or until nobody reads them."""
        try:
            with closing(events):
                for event in events:
                    if event != TokenEvent(""):
                        self._put(event)
                    if self._cancelled.is_set():
                        break
        except Exception as error:
            self._put(ChatFailed(failure_message(error)))
            self._put(ChatDone(""))
        finally:
            on_end()
            self._put(None)

    def _put(self, event: ChatEvent | None) -> None:
        putting = self._queue.put(event)
        try:
            done = asyncio.run_coroutine_threadsafe(putting, self._loop)
        except RuntimeError:  # the loop has ended, and with it the reader
            putting.close()
            return
        while not self._cancelled.is_set():
            with suppress(TimeoutError):
                done.result(timeout=0.2)
                return
        done.cancel()

    async def collect(self) -> tuple[str, tuple[SourceNode, ...], ChatDone]:
        """Wait for the complete answer, and return its text, the nodes in the prompt and its end.

        Raises TurnFailed if there is none.
        """
        record = AnswerRecord()
        async with aclosing(self.events()) as events:
            async for event in events:
                record.record(event)
                if record.trouble:
                    raise TurnFailed(record.trouble)
        return record.text, record.sources, record.done or ChatDone("")

    async def events(self) -> AsyncGenerator[ChatEvent, None]:
        """Yield the events as they come, and stop the model if the time is over or the client leaves."""
        deadline = self._loop.time() + self._seconds
        try:
            while True:
                try:
                    remaining = max(0.001, deadline - self._loop.time())
                    event = await asyncio.wait_for(self._queue.get(), remaining)
                except TimeoutError:
                    yield ChatFailed(f"the answer took longer than {self._seconds:g} s and was stopped")
                    yield ChatDone("")
                    return
                if event is None:
                    return
                yield event
        finally:
            self.cancel()


def event_frame(data: Mapping[str, Any]) -> str:
    """Format a JSON object as the frame of a server-sent event, in ASCII, because some clients split lines elsewhere."""
    return f"data: {json.dumps(data)}\n\n"


class EventStreamResponse(StreamingResponse):
    """A response of events as they come. The model is stopped when it ends, in whatever way."""

    def __init__(
        self, stream: EventStream, content: AsyncIterator[str], media_type: str = "text/event-stream"
    ):
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(content, media_type=media_type, headers=headers)
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.cancel()
