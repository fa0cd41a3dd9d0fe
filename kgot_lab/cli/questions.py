"""`kgot-lab questions`: run a question set on the command line, in parallel and within one budget."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from kgot_lab.cli import options, question_setup, terminal
from kgot_lab.cli.options import argument, option
from kgot_lab.errors import BadInput, require_count, short_repr
from kgot_lab.io.files import write_atomically
from kgot_lab.text.cleaning import format_count, printable_line

if TYPE_CHECKING:
    from kgot_lab.benchmark.questions.batch import QuestionRun
    from kgot_lab.benchmark.questions.plan import ReadyRun
    from kgot_lab.benchmark.questions.question import Question
    from kgot_lab.benchmark.questions.question_result import QuestionResult
    from kgot_lab.benchmark.questions.sets import Selection
    from kgot_lab.cli.configuration import Configuration
    from kgot_lab.llm.budget import Budget
    from kgot_lab.loop.events import Event

_RUNS_FOLDER = Path("runs/questions")
_BASELINE_FIELDS = ("model", "models", "preset", "documents", "budget")  # of a YAML file
_LOOP_FIELDS = (
    *_BASELINE_FIELDS, "execution_model", "limits", "store.kind", "store.unsafe",
    *("tools.web", "tools.mirror", "tools.engine", "tools.vision_model"),
)  # fmt: skip

_SETS = "hotpotqa, 2wiki, musique, musique-498, simpleqa, frames"


@dataclass(frozen=True)
class _RunOptions:
    """Options for the folder, the system and the output of a run."""

    folder: Path | None = option("folder of the run (default: runs/questions/SET-SYSTEM)")
    system: str = option(
        "loop, rag (passages, one call), rag-unknown (may say unknown) or zero-shot", default="loop"
    )
    grader: str | None = option("a model that grades answers as SimpleQA does; may be added to a run later")
    parallel: int = option("how many questions are answered at a time", default=1)
    plots: Path | None = option(
        "folder of a run to plot, or where to draw the plots of --folder; nothing is asked"
    )
    kind: str = option("svg, png or pdf", "--plots-as", default="svg")
    as_json: bool = options.AS_JSON


@dataclass(frozen=True)
class _SelectionOptions:
    """Options for the questions of a set."""

    limit: int | None = option("ask only the first so many of the chosen questions")
    sample: float = option("ask this share of the questions, drawn by --seed: .1 is a tenth", default=1.0)
    seed: int = option("of the sample", default=0)
    level: str = option("ask those of one level, where the set has levels", default="")
    part: str = option("dev, test or held_out, where the set has parts; all: held_out too", default="")


@dataclass(frozen=True)
class _ModelOptions:
    """Options for the models and their total budget."""

    model: str | None = options.MODEL
    execution: str | None = options.EXECUTION
    vision: str | None = options.VISION
    models: Path | None = options.MODELS_FILE
    max_calls: int | None = option("model calls of all questions and sessions together")
    max_tokens: int | None = option("likewise: tokens read and written")
    max_seconds: float | None = option("likewise: seconds that models work")
    max_dollars: float | None = option("likewise: US dollars")


@dataclass(frozen=True)
class _SourceOptions:
    """Options for the sources of facts and the store."""

    documents: Path | None = options.DOCUMENTS
    web: bool = options.WEB
    mirror: Path | None = options.MIRROR_FOLDER
    engine: str | None = options.ENGINE_NAME
    store: str | None = option("where graphs grow: in_memory, cypher_embedded, sparql_embedded, fused")
    unsafe: bool = options.UNSAFE


@options.with_options
def answer_questions(
    *,
    run: _RunOptions,
    selected: _SelectionOptions,
    models: _ModelOptions,
    limits: options.LimitOptions,
    sources: _SourceOptions,
    name: str | None = argument(f"{_SETS}, gaia (with your HF_TOKEN), or FILE.jsonl of yours", default=None),
) -> None:
    """Run a question set and store a trace and a result for each question.

    The same command resumes a stopped run.
    """
    from kgot_lab.benchmark.questions.attempt import check_question_system
    from kgot_lab.benchmark.questions.sets import Selection
    from kgot_lab.cli.configuration import read_configuration
    from kgot_lab.llm.budget import Budget

    if run.plots is not None:
        _draw_plots(run.folder or run.plots, run.plots, run.kind)
        return
    if name is None:
        raise BadInput(f"name a question set: {_SETS}, gaia, or a file of JSON lines")
    require_count(run.parallel, 1, "--parallel")
    check_question_system(run.system)
    flags = options.configuration_flags(models, limits, sources)
    if run.system != "loop":
        _refuse_loop_options(run.system, flags)
    budget = Budget(models.max_calls, models.max_tokens, models.max_seconds, models.max_dollars)
    used_fields = _LOOP_FIELDS if run.system == "loop" else _BASELINE_FIELDS
    page = question_setup.restrict_configuration("questions", read_configuration(limits.config), used_fields)
    configuration = page.with_flags({**flags, "format": "gaia"})
    budget = replace(budget, **configuration.budget.model_dump())
    folder = run.folder or _RUNS_FOLDER / f"{Path(name).stem}-{run.system}"
    selection = Selection(**vars(selected))
    _answer(name, selection, folder, configuration, run, budget)


def _answer(
    name: str,
    selection: Selection,
    folder: Path,
    configuration: Configuration,
    run_options: _RunOptions,
    budget: Budget,
) -> None:
    """Answer the selected questions in their folder, after all checks that need no model."""
    from kgot_lab.benchmark.questions.batch import lock_folder
    from kgot_lab.benchmark.questions.kit import all_working_tools, no_tools
    from kgot_lab.benchmark.questions.plan import AnswerSettings, check_run, prepare_run
    from kgot_lab.benchmark.questions.sets import open_questions
    from kgot_lab.tools.offered import ToolResources

    tool_choice, registry = configuration.tools, configuration.models
    pages = str(Path(tool_choice.mirror).resolve()) if tool_choice.mirror else None
    model_name = terminal.actual_model_name(configuration.model, registry)
    limits = configuration.limits_for(model_name, with_tools=name == "gaia")  # its questions have files
    question_setup.check_engine(tool_choice)
    with ExitStack() as opened:
        question_set = opened.enter_context(open_questions(name))
        terminal.check_writable(folder / "plan.json")
        opened.enter_context(lock_folder(folder))
        unpacked = opened.enter_context(TemporaryDirectory(prefix="kgot_lab_"))
        selection.select(question_set)
        documents = terminal.read_folder(Path(configuration.documents)) if configuration.documents else []
        resources = ToolResources(
            documents,
            web=tool_choice.web,
            mirror=pages,
            engine=tool_choice.engine,
            unpack_into=Path(unpacked),
        )
        answerers = AnswerSettings(
            run_options.system, None, limits, store=configuration.store.kind or "in_memory",
            unsafe=configuration.store.unsafe, resources=resources,
            tools=all_working_tools if tool_choice.vision_model or not limits.few_tools else no_tools,
        )  # fmt: skip
        check_run(question_set, selection, answerers, folder, graded=run_options.grader is not None)
        question_setup.print_configuration(configuration, limits)
        names = {
            "planning": configuration.model, "execution": configuration.execution_model, "grader": run_options.grader,
            "vision": tool_choice.vision_model,
        }  # fmt: skip
        connect = partial(terminal.connect_model, models=registry)
        models: dict[str, Any] = {role: connect(name) for role, name in names.items() if name}
        answerers = replace(
            answerers, resources=replace(resources, vision=models.pop("vision", None)), **models
        )
        ready = prepare_run(question_set, selection, answerers, folder, budget)
        _answer_all(ready, run_options.parallel)
        _show_results(ready.run, run_options.as_json)
        if failed := [result.id for result in _selected_results(ready.run) if result.error]:
            message = f"{format_count(len(failed), 'question')} ended in an error"
            if damaged := sum(map(ready.run.is_damaged, failed)):
                message += f"; a damaged trace ({damaged}) has to be restored or deleted first"
            if damaged < len(failed):
                message += f"; the same command asks for {'it' if len(failed) == 1 else 'them'} again"
            terminal.say(message)
            raise typer.Exit(1)


_LOOP_ONLY = {
    "execution_model": "--execution-model", "limits": "a limit (--set)",
    "tools.web": "--web", "tools.mirror": "--mirror", "tools.engine": "--engine", "tools.vision_model": "--vision-model",
    "store.kind": "--store",
}  # fmt: skip


def _refuse_loop_options(system: str, flags: Mapping[str, object]) -> None:
    """Raise BadInput for the first given option that does not apply to a system without a graph and tools.

    The answers of RAG can be checked too.
    """
    used = "limits" if system.startswith("rag") and flags["limits"] == {"check_answers": True} else ""
    if flag := next((flag for field, flag in _LOOP_ONLY.items() if flags[field] and field != used), ""):
        raise BadInput(f"{flag} means nothing for {system}: leave it out, or take --system loop")


def _answer_all(ready: ReadyRun, parallel: int) -> None:
    """Show a progress bar while answering what is missing.

    Whatever stops it, the totals are written and the command that resumes is printed.
    """
    from kgot_lab.benchmark.questions.report import estimate_rest, note_untraced, write_totals

    run, spending = ready.run, ready.spending
    missing, total = len(run.missing()), len(run.questions.questions)
    if missing < total:
        terminal.say(f"{total - missing} of {total} questions are answered already, in {run.folder}")
    for what_next, cost in estimate_rest(run).items():
        terminal.say(f"estimate, for {what_next}: {cost}")
    try:
        with (
            terminal.report_interruption(run.folder, spending.budget),
            terminal.progress_bar("questions") as progress,
        ):
            done = total - missing

            def report(question: Question, event: Event) -> None:
                spent = f"{format_count(spending.calls, 'call')}, ${spending.spent.cost:.2f}"
                what_next = f"{printable_line(question.id)}, step {event.step}; {spent}"
                progress(done, total, what_next)

            for result in run.answer_missing(parallel, report):
                done += 1
                progress(done, total, f"{format_count(spending.calls, 'call')}, ${spending.spent.cost:.2f}")
                terminal.say(_format_result(result))
    finally:
        with terminal.report_interruption(run.folder):
            note_untraced(run.folder, spending)
            write_totals(run.folder)


def _format_result(result: QuestionResult) -> str:
    """Format a question's result on one line: its outcome, the grader's words, the answer and the right
    answer.
    """
    if result.error:
        return f"{printable_line(result.id)}: {printable_line(result.error)}"
    graded = f" (the grader said {short_repr(result.span)})" if result.grade else ""
    predicted, gold = (printable_line(short_repr(value)) for value in (result.predicted, result.gold))
    outcome = f", {result.outcome}" if result.outcome else ""
    return f"{printable_line(result.id)}: {result.end}{graded}, {predicted}{outcome}; right is {gold}"


def _selected_results(run: QuestionRun) -> list[QuestionResult]:
    """Return the results of the selected questions."""
    selected = {question.id for question in run.questions.questions}
    return [result for id, result in run.results.items() if id in selected]


def _show_results(run: QuestionRun, as_json: bool) -> None:
    """Print the results of a run and write them to a file."""
    from kgot_lab.benchmark.questions.report import graded_grid, results_grid, results_json

    results_shown = _selected_results(run)
    results = results_json(results_shown)
    write_atomically(run.folder / "results.json", json.dumps(results, indent=1) + "\n", "the results")
    if as_json:
        typer.echo(json.dumps({**results, "folder": str(run.folder)}))
        return
    title = f"{run.questions.name}, {run.system}, {run.equipment.planning.name}"
    typer.echo(results_grid(results_shown, title).text)
    if (graded := graded_grid(results_shown)) is not None:
        typer.echo(f"\n{graded.text}")
    elif run.questions.scored_by == "grader":
        typer.echo("\nscored by exact match, since no model graded: --grader MODEL grades these very answers")
    typer.echo(f"\nwritten: {run.folder}/results.jsonl, results.json, totals.json, ledger.jsonl, traces/")


def _draw_plots(folder: Path, into: Path, kind: str) -> None:
    """Draw the plots of a run, by default into its own folder, and say what each shows."""
    from kgot_lab.viz.plots.questions import save_ten_plots

    if kind not in {"svg", "png", "pdf"}:
        raise BadInput(f"--plots-as is svg, png or pdf, not {kind!r}")
    for path, drawn in save_ten_plots(folder, kind, None if into == folder else into):
        typer.echo(f"{path}: {drawn.alt}")
