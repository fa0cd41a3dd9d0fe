"""Who came first: rounds in which some systems did the same, as something to guess before it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgot_lab.evaluation.reports import Sentences


@dataclass(frozen=True)
class ContestRound:
    """Who came first in a round, several where they are equal, by how much before the next, and that as a
    sentence.

    It is open, with nobody first, until two systems have done it; `n` is how many questions all that took
    part have answered.
    """

    on: str
    first: tuple[str, ...]
    ahead: float | None
    n: int
    told: str


@dataclass(frozen=True)
class Contest:
    """The systems that take part, each with what it is, and the rounds; `asks` is the question, if it is not
    who has the best measure.
    """

    systems: Mapping[str, str]
    rounds: tuple[ContestRound, ...]
    measure: str = "F1"
    asks: str = ""

    @property
    def outcomes(self) -> Sentences:
        """What came out, a sentence for each round."""
        return Sentences(tuple(f"{each.on}: {each.told}" for each in self.rounds))

    def __repr__(self) -> str:
        return repr(self.outcomes)
