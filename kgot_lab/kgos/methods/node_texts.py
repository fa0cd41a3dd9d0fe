"""The words of a graph: what each node is called, what its texts say, and the lanes that search them, each
made when first needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from kgot_lab.embedding.embedder import Embedder, checked_embedder
from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Ints
from kgot_lab.retrieval.dense import meaning, meaning_of_vectors
from kgot_lab.retrieval.fusion import strongest
from kgot_lab.retrieval.lexical import INTENT_VERBS, bm25, fts5, like
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.words import content_words, stem
from kgot_lab.types import Document, Json, full_text


def node_name(id: str, properties: Mapping[str, object]) -> str:
    """What a node is called: its name or title, or else its id."""
    return str(properties.get("name") or properties.get("title") or id)


class NodeTexts:
    """The texts of the nodes of a graph, by row, and the searches over them."""

    def __init__(self, graph: PropertyGraph) -> None:
        self.graph = graph
        self._meanings: dict[str, Stage] = {}
        self._of_vectors: dict[tuple[StoredVectors, str], Stage] = {}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each node is called: its name or title, or else its id."""
        return tuple(map(node_name, self.graph.ids, self.graph.node_properties))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The labels of each node, as a text."""
        return tuple(map(" ".join, self.graph.node_labels))

    @cached_property
    def name_stems(self) -> tuple[frozenset[str], ...]:
        """The stems of the words in each name."""
        return tuple(frozenset(stem(word) for word in content_words(_spaced(name))) for name in self.names)

    @cached_property
    def of_stem(self) -> dict[str, frozenset[int]]:
        """The rows of the nodes that hold a word with each stem."""
        stems = tuple(
            {stem(word) for word in content_words(full_text(document))} for document in self.documents
        )
        return {word: frozenset(rows.tolist()) for word, rows in rows_by(stems).items()}

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """Each node as a text that can be searched: its name as the title, then its labels and whatever its
        properties say in words.
        """
        return tuple(
            Document(id, _spaced(f"{kind}. {' '.join(_texts(known, ('name', 'title')))}"), _spaced(name))
            for id, name, kind, known in zip(
                self.graph.ids, self.names, self.kinds, self.graph.node_properties, strict=True
            )
        )

    @cached_property
    def substrings(self) -> Stage:
        """LIKE over names, labels and properties."""
        return like(self.documents)

    @cached_property
    def bm25(self) -> Stage:
        """BM25 over the documents."""
        return bm25(self.documents)

    @cached_property
    def fts5(self) -> Stage:
        """SQLite's full-text search over the documents."""
        return fts5(self.documents)

    @cached_property
    def text(self) -> Stage:
        """The text lane of KG-OS: BM25 and FTS5, each over its maximum, and of the two the larger."""
        return strongest(self.bm25, self.fts5)

    @cached_property
    def goals(self) -> Stage:
        """The text lane of a goal: BM25 with k1 1.5, b .75 and the intent verbs five times as heavy, and
        FTS5, which cannot weigh words.
        """
        return strongest(bm25(self.documents, k1=1.5, b=0.75, emphasis=INTENT_VERBS), self.fts5)

    def meaning(self, embedder: Embedder) -> Stage:
        """The nodes by the cosine of their text with the query; their vectors are made when an embedder is
        first given.
        """
        checked_embedder(embedder)
        if embedder.digest not in self._meanings:
            self._meanings[embedder.digest] = meaning(self.documents, embedder)
        return self._meanings[embedder.digest]

    def meaning_of(self, vectors: StoredVectors, embedder: Embedder) -> Stage:
        """The nodes by the cosine of their stored vector with the query; raises BadInput where none has one,
        or for another embedder.
        """
        checked_embedder(embedder)
        kept = vectors, embedder.digest
        if kept not in self._of_vectors:
            rows = [row for row, id in enumerate(vectors.ids) if id in self.graph]
            if not rows:
                near = ", ".join(map(repr, vectors.ids[:3]))
                raise BadInput(
                    f"none of the {len(vectors):,} stored vectors is of a node: their ids are {near} …, those of nodes "
                    f"{', '.join(map(repr, self.graph.ids[:3]))} …"
                )
            of_nodes = StoredVectors(
                tuple(vectors.ids[row] for row in rows), vectors.matrix[rows], vectors.model, vectors.digest
            )
            self._of_vectors[kept] = meaning_of_vectors(of_nodes, embedder)
        return self._of_vectors[kept]


def rows_by(sets: Sequence[Iterable[str]]) -> dict[str, Ints]:
    """The rows of the sets with each word."""
    found: dict[str, list[int]] = {}
    for row, each in enumerate(sets):
        for word in dict.fromkeys(each):
            found.setdefault(word, []).append(row)
    return {word: np.array(rows, np.int32) for word, rows in found.items()}


def _texts(value: Json, without: Collection[str] = ()) -> list[str]:
    """Every text in the properties of a node; their own names, such as "description", say nothing about it."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for key, each in value.items() if key not in without for text in _texts(each)]
    return [text for each in value for text in _texts(each)] if isinstance(value, list | tuple) else []


def _spaced(text: str) -> str:
    """A text in which query_optimization is two words."""
    return text.replace("_", " ")
