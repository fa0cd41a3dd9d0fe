"""The part of the claims that decides about some facts: what they rest on, and what rests on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from kgot_lab.memory.claims.claim import fact_id
from kgot_lab.memory.claims.justification import Aliases, InForce
from kgot_lab.memory.tables import ClaimRow, ClaimStorage
from kgot_lab.memory.tables import statements as sql
from kgot_lab.types import Triple

NOW = 2**62  # a change that comes after all


def aliases(storage: ClaimStorage, known: int = NOW) -> Aliases:
    """The merges of names as they were known after a change."""
    return Aliases(dict(storage.rows(sql.MERGED, {"known": known})))


def all_in_force(storage: ClaimStorage, names: Aliases, known: int = NOW) -> list[InForce]:
    """Every claim in force after a change."""
    return in_force(storage.rows(sql.ALL_IN_FORCE, {"known": known}), storage.rows(sql.ALL_PREMISES), names)


def deciding(
    storage: ClaimStorage, names: Aliases, facts: Iterable[Triple], known: int = NOW
) -> list[InForce]:
    """The claims in force after a change that decide whether some facts hold: theirs, and those of all they
    are derived from.
    """
    found: list[InForce] = []
    seen: set[Triple] = set()
    new = {names.read(fact) for fact in facts}
    while new:
        seen |= new
        rows = storage.rows(sql.IN_FORCE, {"known": known, "facts": fact_ids(new, names)})
        derived = [row[0] for row in rows if row[8] == "inferred"]
        claims = in_force(rows, storage.rows(sql.PREMISES, {"claims": derived}) if derived else [], names)
        found += claims
        new = {premise for claim in claims for premise in claim.premises} - seen
    return found


def resting_on(storage: ClaimStorage, names: Aliases, facts: Iterable[Triple]) -> set[Triple]:
    """Some facts and all that was ever derived from them, whether it holds or not."""
    seen: set[Triple] = set()
    new = {names.read(fact) for fact in facts}
    while new:
        seen |= new
        new = {
            names.read(Triple(*row)) for row in storage.rows(sql.DERIVED, {"facts": fact_ids(new, names)})
        } - seen
    return seen


def fact_ids(facts: Iterable[Triple], names: Aliases) -> list[str]:
    """The ids of some facts under all their names."""
    return [fact_id(each) for each in names.spellings(facts)]


def in_force(rows: Sequence[ClaimRow], premises: Sequence[ClaimRow], names: Aliases) -> list[InForce]:
    """Claims from rows of what decides, and of the premises among them, by the names that are read."""
    needed: dict[str, dict[Triple, None]] = defaultdict(dict)
    for claim, *fact in premises:
        needed[claim][names.read(Triple(*fact))] = None
    return [
        InForce(
            id,
            names.read(Triple(subject, relation, object)),
            source,
            confidence,
            since,
            until,
            kind,
            tuple(needed.get(id, ())),
        )
        for id, subject, relation, object, source, confidence, since, until, kind in rows
    ]
