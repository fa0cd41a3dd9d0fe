"""Certificates of answers: the facts that an answer needs, whether each holds at a time and why.

They also determine what a reader may see.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, get_args

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import require
from kgot_lab.memory.claims.beliefs import Beliefs, period_at
from kgot_lab.memory.claims.claim import Claim, Period, check_triple, triple_key
from kgot_lab.text.cleaning import checked_text
from kgot_lab.text.words import contains_words
from kgot_lab.types import Json, Triple

FactState = Literal["holds", "one source", "contested", "out of date", "unsure", "missing"]
FACT_STATES: tuple[FactState, ...] = get_args(FactState)  # from firm to weak
Ruling = Literal["passes", "hedged", "withheld"]
# of an answer, by the state of the weakest fact that it needs, the strictest last
_RULINGS: Mapping[FactState, Ruling] = {
    "holds": "passes", "one source": "passes", "contested": "hedged", "out of date": "hedged", "unsure": "hedged", "missing": "withheld",
}  # fmt: skip
_Bounds = tuple[datetime | None, datetime | None]  # of a period


@check_arguments
@dataclass(frozen=True)
class OpenFact:
    """A needed fact whose object is unknown.

    A blank subject is the object of the previous fact in the chain.
    """

    relation: str
    subject: str = ""

    def __post_init__(self) -> None:
        checked_text(self.relation, "the relation of an open fact")
        checked_text(self.subject, "the subject of an open fact", blank=True)

    def __str__(self) -> str:
        return f"{self.subject or '?'} --[{self.relation}]--> ?"


@dataclass(frozen=True)
class CertifiedFact:
    """A needed fact and its state at a time.

    `fact` is the fact that answers for it, under its canonical names, or None if it is missing. `rivals` are
    other objects of a relation with a single one: those that hold as well, or those that replaced it.
    `sole_sources` are the sources whose retraction alone would retract it. `since` and `until` limit the time
    in which it answers, or, if it is out of date, in which it did or will. None is open. `reason` says what is
    missing or unsure, if it is more than that no claim states the fact.
    """

    needed: Triple | OpenFact
    state: FactState
    fact: Triple | None = None
    supports: tuple[Claim, ...] = ()
    rivals: tuple[Triple, ...] = ()
    sole_sources: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    reason: str = ""

    @property
    def sources(self) -> tuple[str, ...]:
        """The distinct sources of its supports."""
        return tuple(dict.fromkeys(claim.source for claim in self.supports))

    @property
    def needed_parts(self) -> tuple[str, str, str]:
        """Subject, relation and object of the needed fact, "" for an open one."""
        object = self.needed.object if isinstance(self.needed, Triple) else ""
        return self.needed.subject, self.needed.relation, object

    @property
    def description(self) -> str:
        """Its state in words, without the fact itself."""
        others = ", ".join(rival.object for rival in self.rivals)
        if self.state in ("unsure", "missing"):
            return f"{self.state}: {self.reason or 'nothing says it'}"
        if self.state == "contested":
            return f"contested: others say {others}"
        if self.state == "out of date":
            times = (("from", self.since), ("until", self.until))
            ends = " ".join(f"{word} {time.date()}" for word, time in times if time) or "at another time"
            return f"out of date: it holds {ends}" + (f", in its place {others}" if others else "")
        if self.state == "holds":
            return f"holds by {len(self.sources)} sources"
        count = len(self.sole_sources)
        return f"rests on each of {count} sources" if count > 1 else "rests on one source"

    @property
    def status(self) -> str:
        """The fact with its state in words, or what is missing or unsure."""
        if self.reason or self.fact is None:
            subject, relation, object = self.needed_parts
            nothing = f"nothing says: {subject or 'what is not known'} – {relation} – {object or '?'}"
            return self.reason or nothing
        sources = f" ({', '.join(self.sole_sources)})" if self.state == "one source" else ""
        verb = "is " if self.state in ("contested", "out of date") else ""
        return f"{format_fact(self.fact)} {verb}{self.description}{sources}"


@check_arguments
@dataclass(frozen=True)
class Certificate:
    """The facts that an answer needs, in order, with their state at a time."""

    facts: tuple[CertifiedFact, ...]
    at: datetime

    @property
    def ruling(self) -> Ruling:
        """The ruling on the answer: it passes, is hedged or is withheld.

        An answer that needs no fact is not certified.
        """
        return _RULINGS[max((fact.state for fact in self.facts), key=FACT_STATES.index, default="missing")]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The distinct reasons why the answer does not pass, in words, or () if it does."""
        statuses = [fact.status for fact in self.facts if _RULINGS[fact.state] != "passes"]
        return tuple(dict.fromkeys(statuses)) if self.facts else ("it rests on no fact",)

    def redacted(self, answer: str) -> Certificate:
        """Return the certificate as a reader of an answer may see it.

        If the answer is withheld, everything that reveals it is removed. A "?" replaces names, relations and
        sources that contain the answer or are part of it, and the answer in a reason. A longer subject is
        kept, such as a question that lists the options. Sentences that contain the answer are not quoted.
        """
        if self.ruling != "withheld" or not answer.strip():
            return self
        return replace(self, facts=tuple(_redact_answer(answer, fact) for fact in self.facts))

    def __str__(self) -> str:
        texts = (format_fact(fact.fact) if fact.fact else str(fact.needed) for fact in self.facts)
        described = zip(self.facts, texts, strict=True)
        lines = (f"  {fact.state}: {text}{fact.reason and f' ({fact.reason})'}" for fact, text in described)
        return "\n".join([f"{self.ruling}, at {self.at.isoformat()}", *lines])


