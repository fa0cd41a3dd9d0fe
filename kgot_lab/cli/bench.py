"""`kgot-lab bench`: the recall benchmark and the other benchmarks as subcommands."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from typer.core import TyperGroup

from kgot_lab.cli import options, terminal
from kgot_lab.cli.options import argument, option, with_options
from kgot_lab.errors import BadInput, NotInstalled, require_amount, require_count, short_repr
from kgot_lab.io.files import write_atomically
from kgot_lab.text.cleaning import format_count, printable_line

if TYPE_CHECKING:
    from kgot_lab.benchmark.comparison.comparison_run import ComparisonRun, ComparisonSlice, PendingQuestion
    from kgot_lab.benchmark.comparison.plan import Design
    from kgot_lab.evaluation.reports import Report
    from kgot_lab.loop.events import Event
    from kgot_lab.types import LLM

# `kgot-lab bench questions`: the same questions with and without a graph, over several sessions.

_COMPARISON_FOLDER = Path("runs/graph-pays")


@dataclass(frozen=True)
class _ScopeOptions:
    """Which answers are made."""

    only: list[str] | None = option("ask only this system; repeat for more")
    sets: list[str] | None = option(
        "ask only of this set: hotpotqa, 2wiki, musique-498 (with --dev musique); repeat for more",
        "--set",
    )
    limit: int | None = option("ask only the first so many questions of each set")
    dev: bool = option("ask the dev split instead, in a folder of its own", default=False)
    minutes: float | None = option("start no question after so many minutes")


@dataclass(frozen=True)
class _ModelOptions:
    """Which model answers, and folders whose replies are taken instead."""

    model: str | None = options.MODEL
    models: Path | None = options.MODELS_FILE
    unsafe: bool = options.UNSAFE
    reuse: list[Path] | None = option("take replies to the same prompts from traces in this folder; repeat")

    def connect(self) -> LLM:
        """Connect the model, by default the local one."""
        return terminal.connect_model(self.model or "local", models=str(self.models) if self.models else None)


@options.with_options
def bench_questions(
    *,
    scope: _ScopeOptions,
    model_options: _ModelOptions,
    folder: Path | None = option(f"folder of plan, traces and results (default: {_COMPARISON_FOLDER})"),
    estimate: bool = option("say how long the rest will take; nothing is asked", default=False),
    table: bool = option("show the results so far; nothing is asked", default=False),
) -> None:
    """Compare answers with and without a graph on fixed questions of three sets, by a plan written
    beforehand.

    All systems answer the first question of each set, then all the second, so any stop leaves them
    comparable.
    """
    from kgot_lab.benchmark.comparison.comparison_run import ComparisonSlice, count_replies, questions_in_turn
    from kgot_lab.benchmark.comparison.plan import Design, check_comparison, dev_samples

    folder = folder or _COMPARISON_FOLDER.with_name(_COMPARISON_FOLDER.name + "-dev" * scope.dev)
    only, sets, reuse = scope.only or (), scope.sets or (), model_options.reuse or ()
    if scope.limit is not None:
        require_count(scope.limit, 1, "--limit", "so many questions of each set are asked")
    if scope.minutes is not None:
        require_amount(scope.minutes, "--minutes", positive=True)
    if estimate and table:
        raise BadInput("--estimate says what is left and --table what is there: leave out one of them")
    if table:
        flags: dict[str, object] = {"--only": only, "--set": sets, "--limit": scope.limit}
        flags |= {"--minutes": scope.minutes, "--model": model_options.model, "--reuse": reuse}
        if conflicting := [flag for flag, value in flags.items() if value]:
            raise BadInput(f"--table shows all that is on file: leave {conflicting[0]} out")
        return _show_results(folder)
    design = Design(dev_samples(), dev=True) if scope.dev else Design()
    selection = ComparisonSlice(only, sets, scope.limit)
    # before a model is connected: what is named must be there
    list(questions_in_turn(design, selection))
    on_file = count_replies(reuse, design.samples)
    if estimate:
        check_comparison(design.plan(model_options.connect() if model_options.model else None), folder)
        typer.echo(_forecast(design, folder, selection))
        return
    terminal.check_writable(folder / "plan.json")
    if reuse:
        terminal.say(f"{format_count(on_file, 'reply', 'replies')} on file in {', '.join(map(str, reuse))}")
    _answer_missing(design, folder, selection, scope.minutes, model_options)


def _answer_missing(
    design: Design,
    folder: Path,
    chosen: ComparisonSlice,
    minutes: float | None,
    models: _ModelOptions,
) -> None:
    """Answer what is missing, and say how to resume if it is stopped."""
    from kgot_lab.benchmark.comparison.comparison_run import ComparisonRun, missing_answers, questions_in_turn
    from kgot_lab.benchmark.questions.batch import lock_folder

    total = len(list(questions_in_turn(design, chosen)))
    with lock_folder(folder):
        run = ComparisonRun(design, folder, models.connect(), models.unsafe, models.reuse or ())
        run.keep_plan()
        terminal.say(_forecast(design, folder, chosen))
        try:
            with terminal.report_interruption(folder):
                failed = _answer_all(run, chosen, minutes, total)
        finally:
            if models.reuse:
                taken = format_count(run.reused, "reply", "replies")
                terminal.say(f"{taken} taken from file instead of asking again")
        remaining = len(missing_answers(design, folder, chosen)) - len(failed)
        if remaining < total:
            _show_results(folder)
        if remaining:
            left = f"{remaining:,} of {total:,} answers are still to be given"
            terminal.say(f"{left}. {terminal.progress_note(folder)}")
    if failed:
        terminal.say(terminal.format_failures(len(failed), sum(map(run.is_damaged, failed)), "answer"))
        raise typer.Exit(1)


def _answer_all(
    run: ComparisonRun, chosen: ComparisonSlice, minutes: float | None, total: int
) -> list[PendingQuestion]:
    """Show a progress bar while answering, and return the questions that ended in an error."""
    from kgot_lab.benchmark.comparison.comparison_run import missing_answers

    done = total - len(missing_answers(run.design, run.folder, chosen))
    failed: list[PendingQuestion] = []
    with terminal.progress_bar("answers") as progress:

        def report(due: PendingQuestion, event: Event) -> None:
            what = f"{due.set} {printable_line(due.question.id)}, {due.system}, step {event.step}"
            progress(done, total, what)

        for due, result in run.answer_missing(chosen, minutes, report):
            done += 1
            if result.error:
                failed.append(due)
            answered = f"{result.end}, {short_repr(result.predicted)}; right is {short_repr(result.gold)}"
            terminal.say(f"{due.set} {due.question.id}, {due.system}: {result.error or answered}")
    return failed


def _forecast(design: Design, folder: Path, selection: ComparisonSlice) -> str:
    from kgot_lab.benchmark.comparison.comparison_run import estimate_remaining, forecast_grid

    rows = estimate_remaining(design, folder, selection)
    return forecast_grid(rows).text if rows else "nothing is left to answer"


def _show_results(folder: Path) -> None:
    """Print the results so far and write them to files."""
    from kgot_lab.benchmark.comparison.results import ComparisonResults, comparison_grids

    findings = ComparisonResults.load(folder)
    grids = comparison_grids(findings)
    if not findings.answers:
        raise BadInput(f"no question is answered yet in {folder}")
    write_atomically(folder / "results.md", "\n\n".join(g.markdown for g in grids) + "\n", "the results")
    write_atomically(folder / "results.json", json.dumps(findings.as_json(), indent=1) + "\n", "the results")
    typer.echo("\n\n".join(grid.text for grid in grids))
    files = f"{folder}/results.md and results.json, from plan.json and a result for each answer"
    typer.echo(f"\nwritten: {files}")


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
    folder: Path = option(
        "output folder; changed systems and those without a version run again", default=_RECALL_FOLDER
    ),
    embedder: str | None = option(f"embedder of the systems: {_EMBEDDERS}, api:http://host/v1#MODEL"),
) -> None:
    """Measure every retrieval system on the bundled questions, or on yours, and write the report.

    Another benchmark: kgot-lab bench questions (does the graph pay?). A folder of yours with that name is
    ./questions here.
    """
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


class _BenchmarkGroup(TyperGroup):
    """The group of benchmarks.

    Without the name of a benchmark, the arguments are those of the recall benchmark, as in earlier versions.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        arguments = args if args and args[0] in self.commands else [_RECALL, *args]
        return list(super().parse_args(ctx, arguments))


_RECALL = "recall"
_HELP = "Measure every retrieval system; `bench questions`: answers with and without a graph."
benchmarks = typer.Typer(cls=_BenchmarkGroup, help=_HELP)
benchmarks.command(_RECALL)(bench)
benchmarks.command("questions")(bench_questions)
