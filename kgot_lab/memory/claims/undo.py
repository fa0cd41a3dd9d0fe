"""Changes taken back: what a change opened is closed, and what it closed is opened again as it was; no model
is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kgot_lab.errors import BadInput, require_count, shortly
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.claim import Fallen
from kgot_lab.memory.claims.justification import NOW
from kgot_lab.memory.claims.transactions import ClaimChange, making, open_versions, what_fell
from kgot_lab.memory.tables import ClaimRow
from kgot_lab.memory.tables import statements as sql

_LARGEST = 2**63 - 1  # number that a database takes


def undo_change(beliefs: Beliefs, number: int, by: str) -> Fallen:
    """Take a change back in a change of its own; see `Claims.undo`."""
    require_count(number, 1, "the number of a change")
    storage = beliefs.storage
    with making(storage, "undo", by, beliefs.now, undoes=number) as change:
        erased = _erased_of(beliefs, number)
        opened, closed = (
            storage.rows(statement, {"change": number}) for statement in (sql.OPENED, sql.CLOSED)
        )
        claims = sorted({row[1] for row in (*opened, *closed) if row[0] in ("standing", "drop")})
        with what_fell(beliefs.storage, change, claims) as told:
            overtaken = {row[5] for row in opened if not _close(change, row)}
            overtaken |= {by for row in closed for by in _reopen_rows(change, row)}
            _refuse_circles(change, number, [row[1] for row in closed if row[0] == "merged"])
        if overtaken and change.number is None:
            by_later = ", ".join(map(str, sorted(overtaken)))
            raise BadInput(
                f"what change {number} did was changed again since, by {by_later}: undo that first"
            )
        return replace(told.report, change=change.number, erased=erased, overtaken=tuple(sorted(overtaken)))


def _erased_of(beliefs: Beliefs, number: int) -> int:
    """How many parts of a change were erased; raises BadInput where there is nothing to undo."""
    rows = beliefs.storage.rows(sql.CHANGE, {"change": number}) if number <= _LARGEST else []
    if not rows:
        raise BadInput(f"there is no change {number}: log() lists them")
    ((action, erased),) = rows
    if action.startswith("erase"):
        raise BadInput(f"change {number} erased something, which nothing brings back")
    last = number
    while later := beliefs.storage.rows(sql.UNDOING, {"change": last}):
        last = later[-1][0]
    if last != number:
        raise BadInput(
            f"change {number} was undone, last by change {last}: undo that one to turn it round again"
        )
    return int(erased)


def _refuse_circles(change: ClaimChange, number: int, names: Iterable[str]) -> None:
    """Raise BadInput where names that are merged again were meanwhile merged into by what they go by."""
    merges: dict[str, str] = dict(change.storage.rows(sql.MERGED, {"known": NOW}))
    for name in names:
        seen, kept = {name}, merges.get(name, name)
        while kept in merges and kept not in seen:
            seen.add(kept)
            kept = merges[kept]
        if name in merges and kept in seen:
            raise BadInput(
                f"undoing change {number} would merge {shortly(name)} in a circle: unmerge {shortly(merges[name])} first"
            )


def _close(change: ClaimChange, row: ClaimRow) -> bool:
    """Close what a change opened, or what an undo opened again in its place since; False where something else
    did.
    """
    kind, key, value, number, _, closed = row
    if closed is not None and (
        open_versions(change.storage, kind, key).get(value, -1) != number or not _by_undo(change, row)
    ):
        return False
    change.close(kind, key, value)
    return True


def _by_undo(change: ClaimChange, row: ClaimRow) -> bool:
    return change.storage.rows(sql.OPENED_BY_UNDO, {"kind": row[0], "key": row[1], "value": row[2]}) != []


def _reopen_rows(change: ClaimChange, row: ClaimRow) -> set[int]:
    """Open what a change closed; the changes that opened something else in its place since, where there are
    any.
    """
    kind, key, value, number, *_ = row
    since = change.storage.rows(sql.OPEN_SINCE, {"kind": kind, "key": key})
    # a claim may be dropped for several reasons
    there = {opened for each, opened in since if kind != "drop" or each == value}
    if not there:
        change.open(kind, key, value, number)
    return there if kind != "drop" else set()
