"""Search by words inside SQLite: LIKE, and the FTS5 index."""

from __future__ import annotations

import re
import sqlite3
import threading
import weakref
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from kgot_lab.errors import BadInput
from kgot_lab.retrieval.lexical import best_first
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.cleaning import whole
from kgot_lab.text.words import composed, searched_words
from kgot_lab.types import Document, Ranking, checked_documents, full_text

LONGEST_TERM = 1000  # characters; SQLite refuses a pattern of more than 50,000 bytes


def like(documents: Iterable[Document]) -> Stage:
    """Documents that hold the words of the query anywhere, even inside a longer word (KG-OS method 11).

    score(d) = number of different query words w for which title or text LIKE '%w%', in lower case. English
    stop words and one-letter words are left out. The statement runs over the different words of the
    collection, each of which knows its documents: no word crosses a blank, so the answer is the one that LIKE
    over all texts gives, without reading them.
    """
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    ids = [document.id for document in documents]
    vocabulary, rows_of = _vocabulary(documents)
    execute = _database(lambda connection: _fill_words(connection, vocabulary))
    indexed = bool(execute("SELECT name FROM sqlite_master WHERE name = 'trigrams'"))

    def step(ranking: Ranking) -> Ranking:
        counts = np.zeros(len(ids))
        for term in _terms(ranking.query.text):
            # trigrams need three letters and know no ESCAPE
            quick = indexed and len(term) >= 3 and "_" not in term
            found = execute(LIKE_TRIGRAMS if quick else LIKE_PLAIN, f"%{escaped_like(term)}%")
            if found:
                holds = np.zeros(len(ids), bool)
                holds[np.concatenate([rows_of[number] for (number,) in found])] = True
                counts += holds
        return best_first(ranking.query, ids, counts)

    return Stage("like", step)


LIKE_PLAIN = r"SELECT number FROM words WHERE word LIKE ? ESCAPE '\'"
LIKE_TRIGRAMS = "SELECT rowid FROM trigrams WHERE word LIKE ?"


def escaped_like(term: str) -> str:
    r"""A text as a LIKE pattern for itself (with ESCAPE '\'): % and _ stand for nothing but themselves."""
    return re.sub(r"([\\%_])", r"\\\1", term)


def fts5(documents: Iterable[Document]) -> Stage:
    """Documents that share word stems with the query, ranked by SQLite's own BM25 (k1 1.2, b .75), negated so
    that higher is better.

    The tokenizer is 'porter unicode61' (caching finds cache); every word of the query is quoted, so that no
    question is a syntax error, and one of them is enough. English stop words, one-letter words and
    repetitions are left out. Raises BadInput where SQLite was built without FTS5.
    """
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    ids = [document.id for document in documents]
    execute = _database(lambda connection: _fill_passages(connection, documents))

    def step(ranking: Ranking) -> Ranking:
        scores = np.zeros(len(ids))
        terms = _terms(ranking.query.text)
        if terms:
            rows_and_scores = np.array(execute(MATCH, " OR ".join(map(quoted_terms, terms)))).reshape(-1, 2)
            scores[rows_and_scores[:, 0].astype(int)] = -rows_and_scores[:, 1]
        return best_first(ranking.query, ids, scores)

    return Stage("fts5", step)


MATCH = "SELECT rowid, bm25(passages) FROM passages WHERE passages MATCH ?"


def quoted_terms(term: str) -> str:
    """A text as an FTS5 string, in which no sign has a meaning of its own."""
    return '"' + term.replace('"', '""') + '"'


def _terms(text: str) -> list[str]:
    return [term for term in dict.fromkeys(searched_words(text)) if len(term) <= LONGEST_TERM]


def _vocabulary(documents: Sequence[Document]) -> tuple[list[str], list[array[int]]]:
    """The different words of some documents, and for each the rows of the documents it is in."""
    rows_of: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
    for row, document in enumerate(documents):
        for word in set(re.findall(r"\w+", composed(full_text(document)).lower())):
            rows_of[word].append(row)
    return list(rows_of), list(rows_of.values())


def _fill_words(connection: sqlite3.Connection, vocabulary: Sequence[str]) -> None:
    connection.execute("CREATE TABLE words (number INTEGER PRIMARY KEY, word TEXT)")
    connection.executemany("INSERT INTO words VALUES (?, ?)", enumerate(vocabulary))
    try:
        connection.execute("CREATE VIRTUAL TABLE trigrams USING fts5(word, tokenize='trigram')")
    except sqlite3.OperationalError:
        return  # SQLite before 3.34, or without FTS5: the plain table answers, more slowly
    connection.executemany("INSERT INTO trigrams (rowid, word) VALUES (?, ?)", enumerate(vocabulary))


def _fill_passages(connection: sqlite3.Connection, documents: Sequence[Document]) -> None:
    try:
        connection.execute("CREATE VIRTUAL TABLE passages USING fts5(text, tokenize='porter unicode61')")
    except sqlite3.OperationalError as error:
        raise BadInput(
            f"this Python's SQLite {sqlite3.sqlite_version} has no FTS5 ({error}); use bm25() or like()"
        ) from None
    # SQLite takes no half characters
    texts = (composed(whole(full_text(document))) for document in documents)
    connection.executemany("INSERT INTO passages (rowid, text) VALUES (?, ?)", enumerate(texts))


def _database(fill: Callable[[sqlite3.Connection], None]) -> Callable[..., list[tuple[Any, ...]]]:
    """A function that runs a statement on a database in memory, from any thread; the database closes when the
    function is forgotten.
    """
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    lock = threading.Lock()
    try:
        with connection:
            fill(connection)
    except BaseException:
        connection.close()
        raise

    def execute(statement: str, *values: str) -> list[tuple[Any, ...]]:
        with lock:
            return connection.execute(statement, values).fetchall()

    weakref.finalize(execute, connection.close)
    return execute
