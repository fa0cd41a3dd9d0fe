"""Power that fails and disks that refuse: what was acknowledged is there when the file is opened again,
whatever became of the rest.

A disk is played: what was written before the last fsync is on it, and of each later write all, a part or
nothing, in any order.
"""

from __future__ import annotations

import errno
import io
import os
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from fire.counting import Case, Counts, in_turn
from kgot_lab.errors import StoreUnavailable, TraceError
from kgot_lab.loop.events import Answered, Asked
from kgot_lab.loop.trace import load_run, record
from kgot_lab.stores import log
from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.stores.sqlite.store import Sqlite
from kgot_lab.types import Diff, Node, Prompt, Usage

FAILURES = (
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EIO, "Input/output error"),
    MemoryError(),
)


def node(number: int) -> Diff:
    return Diff(added_nodes=(Node(f"n{number}", ("Thing",), {"text": "x" * (number * 37 % 300)}),))


# --- a disk that is played ---


class Disk:
    """What one file's writer did: writes, cuts and syncs in their order; and at which call the next failure
    comes.
    """

    def __init__(self) -> None:
        self.done: list[tuple[str, int, bytes]] = []
        self.calls, self.fails_at, self.failure = 0, -1, FAILURES[0]

    def call(self) -> None:
        self.calls += 1
        if self.calls == self.fails_at:
            raise self.failure

    def after_power_loss(self, chance: random.Random) -> bytes:
        """What may be on the disk: all up to the last sync, and anything of what came later."""
        synced = max((place for place, (what, _, _) in enumerate(self.done) if what == "sync"), default=-1)
        held = bytearray()
        for what, place, data in self.done[: synced + 1]:
            _do(held, what, place, data)
        later = [act for act in self.done[synced + 1 :] if chance.random() < 0.7]
        chance.shuffle(later)
        for what, place, data in later:
            cut = chance.choice([0, len(data), chance.randrange(len(data) + 1)])
            torn = chance.choice([data[:cut], bytes(cut) + data[cut:], data])
            _do(held, what, place, torn)
        return bytes(held)


def _do(held: bytearray, what: str, place: int, data: bytes) -> None:
    if what == "write":
        held.extend(bytes(max(0, place - len(held))))
        held[place : place + len(data)] = data
    elif what == "cut":
        del held[place:]


@contextmanager
def on(disk: Disk) -> Iterator[None]:
    """Let the log write to a played disk, beside the real file."""

    class Played(io.FileIO):
        def write(self, data):
            disk.call()
            disk.done.append(("write", self.tell(), bytes(data)))
            return super().write(data)

    def cut(descriptor, size, real=os.ftruncate):
        disk.call()
        disk.done.append(("cut", size, b""))
        real(descriptor, size)

    def sync(descriptor, real=os.fsync):
        disk.call()
        disk.done.append(("sync", 0, b""))

    played = SimpleNamespace(**{n: getattr(os, n) for n in dir(os)} | {"fsync": sync, "ftruncate": cut})
    with patch.object(log, "io", SimpleNamespace(FileIO=Played)), patch.object(log, "os", played):
        yield


# --- the log ---


def log_after_power_loss(chance: random.Random, folder: Path) -> str:
    """Write to a log, let the power fail, and open what is left; "" if nothing that was acknowledged is
    missing.
    """
    disk, path = Disk(), folder / "graph.log"
    with on(disk):
        store = InMemory(path=path)
        acknowledged = chance.randrange(6)
        for number in range(acknowledged):
            store.apply(node(number))
            if chance.random() < 0.2:
                store.close()
                store = InMemory(path=path)
        marks = len(disk.done)
        store.apply(node(acknowledged))
        # the power failed somewhere in this write
        until_then = disk.done[: chance.randrange(marks, len(disk.done) + 1)]
        store.close()
    disk.done = until_then
    left = disk.after_power_loss(chance)
    path.write_bytes(left)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with InMemory(path=path) as again:
            ids = again.graph().ids
            again.apply(node(99))
    wanted = tuple(f"n{number}" for number in range(acknowledged))
    return "" if ids in (wanted, (*wanted, f"n{acknowledged}")) else f"{ids} of {wanted}"


