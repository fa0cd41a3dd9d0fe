"""Coroutines of callers, run to their end in synchronous code."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import ContextVar, copy_context


class CallerLoop:
    """The event loop of a caller whose synchronous code runs in threads.

    Coroutines of that code run in this loop, and end where the caller does.
    """

    def __init__(self) -> None:
        self._loop, self._running = asyncio.get_running_loop(), set[asyncio.Task[object] | None]()
        self._is_closed = False

    def run(self, value: Awaitable[object]) -> object:
        """Run an awaitable in the loop, from another thread, and return its result."""
        try:
            return asyncio.run_coroutine_threadsafe(self._finish(value), self._loop).result()
        except CancelledError:
            if self._is_closed:
                raise asyncio.CancelledError from None
            raise RuntimeError("it was cancelled") from None

    async def _finish(self, value: Awaitable[object]) -> object:
        task = asyncio.current_task()
        self._running.add(task)
        try:
            if self._is_closed:
                self.close()
            return await value
        finally:
            self._running.discard(task)

    def close(self) -> None:
        """Cancel what runs, and what is still to come."""
        self._is_closed = True
        for task in filter(None, self._running):
            task.cancel()


CALLER_LOOP: ContextVar[CallerLoop | None] = ContextVar("caller_loop", default=None)


def run_awaitable(value: object) -> object:
    """Run what a coroutine function returned to its end and return its result. Other values are returned as they are.

    Under `athink` it runs in the event loop of the caller. Elsewhere, where an event loop already runs, as in a
    notebook, it runs in a thread of its own. Raises what it raises.
    """
    if not inspect.isawaitable(value):
        return value
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        caller = CALLER_LOOP.get()
        return caller.run(value) if caller else asyncio.run(_finish(value))
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, _finish(value)).result()


async def _finish(value: Awaitable[object]) -> object:
    return await value
