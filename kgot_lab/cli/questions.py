"""`kgot-lab questions`: a question set answered on the command line, several questions at a time, within one budget."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from kgot_lab.cli import terminal
from kgot_lab.cli.bench import bar
from kgot_lab.errors import BadInput, LabError, LLMError, require_count, shortly
from kgot_lab.text.harmless import harmless
from kgot_lab.writing import write_whole

if TYPE_CHECKING:
    from kgot_lab.experiments.questions.batch import QuestionRun
    from kgot_lab.experiments.questions.prepare import ReadyRun
    from kgot_lab.experiments.questions.question import Question
    from kgot_lab.experiments.questions.receipts import QuestionReceipt
    from kgot_lab.loop.events import Event

_RUNS = Path("runs/questions")

_Name = Annotated[str | None, typer.Argument(help="hotpotqa, musique, simpleqa, frames, gaia (with your HF_TOKEN), or FILE.jsonl of yours")]
_Folder = Annotated[Path | None, typer.Option("--folder", help="where the run is kept (default: runs/questions/SET-SYSTEM)")]
_System = Annotated[str, typer.Option("--system", help="loop, rag (the best passages and one call) or zero-shot (one call)")]
_Model = Annotated[str, typer.Option("--model", help="as for ask: local, openai:MODEL, http://host/v1#MODEL, …")]
_Execution = Annotated[str | None, typer.Option("--execution-model", help="another model, to choose tools and write arithmetic")]
_Grader = Annotated[str | None, typer.Option("--grader", help="a model that grades answers as SimpleQA does; may be added to a run later")]
_Preset = Annotated[str, typer.Option("--preset", help="limits: local, reference, or auto")]
_Documents = Annotated[Path | None, typer.Option("--documents", help="a folder to search in, beside what the set itself has")]
_Models = Annotated[Path | None, typer.Option("--models", help="a YAML file of models, to be named by --model")]
_Set = Annotated[list[str] | None, typer.Option("--set", help="a limit other than the preset's: NAME=VALUE, as in steps=3")]
_Web = Annotated[bool, typer.Option("--web", help="tools may ask the web")]
_Mirror = Annotated[Path | None, typer.Option("--mirror", help="a folder of pages that stands in for the web")]
_Store = Annotated[str, typer.Option("--store", help="where graphs grow: in_memory, cypher_embedded, sparql_embedded, fused")]
_Unsafe = Annotated[bool, typer.Option("--unsafe", help="run the model's statements without a sandbox, with all your rights")]
_Limit = Annotated[int | None, typer.Option("--limit", help="ask so many of the chosen questions, the first ones")]
_Dummy = Annotated[bool, typer.Option("--dummy", help="ask the first five, to try everything out")]
_Sample = Annotated[float, typer.Option("--sample", help="ask this share of the questions, drawn by --seed: .1 is a tenth")]
_Seed = Annotated[int, typer.Option("--seed", help="of the sample")]
_Level = Annotated[str, typer.Option("--level", help="ask those of one level, where the set has levels")]
_Part = Annotated[str, typer.Option("--part", help="develop, test or locked, where the set has parts; all: the locked ones too")]
_Parallel = Annotated[int, typer.Option("--parallel", help="how many questions are answered at a time")]
_MaxCalls = Annotated[int | None, typer.Option("--max-calls", help="of all questions and all sittings together: calls of models")]
_MaxTokens = Annotated[int | None, typer.Option("--max-tokens", help="likewise: tokens read and written")]
_MaxSeconds = Annotated[float | None, typer.Option("--max-seconds", help="likewise: seconds that models work")]
_MaxDollars = Annotated[float | None, typer.Option("--max-dollars", help="likewise: US dollars")]
_Plots = Annotated[Path | None, typer.Option("--plots", help="draw the plots of the run in this folder; nothing is asked")]
_Kind = Annotated[str, typer.Option("--plots-as", help="svg, png or pdf")]
_AsJson = Annotated[bool, typer.Option("--json", help="print the results as one JSON object")]


def answer_questions(
    name: _Name = None,
    folder: _Folder = None,
    system: _System = "loop",
    model: _Model = "local",
    execution: _Execution = None,
    grader: _Grader = None,
    preset: _Preset = "auto",
    models: _Models = None,
    settings: _Set = None,
    web: _Web = False,
    mirror: _Mirror = None,
    documents: _Documents = None,
    store: _Store = "in_memory",
    unsafe: _Unsafe = False,
    limit: _Limit = None,
    dummy: _Dummy = False,
    sample: _Sample = 1.0,
    seed: _Seed = 0,
    level: _Level = "",
    part: _Part = "",
    parallel: _Parallel = 1,
    max_calls: _MaxCalls = None,
    max_tokens: _MaxTokens = None,
    max_seconds: _MaxSeconds = None,
    max_dollars: _MaxDollars = None,
    plots: _Plots = None,
    kind: _Kind = "svg",
    as_json: _AsJson = False,
) -> None:
    """Answer a question set, a trace and a receipt for each question; the same command goes on with a run that was stopped."""
    from kgot_lab.cli.configuration import limits_given
    from kgot_lab.experiments.questions.attempt import check_question_system
    from kgot_lab.experiments.questions.batch import alone_in
    from kgot_lab.experiments.questions.kit import all_that_work, looking_out
    from kgot_lab.experiments.questions.prepare import Answerers, check_run, prepared
    from kgot_lab.experiments.questions.sets import DUMMY, Selection, opened_questions
    from kgot_lab.llm.budget import Budget
    from kgot_lab.loop.limits import limits_for

    if plots is not None:
        _draw(plots, kind)
        return
    if name is None:
        raise BadInput("name a question set: hotpotqa, musique, simpleqa, frames, gaia, or a file of JSON lines")
    require_count(parallel, 1, "--parallel")
    if dummy and limit is not None:
        raise BadInput(f"--dummy asks the first {DUMMY}: leave --limit out")
    check_question_system(system)
    if system != "loop":
        _refuse_options_of_the_loop(
            system, {"--web": web, "--mirror": mirror, "--execution-model": execution, "--store": store != "in_memory", "--set": settings}
        )
    selection = Selection(part, level, sample, seed, DUMMY if dummy else limit)
    registry = str(models) if models else None
    limits = limits_for(terminal.own_name(model, registry), preset, "gaia")
    if given := limits_given(settings or [], {}):
        limits = limits.but(**given)
    place = folder or _RUNS / f"{Path(name).stem}-{system}"
    terminal.check_writable(place / "plan.json")
    pages = str(mirror.resolve()) if mirror else ""
    tools = looking_out(web, pages or None)
    with opened_questions(name) as whole, alone_in(place), TemporaryDirectory(prefix="kgot_lab_") as unpacked:
        selection.of(whole)
        read = terminal.read_folder(documents) if documents is not None else []
        if limits.preset.rstrip("*") != "local":  # a small model chooses badly among many tools
            tools = all_that_work(tools, limits, Path(unpacked), unsafe=unsafe)
        by = Answerers(system, None, limits, store=store, unsafe=unsafe, documents=read, tools=tools, web=web, mirror=pages)
        check_run(whole, selection, by, place, graded=grader is not None)  # what cannot be is said before a model is connected
        connected = [terminal.connect_model(each, models=registry) if each else None for each in (model, execution, grader)]
        by = replace(by, planning=connected[0], execution=connected[1], grader=connected[2])
        ready = prepared(whole, selection, by, place, Budget(max_calls, max_tokens, max_seconds, max_dollars))
        _answer_all(ready, parallel)
        _show(ready.run, as_json)


def _refuse_options_of_the_loop(system: str, given: Mapping[str, object]) -> None:
    """Raise BadInput for the first option that is given and means nothing for a system without a graph and tools."""
    if named := next((option for option, value in given.items() if value), ""):
        raise BadInput(f"{named} means nothing for {system}, which has no graph and no tools: leave it out, or take --system loop")


def _answer_all(ready: ReadyRun, parallel: int) -> None:
    """Answer what is missing with a progress bar; whatever stops it, the totals are written and the way to go on is said."""
    from kgot_lab.experiments.questions.costs import note_untraced, rest_of
    from kgot_lab.experiments.questions.totals import write_totals

    run, spending = ready.run, ready.spending
    missing, total = len(run.missing()), len(run.questions.questions)
    if missing < total:
        terminal.say(f"{total - missing} of {total} questions are answered already, in {run.folder}")
    for what, cost in rest_of(run).items():
        terminal.say(f"estimate, for {what}: {cost}")
    kept = f"Everything so far is in {run.folder}; the same command goes on from there."
    try:
        with bar("questions") as progress:
            done = total - missing

            def told(question: Question, event: Event) -> None:
                what = f"{harmless(question.id)}, step {event.step}; {spending.calls:,} calls, ${spending.spent.cost:.2f}"
                progress(done, total, what)

            for receipt in run.answers(parallel, told):
                done += 1
                terminal.say(_line(receipt))
    except KeyboardInterrupt:
        terminal.say(f"\nStopped. {kept}")
        raise typer.Exit(terminal.INTERRUPTED) from None
    except LLMError as error:
        raise LabError(f"{str(error).rstrip('.')}. {kept}") from error
    finally:
        note_untraced(run.folder, spending)
        write_totals(run.folder)


def _line(receipt: QuestionReceipt) -> str:
    """A question in a line: how it ended, the words of the grader that said so, what was answered and what is right."""
    if receipt.error:
        return f"{harmless(receipt.id)}: {harmless(receipt.error)}"
    graded = f" (the grader said {shortly(receipt.span)})" if receipt.grade else ""
    told = f"{harmless(shortly(receipt.predicted))}; right is {harmless(shortly(receipt.gold))}"
    return f"{harmless(receipt.id)}: {receipt.end}{graded}, {told}"


def _show(run: QuestionRun, as_json: bool) -> None:
    """The results of a run, also written to a file."""
    from kgot_lab.experiments.questions.results import graded_grid, results_grid, results_json

    asked = {question.id for question in run.questions.questions}
    receipts = [receipt for id, receipt in run.receipts.items() if id in asked]
    results = results_json(receipts)
    write_whole(run.folder / "results.json", json.dumps(results, indent=1) + "\n", "the results")
    if as_json:
        typer.echo(json.dumps({**results, "folder": str(run.folder)}))
        return
    typer.echo(results_grid(receipts, f"{run.questions.name}, {run.system}, {run.equipment.planning.name}").text)
    if (graded := graded_grid(receipts)) is not None:
        typer.echo(f"\n{graded.text}")
    elif run.questions.scored_by == "grader":
        typer.echo("\nscored by exact match, since no model graded: --grader MODEL grades these answers, none is asked for again")
    typer.echo(f"\nwritten: {run.folder}/receipts.jsonl, results.json, totals.json, ledger.jsonl, traces/")


def _draw(folder: Path, kind: str) -> None:
    """Draw the plots of a run, and say what each shows."""
    from kgot_lab.draw.plots.question_run import save_ten_plots

    if kind not in {"svg", "png", "pdf"}:
        raise BadInput(f"--plots-as is svg, png or pdf, not {kind!r}")
    for path, drawn in save_ten_plots(folder, kind):
        typer.echo(f"{path}: {drawn.alt}")
