"""Resuming after a stop: Ctrl-C or an error prints where the run is stored, and the command to type next."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kgot_lab.cli import options, question_setup, terminal
from kgot_lab.cli.options import argument, option
from kgot_lab.cli.terminal import INTERRUPTED, format_os_error, say, show_answer, show_event, write_page
from kgot_lab.errors import (
    BadInput,
    LabError,
    LLMError,
    NotInstalled,
    OutOfMemory,
    OverBudget,
    ReplayMiss,
    SandboxError,
    StoreUnavailable,
    TraceError,
    TraceLocked,
)
from kgot_lab.io.files import read_regular_text
from kgot_lab.text.cleaning import decode_argument, printable_line

if TYPE_CHECKING:
    from kgot_lab.cli.configuration import Configuration
    from kgot_lab.loop.events import Event
    from kgot_lab.loop.persistence import MemorySession


def command_line(verb: str, *arguments: object, **options: object) -> str:
    """Build a kgot-lab command line with shell quoting.

    Options without a value are left out, and a list repeats its option.
    """
    words = ["kgot-lab", verb, *map(str, arguments)]
    for name, given in options.items():
        flag = "--" + name.replace("_", "-")
        for value in given if isinstance(given, list) else [given]:
            if value is not None and value is not False:
                words += [flag] if value is True else [flag, str(value)]
    return shlex.join(words)


@dataclass(frozen=True)
class ResumeCommand:
    """The command that continues a run: its name, arguments and options."""

    name: str
    first: Path
    options: Mapping[str, object]

    def __str__(self) -> str:
        return command_line(self.name, self.first, **self.options)

    def after(self, error: Exception) -> str:
        """Return how to resume after an error.

        A budget applies to the whole run, so an exhausted one must be raised. A recorded model that ran out
        must be replaced.
        """
        if isinstance(error, ReplayMiss):
            recorded = [
                name
                for name in ("model", "execution_model")
                if str(self.options.get(name)).startswith("recorded:")
            ]
            if recorded:
                return f"Go on with a model that can answer in place of MODEL: {self._with_options(recorded, 'MODEL')}"
        limits = [
            name for name in ("max_calls", "max_seconds", "max_dollars") if self.options.get(name) is not None
        ]
        if isinstance(error, OverBudget) and limits:
            return f"Go on with a budget that allows the next call in place of MORE: {self._with_options(limits, 'MORE')}"
        return f"Go on with: {self}"

    def _with_options(self, names: Iterable[str], value: str) -> ResumeCommand:
        return replace(self, options={**self.options, **dict.fromkeys(names, value)})


@contextmanager
def resume_hint(path: Path, again: ResumeCommand) -> Iterator[None]:
    """Report, on an interruption, where the run is stored and how to resume it.

    Handles Ctrl-C and errors of a model, the budget, the sandbox or a disk.
    """
    try:
        yield
    except TraceLocked:
        raise  # the run in the file is another's: nothing of this one is there to go on with
    except KeyboardInterrupt:
        say(f"\nStopped. {_progress_note(path)}{f' Go on with: {again}' if _is_resumable(path) else ''}")
        raise typer.Exit(INTERRUPTED) from None
    except (LLMError, NotInstalled, OutOfMemory, SandboxError, StoreUnavailable, TraceError) as error:
        told = f"{str(error).rstrip('.')}{'' if str(error).endswith('?') else '.'} {_progress_note(path)}"
        raise LabError(f"{told} {again.after(error)}" if _is_resumable(path) else told) from error
    except OSError as error:
        told = f"{format_os_error(error)}. {_progress_note(path)}"
        raise LabError(f"{told} Go on with: {again}" if _is_resumable(path) else told) from error


def _is_resumable(path: Path) -> bool:
    """Return whether a run is on file and can be resumed.

    It cannot if another command wrote into its namespace.
    """
    from kgot_lab.loop.trace import load_run, parted_at

    try:
        return path.exists() and parted_at(load_run(path).events) is None
    except LabError:  # errors in the file are reported on resume
        return True


def _progress_note(path: Path) -> str:
    return (
        f"Everything so far is in {path}."
        if path.exists()
        else "Nothing is on file: the same command starts from the beginning."
    )


def show_run(
    events: Iterator[Event],
    path: Path,
    again: ResumeCommand,
    *,
    html: Path | None = None,
    as_json: bool = False,
    memory: MemorySession | None = None,
    certify: bool = False,
) -> list[Event]:
    """Show events as they happen and then the answer with its evidence, and return all events.

    A memory learns the run before the answer is shown. If the answer is to be certified, standard output has
    what may be shown to a reader, and standard error has the events.
    """
    from kgot_lab.loop.certificate import certificate_of_run
    from kgot_lab.loop.events import Answered
    from kgot_lab.loop.trace import load_run

    seen: list[Event] = []
    begun = time.perf_counter()
    with resume_hint(path, again):
        for event in events:
            seen.append(event)
            if not (certify and isinstance(event, Answered)):
                show_event(event, begun, to_stderr=as_json or certify)
        certificate = certificate_of_run(load_run(path)) if certify else None
        show_answer(
            seen,
            path,
            as_json=as_json,
            learnt=None if memory is None else memory.learn(load_run(path)),
            certificate=certificate,
        )
    with regenerate_hint(path, command_line("resume", path, html=html, certify=again.options.get("certify"))):
        write_page(seen, html, certificate)
    return seen


@contextmanager
def regenerate_hint(path: Path, how: object) -> Iterator[None]:
    """Report the command that regenerates an output which cannot be written. The run itself is stored."""
    try:
        yield
    except (BadInput, OSError) as error:
        told = format_os_error(error) if isinstance(error, OSError) else str(error).rstrip(".")
        raise LabError(
            f"{told}. The whole run is in {path}. Without asking anything once more, it is made by: {how}"
        ) from error


# The command that runs a recorded run again with one event changed.


@dataclass(frozen=True)
class _ChangeOptions:
    """Options for the change of an event."""

    change: str | None = option("the new reply, text of a tool, or statement")
    change_file: Path | None = option("a file with that text")
    listed: bool = option("list the events that can be changed, and stop", "--list", default=False)


@dataclass(frozen=True)
class _LiveOptions(options.BudgetOptions):
    """Options for the live resources of a fork and their budget."""

    documents: Path | None = option("the folder that the run searched")
    model: str | None = option("a model for what the recording does not hold; without one it stops there")
    models: Path | None = options.MODELS_FILE
    attach: list[Path] | None = options.ATTACH


@options.with_options
def fork_run(
    *,
    trace: Path = argument("a run on file"),
    changed: _ChangeOptions,
    use: _LiveOptions,
    event: int = argument("the number of the event to change, as --list shows it", default=-1),
    out: Path | None = option("where the fork is written (default: beside the run)"),
) -> None:
    """Run a recorded run again with one event changed, to see what would have happened.

    Only calls that follow from the change are made.
    """
    from kgot_lab.cli.configuration import traced_configuration
    from kgot_lab.loop.formatting import caption
    from kgot_lab.loop.replay.forks import change_of, changeable, forked, recorded_fork
    from kgot_lab.loop.replay.replay import Resources, limits_of, without_losses
    from kgot_lab.loop.trace import load_run

    run, begun = terminal.load_question_run(trace)
    if changed.listed:
        for number, each in enumerate(run.events):
            if changeable(each):
                told = f"{caption(each)}: {' '.join(change_of(run.events, number).split())[:80]}"
                typer.echo(f"{number:5}  {changeable(each):9}  {printable_line(told)}")
        return
    change, change_file = changed.change, changed.change_file
    if (change is None) == (change_file is None):
        raise BadInput(
            "say what the event is changed to: --change TEXT or --change-file FILE; --list shows what can be changed"
        )
    if change_file is not None:
        try:
            change = read_regular_text(change_file, "utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{change_file} cannot be read: {error}") from error
    if not 0 <= event < len(run.events) or not changeable(run.events[event]):
        raise BadInput(f"event {event} cannot be changed: kgot-lab fork {trace} --list shows which can")
    assert change is not None
    change = decode_argument(change, "the change")
    if change == change_of(run.events, event):
        raise BadInput(f"event {event} says just that already: nothing would be changed")
    path = out or trace.with_name(f"{trace.stem}_fork_{event}.jsonl")
    terminal.require_distinct_paths(trace=trace, out=path)
    terminal.check_new_trace(path)
    configuration = traced_configuration(run.about).with_flags(options.configuration_flags(use))
    folder = Path(configuration.documents) if configuration.documents else None
    live, head = Resources(), {"written": "the change was written on the command line"}
    if use.model is not None:
        spending = question_setup.shared_spending(configuration)
        llm = terminal.connect_model(use.model, spending, models=configuration.models)
        passages = terminal.run_documents(run, folder)
        at_hand = question_setup.collect_tool_inputs(
            configuration, passages, use.attach or [], llm, limits_of(begun), spending
        )
        question_setup.check_prices(configuration, llm, at_hand.vision)
        live = Resources(question_setup.tools_of_resumed_run(at_hand, configuration, begun), llm)
        question_setup.print_forecast(llm, limits_of(begun))
    if use.model is not None or "configuration" in run.about:
        head["configuration"] = _local_configuration(configuration, use.model).to_yaml(limits_of(begun))
    if "documents" in run.about:
        head["documents"] = run.about["documents"]
    again = ResumeCommand("resume", path, {**vars(use), "documents": folder, "model": use.model or "MODEL"})
    missing: list[str] = []
    kept = forked(run, event, change, path, live=live, about=head)
    unchanged = len(without_losses(run.events[:event]))
    with resume_hint(path, again):
        for number, each in enumerate(kept if use.model else _until_missing(kept, missing)):
            if number >= unchanged:
                terminal.show_event(each)
    made = recorded_fork(run, load_run(path))
    typer.echo(printable_line(repr(replace(made, stopped="".join(missing)))))
    terminal.say(
        f"the fork is in {path}" + ("" if made.answer else f". Go on with a model in place of MODEL: {again}")
    )


def _local_configuration(configuration: Configuration, model: str | None) -> Configuration:
    """Return the configuration for continuing a fork.

    It uses one model and a store in this process, and no file of the original run.
    """
    changed = {"model": model, "execution_model": None} if model else {}
    return configuration.model_copy(
        update={
            **changed,
            "store": type(configuration.store)(),
            "snapshots": None,
            "memory": None,
            "as_of": None,
        }
    )


def _until_missing(events: Iterator[Event], missing: list[str]) -> Iterator[Event]:
    """Yield the events up to the first call that is not recorded and has no live model.

    The missing call is appended to `missing`.
    """
    try:
        yield from events
    except ReplayMiss as error:
        missing.append(str(error))