@check_arguments
def certify(
    beliefs: Beliefs,
    needed: Iterable[Triple | OpenFact],
    *,
    at: datetime | None = None,
) -> Certificate:
    """Determine the state at a time of the facts that an answer needs.

    `at` defaults to the time of the beliefs, or now. An open fact is filled with the fact of highest
    confidence. Raises BadInput if `needed` contains anything but facts, and for a naive time.
    """
    checked = [_check_needed_fact(needed_fact) for needed_fact in needed]
    time = beliefs.query_time(at)
    facts: list[CertifiedFact] = []
    with beliefs.storage.reading():
        for needed_fact in checked:
            previous_object = facts[-1].fact.object if facts and facts[-1].fact else ""
            facts.append(_certify_fact(beliefs, needed_fact, previous_object, time))
    return Certificate(tuple(facts), time)


@check_arguments
def hedge_answer(answer: str, certificate: Certificate) -> str:
    """Format the answer for a reader, according to its certificate.

    It is the answer if it passes, the answer with its weak points if it is hedged, or else only the reasons
    why there is none.
    """
    if certificate.ruling == "withheld" or not answer.strip():
        reasons = certificate.redacted(answer).reasons
        return f"No answer is given: {'; '.join(reasons).rstrip('.') or 'there is none'}."
    if certificate.ruling == "hedged":
        return f"{answer} (not certain: {'; '.join(certificate.reasons)})"
    return answer


def certificate_to_json(question: str, answer: str, certificate: Certificate) -> dict[str, Json]:
    """Return a certificate with its question and answer as JSON values, as a reader may see it.

    See `Certificate.redacted`. A withheld answer is None.
    """
    ruling = certificate.ruling
    text, visible = hedge_answer(answer, certificate), answer if ruling != "withheld" else None
    certificate = certificate.redacted(answer)
    facts: list[Json] = [
        {
            **dict(zip(("subject", "relation", "object"), fact.needed_parts, strict=True)),
            "state": fact.state, "sources": list(fact.sources), "sole_sources": list(fact.sole_sources),
            "rivals": [rival.object for rival in fact.rivals], "reason": fact.reason,
            "sentences": [claim.span.text for claim in fact.supports if claim.span],
        }
        for fact in certificate.facts
    ]  # fmt: skip
    return {"question": question, "answer": visible, "ruling": ruling, "told": text, "facts": facts}


# --- one fact ---


def _check_needed_fact(needed: Triple | OpenFact) -> Triple | OpenFact:
    require(needed, (Triple, OpenFact), "what an answer needs is a Triple or an OpenFact")
    return needed if isinstance(needed, OpenFact) else check_triple(needed, "a fact that an answer needs")


