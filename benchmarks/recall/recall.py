"""The recall benchmark of record: every system on the bundled data, test questions included, into
benchmarks/results.

Writes the results (recall/, recall_published/), what indexing takes (recall_indexing.json), what the gate
decided (recall_gate.json) and, with --scale, how time and memory grow (scale.jsonl). `--table` derives all
tables again from the results, with no model: `make results`. Results of the same code are kept; delete
what is to be measured again. Run it on a machine with nothing else to do: it times queries.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.recall.claims import Verdicts, judge_claims
from benchmarks.recall.growth import (
    SyntheticVectors,
    measure_growth,
    reachable_bytes,
    scaling_grid,
    synthetic,
)
from benchmarks.recall.published import compare_with_published
from kgot_lab.benchmark.recall.bench import DATASETS, BenchmarkProgress
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.benchmark.recall.systems import DEFAULT_PLAN, halves, select_for_fusion, systems
from kgot_lab.cli.bench import run_reports, write_reports
from kgot_lab.cli.terminal import progress_bar
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import InMemoryVectors, minilm
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.failures import failures
from kgot_lab.evaluation.reports import Report, derive_reports
from kgot_lab.evaluation.results import circumstances
from kgot_lab.evaluation.tables import Cell, Grid
from kgot_lab.retrieval.fusion import rrf, weighted
from kgot_lab.types import Json

RESULTS = Path(__file__).parents[1] / "results"
RECALL, PUBLISHED, INDEXING, GATE, SCALE = (
    RESULTS / name
    for name in ("recall", "recall_published", "recall_indexing.json", "recall_gate.json", "scale.jsonl")
)
_CANDIDATES = (
    *("like", "fts5", "bm25", "embeddings", "graph boost only", "jaccard"),
    *("sentences", "pagerank, titles"),
)
LARGEST = "2wiki"  # 6,119 passages


def measure() -> None:
    """Run what is missing."""
    run_reports(RECALL, [], [], dev=False)
    compare_with_published(PUBLISHED, minilm())
    if not GATE.exists():
        decisions = {}
        for name in DATASETS:
            remembered = InMemoryVectors(minilm())
            dataset = load_dataset(name)
            remembered.add_texts([query.text for query in dataset.dev.queries])
            decisions[name] = selection_decisions(dataset, remembered)
        GATE.write_text(json.dumps(decisions, indent=1) + "\n", encoding="utf-8")
    if not INDEXING.exists():
        with progress_bar("indexing") as progress:
            INDEXING.write_text(
                json.dumps(indexing(LARGEST, minilm(), progress=progress), indent=1) + "\n", encoding="utf-8"
            )


def selection_decisions(dataset: Dataset, vectors: Embedder) -> list[Json]:
    """Which retrievers are selected for each fusion, on either half of the dev queries and on both."""
    made, first_and_second = systems(dataset, vectors), halves(dataset)
    candidates = {
        {"graph boost only": "graph boost", "pagerank, titles": "pagerank"}.get(name, name): made[name]()
        for name in _CANDIDATES
    }
    fusions = {
        "equal weights": lambda lanes: weighted(*((1 / len(lanes), lane) for lane in lanes)),
        "rrf": lambda lanes: rrf(*lanes),
    }
    parts = dict(zip(("one half", "the other half", "both"), (*first_and_second, dataset.dev), strict=True))
    decided = []
    for fusion, fuse in fusions.items():
        for name, part in parts.items():
            admission = select_for_fusion(candidates, fuse, part, DEFAULT_PLAN.margin, DEFAULT_PLAN.primary)
            choice = {"fusion": fusion, "tuned on": name, "admitted": admission.selected}
            decided.append(choice | {"trials": [asdict(trial) for trial in admission.trials]})
    return decided


def indexing(
    name: str, embedder: Embedder, *, progress: BenchmarkProgress = lambda done, total, what: None
) -> list[dict[str, Json]]:
    """What it takes to build each system for a data set from nothing but the vectors: seconds, and megabytes
    kept.

    Systems share parts, so the sum over systems is more than all of them take together.
    """
    dataset, rows = load_dataset(name), list[dict[str, Json]]()
    remembered = InMemoryVectors(embedder)
    remembered.add_texts([query.text for query in dataset.queries])
    warm = systems(synthetic(16, 4), SyntheticVectors())
    for done, system in enumerate(wanted := list(systems(dataset, remembered))):
        progress(done, len(wanted), f"indexing {name} for {system}")
        if system in warm:
            warm[system]()  # imports what it needs, which is not its index
        build = systems(dataset, remembered)[system]
        gc.collect()
        start = time.perf_counter()
        stage = build()
        seconds = time.perf_counter() - start
        size = reachable_bytes(stage, (dataset, remembered)) / 1e6
        rows.append(
            {"dataset": name, "system": system, "seconds": round(seconds, 3), "megabytes": round(size, 1)}
        )
    return [{"circumstances": circumstances()}, *rows]


def show(reports: list[Report]) -> None:
    """Print every table."""
    for report in reports:
        print(report, end="\n\n")
    print(claims_of(reports), end="\n\n")
    for report in derive_reports(PUBLISHED, load_dataset):
        print(report, end="\n\n")
    for report in reports:
        told = [run for run in report.runs if run.system in (report.plan.expected, report.plan.baseline)]
        print(failures(report.dataset, told).grid().text, end="\n\n")
    print(gate_grid().text, end="\n\n")
    print(speed_grid(reports).text)
    if SCALE.exists():
        rows = [json.loads(line) for line in SCALE.read_text(encoding="utf-8").splitlines()]
        print(f"\n{scaling_grid(rows).text}")


def claims_of(reports: list[Report]) -> Verdicts:
    """The verdicts on the document's claims. The steps of musique's questions are not counted a second time."""
    return judge_claims([report for report in reports if report.dataset.name != "musique-steps"])


def gate_grid() -> Grid:
    """What each gate let in, for each half of the dev questions and for all of them."""
    rows = []
    for name, decisions in json.loads(GATE.read_text(encoding="utf-8")).items():
        for decision in decisions:
            lanes = ", ".join(decision["admitted"])
            cells = (name, decision["fusion"], decision["tuned on"], str(len(decision["admitted"])), lanes)
            rows.append(tuple(map(Cell, cells)))
    several = sum(
        len(one["admitted"]) > 1
        for some in json.loads(GATE.read_text(encoding="utf-8")).values()
        for one in some
    )
    title = f"The gate, a gain of .02: {several} of {len(rows)} times two lanes or more were admitted"
    return Grid(title, ("data", "fusion", "tuned on", "lanes", "admitted"), tuple(rows))


def speed_grid(reports: list[Report]) -> Grid:
    """Query time and index of every system over the largest set."""
    about, *rows = json.loads(INDEXING.read_text(encoding="utf-8"))
    index = {row["system"]: row for row in rows}
    (largest,) = (report for report in reports if report.dataset.name == LARGEST)
    lines = []
    for run in sorted(largest.runs, key=lambda run: -run.latency.median):
        times = (f"{1e3 * run.latency.median:.1f}", f"{1e3 * run.latency.p95:.1f}")
        own = index[run.system]
        lines.append(
            tuple(map(Cell, (run.system, *times, f"{own['seconds']:.1f}", f"{own['megabytes']:.0f}")))
        )
    title = f"{LARGEST}, {len(largest.dataset.documents):,} passages: a query, its MiniLM vector apart; {about['circumstances']['machine']}"
    return Grid(title, ("system", "median, ms", "95 %, ms", "index, s", "index, MB"), tuple(lines))


def main() -> None:
    """Measure, or only derive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--table", action="store_true", help="derive the tables from the results, without measuring"
    )
    parser.add_argument(
        "--scale",
        action="store_true",
        help="measure growth up to a million synthetic passages too (about half an hour)",
    )
    wanted = parser.parse_args()
    if not wanted.table:
        measure()
    if wanted.scale:
        with progress_bar("growth") as progress:
            measure_growth(file=SCALE, progress=progress)
    reports = derive_reports(RECALL, load_dataset)
    write_reports(reports, RECALL)
    with (RECALL / "report.md").open("a", encoding="utf-8") as file:
        file.write(f"\n\n{claims_of(reports).markdown()}")
    show(reports)


if __name__ == "__main__":
    main()
