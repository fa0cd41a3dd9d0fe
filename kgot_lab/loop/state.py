"""The state of a run, which only events change, and its ledger of model calls."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import supporting_sentences
from kgot_lab.io.files import write_atomically
from kgot_lab.loop.events import (
    EMPTY,
    Answered,
    Asked,
    Chose,
    Event,
    Read,
    Role,
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
    spelled: bool = False  # whether a model writes the write statements
    step: int = 0
    calls: tuple[ToolCall, ...] = ()
    returns: tuple[ToolReturned, ...] = ()
    writes: tuple[Wrote, ...] = ()
    reads: tuple[Read, ...] = ()  # since the last write
    surplus: tuple[ToolCall, ...] = ()  # proposed in the last step, beyond its limit
    usage: Usage = Usage()
    answer: Answered | None = None

    def after(self, event: Event) -> State:
        """Return the state after an event."""
        following = replace(self, step=event.step)
        match event:
            case Started(question=question, attachments=files, start=start, limits=limits):
                spelled = limits.get("writing") == "statements"
                return replace(following, question=question, attachments=files, start=start, spelled=spelled)
            case Asked(usage=usage):
                return replace(following, usage=self.usage + usage)
            case Voted(choice=choice):
                return replace(following, step=event.step + (choice == "INSERT"))
            case Chose(calls=calls, surplus=surplus):
                return replace(following, calls=(*self.calls, *calls), surplus=surplus)
            case ToolReturned():
                still_made = tuple(c for c in self.calls if c != event.call) if event.again else self.calls
                return replace(following, returns=(*self.returns, event), calls=still_made)
            case Wrote():
                return replace(following, writes=(*self.writes, event), reads=())
            case Read():
                return replace(following, reads=(*self.reads, event))
            case Answered():
                return replace(following, answer=event)
            case _:
                return following

    @property
    def diffs(self) -> tuple[Diff, ...]:
        """All changes to the graph so far, in order.

        Applied to the initial graph, they give the present one.
        """
        return tuple(write.diff for write in self.writes)

    @property
    def sentences(self) -> frozenset[str]:
        """The sentences that facts of the graph were taken from."""
        written = (edge for diff in self.diffs for edge in diff.written_edges)
        return supporting_sentences((*self.start.edges, *written))

    def known_rows(self, statement: str, dialect: str = "") -> Rows | None:
        """Return the rows that a statement read since the graph last changed, or None if it was not read.

        An empty dialect means the run's own.
        """
        key = statement, dialect
        return next((r.grounded for r in reversed(self.reads) if (r.statement, r.dialect) == key), None)

    @property
    def is_forced(self) -> bool:
        """True when no read of the present graph has given rows."""
        return not any(read.grounded for read in self.reads)


def state_after(events: Iterable[Event]) -> State:
    """Return the state after all events of a run."""
    state = State()
    for event in events:
        state = state.after(event)
    return state


# The ledger: model calls of a run and their costs, derived from its events.


@dataclass(frozen=True)
class Entry:
    """One model call."""

    run: str
    step: int
    role: Role
    model: str
    prompt: str
    reply: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    cost: float  # US dollars


@dataclass(frozen=True)
class Ledger:
    """All model calls of a run, in order."""

    entries: tuple[Entry, ...]

    @property
    def total(self) -> Usage:
        """All of it."""
        return Usage.total(_usage(entry) for entry in self.entries)

    @property
    def without_usage(self) -> int:
        """Number of replies from a server that does not report all tokens.

        A call with text in its reply reads and writes some.
        """
        replied = (e for e in self.entries if e.reply and not e.role.is_inside)
        return sum(not (entry.prompt_tokens and entry.completion_tokens) for entry in replied)

    def by_role(self) -> dict[str, tuple[int, Usage]]:
        """Return the number of calls and their total cost for each role."""
        roles = dict.fromkeys(entry.role for entry in self.entries)
        chosen = {role: [entry for entry in self.entries if entry.role == role] for role in roles}
        return {role: (len(entries), Usage.total(map(_usage, entries))) for role, entries in chosen.items()}

    def save(self, path: str | Path) -> None:
        """Write the entries as JSON lines."""
        text = "".join(json.dumps(asdict(entry), ensure_ascii=False) + "\n" for entry in self.entries)
        write_atomically(path, text, "the ledger")

    def __repr__(self) -> str:
        rows = [*self.by_role().items(), ("all", (len(self.entries), self.total))]
        lines = [f"{'role':16}{'calls':>6}{'read':>8}{'written':>9}{'seconds':>9}{'dollars':>9}"]
        for role, (calls, usage) in rows:
            tokens = f"{usage.prompt_tokens:8}{usage.completion_tokens:9}"
            lines.append(f"{role:16}{calls:6}{tokens}{usage.seconds:9.1f}{usage.cost:9.4f}")
        return "\n".join(lines)


def ledger(events: Iterable[Event], run: str = "") -> Ledger:
    """Build the ledger of a run from its events."""
    return Ledger(tuple(_entry(event, run) for event in events if isinstance(event, Asked)))


def _entry(event: Asked, run: str) -> Entry:
    prompt = "\n\n".join(f"{message.role}: {message.text}" for message in event.prompt.messages)
    used = event.usage
    spent = used.prompt_tokens, used.completion_tokens, used.seconds, used.cost
    return Entry(run, event.step, event.role, event.model, prompt, event.reply, *spent)


def _usage(entry: Entry) -> Usage:
    return Usage(entry.prompt_tokens, entry.completion_tokens, entry.seconds, entry.cost)
