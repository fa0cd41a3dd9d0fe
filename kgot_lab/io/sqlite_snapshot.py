"""Read an SQLite file without changing it or the files beside it: from a private copy, or without its log."""

from __future__ import annotations

import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.errors import BadInput, StoreUnavailable

_TRIES = 5
# in the head of a file: of a page, at 16, and how many there are, at 28
_SIZE, _PAGES = (struct.Struct(">H"), struct.Struct(">I"))


@dataclass(frozen=True)
class Copied:
    """A copy of a file, with its log if there was one.

    `index` is the content of the log's index, b"" without one.
    """

    path: Path
    has_log: bool
    index: bytes
    grew: bool  # the log, while it was copied: its end is of a write that goes on


@contextmanager
def private_copy(path: Path) -> Iterator[Copied]:
    """Copy a file and its log to a temporary folder, both in the same state.

    Raises StoreUnavailable if they cannot be copied.
    """
    place = path.resolve()
    with tempfile.TemporaryDirectory(prefix="kgot_lab_") as folder:
        try:
            copied = _copied(place, Path(folder))
        except OSError as error:
            told = f"no copy of it to look at could be made: {error.strerror or error}"
            raise StoreUnavailable(
                f"{path}: {told}; see that it may be read, and that the temporary folder has room"
            ) from None
        yield copied


def check_before_opening(path: Path, check: Callable[[sqlite3.Connection], None]) -> None:
    """Run a check on an SQLite file without its write-ahead log, so that nothing is written.

    Errors of SQLite are ignored: without its log an undamaged file looks damaged during a checkpoint and
    after one that was interrupted. Damage is found when the file is opened. SQLite reads the file, because
    opening and closing it here would release the locks that this process has on it (POSIX). Raises BadInput
    for a file that is not SQLite, and what `check` raises.
    """
    in_transaction = path.with_name(path.name + "-journal").exists()
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as alone:
            check(alone)
    except UnicodeDecodeError:  # in a message of SQLite's that quotes the damage
        return
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_NOTADB and not in_transaction:
            raise BadInput(f"{path}: not an SQLite file, so it was not touched; give another path") from None


def pad_to_size(path: Path) -> None:
    """Pad a truncated file with zeros to the size in its head.

    Otherwise SQLite reads nothing of it.
    """
    head = path.read_bytes()[:100]
    if len(head) == 100:
        (size,), (pages,) = _SIZE.unpack_from(head, 16), _PAGES.unpack_from(head, 28)
        whole = pages * (65_536 if size == 1 else size)
        there = path.stat().st_size
        if there < whole <= 1_000 * there:  # a larger size means damage to the head itself
            with path.open("r+b") as file:
                file.truncate(whole)


def _copied(place: Path, folder: Path) -> Copied:
    copy = folder / "graph.db"
    log, beside = place.with_name(place.name + "-wal"), place.with_name(place.name + "-shm")
    for left in reversed(range(_TRIES)):
        before, index = (_state(place), _state(log)), b""
        with suppress(FileNotFoundError):
            index = beside.read_bytes()  # read first: the log is then never shorter than the index says
        shutil.copyfile(place, copy)
        for part in ("-wal", "-journal"):
            copied = copy.with_name(copy.name + part)
            copied.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                shutil.copyfile(place.with_name(place.name + part), copied)
        grew = _state(log) != before[1]
        # the log only grows as long as the file stays the same
        if _state(place) == before[0] and (not grew or not left):
            return Copied(copy, copy.with_name(copy.name + "-wal").exists(), index, grew)
    raise StoreUnavailable(f"{place} is being written to now: try again when that is done")


def _state(file: Path) -> tuple[int, int, int] | None:
    """Return inode, modification time and size of a file, or None if it does not exist."""
    try:
        there = file.stat()
    except FileNotFoundError:
        return None
    return there.st_ino, there.st_mtime_ns, there.st_size
