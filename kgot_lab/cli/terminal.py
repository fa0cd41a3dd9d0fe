"""Shared parts of the commands: connecting models, reading documents, showing a run, and handling errors."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, TextIO, TypeVar
from uuid import uuid4

import typer

from kgot_lab.errors import BadInput, LabError, OverBudget, UnknownName, mask_secrets
from kgot_lab.text.cleaning import format_count, printable_line

if TYPE_CHECKING:
    from kgot_lab.benchmark.recall.bench import BenchmarkProgress
    from kgot_lab.llm.budget import Budget, Spending
    from kgot_lab.loop.events import Event, Started
    from kgot_lab.loop.persistence import LearntRun
    from kgot_lab.loop.trace import Trace
    from kgot_lab.memory.claims.certificate import Certificate
    from kgot_lab.stores.protocol import Store
    from kgot_lab.tools.search import FoundPassages
    from kgot_lab.tools.tool import Tool
    from kgot_lab.types import LLM, Document

_Result = TypeVar("_Result")
RUNS = Path("runs")
DEMO_DOCUMENTS = "hotpotqa"  # noted in the head of a demo's trace: its documents are the bundled ones
INTERRUPTED = 130  # the exit code of a program that Ctrl-C stopped, as shells have it


def say(text: str) -> None:
    """Print a note on standard error.

    Control characters are escaped, and passwords and keys are masked.
    """
    from kgot_lab.llm.keys import mask_known_keys

    with suppress(OSError):  # without a terminal, the work still completes
        typer.echo("\n".join(map(printable_line, mask_known_keys(mask_secrets(text)).split("\n"))), err=True)


def format_os_error(error: OSError) -> str:
    """Format an OSError with its file, if known, such as "run.jsonl: No space left on device"."""
    if isinstance(error, BrokenPipeError):
        return "the output could not be written: its reader has stopped"
    if error.filename:
        return f"{error.filename}: {error.strerror}"
    return f"the output could not be written: {error.strerror or error}"


def progress_note(folder: Path, larger: str = "") -> str:
    """Return a note on where the work of a command is stored, and how to resume."""
    return f"Everything so far is in {folder}; the same command{larger} goes on from there."


@contextmanager
def report_interruption(folder: Path, budget: Budget | None = None) -> Iterator[None]:
    """Report, on a stop or an error, that the work is in a folder and the same command resumes it.

    If the budget is exhausted, a larger one is suggested.
    """
    try:
        yield
    except KeyboardInterrupt:
        say(f"\nStopped. {progress_note(folder)}")
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:
        raise LabError(f"{format_os_error(error)}. {progress_note(folder)}") from error
    except LabError as error:
        larger = ""
        if isinstance(error, OverBudget) and budget is not None:
            names = [name for name, limit in vars(budget).items() if limit is not None]
            larger = f" with a larger {' or '.join(f'--max-{name}' for name in names)}" if names else ""
        raise LabError(f"{str(error).rstrip('.')}. {progress_note(folder, larger)}") from error


# --- models and limits ---


def actual_model_name(model: str, models: str | None = None) -> str:
    """Return the actual name of a model.

    The name of a recorded model is in its file, and that of an entry in a models file is the one it refers
    to.
    """
    from kgot_lab.llm import connect as connect_spec
    from kgot_lab.llm.models import load_models

    registry = load_models(models) if models else {}
    specification = registry[model].model if model in registry else model
    return connect_spec(specification).name if specification.startswith("recorded:") else specification


def connect_model(
    spec: str,
    budget: Budget | Spending | None = None,
    recording: Path | None = None,
    *,
    trace: Path | None = None,
    models: str | None = None,
) -> LLM:
    """Connect to a model by its specification, with a budget and an optional recording of its replies.

    The local model is downloaded if necessary. With the trace of a resumed run, recorded replies continue
    after those already used, and earlier replies are in the recording too. Raises LabError.
    """
    from kgot_lab.llm import connect as connect_spec
    from kgot_lab.llm.budget import Budget, Budgeted, Spending
    from kgot_lab.llm.models import load_models
    from kgot_lab.llm.recorded import Recorded, Recorder, recorded_prompts

    registry = load_models(models) if models else {}
    specification = registry[spec].model if spec in registry else spec
    if specification == "local":
        local_model()  # fetched where it is missing
    llm = connect_spec(spec, models=registry, say=say)  # waits for a server should be seen
    recorded = recorded_prompts(trace, llm.name) if trace is not None else []
    if isinstance(llm, Recorded):
        llm.rewind(recorded)
    limits = budget.budget if isinstance(budget, Spending) else budget
    llm = Budgeted(llm, budget) if budget is not None and limits != Budget() else llm
    return llm if recording is None else Recorder(llm, recording, asked=recorded)


def reconnect_model(
    name: str,
    budget: Budget | Spending,
    recording: Path | None = None,
    *,
    trace: Path,
    models: str | None = None,
    option: str = "--model",
) -> LLM:
    """Connect to the model that a trace names, which `option` of the command names in its place.

    Raises BadInput for a server, since a trace does not store its full address.
    """
    from kgot_lab.llm.models import entry_for, load_models

    try:
        if models:
            with suppress(UnknownName):  # the other model of a run may be no entry
                entry = entry_for(load_models(models), name)
                return connect_model(entry, budget, recording, trace=trace, models=models)
        return connect_model("local" if name.startswith("local:") else name, budget, recording, trace=trace)
    except UnknownName:
        advice = f"name that model with {option}, a server as http://HOST:PORT/v1#MODEL"
        raise BadInput(f"the run was made with {name!r}: {advice}") from None


def make_budget(calls: int | None, seconds: float | None, dollars: float | None) -> Budget:
    """Return the budget that a command is given. Raises BadInput if it allows no call."""
    from kgot_lab.llm.budget import Budget

    for name, value, least, allowed in (
        ("calls", calls, "1 or more", calls is None or calls >= 1),
        ("seconds", seconds, "more than 0", seconds is None or seconds > 0),
        # with none at all, models that cost nothing can be asked
        ("dollars", dollars, "0 or more", dollars is None or dollars >= 0),
    ):
        if not allowed:
            raise BadInput(f"--max-{name} is {least}, not {value:g}: nothing could be asked")
    return Budget(calls=calls, seconds=seconds, dollars=dollars)


def local_model() -> LLM:
    """Connect to the local model.

    Raises NotInstalled before anything large is downloaded, and ModelMissing if there is no model file.
    """
    from kgot_lab.llm import connect as connect_spec
    from kgot_lab.llm.local import require_engine

    require_engine()
    ensure_model()
    return connect_spec("local")


def ensure_model() -> Path:
    """Return the path of the local model's file, downloading it with a progress bar if necessary.

    Raises ModelMissing.
    """
    from rich import progress as bars
    from rich.console import Console

    from kgot_lab.llm import model_file

    is_there = model_file.exists_whole(model_file.models_folder() / model_file.QWEN_CODER.name)
    if os.environ.get(model_file.MODEL_VARIABLE) or is_there:
        return model_file.find_model()
    say("Fetching the local model, 1.1 GB, once (Ctrl-C stops; the next time it goes on from there).")
    columns = bars.BarColumn(), bars.DownloadColumn(), bars.TransferSpeedColumn(), bars.TimeRemainingColumn()
    with bars.Progress("{task.description}", *columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("model", total=None)
        report = partial(progress.update, task)
        return model_file.fetch_model(say=lambda received, total: report(completed=received, total=total))


# --- documents, tools and files ---


def read_folder(folder: Path) -> list[Document]:
    """Read the passages of a folder or file, with a note for each file skipped or decoded by guess.

    Raises BadInput if there are none.
    """
    from kgot_lab.documents.folder import group_remarks, read_documents

    library = read_documents(folder)
    for remark in group_remarks((*library.skipped, *library.doubtful)):
        say(f"note: {remark}")
    return list(library.documents)


def run_documents(run: Trace, folder: Path | None) -> list[Document]:
    """Return the passages that a run searched, from the folder or from the demo."""
    from kgot_lab.benchmark.questions.sets import hotpotqa

    if folder is not None:
        return read_folder(folder)
    return hotpotqa().documents if run.about.get("documents") == DEMO_DOCUMENTS else []


def open_replay_store(start: Started, unsafe: bool = False) -> Store:
    """Open an empty local store for the query languages of a recorded run."""
    from kgot_lab.stores import open_for

    return open_for(start.dialect, *start.readers, unsafe=unsafe)


@contextmanager
def progress_bar(name: str) -> Iterator[BenchmarkProgress]:
    """Show a progress bar on standard error.

    Yields a callback that takes the number done, the total and what comes next. The bar appears at the first
    call.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", markup=False)
    columns = text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=None, visible=False)
        update = partial(progress.update, task, visible=True)
        yield lambda done, total, what: update(completed=done, total=total, description=what)