def log_after_a_failure(chance: random.Random, folder: Path) -> str:
    """Let one call of a write fail; the write is refused in one sentence, nothing else is lost, and the next
    one works.
    """
    disk, path = Disk(), folder / "graph.log"
    with on(disk):
        store = InMemory(path=path)
        store.apply(node(0))
        disk.failure, disk.calls, disk.fails_at = chance.choice(FAILURES), 0, chance.randrange(1, 6)
        refused = False
        try:
            store.apply(node(1))
        except (StoreUnavailable, MemoryError) as error:
            refused = True
            if isinstance(error, StoreUnavailable) and "\n" in str(error):
                return f"more than a sentence: {error}"
        disk.fails_at = -1
        held = store.graph().ids
        store.apply(node(2))
        store.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with InMemory(path=path) as again:
            ids = again.graph().ids
    only = ("n0",) if refused else ("n0", "n1")
    allowed = [("n0",), ("n0", "n1")] if isinstance(disk.failure, MemoryError) else [only]
    found = f"{disk.failure!r} at call {disk.fails_at}: {held}, then {ids}"
    return "" if held in allowed and ids == (*held, "n2") else found


# --- SQLite ---


def sqlite_after_power_loss(chance: random.Random, folder: Path) -> str:
    """Tear what SQLite had not yet acknowledged off its log."""
    path, left = folder / "graph.db", folder / "left.db"
    acknowledged = chance.randrange(1, 5)
    with Sqlite(path) as store:
        for number in range(acknowledged):
            store.apply(node(number))
        before = path.with_name("graph.db-wal").stat().st_size
        store.apply(node(acknowledged))
        left.write_bytes(path.read_bytes())
        wal = path.with_name("graph.db-wal").read_bytes()
    size = chance.randrange(before, len(wal) + 1)
    zeroed = wal[:before] + bytes(size - before) + wal[size:]
    torn = chance.choice([wal[:size], wal[:size] + bytes(len(wal) - size), zeroed])
    left.with_name("left.db-wal").write_bytes(torn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Sqlite(left) as again:
            ids = again.graph().ids
    wanted = tuple(f"n{number}" for number in range(acknowledged))
    return "" if ids in (wanted, (*wanted, f"n{acknowledged}")) else f"{ids} of {wanted}"


def sqlite_on_a_full_disk(chance: random.Random, folder: Path) -> str:
    """Let the file have no more pages: the write is refused in one sentence and the next one that fits is
    made.
    """
    with Sqlite(folder / "graph.db") as store:
        store.apply(node(0))
        writer = store._connection
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.set_authorizer(None)
        writer.execute(f"PRAGMA max_page_count = {pages + chance.randrange(3)}").fetchall()
        try:
            nodes = tuple(Node(f"m{number}", (), {"text": "y" * 500}) for number in range(100))
            store.apply(Diff(added_nodes=nodes))
            return "a full disk took a write"
        except StoreUnavailable as error:
            if "\n" in str(error):
                return f"more than a sentence: {error}"
        writer.execute("PRAGMA max_page_count = 1000000").fetchall()
        store.apply(node(1))
    with Sqlite(folder / "graph.db") as again:
        return "" if again.graph().ids == ("n0", "n1") else str(again.graph().ids)


# --- traces ---


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
    path, failure = folder / "run.jsonl", chance.choice(FAILURES[:2])
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


CASES: tuple[Case, ...] = (
    log_after_power_loss, log_after_a_failure, sqlite_after_power_loss, sqlite_on_a_full_disk, trace_after_power_loss, trace_on_a_full_disk,
)  # fmt: skip


def run(seconds: float, seed: int) -> Counts:
    """Each case in turn, with another chance each time."""
    return in_turn(CASES, seconds, seed)
