"""Learn, retract, restore and erase claims, and open them from a file or a server.

Whether facts hold is computed whenever it is queried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, require, require_known, require_probability, short_repr
from kgot_lab.graph.validation import Vocabulary
from kgot_lab.memory import tables as sql
from kgot_lab.memory.claims import transactions
from kgot_lab.memory.claims.beliefs import Beliefs, claims_by_id
from kgot_lab.memory.claims.changes import (
    Change,
    EffectHolder,
    RecordedTables,
    VersionKeys,
    open_versions,
    read_periods,
)
from kgot_lab.memory.claims.claim import (
    Cardinality,
    ChangeEffect,
    Claim,
    ErasureCounts,
    Learnt,
    MergeProposal,
    RecordedAnswer,
    StatusPeriod,
    check_triple,
    fact_id,
    from_micros,
    to_micros,
    utc_now,
)
from kgot_lab.memory.claims.justification import fact_ids
from kgot_lab.memory.claims.name_merges import propose_merges
from kgot_lab.memory.postgres_tables import PostgresClaims
from kgot_lab.memory.sqlite_tables import SQLiteClaims, open_at
from kgot_lab.memory.tables import ClaimStorage
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

    @check_arguments
    def __init__(
        self, storage: ClaimStorage, *, accept_from: float = 0.7, now: Callable[[], datetime] = utc_now
    ) -> None:
        super().__init__(storage, now=now)
        self.accept_from = require_probability(accept_from, "accept_from")

    # --- learning ---

    @check_arguments
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
                transactions.write_claims(self.storage, new)
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

    @check_arguments
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
            transactions.write_facts(self.storage, facts_by_id.values())
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
            with transactions.record_effect(self.storage, change, claims) as effect:
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
        return transactions.erase_claims(
            self, sql.CLAIMS_OF_FACTS, lambda: {"facts": self._fact_ids(fact)}, by, [fact]
        )

    def erase_source(self, source: str, *, by: str = "") -> ErasureCounts:
        """Erase every claim of a source, and the facts that no other source claims, as `erase_fact` does."""
        source = checked_text(source, "a source")
        return transactions.erase_claims(self, sql.CLAIMS_FROM_SOURCE, lambda: {"source": source}, by)

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

    @check_arguments
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
        rows = self.storage.rows(sql.ANSWERS_ON, {"facts": self._fact_ids(fact)})
        return tuple(RecordedAnswer(id, text, from_micros(at)) for id, text, at in rows)

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
        """Report what holds after the block and not before it, and the reverse, with the answers on it."""
        claims = sorted({key for kind, key in keys if kind in ("standing", "drop")})
        with transactions.record_effect(self.storage, change, claims) as holder:
            yield holder

    def _restore(self, change: Change, keys: VersionKeys) -> None:
        transactions.refuse_merge_cycles(change, [key for kind, key in keys if kind == "merged"])

    def _require_claim(self, id: str) -> None:
        if not self.storage.rows(sql.CLAIM_IDS, {"claims": [checked_text(id, "the id of a claim")]}):
            hint = "supports_of(fact) and the queue of a ClaimReview name them by `id`"
            raise BadInput(f"there is no claim {short_repr(id)}: {hint}")

    def _fact_ids(self, fact: Triple) -> list[str]:
        names = self.names()
        return fact_ids([names.canonical_fact(check_triple(fact, "a fact"))], names)


# Open claims by the name of a file, in memory, or by the address of a PostgreSQL server.


def open_claims(
    place: Path | str = ":memory:",
    *,
    namespace: str | None = None,
    new: bool = True,
    accept_from: float = 0.7,
    now: Callable[[], datetime] = utc_now,
) -> Claims:
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
    return Claims(storage, accept_from=accept_from, now=now)
