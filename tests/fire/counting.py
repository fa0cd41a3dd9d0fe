"""What a room says after it was held under fire."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Counts:
    """How many cases a room ran, and its distinct faults: a name for each, and the smallest input that shows it."""

    room: str
    cases: int
    faults: dict[str, str] = field(default_factory=dict)
