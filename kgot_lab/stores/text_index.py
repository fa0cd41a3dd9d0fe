"""Which nodes have which words: the search of a graph that is kept in this process."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from heapq import nsmallest

from kgot_lab.text.words import folded_words
from kgot_lab.types import Json, Node

_WORD = re.compile(r"\w+")
_NAME_WEIGHT = 2.0  # a word in a node's name says more than one in its properties


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
        """The ids that share most with some words; a rare word counts more (inverse document frequency), ties
        go to the shorter id.
        """
        scores: dict[str, float] = {}
        for word in dict.fromkeys(words):
            nodes = self._nodes.get(word, {})
            rarity = math.log1p(self._size / len(nodes)) if nodes else 0.0
            for id, weight in nodes.items():
                scores[id] = scores.get(id, 0.0) + weight * rarity
        return nsmallest(limit, scores, key=lambda id: (-scores[id], len(id), id))


def _weights(node: Node) -> dict[str, float]:
    weights = dict.fromkeys(
        (word for value in node.properties.values() for text in _texts(value) for word in folded_words(text)),
        1.0,
    )
    return weights | dict.fromkeys(folded_words(node.id), _NAME_WEIGHT)


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str | int | float):
        yield str(value)
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
