"""Features of each candidate for the next passage, given those chosen before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import row_products
from kgot_lab.graph.property_graph import Ints
from kgot_lab.retrieval.entity_linking import (
    CAPITALISED_RUN,
    NameIndex,
    capitalised_names,
    is_distinctive,
    name_words,
    normalise_name,
    title_name,
)
from kgot_lab.retrieval.fusion import scale_by_range
from kgot_lab.retrieval.neighbours import StepIndices, concatenate_ranges
from kgot_lab.text.words import NAME_STOP_WORDS, rough_sentences
from kgot_lab.types import Document

# The names of a passage: its title, or else the subject of its first sentence.

_ARTICLES = frozenset(("the", "a", "an"))
# maximum characters of a heading line, and number of heading lines to skip
_LONGEST_HEADING, _MOST_HEADINGS = (80, 5)
_SUBJECT_WITHIN = 300  # characters of the first sentence to search for the subject
_SUBJECT = re.compile(r"^\W*(.{2,80}?)\s*(?:\(|,|\b(?:is|was|are|were|refers|may refer)\b)")
_BEGINS_WITH_NAME = re.compile(rf"^\W*(?:{CAPITALISED_RUN.pattern})")
_LONGEST_SUBJECT = 8  # words in a subject
_HONORIFICS = frozenset(
    "sir dame lord lady king queen prince princess imam saint st dr general lieutenant admiral captain colonel major count countess duke "
    "duchess baron earl pope archbishop bishop rev reverend".split()
)
_JOINING = frozenset("of the and in for a de on at to from".split())


def remove_article(name: str) -> str:
    """Remove leading articles from a normalised name: The Beatles are also called Beatles."""
    words = name.split()
    while len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join(words)


def document_names(document: Document) -> tuple[str, ...]:
    """Return the normalised names of a document, the fullest first.

    If the document has a title, that is its only name. Otherwise the name is the subject of the first
    sentence, if the sentence begins with a name and then says what it is (`Albert S. Rogell (August 21, 1901
    …) was …`). The subject is then also returned without a leading rank, and as first and last name. The
    result is empty if no name is found.
    """
    if document.title:
        return tuple(filter(is_distinctive, [remove_article(title_name(document.title))]))
    found = _SUBJECT.match(_skip_headings(document.text)[:_SUBJECT_WITHIN])
    subject = found.group(1) if found else ""
    if not _BEGINS_WITH_NAME.match(subject) or len(subject.split()) > _LONGEST_SUBJECT:
        return ()
    name = remove_article(normalise_name(subject))
    if not is_distinctive(name):
        return ()
    return tuple(dict.fromkeys(filter(is_distinctive, [name, *_shorter_names(name)])))


def _skip_headings(text: str) -> str:
    """Remove headings and the list marker at the start of a text."""
    for _ in range(_MOST_HEADINGS):
        first, _, rest = text.partition("\n")
        short = len(first) <= _LONGEST_HEADING and not any(end in first for end in ".!?")
        heading = short or first.lstrip().startswith("#")
        if not (rest.strip() and heading):
            break
        text = rest
    return text.lstrip("-*> \t\n")


def _shorter_names(name: str) -> list[str]:
    words, shorter = name.split(), []
    ranks = 0
    while ranks < len(words) - 1 and words[ranks] in _HONORIFICS:
        ranks += 1
    if ranks and len(words) - ranks >= 2:
        words = words[ranks:]
        shorter.append(" ".join(words))
    plain = not _JOINING.intersection(words) and not any(letter.isdigit() for letter in name)
    if plain and 3 <= len(words) <= 5:
        shorter.append(f"{words[0]} {words[-1]}")
    return shorter


# The columns behind multi-hop retrieval: which passage holds which name, in which sentences, near which
# words.

_CONTEXT_BEFORE, _CONTEXT_AFTER = 5, 4  # context words before and after a name
PREFIX_LENGTH = 5  # characters: matches "director" and "directed"


def word_prefix(word: str) -> str:
    """Return the prefix by which words with different endings are compared."""
    return word[:PREFIX_LENGTH]


class Mentions:
    """The names in documents that link them. A *pair* is a passage and a name of it or in its text.

    `row`, `name`: of each pair. `called`, `held`: whether the name is the passage's own, and whether its text
    holds it. `said_in`: the sentences that hold it, as rows of all sentences. `beside`: the stems near it.
    Pairs are in the order of passages; `by_name` puts them in that of names, a passage's own names first.
    `bounds`: the first sentence of each document, and the end of the last. `sentences`: all sentences, each
    with the row of its document. `holders`, `called_so`: how many passages hold a name, or are called so.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self.titles = NameIndex(documents, document_names)
        self.sentences: list[tuple[int, str]] = []
        self.bounds = np.zeros(len(documents) + 1, np.int64)
        held = [self._read_names(row, document) for row, document in enumerate(documents)]
        self.named = named = [document_names(document) for document in documents]
        self.row_of = {document.id: row for row, document in enumerate(documents)}
        uses = Counter(name for row in range(len(documents)) for name in {*held[row], *named[row]})
        repeated = sorted(name for name, times in uses.items() if times > 1)
        leading = {name: number for number, name in enumerate(repeated)}
        pairs = [
            (row, leading[name], name in named[row], held[row].get(name, ((), ())))
            for row in range(len(documents))
            for name in sorted({*held[row], *named[row]})
            if name in leading
        ]
        self.names, self._numbers = tuple(leading), leading
        self.row, self.name = _int_array(row for row, *_ in pairs), _int_array(name for _, name, *_ in pairs)
        self.called = np.array([called for _, _, called, _ in pairs], bool)
        self.held = np.array([bool(places) for *_, (places, _) in pairs], bool)
        self.said_in = RaggedArray([places for *_, (places, _) in pairs])
        words = sorted({word for *_, (_, near) in pairs for word in near})
        self.stems = stems = {word: number for number, word in enumerate(words)}
        self.beside = RaggedArray([[stems[word] for word in sorted(near)] for *_, (_, near) in pairs])
        self.by_name = np.lexsort((~self.called, self.name))
        self.holders = np.bincount(self.name, minlength=len(self.names))
        self.called_so = np.bincount(self.name[self.called], minlength=len(self.names))

    def _read_names(self, row: int, document: Document) -> dict[str, tuple[tuple[int, ...], frozenset[str]]]:
        """Return, for each name in a text, the sentences that hold it and the stems near it."""
        places: dict[str, list[int]] = {}
        near: dict[str, set[str]] = {}
        for sentence in rough_sentences(document.text):
            words = [word.lower() for word in name_words(sentence)]
            names = {*map(remove_article, capitalised_names(sentence)), *self.titles.find_names(sentence)}
            for name in names:
                places.setdefault(name, []).append(len(self.sentences))
                near.setdefault(name, set()).update(_context_stems(words, name.split()))
            self.sentences.append((row, sentence))
        self.bounds[row + 1] = len(self.sentences)
        return {name: (tuple(some), frozenset(near[name])) for name, some in places.items()}

    def names_in_question(self, question: str) -> list[int]:
        """Return the names that a question holds as whole words."""
        words = normalise_name(question).split()
        count = len(words)
        spans = {" ".join(words[a:b]) for a in range(count) for b in range(a + 1, count + 1)}
        return sorted(self._numbers[span] for span in spans if span in self._numbers)

    def passage_pairs(self, rows: Ints) -> StepIndices:
        """Return the pairs of passages."""
        return concatenate_ranges(*np.searchsorted(self.row, (rows, rows + 1)))[0]

    def name_pairs(self, names: Ints, most: Ints | None = None) -> tuple[StepIndices, StepIndices]:
        """Return the pairs of names, at most `most` of each, and the position in `names` of each pair."""
        start = np.searchsorted(self.name, names, sorter=self.by_name)
        end = np.searchsorted(self.name, names, "right", self.by_name)
        places, owners = concatenate_ranges(start, end if most is None else np.minimum(end, start + most))
        return self.by_name[places], owners

    def linked_passages(self, rows: Ints, names: Sequence[int], most: int) -> Ints:
        """Return about `most` passages that hold a name of some passages or one of `names`, by the rarest names.

        A name in more than _COMMON_ABOVE passages leads only to those with this title.
        """
        found = np.unique(np.concatenate([self.name[self.passage_pairs(rows)], np.array(names, np.int32)]))
        holders = self.holders[found]
        counts = np.minimum(np.where(holders <= _COMMON_ABOVE, holders, self.called_so[found]), _COMMON_ABOVE)
        rarest = np.argsort(counts, kind="stable")
        rarest = rarest[np.cumsum(counts[rarest]) <= most]
        return self.row[self.name_pairs(found[rarest], counts[rarest])[0]]

    def subset(self, rows: Ints) -> Mentions:
        """Return the mentions of some passages; numbers of names, and how many hold them, stay those of all."""
        part = copy(self)
        pairs, owners = concatenate_ranges(*np.searchsorted(self.row, (rows, rows + 1)))
        part.row = owners.astype(np.int32)
        part.name, part.called, part.held = self.name[pairs], self.called[pairs], self.held[pairs]
        part.by_name = np.lexsort((~part.called, part.name))
        part.bounds = np.concatenate([[0], np.cumsum(self.bounds[rows + 1] - self.bounds[rows])])
        part.beside = self.beside.subset(pairs)
        moved = part.bounds[:-1] - self.bounds[rows]
        part.said_in = self.said_in.subset(pairs, moved[part.row])
        return part


