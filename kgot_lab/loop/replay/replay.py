"""Replay a recorded run: fold its events, verify it, resume it, or fork it at one event."""

from __future__ import annotations

import json
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import (
    BadInput,
    LabError,
    NotInstalled,
    ReplayMiss,
    SandboxError,
    StoreUnavailable,
    TraceError,
    UnknownName,
    require_parts,
    short_repr,
)
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import MutableGraph
from kgot_lab.llm.adapters import as_model
from kgot_lab.loop.approval import Approve
from kgot_lab.loop.controller import python_executor, think
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Decided,
    Event,
    Read,
    Started,
    TextDelta,
    ToolReturned,
    Wrote,
    from_json,
    is_early,
    to_json,
)
from kgot_lab.loop.insert import readable_text
from kgot_lab.loop.limits import Limits
from kgot_lab.loop.modes import ENTRY_POINTS, named_mode
from kgot_lab.loop.modes.voting import Mode
from kgot_lab.loop.replay.recording import (
    Fingerprint,
    Key,
    Recording,
    ReplayApproval,
    ReplayLLM,
    ReplayPython,
    ReplayStore,
    ReplayTool,
    has_own_order,
    sort_words,
)
from kgot_lab.loop.retrieve import WHOLE_GRAPH
from kgot_lab.loop.state import State
from kgot_lab.loop.trace import (
    Trace,
    TraceWriter,
    diffs,
    events_of,
    first_inconsistent_write,
    graph_after,
    inconsistency_message,
    load_run,
    reopen_trace,
)
from kgot_lab.stores import open_for
from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.stores.protocol import Dialect, Store
from kgot_lab.text.cleaning import format_count
from kgot_lab.tools.tool import Tool, as_tool, source_digest
from kgot_lab.types import LLM, Json, Reply

# The store of a stopped run: it holds an earlier graph of the run, or one write more than the trace.

# replays recorded events in a separate store, with nothing live
SideReplay = Callable[[Sequence[Event], Store, Dialect], Iterator[Event]]


def unrecorded_write(events: Sequence[Event], store: Store, walk: SideReplay) -> tuple[Wrote, ...]:
    """Return the write that a store holds but the trace of its run does not, if there is one.

    Afterwards the store holds the initial graph of the run. A run is stopped one write ahead if it is killed
    between a write and its trace line. The store then holds the graph of the trace plus the changes of the
    run's next statement, which are found by executing it in a separate store. A statement with a different
    outcome each time (a random id, the time) is not recognized. Raises BadInput for a store with any other
    graph, without changing it, and SandboxError and NotInstalled if the statement cannot be executed.
    """
    if not store.schema().nodes or not events or not isinstance(events[0], Started):
        return ()
    present, start = store.graph(), graph_after(events[:1])
    missing: tuple[Wrote, ...] = ()
    if not _had_graph(present, events):
        missing = _next_write(events, store, walk)
        if not missing or graph_after((*events, *missing)) != present:
            expected = "empty, or hold just the graph that the run began with, or what it had made (at most one write more than its trace)"
            problem = f"the store holds another graph, of {format_count(len(present), 'node')}"
            raise BadInput(f"{problem}; to go on with this run it must be {expected}")
    if present != start:
        store.apply(present.diff(start))
    return missing


def _had_graph(graph: PropertyGraph, events: Sequence[Event]) -> bool:
    """Return whether a run had this graph at any time so far.

    A run that was stopped while it was being rebuilt has an early graph.
    """
    start = graph_after(events[:1])
    truth = MutableGraph(start.nodes, start.edges)
    if graph == start:
        return True
    for diff in diffs(events):
        truth.apply(diff)
        same_size = len(truth.nodes) == len(graph) and len(truth.edges) == len(graph.edges)
        if same_size and PropertyGraph.of(truth.nodes.values(), truth.edges.values()) == graph:
            return True
    return False


def _next_write(events: Sequence[Event], store: Store, walk: SideReplay) -> tuple[Wrote, ...]:
    """Return the write that follows those of a trace before any live call, or none."""
    start = events[0]
    assert isinstance(start, Started)
    try:
        scratch = open_for(start.dialect, *start.readers)
    except UnknownName:  # a query language of a third-party store
        return ()
    with closing(scratch) as scratch_store:
        try:
            writes = (e for e in walk(events, scratch_store, store.dialect) if isinstance(e, Wrote))
            recorded_writes = len(diffs(events))
            return next(((write,) for number, write in enumerate(writes) if number == recorded_writes), ())
        except (NotInstalled, SandboxError) as error:
            error.add_note(
                "The store holds more than the trace: whether the run wrote that is found by running its next statement here."
            )
            raise
        except LabError:
            return ()


