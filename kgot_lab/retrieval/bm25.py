"""Search by words: BM25."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from types import ModuleType

from kgot_lab.retrieval.stage import Stage, checked, full_text
from kgot_lab.types import Document, Ranking, ranked


def bm25(documents: Iterable[Document], *, k1: float = 1.2, b: float = 0.75) -> Stage:
    """Documents that share words with the query, rare words counting more (Robertson and Zaragoza 2009, as Lucene computes it).

    score(d) = sum over query words w of idf(w) * tf / (tf + k1 * (1 - b + b * length(d) / mean length)).
    English stop words and one-letter words are left out. A query without a known word finds nothing.
    """
    documents = checked(documents)
    ids = [document.id for document in documents]
    words_of = [_words(text) for text in map(full_text, documents)]
    if not any(words_of):
        return Stage("bm25", lambda ranking: Ranking(ranking.query, ()))
    index = _bm25s().BM25(k1=k1, b=b, method="lucene", backend="numpy", csc_backend="numpy")
    index.index(words_of, show_progress=False)

    def step(ranking: Ranking) -> Ranking:
        known = [word for word in _words(ranking.query.text) if word in index.vocab_dict]
        scores = index.get_scores(known).tolist() if known else []
        return ranked(ranking.query, {id: score for id, score in zip(ids, scores, strict=False) if score > 0})

    return Stage("bm25", step)


def _words(text: str) -> list[str]:
    tokens: list[list[str]] = _bm25s().tokenize([text], stopwords="english", return_ids=False, show_progress=False)
    return tokens[0]


def _bm25s() -> ModuleType:
    with warnings.catch_warnings():  # its progress bars ask for notebook widgets at import; they are switched off here
        warnings.filterwarnings("ignore", message="IProgress not found")
        import bm25s
    return bm25s  # type: ignore[no-any-return]
