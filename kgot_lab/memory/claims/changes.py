"""Changes of claims, worlds and investment graphs: number, time and author of each, its versions, and undo.

Everything that may change is a row of `versions`, which only the change that closed it rewrites.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from kgot_lab.errors import BadInput, require_count, short_repr
from kgot_lab.memory import tables as sql
from kgot_lab.memory.claims.claim import (
    ChangeEffect,
    ChangeLogEntry,
    StatusPeriod,
    from_micros,
    from_micros_or_none,
    to_micros,
    triple_key,
)
from kgot_lab.stores.tables.layout import TableRow, TableStorage
from kgot_lab.stores.tables.opening import TableBacked
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Triple


class Change:
    """A change in progress, at a time that is never before that of the last one.

    `number` is None until it changes something, so that a change without effect leaves no record.
    """

    def __init__(self, storage: TableStorage, clock: int, who: str, action: str, undoes: int | None) -> None:
        self.storage = storage
        self._last, last_time = next(iter(storage.rows(sql.LAST_CHANGE)), (0, clock))
        self.at = max(int(last_time), clock)
        self._values = {"clock": clock, "who": who, "action": action, "undoes": undoes, "at": self.at}
        self.number: int | None = None
        self.undoes = undoes

    def begin(self) -> int:
        """Return the number of the change, which is assigned at the first call."""
        if self.number is None:
            self.number = int(self._last) + 1
            self.storage.rows(sql.NEW_CHANGE, self._values | {"id": self.number})
        return self.number

    def open(self, kind: str, key: str, value: str, number: float | None = None) -> int:
        """Set a value from now on."""
        change = self.begin()
        version = {"kind": kind, "key": key, "value": value, "number": number, "change": change}
        self.storage.rows(sql.OPEN_VERSION, version)
        return change

    def open_all(self, kind: str, values: Iterable[tuple[str, str, float]]) -> None:
        """Set the value and number of each key from now on."""
        names = ("key", "value", "number")
        common = {"kind": kind, "change": self.begin()}
        self.storage.insert(
            sql.OPEN_VERSION, [common | dict(zip(names, each, strict=True)) for each in values]
        )

    def close(self, kind: str, key: str, value: str | None = None) -> int:
        """Close the current value, or, without a value, whatever is current."""
        change = self.begin()
        statement, given = (
            (sql.CLOSE_VERSIONS, {}) if value is None else (sql.CLOSE_VERSION, {"value": value})
        )
        self.storage.rows(statement, {"kind": kind, "key": key, "change": change} | given)
        return change

    def replace(self, kind: str, key: str, value: str, number: float | None = None) -> None:
        """Replace the current value, unless it is the same."""
        if open_versions(self.storage, kind, key) != {value: number}:
            self.close(kind, key)
            self.open(kind, key, value, number)

    def record(self, kind: str, key: str, before: str | None, after: str | None) -> None:
        """Record that a row of another table went from one state to another. None is no row.

        A state that is older than the history of a file becomes its first version.
        """
        if before == after:
            return
        if before is not None:
            if not open_versions(self.storage, kind, key):
                first = {"kind": kind, "key": key, "value": before, "number": None, "change": 0}
                self.storage.rows(sql.OPEN_VERSION, first)
            self.close(kind, key)
        if after is not None:
            self.open(kind, key, after)


@contextmanager
def open_change(
    storage: TableStorage, action: str, by: str, now: Callable[[], datetime], *, undoes: int | None = None
) -> Iterator[Change]:
    """Open a change in its own transaction, which is stored completely or not at all.

    Raises BadInput if `by` is not a text.
    """
    who = checked_text(by, "who makes a change (by)", blank=True)
    with storage.changing():
        # read inside the transaction, because waiting for another process must not turn back time
        yield Change(storage, to_micros(now(), "now"), who, action, undoes)


def open_versions(storage: TableStorage, kind: str, key: str) -> dict[str, float | None]:
    """Return the current values, each with its number."""
    return dict(storage.rows(sql.OPEN_VALUES, {"kind": kind, "key": key}))


def read_periods(storage: TableStorage, kind: str, key: str) -> tuple[StatusPeriod, ...]:
    """Return the standing of something in each period, by when it was known.

    A drop takes precedence over the standing.
    """
    return tuple(
        StatusPeriod(
            "dropped" if of == "drop" else value, number, from_micros(since), from_micros_or_none(until), who
        )
        for of, value, number, since, until, who in storage.rows(sql.HISTORY, {"kind": kind, "key": key})
    )


def erase_versions(storage: TableStorage, which: str, values: Mapping[str, Any]) -> None:
    """Count some versions as erased in the changes that opened and closed them, and delete them."""
    for statement in (sql.COUNT_ERASED, sql.DELETE_VERSIONS):
        storage.rows(statement.format(which=which), values)


# Undo: what a change opened is closed, and what it closed is opened again as it was, without a model.

_MAX_DATABASE_INTEGER = 2**63 - 1  # the largest integer of a database


class EffectHolder:
    """Holds the report of a change once it is made."""

    report = ChangeEffect(None)


# the kind and value of a version by which something waits for a decision: a claim, or a statement in a world
_QUEUED = re.compile(r'standing queued|support .*"queued"\]')


def _waits(storage: TableStorage, kind: str, key: str, value: str) -> bool:
    return bool(_QUEUED.fullmatch(f"{kind} {value}")) and value in open_versions(storage, kind, key)


VersionKeys = Sequence[tuple[str, str]]  # kind and key of each


def _check_undoable(storage: TableStorage, number: int) -> int:
    """Return how many parts of a change were erased.

    Raises BadInput if there is nothing to undo.
    """
    rows = storage.rows(sql.CHANGE, {"change": number}) if number <= _MAX_DATABASE_INTEGER else []
    if not rows:
        raise BadInput(f"there is no change {number}: the log lists the changes")
    ((action, erased),) = rows
    if action.startswith("erase"):
        raise BadInput(f"change {number} erased something, which nothing brings back")
    chain = [number]
    while later := storage.rows(sql.CHANGES_UNDOING, {"change": chain[-1]}):
        chain.append(later[-1][0])
    if len(chain) > 1:
        state = "is in effect again" if len(chain) % 2 else "was undone"
        raise BadInput(
            f"change {number} {state}, last by change {chain[-1]}: undo that one to turn it round again"
        )
    return int(erased)


def _close_opened(change: Change, row: TableRow) -> bool:
    """Close what a change opened, or what an undo reopened in its place.

    Returns False if something else has closed it since.
    """
    kind, key, value, number, _, closed = row
    if closed is not None:
        is_same = open_versions(change.storage, kind, key).get(value, -1) == number
        by_undo = {"kind": kind, "key": key, "value": value}
        if not (is_same and change.storage.rows(sql.OPENED_BY_UNDO, by_undo)):
            return False
    change.close(kind, key, value)
    return True


def _reopen_closed(change: Change, row: TableRow) -> set[int]:
    """Reopen what a change closed.

    Returns the changes that opened something else in its place since.
    """
    kind, key, value, number, *_ = row
    since = change.storage.rows(sql.OPEN_SINCE, {"kind": kind, "key": key})
    # a claim may be dropped for several reasons
    current = {opened for value_now, opened in since if kind != "drop" or value_now == value}
    if not current:
        change.open(kind, key, value, number)
    return current if kind != "drop" else set()


def _require_unused(change: Change, number: int, keys: Iterable[tuple[str, str]]) -> None:
    """Raise BadInput if the key of an open version contains that of one of some that are gone."""
    for kind, key in keys:
        if not open_versions(change.storage, kind, key):
            name = json.dumps(key)
            rows = change.storage.rows(sql.DEPENDENT_CHANGES, {"kind": kind, "name": name})
            if rows:
                later = ", ".join(str(change) for (change,) in rows)
                builds = f"change {later} builds: undo that first"
                if len(rows) > 1:
                    builds = f"the changes {later} build: undo those first, the latest first"
                raise BadInput(f"change {number} added {short_repr(key)}, on which {builds}")


class RecordedTables(TableBacked):
    """Tables with a history, by which their changes can be undone."""

    _part = ""  # the kind of the versions whose keys are in those of others
    _in_part = False  # whether an undo leaves what later changes replaced, if something else is left to undo

    def change(self, action: str, by: str = "") -> AbstractContextManager[Change]:
        """Open a change, which is stored completely or not at all."""
        return open_change(self.storage, action, by, self.now)

    def undo(self, change: int, *, by: str = "") -> ChangeEffect:
        """Undo a change exactly, which may itself be an undo.

        The report contains what holds again, what was erased since, and the later changes whose work stays. Raises
        BadInput if there is no such change, if it is undone, or if later ones changed it (of claims: all of it) or
        build on it.
        """
        require_count(change, 1, "the number of a change", maximum=float("inf"))
        storage = self.storage
        with open_change(storage, "undo", by, self.now, undoes=change) as undoing:
            erased = _check_undoable(storage, change)
            statements = (sql.VERSIONS_OPENED, sql.VERSIONS_CLOSED)
            opened, closed = (storage.rows(statement, {"change": change}) for statement in statements)
            keys = list(dict.fromkeys((row[0], row[1]) for row in (*opened, *closed)))
            queued = {row[:3] for row in opened if _waits(storage, *row[:3])}
            with self.effect(undoing, keys) as holder:
                later = {row[5] for row in opened if not _close_opened(undoing, row)}
                later |= {by for row in closed for by in _reopen_closed(undoing, row)}
                _require_unused(undoing, change, [each for each in keys if each[0] == self._part])
                self._restore(undoing, keys)
            if later and (undoing.number is None or not self._in_part):
                by_later = ", ".join(map(str, sorted(later)))
                overtaken = f"what change {change} did was changed again since, by {by_later}"
                raise BadInput(f"{overtaken}: undo that first")
            waits = any(_waits(storage, *row[:3]) for row in closed)
            withdrawn = sum(not _waits(storage, *each) for each in queued)
            report = replace(holder.report, overtaken=tuple(sorted(later)), waits=waits, withdrawn=withdrawn)
        return replace(report, change=undoing.number, erased=erased)

    def log(self) -> tuple[ChangeLogEntry, ...]:
        """Return every change with what it was of, first one first."""
        with self.storage.reading():
            targets, entries = self._targets(), []
            for id, at, clock, who, action, undoes, erased in self.storage.rows(sql.CHANGES):
                time, of = from_micros(clock) if clock < at else None, tuple(sorted(targets.get(id, ())))
                entries.append(ChangeLogEntry(id, from_micros(at), who, action, undoes, erased, time, of))
            return tuple(entries)

    def _targets(self) -> Mapping[int, Iterable[str]]:
        """Return what each change was of, by number."""
        return {}

    @contextmanager
    def effect(self, change: Change, keys: VersionKeys) -> Iterator[EffectHolder]:
        """Report what holds after the block and not before it, and the reverse, by the versions of some keys."""
        holder, before = EffectHolder(), self._facts_of(keys)
        yield holder
        after = self._facts_of(keys)
        fallen, risen = (tuple(sorted(facts, key=triple_key)) for facts in (before - after, after - before))
        holder.report = ChangeEffect(change.number, fallen, risen=risen)

    def _facts_of(self, keys: VersionKeys) -> set[Triple]:
        """Return the facts that hold by the current versions of some keys."""
        return set()

    def _restore(self, change: Change, keys: VersionKeys) -> None:
        """Make what else depends on some versions follow them, now that they are restored."""
        raise NotImplementedError
