"""Compute what holds: facts whose claims rest on premises that hold, over merged names and valid time.

After Doyle, A truth maintenance system (Artificial Intelligence 12, 1979), computed as in Dowling and Gallier
(Journal of Logic Programming 1, 1984): each claim counts its missing premises, so the cost is linear in
claims and premises.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from kgot_lab.io.times import from_micros_or_none
from kgot_lab.memory import tables as sql
from kgot_lab.memory.claims.claim import Period, fact_id, triple_key
from kgot_lab.memory.tables import ClaimStorage
from kgot_lab.stores.tables.layout import TableRow
from kgot_lab.types import Triple

if TYPE_CHECKING:
    from kgot_lab.memory.claims.claim import Claim


class ActiveClaim(NamedTuple):
    """A claim that is accepted and not dropped, with the fields that decide what holds.

    Valid times are in microseconds, None for open.
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
        """Return whether its source says that the fact is true at a time."""
        begun = self.valid_from is None or self.valid_from <= at
        return begun and (self.valid_until is None or at < self.valid_until)


HeldFacts = Mapping[Triple, Sequence[ActiveClaim]]


def held_facts(claims: Iterable[ActiveClaim], at: int | None = None) -> HeldFacts:
    """Return the facts that hold, each with the claims that support it.

    With `at`, only claims that are valid at that time count.
    """
    ready: deque[ActiveClaim] = deque()
    waiting: dict[Triple, list[ActiveClaim]] = defaultdict(list)
    missing: dict[str, int] = {}
    for claim in claims:
        if at is not None and not claim.covers(at):
            continue
        if not claim.premises:
            ready.append(claim)
        missing[claim.id] = len(claim.premises)
        for premise in claim.premises:
            waiting[premise].append(claim)
    held: dict[Triple, list[ActiveClaim]] = {}
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


def facts_started_by(
    fact: Triple, held: HeldFacts, waiting: Mapping[Triple, Sequence[ActiveClaim]]
) -> list[Triple]:
    """Return the facts that would start to hold if `fact` did, itself first.

    `waiting` maps each premise to the claims in force that need it.
    """
    started: dict[Triple, None] = {} if fact in held else {fact: None}
    ready = deque(started)
    missing: dict[str, int] = {}
    while ready:
        for claim in waiting.get(ready.popleft(), ()):
            count = sum(premise not in held for premise in claim.premises)
            missing[claim.id] = missing.get(claim.id, count) - 1
            if not missing[claim.id] and claim.fact not in held and claim.fact not in started:
                started[claim.fact] = None
                ready.append(claim.fact)
    return list(started)


def sole_sources(fact: Triple, claims: Sequence[ActiveClaim], at: int | None = None) -> tuple[str, ...]:
    """Return the sources any one of which would take a fact with it if it were retracted.

    `claims` are all that decide about the fact. Empty if the fact does not hold. A derivation counts by the
    sources of its premises, not by who derived it.
    """
    supporting = held_facts(claims, at).get(fact, ())
    stated = {claim.source for claim in supporting if claim.kind == "stated"}
    if not supporting or len(stated) > 1:
        return ()
    sources = stated or {claim.source for claim in claims if claim.kind == "stated"}
    others = {source: [c for c in claims if c.kind != "stated" or c.source != source] for source in sources}
    return tuple(source for source in sorted(sources) if fact not in held_facts(others[source], at))


def combined_confidence(claims: Iterable[ActiveClaim | Claim]) -> float:
    """Return the confidence of a fact that several sources claim, by noisy-or.

    It is 1 - the product of (1 - confidence) over sources, each with its best claim (Pearl, Probabilistic
    Reasoning in Intelligent Systems, 1988). Noisy-or assumes that sources err independently. Claims of one
    source do not, so they count once.
    """
    best: dict[str, float] = {}
    for claim in claims:
        best[claim.source] = max(claim.confidence, best.get(claim.source, 0.0))
    return 1 - math.prod(1 - best[source] for source in sorted(best))


# Merged names: merges are applied on reading, and every fact keeps the names it was learnt with.


class Aliases:
    """The canonical name of each name, from the merges {other: kept}.

    A kept name may itself have been merged into another.
    """

    def __init__(self, merges: Mapping[str, str]) -> None:
        self.merges = merges
        self._names: dict[str, list[str]] = defaultdict(list)
        for other in merges:
            self._names[self.canonical(other)].append(other)

    def canonical(self, name: str) -> str:
        """Return the canonical name of a name, which is itself if it was not merged into another."""
        while name in self.merges:
            name = self.merges[name]
        return name

    def names(self, name: str) -> list[str]:
        """Return all names of the thing that a name means, the canonical one first."""
        canonical = self.canonical(name)
        return [canonical, *self._names.get(canonical, ())]

    def canonical_fact(self, fact: Triple) -> Triple:
        """Return a fact under its canonical names."""
        if not self.merges:
            return fact
        return Triple(self.canonical(fact.subject), fact.relation, self.canonical(fact.object))

    def canonical_facts(self, rows: Iterable[TableRow]) -> set[Triple]:
        """Return the facts of rows of subject, relation and object, under their canonical names."""
        return {self.canonical_fact(Triple(*row)) for row in rows}

    def spellings(self, facts: Iterable[Triple]) -> list[Triple]:
        """Return every fact under all names it may have been learnt with."""
        return [
            Triple(subject, fact.relation, object)
            for fact in facts
            for subject in self.names(fact.subject)
            for object in self.names(fact.object)
        ]


# The claims that decide about some facts: what these rest on, and what rests on them.

NOW = 2**62  # a change after all others


