"""What a store must do, and the values that make one graph language differ from another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Diff, Edge, Node, Rows


@dataclass(frozen=True)
class Dialect:
    """A graph language, as the prompts describe it to a model."""

    name: str  # "Python (NetworkX)"
    how_to_write: str
    how_to_read: str
    write_example: str
    read_example: str


@dataclass(frozen=True)
class Schema:
    """What a graph holds, by count: the first thing a prompt shows of it."""

    labels: Mapping[str, int]
    relations: Mapping[str, int]
    nodes: int
    edges: int


class GraphStore(Protocol):
    """A graph that takes statements in its own language."""

    @property
    def dialect(self) -> Dialect: ...
    def write(self, statement: str) -> Diff: ...  # raises QueryFailed; applies what it returns
    def read(self, statement: str) -> Rows: ...  # raises QueryFailed; cannot write
    def graph(self) -> PropertyGraph: ...
    def apply(self, diff: Diff) -> None: ...
    def close(self) -> None: ...


class Browsable(Protocol):
    """A store that can be looked into without reading all of it."""

    def schema(self) -> Schema: ...
    def neighbours(self, id: str) -> tuple[Edge, ...]: ...
    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]: ...


class Store(GraphStore, Browsable, Protocol):
    """Both at once: what the loop needs."""


class Execute(Protocol):
    """Runs one statement somewhere safe, against the graph it was given; a store hands it every diff that it accepted."""

    def write(self, statement: str) -> Diff: ...  # raises QueryFailed; does not apply it
    def read(self, statement: str) -> Rows: ...  # raises QueryFailed
    def apply(self, diff: Diff) -> None: ...
    def reset(self, nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> None: ...
    def compute(self, code: str) -> str: ...  # plain Python, no graph: what it printed; raises QueryFailed
    def close(self) -> None: ...


