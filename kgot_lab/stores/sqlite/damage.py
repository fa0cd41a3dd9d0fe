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

from kgot_lab.io.sqlite_files import PrivateCopy
from kgot_lab.stores.log import back_up_damaged_file

if TYPE_CHECKING:
    from kgot_lab.stores.sqlite.tables import Connection

_COLUMNS: dict[str, tuple[str, ...]] = {"nodes": ("id", "labels", "properties")}
_COLUMNS["edges"] = ("source", "type", "target", "key", "properties")
CHECKSUM_REMOVAL_TRIGGERS = {
    f"sum_{kind}_before_{event}": (kind, event) for kind in _COLUMNS for event in ("UPDATE", "DELETE")
}
CHECKSUM_SCHEMA = (
    "CREATE TABLE sums (kind TEXT NOT NULL, number INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (kind, number))"
    " STRICT, WITHOUT ROWID",
    *(
        f"CREATE TRIGGER {name} BEFORE {event} ON {kind} BEGIN DELETE FROM sums WHERE kind = '{kind}' AND number = OLD.number; END"
        for name, (kind, event) in CHECKSUM_REMOVAL_TRIGGERS.items()
    ),
)


def _checksum_sql(kind: str, row: str) -> str:
    # as bytes: a damaged text may not be valid UTF-8
    return f"checksum({', '.join(f'CAST({row}.{column} AS BLOB)' for column in _COLUMNS[kind])})"


CHECKSUM_TRIGGERS = {
    f"sum_{kind}_after_{event}": f"CREATE TEMP TRIGGER sum_{kind}_after_{event} AFTER {event} ON main.{kind} BEGIN"
    f" INSERT OR REPLACE INTO sums VALUES ('{kind}', NEW.number, {_checksum_sql(kind, 'NEW')}); END"
    for kind in _COLUMNS
    for event in ("INSERT", "UPDATE")
}
CHECKSUM_MISMATCH = "is not as it was written"
VERIFICATION_TRIGGERS = {  # triggers of a connection run before those of the file, which remove the checksum
    f"sound_{kind}_before_{event}": f"CREATE TEMP TRIGGER sound_{kind}_before_{event} BEFORE {event} ON main.{kind}"
    f" WHEN (SELECT sum FROM sums WHERE kind = '{kind}' AND number = OLD.number) <> {_checksum_sql(kind, 'OLD')}"
    f" BEGIN SELECT RAISE(ABORT, 'a row of {kind} {CHECKSUM_MISMATCH}'); END"
    for kind in _COLUMNS
    for event in ("UPDATE", "DELETE")
}
INSERT_CHECKSUM_TRIGGERS = {name: sql for name, sql in CHECKSUM_TRIGGERS.items() if name.endswith("INSERT")}
SELECT_SOUND_ROWS = {
    kind: f"SELECT {', '.join(columns)} FROM {kind} AS row LEFT JOIN sums ON sums.kind = '{kind}' AND sums.number = row.number"
    f" WHERE coalesce(sum, {_checksum_sql(kind, 'row')}) = {_checksum_sql(kind, 'row')}"
    for kind, columns in _COLUMNS.items()
}
SELECT_WITH_CHECKSUM = {  # with its checksum, or NULL, after the others
    kind: f"SELECT {', '.join(columns)}, (SELECT sum FROM sums WHERE sums.kind = '{kind}' AND sums.number = {kind}.number) FROM {kind}"
    for kind, columns in _COLUMNS.items()
}
_ROWS_WITHOUT_CHECKSUM = {
    kind: f"FROM {kind} WHERE number NOT IN (SELECT number FROM sums WHERE kind = '{kind}')"
    for kind in _COLUMNS
}
_FILL_CHECKSUMS = tuple(
    statement
    for kind in _COLUMNS
    for statement in (
        f"DELETE FROM sums WHERE kind = '{kind}' AND number NOT IN (SELECT number FROM {kind})",
        f"INSERT INTO sums SELECT '{kind}', number, {_checksum_sql(kind, kind)} {_ROWS_WITHOUT_CHECKSUM[kind]}",
    )
)


