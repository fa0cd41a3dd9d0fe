"""What the benchmark of stores measures of one store, or of the raw driver beside it, over one graph: runs in
a process of its own.

Each measure is a line of JSON in a file as soon as it is known, so that a process that is stopped has told
what it had.
"""

from __future__ import annotations

import gc
import json
import os
import random
import re
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any, Protocol

from benchmarks.stores.graphs import graph_diff
from kgot_lab.errors import LabError
from kgot_lab.loop.render import render_graph
from kgot_lab.stores import open_store
from kgot_lab.types import Diff, Edge, Node, Triple

_PROMPT = 550  # tokens a graph may take in a prompt
_MOST = 200  # repetitions of what is quick

# a read of one hop as a model would write it, and one that finds nothing to do
_READS = {
    "Python (NetworkX)": 'result = [[data["relation"], end] for _, end, data in G.out_edges("{id}", data=True)]',
    "Cypher": 'MATCH (a {{id: "{id}"}})-[r]->(b) RETURN type(r) AS relation, b.id AS object',
    "SPARQL": "SELECT ?relation ?object WHERE {{ :{id} ?relation ?object FILTER(isIRI(?object) && ?relation != rdf:type) }}",
    "SQL (SQLite)": "SELECT type, target FROM edges WHERE source = '{id}'",
    "SQL (PostgreSQL)": "SELECT type, target FROM edges WHERE source = '{id}'",
}


# --- what is asked ---


@dataclass(frozen=True)
class Task:
    """The same random questions for a store and for the raw driver."""

    ids: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]  # three from the text of a node
    names: tuple[str, ...]

    @classmethod
    def about(cls, diff: Diff, seed: int = 1) -> Task:
        """Questions about random nodes."""
        chance = random.Random(seed)
        nodes = chance.choices(diff.added_nodes, k=_MOST)
        words = [re.findall(r"[^\W\d_]{4,}", node.text) or re.findall(r"\w+", node.text) for node in nodes]
        return cls(
            tuple(node.id for node in nodes),
            tuple(tuple(chance.choices(some, k=3)) for some in words),
            tuple(str(node.properties["name"]) for node in nodes),
        )


class Subject(Protocol):
    """A store, or the raw driver of its engine, as it is measured."""

    def load(self, diff: Diff) -> object: ...
    def neighbours(self, id: str) -> object: ...
    def search(self, words: Sequence[str]) -> object: ...
    def read(self, id: str) -> object: ...
    def write(self, source: str, relation: str, target: str) -> object: ...
    def everything(self) -> object: ...
    def close(self) -> object: ...


class Ours:
    """One of our stores; what a raw driver has nothing beside is here only."""

    def __init__(self, kind: str, where: dict[str, Any]):
        self.store: Any = open_store(kind, **where)

    def load(self, diff: Diff) -> object:
        return self.store.apply(diff)

    def first(self) -> object:
        """The first statement, which for an engine in the sandbox starts it and gives it the graph."""
        return self.read("nothing")

    def neighbours(self, id: str) -> object:
        return self.store.neighbours(id)

    def search(self, words: Sequence[str]) -> object:
        return self.store.search(" ".join(words))

    def render(self, name: str, words: Sequence[str]) -> object:
        return render_graph(self.store, f"What does {name} have to do with {' and '.join(words)}?", _PROMPT)

    def read(self, id: str) -> object:
        return self.store.read(_READS[self.store.dialect.name].format(id=id))

    def write(self, source: str, relation: str, target: str) -> object:
        if self.store.dialect.name.startswith("SQL"):  # which is changed by diffs alone
            return self.store.apply(Diff(added_edges=(Edge(source, relation, target),)))
        return self.store.write(self.store.dialect.add([(Triple(source, relation, target), {})]))

    def apply(self, source: str, relation: str, target: str) -> object:
        return self.store.apply(
            Diff(added_nodes=(Node(target, ("Thing",)),), added_edges=(Edge(source, relation, target),))
        )

    def everything(self) -> object:
        return self.store.graph()

    def close(self) -> object:
        return self.store.close()


# --- measuring ---


