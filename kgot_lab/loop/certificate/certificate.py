"""The certificate of a run: its sentences as claims in a memory of their own, and how the facts that its
answer needs stand there.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from kgot_lab.errors import require
from kgot_lab.loop.certificate import RunFact, needs_of_run
from kgot_lab.loop.events import Answered, Event
from kgot_lab.loop.run_material import RunMaterial
from kgot_lab.loop.trace import Trace
from kgot_lab.memory.claims.certificate import STANDARD_RULES, Certificate, CertificateRules, certify, hedged
from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.extraction import SourcedSentence
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.types import Triple

_NUL = str.maketrans({"\0": "\ufffd"})


def certificate_of_run(
    run: Trace | Iterable[Event], *, rules: CertificateRules = STANDARD_RULES, at: datetime | None = None
) -> Certificate:
    """The certificate of a finished run: what its answer needs, by the sentences that its tools returned and
    its graph began with.

    A fact that a sentence says is a claim of the document that the sentence stands in. An answer that stands
    in no sentence never passes. Raises BadInput for a run without an answer.
    """
    require(
        run,
        (Trace, Iterable),
        "what is certified is a finished run, as load_run(path) gives it, or its events",
    )
    needs = needs_of_run(RunMaterial(run.events if isinstance(run, Trace) else tuple(run)))
    with closing(SQLiteClaims()) as storage:
        claims = Claims(storage)
        claims.learn(claim for fact in needs for claim in claims_of_fact(fact))
        for fact in needs:
            if fact.rivals:
                claims.declare(fact.needed.relation, "single")
        return certify(claims, [fact.needed for fact in needs], at=at or _begun(run), rules=rules)


def certified_text(events: Iterable[Event], certificate: Certificate) -> list[Event]:
    """A run with its answer as a reader is told it; with one that is withheld goes what it rests on. What led
    to it stays as it was.
    """
    return [_told(event, certificate) if isinstance(event, Answered) else event for event in events]


def _told(answered: Answered, certificate: Certificate) -> Answered:
    told = replace(answered, text=hedged(answered.text, certificate))
    return (
        told
        if certificate.ruling != "withheld"
        else replace(told, forced=False, evidence=(), passages=(), supports=(), likelihood=None)
    )


def claims_of_fact(fact: RunFact) -> list[Claim]:
    """The claims that sentences make of a needed fact, and of others that contest it."""
    if not isinstance(fact.needed, Triple):
        return []
    subject, relation, _ = fact.needed.identity
    by_object = {fact.needed.object: fact.said, **fact.rivals}
    return [
        _claim(Triple(subject, relation, object), each) for object, said in by_object.items() for each in said
    ]


def _claim(fact: Triple, said: SourcedSentence) -> Claim:
    text = said.text.translate(_NUL)
    source = (said.source or said.title or "a text without a name").translate(_NUL)
    return Claim(fact, source, Span(0, len(text), text), said_by=said.title.translate(_NUL))


def _begun(run: Trace | Iterable[Event]) -> datetime | None:
    """When a recorded run began, if it says so with its zone."""
    try:
        begun = datetime.fromisoformat(run.created) if isinstance(run, Trace) else None
    except ValueError:
        return None
    return begun if begun is None or begun.tzinfo else begun.replace(tzinfo=UTC)
