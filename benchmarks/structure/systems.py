"""Systems that say how analogous texts are, and how they are asked: over the choices of a question, or as a
search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from benchmarks.structure.analogies import Choices
from benchmarks.structure.analogy_pools import Retrieval
from benchmarks.structure.answered import Answers, six
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.significance import Numbers
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document, Query, Ranking, ranked


class System(Protocol):
    """Anything that says how analogous texts are to a source.

    `kind` is "surface" (words and meaning), "control" (uses the surface cleverly, has no notion of structure)
    or "structure".
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    def prepare(
        self, texts: Sequence[str]
    ) -> None: ...  # all texts there will be, so that each is worked on once
    def scores(
        self, source: str, candidates: Sequence[str]
    ) -> Numbers: ...  # shape (candidates,), higher is more analogous


class Surface:
    """How near the texts mean the same: the cosine of their embeddings."""

    kind = "surface"

    def __init__(self, embedder: Embedder, name: str = "surface") -> None:
        self.name, self._embedder = name, embedder
        self._row_of: dict[str, int] = {}
        self._matrix = np.zeros((0, 0), np.float32)

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed the texts; those known from before are forgotten."""
        distinct = list(dict.fromkeys(texts))
        self._row_of = {text: row for row, text in enumerate(distinct)}
        self._matrix = self._embedder.embed(distinct)

    def scores(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The cosine of the source with each candidate; raises BadInput for a text that was not prepared."""
        rows = [row_of(text, self._row_of, self.name) for text in (source, *candidates)]
        return np.asarray(self._matrix[rows[1:]] @ self._matrix[rows[0]], np.float64)


class Words:
    """How many rare words the texts share: BM25 with the source as the query; how rare a word is, the
    prepared texts say.
    """

    kind = "surface"

    def __init__(self, name: str = "bm25") -> None:
        self.name = name
        self._row_of: dict[str, int] = {}
        self._index: Stage | None = None

    def prepare(self, texts: Sequence[str]) -> None:
        """Index the texts; those known from before are forgotten."""
        distinct = sorted(set(texts))
        self._row_of = {text: row for row, text in enumerate(distinct)}
        self._index = bm25([Document(f"{row:07}", text) for row, text in enumerate(distinct)])

    def scores(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The BM25 score of each candidate for the words of the source; raises BadInput for a text that was
        not prepared.
        """
        rows = [row_of(text, self._row_of, self.name) for text in candidates]
        found = np.zeros(len(self._row_of))
        for id, score in self._index.search(Query(source)).hits if self._index else ():
            found[int(id)] = score
        return found[rows]


def row_of(text: str, known: dict[str, int], system: str) -> int:
    """Where a text stands among those a system prepared; raises BadInput."""
    if text not in known:
        raise BadInput(
            f"{system} has not prepared the text {text[:60]!r}; call prepare() with all texts first"
        )
    return known[text]


def answered(system: System, choices: Choices) -> Answers:
    """What a system says of each choice of each question; raises BadInput without a question, or for a score
    that is no number.
    """
    if not choices.questions:
        raise BadInput(f"{choices.name} has no questions to answer")
    system.prepare(choices.texts)
    said: dict[str, tuple[float, ...]] = {}
    for question in choices.questions:
        scores = checked_scores(
            system, system.scores(question.source, question.choices), len(question.choices), question.id
        )
        said[question.id] = tuple(six(score) for score in scores.tolist())
    return Answers(system.name, system.kind, choices.name, said)


def searching(system: System, retrieval: Retrieval) -> Stage:
    """A stage that ranks all documents in the pool of a query by what a system says of them.

    It takes its place wherever a stage does, so a search is run, kept and scored like any other. Raises
    BadInput for a query that has no pool.
    """
    text_of = {document.id: document.text for document in retrieval.dataset.documents}
    system.prepare(retrieval.texts)

    def step(ranking: Ranking) -> Ranking:
        query = ranking.query
        if query.id not in retrieval.pools:
            raise BadInput(
                f"query {query.id!r} is not one of {retrieval.dataset.name}, so nobody knows what it has to choose from"
            )
        pool = retrieval.pools[query.id]
        scores = checked_scores(
            system, system.scores(query.text, [text_of[id] for id in pool]), len(pool), query.id
        )
        return ranked(query, dict(zip(pool, scores.tolist(), strict=True)))

    return Stage(system.name, step)


def checked_scores(system: System, scores: Numbers, count: int, asked: str) -> Numbers:
    """The scores, once it is sure that there is a finite number for each candidate; raises BadInput."""
    if scores.shape != (count,) or not np.isfinite(scores).all():
        raise BadInput(
            f"{system.name} must give {count} finite numbers for {asked!r}; it gave {scores.size} of shape {scores.shape}"
        )
    return scores
