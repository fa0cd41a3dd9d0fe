"""Waiting in tests: for a state and never for a time, so that a busy computer makes a test slower and not
wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

AMPLE = 240.0  # seconds: the time limit of what must succeed, and how long a state is waited for; it only ends what hangs
_PAUSE = 0.01  # seconds between two looks

Seen = TypeVar("Seen")


def until(look: Callable[[], Seen], what: str) -> Seen:
    """What `look` gives as soon as it is true; fails when that never comes."""
    given_up = time.monotonic() + AMPLE
    while not (seen := look()):
        assert time.monotonic() < given_up, f"waited {AMPLE:g} s in vain until {what}"
        time.sleep(_PAUSE)
    return seen


def processes_below(pid: int) -> set[int]:
    """The processes that a process started, and those that they started, on Linux."""
    found: set[int] = set()
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = {int(child) for child in path.read_text().split()}
        except OSError:  # it ended in the meantime
            continue
        found |= children.union(*map(processes_below, children))
    return found
