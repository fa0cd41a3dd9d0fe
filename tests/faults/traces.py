"""Traces when the power fails or the disk refuses: what was passed on is in the trace."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from faults.counting import Case, Counts, in_turn
from kgot_lab.errors import TraceError
from kgot_lab.loop.events import Answered, Asked
from kgot_lab.loop.trace import load_run, record
from kgot_lab.types import Prompt, Usage

FAILURES = (OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EIO, "Input/output error"))


def asked(number: int) -> Asked:
    reply = f"reply {number} " + "z" * (number * 41 % 200)
    return Asked(role="INSERT", model="m", prompt=Prompt(()), reply=reply, usage=Usage(1, 1, 0.1, 0.01))


def trace_after_power_loss(chance: random.Random, folder: Path) -> str:
    """Replies that were passed on are in the trace, whatever became of what was not yet on the disk."""
    path, synced = folder / "run.jsonl", [0]

    def sync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)

    replies = chance.randrange(1, 6)
    with patch("kgot_lab.loop.trace.os", SimpleNamespace(fsync=sync, SEEK_END=os.SEEK_END)):
        for _ in record(map(asked, range(replies)), path):
            pass
    data = path.read_bytes()
    size = chance.randrange(synced[-1], len(data) + 1)
    path.write_bytes(data[:size] + bytes(chance.choice([0, 50])))
    kept = len(load_run(path).events)
    return "" if kept == replies else f"{kept} of {replies} replies"


def trace_on_a_full_disk(chance: random.Random, folder: Path) -> str:
    """A write that fails is one sentence, and what was recorded before is sound."""
    path, failure = folder / "run.jsonl", chance.choice(FAILURES)
    passed, fails_at = 0, chance.randrange(1, 4)

    def sync(descriptor: int) -> None:
        if passed == fails_at:
            raise failure

    with patch("kgot_lab.loop.trace.os", SimpleNamespace(fsync=sync, SEEK_END=os.SEEK_END)):
        try:
            for _ in record((*map(asked, range(4)), Answered(text="x", forced=False)), path):
                passed += 1
            return "a full disk took a trace"
        except TraceError as error:
            if "\n" in str(error):
                return f"more than a sentence: {error}"
    return "" if len(load_run(path).events) >= passed else f"{len(load_run(path).events)} of {passed} events"


CASES: tuple[Case, ...] = (trace_after_power_loss, trace_on_a_full_disk)


def run(seconds: float, seed: int) -> Counts:
    """Each case in turn, with another chance each time."""
    return in_turn(CASES, seconds, seed)
