"""Latent semantic analysis: meaning from which words occur together in the documents at hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kgot_lab.embedding.embedder import Matrix, embeddable, unit
from kgot_lab.errors import BadInput, InsufficientData, NotInstalled
from kgot_lab.text.cleaning import whole
from kgot_lab.types import Document, checked_documents, full_text


def lsa(documents: Iterable[Document], *, dimension: int = 256, seed: int = 0) -> LSA:
    """Learn from some documents: TF-IDF (1 + log tf, without English stop words) and its truncated SVD
    (Deerwester et al. 1990).

    The dimension is at most the number of documents and of words. Raises BadInput without a document,
    InsufficientData without a word in them, NotInstalled.
    """
    if dimension < 1:
        raise BadInput(f"a vector has 1 dimension or more, not {dimension}")
    texts = [whole(full_text(document)) for document in checked_documents(documents)]
    try:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise NotInstalled("bench", error.name or "") from None
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english", dtype=np.float32)
    try:
        counts = words.fit_transform(texts)
    except ValueError:  # what it raises where every text is blank or made of stop words
        raise InsufficientData(
            f"LSA learns from words, and the {len(texts)} documents hold none but stop words"
        ) from None
    if counts.shape[1] == 1:
        return LSA(words, _OneDirection())
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # the share of the variance, of which documents that are alike have none
        return LSA(words, TruncatedSVD(min(dimension, *counts.shape), random_state=seed).fit(counts))


class _OneDirection:
    """The directions of documents that share a single word, of which there is nothing to decompose."""

    components_ = np.ones((1, 1), np.float32)

    def transform(self, counts: Any) -> Matrix:
        """The rows as they are."""
        return np.asarray(counts.toarray(), np.float32)


class LSA:
    """TF-IDF rows projected on the main directions of the documents it was fitted on; made by `lsa`.

    A text without a word of those documents has a vector of zeros: its cosine with everything is 0.
    """

    name = "lsa"

    def __init__(self, words: Any, directions: Any) -> None:
        self._words, self._directions = words, directions
        self.dimension = int(directions.components_.shape[0])
        fitted = (
            " ".join(words.get_feature_names_out()).encode(),
            words.idf_.tobytes(),
            directions.components_.tobytes(),
        )
        self.digest = hashlib.sha256(
            b"\0".join(fitted)
        ).hexdigest()  # SHA-256 of the words, their weights and the directions

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector of length 1 or 0 per text, shape (len(texts), dimension)."""
        if not len(texts):
            return np.zeros((0, self.dimension), np.float32)
        return unit(self._directions.transform(self._words.transform(embeddable(texts))), self.name)

    def __repr__(self) -> str:
        return f"<{self.name}, {self.dimension} dimensions of {len(self._words.vocabulary_):,} words>"
