"""How much work something is, told without a clock: by the calls it makes, or by the processor time that this
process alone has used.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class TooMuchWork(AssertionError):
    """Something computes far longer than it should."""


def calls(work: Callable[[], object]) -> int:
    """How many functions some work calls, those written in C included: the same number on a busy computer as
    on a quiet one.
    """
    count = 0

    def hear(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(hear)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@contextmanager
def computing_at_most(seconds: float) -> Iterator[None]:
    """Raise TooMuchWork in a block that computes longer; time in which others had the processor does not
    count.

    For what a count of calls does not see, such as a pattern that goes back and forth over a text. Choose a
    hundred times what it takes.
    """

    def stop(*_: object) -> None:
        raise TooMuchWork(f"more than {seconds:g} s of processor time")

    usual = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, usual)
