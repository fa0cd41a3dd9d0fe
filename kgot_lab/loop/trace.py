"""Traces: runs as JSON lines, flushed after each event, so that a kill loses at most the event in progress.

Model replies are synced to disk at once, so that not even a power failure loses what was paid for. Each line
has a checksum of itself and of those before it. Lines of older versions have none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO
from uuid import uuid4

from kgot_lab import __version__
from kgot_lab.arguments import CheckedRecord, check_arguments, parse_json
from kgot_lab.errors import BadInput, BadReply, TraceError, TraceLocked, require, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import MutableGraph
from kgot_lab.graph.snapshots import write_snapshot
from kgot_lab.io.files import detect_wide_encoding
from kgot_lab.io.processes import lock_file
from kgot_lab.io.seals import append_seal, first_broken_seal, line_seal
from kgot_lab.llm.recorded import read_lines, repair_last_line
from kgot_lab.loop.approval import NotApproved
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Decided,
    Event,
    Refused,
    Started,
    TextDelta,
    ToolReturned,
    Wrote,
    from_json,
    is_early,
    to_json,
)
from kgot_lab.stores.files import read_graph
from kgot_lab.text.cleaning import format_count, printable_line, replace_surrogates
from kgot_lab.types import LLM, Diff, FromFile, Json, Usage

_UNUSABLE = "Unusable"  # the line after calls whose replies ended the run
RESTORE_HINT = ": restore a copy of the trace"  # how the message on a damaged one ends


@dataclass(frozen=True)
class Trace(CheckedRecord):
    """A recorded run: its id, when it began, and its events."""

    run: str
    created: str
    events: tuple[Event, ...]
    # of a recording: model hash, engine version, licence
    about: Mapping[str, Json] = field(default_factory=dict, hash=False)
    # whether each line of its file has a checksum
    sealed: bool = field(default=True, compare=False)

    @property
    def question(self) -> str:
        """The question of the run."""
        return next((event.question for event in self.events if isinstance(event, Started)), "")

    @property
    def answer(self) -> str:
        """The text of the answer, or "" if the run has none yet."""
        return self._end.text if self._end else ""

    @property
    def outcome(self) -> str:
        """Whether the sources say the answer: "supported", "unsure", "not in the sources" or "not checked".

        It is "" if the run has no answer yet.
        """
        return self._end.outcome if self._end else ""

    @property
    def finished(self) -> bool:
        """Whether the run reached its answer."""
        return self._end is not None

    @property
    def unfinished(self) -> str:
        """A note on a run that has a question and no answer, or no event at all, or "" for any other."""
        if self.finished or (self.events and not self.question):
            return ""
        events = format_count(len(self.events), "event")
        return f"This run was stopped before its answer, or its trace was cut short, after {events}."

    @property
    def unverifiable(self) -> str:
        """A note on a trace of an older version, whose lines have no checksums, or "" for any other."""
        return "" if self.sealed else "Its lines have no checksums, so lines cut out of it would not show."

    @property
    def _end(self) -> Answered | None:
        return next((event for event in reversed(self.events) if isinstance(event, Answered)), None)

    def __repr__(self) -> str:
        spent = Usage.total(event.usage for event in self.events if isinstance(event, Asked))
        calls = format_count(sum(isinstance(event, Asked) for event in self.events), "model call")
        steps = format_count(max((event.step for event in self.events), default=0), "step")
        cost = f"{calls}, {spent.prompt_tokens:,} + {format_count(spent.completion_tokens, 'token')}, {spent.seconds:.0f} s, ${spent.cost:.4f}"
        start = next((event for event in self.events if isinstance(event, Started)), None)
        models = " and ".join(dict.fromkeys(filter(None, (start.planning, start.execution)))) if start else ""
        ended = "answered" if self.finished else "not finished: stopped, or cut short"
        lines = (
            f"<trace {self.run}: {format_count(len(self.events), 'event')}, {ended}>",
            f"  question  {self.question}",
            f"  answer    {self.answer} ({self.outcome})" if self.finished else "",
            f"  {steps}; {cost}",
            "  " + ", ".join(filter(None, (models, self.created))),
            f"  {self.unverifiable}",
        )
        return "\n".join(printable_line(line) for line in lines if line.strip())


def model_metadata(llm: LLM) -> dict[str, Json]:
    """Return the hash and engine of a model that is a local file, for the head of a trace.

    A run may be resumed with another engine.
    """
    return (
        {"model_sha256": llm.sha256, "engine": llm.engine} if isinstance(llm, FromFile) and llm.engine else {}
    )


def record(
    events: Iterable[Event], path: str | Path, *, run: str = "", metadata: Mapping[str, Json] | None = None
) -> Iterator[Event]:
    """Yield events, each after it is written to a new file.

    Raises TraceError if the file exists or cannot be written.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("x", encoding="utf-8", newline="\n")
    except FileExistsError:
        raise TraceLocked(f"{path} exists already: resume that run, or name another file") from None
    except OSError as error:
        raise TraceError(f"cannot write the trace {path}: {error}") from error
    with closing(TraceWriter(path, file)) as writer:
        head = {"trace": 1, "run": run or uuid4().hex[:12], "created": _now(), "version": __version__}
        writer.write_line(head | {"about": metadata or {}})
        yield from writer.write_events(events, begins=True)


