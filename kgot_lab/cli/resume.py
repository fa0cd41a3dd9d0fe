"""How a command goes on after a stop: Ctrl-C or an error says where the run is kept, and the command to type
next.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kgot_lab.cli.terminal import INTERRUPTED, reason_of, say, show_end, show_event, write_page
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

if TYPE_CHECKING:
    from kgot_lab.loop.events import Event
    from kgot_lab.loop.persistence import MemorySession


def command(name: str, *arguments: object, **options: object) -> str:
    """A command of ours as a shell takes it; options without a value are left out, a list gives its option
    more than once.
    """
    words = ["kgot-lab", name, *map(str, arguments)]
    for option, given in options.items():
        flag = "--" + option.replace("_", "-")
        for value in given if isinstance(given, list) else [given]:
            if value is not None and value is not False:
                words += [flag] if value is True else [flag, str(value)]
    return shlex.join(words)


@dataclass(frozen=True)
class GoOn:
    """The command that goes on with a run, in what it was given: its name, what stands first, and its
    options.
    """

    name: str
    first: Path
    options: Mapping[str, object]

    def __str__(self) -> str:
        return command(self.name, self.first, **self.options)

    def after(self, error: Exception) -> str:
        """How to go on after an error: a budget is the whole run's, so one that is spent has to be raised."""
        if isinstance(error, ReplayMiss):
            recorded = [
                name
                for name in ("model", "execution_model")
                if str(self.options.get(name)).startswith("recorded:")
            ]
            if recorded:
                return (
                    f"Go on with a model that can answer in place of MODEL: {self._with(recorded, 'MODEL')}"
                )
        limits = [
            name for name in ("max_calls", "max_seconds", "max_dollars") if self.options.get(name) is not None
        ]
        if isinstance(error, OverBudget) and limits:
            return f"Go on with a budget that allows the next call in place of MORE: {self._with(limits, 'MORE')}"
        return f"Go on with: {self}"

    def _with(self, names: Iterable[str], value: str) -> GoOn:
        return replace(self, options={**self.options, **dict.fromkeys(names, value)})


@contextmanager
def resume_hint(path: Path, again: GoOn) -> Iterator[None]:
    """When Ctrl-C, a model, the budget, the sandbox or a disk stops what is done, say where the run is kept
    and how to go on.
    """
    try:
        yield
    except TraceLocked:
        raise  # the run in the file is another's: nothing of this one is there to go on with
    except KeyboardInterrupt:
        say(f"\nStopped. {_kept(path)}{f' Go on with: {again}' if _goes_on(path) else ''}")
        raise typer.Exit(INTERRUPTED) from None
    except (LLMError, NotInstalled, OutOfMemory, SandboxError, StoreUnavailable, TraceError) as error:
        told = f"{str(error).rstrip('.')}{'' if str(error).endswith('?') else '.'} {_kept(path)}"
        raise LabError(f"{told} {again.after(error)}" if _goes_on(path) else told) from error
    except OSError as error:
        told = f"{reason_of(error)}. {_kept(path)}"
        raise LabError(f"{told} Go on with: {again}" if _goes_on(path) else told) from error


def _goes_on(path: Path) -> bool:
    """Whether a run is on file and can go on: one into whose namespace another command wrote cannot."""
    from kgot_lab.loop.trace import load_run, parted_at

    try:
        return path.exists() and parted_at(load_run(path).events) is None
    except LabError:  # what its file lacks is told when it is gone on with
        return True


def _kept(path: Path) -> str:
    return (
        f"Everything so far is in {path}."
        if path.exists()
        else "Nothing is on file: the same command starts from the beginning."
    )


def finish(
    events: Iterator[Event],
    path: Path,
    again: GoOn,
    *,
    html: Path | None = None,
    as_json: bool = False,
    memory: MemorySession | None = None,
    certify: bool = False,
) -> list[Event]:
    """Show events as they happen, have a memory learn, then show the answer with what it rests on; all of
    them, in the end.

    Where the answer is to be certified, standard output has what a reader may be told, and standard error
    what leads to it.
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
        show_end(
            seen,
            path,
            as_json=as_json,
            learnt=None if memory is None else memory.learn(load_run(path)),
            certificate=certificate,
        )
    with regenerate_hint(path, command("resume", path, html=html, certify=again.options.get("certify"))):
        write_page(seen, html, certificate)
    return seen


@contextmanager
def regenerate_hint(path: Path, how: object) -> Iterator[None]:
    """Where an output of a whole run cannot be written, say that the run is kept and by which command the
    output is made once more.
    """
    try:
        yield
    except (BadInput, OSError) as error:
        told = reason_of(error) if isinstance(error, OSError) else str(error).rstrip(".")
        raise LabError(
            f"{told}. The whole run is in {path}. Without asking anything once more, it is made by: {how}"
        ) from error
