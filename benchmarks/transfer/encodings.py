"""Encodings in which a text and the same text told of something else lie close together: learnt without
labels, from pairs made by rule.

Each sentence is its embedding beside that of its masked text. The directions kept are those in which
sentences differ most, over how much a sentence differs from its reworded self: the discriminant of Fisher
(1936), with each pair as a class of its own and the within-class scatter shrunk (Friedman 1989). No answer to
any question is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.structure.systems import row_of
from benchmarks.transfer.outcomes import ordered_likeness
from kgot_lab.analogy.linguistic import SOMETHING, Sentence, analyse
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.significance import Numbers

TRIED_DIRECTIONS = (10, 20, 40, 80)
_SHRINK = 0.1  # the share of the mean variance that is added to the variance within pairs


@dataclass(frozen=True, eq=False, repr=False)
class Encoder:
    """Directions of a space of sentences, the best first: a sentence is encoded by (features - mean) @
    directions.
    """

    mean: Numbers  # (features,)
    directions: Numbers  # (features, directions)

    @classmethod
    def learnt(
        cls, pairs: Sequence[tuple[str, str]], embedder: Embedder, most: int = max(TRIED_DIRECTIONS)
    ) -> Encoder:
        """Learn from texts, each with itself reworded, sentence by sentence; a pair whose sentences do not
        answer each other is left out.

        Raises BadInput where fewer pairs of sentences than directions are left, where the features are fewer,
        and where no pair differs.
        """
        known = _told([text for pair in pairs for text in pair])
        told = [(known[one], known[other]) for one, other in pairs if len(known[one]) == len(known[other])]
        both = [sides for one, other in told for sides in zip(one, other, strict=True)]
        if len(both) < most:
            raise BadInput(
                f"{len(both)} pairs of sentences are too few for {most} directions; give more texts"
            )
        one, other = (_features([pair[side] for pair in both], embedder) for side in (0, 1))
        if most > one.shape[1]:
            raise BadInput(
                f"{one.shape[1]} features of a sentence hold no {most} directions; ask for fewer, or take a larger embedder"
            )
        mean = (one.mean(axis=0) + other.mean(axis=0)) / 2
        within, spread = _scatter(one - other), _scatter(np.concatenate([one, other]) - mean)
        if not np.trace(within):
            raise BadInput(
                "no text differs from itself reworded, so there is nothing to learn: these texts hold no nouns to deal out"
            )
        within += np.eye(len(mean)) * _SHRINK * np.trace(within) / len(mean)
        whiten = np.linalg.cholesky(np.linalg.inv(within))
        best = np.linalg.eigh(whiten.T @ spread @ whiten)[1][:, ::-1][:, :most]
        return cls(mean, whiten @ best)

    def __repr__(self) -> str:
        return f"<encoder, {self.directions.shape[1]} directions>"


class EncodedTraits:
    """How alike texts are in some encodings, sentence beside sentence in order, with the first 10, 20, 40 and
    80 directions of each.

    A sentence of which nothing is left without its nouns counts as "something"; languages other than English
    are read as if they were it. Raises BadInput for an encoder of fewer directions.
    """

    def __init__(self, encoders: Mapping[str, Encoder], embedder: Embedder) -> None:
        if few := [
            name for name, encoder in encoders.items() if encoder.directions.shape[1] < max(TRIED_DIRECTIONS)
        ]:
            raise BadInput(
                f"the encoder without {few[0]} has fewer than {max(TRIED_DIRECTIONS)} directions; learn it with more"
            )
        self.names = tuple(encoded_trait(name, count) for name in encoders for count in TRIED_DIRECTIONS)
        self._encoders, self._embedder = encoders, embedder
        self._row_of: dict[str, int] = {}
        self._encoded: list[list[Numbers]] = []

    def prepare(self, texts: Sequence[str]) -> None:
        """Read and encode the texts; those known from before are forgotten."""
        known = _told(sorted(set(texts)))
        self._row_of = {text: row for row, text in enumerate(known)}
        ends = np.cumsum([len(told) for told in known.values()])[:-1]
        features = _features([sentence for told in known.values() for sentence in told], self._embedder)
        sides = [
            self._encode(features, encoder, count)
            for encoder in self._encoders.values()
            for count in TRIED_DIRECTIONS
        ]
        self._encoded = [list(rows) for rows in zip(*(np.split(side, ends) for side in sides), strict=True)]

    def _encode(self, features: Numbers, encoder: Encoder, count: int) -> Numbers:
        if len(encoder.mean) != features.shape[1]:
            raise BadInput(
                f"an encoder of {len(encoder.mean)} features reads sentences of no {features.shape[1]}: it knows another embedder"
            )
        rows = (features - encoder.mean) @ encoder.directions[:, :count]
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9), np.float64)

    def of(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The mean likeness over sentences paired in order, as an aligner counts it, shape (candidates,
        traits).
        """
        one = self._encoded[row_of(source, self._row_of, "encoded")]
        others = [self._encoded[row_of(text, self._row_of, "encoded")] for text in candidates]
        return np.array(
            [
                [ordered_likeness(mine @ theirs.T) for mine, theirs in zip(one, other, strict=True)]
                for other in others
            ]
        )


def encoded_trait(held: str, count: int) -> str:
    """The name of the likeness in so many directions of the encoder that was learnt without a set."""
    return f"encoded without {held}, {count}"


def _told(texts: Sequence[str]) -> dict[str, tuple[Sentence, ...]]:
    """Each text with its sentences; a blank one is its own only sentence."""
    return {
        text: each.sentences or (Sentence(text, "", (), False),)
        for text, each in zip(texts, analyse(texts), strict=True)
    }


def _features(sentences: Sequence[Sentence], embedder: Embedder) -> Numbers:
    """The embedding of each sentence beside that of its masked text, shape (sentences, twice the dimension)."""
    return np.hstack(
        [
            _embedded(side, embedder)
            for side in ([each.text for each in sentences], [each.masked for each in sentences])
        ]
    )


def _embedded(lines: Sequence[str], embedder: Embedder) -> Numbers:
    place = {line: row for row, line in enumerate(dict.fromkeys(lines))}
    rows = np.asarray(embedder.embed([line or SOMETHING for line in place]), np.float64)
    return rows[[place[line] for line in lines]]


def _scatter(rows: Numbers) -> Numbers:
    return np.asarray(rows.T @ rows / len(rows), np.float64)
