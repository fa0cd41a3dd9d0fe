"""Resuming after a stop: Ctrl-C or an error prints where the run is stored, and the command to type next."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
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
from kgot_lab.text.cleaning import decode_argument, printable_line

if TYPE_CHECKING:
    from kgot_lab.cli.answering import Outputs
    from kgot_lab.cli.configuration import Configuration
    from kgot_lab.loop.events import Event
    from kgot_lab.loop.persistence import MemorySession


def command_line(verb: str, *arguments: object, **options: object) -> str:
    """Build a kgot-lab command line with shell quoting.

    Options without a value are left out, and a list repeats its option.
    """
    words = ["kgot-lab", verb, *map(str, arguments)]
    for name, option_value in options.items():
        flag = "--" + name.replace("_", "-")
        for value in option_value if isinstance(option_value, list) else [option_value]:
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

    def advice_after(self, error: Exception) -> str:
        """Return how to resume after an error.

        A budget applies to the whole run, so an exhausted one must be raised. A recorded model that ran out
        must be replaced.
        """
        if isinstance(error, ReplayMiss):
            models = ("model", "execution_model")
            if recorded := [n for n in models if str(self.options.get(n)).startswith("recorded:")]:
                return f"Go on with a model that can answer in place of MODEL: {self._with_options(recorded, 'MODEL')}"
        limits = [n for n in ("max_calls", "max_seconds", "max_dollars") if self.options.get(n) is not None]
        if isinstance(error, OverBudget) and limits:
            return f"Go on with a budget that allows the next call in place of MORE: {self._with_options(limits, 'MORE')}"
        return f"Go on with: {self}"

    def _with_options(self, names: Iterable[str], value: str) -> ResumeCommand:
        return replace(self, options={**self.options, **dict.fromkeys(names, value)})


@contextmanager
def resume_hint(path: Path, resume_command: ResumeCommand) -> Iterator[None]:
    """Report, on an interruption, where the run is stored and how to resume it.

    Handles Ctrl-C and errors of a model, the budget, the sandbox or a disk.
    """
    try:
        yield
    except TraceLocked:
        raise  # the run in the file is another's: nothing of this one is there to go on with
    except KeyboardInterrupt:
        advice = f" Go on with: {resume_command}" if _is_resumable(path) else ""
        say(f"\nStopped. {_progress_note(path)}{advice}")
        raise typer.Exit(INTERRUPTED) from None
    except (LLMError, NotInstalled, OutOfMemory, SandboxError, StoreUnavailable, TraceError) as error:
        message = f"{str(error).rstrip('.')}{'' if str(error).endswith('?') else '.'} {_progress_note(path)}"
        advice = f" {resume_command.advice_after(error)}" if _is_resumable(path) else ""
        raise LabError(f"{message}{advice}") from error
    except OSError as error:
        advice = f" Go on with: {resume_command}" if _is_resumable(path) else ""
        raise LabError(f"{format_os_error(error)}. {_progress_note(path)}{advice}") from error


def _is_resumable(path: Path) -> bool:
    """Return whether a run is on file and can be resumed.

    It cannot if another command wrote into its namespace.
    """
    from kgot_lab.loop.trace import first_inconsistent_write, load_run

    try:
        return path.exists() and first_inconsistent_write(load_run(path).events) is None
    except LabError:  # errors in the file are reported on resume
        return True


def _progress_note(path: Path) -> str:
    if path.exists():
        return f"Everything so far is in {path}."
    return "Nothing is on file: the same command starts from the beginning."


def show_run(
    events: Iterator[Event],
    outputs: Outputs,
    resume_command: ResumeCommand,
    *,
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

    path, as_json = outputs.trace, outputs.as_json
    assert path is not None
    shown: list[Event] = []
    started_at = time.perf_counter()
    with resume_hint(path, resume_command):
        for event in events:
            shown.append(event)
            if not (certify and isinstance(event, Answered)):
                show_event(event, started_at, to_stderr=as_json or certify)
        certificate = certificate_of_run(load_run(path)) if certify else None
        learnt = None if memory is None else memory.learn(load_run(path))
        show_answer(shown, path, as_json=as_json, learnt=learnt, certificate=certificate)
    certified = resume_command.options.get("certify")
    with regenerate_hint(path, command_line("resume", path, html=outputs.html, certify=certified)):
        write_page(shown, outputs.html, certificate)
    return shown


@contextmanager
def regenerate_hint(path: Path, regenerate_command: object) -> Iterator[None]:
    """Report the command that regenerates an output which cannot be written. The run itself is stored."""
    try:
        yield
    except (BadInput, OSError) as error:
        reason = format_os_error(error) if isinstance(error, OSError) else str(error).rstrip(".")
        advice = f"Without asking anything once more, it is made by: {regenerate_command}"
        raise LabError(f"{reason}. The whole run is in {path}. {advice}") from error


# The command that runs a recorded run again with one event changed.


@dataclass(frozen=True)
class _LiveOptions(options.BudgetOptions):
    """Options for the live resources of a fork and their budget."""

    documents: Path | None = option("the folder that the run searched")
    model: str | None = option("a model for replies that were not recorded; without one the fork stops there")
    models: Path | None = options.MODELS_FILE
    execution: str | None = options.EXECUTION
    attach: list[Path] | None = options.ATTACH


@options.with_options
def fork_run(
    *,
    trace: Path = argument("the trace of a run"),
    event: int = argument("the number of the event to change, as --list shows it", default=-1),
    change: str | None = option("the new reply, text of a tool, or statement"),
    listed: bool = option("list the events that can be changed, and stop", "--list", default=False),
    live_options: _LiveOptions,
    out: Path | None = option("where the fork is written (default: beside the run)"),
) -> None:
    """Run a recorded run again with one event changed, to see what would have happened.

    Only calls that follow from the change are made.
    """
    from kgot_lab.cli.configuration import traced_configuration
    from kgot_lab.loop.formatting import caption
    from kgot_lab.loop.replay.forks import changeable_part, changeable_text, fork_to_file, recorded_fork
    from kgot_lab.loop.replay.replay import Resources, recorded_limits, repeated_events
    from kgot_lab.loop.trace import load_run

    run, start = terminal.load_question_run(trace)
    if listed:
        for number, forked_event in enumerate(run.events):
            if changeable_part(forked_event):
                text = " ".join(changeable_text(run.events, number).split())[:80]
                shown = printable_line(f"{caption(forked_event)}: {text}")
                typer.echo(f"{number:5}  {changeable_part(forked_event):9}  {shown}")
        return
    if change is None:
        raise BadInput("name the change of the event: --change TEXT; --list: events")
    if not 0 <= event < len(run.events) or not changeable_part(run.events[event]):
        raise BadInput(f"event {event} cannot be changed: kgot-lab fork {trace} --list shows which can")
    change = decode_argument(change, "the change")
    if change == changeable_text(run.events, event):
        raise BadInput(f"event {event} says just that already: nothing would be changed")
    path = out or trace.with_name(f"{trace.stem}_fork_{event}.jsonl")
    terminal.require_distinct_paths(trace=trace, out=path)
    terminal.check_new_trace(path)
    configuration = traced_configuration(run.about).with_flags(options.configuration_flags(live_options))
    limits = recorded_limits(start)
    folder = Path(configuration.documents) if configuration.documents else None
    live, head = Resources(), {"written": "the change was written on the command line"}
    if live_options.model is not None:
        spending = question_setup.shared_spending(configuration)
        connect = partial(terminal.connect_model, budget=spending, models=configuration.models)
        llm = connect(live_options.model)
        execution = connect(live_options.execution) if live_options.execution else None
        passages = terminal.run_documents(run, folder)
        attached = live_options.attach or []
        at_hand = question_setup.collect_tool_inputs(configuration, passages, attached, llm, limits, spending)
        question_setup.check_prices(configuration, llm, execution, at_hand.vision)
        live = Resources(question_setup.tools_of_resumed_run(at_hand, configuration, start), llm, execution)
        question_setup.print_forecast(llm, limits)
    if live_options.model is not None or "configuration" in run.about:
        head["configuration"] = _local_configuration(configuration, live_options).to_yaml(limits)
    if "documents" in run.about:
        head["documents"] = run.about["documents"]
    resumed = {
        **options.options_by_flag(live_options),
        "documents": folder,
        "model": live_options.model or "MODEL",
    }
    resume_command = ResumeCommand("resume", path, resumed)
    missing: list[str] = []
    recorded = fork_to_file(run, event, change, path, live=live, about=head)
    if not live_options.model:
        recorded = _until_missing(recorded, missing)
    unchanged = len(repeated_events(run.events[:event]))
    with resume_hint(path, resume_command):
        for number, forked_event in enumerate(recorded):
            if number >= unchanged:
                terminal.show_event(forked_event)
    summary = recorded_fork(run, load_run(path))
    typer.echo(printable_line(repr(replace(summary, stopped="".join(missing)))))
    advice = "" if summary.answer else f". Go on with a model in place of MODEL: {resume_command}"
    terminal.say(f"the fork is in {path}{advice}")


def _local_configuration(configuration: Configuration, given: _LiveOptions) -> Configuration:
    """Return the configuration for continuing a fork.

    It uses the models given and a store in this process, and no file of the original run.
    """
    changed = {"model": given.model, "execution_model": given.execution} if given.model else {}
    dropped = dict.fromkeys(("snapshots", "memory", "user", "as_of"))
    return configuration.model_copy(update={**changed, **dropped, "store": type(configuration.store)()})


def _until_missing(events: Iterator[Event], missing: list[str]) -> Iterator[Event]:
    """Yield the events up to the first call that is not recorded and has no live model.

    The missing call is appended to `missing`.
    """
    try:
        yield from events
    except ReplayMiss as error:
        missing.append(str(error))
