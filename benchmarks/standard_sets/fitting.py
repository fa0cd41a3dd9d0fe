"""The scorer of a trail, learnt: from questions whose gold passages are known, which features say that a passage
comes next.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.retrieval.multihop.features import FEATURES, MultihopIndex, QuestionFeatures
from kgot_lab.retrieval.multihop.retriever import Scorer, build_index
from kgot_lab.text.words import searched_words

_Floats = NDArray[Any]
# of cross-validation on dev questions; docs/recall.md has the others that were tried
UNITS, SEEDS, DECAY = (16, 3, 1.0)
_HOPS = 5
_CANDIDATES = 100  # of each choice: the highest by the scorer at hand, and the gold
_STEPS, _RATE, _RIDGE = 300, 0.01, 0.002
FIRST_WEIGHTS = Scorer.linear(
    {"own": 6, "asked": 3, "to its title, likely": 6, "from its text, likely": 6, "shared": 4, "repeated": -2}
)


@dataclass(frozen=True, eq=False)
class TrailChoice:
    """One choice of a passage: the features of the candidates, shape (candidates, FEATURES), and which of them are
    gold and not chosen yet.
    """

    table: _Floats
    gold: NDArray[np.bool_]


def trail_choices(dataset: Dataset, embedder: Embedder, scorer: Scorer) -> Iterator[TrailChoice]:
    """The choices of a trail by a scorer on the queries of a data set, each query up to where all its gold is
    found.
    """
    documents = sorted(dataset.documents, key=lambda document: document.id)
    index = build_index(documents, embedder)
    row_of = {document.id: row for row, document in enumerate(documents)}
    for query in dataset.queries:
        gold = {row_of[id] for id, grade in dataset.qrels[query.id].items() if grade > 0}
        features = QuestionFeatures(
            index, query.text, embedder.embed([query.text])[0], searched_words(query.text)
        )
        yield from _choices_of_query(features, gold, scorer, index)


def _choices_of_query(
    features: QuestionFeatures, gold: set[int], scorer: Scorer, index: MultihopIndex
) -> Iterator[TrailChoice]:
    """The choices of a trail for one question, up to where all its gold is found."""
    chosen: list[int] = []
    for _ in range(min(_HOPS, index.size)):
        left = gold.difference(chosen)
        if not left:
            return
        table = features.table()
        scores = scorer(table)
        scores[chosen] = -np.inf
        best = np.argsort(-scores, kind="stable")
        rows = np.setdiff1d(np.union1d(best[:_CANDIDATES], sorted(left)), chosen)
        yield TrailChoice(table[rows].astype(np.float32), np.isin(rows, sorted(left)))
        row = int(best[0])
        chosen.append(row)
        features.choose(row)


def fit_scorer(
    found: Sequence[TrailChoice],
    *,
    units: int = UNITS,
    seeds: int = SEEDS,
    without: Collection[str] = (),
) -> Scorer:
    """The scorer that makes the gold of each choice likeliest among its candidates, by gradient descent
    (Adam; Kingma and Ba 2015).

    loss = - mean over choices of log(sum of exp(score) of the gold / that of all), first without units, then
    with `units` from each of `seeds` beginnings, whose mean is taken: as one network of units x seeds.
    Without units it is a linear scorer. Features in `without` are not looked at.
    """
    table = np.concatenate([choice.table for choice in found]).astype(np.float64)
    width = table.shape[1]
    looked_at = np.array([feature not in without for feature in FEATURES])
    table[:, ~looked_at] = 0.0
    gold = np.concatenate([choice.gold for choice in found])
    starts = np.cumsum([0, *(len(choice.gold) for choice in found[:-1])])
    sizes = np.array([len(choice.gold) for choice in found])

    def slope(scores: _Floats) -> _Floats:
        """How the loss changes with each score."""
        raised = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), sizes))
        whole, right = np.add.reduceat(raised, starts), np.add.reduceat(raised * gold, starts)
        return (raised / np.repeat(whole, sizes) - raised * gold / np.repeat(right + 1e-30, sizes)) / len(
            found
        )  # type: ignore[no-any-return]

    straight = np.zeros(width)
    descent = _Adam([straight])
    for _ in range(4 * _STEPS):
        descent.step([table.T @ slope(table @ straight) + 2 * _RIDGE * straight / width], 5 * _RATE)
    nets = [_net(table, slope, straight, units, seed) for seed in range(seeds if units else 0)]
    if not nets:
        return Scorer(straight, np.zeros((width, 0)), np.zeros(0), np.zeros(0))
    lines, inner, bias, bent = zip(*nets, strict=True)
    return Scorer(
        np.mean(lines, axis=0),
        np.concatenate(inner, axis=1) * looked_at[:, None],
        np.concatenate(bias),
        np.concatenate(bent) / len(nets),
    )


def _net(
    table: _Floats, slope: Callable[[_Floats], _Floats], straight: _Floats, units: int, seed: int
) -> tuple[_Floats, _Floats, _Floats, _Floats]:
    """One network from one beginning, its weights pulled towards 0 a little at each step (AdamW; Loshchilov
    and Hutter 2019).
    """
    count = table.shape[1]
    chance, width = np.random.default_rng(seed), 1 / np.sqrt(count)
    table = table.astype(np.float32)  # twice as fast, and exact enough for steps of a hundredth
    begun = (
        straight,
        chance.uniform(-width, width, (count, units)),
        chance.uniform(-width, width, units),
        np.zeros(units),
    )
    parts: list[_Floats] = [part.astype(np.float32) for part in begun]
    straight, inner, bias, bent = parts
    descent = _Adam(parts)
    for _ in range(_STEPS):
        bends = np.tanh(table @ inner + bias)
        pull = slope(table @ straight + bends @ bent).astype(np.float32)
        back = pull[:, None] * bent * (1 - bends**2)
        for part in parts:
            part *= 1 - _RATE * DECAY
        descent.step([table.T @ pull, table.T @ back, back.sum(axis=0), bends.T @ pull], _RATE)
    return straight, inner, bias, bent


class _Adam:
    """Steps down a slope, each number by its own measure."""

    def __init__(self, parts: Sequence[_Floats]) -> None:
        self._parts, self._time = parts, 0
        self._first, self._second = ([np.zeros_like(part) for part in parts] for _ in range(2))

    def step(self, slopes: Sequence[_Floats], rate: float) -> None:
        self._time += 1
        for part, slope, first, second in zip(self._parts, slopes, self._first, self._second, strict=True):
            first += 0.1 * (slope - first)
            second += 0.001 * (slope**2 - second)
            part -= rate * first / (1 - 0.9**self._time) / (np.sqrt(second / (1 - 0.999**self._time)) + 1e-8)
