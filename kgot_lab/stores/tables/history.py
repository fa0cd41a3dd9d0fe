"""Changes of tables: number, time and author of each, its versions, and undo.

Everything that may change is a row of `versions`, which only the change that closed it rewrites.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from kgot_lab.errors import BadInput, require_count, short_repr
from kgot_lab.io.files import read_statements
from kgot_lab.io.times import from_micros, from_micros_or_none, to_micros
from kgot_lab.stores.tables.layout import Layout, TableRow, TableStorage
from kgot_lab.stores.tables.opening import TableBacked
from kgot_lab.text.cleaning import checked_text, format_count
from kgot_lab.types import Triple

# The tables of a history, and their SQL.

_HISTORY: dict[str, tuple[str, ...]] = read_statements(__file__, "history.sql")


def with_history(layout: Layout, *altered: str, after: tuple[str, ...] = ()) -> Layout:
    """Return a layout with the tables of changes and versions, which version 1 had not.

    `altered` are the statements by which an older file gets its table of changes, if it has one, and `after`
    those that bring what it recorded elsewhere into the history.
    """
    both: dict[str, Any] = {name: (*getattr(layout, name), *each) for name, each in _HISTORY.items()}
    added = _HISTORY["tables"][1:] if altered else _HISTORY["tables"]
    upgrade = (*altered, *added, *_HISTORY["indexes"], *after)
    engines: dict[str, Any] = {"sqlite_upgrade": _HISTORY["sqlite"], "postgres_upgrade": _HISTORY["postgres"]}
    return replace(layout, **both, version=2, upgrade=upgrade, **engines)


LAST_CHANGE = "SELECT id, at FROM changes ORDER BY id DESC LIMIT 1"
NEW_CHANGE = "INSERT INTO changes (id, at, clock, who, action, undoes) VALUES (:id, :at, :clock, :who, :action, :undoes)"
CHANGES = "SELECT id, at, clock, who, action, undoes, erased FROM changes ORDER BY id"
CHANGE = "SELECT action, erased FROM changes WHERE id = :change"
CHANGES_UNDOING = "SELECT id FROM changes WHERE undoes = :change"
DEPENDENT_CHANGES = """SELECT DISTINCT opened FROM versions WHERE kind <> :kind AND closed IS NULL AND replace(key, :name, '') <> key
  ORDER BY opened"""  # LIKE would need names without _ and %
VERSIONS_OPENED = "SELECT kind, key, value, number, opened, closed FROM versions WHERE opened = :change ORDER BY kind, key, value"
VERSIONS_CLOSED = "SELECT kind, key, value, number, opened, closed FROM versions WHERE closed = :change ORDER BY kind, key, value"
OPEN_VALUES = (
    "SELECT value, number FROM versions WHERE kind = :kind AND key = :key AND closed IS NULL ORDER BY value"
)
OPEN_SINCE = "SELECT value, opened FROM versions WHERE kind = :kind AND key = :key AND closed IS NULL"
OPENED_BY_UNDO = """SELECT 1 FROM versions v JOIN changes c ON c.id = v.opened
  WHERE v.kind = :kind AND v.key = :key AND v.value = :value AND v.closed IS NULL AND c.action = 'undo'"""
OPEN_VERSION = (
    "INSERT INTO versions (kind, key, value, number, opened) VALUES (:kind, :key, :value, :number, :change)"
)
CLOSE_VERSIONS = "UPDATE versions SET closed = :change WHERE kind = :kind AND key = :key AND closed IS NULL"
CLOSE_VERSION = "UPDATE versions SET closed = :change WHERE kind = :kind AND key = :key AND value = :value AND closed IS NULL"
HISTORY = """SELECT v.kind, v.value, v.number, o.at, e.at, o.who FROM versions v JOIN changes o ON o.id = v.opened
  LEFT JOIN changes e ON e.id = v.closed WHERE v.kind IN (:kind, 'drop') AND v.key = :key ORDER BY v.opened, v.kind, v.value"""
COUNT_ERASED = """UPDATE changes SET erased = erased +
  (SELECT count(*) FROM versions v WHERE (v.opened = changes.id OR v.closed = changes.id) AND {which})
  WHERE id IN (SELECT v.opened FROM versions v WHERE {which} UNION SELECT v.closed FROM versions v WHERE {which})"""
DELETE_VERSIONS = "DELETE FROM versions AS v WHERE {which}"
DECISIONS_LAST = """SELECT d.id, d.at, d.who, d.action, d.undoes, v.key, v.value, v.number FROM changes d
  JOIN versions v ON v.opened = d.id AND v.kind = :kind WHERE d.action IN ('accept', 'reject', 'override', 'undo')
  ORDER BY d.id DESC, v.key LIMIT :most"""

# What changes did, as values.


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


# Changes in progress.


class Change:
    """A change in progress, at a time that is never before that of the last one.

    `number` is None until it changes something, so that a change without effect leaves no record.
    """

    def __init__(self, storage: TableStorage, clock: int, who: str, action: str, undoes: int | None) -> None:
        self.storage = storage
        self._last, last_time = next(iter(storage.rows(LAST_CHANGE)), (0, clock))
        self.at = max(int(last_time), clock)
        self._values = {"clock": clock, "who": who, "action": action, "undoes": undoes, "at": self.at}
        self.number: int | None = None
        self.undoes = undoes

    def begin(self) -> int:
        """Return the number of the change, which is assigned at the first call."""
        if self.number is None:
            self.number = int(self._last) + 1
            self.storage.rows(NEW_CHANGE, self._values | {"id": self.number})
        return self.number

    def open(self, kind: str, key: str, value: str, number: float | None = None) -> int:
        """Set a value from now on."""
        change = self.begin()
        version = {"kind": kind, "key": key, "value": value, "number": number, "change": change}
        self.storage.rows(OPEN_VERSION, version)
        return change

    def open_all(self, kind: str, values: Iterable[tuple[str, str, float]]) -> None:
        """Set the value and number of each key from now on."""
        names = ("key", "value", "number")
        common = {"kind": kind, "change": self.begin()}
        self.storage.insert(OPEN_VERSION, [common | dict(zip(names, each, strict=True)) for each in values])

    def close(self, kind: str, key: str, value: str | None = None) -> int:
        """Close the current value, or, without a value, whatever is current."""
        change = self.begin()
        statement, given = (CLOSE_VERSIONS, {}) if value is None else (CLOSE_VERSION, {"value": value})
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
                self.storage.rows(OPEN_VERSION, first)
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
    return dict(storage.rows(OPEN_VALUES, {"kind": kind, "key": key}))


def read_periods(storage: TableStorage, kind: str, key: str) -> tuple[StatusPeriod, ...]:
    """Return the standing of something in each period, by when it was known.

    A drop takes precedence over the standing.
    """
    return tuple(
        StatusPeriod(
            "dropped" if of == "drop" else value, number, from_micros(since), from_micros_or_none(until), who
        )
        for of, value, number, since, until, who in storage.rows(HISTORY, {"kind": kind, "key": key})
    )


def erase_versions(storage: TableStorage, which: str, values: Mapping[str, Any]) -> None:
    """Count some versions as erased in the changes that opened and closed them, and delete them."""
    for statement in (COUNT_ERASED, DELETE_VERSIONS):
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
    rows = storage.rows(CHANGE, {"change": number}) if number <= _MAX_DATABASE_INTEGER else []
    if not rows:
        raise BadInput(f"there is no change {number}: the log lists the changes")
    ((action, erased),) = rows
    if action.startswith("erase"):
        raise BadInput(f"change {number} erased something, which nothing brings back")
    chain = [number]
    while later := storage.rows(CHANGES_UNDOING, {"change": chain[-1]}):
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
        if not (is_same and change.storage.rows(OPENED_BY_UNDO, by_undo)):
            return False
    change.close(kind, key, value)
    return True


def _reopen_closed(change: Change, row: TableRow) -> set[int]:
    """Reopen what a change closed.

    Returns the changes that opened something else in its place since.
    """
    kind, key, value, number, *_ = row
    since = change.storage.rows(OPEN_SINCE, {"kind": kind, "key": key})
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
            rows = change.storage.rows(DEPENDENT_CHANGES, {"kind": kind, "name": name})
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
            statements = (VERSIONS_OPENED, VERSIONS_CLOSED)
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
            for id, at, clock, who, action, undoes, erased in self.storage.rows(CHANGES):
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
        fallen, risen = (
            tuple(sorted(facts, key=attrgetter("identity"))) for facts in (before - after, after - before)
        )
        holder.report = ChangeEffect(change.number, fallen, risen=risen)

    def _facts_of(self, keys: VersionKeys) -> set[Triple]:
        """Return the facts that hold by the current versions of some keys."""
        return set()

    def _restore(self, change: Change, keys: VersionKeys) -> None:
        """Make what else depends on some versions follow them, now that they are restored."""
        raise NotImplementedError
