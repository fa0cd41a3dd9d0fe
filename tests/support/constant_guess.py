"""How far a reader comes who does not read: the same guess at every question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgot_lab.viz.stepping.predictions import QUESTION_KINDS, Prediction


@dataclass(frozen=True)
class ConstantGuess:
    """How often one is right with the same guess each time: at each kind of question its commonest answer, or
    one key at all of them.
    """

    questions: int
    right: int  # with the commonest answer of each kind
    best_key: str
    right_with_key: int
    # of each kind: how many questions, the commonest answer, how often it is right
    kinds: Mapping[str, tuple[int, str, int]]

    @property
    def share(self) -> float:
        """The share right by always giving the commonest answer, 0 to 1."""
        return self.right / self.questions if self.questions else 0.0


def constant_guess(asked: Iterable[Prediction]) -> ConstantGuess:
    """How far one comes without reading: the share right by always giving the commonest answer."""
    asked = list(asked)
    kinds: dict[str, tuple[int, str, int]] = {}
    for kind in QUESTION_KINDS:
        truths = Counter(each.truth for each in asked if each.kind == kind)
        if truths:
            commonest, times = max(truths.items(), key=lambda item: (item[1], item[0]))
            kinds[kind] = truths.total(), commonest, times
    keys = Counter(each.truth[0].upper() for each in asked)
    key, times = max(keys.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    return ConstantGuess(len(asked), sum(times for _, _, times in kinds.values()), key, times, kinds)
