"""Processes and threads that open, write and read one file at once: what each was told fits one order, as in
Jepsen's tests of sets, and none is refused.

Run as: python -m faults.histories KINDS FOLDER CLIENT CLIENTS ROUNDS SEED. It is one of the clients, of which the
first ones write and the last one reads until they end. Run without
arguments it reads each file that it is named.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from faults.counting import Counts
from faults.disk import MEMORY, Disk
from faults.kinds import KINDS, Kind
from faults.steps import checkpoint, work
from kgot_lab.embedding import vectors
from kgot_lab.io.sqlite import connection

EACH = 15  # things that a client writes in a round
PATIENCE = 30.0  # seconds that clients wait for each other


@dataclass(frozen=True)
class Told:
    """What a client was told: what it wrote or read, from when to when (ns), or why it was refused."""

    what: str
    begin: int
    end: int
    things: tuple[int, ...] = ()
    refused: str = ""


def fault_of(history: Iterable[Told]) -> str:
    """Why there is no one order of a history; "" if there is one.

    Writes are never taken back, so all that was read must form a chain of sets.
    """
    history = list(history)
    if refused := [told.refused for told in history if told.refused]:
        return f"{len(refused)} of {len(history)} refused: {refused[0]}"
    writes = {number: told for told in history if told.what == "write" for number in told.things}
    reads = sorted((told for told in history if told.what == "read"), key=lambda told: len(told.things))
    for read in reads:
        held = set(read.things)
        if strange := [number for number in held if number not in writes or writes[number].begin > read.end]:
            return f"{strange} was read and not written"
        if lost := [
            number for number, write in writes.items() if write.end < read.begin and number not in held
        ]:
            return f"{lost} was acknowledged, and not there for a later read of {len(held)}"
    for one, other in pairwise(reads):
        if not set(one.things) <= set(other.things):
            return f"two reads in no order: {one.things} and {other.things}"
    seen = 0
    for read in sorted(reads, key=lambda told: told.begin):
        before = max((len(told.things) for told in reads if told.end < read.begin), default=0)
        if len(read.things) < before:
            return f"a read went back from {before} to {len(read.things)} things"
        seen = max(seen, len(read.things))
    return "" if seen == len(writes) else f"{seen} of {len(writes)} things were ever read"


def tell(what: str, act: Callable[[], Iterable[int]]) -> Told:
    """Do something, and note what came of it."""
    begin = time.monotonic_ns()
    try:
        things, refused = tuple(act()), ""
    except Exception as error:
        things, refused = (), f"{type(error).__name__}: {error}"
    return Told(what, begin, time.monotonic_ns(), things, refused)


def written(kind: Kind, file: Any, number: int) -> list[int]:
    """Write a thing."""
    kind.write(file, number)
    return [number]


# --- processes ---


def round_of(kind: Kind, path: Path, client: int, writers: int, chance: random.Random) -> list[Told]:
    """What a client is told in a round, in which it opens the file again and again."""
    told, done = [], path.parent / "done"
    if client == writers:
        deadline = time.monotonic() + PATIENCE
        while (sum(1 for _ in done.iterdir()) < writers or not told) and time.monotonic() < deadline:
            told.append(tell("read", partial(read, kind, path)))
        return [*told, tell("read", partial(read, kind, path))]
    left = [client * EACH + number for number in range(EACH)]
    while left:
        begin = time.monotonic_ns()
        with closing(kind.open(path)) as file:
            told.append(Told("open", begin, time.monotonic_ns()))
            for _ in range(chance.randrange(1, 5)):
                if left:
                    number = left.pop(0)
                    told.append(tell("write", partial(written, kind, file, number)))
        if chance.random() < 0.2:
            checkpoint(path, chance.choice(("PASSIVE", "TRUNCATE")))
    (done / str(client)).touch()
    return told


def read(kind: Kind, path: Path) -> list[int]:
    """Open a file and read all that is in it."""
    with closing(kind.open(path)) as file:
        return list(kind.held(file))


def together(folder: Path, clients: int, client: int) -> None:
    """Wait until all clients are here."""
    for name in ("done", "here"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "here" / str(client)).touch()
    deadline = time.monotonic() + PATIENCE
    while sum(1 for _ in (folder / "here").iterdir()) < clients:
        if time.monotonic() > deadline:
            raise TimeoutError(f"client {client} is alone in {folder}")
        time.sleep(0.001)


def main() -> None:
    if len(sys.argv) == 1:
        return read_on_demand()
    names, folder, *numbers = sys.argv[1:]
    client, clients, rounds, seed = map(int, numbers)
    for name in names.split(","):
        for number in range(rounds):
            place, chance = Path(folder, name, str(number)), random.Random(f"{seed} {client} {number}")
            together(place, clients, client)
            told = round_of(KINDS[name], place / KINDS[name].file, client, clients - 1, chance)
            (place / f"told by {client}").write_text(json.dumps([asdict(each) for each in told]))


def environment() -> dict[str, str]:
    """That of a process which finds this module."""
    tests = Path(__file__).parents[1]
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (tests, tests.parent)))}


def faults_beside(
    kinds: Iterable[Kind], folder: Path, rounds: int, seed: int, writers: int = 2
) -> tuple[dict[str, int], dict[str, str]]:
    """How often files were opened beside their writers, and what is wrong with what was told, by kind."""
    names = [kind.name for kind in kinds]
    start = [sys.executable, "-m", "faults.histories", ",".join(names), str(folder)]
    clients = [
        subprocess.Popen(
            [*start, *map(str, (client, writers + 1, rounds, seed))],
            env=environment(),
            stderr=subprocess.PIPE,
        )
        for client in range(writers + 1)
    ]
    errors = [
        client.communicate()[1].decode() for client in clients
    ]  # each gives up when another does not come
    if any(client.returncode for client in clients):
        return {}, {"client": " ".join(error.strip().splitlines()[-1] for error in errors if error)}
    opens, faults = dict.fromkeys(names, 0), dict[str, str]()
    for name, number in product(names, range(rounds)):
        parts = [json.loads(path.read_text()) for path in Path(folder, name, str(number)).glob("told by *")]
        history = [Told(**told) for part in parts for told in part]
        opens[name] += sum(told.what != "write" for told in history)
        if fault := fault_of(history):
            faults.setdefault(name, fault)
    return opens, faults


# --- a second process at each step of a first one ---


def read_on_demand() -> None:
    """Open and read each file that is named on the input, without patience, and tell what is in it."""
    connection.BUSY_TIMEOUT = vectors.BUSY_TIMEOUT = 0.01
    for line in sys.stdin:
        name, path = line.rstrip().split(" ", 1)
        told = tell("read", partial(read, KINDS[name], Path(path)))
        sys.stdout.write(json.dumps(asdict(told)) + "\n")
        sys.stdout.flush()


@contextmanager
def other_process() -> Iterator[Callable[[Kind, Path], Told]]:
    """A function that lets another process read a file."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment()}
    with subprocess.Popen([sys.executable, "-m", "faults.histories"], **pipes) as reader:

        def ask(kind: Kind, path: Path) -> Told:
            print(kind, path, file=reader.stdin, flush=True)
            return Told(**json.loads(reader.stdout.readline()))

        yield ask
        reader.stdin.close()


