"""What a room says after it was held under fire, and what rooms share: cases in turn, and the most memory
they took.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Case = Callable[[random.Random, Path], str]  # plays something in a folder; what goes wrong, "" for nothing


@dataclass(frozen=True)
class Counts:
    """How many cases a room ran, and its distinct faults: a name for each, and the smallest input that shows
    it.
    """

    cases: int
    faults: dict[str, str] = field(default_factory=dict)


def fault_of(case: Case, number: int) -> str:
    """What goes wrong in one case of this number; "" for nothing."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return case(random.Random(number), Path(folder))
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def in_turn(played: Sequence[Case], seconds: float, seed: int) -> Counts:
    """Each case in turn, with another chance each time."""
    ended, numbers, cases, faults = time.monotonic() + seconds, random.Random(seed), 0, dict[str, str]()
    while time.monotonic() < ended:
        number = numbers.randrange(2**32)
        for case in played:
            cases += 1
            if fault := fault_of(case, number):
                told = f"{case.__name__}, chance {number}: {fault}"
                faults.setdefault(f"{case.__name__}: {fault[:80]}", told)
    return Counts(cases, faults)


def forget_peak() -> None:
    """Let the most memory that this process ever had be what it has now."""
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """The most memory that this process ever had; 0 where nobody tells."""
    if sys.platform != "linux":
        return 0.0
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
