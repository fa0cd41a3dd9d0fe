"""What one statement costs in the warm sandbox, by the size of the graph it runs against.

Run it: python -m benchmarks.stores.statement_overhead [repetitions]. Times are those of InMemory.write and
InMemory.read, end to end: send, fork, run, diff, check, apply. Writes
benchmarks/results/statement_overhead.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

from benchmarks.requirements import require_sandbox
from kgot_lab.stores import InMemory
from kgot_lab.types import Diff, Edge, Node

SIZES = (10, 1_000, 10_000, 100_000)
RESULTS = Path(__file__).parents[1] / "results" / "statement_overhead.json"


def filled(size: int) -> InMemory:
    """A store with this many nodes and as many edges."""
    store = InMemory()
    nodes = tuple(Node(f"n{i}", ("Person",), {"name": f"person {i}", "age": i % 90}) for i in range(size))
    edges = tuple(Edge(f"n{i}", "knows", f"n{(7 * i + 1) % size}", {"since": i}) for i in range(size))
    store.apply(Diff(added_nodes=nodes, added_edges=edges))
    return store


def times(act: Callable[[int], object], repetitions: int) -> dict[str, float]:
    """Milliseconds of some repetitions of an act: 5th percentile, median, 95th percentile."""
    taken = []
    for turn in range(repetitions):
        start = time.perf_counter()
        act(turn)
        taken.append(1000 * (time.perf_counter() - start))
    cuts = quantiles(taken, n=20, method="inclusive")
    return {"p5": round(cuts[0], 2), "median": round(cuts[9], 2), "p95": round(cuts[18], 2)}


def measured(size: int, repetitions: int) -> dict[str, object]:
    """The cost of a write, a read and a search at one size, and of the first statement, which starts the
    worker and loads the graph.
    """
    with filled(size) as store:
        start = time.perf_counter()
        store.read("result = len(G)")
        first = time.perf_counter() - start
        write = times(
            lambda turn: store.write(f"add('n1', 'saw', 'thing {turn}', year={turn}, object_label='Thing')"),
            repetitions,
        )
        read = times(
            lambda _: store.read("result = [d['since'] for _, _, d in G.out_edges('n2', data=True)]"),
            repetitions,
        )
        search = times(lambda turn: store.search(f"person {turn}"), repetitions)
    return {
        "nodes": size,
        "first_seconds": round(first, 2),
        "write_ms": write,
        "read_ms": read,
        "search_ms": search,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "repetitions", nargs="?", type=int, default=200, help="of each statement (%(default)s)"
    )
    repetitions = parser.parse_args().repetitions
    require_sandbox()
    load = round(os.getloadavg()[0], 1)  # other programs on the same cores make every number larger
    rows = [measured(size, repetitions) for size in SIZES]
    system = f"{platform.system()} {platform.machine()}"
    machine = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": system,
        "load_before": load,
    }
    print(f"{repetitions} repetitions, median (5th to 95th percentile); {machine}\n")
    print("| nodes | first statement, s | write, ms | read, ms | search, ms |\n|---|---|---|---|---|")
    for row in rows:
        cells = [
            f"{row[what]['median']:.2f} ({row[what]['p5']:.2f} to {row[what]['p95']:.2f})"
            for what in ("write_ms", "read_ms", "search_ms")
        ]
        print(f"| {row['nodes']:,} | {row['first_seconds']} | {' | '.join(cells)} |")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(
        json.dumps({"machine": machine, "repetitions": repetitions, "rows": rows}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
