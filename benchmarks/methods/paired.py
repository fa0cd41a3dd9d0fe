"""The same question to several programs: their answers are compared, and then they are timed in turn, round
after round.
"""

from __future__ import annotations

import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib import metadata
from typing import Any

from kgot_lab.errors import LabError

OURS = "ours"


class AnswersDiffer(LabError):
    """Two programs that are timed beside each other do not answer the same."""


@dataclass(frozen=True)
class PutToAll:
    """A question, how we answer it and how others do; `compared` is what of our answer theirs has to be, and
    `target` milliseconds.
    """

    name: str
    ours: Callable[[], Any]
    others: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    compared: Callable[[Any], Any] = lambda found: found
    target: float | None = None


def in_turn(contest: PutToAll, rounds: int) -> dict[str, Any]:
    """The medians of everybody's time, and for each of the others the median of its time over ours in the
    same round.

    Nothing is timed before the answers are found to be the same; that call also makes what is made once. Who
    begins changes from round to round. Raises AnswersDiffer.
    """
    mine = contest.compared(contest.ours())
    for name, other in contest.others.items():
        if not same_answer(mine, other()):
            raise AnswersDiffer(f"{contest.name}: {name} and ours give different answers")
    calls = list({OURS: contest.ours, **contest.others}.items())
    clock: dict[str, list[float]] = {name: [] for name, _ in calls}
    processor: dict[str, list[float]] = {name: [] for name, _ in calls}
    for number in range(rounds):
        for place in range(len(calls)):
            name, call = calls[(place + number) % len(calls)]
            begin = time.perf_counter(), time.process_time()
            call()
            clock[name].append(1000 * (time.perf_counter() - begin[0]))
            processor[name].append(1000 * (time.process_time() - begin[1]))
    ratios = {
        name: statistics.median(other / own for other, own in zip(clock[name], clock[OURS], strict=True))
        for name in contest.others
    }
    return {
        "name": contest.name,
        "target_ms": contest.target,
        "ms": {name: round(statistics.median(taken), 4) for name, taken in clock.items()},
        "processor_ms": {name: round(statistics.median(taken), 4) for name, taken in processor.items()},
        "times_ours": {name: float(f"{ratio:.3g}") for name, ratio in ratios.items()},
    }


def same_answer(one: Any, other: Any) -> bool:
    """Whether two answers are the same but for the last bits of their numbers."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(same_answer(one[key], other[key]) for key in one)
        )
    if isinstance(one, tuple | list):
        return (
            isinstance(other, tuple | list) and len(one) == len(other) and all(map(same_answer, one, other))
        )
    if isinstance(one, float | int) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)


def machine_of(*packages: str) -> dict[str, Any]:
    """What something is measured on, with the load before: a computer of two cores is busy where that is near
    2.
    """
    versions = {}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}", "python": platform.python_version(),
        "packages": versions, "load_before": round(os.getloadavg()[0], 1), "date": date.today().isoformat(),
    }  # fmt: skip
