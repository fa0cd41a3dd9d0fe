"""Each step of a run in a line, for the static picture; an event is told in kgot_lab.loop.formatting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from kgot_lab.loop.events import Asked, Chose, Event, Forced, Read, Voted, Wrote
from kgot_lab.loop.formatting import caption
from kgot_lab.text.cleaning import counted
from kgot_lab.viz.static.markup import shortened


def step_lines(events: Iterable[Event]) -> list[str]:
    """Each step of a run in one line: what was voted, called, written and read in it."""
    return [
        f"{step_name(step)}: {_line(list(group))}"
        for step, group in groupby(events, key=lambda event: event.step)
    ]


def step_name(step: int) -> str:
    """What a reader calls a step."""
    return f"Step {step}" if step else "Start"


def _line(events: Sequence[Event]) -> str:
    asked = sum(isinstance(event, Asked) for event in events)
    told = [_told(event) for event in events if isinstance(event, Chose | Wrote | Read | Voted | Forced)]
    return "; ".join([*told, *([counted(asked, "reply", "replies")] if asked else [])]) or "nothing yet"


def _told(event: Event) -> str:
    match event:
        case Chose(calls=calls):
            return "; ".join(shortened(str(call), 70) for call in calls) or "no call left"
        case Voted(choice=choice, ballots_cast=cast) if cast:
            return f"vote: {choice} ({event.inserts} INSERT, {event.retrieves} RETRIEVE)"
        case _:
            return caption(event)
