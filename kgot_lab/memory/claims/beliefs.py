"""What is believed, as it was known after a change and as it is valid at a time: everything one may ask of claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from kgot_lab.memory.claims import statements as sql
from kgot_lab.memory.claims.aliases import Aliases
from kgot_lab.memory.claims.claim import Claim, Span, digest, plain_text, plain_triple, triple_key
from kgot_lab.memory.claims.holding import Held, InForce, combined_confidence, holding
from kgot_lab.memory.claims.network import NOW, aliases, all_in_force, deciding
from kgot_lab.memory.claims.periods import periods
from kgot_lab.memory.claims.reports import Cardinality, Period, Suggested
from kgot_lab.memory.claims.storage import ClaimStorage
from kgot_lab.memory.claims.times import instant, moment, open_instant, open_moment, utc_now
from kgot_lab.types import Triple

_FEW = 0.1  # the share of subjects that may have several objects in a relation that is suggested to have a single one


class Beliefs:
    """What claims make of the facts, known up to one change, valid at one time; names are read as they were merged then."""

    def __init__(self, storage: ClaimStorage, known: int = NOW, valid: int | None = None, *, now: Callable[[], datetime] = utc_now) -> None:
        self.storage, self.now = storage, now
        self._known, self._valid = known, valid

    def as_of(self, known: datetime | None = None, valid: datetime | None = None) -> Beliefs:
        """What was believed at one time (known) of what is true at another (valid); None: now, and at any time. Raises BadInput."""
        change = self._known
        if known is not None:
            change = min(change, self.storage.rows(sql.LAST_UNTIL, {"at": instant(known, "known")})[0][0])
        at = self._valid if valid is None else instant(valid, "valid")
        return Beliefs(self.storage, change, at, now=self.now)

    def facts(self, subject: str | None = None, relation: str | None = None, object: str | None = None) -> tuple[Triple, ...]:
        """The facts that hold, those with these parts where some are given, in alphabetical order."""
        given = {"subject": subject, "relation": relation, "object": object}
        wanted = {part: plain_text(text, f"the {part} of a fact") for part, text in given.items() if text is not None}
        with self.storage.reading():
            if not wanted:
                return tuple(sorted(self._held(), key=triple_key))
            names = self._aliases()
            by_name = {part: [text] if part == "relation" else names.names(text) for part, text in wanted.items()}
            asked = {names.read(Triple(*row)) for row in self.storage.rows(sql.facts_where(*wanted), by_name)}
            return tuple(sorted(asked & self._held(asked).keys(), key=triple_key))

    def holds(self, fact: Triple) -> bool:
        """Whether a fact holds."""
        return bool(self._claims_of(fact))

    def confidence(self, fact: Triple) -> float:
        """How sure a fact is by all claims it holds by, 0 where it does not hold: see `combined_confidence`."""
        return combined_confidence(self._claims_of(fact))

    def supports_of(self, fact: Triple) -> tuple[Claim, ...]:
        """The claims that a fact holds by, as they were learnt, with the confidence that review gave them."""
        with self.storage.reading():
            confidence = {claim.id: claim.confidence for claim in self._claims_of(fact)}
            return claims_by_id(self.storage, confidence, confidence)

    def current(self, subject: str, relation: str, at: datetime | None = None) -> Period:
        """What answers for a subject and a relation at a time (None: that of these beliefs, or now), and since when.

        In a relation declared "single" that is the fact valid then with the latest beginning; one that is as late is returned as well,
        and marks the answer as contested.
        """
        then = instant(at, "at") if at is not None else self._valid if self._valid is not None else instant(self.now(), "now")
        for period in self.changes_of(subject, relation):
            since, until = open_instant(period.since, "since"), open_instant(period.until, "until")
            if (since is None or since <= then) and (until is None or then < until):
                return period
        return Period((), moment(then))

    def changes_of(self, subject: str, relation: str) -> tuple[Period, ...]:
        """What answered for a subject and a relation from when until when, as the sources state it, in order."""
        with self.storage.reading():
            names = self._aliases()
            asked = Beliefs(self.storage, self._known, now=self.now).facts(subject, relation)
            claims = deciding(self.storage, names, asked, self._known)
            single = self.cardinality(relation) == "single"
            return tuple(
                Period(facts, open_moment(since), open_moment(until), single and len(facts) > 1)
                for facts, since, until in periods(claims, frozenset(asked), single=single)
            )

    def turning_points(self, facts: Iterable[Triple] | None = None) -> tuple[datetime, ...]:
        """The times at which a claim in force begins or ends to be valid, in order: between two of them the same facts hold.

        With `facts`, only the claims that decide whether these hold.
        """
        with self.storage.reading():
            names = self._aliases()
            claims = all_in_force(self.storage, names, self._known) if facts is None else deciding(self.storage, names, facts, self._known)
        times = {time for claim in claims for time in (claim.valid_from, claim.valid_until) if time is not None}
        return tuple(map(moment, sorted(times)))

    def cardinality(self, relation: str) -> Cardinality:
        """How many objects a subject has in a relation at one time, as declared; "many" where nothing was."""
        return self.declared().get(plain_text(relation, "a relation"), "many")

    def declared(self) -> dict[str, Cardinality]:
        """The relations with a declared cardinality."""
        return dict(self.storage.rows(sql.DECLARED, {"known": self._known}))

    def suggested_cardinalities(self) -> tuple[Suggested, ...]:
        """A cardinality for each relation that has none declared: single where at most a tenth of its subjects have several objects."""
        objects: dict[str, dict[str, int]] = {}
        for fact in self.facts():
            of = objects.setdefault(fact.relation, {})
            of[fact.subject] = of.get(fact.subject, 0) + 1
        declared = self.declared()
        return tuple(
            Suggested(relation, "single" if several <= _FEW * len(of) else "many", len(of), several)
            for relation, of in sorted(objects.items())
            if relation not in declared
            for several in [sum(count > 1 for count in of.values())]
        )

    def graph_hash(self, *, claims: bool = False) -> str:
        """32 letters that stand for the facts that hold, by the names that are read; with `claims`, also for what each holds by.

        The same facts give the same hash, whatever was learnt, dropped, restored or merged in between, and in whatever order.
        """
        with self.storage.reading():
            held = self._held()
            if not claims:
                return digest(sorted(map(triple_key, held)))
            return digest(sorted([*triple_key(fact), sorted((each.id, each.confidence) for each in by)] for fact, by in held.items()))

    def _claims_of(self, fact: Triple) -> tuple[InForce, ...]:
        fact = plain_triple(fact, "a fact")
        with self.storage.reading():
            read = self._aliases().read(fact)
            return tuple(self._held([read]).get(read, ()))

    def _held(self, facts: Iterable[Triple] | None = None) -> Held:
        """What holds: everything, or what there is of some facts and of all that these rest on."""
        with self.storage.reading():
            names = self._aliases()
            if facts is None:
                return holding(all_in_force(self.storage, names, self._known), self._valid)
            return holding(deciding(self.storage, names, facts, self._known), self._valid)

    def _aliases(self) -> Aliases:
        return aliases(self.storage, self._known)


def claims_by_id(storage: ClaimStorage, ids: Iterable[str], confidence: dict[str, float] | None = None) -> tuple[Claim, ...]:
    """Some claims as they were learnt, in the order of their ids, with another confidence where one is given."""
    wanted = list(ids)
    given: dict[str, float] = confidence or {}
    premises: dict[str, list[Triple]] = {}
    for claim, *fact in storage.rows(sql.PREMISES, {"claims": wanted}):
        premises.setdefault(claim, []).append(Triple(*fact))
    return tuple(
        Claim(
            Triple(subject, relation, object),
            source,
            None if start is None else Span(start, end, text),
            said_by,
            kind,
            given[id] if id in given else float(learnt),
            open_moment(since),
            open_moment(until),
            tuple(premises.get(id, ())),
        )
        for id, subject, relation, object, source, start, end, text, said_by, kind, since, until, learnt in storage.rows(
            sql.CLAIMS, {"claims": wanted}
        )
    )
