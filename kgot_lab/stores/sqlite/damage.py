"""Find damage that SQLite does not notice, by checksums of rows and lost parts of its write-ahead log.

SQLite's extension for page checksums must be compiled and loaded, which most Pythons cannot do. So a store
saves a CRC-32 of each row that it writes in a table, by triggers of its own connection. Triggers in the file
remove the checksum of a row when any program changes it. Rows without one get theirs when a store opens the
file.
"""

from __future__ import annotations

import sqlite3
import struct
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgot_lab.io.sqlite_snapshot import Copied
from kgot_lab.stores.log import set_aside

if TYPE_CHECKING:
    from kgot_lab.stores.sqlite.tables import Connection

_COLUMNS = {
    "nodes": ("id", "labels", "properties"),
    "edges": ("source", "type", "target", "key", "properties"),
}
FORGETTING = {
    f"sum_{kind}_before_{event}": (kind, event) for kind in _COLUMNS for event in ("UPDATE", "DELETE")
}
SUMS = (
    "CREATE TABLE sums (kind TEXT NOT NULL, number INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (kind, number))"
    " STRICT, WITHOUT ROWID",
    *(
        f"CREATE TRIGGER {name} BEFORE {event} ON {kind} BEGIN DELETE FROM sums WHERE kind = '{kind}' AND number = OLD.number; END"
        for name, (kind, event) in FORGETTING.items()
    ),
)


def _sum_of(kind: str, row: str) -> str:
    # as bytes: a damaged text may not be valid UTF-8
    return f"checksum({', '.join(f'CAST({row}.{column} AS BLOB)' for column in _COLUMNS[kind])})"


SUMMING = {
    f"sum_{kind}_after_{event}": f"CREATE TEMP TRIGGER sum_{kind}_after_{event} AFTER {event} ON main.{kind} BEGIN"
    f" INSERT OR REPLACE INTO sums VALUES ('{kind}', NEW.number, {_sum_of(kind, 'NEW')}); END"
    for kind in _COLUMNS
    for event in ("INSERT", "UPDATE")
}
NOT_AS_WRITTEN = "is not as it was written"
GUARDING = {  # triggers of a connection run before those of the file, which remove the checksum
    f"sound_{kind}_before_{event}": f"CREATE TEMP TRIGGER sound_{kind}_before_{event} BEFORE {event} ON main.{kind}"
    f" WHEN (SELECT sum FROM sums WHERE kind = '{kind}' AND number = OLD.number) <> {_sum_of(kind, 'OLD')}"
    f" BEGIN SELECT RAISE(ABORT, 'a row of {kind} {NOT_AS_WRITTEN}'); END"
    for kind in _COLUMNS
    for event in ("UPDATE", "DELETE")
}
ARRIVING = {name: trigger for name, trigger in SUMMING.items() if name.endswith("INSERT")}
SELECT_SOUND = {
    kind: f"SELECT {', '.join(columns)} FROM {kind} AS row LEFT JOIN sums ON sums.kind = '{kind}' AND sums.number = row.number"
    f" WHERE coalesce(sum, {_sum_of(kind, 'row')}) = {_sum_of(kind, 'row')}"
    for kind, columns in _COLUMNS.items()
}
SELECTED = {  # with its checksum, or NULL, after the others
    kind: f"SELECT {', '.join(columns)}, (SELECT sum FROM sums WHERE sums.kind = '{kind}' AND sums.number = {kind}.number) FROM {kind}"
    for kind, columns in _COLUMNS.items()
}
# of the first version
SELECT_ALL = {kind: f"SELECT {', '.join(columns)} FROM {kind} AS row" for kind, columns in _COLUMNS.items()}
_WITHOUT = {
    kind: f"FROM {kind} WHERE number NOT IN (SELECT number FROM sums WHERE kind = '{kind}')"
    for kind in _COLUMNS
}
_FILL = tuple(
    statement
    for kind in _COLUMNS
    for statement in (
        f"DELETE FROM sums WHERE kind = '{kind}' AND number NOT IN (SELECT number FROM {kind})",
        f"INSERT INTO sums SELECT '{kind}', number, {_sum_of(kind, kind)} {_WITHOUT[kind]}",
    )
)


