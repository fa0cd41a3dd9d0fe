"""Answer a question from Python in one line."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Unpack
from uuid import uuid4

from kgot_lab.arguments import check_arguments
from kgot_lab.documents.folder import group_remarks, read_documents
from kgot_lab.errors import BadInput, ReplayMiss, TraceError, UnknownName, require_parts
from kgot_lab.llm import connect
from kgot_lab.llm.recorded import Recorded, recorded_prompts
from kgot_lab.loop.controller import RunOptions, think
from kgot_lab.loop.events import Answered, Event
from kgot_lab.loop.formatting import summary_line
from kgot_lab.loop.limits import SMALL_MODELS, Limits, forecast, limits_for
from kgot_lab.loop.persistence import MemoryLocation, open_memory_session
from kgot_lab.loop.replay.replay import Resources, recorded_limits, resume, start_event
from kgot_lab.loop.trace import Trace, append_events, load_run, model_metadata, record
from kgot_lab.stores import empty_store, reopen_store
from kgot_lab.stores.opening import resolve_location
from kgot_lab.stores.protocol import Store
from kgot_lab.text.cleaning import checked_text, format_count, replace_surrogates
from kgot_lab.tools.search import tools_for
from kgot_lab.tools.tool import Tool, as_tool, search_argument
from kgot_lab.types import LLM, Document, checked_documents

# Progress of a run or a long job: in a notebook its cell, elsewhere lines on standard error, which
# `logging.getLogger("kgot_lab").setLevel("WARNING")` turns off.

MAX_LINES = 16  # maximum lines shown in a cell, the last ones
_BAR, _PAUSE = 30, 0.2  # characters of a bar, and seconds between two updates
_SILENCE, _LINE_PAUSE = 3.0, 5.0  # seconds of a job before its first line, and between two


def display_progress(events: Iterable[Event], head: str = "") -> Iterator[Event]:
    """Yield events, and show the latest of them in a notebook cell below `head`, which grows with the run.

    A script prints a line for each event but the answer.
    """
    cell, began = CellProgress(head) if in_notebook() else None, time.monotonic()
    if cell is None and head:
        print_progress(head)
    for event in events:
        if cell is not None:
            cell.tell(event)
        elif not isinstance(event, Answered):
            line, _, _ = summary_line(event, 0).partition("\n")
            print_progress(f"{time.monotonic() - began:4.0f} s  {line}")
        yield event


def print_progress(line: str) -> None:
    """Print a line on standard error, unless the logger of the package has a level above INFO."""
    if logging.getLogger("kgot_lab").level <= logging.INFO:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def in_notebook() -> bool:
    """Return whether this code runs in a notebook kernel, without importing IPython to find out."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


class _CellOutput:
    """One output of a notebook cell, whose text is replaced."""

    _handle: Any = None

    def _show(self, text: str) -> None:
        from IPython.display import display

        shown = {"text/plain": text}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(shown, raw=True)


class CellProgress(_CellOutput):
    """One output of a cell that shows how far a run has come."""

    def __init__(self, head: str = "") -> None:
        self._head, self._lines, self._count = head, deque[str](maxlen=MAX_LINES), 0

    def tell(self, event: Event) -> None:
        """Show one more event. The answer is left to the value of the cell."""
        self._count += 1
        if not isinstance(event, Answered):
            self._lines.append(summary_line(event))
        state = "finished" if isinstance(event, Answered) else "working …"
        self._show(f"{self.text}\n{format_count(self._count, 'event')}, {state}")

    @property
    def text(self) -> str:
        """The text shown in the cell."""
        before = self._count - len(self._lines)
        head = [self._head] if self._head else []
        earlier = [f"({format_count(before, 'event')} before)"] if before > 1 else []
        return "\n".join([*head, *earlier, *self._lines])


def cell_progress_bar(what: str, *, clock: Callable[[], float] = time.monotonic) -> Callable[..., None]:
    """Return a `progress` callback for a long job that shows a bar in a notebook cell.

    It is called with the number done and the total. A script prints a line every few seconds, and nothing if
    the job takes less.
    """
    bar = CellBar(what, clock) if in_notebook() else None
    began = clock()
    due = began + _SILENCE

    def tell(done: int, total: int, *_: object) -> None:
        nonlocal began, due
        now = clock()
        if done == 0:  # another job, such as the vector of a question
            began, due = now, now + _SILENCE
        if bar is not None:
            bar.tell(done, total)
        elif now >= due:
            due = now + _LINE_PAUSE
            print_progress(f"{what}: {done:,} of {total:,}, {now - began:.0f} s")

    return tell


