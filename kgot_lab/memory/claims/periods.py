"""What answers when: facts of one subject and relation over valid time, the later one in the place of the
earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kgot_lab.memory.claims.claim import triple_key
from kgot_lab.memory.claims.justification import Held, InForce, holding
from kgot_lab.types import Triple


class Stretch(NamedTuple):
    """The facts that answer between two times in microseconds, None for open ends."""

    facts: tuple[Triple, ...]
    since: int | None
    until: int | None


def periods(claims: Sequence[InForce], facts: frozenset[Triple], *, single: bool) -> list[Stretch]:
    """Which of some facts of one subject and relation answer from when until when; times at which none does
    are left out.

    The claims are all that decide about these facts. Nothing is said of any other fact, so none of another
    subject or relation can retire one of these.
    """
    cuts = sorted(
        {time for claim in claims for time in (claim.valid_from, claim.valid_until) if time is not None}
    )
    found: list[Stretch] = []
    for since, until in zip([None, *cuts], [*cuts, None], strict=True):
        at = since if since is not None else (until or 0) - 1
        answer = answering(holding(claims, at), facts, single=single)
        if found and found[-1].facts == answer and found[-1].until == since:
            found[-1] = found[-1]._replace(until=until)
        elif answer:
            found.append(Stretch(answer, since, until))
    return found


def answering(held: Held, facts: Iterable[Triple], *, single: bool) -> tuple[Triple, ...]:
    """Those of some facts that hold; where only one may, the one that began last, or those that did: None is
    before all times.
    """
    candidates = sorted((fact for fact in facts if fact in held), key=triple_key)
    if not single or len(candidates) < 2:
        return tuple(candidates)
    began = {fact: max(_beginning(claim) for claim in held[fact]) for fact in candidates}
    return tuple(fact for fact in candidates if began[fact] == max(began.values()))


def _beginning(claim: InForce) -> tuple[bool, int]:
    return claim.valid_from is not None, claim.valid_from or 0
