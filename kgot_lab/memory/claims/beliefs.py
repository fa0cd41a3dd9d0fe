"""Query claims: what is believed, as known after a change and as valid at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.io.times import from_micros, from_micros_or_none, to_micros, utc_now
from kgot_lab.memory import tables as sql
from kgot_lab.memory.claims import justification
from kgot_lab.memory.claims.claim import (
    Cardinality,
    CardinalitySuggestion,
    Claim,
    Period,
    Span,
    check_triple,
    digest,
    is_message,
    triple_key,
)
from kgot_lab.memory.tables import ClaimStorage
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Triple

_MAX_SHARE = 0.1  # share of subjects with several objects up to which a relation is suggested as single


@check_arguments
class Beliefs:
    """The facts that claims support, known up to one change and valid at one time.

    Names are read as they were merged at that change.
    """

    def __init__(
        self,
        storage: ClaimStorage,
        known: int = justification.NOW,
        valid: int | None = None,
        *,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.storage, self.now = storage, now
        self.known, self._valid = known, valid

    def as_of(self, known: datetime | None = None, valid: datetime | None = None) -> Beliefs:
        """Return what was believed at one time (`known`) to be true at another (`valid`).

        None means now for `known`, and any time for `valid`. Raises BadInput for a naive time.
        """
        change = self.known
        if known is not None:
            until = {"at": to_micros(known, "known")}
            change = min(change, self.storage.rows(sql.LAST_CHANGE_UNTIL, until)[0][0])
        at = self._valid if valid is None else to_micros(valid, "valid")
        return Beliefs(self.storage, change, at, now=self.now)

    def at_any_time(self) -> Beliefs:
        """Return the same beliefs without a limit on when facts are true."""
        return Beliefs(self.storage, self.known, now=self.now)

    def query_time(self, at: datetime | None = None) -> datetime:
        """Return the time that a question is about: `at`, or that of these beliefs, or now.

        Raises BadInput for a naive time.
        """
        if at is None and self._valid is not None:
            return from_micros(self._valid)
        return from_micros(to_micros(self.now() if at is None else at, "now" if at is None else "at"))

    def canonical_fact(self, fact: Triple) -> Triple:
        """Return a fact under its canonical names."""
        return self.names().canonical_fact(check_triple(fact, "a fact"))

    def facts(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> tuple[Triple, ...]:
        """Return the facts that hold and have the given parts, in alphabetical order."""
        parts = {"subject": subject, "relation": relation, "object": object}
        given = {part: text for part, text in parts.items() if text is not None}
        pattern = {part: checked_text(text, f"the {part} of a fact") for part, text in given.items()}
        with self.storage.reading():
            if not pattern:
                return tuple(sorted(self._held_facts(), key=triple_key))
            candidates = self.recorded(pattern)
            return tuple(sorted(candidates & self._held_facts(candidates).keys(), key=triple_key))

    def recorded(self, pattern: Mapping[str, str]) -> set[Triple]:
        """Return the facts that were ever recorded with some parts, by name, whether they hold or not."""
        names = self.names()
        spellings = {
            part: [text] if part == "relation" else names.names(text) for part, text in pattern.items()
        }
        return names.canonical_facts(self.storage.rows(sql.select_facts(*pattern), spellings))

    def triples(self, facts: Iterable[Triple] | None = None) -> tuple[Triple, ...]:
        """Return the facts that hold, or those among `facts`, in the order in which they were first learnt.

        Each has its combined confidence, and the turn of its first claim and the time from which that is valid.
        """
        with self.storage.reading():
            names, wanted = self.names(), None
            learnt: dict[Triple, tuple[Any, ...]] = {}
            if facts is None:
                rows = self.storage.rows(sql.LEARNT_AT, {"known": self.known})
            else:
                wanted = {names.canonical_fact(check_triple(fact, "a fact")) for fact in facts}
                values = {"known": self.known, "facts": justification.fact_ids(wanted, names)}
                rows = self.storage.rows(sql.LEARNT_AT_BY_FACT, values)
            for subject, relation, object, *first in rows:
                learnt.setdefault(names.canonical_fact(Triple(subject, relation, object)), tuple(first))
            held = self._held_facts(wanted)
        found = []
        for fact in sorted(
            held if wanted is None else wanted & held.keys(),
            key=lambda fact: (*learnt[fact][:2], triple_key(fact)),
        ):
            *_, source, since = learnt[fact]
            sure = justification.combined_confidence(held[fact])
            found.append(Triple(*triple_key(fact), sure, source_turn(source), from_micros_or_none(since)))
        return tuple(found)

    def count(self) -> int:
        """Return the number of facts that hold."""
        with self.storage.reading():
            ((count, kind),) = self.storage.rows(sql.COUNT_IN_FORCE, {"known": self.known})
            is_exact = kind == "stated" and self._valid is None and not self.names().merges
            return int(count) if is_exact else len(self._held_facts())

    def holds(self, fact: Triple) -> bool:
        """Return whether a fact holds."""
        return bool(self._active_claims_of(fact))

    def confidence(self, fact: Triple) -> float:
        """Return the combined confidence of a fact over all claims that support it, or 0 if it does not hold.

        See `combined_confidence`.
        """
        return justification.combined_confidence(self._active_claims_of(fact))

    def supports_of(self, fact: Triple) -> tuple[Claim, ...]:
        """Return the claims that support a fact, as they were learnt.

        Their confidence is the one given in review, if there was any.
        """
        return next(iter(self.claims_of([fact]).values()), ())

    def sole_sources(self, fact: Triple) -> tuple[str, ...]:
        """Return the sources on which a fact depends alone: retracting any one of them would retract the
        fact.

        Empty if other sources support it, or if it does not hold. A derivation counts by the sources of its
        premises, not by who derived it.
        """
        with self.storage.reading():
            fact = self.canonical_fact(fact)
            return justification.sole_sources(fact, self._deciding_claims([fact]), self._valid)

    def claims_of(self, facts: Iterable[Triple]) -> dict[Triple, tuple[Claim, ...]]:
        """Return the claims that support each fact, as in `supports_of`.

        Facts that do not hold are left out.
        """
        with self.storage.reading():
            names = self.names()
            wanted = dict.fromkeys(names.canonical_fact(check_triple(fact, "a fact")) for fact in facts)
            held = self._held_facts(wanted)
            confidence = {claim.id: claim.confidence for fact in wanted for claim in held.get(fact, ())}
            by_id = {claim.id: claim for claim in claims_by_id(self.storage, confidence, confidence)}
            ids = {fact: sorted(claim.id for claim in held[fact]) for fact in wanted if fact in held}
            return {fact: tuple(by_id[id] for id in some) for fact, some in ids.items()}

    def sources(self) -> tuple[str, ...]:
        """Return every source that was ever learnt from and not erased, sorted by name."""
        return tuple(source for (source,) in self.storage.rows(sql.CLAIM_SOURCES))

    def retracted_sources(self) -> frozenset[str]:
        """Return the sources that were retracted as a whole and not restored by an undo."""
        rows = self.storage.rows(sql.RETRACTED_SOURCES, {"known": self.known})
        return frozenset(source for (source,) in rows)

    def sentences_of(self, source: str) -> tuple[str, ...]:
        """Return the sentences in which a source was read, whatever became of their claims.

        Sentences that were no part of its text are left out.
        """
        values = {"source": checked_text(source, "a source")}
        with self.storage.reading():
            ids = [claim for (claim,) in self.storage.rows(sql.CLAIMS_FROM_SOURCE, values)]
            spans = (claim.span for claim in claims_by_id(self.storage, ids) if claim.span is not None)
            own = (span.text for span in spans if span.end - span.start <= 2 * len(span.text))
            return tuple(dict.fromkeys(own))

    def current(self, subject: str, relation: str, at: datetime | None = None) -> Period:
        """Return what answers for a subject and a relation at a time, and since when.

        `at` defaults to the time of these beliefs, or now. In a relation declared "single" it is the fact
        valid then that began last. Another fact that began at the same time is also returned, and marks the
        answer as contested.
        """
        return period_at(self.query_time(at), self.changes_of(subject, relation))

    def changes_of(self, subject: str, relation: str) -> tuple[Period, ...]:
        """Return what answered for a subject and a relation in each period, in order.

        The periods are those that the sources state.
        """
        with self.storage.reading():
            all_facts = self.at_any_time().facts(subject, relation)
            claims = self._deciding_claims(all_facts)
            single = self.cardinality(relation) == "single"
            return justification.answer_periods(claims, all_facts, single=single)

    def cardinality(self, relation: str) -> Cardinality:
        """Return the declared cardinality of a relation: how many objects a subject has at one time.

        "many" if none was declared.
        """
        return self.declared().get(checked_text(relation, "a relation"), "many")

    def declared(self) -> dict[str, Cardinality]:
        """Return the relations with a declared cardinality."""
        return dict(self.storage.rows(sql.DECLARED, {"known": self.known}))

    def suggested_cardinalities(self) -> tuple[CardinalitySuggestion, ...]:
        """Suggest a cardinality for each relation without a declared one.

        It is "single" if at most a tenth of its subjects have several objects.
        """
        objects: dict[str, Counter[str]] = defaultdict(Counter)
        for fact, claims in self._held_facts().items():
            if not all(is_message(fact, claim.source) for claim in claims):
                objects[fact.relation][fact.subject] += 1
        suggestions = []
        for relation in sorted(objects.keys() - self.declared()):
            counts = objects[relation]
            several = sum(count > 1 for count in counts.values())
            cardinality: Cardinality = "single" if several <= _MAX_SHARE * len(counts) else "many"
            suggestions.append(CardinalitySuggestion(relation, cardinality, len(counts), several))
        return tuple(suggestions)

    def graph_hash(self, *, claims: bool = False) -> str:
        """Return a hash of the facts that hold, under their canonical names, with 32 characters.

        With `claims`, it also depends on the claims that support each. The same facts have the same hash,
        whatever was learnt, dropped, restored or merged in between, and in whatever order.
        """
        with self.storage.reading():
            held = self._held_facts()
            if not claims:
                return digest(sorted(map(triple_key, held)))
            ids = {fact: sorted((each.id, each.confidence) for each in some) for fact, some in held.items()}
            return digest(sorted([*triple_key(fact), some] for fact, some in ids.items()))

    def _active_claims_of(self, fact: Triple) -> tuple[justification.ActiveClaim, ...]:
        with self.storage.reading():
            fact = self.canonical_fact(fact)
            return tuple(self._held_facts([fact]).get(fact, ()))

    def _held_facts(self, facts: Iterable[Triple] | None = None) -> justification.HeldFacts:
        """Return everything that holds, or what holds of some facts and of all that they are derived from."""
        with self.storage.reading():
            return justification.held_facts(self._deciding_claims(facts), self._valid)

    def _deciding_claims(self, facts: Iterable[Triple] | None) -> list[justification.ActiveClaim]:
        """Return the claims in force, or those of them that decide whether some facts hold."""
        if facts is None:
            return justification.read_active_claims(self.storage, self.names(), self.known)
        return justification.claims_deciding(self.storage, self.names(), facts, self.known)

    def names(self) -> justification.Aliases:
        """Return the canonical form of each name, as names were merged at the time."""
        return justification.read_aliases(self.storage, self.known)


def turn_source(turn: int | None) -> str:
    """Return the source of what a turn of a conversation states, or of what is noted outside of one (None)."""
    return "triples" if turn is None else f"turn {turn}"


def source_turn(source: str) -> int | None:
    """Return the turn that a source of `turn_source` is, or None for any other source."""
    number = source.removeprefix("turn ")
    is_turn = number != source and number.isdecimal() and turn_source(int(number)) == source
    return int(number) if is_turn else None


def period_at(time: datetime, changes: Iterable[Period]) -> Period:
    """Return the period of `changes` that contains a time, or an empty one if none does."""
    return next((period for period in changes if period.covers(time)), Period((), time))


def claims_by_id(
    storage: ClaimStorage, ids: Iterable[str], confidence: dict[str, float] | None = None
) -> tuple[Claim, ...]:
    """Return claims as they were learnt, in the order of their ids.

    `confidence` replaces that of the claims it contains.
    """
    claim_ids, confidences = list(ids), confidence or {}
    premises: dict[str, list[Triple]] = defaultdict(list)
    for claim, *fact in storage.rows(sql.PREMISES, {"claims": claim_ids}):
        premises[claim].append(Triple(*fact))
    claims: list[Claim] = []
    rows = storage.rows(sql.CLAIMS, {"claims": claim_ids})
    for id, *fact, source, start, end, text, said_by, kind, since, until, learnt in rows:
        span = None if start is None else Span(start, end, text)
        sure = confidences.get(id, float(learnt))
        period = from_micros_or_none(since), from_micros_or_none(until)
        claims.append(Claim(Triple(*fact), source, span, said_by, kind, sure, *period, tuple(premises[id])))
    return tuple(claims)
