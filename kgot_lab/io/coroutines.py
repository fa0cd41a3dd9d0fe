"""Coroutines of callers, run to their end in synchronous code."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context


def run_awaitable(value: object) -> object:
    """Run what a coroutine function returned to its end and return its result. Other values are returned as they are.

    Where an event loop already runs, as in a notebook, it runs in a thread of its own. Raises what it raises.
    """
    if not inspect.isawaitable(value):
        return value

    async def finish() -> object:
        return await value

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(finish())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, finish()).result()