def last_row_numbers(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the largest row number of each kind."""
    queries = {kind: f"SELECT coalesce(max(number), 0) FROM {kind}" for kind in _COLUMNS}
    return {kind: connection.execute(query).fetchone()[0] for kind, query in queries.items()}


def add_checksums_since(connection: sqlite3.Connection, numbers: Mapping[str, int]) -> None:
    """Add checksums to the rows that were added after those of the given numbers."""
    for kind, number in numbers.items():
        connection.execute(
            f"INSERT INTO sums SELECT '{kind}', number, {_checksum_sql(kind, kind)} FROM {kind} WHERE number > ?",
            (number,),
        )


def lacks_checksums(connection: sqlite3.Connection) -> bool:
    """Return whether a row has no checksum, because another program wrote it."""
    queries = (f"SELECT 1 {without} LIMIT 1" for without in _ROWS_WITHOUT_CHECKSUM.values())
    return any(connection.execute(query).fetchone() for query in queries)


def fill_checksums(connection: sqlite3.Connection) -> None:
    """Add checksums to the rows that have none."""
    for statement in _FILL_CHECKSUMS:
        connection.execute(statement)


def enable_checksums(connection: sqlite3.Connection) -> None:
    """Enable a connection to compute checksums."""
    connection.create_function("checksum", -1, _checksum, deterministic=True)


def has_valid_checksum(row: Sequence[Any]) -> bool:
    """Return whether a row, as selected by `SELECT_WITH_CHECKSUM`, matches its checksum.

    A row without a checksum counts as sound.
    """
    *columns, checksum = row
    return checksum is None or checksum == _checksum(*(column.encode() for column in columns))


def _checksum(*columns: bytes) -> int:
    checksum = 0
    for column in columns:
        checksum = zlib.crc32(b"%d:%b" % (len(column), column), checksum)
    return checksum


def find_damage(connection: Connection, schema: Sequence[str]) -> str:
    """Describe the damage in a graph's file, or return "" if there is none.

    `schema` holds the statements that created its tables. Nothing in the file is changed.
    """
    try:
        with connection.raise_callback_errors():
            return _search_tables(connection, schema)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return str(error)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _search_tables(connection: sqlite3.Connection, schema: Sequence[str]) -> str:
    can_write = _begin_transaction(connection)
    for (message,) in connection.execute("PRAGMA integrity_check(1)"):
        if message != "ok":
            return str(message).removeprefix("*** in database main ***\n")
    definitions = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}
    if missing := [statement for statement in schema if statement not in definitions]:
        return f"the definition {missing[0][:60]!r} … was changed"
    for kind in _COLUMNS:
        query = f"SELECT number FROM {kind} LEFT JOIN sums USING (number) WHERE kind = '{kind}' AND sum <> {_checksum_sql(kind, kind)} LIMIT 1"
        for (number,) in connection.execute(query):
            return f"row {number} of {kind} is not as it was written"
    if can_write:
        # changes nothing, but counts as a write
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    query = "SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM words)"
    nodes, words = connection.execute(query).fetchone()
    return "" if nodes == words else f"the index of words has {words:,} of {nodes:,} nodes"


def _begin_transaction(connection: sqlite3.Connection) -> bool:
    """Begin a transaction that can write if no other process is writing."""
    (timeout,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("BEGIN IMMEDIATE")
        return True
    except sqlite3.OperationalError:
        connection.execute("BEGIN")
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {timeout}")


# SQLite's own log beside a graph's file: which parts SQLite silently skips if it is damaged.

# of the log; of a page in it: number, size of the file at a commit, salts
_WAL_HEADER, _FRAME_HEADER = (struct.Struct(">8I"), struct.Struct(">4I"))
_FRAME_HEADER_SIZE = 24
_WAL_INDEX_FIELD, _WAL_INDEX_VERSION = struct.Struct("=I"), 3_007_000


@dataclass(frozen=True)
class WalFrames:
    """The pages written to a log since it was started: for each, whether a transaction ends with it."""

    salts: tuple[int, int]
    ends: Sequence[bool]


def read_wal_frames(path: Path) -> WalFrames | None:
    """Read the frames of the write-ahead log beside a file, whole or not.

    None if there is no log.
    """
    try:
        with path.with_name(path.name + "-wal").open("rb") as file:
            _, _, page_size, _, *salts, _, _ = _WAL_HEADER.unpack(file.read(_WAL_HEADER.size))
            ends: list[bool] = []
            while len(header := file.read(_FRAME_HEADER_SIZE)) == _FRAME_HEADER_SIZE:
                _, size, *frame_salts = _FRAME_HEADER.unpack_from(header)
                if frame_salts == salts:
                    offset = file.tell() - _FRAME_HEADER_SIZE - _WAL_HEADER.size
                    ends += [False] * (offset // (_FRAME_HEADER_SIZE + page_size) - len(ends)) + [size > 0]
                file.seek(page_size, 1)
    except (OSError, struct.error):
        return None
    return WalFrames((salts[0], salts[1]), ends)


def find_log_damage(copy: PrivateCopy) -> str:
    """Describe what the write-ahead log beside a file has lost, or may have lost, or return "".

    SQLite skips such changes. Checksums are SQLite's own (sqlite.org/fileformat2.html, 4.2): each page's
    continues from that of the page before it. The index of the log, which processes share and a killed one
    leaves behind, tells how many pages were acknowledged (sqlite.org/walformat.html, 2).
    """
    log, index = _read_wal_state(copy.path), _parse_wal_index(copy.index)
    if log.lost_changes:
        return f"the log beside it is damaged, and the last {log.lost_changes:,} changes in it are lost where the file is opened"
    if index and index.whole_pages > log.whole_pages and (index.salts == log.salts or not log.salts):
        if log.whole_pages or index.whole_pages > index.checkpointed_pages:
            return (
                f"the log beside it lost its end: of {index.whole_pages:,} pages that were put there "
                f"only the first {log.whole_pages:,} are whole"
            )
    elif (
        log.is_torn
        and not copy.grew
        and not (index and index.salts == log.salts and index.whole_pages == log.whole_pages)
    ):
        return "the log beside it ends within a change, which was cut off: a write that did not end, or damage to the last one"
    return ""


@dataclass(frozen=True)
class _WalState:
    salts: bytes = b""
    whole_pages: int = 0  # pages up to the end of the last valid change
    lost_changes: int = 0  # changes after damage
    is_torn: bool = False  # something follows the last change


def _read_wal_state(path: Path) -> _WalState:
    try:
        data = path.with_name(path.name + "-wal").read_bytes()
        magic, _, page_size, _, _, _, first, second = _WAL_HEADER.unpack_from(data)
    except (OSError, struct.error):
        return _WalState()
    order = ">" if magic & 1 else "<"
    checksum, salts = _wal_checksum(data[: _WAL_HEADER.size - 8], order, (0, 0)), data[16:24]
    is_sound, whole_pages, lost_changes, is_torn = checksum == (first, second), 0, 0, False
    offsets = range(_WAL_HEADER.size, len(data), _FRAME_HEADER_SIZE + page_size)
    for number, offset in enumerate(offsets, start=1):
        head = data[offset : offset + _FRAME_HEADER_SIZE]
        if not salts.startswith(head[8:16]):
            break
        is_torn = True
        if len(data) < offset + _FRAME_HEADER_SIZE + page_size:
            break
        if is_sound:
            page = data[offset + _FRAME_HEADER_SIZE :][:page_size]
            checksum = _wal_checksum(head[:8] + page, order, checksum)
            is_sound = checksum == struct.unpack_from(">2I", head, 16)
        if _FRAME_HEADER.unpack_from(head)[1]:
            whole_pages, lost_changes, is_torn = (
                (number, lost_changes, False) if is_sound else (whole_pages, lost_changes + 1, is_torn)
            )
    return _WalState(salts, whole_pages, lost_changes, is_torn)


@dataclass(frozen=True)
class _WalIndex:
    salts: bytes
    whole_pages: int  # of the log, those of whole changes
    checkpointed_pages: int  # those of them that are also in the file itself


def _parse_wal_index(data: bytes) -> _WalIndex | None:
    """Parse the index of a write-ahead log.

    None if it is invalid, or from a machine with the other byte order.
    """
    is_damaged = len(data) < 100 or data[:48] != data[48:96]
    if is_damaged or _WAL_INDEX_FIELD.unpack_from(data)[0] != _WAL_INDEX_VERSION:
        return None
    pages, whole = (_WAL_INDEX_FIELD.unpack_from(data, offset)[0] for offset in (16, 96))
    return _WalIndex(data[32:40], pages, whole)


def _wal_checksum(data: bytes, order: str, initial: tuple[int, int]) -> tuple[int, int]:
    first, second = initial
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for odd_word, even_word in zip(words[::2], words[1::2], strict=True):
        first = (first + odd_word + second) & 0xFFFFFFFF
        second = (second + even_word + first) & 0xFFFFFFFF
    return first, second


def warn_of_lost_changes(before: WalFrames | None, connection: sqlite3.Connection, path: Path) -> None:
    """Warn if SQLite, having just opened the file, used less of its log than there was before.

    This means that a page of the log is damaged.
    """
    if before is None or not before.ends:
        return
    try:
        # waits for a process that has written its pages and not yet published them
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:  # a long write by another process: the next opening checks
        return
    pages_used = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
    current = read_wal_frames(path)
    # another process restarted it meanwhile
    if pages_used < 0 or current is None or current.salts != before.salts:
        return
    if lost_changes := sum(before.ends[pages_used:]):
        copy = back_up_damaged_file(path.with_name(path.name + "-wal"))
        problem = f"the last {lost_changes:,} changes in it are lost, unless the power failed while they were made. It is kept as {copy.name}"
        warnings.warn(f"{path}: SQLite's log beside it is damaged, and {problem}", stacklevel=7)
