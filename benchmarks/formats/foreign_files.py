"""How long it takes to read a graph of 2,057 nodes and 284,178 edges from an SQLite file of another program,
and to try the twelve rules.

    python -m benchmarks.formats.foreign_files           medians of 5, also for ten times as many, to
    benchmarks/results/foreign_files.json python -m benchmarks.formats.foreign_files --quick   one round of
    the smaller, nothing is written

The larger file takes about 4 GB of memory.

The file has the tables of the unified profile; its edges are drawn by chance, a node with number n being an
end with a chance near 1 / (1 + n) ** 0.5. It is read three times over: without properties, with a weight in
JSON that differs from edge to edge, and with a weight in a column. Beside it stands the straightforward
reading, a Node and an Edge for each row, with the same graph as its result. Seconds on the clock and of the
processor: on a busy machine the first are larger.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.profiles.reader import read_foreign
from kgot_lab.types import Edge, Node

NODES, EDGES, ROUNDS = 2_057, 284_178, 5
REPORT = Path(__file__).parents[1] / "results" / "foreign_files.json"
NODE_TYPES, EDGE_TYPES = (
    ("function", "class", "module", "concept"),
    ("calls", "imports", "contains", "enables"),
)
PROPERTIES = ("none", "JSON", "column")


def make_file(path: Path, nodes: int, edges: int, properties: str, seed: int = 0) -> None:
    """A file of the unified profile, made by chance; no edge is there twice, and none is a loop."""
    chance = np.random.default_rng(seed)
    weights = 1 / np.sqrt(1 + np.arange(nodes))
    drawn = chance.choice(nodes, (2, edges * 2), p=weights / weights.sum())
    types = chance.integers(0, len(EDGE_TYPES), edges * 2)
    triples = np.unique(np.stack((types, *drawn))[:, drawn[0] != drawn[1]], axis=1)
    if triples.shape[1] < edges:
        raise SystemExit(f"only {triples.shape[1]:,} different edges were drawn")
    triples = triples[:, chance.permutation(triples.shape[1])[:edges]]
    numbers = np.round(chance.random(edges), 6).tolist()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE unified_nodes (node_id TEXT PRIMARY KEY, name TEXT, type TEXT, properties TEXT)"
        )
        weight = {"none": "", "JSON": ", properties TEXT", "column": ", weight REAL"}[properties]
        connection.execute(
            f"CREATE TABLE unified_edges (id INTEGER PRIMARY KEY, source_node_id TEXT, target_node_id TEXT, edge_type TEXT{weight})"
        )
        rated = (
            (f"n{n}", f"Node {n}", NODE_TYPES[n % 4], json.dumps({"pricing_tier": n % 11 / 10}))
            for n in range(nodes)
        )
        connection.executemany("INSERT INTO unified_nodes VALUES (?, ?, ?, ?)", rated)
        ends = ((f"n{a}", f"n{b}", EDGE_TYPES[t]) for t, a, b in triples.T.tolist())
        more: Iterator[tuple[Any, ...]] = {
            "none": (() for _ in numbers),
            "JSON": ((json.dumps({"weight": number}),) for number in numbers),
            "column": ((number,) for number in numbers),
        }[properties]
        rows = ((number, *end, *each) for number, (end, each) in enumerate(zip(ends, more, strict=True)))
        connection.executemany(
            f"INSERT INTO unified_edges VALUES (?, ?, ?, ?{', ?' if weight else ''})", rows
        )
        connection.commit()


def plainly(path: Path) -> PropertyGraph:
    """The same graph, read row by row: a Node and an Edge for each."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        nodes = [
            Node(id, (type,), {"name": name, **json.loads(properties)})
            for id, name, type, properties in connection.execute(
                "SELECT node_id, name, type, properties FROM unified_nodes"
            )
        ]
        found = connection.execute("SELECT * FROM unified_edges")
        last = found.description[-1][0]
        edges = []
        for _, source, target, type, *more in found:
            properties = json.loads(more[0]) if last == "properties" else {last: more[0]} if more else {}
            edges.append(Edge(source, type, target, properties))
    return PropertyGraph.of(nodes, edges)


def timed(act: Callable[[], Any], rounds: int) -> dict[str, float]:
    """Median seconds, on the clock and of the processor."""
    clock, processor = [], []
    for _ in range(rounds):
        began = time.perf_counter(), time.process_time()
        act()
        clock.append(time.perf_counter() - began[0])
        processor.append(time.process_time() - began[1])
    return {"s": round(statistics.median(clock), 3), "cpu_s": round(statistics.median(processor), 3)}


def measured(folder: Path, nodes: int, edges: int, properties: str, rounds: int) -> dict[str, Any]:
    """What reading one file takes, what the plain way takes, and what the twelve rules take on its graph."""
    path = folder / f"{properties}_{nodes}.db"
    make_file(path, nodes, edges, properties)
    read = read_foreign(path)
    assert read.unread == () and (len(read.graph), len(read.graph.edge_keys)) == (nodes, edges)
    assert nodes > NODES or read.graph.digest == plainly(path).digest, "both ways read the same graph"
    row = {
        "nodes": nodes, "edges": edges, "properties": properties, "mb": round(path.stat().st_size / 1e6, 1),
        "read": timed(lambda: read_foreign(path), rounds), "plainly": timed(lambda: plainly(path), rounds),
        "rules": timed(read.check, rounds),
    }  # fmt: skip
    path.unlink()
    return row


def shown(row: dict[str, Any]) -> str:
    """A row of the table."""
    times = "".join(
        f"{row[what]['s']:9.2f} ({row[what]['cpu_s']:5.2f})" for what in ("read", "plainly", "rules")
    )
    return f"{row['nodes']:9,} {row['edges']:11,} {row['properties']:>10} {row['mb']:7.1f} {times}"


def machine() -> dict[str, Any]:
    """What the numbers were measured on, and how busy it was."""
    return {
        "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}", "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version, "numpy": np.__version__, "load_before": round(os.getloadavg()[0], 1),
        "date": date.today().isoformat(),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one round of the smaller, nothing is written")
    options = parser.parse_args()
    about, rounds, rows = machine(), 1 if options.quick else ROUNDS, []
    print(f"medians of {rounds}; {about}\nseconds on the clock (of the processor)\n")
    print(f"{'nodes':>9} {'edges':>11} {'properties':>10} {'MB':>7} {'read':>17}{'plainly':>17}{'rules':>17}")
    with tempfile.TemporaryDirectory() as folder:
        for times in (1,) if options.quick else (1, 10):
            for properties in PROPERTIES:
                rows.append(measured(Path(folder), NODES * times, EDGES * times, properties, rounds))
                print(shown(rows[-1]), flush=True)
    if not options.quick:
        REPORT.write_text(
            json.dumps({"machine": about, "rounds": rounds, "rows": rows}, indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
