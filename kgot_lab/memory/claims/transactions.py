"""One change of the claims: its number, its time, what it opens and closes, and what it did to the facts that
hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from kgot_lab.memory.claims.claim import (
    Claim,
    Fallen,
    RecordedAnswer,
    fact_id,
    instant,
    moment,
    plain_text,
    triple_key,
)
from kgot_lab.memory.claims.justification import aliases, deciding, fact_ids, holding, resting_on
from kgot_lab.memory.tables import ClaimStorage, fact_keys
from kgot_lab.memory.tables import statements as sql
from kgot_lab.types import Triple


class ClaimChange:
    """A change while it is made: `number` is None until it changes something, so that what changes nothing
    leaves no trace.
    """

    def __init__(self, storage: ClaimStorage, values: dict[str, str | int | None]) -> None:
        self.storage, self.values = storage, values
        self.number: int | None = None

    def begin(self) -> int:
        """The number of the change, which has now changed something."""
        if self.number is None:
            last, at = next(iter(self.storage.rows(sql.LAST_CHANGE)), (0, None))
            clock = int(self.values["clock"] or 0)
            self.number = int(last) + 1
            self.storage.rows(
                sql.NEW_CHANGE,
                self.values | {"id": self.number, "at": clock if at is None else max(at, clock)},
            )
        return self.number

    def open(self, kind: str, key: str, value: str, number: float | None = None) -> int:
        """Let something be so from now on."""
        change = self.begin()
        self.storage.rows(
            sql.OPEN_VERSION, {"kind": kind, "key": key, "value": value, "number": number, "change": change}
        )
        return change

    def close(self, kind: str, key: str, value: str | None = None) -> int:
        """Let something be so no longer; without a value, whatever it is."""
        change = self.begin()
        self.storage.rows(
            sql.CLOSE_VERSIONS if value is None else sql.CLOSE_VERSION,
            {"kind": kind, "key": key, "change": change} | ({} if value is None else {"value": value}),
        )
        return change

    def replace(self, kind: str, key: str, value: str, number: float | None = None) -> int:
        """Let something be so in the place of what was."""
        self.close(kind, key)
        return self.open(kind, key, value, number)


@contextmanager
def making(
    storage: ClaimStorage, action: str, by: str, now: Callable[[], datetime], *, undoes: int | None = None
) -> Iterator[ClaimChange]:
    """A change in a transaction of its own: all of it is kept, or nothing. Raises BadInput for what `by` is
    not a text.
    """
    who = plain_text(by, "who makes a change (by)", blank=True)
    with storage.changing():
        clock = instant(now(), "now")  # read within: to wait for another process is not to go back in time
        yield ClaimChange(storage, {"clock": clock, "who": who, "action": action, "undoes": undoes})


def open_versions(storage: ClaimStorage, kind: str, key: str) -> dict[str, float | None]:
    """What is so now: the values, each with its number."""
    return dict(storage.rows(sql.OPEN_VALUES, {"kind": kind, "key": key}))


class ChangeReport:
    """Where the report of a change is, once it is made."""

    report = Fallen(None)


@contextmanager
def what_fell(storage: ClaimStorage, change: ClaimChange, claims: Sequence[str]) -> Iterator[ChangeReport]:
    """Compare what holds before and after what is done here to some claims: their facts, and all that is
    derived from these.
    """
    told = ChangeReport()
    names = aliases(storage)
    concerned = (
        [Triple(*row) for row in storage.rows(sql.FACTS_OF_CLAIMS, {"claims": list(claims)})]
        if claims
        else []
    )
    affected = resting_on(storage, names, concerned)
    before = holding(deciding(storage, names, affected)).keys() & affected
    yield told
    after = holding(deciding(storage, names, affected)).keys() & affected
    fallen = sorted(before - after, key=triple_key)
    told.report = Fallen(
        change.number,
        tuple(fallen),
        _orphans(storage, fallen),
        tuple(
            RecordedAnswer(id, text, moment(at))
            for id, text, at in storage.rows(sql.ANSWERS_ON, {"facts": fact_ids(fallen, names)})
        ),
        tuple(sorted(after - before, key=triple_key)),
    )


def _orphans(storage: ClaimStorage, fallen: Sequence[Triple]) -> tuple[str, ...]:
    """The entities of some facts that no fact names any more."""
    names = aliases(storage)
    left = {name for fact in fallen for name in (fact.subject, fact.object)}
    touching = storage.rows(sql.TOUCHING, {"names": [each for name in left for each in names.names(name)]})
    facts = {names.read(Triple(*row)) for row in touching}
    for fact in facts & holding(deciding(storage, names, facts)).keys():
        left -= {fact.subject, fact.object}
    return tuple(sorted(left))


def write_claim(storage: ClaimStorage, claim: Claim) -> None:
    """Note a claim that is new, with its fact and premises; it counts as nothing until it gets a standing."""
    for fact in (claim.fact, *claim.premises):
        write_fact(storage, fact)
    span = claim.span
    since, until = claim.valid_micros
    values: dict[str, str | float | None] = {
        "id": claim.id,
        "fact": fact_id(claim.fact),
        "source": claim.source,
        "said_by": claim.said_by,
        "kind": claim.kind,
    }
    values |= {"confidence": claim.confidence, "valid_from": since, "valid_until": until}
    storage.rows(
        sql.NEW_CLAIM,
        values | {"start": span and span.start, "end": span and span.end, "text": span and span.text},
    )
    for premise in claim.premises:
        storage.rows(sql.NEW_PREMISE, {"claim": claim.id, "fact": fact_id(premise)})


def write_fact(storage: ClaimStorage, fact: Triple) -> None:
    """Note the texts of a fact, and by what it is looked up; it holds by its claims only."""
    id = fact_id(fact)
    storage.rows(sql.NEW_FACT_KEYS, {"id": id, "keys": fact_keys(*triple_key(fact))})
    storage.rows(
        sql.NEW_FACT, {"id": id, "subject": fact.subject, "relation": fact.relation, "object": fact.object}
    )
