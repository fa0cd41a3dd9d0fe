"""Events of a chat, which a thread makes, given on to a client that may leave at any time: then the model
stops.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from kgot_lab.experts.chat.chat_events import (
    ChatDone,
    ChatEvent,
    ChatFailed,
    SourceNode,
    SourcesEvent,
    TokenEvent,
)
from kgot_lab.experts.chat.turn import ExpertTurn
from kgot_lab.experts.error_messages import failure_message
from kgot_lab.experts.http.responses import TooBusy, TurnFailed

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_AHEAD = 32  # events that may wait for a slow client


class WholeAnswer(NamedTuple):
    """An answer that came to its end: its text, what the model was told of, and what was kept."""

    text: str
    sources: tuple[SourceNode, ...]
    done: ChatDone


class StreamLimiter:
    """So many chats at once over all doors, each with a thread of its own."""

    def __init__(self, streams: int, seconds: float):
        self._threads = ThreadPoolExecutor(streams, thread_name_prefix="chat")
        self._streams, self._seconds = streams, seconds
        self._open = 0
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Take a place; False where there is none."""
        with self._lock:
            if self._open >= self._streams:
                return False
            self._open += 1
            return True

    def give_back(self) -> None:
        with self._lock:
            self._open -= 1

    @property
    def open(self) -> int:
        """How many chats are going on."""
        return self._open

    def close(self) -> None:
        """Let no chat begin any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def begin(self, ask: Callable[[], ExpertTurn]) -> tuple[ExpertTurn, Pour]:
        """A question that is asked, and its answer as it begins; raises TooBusy where there is no place, and
        what asking raises.
        """
        if not self.take():
            raise TooBusy
        try:
            turn = await run_in_threadpool(ask)
        except BaseException:
            self.give_back()
            raise
        return turn, self.pour(turn.events())

    def pour(self, events: Generator[ChatEvent, None, None]) -> Pour:
        """Begin to make the events, for which a place was taken, in a thread of their own."""
        pour = Pour(asyncio.get_running_loop(), self._seconds)
        try:
            self._threads.submit(pour.make, events, self.give_back)
        except RuntimeError:  # the server is ending
            self.give_back()
            raise TooBusy from None
        return pour


class Pour:
    """Events that a thread makes and a client reads; when it leaves they are closed in their thread, which
    gives the place back.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float):
        self._loop, self._seconds = loop, seconds
        self._waiting: asyncio.Queue[ChatEvent | None] = asyncio.Queue(_AHEAD)
        self._left = threading.Event()

    def leave(self) -> None:
        """Nobody reads any more, which is said in the loop: at its next word the model is stopped."""
        self._left.set()
        while not self._waiting.empty():
            self._waiting.get_nowait()
        self._waiting.put_nowait(None)

    @asynccontextmanager
    async def read_whole(self, receive: Receive) -> AsyncIterator[None]:
        """While somebody waits for the whole answer: when they leave, which `receive` tells, the events end."""

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            self.leave()

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
            self.leave()

    def make(self, events: Generator[ChatEvent, None, None], ended: Callable[[], None]) -> None:
        """Make the events, until the last, or until nobody reads them."""
        try:
            with closing(events):
                for event in events:
                    if event != TokenEvent(""):
                        self._put(event)
                    if self._left.is_set():
                        break
        except Exception as error:
            self._put(ChatFailed(failure_message(error)))
            self._put(ChatDone(""))
        finally:
            ended()
            self._put(None)

    def _put(self, event: ChatEvent | None) -> None:
        putting = self._waiting.put(event)
        try:
            done = asyncio.run_coroutine_threadsafe(putting, self._loop)
        except RuntimeError:  # the loop has ended, and with it whoever read
            putting.close()
            return
        while not self._left.is_set():
            with suppress(TimeoutError):
                done.result(timeout=0.2)
                return
        done.cancel()

    async def whole(self) -> WholeAnswer:
        """The answer once it is whole; raises TurnFailed where there is none."""
        text, sources, done = "", tuple[SourceNode, ...](), ChatDone("")
        async with aclosing(self.events()) as events:
            async for event in events:
                match event:
                    case SourcesEvent(nodes):
                        sources = nodes
                    case TokenEvent(content):
                        text += content
                    case ChatFailed(why):
                        raise TurnFailed(why)
                    case ChatDone():
                        done = event
        return WholeAnswer(text, sources, done)

    async def events(self) -> AsyncGenerator[ChatEvent, None]:
        """The events as they come."""
        until = self._loop.time() + self._seconds
        try:
            while True:
                try:
                    event = await asyncio.wait_for(self._waiting.get(), max(0.001, until - self._loop.time()))
                except TimeoutError:
                    yield ChatFailed(f"the answer took longer than {self._seconds:g} s and was stopped")
                    yield ChatDone("")
                    return
                if event is None:
                    return
                yield event
        finally:
            self.leave()


class EventStreamResponse(StreamingResponse):
    """A response of events; however it ends, the model stops."""

    def __init__(self, pour: Pour, content: AsyncIterator[str]):
        super().__init__(
            content,
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )
        self._pour = pour

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._pour.leave()
