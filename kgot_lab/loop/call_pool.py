"""Calls that run side by side, and are recorded one after the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

PARALLEL = 4  # calls at once, unless a run says otherwise


class CallPool:
    """Calls that were begun before their turn. Each is taken in its turn, so that a replay is the same.

    `size` is how many run at once; 1 begins none before its turn.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._threads: ThreadPoolExecutor | None = None
        self._begun: dict[Hashable, Future[Any]] = {}

    def begin(self, calls: Mapping[Hashable, Callable[[], Any]]) -> None:
        """Begin the calls that were not begun yet, unless there is one or only one may run at once."""
        new = {key: act for key, act in calls.items() if key not in self._begun}
        if min(self._size, len(new)) < 2:
            return
        self._threads = self._threads or ThreadPoolExecutor(self._size, "kgot-lab-call")
        for key, act in new.items():
            self._begun[key] = self._threads.submit(copy_context().run, act)

    def take(self, key: Hashable, act: Callable[[], Any]) -> Any:
        """Return the result of a call that was begun, or else make it now."""
        begun = self._begun.pop(key, None)
        return act() if begun is None else begun.result()

    def close(self) -> None:
        """Cancel what has not begun to run. What runs is not waited for."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
