"""Change the claims: number, time and effect of a change, permanent erasure, and undo."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from kgot_lab.errors import BadInput, require_count, short_repr
from kgot_lab.memory import tables as sql
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.claim import (
    ChangeEffect,
    Claim,
    ErasureCounts,
    RecordedAnswer,
    fact_id,
    from_micros,
    to_micros,
    triple_key,
)
from kgot_lab.memory.claims.justification import (
    NOW,
    Aliases,
    claims_deciding,
    fact_ids,
    facts_resting_on,
    held_facts,
    read_aliases,
)
from kgot_lab.memory.tables import ClaimRow, ClaimStorage, fact_keys
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Triple


class ClaimChange:
    """A change in progress.

    `number` is None until it changes something, so that a change without effect leaves no record.
    """

    def __init__(self, storage: ClaimStorage, values: dict[str, str | int | None]) -> None:
        self.storage, self.values = storage, values
        self.number: int | None = None

    def begin(self) -> int:
        """Return the number of the change, which is assigned at the first call."""
        if self.number is None:
            last_id, last_time = next(iter(self.storage.rows(sql.LAST_CHANGE)), (0, None))
            clock = int(self.values["clock"] or 0)
            self.number = int(last_id) + 1
            time = clock if last_time is None else max(last_time, clock)
            self.storage.rows(sql.NEW_CHANGE, self.values | {"id": self.number, "at": time})
        return self.number

    def open(self, kind: str, key: str, value: str, number: float | None = None) -> int:
        """Set a value from now on."""
        change = self.begin()
        version = {"kind": kind, "key": key, "value": value, "number": number, "change": change}
        self.storage.rows(sql.OPEN_VERSION, version)
        return change

    def open_all(self, kind: str, values: Iterable[tuple[str, str, float]]) -> None:
        """Set the value and number of each key from now on."""
        names = ("key", "value", "number")
        common = {"kind": kind, "change": self.begin()}
        self.storage.insert(
            sql.OPEN_VERSION, [common | dict(zip(names, each, strict=True)) for each in values]
        )

    def close(self, kind: str, key: str, value: str | None = None) -> int:
        """Close the current value, or, without a value, whatever is current."""
        change = self.begin()
        self.storage.rows(
            sql.CLOSE_VERSIONS if value is None else sql.CLOSE_VERSION,
            {"kind": kind, "key": key, "change": change} | ({} if value is None else {"value": value}),
        )
        return change

    def replace(self, kind: str, key: str, value: str, number: float | None = None) -> int:
        """Replace the current value."""
        self.close(kind, key)
        return self.open(kind, key, value, number)


@contextmanager
def open_change(
    storage: ClaimStorage, action: str, by: str, now: Callable[[], datetime], *, undoes: int | None = None
) -> Iterator[ClaimChange]:
    """Open a change in its own transaction, which is stored completely or not at all.

    Raises BadInput if `by` is not a text.
    """
    who = checked_text(by, "who makes a change (by)", blank=True)
    with storage.changing():
        # read inside the transaction, because waiting for another process must not turn back time
        clock = to_micros(now(), "now")
        yield ClaimChange(storage, {"clock": clock, "who": who, "action": action, "undoes": undoes})


def open_versions(storage: ClaimStorage, kind: str, key: str) -> dict[str, float | None]:
    """Return the current values, each with its number."""
    return dict(storage.rows(sql.OPEN_VALUES, {"kind": kind, "key": key}))


class EffectHolder:
    """Holds the report of a change once it is made."""

    report = ChangeEffect(None)


@contextmanager
def record_effect(
    storage: ClaimStorage, change: ClaimChange, claims: Sequence[str]
) -> Iterator[EffectHolder]:
    """Compare what holds before and after the block, for some claims' facts and all that is derived from
    these.
    """
    holder = EffectHolder()
    names = read_aliases(storage)
    rows = storage.rows(sql.FACTS_OF_CLAIMS, {"claims": list(claims)}) if claims else []
    affected = facts_resting_on(storage, names, [Triple(*row) for row in rows])
    before = held_facts(claims_deciding(storage, names, affected)).keys() & affected
    yield holder
    after = held_facts(claims_deciding(storage, names, affected)).keys() & affected
    fallen, risen = (tuple(sorted(facts, key=triple_key)) for facts in (before - after, after - before))
    rows = storage.rows(sql.ANSWERS_ON, {"facts": fact_ids(fallen, names)})
    answers = tuple(RecordedAnswer(id, text, from_micros(at)) for id, text, at in rows)
    holder.report = ChangeEffect(change.number, fallen, _orphans(storage, fallen), answers, risen)


def _orphans(storage: ClaimStorage, fallen: Sequence[Triple]) -> tuple[str, ...]:
    """Return the entities of some facts that no fact names any more."""
    names = read_aliases(storage)
    orphaned = {name for fact in fallen for name in (fact.subject, fact.object)}
    spellings = [spelling for name in orphaned for spelling in names.names(name)]
    facts = names.canonical_facts(storage.rows(sql.FACTS_NAMING, {"names": spellings}))
    for fact in facts & held_facts(claims_deciding(storage, names, facts)).keys():
        orphaned -= {fact.subject, fact.object}
    return tuple(sorted(orphaned))


def write_claims(storage: ClaimStorage, claims: Sequence[Claim]) -> None:
    """Store new claims with their facts and premises.

    They are not in force until they get a standing.
    """
    write_facts(storage, (fact for claim in claims for fact in (claim.fact, *claim.premises)))
    storage.insert(sql.NEW_CLAIM, [_claim_values(claim) for claim in claims])
    premises = [{"claim": claim.id, "fact": fact_id(fact)} for claim in claims for fact in claim.premises]
    storage.insert(sql.NEW_PREMISE, premises)


def _claim_values(claim: Claim) -> dict[str, str | float | None]:
    span, (since, until) = claim.span, claim.valid_micros
    place = (None, None, None) if span is None else (span.start, span.end, span.text)
    return {
        "id": claim.id, "fact": fact_id(claim.fact), "source": claim.source, "said_by": claim.said_by,
        "kind": claim.kind, "confidence": claim.confidence, "valid_from": since, "valid_until": until,
        **dict(zip(("start", "end", "text"), place, strict=True)),
    }  # fmt: skip


def write_facts(storage: ClaimStorage, facts: Iterable[Triple]) -> None:
    """Store the texts and lookup keys of the facts that are new. They hold only by their claims."""
    by_id = {fact_id(fact): fact for fact in facts}
    known = {id for (id,) in storage.rows(sql.FACT_IDS, {"facts": list(by_id)})}
    new = {id: triple_key(fact) for id, fact in by_id.items() if id not in known}
    keys = [{"key": key, "fact": id} for id, parts in new.items() for key in fact_keys(*parts)]
    storage.insert(sql.NEW_FACT_KEY, keys)
    names = ("subject", "relation", "object")
    storage.insert(
        sql.NEW_FACT, [{"id": id, **dict(zip(names, parts, strict=True))} for id, parts in new.items()]
    )


# Erasure of facts and sources from every table and file, which is a person's right. It is not retraction.


def erase_claims(
    beliefs: Beliefs,
    statement: str,
    parameters: Callable[[], Mapping[str, str | list[str]]],
    by: str,
    facts: Iterable[Triple] = (),
    *,
    scrub: bool = True,
) -> ErasureCounts:
    """Erase the claims that a statement selects, and some facts, with what depends on nothing else.

    Without `scrub`, the bytes leave the file when it is scrubbed the next time. See `Claims.erase_fact`.
    """
    storage = beliefs.storage
    with open_change(storage, "erase", by, beliefs.now) as change:
        names = read_aliases(storage)
        named = {id for (id,) in storage.rows(statement, parameters())}
        wanted = set(map(names.canonical_fact, facts))
        claims, doomed = _dependents_to_erase(storage, names, named, wanted)
        ids = set(fact_ids(doomed, names))
        answers = [id for id, *_ in storage.rows(sql.ANSWERS_ON, {"facts": ids})]
        unneeded = {id for (id,) in storage.rows(sql.PREMISES_OF, {"claims": claims})}
        erased_facts = [Triple(*row) for row in storage.rows(sql.FACTS_BY_ID, {"facts": ids | unneeded})]
        if claims or erased_facts:
            storage.rows(sql.MARK_UNSCRUBBED, {"change": change.begin()})
        _erase_versions(storage, sql.VERSIONS_OF_CLAIMS, {"claims": claims})
        for statement in sql.DELETE_CLAIMS:
            storage.rows(statement, {"claims": claims})
        for statement in sql.DELETE_ANSWERS:
            storage.rows(statement, {"answers": answers})
        erased_ids = [fact_id(fact) for fact in erased_facts]
        storage.rows(sql.DELETE_FACTS, {"facts": erased_ids})
        keys = {key for fact in erased_facts for key in fact_keys(*triple_key(fact))}
        storage.rows(sql.DELETE_FACT_KEYS, {"facts": erased_ids, "keys": keys})
        touched = {name for fact in erased_facts for name in (fact.subject, fact.object)}
        _erase_versions(storage, sql.VERSIONS_OF_NAMES, {"names": touched})
    if scrub:
        storage.scrub()
    count = len(doomed) if claims or erased_facts else 0
    return ErasureCounts(change.number, count, len(claims), len(answers))


def _erase_versions(storage: ClaimStorage, which: str, values: Mapping[str, set[str]]) -> None:
    """Count some versions as erased in the changes that opened and closed them, and delete them."""
    for statement in (sql.COUNT_ERASED, sql.DELETE_VERSIONS):
        storage.rows(statement.format(which=which), values)


def _dependents_to_erase(
    storage: ClaimStorage, names: Aliases, claims: set[str], facts: set[Triple]
) -> tuple[set[str], set[Triple]]:
    """Return the claims and facts that are removed with some others.

    These are facts that no other claim supports, and claims that are derived from such facts.
    """
    pending = claims | _claims_resting_on(storage, names, facts)
    doomed: set[str] = set()
    while pending:
        doomed |= pending
        unsupported = set()
        for fact in names.canonical_facts(storage.rows(sql.FACTS_OF_CLAIMS, {"claims": pending})) - facts:
            rows = storage.rows(sql.CLAIMS_OF_FACTS, {"facts": fact_ids([fact], names)})
            if doomed.issuperset(id for (id,) in rows):
                unsupported.add(fact)
        facts = facts | unsupported
        pending = _claims_resting_on(storage, names, unsupported) - doomed
    return doomed, facts


def _claims_resting_on(storage: ClaimStorage, names: Aliases, facts: set[Triple]) -> set[str]:
    if not facts:
        return set()
    return {id for (id,) in storage.rows(sql.CLAIMS_DERIVED_FROM, {"facts": fact_ids(facts, names)})}


# Undo: what a change opened is closed, and what it closed is opened again as it was, without a model.

_MAX_DATABASE_INTEGER = 2**63 - 1  # the largest integer of a database


def undo_change(beliefs: Beliefs, number: int, by: str) -> ChangeEffect:
    """Undo a change by a new one.

    See `Claims.undo`.
    """
    require_count(number, 1, "the number of a change", maximum=float("inf"))
    storage = beliefs.storage
    with open_change(storage, "undo", by, beliefs.now, undoes=number) as change:
        erased = _check_undoable(beliefs, number)
        statements = (sql.VERSIONS_OPENED, sql.VERSIONS_CLOSED)
        opened, closed = (storage.rows(statement, {"change": number}) for statement in statements)
        claims = sorted({row[1] for row in (*opened, *closed) if row[0] in ("standing", "drop")})
        with record_effect(beliefs.storage, change, claims) as holder:
            overtaken = {row[5] for row in opened if not _close_opened(change, row)}
            overtaken |= {by for row in closed for by in _reopen_closed(change, row)}
            _refuse_merge_cycles(change, number, [row[1] for row in closed if row[0] == "merged"])
        if overtaken and change.number is None:
            by_later = ", ".join(map(str, sorted(overtaken)))
            overtaken_by = f"what change {number} did was changed again since, by {by_later}"
            raise BadInput(f"{overtaken_by}: undo that first")
        return replace(holder.report, change=change.number, erased=erased, overtaken=tuple(sorted(overtaken)))


def _check_undoable(beliefs: Beliefs, number: int) -> int:
    """Return how many parts of a change were erased.

    Raises BadInput if there is nothing to undo.
    """
    rows = beliefs.storage.rows(sql.CHANGE, {"change": number}) if number <= _MAX_DATABASE_INTEGER else []
    if not rows:
        raise BadInput(f"there is no change {number}: log() lists them")
    ((action, erased),) = rows
    if action.startswith("erase"):
        raise BadInput(f"change {number} erased something, which nothing brings back")
    last = number
    while later := beliefs.storage.rows(sql.CHANGES_UNDOING, {"change": last}):
        last = later[-1][0]
    if last != number:
        undone = f"change {number} was undone, last by change {last}"
        raise BadInput(f"{undone}: undo that one to turn it round again")
    return int(erased)


def _refuse_merge_cycles(change: ClaimChange, number: int, names: Iterable[str]) -> None:
    """Raise BadInput if restoring the merges of some names would create a cycle with later merges."""
    merges: dict[str, str] = dict(change.storage.rows(sql.MERGED, {"known": NOW}))
    for name in names:
        seen, canonical = {name}, merges.get(name, name)
        while canonical in merges and canonical not in seen:
            seen.add(canonical)
            canonical = merges[canonical]
        if name in merges and canonical in seen:
            cycle = f"undoing change {number} would merge {short_repr(name)} in a circle"
            raise BadInput(f"{cycle}: unmerge {short_repr(merges[name])} first")


def _close_opened(change: ClaimChange, row: ClaimRow) -> bool:
    """Close what a change opened, or what an undo reopened in its place.

    Returns False if something else has closed it since.
    """
    kind, key, value, number, _, closed = row
    if closed is not None:
        is_same = open_versions(change.storage, kind, key).get(value, -1) == number
        if not (is_same and _was_reopened_by_undo(change, row)):
            return False
    change.close(kind, key, value)
    return True


def _was_reopened_by_undo(change: ClaimChange, row: ClaimRow) -> bool:
    return change.storage.rows(sql.OPENED_BY_UNDO, {"kind": row[0], "key": row[1], "value": row[2]}) != []


def _reopen_closed(change: ClaimChange, row: ClaimRow) -> set[int]:
    """Reopen what a change closed.

    Returns the changes that opened something else in its place since.
    """
    kind, key, value, number, *_ = row
    since = change.storage.rows(sql.OPEN_SINCE, {"kind": kind, "key": key})
    # a claim may be dropped for several reasons
    current = {opened for value_now, opened in since if kind != "drop" or value_now == value}
    if not current:
        change.open(kind, key, value, number)
    return current if kind != "drop" else set()
