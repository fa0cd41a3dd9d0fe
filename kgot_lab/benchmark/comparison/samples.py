"""Which questions of which sets are asked, and in which order: drawn by seed before the first run, none of
them tuned on.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgot_lab.benchmark.questions.question import QuestionSet
from kgot_lab.benchmark.questions.sets import BUNDLED_SETS, LOCKED
from kgot_lab.errors import UnknownName

DRAW_SEED = 20261123


@dataclass(frozen=True)
class Sample:
    """The parts of a set that are asked, in an order drawn by seed or as they are drawn already, and where
    one may tune instead.
    """

    parts: tuple[str, ...]
    tuned_on: tuple[str, str]  # set and part
    seed: int | None = None

    def of(self, questions: QuestionSet) -> QuestionSet:
        """The questions in the order in which they are asked, which stands in the set unless a seed draws it."""
        ids = [id for part in self.parts for id in (questions.parts or {})[part]]
        if self.seed is not None:
            random.Random(self.seed).shuffle(ids)
        return questions.only(ids)


SAMPLES: Mapping[str, Sample] = {
    "hotpotqa": Sample((LOCKED, "test"), ("hotpotqa", "develop"), DRAW_SEED),
    "2wiki": Sample((LOCKED,), ("2wiki", "develop")),
    "musique-498": Sample((LOCKED,), ("musique", "develop")),
}


def drawn_samples() -> dict[str, QuestionSet]:
    """The sets with the questions that are asked of each: 70 of HotpotQA, 150 of 2WikiMultiHopQA, 150 of
    MuSiQue.
    """
    return {name: sample.of(BUNDLED_SETS[name]()) for name, sample in SAMPLES.items()}


def check_sets(only: Sequence[str], sets: Mapping[str, QuestionSet]) -> None:
    """Raise UnknownName for a set there is not."""
    for name in only:
        if name not in sets:
            raise UnknownName("question set", name, sets)


def develop_samples() -> dict[str, QuestionSet]:
    """The questions that may be tuned on, by the set they are of: 30 of HotpotQA, 61 of 2WikiMultiHopQA, 60
    of MuSiQue's training part.
    """
    found = {}
    for sample in SAMPLES.values():
        source, part = sample.tuned_on
        whole = BUNDLED_SETS[source]()
        found[source] = whole.only((whole.parts or {})[part])
    return found