class TraceWriter:
    """A trace opened for writing by this process alone.

    Raises TraceError if another process writes it, or if it cannot be written.
    """

    def __init__(self, path: Path, file: IO[str]) -> None:
        self.path, self._file, self._before = path, file, ""
        try:
            lock_file(file)
        except OSError:
            file.close()
            problem = f"{path} is being written by another run or resume"
            raise TraceLocked(f"{problem}: let that one end, or stop it") from None

    def write_events(self, events: Iterable[Event], *, begins: bool = False) -> Iterator[Event]:
        """Yield events, each after it is written to the file.

        The initial graph of a run is written beside it.
        """
        snapshot = snapshot_path(self.path)
        try:
            for event in events:
                if isinstance(event, TextDelta):
                    yield event
                    continue
                if isinstance(event, Started) and event.start and (begins or not snapshot.exists()):
                    write_snapshot(event.start, snapshot, variant="networkx")
                self.write_line(to_json(event), sync=isinstance(event, Asked | Answered))
                yield event
        except (BadReply, NotApproved) as error:  # else it would end the run again when it is resumed
            calls = error.calls if isinstance(error, BadReply) else 0
            self.write_line({"event": _UNUSABLE, "calls": calls, "reason": str(error)}, sync=True)
            raise

    def seek_end(self) -> None:
        """Continue after the last line of the file. Raises OSError and UnicodeDecodeError."""
        repair_last_line(self.path)
        for line in filter(str.strip, read_lines(self.path)[-2:]):
            self._before = line_seal(line)
        self._file.seek(0, os.SEEK_END)

    def write_line(self, data: Json, *, sync: bool = False) -> None:
        """Write one line, which not even a power failure takes back if it is written for good."""
        text = append_seal(_to_line(data), self._before)
        try:
            self._file.write(f"{text}\n")
            self._file.flush()
            if sync:
                os.fsync(self._file.fileno())
            self._before = line_seal(text)
        except OSError as error:
            problem = f"cannot write the trace {self.path}: {error}"
            raise TraceError(f"{problem}; what it holds so far is sound") from error

    def close(self) -> None:
        """Let go of the file."""
        with suppress(OSError):  # what could not be written was said when it was tried
            self._file.close()


def snapshot_path(path: Path) -> Path:
    """Return the path of the snapshot of the initial graph, beside the trace."""
    return path.parent / f"{path.stem}.start.jsonl"


def append_events(events: Iterable[Event], path: str | Path) -> Iterator[Event]:
    """Yield events, each after it is added to an existing trace.

    A truncated last line is dropped. A complete one without a line break is ended.
    """
    with closing(reopen_trace(path)) as writer:
        yield from writer.write_events(events)


