"""What a step of the loop costs besides the model: median milliseconds a step, at 10, 1,000 and 10,000 nodes,
model time nil.

The statements' own time in the warm sandbox is shown apart: benchmarks/stores/statement_overhead.py measures
it alone. Then how long it takes to make the graph again from a trace of small writes, which grows as they do
and not with their square.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from pathlib import Path

from benchmarks.requirements import require_sandbox
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Read, Started, Voted, Wrote
from kgot_lab.loop.limits import REFERENCE
from kgot_lab.loop.trace import graph_after
from kgot_lab.stores import InMemory
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.types import Diff, Edge, Node, Prompt, Reply, Rows

SIZES = (10, 1_000, 10_000)
WRITES = (400, 4_000, 40_000)
STEPS = 40
REPORT = Path(__file__).parents[1] / "results" / "loop_overhead.json"


class Instant:
    """A model that replies at once: it votes INSERT, searches, and writes one new fact a step."""

    name = "simulation: an instant model"

    def __init__(self) -> None:
        self.said = 0

    def __call__(self, prompt: Prompt) -> Reply:
        text = prompt.messages[-1].text
        self.said += 1
        if "What next? RETRIEVE" in text:
            return Reply('{"choice": "INSERT", "text": "more"}')
        if "Choose the calls" in text:
            return Reply(
                json.dumps({"calls": [{"tool": "look", "arguments": {"query": f"thing {self.said}"}}]})
            )
        if "statements that add this" in text:
            return Reply(json.dumps({"statements": [f"add('new {self.said}', 'is near', 'thing 1')"]}))
        if "No more facts" in text:
            return Reply('{"statement": "result = facts(\'thing 1\')[:3]"}')
        return Reply('{"answer": "x", "needed": false, "number": 1}')


class Timed(InMemory):
    """A store that adds up the time its statements take."""

    spent = 0.0

    def write(self, statement: str) -> Diff:
        began = time.perf_counter()
        try:
            return super().write(statement)
        finally:
            self.spent += time.perf_counter() - began

    def read(self, statement: str) -> Rows:
        began = time.perf_counter()
        try:
            return super().read(statement)
        finally:
            self.spent += time.perf_counter() - began


def measure(nodes: int) -> dict[str, float]:
    """Median milliseconds of a whole step, of its statement, and of the rest."""
    look = TextTool(
        "look",
        "Looks things up.",
        {"query": "what"},
        lambda query: Result(f"{query} is near thing 1."),
        finds="query",
    )
    steps, statements = [], []
    with Timed() as store:
        for first in range(0, nodes, 1000):
            store.write(
                "\n".join(
                    f"add('thing {n}', 'is near', 'thing {n // 2}')"
                    for n in range(first, min(nodes, first + 1000))
                )
            )
        began, before = time.perf_counter(), 0.0
        for event in think(
            "Which thing is near?", Instant(), store, [look], REFERENCE.but(steps=STEPS, arithmetic="never")
        ):
            if isinstance(event, Started):
                began, before = time.perf_counter(), store.spent
            if isinstance(event, Wrote):
                now = time.perf_counter()
                steps.append(1000 * (now - began))
                statements.append(1000 * (store.spent - before))
                began, before = now, store.spent
            assert not isinstance(event, Voted | Read) or event.step <= STEPS
    rest = [step - statement for step, statement in zip(steps, statements, strict=True)]
    middle = statistics.median
    return {
        "nodes": nodes,
        "step_ms": middle(steps),
        "statement_ms": middle(statements),
        "loop_ms": middle(rest),
    }


def folding(writes: int) -> dict[str, float]:
    """Median milliseconds, of nine, to make the graph again from so many writes of two nodes and an edge."""
    events = [
        Wrote(
            step=1,
            statement="",
            diff=Diff((Node(f"a{n}"), Node(f"b{n}")), added_edges=(Edge(f"a{n}", "is near", f"b{n}"),)),
        )
        for n in range(writes)
    ]
    took = []
    for _ in range(9):
        began = time.perf_counter()
        assert len(graph_after(events)) == 2 * writes
        took.append(1000 * (time.perf_counter() - began))
    return {"writes": writes, "fold_ms": statistics.median(took)}


def main() -> None:
    """Measure, print, keep."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    require_sandbox()
    rows = [measure(nodes) for nodes in SIZES]
    print(
        f"{'nodes':>7} {'step, ms':>10} {'statement, ms':>14} {'loop, ms':>10}   (medians of {STEPS} steps, 3 of 5 votes each)"
    )
    for row in rows:
        print(f"{row['nodes']:7} {row['step_ms']:10.2f} {row['statement_ms']:14.2f} {row['loop_ms']:10.2f}")
    folds = [folding(writes) for writes in WRITES]
    print(
        "graph made again: "
        + ", ".join(f"{row['writes']:,} writes in {row['fold_ms']:.1f} ms" for row in folds)
    )
    report = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "steps": STEPS,
        "rows": rows,
        "folds": folds,
    }
    REPORT.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
