"""Which passage holds which name, in which sentences, beside which words: what a trail walks on, in columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from kgot_lab.graph.property_graph import Csr, Ints, csr
from kgot_lab.retrieval.entity_linking import COMMON, Titles, capitalised, compared_name, name_words
from kgot_lab.retrieval.multihop.features import goes_by, without_article
from kgot_lab.text.words import rough_sentences
from kgot_lab.types import Document

_BEFORE, _AFTER = 5, 4  # words beside a name that may say what it is to the passage
STEM = 5  # characters: enough to see that a director directed


def beginning(word: str) -> str:
    """The beginning of a word, by which words are compared that may differ in their endings."""
    return word[:STEM]


class Mentions:
    """The names in some documents that lead to others. A *pair* is a passage and a name that it goes by or
    holds.

    `row`, `name`: of each pair; `called`, `held`: whether the passage goes by the name, and whether its text
    holds it; `said_in`: the sentences that do, as rows of all sentences; `beside`: the stems near it.
    `of_row`, `of_name` find the pairs. `starts`: the first sentence of each document, `sentences`: all of
    them, each after its title.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self.titles = Titles(documents, goes_by)
        self.sentences: list[tuple[int, str]] = []
        self.starts = np.zeros(len(documents), np.int64)
        held = [self._read(row, document) for row, document in enumerate(documents)]
        self.named = named = [goes_by(document) for document in documents]
        self.row_of = {document.id: row for row, document in enumerate(documents)}
        uses = Counter(name for row in range(len(documents)) for name in {*held[row], *named[row]})
        leading = {
            name: number
            for number, name in enumerate(sorted(name for name, times in uses.items() if times > 1))
        }
        pairs = [
            (row, leading[name], name in named[row], held[row].get(name, ((), ())))
            for row in range(len(documents))
            for name in sorted({*held[row], *named[row]})
            if name in leading
        ]
        self.names, self._numbers = tuple(leading), leading
        self.row, self.name = _ints(row for row, *_ in pairs), _ints(name for _, name, *_ in pairs)
        self.called = np.array([called for _, _, called, _ in pairs], bool)
        self.held = np.array([bool(places) for *_, (places, _) in pairs], bool)
        self.said_in = Ragged([places for *_, (places, _) in pairs])
        stems = {
            word: number
            for number, word in enumerate(sorted({word for *_, (_, near) in pairs for word in near}))
        }
        self.stems = stems
        self.beside = Ragged([[stems[word] for word in sorted(near)] for *_, (_, near) in pairs])
        self.of_row = csr(self.row, self.name, len(documents))
        self.of_name = csr(self.name, self.row, len(self.names))
        self.holders = np.diff(self.of_name.indptr)
        self.called_so = np.bincount(self.name[self.called], minlength=len(self.names))

    def _read(self, row: int, document: Document) -> dict[str, tuple[tuple[int, ...], frozenset[str]]]:
        """For each name in a text the sentences that hold it, and the stems beside it."""
        self.starts[row] = len(self.sentences)
        places: dict[str, list[int]] = {}
        near: dict[str, set[str]] = {}
        for sentence in rough_sentences(document.text):
            words = [word.lower() for word in name_words(sentence)]
            for name in {*map(without_article, capitalised(sentence)), *self.titles.mentioned(sentence)}:
                places.setdefault(name, []).append(len(self.sentences))
                near.setdefault(name, set()).update(_beside(words, name.split()))
            self.sentences.append((row, sentence))
        return {name: (tuple(some), frozenset(near[name])) for name, some in places.items()}

    def named_in(self, question: str) -> NDArray[np.bool_]:
        """For each name whether a question holds it as whole words."""
        words = compared_name(question).split()
        spans = {
            " ".join(words[start:end])
            for start in range(len(words))
            for end in range(start + 1, len(words) + 1)
        }
        flags = np.zeros(len(self.names), bool)
        flags[[self._numbers[span] for span in spans if span in self._numbers]] = True
        return flags

    def sentences_of(self, row: int) -> tuple[int, int]:
        """The first sentence of a document, and the one behind its last."""
        return int(self.starts[row]), int(self.starts[row + 1]) if row + 1 < len(self.starts) else len(
            self.sentences
        )

    def pairs_of(self, row: int) -> Ints:
        """The pairs of a passage."""
        return _part(self.of_row, row)

    def pairs_with(self, names: Iterable[int]) -> list[Ints]:
        """For each name its pairs."""
        return [_part(self.of_name, name) for name in names]


class Ragged:
    """Lists of numbers one behind the other, to take something over each of them at once."""

    def __init__(self, parts: Sequence[Sequence[int]]) -> None:
        lengths = np.array([len(part) for part in parts], np.int64)
        self._full = np.flatnonzero(lengths)
        self._starts = (np.cumsum(lengths) - lengths)[self._full]
        self._flat = _ints(number for part in parts for number in part)
        self._size = len(parts)

    def over(
        self, values: NDArray[np.float64], fold: np.ufunc, otherwise: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Fold the values at the numbers of each list; of an empty list it is what `otherwise` says. Shapes
        (numbers,), (lists,).
        """
        folded = otherwise.copy()
        if self._full.size:
            folded[self._full] = fold.reduceat(values[self._flat], self._starts)
        return folded


def _beside(words: list[str], name: list[str]) -> set[str]:
    """The stems beside the first place in a sentence where a name stands."""
    for at in range(len(words) - len(name) + 1):
        if words[at] == name[0] and words[at : at + len(name)] == name:
            end = at + len(name)
            return {
                beginning(word)
                for word in (*words[max(0, at - _BEFORE) : at], *words[end : end + _AFTER])
                if word not in COMMON
            }
    return set()


def _ints(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, np.int32)


def _part(rows: Csr, row: int) -> Ints:
    return rows.edges[rows.indptr[row] : rows.indptr[row + 1]]
