"""Times that a reader of a cell notices, and how they grow: no test asserts them, since a busy computer is
slower and not wrong.

    python -m benchmarks.speed.speed

Prints the median of several runs in milliseconds, and for what must not grow with the square how often as
long ten times as much takes (10 is in proportion, 100 the square). On a quiet core: a search among 10,000
nodes takes about 10 ms, a lane along the edges of a graph of 6,119 nodes under 20, twelve systems on a
hundred questions under 3,000.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kgot_lab.errors import NoSandbox
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.runs import run
from kgot_lab.evaluation.significance import compare
from kgot_lab.graph import PropertyGraph
from kgot_lab.loop.render import fit_budget
from kgot_lab.retrieval.neighbours import boost, boosted_neighbours, jaccard
from kgot_lab.retrieval.stage import Stage
from kgot_lab.sandbox.process import Sandbox
from kgot_lab.stores import InMemory
from kgot_lab.text.words import sentences
from kgot_lab.types import Diff, Edge, Node, Query, ranked


def milliseconds(work: Callable[[], object], times: int = 9) -> float:
    """The median over some runs, after one that is not counted."""
    work()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken)


def no_sandbox() -> Sandbox:
    """What the store of the search opens: it runs no statement."""
    raise NoSandbox("this measures no statement")


def searching() -> Callable[[], object]:
    """A search in a kept graph of 10,000 nodes whose words they all share."""
    store = InMemory(open=no_sandbox)
    store.apply(
        Diff(
            added_nodes=tuple(Node(f"person {i}", ("P",), {"town": f"town {i % 50}"}) for i in range(10_000))
        )
    )
    return lambda: store.search("person 7 town")


def lanes() -> dict[str, Callable[[], object]]:
    """The three lanes along the edges of a chance graph, every node a hit before."""
    chance = np.random.default_rng(1)
    ids = [f"n{number}" for number in range(6_119)]
    edges = {(int(a), int(b)) for a, b in chance.integers(len(ids), size=(60_000, 2))}
    graph = PropertyGraph.of(
        [Node(id) for id in ids], [Edge(ids[a], "near", ids[b]) for a, b in sorted(edges)]
    )
    hits = ranked(Query("?"), dict(zip(ids, chance.random(len(ids)).tolist(), strict=True)))
    base = Stage("hits", lambda ranking: hits)
    stages = (base >> boost(graph, 0.2), boosted_neighbours(graph, base), jaccard(graph, base))
    return {stage.name: lambda stage=stage: stage.search("?") for stage in stages}  # type: ignore[misc]


def comparing() -> Callable[[], object]:
    """Twelve systems on a hundred questions, scored and compared with the first."""
    stage = Stage(
        "all", lambda ranking: ranked(ranking.query, {f"d{number}": -float(number) for number in range(100)})
    )
    queries = tuple(Query("?", f"q{number}") for number in range(100))
    base = run(stage, queries, keep=100)
    qrels = {query.id: {f"d{number % 13}": 1, f"d{number % 7}": 1} for number, query in enumerate(queries)}
    systems = [
        replace(base, system=f"s{number}", hits={query: hits[number:] for query, hits in base.hits.items()})
        for number in range(12)
    ]
    return lambda: compare({own.system: score(own, qrels) for own in systems}, "s0")


def growth(work: Callable[[int], object], size: int) -> float:
    """How often as long ten times as much takes."""
    return milliseconds(lambda: work(10 * size), 5) / milliseconds(lambda: work(size), 5)


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    rows = {
        "search among 10,000 nodes": searching(),
        **lanes(),
        "twelve systems scored and compared": comparing(),
    }
    for name, work in rows.items():
        print(f"{name:44} {milliseconds(work):10.2f} ms")
    print(
        f"{'sentences of initials, ten times as many':44} {growth(lambda n: sentences('A. ' * n), 10_000):10.1f} times as long"
    )
    fitted = growth(lambda n: fit_budget("Ada", ["Ada met x"] * n, 10**6, min_share=0.4), 2_000)
    print(f"{'texts fitted, ten times as many':44} {fitted:10.1f} times")


if __name__ == "__main__":
    main()
