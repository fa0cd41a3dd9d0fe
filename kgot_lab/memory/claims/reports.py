"""What the claims tell of a change, of a time and of themselves: values to read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kgot_lab.memory.claims.claim import Claim
from kgot_lab.text.cleaning import counted
from kgot_lab.types import Triple

Cardinality = Literal["single", "many"]
# taken: its confidence was enough; the next three are review
Standing = Literal["taken", "queued", "accepted", "rejected", "dropped"]


@dataclass(frozen=True)
class Learnt:
    """What learning brought: the number of the change (None: nothing was new), and how many claims were new,
    known and so on.
    """

    change: int | None
    new: int = 0
    known: int = 0
    back: int = 0  # retracted before, and now learnt again
    queued: int = 0  # of the new ones
    left: int = 0  # retracted before, and left so


@dataclass(frozen=True)
class RecordedAnswer:
    """An answer that was given, with its time."""

    id: str
    text: str
    at: datetime


@dataclass(frozen=True)
class Fallen:
    """What a change did to what holds: facts that fell, entities then named by no fact, answers that rested
    on them, facts that rose.

    `change` undoes it, and is None where nothing was changed. `erased` counts what an undo could not restore
    because it was erased; `overtaken` are later changes of the same claims, which an undo left as they are.
    """

    change: int | None
    facts: tuple[Triple, ...] = ()
    entities: tuple[str, ...] = ()
    answers: tuple[RecordedAnswer, ...] = ()
    risen: tuple[Triple, ...] = ()
    erased: int = 0
    overtaken: tuple[int, ...] = ()

    def __str__(self) -> str:
        said = [
            f"{counted(len(found), noun, many)} {did}"
            for found, noun, many, did in (
                (self.facts, "fact", "", "fell"),
                (self.risen, "fact", "", "began to hold"),
                (self.entities, "entity", "entities", "named by no fact any more"),
                (self.answers, "answer", "", "rested on what fell"),
            )
            if found
        ]
        said += [f"{counted(self.erased, 'part')} erased since, not to come back"] * bool(self.erased)
        said += [f"changed again since by {', '.join(map(str, self.overtaken))}"] * bool(self.overtaken)
        return "; ".join(said) or "nothing fell"


@dataclass(frozen=True)
class Erased:
    """How much an erasure took out of every file."""

    change: int | None  # None where nothing was there to erase
    facts: int
    claims: int
    answers: int


@dataclass(frozen=True)
class Period:
    """What answers for a subject and a relation from one time (None: as long as is known) until another,
    which is excluded.

    Contested: the relation has a single value, and several facts with the latest beginning claim it.
    """

    facts: tuple[Triple, ...]
    since: datetime | None = None
    until: datetime | None = None
    contested: bool = False


@dataclass(frozen=True)
class ClaimPeriod:
    """How a claim stood from one change until another: its standing, the confidence it had, and who changed
    it.
    """

    standing: Standing
    confidence: float | None
    known_from: datetime
    known_until: datetime | None
    by: str


@dataclass(frozen=True)
class Logged:
    """A change: when, by whom, what kind; what it did is in the claims. `clock` is what the clock said, where
    it had run backwards.

    `of` names the source that was retracted, or the facts that were retracted or decided on; what was erased
    since is not named.
    """

    id: int
    at: datetime
    by: str
    action: str
    undoes: int | None = None
    erased: int = 0
    clock: datetime | None = None
    of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Queued:
    """A claim that waits for review, and the facts that would start to hold if it were accepted."""

    claim: Claim
    starts: tuple[Triple, ...]


@dataclass(frozen=True)
class Decided:
    """What a decision, or its undo, made of a claim: when, by whom, and how the claim stood after it."""

    change: int
    at: datetime
    by: str
    action: str
    claim: str  # its id
    fact: Triple
    standing: Standing
    confidence: float | None


@dataclass(frozen=True)
class Suggested:
    """A cardinality for a relation, from the data: how many of its subjects have an object, and how many have
    several.
    """

    relation: str
    cardinality: Cardinality
    subjects: int
    several: int


@dataclass(frozen=True)
class MergeProposal:
    """Two names that may mean one thing, the one to keep first, and why."""

    kept: str
    other: str
    reasons: tuple[str, ...]
