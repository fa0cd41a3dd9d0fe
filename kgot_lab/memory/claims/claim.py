"""One claim: a reason to believe a fact, with where it was said, by whom, when it is said to be true, or what
it was derived from.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from kgot_lab.errors import BadInput, described_value, require, require_count, shortly
from kgot_lab.memory.claims.claim import open_instant
from kgot_lab.text.cleaning import whole
from kgot_lab.types import Json, Triple

CLAIM_KINDS = ("stated", "inferred")


@dataclass(frozen=True)
class Span:
    """Where in its source a claim is made: characters from start up to end, and their text."""

    start: int
    end: int
    text: str = ""

    def __post_init__(self) -> None:
        require_count(self.start, 0, "the start of a span")
        require_count(self.end, self.start, "the end of a span", "it does not end before it begins")
        object.__setattr__(self, "text", plain_text(self.text, "the text of a span", blank=True))


@dataclass(frozen=True)
class Claim:
    """One reason to believe a fact; a fact has as many as there are sources, places and derivations that
    speak for it.

    `source` is the id of a document, turn or session. Valid times are those the source states, until
    excluded, None for open. A claim is "stated", or "inferred", and then holds only while all its premises
    do. Two claims are the same (`id`) where all but their confidence is. Raises BadInput.
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
        if isinstance(self.premises, str) or not isinstance(self.premises, tuple | list | set | frozenset):
            raise BadInput(
                f"the premises of a claim are Triples in a tuple, not {described_value(self.premises)}"
            )
        if self.span is not None:
            require(self.span, Span, "the span of a claim is a Span(start, end, text)")
        given = {
            "fact": plain_triple(self.fact, "the fact of a claim"),
            "source": plain_text(self.source, "the source of a claim"),
            "said_by": plain_text(self.said_by, "who said a claim", blank=True),
            "confidence": probability(self.confidence, "the confidence of a claim"),
            "premises": tuple(
                sorted({plain_triple(each, "a premise") for each in self.premises}, key=triple_key)
            ),
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)
        if self.kind not in CLAIM_KINDS:
            raise BadInput(f'a claim is "stated" or "inferred", not {described_value(self.kind)}')
        if (self.kind == "inferred") != bool(self.premises):
            raise BadInput(
                "an inferred claim has premises, the facts it was derived from, and a stated one has none"
            )
        if self.fact in self.premises:
            raise BadInput(f"{shortly(str(self.fact))} cannot be its own premise")
        since, until = self.valid_micros
        if since is not None and until is not None and until <= since:
            raise BadInput(
                f"a claim is valid from {self.valid_from} until {self.valid_until}: that ends before it begins"
            )

    @property
    def valid_micros(self) -> tuple[int | None, int | None]:
        """From when until when the source says that the fact is true, in microseconds since 1970."""
        return open_instant(self.valid_from, "valid_from"), open_instant(self.valid_until, "valid_until")

    @cached_property
    def id(self) -> str:
        """What makes it this claim and no other: 32 characters made of all of it but the confidence."""
        span = None if self.span is None else [self.span.start, self.span.end, self.span.text]
        said = [*triple_key(self.fact), self.source, span, self.said_by, self.kind, *self.valid_micros]
        return digest([*said, [triple_key(each) for each in self.premises]])


def triple_key(fact: Triple) -> tuple[str, str, str]:
    """The three texts of a fact, which order facts."""
    return fact.subject, fact.relation, fact.object


def fact_id(fact: Triple) -> str:
    """The id of a fact: 32 characters made of its three texts."""
    return digest(triple_key(fact))


def digest(value: Json) -> str:
    """32 characters that stand for a JSON value and, for all that is known, for no other."""
    return hashlib.blake2b(json.dumps(value, ensure_ascii=False).encode(), digest_size=16).hexdigest()


def plain_text(text: str, what: str, *, blank: bool = False) -> str:
    """A text as every storage takes it, halves of surrogate pairs replaced; raises BadInput for one that is
    blank or holds a NUL.
    """
    require(text, str, f"{what} is a text")
    if not blank and not text.strip():
        raise BadInput(f"{what} is blank: say something")
    if "\0" in text:
        raise BadInput(f"{what} holds a NUL, which no database takes: {shortly(text)}")
    return str(whole(text))


def plain_triple(fact: Triple, what: str) -> Triple:
    """A fact of three plain texts and nothing else; raises BadInput."""
    require(fact, Triple, f"{what} is a Triple(subject, relation, object)")
    subject, relation, object = (
        plain_text(getattr(fact, part), f"the {part} of {what}") for part in ("subject", "relation", "object")
    )
    return Triple(subject, relation, object)


def probability(value: float, what: str) -> float:
    """A number from 0 to 1; raises BadInput."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or not 0 <= value <= 1
    ):
        raise BadInput(f"{what} is a number from 0 to 1, not {described_value(value)}")
    return float(value)