def read_aliases(storage: ClaimStorage, known: int = NOW) -> Aliases:
    """Return the merges of names as they were known after a change."""
    return Aliases(dict(storage.rows(sql.MERGED, {"known": known})))


def read_active_claims(storage: ClaimStorage, names: Aliases, known: int = NOW) -> list[ActiveClaim]:
    """Return every claim in force after a change."""
    claims = storage.rows(sql.ALL_IN_FORCE, {"known": known})
    return active_claims(claims, storage.rows(sql.ALL_PREMISES), names)


def claims_deciding(
    storage: ClaimStorage, names: Aliases, facts: Iterable[Triple], known: int = NOW
) -> list[ActiveClaim]:
    """Return the claims in force after a change that decide whether some facts hold.

    These are the claims of the facts, and those of all facts they are derived from.
    """
    claims_found: list[ActiveClaim] = []
    seen: set[Triple] = set()
    pending = {names.canonical_fact(fact) for fact in facts}
    while pending:
        seen |= pending
        rows = storage.rows(sql.IN_FORCE, {"known": known, "facts": fact_ids(pending, names)})
        derived = [row[0] for row in rows if row[8] == "inferred"]
        premises = storage.rows(sql.PREMISES, {"claims": derived}) if derived else []
        claims = active_claims(rows, premises, names)
        claims_found += claims
        pending = {premise for claim in claims for premise in claim.premises} - seen
    return claims_found


def facts_resting_on(storage: ClaimStorage, names: Aliases, facts: Iterable[Triple]) -> set[Triple]:
    """Return some facts and all that was ever derived from them, whether it holds or not."""
    seen: set[Triple] = set()
    pending = {names.canonical_fact(fact) for fact in facts}
    while pending:
        seen |= pending
        rows = storage.rows(sql.FACTS_DERIVED, {"facts": fact_ids(pending, names)})
        pending = names.canonical_facts(rows) - seen
    return seen


def fact_ids(facts: Iterable[Triple], names: Aliases) -> list[str]:
    """Return the ids of some facts under all their names."""
    return [fact_id(fact) for fact in names.spellings(facts)]


def active_claims(
    rows: Sequence[TableRow], premises: Sequence[TableRow], names: Aliases
) -> list[ActiveClaim]:
    """Build claims from rows of claims and of their premises, under canonical names.

    Claims that a fact ended are applied: they bound the other claims of that fact, and are left out.
    """
    premises_by_claim: dict[str, dict[Triple, None]] = defaultdict(dict)
    for claim, *fact in premises:
        premises_by_claim[claim][names.canonical_fact(Triple(*fact))] = None
    claims = []
    for id, *fact, source, confidence, since, until, kind in rows:
        canonical, needed = names.canonical_fact(Triple(*fact)), tuple(premises_by_claim.get(id, ()))
        claims.append(ActiveClaim(id, canonical, source, confidence, since, until, kind, needed))
    return _apply_ends(claims)


def _apply_ends(claims: Sequence[ActiveClaim]) -> list[ActiveClaim]:
    """Return the claims but those that a fact ended, each valid at most until the first end after its beginning."""
    ends: dict[Triple, list[int]] = defaultdict(list)
    for claim in claims:
        if claim.kind == "ended":
            ends[claim.fact].append(claim.valid_from or 0)
    others = [claim for claim in claims if claim.kind != "ended"]
    if not ends:
        return others

    def bounded(claim: ActiveClaim) -> ActiveClaim:
        since, until = claim.valid_from, claim.valid_until
        times = [end for end in ends[claim.fact] if since is None or end > since]
        times += [] if until is None else [until]
        return claim._replace(valid_until=min(times, default=None))

    return [bounded(claim) if claim.fact in ends else claim for claim in others]


# Answers over time: facts of one subject and relation over valid time, where a later one replaces an earlier
# one.


def validity_bounds(claims: Iterable[ActiveClaim]) -> list[int]:
    """Return the times at which a claim begins or ends to be valid, in order."""
    times = (time for claim in claims for time in (claim.valid_from, claim.valid_until))
    return sorted({time for time in times if time is not None})


def answer_periods(
    claims: Sequence[ActiveClaim], facts: Sequence[Triple], *, single: bool
) -> tuple[Period, ...]:
    """Return the periods in which some facts of one subject and relation answer.

    Times without an answer are left out. The claims are all that decide about these facts. They say nothing
    about any other fact, so none of another subject or relation can retire one of these.
    """
    boundaries = validity_bounds(claims)
    periods: list[Period] = []
    for since, until in zip([None, *boundaries], [*boundaries, None], strict=True):
        at = since if since is not None else (until or 0) - 1
        answer = current_facts(held_facts(claims, at), facts, single=single)
        begins, ends = from_micros_or_none(since), from_micros_or_none(until)
        if periods and periods[-1].facts == answer and periods[-1].until == begins:
            periods[-1] = replace(periods[-1], until=ends)
        elif answer:
            periods.append(Period(answer, begins, ends, single and len(answer) > 1))
    return tuple(periods)


def current_facts(held: HeldFacts, facts: Iterable[Triple], *, single: bool) -> tuple[Triple, ...]:
    """Return the facts that hold, or if `single`, the one that began last.

    Returns several if they began at the same time. None is before all times.
    """
    candidates = sorted((fact for fact in facts if fact in held), key=triple_key)
    if not single or len(candidates) < 2:
        return tuple(candidates)
    began = {
        fact: max((claim.valid_from is not None, claim.valid_from or 0) for claim in held[fact])
        for fact in candidates
    }
    return tuple(fact for fact in candidates if began[fact] == max(began.values()))
