"""What a run asked and what it cost: a view of its events, nothing is noted twice."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from kgot_lab.io.files import write_whole
from kgot_lab.loop.events import Asked, Event
from kgot_lab.types import Usage


@dataclass(frozen=True)
class Entry:
    """One question asked of a model."""

    run: str
    step: int
    role: str
    model: str
    prompt: str
    reply: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    cost: float  # US dollars


@dataclass(frozen=True)
class Ledger:
    """Every question asked in a run, in order."""

    entries: tuple[Entry, ...]

    @property
    def total(self) -> Usage:
        """All of it."""
        return Usage.total(_usage(entry) for entry in self.entries)

    @property
    def untold(self) -> int:
        """How many replies came from a server that does not tell all tokens: a call with words in its reply
        reads some and writes some.
        """
        return sum(
            bool(entry.reply) and not _tells(entry) and not entry.role.startswith("inside ")
            for entry in self.entries
        )

    def by_role(self) -> dict[str, tuple[int, Usage]]:
        """For each role, how many calls and what they cost together."""
        roles = dict.fromkeys(entry.role for entry in self.entries)
        chosen = {role: [entry for entry in self.entries if entry.role == role] for role in roles}
        return {role: (len(entries), Usage.total(map(_usage, entries))) for role, entries in chosen.items()}

    def save(self, path: str | Path) -> None:
        """Write the entries as JSON lines."""
        write_whole(
            path,
            "".join(json.dumps(asdict(entry), ensure_ascii=False) + "\n" for entry in self.entries),
            "the ledger",
        )

    def __repr__(self) -> str:
        rows = [
            *((role, calls, usage) for role, (calls, usage) in self.by_role().items()),
            ("all", len(self.entries), self.total),
        ]
        lines = [f"{'role':16}{'calls':>6}{'read':>8}{'written':>9}{'seconds':>9}{'dollars':>9}"]
        for role, calls, usage in rows:
            lines.append(
                f"{role:16}{calls:6}{usage.prompt_tokens:8}{usage.completion_tokens:9}{usage.seconds:9.1f}{usage.cost:9.4f}"
            )
        return "\n".join(lines)


def ledger(events: Iterable[Event], run: str = "") -> Ledger:
    """The ledger of a run's events."""
    return Ledger(tuple(_entry(event, run) for event in events if isinstance(event, Asked)))


def _entry(event: Asked, run: str) -> Entry:
    prompt = "\n\n".join(f"{message.role}: {message.text}" for message in event.prompt.messages)
    used = event.usage
    return Entry(
        run,
        event.step,
        event.role,
        event.model,
        prompt,
        event.reply,
        used.prompt_tokens,
        used.completion_tokens,
        used.seconds,
        used.cost,
    )


def _tells(entry: Entry) -> bool:
    return bool(entry.prompt_tokens and entry.completion_tokens)


def _usage(entry: Entry) -> Usage:
    return Usage(entry.prompt_tokens, entry.completion_tokens, entry.seconds, entry.cost)
