"""Events of a tick. Each prints as one line. None identifies a user: a briefing is named by its key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kgot_lab.domains.investment.monitor.journal import Tick
from kgot_lab.domains.investment.monitor.news import NewsFacts
from kgot_lab.text.cleaning import format_count


@dataclass(frozen=True)
class TickStarted:
    """A tick has started."""

    tick: Tick

    def __str__(self) -> str:
        missed = f", {format_count(self.tick.missed, 'tick')} before it missed" if self.tick.missed else ""
        resumed = ", goes on after a stop" if self.tick.resumed else ""
        return f"tick {self.tick.id}, due {self.tick.due.isoformat()}{missed}{resumed}"


@dataclass(frozen=True)
class NewsGathered:
    """The number of new items, and of items dated in the future, which wait, and what was refused."""

    new: int
    later: int = 0
    refused: tuple[str, ...] = ()

    def __str__(self) -> str:
        later = f", {self.later:,} dated later than now, which wait" if self.later else ""
        return _indent_details(f"gather: {format_count(self.new, 'new item')}{later}", self.refused)


@dataclass(frozen=True)
class ClockBehind:
    """The clock is behind the last change of the graph.

    New writes are dated by that change, so fresh news may expire early.
    """

    clock: datetime
    last: datetime

    def __str__(self) -> str:
        said = f"the clock says {self.clock.isoformat()}, and the graph was last changed at {self.last.isoformat()}"
        return f"update: {said}, by which all that is written now is dated and may be expired at once; set the clock right"


@dataclass(frozen=True)
class ItemWritten:
    """The facts of an item are in the graph: the number of new or changed nodes and edges."""

    facts: NewsFacts
    nodes: int
    edges: int

    def __str__(self) -> str:
        told = f"update: {self.facts.item}: {format_count(self.nodes, 'node')} and {format_count(self.edges, 'edge')} new or changed"
        return _indent_details(told, (*self.facts.refused, *self.facts.warnings))


@dataclass(frozen=True)
class ItemsWait:
    """The number of items that no model has read yet, because a tick reads a limited number."""

    count: int

    def __str__(self) -> str:
        return f"update: {format_count(self.count, 'item')} left for the next tick"


@dataclass(frozen=True)
class BriefingPosted:
    """A new briefing is in the outbox."""

    key: str

    def __str__(self) -> str:
        return f"decide: briefing {self.key} posted"


@dataclass(frozen=True)
class BriefingSent:
    """A briefing was delivered."""

    key: str

    def __str__(self) -> str:
        return f"deliver: briefing {self.key} sent"


@dataclass(frozen=True)
class BriefingsStale:
    """The number of briefings that were not sent while they were fresh. They stay in the outbox."""

    count: int

    def __str__(self) -> str:
        return f"deliver: {format_count(self.count, 'briefing')} in the outbox no longer fresh, which is not sent"


@dataclass(frozen=True)
class StageFailed:
    """A stage, or a part of it, failed. It is retried in the next tick, and nothing is lost."""

    stage: str
    reason: str

    def __str__(self) -> str:
        return f"{self.stage}: {self.reason}; tried again in the next tick"


@dataclass(frozen=True)
class TickEnded:
    """A tick has ended."""

    tick: Tick

    def __str__(self) -> str:
        return f"tick {self.tick.id} done"


MonitorEvent = (
    TickStarted | NewsGathered | ClockBehind | ItemWritten | ItemsWait
    | BriefingPosted | BriefingSent | BriefingsStale | StageFailed | TickEnded
)  # fmt: skip


def _indent_details(first_line: str, details: tuple[str, ...]) -> str:
    return "\n".join([first_line, *(f"  {line}" for line in details)])
