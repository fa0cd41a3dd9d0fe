"""The protocols of a store, and the values in which graph languages differ."""

from __future__ import annotations

import tomllib
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import inverse
from kgot_lab.io.processes import Closing
from kgot_lab.types import Diff, Edge, Json, Node, Rows, Triple

Scalar = str | int | float
Fact = tuple[Triple, Mapping[str, Json]]  # a triple and the properties of its edge


class StatementConstants(NamedTuple):
    """What a read statement returns regardless of the graph.

    Says whether it reads the graph at all, and which columns or values are constants.
    """

    reads_graph: bool = True
    columns: frozenset[str] = frozenset()
    values: frozenset[tuple[type, Scalar]] = frozenset()  # with their types, since 1, 1.0 and True are equal


@dataclass(frozen=True)
class Dialect:
    """A graph language, as the prompts describe it to a model."""

    name: str  # "Python (NetworkX)"
    how_to_write: str
    how_to_read: str
    write_example: str
    read_example: str
    add: Callable[[Sequence[Fact]], str] = field(repr=False)  # the statement that adds some facts
    # the statement that reads the facts within some hops of some names
    about: Callable[[Sequence[str], int], str] = field(repr=False)
    paths: Callable[[Sequence[str], Mapping[str, float], int], str] = field(repr=False)
    # the statement that reads chains of sentences: names, relevance score of each sentence by its node,
    # number of rows
    node: Callable[[Node], str] = field(repr=False)  # a node in the notation of the language, for a prompt
    edge: Callable[[Edge], str] = field(repr=False)
    # the statement that gives nodes their labels, and properties beside those they have
    label: Callable[[Sequence[Node]], str] = field(repr=False)
    # of a read statement: its constants
    constants: Callable[[str], StatementConstants] = field(default=lambda _: StatementConstants(), repr=False)


# the texts of each Dialect, by language
DIALECT_TEXTS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("dialects.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Schema:
    """The number of elements of a graph by label and type, which a prompt shows first."""

    labels: Mapping[str, int]
    relations: Mapping[str, int]
    nodes: int
    edges: int


class GraphStore(Protocol):
    """A graph with statements in its own language."""

    @property
    def dialect(self) -> Dialect: ...
    def write(self, statement: str) -> Diff: ...  # raises QueryFailed; applies what it returns
    def read(self, statement: str) -> Rows: ...  # raises QueryFailed; cannot write
    def graph(self) -> PropertyGraph: ...
    def apply(self, diff: Diff) -> None: ...
    def close(self) -> None: ...


class Browsable(Protocol):
    """A store that can be queried without reading all of it."""

    def schema(self) -> Schema: ...
    def neighbours(self, id: str) -> tuple[Edge, ...]: ...
    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]: ...


@runtime_checkable
class PartialReader(Protocol):
    """A store that can run a read as if some edges were missing. See `opening.partial_reads`."""

    def read_without(self, statement: str, edges: Sequence[Edge]) -> Rows: ...  # raises QueryFailed


class GraphSize(NamedTuple):
    """The number of nodes and edges."""

    nodes: int
    edges: int


class UndoableStore(Closing):
    """A store that can undo the diffs of its writes."""

    @abstractmethod
    def apply(self, diff: Diff) -> None:
        """Apply a diff, or raise BadInput if it does not fit the graph."""

    def undo(self, diff: Diff) -> None:
        """Undo a diff.

        Raises BadInput if the graph has changed in the same elements since.
        """
        self.apply(inverse(diff))


class Store(GraphStore, Browsable, Protocol):
    """The store that the loop needs: a graph that runs statements and can be read."""


@runtime_checkable
class PythonRunner(Protocol):
    """An object that runs plain Python, isolated from any graph: a sandbox, or a store that has one."""

    # what the code printed; raises QueryFailed
    def compute(self, code: str, *, seconds: float | None = None) -> str: ...


def readers(store: Store) -> tuple[Store, ...]:
    """Return the stores that mirror this one in other languages, for additional queries. See `open_fused`."""
    mirrors: tuple[Store, ...] = getattr(store, "readers", ())
    return mirrors


class StatementExecutor(Protocol):
    """Runs one statement in isolation against a copy of the graph.

    A store sends it every diff that it accepted.
    """

    def write(self, statement: str) -> Diff: ...  # raises QueryFailed; does not apply it
    def read(self, statement: str, without: Sequence[Edge] = ()) -> Rows: ...  # raises QueryFailed
    def apply(self, diff: Diff) -> None: ...
    def reset(self, nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> None: ...
    # plain Python, no graph: what it printed; raises QueryFailed
    def compute(self, code: str, *, seconds: float | None = None) -> str: ...
    def close(self) -> None: ...