def _certify_fact(
    beliefs: Beliefs, needed: Triple | OpenFact, previous_object: str, time: datetime
) -> CertifiedFact:
    subject = needed.subject or previous_object
    if not subject:
        return CertifiedFact(needed, "missing")
    if isinstance(needed, OpenFact):
        needed = OpenFact(needed.relation, subject)
    periods = beliefs.changes_of(subject, needed.relation)
    current = period_at(time, periods)
    valid = beliefs.as_of(valid=time)
    if isinstance(needed, Triple):
        fact: Triple | None = beliefs.canonical_fact(needed)
    else:
        fact = _most_confident_fact(valid, current, periods, time)
    if fact is None or not beliefs.at_any_time().holds(fact):
        return CertifiedFact(needed, "missing")
    others = tuple(other for other in current.facts if other != fact)
    if fact not in current.facts:
        single = beliefs.cardinality(fact.relation) == "single"
        since, until = _nearest_bounds(list(_answer_bounds(fact, periods)), time)
        supports = beliefs.at_any_time().supports_of(fact)
        rivals = others if single else ()
        return CertifiedFact(needed, "out of date", fact, supports, rivals, since=since, until=until)
    sole_supports = valid.sole_sources(fact)
    rivals = others if current.contested else ()
    answering = (ends for ends in _answer_bounds(fact, periods) if Period((), *ends).covers(time))
    since, until = next(answering, (None, None))
    state: FactState = "contested" if rivals else "one source" if sole_supports else "holds"
    return CertifiedFact(needed, state, fact, valid.supports_of(fact), rivals, sole_supports, since, until)


def _most_confident_fact(
    valid: Beliefs, current: Period, periods: Sequence[Period], time: datetime
) -> Triple | None:
    """Return the fact that fills an open end.

    It is the one of highest confidence among those that answer at the time, or else one of those that
    answered last or will answer first.
    """
    if current.facts:
        return min(current.facts, key=lambda fact: (-valid.confidence(fact), triple_key(fact)))
    nearest = _nearest_bounds([(period.since, period.until) for period in periods], time)
    return next((period.facts[0] for period in periods if (period.since, period.until) == nearest), None)


def _answer_bounds(fact: Triple, periods: Iterable[Period]) -> Iterator[_Bounds]:
    """Yield the periods in which a fact answers, alone or beside others."""
    open_stretch: _Bounds | None = None
    for period in periods:
        if open_stretch and fact in period.facts and open_stretch[1] == period.since:
            open_stretch = open_stretch[0], period.until
            continue
        if open_stretch:
            yield open_stretch
        open_stretch = (period.since, period.until) if fact in period.facts else None
    if open_stretch:
        yield open_stretch


def _nearest_bounds(stretches: Sequence[_Bounds], time: datetime) -> _Bounds:
    """Return the last period that ended by a time, or else the first one after it."""
    ended = [ends for ends in stretches if ends[1] is not None and ends[1] <= time]
    return ended[-1] if ended else next(iter(stretches), (None, None))


# --- a withheld answer ---


def _redact_answer(answer: str, fact: CertifiedFact) -> CertifiedFact:
    def subject(text: str) -> str:
        return "?" if contains_words(text, answer) else text

    def other(text: str) -> str:
        return "?" if contains_words(text, answer) or contains_words(answer, text) else text

    def shown(triple: Triple) -> Triple:
        renamed = replace(triple, subject=subject(triple.subject), relation=other(triple.relation))
        return replace(renamed, object=other(triple.object))

    def claim(each: Claim) -> Claim:
        span = each.span if each.span and other(each.span.text) == each.span.text else None
        by, stated = other(each.said_by), replace(each, kind="stated", premises=())
        return replace(stated, fact=shown(each.fact), source=other(each.source), span=span, said_by=by)

    before, colon, stated = fact.reason.partition(": ")  # what it says before the colon holds for any answer
    stated = re.sub(rf"(?<!\w){re.escape(answer.strip())}(?!\w)", "?", stated, flags=re.I)
    needed = fact.needed
    return replace(
        fact,
        needed=shown(needed)
        if isinstance(needed, Triple)
        else OpenFact(other(needed.relation), subject(needed.subject)),
        fact=fact.fact and shown(fact.fact),
        supports=tuple(map(claim, fact.supports)),
        rivals=tuple(map(shown, fact.rivals)),
        sole_sources=tuple(map(other, fact.sole_sources)),
        reason=before + colon + ("?" if contains_words(answer, stated) else stated),
    )


def format_fact(fact: Triple) -> str:
    """Format a fact as "subject – relation – object"."""
    return f"{fact.subject} – {fact.relation} – {fact.object}"
