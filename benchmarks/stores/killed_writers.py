"""Kill a writing process many times and look at what its store holds afterwards; run as a program, this is
the writer.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass

from kgot_lab.stores import open_store
from kgot_lab.stores.protocol import Store
from kgot_lab.types import Diff, Edge, Node

_FACTS = 6  # edges in one write, so that a half-made write would be seen
_WRITES = 30  # at most this many before the kill
SPREAD_OF_KILLS = {
    "in_memory": 0.015,
    "cypher_embedded": 0.03,
    "sparql_embedded": 0.02,
    "sqlite": 0.004,
    "postgres": 0.004,
}
# seconds over which the moment of the kill is spread: about the length of a write, so that kills land in
# every part of it
_PYTHON = 'add("n{n}", "next", "n{m}", n={n})'
_CYPHER = 'MERGE (a {{id: "n{n}"}}) MERGE (b {{id: "n{m}"}}) MERGE (a)-[r:next]->(b) SET r.n = {n}'
_SPARQL = "INSERT DATA {{ :n{n} :next :n{m} . [] a rdf:Statement ; rdf:subject :n{n} ; rdf:predicate :next ; rdf:object :n{m} ; :n {n} }}"
_STATEMENTS = {"in_memory": _PYTHON, "cypher_embedded": _CYPHER, "sparql_embedded": _SPARQL}


@dataclass(frozen=True)
class Survival:
    """What a store did over all kills."""

    store: str
    kills: int
    inside: int  # kills that landed between the beginning of a write and its acknowledgement
    kept_whole: int  # of those, how often the write was there all the same when the store was opened next
    acknowledged: int
    lost: int  # acknowledged writes that were not there
    invented: int  # writes that were there and never begun by anyone, or only half there
    unopened: int

    @property
    def sound(self) -> bool:
        return not (self.lost or self.invented or self.unopened)

    def __str__(self) -> str:
        return (
            f"{self.store:18} {self.kills:6} {self.inside:7} {self.kept_whole:11} {self.acknowledged:13} {self.lost:5} "
            f"{self.invented:9} {self.unopened:9}"
        )


SURVIVAL_HEAD = f"{'store':18} {'kills':>6} {'inside':>7} {'kept whole':>11} {'acknowledged':>13} {'lost':>5} {'invented':>9} {'unopened':>9}"


def _write(store: Store, kind: str, n: int) -> None:
    """Write number n: by a statement where the store has a language for models, else as a diff; always one
    transaction.
    """
    if kind in _STATEMENTS:
        lines = [_STATEMENTS[kind].format(n=n, m=f"{n}_{part}") for part in range(_FACTS)]
        joint = {"in_memory": "\n", "sparql_embedded": " ;\n"}.get(kind)
        store.write(joint.join(lines) if joint else _cypher(n))
        return
    ends = [Node(f"n{n}_{part}") for part in range(_FACTS)]
    store.apply(
        Diff(
            added_nodes=(Node(f"n{n}"), *ends),
            added_edges=tuple(Edge(f"n{n}", "next", end.id, {"n": n}) for end in ends),
        )
    )


def _cypher(n: int) -> str:
    ends = ", ".join(f'"n{n}_{part}"' for part in range(_FACTS))
    return f'MERGE (a {{id: "n{n}"}}) WITH a UNWIND [{ends}] AS name MERGE (b {{id: name}}) MERGE (a)-[r:next]->(b) SET r.n = {n}'


def _child(kind: str, where: dict[str, str], first: int) -> None:
    """Write until killed, the first write having this number, saying what was begun and what was done."""
    with closing(open_store(kind, **where)) as store:
        store.read(
            {
                "in_memory": "result = [1]",
                "cypher_embedded": "RETURN 1 AS n",
                "sparql_embedded": "ASK {}",
            }.get(kind, "SELECT 1")
        )
        for n in range(first, first + 10 * _WRITES):
            os.write(1, b"begin %d\n" % n)
            _write(store, kind, n)
            os.write(1, b"done %d\n" % n)


def _held(store: Store) -> set[int]:
    """The writes that are there whole; raises ValueError for a half one."""
    facts: dict[int, int] = {}
    for edge in store.graph().edges:
        facts[edge.properties["n"]] = facts.get(edge.properties["n"], 0) + 1
    if half := {n: count for n, count in facts.items() if count != _FACTS}:
        raise ValueError(f"half a write: {half}")
    return set(facts)


def kill_during_writes(
    kind: str, where: dict[str, str], chance: random.Random, first: int = 1
) -> tuple[set[int], set[int]]:
    """Run a child that writes from this number on, and kill it; returns what it began and what it said was
    done.
    """
    begun: set[int] = set()
    done: set[int] = set()
    stop = chance.randint(1, _WRITES)
    with subprocess.Popen(
        [sys.executable, "-m", __name__, kind, json.dumps(where), str(first)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:  # to its end: the child still says what it can before it dies
            word, n = line.split()
            (begun if word == b"begin" else done).add(int(n))
            if word == b"begin" and len(begun) == stop:
                time.sleep(chance.uniform(0, SPREAD_OF_KILLS[kind]))
                process.send_signal(signal.SIGKILL)
    return begun, done


def survival(kind: str, where: dict[str, str], kills: int) -> Survival:
    """Kill a writer of one store many times, each time going on with what it left.

    A server may still finish what a dead client sent it, after the store was looked at: that write is found
    the next time, is not invented, and has a number that no later writer takes.
    """
    chance = random.Random(0)
    counts = dict.fromkeys(("inside", "kept_whole", "acknowledged", "lost", "invented", "unopened"), 0)
    known: set[int] = set()
    ever_begun: set[int] = set()
    for _ in range(kills):
        begun, done = kill_during_writes(kind, where, chance, max(ever_begun, default=0) + 1)
        ever_begun |= begun
        counts["inside"] += bool(begun - done)
        counts["acknowledged"] += len(done)
        try:
            with closing(open_store(kind, **where)) as store:
                held = _held(store)
        except ValueError:
            counts["invented"] += 1
            continue
        except Exception as error:
            sys.stderr.write(f"{kind} did not open: {error}\n")
            counts["unopened"] += 1
            continue
        counts["lost"] += len((known | done) - held)
        counts["invented"] += len(held - ever_begun)
        counts["kept_whole"] += bool((begun - done) & held)
        known = held
    return Survival(kind, kills, **counts)


if __name__ == "__main__":
    _child(sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]))
