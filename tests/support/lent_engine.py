"""The engine of Cypher, which takes a second or two to start: lent to one store after another, to each as if
it were new.
"""

from __future__ import annotations

from collections.abc import Sequence

from kgot_lab.sandbox import Sandbox, open_sandbox
from kgot_lab.types import Diff, Edge, Node, Rows

_IDLE: list[Sandbox] = []  # handed back, empty


class LentEngine:
    """Runs the statements of one store: taken at the first of them, as a store opens its own, and handed back
    empty where the store closes.

    No two stores have one engine at a time: where another has it, a new one is started.
    """

    def __init__(self) -> None:
        self._taken: Sandbox | None = None

    def write(self, statement: str) -> Diff:
        return self._engine().write(statement)

    def read(self, statement: str, without: Sequence[Edge] = ()) -> Rows:
        return self._engine().read(statement, without)

    def apply(self, diff: Diff) -> None:
        self._engine().apply(diff)

    def reset(self, nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> None:
        self._engine().reset(nodes, edges)

    def compute(self, code: str, *, seconds: float | None = None) -> str:
        return self._engine().compute(code, seconds=seconds)

    def close(self) -> None:
        if self._taken is None:
            return
        engine, self._taken = self._taken, None
        if _IDLE:
            engine.close()
        else:
            # what this store knew, the next one must not find: it is to tell the engine its own graph
            engine.reset((), ())
            _IDLE.append(engine)

    def _engine(self) -> Sandbox:
        if self._taken is None:
            self._taken = _IDLE.pop() if _IDLE else open_sandbox(language="cypher")
        return self._taken