@contextmanager
def _embedding_progress() -> Iterator[Callable[[int, int], object]]:
    """Show how much of an index is embedded on standard error."""
    with progress_bar("passages") as progress:
        yield lambda done, total: progress(done, total, "passages and sentences embedded")


def find_passages(question: str, folder: Path, k: int) -> FoundPassages:
    """Search the documents of a folder or file, printing warnings as notes."""
    from kgot_lab.tools.search import find_passages

    documents = read_folder(folder)
    with _embedding_progress() as progress:
        return call_with_notes(lambda: find_passages(question, documents, k=k, progress=progress))


def make_tools(documents: Sequence[Document], attached: Sequence[Path], *, k: int = 8) -> list[Tool]:
    """Create the tools for some documents and files, printing warnings as notes.

    A progress bar shows how far a large index is.
    """
    from kgot_lab.tools.search import tools_for

    with _embedding_progress() as progress:
        return call_with_notes(lambda: tools_for(documents, attached, passages=k, progress=progress))


def call_with_notes(make: Callable[[], _Result]) -> _Result:
    """Call a function and print its warnings as notes, without repeats."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = make()
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"note: {text}")
    return result


def load_question_run(trace: Path) -> tuple[Trace, Started]:
    """Load the run of a question and its first event.

    Raises TraceError, and BadInput for an extraction or the trace of a baseline.
    """
    from kgot_lab.loop.replay.replay import start_event
    from kgot_lab.loop.trace import load_run

    run = load_run(trace)
    start = start_event(run.events)
    if start.question and not start.dialect:
        description = f"the trace of a baseline ({start.preset}); there is no loop to walk again"
        raise BadInput(f"{trace} is {description}: kgot-lab show {trace} shows it")
    if not start.question:
        raise BadInput(f"{trace} is an extraction, not the run of a question: kgot-lab show {trace} shows it")
    return run, start


def new_trace_path() -> Path:
    """Return the path of a new trace, named by the time and a random number.

    Raises BadInput if it cannot be written.
    """
    try:
        check_writable(RUNS / "new.jsonl")
    except BadInput as error:
        advice = "Nothing was asked. Name a file elsewhere with --trace FILE, or work in another folder"
        raise BadInput(f"{error}. {advice}") from None
    return RUNS / f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_{uuid4().hex[:8]}.jsonl"


def check_writable(path: Path | None) -> None:
    """Create the folder of an output file, so that an error is raised before the work. Raises BadInput."""
    if path is None:
        return
    if re.match("[a-z][a-z0-9+.-]+:/", str(path), re.I):
        raise BadInput(f"{path} is an address and no file: name a file of this computer")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error}") from error
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        problem = "it is a folder" if path.is_dir() else "there is no right to"
        raise BadInput(f"cannot write {path}: {problem}")
    try:
        with TemporaryFile(dir=path.parent):  # permissions do not reveal a read-only file system
            pass
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}") from None


def check_new_trace(path: Path | None) -> None:
    """Check that a run can be written to a new file. Raises BadInput."""
    if path is not None and path.exists():
        raise BadInput(f"{path} exists already: resume that run, or name another file")
    check_writable(path)


def check_page_path(html: Path | None, documents: Path | None = None) -> None:
    """Check that the page of a run can be written and overwrites only such a page. Raises BadInput."""
    check_writable(html)
    if html is None:
        return
    if html.suffix.lower() not in {".html", ".htm"}:
        raise BadInput(f"--html {html} does not end in .html, so it may be no page: name a file that does")
    if documents is not None and html.exists() and html.resolve().is_relative_to(documents.resolve()):
        raise BadInput(f"--html {html} is one of the documents, and would be lost: name another file")


def standard_input() -> TextIO:
    """Return standard input. Raises BadInput if it is closed."""
    if sys.stdin is None or sys.stdin.closed:
        raise BadInput("standard input is closed: pipe something in, or name a file")
    return sys.stdin


def require_distinct_paths(**files: object) -> None:
    """Raise BadInput if two options, or an input and an option, name the same file.

    A list names several files, an address none.
    """
    from kgot_lab.loop.trace import snapshot_path

    paths: list[tuple[str, Path]] = []
    for option, values in files.items():
        if option == "trace" and values:
            paths.append(("the graph that the run begins with", snapshot_path(Path(str(values))).resolve()))
        for value in values if isinstance(values, list) else [values]:
            text = str(value or "").removeprefix("recorded:")
            if text and "://" not in text:
                # as in recorded:FILE#MODEL
                resolved = Path(text) if Path(text).exists() else Path(text.partition("#")[0])
                paths.append((option.replace("_", "-"), resolved.resolve()))
    for (first, resolved), (second, second_path) in combinations(paths, 2):
        if resolved == second_path and (first, second) != ("attach", "attach"):
            same = f"{first} and {second} are the same file, {resolved.name}"
            raise BadInput(f"{same}: one would be written over the other; name two files")


# --- showing a run ---


def show_event(event: Event, started_at: float | None = None, *, to_stderr: bool = False) -> None:
    """Print an event as a line or two, with the seconds since `started_at`."""
    from kgot_lab.loop.formatting import summary_line

    clock = f"{time.perf_counter() - started_at:6.1f} s  " if started_at is not None else ""
    typer.echo(clock + summary_line(event).replace("\n", "\n" + " " * len(clock)), err=to_stderr)


def show_answer(
    events: Sequence[Event],
    path: Path,
    as_json: bool = False,
    learnt: LearntRun | None = None,
    certificate: Certificate | None = None,
) -> None:
    """Print the answer of a run with its evidence, what a memory learnt and the costs, as text or JSON.

    With a certificate, the answer is shown as far as that allows. If it is withheld, so is its evidence.
    """
    from kgot_lab.loop.certificate import certified_answer
    from kgot_lab.loop.events import Answered, ToolReturned
    from kgot_lab.loop.formatting import format_fact
    from kgot_lab.loop.replay.replay import start_event
    from kgot_lab.loop.state import ledger
    from kgot_lab.memory.claims.certificate import certificate_to_json

    answered = next(event for event in reversed(events) if isinstance(event, Answered))
    certified, shown = None, answered
    if certificate is not None:
        certified = certificate_to_json(start_event(events).question, answered.text, certificate)
        shown = certified_answer(answered, certificate)
        if certificate.ruling == "withheld" and learnt is not None:
            learnt = replace(learnt, old=(), new=(), unheld=())
    sources = {document.id: document for e in events if isinstance(e, ToolReturned) for document in e.sources}
    passages = [sources[id] for id in shown.passages if id in sources]
    costs = ledger(events)
    total = costs.total
    if as_json:
        start = start_event(events)
        result = {
            "question": start.question, "answer": answered.text, "forced": answered.forced,
            "outcome": answered.outcome, "missing": shown.missing, "evidence": list(shown.evidence),
            "passages": [{"id": document.id, "title": document.title} for document in passages],
            "supports": [[{"document": s.source, "sentence": s.sentence} for s in each] for each in shown.supports],
            "preset": start.preset, "model": start.planning, "calls": len(costs.entries),
            "prompt_tokens": total.prompt_tokens, "completion_tokens": total.completion_tokens,
            "calls_without_told_tokens": costs.without_usage, "seconds": round(total.seconds, 1), "dollars": total.cost, "trace": str(path),
        }  # fmt: skip
        result |= {} if learnt is None else {"memory": learnt.as_json()}
        result |= {} if certified is None else {"answer": certified["answer"], "certificate": certified}
        typer.echo(json.dumps(result))
        return
    answer = "\n        ".join(map(printable_line, shown.shown_text.splitlines()))
    typer.echo(f"\nAnswer: {answer}" + (f"   ({printable_line(shown.remark)})" if shown.remark else ""))
    if certified is not None:
        typer.echo(f"Certificate: {certified['ruling']}")
        for fact in certified["facts"]:
            typer.echo(printable_line(_certified_fact_line(fact)))
    if shown.evidence:
        typer.echo(f"It {'was read from' if answered.forced else 'rests on'} these facts of the graph:")
    for number, fact in enumerate(shown.evidence):
        supports = shown.supports[number] if number < len(shown.supports) else ()
        words, citations = format_fact(str(fact), supports)
        typer.echo("  " + printable_line(words if words == str(fact) else " ".join([words, *citations])))
        for support in supports if words == str(fact) else ():
            title = sources[support.source].title if support.source in sources else ""
            reference = (title, f"[{support.source}]" if support.source else "")
            typer.echo(printable_line(" ".join(["     ", f"“{support.sentence}”", *filter(None, reference)])))
    if passages:
        listed = (f"  {printable_line(d.title or d.id)} [{printable_line(d.id)}]" for d in passages)
        typer.echo("\n".join(["taken from:", *listed]))
    for line in [] if learnt is None else learnt_lines(learnt):
        typer.echo(printable_line(line))
    tokens, dollars = (
        f"{total.prompt_tokens} + {format_count(total.completion_tokens, 'token')}",
        f"${total.cost:.4f}",
    )
    if costs.without_usage:
        tokens_text = f"{tokens} and those" if total.prompt_tokens else "tokens"
        tokens = f"{tokens_text} that the server does not tell for {costs.without_usage} of them"
        dollars = f"{dollars} and what those cost" if total.cost else "dollars not reported"
    spent = f"{tokens}, {total.seconds:.0f} s, {dollars}"
    typer.echo(f"{len(costs.entries)} model calls, {spent}; run: {path}")


def certificate_lines(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Format a certificate from `certificate_to_json`.

    The lines are the verdict with the question, the text that may be shown, and each needed fact with the
    sentences that state it.
    """
    yield f"{certificate['ruling']}: {certificate['question']}"
    yield f"  {certificate['told']}"
    for fact in certificate["facts"]:
        yield _certified_fact_line(fact)
        yield from (f"      “{sentence}”" for sentence in fact["sentences"])


