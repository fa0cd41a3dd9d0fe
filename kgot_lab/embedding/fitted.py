"""Embedders fitted to the documents at hand: latent semantic analysis and InfoNCE."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.embedder import Matrix, RowEmbedder
from kgot_lab.errors import InsufficientData, NotInstalled, require_count
from kgot_lab.types import Document, checked_documents, full_text


@check_arguments
def lsa(documents: Iterable[Document], *, dimension: int = 256, seed: int = 0) -> LSA:
    """Fit latent semantic analysis: TF-IDF and its truncated SVD (Deerwester et al. 1990).

    TF is 1 + log tf, without English stop words. The dimension is at most the number of documents and of
    words. Raises BadInput without a document, InsufficientData if they have no word, and NotInstalled for a
    missing package.
    """
    require_count(dimension, 1, "the dimension of a vector")
    require_count(seed, 0, "seed", maximum=2**32 - 1)
    texts = [full_text(document) for document in checked_documents(documents)]
    try:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise NotInstalled("bench", error.name or "") from None
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english", dtype=np.float32)
    try:
        counts = words.fit_transform(texts)
    except ValueError:  # raised if every text is blank or only stop words
        problem = f"LSA learns from words, and the {len(texts)} documents hold none"
        raise InsufficientData(f"{problem} but stop words") from None
    if counts.shape[1] == 1:
        return LSA(words, _OneDirection())
    with np.errstate(divide="ignore", invalid="ignore"):  # the explained variance is 0/0 for equal documents
        return LSA(words, TruncatedSVD(min(dimension, *counts.shape), random_state=seed).fit(counts))


class _OneDirection:
    """The projection for documents with a single word, which leave nothing to decompose."""

    components_ = np.ones((1, 1), np.float32)

    def transform(self, counts: Any) -> Matrix:
        """Return the rows unchanged, as a dense array."""
        return np.asarray(counts.toarray(), np.float32)


class LSA(RowEmbedder):
    """TF-IDF rows projected on the main directions of the fitted documents, created by `lsa`.

    A text without a word of those documents has a vector of zeros, whose cosine with everything is 0.
    """

    name = "lsa"

    def __init__(self, words: Any, directions: Any) -> None:
        self._words, self._directions = words, directions
        self.dimension = int(directions.components_.shape[0])
        vocabulary = " ".join(words.get_feature_names_out()).encode()
        fitted = vocabulary, words.idf_.tobytes(), directions.components_.tobytes()
        # SHA-256 of the words, weights and directions
        self.digest = hashlib.sha256(b"\0".join(fitted)).hexdigest()

    def _encode(self, texts: list[str]) -> Any:
        return self._directions.transform(self._words.transform(texts))

    def __repr__(self) -> str:
        return f"<{self.name}, {self.dimension} dimensions of {len(self._words.vocabulary_):,} words>"


# Contrastive embeddings from unlabelled passages: two halves of a passage are a positive pair, halves of
# different passages are negatives.

_Floats = NDArray[np.floating]
_Words = NDArray[np.int64]  # the words of a text, as indices in the vocabulary


@dataclass(frozen=True)
class Training:
    """Training settings of InfoNCE."""

    epochs: int = 20
    batch: int = 256  # all other passages of a batch are negatives
    temperature: float = 0.05
    rate: float = 0.02
    seed: int = 0


def infonce(
    documents: Iterable[Document],
    *,
    dimension: int = 256,
    training: Training = Training(),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> InfoNCE:
    """Fit a linear map of word counts by InfoNCE (van den Oord et al. 2018).

    Random halves of a document are the positive pairs. The same documents and seed give the same map.
    `progress(done, total)` counts epochs. Raises InsufficientData unless two documents have words.
    """
    documents = checked_documents(documents)
    texts = [_sentences(full_text(document)) for document in documents]
    texts = [sentences for sentences in texts if sum(map(len, sentences)) >= 2]
    require_count(dimension, 1, "the dimension of a vector", maximum=100_000)
    if len(texts) < 2:
        problem = "InfoNCE tells documents of two words or more apart"
        raise InsufficientData(f"{problem}, and {len(texts)} of these {len(documents)} are such")
    model = _random_projection(texts, dimension, training.seed)
    passages = [[model.word_indices(words) for words in sentences] for sentences in texts]
    random = np.random.default_rng(training.seed)
    # Adagrad (Duchi et al. 2011), one step size per word
    squares = np.full(len(model.weights), 1e-8, np.float32)
    for epoch in range(training.epochs):
        progress(epoch, training.epochs)
        order = random.permutation(len(passages))
        for start in range(0, len(order) - 1, training.batch):
            halves = [_split_halves(passages[row], random) for row in order[start : start + training.batch]]
            _, used, gradient = infonce_loss(
                model.weights,
                model.word_matrix([*(a for a, _ in halves), *(b for _, b in halves)]),
                training.temperature,
            )
            squares[used] += (gradient**2).mean(axis=1)
            model.weights[used] -= training.rate * gradient / np.sqrt(squares[used])[:, None]
    progress(training.epochs, training.epochs)
    return model


@dataclass(frozen=True, eq=False)
class WordMatrix:
    """A sparse matrix X of texts by words with amounts, sorted by line, then word."""

    count: int  # lines; a text without words has no entry
    lines: _Words
    words: _Words
    amounts: _Floats

    def multiply(self, weights: _Floats) -> _Floats:
        """Compute X W, shape (lines, dimension)."""
        product = np.zeros((self.count, weights.shape[1]), weights.dtype)
        lines, sums = _sum_by_key(self.lines, weights[self.words] * self.amounts[:, None])
        product[lines] = sums
        return product

    def multiply_transposed(self, slope: _Floats) -> tuple[_Words, _Floats]:
        """Return the non-zero rows of X^T S: the words that occur, and a row for each."""
        order = np.argsort(self.words, kind="stable")
        return _sum_by_key(self.words[order], slope[self.lines[order]] * self.amounts[order, None])


def infonce_loss(weights: _Floats, bags: WordMatrix, temperature: float) -> tuple[float, _Words, _Floats]:
    """Compute the InfoNCE loss of text pairs, lines i and n + i of X, under the map W, and its gradient.

    The gradient is given as the words that occur and a row for each. With the rows of X W normalised to
    length 1, a of the first n and b of the others, and S = a b^T / temperature: L = - mean over i of [log
    softmax over row i + log softmax over column i] of S_ii, / 2.
    """
    product = bags.multiply(weights)
    lengths = np.maximum(np.linalg.norm(product, axis=1, keepdims=True), 1e-8)
    a, b = np.split(product / lengths, 2)
    scores, pairs = a @ b.T / temperature, len(a)
    by_row, by_column = _log_softmax(scores, 1), _log_softmax(scores, 0)
    value = -(np.trace(by_row) + np.trace(by_column)) / (2 * pairs)
    slope = np.exp(by_row) + np.exp(by_column) - 2 * np.eye(pairs, dtype=scores.dtype)
    slope = slope / (2 * pairs * temperature)
    units, slopes = np.concatenate([a, b]), np.concatenate([slope @ b, slope.T @ a])
    # a step along a row only changes its length
    slopes = (slopes - units * (slopes * units).sum(axis=1, keepdims=True)) / lengths
    return float(value), *bags.multiply_transposed(slopes)


class InfoNCE(RowEmbedder):
    """The sum of a text's word vectors, weighted by (1 + log tf) idf, created by `infonce`.

    A text without a word of the training documents has a vector of zeros, whose cosine with everything is 0.
    """

    name = "infonce"

    def __init__(self, vocabulary: Mapping[str, int], rarity: _Floats, weights: _Floats) -> None:
        self.vocabulary, self.rarity, self.weights = vocabulary, rarity, weights
        self.dimension = weights.shape[1]

    @property
    def digest(self) -> str:
        """SHA-256 of the words, their idf and the map."""
        parts = " ".join(self.vocabulary).encode(), self.rarity.tobytes(), self.weights.tobytes()
        return hashlib.sha256(b"\0".join(parts)).hexdigest()

    def _encode(self, texts: list[str]) -> Any:
        words = [self.word_indices(_tokenise(text)) for text in texts]
        vectors = np.zeros((len(words), self.dimension), np.float32)
        for start in range(0, len(words), 256):
            vectors[start : start + 256] = self.word_matrix(words[start : start + 256]).multiply(self.weights)
        return vectors

    def word_indices(self, words: Iterable[str]) -> _Words:
        """Return the indices of the words in the vocabulary."""
        return np.array([self.vocabulary[word] for word in words if word in self.vocabulary], np.int64)

    def word_matrix(self, texts: Sequence[_Words]) -> WordMatrix:
        """Return the TF-IDF matrix of texts, with rows of length 1."""
        lines = np.repeat(np.arange(len(texts)), [len(words) for words in texts])
        words = lines * len(self.vocabulary) + np.concatenate([*texts, np.empty(0, np.int64)])
        entries, counts = np.unique(words, return_counts=True)
        lines, words = np.divmod(entries, len(self.vocabulary))
        amounts = (1 + np.log(counts)) * self.rarity[words]
        lengths = np.sqrt(np.bincount(lines, amounts**2, minlength=len(texts)))
        weights = (amounts / np.maximum(lengths[lines], 1e-8)).astype(self.weights.dtype)
        return WordMatrix(len(texts), lines, words, weights)

    def __repr__(self) -> str:
        return f"<{self.name}, {self.dimension} dimensions of {len(self.vocabulary):,} words>"


def _random_projection(texts: Sequence[Sequence[Sequence[str]]], dimension: int, seed: int) -> InfoNCE:
    """Create a random projection of the words of texts, given as sentences.

    It approximately preserves TF-IDF cosines.
    """
    text_words = [{word for sentence in sentences for word in sentence} for sentences in texts]
    vocabulary = {word: place for place, word in enumerate(sorted(set().union(*text_words)))}
    found = np.zeros(len(vocabulary))
    for words in text_words:
        found[[vocabulary[word] for word in words]] += 1
    random = np.random.default_rng(seed).normal(size=(len(vocabulary), dimension), scale=dimension**-0.5)
    return InfoNCE(vocabulary, np.log((1 + len(texts)) / found), random.astype(np.float32))


def _tokenise(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _sentences(text: str) -> list[list[str]]:
    return [words for words in map(_tokenise, re.split(r"(?<=[.!?])\s+", text)) if words]


def _split_halves(sentences: Sequence[_Words], random: np.random.Generator) -> tuple[_Words, _Words]:
    """Split the sentences of a text at random into two halves, or its words if it has one sentence."""
    parts = sentences if len(sentences) > 1 else np.split(sentences[0], len(sentences[0]))
    order = random.permutation(len(parts)).tolist()
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    one, other = (np.concatenate([parts[row] for row in half]) for half in halves)
    return one, other


def _sum_by_key(keys: _Words, rows: _Floats) -> tuple[_Words, _Floats]:
    """Sum the rows with equal keys. The keys must be sorted."""
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[starts], np.add.reduceat(rows, starts, axis=0) if len(starts) else rows


def _log_softmax(scores: _Floats, axis: int) -> _Floats:
    shifted = scores - scores.max(axis=axis, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True)))
