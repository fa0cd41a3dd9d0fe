"""How well each node of a graph matches a question: by meaning where there is an embedder, else by the words
they share.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import index_of
from kgot_lab.text.words import searched_words, stem


class NodeMatches:
    """The nodes of a graph as questions are matched with them; a match is from 0 to 1.

    By meaning it is the cosine of the node's text with the question, at least 0. By words it is the share of
    the question's words that the node holds, each word w weighing log(1 + (n - n_w + .5) / (n_w + .5)) as in
    BM25, where n_w of n nodes hold it.
    """

    def __init__(self, graph: PropertyGraph, embedder: Embedder | None = None) -> None:
        self.graph, self._index = graph, index_of(graph)
        self._meaning = self._index.meaning(embedder) if embedder is not None else None

    def of(self, question: str) -> NDArray[np.float64]:
        """The match of each node by row, shape (nodes,)."""
        found = np.zeros(len(self.graph))
        if self._meaning is not None:
            for id, score in self._meaning.search(question).hits:
                found[self.graph.row(id)] = min(1.0, max(0.0, score))
            return found
        total, count = 0.0, len(self.graph)
        for word in {stem(each) for each in searched_words(question)}:
            rows = self._index.of_stem.get(word, frozenset())
            weight = float(np.log(1 + (count - len(rows) + 0.5) / (len(rows) + 0.5)))
            found[list(rows)] += weight
            total += weight
        return found / total if total else found

    def unknown(self, question: str) -> tuple[str, ...]:
        """The words of a question that no node holds, in their order."""
        return tuple(
            dict.fromkeys(word for word in searched_words(question) if stem(word) not in self._index.of_stem)
        )
