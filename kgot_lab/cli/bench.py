"""`kgot-lab bench`: the recall benchmark on the command line, and the other benchmarks that are commands
under it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from kgot_lab.cli import terminal
from kgot_lab.cli.bench import bench_questions
from kgot_lab.cli.options import with_option_groups
from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.io.files import write_whole

if TYPE_CHECKING:
    from kgot_lab.benchmark.recall.bench import BenchmarkProgress
    from kgot_lab.benchmark.recall.growth import GrowthRow
    from kgot_lab.evaluation.reports import Report
    from kgot_lab.evaluation.tables import Grid

_T = TypeVar("_T")
_FOLDER, _FAMILY_FOLDER = Path("runs/recall"), Path("runs/families")
NEEDED = ("ir_measures", "matplotlib", "onnxruntime", "sklearn", "wordllama")  # of the extra "bench"
_STEPS = (
    "musique-steps"  # parts of the questions of musique, which a test over all questions must not count twice
)
_FEWEST = 4  # synthetic passages for one query
_SETS = (
    "musique, 2wiki, hotpotqa, musique-steps (these four by default); 2wiki-1000, musique-498, "
    "musique-498-steps, cookbook, parallelparc, storyanalogy-mc"
)
_ENDINGS = (
    "each also with -untitled (passages without titles) or -mixed (over all bundled passages) behind its name"
)
_Names = Annotated[
    list[str] | None, typer.Argument(help=f"{_SETS}; {_ENDINGS}; beir/...; or a folder of yours")
]
Folder = Annotated[
    Path,
    typer.Option(
        "--folder",
        help="output folder; systems whose version or data changed, or that declare no version, are run again",
    ),
]
Only = Annotated[
    list[str] | None, typer.Option("--only", help="run only this system and the baseline; repeat for more")
]
Develop = Annotated[bool, typer.Option("--develop", help="use the dev split only")]
Scale = Annotated[
    bool, typer.Option("--scale", help="show instead how time and memory grow with synthetic passages")
]
PlanFile = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        help="the plan to follow, written by Plan(...).save(FILE); by default that of the folder, or else ours",
    ),
]
Dask = Annotated[
    str | None, typer.Option("--dask", help="the address of a Dask scheduler, whose workers run the systems")
]
_EMBEDDERS = "minilm (by default), wordllama, all-minilm, sentence-transformers, sentence-transformers:MODEL_OR_FOLDER, api:openai:MODEL"
EmbedderName = Annotated[
    str | None,
    typer.Option("--embedder", help=f"embedder of the systems: {_EMBEDDERS}, api:http://host/v1#MODEL"),
]
Sizes = Annotated[
    list[int] | None, typer.Option("--size", help="with --scale: a number of passages; repeat for more")
]
Families = Annotated[
    bool,
    typer.Option("--families", help="compare five retrieval families on all bundled sets, on the test split"),
]
Table = Annotated[
    bool, typer.Option("--table", help="with --families: recompute the table from the results in the folder")
]


@dataclass(frozen=True)
class _MeasureOptions:
    """What is measured, by which plan, and where."""

    only: Only = None
    develop: Develop = False
    plan: PlanFile = None
    dask: Dask = None


@dataclass(frozen=True)
class _OtherOptions:
    """What is measured instead of every system."""

    scale: Scale = False
    sizes: Sizes = None
    families: Families = False
    table: Table = False


@with_option_groups
def bench(
    measure: _MeasureOptions,
    other: _OtherOptions,
    names: _Names = None,
    folder: Folder = _FOLDER,
    embedder: EmbedderName = None,
) -> None:
    """Measure every retrieval system on the bundled questions, or on yours, and write the report.

    Another benchmark: kgot-lab bench questions (does the graph pay?). A folder of yours with that name is
    ./questions here.
    """
    chosen = measure.only or measure.develop or measure.plan or measure.dask
    if other.families:
        if chosen or other.scale or other.sizes:
            raise BadInput(
                "--families has its own systems and plan; it goes with --folder, --embedder, --table"
            )
        typer.echo(_families(folder, names or [], embedder, other.table))
        return
    if other.table:
        raise BadInput("--table goes with --families")
    terminal.check_writable(folder / "plan.json")
    if other.scale:
        if names or chosen or embedder:
            others = "data sets, --only, --develop, --plan, --dask and --embedder"
            raise BadInput(f"--scale makes its own passages, and measures this computer; leave out {others}")
        sizes = other.sizes
        if sizes and min(sizes) < _FEWEST:
            raise BadInput(f"--size takes {_FEWEST} passages or more, not {min(sizes)}")
        rows = _stoppable(folder, lambda: grown(folder / "scale.jsonl", sizes))
        typer.echo(growth_grid(rows).text)
        for row in rows:
            if "error" in row:
                terminal.say(f"{row['lane']} over {row['passages']:,} passages failed: {row['error']}")
        return
    if other.sizes:
        raise BadInput("--size goes with --scale")
    reports = _stoppable(
        folder,
        lambda: reported(
            folder, names or [], measure.only or [], measure.develop, measure.plan, measure.dask, embedder
        ),
    )
    for report in reports:
        typer.echo(f"{report}\n")
    for line in rerun_lines(reports):
        terminal.say(line)
    typer.echo(
        f"written: {folder}/report.html, .md, .tex, .csv, .json, and a receipt for every system and data set"
    )


def _families(folder: Path, names: Sequence[str], embedder: str | None, table: bool) -> str:
    """Measure the five families, or recompute their table, and write it to the folder."""
    from kgot_lab.benchmark.recall.bench import bench_families
    from kgot_lab.embedding.model_names import embedder_named

    folder = _FAMILY_FOLDER if folder == _FOLDER else folder
    check_installed()
    with terminal.bar("the five families") as progress:
        vectors = None if table else embedder_named(embedder or "minilm")
        options: dict[str, Any] = {"names": names, "embedder": vectors, "table": table}
        made = _stoppable(folder, lambda: bench_families(folder, progress=progress, **options))
    write_whole(folder / "summary.md", made.markdown + "\n", "the table")
    return f"{made.text}\n\nwritten: {folder}/summary.md, and per-query results of every system and data set"


def check_installed() -> None:
    """Raise NotInstalled unless the packages of the extra "bench" are there."""
    for package in NEEDED:
        if find_spec(package) is None:
            raise NotInstalled("bench", package)


def _older(folder: Path) -> str:
    """Of a folder that has a report: that it is not of this run."""
    return " The report there is that of an earlier run." if (folder / "report.md").exists() else ""


def rerun_lines(reports: Sequence[Report]) -> list[str]:
    """A line for each data set and reason with the systems that had a receipt and were run again."""
    lines = []
    for report in reports:
        for why in dict.fromkeys(report.again.values()):
            systems = "; ".join(system for system, reason in report.again.items() if reason == why)
            lines.append(f"run again on {report.dataset.name}, since {why}: {systems}")
    if any("embedder" in why for report in reports for why in report.again.values()):
        lines.append("What they had found with the embedder before is replaced; another --folder keeps both.")
    return lines


def reported(
    folder: Path,
    names: Sequence[str],
    only: Sequence[str],
    develop: bool,
    plan: Path | None = None,
    dask: str | None = None,
    embedder: str | None = None,
) -> list[Report]:
    """Run what is missing, derive the reports from the receipts and write them; raises NotInstalled before
    anything runs.
    """
    check_installed()
    from kgot_lab.benchmark.recall.bench import DATASETS, benchmark
    from kgot_lab.embedding.model_names import embedder_named
    from kgot_lab.evaluation.plan import Plan
    from kgot_lab.io.dask_workers import workers_at

    given = Plan.load(plan) if plan else None

    with terminal.bar("the benchmark") as progress, terminal.bar("vectors") as embedding:
        vectors = embedder_named(
            embedder or "minilm", progress=lambda done, total: _told(embedding, done, total)
        )
        with workers_at(dask) if dask else nullcontext() as client:
            chosen: dict[str, Any] = {
                "names": names or DATASETS,
                "only": only,
                "develop": develop,
                "plan": given,
            }
            reports = benchmark(folder, vectors, progress=progress, client=client, **chosen)
    write_reports(reports, folder)
    return reports


def write_reports(reports: Sequence[Report], folder: Path) -> None:
    """The reports in every form, and the claims where all systems were run."""
    from kgot_lab.benchmark.recall.claims import PUBLISHED_CLAIMS, verdicts
    from kgot_lab.viz.html import write_recall_page

    whole = [report for report in reports if report.dataset.name != _STEPS]
    complete = [
        report
        for report in whole
        if all({claim.better, claim.worse} <= set(report.scores) for claim in PUBLISHED_CLAIMS)
    ]
    claims = [verdicts(complete).markdown()] if complete else []
    heads = [report.csv().split("\n", 1) for report in reports]
    for ending, text in {
        "md": "\n\n".join([*(report.markdown() for report in reports), *claims]),
        "tex": "\n\n".join(report.latex() for report in reports),
        "csv": "\n".join([heads[0][0], "".join(rest for _, rest in heads)]),
        "json": "[\n" + ",\n".join(report.json() for report in reports) + "]\n",
    }.items():
        write_whole(folder / f"report.{ending}", text, "the report")
    write_recall_page(reports, folder / "report.html")


def grown(file: Path, sizes: Sequence[int] | None) -> list[GrowthRow]:
    """Measure the growth, with a progress bar."""
    from kgot_lab.benchmark.recall.growth import SIZES, measure_growth

    file.parent.mkdir(parents=True, exist_ok=True)
    with terminal.bar("growth") as progress:
        return measure_growth(sizes or SIZES, file=file, progress=progress)


def growth_grid(rows: Sequence[GrowthRow]) -> Grid:
    """The growth as a table."""
    from kgot_lab.evaluation.tables import Cell, Grid

    shown = ("index_s", "peak_mb", "index_mb", "median_ms", "p95_ms", "recall@10")
    columns = ("lane", "passages", "index, s", "peak, MB", "index, MB", "median, ms", "p95, ms", "recall@10")

    def cells(row: GrowthRow) -> tuple[Cell, ...]:
        measured = [f"{row[name]:,.2f}" if name in row else "failed" for name in shown]
        return Cell(row["lane"]), Cell(f"{row['passages']:,}"), *map(Cell, measured)

    return Grid("How time and memory grow: synthetic passages, one thread", columns, tuple(map(cells, rows)))


def _stoppable(folder: Path, work: Callable[[], _T]) -> _T:
    try:
        return work()
    except KeyboardInterrupt:
        terminal.say(
            f"\nStopped. Everything so far is in {folder}; the same command goes on from there.{_older(folder)}"
        )
        raise typer.Exit(terminal.INTERRUPTED) from None


def _told(progress: BenchmarkProgress, done: int, total: int) -> None:
    progress(done, total, "computing vectors, once")


class _Benchmarks(TyperGroup):
    """The benchmarks; without the name of one, the words are those of the recall benchmark, as they were
    before there were others.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args if args and args[0] in self.commands else [_RECALL, *args]
        return list(super().parse_args(ctx, named))


_RECALL = "recall"
benchmarks = typer.Typer(
    cls=_Benchmarks,
    help="Measure every retrieval system; `bench questions`: answers with and without a graph.",
)
benchmarks.command(_RECALL)(bench)
benchmarks.command("questions")(bench_questions)
