"""Lexical retrieval: BM25 with optional word weights, SQL LIKE, and SQLite FTS5."""

from __future__ import annotations

import re
import sqlite3
import threading
import warnings
import weakref
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.arguments import check_names
from kgot_lab.embedding.embedder import argsort_descending
from kgot_lab.errors import BadInput, require_amount, require_probability
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.analysis import analyzer
from kgot_lab.text.words import UNSPACED, WORD, normalise_nfc, search_form, searched_words
from kgot_lab.types import Document, HitColumns, Query, Ranking, checked_documents, full_text, main_text

# The eight goal verbs of KG-OS, each with five times the weight of another word.
_GOAL_VERBS = "reduce build optimize debug learn deploy secure automate".split()
INTENT_VERBS: Mapping[str, float] = dict.fromkeys(_GOAL_VERBS, 5.0)


@check_names
def bm25(
    documents: Iterable[Document],
    *,
    k1: float = 1.2,
    b: float = 0.75,
    emphasis: Mapping[str, float] | None = None,
) -> Stage:
    """Rank documents by BM25 (Robertson and Zaragoza 2009, in Lucene's variant).

    score(d) = sum over query words w of emphasis(w) * idf(w) * tf / (tf + k1 * (1 - b + b * length(d) / mean
    length)). The emphasis of a word is 1 unless `emphasis` names it. The words are those of `analyzer`:
    stemmed in other languages than English, and without English stop words and one-letter words. A query
    without a known word finds nothing. Raises BadInput if a weight in `emphasis` is negative or not a number,
    if its key is not one word, if `k1` is below 0, or if `b` is outside 0 to 1.
    """
    require_amount(k1, "the k1 of bm25()")
    require_probability(b, "the b of bm25()")
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    texts = [full_text(document) for document in documents]
    words_of = analyzer(map(main_text, documents))
    word_weights = {words_of(word)[0]: weight for word, weight in _checked_emphasis(emphasis or {}).items()}
    ids = [document.id for document in documents]
    postings = word_scores(list(map(words_of, texts)), k1, b)
    name = _stage_name(k1, b, word_weights, words_of.stemmers)
    if not postings:
        return Stage(name, lambda ranking: Ranking(ranking.query, ()))

    def step(ranking: Ranking) -> Ranking:
        scores = np.zeros(len(ids), np.float32)
        for word in words_of(ranking.query.text):
            if (found := postings.get(word)) is not None:
                rows, parts = found
                contributions = parts * word_weights[word] if word in word_weights else parts
                # half the time of scores[rows] += more, and the same sums
                np.add.at(scores, rows, contributions)
        return ranked_by_score(ranking.query, ids, scores)

    return Stage(name, step)


