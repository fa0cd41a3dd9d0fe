"""SQLite's own log beside a graph's file: what a damaged one makes SQLite pass over in silence."""

from __future__ import annotations

import sqlite3
import struct
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.stores.log import set_aside

_HEAD, _FRAME = struct.Struct(">8I"), struct.Struct(">4I")  # of the log; of a page in it: number, size of the file at a commit, salts
_FRAME_HEAD = 24


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


def lost_commits(path: Path) -> int:
    """How many changes in the log beside a file SQLite will pass over, since something before them is damaged; nothing is written.

    Checksums are SQLite's own (sqlite.org/fileformat2.html, 4.2): each page's goes on from that of the page before it.
    """
    try:
        data = path.with_name(path.name + "-wal").read_bytes()
        magic, _, page, _, *salts, first, second = _HEAD.unpack_from(data)
    except (OSError, struct.error):
        return 0
    order = ">" if magic & 1 else "<"
    said = _summed(data[: _HEAD.size - 8], order, (0, 0))
    sound, lost = said == (first, second), 0
    for place in range(_HEAD.size, len(data) - _FRAME_HEAD - page + 1, _FRAME_HEAD + page):
        _, size, *own = _FRAME.unpack_from(data, place)
        if own != salts:
            break
        if sound:
            body = data[place : place + 8] + data[place + _FRAME_HEAD : place + _FRAME_HEAD + page]
            said = _summed(body, order, said)
            sound = said == struct.unpack_from(">2I", data, place + 16)
        lost += size > 0 and not sound
    return lost


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
    """Warn where SQLite, having just opened the file, takes less from its log than was there before: a page of it is damaged."""
    if before is None or not before.ends:
        return
    try:
        connection.execute("BEGIN IMMEDIATE")  # waits for a process that has written its pages and not yet said so to the others
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
