"""What a room of the fire found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
    """How many cases a room ran, and the distinct faults it met: a name, and the smallest case that shows it."""

    room: str
    cases: int
    faults: dict[str, str]
