"""One graph that is asked in several languages: written to in one, mirrored into the others."""

from __future__ import annotations

from collections.abc import Collection
from threading import RLock
from typing import TYPE_CHECKING, Self

from kgot_lab.errors import BadInput, LabError, QueryFailed
from kgot_lab.graph.changes import inverse
from kgot_lab.stores.lookup import edges_between, holds_value
from kgot_lab.stores.protocol import Computer, Dialect, Scalar, Schema, Store
from kgot_lab.types import Diff, Edge, Node, Rows

if TYPE_CHECKING:
    from kgot_lab.graph import PropertyGraph


class Fused:
    """A store and its mirrors; the loop writes to the first, and asks all of them when it reads (`readers`).

    A write that a mirror cannot hold is taken back everywhere and refused.
    """

    def __init__(self, main: Store, *mirrors: Store):
        self._main, self.readers = main, mirrors
        self._alone = RLock()  # a write is made in all of them before the next

    def __repr__(self) -> str:
        return f"<Fused: {', '.join(map(repr, (self._main, *self.readers)))}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def dialect(self) -> Dialect:
        """The language that writes."""
        return self._main.dialect

    def write(self, statement: str) -> Diff:
        """Run a statement in the first store and make its diff true in the mirrors; raises QueryFailed,
        changing nothing.
        """
        with self._alone:
            diff = self._main.write(statement)
            try:
                self._mirror(diff)
            except LabError as error:
                self._main.apply(inverse(diff))
                if isinstance(error, BadInput):
                    raise QueryFailed(statement, str(error)) from None
                raise
            return diff

    def read(self, statement: str) -> Rows:
        """The rows a statement finds in the first store; raises QueryFailed."""
        return self._main.read(statement)

    def compute(self, code: str, *, seconds: float | None = None) -> str:
        """What plain Python prints, where one of the stores can run it; raises QueryFailed."""
        for store in (self._main, *self.readers):
            if isinstance(store, Computer):
                return store.compute(code, seconds=seconds)
        raise QueryFailed(code, "none of these stores runs plain Python")

    def graph(self) -> PropertyGraph:
        """The whole graph as it is now."""
        return self._main.graph()

    def apply(self, diff: Diff) -> None:
        """Make a diff part of the graph, in every store; raises BadInput, changing nothing."""
        with self._alone:
            self._main.apply(diff)
            try:
                self._mirror(diff)
            except LabError:
                self._main.apply(inverse(diff))
                raise

    def close(self) -> None:
        """Close every store."""
        for store in (self._main, *self.readers):
            store.close()

    def schema(self) -> Schema:
        """What the graph holds, by count."""
        return self._main.schema()

    def neighbours(self, id: str) -> tuple[Edge, ...]:
        """A node's edges, both ways."""
        return self._main.neighbours(id)

    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]:
        """The nodes that share words with a query, best first."""
        return self._main.search(words, limit)

    def holds(self, value: Scalar) -> bool:
        """Whether the graph holds a text or a number exactly; see `looking_up`."""
        return holds_value(self._main, value)

    def edges_between(self, ids: Collection[str]) -> tuple[Edge, ...]:
        """The edges whose two ends are both among some nodes."""
        return edges_between(self._main, ids)

    def _mirror(self, diff: Diff) -> None:
        for number, mirror in enumerate(self.readers):
            try:
                mirror.apply(diff)
            except LabError:
                for earlier in self.readers[:number]:
                    earlier.apply(inverse(diff))
                raise
