"""Threads and processes that use one store at once: what was acknowledged to any of them is there in the end,
once.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from fire.counting import Case, Counts, in_turn
from kgot_lab.errors import StoreUnavailable
from kgot_lab.stores import open_store
from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.stores.sqlite.store import Sqlite
from kgot_lab.types import Diff, Edge, Node

# Writes to one of some names of a file, again and again, and prints what was acknowledged.
WRITER = """
import random, sys
from kgot_lab.errors import StoreUnavailable
from kgot_lab.stores import open_store
from kgot_lab.types import Diff, Node

writer, seed, *names = sys.argv[1:]
chance, done, tries = random.Random(int(seed)), 0, 0
while done < 6 and tries < 400:
    tries += 1
    try:
        store = open_store(chance.choice(names))
        for _ in range(2):
            store.apply(Diff(added_nodes=(Node(f"{writer} {done}"),)))
            print(f"{writer} {done}", flush=True)
            done += 1
        if hasattr(store, "compact") and chance.random() < 0.3:
            store.compact()
        store.close()
    except StoreUnavailable as error:
        if "compacted" not in str(error) and "open already" not in str(error) and "other names" not in str(error):
            raise
"""


def processes_on(chance: random.Random, folder: Path, name: str) -> str:
    """Three processes that write to one file by its name, a symbolic link, and sometimes a hard link."""
    path, link = folder / name, folder / f"link-{name}"
    open_store(str(path)).close()
    link.symlink_to(path)
    names = [str(path), str(link)]
    # SQLite's own log goes by the name of the file, so it must have only one
    if name.endswith(".log") and chance.random() < 0.5:
        (folder / f"hard-{name}").hardlink_to(path)
        names.append(str(folder / f"hard-{name}"))
    seed = str(chance.randrange(2**32))
    commands = ([sys.executable, "-c", WRITER, str(number), seed, *names] for number in range(3))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen(command, **pipes) for command in commands]
    said = [writer.communicate(timeout=300) for writer in writers]
    if broken := next((error for _, error in said if error), ""):
        return broken.strip().splitlines()[-1]
    acknowledged = sorted(line for out, _ in said for line in out.splitlines())
    store = open_store(str(path))
    held = sorted(store.graph().ids)
    store.close()
    return "" if held == acknowledged else f"{len(acknowledged)} were acknowledged and {len(held)} are there"


def log_and_processes(chance: random.Random, folder: Path) -> str:
    """Processes take turns with a log."""
    return processes_on(chance, folder, "graph.log")


def sqlite_and_processes(chance: random.Random, folder: Path) -> str:
    """Processes write to an SQLite graph at the same time."""
    return processes_on(chance, folder, "graph.db")


def log_and_threads(chance: random.Random, folder: Path) -> str:
    """Six threads use one store, from its first use on."""
    return threads_on(lambda: InMemory(path=folder / "graph.log"), chance)


def sqlite_and_threads(chance: random.Random, folder: Path) -> str:
    """Six threads use one SQLite store."""
    return threads_on(lambda: Sqlite(folder / "graph.db"), chance)


def threads_on(open: Callable[[], InMemory | Sqlite], chance: random.Random) -> str:
    together, store, faults = threading.Barrier(6), open(), list[str]()
    lots = [chance.randrange(1, 12) for _ in range(6)]

    def work(thread: int) -> None:
        together.wait()
        for number in range(lots[thread]):
            node = Node(f"{thread} {number}", ("T",))
            store.apply(Diff(added_nodes=(node,), added_edges=(Edge(node.id, "r", node.id),)))
            if len(store.neighbours(node.id)) != 1 or node not in store.search(node.id, 100):
                faults.append(f"{node.id} was not there for the thread that wrote it")
            if len(store.graph()) < number + 1:
                faults.append("the graph is older than a write")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    counted = store.schema()
    store.close()
    with open() as again:
        held = len(again.graph())
    if faults or (counted.nodes, counted.edges, held) != (sum(lots),) * 3:
        return f"{sum(lots)} were acknowledged; counted {counted.nodes} and {counted.edges}, {held} are there. {'; '.join(faults[:3])}"
    return ""


def store_and_closing(chance: random.Random, folder: Path) -> str:
    """One thread closes a store that others are using: they are told, and what they were told was done is
    there.
    """
    store, done = InMemory(path=folder / "graph.log"), list[str]()

    def work(thread: int) -> None:
        with suppress(StoreUnavailable):
            for number in range(50):
                store.apply(Diff(added_nodes=(Node(f"{thread} {number}"),)))
                done.append(f"{thread} {number}")

    with ThreadPoolExecutor(4) as pool:
        working = [pool.submit(work, thread) for thread in range(3)]
        enough = chance.randrange(1, 30)
        while len(done) < enough and not all(each.done() for each in working):
            time.sleep(0)
        store.close()
        for each in working:
            each.result()
    with InMemory(path=folder / "graph.log") as again:
        held = sorted(again.graph().ids)
    return "" if held == sorted(done) else f"{len(done)} were acknowledged and {len(held)} are there"


CASES: tuple[Case, ...] = (
    log_and_threads, sqlite_and_threads, store_and_closing, log_and_processes, sqlite_and_processes,
)  # fmt: skip


def run(seconds: float, seed: int) -> Counts:
    """Each case in turn, with another chance each time."""
    return in_turn(CASES, seconds, seed)