def states(events: Iterable[Event]) -> Iterator[tuple[Event, State]]:
    """Yield each recorded event with the state after it, without a model, a sandbox or any execution."""
    state = State()
    for event in events:
        state = state.after(event)
        yield event, state


@check_arguments
@dataclass(frozen=True)
class Resources:
    """The live tools, models and Python executor for what a recording lacks, as `think` takes them."""

    tools: Sequence[Tool | Any] = ()
    planning: LLM | Any = None
    execution: LLM | Any = None
    compute: Callable[[str], str] | None = None  # runs Python, where not the store is to
    approve: Approve | None = None  # for a run whose steps somebody approves
    mode: type[Mode] | str | None = None  # of a run in a mode of one's own, if no package offers it

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", tuple(map(as_tool, self.tools)))
        for name in ("planning", "execution"):
            model = getattr(self, name)
            object.__setattr__(self, name, None if model is None else as_model(model))
        if isinstance(self.mode, str):
            named_mode(self.mode)


INTERRUPTED = "it was interrupted"  # why a fork stopped
_NO_RESOURCES = Resources()


def replay_events(
    events: Sequence[Event], recording: Recording, store: ReplayStore, live: Resources = _NO_RESOURCES
) -> Iterator[Event]:
    """Run the loop over a recording, with the recorded question, limits and tools.

    What the recording lacks is passed to the `live` resources, if given. Python runs only if it did in the
    recorded run, in the live resources or else in the store.
    """
    start = start_event(events)
    _warn_of_other_sources(start, live.tools)
    given, limits = {tool.name: tool for tool in live.tools}, recorded_limits(start)
    tools = [ReplayTool(recording, name, given.get(name), **about) for name, about in start.tools.items()]
    python = ReplayPython(recording, live.compute or python_executor(store.store, limits))
    mode = _recorded_mode(start, live.mode)
    events_again = think(
        start.question,
        ReplayLLM(recording, start.planning, live.planning),
        store,
        tools,
        limits,
        execution=ReplayLLM(recording, start.execution, live.execution or live.planning),
        attachments=start.attachments,
        compute=python if start.computes else None,
        mode=mode,
        prompts=start.custom.get("prompts", {}),
        approve=ReplayApproval(recording, live.approve) if start.custom.get("approves") else None,
        parallel=1,
    )
    return map(store.as_edited, events_again)


def _warn_of_other_sources(start: Started, tools: Iterable[Tool]) -> None:
    """Warn where the live tools read other documents or files than those that the run began with."""
    begun = {name: about.get("digest", "") for name, about in start.tools.items()}
    pairs = {tool.name: (source_digest(tool), begun.get(tool.name, "")) for tool in tools}
    if changed := [name for name, pair in pairs.items() if all(pair) and pair[0] != pair[1]]:
        kept = f"it was begun with others in {', '.join(changed)}"
        warnings.warn(f"the run goes on with other documents or files; {kept}", stacklevel=4)


def _warn_of_other_models(start: Started, live: Resources) -> None:
    """Warn where other models go on with a run, or one model in place of two."""
    begun, planning = (start.planning, start.execution), live.planning
    now = tuple(model.name for model in (planning, live.execution or planning) if model is not None)
    if now and now != begun:
        kept = f"it was begun with {' and '.join(dict.fromkeys(begun))}"
        warnings.warn(f"the run goes on with {' and '.join(dict.fromkeys(now))}; {kept}", stacklevel=4)


def _recorded_mode(start: Started, given: type[Mode] | str | None) -> type[Mode] | None:
    """Return the class of a run's own mode, which is given or offered by a package. Raises TraceError."""
    if not (name := str(start.custom.get("mode", ""))):
        return None
    with suppress(UnknownName):
        given = named_mode(given or name) if given is None or isinstance(given, str) else given
    if isinstance(given, type) and given.__qualname__ == name:
        return given
    way = f"lab.verify(run, mode={name}) or Resources(mode={name})"
    problem = f"this run was made in the mode {name}: give its class, mode={name}"
    raise TraceError(f"{problem}, as in {way}, or name it as an entry point in {ENTRY_POINTS}")