class CellBar(_CellOutput):
    """A progress bar in one output of a notebook cell.

    It is drawn a few times a second at most, and at the end.
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._clock, self._began = what, clock, clock()
        self._shown_at: float | None = None

    def tell(self, done: int, total: int) -> None:
        """Show how far it is."""
        now = self._clock()
        if done < total and self._shown_at is not None and now - self._shown_at < _PAUSE:
            return
        self._shown_at = now
        full = _BAR * done // max(1, total)
        bar = f"{'#' * full}{'.' * (_BAR - full)}"
        self._show(f"{self._what}: [{bar}] {done:,} of {total:,}, {now - self._began:.0f} s")


EMBEDDING = "embedding passages and sentences"  # what a first search over documents does
Facts = str | Path | Iterable[Document] | Tool | None


class AskOptions(RunOptions, total=False):
    """Options of `ask`: those of a run, and tools besides the search over documents."""

    tools: Sequence[Tool | Callable[..., object]]


@check_arguments
def ask(
    question: str,
    documents: Facts = None,
    model: Any = "local",
    *,
    preset: str | Limits = "auto",
    store: str | Path | Store = "in_memory",
    trace: str | Path | None = None,
    memory: MemoryLocation | None = None,
    **options: Unpack[AskOptions],
) -> Trace:
    """Answer a question with a graph grown from documents.

    Returns the run, which has the `answer`. `show` steps through it.

    `documents` are a folder, a file, a list of Document, or a tool that finds facts, such as search(…).
    `options` are those of AskOptions, by their names: `tools` besides the search (plain functions are described
    by their signature and docstring), `execution` (a model that chooses tools), `attachments` (files),
    `prompts`, `approve`, `parallel`, `mode` and `compute`. `model` is a model, or what `connect` takes.
    `store` is an open store, which stays open, or what `open_store` takes, which must be empty. If an open
    store holds a graph, the run begins with it and may do without documents. `preset` is "paths" (for small
    models: sentences and names as a graph, and an answer that is checked), "local" (a small model writes the
    graph), "reference" (the published limits), "auto", or Limits. With a `trace`, the run is written to that
    file event by event, and after an interruption the same call resumes it. Otherwise the run is only
    returned. A recorded model begins with its first replies. Nothing is downloaded: if its file is missing,
    the local model raises ModelMissing, which says what to do. A notebook shows the events in the cell as
    they happen, a script on standard error. Raises BadInput, TraceError if the file holds anything but this
    question without its answer, and what `connect`, `open_store` and `think` raise.

    A `memory` is a file of claims, or Claims. The run begins with its facts, answers from them before it
    searches, and stores there what it writes once it has its answer. `about["memory"]` of the run lists the
    facts that were known before. Beliefs of an earlier time, as `Claims.as_of` returns them, learn nothing. A
    memory of `open_memory` gives what it recalls for the question, and learns nothing either.
    Raises what `open_claims` raises, before a model is called.
    """
    question = checked_text(question, "the question").strip()
    for name in options.keys() - AskOptions.__optional_keys__:
        raise UnknownName("option of ask()", name, AskOptions.__optional_keys__)
    attachments, given_tools = options.get("attachments", ()), options.get("tools", ())
    own_tools = list(map(as_tool, [given_tools] if callable(given_tools) else given_tools))
    with open_memory_session(memory, question) if memory is not None else nullcontext() as session:
        has_facts = bool(session and session.begun.facts) or _has_graph(store)
        if documents is None and not attachments and not own_tools and not has_facts:
            alternatives = "attachments=[FILE], tools=[FUNCTION], a store that holds a graph, or a memory that holds facts"
            raise BadInput(
                f"there is nothing to take facts from: give documents, such as a folder, a file or a search tool, {alternatives}"
            )
        limits_for("", preset)  # names before a model, which may have to be fetched
        if isinstance(store, str | Path):
            resolve_location(store)
        # before the documents, since without a model an index is useless
        llm = connect(model)
        execution = connect(options["execution"]) if options.get("execution") else None
        recorded = llm.preset if preset == "auto" and isinstance(llm, Recorded) else ""
        tools = [*([documents] if callable(documents) else ()), *own_tools]
        with_tools = bool(attachments or options.get("mode")) or not all(map(search_argument, tools))
        limits = limits_for(llm.name, recorded or preset, with_tools=with_tools)
        limits = limits.learning() if session and not session.looks_only else limits
        names = [Path(file).name for file in attachments]
        before = None
        if trace is not None and Path(trace).exists():
            before = _load_interrupted(trace, question, limits if preset != "auto" else None, names)
        if isinstance(llm, Recorded):
            llm.rewind(recorded_prompts(trace, llm.name) if trace is not None and before else ())
        tools = [*_tools(documents, attachments, passages=limits.search_passages), *own_tools]
        tools = session.tools(tools) if session else tools
        with _store(store, before) as opened:
            is_resumed = before is not None and bool(before.events)
            if session and not is_resumed:
                session.fill(opened)
            given: Any = {
                name: value for name, value in options.items() if name in RunOptions.__optional_keys__
            }
            given |= {"execution": execution, "attachments": names}
            if trace is not None and is_resumed:
                live: Any = {
                    name: value for name, value in given.items() if name in ("approve", "compute", "mode")
                }
                _warn_of_other_prompts(before, given)
                events = resume(trace, opened, Resources(tools, llm, execution, **live))
            else:
                events = think(question, llm, opened, tools, limits, **given)
            run = _record_run(events, llm, trace, before, _progress_heading(llm, limits))
        learnt = session.learn(run) if session else None
        return replace(run, about={**run.about, "memory": learnt.as_json()}) if learnt else run


def _warn_of_other_prompts(before: Trace | None, given: Mapping[str, Any]) -> None:
    """Warn where an interrupted run goes on with its own prompts in place of new ones."""
    start = start_event(before.events if before else ())
    if "prompts" in given and dict(given["prompts"]) != start.custom.get("prompts", {}):
        warnings.warn(
            "the run goes on with the prompts that it was begun with, not those given", stacklevel=3
        )


def _record_run(
    events: Iterator[Event], llm: LLM, trace: str | Path | None, before: Trace | None, head: str
) -> Trace:
    """Run a question to its answer, on file if a trace is named."""
    metadata = model_metadata(llm)
    if trace is not None:
        if before is None:
            events = record(events, trace, metadata=metadata)
        elif not before.events:  # it was interrupted before its first event
            events = append_events(events, trace)
        return _run_on_file(events, trace, head)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return Trace(uuid4().hex[:12], created, tuple(display_progress(events, head)), metadata)


def _load_interrupted(trace: str | Path, question: str, limits: Limits | None, names: Sequence[str]) -> Trace:
    """Load the interrupted run that a call resumes.

    Raises TraceError unless it has the same question and limits and no answer. A run that was interrupted
    before its first event has neither question nor limits.
    """
    try:
        run = load_run(trace)
    except TraceError as error:
        problem = f"{trace} exists already and no run can go on there: {error}"
        raise TraceError(f"{problem}; name another file") from None
    if not run.events:
        return run
    start, advice = start_event(run.events), "name another file for this one"
    asked = question, tuple(map(replace_surrogates, names))
    if (start.question, start.attachments) != asked:
        described = " about ".join(filter(None, (repr(start.question), ", ".join(start.attachments))))
        raise TraceError(f"{trace} holds the run of another question, {described}: {advice}")
    if run.finished:
        advice = f"load_run({str(trace)!r}) gives it; {advice}"
        raise TraceError(f"{trace} holds a run that has its answer: {advice}")
    if limits is not None and recorded_limits(start) != limits:
        problem = f"{trace} holds a run with other limits (preset {start.preset!r})"
        raise TraceError(f"{problem}: go on with those, or {advice}")
    return run


def _tools(documents: Facts, attachments: Sequence[str | Path], *, passages: int) -> list[Tool]:
    """Return the tools to fetch facts with."""
    if documents is not None and callable(documents):
        requirement = "documents are a folder, a file, a list of Document, or a search tool"
        require_parts(documents, ("name", "arguments", "description"), requirement)
        return [documents, *tools_for((), attachments)]
    found = read_passages(documents) if documents is not None else ()
    return tools_for(found, attachments, passages=passages, progress=cell_progress_bar(EMBEDDING))


def read_passages(documents: str | Path | Iterable[Document]) -> Sequence[Document]:
    """Read the passages of a folder or file, with a warning for skipped files and files decoded by guess.

    Documents are returned after checking them.
    """
    if not isinstance(documents, str | Path):
        documents = checked_documents(documents)
        if not any(f"{each.title}{each.text}".strip() for each in documents):
            raise BadInput("no document has a text or a title: give at least one that has")
        return documents
    library = read_documents(documents)
    for remark in group_remarks((*library.skipped, *library.doubtful)):
        warnings.warn(f"{documents}: {remark}", stacklevel=4)
    return library.documents


@contextmanager
def _store(store: str | Path | Store, before: Trace | None) -> Iterator[Store]:
    """Yield the store of a run, which may hold what a resumed run had made.

    A given store stays open. A store opened here is closed.
    """
    if isinstance(store, str | Path):
        with closing(reopen_store(store) if before and before.events else empty_store(store)) as opened:
            yield opened
        return
    yield store


def _has_graph(store: object) -> bool:
    return not isinstance(store, str | Path) and hasattr(store, "schema") and bool(store.schema().nodes)


def _run_on_file(events: Iterator[Event], trace: str | Path, head: str) -> Trace:
    """Record a run and load it from its trace. An error that stops it says how to resume."""
    try:
        for _ in display_progress(events, head):
            pass
    except TraceError:
        raise  # of the file itself
    except (Exception, KeyboardInterrupt) as error:  # a mode of one's own may have any defect
        model = " with a model that can answer" if isinstance(error, ReplayMiss) else ""
        error.add_note(f"Everything so far is in {trace}; the same call{model} goes on with it.")
        raise
    return load_run(trace)


def _progress_heading(llm: LLM, limits: Limits) -> str:
    """Return the cost estimate of a run with a small model, or "" for other models."""
    is_small = llm.name.split(":")[0] in SMALL_MODELS
    return f"estimate, for 2 turns: {forecast(limits, steps=2)}" if is_small else ""
