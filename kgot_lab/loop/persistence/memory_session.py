"""A memory that a question is asked with: what the run begins with, what its tools leave out, and what it
leaves behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.loop.persistence import (
    MOST_REMEMBERED,
    InitialGraph,
    LearntRun,
    SameSources,
    SourceDistinguisher,
    learn_run,
    remembered_near,
    without_retracted,
)
from kgot_lab.loop.trace import Trace
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.claims import Claims, open_claims
from kgot_lab.stores.protocol import Store
from kgot_lab.tools.tool import Tool


@dataclass(frozen=True)
class MemorySession:
    """A memory, what is believed at the time that is asked about, and what of it a question begins with."""

    claims: Claims
    beliefs: Beliefs
    begun: InitialGraph
    looks_only: bool  # a question about an earlier time learns nothing
    sources: SameSources

    def fill(self, store: Store) -> None:
        """Put what the question begins with into an empty store; raises BadInput for one that holds a graph."""
        if store.schema().nodes:
            raise BadInput(
                "the store holds a graph, and a memory is what a question begins with: leave one of them out"
            )
        if self.begun.facts:
            store.apply(store.graph().diff(self.begun.graph))

    def tools(self, tools: Collection[Tool]) -> list[Tool]:
        """Tools that tell nothing of the sources that were retracted, nor of other texts as if they were what
        was read before.
        """
        return without_retracted(
            [SourceDistinguisher(tool, self.sources) for tool in tools], self.beliefs.retracted_sources()
        )

    def learn(self, run: Trace) -> LearntRun:
        """Learn what a run wrote; see `learn_run`."""
        learnt = learn_run(self.claims, run, self.beliefs if self.looks_only else None)
        return replace(learnt, remarks=tuple(self.sources.remarks.values()))


@contextmanager
def open_memory_session(
    where: str | Path | Beliefs, question: str, *, at: datetime | None = None, most: int = MOST_REMEMBERED
) -> Iterator[MemorySession]:
    """A memory for a question: a file of claims, made if there is none, or Claims, which stay open.

    Beliefs, as `Claims.as_of` gives them, and a file `at` a time are what was believed then of what was true
    then, and learn nothing. Raises what `open_claims` raises.
    """
    looked_at = where if isinstance(where, Beliefs) else open_claims(where, new=at is None)
    claims = looked_at if isinstance(looked_at, Claims) else Claims(looked_at.storage, now=looked_at.now)
    try:
        beliefs = (
            claims.as_of(at, at if at is not None else claims.now()) if looked_at is claims else looked_at
        )
        looks_only = at is not None or looked_at is not claims
        yield MemorySession(
            claims, beliefs, remembered_near(beliefs, question, most=most), looks_only, SameSources(beliefs)
        )
    finally:
        if looked_at is not where:
            claims.close()
