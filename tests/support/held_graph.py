"""A graph in memory that takes changes, as a store does."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import RLock

from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Diff


@dataclass
class HeldGraph:
    """A graph in memory that takes changes."""

    held: PropertyGraph
    _lock: RLock = field(default_factory=RLock, repr=False)

    def graph(self) -> PropertyGraph:
        return self.held

    def apply(self, diff: Diff) -> None:
        with self._lock:
            self.held = self.held.apply(diff)
