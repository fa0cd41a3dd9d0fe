"""Review: claims that were not sure enough to count at once, what people decided of them, and what these
decisions teach.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from numpy import interp

from kgot_lab.errors import BadInput, require_count
from kgot_lab.memory.claims.beliefs import claims_by_id
from kgot_lab.memory.claims.claim import Decided, Fallen, Queued, moment, plain_text, probability
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.justification import (
    NOW,
    InForce,
    aliases,
    all_in_force,
    holding,
    in_force,
    started_by,
)
from kgot_lab.memory.claims.transactions import ClaimChange, making, open_versions, what_fell, write_claim
from kgot_lab.memory.tables import statements as sql
from kgot_lab.types import Triple


@dataclass(frozen=True)
class Reviewed:
    """How often claims of a relation were accepted, of those a person decided on."""

    decided: int
    accepted: int

    @property
    def share(self) -> float:
        """The share that was accepted."""
        return self.accepted / self.decided


class JudgedClaim(NamedTuple):
    """How sure a claim of a relation was, and whether the person who decided on it accepted it."""

    relation: str
    confidence: float
    accepted: bool


class ReviewLedger:
    """The review of some claims: who accepts, rejects or overrides them is in the log of the claims, and
    `Claims.undo` takes it back.
    """

    def __init__(self, claims: Claims) -> None:
        self.claims = claims

    def queue(self) -> tuple[Queued, ...]:
        """The claims that wait: those first by which most facts would start to hold, then the surest."""
        storage = self.claims.storage
        with storage.reading():
            names = aliases(storage)
            now = all_in_force(storage, names)
            held = holding(now)
            by_premise: dict[Triple, list[InForce]] = defaultdict(list)
            for claim in now:
                for premise in claim.premises:
                    by_premise[premise].append(claim)
            rows = storage.rows(sql.QUEUED, {"known": NOW})
            ids = [row[0] for row in rows]
            starts = {
                each.id: tuple(started_by(each.fact, held, by_premise))
                if all(premise in held for premise in each.premises)
                else ()
                for each in in_force(rows, storage.rows(sql.PREMISES, {"claims": ids}), names)
            }
            waiting = [Queued(claim, starts[claim.id]) for claim in claims_by_id(storage, ids)]
        return tuple(
            sorted(waiting, key=lambda each: (-len(each.starts), -each.claim.confidence, each.claim.id))
        )

    def accept(self, claim: str, *, by: str = "") -> Fallen:
        """Let a claim count, by its id, with the confidence it has; the report names the facts that start to
        hold.
        """
        return self._decide(
            "accept", claim, by, lambda change, number: _stand(change, claim, "accepted", number)
        )

    def reject(self, claim: str, *, by: str = "") -> Fallen:
        """Let a claim count for nothing, also when it is learnt again."""
        return self._decide(
            "reject", claim, by, lambda change, number: _stand(change, claim, "rejected", number)
        )

    def override(
        self, claim: str, *, confidence: float | None = None, object: str | None = None, by: str = ""
    ) -> Fallen:
        """Accept a claim with another confidence, or reject it and let the same claim of another object count
        in its place.
        """
        if (confidence is None) == (object is None):
            raise BadInput("override(claim) takes another confidence or another object")
        if object is not None:
            return self._correct(claim, plain_text(object, "the object of a fact"), by)
        given = probability(confidence if confidence is not None else 0, "the confidence of a claim")
        return self._decide("override", claim, by, lambda change, _: _stand(change, claim, "accepted", given))

    def decided(self, most: int = 20) -> tuple[Decided, ...]:
        """The last decisions and undos, at most so many, the latest first: an override may be two, of what it
        rejects and what it takes.
        """
        require_count(most, 1, "most")
        return tuple(
            Decided(
                change, moment(at), by, action, claim, Triple(subject, relation, object), standing, confidence
            )
            for change, at, by, action, claim, subject, relation, object, standing, confidence in self.claims.storage.rows(
                sql.DECIDED, {"most": most}
            )
        )

    def waits(self, claim: str) -> bool:
        """Whether a claim waits for review, by its id: nobody has decided on it, and it is not retracted."""
        storage = self.claims.storage
        with storage.reading():
            return list(open_versions(storage, "standing", claim)) == ["queued"] and not open_versions(
                storage, "drop", claim
            )

    # --- what decisions teach
    # -----------------------------------------------------------------------------------------

    def judgements(self) -> list[JudgedClaim]:
        """Every claim that a person decided on, as the decision stands now."""
        rows = self.claims.storage.rows(sql.DECISIONS, {"known": NOW})
        return [
            JudgedClaim(relation, confidence, standing == "accepted")
            for relation, confidence, standing in rows
        ]

    def reliability(self) -> dict[str, Reviewed]:
        """How often claims of each relation were accepted, where any were decided on."""
        decisions: dict[str, list[bool]] = defaultdict(list)
        for relation, _, accepted in self.judgements():
            decisions[relation].append(accepted)
        return {relation: Reviewed(len(said), sum(said)) for relation, said in sorted(decisions.items())}

    def calibrated(self, confidence: float, relation: str, *, least: int = 30) -> float:
        """How often claims as sure as this one were accepted, by isotonic regression over the decisions on
        its relation.

        A relation with fewer than `least` decisions is pooled with all others; where all are fewer, the
        confidence is what it is.
        """
        confidence = probability(confidence, "a confidence")
        require_count(least, 1, "least")
        decisions = self.judgements()
        own = [each for each in decisions if each[0] == relation]
        chosen = own if len(own) >= least else decisions
        if len(chosen) < least:
            return confidence
        return isotonic([(sure, float(accepted)) for _, sure, accepted in chosen])(confidence)

    # --- one decision
    # -------------------------------------------------------------------------------------------------

    def _decide(
        self, action: str, claim: str, by: str, decide: Callable[[ClaimChange, float], None]
    ) -> Fallen:
        learnt = self.claims.claim(claim)
        with making(self.claims.storage, action, by, self.claims.now) as change:
            dropped = open_versions(self.claims.storage, "drop", claim)
            (number,) = open_versions(self.claims.storage, "standing", claim).values() or (None,)
            if action != "reject" and (dropped or number is None):
                raise BadInput(
                    "this claim was retracted: undo that, or learn it again, and then decide on it"
                )
            with what_fell(self.claims.storage, change, [claim]) as told:
                decide(change, learnt.confidence if number is None else number)
            return told.report

    def _correct(self, claim: str, object: str, by: str) -> Fallen:
        learnt = self.claims.claim(claim)
        corrected = replace(learnt, fact=Triple(learnt.fact.subject, learnt.fact.relation, object))
        if corrected.id == claim:
            raise BadInput("that is the object which the claim has: accept it")
        storage = self.claims.storage
        with making(storage, "override", by, self.claims.now) as change:
            if not storage.rows(sql.CLAIM_THERE, {"claim": corrected.id}):
                write_claim(storage, corrected)
            with what_fell(self.claims.storage, change, [claim, corrected.id]) as told:
                _stand(change, claim, "rejected", learnt.confidence)
                # not "accepted": its confidence was given to another fact
                _stand(change, corrected.id, "taken", learnt.confidence)
                if open_versions(storage, "drop", corrected.id):
                    change.close("drop", corrected.id)
            return told.report


def _stand(change: ClaimChange, claim: str, standing: str, confidence: float) -> None:
    if open_versions(change.storage, "standing", claim) != {standing: confidence}:
        change.replace("standing", claim, standing, confidence)


def isotonic(pairs: Iterable[tuple[float, float]]) -> Callable[[float], float]:
    """The rising function nearest to some pairs (x, y) in squares, straight between steps: pool adjacent
    violators (Ayer et al. 1955).
    """
    by_x: dict[float, list[float]] = defaultdict(list)
    for x, y in pairs:
        by_x[x].append(y)
    steps: list[tuple[float, int, float, float]] = []  # sum of y, how many, first x, last x
    for x, ys in sorted(by_x.items()):
        step = (sum(ys), len(ys), x, x)
        while steps and steps[-1][0] * step[1] >= step[0] * steps[-1][1]:  # the mean before is not below
            total, count, first, _ = steps.pop()
            step = (total + step[0], count + step[1], first, x)
        steps.append(step)
    xs = [x for _, _, first, last in steps for x in (first, last)]
    means = [total / count for total, count, *_ in steps for _ in range(2)]
    return lambda x: float(interp(x, xs, means))
