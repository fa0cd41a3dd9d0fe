"""What speaks for each passage as the next one, after those chosen before: numbers that a learnt scorer
weighs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgot_lab.graph.property_graph import Ints
from kgot_lab.retrieval.entity_linking import COMMON, name_words
from kgot_lab.retrieval.fusion import by_range
from kgot_lab.retrieval.multihop.features import Mentions, beginning

_Floats = NDArray[np.float64]
_Matrix = NDArray[np.float32]

NAME_CLUES = (
    "to its title",  # a chosen passage holds its name
    "from its text",  # it holds the name of a chosen passage
    "shared",  # both hold a name, times its rarity and the likeness to the question
    "to its title, as asked",  # the same three, times how much the sentence that holds the name is like the question
    "from its text, as asked",
    "shared, as asked",
    "joined",  # likeness to the question and the chosen passage together
    "to its title, likely",  # by the likeness to the question, less where the chosen passage holds many names
    "from its text, likely",
    "beside",  # words of the question stand beside the name
)
CLUES = (
    *("own", "sentence", "asked", *NAME_CLUES),
    "open words",  # BM25 by those words of the question that no chosen passage holds
    "repeated",  # likeness to a chosen passage
    "joined to any",  # "joined", linked or not
    "open meaning",  # likeness of the best sentence to what is left of the question
    *(
        "to its title x open",
        "from its text x open",
        "shared x open",
        "to its title x sentence",
        "from its text x sentence",
    ),
)
# what no passage has that no name leads to
BY_NAMES = (*NAME_CLUES, *(clue for clue in CLUES if " x " in clue))
_TO_TITLE, _FROM_TEXT, _SHARED, _TO_TITLE_LIKELY, _FROM_TEXT_LIKELY = map(
    NAME_CLUES.index,
    ("to its title", "from its text", "shared", "to its title, likely", "from its text, likely"),
)
_COMMON = 100  # a name in more passages than this links only those that go by it
_MEANT = (
    0.7  # how much of what the question shares with the best sentence of a chosen passage counts as answered
)


@dataclass(frozen=True, eq=False)
class TrailIndex:
    """What is worked out once for some documents: who names whom, the vectors of passages and sentences,
    words and their weights.
    """

    mentions: Mentions
    passages: _Matrix  # (documents, dimension), rows of length 1 or 0
    sentences: _Matrix  # (sentences, dimension)
    # of each word the rows that hold it, and what BM25 gives them for it
    words: Mapping[str, tuple[Ints, NDArray[np.float32]]]

    @property
    def size(self) -> int:
        """How many documents there are."""
        return len(self.passages)


@dataclass(frozen=True, eq=False)
class Ways:
    """The ways from a chosen passage to others: the passage at the end of each, the name, and how strong each
    of NAME_CLUES is.
    """

    rows: Ints
    names: Ints
    strengths: _Floats  # (NAME_CLUES, ways)


class Clues:
    """The clues for one question, which change with every passage that is chosen."""

    def __init__(self, index: TrailIndex, question: str, vector: _Matrix, words: list[str]) -> None:
        mentions = index.mentions
        self._index, self._vector, self._left = index, vector, vector.astype(np.float64)
        self._words = {word: index.words[word] for word in dict.fromkeys(words) if word in index.words}
        self._by_words = self._over_words(frozenset())
        self._likeness = (index.passages @ vector).astype(np.float64)
        self.likeness = by_range(self._likeness)
        self._cosines = (index.sentences @ vector).astype(np.float64)
        best = np.maximum.reduceat(self._cosines, mentions.starts)
        self.sentence = by_range(best)
        own = (
            0.36 * self.likeness + 0.36 * self.sentence + 0.28 * self._by_words / (self._by_words.max() or 1)
        )
        self.own = own / (own.max() or 1)
        asked = mentions.titles.mentioned(question, cased=False)
        self.asked = np.zeros(index.size)
        self.asked[[mentions.row_of[id] for name in asked for id in mentions.titles[name]]] = 1.0
        self._said = mentions.said_in.over(
            self._span(self._cosines, best), np.maximum, self.sentence[mentions.row]
        )
        self._near = np.minimum(
            1.0,
            mentions.beside.over(self._question_stems(question, asked), np.add, np.zeros(len(mentions.row)))
            / 2,
        )
        self._in_question = mentions.named_in(question)
        self.links = np.zeros((len(NAME_CLUES), index.size))
        self._repeated, self._joined, self._meaning = (
            np.zeros(index.size),
            np.zeros(index.size),
            self.likeness,
        )
        self._held: frozenset[str] = frozenset()
        self._open = self._by_words / (self._by_words.max() or 1)

    def table(self) -> _Matrix:
        """A row of CLUES for each document, shape (documents, CLUES)."""
        to_title, from_text, shared = (self.links[kind] for kind in (_TO_TITLE, _FROM_TEXT, _SHARED))
        rest = (self._open, self._repeated, self._joined, self._meaning)
        products = (
            to_title * self._open,
            from_text * self._open,
            shared * self._open,
            to_title * self.sentence,
            from_text * self.sentence,
        )
        return np.stack(
            [self.own, self.sentence, self.asked, *self.links, *rest, *products],
            dtype=np.float32,
            casting="same_kind",
        ).T

    def sure(self, row: int) -> float:
        """How sure a passage is, from 0 to 1, by its own words and by how it is linked: what it leads to is
        as sure at most.
        """
        linked = self.links[[_TO_TITLE_LIKELY, _FROM_TEXT_LIKELY, _SHARED], row].max()
        return float(min(1.0, self.own[row] + 0.5 * self.asked[row] + 0.7 * linked))

    def choose(self, row: int) -> Ways:
        """Take a passage: its names lead on, and what it says is no longer open."""
        index, sure = self._index, self.sure(row)
        alike = index.passages @ index.passages[row]
        joined = by_range(
            (self._likeness + alike) / (np.linalg.norm(self._vector + index.passages[row]) or 1)
        )
        ways = self._ways(row, sure, joined)
        for kind, strength in enumerate(ways.strengths):
            np.maximum.at(self.links[kind], ways.rows, strength)
        self._held |= {word for word, (rows, _) in self._words.items() if row in rows}
        self._open = self._over_words(self._held) / (self._by_words.max() or 1)
        start, end = index.mentions.sentences_of(row)
        said = index.sentences[start + int(np.argmax(self._cosines[start:end]))].astype(np.float64)
        self._left = self._left - _MEANT * max(0.0, float(self._left @ said)) * said
        self._meaning = by_range(
            np.maximum.reduceat(
                (index.sentences @ self._left.astype(np.float32)).astype(np.float64), index.mentions.starts
            )
        )
        self._repeated = np.maximum(self._repeated, alike)
        self._joined = np.maximum(self._joined, joined)
        return ways

    def _ways(self, row: int, sure: float, joined: _Floats) -> Ways:
        mentions = self._index.mentions
        own = mentions.pairs_of(row)
        ends = mentions.pairs_with(mentions.name[own].tolist())
        first, last = (
            np.repeat(own, [len(part) for part in ends]),
            np.concatenate([np.empty(0, np.int32), *ends]),
        )
        other = mentions.row[last] != row
        first, last = first[other], last[other]
        rows, names = mentions.row[last], mentions.name[first]
        called, holders = mentions.called_so[names], mentions.holders[names]
        to_title = mentions.held[first] & ~mentions.called[first] & mentions.called[last]
        from_text = mentions.called[first] & ~mentions.called[last] & mentions.held[last]
        shared = mentions.held[first] & (holders <= _COMMON) & ~self._in_question[names]
        rarity = np.log(self._index.size / holders) / np.log(max(self._index.size, 2))
        many = max(1, len(np.unique(rows[to_title])))
        holding = np.maximum(holders - called, 1)  # passages that hold the name of the chosen one
        towards = sure * to_title / np.sqrt(np.maximum(called, 1))
        ambiguous = sure * from_text / np.sqrt(np.maximum(called, 1))
        likely = (1 + self.likeness[rows]) / 2
        strengths = np.stack(
            [
                towards,
                ambiguous / np.sqrt(holding),
                sure * shared * rarity * self.likeness[rows],
                towards * self._said[first],
                ambiguous * self._said[last],
                sure * shared * rarity * self._said[last] * (1 + self._said[first]) / 2,
                np.maximum(np.maximum(sure * to_title, ambiguous), sure * shared * rarity) * joined[rows],
                towards / np.sqrt(many) * likely,
                ambiguous / np.sqrt(holding) * likely,
                np.maximum(towards * self._near[first], ambiguous * self._near[last]),
            ]
        )
        return Ways(rows, names, strengths)

    def _over_words(self, without: frozenset[str]) -> _Floats:
        """What BM25 gives each document for the words of the question, without some of them."""
        scores = np.zeros(self._index.size)
        for word, (rows, parts) in self._words.items():
            if word not in without:
                scores[rows] += parts
        return scores

    def _question_stems(self, question: str, asked: list[str]) -> _Floats:
        """1 for each stem of a word of the question that is no part of a name of a document in it."""
        named = {word for name in asked for word in name.split()}
        words = [word.lower() for word in name_words(question)]
        known = self._index.mentions.stems
        flags = np.zeros(len(known) or 1)
        flags[
            [
                known[beginning(word)]
                for word in words
                if len(word) > 2 and word not in COMMON | named and beginning(word) in known
            ]
        ] = 1.0
        return flags

    @staticmethod
    def _span(cosines: _Floats, best: _Floats) -> _Floats:
        """Cosines of sentences moved to where the best sentences of all documents lie between 0 and 1."""
        low, high = best.min(), best.max()
        moved: _Floats = np.clip((cosines - low) / ((high - low) or 1), 0, 1)
        return moved
