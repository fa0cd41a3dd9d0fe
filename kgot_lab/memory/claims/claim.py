"""Claims (reasons to believe facts: source, speaker, validity, premises), times, and reports of changes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Literal

from kgot_lab.errors import BadInput, require, require_count, require_known, require_probability, short_repr
from kgot_lab.memory.triples import to_utc
from kgot_lab.text.cleaning import checked_text, format_count
from kgot_lab.types import Json, Triple

# Times as they are stored: whole microseconds since 1970 in UTC, converted from aware times only.

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def to_micros(time: datetime, what: str) -> int:
    """Convert an aware time to microseconds since 1970.

    Raises BadInput for a naive time, which is ambiguous, and for one outside the years 1 to 9999.
    """
    return (to_utc(time, what) - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Convert microseconds since 1970 to a time in UTC."""
    return _EPOCH + micros * _MICROSECOND


def to_micros_or_none(time: datetime | None, what: str) -> int | None:
    """Convert an end of an interval as `to_micros` does, or return None for an open one."""
    return None if time is None else to_micros(time, what)


def from_micros_or_none(micros: int | None) -> datetime | None:
    """Convert an end of an interval as `from_micros` does, or return None for an open one."""
    return None if micros is None else from_micros(micros)


def format_time(time: datetime) -> str:
    """Format a time in UTC: the day, and the time of day unless it is midnight."""
    precision = "microseconds" if time.microsecond else "seconds" if time.second else "minutes"
    day, time_of_day = time.date().isoformat(), time.time().isoformat(precision)
    return day if time_of_day == "00:00" else f"{day} {time_of_day}"


def format_period(since: datetime | None, until: datetime | None) -> str:
    """Format the period in which something is valid, or return "" if neither end is known."""
    bounds = [f"from {format_time(since)}"] if since else []
    return " ".join([*bounds, *([f"until {format_time(until)}"] if until else [])])


CLAIM_KINDS = ("stated", "inferred", "ended")
SAID, ASKED, ENDED = "said", "asked", "ended"  # relations of a user to a sentence, and to what ended by it
NO_FACTS = frozenset((SAID, ASKED, ENDED))


def is_message(fact: Triple, source: str) -> bool:
    """Return whether a claim of a source stands for a sentence that a user said, and states no fact."""
    return fact.relation in NO_FACTS and source.startswith(f"{fact.subject}/")


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
class RecordedAnswer:
    """A recorded answer with its time."""

    id: str
    text: str
    at: datetime


@dataclass(frozen=True)
class ChangeEffect:
    """The effect of a change on what holds.

    It contains facts that no longer hold, entities that no fact names any more, answers that depended on
    them, and facts that started to hold. `change` undoes it, and is None if nothing was changed. `erased`
    counts what an undo could not restore because it was erased. `overtaken` are later changes of the same
    claims, which an undo left as they are. `waits` says that what was decided on waits again, and `withdrawn` is the
    number of items that an undo took out of the review queue.
    """

    change: int | None
    facts: tuple[Triple, ...] = ()
    entities: tuple[str, ...] = ()
    answers: tuple[RecordedAnswer, ...] = ()
    risen: tuple[Triple, ...] = ()
    erased: int = 0
    overtaken: tuple[int, ...] = ()
    waits: bool = False
    withdrawn: int = 0

    def __str__(self) -> str:
        groups = (
            (self.facts, "fact", "", "fell"),
            (self.risen, "fact", "", "began to hold"),
            (self.entities, "entity", "entities", "named by no fact any more"),
            (self.answers, "answer", "", "rested on what fell"),
        )
        counts = ((len(found), noun, many, verb) for found, noun, many, verb in groups if found)
        phrases = [f"{format_count(count, noun, many)} {verb}" for count, noun, many, verb in counts]
        phrases += (
            [f"{format_count(self.erased, 'part')} erased since, not to come back"] if self.erased else []
        )
        phrases += [f"changed again since by {', '.join(map(str, self.overtaken))}"] if self.overtaken else []
        phrases += ["what was decided on waits again"] if self.waits else []
        left = f"{format_count(self.withdrawn, 'item')} left the review queue"
        phrases += [left] if self.withdrawn else []
        return "; ".join(phrases) or "nothing fell"


@dataclass(frozen=True)
class ErasureCounts:
    """The number of items that an erasure removed from every file."""

    change: int | None  # None if there was nothing to erase
    facts: int
    claims: int
    answers: int


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
class StatusPeriod:
    """The standing of a claim, or of what else waits for review, between two changes, and who changed it."""

    standing: str
    confidence: float | None
    known_from: datetime
    known_until: datetime | None
    by: str


@dataclass(frozen=True)
class ChangeLogEntry:
    """A change: time, author and kind.

    Its effect is in the claims. `clock` is the time of the clock if that had run backwards. `of` names the
    source that was retracted, the facts that were retracted or decided on, or the sentences that a user told. What
    was erased since is not named.
    """

    change: int
    at: datetime
    by: str
    action: str
    undoes: int | None = None
    erased: int = 0
    clock: datetime | None = None
    of: tuple[str, ...] = ()

    def __str__(self) -> str:
        left = len(self.of) - _MOST_OF
        names = [*self.of[:_MOST_OF], *([f"and {left:,} more"] if left > 0 else [])]
        more = f": {'; '.join(names)}" if names else ""
        more = f" change {self.undoes}" if self.undoes else more
        more += f" ({self.erased} erased since)" if self.erased else ""
        is_told = self.action == "learn" and bool(self.of)  # by a user, not read in a document
        words = "told" if is_told else ACTION_WORDS.get(self.action, self.action)
        return f"{self.change:>6}  {self.at:%Y-%m-%d %H:%M:%S}  {words}{more}  {self.by}"


_MOST_OF = 3  # of what a change was of, on its line in the log
ACTION_WORDS = {
    "learn": "learnt", "correct": "corrected", "retract source": "forgot source", "retract fact": "forgot fact",
    "erase": "erased", "undo": "took back", "accept": "accepted", "reject": "rejected", "override": "overrode",
    "declare": "declared", "merge": "merged names", "unmerge": "separated names", "add": "added", "write": "wrote",
    "update": "changed", "delete": "deleted", "expire": "expired",
}  # fmt: skip


@dataclass(frozen=True)
class QueuedClaim:
    """A claim that waits for review, and the facts that would start to hold if it were accepted."""

    claim: Claim
    starts: tuple[Triple, ...]


@dataclass(frozen=True)
class ReviewDecision:
    """The effect of a decision, or of its undo, on an item of a review queue: its standing afterwards."""

    change: int
    at: datetime
    by: str
    action: str
    undoes: int | None
    item: str  # its id
    standing: str
    confidence: float | None = None


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
