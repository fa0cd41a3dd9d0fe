"""Search results: nodes with the parts of their scores, neighbours, edges, limitations, and a trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kgot_lab.arguments import check_arguments
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.compose_for import Composition
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.goals import Limitation
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.kgos.methods.intents import Intents
from kgot_lab.retrieval.fusion import Weights
from kgot_lab.text.cleaning import format_count, printable_line
from kgot_lab.types import Edge, Ranking


class ScoredNode(NamedTuple):
    """A node with its score, the retrievers that found it and what each added, the path of the graph
    retriever, and the nodes merged into it.
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


class NeighbourNode(NamedTuple):
    """A neighbour of one of the first nodes: the edge to it, and whether it passes the filters."""

    id: str
    name: str
    type: str
    path: str
    within: bool


class MethodCall(NamedTuple):
    """A method that a search invoked, the reason, and its outcome."""

    method: str
    reason: str
    found: str

    def __str__(self) -> str:
        return f"{self.method}: {self.reason} → {self.found}"


class ReachedBy(NamedTuple):
    """How the graph retriever reached a node: the seed and the edge."""

    seed: str
    edge: Edge


@dataclass(frozen=True, repr=False, eq=False)
class SearchResult(MethodResult):
    """The nodes that answer a query, best first.

    `answers` are those of the invoked methods, by name.
    """

    intents: Intents
    nodes: tuple[ScoredNode, ...]
    neighbours: tuple[NeighbourNode, ...]
    edges: tuple[Edge, ...]
    # by id, of the nodes, the nodes merged into them, and the neighbours
    limitations: Mapping[str, tuple[Limitation, ...]]
    answers: Mapping[str, MethodResult]
    weights: Weights
    trace: tuple[MethodCall, ...]
    ranking: Ranking
    graph: PropertyGraph = field(hash=False)
    seeds: tuple[str, ...] = ()  # of the graph retriever, best first
    # for each of the nodes that the graph retriever reached
    followed: Mapping[str, ReachedBy] = field(default_factory=dict)

    COLUMNS = ScoredNode._fields

    @property
    def query(self) -> str:
        """The query."""
        return self.intents.query

    @property
    def why(self) -> tuple[str, ...]:  # type: ignore[override]
        """The invoked methods, each with its reason and outcome."""
        return (*map(str, self.trace), *filter(None, [graph_index(self.graph).calls_note]))

    @property
    def title(self) -> str:
        intent = f"{self.intents.best.name} {self.intents.best.score:g}" if self.intents.best else "none"
        return f"search for {self.query!r}: {format_count(len(self.nodes), 'node')}, intent {intent}, purpose {self.intents.purpose}"


# Format a search result for a prompt, with every limitation of its nodes.


@check_arguments
def search_context(result: SearchResult) -> str:
    """Format the nodes and neighbours of a search with descriptions, edges and limitations, then the plan.

    All limitations of each node are included. Each node is formatted on lines of its own, whatever its texts
    contain. The texts are untrusted and not marked as such, so put a fence around the whole
    (`kgot_lab.text.cleaning.fence_text`).
    """
    note = graph_index(result.graph).calls_note
    return "\n".join([*_format_nodes(result), *_format_plan(result), *filter(None, [printable_line(note)])])


def _format_nodes(result: SearchResult) -> Iterator[str]:
    leaving: dict[str, list[str]] = {}
    for edge in result.edges:
        leaving.setdefault(edge.source, []).append(f"  --[{edge.type}]--> {edge.target}")
    for node in result.nodes:
        sources = ", ".join(node.sources)
        yield printable_line(f"{node.name} (node: {sources}; type: {node.type}; score: {node.score:.2f})")
        yield from _format_description(result, node.id)
        yield from (printable_line(edge) for id in node.sources for edge in leaving.get(id, ()))
        limitations = [each for id in node.sources for each in result.limitations.get(id, ())]
        yield from _format_limitations(dict.fromkeys(limitations))
    if result.neighbours:
        yield "Around these:"
    for near in result.neighbours:
        outside = "" if near.within else "; outside the filter"
        yield printable_line(f"{near.name} (node: {near.id}; type: {near.type}{outside}): {near.path}")
        yield from _format_limitations(result.limitations.get(near.id, ()))


def _format_description(result: SearchResult, id: str) -> Iterator[str]:
    text = result.graph.node_properties[result.graph.row(id)].get("description")
    if text:
        yield printable_line(f"  {text}")


def _format_limitations(limitations: Iterable[Limitation]) -> Iterator[str]:
    for limitation in limitations:
        described = f": {limitation.description.rstrip(' .')}" if limitation.description else ""
        helps = (
            f"; what helps: {', '.join(limitation.workarounds)}"
            if limitation.workarounds
            else "; no workaround is known" * limitation.blocking
        )
        yield printable_line(f"  Limitation: {limitation.name} (node: {limitation.id}){described}{helps}")


def _format_plan(result: SearchResult) -> Iterator[str]:
    plan = result.answers.get("compose_for")
    if isinstance(plan, Composition) and plan.steps:
        yield "A plan:"
        for number, step in enumerate(plan.steps, start=1):
            yield printable_line(f"  {number}. {step.name} (node: {step.tool}): {step.action}")
        yield from (printable_line(f"  needed first: {prerequisite}") for prerequisite in plan.prerequisites)
        yield from (printable_line(f"  warning: {warning}") for warning in plan.warnings)
