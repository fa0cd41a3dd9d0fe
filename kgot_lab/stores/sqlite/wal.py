"""SQLite's own log beside a graph's file: what a damaged one makes SQLite pass over in silence."""

from __future__ import annotations

import sqlite3
import struct
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.io.sqlite_snapshot import Copied
from kgot_lab.stores.log import set_aside

# of the log; of a page in it: number, size of the file at a commit, salts
_HEAD, _FRAME = (struct.Struct(">8I"), struct.Struct(">4I"))
_FRAME_HEAD = 24
_INDEX, _INDEX_VERSION = struct.Struct("=I"), 3_007_000


@dataclass(frozen=True)
class WalFrames:
    """The pages of a log that were written since it was begun: for each, whether a transaction ends with it."""

    salts: tuple[int, int]
    ends: Sequence[bool]


def wal_frames(path: Path) -> WalFrames | None:
    """What the log beside a file holds, whole or not; None where there is none."""
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
    """What the log beside a file has lost, or may have, so that SQLite passes over it; "" for nothing that
    shows.

    Checksums are SQLite's own (sqlite.org/fileformat2.html, 4.2): each page's goes on from that of the page
    before it. The index of the log, which processes share and a killed one leaves, tells how many pages were
    acknowledged (sqlite.org/walformat.html, 2).
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
    whole: int = 0  # pages up to the end of the last change that is sound
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
    kept: int  # those of them that are in the file itself too


def _index_of(data: bytes) -> _Index | None:
    """What the index of a log tells; None where it tells nothing, or is of a machine that writes its numbers
    the other way round.
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
    """How many pages come before the one whose head ends here."""
    return (after_head - _FRAME_HEAD - _HEAD.size) // (_FRAME_HEAD + page)


def warn_of_lost(before: WalFrames | None, connection: sqlite3.Connection, path: Path) -> None:
    """Warn where SQLite, having just opened the file, takes less from its log than was there before: a page
    of it is damaged.
    """
    if before is None or not before.ends:
        return
    try:
        # waits for a process that has written its pages and not yet said so to the others
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:  # one that writes for long: whoever opens the file next looks
        return
    taken = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
    now = wal_frames(path)
    if taken < 0 or now is None or now.salts != before.salts:  # another process begun it anew in the meantime
        return
    if lost := sum(before.ends[taken:]):
        kept = set_aside(path.with_name(path.name + "-wal"))
        told = f"the last {lost:,} changes in it are lost, unless the power failed while they were made. It is kept as {kept.name}"
        warnings.warn(f"{path}: SQLite's log beside it is damaged, and {told}", stacklevel=5)
