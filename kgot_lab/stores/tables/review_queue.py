"""One review queue, with undo: what waits for a person's decision in a memory, a world or an expert's graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from kgot_lab.arguments import CheckedCalls
from kgot_lab.errors import AlreadyDecided, require_count, require_known
from kgot_lab.io.times import from_micros
from kgot_lab.stores.tables.history import DECISIONS_LAST, Change, ChangeEffect, RecordedTables, read_periods
from kgot_lab.text.cleaning import checked_text, printable_line

Item = TypeVar("Item")


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


class ReviewQueue(CheckedCalls, ABC, Generic[Item]):
    """What waits for a decision in tables with a history, and the decisions that one person makes on it.

    An item is given itself or by its id. Each decision is a change of the tables by `by`, and its undo brings
    the item back into the queue.
    """

    verdicts: ClassVar[tuple[str, ...]] = ("accept", "reject")
    _kind: ClassVar[str] = "standing"  # of the versions that hold what was decided

    def __init__(self, tables: RecordedTables, by: str = "") -> None:
        self.tables, self.by = tables, checked_text(by, "who decides (by)", blank=True)
        # the changes that `undo` takes back, and the item that each decided on
        self.decided: list[tuple[int, str]] = []

    @abstractmethod
    def queue(self) -> tuple[Item, ...]:
        """Return what waits, the most important first."""

    def accept(self, item: Item | str) -> ChangeEffect:
        """Accept an item. The report has what holds from now on.

        Raises AlreadyDecided if somebody decided on it before (undo that first), and BadInput if there is
        nothing to decide on.
        """
        return self._decide("accept", self._id(item), "accepted")

    def reject(self, item: Item | str) -> ChangeEffect:
        """Reject an item, which then stays rejected if it is stated again. See `accept`."""
        return self._decide("reject", self._id(item), "rejected")

    def decide(self, item: Item | str, verdict: str, **instead: Any) -> ChangeEffect:
        """Decide on an item that waits. The decision is stored when this returns.

        Raises AlreadyDecided if somebody else decided first, UnknownName for another verdict, and BadInput.
        """
        require_known("verdict", self.verdicts, verdict)
        id = self._id(item)
        with self.tables.storage.changing():  # so that nobody decides between the check and the decision
            if not self.waits(id):
                raise self._already_decided(id)
            report: ChangeEffect = getattr(self, verdict)(id, **instead)
            return report

    def waits(self, item: Item | str) -> bool:
        """Return whether an item waits: whether it is neither decided on nor withdrawn."""
        return self._standing(self._id(item)) == "queued"

    def decisions(self, most: int = 20) -> tuple[ReviewDecision, ...]:
        """Return the last decisions and undos of anybody, at most `most`, latest first.

        One that concerns several items, such as an override of a claim, is there once for each.
        """
        require_count(most, 1, "most")
        rows = self.tables.storage.rows(DECISIONS_LAST, {"kind": self._kind, "most": most})
        return tuple(
            ReviewDecision(change, from_micros(at), by, action, undoes, id, self._parse_standing(value), sure)
            for change, at, by, action, undoes, id, value, sure in rows
        )

    def undo(self, change: int | None = None) -> ChangeEffect | None:
        """Undo a change by its number, or the last decision that was made here, or return None if there is none.

        Raises BadInput if it cannot be undone (see `RecordedTables.undo`).
        """
        if change is None:
            if not self.decided:
                return None
            # also where it cannot be: somebody else has changed what it did, and the error says who
            change, _ = self.decided.pop()
        return self.tables.undo(change, by=self.by)

    # --- for each kind of tables ---

    @abstractmethod
    def _id(self, item: Item | str) -> str:
        """Return the id of an item, which is the key of its versions."""

    @abstractmethod
    def _standing(self, id: str) -> str:
        """Return the standing of an item, "queued" while it waits."""

    @abstractmethod
    def _subject(self, id: str) -> object:
        """Return what an error calls an item, or None if it is gone."""

    def _decide(self, action: str, id: str, standing: str) -> ChangeEffect:
        """Give an item that nobody decided on a standing, in a change of its own."""
        with self.tables.storage.changing():
            if self._is_decided(id):
                raise self._already_decided(id)
            return self._record(action, [id], lambda change: self._set_standing(change, id, standing))

    def _is_decided(self, id: str) -> bool:
        """Return whether somebody decided on an item."""
        return self._standing(id) in ("accepted", "rejected")

    @abstractmethod
    def _set_standing(self, change: Change, id: str, standing: str) -> None:
        """Give an item a standing, or raise BadInput."""

    def _record(self, action: str, ids: Sequence[str], decide: Callable[[Change], None]) -> ChangeEffect:
        """Make a decision on some items, and return its effect."""
        keys = [(self._kind, id) for id in (*ids, *(other for id in ids for other in self._ended_by(id)))]
        with self.tables.change(action, self.by) as change, self.tables.effect(change, keys) as holder:
            decide(change)
        if holder.report.change is not None:
            self.decided.append((holder.report.change, ids[0]))
        return holder.report

    def _ended_by(self, id: str) -> Iterable[str]:
        """Return the ids of what a decision on an item may end."""
        return ()

    def _parse_standing(self, value: str) -> str:
        """Return the standing that a version holds."""
        return value

    def _already_decided(self, id: str) -> AlreadyDecided:
        with self.tables.storage.reading():
            if (subject := self._subject(id)) is None:
                return AlreadyDecided(None, "It was erased, or never was there.")
            if not (periods := read_periods(self.tables.storage, self._kind, id)):
                return AlreadyDecided(subject, f"It is {self._standing(id)}.")  # since before the history
            # a drop that was taken back lies behind
            last = ([period for period in periods if period.known_until is None] or periods)[-1]
            author = f" by {printable_line(last.by)}" if last.by else ""
            standing = self._parse_standing(last.standing)
            outcome = f"It was {standing}{author} on {last.known_from:%Y-%m-%d at %H:%M} UTC."
            if last.known_until is not None:
                outcome = f"It was taken back on {last.known_until:%Y-%m-%d at %H:%M} UTC."
            return AlreadyDecided(subject, outcome)
