"""`kgot-lab bench`: the recall benchmark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from kgot_lab.cli import terminal
from kgot_lab.cli.options import argument, option, with_options
from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.io.files import write_atomically

if TYPE_CHECKING:
    from kgot_lab.evaluation.reports import Report

_T = TypeVar("_T")
_RECALL_FOLDER, _FAMILY_FOLDER = Path("runs/recall"), Path("runs/families")
BENCH_PACKAGES = ("ir_measures", "matplotlib", "onnxruntime", "sklearn", "wordllama")  # of the extra "bench"
_SETS = (
    "musique, 2wiki, hotpotqa, musique-steps (these four by default); 2wiki-1000, musique-498, "
    "musique-498-steps, cookbook, parallelparc, storyanalogy-mc"
)
_SET_SUFFIXES = "each also with -untitled (no titles) or -mixed (over all bundled passages) behind its name"


_EMBEDDERS = (
    "minilm (by default), multilingual-e5, wordllama, all-minilm, sentence-transformers, "
    "sentence-transformers:MODEL_OR_FOLDER, api:openai:MODEL"
)


@dataclass(frozen=True)
class _MeasureOptions:
    """Options for the systems and data sets to measure, the plan and the folder."""

    only: list[str] | None = option("run only this system and the baseline; repeat for more")
    dev: bool = option("use the dev split only", default=False)
    plan: Path | None = option("the plan, of Plan(...).save(FILE); by default that of the folder, or ours")
    dask: str | None = option("the address of a Dask scheduler, whose workers run the systems")


@dataclass(frozen=True)
class _VariantOptions:
    """Options that select another measurement than that of all systems."""

    families: bool = option("compare five retrieval families on the test split of all sets", default=False)
    table: bool = option("with --families: recompute the table from the results in the folder", default=False)


@with_options
def bench(
    *,
    measure: _MeasureOptions,
    variant: _VariantOptions,
    names: list[str] | None = argument(f"{_SETS}; {_SET_SUFFIXES}; beir/...; or your folder", default=None),
    folder: Path = option("output folder; what changed or has no version runs again", default=_RECALL_FOLDER),
    embedder: str | None = option(f"embedder of the systems: {_EMBEDDERS}, api:http://host/v1#MODEL"),
) -> None:
    """Measure every retrieval system on the bundled questions, or on yours, and write the report."""
    if variant.families:
        if measure.only or measure.dev or measure.plan or measure.dask:
            raise BadInput("--families has its own systems and plan: it takes --folder, --embedder, --table")
        typer.echo(_compare_families(folder, names or [], embedder, variant.table))
        return
    if variant.table:
        raise BadInput("--table goes with --families")
    terminal.check_writable(folder / "plan.json")
    chosen = measure.only or [], measure.dev, measure.plan, measure.dask
    reports = _report_stop(folder, lambda: run_reports(folder, names or [], *chosen, embedder))
    for report in reports:
        typer.echo(f"{report}\n")
    for line in format_reruns(reports):
        terminal.say(line)
    typer.echo(f"written: {folder}/report.html, .md, .tex, .csv, .json, and per-query results")


def _compare_families(folder: Path, names: Sequence[str], embedder: str | None, table: bool) -> str:
    """Measure the five families, or recompute their table, and write it to the folder."""
    from kgot_lab.benchmark.recall.bench import bench_families
    from kgot_lab.embedding.embedders import embedder_by_name

    folder = _FAMILY_FOLDER if folder == _RECALL_FOLDER else folder
    check_installed()
    with terminal.progress_bar("the five families") as progress:
        vectors = None if table else embedder_by_name(embedder or "minilm")
        options: dict[str, Any] = {"names": names, "embedder": vectors, "table": table}
        table_of_families = _report_stop(folder, lambda: bench_families(folder, progress=progress, **options))
    write_atomically(folder / "summary.md", table_of_families.markdown + "\n", "the table")
    return f"{table_of_families.text}\n\nwritten: {folder}/summary.md, and per-query results of every system and data set"


def check_installed() -> None:
    """Raise NotInstalled unless the packages of the extra "bench" are there."""
    for package in BENCH_PACKAGES:
        if find_spec(package) is None:
            raise NotInstalled("bench", package)


def format_reruns(reports: Sequence[Report]) -> list[str]:
    """Format a line for each data set and reason, with the systems that were run again."""
    lines = []
    for report in reports:
        for why in dict.fromkeys(report.again.values()):
            systems = "; ".join(system for system, reason in report.again.items() if reason == why)
            lines.append(f"run again on {report.dataset.name}, since {why}: {systems}")
    if any("embedder" in why for report in reports for why in report.again.values()):
        lines.append("What they had found with the embedder before is replaced; another --folder keeps both.")
    return lines


def run_reports(
    folder: Path,
    names: Sequence[str],
    only: Sequence[str],
    dev: bool,
    plan: Path | None = None,
    dask: str | None = None,
    embedder: str | None = None,
) -> list[Report]:
    """Run what is missing, and write the reports on the results. Raises NotInstalled before anything runs."""
    check_installed()
    from kgot_lab.benchmark.recall.bench import DATASETS, run_benchmark
    from kgot_lab.embedding.embedders import embedder_by_name
    from kgot_lab.evaluation.results import Plan
    from kgot_lab.io.dask_workers import dask_client

    chosen: dict[str, Any] = {"names": names or DATASETS, "only": only, "dev": dev}
    chosen["plan"] = Plan.load(plan) if plan else None
    with terminal.progress_bar("the benchmark") as progress, terminal.progress_bar("vectors") as embedding:

        def show_embedding(done: int, total: int) -> None:
            embedding(done, total, "computing vectors, once")

        vectors = embedder_by_name(embedder or "minilm", progress=show_embedding)
        with dask_client(dask) if dask else nullcontext() as client:
            reports = run_benchmark(folder, vectors, progress=progress, client=client, **chosen)
    write_reports(reports, folder)
    return reports


def write_reports(reports: Sequence[Report], folder: Path) -> None:
    """Write the reports in every format."""
    from kgot_lab.viz.html import html

    heads = [report.csv().split("\n", 1) for report in reports]
    for ending, text in {
        "md": "\n\n".join(report.markdown() for report in reports),
        "tex": "\n\n".join(report.latex() for report in reports),
        "csv": "\n".join([heads[0][0], "".join(body for _, body in heads)]),
        "json": "[\n" + ",\n".join(report.json() for report in reports) + "]\n",
    }.items():
        write_atomically(folder / f"report.{ending}", text, "the report")
    html(reports).save(folder / "report.html")


def _report_stop(folder: Path, work: Callable[[], _T]) -> _T:
    try:
        return work()
    except KeyboardInterrupt:
        earlier = " The report there is that of an earlier run." if (folder / "report.md").exists() else ""
        terminal.say(f"\nStopped. {terminal.progress_note(folder)}{earlier}")
        raise typer.Exit(terminal.INTERRUPTED) from None
