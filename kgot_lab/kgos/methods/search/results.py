"""What a search gives: nodes with the parts of their scores, their neighbours, edges and limitations, and
what was invoked and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.goals import Limitation
from kgot_lab.kgos.methods.intents import Intents
from kgot_lab.retrieval.presets import Weights
from kgot_lab.text.counted import counted
from kgot_lab.types import Edge, Ranking


class ScoredNode(NamedTuple):
    """A node with its score, the lanes that found it and what each added, the path of the graph lane, and all
    nodes that it stands for.
    """

    id: str
    name: str
    type: str
    score: float
    method: str
    embedding: float
    text: float
    graph: float
    intent: float
    path: str
    sources: tuple[str, ...]


class NearNode(NamedTuple):
    """A node near one of the first nodes: over which edge it was reached, and whether the filters would have
    kept it.
    """

    id: str
    name: str
    type: str
    path: str
    within: bool


class Invoked(NamedTuple):
    """A method that a search invoked, why, and what came of it."""

    method: str
    reason: str
    found: str

    def __str__(self) -> str:
        return f"{self.method}: {self.reason} → {self.found}"


class Followed(NamedTuple):
    """How the graph lane came to a node: the seed that it set out from, and the edge."""

    seed: str
    edge: Edge


@dataclass(frozen=True, repr=False, eq=False)
class SearchResult(MethodResult):
    """The nodes that answer a query, best first; `answers` are those of the methods invoked besides, by their
    names.
    """

    query: str
    intents: Intents
    nodes: tuple[ScoredNode, ...]
    neighbours: tuple[NearNode, ...]
    edges: tuple[Edge, ...]
    # of the nodes, of all that they stand for, and of the neighbours, by id
    limitations: Mapping[str, tuple[Limitation, ...]]
    answers: Mapping[str, MethodResult]
    weights: Weights
    trace: tuple[Invoked, ...]
    ranking: Ranking
    graph: PropertyGraph = field(hash=False)
    seeds: tuple[str, ...] = ()  # of the graph lane, best first
    # for each of the nodes that the graph lane came to
    followed: Mapping[str, Followed] = field(default_factory=dict)

    COLUMNS: ClassVar[tuple[str, ...]] = ScoredNode._fields

    @property
    def why(self) -> tuple[str, ...]:  # type: ignore[override]
        """What was invoked, with the reason for each and what came of it."""
        return tuple(map(str, self.trace))

    @property
    def title(self) -> str:
        intent = f"{self.intents.best.name} {self.intents.best.score:g}" if self.intents.best else "none"
        return f"search for {self.query!r}: {counted(len(self.nodes), 'node')}, intent {intent}, purpose {self.intents.purpose}"

    def rows(self) -> Sequence[ScoredNode]:
        return self.nodes
