"""Calls that run side by side, and are recorded one after the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from threading import BoundedSemaphore, Thread
from typing import Any

PARALLEL = 4  # calls at once, unless a run says otherwise


class CallPool:
    """Calls that were begun before their turn. Each is taken in its turn, so that a replay is the same.

    `size` is how many run at once; 1 begins none before its turn.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._slots = BoundedSemaphore(size)
        self._begun: dict[Hashable, Future[Any]] = {}

    def begin(self, calls: Mapping[Hashable, Callable[[], Any]]) -> None:
        """Begin the calls that were not begun yet, unless there is one or only one may run at once."""
        new = {key: act for key, act in calls.items() if key not in self._begun}
        if min(self._size, len(new)) < 2:
            return
        for key, act in new.items():
            call: Future[Any] = Future()
            self._begun[key] = call
            # a daemon, unlike the threads of an executor: whoever stops a run does not wait for its calls
            Thread(target=copy_context().run, args=(self._call, call, act), daemon=True).start()

    def take(self, key: Hashable, act: Callable[[], Any]) -> Any:
        """Return the result of a call that was begun, or else make it now."""
        begun = self._begun.pop(key, None)
        return act() if begun is None else begun.result()

    def close(self) -> None:
        """Cancel what has not begun to run. What runs is not waited for."""
        for call in self._begun.values():
            call.cancel()

    def _call(self, call: Future[Any], act: Callable[[], Any]) -> None:
        with self._slots:
            if call.set_running_or_notify_cancel():
                try:
                    call.set_result(act())
                except BaseException as error:  # raised where the result is taken
                    call.set_exception(error)