def _certified_fact_line(fact: Mapping[str, Any]) -> str:
    sources = f"   [{', '.join(fact['sources'])}]" if fact["sources"] else ""
    return f"    {fact['state']}: {fact['subject'] or '?'} – {fact['relation']} – {fact['object'] or '?'}{sources}"


def learnt_lines(learnt: LearntRun) -> Iterator[str]:
    """Format what a run knew before about its evidence, what is new, and what the memory learnt."""
    for known_fact in learnt.old:
        yield f"known since {known_fact.since.strftime('%Y-%m-%d %H:%M UTC')} from {', '.join(known_fact.sources)}: {known_fact.fact}"
    yield from (f"new: {fact}" for fact in learnt.new)
    yield from (f"not held by the memory: {fact}" for fact in learnt.unheld)
    yield from (f"note: {remark}" for remark in learnt.remarks)
    counts = learnt.learnt
    extras = ((counts.known, "known"), (counts.queued, "to review"), (counts.left, "left out, as retracted"))
    details = ", ".join(f"{number} {what}" for number, what in extras if number)
    yield f"memory: {format_count(counts.new, 'new claim')}{f' ({details})' if details else ''}; {format_count(learnt.held, 'fact')} in all"


def write_page(events: Sequence[Event], html: Path | None, certificate: Certificate | None = None) -> None:
    """Write a run as an HTML page if a path is given.

    With a certificate, its answer is shown as far as that allows.
    """
    if html is None:
        return
    from kgot_lab.loop.certificate import certified_answer
    from kgot_lab.loop.events import Answered
    from kgot_lab.loop.trace import consistent_events, first_inconsistent_write, inconsistency_message
    from kgot_lab.viz.html import html as html_of

    if (diverged := first_inconsistent_write(events)) is not None:
        note = f"the page shows the graph of this run up to event {diverged}"
        say(f"note: {note}: {inconsistency_message(diverged)}")
    shown = consistent_events(events)
    if certificate is not None:
        shown = tuple(certified_answer(e, certificate) if isinstance(e, Answered) else e for e in shown)
    say(f"page: {html_of(shown).save(html)}")


def log_warnings() -> None:
    """Log warnings as plain lines instead of through the handler of the MCP package.

    That handler imports modules when it logs an error, and so fails if no file descriptor is left.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s", force=True)
