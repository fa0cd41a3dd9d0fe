"""What holds: the facts that claims in force carry, each claim by premises that hold themselves and not by
each other's circle.

After Doyle, A truth maintenance system (Artificial Intelligence 12, 1979), computed as Dowling and Gallier do
it (Journal of Logic Programming 1, 1984): each claim counts the premises it still waits for, so the work is
linear in claims and premises.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kgot_lab.types import Triple

if TYPE_CHECKING:
    from kgot_lab.memory.claims.claim import Claim


class InForce(NamedTuple):
    """A claim that is accepted and not dropped, as much of it as decides what holds; valid times in
    microseconds, None for open.
    """

    id: str
    fact: Triple
    source: str
    confidence: float
    valid_from: int | None
    valid_until: int | None
    kind: str
    premises: tuple[Triple, ...] = ()

    def covers(self, at: int) -> bool:
        """Whether its source says that the fact is true at a time."""
        return (self.valid_from is None or self.valid_from <= at) and (
            self.valid_until is None or at < self.valid_until
        )


Held = Mapping[Triple, Sequence[InForce]]


def holding(claims: Iterable[InForce], at: int | None = None) -> Held:
    """The facts that hold, each with the claims it holds by; `at` counts only what is valid at that time."""
    ready: deque[InForce] = deque()
    waiting: dict[Triple, list[InForce]] = defaultdict(list)
    missing: dict[str, int] = {}
    for claim in claims:
        if at is not None and not claim.covers(at):
            continue
        if not claim.premises:
            ready.append(claim)
        missing[claim.id] = len(claim.premises)
        for premise in claim.premises:
            waiting[premise].append(claim)
    held: dict[Triple, list[InForce]] = {}
    while ready:
        claim = ready.popleft()
        if claim.fact in held:
            held[claim.fact].append(claim)
            continue
        held[claim.fact] = [claim]
        for dependent in waiting.pop(claim.fact, ()):
            missing[dependent.id] -= 1
            if not missing[dependent.id]:
                ready.append(dependent)
    return held


def started_by(fact: Triple, held: Held, waiting: Mapping[Triple, Sequence[InForce]]) -> list[Triple]:
    """The facts that would start to hold if one did, itself first; `waiting` has the claims in force by their
    premises.
    """
    risen: dict[Triple, None] = {} if fact in held else {fact: None}
    ready = deque(risen)
    missing: dict[str, int] = {}
    while ready:
        for claim in waiting.get(ready.popleft(), ()):
            missing[claim.id] = (
                missing.get(claim.id, sum(premise not in held for premise in claim.premises)) - 1
            )
            if not missing[claim.id] and claim.fact not in held and claim.fact not in risen:
                risen[claim.fact] = None
                ready.append(claim.fact)
    return list(risen)


def sole_sources(fact: Triple, claims: Sequence[InForce], at: int | None = None) -> tuple[str, ...]:
    """The sources any one of which would take a fact with it, of the claims that decide about it; none where
    it does not hold.

    A derivation counts by what its premises rest on, not by who derived it.
    """
    held = holding(claims, at).get(fact, ())
    stated = {claim.source for claim in held if claim.kind == "stated"}
    if not held or len(stated) > 1:
        return ()
    sources = stated or {claim.source for claim in claims if claim.kind == "stated"}
    return tuple(
        source
        for source in sorted(sources)
        if fact
        not in holding([claim for claim in claims if claim.kind != "stated" or claim.source != source], at)
    )


def combined_confidence(claims: Iterable[InForce | Claim]) -> float:
    """How sure a fact is that several sources claim: 1 - the product of (1 - confidence) over sources, each
    by its best claim.

    The noisy-or of Pearl, Probabilistic Reasoning in Intelligent Systems (1988), which takes sources to err
    independently: claims of one source do not, so they count once.
    """
    best: dict[str, float] = {}
    for claim in claims:
        best[claim.source] = max(claim.confidence, best.get(claim.source, 0.0))
    return 1 - math.prod(1 - best[source] for source in sorted(best))
