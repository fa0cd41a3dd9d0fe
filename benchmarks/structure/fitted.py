"""Features of candidates, and a system that learns how much each counts: the strongest control, and a fair
way to add structure to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from benchmarks.structure.analogies import Choices
from benchmarks.structure.logit import cross_validated, fit_logit
from benchmarks.structure.nouns import NounsOf
from benchmarks.structure.systems import Surface, System, Words
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.significance import Numbers

SIMPLE = ("surface", "shares a noun", "nouns shared", "length", "length apart")
ALL = (*SIMPLE, "surface squared", "nearest", "words", "connectives")
_WORD = re.compile(r"\w+")
CONNECTIVE = re.compile(
    r"\b(?:then|finally|immediately|next|after|before|following|first|later|subsequently|once|when|as a result)\b",
    re.IGNORECASE,
)


class Features(Protocol):
    """Some numbers for each candidate, which a fit can weigh."""

    @property
    def names(self) -> tuple[str, ...]: ...
    def prepare(self, texts: Sequence[str]) -> None: ...
    def of(self, source: str, candidates: Sequence[str]) -> Numbers: ...  # shape (candidates, names)


class OnTheSurface:
    """What lies on the surface, as numbers for each candidate, by name.

    surface, surface squared: the cosine of the embeddings, and its square. nearest: 1 for the candidate with
    the largest. words: log(1 + BM25). shares a noun: 1 or 0. nouns shared: common nouns over all nouns.
    length: log of the candidate's words over the source's. length apart: its absolute value. connectives: the
    share of words such as "then" and "finally" in the candidate alone, by which texts with a broken order of
    events give themselves away.
    """

    def __init__(self, surface: Surface, words: Words, nouns: NounsOf, names: Sequence[str] = SIMPLE) -> None:
        for name in names:
            if name not in ALL:
                raise UnknownName("feature", name, ALL)
        self.names, self._surface, self._words, self._nouns = tuple(names), surface, words, nouns

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed and index the texts."""
        self._surface.prepare(texts)
        self._words.prepare(texts)

    def of(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The features in the order of `names`, shape (candidates, names)."""
        near = self._surface.scores(source, candidates)
        own, theirs = self._nouns(source), [self._nouns(text) for text in candidates]
        counts = np.array([max(1, len(_WORD.findall(text))) for text in candidates])
        length = np.log(counts / max(1, len(_WORD.findall(source))))
        columns = {
            "surface": near,
            "surface squared": near**2,
            "nearest": near >= near.max(initial=-1.0),
            "words": np.log1p(self._words.scores(source, candidates)),
            "shares a noun": np.array([bool(own & nouns) for nouns in theirs]),
            "nouns shared": np.array([len(own & nouns) / max(1, len(own | nouns)) for nouns in theirs]),
            "length": length,
            "length apart": np.abs(length),
            "connectives": np.array([len(CONNECTIVE.findall(text)) for text in candidates]) / counts,
        }
        return np.stack([np.asarray(columns[name], np.float64) for name in self.names], axis=1)


class Together:
    """Several lots of features side by side: what lies on the surface, and what a structural system adds to
    it.
    """

    def __init__(self, *parts: Features) -> None:
        self.names, self._parts = tuple(name for part in parts for name in part.names), parts
        if len(set(self.names)) < len(self.names):
            raise BadInput(f"two features have the same name among {', '.join(self.names)}; take each once")

    def prepare(self, texts: Sequence[str]) -> None:
        """Prepare every part."""
        for part in self._parts:
            part.prepare(texts)

    def of(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The features in the order of `names`, shape (candidates, names)."""
        return np.concatenate([part.of(source, candidates) for part in self._parts], axis=1)


class Said:
    """What a system says, as a feature of its name."""

    def __init__(self, system: System) -> None:
        self.names, self._system = (system.name,), system

    def prepare(self, texts: Sequence[str]) -> None:
        """Prepare the system."""
        self._system.prepare(texts)

    def of(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The scores of the system, shape (candidates, 1)."""
        return self._system.scores(source, candidates)[:, None]


class Fitted:
    """A weighing of features that is learnt from questions whose answers are known.

    For a source among those questions the weights come from the other folds, for any other source from all of
    them, so no question is answered by what it taught. The questions to learn on must be dev questions.
    """

    def __init__(
        self, name: str, features: Features, learnt_on: Choices, *, kind: str = "control", l2: float = 1.0
    ) -> None:
        if any(question.id in learnt_on.test_ids for question in learnt_on.questions):
            raise BadInput(
                f"{name} would learn from test questions; give it the dev part of {learnt_on.name}"
            )
        if len({len(question.choices) for question in learnt_on.questions}) != 1:
            raise BadInput(
                f"{name} learns from questions that all have as many choices; those of {learnt_on.name} differ, or there are none"
            )
        self.name, self.kind, self._features, self._learnt_on, self._l2 = name, kind, features, learnt_on, l2
        self._weights_of: dict[str, Numbers] = {}
        self._weights = np.zeros(len(features.names))

    def prepare(self, texts: Sequence[str]) -> None:
        """Prepare the texts and those to learn on, and learn."""
        asked = self._learnt_on.questions
        self._features.prepare(sorted({*texts, *self._learnt_on.texts}))
        table = np.array([self._features.of(question.source, question.choices) for question in asked])
        answers = [question.answer for question in asked]
        crosswise = cross_validated(table, answers, _groups(self._learnt_on), l2=self._l2)
        self._weights_of = {
            question.source: weights for question, weights in zip(asked, crosswise, strict=True)
        }
        self._weights = fit_logit(table, answers, self._l2)

    def scores(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The weighted sum of the features of each candidate."""
        return np.asarray(
            self._features.of(source, candidates) @ self._weights_of.get(source, self._weights), np.float64
        )

    @property
    def weights(self) -> dict[str, float]:
        """What was learnt from all questions, by feature."""
        return dict(zip(self._features.names, self._weights.tolist(), strict=True))


def _groups(learnt_on: Choices) -> list[str]:
    """The group of each question, once it is sure that no source stands in two of them."""
    groups = {(question.source, question.group or question.id) for question in learnt_on.questions}
    if len(groups) > len({source for source, _ in groups}):
        raise BadInput(
            f"a source of {learnt_on.name} stands in two groups, so it could be answered by what it taught"
        )
    return [question.group or question.id for question in learnt_on.questions]
