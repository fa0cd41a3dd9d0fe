"""Search by words: BM25, where chosen words can weigh more."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import descending
from kgot_lab.errors import BadInput
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.words import searched_words
from kgot_lab.types import Document, Found, Query, Ranking, checked_documents, full_text

# The eight verbs by which KG-OS knows what a user wants to do, each five times as heavy as another word
# (decision C-O12).
INTENT_VERBS: Mapping[str, float] = dict.fromkeys(
    "reduce build optimize debug learn deploy secure automate".split(), 5.0
)


def bm25(
    documents: Iterable[Document],
    *,
    k1: float = 1.2,
    b: float = 0.75,
    emphasis: Mapping[str, float] | None = None,
) -> Stage:
    """Documents that share words with the query, rare words counting more (Robertson and Zaragoza 2009, as
    Lucene computes it).

    score(d) = sum over query words w of emphasis(w) * idf(w) * tf / (tf + k1 * (1 - b + b * length(d) / mean
    length)), where emphasis is 1 for a word that it does not name. English stop words and one-letter words
    are left out. A query without a known word finds nothing. Raises BadInput for a weight that is negative or
    not a number, or that is not of one word, and for a k1 below 0 or a b outside 0 to 1.
    """
    if not (0 <= k1 < math.inf and 0 <= b <= 1):
        raise BadInput(f"bm25() takes a k1 of 0 or more and a b from 0 to 1, not k1={k1} and b={b}")
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    heavier = _weight_of(emphasis or {})
    ids = [document.id for document in documents]
    words_of = [searched_words(text) for text in map(full_text, documents)]
    scores_of = word_scores(words_of, k1, b)
    if not scores_of:
        return Stage(_name(k1, b, heavier), lambda ranking: Ranking(ranking.query, ()))

    def step(ranking: Ranking) -> Ranking:
        scores = np.zeros(len(ids), np.float32)
        for word in searched_words(ranking.query.text):
            if (found := scores_of.get(word)) is not None:
                rows, parts = found
                more = parts * heavier[word] if word in heavier else parts
                np.add.at(scores, rows, more)  # half the time of scores[rows] += more, and the same sums
        return best_first(ranking.query, ids, scores)

    return Stage(_name(k1, b, heavier), step)


def word_scores(
    words_of: Sequence[Sequence[str]], k1: float, b: float
) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """For each word the rows of the texts that hold it, and what BM25 gives each of them for it; none where
    no text has a word.
    """
    if not any(words_of):
        return {}
    index = _bm25s().BM25(k1=k1, b=b, method="lucene", backend="numpy", csc_backend="numpy")
    index.index(words_of, show_progress=False)
    parts, rows, starts = index.scores["data"], index.scores["indices"], index.scores["indptr"].tolist()
    return {
        word: (rows[starts[at] : starts[at + 1]], parts[starts[at] : starts[at + 1]])
        for word, at in index.vocab_dict.items()
        if word
    }


def best_first(query: Query, ids: Sequence[str], scores: NDArray[Any]) -> Ranking:
    """The ranking of the scores above 0, one score for each id. The ids must be sorted, so that ties come out
    by id.
    """
    found = np.flatnonzero(scores > 0)
    order = found[descending(scores[found])]
    return Ranking(query, Found(ids, order, scores[order]))


def _weight_of(emphasis: Mapping[str, float]) -> dict[str, float]:
    weight_of = {}
    for key, weight in emphasis.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise BadInput(f"emphasis on {key!r} must be a number of 0 or more, not {weight}")
        if len(searched_words(key)) != 1:
            raise BadInput(
                f"emphasis is on single words that are searched, and {key!r} is not one; stop words are left out"
            )
        weight_of[searched_words(key)[0]] = float(weight)
    return weight_of


def _name(k1: float, b: float, heavier: Mapping[str, float]) -> str:
    options = (
        [f"k1={k1:g}"] * (k1 != 1.2)
        + [f"b={b:g}"] * (b != 0.75)
        + [f"emphasis on {len(heavier)} words"] * bool(heavier)
    )
    return f"bm25({', '.join(options)})" if options else "bm25"


def _bm25s() -> ModuleType:
    with (
        warnings.catch_warnings()
    ):  # its progress bars ask for notebook widgets at import; they are switched off here
        warnings.filterwarnings("ignore", message="IProgress not found")
        import bm25s
    return bm25s  # type: ignore[no-any-return]
