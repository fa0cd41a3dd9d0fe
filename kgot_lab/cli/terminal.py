"""What the commands share: connecting a model, reading documents, showing a run as it happens, and ending it well."""

from __future__ import annotations

import json
import os
import shlex
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kgot_lab.errors import BadInput, LabError, LLMError, SandboxError, StoreUnavailable, UnknownName
from kgot_lab.text.harmless import harmless

if TYPE_CHECKING:
    from kgot_lab.llm.budget import Budget
    from kgot_lab.loop.events import Event, Started
    from kgot_lab.loop.limits import Limits
    from kgot_lab.loop.trace import Trace
    from kgot_lab.stores.protocol import Store
    from kgot_lab.tools.tool import Tool
    from kgot_lab.types import LLM, Document

RUNS = Path("runs")
DEMO = "hotpotqa"  # noted in the head of a demo's trace: its documents are the bundled ones
INTERRUPTED = 130  # the exit code of a program that Ctrl-C stopped, as shells have it


def say(text: str) -> None:
    """Tell what is not the result: on standard error; a name or a text of others in it cannot command the terminal."""
    typer.echo("\n".join(map(harmless, text.split("\n"))), err=True)


# --- models and limits ----------------------------------------------------------------------------------------------------


def chosen_limits(preset: str, model: str, answer_format: str | None = None) -> Limits:
    """The limits of a preset ("auto": local for small models); raises UnknownName and BadInput."""
    from kgot_lab.loop.limits import limits_for

    if answer_format not in {None, "default", "gaia"}:
        raise BadInput(f"--format is default or gaia, not {answer_format!r}")
    return limits_for(_own_name(model), preset, answer_format)


def _own_name(model: str) -> str:
    """The name by which a model goes; that of a recorded one is in its file."""
    from kgot_lab.llm import connect as connecting

    return connecting(model).name if model.startswith("recorded:") else model


def connect_model(spec: str, budget: Budget | None = None, tape: Path | None = None) -> LLM:
    """The model that a text names, kept to a budget, its replies on a tape; the local one is fetched if need be. Raises LabError."""
    from kgot_lab.llm import connect as connecting
    from kgot_lab.llm.budget import Budget, Budgeted
    from kgot_lab.llm.engines import ENGINES

    if spec == "local" or spec.removeprefix("local:") in ENGINES:
        llm = local_model(spec)
    elif spec.partition(":")[0] in {"local", "recorded"}:
        llm = connecting(spec)
    else:
        llm = connecting(spec, say=say)  # waits for a server should be seen
    llm = Budgeted(llm, budget) if budget is not None and budget != Budget() else llm
    if tape is None:
        return llm
    from kgot_lab.llm.recorded import Recorder

    return Recorder(llm, tape)


def connect_again(name: str, budget: Budget) -> LLM:
    """The model that a trace names; raises BadInput for a server, of which a trace does not keep the whole address."""
    try:
        return connect_model("local" if name.startswith("local:") else name, budget)
    except UnknownName:
        raise BadInput(f"the run was made with {name!r}: name that model with --model, a server as http://HOST:PORT/v1#MODEL") from None


def local_model(spec: str = "local") -> LLM:
    """The model on this computer; raises NotInstalled before anything large is fetched, and ModelMissing."""
    from kgot_lab.llm import connect as connecting
    from kgot_lab.llm.engines import find_engine

    find_engine(spec.partition(":")[2] or None)
    fetched_model()
    return connecting(spec)


def fetched_model() -> Path:
    """The local model's file, fetched with a progress bar when it is not there; raises ModelMissing."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from kgot_lab.llm.fetch import fetch_model
    from kgot_lab.llm.model_file import QWEN_CODER, VARIABLE, find_model, models_folder

    if os.environ.get(VARIABLE) or (models_folder() / QWEN_CODER.name).is_file():
        return find_model()
    say("Fetching the local model, 1.1 GB, once (Ctrl-C stops; the next time it goes on from there).")
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("model", total=None)
        return fetch_model(say=lambda there, total: progress.update(task, completed=there, total=total))


# --- documents, tools and files -------------------------------------------------------------------------------------------


def read_folder(folder: Path) -> list[Document]:
    """The passages of a folder, with a note for each file that was skipped or guessed at; raises BadInput when there are none."""
    from kgot_lab.documents.folder import read_documents

    library = read_documents(folder)
    for remark in (*library.skipped, *library.doubtful):
        say(f"note: {remark}")
    return list(library.documents)


def documents_of(run: Trace, folder: Path | None) -> list[Document]:
    """The passages that a run searched: the folder's, or those of the demo."""
    from kgot_lab.experiments.questions.hotpotqa import hotpotqa

    if folder is not None:
        return read_folder(folder)
    return hotpotqa().documents if run.about.get("documents") == DEMO else []


def store_of(begun: Started, unsafe: bool = False) -> Store:
    """An empty store in this process in the languages of a recorded run."""
    from kgot_lab.stores import open_for

    return open_for(begun.dialect, *begun.readers, unsafe=unsafe)


def tools_with_notes(passages: Sequence[Document], attached: Sequence[Path]) -> list[Tool]:
    """The tools for some documents and files; what they warn of is said as a note."""
    from kgot_lab.tools.facts import tools_for

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tools = tools_for(passages, attached)
    for warning in caught:
        say(f"note: {warning.message}")
    return tools