class RaggedArray:
    """A ragged array: lists of numbers stored one after the other, for reductions over each."""

    def __init__(self, parts: Sequence[Sequence[int]]) -> None:
        self._bounds = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])
        self._flat = _int_array(number for part in parts for number in part)

    def subset(self, lists: StepIndices, moved: StepIndices | None = None) -> RaggedArray:
        """Return some of the lists, with `moved` of each added to its numbers."""
        part = copy(self)
        start, end = self._bounds[lists], self._bounds[lists + 1]
        places, owners = concatenate_ranges(start, end)
        part._bounds = np.concatenate([[0], np.cumsum(end - start)])
        part._flat = self._flat[places] if moved is None else self._flat[places] + moved[owners]
        return part

    def reduce(
        self, values: NDArray[np.float64], reducer: np.ufunc, default: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Reduce the values at the numbers of each list. An empty list gives `default`.

        Shapes (numbers,), (lists,).
        """
        folded = default.copy()
        full = np.flatnonzero(np.diff(self._bounds))
        if full.size:
            folded[full] = reducer.reduceat(values[self._flat], self._bounds[full])
        return folded


def _context_stems(words: list[str], name: list[str]) -> set[str]:
    """Return the stems near the first occurrence of a name in a sentence."""
    for at in range(len(words) - len(name) + 1):
        if words[at] == name[0] and words[at : at + len(name)] == name:
            end = at + len(name)
            return {
                word_prefix(word)
                for word in (*words[max(0, at - _CONTEXT_BEFORE) : at], *words[end : end + _CONTEXT_AFTER])
                if word not in NAME_STOP_WORDS
            }
    return set()


def _int_array(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, np.int32)


_Floats = NDArray[np.float64]
_Matrix = NDArray[np.float32]

NAME_FEATURES = (
    "to its title",  # a chosen passage mentions its name
    "from its text",  # it mentions the name of a chosen passage
    "shared",  # both hold a name, times its rarity and the similarity to the question
    "to its title, as asked",  # the same three, times the similarity of the sentence with the name to the question
    "from its text, as asked",
    "shared, as asked",
    "joined",  # similarity to the sum of the question and the chosen passage
    "to its title, likely",  # times similarity to the question, less if the chosen passage holds many names
    "from its text, likely",
    "beside",  # words of the question are near the name
)
FEATURES = (
    *("own", "sentence", "asked", *NAME_FEATURES),
    "open words",  # BM25 of the question words that no chosen passage holds
    "repeated",  # similarity to a chosen passage
    "joined to any",  # "joined", linked or not
    "open meaning",  # similarity of the best sentence to the unanswered part of the question
    *(f"{link} x open" for link in ("to its title", "from its text", "shared")),
    *(f"{link} x sentence" for link in ("to its title", "from its text")),
)
# features that are 0 for a passage without a link
LINK_FEATURES = (*NAME_FEATURES, *(feature for feature in FEATURES if " x " in feature))
_TO_TITLE, _FROM_TEXT, _SHARED, _TO_TITLE_LIKELY, _FROM_TEXT_LIKELY = map(
    NAME_FEATURES.index,
    ("to its title", "from its text", "shared", "to its title, likely", "from its text, likely"),
)
_COMMON_ABOVE = 100  # a name in more passages than this links only the passages with this title
# the share of the overlap with a chosen passage's best sentence that counts as answered
_ANSWERED_SHARE = 0.7


@dataclass(frozen=True, eq=False)
class MultihopIndex:
    """The precomputed index: names, vectors of passages and sentences, and BM25 weights of words."""

    mentions: Mentions
    passages: _Matrix  # (documents, dimension), rows of length 1 or 0
    sentences: _Matrix  # (sentences, dimension)
    # for each word the rows that hold it, and their BM25 scores
    words: Mapping[str, tuple[Ints, NDArray[np.float32]]]
    rows: Ints  # of the passages in the whole collection

    @property
    def size(self) -> int:
        """The number of documents."""
        return len(self.passages)

    def subset(self, rows: Ints, words: Iterable[str]) -> MultihopIndex:
        """Return the index of some passages, whose rows ascend, and some words.

        How many passages there are of a name remains that of the whole collection.
        """
        bounds = self.mentions.bounds
        sentences, _ = concatenate_ranges(bounds[rows], bounds[rows + 1])
        held = {}
        for word in set(words) & self.words.keys():
            holding, parts = self.words[word]
            places = np.minimum(np.searchsorted(holding, rows), len(holding) - 1)
            here = np.flatnonzero(holding[places] == rows).astype(np.int32)
            held[word] = here, parts[places[here]]
        vectors = self.passages[rows], self.sentences[sentences]
        return MultihopIndex(self.mentions.subset(rows), *vectors, held, rows)


@dataclass(frozen=True, eq=False)
class CandidateEdges:
    """The links from a chosen passage: target passage, name, and strength by each of NAME_FEATURES."""

    rows: Ints
    names: Ints
    strengths: _Floats  # (NAME_FEATURES, edges)


class QuestionFeatures:
    """The features for one question, updated with every passage that is chosen."""

    def __init__(self, index: MultihopIndex, question: str, vector: _Matrix, words: list[str]) -> None:
        mentions = index.mentions
        self._index, self._vector, self._left = index, vector, vector.astype(np.float64)
        self._words = {word: index.words[word] for word in dict.fromkeys(words) if word in index.words}
        self._by_words = self._lexical_scores(frozenset())
        self._likeness = row_products(index.passages, vector).astype(np.float64)
        self.likeness = scale_by_range(self._likeness)
        self._cosines = row_products(index.sentences, vector).astype(np.float64)
        best = np.maximum.reduceat(self._cosines, mentions.bounds[:-1])
        self.sentence = scale_by_range(best)
        own = 0.36 * self.likeness + 0.36 * self.sentence
        own = own + 0.28 * self._by_words / (self._by_words.max() or 1)
        self.own = own / (own.max() or 1)
        asked = mentions.titles.find_names(question, cased=False)
        rows = [mentions.row_of[id] for name in asked for id in mentions.titles[name]]
        self.asked = np.isin(index.rows, rows).astype(np.float64)
        scaled = self._scale_to_best(self._cosines, best)
        self._said = mentions.said_in.reduce(scaled, np.maximum, self.sentence[mentions.row])
        flags, none = self._stem_flags(question, asked), np.zeros(len(mentions.row))
        self._near = np.minimum(1.0, mentions.beside.reduce(flags, np.add, none) / 2)
        self._in_question = mentions.names_in_question(question)
        self.links = np.zeros((len(NAME_FEATURES), index.size))
        self._repeated = np.zeros(index.size)
        self._joined = np.zeros(index.size)
        self._meaning = self.likeness
        self._held: frozenset[str] = frozenset()
        self._open = self._by_words / (self._by_words.max() or 1)

    def table(self) -> _Matrix:
        """Return the features of all documents, shape (documents, FEATURES)."""
        to_title, from_text, shared = (self.links[kind] for kind in (_TO_TITLE, _FROM_TEXT, _SHARED))
        rest = (self._open, self._repeated, self._joined, self._meaning)
        products = [link * self._open for link in (to_title, from_text, shared)]
        products += [link * self.sentence for link in (to_title, from_text)]
        columns = [self.own, self.sentence, self.asked, *self.links, *rest, *products]
        return np.stack(columns, dtype=np.float32, casting="same_kind").T

    def confidence(self, row: int) -> float:
        """Return the confidence in a passage, from 0 to 1, by its own words and its links.

        It bounds the confidence in any passage that this one leads to.
        """
        linked = self.links[[_TO_TITLE_LIKELY, _FROM_TEXT_LIKELY, _SHARED], row].max()
        return float(min(1.0, self.own[row] + 0.5 * self.asked[row] + 0.7 * linked))

    def choose(self, row: int) -> CandidateEdges:
        """Choose a passage: follow its names, and mark what it says as answered."""
        index, confidence = self._index, self.confidence(row)
        similarity = row_products(index.passages, index.passages[row])
        length = np.linalg.norm(self._vector + index.passages[row]) or 1
        joint_similarity = scale_by_range((self._likeness + similarity) / length)
        edges = self._candidate_edges(row, confidence, joint_similarity)
        for kind, strength in enumerate(edges.strengths):
            np.maximum.at(self.links[kind], edges.rows, strength)
        self._held |= {word for word, (rows, _) in self._words.items() if row in rows}
        self._open = self._lexical_scores(self._held) / (self._by_words.max() or 1)
        start, end = index.mentions.bounds[row : row + 2]
        answer_vector = index.sentences[start + int(np.argmax(self._cosines[start:end]))].astype(np.float64)
        answered = _ANSWERED_SHARE * max(0.0, float(self._left @ answer_vector))
        self._left = self._left - answered * answer_vector
        meaning = row_products(index.sentences, self._left.astype(np.float32)).astype(np.float64)
        self._meaning = scale_by_range(np.maximum.reduceat(meaning, index.mentions.bounds[:-1]))
        self._repeated = np.maximum(self._repeated, similarity)
        self._joined = np.maximum(self._joined, joint_similarity)
        return edges

    def _candidate_edges(self, row: int, confidence: float, joint_similarity: _Floats) -> CandidateEdges:
        mentions = self._index.mentions
        own = mentions.passage_pairs(np.array([row], np.int32))
        last, owners = mentions.name_pairs(mentions.name[own])
        first = own[owners]
        other = mentions.row[last] != row
        first, last = first[other], last[other]
        rows, names = mentions.row[last], mentions.name[first]
        called, holders = mentions.called_so[names], mentions.holders[names]
        to_title = mentions.held[first] & ~mentions.called[first] & mentions.called[last]
        from_text = mentions.called[first] & ~mentions.called[last] & mentions.held[last]
        shared = mentions.held[first] & (holders <= _COMMON_ABOVE) & ~np.isin(names, self._in_question)
        size = len(mentions.row_of)  # of the whole collection
        rarity = np.log(size / holders) / np.log(max(size, 2))
        many = max(1, len(np.unique(rows[to_title])))
        holding = np.maximum(holders - called, 1)  # passages that mention the chosen one
        towards = confidence * to_title / np.sqrt(np.maximum(called, 1))
        ambiguous = confidence * from_text / np.sqrt(np.maximum(called, 1))
        likely = (1 + self.likeness[rows]) / 2
        strengths = np.stack(
            [
                towards,
                ambiguous / np.sqrt(holding),
                confidence * shared * rarity * self.likeness[rows],
                towards * self._said[first],
                ambiguous * self._said[last],
                confidence * shared * rarity * self._said[last] * (1 + self._said[first]) / 2,
                np.maximum(np.maximum(confidence * to_title, ambiguous), confidence * shared * rarity)
                * joint_similarity[rows],
                towards / np.sqrt(many) * likely,
                ambiguous / np.sqrt(holding) * likely,
                np.maximum(towards * self._near[first], ambiguous * self._near[last]),
            ]
        )
        return CandidateEdges(rows, names, strengths)

    def _lexical_scores(self, without: frozenset[str]) -> _Floats:
        """Return the BM25 score of each document for the words of the question, leaving out `without`."""
        scores = np.zeros(self._index.size)
        for word, (rows, parts) in self._words.items():
            if word not in without:
                scores[rows] += parts
        return scores

    def _stem_flags(self, question: str, asked: list[str]) -> _Floats:
        """Return flags of the stems in the question that are not part of a document's name in it."""
        named = {word for name in asked for word in name.split()}
        words = [word.lower() for word in name_words(question)]
        known = self._index.mentions.stems
        flags = np.zeros(len(known) or 1)
        stems = [word_prefix(word) for word in words if len(word) > 2 and word not in NAME_STOP_WORDS | named]
        flags[[known[stem] for stem in stems if stem in known]] = 1.0
        return flags

    @staticmethod
    def _scale_to_best(cosines: _Floats, best: _Floats) -> _Floats:
        """Scale sentence cosines so that the best of each document span 0 to 1, and clip the rest."""
        low, high = best.min(), best.max()
        moved: _Floats = np.clip((cosines - low) / ((high - low) or 1), 0, 1)
        return moved
