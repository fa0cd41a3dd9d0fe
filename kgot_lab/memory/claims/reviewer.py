"""One who reviews: the claims that wait, one at a time, decisions that are on file at once, and the last one
taken back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kgot_lab.errors import AlreadyDecided, BadInput, UnknownName, shortly
from kgot_lab.memory.claims.claim import Claim, Fallen, Queued, plain_text
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.ledger import ReviewLedger
from kgot_lab.text.cleaning import harmless
from kgot_lab.types import Triple


@dataclass(frozen=True)
class Weighed:
    """What a decision on a claim may go by: what such a confidence was worth so far, what it would change,
    what else holds.
    """

    confidence: float
    calibrated: float
    idle: str  # why nothing would begin to hold with it, "" where something would
    single: bool  # its relation has one object at a time, so that the others contradict it
    # what holds of the same subject and relation; of a single one, at the same time
    others: tuple[Triple, ...]

    @property
    def sure(self) -> str:
        """How sure it is, in words."""
        if self.calibrated == self.confidence:
            return f"Confidence {self.confidence:.2f}, not calibrated: too few decisions yet, or they agree with it."
        return f"Confidence {self.confidence:.2f}; of claims as sure as this one, {self.calibrated:.0%} were accepted."


class Reviewer:
    """Who decides on claims that wait, by name: `queue` holds them as of the last look, `place` is the one
    that is looked at.
    """

    def __init__(self, claims: Claims, by: str) -> None:
        self.claims, self.by = claims, plain_text(by, "who decides (by)")
        self.ledger = ReviewLedger(claims)
        self.queue: tuple[Queued, ...] = ()
        self.place = 0
        self.decided: list[
            tuple[int, str]
        ] = []  # the changes that undo takes back, and the claim each decided on

    # --- looking
    # ------------------------------------------------------------------------------------------------------

    @property
    def in_view(self) -> Queued | None:
        """The claim that is looked at; None where nothing waits."""
        return self.queue[self.place] if self.queue else None

    @property
    def nothing_waits(self) -> str:
        """What there is to say where nothing waits."""
        return f"Nothing waits. A claim does whose confidence is below {self.claims.accept_from:g} (accept_from) when it is learnt."

    def reload(self) -> None:
        """Read the queue again, and stay at the claim that was looked at, or go on to the next one that still
        waits.
        """
        before, self.queue = self.queue[self.place :] + self.queue[: self.place], self.ledger.queue()
        places = {each.claim.id: place for place, each in enumerate(self.queue)}
        self.place = next((places[each.claim.id] for each in before if each.claim.id in places), 0)

    def move(self, by: int) -> None:
        """Look at a claim further on, or back, around the end."""
        if self.queue:
            self.place = (self.place + by) % len(self.queue)

    def weighed(self, queued: Queued) -> Weighed:
        """What speaks for and against a claim that waits."""
        claim, claims = queued.claim, self.claims
        with claims.storage.reading():
            fact = claim.fact
            same = set(claims.facts(fact.subject, fact.relation, fact.object))
            others = [each for each in claims.facts(fact.subject, fact.relation) if each not in same]
            single = claims.cardinality(fact.relation) == "single"
            if single:
                others = [
                    each
                    for each in others
                    if any(_overlap(claim, other) for other in claims.supports_of(each))
                ]
            calibrated = self.ledger.calibrated(claim.confidence, fact.relation)
        idle = (
            "" if queued.starts else "a premise is missing" if claim.premises else "other claims say the same"
        )
        return Weighed(claim.confidence, calibrated, idle, single, tuple(others))

    def waiting(self, beginning: str) -> str:
        """The id of the one claim that waits whose id begins so; raises AlreadyDecided, and BadInput where
        there is none or several.
        """
        found = self.claims.ids_beginning(beginning)
        waiting = [id for id in found if self.ledger.waits(id)]
        if len(waiting) > 1:
            raise BadInput(
                f"{len(waiting)} claims that wait have an id that begins with {beginning}: give more characters of it"
            )
        if not waiting and len(found) == 1:
            raise self._no_longer(found[0])
        if not waiting and not self.ledger.queue():
            raise BadInput(self.nothing_waits)
        if not waiting:
            listed = "`kgot-lab memory FILE waiting` lists them, and the queue of a ReviewLedger"
            raise BadInput(f"no claim that waits has an id that begins with {shortly(beginning)}: {listed}")
        return waiting[0]

    # --- deciding
    # -----------------------------------------------------------------------------------------------------

    def decide(
        self, claim: str, verdict: str, *, confidence: float | None = None, object: str | None = None
    ) -> Fallen:
        """Accept, reject or override a claim that waits, by its id; it is on file when this returns.

        An override gives it another confidence or another object. Raises AlreadyDecided where somebody else
        was first, UnknownName for another verdict, and BadInput.
        """
        decisions: dict[str, Callable[[], Fallen]] = {
            "accept": lambda: self.ledger.accept(claim, by=self.by),
            "reject": lambda: self.ledger.reject(claim, by=self.by),
            "override": lambda: self.ledger.override(claim, confidence=confidence, object=object, by=self.by),
        }
        if verdict not in decisions:
            raise UnknownName("verdict", verdict, decisions)
        if verdict != "override" and (confidence, object) != (None, None):
            raise BadInput("another confidence or another object is given with override")
        with self.claims.storage.changing():  # so that nobody decides between the look and the decision
            if not self.ledger.waits(claim):
                raise self._no_longer(claim)
            report = decisions[verdict]()
        if report.change is not None:
            self.decided.append((report.change, claim))
        return report

    def undo(self) -> Claim | None:
        """Take the last decision of this reviewer back, and look at its claim; None where there is none to
        take back. Raises BadInput.
        """
        if not self.decided:
            return None
        # also where it cannot be: somebody else has changed what it did, and the error says who
        change, claim = self.decided.pop()
        self.claims.undo(change, by=self.by)
        self.reload()
        self.place = next(
            (place for place, each in enumerate(self.queue) if each.claim.id == claim), self.place
        )
        return self.claims.claim(claim)

    def _no_longer(self, claim: str) -> AlreadyDecided:
        with self.claims.storage.reading():
            if claim not in self.claims.ids_beginning(claim):
                return AlreadyDecided(None, "It was erased, or never was there.")
            stood = self.claims.history(claim)
            # a drop that was taken back lies behind
            last = ([each for each in stood if each.known_until is None] or stood)[-1]
            who = f" by {harmless(last.by)}" * bool(last.by)
            became = f"It was {last.standing}{who} on {last.known_from:%Y-%m-%d at %H:%M} UTC."
            if last.known_until is not None:
                became = f"It was taken back on {last.known_until:%Y-%m-%d at %H:%M} UTC."
            return AlreadyDecided(self.claims.claim(claim).fact, became)


def _overlap(one: Claim, other: Claim) -> bool:
    """Whether two claims say that something is true at one and the same time."""
    (since, until), (begin, end) = one.valid_micros, other.valid_micros
    return (until is None or begin is None or begin < until) and (end is None or since is None or since < end)
