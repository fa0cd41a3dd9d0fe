"""Read the write-ahead log beside an SQLite file, to tell which parts SQLite silently skips if it is damaged.

The format is that of sqlite.org/fileformat2.html (4) and sqlite.org/walformat.html (2). The index of the log, which
processes share and a killed one leaves behind, tells how many pages of the log were acknowledged.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.errors import warn_caller
from kgot_lab.io.files import back_up_damaged_file
from kgot_lab.io.sqlite.copies import INDEX_BYTES, PrivateCopy, read_index_bytes

# of the log; of a page in it: number, size of the file at a commit, salts, checksums
_WAL_HEADER, _FRAME_HEADER = (struct.Struct(">8I"), struct.Struct(">6I"))
_INDEX_FIELD, _INDEX_VERSION = struct.Struct("=I"), 3_007_000


@dataclass(frozen=True)
class Log:
    """The pages written to a log since it was started: for each, whether a change ends with it."""

    salts: bytes
    ends: Sequence[bool]
    # up to the end of the last change whose checksums are right, where they were computed
    whole_pages: int = 0


@dataclass(frozen=True)
class LogIndex:
    """What processes told each other of a log."""

    salts: bytes
    pages: int  # acknowledged, since the log was started
    checkpointed_pages: int  # those of them that are also in the file itself

    def knows(self, log: Log) -> bool:
        """Return whether a log is that of the index, or stands in its place without having followed it.

        One that follows has a first salt larger by one, and begins when all pages are in the file.
        """
        followed_by = (int.from_bytes(log.salts[:4]) - int.from_bytes(self.salts[:4])) % 2**32
        is_foreign = self.pages > self.checkpointed_pages and not 0 < followed_by < _MAX_RESTARTS
        return log.salts in (self.salts, b"") or is_foreign

    def lost_pages(self, log: Log, used: int) -> int:
        """Return how many acknowledged pages are missing where only some of a log are used.

        None, if the file has them all.
        """
        own = used if log.salts in (self.salts, b"") else 0
        return max(0, self.pages - own) if own or self.pages > self.checkpointed_pages else 0


_NO_LOG = Log(b"", ())
_TRIES = 5
_MAX_RESTARTS = 1_000_000  # of a log since its index was written, which a loss of power may leave behind


def read_log(path: Path, *, verify: bool = False) -> Log | None:
    """Read which pages are in the log beside a file, or return None if there is none.

    With `verify` the checksums are computed: that of each page continues from that of the page before it.
    """
    ends: list[bool] = []
    number = whole_pages = 0
    try:
        with path.with_name(path.name + "-wal").open("rb") as file:
            header = file.read(_WAL_HEADER.size)
            magic, _, page_size, *_, first, second = _WAL_HEADER.unpack(header)
            order, checksum = ">" if magic & 1 else "<", (first, second)
            is_sound = _checksum(header[:-8], order, (0, 0)) == checksum
            salts = header[16:24] if is_sound else b""  # SQLite reads nothing of it otherwise
            while len(head := file.read(_FRAME_HEADER.size)) == _FRAME_HEADER.size:
                page = file.read(page_size)
                number += 1
                if head[8:16] != header[16:24] or len(page) < page_size:
                    is_sound = False  # it is damaged, or of an earlier log in the same file
                if verify and is_sound:
                    checksum = _checksum(head[:8] + page, order, checksum)
                    is_sound = checksum == struct.unpack_from(">2I", head, 16)
                if head[8:16] != header[16:24]:
                    continue
                has_end = _FRAME_HEADER.unpack(head)[1] > 0 and len(page) == page_size
                ends += [False] * (number - 1 - len(ends)) + [has_end]
                whole_pages = number if is_sound and has_end else whole_pages
    except (OSError, struct.error):
        return None
    return Log(salts, ends, whole_pages)


def _parse_index(data: bytes) -> LogIndex | None:
    """Parse the index of a log. None if it is invalid, or from a machine with the other byte order."""
    is_damaged = len(data) < INDEX_BYTES or data[:48] != data[48:96]
    if is_damaged or _INDEX_FIELD.unpack_from(data)[0] != _INDEX_VERSION:
        return None
    pages, checkpointed = (_INDEX_FIELD.unpack_from(data, offset)[0] for offset in (16, 96))
    return LogIndex(data[32:40], pages, checkpointed)


def find_log_damage(copy: PrivateCopy) -> str:
    """Describe what the log beside a file has lost, or may have lost, or return ""."""
    log, index = read_log(copy.path, verify=True) or _NO_LOG, _parse_index(copy.index)
    if index and index.knows(log):
        if not (lost := index.lost_pages(log, log.whole_pages)):
            return ""
        return (
            f"the log beside it lost its end: of {index.pages:,} pages that were put there "
            f"only the first {index.pages - lost:,} are whole"
        )
    if lost_changes := _count_lost(log, log.whole_pages, index):
        return f"the log beside it is damaged, and the last {lost_changes:,} changes in it are lost where the file is opened"
    if log.whole_pages < len(log.ends) and not index and not copy.grew:
        return "the log beside it ends within a change, which was cut off: a write that did not end, or damage to the last one"
    return ""


def read_log_and_index(path: Path) -> tuple[Log, LogIndex | None]:
    """Read the log beside a file that may be open, and its index, both of one time."""
    log, after = _NO_LOG, read_index_bytes(path)
    for _ in range(_TRIES):
        before = after
        log, after = read_log(path) or _NO_LOG, read_index_bytes(path)
        if before == after:
            break
    return log, _parse_index(after)


def warn_of_lost_changes(
    before: tuple[Log, LogIndex | None], connection: sqlite3.Connection, path: Path
) -> None:
    """Warn if SQLite, having just opened the file, uses less of its log than was acknowledged before.

    This means that a page of the log is damaged or missing.
    """
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # SQLite reads the log
    if not (lost_changes := _lost_changes(*before, path)):
        return
    try:
        # waits for a process that has written its pages and not yet published them
        connection.execute("BEGIN IMMEDIATE")
        lost_changes = _lost_changes(*before, path)
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:  # a long write by another process: the next opening checks
        return
    if lost_changes:
        log_path, ends = path.with_name(path.name + "-wal"), before[0].ends
        kept = f". It is kept as {back_up_damaged_file(log_path).name}" if ends else ""
        doubt = "" if before[1] else ", unless the power failed while they were made"
        # what is cut off is not counted
        more = " or more" if before[1] and len(ends) < before[1].pages else ""
        problem = f"is damaged, and the last {lost_changes:,}{more} changes in it are lost{doubt}{kept}"
        warn_caller(f"{path}: SQLite's log beside it {problem}")


def _lost_changes(log: Log, index: LogIndex | None, path: Path) -> int:
    """Return how many changes that were in a log SQLite does not use now."""
    now = _parse_index(read_index_bytes(path))
    if now is None or (log.salts and now.salts != log.salts):
        return 0  # another process restarted it meanwhile
    if index is None or not index.knows(log):
        return _count_lost(log, now.pages, index)
    lost_pages = index.lost_pages(log, now.pages)
    return max(1, sum(log.ends[now.pages : index.pages])) if lost_pages else 0


def _count_lost(log: Log, pages_used: int, index: LogIndex | None) -> int:
    """Return how many changes of a log are lost of which some pages can be used.

    A single one does not count beside an index that does not know the log: it was not acknowledged yet.
    """
    lost = sum(log.ends[pages_used:])
    return 0 if index and lost == 1 else lost


def _checksum(data: bytes, order: str, initial: tuple[int, int]) -> tuple[int, int]:
    first, second = initial
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for odd_word, even_word in zip(words[::2], words[1::2], strict=True):
        first = (first + odd_word + second) & 0xFFFFFFFF
        second = (second + even_word + first) & 0xFFFFFFFF
    return first, second