@check_arguments
def replay(
    run: Trace | Sequence[Event], store: Store | None = None, *, mode: type[Mode] | None = None
) -> Iterator[Event]:
    """Run the loop again on what a run recorded.

    Every reply, tool result and statement result comes from the run. `mode` is the class of a mode of one's own.
    """
    events = events_of(run)
    recording = Recording.from_events(events)
    opened = replay_store(recording, events, InMemory() if store is None else store)
    return replay_events(events, recording, opened, Resources(mode=mode))


_EXPECTED_STORE = "a run is walked again in a store, as open_store(…) gives one"


def replay_store(
    recording: Recording, events: Sequence[Event], store: Store, edits: Mapping[Key, str] | None = None
) -> ReplayStore:
    """Wrap a store with a recording, and load the initial graph of the run into it.

    Raises BadInput unless the store is empty or holds just that graph.
    """
    start = start_event(events)
    require_parts(store, ("write", "read", "schema"), _EXPECTED_STORE)
    if start.dialect.split()[:1] != store.dialect.name.split()[:1]:  # of one language, as in SQL (SQLite)
        problem = f"this run wrote {start.dialect}, and the store takes {store.dialect.name}"
        raise BadInput(f"{problem}: give an empty store of its language, or leave the store out")
    if store.schema().nodes:
        if not start.start or store.graph() != start.start:
            expected = "empty, or hold just the graph that the run began with" if start.start else "empty"
            problem = f"the store must be {expected} to walk a run again in it"
            raise BadInput(f"{problem}: open a new one, such as InMemory()")
    elif start.start:
        store.apply(store.graph().diff(start.start))
    return ReplayStore(recording, store, Fingerprint(start.graph), edits or {})


def start_event(events: Sequence[Event]) -> Started:
    """Return the first event of a run. Raises TraceError if it is not Started."""
    if not events or not isinstance(events[0], Started):
        raise TraceError("these events do not begin with Started: not a whole run")
    return events[0]


def recorded_limits(start: Started) -> Limits:
    """Return the limits of a recorded run. Raises TraceError if they are unknown to this version."""
    try:
        return Limits.of_json(start.limits)
    except BadInput as error:
        raise TraceError(f"the limits of this run are not those of this version: {error}") from error


# --- verify ---


@dataclass(frozen=True)
class Difference:
    """The first difference between a replay and its recording. `now` is None if the replay had no event
    there.
    """

    number: int
    recorded: Event | None
    now: Event | None
    reason: str = ""

    def __str__(self) -> str:
        kind = type(self.recorded or self.now).__name__
        why = f" ({self.reason})" if self.reason else ""
        if self.recorded is None or self.now is None or type(self.recorded) is not type(self.now):
            return f"event {self.number} ({kind}) differs: recorded {_format_event(self.recorded)}; now {_format_event(self.now)}{why}"
        recorded, now = (json.loads(_to_line(event)) for event in (self.recorded, self.now))
        path, before, after = _json_difference(recorded, now)
        return f"event {self.number} ({kind}) differs in {path}: recorded {before}; now {after}{why}"


@check_arguments
def verify(
    run: Trace | Sequence[Event],
    store: Store | None = None,
    compute: Callable[[str], str] | None = None,
    *,
    mode: type[Mode] | None = None,
) -> Difference | None:
    """Run the loop and every statement again on the recorded replies and tool results.

    Returns the first difference, or None. The store must be empty, and statements and arithmetic are executed
    in it. By default it is one in this process, for the query languages of the run, with a long timeout for
    busy machines. What timed out when it was recorded is not run again, since times are not compared.
    `compute` runs Python instead of the store, and `mode` is a mode of one's own, as in `think`. Order is not compared where it has no meaning:
    of the elements of a diff and, except in Python, of the words of a prompt and of rows that a statement does
    not order.
    """
    if isinstance(run, Trace) and run.unverifiable:
        warnings.warn(f"the trace {run.run}: {run.unverifiable}", stacklevel=3)
    events = events_of(run)
    start = start_event(events)
    limits = recorded_limits(start).but(python_seconds=_VERIFY_SECONDS)
    any_order = has_own_order(start.dialect)
    recording = Recording.from_events(events, any_order=any_order).without_outcomes(limits)
    with _open_store_for(events, store) as opened:
        live = Resources(compute=compute or python_executor(opened, limits), mode=mode)
        replayed = replay_events(events, recording, replay_store(recording, events, opened), live)
        return first_difference(events, replayed, any_order)


