"""How often the intent of a query is found: by words, as `classify_intent` does, and by a linear probe on
vectors that was fitted.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.kgos.queries import CookbookQuery
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import UnknownName
from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.methods.intents import INTENTS, classify_intent

NO_INTENT = "none"
INTENT_LABELS = (*INTENTS, NO_INTENT)
BY_WORDS = "by words"
PROBED = "probe"
PROBE_OOS = "probe, 100 questions from outside"
COMMONEST = "the commonest"
_L2 = 0.03  # of six between .03 and 10 the best in cross-validation on the tuning half, for either probe
_ROUNDS = 300  # of gradient steps; the loss is convex

OutsideSplit = Literal["train", "val", "test"]


@dataclass(frozen=True)
class IntentSaid:
    """What a system says of each query: the intent, or none."""

    system: str
    labels: Mapping[str, str]


def outside_questions(split: OutsideSplit) -> tuple[str, ...]:
    """The questions of clinc150 that are outside of its own 150 intents: 100 to train, 100 to validate, 1,000
    to test; none is of ours.
    """
    if split not in ("train", "val", "test"):
        raise UnknownName("split", str(split), ("train", "val", "test"))
    with gzip.open(bundled_path("clinc150-oos/questions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        return tuple(row["text"] for row in map(json.loads, lines) if row["split"] == split)


def intent_by_words(text: str) -> str:
    """The likeliest intent of a query as its words have it, or none."""
    best = classify_intent(text).best
    return best.name if best else NO_INTENT


def said_of_queries(
    system: str, classify: Callable[[Sequence[str]], Sequence[str]], asked: Mapping[str, str]
) -> IntentSaid:
    """What a classifier says of some texts, by id."""
    return IntentSaid(system, dict(zip(asked, classify(list(asked.values())), strict=True)))


def intent_systems(
    tuning: Sequence[CookbookQuery], embedder: Embedder
) -> Mapping[str, Callable[[Sequence[str]], Sequence[str]]]:
    """The classifiers by name: by words, the probe fitted on tuning queries alone, the probe that has seen
    100 questions from outside too, and the commonest label of the tuning queries.
    """
    texts, labels = [query.text for query in tuning], [query.intent for query in tuning]
    outside = list(outside_questions("train"))
    alone = IntentProbe.fit(embedder, texts, labels)
    warned = IntentProbe.fit(embedder, [*texts, *outside], [*labels, *[NO_INTENT] * len(outside)])
    commonest = min(set(labels), key=lambda label: (-labels.count(label), label))
    return {
        BY_WORDS: lambda asked: [intent_by_words(text) for text in asked],
        PROBED: alone.labels_of,
        PROBE_OOS: warned.labels_of,
        COMMONEST: lambda asked: [commonest] * len(asked),
    }


@dataclass(frozen=True, eq=False)
class IntentProbe:
    """A multinomial logistic regression on the vectors of an embedder: one row of weights for each label, and
    a bias each.
    """

    embedder: Embedder
    weights: NDArray[np.float64]
    bias: NDArray[np.float64]

    @staticmethod
    def fit(embedder: Embedder, texts: Sequence[str], labels: Sequence[str], l2: float = _L2) -> IntentProbe:
        """The weights under which the labels are likeliest, less l2 / 2 times their squares; a label that
        never occurs is never said.
        """
        vectors = embedder.embed(texts).astype(np.float64)
        right = np.array([[label == name for name in INTENT_LABELS] for label in labels], np.float64)
        never = np.where(right.any(axis=0), 0.0, -1e9)
        weights, bias = np.zeros((len(INTENT_LABELS), vectors.shape[1])), never.copy()
        before, slope_of_bias = np.zeros_like(weights), np.zeros_like(bias)
        for _ in range(_ROUNDS):
            scores = vectors @ weights.T + bias
            chances = np.exp(scores - scores.max(axis=1, keepdims=True))
            chances /= chances.sum(axis=1, keepdims=True)
            gap = right - chances
            before = 0.9 * before + (gap.T @ vectors - l2 * weights)
            slope_of_bias = 0.9 * slope_of_bias + gap.sum(axis=0)
            weights, bias = weights + 0.01 * before, bias + 0.01 * slope_of_bias
        return IntentProbe(embedder, weights, bias)

    def labels_of(self, texts: Sequence[str]) -> list[str]:
        """The likeliest label of each text."""
        scores = self.embedder.embed(texts).astype(np.float64) @ self.weights.T + self.bias
        return [INTENT_LABELS[column] for column in scores.argmax(axis=1).tolist()]


def right_intents(
    said: IntentSaid, queries: Iterable[CookbookQuery], *, fair: bool = False
) -> dict[str, float]:
    """1 for each query of which the intent was found, else 0; `fair` also counts what a fair judge would say
    of it.
    """
    return {
        query.id: float(said.labels[query.id] in {query.intent, *(query.other_intents if fair else ())})
        for query in queries
    }


def confusions(said: IntentSaid, queries: Sequence[CookbookQuery]) -> dict[str, dict[str, int]]:
    """For each intent that occurs how many of its queries were said to have which."""
    table: dict[str, dict[str, int]] = {}
    for label in INTENT_LABELS:
        own = [said.labels[query.id] for query in queries if query.intent == label]
        if own:
            table[label] = {name: own.count(name) for name in INTENT_LABELS if name in own}
    return table
