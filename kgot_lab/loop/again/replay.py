"""Walk a recorded run again: fold it, check it, go on with it, or fork it at one event."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kgot_lab.errors import BadInput, LabError, TraceError, require, require_parts, shortly
from kgot_lab.graph import PropertyGraph
from kgot_lab.llm.recorded import prompt_digest
from kgot_lab.loop.events import Answered, Asked, Event, Read, Started, ToolReturned, Wrote, from_json, to_json
from kgot_lab.loop.limits import Limits
from kgot_lab.loop.read import WHOLE_GRAPH
from kgot_lab.loop.again.recording import Fingerprint, Recording, RememberedLLM, RememberedStore, RememberedTool
from kgot_lab.loop.state import State
from kgot_lab.loop.trace import Trace, append, diffs, events_of, graph_after, load_run
from kgot_lab.loop.walk import think
from kgot_lab.stores import open_for
from kgot_lab.stores.in_memory import InMemory
from kgot_lab.stores.protocol import Store
from kgot_lab.tools.tool import Tool
from kgot_lab.types import LLM, Usage


def replay(events: Iterable[Event]) -> Iterator[tuple[Event, State]]:
    """Each recorded event with the state after it: no model, no sandbox, nothing executed."""
    state = State()
    for event in events:
        state = state.after(event)
        yield event, state


@dataclass(frozen=True)
class Resources:
    """What may be used for what a recording does not hold."""

    tools: Sequence[Tool] = ()
    planning: LLM | None = None
    execution: LLM | None = None


_NOTHING = Resources()


def walk_again(events: Sequence[Event], recording: Recording, store: RememberedStore, live: Resources = _NOTHING) -> Iterator[Event]:
    """The loop over a recording: the same question, limits and tools as recorded; what it lacks goes to the live parts, if given."""
    begun = started(events)
    tools = {tool.name: tool for tool in live.tools}
    return think(
        begun.question,
        RememberedLLM(recording, begun.planning, live.planning),
        store,
        [RememberedTool(recording, name, tools.get(name), **told) for name, told in begun.tools.items()],
        _limits(begun),
        execution=RememberedLLM(recording, begun.execution, live.execution or live.planning),
        attachments=begun.attachments,
    )


def again(run: Trace | Sequence[Event], store: Store | None = None) -> Iterator[Event]:
    """The loop itself, walked again on what was recorded: every reply, tool result and statement result comes from the run."""
    events = events_of(run)
    recording = Recording.of(events)
    return walk_again(events, recording, RememberedStore(recording, store or InMemory()))


def started(events: Sequence[Event]) -> Started:
    """The first event of a run; raises TraceError when there is none."""
    if not events or not isinstance(events[0], Started):
        raise TraceError("these events do not begin with Started: not a whole run")
    return events[0]


def _limits(begun: Started) -> Limits:
    try:
        return Limits(**begun.limits)
    except TypeError as error:
        raise TraceError(f"the limits of this run are not those of this version: {error}") from error


def _empty(store: Store) -> Store:
    """The store, which must hold nothing; raises BadInput."""
    require_parts(store, ("write", "read", "schema"), "a run is walked again in a store, as open_store(…) gives one")
    if store.schema().nodes:
        raise BadInput("the store must be empty to walk a run again in it: open a new one, such as InMemory()")
    return store


# --- verify ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """Where walking again first departs from the recording; `now` is None when nothing came in its place."""

    number: int
    recorded: Event | None
    now: Event | None
    reason: str = ""

    def __str__(self) -> str:
        kind = type(self.recorded or self.now).__name__
        why = f" ({self.reason})" if self.reason else ""
        return f"event {self.number} ({kind}) differs: recorded {_short(self.recorded)}; now {_short(self.now)}{why}"


def verify(run: Trace | Sequence[Event], store: Store | None = None) -> Difference | None:
    """Execute the loop and every statement again on the recorded replies and tool results; the first difference, or None.

    The store must be empty; statements and arithmetic really run in it. By default it is one in this process, for the languages of the run.
    """
    events = events_of(run)
    recording = replace(Recording.of(events), statements={}, outputs={})
    with _opened(events, store) as opened:
        return first_difference(events, walk_again(events, recording, RememberedStore(recording, opened)))


@contextmanager
def _opened(events: Sequence[Event], store: Store | None) -> Iterator[Store]:
    """The empty store that was given, or one for the languages of a run, closed in the end."""
    if store is not None:
        yield _empty(store)
        return
    begun = started(events)
    with closing(open_for(begun.dialect, *begun.readers)) as opened:
        yield opened


def first_difference(recorded: Sequence[Event], now: Iterator[Event]) -> Difference | None:
    """The first place where two runs differ; times do not count."""
    for number, was in enumerate(recorded):
        try:
            event = next(now, None)
        except LabError as error:
            return Difference(number, was, None, str(error))
        if event is None or not same_event(was, event):
            return Difference(number, was, event)
    extra = next(now, None)
    return Difference(len(recorded), None, extra) if extra is not None else None


def same_event(one: Event, other: Event) -> bool:
    """Whether two events say the same, whether or not either has been on file; times do not count."""
    return one == other or from_json(json.loads(_line(one))) == from_json(json.loads(_line(other)))


def _line(event: Event) -> str:
    return json.dumps(to_json(event), default=dict)


def _short(event: Event | None) -> str:
    return "nothing" if event is None else _line(event)[:300]


# --- resume ---------------------------------------------------------------------------------------------------------------


def resume(path: str | Path, store: Store, live: Resources) -> Iterator[Event]:
    """Go on with a run where its trace stops: recorded events first, then new ones, added to the same file.

    The store must be empty. Raises TraceError when the loop no longer does what was recorded.
    """
    require(live, Resources, "what a run may use to go on is Resources(tools, model)")
    trace = load_run(path)
    recording = Recording.of(trace.events)
    walk = walk_again(trace.events, recording, RememberedStore(recording, _empty(store)), live)
    return _going_on(trace.events, walk, Path(path))


def _going_on(recorded: Sequence[Event], walk: Iterator[Event], path: Path) -> Iterator[Event]:
    for number, was in enumerate(recorded):
        event = next(walk, None)
        if event is None or not same_event(was, event):
            raise TraceError(f"{path} cannot be resumed: {Difference(number, was, event)}")
        yield event
    yield from append(walk, path)


# --- fork -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fork:
    """A run walked again with one thing changed: its events, the graph it leads to, and what it cost."""

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


def fork(run: Trace | Sequence[Event], at: int, change: str, store: Store | None = None, live: Resources = _NOTHING) -> Fork:
    """Walk a run again with event number `at` changed: the reply of an Asked, the text of a ToolReturned, the statement of a Wrote or Read.

    Only what changed is asked again. The store must be empty; by default it is one in this process, for the languages of the run. Without
    a model it runs to the first missing reply, keeps graph and diff, and says so.
    """
    events = events_of(run)
    require(change, str, "what an event is changed to is a text")
    require(live, Resources, "what a fork may use is Resources(tools, model)")
    if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at < len(events):
        raise BadInput(f"there is no event {shortly(at)}: the run has " + (f"events 0 to {len(events) - 1}" if events else "no events"))
    recording = Recording.of(events)
    edits = _changed(recording, events, at, change)
    with _opened(events, store) as opened:
        seen, stopped = _walked_with(events, recording, RememberedStore(recording, opened, edits=edits), live, (at, change))
    pairs = zip(seen, events, strict=False)
    first = next((number for number, (now, was) in enumerate(pairs) if not same_event(now, was)), min(len(seen), len(events)))
    by_hand = isinstance(events[at], Asked) and len(seen) > at  # that reply came from the recording, and is no call that was avoided
    return Fork(tuple(seen), graph_after(seen), first, recording.avoided - by_hand, recording.made, stopped)


def _walked_with(
    events: Sequence[Event], recording: Recording, store: RememberedStore, live: Resources, edit: tuple[int, str]
) -> tuple[list[Event], str]:
    """The events of a run with one changed, as far as it goes, and why it stopped ("" if at its end)."""
    (at, change), seen = edit, list[Event]()
    try:
        for event in walk_again(events, recording, store, live):
            seen.append(_with_edit(event, events[at], change) if len(seen) == at else event)
    except BadInput:
        raise
    except LabError as error:
        return seen, str(error)
    return seen, ""


def _changed(recording: Recording, events: Sequence[Event], at: int, change: str) -> dict[tuple[str, ...], str]:
    """Put the change into the recording, or return it as an edited statement."""
    event, before = events[at], events[:at]
    match event:
        case Asked() if not event.role.startswith("inside "):
            key = (prompt_digest(event.prompt, event.model),)
            nth = sum(isinstance(other, Asked) and (prompt_digest(other.prompt, other.model),) == key for other in before)
            recording.replies[key][nth] = (change, event.usage if change == event.reply else Usage())  # what a person wrote cost no tokens
        case ToolReturned():
            recording.change_result(replace(event, text=change, sources=(), failed=False))
        case Read(statement=statement) if statement == WHOLE_GRAPH:
            raise BadInput(f"event {at} reads the whole graph, which no statement does: change what was written, or the reply after it")
        case Wrote() | Read():
            fingerprint = Fingerprint()
            for diff in diffs(before):
                fingerprint.change(diff)
            where = (fingerprint.now, event.statement)
            return {("write", *where) if isinstance(event, Wrote) else ("read", *where, event.dialect): change}
        case _:
            kinds = "Asked (its reply), ToolReturned (its text), Wrote or Read (its statement)"
            raise BadInput(f"event {at} is a {type(event).__name__}; what can be changed: {kinds}")
    return {}


def _with_edit(event: Event, was: Event, change: str) -> Event:
    """The event as it happened, showing the edited statement instead of the one the loop asked for."""
    if isinstance(event, Wrote | Read) and isinstance(was, Wrote | Read) and event.statement == was.statement:
        return replace(event, statement=change)
    return event