def measures(
    subject: Subject, diff: Diff, seconds: float
) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """The name of each measure, cheap ones first, and what gives its figures."""
    task = Task.about(diff)

    def many(
        act: Callable[..., object], questions: Iterable[tuple[Any, ...]]
    ) -> Callable[[], dict[str, Any]]:
        return lambda: repeated(act, questions, seconds)

    one = [(id,) for id in task.ids]
    fresh = [(id, "saw", f"new{number}") for number, id in enumerate(task.ids)]
    yield "load", lambda: once(lambda: subject.load(diff))
    if isinstance(subject, Ours):
        yield "first", lambda: once(subject.first)
    yield "neighbours", many(subject.neighbours, one)
    yield "search", many(subject.search, [(words,) for words in task.words])
    if isinstance(subject, Ours):
        yield "render", many(subject.render, list(zip(task.names, task.words, strict=True)))
    yield "read", many(subject.read, one)
    if isinstance(subject, Ours):
        yield (
            "apply",
            many(subject.apply, [(id, relation, f"other{target}") for id, relation, target in fresh]),
        )
    yield "write", many(subject.write, fresh)
    yield "memory", lambda: {"process_mb": peak_mb("self"), "others_mb": others_mb(children("self"))}
    yield "graph", lambda: once(subject.everything)


def once(act: Callable[[], object]) -> dict[str, Any]:
    """The seconds of one act."""
    began = time.perf_counter()
    act()
    return {"s": _short(time.perf_counter() - began)}


def repeated(
    act: Callable[..., object], questions: Iterable[tuple[Any, ...]], seconds: float
) -> dict[str, Any]:
    """Milliseconds of an act over some questions, until they or, after the first, so many seconds are used
    up.
    """
    taken: list[float] = []
    until = None
    for question in questions:
        began = time.perf_counter()
        act(*question)
        ended = time.perf_counter()
        taken.append(1000 * (ended - began))
        until = until or ended + seconds  # the first may take long: an engine warms up, an index is made
        if ended > until:
            break
    cuts = quantiles(taken, n=20, method="inclusive") if len(taken) > 1 else taken * 19
    return {"n": len(taken), "ms": _short(cuts[9]), "p95_ms": _short(cuts[18]), "first_ms": _short(taken[0])}


def _short(number: float) -> float:
    return float(f"{number:.3g}")


# --- memory ---


def peak_mb(process: int | str) -> float:
    """The most memory that a process had at once; raises OSError when it is gone."""
    if not Path("/proc/self/status").exists():
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return _short(most / (1 << 20 if sys.platform == "darwin" else 1 << 10))
    return _short(_status(process, "VmHWM") / 1024)


def children(process: int | str) -> list[int]:
    """The processes that a process started, and those that these did."""
    found = [
        int(id)
        for task in Path(f"/proc/{process}/task").glob("*/children")
        for id in task.read_text().split()
    ]
    return [each for child in found for each in (child, *children(child))]


def others_mb(processes: Iterable[int]) -> float | None:
    """The most memory that some processes had together, what they share counted once; None where the system
    does not tell.
    """
    total, shared = 0.0, 0.0
    for process in processes:
        try:
            together = _status(process, "RssShmem")
            total, shared = total + _status(process, "VmHWM") - together, max(shared, together)
        except OSError:
            continue  # it has just ended
    return _short((total + shared) / 1024) if total else None


def _status(process: int | str, name: str) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


# --- the process ---


def measured_alone(
    who: str, kind: str, graph: str, *, where: dict[str, Any], into: Path, seconds: float
) -> None:
    """Measure "ours" or "raw" of a kind and write a line for each measure, `doing` when it begins; a measure
    that fails says why.
    """
    gc.disable()  # the collector would look through a growing graph again and again
    diff = graph_diff(graph)
    gc.enable()
    lines = into.open("w", encoding="utf-8", buffering=1)

    def say(**line: Any) -> None:
        lines.write(json.dumps(line) + "\n")

    say(nodes=len(diff.added_nodes), edges=len(diff.added_edges), before_mb=peak_mb("self"), doing="open")
    if who == "ours":
        subject: Subject = Ours(kind, where)
    else:
        from benchmarks.stores.raw import RAW_DRIVERS

        subject = RAW_DRIVERS[kind](where)
    for name, measure in measures(subject, diff, seconds):
        say(doing=name)
        try:
            say(name=name, **measure())
        except LabError as error:
            say(name=name, error=f"{type(error).__name__}: {error}"[:300])
            if name in ("load", "first"):
                break
    subject.close()
    say(doing="", ended=True)


if __name__ == "__main__":
    whose, which, size, place, told, most = sys.argv[1:]
    measured_alone(whose, which, size, where=json.loads(place), into=Path(told), seconds=float(most))
    os._exit(0)  # threads of a Java machine would keep the process
