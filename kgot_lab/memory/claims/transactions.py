"""Change the claims: the effect of a change, permanent erasure, and undo."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager

from kgot_lab.errors import BadInput, short_repr
from kgot_lab.memory import tables as sql
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.changes import Change, EffectHolder, erase_versions, open_change
from kgot_lab.memory.claims.claim import (
    ChangeEffect,
    Claim,
    ErasureCounts,
    RecordedAnswer,
    fact_id,
    from_micros,
    is_message,
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
from kgot_lab.memory.tables import ClaimStorage, fact_keys
from kgot_lab.types import Triple


@contextmanager
def record_effect(storage: ClaimStorage, change: Change, claims: Sequence[str]) -> Iterator[EffectHolder]:
    """Compare what holds before and after the block, at any time and now, for some claims' facts and
    all that is derived from these. Sentences that users said are no facts.
    """
    holder = EffectHolder()
    names = read_aliases(storage)
    rows = storage.rows(sql.FACTS_OF_CLAIMS, {"claims": list(claims)}) if claims else []
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
        rows = storage.rows(sql.CLAIMS, {"claims": claims})
        messages = {Triple(*row[1:4]) for row in rows if is_message(Triple(*row[1:4]), row[4])}
        ids = set(fact_ids(doomed, names))
        answers = [id for id, *_ in storage.rows(sql.ANSWERS_ON, {"facts": ids})]
        unneeded = {id for (id,) in storage.rows(sql.PREMISES_OF, {"claims": claims})}
        erased_facts = [Triple(*row) for row in storage.rows(sql.FACTS_BY_ID, {"facts": ids | unneeded})]
        if claims or erased_facts:
            storage.rows(sql.MARK_UNSCRUBBED, {"change": change.begin()})
        erase_versions(storage, sql.VERSIONS_OF_CLAIMS, {"claims": claims})
        for statement in sql.DELETE_CLAIMS:
            storage.rows(statement, {"claims": claims})
        for statement in sql.DELETE_ANSWERS:
            storage.rows(statement, {"answers": answers})
        erased_ids = [fact_id(fact) for fact in erased_facts]
        storage.rows(sql.DELETE_FACTS, {"facts": erased_ids})
        keys = {key for fact in erased_facts for key in fact_keys(*triple_key(fact))}
        storage.rows(sql.DELETE_FACT_KEYS, {"facts": erased_ids, "keys": keys})
        touched = {name for fact in erased_facts for name in (fact.subject, fact.object)}
        erase_versions(storage, sql.VERSIONS_OF_NAMES, {"names": touched})
    if scrub:
        storage.scrub()
    count = len(doomed - messages) if claims or erased_facts else 0
    return ErasureCounts(change.number, count, len(claims), len(answers))


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


def refuse_merge_cycles(change: Change, names: Iterable[str]) -> None:
    """Raise BadInput if the merges of some names that an undo restored are in a cycle with later ones."""
    merges: dict[str, str] = dict(change.storage.rows(sql.MERGED, {"known": NOW}))
    for name in names:
        seen, canonical = {name}, merges.get(name, name)
        while canonical in merges and canonical not in seen:
            seen.add(canonical)
            canonical = merges[canonical]
        if name in merges and canonical in seen:
            cycle = f"undoing change {change.undoes} would merge {short_repr(name)} in a circle"
            raise BadInput(f"{cycle}: unmerge {short_repr(merges[name])} first")
