"""The KG-OS benchmark on the curated graph of data/cookbook: seven configurations, their claims, intents, and
a fusion that is learnt.

    python -m benchmarks.kgos.kgos --write    # learn the fusion on the tuning half and write down what is
    settled before python -m benchmarks.kgos.kgos            # the tuning half: results, and its tables on
    the screen python -m benchmarks.kgos.kgos --open     # the test half too, once all that is settled is on
    file; results that are there are kept python -m benchmarks.kgos.kgos --passages # fusions learnt on
    public passages, tried on others python -m benchmarks.kgos.kgos --table    # the tables from the results,
    without a model

Results, plan.json, before.json, report.md and report_tuning.md are in results/kgos, those of passages in
results/kgos_passages. The vector of a query is computed before the clock runs. The hashes that froze queries,
nodes and edges are checked whenever they are read.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

RESULTS = Path(__file__).parents[1] / "results"
KGOS, PASSAGES, RECALL = RESULTS / "kgos", RESULTS / "kgos_passages", RESULTS / "recall"

if TYPE_CHECKING:
    from benchmarks.kgos.queries import QueryHalf
    from kgot_lab.evaluation.tables import Grid


def public_verdicts() -> dict[str, str]:
    """What the claims came to on the three public sets together, by their texts; from the results of the
    recall benchmark.
    """
    from benchmarks.recall.claims import judge_claims
    from kgot_lab.benchmark.recall.datasets import load_dataset
    from kgot_lab.evaluation.reports import derive_reports

    reports = [
        report for report in derive_reports(RECALL, load_dataset) if report.dataset.name != "musique-steps"
    ]
    return {row.claim.text: row.verdict for row in judge_claims(reports).rows if row.dataset == "all"}


def kgos_page(half: QueryHalf) -> str:
    """The report on a half."""
    from benchmarks.kgos.results import kgos_grids, kgos_sentences, markdown_of, passage_grid

    grids: list[Grid] = list(kgos_grids(KGOS, half, public_verdicts()))
    if half == "test" and PASSAGES.exists():
        grids.append(passage_grid(PASSAGES, RECALL))
    which = (
        "the test half, evaluated once"
        if half == "test"
        else "the tuning half, which systems were developed on"
    )
    return markdown_of(f"KG-OS on the curated graph: {which}", kgos_sentences(KGOS, half), grids)


def measure(write: bool, opened: bool, passages: bool) -> None:
    """Run what is asked for and missing."""
    from benchmarks.kgos.benchmark import measure_half, write_before
    from benchmarks.kgos.intent_results import measure_intents
    from benchmarks.kgos.passages import measure_passages
    from kgot_lab.embedding.vectors import minilm

    began = time.perf_counter()

    def tell(what: str) -> None:
        print(f"{time.perf_counter() - began:5.0f} s  {what}", flush=True)

    if write:
        write_before(KGOS, minilm())
        return
    if passages:
        measure_passages(PASSAGES, minilm(), tell)
        return
    halves: tuple[QueryHalf, ...] = ("tuning", "test") if opened else ("tuning",)
    for half in halves:
        measure_half(KGOS, half, minilm(), tell)
        measure_intents(KGOS, half, minilm())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, what in (
        ("write", "only write down what is settled before"), ("open", "evaluate the test half"),
        ("passages", "the learned fusion on public passages"), ("table", "derive the tables from the results, without a model"),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", action="store_true", help=what)
    given = parser.parse_args()
    if not given.table:
        measure(given.write, given.open, given.passages)
    if given.write:
        sys.exit(0)
    from benchmarks.kgos.queries import HALVES
    from kgot_lab.io.files import write_atomically

    halves: tuple[tuple[QueryHalf, str], ...] = (("tuning", "report_tuning.md"), ("test", "report.md"))
    for half, name in halves:
        if (KGOS / f"intents_{HALVES[half]}.jsonl.gz").exists():
            print(f"{write_atomically(KGOS / name, kgos_page(half), 'the report').name} is written")


if __name__ == "__main__":
    main()
