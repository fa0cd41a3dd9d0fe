"""What a run knows so far: a value that only events change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import sentences_of
from kgot_lab.loop.events import (
    EMPTY,
    Answered,
    Asked,
    Chose,
    Event,
    Read,
    Started,
    ToolCall,
    ToolReturned,
    Voted,
    Wrote,
)
from kgot_lab.types import Diff, Rows, Usage


@dataclass(frozen=True)
class State:
    """A run between two events."""

    question: str = ""
    attachments: tuple[str, ...] = ()
    start: PropertyGraph = EMPTY  # the graph that the run began with
    spelled: bool = False  # whether a model spells the statements that write
    step: int = 0
    calls: tuple[ToolCall, ...] = ()
    returns: tuple[ToolReturned, ...] = ()
    writes: tuple[Wrote, ...] = ()
    reads: tuple[Read, ...] = ()  # since the last write
    votes: tuple[Voted, ...] = ()
    usage: Usage = Usage()
    answer: Answered | None = None

    def after(self, event: Event) -> State:
        """The state once this event has happened."""
        now = replace(self, step=event.step)
        match event:
            case Started(question=question, attachments=attachments, start=start, limits=limits):
                spelled = limits.get("writing") == "statements"
                return replace(now, question=question, attachments=attachments, start=start, spelled=spelled)
            case Asked(usage=usage):
                return replace(now, usage=self.usage + usage)
            case Voted(choice=choice):
                return replace(now, votes=(*self.votes, event), step=event.step + (choice == "INSERT"))
            case Chose(calls=calls):
                return replace(now, calls=(*self.calls, *calls))
            case ToolReturned():
                made = tuple(call for call in self.calls if call != event.call) if event.again else self.calls
                return replace(now, returns=(*self.returns, event), calls=made)
            case Wrote():
                return replace(now, writes=(*self.writes, event), reads=())
            case Read():
                return replace(now, reads=(*self.reads, event))
            case Answered():
                return replace(now, answer=event)
            case _:
                return now

    @property
    def diffs(self) -> tuple[Diff, ...]:
        """Every change to the graph so far, in order: applied to the graph it began with they give the
        present one.
        """
        return tuple(write.diff for write in self.writes)

    @property
    def sentences(self) -> frozenset[str]:
        """The sentences that facts of the graph were taken from."""
        written = (
            edge
            for diff in self.diffs
            for edge in (*diff.added_edges, *(after for _, after in diff.changed_edges))
        )
        return sentences_of((*self.start.edges, *written))

    def rows_of(self, statement: str, dialect: str = "") -> Rows | None:
        """What this statement read from the graph since it last changed, or None when it was not read; no
        dialect means the run's own.
        """
        return next(
            (
                read.grounded
                for read in reversed(self.reads)
                if (read.statement, read.dialect) == (statement, dialect)
            ),
            None,
        )

    @property
    def forced(self) -> bool:
        """True when no read of the present graph has given rows."""
        return not any(read.grounded for read in self.reads)


def state_after(events: Iterable[Event]) -> State:
    """What a run knew in the end."""
    state = State()
    for event in events:
        state = state.after(event)
    return state
