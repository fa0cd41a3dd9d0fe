"""Read an SQLite file without changing it or the files beside it: from a private copy, or without its log."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.io.files import os_errors_as
from kgot_lab.io.sqlite.connection import Connection, connect

_TRIES = 5
_MAGIC = b"SQLite format 3\0"
# of a log's index: its head, twice, and how much is checkpointed (sqlite.org/walformat.html, 2)
INDEX_BYTES = 136
# indexes that were read, by device and number: closing one would release the locks that this process has on it (POSIX)
_INDEX_FILES: dict[tuple[int, int], int] = {}
_INDEX_LOCK = Lock()
# in the head of a file: of a page, at 16, and how many there are, at 28
_PAGE_SIZE_FIELD, _PAGE_COUNT_FIELD = (struct.Struct(">H"), struct.Struct(">I"))


@dataclass(frozen=True)
class PrivateCopy:
    """A copy of a file, with its log if there was one.

    `index` is the head of the log's index, b"" without one.
    """

    path: Path
    has_log: bool
    index: bytes
    grew: bool  # the log grew while it was copied, so a write was under way


@contextmanager
def open_copy(path: Path) -> Iterator[Connection]:
    """Open a private copy of a file and its log."""
    with private_copy(path) as copy, closing(connect(copy.path.as_uri())) as connection:
        yield connection


@contextmanager
def private_copy(path: Path) -> Iterator[PrivateCopy]:
    """Copy a file and its log to a temporary folder, both in the same state.

    Raises StoreUnavailable if they cannot be copied.
    """
    source = path.resolve()
    with tempfile.TemporaryDirectory(prefix="kgot_lab_") as folder:
        try:
            copy = _copy_consistently(source, Path(folder))
        except OSError as error:
            reason = f"no copy of it to look at could be made: {error.strerror or error}"
            advice = "see that it may be read, and that the temporary folder has room"
            raise StoreUnavailable(f"{path}: {reason}; {advice}") from None
        yield copy


def back_up(path: Path, copy: Path) -> None:
    """Copy an SQLite file with its log to a file, while others may write, by SQLite's own backup.

    Raises StoreUnavailable if it cannot be made.
    """
    address = f"{path.absolute().as_uri()}?mode=rw"
    try:
        copy.unlink(missing_ok=True)
        with closing(connect(address)) as source, closing(connect(str(copy))) as target:
            source.backup(target)
    except (sqlite3.Error, OSError) as error:
        advice = "see that the folder is there and has room"
        raise StoreUnavailable(f"no backup {copy} of {path} could be made ({error}): {advice}") from None


def read_index_bytes(path: Path) -> bytes:
    """Read the head of the index of the log beside a file, b"" without one."""
    index = path.with_name(path.name + "-shm")
    with suppress(OSError, AttributeError):  # Windows has no pread
        status = index.stat()
        with _INDEX_LOCK:
            for identity, descriptor in list(_INDEX_FILES.items()):
                if not os.fstat(descriptor).st_nlink:  # deleted, so nobody can open it any more
                    os.close(_INDEX_FILES.pop(identity))
            if (identity := (status.st_dev, status.st_ino)) not in _INDEX_FILES:
                _INDEX_FILES[identity] = os.open(index, os.O_RDONLY)
            return os.pread(_INDEX_FILES[identity], INDEX_BYTES, 0)
    return b""


def check_before_opening(path: Path, check: Callable[[sqlite3.Connection], None], *, is_open: bool) -> None:
    """Run a check on an SQLite file without its write-ahead log, so that nothing is written.

    Errors of SQLite are ignored: without its log an undamaged file looks damaged during a checkpoint and
    after one that was interrupted. Damage is found when the file is opened. Raises BadInput for a file that is
    not SQLite, and what `check` raises. The beginning of a file that this process has open is not read here,
    which would release its locks (POSIX).
    """
    if not is_open and not path.with_name(path.name + "-journal").exists():
        with os_errors_as(f"{path}: cannot be opened", StoreUnavailable), path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise BadInput(f"{path}: not an SQLite file, so it was not touched; give another path")
    with suppress(sqlite3.Error, UnicodeDecodeError):  # the latter in a message that quotes the damage
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            check(connection)


def pad_to_size(path: Path) -> None:
    """Pad a truncated file with zeros to the size in its head.

    Otherwise SQLite reads nothing of it.
    """
    head = path.read_bytes()[:100]
    if len(head) == 100:
        (size,), (pages,) = _PAGE_SIZE_FIELD.unpack_from(head, 16), _PAGE_COUNT_FIELD.unpack_from(head, 28)
        expected_size = pages * (65_536 if size == 1 else size)
        actual_size = path.stat().st_size
        # a larger size means damage to the head itself
        if actual_size < expected_size <= 1_000 * actual_size:
            with path.open("r+b") as file:
                file.truncate(expected_size)


def _copy_consistently(source: Path, folder: Path) -> PrivateCopy:
    copy = folder / "graph.db"
    log = source.with_name(source.name + "-wal")
    for tries_left in reversed(range(_TRIES)):
        before = _file_state(source), _file_state(log)
        index = read_index_bytes(source)  # first: the log is then never shorter than the index says
        shutil.copyfile(source, copy)
        for part in ("-wal", "-journal"):
            copied_part = copy.with_name(copy.name + part)
            copied_part.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                shutil.copyfile(source.with_name(source.name + part), copied_part)
        log_grew = _file_state(log) != before[1]
        # the log only grows as long as the file stays the same
        if _file_state(source) == before[0] and (not log_grew or not tries_left):
            return PrivateCopy(copy, copy.with_name(copy.name + "-wal").exists(), index, log_grew)
    raise StoreUnavailable(f"{source} is being written to now: try again when that is done")


def _file_state(file: Path) -> tuple[int, int, int] | None:
    """Return inode, modification time and size of a file, or None if it does not exist."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
