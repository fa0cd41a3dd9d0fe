"""Replay a recorded run: fold its events, verify it, resume it, or fork it at one event."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kgot_lab.errors import (
    BadInput,
    LabError,
    NotInstalled,
    ReplayMiss,
    SandboxError,
    StoreUnavailable,
    TraceError,
    UnknownName,
    require,
    require_parts,
    short_repr,
)
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import MutableGraph
from kgot_lab.llm.recorded import prompt_digest
from kgot_lab.loop.controller import computing, think
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Event,
    Read,
    Started,
    ToolReturned,
    Wrote,
    from_json,
    to_json,
)
from kgot_lab.loop.insert import readable_text
from kgot_lab.loop.limits import Limits
from kgot_lab.loop.replay.recording import (
    Fingerprint,
    Key,
    Recording,
    RememberedLLM,
    RememberedPython,
    RememberedStore,
    RememberedTool,
)
from kgot_lab.loop.retrieve import WHOLE_GRAPH
from kgot_lab.loop.state import State
from kgot_lab.loop.trace import (
    Trace,
    TraceWriter,
    diffs,
    events_of,
    graph_after,
    load_run,
    not_following,
    parted_at,
    reopened,
)
from kgot_lab.stores import open_for, open_store
from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.stores.protocol import Dialect, Store
from kgot_lab.tools.tool import Tool
from kgot_lab.types import LLM, Json, Reply

# The store of a stopped run: it holds an earlier graph of the run, or one write more than the trace.

# replays recorded events in a separate store, with nothing live
WalkBeside = Callable[[Sequence[Event], Store, Dialect], Iterator[Event]]


def left_behind(events: Sequence[Event], store: Store, walk: WalkBeside) -> tuple[Wrote, ...]:
    """Return the write that a store holds but the trace of its run does not, if there is one.

    Afterwards the store holds the initial graph of the run. A run is stopped one write ahead if it is killed
    between a write and its trace line. The store then holds the graph of the trace plus the changes of the
    run's next statement, which are found by executing it in a separate store. A statement with a different
    outcome each time (a random id, the time) is not recognized. Raises BadInput for a store with any other
    graph, without changing it, and SandboxError and NotInstalled if the statement cannot be executed.
    """
    if not store.schema().nodes or not events or not isinstance(events[0], Started):
        return ()
    there, begun = store.graph(), graph_after(events[:1])
    owed: tuple[Wrote, ...] = ()
    if not _was_at(there, events):
        owed = _next_write(events, store, walk)
        if not owed or graph_after((*events, *owed)) != there:
            wanted = "empty, or hold just the graph that the run began with, or what it had made (at most one write more than its trace)"
            raise BadInput(
                f"the store holds another graph, of {len(there)} nodes; to go on with this run it must be {wanted}"
            )
    if there != begun:
        store.apply(there.diff(begun))
    return owed


def _was_at(graph: PropertyGraph, events: Sequence[Event]) -> bool:
    """Return whether a run had this graph at any time so far.

    A run that was stopped while it was being rebuilt has an early graph.
    """
    begun = graph_after(events[:1])
    truth = MutableGraph(begun.nodes, begun.edges)
    if graph == begun:
        return True
    for diff in diffs(events):
        truth.apply(diff)
        alike = len(truth.nodes) == len(graph) and len(truth.edges) == len(graph.edges)
        if alike and PropertyGraph.of(truth.nodes.values(), truth.edges.values()) == graph:
            return True
    return False


def _next_write(events: Sequence[Event], store: Store, walk: WalkBeside) -> tuple[Wrote, ...]:
    """Return the write that follows those of a trace before any live call, or none."""
    begun = events[0]
    assert isinstance(begun, Started)
    try:
        beside = (
            open_store("sqlite")
            if begun.dialect.startswith("SQL")
            else open_for(begun.dialect, *begun.readers)
        )
    except UnknownName:  # a query language of a third-party store
        return ()
    with closing(beside) as apart:
        try:
            writes = (event for event in walk(events, apart, store.dialect) if isinstance(event, Wrote))
            known = len(diffs(events))
            return next(((write,) for number, write in enumerate(writes) if number == known), ())
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


@dataclass(frozen=True)
class Resources:
    """The live tools, models and Python executor for what a recording lacks."""

    tools: Sequence[Tool] = ()
    planning: LLM | None = None
    execution: LLM | None = None
    compute: Callable[[str], str] | None = None  # runs Python, where not the store is to


BY_CTRL_C = "it was interrupted"  # why a fork stopped
_NOTHING = Resources()


def replay_walk(
    events: Sequence[Event], recording: Recording, store: RememberedStore, live: Resources = _NOTHING
) -> Iterator[Event]:
    """Run the loop over a recording, with the recorded question, limits and tools.

    What the recording lacks is passed to the `live` resources, if given. Python runs only if it did in the
    recorded run, in the live resources or else in the store.
    """
    begun = started(events)
    tools, limits = {tool.name: tool for tool in live.tools}, limits_of(begun)
    python = RememberedPython(recording, live.compute or computing(store.store, limits))
    walk = think(
        begun.question,
        RememberedLLM(recording, begun.planning, live.planning),
        store,
        [RememberedTool(recording, name, tools.get(name), **told) for name, told in begun.tools.items()],
        limits,
        execution=RememberedLLM(recording, begun.execution, live.execution or live.planning),
        attachments=begun.attachments,
        compute=python if begun.computes else None,
    )
    return map(store.as_edited, walk)


def replay(run: Trace | Sequence[Event], store: Store | None = None) -> Iterator[Event]:
    """Run the loop again on what a run recorded.

    Every reply, tool result and statement result comes from the run.
    """
    events = events_of(run)
    recording = Recording.of(events)
    return replay_walk(events, recording, remembered(recording, events, store or InMemory()))


_A_STORE = "a run is walked again in a store, as open_store(…) gives one"


def remembered(
    recording: Recording, events: Sequence[Event], store: Store, edits: Mapping[Key, str] | None = None
) -> RememberedStore:
    """Wrap a store with a recording, and load the initial graph of the run into it.

    Raises BadInput unless the store is empty or holds just that graph.
    """
    begun = started(events)
    require_parts(store, ("write", "read", "schema"), _A_STORE)
    if store.schema().nodes:
        if not begun.start or store.graph() != begun.start:
            wanted = "empty, or hold just the graph that the run began with" if begun.start else "empty"
            raise BadInput(
                f"the store must be {wanted} to walk a run again in it: open a new one, such as InMemory()"
            )
    elif begun.start:
        store.apply(store.graph().diff(begun.start))
    return RememberedStore(recording, store, Fingerprint(begun.graph), edits or {})


def started(events: Sequence[Event]) -> Started:
    """Return the first event of a run. Raises TraceError if it is not Started."""
    if not events or not isinstance(events[0], Started):
        raise TraceError("these events do not begin with Started: not a whole run")
    return events[0]


def limits_of(begun: Started) -> Limits:
    """Return the limits of a recorded run. Raises TraceError if they are unknown to this version."""
    try:
        return Limits.of_json(begun.limits)
    except TypeError as error:
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
            return f"event {self.number} ({kind}) differs: recorded {_short(self.recorded)}; now {_short(self.now)}{why}"
        where, was, now = _apart(json.loads(_line(self.recorded)), json.loads(_line(self.now)))
        return f"event {self.number} ({kind}) differs in {where}: recorded {was}; now {now}{why}"


def verify(
    run: Trace | Sequence[Event], store: Store | None = None, compute: Callable[[str], str] | None = None
) -> Difference | None:
    """Run the loop and every statement again on the recorded replies and tool results.

    Returns the first difference, or None. The store must be empty, and statements and arithmetic are executed
    in it. By default it is one in this process, for the query languages of the run, with a long timeout for
    busy machines. What timed out when it was recorded is not run again, since times are not compared.
    `compute` runs Python instead of the store, as in `think`.
    """
    events = events_of(run)
    recording = Recording.of(events).without_outcomes()
    with _opened(events, store) as opened:
        patient = compute or computing(opened, limits_of(started(events)).but(python_seconds=_PATIENCE))
        return first_difference(
            events,
            replay_walk(events, recording, remembered(recording, events, opened), Resources(compute=patient)),
        )


_PATIENCE = 60.0  # seconds for a statement that was quick when it was recorded, perhaps on an idle machine


@contextmanager
def _opened(events: Sequence[Event], store: Store | None) -> Iterator[Store]:
    """Yield the given store, or open one for the query languages of a run and close it at the end."""
    if store is not None:
        yield store
        return
    begun = started(events)
    with closing(open_for(begun.dialect, *begun.readers, seconds=_PATIENCE)) as opened:
        yield opened


def first_difference(recorded: Sequence[Event], now: Iterator[Event]) -> Difference | None:
    """Return the first difference between two runs, as far as the recorded one went.

    Times are not compared. Raises SandboxError, NotInstalled and StoreUnavailable, since failing to execute
    is not a difference.
    """
    for number, was in enumerate(recorded):
        try:
            event = was if _is_loss(was) else next(now, None)
        except (SandboxError, NotInstalled, StoreUnavailable):
            raise
        except LabError as error:
            return None if _cut_inside(recorded, number, error) else Difference(number, was, None, str(error))
        if event is None or not same_event(was, event):
            return Difference(number, was, event)
    if not any(isinstance(event, Answered) for event in recorded):  # it was stopped there
        return None
    extra = next(now, None)
    return Difference(len(recorded), None, extra) if extra is not None else None


def _is_loss(event: Event) -> bool:
    return isinstance(event, Asked) and event.is_loss


def without_losses(events: Sequence[Event]) -> tuple[Event, ...]:
    """Return the events without failed calls that had a cost, which a replay does not repeat."""
    return tuple(event for event in events if not _is_loss(event))


def _cut_inside(recorded: Sequence[Event], number: int, error: LabError) -> bool:
    """Return whether a run was stopped inside a tool, between its model calls and its result."""
    left = recorded[number:]
    return isinstance(error, ReplayMiss) and all(
        isinstance(event, Asked) and event.role.startswith("inside ") for event in left
    )


def same_event(one: Event, other: Event) -> bool:
    """Return whether two events are equal, ignoring times and whether they were loaded from a file."""
    return one == other or from_json(json.loads(_line(one))) == from_json(json.loads(_line(other)))


def _line(event: Event) -> str:
    return json.dumps(to_json(event), default=dict)


def _short(event: Event | None) -> str:
    return "nothing" if event is None else _line(event)[:300]


def _apart(one: Json, other: Json, where: str = "") -> tuple[str, str, str]:
    """Return the path of the first difference between two JSON values, and both values there.

    The values are cut around the first characters that differ.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        names = [*one, *(name for name in other if name not in one)]
        name = next(
            name for name in names if one.get(name) != other.get(name) or (name in one) != (name in other)
        )
        return _apart(one.get(name), other.get(name), f"{where}.{name}" if where else str(name))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        number = next(
            number for number, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]
        )
        return _apart(one[number], other[number], f"{where}[{number}]")
    texts = [value if isinstance(value, str) else json.dumps(value, default=dict) for value in (one, other)]
    pairs = enumerate(zip(*texts, strict=False))
    same = next((place for place, (was, now) in pairs if was != now), min(map(len, texts)))
    start = max(0, same - 40)
    was, now = (
        repr("…" * bool(start) + text[start : same + 120] + "…" * (len(text) > same + 120)) for text in texts
    )
    return where, was, now


