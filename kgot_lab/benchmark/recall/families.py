"""Compare five retrieval families on every bundled set: dense, BM25, two fusions, and delta edges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kgot_lab.benchmark.recall.bench import BenchmarkProgress, benchmark
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.benchmark.recall.systems import BASELINE
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import minilm
from kgot_lab.evaluation.dataset import query_parts
from kgot_lab.evaluation.plan import Plan
from kgot_lab.evaluation.reports import Report, derive
from kgot_lab.evaluation.significance import compare
from kgot_lab.evaluation.tables import Cell, Grid, decimal, signed

WITHOUT_EDGES, WITH_EDGES, SHUFFLED = (
    "neighbours, turns",
    "neighbours, turns + delta",
    "control: delta shuffled",
)
FAMILIES = {  # the name of the column, and that of the system
    "dense": "embeddings",
    "BM25": "bm25",
    "hybrid (convex)": BASELINE,
    "RRF": "rrf",
    "graph walk": WITHOUT_EDGES,
    "walk + delta edges": WITH_EDGES,
}
FAMILY_SYSTEMS = (*FAMILIES.values(), SHUFFLED)
FAMILY_SETS = {  # and what the table calls them
    "musique": "MuSiQue",
    "musique-498": "MuSiQue, 498 questions",
    "2wiki": "2WikiMultiHopQA",
    "2wiki-1000": "2WikiMultiHopQA, 989 questions",
    "hotpotqa": "HotpotQA",
    "cookbook": "curated graph",
    "parallelparc": "analogous processes (ParallelPARC)",
    "storyanalogy-mc": "analogous stories (StoryAnalogy)",
}
FAMILY_PLAN = Plan(BASELINE, measures=("recall@5", "recall@10"))
_TEST = "locked"


def bench_families(
    folder: Path | str | None = None,
    *,
    names: Sequence[str] = (),
    embedder: Embedder | None = None,
    table: bool = False,
    measure: str = "recall@5",
    progress: BenchmarkProgress = lambda done, total, what: None,
) -> Grid:
    """Measure the five retrieval families and return their table for the test split, with 95 % intervals.

    `names` are data sets, by default FAMILY_SETS. The per-query results go to `folder`, one file of JSON
    lines a system and data set. With `table` nothing runs: the numbers are recomputed from those files.
    Raises BadInput where they do not fit the data.
    """
    if table and folder is not None:
        return family_table(derive(Path(folder), load_dataset), measure)
    with TemporaryDirectory(prefix="kgot_lab-families-") as made:
        where = Path(made if folder is None else folder)
        reports = benchmark(
            where,
            embedder or minilm(),
            names=names or tuple(FAMILY_SETS),
            only=FAMILY_SYSTEMS,
            plan=FAMILY_PLAN,
            progress=progress,
        )
        return family_table(reports, measure)


def family_table(reports: Sequence[Report], measure: str = "recall@5", part: str = _TEST) -> Grid:
    """Tabulate the families: mean and 95 % interval of each, and what the delta edges add to the same walk.

    `part` is "locked", the test split, or "all". Bold: the best family of a row; a difference whose interval
    excludes zero.
    """
    order = list(FAMILY_SETS)
    by_name = {report.dataset.name: report for report in reports}
    names = [name for name in order if name in by_name] + sorted(set(by_name) - set(order))
    split = "test split (held out)" if part == _TEST else f"{part} questions"
    columns = ("set", "documents", "questions", *FAMILIES, "delta edges add", "shuffled edges add")
    return Grid(
        f"{measure}, {split}, 95 % intervals",
        columns,
        tuple(_row(by_name[name], measure, part) for name in names),
    )


def _row(report: Report, measure: str, part: str) -> tuple[Cell, ...]:
    part = part if part in report.parts else report.parts[0]
    there = {name: report.row(name, measure, part) for name in FAMILY_SYSTEMS if name in report.scores}
    best = max(there[name].mean for name in FAMILIES.values() if name in there)
    name = report.dataset.name
    cells = [Cell(FAMILY_SETS.get(name, name)), Cell(f"{len(report.dataset.documents):,}")]
    cells.append(Cell(str(there[BASELINE].n)))
    for name in FAMILIES.values():
        row = there.get(name)
        cells.append(_interval(row.mean, row.low, row.high, row.mean == best) if row else Cell(""))
    return *cells, *(_added(report, name, measure, part) for name in (WITH_EDGES, SHUFFLED))


def _added(report: Report, system: str, measure: str, part: str) -> Cell:
    """The paired difference to the same walk without delta edges."""
    if system not in report.scores:
        return Cell("not computed")
    ids = query_parts(report.dataset)[part]
    both = {name: report.scores[name].only(ids) for name in (WITHOUT_EDGES, system)}
    gap = compare(both, WITHOUT_EDGES, measure, groups=report.dataset.groups)[system].difference
    text = f"{signed(gap.mean)} [{signed(gap.low)}, {signed(gap.high)}]"
    return Cell(text, gap.low > 0 or gap.high < 0)


def _interval(mean: float, low: float, high: float, bold: bool) -> Cell:
    return Cell(f"{decimal(mean)} [{decimal(low)}, {decimal(high)}]", bold)