def run_of(trace: Path) -> tuple[Trace, Started]:
    """The run of a question on file, and how it began; raises TraceError, and BadInput for an extraction."""
    from kgot_lab.loop.replay import started
    from kgot_lab.loop.trace import load_run

    run = load_run(trace)
    begun = started(run.events)
    if not begun.question:
        again = f"kgot-lab extract DIR --resume --trace {trace}"
        raise BadInput(f"{trace} is an extraction, not the run of a question; {again} goes on with it")
    return run, begun


def new_trace() -> Path:
    """A file for a run that is not there yet, named by the time."""
    stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
    number = next(number for number in range(1000) if not (RUNS / f"{stamp}_{number}.jsonl").exists())
    return RUNS / f"{stamp}_{number}.jsonl"


def check_writable(path: Path | None) -> None:
    """Make the folder of a file that will be written when the work is done; raises BadInput now rather than then."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error}") from error
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise BadInput(f"cannot write {path}: {'it is a folder' if path.is_dir() else 'there is no right to'}")


def command(name: str, *arguments: object, **options: object) -> str:
    """A command of ours as a shell takes it; options without a value are left out, a list gives its option more than once."""
    words = ["kgot-lab", name, *map(str, arguments)]
    for option, given in options.items():
        flag = "--" + option.replace("_", "-")
        for value in given if isinstance(given, list) else [given]:
            if value:
                words += [flag] if value is True else [flag, str(value)]
    return shlex.join(words)


# --- showing a run --------------------------------------------------------------------------------------------------------


def interruptible(events: Iterator[Event], path: Path, again: str) -> Iterator[Event]:
    """The events; when Ctrl-C, a model, the budget or the sandbox stops them, say where the run is kept and how to go on."""
    kept = f"Everything so far is in {path}. Go on with: {again}"
    try:
        yield from events
    except KeyboardInterrupt:
        say(f"\nStopped. {kept}")
        raise typer.Exit(INTERRUPTED) from None
    except (LLMError, SandboxError, StoreUnavailable) as error:
        raise LabError(f"{str(error).rstrip('.')}. {kept}") from error


def finish(events: Iterator[Event], path: Path, again: str, *, html: Path | None = None, as_json: bool = False) -> None:
    """Show events as they happen, then the answer with what it rests on."""
    seen: list[Event] = []
    begun = time.perf_counter()
    for event in interruptible(events, path, again):
        seen.append(event)
        show_event(event, begun, to_stderr=as_json)
    show_end(seen, path, as_json=as_json)
    write_page(seen, html)


def show_event(event: Event, begun: float | None = None, *, to_stderr: bool = False) -> None:
    """An event as a line or two, with the seconds since `begun`."""
    from kgot_lab.loop.telling import line

    clock = f"{time.perf_counter() - begun:6.1f} s  " if begun is not None else ""
    typer.echo(clock + line(event).replace("\n", "\n" + " " * len(clock)), err=to_stderr)


def show_end(events: Sequence[Event], path: Path, *, as_json: bool = False) -> None:
    """Print the answer of a whole run, what it rests on and what it cost, as text or as one JSON object."""
    from kgot_lab.loop.events import Answered, ToolReturned
    from kgot_lab.loop.ledger import ledger
    from kgot_lab.loop.replay import started

    final = next(event for event in reversed(events) if isinstance(event, Answered))
    found = {document.id: document for event in events if isinstance(event, ToolReturned) for document in event.sources}
    passages = [found[id] for id in final.passages if id in found]
    costs = ledger(events)
    total = costs.total
    if as_json:
        begun = started(events)
        result = {
            "question": begun.question, "answer": final.text, "forced": final.forced, "evidence": list(final.evidence),
            "passages": [{"id": document.id, "title": document.title} for document in passages],
            "preset": begun.preset, "model": begun.planning, "calls": len(costs.entries),
            "prompt_tokens": total.prompt_tokens, "completion_tokens": total.completion_tokens,
            "seconds": round(total.seconds, 1), "dollars": total.cost, "trace": str(path),
        }  # fmt: skip
        typer.echo(json.dumps(result))
        return
    answer = "\n        ".join(map(harmless, final.text.splitlines()))
    typer.echo(f"\nAnswer: {answer}" + ("   (a guess: no read gave rows)" if final.forced else ""))
    taken_from = [f"{document.title or document.id} [{document.id}]" for document in passages]
    for title, items in (("It rests on these facts of the graph", final.evidence), ("taken from", taken_from)):
        if items:
            typer.echo(f"{title}:\n" + "\n".join(f"  {harmless(str(item))}" for item in items))
    spent = f"{total.prompt_tokens} + {total.completion_tokens} tokens, {total.seconds:.0f} s, ${total.cost:.4f}"
    typer.echo(f"{len(costs.entries)} model calls, {spent}; run: {path}")


def write_page(events: Sequence[Event], html: Path | None) -> None:
    """Write a run as one HTML page, where a path is given."""
    if html is None:
        return
    from kgot_lab.viz.html import html as html_of

    say(f"page: {html_of(events).save(html)}")
