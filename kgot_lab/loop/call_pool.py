"""Calls that run side by side, and are recorded one after the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from threading import BoundedSemaphore, Thread
from typing import Any

from kgot_lab.loop.events import Event

PARALLEL = 4  # calls at once, unless a run says otherwise
THREAD_NAME = "kgot_lab call"
EarlyEvents = Callable[[Hashable, Future[Any]], Iterable[Event]]


class CallPool:
    """Calls that were begun before their turn. Each is taken in its turn, so that a replay is the same.

    `size` is how many run at once; 1 begins none before its turn.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._slots = BoundedSemaphore(size)
        self._begun: dict[Hashable, tuple[Future[Any], EarlyEvents]] = {}

    def begin(self, calls: Mapping[Hashable, Callable[[], Any]], early: EarlyEvents) -> None:
        """Begin the calls that were not begun yet, unless there is one or only one may run at once.

        `early` makes the events of a call that has ended, if the run is stopped before its turn.
        """
        new = {key: act for key, act in calls.items() if key not in self._begun}
        if min(self._size, len(new)) < 2:
            return
        for key, act in new.items():
            call: Future[Any] = Future()
            self._begun[key] = call, early
            # a daemon, unlike the threads of an executor: stopping a run does not wait for its calls
            context = copy_context()
            Thread(target=context.run, args=(self._call, call, act), name=THREAD_NAME, daemon=True).start()

    def take(self, key: Hashable, act: Callable[[], Any]) -> Any:
        """Return the result of a call that was begun, or else make it now."""
        begun = self._begun.pop(key, None)
        return act() if begun is None else begun[0].result()

    def early_events(self) -> Iterator[Event]:
        """Yield the events of the calls that have ended before their turn, for a run that is stopped."""
        for key, (call, early) in self._begun.items():
            if call.done() and not call.cancelled():
                yield from early(key, call)

    def close(self) -> None:
        """Cancel what has not begun to run. What runs is not waited for."""
        for call, _ in self._begun.values():
            call.cancel()

    def _call(self, call: Future[Any], act: Callable[[], Any]) -> None:
        with self._slots:
            if call.set_running_or_notify_cancel():
                try:
                    call.set_result(act())
                except BaseException as error:  # raised where the result is taken
                    call.set_exception(error)
