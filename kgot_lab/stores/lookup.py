"""Look up nodes by words, values in a graph, and nodes within some hops."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest

from kgot_lab.arguments import check_arguments
from kgot_lab.graph import PropertyGraph
from kgot_lab.stores.protocol import Dialect, GraphStore, Scalar, Schema, Store
from kgot_lab.text.words import casefold_words
from kgot_lab.types import Edge, Json, Node

_WORD = re.compile(r"\w+")
_NAME_WEIGHT = 2.0  # weight of a word in a node's name, relative to one in its properties


class WordIndex:
    """An index from words to nodes, updated node by node."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, float]] = {}
        self._size = 0

    def add(self, node: Node) -> None:
        """Add the words of a node."""
        self._size += 1
        for word, weight in _word_weights(node).items():
            self._nodes.setdefault(word, {})[node.id] = weight

    def remove(self, node: Node) -> None:
        """Remove the words of a node, which must be as they were when it was added."""
        self._size -= 1
        for word in _word_weights(node):
            nodes = self._nodes[word]
            del nodes[node.id]
            if not nodes:
                del self._nodes[word]

    def best_matches(self, words: Iterable[str], limit: int) -> list[str]:
        """Return the ids of the nodes that share most with some words, best first.

        Words are weighted by inverse document frequency. Ties go to the shorter id.
        """
        scores: dict[str, float] = {}
        for word in dict.fromkeys(words):
            nodes = self._nodes.get(word, {})
            inverse_frequency = math.log1p(self._size / len(nodes)) if nodes else 0.0
            for id, weight in nodes.items():
                scores[id] = scores.get(id, 0.0) + weight * inverse_frequency
        return nsmallest(limit, scores, key=lambda id: (-scores[id], len(id), id))


def _word_weights(node: Node) -> dict[str, float]:
    texts = map(str, nested_scalars(node.properties))
    weights = dict.fromkeys((word for text in texts for word in casefold_words(text)), 1.0)
    return weights | dict.fromkeys(casefold_words(node.id), _NAME_WEIGHT)


# The values in a graph: the evidence for an answer is checked with these.


@check_arguments
def holds_value(store: GraphStore, value: Scalar) -> bool:
    """Return whether a store's graph contains a value exactly. See `graph_scalars`."""
    return value in graph_scalars(store.graph())


def graph_scalars(graph: PropertyGraph) -> Iterator[Scalar]:
    """Yield the texts and numbers in a graph: ids, labels, types, and values and list items of properties.

    Texts are equal character by character and numbers by value (1 equals 1.0). true is no number.
    """
    for node in graph.nodes:
        yield from (node.id, *node.labels, *nested_scalars(node.properties))
    for edge in graph.edges:
        yield from (edge.type, *nested_scalars(edge.properties))


def nested_scalars(value: Json) -> Iterator[Scalar]:
    """Yield the texts and numbers in a value, however deeply nested, but not the keys of objects."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from nested_scalars(item)


def nodes_within(start: str, hops: int, adjacent_ids: Callable[[list[str]], Iterable[str]]) -> dict[str, int]:
    """Return the nodes within some hops of a start, each with its distance.

    `adjacent_ids` returns the nodes that the edges of some nodes touch.
    """
    depth, frontier = {start: 0}, [start]
    for level in range(1, hops + 1):
        found = dict.fromkeys(end for end in adjacent_ids(frontier) if end not in depth)
        depth.update(dict.fromkeys(found, level))
        frontier = list(found)
        if not frontier:
            break
    return depth


class StoreWrapper:
    """A store that passes on to another whatever it does not do itself."""

    store: Store

    @property
    def dialect(self) -> Dialect:
        """The language of the other store."""
        return self.store.dialect

    def graph(self) -> PropertyGraph:
        """Return the whole graph in its current state."""
        return self.store.graph()

    def schema(self) -> Schema:
        """Count the nodes per label and the edges per type."""
        return self.store.schema()

    def neighbours(self, id: str) -> tuple[Edge, ...]:
        """Return a node's incoming and outgoing edges."""
        return self.store.neighbours(id)

    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]:
        """Return the nodes that share words with a query, best first."""
        return self.store.search(words, limit)

    def close(self) -> None:
        """Close the other store."""
        self.store.close()
