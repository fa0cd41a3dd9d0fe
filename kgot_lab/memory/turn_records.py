"""What passes between an agent and a memory of its turns: what was told, what came of it, and who keeps
copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from kgot_lab.memory.extraction import Extraction
from kgot_lab.types import Triple


@dataclass(frozen=True)
class UserTurn:
    """A message that an agent was told: the name and number of its turn, its text, who said it, and when."""

    turn: str
    number: int
    text: str
    said_by: str
    at: datetime


@dataclass(frozen=True)
class AnswersNow:
    """A triple that answers now, itself noted or in the place of one that was, and what is to be said of it,
    such as when it changed.
    """

    triple: Triple
    remark: str = ""


@dataclass(frozen=True)
class TurnOutcome:
    """What came of a message: the triples that it taught, those of them that were new, and those that wait
    for review.
    """

    learnt: tuple[Triple, ...] = ()
    new: tuple[Triple, ...] = ()
    waiting: tuple[Triple, ...] = ()


class LearningMemory(Protocol):
    """A memory that an agent notes its turns in and is reminded by: of triples (KnowledgeGraphMemory) or of
    claims (ClaimMemory).
    """

    def extracted(self, text: str, *, repairs: int = 1) -> Extraction:
        """What a model finds in a text; a bad reply is mended once if `repairs` is 1."""

    def keep(self, told: UserTurn, found: Extraction) -> TurnOutcome:
        """Keep what was found in a message."""

    def context_for(
        self, told: UserTurn, keywords: Sequence[str], *, without: AbstractSet[Triple] = frozenset()
    ) -> str:
        """What a model is told of what keywords lead to, when a message is answered; triples in `without` are
        left out.
        """

    def count(self) -> int:
        """How many triples the memory holds."""


class KeepsCopies(Protocol):
    """Keeps copies of what a memory was told, such as a conversation; must let them go when the memory does."""

    def let_go(self, turn: str | None, holds: Callable[[Triple], bool]) -> None:
        """Let go of a turn, or of all that may repeat what was erased (None), and of the triples that hold no
        more.
        """


@runtime_checkable
class NotifiesErasure(Protocol):
    """A memory that forgets and erases, and tells whoever keeps copies."""

    def copied_by(self, keeper: KeepsCopies) -> None:
        """Tell a keeper of copies from now on."""


@runtime_checkable
class NotifiesChanges(Protocol):
    """A memory whose facts change: what was noted of an earlier turn may hold no more, or another may answer
    in its place.
    """

    def holding_now(self, noted: Iterable[Triple], told: UserTurn) -> Mapping[Triple, Sequence[AnswersNow]]:
        """What answers in the place of each of some triples when a message is answered: itself, others, or
        none.
        """
