"""A search over the nodes of a graph that is being edited: after a change only the texts that changed are
indexed and embedded again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import index_of
from kgot_lab.text.cleaning import whole
from kgot_lab.text.words import searched_words
from kgot_lab.types import Document, Hit, full_text


class EditedIndex:
    """Words in FTS5 and, with an embedder, vectors, by node. `indexed` and `embedded` count the texts that
    were worked on.
    """

    def __init__(self, graph: PropertyGraph, embedder: Embedder | None = None):
        self._embedder = embedder
        self._texts: dict[str, str] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self.indexed = self.embedded = 0
        self._table = sqlite3.connect(":memory:", check_same_thread=False)
        self._table.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, id TEXT UNIQUE)")
        self._table.execute("CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'porter unicode61')")
        self.update(graph, graph.ids)

    def update(self, graph: PropertyGraph, touched: Iterable[str]) -> None:
        """Bring some nodes up to date: those whose text is another, or that came or went; nothing is done for
        the others.
        """
        changed: dict[str, str] = {}
        for id in touched:
            text = full_text(_document(graph, id)) if id in graph else None
            if text is None:
                self._drop(id)
            elif self._texts.get(id) != text:
                changed[id] = text
        for id, text in changed.items():
            self._drop(id)
            number = self._table.execute("INSERT INTO rows (id) VALUES (?)", (str(whole(id)),)).lastrowid
            self._table.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, str(whole(text))))
            self._texts[id] = text
        self.indexed += len(changed)
        if self._embedder is not None and changed:
            vectors = np.asarray(self._embedder.embed(list(changed.values())), np.float32)
            self._vectors.update(zip(changed, vectors, strict=True))
            self.embedded += len(changed)

    def _drop(self, id: str) -> None:
        if self._texts.pop(id, None) is not None:
            (number,) = self._table.execute(
                "SELECT number FROM rows WHERE id = ?", (str(whole(id)),)
            ).fetchone()
            self._table.execute("DELETE FROM words WHERE rowid = ?", (number,))
            self._table.execute("DELETE FROM rows WHERE number = ?", (number,))
        self._vectors.pop(id, None)

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """The nodes that share stems with a query, by the BM25 of SQLite, best first; raises BadInput for a
        query without words.
        """
        words = searched_words(query)
        if not words:
            raise BadInput("the query has no word to look for")
        asked = " OR ".join('"' + each.replace('"', '""') + '"' for each in dict.fromkeys(words))
        found = self._table.execute(
            "SELECT rows.id, -bm25(words) AS score FROM words JOIN rows ON rows.number = words.rowid WHERE words MATCH ? "
            "ORDER BY score DESC, rows.id LIMIT ?",
            (asked, k),
        )
        return [Hit(id, float(score)) for id, score in found]

    def vectors(self) -> StoredVectors:
        """The vectors of all nodes, as a search over the graph takes them; raises BadInput without an
        embedder.
        """
        if self._embedder is None:
            raise BadInput("this index has no vectors: give it an embedder")
        ids = sorted(self._vectors)
        made = (
            np.stack([self._vectors[id] for id in ids])
            if ids
            else np.empty((0, self._embedder.dimension), np.float32)
        )
        return StoredVectors.of(ids, made, model=self._embedder.name, digest=self._embedder.digest)

    def close(self) -> None:
        """Let go of the table."""
        self._table.close()


def _document(graph: PropertyGraph, id: str) -> Document:
    return index_of(graph.subgraph([id])).documents[0]