# seconds for a statement that was quick when it was recorded, perhaps on an idle machine
_VERIFY_SECONDS = 60.0


@contextmanager
def _open_store_for(events: Sequence[Event], store: Store | None) -> Iterator[Store]:
    """Yield the given store, or open one for the query languages of a run and close it at the end."""
    if store is not None:
        yield store
        return
    start = start_event(events)
    with closing(open_for(start.dialect, *start.readers, seconds=_VERIFY_SECONDS)) as opened:
        yield opened


def first_difference(recorded: Sequence[Event], walk: Iterator[Event], any_order: bool) -> Difference | None:
    """Return the first difference between two runs, as far as the recorded one went.

    With `any_order`, prompts and evidence may list the graph in another order. Times are not compared. Raises
    SandboxError, NotInstalled and StoreUnavailable, since failing to execute is not a difference.
    """
    for number, expected in enumerate(recorded):
        try:
            event = expected if is_passed_over(expected) else next(walk, None)
        except (SandboxError, NotInstalled, StoreUnavailable):
            raise
        except LabError as error:
            if _stopped_in_tool(recorded, number, error):
                return None
            return Difference(number, expected, None, str(error))
        if event is None or not same_event(expected, event, any_order=any_order):
            return Difference(number, expected, event)
    if not any(isinstance(event, Answered) for event in recorded):  # it was stopped there
        return None
    extra = next(walk, None)
    return Difference(len(recorded), None, extra) if extra is not None else None


def is_passed_over(event: Event) -> bool:
    """Return whether a replay does not repeat an event: a call that failed at a cost, or ended before its turn."""
    return is_early(event) or (isinstance(event, Asked) and event.role.is_failed)


def repeated_events(events: Sequence[Event]) -> tuple[Event, ...]:
    """Return the events that a replay repeats."""
    return tuple(event for event in events if not is_passed_over(event))


def _stopped_in_tool(recorded: Sequence[Event], number: int, error: LabError) -> bool:
    """Return whether a run was stopped inside a tool, between its model calls and its result."""
    rest = repeated_events(recorded[number:])
    is_inside = all(isinstance(event, Asked) and event.role.is_inside for event in rest)
    return isinstance(error, ReplayMiss) and is_inside


def same_event(first: Event, second: Event, *, any_order: bool = False) -> bool:
    """Return whether two events are equal, ignoring times and whether they were loaded from a file.

    With `any_order`, prompts and the evidence of an answer may name the graph in another order.
    """
    if first == second:
        return True
    match first, second:
        case (Asked(reply=a), Asked(reply=b)) | (Answered(text=a), Answered(text=b)) if any_order and a == b:
            one, other = (sort_words(_to_line(event).replace(r"\n", " ")) for event in (first, second))
            return one == other
    return _as_loaded(first) == _as_loaded(second)


def _as_loaded(event: Event) -> Event:
    """Return an event as loaded from a file, without limits that its mode does not have and digests of sources."""
    loaded = from_json(json.loads(_to_line(event)))
    if not isinstance(loaded, Started):
        return loaded
    tools = {name: {**about, "digest": ""} for name, about in loaded.tools.items()}
    return replace(loaded, limits=recorded_limits(loaded).as_json(), tools=tools)


def _to_line(event: Event) -> str:
    return json.dumps(to_json(event), default=dict)


def _format_event(event: Event | None) -> str:
    return "nothing" if event is None else _to_line(event)[:300]


def _json_difference(first: Json, second: Json, path: str = "") -> tuple[str, str, str]:
    """Return the path of the first difference between two JSON values, and both values there.

    The values are cut around the first characters that differ.
    """
    if isinstance(first, dict) and isinstance(second, dict):
        name = next(n for n in first | second if (n in first, first.get(n)) != (n in second, second.get(n)))
        return _json_difference(first.get(name), second.get(name), f"{path}.{name}" if path else str(name))
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        number = next(i for i, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1])
        return _json_difference(first[number], second[number], f"{path}[{number}]")
    texts = [
        value if isinstance(value, str) else json.dumps(value, default=dict) for value in (first, second)
    ]
    pairs = enumerate(zip(*texts, strict=False))
    position = next((i for i, (left, right) in pairs if left != right), min(map(len, texts)))
    start, end = max(0, position - 40), position + 120
    before, after = (
        repr(("…" if start else "") + text[start:end] + ("…" if len(text) > end else "")) for text in texts
    )
    return path, before, after