# --- resume ---


def resume(path: str | Path, store: Store, live: Resources) -> Iterator[Event]:
    """Continue a run from where its trace stops.

    Yields the recorded events first, then new ones, which are added to the same file. The store must be
    empty, or hold the initial graph of the run or a later one, at most one write ahead of the trace: see
    `left_behind`. Its content is removed and restored without executing a recorded statement. Raises BadInput
    for any other store, and TraceError if the loop no longer does what was recorded, if another command wrote
    into its store, or if another run or resume is writing the file.
    """
    require(live, Resources, "what a run may use to go on is Resources(tools, model)")
    require(path, (str, Path), "a run is resumed from the path of its trace")
    load_run(path)  # so that what is no trace is said before anything else
    writing = reopened(path)  # first, so that no other process appends meanwhile
    try:
        trace = load_run(path)
        if (parted := parted_at(trace.events)) is not None:
            raise TraceError(
                f"{path} cannot be resumed, for {not_following(parted)}: ask again, in a namespace of its own"
            )
        require_parts(store, ("write", "read", "schema"), _A_STORE)
        recording = Recording.of((*trace.events, *left_behind(trace.events, store, _replay_side)))
        walk = replay_walk(trace.events, recording, remembered(recording, trace.events, store), live)
    except BaseException:
        writing.close()
        raise
    return _going_on(trace.events, walk, writing)


