"""Claims (reasons to believe facts: source, speaker, validity, premises), and what is learnt of them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal

from kgot_lab.arguments import check_arguments, check_names
from kgot_lab.errors import BadInput, require, require_count, require_known, require_probability, short_repr
from kgot_lab.io.times import to_micros_or_none
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Json, Triple

CLAIM_KINDS = ("stated", "inferred", "ended")
SAID, ASKED, ENDED = "said", "asked", "ended"  # relations of a user to a sentence, and to what ended by it
NO_FACTS = frozenset((SAID, ASKED, ENDED))


def is_message(fact: Triple, source: str) -> bool:
    """Return whether a claim of a source stands for a sentence that a user said, and states no fact."""
    return fact.relation in NO_FACTS and source.startswith(f"{fact.subject}/")


@check_names
@dataclass(frozen=True)
class Span:
    """The position of a claim in its source, from `start` to `end` in characters, and its text."""

    start: int
    end: int
    text: str = ""

    def __post_init__(self) -> None:
        require_count(self.start, 0, "the start of a span")
        require_count(self.end, self.start, "the end of a span", "it does not end before it begins")
        object.__setattr__(self, "text", checked_text(self.text, "the text of a span", blank=True))


@check_names
@dataclass(frozen=True)
class Claim:
    """One reason to believe a fact.

    A fact has one claim for each source, position and derivation that supports it. `source` is the id of a
    document, turn or session. Valid times are those that the source states, the end exclusive, None for open.
    A claim is "stated", or "inferred" and then holds only while all its premises do. One that is "ended" says
    that the fact stopped being true at `valid_from`: other claims of it that began before are valid until then.
    Two claims are the same (`id`) if they differ at most in confidence. Raises BadInput.
    """

    fact: Triple
    source: str
    span: Span | None = None
    said_by: str = ""
    kind: str = "stated"
    confidence: float = 1.0
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    premises: tuple[Triple, ...] = ()

    def __post_init__(self) -> None:
        require(
            self.premises, (tuple, list, set, frozenset), "the premises of a claim are Triples in a tuple"
        )
        if self.span is not None:
            require(self.span, Span, "the span of a claim is a Span(start, end, text)")
        checked = {
            "fact": check_triple(self.fact, "the fact of a claim"),
            "source": checked_text(self.source, "the source of a claim"),
            "said_by": checked_text(self.said_by, "who said a claim", blank=True),
            "confidence": require_probability(self.confidence, "the confidence of a claim"),
            "premises": tuple(
                sorted({check_triple(premise, "a premise") for premise in self.premises}, key=triple_key)
            ),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        require_known("kind of claim", CLAIM_KINDS, self.kind)
        if (self.kind == "inferred") != bool(self.premises):
            premises = "the facts it was derived from, and a stated one has none"
            raise BadInput(f"an inferred claim has premises, {premises}")
        if self.fact in self.premises:
            raise BadInput(f"{short_repr(str(self.fact))} cannot be its own premise")
        since, until = self.valid_micros
        if self.kind == "ended" and (since is None or until is not None):
            problem = "a claim that a fact ended has the time of the end as valid_from"
            raise BadInput(f"{problem}, and no valid_until")
        if since is not None and until is not None and until <= since:
            period = f"from {self.valid_from} until {self.valid_until}"
            raise BadInput(f"a claim is valid {period}: that ends before it begins")

    @property
    def valid_micros(self) -> tuple[int | None, int | None]:
        """The period in which the source says that the fact is true, in microseconds since 1970."""
        since = to_micros_or_none(self.valid_from, "valid_from")
        return since, to_micros_or_none(self.valid_until, "valid_until")

    @cached_property
    def id(self) -> str:
        """The id of the claim: a hash with 32 characters of all of it but the confidence."""
        span = None if self.span is None else [self.span.start, self.span.end, self.span.text]
        values = [*triple_key(self.fact), self.source, span, self.said_by, self.kind, *self.valid_micros]
        return digest([*values, [triple_key(premise) for premise in self.premises]])


def triple_key(fact: Triple) -> tuple[str, str, str]:
    """Return subject, relation and object of a fact, the sort key of facts."""
    return fact.subject, fact.relation, fact.object


def fact_id(fact: Triple) -> str:
    """Return the id of a fact: a hash of its three texts with 32 characters."""
    return digest(triple_key(fact))


def digest(value: Json) -> str:
    """Return a hash of a JSON value with 32 characters."""
    return hashlib.blake2b(json.dumps(value, ensure_ascii=False).encode(), digest_size=16).hexdigest()


def check_triple(fact: Triple, what: str) -> Triple:
    """Return a fact with three plain texts and no other attributes.

    Raises BadInput if it is no fact or a text is not accepted.
    """
    require(fact, Triple, f"{what} is a Triple(subject, relation, object)")
    parts = ("subject", "relation", "object")
    subject, relation, object = (checked_text(getattr(fact, part), f"the {part} of {what}") for part in parts)
    return Triple(subject, relation, object)


# Records of changes and periods.

Cardinality = Literal["single", "many"]


@dataclass(frozen=True)
class Learnt:
    """The result of learning: the number of the change and how many claims were new, known and so on.

    The number is None if nothing was new.
    """

    change: int | None
    new: int = 0
    known: int = 0
    back: int = 0  # retracted before, and now learnt again
    queued: int = 0  # of the new ones
    left: int = 0  # retracted before, and left so


@dataclass(frozen=True)
class ErasureCounts:
    """The number of items that an erasure removed from every file."""

    change: int | None  # None if there was nothing to erase
    facts: int
    claims: int
    answers: int


@check_arguments
@dataclass(frozen=True)
class Period:
    """What answers for a subject and a relation in a period.

    A start of None means as long as is known. The end is exclusive. Contested: the relation has a single
    value, and several facts with the latest beginning claim it.
    """

    facts: tuple[Triple, ...]
    since: datetime | None = None
    until: datetime | None = None
    contested: bool = False

    def covers(self, time: datetime) -> bool:
        """Return whether a time lies in the period."""
        begun = self.since is None or self.since <= time
        return begun and (self.until is None or time < self.until)


@dataclass(frozen=True)
class QueuedClaim:
    """A claim that waits for review, and the facts that would start to hold if it were accepted."""

    claim: Claim
    starts: tuple[Triple, ...]


@dataclass(frozen=True)
class CardinalitySuggestion:
    """A suggested cardinality of a relation.

    It is derived from how many of its subjects have an object, and how many have several.
    """

    relation: str
    cardinality: Cardinality
    subjects: int
    several: int


@dataclass(frozen=True)
class MergeProposal:
    """Two names that may mean the same thing, the one to keep first, and the reasons."""

    kept: str
    other: str
    reasons: tuple[str, ...]
