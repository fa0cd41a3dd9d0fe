"""Each event of a run in a few words, and each step in a line: for lists and for the static picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from kgot_lab.draw.markup import shortened
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Ballot,
    Chose,
    Computed,
    Cut,
    Event,
    Failed,
    Forced,
    Merged,
    Parsed,
    Read,
    Refused,
    Repaired,
    Started,
    ToolReturned,
    Voted,
    Wrote,
)

LENGTH = 60


def caption(event: Event) -> str:
    """An event in a few words, on one line."""
    return shortened(_caption(event), LENGTH)


def _caption(event: Event) -> str:
    match event:
        case Started():
            return "question"
        case Asked(role=role):
            return f"asked: {role}"
        case Cut(what=what):
            return f"cut short: {what}"
        case Ballot(number=number, choice=choice):
            return f"ballot {number}: {choice or 'neither'}"
        case Voted(choice=choice, asked=0):
            return f"{choice} without a vote"
        case Voted(choice=choice):
            return f"vote: {choice}"
        case Chose(calls=calls):
            return f"chose {', '.join(dict.fromkeys(call.tool for call in calls)) or 'no tool'}"
        case ToolReturned(call=call, failed=failed):
            return f"{call.tool} {'failed' if failed else 'returned'}"
        case _:
            return _of_graph(event)


def _of_graph(event: Event) -> str:
    match event:
        case Wrote(diff=diff):
            return f"wrote {diff}"
        case Read(rows=rows):
            return f"read {_counted(len(rows), 'row')}"
        case Failed():
            return "read failed"
        case Repaired():
            return "mended"
        case Refused(writing=writing):
            return f"gave up a {'write' if writing else 'read'}"
        case Merged():
            return "reasons merged"
        case Forced(what=what):
            return f"forced to {what}"
        case Computed(failed=failed):
            return "arithmetic failed" if failed else "computed"
        case Parsed(text=text, problem=problem):
            return f"candidate: {text}" if not problem else "no candidate"
        case Answered(text=text):
            return f"answer: {text}"
        case _:
            return type(event).__name__


def step_lines(events: Iterable[Event]) -> list[str]:
    """Each step of a run in one line: what was voted, called, written and read in it."""
    return [f"{step_name(step)}: {_line(list(group))}" for step, group in groupby(events, key=lambda event: event.step)]


def step_name(step: int) -> str:
    """What a reader calls a step."""
    return f"Step {step}" if step else "Start"


def _line(events: Sequence[Event]) -> str:
    asked = sum(isinstance(event, Asked) for event in events)
    told = [_told(event) for event in events if isinstance(event, Chose | Wrote | Read | Voted | Forced)]
    return "; ".join([*told, *([_counted(asked, "reply", "replies")] if asked else [])]) or "nothing yet"


def _told(event: Event) -> str:
    match event:
        case Chose(calls=calls):
            return "; ".join(shortened(str(call), 70) for call in calls) or "no call left"
        case Voted(choice=choice, asked=asked) if asked:
            return f"vote: {choice} ({event.inserts} INSERT, {event.retrieves} RETRIEVE)"
        case _:
            return caption(event)


def _counted(number: int, noun: str, many: str = "") -> str:
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"
