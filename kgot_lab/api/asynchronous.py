"""The loop for asyncio. The core is synchronous: a thread of its own runs each iteration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from kgot_lab.io.coroutines import CALLER_LOOP, CallerLoop
from kgot_lab.loop.controller import think
from kgot_lab.loop.replay.replay import resume

_Arguments = ParamSpec("_Arguments")
_Item = TypeVar("_Item")


def iterate_in_thread(
    function: Callable[_Arguments, Iterator[_Item]],
) -> Callable[_Arguments, AsyncGenerator[_Item, None]]:
    """Return an asynchronous form of a function that yields items.

    One thread runs the call and every step, in the context of the first step. Errors arrive as themselves. A
    task that is cancelled, or an iterator that is closed, waits for the step that runs, and no other begins.
    Coroutines of tools and models run in the event loop of the caller, and are cancelled with it.
    """

    @wraps(function)
    async def iterate(*args: _Arguments.args, **options: _Arguments.kwargs) -> AsyncGenerator[_Item, None]:
        thread, end = ThreadPoolExecutor(1, thread_name_prefix=function.__name__), object()
        context, caller = copy_context(), CallerLoop()
        context.run(CALLER_LOOP.set, caller)
        step: Callable[..., Any] = context.run
        run: Callable[..., Awaitable[Any]] = partial(asyncio.get_running_loop().run_in_executor, thread, step)
        items = await run(partial(function, *args, **options))
        try:
            while (item := await run(next, items, end)) is not end:
                yield item
        finally:
            caller.close()
            if isinstance(items, Generator):
                await run(items.close)  # in its thread, so after the step that runs
            thread.shutdown(wait=False)

    return iterate


athink = iterate_in_thread(think)
athink.__name__ = athink.__qualname__ = "athink"
aresume = iterate_in_thread(resume)
aresume.__name__ = aresume.__qualname__ = "aresume"
aresume.__doc__ = """Continue a run from its trace as `resume` does, without blocking the event loop."""
athink.__doc__ = """Yield the events of `think` without blocking the event loop: `async for event in athink(…)`.

    The arguments are those of `think`. Coroutines of tools and models run in this event loop. A task that is
    cancelled cancels them and waits for the event that is being made, and the run stops there, so a store may be
    closed right after it. Leave a run early inside `contextlib.aclosing(athink(…))`. Raises what `think` raises, at
    the first event.
    """
