"""Does a trail find more of MuSiQue where the question is split into hops? Clues by hops, learnt and measured
on develop questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.standard_sets.fitting import (
    FIRST_WEIGHTS,
    UNITS,
    TrailChoice,
    choices_of_query,
    fit_scorer,
)
from benchmarks.standard_sets.learning import LearningProgress, half_of
from kgot_lab.benchmark.recall.datasets import load_dataset, untitled
from kgot_lab.embedding.cache import Remembered
from kgot_lab.embedding.embedder import Embedder, Matrix, unit
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.significance import grouped_interval, grouped_p
from kgot_lab.evaluation.tables import Cell, Grid, decimal, format_p_value, signed
from kgot_lab.loop.modes.paths.splitting import hops_in, question_hops
from kgot_lab.retrieval.fusion import by_range
from kgot_lab.retrieval.multihop.features import CLUES, NAME_CLUES, Clues, TrailIndex, Ways
from kgot_lab.retrieval.multihop.retriever import trail_index
from kgot_lab.retrieval.multihop.scorer import Scorer
from kgot_lab.text.words import searched_words
from kgot_lab.types import LLM, Json, Query

_Floats = NDArray[np.float64]
Hops = Mapping[str, Sequence[str]]  # the hops of a question, by its id
SPLIT_SETS = ("musique", "musique-498")
HOP_CLUES = (
    "hop",  # likeness to any hop
    "open hop",  # the same, less where a chosen passage is like the hop
    "joined with a hop",  # likeness to an open hop and a chosen passage together
    "words of an open hop",
    "open hop, linked",
)
UNSPLIT, SPLIT_BY_HAND = "not split", "by hand"
_ANSWER = re.compile(r"\s*#\d+\s*")
_LINKS = [NAME_CLUES.index(kind) for kind in ("to its title, likely", "from its text, likely", "shared")]


def split_questions(model: LLM, queries: Sequence[Query]) -> Iterator[dict[str, Json]]:
    """The hops into which a model splits each question, none where its reply is no chain, with what the call
    cost. Raises LLMError.
    """
    for query in queries:
        reply = model(question_hops(query.text))
        usage = reply.usage
        cost: dict[str, Json] = {
            "seconds": round(usage.seconds, 2),
            "read": usage.prompt_tokens,
            "written": usage.completion_tokens,
        }
        yield {"question": query.id, "model": model.name, "hops": list[Json](hops_in(reply.text)), **cost}


def questions_to_split() -> list[Query]:
    """The develop questions of SPLIT_SETS."""
    return [query for name in reversed(SPLIT_SETS) for query in load_dataset(name).develop.queries]


class HopClues(Clues):
    """The clues of a question, and after them HOP_CLUES: what speaks for a passage by the hops of the
    question.
    """

    def __init__(self, index: TrailIndex, query: Query, hops: Sequence[str], embedder: Embedder) -> None:
        vector = unit(embedder.embed([query.text]), embedder.name)[0]
        super().__init__(index, query.text, vector, searched_words(query.text))
        parts = [cleared for hop in hops if (cleared := _ANSWER.sub(" ", hop).strip())] or [query.text]
        self._hops: Matrix = unit(embedder.embed(parts), embedder.name)
        starts = index.mentions.starts
        near = np.maximum(
            index.passages @ self._hops.T, np.maximum.reduceat(index.sentences @ self._hops.T, starts)
        ).astype(np.float64)
        self._like = np.stack([by_range(column) for column in near.T])  # (hops, documents)
        self._worded = np.stack([self._by_words_of(part) for part in parts])
        self._open_hops = np.ones((len(parts), 1))
        self._with = np.zeros((len(parts), index.size))
        self._linked = np.zeros(index.size)

    def table(self) -> Matrix:
        """A row of CLUES and HOP_CLUES for each document."""
        like = self._like * self._open_hops
        more = (
            self._like.max(0),
            like.max(0),
            self._with.max(0),
            (self._worded * self._open_hops).max(0),
            self._linked,
        )
        return np.concatenate([super().table(), np.stack(more, axis=1).astype(np.float32)], axis=1)

    def choose(self, row: int) -> Ways:
        """Take a passage: the open hop that it is most like is open no more, as far as it is like it."""
        ways = super().choose(row)
        fit = self._like[:, row] * self._open_hops[:, 0]
        answered = int(np.argmax(fit))
        self._open_hops[answered] = min(self._open_hops[answered, 0], 1 - fit[answered])
        mixed = unit(self._hops + self._index.passages[row], "a hop and a passage")
        for hop, column in enumerate((self._index.passages @ mixed.T).astype(np.float64).T):
            np.maximum(self._with[hop], by_range(column) * self._open_hops[hop], out=self._with[hop])
        links = np.minimum(1.0, self.links[_LINKS[:2]].max(0) + self.links[_LINKS[2]])
        self._linked = (self._like * self._open_hops).max(0) * links
        return ways

    def _by_words_of(self, part: str) -> _Floats:
        scores = np.zeros(self._index.size)
        for word in dict.fromkeys(searched_words(part)):
            if word in self._index.words:
                rows, weights = self._index.words[word]
                scores[rows] += weights
        return scores / (scores.max() or 1)


@dataclass(frozen=True, eq=False)
class _Wider(Scorer):
    """A scorer of more clues than CLUES; it is never kept."""

    def __post_init__(self) -> None:
        """Any width."""


_FIRST = _Wider(
    np.concatenate([FIRST_WEIGHTS.straight, np.zeros(len(HOP_CLUES))]),
    np.zeros((len(CLUES) + len(HOP_CLUES), 0)),
    np.zeros(0),
    np.zeros(0),
)


@dataclass(frozen=True, eq=False)
class _Part:
    """A data set with its index, and what a question is split into."""

    data: Dataset
    index: TrailIndex
    rows: Mapping[str, int]

    def clues(self, query: Query, hops: Hops | None, embedder: Embedder) -> Clues:
        if hops is None:
            vector = unit(embedder.embed([query.text]), embedder.name)[0]
            return Clues(self.index, query.text, vector, searched_words(query.text))
        return HopClues(self.index, query, hops.get(query.id, ()), embedder)

    def gold(self, query: Query) -> set[int]:
        return {self.rows[id] for id, grade in self.data.qrels[query.id].items() if grade > 0}

    def half(self, number: int) -> list[Query]:
        return [query for query in self.data.queries if half_of(self.data, query.id) == number]


def splits_measured(
    splits: Mapping[str, Hops], embedder: Embedder, progress: LearningProgress
) -> dict[str, dict[str, dict[str, float]]]:
    """recall@5 of each develop question, by data set and by who split it, UNSPLIT beside: learnt on one half,
    measured on the other.

    All are learnt on the same questions, those of SPLIT_SETS with titles and without. `progress(done, total,
    what)` counts halves.
    """
    remembered = Remembered(embedder)
    found: dict[str, dict[str, dict[str, float]]] = {}
    parts = [_part(made, remembered) for name in SPLIT_SETS for made in _both(load_dataset(name).develop)]
    ways: dict[str, Hops | None] = {UNSPLIT: None, **splits}
    for number, (name, hops) in enumerate(ways.items()):
        for half in (0, 1):
            progress(2 * number + half, 2 * len(ways), name)
            scorer = _learnt(parts, half, hops, remembered)
            for part in parts:
                reached = {
                    query.id: _reached(part, query, hops, remembered, scorer) for query in part.half(1 - half)
                }
                found.setdefault(part.data.name, {}).setdefault(name, {}).update(reached)
    return found


def _both(data: Dataset) -> tuple[Dataset, Dataset]:
    return data, untitled(data)


def _part(data: Dataset, embedder: Embedder) -> _Part:
    documents = sorted(data.documents, key=lambda document: document.id)
    return _Part(
        data, trail_index(documents, embedder), {document.id: row for row, document in enumerate(documents)}
    )


def _learnt(parts: Sequence[_Part], half: int, hops: Hops | None, embedder: Embedder) -> Scorer:
    """The scorer learnt on the choices of a linear one, which was learnt on those of one by hand, as that of
    a trail is.
    """
    by: Scorer = FIRST_WEIGHTS if hops is None else _FIRST
    made = Scorer if hops is None else _Wider
    for units in (0, UNITS):
        choices: list[TrailChoice] = []
        for part in parts:
            for query in part.half(half):
                choices += choices_of_query(
                    part.clues(query, hops, embedder), part.gold(query), by, part.index
                )
        by = fit_scorer(choices, units=units, made=made)
    return by


def _reached(part: _Part, query: Query, hops: Hops | None, embedder: Embedder, scorer: Scorer) -> float:
    clues, chosen = part.clues(query, hops, embedder), list[int]()
    for _ in range(5):
        scores = scorer(clues.table())
        scores[chosen] = -np.inf
        chosen.append(int(np.argmax(scores)))
        clues.choose(chosen[-1])
    gold = part.gold(query)
    return len(gold.intersection(chosen)) / len(gold)


def splits_grid(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Grid:
    """Mean recall@5 of each split and its paired difference to questions that are not split, over groups of
    questions that share steps.
    """
    rows = []
    for name, ways in found.items():
        groups = load_dataset(name).groups
        plain = ways[UNSPLIT]
        for way, reached in ways.items():
            cells = [name, way, str(len(reached)), decimal(float(np.mean(list(reached.values()))))]
            if way != UNSPLIT:
                gaps = [reached[query] - plain[query] for query in plain]
                some = [groups.get(query, query) for query in plain]
                gap = grouped_interval(gaps, some)
                cells += [
                    signed(gap.mean),
                    f"{signed(gap.low)} to {signed(gap.high)}",
                    format_p_value(grouped_p(gaps, some)),
                ]
            rows.append(tuple(map(Cell, [*cells, *[""] * (7 - len(cells))])))
    columns = ("develop questions of", "split", "questions", "recall@5", "more", "95 %", "p")
    return Grid(
        "A trail on questions split into hops: learnt on one half of these develop questions, measured on the other",
        columns,
        tuple(rows),
    )
