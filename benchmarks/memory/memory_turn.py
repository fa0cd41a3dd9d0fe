"""A turn of a conversation whose memory grows: how long being reminded, and being taught, take at 1,000,
10,000 and 100,000 facts.

The facts are made by a seed, in relations one half of which are declared "single". Turns of four kinds are
timed with scripted models, so what is timed is the memory's. "Read whole" is a search like that of the first
kind where everything that holds is read, without an index of words. Times are medians in milliseconds, by the
clock and of this process's processor alone, which is what compares where the computer is busy; the work of a
server is in the clock's only. --place postgresql://… measures there, in a schema of its own for each size,
which stays;
--place embedded on a server of its own, otherwise in files, neither of which stays.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.memory.memory_triples import syllables
from kgot_lab.llm.recorded import Scripted
from kgot_lab.memory.agent import Agent, AgentConfig, EntityMemory
from kgot_lab.memory.claims.claim import Claim
from kgot_lab.memory.claims.claims import Claims, open_claims
from kgot_lab.memory.knowledge import KnowledgeGraphMemory
from kgot_lab.memory.sqlite import ClaimTripleStore
from kgot_lab.memory.triples import InMemoryTripleStore
from kgot_lab.types import Triple

SEED = 16
SIZES = (1_000, 10_000, 100_000)
REPORT = Path(__file__).parents[1] / "results" / "memory_turn.json"
_AROUND = 5  # facts of a person, whatever the size
_SINGLE = ("lives_in", "works_at")
RELATIONS = (*_SINGLE, "knows", "visited")


def name_of(number: int) -> str:
    """The name of a person: the first word is that of many, the second of this one."""
    return f"{syllables(number % 997)} {syllables(number + 10_000)}".title()


def facts_of(many: int) -> list[Triple]:
    """So many facts about people, who know and visit each other; a town is one of fifty."""
    chance = random.Random(SEED)
    people = max(2, many // _AROUND)
    return [_fact(chance, number % people, people) for number in range(many)]


def turns(claims: Claims, people: int, times: int) -> dict[str, Callable[[], object]]:
    """What a turn of each kind is."""
    chance = random.Random(SEED + 1)

    def agent(*notes: str) -> Agent:
        taught = KnowledgeGraphMemory(ClaimTripleStore(claims), Scripted(notes or (lambda _: "[]")))
        return Agent(
            Scripted(lambda _: "Noted."),
            config=AgentConfig(knowledge_graph=taught, entity_memory=EntityMemory()),
        )

    asking = agent()
    notes = [
        {"subject": name_of(n), "relation": "lives_in", "object": "Newtown", "confidence": 0.9}
        for n in range(times)
    ]
    taught = agent(*(json.dumps([note]) for note in notes))
    told = iter(notes)
    return {
        "asked about a person": lambda: asking.run(f"What about {name_of(chance.randrange(people))}?"),
        "asked where one works": lambda: asking.run(
            f"Who works at the place where {name_of(chance.randrange(people))} works?"
        ),
        "asked with a word of a quarter of the facts": lambda: asking.run("Who lives where?"),
        "told where one lives now": lambda: taught.run(f"{next(told)['subject']} lives in Newtown."),
    }


def took(act: Callable[[], object], times: int) -> dict[str, float]:
    """The medians of the milliseconds that something takes, by the clock and of the processor."""
    clock, worked = [], []
    for _ in range(times):
        began, working = time.perf_counter(), time.process_time()
        act()
        worked.append(1000 * (time.process_time() - working))
        clock.append(1000 * (time.perf_counter() - began))
    return {
        "median_ms": round(statistics.median(clock), 2),
        "cpu_ms": round(statistics.median(worked), 2),
        "times": times,
    }


def measured(claims: Claims, many: int, times: int) -> dict[str, Any]:
    """Every measure of a memory of so many facts, which is empty before."""
    facts = facts_of(many)
    for relation in _SINGLE:
        claims.declare(relation, "single")
    began = time.process_time()
    for start in range(0, many, 1_000):
        claims.learn([Claim(fact, f"source {start}") for fact in facts[start : start + 1_000]])
    rows: dict[str, Any] = {
        "learn one of 1,000": {"cpu_ms": round(1000 * (time.process_time() - began) / many, 3)}
    }
    for kind, turn in turns(claims, max(2, many // _AROUND), times).items():
        rows[kind] = took(turn, times)
    rows["asked about a person, read whole"] = took(
        lambda: _read_whole(claims, name_of(0).casefold().split()), 3
    )
    return {"facts": len(claims.facts()), "rows": rows}


def _read_whole(claims: Claims, keywords: Sequence[str]) -> object:
    store = InMemoryTripleStore()
    store.add(claims.as_of(valid=claims.now()).triples())
    return store.search(keywords, 30)


def _fact(chance: random.Random, person: int, people: int) -> Triple:
    relation = chance.choice(RELATIONS)
    objects = {
        "lives_in": f"Town {syllables(chance.randrange(50))}",
        "works_at": f"Office {syllables(chance.randrange(people))}",
    }
    return Triple(name_of(person), relation, objects.get(relation) or name_of(chance.randrange(people)))


def main() -> None:
    """Measure each size, print, keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--facts", type=int, nargs="+", default=list(SIZES), help="how many (default 1000 10000 100000)"
    )
    parser.add_argument("--turns", type=int, default=30, help="how many of each kind (default 30)")
    parser.add_argument(
        "--place", default="", help="the address of a PostgreSQL server, or: embedded (default: a file)"
    )
    parser.add_argument("--out", type=Path, default=REPORT, help="where the report goes")
    options = parser.parse_args()
    if min(options.facts) < 1_000 or options.turns < 1:
        parser.error("--facts are 1,000 or more, --turns 1 or more")
    engine = "postgresql" if options.place else "sqlite"
    report = json.loads(options.out.read_text()) if options.out.exists() else {}
    report |= {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "sqlite_version": sqlite3.sqlite_version,
        "seed": SEED,
    }
    told: dict[str, Any] = {}
    with server_at(options.place) as place:
        measure(place, options.facts, options.turns, told)
    options.out.write_text(json.dumps(report | {engine: told}, indent=1) + "\n")


@contextmanager
def server_at(place: str) -> Iterator[str]:
    """The address of a server at a place, "" for files; an embedded one ends with it."""
    from kgot_lab.stores.postgres.server import Server

    if place != "embedded":
        yield place
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="kgot_memory_") as folder:
        Path(folder).chmod(0o755)  # the embedded PostgreSQL may run as a user of its own
        server = Server(Path(folder) / "data")
        server.start()
        try:
            yield server.url()
        finally:
            server.stop()


def measure(place: str, sizes: Sequence[int], times: int, told: dict[str, Any]) -> None:
    """Measure and print each size."""
    engine = "postgresql" if place else "sqlite"
    for many in sizes:
        with tempfile.TemporaryDirectory() as folder:
            how = {"namespace": f"memory_turn_{many}_{time.time_ns()}"} if place else {}
            with open_claims(place or Path(folder) / "claims.db", **how) as claims:
                told[str(many)] = measured(claims, many, times)
                if not place:
                    told[str(many)]["file_mb"] = round(
                        sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6, 1
                    )
        print(f"{engine}: {told[str(many)]['facts']:,} facts hold of {many:,} told")
        for name, row in told[str(many)]["rows"].items():
            clock = f"median {row['median_ms']:9.2f} ms   " if "median_ms" in row else " " * 22
            print(f"  {name:44} {clock}processor {row['cpu_ms']:9.2f} ms")


if __name__ == "__main__":
    main()