def word_scores(
    words_of: Sequence[Sequence[str]], k1: float, b: float
) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Return, for each word, the rows of the texts that hold it and its BM25 score in each.

    The result is empty if no text has a word.
    """
    if not any(words_of):
        return {}
    index = _bm25s().BM25(k1=k1, b=b, method="lucene", backend="numpy", csc_backend="numpy")
    index.index(words_of, show_progress=False)
    parts, rows, starts = index.scores["data"], index.scores["indices"], index.scores["indptr"].tolist()
    ranges = {word: slice(starts[at], starts[at + 1]) for word, at in index.vocab_dict.items() if word}
    return {word: (rows[own], parts[own]) for word, own in ranges.items()}


def ranked_by_score(query: Query, ids: Sequence[str], scores: NDArray[Any]) -> Ranking:
    """Rank the ids with a score above 0, given one score for each id.

    The ids must be sorted, so that ties are ordered by id.
    """
    found = np.flatnonzero(scores > 0)
    order = found[argsort_descending(scores[found])]
    return Ranking(query, HitColumns(ids, order, scores[order]))


def _checked_emphasis(emphasis: Mapping[str, float]) -> dict[str, float]:
    weight_of = {}
    for key, weight in emphasis.items():
        require_amount(weight, f"emphasis on {key!r}")
        if len(searched_words(key)) != 1:
            problem = f"emphasis is on single words that are searched, and {key!r} is not one"
            raise BadInput(f"{problem}; stop words are left out")
        weight_of[searched_words(key)[0]] = float(weight)
    return weight_of


def _stage_name(k1: float, b: float, heavier: Mapping[str, float], stemmers: Sequence[str]) -> str:
    options = ([f"k1={k1:g}"] if k1 != 1.2 else []) + ([f"b={b:g}"] if b != 0.75 else [])
    options += [f"emphasis on {len(heavier)} words"] if heavier else []
    options += [f"{' and '.join(stemmers)} stems"] if stemmers else []
    return f"bm25({', '.join(options)})" if options else "bm25"


def _bm25s() -> ModuleType:
    # its progress bars ask for notebook widgets at import; they are switched off here
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")
        import bm25s
    return bm25s  # type: ignore[no-any-return]


# Lexical retrieval as SQLite does it: LIKE, and the FTS5 index.

LONGEST_TERM = 1000  # characters; a longer word is ignored
_WORDS_KEPT = 256  # words whose scores are kept


def like(documents: Iterable[Document]) -> Stage:
    """Rank documents by how many query words they contain, even inside longer words (KG-OS method 11).

    score(d) = number of different query words w for which title or text LIKE '%w%', in lower case. English
    stop words and one-letter words are ignored. The vocabulary of the collection is searched, which maps each
    word to its documents. No word crosses a blank, so the result equals that of SQL's LIKE over all texts.
    """
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    ids = [document.id for document in documents]
    vocabulary, rows_of = _vocabulary(documents)
    lines = "\n".join(vocabulary)
    ends = np.cumsum([len(word) + 1 for word in vocabulary])

    def step(ranking: Ranking) -> Ranking:
        counts = np.zeros(len(ids))
        for term in _search_terms(ranking.query.text):
            places = [match.start() for match in re.finditer(re.escape(term), lines)]
            matches = np.zeros(len(ids), bool)
            for number in np.unique(np.searchsorted(ends, places, "right")).tolist():
                matches[rows_of[number]] = True
            counts += matches
        return ranked_by_score(ranking.query, ids, counts)

    return Stage("like", step)


def fts5(documents: Iterable[Document]) -> Stage:
    """Rank documents by word stems with SQLite's FTS5 and its BM25 (k1 1.2, b .75).

    The score is negated, so that higher is better. The tokenizer is 'porter unicode61' (caching finds cache).
    Every query word is quoted, so that no question is a syntax error, and one matching word is enough.
    English stop words, one-letter words and repetitions are ignored. SQLite adds up the scores of the words, so
    those of the latest words are kept. Raises BadInput if SQLite was built without FTS5.
    """
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    ids = [document.id for document in documents]
    execute = _passage_database(documents)

    @lru_cache(_WORDS_KEPT)
    def score_word(word: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        found = np.array(execute(FTS5_MATCH, quote_fts5(word))).reshape(-1, 2)
        return found[:, 0].astype(np.int64), -found[:, 1]

    def step(ranking: Ranking) -> Ranking:
        scores = np.zeros(len(ids))
        for rows, own in map(score_word, _search_terms(ranking.query.text)):
            scores[rows] += own
        return ranked_by_score(ranking.query, ids, scores)

    return Stage("fts5", step)


FTS5_MATCH = "SELECT rowid, bm25(passages) FROM passages WHERE passages MATCH ?"


def quote_fts5(term: str) -> str:
    """Quote a text as an FTS5 string, in which no character has a special meaning."""
    return '"' + term.replace('"', '""') + '"'


def _search_terms(text: str) -> list[str]:
    return [term for term in dict.fromkeys(searched_words(text)) if len(term) <= LONGEST_TERM]


def _vocabulary(documents: Sequence[Document]) -> tuple[list[str], list[array[int]]]:
    """Return the distinct words of documents, and for each the rows of the documents that hold it."""
    rows_of: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
    for row, document in enumerate(documents):
        for word in set(WORD.findall(search_form(full_text(document)))):
            rows_of[word].append(row)
    return list(rows_of), list(rows_of.values())


def _passage_database(documents: Sequence[Document]) -> Callable[[str, str], list[tuple[int, float]]]:
    """Return a thread-safe function that runs a statement with one value on an FTS5 table of passages.

    The database closes when the function is garbage-collected.
    """
    connection, lock = sqlite3.connect(":memory:", check_same_thread=False), threading.Lock()
    try:
        connection.execute("CREATE VIRTUAL TABLE passages USING fts5(text, tokenize='porter unicode61')")
    except sqlite3.OperationalError as error:
        connection.close()
        problem = f"this Python's SQLite {sqlite3.sqlite_version} has no FTS5 ({error})"
        raise BadInput(f"{problem}; use bm25() or like()") from None
    # SQLite does not accept lone surrogates, and has one word where a script puts no spaces
    texts = [normalise_nfc(full_text(document)) for document in documents]
    texts = [" ".join(searched_words(text)) if UNSPACED.search(text) else text for text in texts]
    connection.executemany("INSERT INTO passages (rowid, text) VALUES (?, ?)", enumerate(texts))

    def execute(statement: str, value: str) -> list[tuple[int, float]]:
        with lock:
            return connection.execute(statement, (value,)).fetchall()

    weakref.finalize(execute, connection.close)
    return execute