def _replay_side(events: Sequence[Event], apart: Store, spoken: Dialect) -> Iterator[Event]:
    """Replay a run in a separate store, without live resources and whatever its prompts say.

    The replies are used in order, since the store may list the graph in another order.
    """
    asked = (
        event
        for event in events
        if isinstance(event, Asked) and not event.is_loss and not event.role.startswith("inside ")
    )
    recording = replace(Recording.of(events), turns=deque(event.as_reply for event in asked))
    return replay_walk(events, recording, replace(remembered(recording, events, apart), spoken=spoken))


def _going_on(recorded: Sequence[Event], walk: Iterator[Event], writing: TraceWriter) -> Iterator[Event]:
    with writing:
        for number, was in enumerate(recorded):
            event = was if _is_loss(was) else next(walk, None)
            if event is None or not same_event(was, event):
                raise TraceError(f"{writing.path} cannot be resumed: {Difference(number, was, event)}")
            yield event
        yield from writing.added(walk)


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
        calls = f"{self.avoided} calls avoided, {self.asked} asked"
        return f"<fork from event {self.first_difference}: {len(self.events)} events, {calls}, {end}>"


def fork(
    run: Trace | Sequence[Event], at: int, change: str, store: Store | None = None, live: Resources = _NOTHING
) -> Fork:
    """Run a recorded run again with event number `at` changed.

    The change is to the reply of an Asked, the text of a ToolReturned, or the statement of a Wrote or Read.
    Only calls that differ are made again. The store must be empty. By default it is one in this process, for
    the query languages of the run. Without a model, the fork runs to the first missing reply, and its
    `stopped` says so.
    """
    events, at, recording, edits = _with_change(run, at, change, live)
    with _opened(events, store) as opened:
        seen, stopped = _walked_with(events, recording, remembered(recording, events, opened, edits), live)
    pairs = zip(seen, events, strict=False)
    first = next(
        (number for number, (now, was) in enumerate(pairs) if not same_event(now, was)),
        min(len(seen), len(events)),
    )
    # that reply came from the recording, and is no call that was avoided
    by_hand = isinstance(events[at], Asked) and len(seen) > at
    return Fork(tuple(seen), graph_after(seen), first, recording.avoided - by_hand, recording.made, stopped)


