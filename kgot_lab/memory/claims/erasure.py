"""Facts and sources taken out of every table and file for good: a person's right, and not what retracting is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.claim import Erased, fact_id, triple_key
from kgot_lab.memory.claims.justification import Aliases, aliases, fact_ids
from kgot_lab.memory.claims.transactions import making
from kgot_lab.memory.tables import ClaimStorage, fact_keys
from kgot_lab.memory.tables import statements as sql
from kgot_lab.types import Triple


def erase_claims(
    beliefs: Beliefs,
    statement: str,
    asked: Callable[[], Mapping[str, str | list[str]]],
    by: str,
    fact: Triple | None = None,
) -> Erased:
    """Erase the claims that a statement names, and a fact where it is given, with what rests on nothing else;
    see `Claims.erase_fact`.
    """
    storage = beliefs.storage
    with making(storage, "erase", by, beliefs.now) as change:
        names = aliases(storage)
        named = {id for (id,) in storage.rows(statement, asked())}
        claims, facts = _doomed(storage, names, named, set() if fact is None else {names.read(fact)})
        ids = set(fact_ids(facts, names))
        answers = [id for id, *_ in storage.rows(sql.ANSWERS_ON, {"facts": ids})]
        unneeded = {id for (id,) in storage.rows(sql.PREMISES_OF, {"claims": claims})}
        gone = [Triple(*row) for row in storage.rows(sql.FACTS_BY_ID, {"facts": ids | unneeded})]
        if claims or gone:
            storage.rows(sql.UNSCRUBBED, {"change": change.begin()})
        for statement in (
            sql.COUNT_ERASED.format(which=sql.OF_CLAIMS),
            sql.DELETE_VERSIONS.format(which=sql.OF_CLAIMS),
        ):
            storage.rows(statement, {"claims": claims})
        for statement in sql.DELETE_CLAIMS:
            storage.rows(statement, {"claims": claims})
        for statement in sql.DELETE_ANSWERS:
            storage.rows(statement, {"answers": answers})
        storage.rows(sql.DELETE_FACTS, {"facts": [fact_id(each) for each in gone]})
        keys = {key for each in gone for key in fact_keys(*triple_key(each))}
        storage.rows(sql.DELETE_FACT_KEYS, {"facts": [fact_id(each) for each in gone], "keys": keys})
        touched = {name for each in gone for name in (each.subject, each.object)}
        for statement in (
            sql.COUNT_ERASED.format(which=sql.OF_NAMES),
            sql.DELETE_VERSIONS.format(which=sql.OF_NAMES),
        ):
            storage.rows(statement, {"names": touched})
    storage.scrub()
    return Erased(change.number, len(facts) if claims or gone else 0, len(claims), len(answers))


def _doomed(
    storage: ClaimStorage, names: Aliases, claims: set[str], facts: set[Triple]
) -> tuple[set[str], set[Triple]]:
    """The claims and facts that go with some: facts that no other claim carries, and claims that are derived
    from such facts.
    """
    new = claims | _resting_on(storage, names, facts)
    doomed: set[str] = set()
    while new:
        doomed |= new
        carried = {
            names.read(Triple(*row)) for row in storage.rows(sql.FACTS_OF_CLAIMS, {"claims": new})
        } - facts
        bare = {
            fact
            for fact in carried
            if {id for (id,) in storage.rows(sql.OF_FACTS, {"facts": fact_ids([fact], names)})} <= doomed
        }
        facts = facts | bare
        new = _resting_on(storage, names, bare) - doomed
    return doomed, facts


def _resting_on(storage: ClaimStorage, names: Aliases, facts: set[Triple]) -> set[str]:
    return (
        {id for (id,) in storage.rows(sql.CLAIMS_RESTING_ON, {"facts": fact_ids(facts, names)})}
        if facts
        else set()
    )
