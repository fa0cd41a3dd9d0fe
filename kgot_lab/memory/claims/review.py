"""Review claims of low confidence, and calibrate confidences by the decisions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from numpy import interp

from kgot_lab.errors import BadInput, require, require_count, require_probability, short_repr
from kgot_lab.memory import tables as sql
from kgot_lab.memory.claims.beliefs import claims_by_id
from kgot_lab.memory.claims.claim import Claim, QueuedClaim
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.justification import (
    NOW,
    ActiveClaim,
    active_claims,
    facts_started_by,
    held_facts,
    read_active_claims,
    read_aliases,
)
from kgot_lab.stores.tables.history import Change, ChangeEffect, open_versions
from kgot_lab.stores.tables.review_queue import ReviewQueue
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Triple


class JudgedClaim(NamedTuple):
    """The relation and confidence of a claim, and whether the person who decided on it accepted it."""

    relation: str
    confidence: float
    accepted: bool


@dataclass(frozen=True)
class DecisionEvidence:
    """The evidence for a decision on a claim.

    It contains the calibrated confidence, what a decision would change, and what else holds.
    """

    confidence: float
    calibrated: float
    idle: str  # why no fact would start to hold with it, "" if one would
    single: bool  # its relation has one object at a time, so that the others contradict it
    # what holds of the same subject and relation; of a single one, at the same time
    others: tuple[Triple, ...]

    @property
    def sure(self) -> str:
        """The confidence in words."""
        if self.calibrated == self.confidence:
            return f"Confidence {self.confidence:.2f}, not calibrated: too few decisions yet, or they agree with it."
        return f"Confidence {self.confidence:.2f}; of claims as sure as this one, {self.calibrated:.0%} were accepted."


class ClaimReview(ReviewQueue[QueuedClaim]):
    """The review of claims: what waits, decisions, and the evidence for them."""

    verdicts = ("accept", "reject", "override")

    def __init__(self, claims: Claims, by: str = "") -> None:
        super().__init__(claims, by)
        self.claims = claims

    def queue(self) -> tuple[QueuedClaim, ...]:
        """Return the claims that wait for review.

        Those with which most facts would start to hold come first, then those of highest confidence.
        """
        storage = self.claims.storage
        with storage.reading():
            names = read_aliases(storage)
            active = read_active_claims(storage, names)
            held_now = held_facts(active)
            by_premise: dict[Triple, list[ActiveClaim]] = defaultdict(list)
            for claim in active:
                for premise in claim.premises:
                    by_premise[premise].append(claim)
            rows = storage.rows(sql.CLAIMS_QUEUED, {"known": NOW})
            ids = [row[0] for row in rows]
            queued = active_claims(rows, storage.rows(sql.PREMISES, {"claims": ids}), names)
            ready = [claim for claim in queued if held_now.keys() >= set(claim.premises)]
            started = {claim.id: tuple(facts_started_by(claim.fact, held_now, by_premise)) for claim in ready}
            waiting = [QueuedClaim(claim, started.get(claim.id, ())) for claim in claims_by_id(storage, ids)]
        return tuple(sorted(waiting, key=lambda q: (-len(q.starts), -q.claim.confidence, q.claim.id)))

    # --- decisions ---

    def override(
        self, item: QueuedClaim | str, *, confidence: float | None = None, object: str | None = None
    ) -> ChangeEffect:
        """Accept a claim with another confidence, or replace it by the same claim of another object.

        The replaced claim is rejected.
        """
        if (confidence is None) == (object is None):
            raise BadInput("override(claim) takes another confidence or another object")
        claim = self._id(item)
        if object is None:
            sure = require_probability(confidence, "the confidence of a claim")
            accept = partial(self._set_standing, id=claim, standing="accepted", confidence=sure)
            return self._record("override", [claim], accept)
        original, object = self.claims.claim(claim), checked_text(object, "the object of a fact")
        corrected = replace(original, fact=Triple(original.fact.subject, original.fact.relation, object))
        if corrected.id == claim:
            raise BadInput("that is the object which the claim has: accept it")
        return self._correct(original, corrected)

    def decide(self, item: QueuedClaim | str, verdict: str, **instead: Any) -> ChangeEffect:
        """Accept, reject or override a claim that waits.

        An override gives it another `confidence` or another `object`. See `ReviewQueue.decide`.
        """
        given = {name: value for name, value in instead.items() if value is not None}
        if verdict != "override" and given:
            raise BadInput("another confidence or another object is given with override")
        return super().decide(item, verdict, **given)

    def _id(self, item: QueuedClaim | str) -> str:
        id = item.claim.id if isinstance(item, QueuedClaim) else item
        require(id, str, "a claim is named by its id")
        return id

    def _standing(self, id: str) -> str:
        storage = self.claims.storage
        with storage.reading():
            dropped = open_versions(storage, "drop", id)
            return "dropped" if dropped else next(iter(open_versions(storage, "standing", id)), "")

    def _subject(self, id: str) -> Triple | None:
        return self.claims.claim(id).fact if id in self.claims.ids_beginning(id) else None

    def _set_standing(self, change: Change, id: str, standing: str, confidence: float | None = None) -> None:
        """Give a claim a standing, with another confidence or the one that it has."""
        original = self.claims.claim(id)
        (current,) = open_versions(change.storage, "standing", id).values() or (None,)
        if standing == "accepted" and (current is None or open_versions(change.storage, "drop", id)):
            remedy = "undo that, or learn it again, and then decide on it"
            raise BadInput(f"this claim was retracted: {remedy}")
        known = original.confidence if current is None else current
        change.replace("standing", id, standing, known if confidence is None else confidence)

    def _correct(self, original: Claim, corrected: Claim) -> ChangeEffect:
        def decide(change: Change) -> None:
            change.replace("standing", original.id, "rejected", original.confidence)
            # not "accepted": its confidence applied to another fact
            change.replace("standing", corrected.id, "taken", original.confidence)
            if open_versions(change.storage, "drop", corrected.id):
                change.close("drop", corrected.id)

        storage = self.claims.storage
        with storage.changing():
            if not storage.rows(sql.CLAIM_IDS, {"claims": [corrected.id]}):
                self.claims.write_claims([corrected])
            return self._record("override", [original.id, corrected.id], decide)

    # --- calibration ---

    def judgements(self) -> list[JudgedClaim]:
        """Return every claim that a person decided on, with the current decision."""
        rows = self.claims.storage.rows(sql.DECISIONS, {"known": NOW})
        return [JudgedClaim(relation, sure, standing == "accepted") for relation, sure, standing in rows]

    def calibrated(self, confidence: float, relation: str, *, least: int = 30) -> float:
        """Return the acceptance rate of claims of this confidence, by isotonic regression.

        It uses the decisions on the relation, or on all relations if this one has fewer than `least`. If all
        together have fewer, the confidence is returned unchanged.
        """
        confidence = require_probability(confidence, "a confidence")
        require_count(least, 1, "least")
        decisions = self.judgements()
        of_relation = [decision for decision in decisions if decision[0] == relation]
        chosen = of_relation if len(of_relation) >= least else decisions
        if len(chosen) < least:
            return confidence
        return isotonic([(sure, float(accepted)) for _, sure, accepted in chosen])(confidence)

    # --- what a reviewer is shown ---

    @property
    def nothing_waits(self) -> str:
        """The message if nothing waits."""
        return f"Nothing waits. A claim does whose confidence is below {self.claims.accept_from:g} (accept_from) when it is learnt."

    def weighed(self, queued: QueuedClaim) -> DecisionEvidence:
        """Return the evidence for and against a claim that waits."""
        claim, claims = queued.claim, self.claims
        with claims.storage.reading():
            fact = claim.fact
            identical = set(claims.facts(fact.subject, fact.relation, fact.object))
            others = [other for other in claims.facts(fact.subject, fact.relation) if other not in identical]
            single = claims.cardinality(fact.relation) == "single"
            if single:
                rivals = {other: claims.supports_of(other) for other in others}
                others = [
                    other for other in others if any(_valid_times_overlap(claim, c) for c in rivals[other])
                ]
            calibrated = self.calibrated(claim.confidence, fact.relation)
        reason = "a premise is missing" if claim.premises else "other claims say the same"
        idle = "" if queued.starts else reason
        return DecisionEvidence(claim.confidence, calibrated, idle, single, tuple(others))

    def find_waiting(self, beginning: str) -> str:
        """Return the id of the one waiting claim whose id begins with some characters.

        Raises AlreadyDecided if the only such claim no longer waits, and BadInput if there is none or
        several.
        """
        matching = self.claims.ids_beginning(beginning)
        waiting = [id for id in matching if self.waits(id)]
        if len(waiting) > 1:
            several = f"{len(waiting)} claims that wait have an id that begins with {beginning}"
            raise BadInput(f"{several}: give more characters of it")
        if not waiting and len(matching) == 1:
            raise self._already_decided(matching[0])
        if not waiting and not self.queue():
            raise BadInput(self.nothing_waits)
        if not waiting:
            hint = "`kgot-lab memory FILE waiting` lists them, and the queue of a ClaimReview"
            raise BadInput(f"no claim that waits has an id that begins with {short_repr(beginning)}: {hint}")
        return waiting[0]


def isotonic(pairs: Iterable[tuple[float, float]]) -> Callable[[float], float]:
    """Fit a nondecreasing function to pairs (x, y) by least squares, linear between steps.

    Uses the pool-adjacent-violators algorithm (Ayer et al. 1955).
    """
    by_x: dict[float, list[float]] = defaultdict(list)
    for x, y in pairs:
        by_x[x].append(y)
    steps: list[tuple[float, int, float, float]] = []  # sum of y, count, first x, last x
    for x, ys in sorted(by_x.items()):
        step = (sum(ys), len(ys), x, x)
        while steps and steps[-1][0] * step[1] >= step[0] * steps[-1][1]:  # the mean before is not below
            total, count, first, _ = steps.pop()
            step = (total + step[0], count + step[1], first, x)
        steps.append(step)
    xs = [x for _, _, first, last in steps for x in (first, last)]
    means = [total / count for total, count, *_ in steps for _ in range(2)]
    return lambda x: float(interp(x, xs, means))


def _valid_times_overlap(one: Claim, other: Claim) -> bool:
    """Return whether the periods of validity of two claims overlap."""
    (since, until), (other_since, other_until) = one.valid_micros, other.valid_micros
    begins_before_end = until is None or other_since is None or other_since < until
    return begins_before_end and (other_until is None or since is None or since < other_until)
