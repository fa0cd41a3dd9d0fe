"""Simulated raters of a known effect: to try a trial on before people are asked. What they say is labelled a
simulation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kgot_lab.errors import BadInput, require_amount, require_count
from kgot_lab.experts.trials.measures import EVEN_SHARES, TrialOutcome, TrialVariant, assign_variant

SIMULATION = "simulation"  # what the id of every simulated test begins with
_TOLD = 10  # nodes in each context
_SPREAD = 0.5  # of the logarithm of seconds


@dataclass(frozen=True)
class SimulatedVariant:
    """What raters and answers of one variant are like; raises BadInput for rates that are not between 0 and
    1.

    up: the share of thumbs that point up. judged: of answers that get a thumb. use: of nodes told that are
    cited. false: false citations an answer, on average. seconds: the median to the first token. intent: the
    share of intents that are right.
    """

    up: float = 0.6
    judged: float = 0.5
    use: float = 0.4
    false: float = 0.2
    seconds: float = 1.0
    intent: float = 0.8

    def __post_init__(self) -> None:
        for name in ("up", "judged", "use", "intent"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadInput(
                    f"the simulated rate {name!r} must be between 0 and 1, not {getattr(self, name)!r}"
                )
        require_amount(self.false, "the simulated number of false citations")
        require_amount(self.seconds, "the simulated seconds", positive=True)


NO_EFFECT = SimulatedVariant()


def simulated_outcomes(
    conversations: int,
    *,
    a: SimulatedVariant = NO_EFFECT,
    b: SimulatedVariant = NO_EFFECT,
    turns: int = 1,
    shares: tuple[float, float] = EVEN_SHARES,
    seed: int = 0,
) -> list[TrialOutcome]:
    """The outcomes of a simulated trial in the order of time, so many conversations of so many turns; a seed
    gives the same ones.

    A conversation's thumbs are all alike, as are those of one person in one mood. Raises BadInput.
    """
    require_count(conversations, 0, "the number of conversations")
    require_count(turns, 1, "the number of turns")
    chance, test_id = np.random.default_rng(seed), f"{SIMULATION}:{seed}"
    sides: dict[TrialVariant, SimulatedVariant] = {"a": a, "b": b}
    outcomes = []
    for number in range(conversations):
        unit = f"conversation {number}"
        variant = assign_variant(test_id, unit, shares)
        side = sides[variant]
        mood = 1 if chance.random() < side.up else -1
        for turn in range(turns):
            first = side.seconds * float(np.exp(chance.normal(0, _SPREAD)))
            outcomes.append(
                TrialOutcome(
                    test_id=test_id,
                    variant=variant,
                    unit=unit,
                    at=float(number * turns + turn),
                    thumb=mood if chance.random() < side.judged else None,
                    told=_TOLD,
                    cited=int(chance.binomial(_TOLD, side.use)),
                    false_citations=int(chance.poisson(side.false)),
                    seconds_first=first,
                    seconds_whole=first + float(chance.exponential(side.seconds)),
                    intent_right=bool(chance.random() < side.intent),
                    digest=f"{SIMULATION} of {variant}",
                )
            )
    return outcomes