# --- resume ---


@check_arguments
def resume(path: str | Path, store: Store, live: Resources) -> Iterator[Event]:
    """Continue a run from where its trace stops.

    Yields the recorded events first, then new ones, which are added to the same file. The store must be
    empty, or hold the initial graph of the run or a later one, at most one write ahead of the trace: see
    `unrecorded_write`. Its content is removed and restored without executing a recorded statement. Raises BadInput
    for any other store, and TraceError if the loop no longer does what was recorded, if another command wrote
    into its store, or if another run or resume is writing the file.
    """
    load_run(path)  # so that what is no trace is said before anything else
    writer = reopen_trace(path)  # first, so that no other process appends meanwhile
    try:
        trace = load_run(path)
        last = trace.events[-1] if trace.events else None
        if isinstance(last, Decided) and (last.what, last.decision) == ("model call", "denied"):
            trace = replace(trace, events=trace.events[:-1])  # it ended the run, and is decided again
        if (inconsistent := first_inconsistent_write(trace.events)) is not None:
            problem = f"{path} cannot be resumed, for {inconsistency_message(inconsistent)}"
            raise TraceError(f"{problem}: ask again, in a namespace of its own")
        missing = unrecorded_write(trace.events, store, _replay_aside)
        any_order = has_own_order(start_event(trace.events).dialect)
        recording = Recording.from_events((*trace.events, *missing), any_order=any_order)
        walk = replay_events(trace.events, recording, replay_store(recording, trace.events, store), live)
        _warn_of_other_models(start_event(trace.events), live)
    except BaseException:
        writer.close()
        raise
    return _continue_run(trace.events, walk, writer)


def _replay_aside(events: Sequence[Event], scratch_store: Store, dialect: Dialect) -> Iterator[Event]:
    """Replay a run in a separate store, without live resources and whatever its prompts say.

    The replies are used in order, since the store may list the graph in another order.
    """
    loop_calls = (e for e in repeated_events(events) if isinstance(e, Asked))
    replies = deque(call.as_reply for call in loop_calls if not call.role.is_inside)
    recording = replace(Recording.from_events(events), turns=replies)
    scratch = replace(replay_store(recording, events, scratch_store), spoken=dialect)
    return replay_events(events, recording, scratch)


def _continue_run(recorded: Sequence[Event], walk: Iterator[Event], writer: TraceWriter) -> Iterator[Event]:
    any_order = has_own_order(start_event(recorded).dialect)
    with closing(writer):
        for number, expected in enumerate(recorded):
            event = expected if is_passed_over(expected) else next(walk, None)
            if event is None or not same_event(expected, event, any_order=any_order):
                raise TraceError(f"{writer.path} cannot be resumed: {Difference(number, expected, event)}")
            if not is_early(event):  # it comes in its turn
                yield event
        yield from writer.write_events(walk)


# --- fork ---


@dataclass(frozen=True)
class Fork:
    """A run that was run again with one change: its events, its graph, and its model calls."""

    events: tuple[Event, ...]
    graph: PropertyGraph
    first_difference: int  # number of the first event that is not as recorded
    avoided: int  # model calls answered from the recording, without a reply that was changed by hand
    asked: int  # model calls made
    stopped: str = ""  # why it did not reach an answer

    @property
    def answer(self) -> str:
        """The answer, or "" when the fork stopped before one."""
        return next((event.text for event in self.events if isinstance(event, Answered)), "")

    def __repr__(self) -> str:
        end = f"stopped: {self.stopped}" if self.stopped else f"answer {self.answer!r}"
        calls = f"{format_count(self.avoided, 'call')} avoided, {self.asked} asked"
        return f"<fork from event {self.first_difference}: {format_count(len(self.events), 'event')}, {calls}, {end}>"


