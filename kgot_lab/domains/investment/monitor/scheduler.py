"""Running on: a tick every so often, from wherever it was stopped, until somebody asks it to end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from queue import Empty, SimpleQueue

from kgot_lab.domains.investment.monitor.events import MonitorEvent, StageFailed
from kgot_lab.domains.investment.monitor.monitor import Monitor
from kgot_lab.errors import BadInput, LabError, described_value

_LONGEST = 60.0  # seconds of one wait, after which the clock is looked at again: it may have been set, or the computer have slept


class Ending:
    """Asks a run to end, from another thread or from what hears a signal."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[None] = SimpleQueue()  # an Event must not be set by what hears a signal

    def ask(self) -> None:
        """Ask for the end."""
        self._asked.put(None)

    def is_requested(self) -> bool:
        """Whether the end was asked for."""
        return not self._asked.empty()

    def wait(self, seconds: float) -> None:
        """Wait so long, or until the end is asked for."""
        try:
            self._asked.put(self._asked.get(timeout=seconds))
        except Empty:
            return


def run_on(
    monitor: Monitor, every: timedelta, ending: Ending, *, wait: Callable[[float], object] | None = None
) -> Iterator[MonitorEvent]:
    """Walk through a tick every so often, and tell what happens in it; the first comes at once, or when the
    last one before is over.

    Ticks that were missed are one tick: it reads what has come in since, as much as a tick reads, and what
    has expired meanwhile is told to nobody. A tick that was stopped is gone on with first. The end is heard
    between two events, so a call of a model that is under way is waited for and kept. `wait` takes the
    seconds until the next look at the clock. Raises BadInput.
    """
    if not isinstance(every, timedelta) or every <= timedelta():
        raise BadInput(
            f"the time between two ticks is a timedelta of more than 0, not {described_value(every)}"
        )
    wait = wait or ending.wait
    journal = monitor.places.journal
    while not ending.is_requested():
        try:
            tick = journal.next_tick(every)
            pause = (tick.due - journal.now()).total_seconds()
            if pause <= 0:
                for event in monitor.tick(tick):
                    yield event
                    if ending.is_requested():
                        return
        except LabError as error:  # the journal cannot be reached
            yield StageFailed("tick", str(error))
            pause = every.total_seconds()
        if pause > 0:
            wait(min(pause, _LONGEST))


@contextmanager
def ended_by_signals() -> Iterator[Ending]:
    """What ends a run that is told to end by SIGTERM or SIGINT, once; a second signal ends the process at
    once. For the main thread.
    """
    ending = Ending()

    def hear(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        ending.ask()

    before = {number: signal.signal(number, hear) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
