"""Events of a chat, which a thread makes, given on to a client that may leave at any time: then the model stops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

from kgot_lab.errors import LabError
from kgot_lab.experts.chat.happening import ChatDone, ChatEvent, ChatFailed

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_AHEAD = 32  # events that may wait for a slow client


class Faucet:
    """So many chats at once, each with a thread of its own; `full` says that no more may begin."""

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

    def pour(self, events: Iterator[ChatEvent]) -> Pour:
        """Begin to make the events, for which a place was taken, in a thread of their own."""
        pour = Pour(asyncio.get_running_loop(), self._seconds)
        try:
            self._threads.submit(pour.make, events, self.give_back)
        except RuntimeError:
            self.give_back()
            raise
        return pour


class Pour:
    """Events that a thread makes and a client reads; when it leaves they are closed in their thread, which gives the place back."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float):
        self._loop, self._seconds = loop, seconds
        self._waiting: asyncio.Queue[ChatEvent | None] = asyncio.Queue(_AHEAD)
        self._left = threading.Event()

    def leave(self) -> None:
        """Nobody reads any more: at its next word the model is stopped."""
        self._left.set()

    def make(self, events: Iterator[ChatEvent], ended: Callable[[], None]) -> None:
        """Make the events, until the last, or until nobody reads them."""
        try:
            for event in events:
                self._put(event)
                if self._left.is_set():
                    break
        except LabError as error:
            self._put(ChatFailed(str(error)))
            self._put(ChatDone(""))
        finally:
            close: Any = getattr(events, "close", None)
            if close is not None:
                close()
            ended()
            self._put(None)

    def _put(self, event: ChatEvent | None) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it whoever read
            done = asyncio.run_coroutine_threadsafe(self._waiting.put(event), self._loop)
            while not self._left.is_set():
                with suppress(TimeoutError):
                    done.result(timeout=0.2)
                    return
            done.cancel()

    async def events(self) -> AsyncIterator[ChatEvent]:
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


class PouredResponse(StreamingResponse):
    """A response of events; however it ends, the model stops."""

    def __init__(self, pour: Pour, content: AsyncIterator[str]):
        super().__init__(content, media_type="text/event-stream", headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        self._pour = pour

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._pour.leave()
