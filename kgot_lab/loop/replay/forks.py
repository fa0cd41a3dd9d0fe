"""Recorded forks and the alignment of two runs: what a fork changed and saved, which events correspond."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from itertools import chain
from pathlib import Path

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, TraceError
from kgot_lab.llm.recorded import prompt_digest
from kgot_lab.loop.events import Asked, Event, Read, ToolReturned, Wrote, to_json
from kgot_lab.loop.replay.replay import (
    Fork,
    Resources,
    fork_events,
    is_passed_over,
    repeated_events,
    same_event,
)
from kgot_lab.loop.retrieve import WHOLE_GRAPH
from kgot_lab.loop.trace import Trace, graph_after, load_run, record
from kgot_lab.types import Json

_IndexPair = tuple[int | None, int | None]


def changeable_part(event: Event) -> str:
    """Return which part of an event a fork may change: "reply", "text" or "statement", or "" if none."""
    match event:
        case _ if is_passed_over(event):
            pass
        case Asked(role=role) if not role.is_inside:
            return "reply"
        case ToolReturned():
            return "text"
        case Wrote(statement=statement) | Read(statement=statement) if statement != WHOLE_GRAPH:
            return "statement"
    return ""


def changeable_text(events: Sequence[Event], at: int) -> str:
    """Return the text of an event that a fork may change, or "" if there is no such event or text."""
    part = changeable_part(events[at]) if at < len(events) else ""
    return str(getattr(events[at], part)) if part else ""


def fork_to_file(
    original: Trace,
    at: int,
    change: str,
    path: str | Path,
    *,
    live: Resources,
    about: Mapping[str, Json] | None = None,
) -> Iterator[Event]:
    """Fork a run and yield its events, each after it is written to a new file that `resume` can continue.

    The run is replayed up to the change before this returns. Raises BadInput if the replay differs from the
    recording, without leaving a file.
    """
    replayed = fork_events(original, at, change, live)
    recorded = repeated_events(original.events[: at + 1])
    replayed_events: list[Event] = []
    for recorded_event, event in zip(recorded, replayed, strict=False):
        replayed_events.append(event)
        if same_event(recorded_event, event) != (len(replayed_events) < len(recorded)):
            break
    else:
        if len(replayed_events) == len(recorded):
            last = len(replayed_events) - 1
            changed = changeable_text(replayed_events, last)
            head = {"fork_of": original.run, "at": last, "change": changed, **(about or {})}
            name = f"{original.run}, event {last} changed"
            return record(chain(replayed_events, replayed), path, run=name, metadata=head)
    problem = f"event {at} cannot be changed: the run is not walked again as it was recorded up to there"
    raise BadInput(f"{problem}; `verify` says where")


@check_arguments
def recorded_fork(original: Trace, recorded: Trace) -> Fork:
    """Load a fork from its trace.

    Its graph, first difference and calls are computed from its events, not taken from its head. Raises
    TraceError if the file is not a fork of this run: exactly one thing must differ, and everything that the
    run had recorded before must be answered the same.
    """
    about = recorded.about
    if about.get("fork_of") != original.run:
        problem = f"this trace is a fork of {about.get('fork_of', 'nothing')!r}, not of {original.run!r}"
        raise TraceError(f"{problem}: load the run it names")
    first = _shared_length(original.events, recorded.events)
    is_change = first < len(recorded.events) and bool(changeable_part(recorded.events[first]))
    change = first, changeable_text(recorded.events, first)
    if not is_change or (about.get("at"), about.get("change")) != change:
        problem = f"this fork first differs at event {first}"
        raise TraceError(f"{problem}, and not by the change at event {about.get('at')} that its head names")
    avoided, made = _count_calls(original.events, recorded.events, first)
    stopped = "" if recorded.finished else str(about.get("stopped") or "its recording ends here")
    return Fork(recorded.events, graph_after(recorded.events), first, avoided, made, stopped)


def load_forks(original: Trace, folder: Path) -> list[Fork]:
    """Return the forks of a run among the traces of a folder, in the order of their names.

    Traces that name the run but are not forks of it are skipped.
    """
    forks = []
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            head = file.readline()  # whole traces are long, and most are no fork
        if json.dumps(original.run, ensure_ascii=False) not in head or '"fork_of"' not in head:
            continue
        with suppress(TraceError):  # of another run of this name, or of an older recording of it
            forks.append(recorded_fork(original, load_run(path)))
    return forks


def edited_index(run: Trace) -> int:
    """Return the index of the event of a recorded fork that a person wrote, or -1 if it is not a fork."""
    at = run.about.get("at", -1)
    return at if run.about.get("fork_of") and isinstance(at, int) else -1


def run_note(run: Trace) -> str:
    """Return a note on the origin of a recorded fork, or on a run without an answer, or "" for any other."""
    if edited_index(run) < 0:
        return run.unfinished
    note = f"This is a fork of the run {run.about['fork_of']}: event {edited_index(run)} was written by hand, and the run went on from there."
    return f"{note} {str(run.about['written']).capitalize()}." if run.about.get("written") else note


def comparable_texts(events: Sequence[Event]) -> list[str]:
    """Convert each event to a text for comparison, without the duration of replies."""
    return [json.dumps(_without_duration(to_json(event)), sort_keys=True, default=dict) for event in events]


def align_runs(one: Sequence[Event], other: Sequence[Event]) -> list[_IndexPair]:
    """Align two runs as ordered pairs of event indices, with None where an event has no counterpart.

    Equal events are paired first, then, between those, events of one kind (and questions of one role).
    """
    levels = [(comparable_texts(one), comparable_texts(other)), (_event_kinds(one), _event_kinds(other))]
    return list(_align(levels, range(len(one)), range(len(other))))


def _align(
    levels: Sequence[tuple[Sequence[str], Sequence[str]]], one: range, other: range
) -> Iterator[_IndexPair]:
    """Yield pairs by the first level of similarity, and pair the rest by the next levels."""
    if not levels:
        yield from ((number, None) for number in one)
        yield from ((None, number) for number in other)
        return
    left_texts, right_texts = levels[0]
    left, right = left_texts[one.start : one.stop], right_texts[other.start : other.stop]
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    done = other_done = 0
    for block in matcher.get_matching_blocks():
        yield from _align(levels[1:], one[done : block.a], other[other_done : block.b])
        done, other_done = block.a + block.size, block.b + block.size
        yield from zip(one[block.a : done], other[block.b : other_done], strict=True)


def _shared_length(one: Sequence[Event], other: Sequence[Event]) -> int:
    """Return the number of leading events that two runs share."""
    one, other = repeated_events(one), repeated_events(other)
    pairs = enumerate(zip(comparable_texts(one), comparable_texts(other), strict=False))
    return next((number for number, (before, after) in pairs if before != after), min(len(one), len(other)))


def _count_calls(original: Sequence[Event], forked: Sequence[Event], changed: int) -> tuple[int, int]:
    """Count the model calls of a fork that were answered from its original, and those made again.

    Calls are matched by the digest of their prompt. Raises TraceError if a recorded reply was changed
    elsewhere.
    """
    replies: dict[str, list[str]] = {}
    for event in _loop_calls(original).values():
        replies.setdefault(prompt_digest(event.prompt, ""), []).append(event.reply)  # for any model
    used: Counter[str] = Counter()
    avoided = 0
    for number, event in _loop_calls(forked).items():
        key = prompt_digest(event.prompt, "")
        recorded_replies = replies.get(key, [])[used[key] :]
        used[key] += 1
        if recorded_replies and number != changed and recorded_replies[0] != event.reply:
            problem = f"event {number} of this fork is a reply that the run had recorded otherwise"
            raise TraceError(f"{problem}: it was not made by `fork`")
        avoided += bool(recorded_replies) and number != changed
    return avoided, len(_loop_calls(forked)) - avoided - (changed in _loop_calls(forked))


def _loop_calls(events: Sequence[Event]) -> dict[int, Asked]:
    """Return the calls that the loop itself made, by event index, without those inside tools."""
    events = repeated_events(events)
    return {i: e for i, e in enumerate(events) if isinstance(e, Asked) and not e.role.is_inside}


def _without_duration(data: dict[str, Json]) -> dict[str, Json]:
    return {**data, "usage": {**data["usage"], "seconds": 0}} if "usage" in data else data


def _event_kinds(events: Sequence[Event]) -> list[str]:
    return [type(event).__name__ + (f" {event.role}" if isinstance(event, Asked) else "") for event in events]
