"""How a command goes on after a stop: Ctrl-C or an error says where the run is kept, and the command to type next."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kgot_lab.cli.terminal import INTERRUPTED, say, show_end, show_event, write_page
from kgot_lab.errors import LabError, LLMError, NotInstalled, OverBudget, ReplayMiss, SandboxError, StoreUnavailable, TraceError

if TYPE_CHECKING:
    from kgot_lab.loop.events import Event


def command(name: str, *arguments: object, **options: object) -> str:
    """A command of ours as a shell takes it; options without a value are left out, a list gives its option more than once."""
    words = ["kgot-lab", name, *map(str, arguments)]
    for option, given in options.items():
        flag = "--" + option.replace("_", "-")
        for value in given if isinstance(given, list) else [given]:
            if value is not None and value is not False:
                words += [flag] if value is True else [flag, str(value)]
    return shlex.join(words)


@dataclass(frozen=True)
class GoOn:
    """The command that goes on with a run, in what it was given: its name, what stands first, and its options."""

    name: str
    first: Path
    options: Mapping[str, object]

    def __str__(self) -> str:
        return command(self.name, self.first, **self.options)

    def after(self, error: Exception) -> str:
        """How to go on after an error: a budget is the whole run's, so one that is spent has to be raised."""
        if isinstance(error, ReplayMiss):
            recorded = [name for name in ("model", "execution_model") if str(self.options.get(name)).startswith("recorded:")]
            if recorded:
                return f"Go on with a model that can answer in place of MODEL: {self._with(recorded, 'MODEL')}"
        limits = [name for name in ("max_calls", "max_seconds", "max_dollars") if self.options.get(name) is not None]
        if isinstance(error, OverBudget) and limits:
            return f"Go on with a budget that allows the next call in place of MORE: {self._with(limits, 'MORE')}"
        return f"Go on with: {self}"

    def _with(self, names: Iterable[str], value: str) -> GoOn:
        return replace(self, options={**self.options, **dict.fromkeys(names, value)})


def interruptible(events: Iterator[Event], path: Path, again: GoOn) -> Iterator[Event]:
    """The events; when Ctrl-C, a model, the budget or the sandbox stops them, say where the run is kept and how to go on."""
    kept = f"Everything so far is in {path}."
    try:
        yield from events
    except KeyboardInterrupt:
        say(f"\nStopped. {kept} Go on with: {again}")
        raise typer.Exit(INTERRUPTED) from None
    except (LLMError, NotInstalled, SandboxError, StoreUnavailable, TraceError) as error:
        raise LabError(f"{str(error).rstrip('.')}. {kept} {again.after(error)}") from error


def finish(events: Iterator[Event], path: Path, again: GoOn, *, html: Path | None = None, as_json: bool = False) -> None:
    """Show events as they happen, then the answer with what it rests on."""
    seen: list[Event] = []
    begun = time.perf_counter()
    for event in interruptible(events, path, again):
        seen.append(event)
        show_event(event, begun, to_stderr=as_json)
    show_end(seen, path, as_json=as_json)
    write_page(seen, html)