def faults_beside_each_step(
    kind: Kind, folder: Path, ask: Callable[[Kind, Path], Told], writes: int, every: int = 1
) -> tuple[int, dict[int, str]]:
    """How often another process read a file in the middle of a step of its writer, and what was wrong with that.

    It may be told to wait where SQLite lets nobody else in, which it would do for ten seconds in a new file.
    """
    disk, asked, faults = Disk(folder), 0, dict[int, str]()

    def look() -> None:
        nonlocal asked
        if disk.acknowledged and len(disk.acts) % every == 0:
            told = ask(kind, folder / kind.file)
            if any(each in told.refused for each in ("another process has been writing", "is locked")):
                return
            asked += 1
            if told.refused or len(told.things) - disk.acknowledged not in (0, 1):
                faults[len(disk.acts)] = told.refused or f"{told.things} of {disk.acknowledged} are read"

    disk.look = look
    with kind.below(disk):
        work(kind, disk, writes)
    return asked, faults


# --- threads ---


def fault_of_threads(kind: Kind, path: Path, chance: random.Random, threads: int = 6) -> str:
    """What is wrong with what threads that share an open file are told; "" for nothing."""
    begin, lots = threading.Barrier(threads), [chance.randrange(1, 10) for _ in range(threads)]
    with closing(kind.open(path)) as file:

        def work(thread: int) -> list[Told]:
            begin.wait()
            told = []
            for number in range(thread * 10, thread * 10 + lots[thread]):
                told.append(tell("write", partial(written, kind, file, number)))
                told.append(tell("read", lambda: kind.held(file)))
            return told

        with ThreadPoolExecutor(threads) as pool:
            history = [told for each in pool.map(work, range(threads)) for told in each]
        history.append(tell("read", lambda: kind.held(file)))
    return fault_of([*history, tell("read", lambda: kind.things(path))])


def fault_of_closing(kind: Kind, path: Path, chance: random.Random) -> str:
    """What is wrong when a thread closes a file that others write to: they are told, and keep what they were told."""
    file, told, enough = kind.open(path), list[Told](), chance.randrange(1, 20)

    def work(thread: int) -> None:
        for number in range(thread * 25, thread * 25 + 25):
            told.append(tell("write", partial(written, kind, file, number)))
            if told[-1].refused:
                return

    with ThreadPoolExecutor(3) as pool:
        working = [pool.submit(work, thread) for thread in range(3)]
        while len(told) < enough and not all(each.done() for each in working):
            time.sleep(0)
        file.close()
        for each in working:
            each.result()
    said = ("closed", "deleted or replaced while it was open")  # the last close deletes the log
    if raw := [
        each.refused for each in told if each.refused and not any(map(each.refused.__contains__, said))
    ]:
        return raw[0]
    return fault_of([*(each for each in told if not each.refused), tell("read", partial(read, kind, path))])


def run(seconds: float, seed: int) -> Counts:
    """Rounds of processes, and threads, on each kind of file in turn."""
    ended, chance, cases, faults = time.monotonic() + seconds, random.Random(seed), 0, dict[str, str]()
    while time.monotonic() < ended:
        number = chance.randrange(2**32)
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            _, found = faults_beside(KINDS.values(), Path(folder), 3, number)
        with other_process() as ask, tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            kind = chance.choice(list(KINDS.values()))
            _, beside = faults_beside_each_step(kind, Path(folder), ask, chance.randrange(4, 24), every=3)
            found |= dict.fromkeys([kind.name], "; ".join(beside.values())) if beside else {}
        for kind in KINDS.values():
            for act in (fault_of_threads, fault_of_closing):
                with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
                    if fault := act(kind, Path(folder, kind.file), random.Random(number)):
                        found.setdefault(kind.name, fault)
        cases += len(KINDS)
        for name, fault in found.items():
            faults.setdefault(f"{name}: {fault[:50]}", f"{name}, seed {number}: {fault}")
    return Counts(cases, faults)


if __name__ == "__main__":
    main()
