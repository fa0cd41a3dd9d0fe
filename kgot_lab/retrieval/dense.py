"""Dense retrieval: the cosine of the query with a document's vector, or with its best sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from kgot_lab.arguments import check_names
from kgot_lab.embedding.embedder import (
    CAN_COUNT_BITS,
    Embedder,
    Matrix,
    SignBits,
    argsort_descending,
    checked_embedder,
    normalise_rows,
    row_products,
)
from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.errors import BadInput, require, require_count
from kgot_lab.retrieval.fusion import rows_and_scores
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.words import rough_sentences
from kgot_lab.types import Document, HitColumns, Ranking, checked_documents, full_text

SIGN_BITS_FROM = 200_000  # vectors; reading this many takes about 30 ms
# minimum number of candidates in a large collection; they contain 99 % of the ten nearest
_CANDIDATES = 2_000
_FARTHEST = 10  # candidates at the other end, for the range of scores


@check_names
def dense(
    documents: Iterable[Document],
    embedder: Embedder,
    *,
    name: str = "embeddings",
    keep: int | None = None,
    exact: bool = False,
) -> Stage:
    """Rank documents by the cosine of their vectors with that of the query (dense retrieval).

    A blank query finds nothing. With `keep`, only the top `keep` documents are found, which is cheaper in
    large collections. From 200,000 documents on, candidates are first selected by the signs of their
    dimensions (`SignBits`): twice `keep`, at least 2,000. This is four times as fast and occasionally misses
    a document. After another stage all its hits, and some of the documents farthest from the query, are
    found too, so that a fusion knows the range of scores. `exact` turns it off, as does a numpy before 2.
    Scores are always cosines. Raises BadInput if a vector holds NaN, and names the text.
    """
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    ids, texts = [document.id for document in documents], [full_text(document) for document in documents]
    return _cosine_stage(ids, _embed_texts(texts, embedder), embedder, name, keep, exact=exact)


def best_sentence(
    documents: Iterable[Document], embedder: Embedder, *, name: str = "sentences", keep: int | None = None
) -> Stage:
    """Rank documents by the largest cosine of any of their sentences with the query.

    Each sentence is embedded after the title.
    """
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    texts: list[str] = []
    starts: list[int] = []
    for document in documents:
        starts.append(len(texts))
        texts += [full_text(replace(document, text=sentence)) for sentence in rough_sentences(document.text)]
    ids = [document.id for document in documents]
    return _cosine_stage(ids, _embed_texts(texts, embedder), embedder, name, keep, starts)


def dense_from_vectors(vectors: StoredVectors, embedder: Embedder, *, keep: int | None = None) -> Stage:
    """Rank ids by the cosine of their stored vectors with that of the query.

    A blank query finds nothing. `embedder` must be the one that made the vectors.
    kgot_lab.embedding.embedders.query_embedder finds the one that they record. Raises BadInput for another
    embedder. `keep` is as in `dense`.
    """
    expected = "stored vectors are StoredVectors.of(ids, vectors, model=...) or StoredVectors.load(path)"
    require(vectors, StoredVectors, expected)
    checked_embedder(embedder)
    vectors.require_embedder(embedder)
    order = sorted(range(len(vectors)), key=vectors.ids.__getitem__)
    ids = [vectors.ids[row] for row in order]
    return _cosine_stage(ids, vectors.matrix[order], embedder, "embeddings", keep)


def _embed_texts(texts: list[str], embedder: Embedder) -> Matrix:
    """Return the vectors of texts after checking that there is one for each."""
    checked_embedder(embedder, ("name", "embed"))
    matrix = normalise_rows(embedder.embed(texts), embedder.name)
    if len(matrix) != len(texts):
        problem = f"{embedder.name} gave {len(matrix)} vectors for {len(texts)} texts"
        raise BadInput(f"{problem}; it must give one for each")
    return matrix


def _cosine_stage(
    ids: list[str],
    matrix: Matrix,
    embedder: Embedder,
    name: str,
    keep: int | None,
    starts: Sequence[int] | None = None,
    *,
    exact: bool = False,
) -> Stage:
    """Build a stage that ranks sorted ids by the cosine of their vector, or of their best one.

    `starts` is the row of each id's first vector, if ids have several. Raises BadInput for `keep` below 1.
    """
    if keep is not None:
        require_count(keep, 1, "keep", "it is how many hits a retriever keeps")
    may_approximate = keep is not None and starts is None and not exact
    large = may_approximate and len(ids) >= SIGN_BITS_FROM and CAN_COUNT_BITS
    signs = SignBits(matrix) if large else None

    def step(ranking: Ranking) -> Ranking:
        if not ranking.query.text.strip():
            return Ranking(ranking.query, ())
        query_vector = normalise_rows(embedder.embed([ranking.query.text]), embedder.name)[0]
        if len(query_vector) != matrix.shape[1]:
            problem = f"{embedder.name} gave the query {len(query_vector)} numbers"
            raise BadInput(f"{problem} and the documents {matrix.shape[1]}: embed both alike")
        candidates, limit = np.arange(len(ids)), keep
        if signs is not None:
            limit = None if ranking.hits else keep
            near = signs.nearest(
                query_vector, max(_CANDIDATES, 2 * (keep or 0)), _FARTHEST * bool(ranking.hits)
            )
            candidates = np.union1d(near, rows_and_scores(ranking, ids)[0])
        cosines = row_products(matrix if signs is None else matrix[candidates], query_vector)
        if starts is not None:
            cosines = np.maximum.reduceat(cosines, starts)
        if limit is not None and limit < len(candidates):
            found = np.flatnonzero(cosines >= np.partition(cosines, -limit)[-limit])
            candidates, cosines = candidates[found], cosines[found]
        order = argsort_descending(cosines)[:limit]  # the ids are sorted, so ties are by id
        return Ranking(ranking.query, HitColumns(ids, candidates[order], cosines[order]))

    return Stage(name if keep is None else f"{name} % {keep}", step)
