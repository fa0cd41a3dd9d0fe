"""Review claims of low confidence, and calibrate confidences by the decisions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from numpy import interp

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import (
    AlreadyDecided,
    BadInput,
    require_count,
    require_known,
    require_probability,
    short_repr,
)
from kgot_lab.memory import tables as sql
from kgot_lab.memory.claims.beliefs import claims_by_id
from kgot_lab.memory.claims.changes import Change, open_versions
from kgot_lab.memory.claims.claim import ChangeEffect, Claim, QueuedClaim, ReviewDecision, from_micros
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
from kgot_lab.memory.claims.transactions import record_effect, write_claims
from kgot_lab.text.cleaning import checked_text, printable_line
from kgot_lab.types import Triple


class JudgedClaim(NamedTuple):
    """The relation and confidence of a claim, and whether the person who decided on it accepted it."""

    relation: str
    confidence: float
    accepted: bool


class ReviewLedger:
    """The review of claims.

    The log of the claims says who accepts, rejects or overrides them, and `Claims.undo` undoes it.
    """

    def __init__(self, claims: Claims) -> None:
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

    def accept(self, claim: str, *, by: str = "") -> ChangeEffect:
        """Accept a claim, by its id, with the confidence it has.

        The report contains the facts that start to hold.
        """
        return self._decide("accept", claim, "accepted", by)

    def reject(self, claim: str, *, by: str = "") -> ChangeEffect:
        """Reject a claim, which then stays rejected if it is learnt again."""
        return self._decide("reject", claim, "rejected", by)

    def override(
        self, claim: str, *, confidence: float | None = None, object: str | None = None, by: str = ""
    ) -> ChangeEffect:
        """Accept a claim with another confidence, or replace it by the same claim of another object.

        The replaced claim is rejected.
        """
        if (confidence is None) == (object is None):
            raise BadInput("override(claim) takes another confidence or another object")
        if object is not None:
            return self._correct(claim, checked_text(object, "the object of a fact"), by)
        sure = require_probability(confidence, "the confidence of a claim")
        return self._decide("override", claim, "accepted", by, sure)

    def decided(self, most: int = 20) -> tuple[ReviewDecision, ...]:
        """Return the last decisions and undos, at most `most`, latest first.

        An override may be two: what it rejects and what it accepts.
        """
        require_count(most, 1, "most")
        rows = self.claims.storage.rows(sql.DECISIONS_LAST, {"most": most})
        return tuple(
            ReviewDecision(change, from_micros(at), by, action, claim, Triple(*fact), standing, confidence)
            for change, at, by, action, claim, *fact, standing, confidence in rows
        )

    @check_arguments
    def waits(self, claim: str) -> bool:
        """Return whether a claim waits for review, by its id.

        It does if it is neither decided on nor retracted.
        """
        storage = self.claims.storage
        with storage.reading():
            standings = list(open_versions(storage, "standing", claim))
            return standings == ["queued"] and not open_versions(storage, "drop", claim)

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

    # --- one decision ---

    def _decide(
        self, action: str, claim: str, standing: str, by: str, confidence: float | None = None
    ) -> ChangeEffect:
        """Give a claim a standing, with another confidence or the one that it has."""
        original = self.claims.claim(claim)
        with self.claims.change(action, by) as change:
            dropped = open_versions(self.claims.storage, "drop", claim)
            (current_confidence,) = open_versions(self.claims.storage, "standing", claim).values() or (None,)
            if action != "reject" and (dropped or current_confidence is None):
                remedy = "undo that, or learn it again, and then decide on it"
                raise BadInput(f"this claim was retracted: {remedy}")
            with record_effect(self.claims.storage, change, [claim]) as effect:
                known = original.confidence if current_confidence is None else current_confidence
                _set_standing(change, claim, standing, known if confidence is None else confidence)
            return effect.report

    def _correct(self, claim: str, object: str, by: str) -> ChangeEffect:
        original = self.claims.claim(claim)
        corrected = replace(original, fact=Triple(original.fact.subject, original.fact.relation, object))
        if corrected.id == claim:
            raise BadInput("that is the object which the claim has: accept it")
        storage = self.claims.storage
        with self.claims.change("override", by) as change:
            if not storage.rows(sql.CLAIM_IDS, {"claims": [corrected.id]}):
                write_claims(storage, [corrected])
            with record_effect(self.claims.storage, change, [claim, corrected.id]) as effect:
                _set_standing(change, claim, "rejected", original.confidence)
                # not "accepted": its confidence applied to another fact
                _set_standing(change, corrected.id, "taken", original.confidence)
                if open_versions(storage, "drop", corrected.id):
                    change.close("drop", corrected.id)
            return effect.report


def _set_standing(change: Change, claim: str, standing: str, confidence: float) -> None:
    if open_versions(change.storage, "standing", claim) != {standing: confidence}:
        change.replace("standing", claim, standing, confidence)


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


# A reviewer: the waiting claims one at a time, decisions that are stored at once, and an undo of the last
# one.


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


class Reviewer:
    """A named person who decides on waiting claims.

    `queue` holds the claims as of the last update, `place` is the index of the one in view.
    """

    def __init__(self, claims: Claims, by: str) -> None:
        self.claims, self.by = claims, checked_text(by, "who decides (by)")
        self.ledger = ReviewLedger(claims)
        self.queue: tuple[QueuedClaim, ...] = ()
        self.place = 0
        # the changes that undo takes back, and the claim each decided on
        self.decided: list[tuple[int, str]] = []

    # --- navigation ---

    @property
    def in_view(self) -> QueuedClaim | None:
        """The claim in view, or None if nothing waits."""
        return self.queue[self.place] if self.queue else None

    @property
    def nothing_waits(self) -> str:
        """The message if nothing waits."""
        return f"Nothing waits. A claim does whose confidence is below {self.claims.accept_from:g} (accept_from) when it is learnt."

    def reload(self) -> None:
        """Read the queue again, and stay at the claim in view or go to the next one that still waits."""
        queue_before, self.queue = self.queue[self.place :] + self.queue[: self.place], self.ledger.queue()
        positions = {queued.claim.id: position for position, queued in enumerate(self.queue)}
        ids = (queued.claim.id for queued in queue_before)
        self.place = next((positions[id] for id in ids if id in positions), 0)

    def move(self, by: int) -> None:
        """Move the view forward or back in the queue, around its end."""
        if self.queue:
            self.place = (self.place + by) % len(self.queue)

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
            calibrated = self.ledger.calibrated(claim.confidence, fact.relation)
        reason = "a premise is missing" if claim.premises else "other claims say the same"
        idle = "" if queued.starts else reason
        return DecisionEvidence(claim.confidence, calibrated, idle, single, tuple(others))

    def find_waiting(self, beginning: str) -> str:
        """Return the id of the one waiting claim whose id begins with some characters.

        Raises AlreadyDecided if the only such claim no longer waits, and BadInput if there is none or
        several.
        """
        matching = self.claims.ids_beginning(beginning)
        waiting = [id for id in matching if self.ledger.waits(id)]
        if len(waiting) > 1:
            several = f"{len(waiting)} claims that wait have an id that begins with {beginning}"
            raise BadInput(f"{several}: give more characters of it")
        if not waiting and len(matching) == 1:
            raise self._already_decided(matching[0])
        if not waiting and not self.ledger.queue():
            raise BadInput(self.nothing_waits)
        if not waiting:
            hint = "`kgot-lab memory FILE waiting` lists them, and the queue of a ReviewLedger"
            raise BadInput(f"no claim that waits has an id that begins with {short_repr(beginning)}: {hint}")
        return waiting[0]

    # --- decisions ---

    def decide(
        self, claim: str, verdict: str, *, confidence: float | None = None, object: str | None = None
    ) -> ChangeEffect:
        """Accept, reject or override a waiting claim, by its id.

        The decision is stored when this returns. An override gives the claim another confidence or another
        object. Raises AlreadyDecided if somebody else decided first, UnknownName for another verdict, and
        BadInput.
        """
        decisions: dict[str, Callable[[], ChangeEffect]] = {
            "accept": lambda: self.ledger.accept(claim, by=self.by),
            "reject": lambda: self.ledger.reject(claim, by=self.by),
            "override": lambda: self.ledger.override(claim, confidence=confidence, object=object, by=self.by),
        }
        require_known("verdict", decisions, verdict)
        if verdict != "override" and (confidence, object) != (None, None):
            raise BadInput("another confidence or another object is given with override")
        with self.claims.storage.changing():  # so that nobody decides between the check and the decision
            if not self.ledger.waits(claim):
                raise self._already_decided(claim)
            report = decisions[verdict]()
        if report.change is not None:
            self.decided.append((report.change, claim))
        return report

    def undo(self) -> Claim | None:
        """Undo the last decision of this reviewer, bring its claim into view, and return it.

        Returns None if there is nothing to undo. Raises BadInput.
        """
        if not self.decided:
            return None
        # also where it cannot be: somebody else has changed what it did, and the error says who
        change, claim = self.decided.pop()
        self.claims.undo(change, by=self.by)
        self.reload()
        ids = [queued.claim.id for queued in self.queue]
        self.place = ids.index(claim) if claim in ids else self.place
        return self.claims.claim(claim)

    def _already_decided(self, claim: str) -> AlreadyDecided:
        with self.claims.storage.reading():
            if claim not in self.claims.ids_beginning(claim):
                return AlreadyDecided(None, "It was erased, or never was there.")
            periods = self.claims.history(claim)
            # a drop that was taken back lies behind
            last = ([period for period in periods if period.known_until is None] or periods)[-1]
            author = f" by {printable_line(last.by)}" if last.by else ""
            outcome = f"It was {last.standing}{author} on {last.known_from:%Y-%m-%d at %H:%M} UTC."
            if last.known_until is not None:
                outcome = f"It was taken back on {last.known_until:%Y-%m-%d at %H:%M} UTC."
            return AlreadyDecided(self.claims.claim(claim).fact, outcome)


def _valid_times_overlap(one: Claim, other: Claim) -> bool:
    """Return whether the periods of validity of two claims overlap."""
    (since, until), (other_since, other_until) = one.valid_micros, other.valid_micros
    begins_before_end = until is None or other_since is None or other_since < until
    return begins_before_end and (other_until is None or since is None or since < other_until)
