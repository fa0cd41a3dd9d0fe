"""Learn, retract, restore and erase claims, and open them from a file or a server.

Whether facts hold is computed whenever it is queried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Self

from kgot_lab.errors import BadInput, require, require_known, require_probability, short_repr
from kgot_lab.graph.validation import Vocabulary
from kgot_lab.io.times import from_micros, to_micros, utc_now
from kgot_lab.memory import tables as sql
from kgot_lab.memory.claims.beliefs import Beliefs, claims_by_id
from kgot_lab.memory.claims.claim import (
    Cardinality,
    Claim,
    ErasureCounts,
    Learnt,
    MergeProposal,
    check_triple,
    fact_id,
    is_message,
    triple_key,
)
from kgot_lab.memory.claims.justification import NOW, claims_deciding, fact_ids, facts_resting_on, held_facts
from kgot_lab.memory.claims.name_merges import propose_merges
from kgot_lab.memory.postgres_tables import PostgresClaims
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.memory.tables import ClaimStorage
from kgot_lab.stores.tables.history import (
    Change,
    ChangeEffect,
    EffectHolder,
    RecordedAnswer,
    RecordedTables,
    StatusPeriod,
    VersionKeys,
    erase_versions,
    open_versions,
    read_periods,
)
from kgot_lab.stores.tables.opening import open_at
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Triple


class Claims(Beliefs, RecordedTables):
    """Facts with the claims that support them.

    As Beliefs, it is what is known now and valid at any time. Claims with a confidence of at least
    `accept_from` are in force at once, the others wait for review (`ClaimReview`). Every change has a
    number, by which it can be undone, a time that is never before that of the last one, and an author (`by`).
    """

    storage: ClaimStorage
    _in_part = True  # what holds follows from the claims that are left

    def __init__(
        self, storage: ClaimStorage, *, accept_from: float = 0.7, now: Callable[[], datetime] = utc_now
    ) -> None:
        super().__init__(storage, now=now)
        self.accept_from = require_probability(accept_from, "accept_from")

    @classmethod
    def open(  # type: ignore[override]
        cls,
        place: Path | str = ":memory:",
        *,
        namespace: str | None = None,
        new: bool = True,
        accept_from: float = 0.7,
        now: Callable[[], datetime] = utc_now,
    ) -> Self:
        """Open claims in an SQLite file, in memory (":memory:"), or in PostgreSQL by address (postgresql://).

        A file is created if there is none and `new` is true. `namespace` names the schema in PostgreSQL. Raises
        BadInput if the place is invalid or contains something else, if the file does not exist, and for a
        namespace of a file. Raises StoreUnavailable, StoreDamaged or NotInstalled if opening fails.
        """

        def in_file(path: Path | str) -> ClaimStorage:
            if not new and str(path) != ":memory:" and not Path(path).exists():
                hint = f"kgot-lab ask QUESTION --memory {path} begins one, or kgot-lab memory {path} add TEXT"
                raise BadInput(f"there is no memory at {path}: {hint}")
            return SQLiteClaims(path)

        require_probability(accept_from, "accept_from")
        storage = open_at(place, "claims", in_file, PostgresClaims, namespace=namespace)
        return cls(storage, accept_from=accept_from, now=now)

    # --- learning ---

    def learn(
        self, claims: Claim | Iterable[Claim], *, by: str = "", back: bool = True, action: str = "learn"
    ) -> Learnt:
        """Store claims, all or none.

        A known claim changes nothing, except that it is restored if it was retracted. A rejected one stays
        rejected. Without `back`, what was retracted stays retracted, and nothing new is learnt from a
        retracted source: to read it again is to learn nothing. `action` is how the log calls it.
        """
        distinct: dict[str, Claim] = {}
        for claim in [claims] if isinstance(claims, Claim) else claims:
            require(claim, Claim, "what is learnt is a Claim")
            distinct.setdefault(claim.id, claim)
        counts = {"new": 0, "known": 0, "back": 0, "queued": 0, "left": 0}
        with self.change(action, by) as change:
            retracted = frozenset() if back else self.retracted_sources()
            known = {id for (id,) in self.storage.rows(sql.CLAIM_IDS, {"claims": list(distinct)})}
            new = []
            for claim in distinct.values():
                if claim.source in retracted or (not back and self._is_dropped(claim)):
                    counts["left"] += 1
                elif claim.id in known:
                    self._learn_again(claim, change, counts)
                else:
                    new.append(claim)
            if new:
                standings = [(c.id, self._standing(c), c.confidence) for c in new]
                change.open_all("standing", standings)
                self.write_claims(new)
                counts["new"], queued = len(new), sum(standing == "queued" for _, standing, _ in standings)
                counts["queued"] += queued
            return Learnt(change.number, **counts)

    def _standing(self, claim: Claim) -> str:
        return "taken" if claim.confidence >= self.accept_from else "queued"

    def _is_dropped(self, claim: Claim) -> bool:
        return bool(open_versions(self.storage, "drop", claim.id))

    def _learn_again(self, claim: Claim, change: Change, counts: dict[str, int]) -> None:
        """Restore a known claim if it was retracted, or its learning undone."""
        is_standing = bool(open_versions(self.storage, "standing", claim.id))
        if self._is_dropped(claim):
            change.close("drop", claim.id)
        elif is_standing:
            counts["known"] += 1
            return
        counts["back"] += 1
        if not is_standing:
            standing = self._standing(claim)
            counts["queued"] += standing == "queued"
            change.open("standing", claim.id, standing, claim.confidence)

    def write_claims(self, claims: Sequence[Claim]) -> None:
        """Store new claims with their facts and premises.

        They are not in force until they get a standing.
        """
        self._write_facts(fact for claim in claims for fact in (claim.fact, *claim.premises))
        self.storage.insert(sql.NEW_CLAIM, [_claim_values(claim) for claim in claims])
        premises = [{"claim": claim.id, "fact": fact_id(fact)} for claim in claims for fact in claim.premises]
        self.storage.insert(sql.NEW_PREMISE, premises)

    def _write_facts(self, facts: Iterable[Triple]) -> None:
        """Store the texts and lookup keys of the facts that are new. They hold only by their claims."""
        by_id = {fact_id(fact): fact for fact in facts}
        known = {id for (id,) in self.storage.rows(sql.FACT_IDS, {"facts": list(by_id)})}
        new = {id: triple_key(fact) for id, fact in by_id.items() if id not in known}
        keys = [{"key": key, "fact": id} for id, parts in new.items() for key in sql.fact_keys(*parts)]
        self.storage.insert(sql.NEW_FACT_KEY, keys)
        names = ("subject", "relation", "object")
        rows = [{"id": id, **dict(zip(names, parts, strict=True))} for id, parts in new.items()]
        self.storage.insert(sql.NEW_FACT, rows)

    def note_answer(self, id: str, text: str, facts: Iterable[Triple]) -> None:
        """Record an answer and the facts that it depends on, so that a change can name it.

        An answer with the same id is replaced. Raises BadInput if it depends on none.
        """
        answer, text = checked_text(id, "the id of an answer"), checked_text(text, "an answer", blank=True)
        checked = (check_triple(fact, "a fact that an answer rests on") for fact in facts)
        facts_by_id = {fact_id(fact): fact for fact in checked}
        if not facts_by_id:
            problem = "an answer depends on one fact or more, and no change could name this one"
            raise BadInput(f"{problem}: give its facts")
        with self.storage.changing():
            for statement in sql.DELETE_ANSWER:
                self.storage.rows(statement, {"answer": answer})
            values = {"answer": answer, "text": text, "at": to_micros(self.now(), "now")}
            self.storage.rows(sql.NEW_ANSWER, values)
            self._write_facts(facts_by_id.values())
            for id in facts_by_id:
                self.storage.rows(sql.NEW_ANSWER_FACT, {"answer": answer, "fact": id})

    # --- retracting, undoing, erasing ---

    def retract_source(self, source: str, *, by: str = "") -> ChangeEffect:
        """Drop every claim of a source.

        What was derived from them stops to hold with its premises, and nothing else does. Raises UnknownName if
        nothing was learnt from it.
        """
        require_known("source", self.sources(), checked_text(source, "a source"))
        return self._retract("source", sql.CLAIMS_FROM_SOURCE, lambda: {"source": source}, by)

    def retract_fact(self, fact: Triple, *, by: str = "") -> ChangeEffect:
        """Drop every claim of a fact.

        A new claim of it that is learnt later is in force again. Raises BadInput if nothing was learnt of it.
        """
        if not self.claims_on(fact):
            raise BadInput(f"nothing was learnt of {fact}, so nothing is retracted: `facts` lists what holds")
        return self._retract("fact", sql.CLAIMS_OF_FACTS, lambda: {"facts": self._fact_ids(fact)}, by)

    def _retract(
        self, what: str, statement: str, parameters: Callable[[], dict[str, str | list[str]]], by: str
    ) -> ChangeEffect:
        with self.change(f"retract {what}", by) as change:
            claims = [claim for (claim,) in self.storage.rows(statement, parameters())]
            with self.effect(change, [("drop", claim) for claim in claims]) as effect:
                for claim in claims:
                    if what not in open_versions(self.storage, "drop", claim):
                        change.open("drop", claim, what)
            return effect.report

    def erase_fact(self, fact: Triple, *, by: str = "") -> ErasureCounts:
        """Erase a fact from every file, with its claims, what was derived from it alone, and answers that
        depended on it.

        This cannot be undone. If it is learnt again it is new: no stored data can say that it was erased. A
        record stays that something was erased, when and by whom. Declared cardinalities are vocabulary, and
        stay. Raises StoreUnavailable if another process reads for too long: it is erased then, and its bytes
        are removed when the file is opened the next time.
        """
        fact = check_triple(fact, "a fact")
        return self.erase_claims(sql.CLAIMS_OF_FACTS, lambda: {"facts": self._fact_ids(fact)}, by, [fact])

    def erase_source(self, source: str, *, by: str = "") -> ErasureCounts:
        """Erase every claim of a source, and the facts that no other source claims, as `erase_fact` does."""
        source = checked_text(source, "a source")
        return self.erase_claims(sql.CLAIMS_FROM_SOURCE, lambda: {"source": source}, by)

    def erase_claims(
        self,
        statement: str,
        parameters: Callable[[], Mapping[str, str | list[str]]],
        by: str,
        facts: Iterable[Triple] = (),
        *,
        scrub: bool = True,
    ) -> ErasureCounts:
        """Erase the claims that a statement selects, and some facts, with what depends on nothing else.

        Without `scrub`, the bytes leave the file when it is scrubbed the next time. See `erase_fact`.
        """
        storage = self.storage
        with self.change("erase", by) as change:
            names = self.names()
            named = {id for (id,) in storage.rows(statement, parameters())}
            claims, doomed = self._dependents_to_erase(named, set(map(names.canonical_fact, facts)))
            rows = storage.rows(sql.CLAIMS, {"claims": claims})
            messages = {Triple(*row[1:4]) for row in rows if is_message(Triple(*row[1:4]), row[4])}
            ids = set(fact_ids(doomed, names))
            answers = [id for id, *_ in storage.rows(sql.ANSWERS_ON, {"facts": ids})]
            unneeded = {id for (id,) in storage.rows(sql.PREMISES_OF, {"claims": claims})}
            erased_facts = [Triple(*row) for row in storage.rows(sql.FACTS_BY_ID, {"facts": ids | unneeded})]
            if claims or erased_facts:
                storage.rows(sql.MARK_UNSCRUBBED, {"change": change.begin()})
            erase_versions(storage, sql.VERSIONS_OF_CLAIMS, {"claims": claims})
            for deletion in (*sql.DELETE_CLAIMS, *sql.DELETE_ANSWERS):
                storage.rows(deletion, {"claims": claims, "answers": answers})
            erased_ids = [fact_id(fact) for fact in erased_facts]
            storage.rows(sql.DELETE_FACTS, {"facts": erased_ids})
            keys = {key for fact in erased_facts for key in sql.fact_keys(*triple_key(fact))}
            storage.rows(sql.DELETE_FACT_KEYS, {"facts": erased_ids, "keys": keys})
            touched = {name for fact in erased_facts for name in (fact.subject, fact.object)}
            erase_versions(storage, sql.VERSIONS_OF_NAMES, {"names": touched})
        if scrub:
            storage.scrub()
        count = len(doomed - messages) if claims or erased_facts else 0
        return ErasureCounts(change.number, count, len(claims), len(answers))

    def _dependents_to_erase(self, claims: set[str], facts: set[Triple]) -> tuple[set[str], set[Triple]]:
        """Return the claims and facts that are removed with some others.

        These are facts that no other claim supports, and claims that are derived from such facts.
        """
        storage, names = self.storage, self.names()

        def resting_on(facts: set[Triple]) -> set[str]:
            values = {"facts": fact_ids(facts, names)}
            return {id for (id,) in storage.rows(sql.CLAIMS_DERIVED_FROM, values)} if facts else set()

        pending, doomed = claims | resting_on(facts), set[str]()
        while pending:
            doomed |= pending
            unsupported = set()
            for fact in names.canonical_facts(storage.rows(sql.FACTS_OF_CLAIMS, {"claims": pending})) - facts:
                rows = storage.rows(sql.CLAIMS_OF_FACTS, {"facts": fact_ids([fact], names)})
                if doomed.issuperset(id for (id,) in rows):
                    unsupported.add(fact)
            facts = facts | unsupported
            pending = resting_on(unsupported) - doomed
        return doomed, facts

    # --- cardinalities and names ---

    def declare(self, relation: str, cardinality: Cardinality, *, by: str = "") -> int | None:
        """Declare whether a subject has a "single" object in a relation at one time, or "many".

        Returns the number of the change, or None if that was declared already.
        """
        relation = checked_text(relation, "a relation")
        require_known("cardinality", ("single", "many"), cardinality)
        with self.change("declare", by) as change:
            change.replace("declared", relation, cardinality)
            return change.number

    def declare_by(self, vocabulary: Vocabulary, *, by: str = "") -> tuple[str, ...]:
        """Declare the relations that a vocabulary says are single, and return those that are new."""
        names = vocabulary.single_types
        with self.storage.changing():
            return tuple(name for name in names if self.declare(name, "single", by=by) is not None)

    def propose_merges(self) -> tuple[MergeProposal, ...]:
        """Return pairs of names that may mean the same thing, with the reasons.

        Nothing is merged until `merge` is called.
        """
        return propose_merges(self.facts())

    def merge(self, kept: str, other: str, *, by: str = "") -> int:
        """Read one name as another from now on, and return the number of the change.

        Every fact keeps the name it was learnt with. Raises BadInput for a cycle, and if no fact has either name.
        """
        both = [checked_text(name, "a name") for name in (kept, other)]
        with self.change("merge", by) as change:
            names = self.names()
            if other in names.merges:
                target = short_repr(names.merges[other])
                raise BadInput(f"{short_repr(other)} is merged into {target}: unmerge it first")
            known = {*names.merges, *names.merges.values()}.intersection(both)
            if not known and kept != other and not self.storage.rows(sql.FACTS_NAMING, {"names": both}):
                problem = f"no fact names {short_repr(kept)} or {short_repr(other)}"
                raise BadInput(f"{problem}: `facts` shows the names")
            if names.canonical(kept) == other:
                problem = f"{short_repr(kept)} already goes by {short_repr(other)}"
                raise BadInput(f"{problem}: merging that into it would be a circle")
            return change.open("merged", other, kept)

    def unmerge(self, other: str, *, by: str = "") -> int:
        """Read a merged name as itself again, exactly as before, and return the number of the change.

        Raises BadInput if the name is not merged.
        """
        other = checked_text(other, "a name")
        with self.change("unmerge", by) as change:
            if other not in self.names().merges:
                raise BadInput(f"{short_repr(other)} is merged into no other name")
            return change.close("merged", other)

    # --- records ---

    def claim(self, id: str) -> Claim:
        """Return a claim as it was learnt, by its id.

        Raises BadInput if there is no such claim.
        """
        self._require_claim(id)
        return claims_by_id(self.storage, [id])[0]

    def from_source(self, source: str) -> tuple[Claim, ...]:
        """Return every claim of a source as it was learnt, in force or not, in the order of their ids."""
        rows = self.storage.rows(sql.CLAIMS_FROM_SOURCE, {"source": checked_text(source, "a source")})
        return claims_by_id(self.storage, [id for (id,) in rows])

    def claims_on(self, fact: Triple) -> tuple[Claim, ...]:
        """Return every claim of a fact as it was learnt, in force or not, in the order of their ids."""
        rows = self.storage.rows(sql.CLAIMS_OF_FACTS, {"facts": self._fact_ids(fact)})
        return claims_by_id(self.storage, [id for (id,) in rows])

    def ids_beginning(self, beginning: str) -> tuple[str, ...]:
        """Return the ids of the claims, in force or not, that begin with some characters."""
        prefix = checked_text(beginning, "how an id begins")
        values = {"beginning": prefix, "length": len(prefix)}
        return tuple(id for (id,) in self.storage.rows(sql.CLAIMS_BY_ID_PREFIX, values))

    def recorded_facts(self) -> tuple[Triple, ...]:
        """Return every fact that was ever recorded and not erased, whether it holds or not.

        The names are those it was learnt with.
        """
        return tuple(Triple(*row) for row in self.storage.rows(sql.select_facts()))

    def answers_on(self, fact: Triple) -> tuple[RecordedAnswer, ...]:
        """Return the answers that depend on a fact, whether it holds or not."""
        return self._answers_on(self._fact_ids(fact))

    def recorded_answers(self) -> dict[RecordedAnswer, tuple[Triple, ...]]:
        """Return the recorded answers, earliest first, with the facts that each depends on.

        The facts are included whether they hold or not.
        """
        facts_by_answer: dict[RecordedAnswer, tuple[Triple, ...]] = {}
        for id, text, at, *fact in self.storage.rows(sql.RECORDED_ANSWERS):
            answer = RecordedAnswer(id, text, from_micros(at))
            facts_by_answer[answer] = (*facts_by_answer.get(answer, ()), Triple(*fact))
        return facts_by_answer

    def history(self, claim: str) -> tuple[StatusPeriod, ...]:
        """Return the status of a claim in each period, by when it was known.

        A drop takes precedence over the standing. Raises BadInput if there is no such claim.
        """
        self._require_claim(claim)
        return read_periods(self.storage, "standing", claim)

    def _targets(self) -> dict[int, list[str]]:
        targets = defaultdict(list)
        statements = sql.CHANGED_SOURCES, sql.CHANGED_FACTS, sql.CHANGED_SENTENCES
        for change, *target in (row for statement in statements for row in self.storage.rows(statement)):
            targets[change].append(target[0] if len(target) == 1 else str(Triple(*target)))
        return targets

    @contextmanager
    def effect(self, change: Change, keys: VersionKeys) -> Iterator[EffectHolder]:
        """Compare what holds before and after the block, at any time and now, for some claims' facts and all that
        is derived from these. Sentences that users said are no facts.
        """
        holder, storage, names = EffectHolder(), self.storage, self.names()
        claims = sorted({key for kind, key in keys if kind in ("standing", "drop")})
        rows = storage.rows(sql.FACTS_OF_CLAIMS, {"claims": claims}) if claims else []
        affected = facts_resting_on(storage, names, [Triple(*row) for row in rows])

        def held() -> list[Set[Triple]]:
            deciding = claims_deciding(storage, names, affected)
            messages = {claim.fact for claim in deciding if is_message(claim.fact, claim.source)}
            return [held_facts(deciding, at).keys() & affected - messages for at in (None, change.at)]

        before = held()
        yield holder
        pairs = list(zip(before, held(), strict=True))
        fallen = tuple(sorted(set().union(*(earlier - later for earlier, later in pairs)), key=triple_key))
        risen = tuple(sorted(set().union(*(later - earlier for earlier, later in pairs)), key=triple_key))
        answers = self._answers_on(fact_ids(fallen, names))
        holder.report = ChangeEffect(change.number, fallen, self._orphans(fallen), answers, risen)

    def _orphans(self, fallen: Sequence[Triple]) -> tuple[str, ...]:
        """Return the entities of some facts that no fact names any more."""
        names = self.names()
        orphaned = {name for fact in fallen for name in (fact.subject, fact.object)}
        spellings = [spelling for name in orphaned for spelling in names.names(name)]
        facts = names.canonical_facts(self.storage.rows(sql.FACTS_NAMING, {"names": spellings}))
        for fact in facts & held_facts(claims_deciding(self.storage, names, facts)).keys():
            orphaned -= {fact.subject, fact.object}
        return tuple(sorted(orphaned))

    def _answers_on(self, facts: Iterable[str]) -> tuple[RecordedAnswer, ...]:
        rows = self.storage.rows(sql.ANSWERS_ON, {"facts": list(facts)})
        return tuple(RecordedAnswer(id, text, from_micros(at)) for id, text, at in rows)

    def _restore(self, change: Change, keys: VersionKeys) -> None:
        """Raise BadInput if the merges of some names that an undo restored are in a cycle with later ones."""
        # not by `names()`, which does not end in a cycle
        merges: dict[str, str] = dict(self.storage.rows(sql.MERGED, {"known": NOW}))
        for name in (key for kind, key in keys if kind == "merged"):
            seen, canonical = {name}, merges.get(name, name)
            while canonical in merges and canonical not in seen:
                seen.add(canonical)
                canonical = merges[canonical]
            if name in merges and canonical in seen:
                cycle = f"undoing change {change.undoes} would merge {short_repr(name)} in a circle"
                raise BadInput(f"{cycle}: unmerge {short_repr(merges[name])} first")

    def _require_claim(self, id: str) -> None:
        if not self.storage.rows(sql.CLAIM_IDS, {"claims": [checked_text(id, "the id of a claim")]}):
            hint = "supports_of(fact) and the queue of a ClaimReview name them by `id`"
            raise BadInput(f"there is no claim {short_repr(id)}: {hint}")

    def _fact_ids(self, fact: Triple) -> list[str]:
        names = self.names()
        return fact_ids([names.canonical_fact(check_triple(fact, "a fact"))], names)


def _claim_values(claim: Claim) -> dict[str, str | float | None]:
    span, (since, until) = claim.span, claim.valid_micros
    place = (None, None, None) if span is None else (span.start, span.end, span.text)
    return {
        "id": claim.id, "fact": fact_id(claim.fact), "source": claim.source, "said_by": claim.said_by,
        "kind": claim.kind, "confidence": claim.confidence, "valid_from": since, "valid_until": until,
        **dict(zip(("start", "end", "text"), place, strict=True)),
    }  # fmt: skip


open_claims = Claims.open
