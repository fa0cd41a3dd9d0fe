"""What a large graph costs the embedded stores at its first read and after a runaway, and what many documents
cost to index.

    python -m benchmarks.speed.large_inputs [--nodes 100000 200000] [--passages 1890]

Each measurement is taken in a process of its own, so that none finds the memory of another in use. A runaway
is a statement that takes longer than it may, after which the next read must be answered. Passages are those
of MuSiQue's questions, embedded with no cache: 20,000 of them take as many times longer as there are more.
Writes benchmarks/results/large_inputs.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.requirements import require_sandbox
from kgot_lab.stores import open_store
from kgot_lab.types import Diff, Edge, Node

RESULTS = Path(__file__).parents[1] / "results" / "large_inputs.json"
READS = {
    "in_memory": ("result = len(G)", "while True: pass"),
    "cypher_embedded": (
        "MATCH (n) RETURN count(n) AS n",
        "MATCH (a), (b), (c) WHERE a.age + b.age = c.age + 0.5 RETURN count(*) AS n",
    ),
    "sparql_embedded": (
        "SELECT (COUNT(?n) AS ?c) { ?n a :Person }",
        "SELECT (COUNT(*) AS ?c) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }",
    ),
}


def seconds_of(act, *given) -> float:
    """The seconds that an act takes."""
    start = time.perf_counter()
    act(*given)
    return time.perf_counter() - start


def first_reads(kind: str, size: int) -> dict[str, float]:
    """Seconds of a store's first read, of the next one, and of the one after a runaway."""
    from kgot_lab.errors import QueryFailed

    nodes = tuple(Node(f"n{i}", ("Person",), {"name": f"person {i}", "age": i % 90}) for i in range(size))
    edges = tuple(Edge(f"n{i}", "knows", f"n{(7 * i + 1) % size}", {"since": i}) for i in range(size))
    read, runaway = READS[kind]
    with open_store(kind) as store:
        store.apply(Diff(added_nodes=nodes, added_edges=edges))
        first, second = seconds_of(store.read, read), seconds_of(store.read, read)
        try:
            store.read(runaway)
        except QueryFailed:
            return {"first": first, "second": second, "after_runaway": seconds_of(store.read, read)}
        raise SystemExit(
            f"{kind}: the runaway came to an end at {size:,} nodes; it should take longer than a statement may"
        )


def embedding(count: int) -> dict[str, float]:
    """Seconds in which passages become vectors, without those in which the model is loaded."""
    from kgot_lab.benchmark.recall.datasets import load_dataset
    from kgot_lab.embedding.pretrained import MiniLM

    texts = [document.text for document in load_dataset("musique").documents[:count]]
    model = MiniLM()
    model.embed(["a text"])
    taken = seconds_of(model.embed, texts)
    return {"passages": len(texts), "seconds": taken, "ms_each": 1000 * taken / len(texts)}


def apart(*what: object) -> dict[str, float]:
    """What a process of its own measures."""
    told = subprocess.run(
        [sys.executable, __file__, "--one", *map(str, what)], capture_output=True, text=True, check=False
    )
    if told.returncode:
        raise SystemExit(f"{' '.join(map(str, what))}: {told.stderr.strip().splitlines()[-1]}")
    return dict(json.loads(told.stdout))


def medians(times: int, *what: object) -> dict[str, float]:
    """The median of several processes, number by number."""
    found = [apart(*what) for _ in range(times)]
    return {name: round(median(each[name] for each in found), 3) for name in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", nargs="*", type=int, default=[100_000, 200_000])
    parser.add_argument("--stores", nargs="*", default=list(READS), choices=list(READS))
    parser.add_argument("--passages", type=int, default=1_890, help="0 leaves them out (%(default)s)")
    parser.add_argument("--times", type=int, default=3, help="of which the median is told (%(default)s)")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        what, size = options.one
        print(json.dumps(embedding(int(size)) if what == "embedding" else first_reads(what, int(size))))
        return
    require_sandbox()
    circumstances = {
        "cores": os.cpu_count(), "python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}",
        "load_before": round(os.getloadavg()[0], 1), "times": options.times,
    }  # fmt: skip
    print(f"medians of {options.times}; {circumstances}\n")
    print("| store | nodes | first read, s | second, s | after a runaway, s |\n|---|---|---|---|---|")
    rows = []
    for kind in options.stores:
        for size in options.nodes:
            row = {"store": kind, "nodes": size, **medians(options.times, kind, size)}
            print(
                f"| {kind} | {size:,} | {row['first']:.1f} | {row['second']:.2f} | {row['after_runaway']:.2f} |",
                flush=True,
            )
            rows.append(row)
    result = {"circumstances": circumstances, "reads": rows}
    if options.passages:
        result["embedding"] = took = medians(options.times, "embedding", options.passages)
        each = took["ms_each"]
        print(
            f"\n{took['passages']:,.0f} passages: {took['seconds']:.1f} s, {each:.1f} ms each: 20,000 take {20 * each:.0f} s"
        )
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
