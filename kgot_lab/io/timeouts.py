"""Ending what takes too long and cannot be told how long it may."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def ended_after(seconds: float, end: Callable[[], object]) -> Iterator[threading.Event]:
    """Call `end`, from another thread, when what happens here takes longer; the event says that it did."""
    late = threading.Event()

    def act() -> None:
        late.set()
        end()

    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()
