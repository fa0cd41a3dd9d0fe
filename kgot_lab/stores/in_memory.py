"""A graph kept in this process and written to in Python with NetworkX, which runs in a sandbox."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from typing import TYPE_CHECKING

from kgot_lab.errors import BadInput, QueryFailed
from kgot_lab.sandbox import open_sandbox
from kgot_lab.sandbox.truth import Truth, inverse
from kgot_lab.stores.protocol import Dialect, Execute, Schema
from kgot_lab.types import Diff, Edge, Json, Node, Rows

if TYPE_CHECKING:
    from kgot_lab.graph import PropertyGraph

PYTHON = Dialect(
    name="Python (NetworkX)",
    how_to_write=(
        "Write plain Python that changes the graph G, a networkx.MultiDiGraph; nx is imported.\n"
        "add(subject, relation, object, subject_label=..., object_label=..., **properties) adds a fact and its two nodes.\n"
        "node(id, label, **properties) adds a node or adds to it. A node's id is its name, as text; every node has a label.\n"
        "Values: text, numbers, True, False, lists of these. To remove: G.remove_node(id), G.remove_edge(subject, object, relation).\n"
        "Never assign to G. No imports, files or network are needed."
    ),
    how_to_read=(
        "Write plain Python that reads the graph G, a networkx.MultiDiGraph, and puts the answer into result. It must not change G.\n"
        "facts(about=None, relation=None, hops=1) lists facts near a name, or all, as dicts: subject, relation, object, own properties.\n"
        "names(label=None) lists node ids. G.nodes[id] is a node's properties with its label; an edge's data has its type under relation."
    ),
    write_example='add("Marie Curie", "won", "Nobel Prize in Physics", subject_label="Person", object_label="Prize", year=1903)',
    read_example='result = [fact["object"] for fact in facts("Marie Curie", "won") if fact["year"] < 1910]',
)

_WORD = re.compile(r"\w+")
_NAME_WEIGHT = 2.0  # a word in a node's name says more than one in its properties


def words_of(text: str) -> list[str]:
    """The words of a text as they are compared: folded, underscores as spaces."""
    return _WORD.findall(text.casefold().replace("_", " "))


class InMemory:
    """A store whose statements are Python; `execute` runs them, for this store alone, and is by default a sandbox opened at the first.

    Raises NoSandbox at that statement if there is none: applying diffs and looking around need no sandbox.
    """

    dialect = PYTHON

    def __init__(self, execute: Execute | None = None, *, open: Callable[[], Execute] = open_sandbox):
        self._truth, self._words = Truth(), WordIndex()
        self._labels, self._relations = Counter[str](), Counter[str]()
        self._execute, self._open, self._told = execute, open, False

    def __repr__(self) -> str:
        return f"<InMemory: {len(self._truth.nodes)} nodes, {len(self._truth.edges)} edges>"

    def __enter__(self) -> InMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, statement: str) -> Diff:
        """Run a statement and keep what it changed; raises QueryFailed, changing nothing."""
        execute = self._running()
        diff = execute.write(statement)
        try:
            self._keep(diff)
        except BadInput as error:
            raise QueryFailed(statement, str(error)) from None
        execute.apply(diff)
        return diff

    def read(self, statement: str) -> Rows:
        """The rows a statement puts into `result`; raises QueryFailed."""
        return self._running().read(statement)

    def compute(self, code: str) -> str:
        """What plain Python prints, or its last expression's value, away from the graph; raises QueryFailed."""
        return self._opened().compute(code)

    def graph(self) -> PropertyGraph:
        """The whole graph as it is now."""
        from kgot_lab.graph import PropertyGraph

        return PropertyGraph.of(self._truth.nodes.values(), self._truth.edges.values())

    def apply(self, diff: Diff) -> None:
        """Make a diff part of the graph, for example an earlier write's; raises BadInput when it does not fit."""
        self._keep(diff)
        if self._told and self._execute is not None:
            self._execute.apply(diff)

    def undo(self, diff: Diff) -> None:
        """Take a diff back; raises BadInput when the graph has changed since in the same places."""
        self.apply(inverse(diff))

    def close(self) -> None:
        """End the sandbox; the graph stays, and a later statement starts another."""
        if self._execute is not None:
            self._execute.close()

    def schema(self) -> Schema:
        """How many nodes have each label and how many edges each type, by name."""
        return Schema(
            dict(sorted(self._labels.items())), dict(sorted(self._relations.items())), len(self._truth.nodes), len(self._truth.edges)
        )

    def neighbours(self, id: str) -> tuple[Edge, ...]:
        """A node's edges, both ways, oldest first; none if there is no such node."""
        return tuple(self._truth.edges[identity] for identity in self._truth.incident.get(id, ()))

    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]:
        """The nodes that share words with a query, in their name or properties, best first."""
        return tuple(self._truth.nodes[id] for id in self._words.best(words_of(words), limit))

    def _opened(self) -> Execute:
        if self._execute is None:
            self._execute = self._open()
        return self._execute

    def _running(self) -> Execute:
        execute = self._opened()
        if not self._told:
            execute.reset(tuple(self._truth.nodes.values()), tuple(self._truth.edges.values()))
            self._told = True
        return execute

    def _keep(self, diff: Diff) -> None:
        self._truth.apply(diff)
        for node in (*diff.removed_nodes, *(before for before, _ in diff.changed_nodes)):
            self._words.remove(node)
            self._labels.subtract(node.labels)
        for node in (*diff.added_nodes, *(after for _, after in diff.changed_nodes)):
            self._words.add(node)
            self._labels.update(node.labels)
        self._relations.subtract(edge.type for edge in diff.removed_edges)
        self._relations.update(edge.type for edge in diff.added_edges)
        for counter, names in ((self._labels, _labels(diff)), (self._relations, (edge.type for edge in diff.removed_edges))):
            for name in set(names):
                if not counter[name]:
                    del counter[name]


def _labels(diff: Diff) -> Iterator[str]:
    for node in (*diff.removed_nodes, *(before for before, _ in diff.changed_nodes)):
        yield from node.labels


class WordIndex:
    """Which nodes have which words, kept up to date node by node."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, float]] = {}
        self._size = 0

    def add(self, node: Node) -> None:
        """Take a node's words in."""
        self._size += 1
        for word, weight in _weights(node).items():
            self._nodes.setdefault(word, {})[node.id] = weight

    def remove(self, node: Node) -> None:
        """Take a node's words out, as they were when it was added."""
        self._size -= 1
        for word in _weights(node):
            nodes = self._nodes[word]
            del nodes[node.id]
            if not nodes:
                del self._nodes[word]

    def best(self, words: Iterable[str], limit: int) -> list[str]:
        """The ids that share most with some words; a rare word counts more (inverse document frequency), ties go to the shorter id."""
        scores: dict[str, float] = {}
        for word in dict.fromkeys(words):
            nodes = self._nodes.get(word, {})
            rarity = math.log1p(self._size / len(nodes)) if nodes else 0.0
            for id, weight in nodes.items():
                scores[id] = scores.get(id, 0.0) + weight * rarity
        return nsmallest(limit, scores, key=lambda id: (-scores[id], len(id), id))


def _weights(node: Node) -> dict[str, float]:
    weights = dict.fromkeys((word for value in node.properties.values() for text in _texts(value) for word in words_of(text)), 1.0)
    return weights | dict.fromkeys(words_of(node.id), _NAME_WEIGHT)


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str | int | float):
        yield str(value)
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


__all__ = ["PYTHON", "InMemory", "inverse"]