def reopen_trace(path: str | Path) -> TraceWriter:
    """Open an existing trace for appending. Raises TraceError if it cannot be written."""
    path = Path(path)
    try:
        file = path.open("r+", encoding="utf-8", newline="\n")
    except OSError as error:
        raise TraceError(f"cannot write the trace {path}: {error}") from error
    writer = TraceWriter(path, file)
    try:
        writer.seek_end()
    except (OSError, UnicodeDecodeError) as error:
        writer.close()
        raise TraceError(f"cannot write the trace {path}: {error}") from error
    return writer


def is_trace(path: str | Path) -> bool:
    """Return whether a file begins as a trace does, after an optional byte order mark. Raises OSError."""
    with Path(path).open("rb") as file:
        head = file.read(64)
    return head.decode(detect_wide_encoding(head) or "utf-8-sig", "replace").startswith('{"trace"')


@check_arguments
def load_run(path: str | Path) -> Trace:
    """Read a trace, without a truncated last line. Raises TraceError naming the line that cannot be read."""
    path = Path(path)
    try:
        lines = read_lines(path)  # a kill can come in the middle of a character
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"cannot read the trace {path}: {error}") from error
    if broken := first_broken_seal(line for line in lines[:-1] if line.strip()):
        raise TraceError(
            f"{path}, line {broken}, is not as it was written, or a line before it is missing{RESTORE_HINT}"
        )
    lines_json: list[Json] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = parse_json(line)
            lines_json.append(data)
        except (ValueError, RecursionError):
            if number == len(lines):  # no line end after it: the writer was stopped in the middle
                break
            raise TraceError(f"{path}, line {number}, is not JSON: {line[:80]!r}{RESTORE_HINT}") from None
    head = lines_json[0] if lines_json else None
    if not isinstance(head, dict) or head.get("trace") != 1:
        raise TraceError(f"{path} is not a trace: its first line should say so")
    events: list[Event] = []
    for number, data in enumerate(lines_json[1:], start=2):
        try:
            if isinstance(data, dict) and data.get("event") == _UNUSABLE:
                if data["calls"] or number < len(lines_json):  # a denial that ended the run stays its end
                    events = _last_calls_failed(events, data["calls"])
            else:
                events.append(from_json(data))
        except TraceError as error:
            raise TraceError(f"{path}, event {number - 1}: {str(error)[:500]}") from error
    events = _without_used(events)
    if events and isinstance(events[0], Started) and events[0].graph:
        events[0] = replace(events[0], start=_load_start(path, events[0].graph))
    run, created, about = str(head.get("run", "")), str(head.get("created", "")), head.get("about", {})
    return Trace(run, created, tuple(events), about, sealed="check" in head)


def _last_calls_failed(events: list[Event], calls: int) -> list[Event]:
    """Return the events with the last calls as failed ones, so that they are made again when it goes on.

    What was decided on them is decided again.
    """
    early = list(filter(is_early, events))
    events = [event for event in events if not is_early(event)]
    asked = [(number, event) for number, event in enumerate(events) if isinstance(event, Asked)]
    asked = asked[-calls:] if calls else []
    first = min((number for number, _ in asked), default=len(events))
    while first and isinstance(decided := events[first - 1], Decided) and decided.what == "model call":
        first -= 1
    return events[:first] + [replace(event, role=event.role.but("failed")) for _, event in asked] + early


def _without_used(events: Sequence[Event]) -> list[Event]:
    """Return the events without the early ones that the run has used in their turn after it went on."""
    used: set[Hashable] = set()
    kept: list[Event] = []
    is_used = False
    for event in reversed(events):  # the calls inside a tool come before what it returned
        is_inside = isinstance(event, Asked) and event.role.is_inside
        key = event.call.key if isinstance(event, ToolReturned) else isinstance(event, Asked) and event.prompt
        if not is_early(event):
            used.add(key)
        elif not is_inside:
            is_used = key in used
        if not (is_early(event) and is_used):
            kept.append(event)
    return kept[::-1]