@check_arguments
def fork(
    run: Trace | Sequence[Event],
    at: int,
    change: str,
    store: Store | None = None,
    live: Resources = _NO_RESOURCES,
) -> Fork:
    """Run a recorded run again with event number `at` changed.

    The change is to the reply of an Asked, the text of a ToolReturned, or the statement of a Wrote or Read.
    Only calls that differ are made again. The store must be empty. By default it is one in this process, for
    the query languages of the run. Without a model, the fork runs to the first missing reply, and its
    `stopped` says so.
    """
    events, at, recording, edits = _prepare_fork(run, at, change, live)
    forked, stopped = list[Event](), ""
    with _open_store_for(events, store) as opened:
        walk = replay_events(events, recording, replay_store(recording, events, opened, edits), live)
        try:
            forked.extend(walk)  # what came before an error stays
        except BadInput:
            raise
        except LabError as error:
            stopped = str(error)
        except KeyboardInterrupt:
            stopped = INTERRUPTED
    pairs = enumerate(zip(forked, events, strict=False))
    differing = (number for number, pair in pairs if not same_event(*pair))
    first = next(differing, min(len(forked), len(events)))
    # that reply came from the recording, and is no call that was avoided
    is_reply_edited = isinstance(events[at], Asked) and len(forked) > at
    avoided = recording.avoided - is_reply_edited
    return Fork(tuple(forked), graph_after(forked), first, avoided, recording.made, stopped)


def fork_events(run: Trace | Sequence[Event], at: int, change: str, live: Resources) -> Iterator[Event]:
    """Yield the events of a fork as they happen.

    Errors that stop it are raised: LLMError, SandboxError, BadInput.
    """
    events, _, recording, edits = _prepare_fork(run, at, change, live)
    with _open_store_for(events, None) as opened:
        yield from replay_events(events, recording, replay_store(recording, events, opened, edits), live)


def _prepare_fork(
    run: Trace | Sequence[Event], at: int, change: str, live: Resources
) -> tuple[tuple[Event, ...], int, Recording, dict[Key, str]]:
    """Prepare a fork from a run and one changed event.

    Returns the events without losses, the index of the changed one among them, the recording, and the edited
    statements. Raises BadInput if `at` is no event that can be changed.
    """
    given = run.events if isinstance(run, Trace) else tuple(run)
    events = events_of(given)
    if not 0 <= at < len(given):
        known = f"events 0 to {len(given) - 1}" if given else "no events"
        raise BadInput(f"there is no event {short_repr(at)}: the run has {known}")
    if isinstance(given[at], TextDelta):
        raise BadInput(f"event {at} is a part of a reply: change the Asked after it, which has all of it")
    at -= sum(isinstance(event, TextDelta) for event in given[:at])
    if is_passed_over(events[at]):
        raise BadInput(f"event {at} is a call that failed or was not used: it has no reply to change")
    at -= sum(map(is_passed_over, events[:at]))
    events = repeated_events(events)
    recording = Recording.from_events(events)
    return events, at, recording, _apply_change(recording, events, at, change)


def _apply_change(recording: Recording, events: Sequence[Event], at: int, change: str) -> dict[Key, str]:
    """Put the change into the recording, or return it as an edited statement."""
    event, earlier = events[at], events[:at]
    match event:
        case Asked() if not event.role.is_inside:
            key = recording.prompt_key(event.prompt)
            nth = sum(isinstance(e, Asked) and recording.prompt_key(e.prompt) == key for e in earlier)
            # what a person wrote cost no tokens, and no model held it likely
            edited_reply = Reply(change, model=event.model)
            recording.replies[key][nth] = event.as_reply if change == event.reply else edited_reply
        case ToolReturned():
            nth = sum(isinstance(e, ToolReturned) and e.call == event.call for e in earlier)
            edited = replace(event, text=readable_text(change), sources=(), failed=False, again=False)
            recording.change_result(edited, nth)
        case Read(statement=statement) if statement == WHOLE_GRAPH:
            problem = f"event {at} reads the whole graph, which no statement does"
            raise BadInput(f"{problem}: change what was written, or the reply after it")
        case Wrote() | Read():
            fingerprint = Fingerprint(start_event(events).graph)
            for diff in diffs(earlier):
                fingerprint.update(diff)
            place = fingerprint.now, event.asked or event.statement
            kind, language = ("write", ()) if isinstance(event, Wrote) else ("read", (event.dialect,))
            return {(kind, *place, *language): change}
        case _:
            kinds = "Asked (its reply), ToolReturned (its text), Wrote or Read (its statement)"
            raise BadInput(f"event {at} is a {type(event).__name__}; what can be changed: {kinds}")
    return {}