def fork_events(
    run: Trace | Sequence[Event], at: int, change: str, store: Store | None = None, live: Resources = _NOTHING
) -> Iterator[Event]:
    """Yield the events of a fork as they happen.

    Errors that stop it are raised: LLMError, SandboxError, BadInput.
    """
    events, _, recording, edits = _with_change(run, at, change, live)
    with _opened(events, store) as opened:
        yield from replay_walk(events, recording, remembered(recording, events, opened, edits), live)


def _with_change(
    run: Trace | Sequence[Event], at: int, change: str, live: Resources
) -> tuple[tuple[Event, ...], int, Recording, dict[Key, str]]:
    """Prepare a fork from a run and one changed event.

    Returns the events without losses, the index of the changed one among them, the recording, and the edited
    statements. Raises BadInput if `at` is no event that can be changed.
    """
    events = events_of(run)
    require(change, str, "what an event is changed to is a text")
    require(live, Resources, "what a fork may use is Resources(tools, model)")
    if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at < len(events):
        raise BadInput(
            f"there is no event {short_repr(at)}: the run has "
            + (f"events 0 to {len(events) - 1}" if events else "no events")
        )
    if _is_loss(events[at]):
        raise BadInput(f"event {at} is a call that failed: it has no reply to change")
    at -= sum(map(_is_loss, events[:at]))
    events = without_losses(events)
    recording = Recording.of(events)
    return events, at, recording, _changed(recording, events, at, change)


def _walked_with(
    events: Sequence[Event], recording: Recording, store: RememberedStore, live: Resources
) -> tuple[list[Event], str]:
    """Return the events of a run with one change, and why it stopped ("" if it reached its end)."""
    seen = list[Event]()
    try:
        for event in replay_walk(events, recording, store, live):
            seen.append(event)
    except BadInput:
        raise
    except LabError as error:
        return seen, str(error)
    except KeyboardInterrupt:
        return seen, BY_CTRL_C
    return seen, ""


def _changed(
    recording: Recording, events: Sequence[Event], at: int, change: str
) -> dict[tuple[str, ...], str]:
    """Put the change into the recording, or return it as an edited statement."""
    event, before = events[at], events[:at]
    match event:
        case Asked() if not event.role.startswith("inside "):
            key = (prompt_digest(event.prompt, ""),)
            nth = sum(
                isinstance(other, Asked) and (prompt_digest(other.prompt, ""),) == key for other in before
            )
            # what a person wrote cost no tokens, and no model held it likely
            by_hand = Reply(change, model=event.model)
            recording.replies[key][nth] = event.as_reply if change == event.reply else by_hand
        case ToolReturned():
            nth = sum(isinstance(other, ToolReturned) and other.call == event.call for other in before)
            recording.change_result(
                replace(event, text=readable_text(change), sources=(), failed=False, again=False), nth
            )
        case Read(statement=statement) if statement == WHOLE_GRAPH:
            raise BadInput(
                f"event {at} reads the whole graph, which no statement does: change what was written, or the reply after it"
            )
        case Wrote() | Read():
            fingerprint = Fingerprint(started(events).graph)
            for diff in diffs(before):
                fingerprint.change(diff)
            where = (fingerprint.now, event.asked or event.statement)
            return {
                ("write", *where) if isinstance(event, Wrote) else ("read", *where, event.dialect): change
            }
        case _:
            kinds = "Asked (its reply), ToolReturned (its text), Wrote or Read (its statement)"
            raise BadInput(f"event {at} is a {type(event).__name__}; what can be changed: {kinds}")
    return {}