def _load_start(path: Path, digest: str) -> PropertyGraph:
    """Load the initial graph of a run.

    Raises TraceError if its snapshot is missing or holds another graph.
    """
    snapshot = snapshot_path(path)
    try:
        graph = read_graph(snapshot)
    except (OSError, BadInput) as error:
        problem = f"the run in {path} began with a graph"
        raise TraceError(f"{problem}, and {snapshot} does not hold it: {error}") from error
    if graph.digest != digest:
        problem = f"{snapshot} is not the graph that the run in {path} began with"
        raise TraceError(f"{problem}: its digest is {graph.digest}, not {digest}")
    return graph


def events_of(run: Trace | Iterable[Event]) -> tuple[Event, ...]:
    """Return the events of a run, from a trace or from what think(…) yielded.

    Raises BadInput for anything else.
    """
    if isinstance(run, Trace):
        return run.events
    events = tuple(run) if isinstance(run, Iterable) and not isinstance(run, str | bytes) else (run,)
    for event in events:
        require(event, Event, "a run is a Trace or its events, as load_run(path) and think(…) give them")
    return tuple(event for event in events if not isinstance(event, TextDelta))


@check_arguments
def graph_after(events: Trace | Iterable[Event], step: int | None = None) -> PropertyGraph:
    """Build the graph from recorded diffs, without a model or a sandbox.

    With `step`, it is the graph after that many INSERT turns. Raises BadInput for more than there are and, naming
    the event, if a write does not follow on those before it: see `first_inconsistent_write`.
    """
    events = events_of(events)
    if step is not None:
        last = max((event.step for event in events), default=0)
        require_count(step, 0, "step", f"the run has {format_count(last, 'step')}", maximum=last)
    truth, inconsistent, why = _apply_writes(
        event for event in events if step is None or not isinstance(event, Wrote) or event.step <= step
    )
    if inconsistent is not None:
        number = next(number for number, event in enumerate(events) if event is inconsistent)
        raise BadInput(f"{inconsistency_message(number)}, or events before that are missing ({why})")
    return PropertyGraph.of(truth.nodes.values(), truth.edges.values())


def first_inconsistent_write(events: Iterable[Event]) -> int | None:
    """Return the index of the first write that does not follow on those before it, or None.

    This happens, for example, if another process wrote into the same store.
    """
    events = tuple(events)
    _, inconsistent, _ = _apply_writes(events)
    return next((number for number, event in enumerate(events) if event is inconsistent), None)


def inconsistency_message(number: int) -> str:
    """Return the message for a run whose writes do not follow one another from an event on."""
    return f"another command wrote into its namespace while it ran: its writes do not follow one another from event {number}"


def consistent_events(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events of a run with inconsistent writes shown as refused.

    From the first write that does not follow on those before it, the graph is not known.
    """
    events = tuple(events)
    if (number := first_inconsistent_write(events)) is None:
        return events
    reason, shown = f"not shown, for {inconsistency_message(number)}", list(events)
    for at, event in enumerate(events[number:], number):
        if isinstance(event, Wrote):
            shown[at] = Refused(step=event.step, statement=event.statement, reason=reason, writing=True)
    return tuple(shown)


def _apply_writes(events: Iterable[Event]) -> tuple[MutableGraph, Event | None, str]:
    """Return the graph after all consistent writes, the first inconsistent one, and the reason."""
    truth = MutableGraph()
    for number, event in enumerate(events):
        if number == 0 and isinstance(event, Started):
            truth = MutableGraph(event.start.nodes, event.start.edges)
        if isinstance(event, Wrote):
            try:
                truth.apply(event.diff)
            except BadInput as error:
                return truth, event, str(error)
    return truth, None, ""


def diffs(events: Iterable[Event], step: int | None = None) -> list[Diff]:
    """Return the changes to the graph, in order."""
    return [e.diff for e in events if isinstance(e, Wrote) and (step is None or e.step <= step)]


def _to_line(data: Json) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)
    # half a surrogate pair can only be written as an escape
    if not text.isascii() and text != replace_surrogates(text):
        text = json.dumps(data, separators=(",", ":"), default=str)
    return text


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