def newest(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the largest row number of each kind."""
    return {
        kind: connection.execute(f"SELECT coalesce(max(number), 0) FROM {kind}").fetchone()[0]
        for kind in _COLUMNS
    }


def fill_since(connection: sqlite3.Connection, numbers: Mapping[str, int]) -> None:
    """Add checksums to the rows that were added after those of the given numbers."""
    for kind, number in numbers.items():
        connection.execute(
            f"INSERT INTO sums SELECT '{kind}', number, {_sum_of(kind, kind)} FROM {kind} WHERE number > ?",
            (number,),
        )


def lacks_sums(connection: sqlite3.Connection) -> bool:
    """Return whether a row has no checksum, because another program wrote it."""
    return any(connection.execute(f"SELECT 1 {without} LIMIT 1").fetchone() for without in _WITHOUT.values())


def fill_sums(connection: sqlite3.Connection) -> None:
    """Add checksums to the rows that have none."""
    for statement in _FILL:
        connection.execute(statement)


def can_sum(connection: sqlite3.Connection) -> None:
    """Enable a connection to compute checksums."""
    connection.create_function("checksum", -1, _checksum, deterministic=True)


def is_sound(row: Sequence[Any]) -> bool:
    """Return whether a row, as selected by `SELECTED`, matches its checksum.

    A row without a checksum counts as sound.
    """
    *columns, sum = row
    return sum is None or sum == _checksum(*(column.encode() for column in columns))


def _checksum(*columns: bytes) -> int:
    sum = 0
    for column in columns:
        sum = zlib.crc32(b"%d:%b" % (len(column), column), sum)
    return sum


def damage_in(connection: Connection, schema: Sequence[str]) -> str:
    """Describe the damage in a graph's file, or return "" if there is none.

    `schema` holds the statements that created its tables. Nothing in the file is changed.
    """
    try:
        with connection.surfacing():
            return _damage_in(connection, schema)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return str(error)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _damage_in(connection: sqlite3.Connection, schema: Sequence[str]) -> str:
    can_write = _begun(connection)
    for (said,) in connection.execute("PRAGMA integrity_check(1)"):
        if said != "ok":
            return str(said).removeprefix("*** in database main ***\n")
    there = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}
    if missing := [statement for statement in schema if statement not in there]:
        return f"the definition {missing[0][:60]!r} … was changed"
    for kind in _COLUMNS:
        wrong = f"SELECT number FROM {kind} LEFT JOIN sums USING (number) WHERE kind = '{kind}' AND sum <> {_sum_of(kind, kind)} LIMIT 1"
        for (number,) in connection.execute(wrong):
            return f"row {number} of {kind} is not as it was written"
    if can_write:
        # changes nothing, but counts as a write
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    nodes, words = connection.execute(
        "SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM words)"
    ).fetchone()
    return "" if nodes == words else f"the index of words has {words:,} of {nodes:,} nodes"


def _begun(connection: sqlite3.Connection) -> bool:
    """Begin a transaction that can write if no other process is writing."""
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("BEGIN IMMEDIATE")
        return True
    except sqlite3.OperationalError:
        connection.execute("BEGIN")
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")


# SQLite's own log beside a graph's file: which parts SQLite silently skips if it is damaged.

# of the log; of a page in it: number, size of the file at a commit, salts
_HEAD, _FRAME = (struct.Struct(">8I"), struct.Struct(">4I"))
_FRAME_HEAD = 24
_INDEX, _INDEX_VERSION = struct.Struct("=I"), 3_007_000


@dataclass(frozen=True)
class WalFrames:
    """The pages written to a log since it was started: for each, whether a transaction ends with it."""

    salts: tuple[int, int]
    ends: Sequence[bool]


def wal_frames(path: Path) -> WalFrames | None:
    """Read the frames of the write-ahead log beside a file, whole or not.

    None if there is no log.
    """
    try:
        with path.with_name(path.name + "-wal").open("rb") as file:
            _, _, page, _, *salts, _, _ = _HEAD.unpack(file.read(_HEAD.size))
            ends: list[bool] = []
            while len(told := file.read(_FRAME_HEAD)) == _FRAME_HEAD:
                _, size, *own = _FRAME.unpack_from(told)
                if own == salts:
                    ends += [False] * (_place(file.tell(), page) - len(ends)) + [size > 0]
                file.seek(page, 1)
    except (OSError, struct.error):
        return None
    return WalFrames((salts[0], salts[1]), ends)


def damage_to_log(copied: Copied) -> str:
    """Describe what the write-ahead log beside a file has lost, or may have lost, or return "".

    SQLite skips such changes. Checksums are SQLite's own (sqlite.org/fileformat2.html, 4.2): each page's
    continues from that of the page before it. The index of the log, which processes share and a killed one
    leaves behind, tells how many pages were acknowledged (sqlite.org/walformat.html, 2).
    """
    log, index = _log_on_file(copied.path), _index_of(copied.index)
    if log.lost:
        return f"the log beside it is damaged, and the last {log.lost:,} changes in it are lost where the file is opened"
    if index and index.pages > log.whole and (index.salts == log.salts or not log.salts):
        if log.whole or index.pages > index.kept:
            return f"the log beside it lost its end: of {index.pages:,} pages that were put there only the first {log.whole:,} are whole"
    elif (
        log.torn and not copied.grew and not (index and index.salts == log.salts and index.pages == log.whole)
    ):
        return "the log beside it ends within a change, which was cut off: a write that did not end, or damage to the last one"
    return ""


@dataclass(frozen=True)
class _Log:
    salts: bytes = b""
    whole: int = 0  # pages up to the end of the last valid change
    lost: int = 0  # changes after damage
    torn: bool = False  # something follows the last change


def _log_on_file(path: Path) -> _Log:
    try:
        data = path.with_name(path.name + "-wal").read_bytes()
        magic, _, page, _, _, _, first, second = _HEAD.unpack_from(data)
    except (OSError, struct.error):
        return _Log()
    order = ">" if magic & 1 else "<"
    said, salts = _summed(data[: _HEAD.size - 8], order, (0, 0)), data[16:24]
    sound, whole, lost, torn = said == (first, second), 0, 0, False
    for number, place in enumerate(range(_HEAD.size, len(data), _FRAME_HEAD + page), start=1):
        head = data[place : place + _FRAME_HEAD]
        if not salts.startswith(head[8:16]):
            break
        torn = True
        if len(data) < place + _FRAME_HEAD + page:
            break
        if sound:
            said = _summed(head[:8] + data[place + _FRAME_HEAD : place + _FRAME_HEAD + page], order, said)
            sound = said == struct.unpack_from(">2I", head, 16)
        if _FRAME.unpack_from(head)[1]:
            whole, lost, torn = (number, lost, False) if sound else (whole, lost + 1, torn)
    return _Log(salts, whole, lost, torn)


@dataclass(frozen=True)
class _Index:
    salts: bytes
    pages: int  # of the log, those of whole changes
    kept: int  # those of them that are also in the file itself


def _index_of(data: bytes) -> _Index | None:
    """Parse the index of a write-ahead log.

    None if it is invalid, or from a machine with the other byte order.
    """
    if len(data) < 100 or data[:48] != data[48:96] or _INDEX.unpack_from(data)[0] != _INDEX_VERSION:
        return None
    return _Index(data[32:40], _INDEX.unpack_from(data, 16)[0], _INDEX.unpack_from(data, 96)[0])


def _summed(data: bytes, order: str, before: tuple[int, int]) -> tuple[int, int]:
    first, second = before
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second


def _place(after_head: int, page: int) -> int:
    """Return the number of pages before the one whose head ends at `after_head`."""
    return (after_head - _FRAME_HEAD - _HEAD.size) // (_FRAME_HEAD + page)


def warn_of_lost(before: WalFrames | None, connection: sqlite3.Connection, path: Path) -> None:
    """Warn if SQLite, having just opened the file, used less of its log than there was before.

    This means that a page of the log is damaged.
    """
    if before is None or not before.ends:
        return
    try:
        # waits for a process that has written its pages and not yet published them
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:  # one that writes for long: whoever opens the file next looks
        return
    taken = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
    now = wal_frames(path)
    if taken < 0 or now is None or now.salts != before.salts:  # another process restarted it meanwhile
        return
    if lost := sum(before.ends[taken:]):
        kept = set_aside(path.with_name(path.name + "-wal"))
        told = f"the last {lost:,} changes in it are lost, unless the power failed while they were made. It is kept as {kept.name}"
        warnings.warn(f"{path}: SQLite's log beside it is damaged, and {told}", stacklevel=5)
