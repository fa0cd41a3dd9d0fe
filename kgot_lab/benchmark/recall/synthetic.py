"""Synthetic passages of any number, with answers planted in them: to see how time and memory grow, not how
well a lane finds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.types import Document, Query

# no e and no s: no stop word, no ending to stem
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprtvz" for vowel in "aiou"]
_VOCABULARY = 50_000  # words that passages are filled with
_WORDS = 32  # of them in a passage
_RARE = 2  # words of a query that only its first passage has together
_CHUNK = 10_000  # passages made at a time: what is held besides the passages themselves


def synthetic(n: int, queries: int = 50, seed: int = 0) -> Dataset:
    """n passages whose words follow Zipf's law, some of which name the title of another, and queries with two
    relevant passages each.

    The first shares both rare words of the query (two other passages have one of them each); the second
    shares no rare word, but the first names its title. The same numbers give the same data. Raises BadInput
    for fewer than four passages a query.
    """
    if queries < 1 or n < 4 * queries:
        raise BadInput(
            f"synthetic() takes at least one query and four passages a query; {queries} and {n} were asked for"
        )
    chance = np.random.default_rng(seed)
    planted = chance.choice(
        n, size=(queries, 4), replace=False
    ).tolist()  # first, second, and two with one rare word each
    extra: dict[int, list[str]] = {}
    asked = []
    for number, (first, second, one, other) in enumerate(planted):
        rare = [word(_VOCABULARY + _RARE * number + place) for place in range(_RARE)]
        extra |= {first: [*rare, title(second)], one: rare[:1], other: rare[1:]}
        common = " ".join(word(int(rank)) for rank in chance.integers(20, 2_000, size=4))
        asked.append(Query(f"{' '.join(rare)} {common}", f"q{number}"))
    words = np.array([word(rank) for rank in range(_VOCABULARY)], object)
    documents = tuple(
        chain.from_iterable(_passages(n, start, chance, words, extra) for start in range(0, n, _CHUNK))
    )
    qrels = {
        query.id: {_id(first): 1, _id(second): 1}
        for query, (first, second, _, _) in zip(asked, planted, strict=True)
    }
    return Dataset(f"synthetic-{n}", documents, tuple(asked), qrels)


def _passages(
    n: int,
    start: int,
    chance: np.random.Generator,
    words: NDArray[np.object_],
    extra: Mapping[int, list[str]],
) -> Iterator[Document]:
    size = min(_CHUNK, n - start)
    texts = words[zipf(chance, (size, _WORDS))].tolist()
    # squared: the first titles are named most, as hubs are
    named = (n * chance.random(size) ** 2).astype(np.int64).tolist()
    for row, (text, other) in enumerate(zip(texts, named, strict=True)):
        number = start + row
        ours = [title(other)] if other != number else []
        yield Document(_id(number), f"{' '.join([*extra.get(number, ()), *text, *ours])}.", title(number))


def zipf(chance: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Ranks of words, from 0, of which the k-th is drawn in proportion to 1 / k."""
    shares = np.cumsum(1 / np.arange(1, _VOCABULARY + 1))
    ranks: NDArray[np.int64] = np.searchsorted(shares, chance.random(shape) * shares[-1])
    return ranks


def word(number: int) -> str:
    """The word of a number below 140,608: three syllables."""
    number = number * 7_919 % 52**3  # neighbours look different
    return _SYLLABLES[number // 2704 % 52] + _SYLLABLES[number // 52 % 52] + _SYLLABLES[number % 52]


def title(number: int) -> str:
    """The title of a passage: a given name that some share and a family name that up to a thousand share,
    together its own.
    """
    given, family = number % 1_000, number // 1_000
    return f"{word(given).capitalize()}na {word(family).capitalize()}ro"


def _id(number: int) -> str:
    return f"s{number:07d}"


class SyntheticVectors:
    """Vectors by feature hashing (Weinberger et al. 2009): every word adds or takes 1 at a few places that
    its SHA-256 names.

    They stand in for an embedder's where only size matters: texts with words in common lie close, nothing
    more is meant.
    """

    def __init__(self, dimension: int = 384) -> None:
        if dimension < 8:
            raise BadInput(f"vectors need at least 8 dimensions, not {dimension}")
        self.name, self.dimension = "synthetic-hashing", dimension
        self.digest = hashlib.sha256(f"{self.name} {dimension}".encode()).hexdigest()
        self._places: dict[str, int] = {}  # the row of a word in the two tables below, which grow
        self._at = np.zeros((1_024, 4), np.int64)
        self._sign = np.zeros((1_024, 4))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector of length 1 per text, shape (len(texts), dimension); a text without a word has zeros."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), _CHUNK):
            sums = self._sums(texts[start : start + _CHUNK])
            lengths = np.linalg.norm(sums, axis=1, keepdims=True)
            vectors[start : start + _CHUNK] = sums / np.where(lengths > 0, lengths, 1)
        return vectors

    def _sums(self, texts: Sequence[str]) -> NDArray[np.float64]:
        words = [text.lower().replace(".", " ").split() for text in texts]
        rows = np.repeat(np.arange(len(texts)), [len(line) for line in words])
        known = np.array([self._row(each) for line in words for each in line], np.int64)
        if not len(known):
            return np.zeros((len(texts), self.dimension))
        places = (rows[:, None] * self.dimension + self._at[known]).ravel()
        sums = np.bincount(places, self._sign[known].ravel(), len(texts) * self.dimension)
        return np.asarray(sums, np.float64).reshape(len(texts), self.dimension)

    def _row(self, each: str) -> int:
        row = self._places.setdefault(each, len(self._places))
        if row + 1 == len(self._places):  # the newest word: new, or written again
            if row == len(self._at):
                self._at, self._sign = np.concatenate([self._at] * 2), np.concatenate([self._sign] * 2)
            draw = hashlib.sha256(each.encode("utf-8", "replace")).digest()
            self._at[row] = np.frombuffer(draw, ">u4", 4) % self.dimension
            self._sign[row] = [1.0 if byte % 2 else -1.0 for byte in draw[16:20]]
        return row

    def __repr__(self) -> str:
        return f"<{self.name}, {self.dimension} dimensions>"
