"""What a run knows so far: a value that only events change."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kgot_lab.loop.events import Answered, Asked, Chose, Event, Read, Started, ToolCall, ToolReturned, Voted, Wrote
from kgot_lab.types import Diff, Rows, Usage


@dataclass(frozen=True)
class State:
    """A run between two events."""

    question: str = ""
    attachments: tuple[str, ...] = ()
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
            case Started(question=question, attachments=attachments):
                return replace(now, question=question, attachments=attachments)
            case Asked(usage=usage):
                return replace(now, usage=self.usage + usage)
            case Voted(choice=choice):
                return replace(now, votes=(*self.votes, event), step=event.step + (choice == "INSERT"))
            case Chose(calls=calls):
                return replace(now, calls=(*self.calls, *calls))
            case ToolReturned():
                return replace(now, returns=(*self.returns, event))
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
        """Every change to the graph so far, in order: applied to an empty graph they give the present one."""
        return tuple(write.diff for write in self.writes)

    @property
    def sentences(self) -> frozenset[str]:
        """The sentences that facts of the graph were taken from."""
        edges = (edge for diff in self.diffs for edge in diff.added_edges)
        return frozenset(str(edge.properties["sentence"]) for edge in edges if "sentence" in edge.properties)

    def rows_of(self, statement: str, dialect: str = "") -> Rows | None:
        """What reading this statement gave since the graph last changed, or None when it was not read; no dialect means the run's own."""
        return next((read.rows for read in reversed(self.reads) if (read.statement, read.dialect) == (statement, dialect)), None)

    @property
    def forced(self) -> bool:
        """True when no read of the present graph has given rows."""
        return not any(read.rows for read in self.reads)
