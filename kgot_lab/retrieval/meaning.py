"""Search by meaning: the cosine of a document's vector, or of the best of its sentences, with that of the query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from kgot_lab.embedding.embedder import Embedder, Matrix, checked_embedder, unit
from kgot_lab.embedding.products import row_products
from kgot_lab.embedding.stored import StoredVectors
from kgot_lab.errors import BadInput, require, require_count
from kgot_lab.retrieval.order import descending
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.sentences import rough_sentences
from kgot_lab.types import Document, Found, Ranking, checked_documents, full_text


def meaning(documents: Iterable[Document], embedder: Embedder, *, name: str = "embeddings", keep: int | None = None) -> Stage:
    """Documents whose text means what the query means: score(d) = cosine of their vectors. A blank query finds nothing.

    With `keep`, only the best so many are found: cheaper in large collections. Raises BadInput for NaN in a vector, naming the text.
    """
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    return _nearest([document.id for document in documents], [full_text(document) for document in documents], None, embedder, name, keep)


def best_sentence(documents: Iterable[Document], embedder: Embedder, *, name: str = "sentences", keep: int | None = None) -> Stage:
    """Documents with a sentence that means what the query means: score(d) = largest cosine of its sentences, each read after the title."""
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    texts: list[str] = []
    starts: list[int] = []
    for document in documents:
        starts.append(len(texts))
        texts += [full_text(replace(document, text=sentence)) for sentence in rough_sentences(document.text)]
    return _nearest([document.id for document in documents], texts, starts, embedder, name, keep)


def meaning_of_vectors(vectors: StoredVectors, embedder: Embedder, *, name: str = "embeddings", keep: int | None = None) -> Stage:
    """Ids whose stored vector means what the query means: score(d) = its cosine with that of the query. A blank query finds nothing.

    `embedder` made the vectors; kgot_lab.embedding.of_query.query_embedder finds the one that they say. Raises BadInput for another.
    """
    require(vectors, StoredVectors, "stored vectors are StoredVectors.of(ids, vectors, model=...) or StoredVectors.load(path)")
    checked_embedder(embedder)
    vectors.refuse_other(embedder)
    order = sorted(range(len(vectors)), key=vectors.ids.__getitem__)
    return _by_cosine([vectors.ids[row] for row in order], vectors.matrix[order], None, embedder, name, keep)


def _nearest(ids: list[str], texts: list[str], starts: list[int] | None, embedder: Embedder, name: str, keep: int | None) -> Stage:
    """Rank ids (sorted) by the cosine of their text, or of the best of theirs where `starts` says which is the first of each id."""
    checked_embedder(embedder, ("name", "embed"))
    matrix = unit(embedder.embed(texts), embedder.name)
    if len(matrix) != len(texts):
        raise BadInput(f"{embedder.name} gave {len(matrix)} vectors for {len(texts)} texts; it must give one for each")
    return _by_cosine(ids, matrix, starts, embedder, name, keep)


def _by_cosine(ids: list[str], matrix: Matrix, starts: list[int] | None, embedder: Embedder, name: str, keep: int | None) -> Stage:
    """Rank ids by the cosine of their row, or of the best of theirs."""
    if keep is not None:
        require_count(keep, 1, "keep", "it is how many hits a lane keeps")
    some = slice(None) if keep is None else slice(keep)

    def step(ranking: Ranking) -> Ranking:
        if not ranking.query.text.strip():
            return Ranking(ranking.query, ())
        asked = unit(embedder.embed([ranking.query.text]), embedder.name)[0]
        if len(asked) != matrix.shape[1]:
            raise BadInput(f"{embedder.name} gave the query {len(asked)} numbers and the documents {matrix.shape[1]}: embed both alike")
        cosines = row_products(matrix, asked)
        if starts is not None:
            cosines = np.maximum.reduceat(cosines, starts)
        found = np.arange(len(ids))
        if keep is not None and keep < len(ids):
            found = np.flatnonzero(cosines >= np.partition(cosines, -keep)[-keep])
        order = found[descending(cosines[found])][some]  # the ids are sorted, so ties come out by id
        return Ranking(ranking.query, Found(ids, order, cosines[order]))

    return Stage(name if keep is None else f"{name} % {keep}", step)
