"""A log of diffs on disk, from which the graph after every write can be restored.

After a crash it contains exactly what was acknowledged. After the head, a line for each write holds the new
states of the elements, or their removal. `hash_chain` defines the lines. A last line that was torn by a crash
is cut off at opening, with a warning. Damage anywhere else is an error, and nothing is changed.
"""

from __future__ import annotations

import io
import os
import stat
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.errors import StoreDamaged, StoreUnavailable, short_repr
from kgot_lab.graph.changes import Identity, MutableGraph
from kgot_lab.io.files import (
    back_up_damaged_file,
    os_errors_as,
    read_regular_file,
    require_folder_of,
    require_valid_path,
    write_atomically,
)
from kgot_lab.io.processes import exclusive_lock, lock_file, register_for_forks
from kgot_lab.sandbox.replies import encode_element, encode_removal
from kgot_lab.stores import hash_chain
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Diff, Edge, Json, Node


class DiffLog:
    """An open log, locked for exclusive use under whatever name it is opened.

    Raises StoreUnavailable if another has it open, StoreDamaged if acknowledged writes are missing, and
    BadInput for a file that is no log.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path).expanduser()
        require_valid_path(self.path)
        with os_errors_as(f"{short_repr(str(path))}: cannot be opened", StoreUnavailable):
            require_folder_of(self.path)
            is_written = self.path.exists() and self.path.stat().st_size > 0
        # who creates it has locked it before another looks whether it is there
        with nullcontext() if is_written else exclusive_lock(self.path):
            existed = self.path.exists()
            self._file = _open_locked(self.path)
        try:
            chain = hash_chain.read_chain(_read_all(self._file, self.path), self.path)
            _require_sound(chain, self.path)
            self.records = list(chain.records)  # the records at opening
            if chain.torn:
                told, copy = f"{self.path}: {chain.torn}", back_up_damaged_file(self.path).name
                warnings.warn(f"{told}. The file as it was is kept as {copy}", stacklevel=5)
            elif existed and not chain.size:
                advice = "if it held a graph once, restore a copy"
                warnings.warn(f"{self.path} is empty: a new log is begun in it; {advice}", stacklevel=5)
            self._size = chain.size
            self._check = chain.check
            self._count = len(chain.records)
            self._file.truncate(self._size)
            if not self._size:
                self._write(hash_chain.EMPTY_LOG)
                self._check = hash_chain.read_check(hash_chain.HEAD)
                _sync_folder(self.path)
        except OSError as error:
            self._file.close()
            raise StoreUnavailable(f"{self.path}: cannot be opened: {error}") from None
        except BaseException:
            self._file.close()
            raise
        register_for_forks(self)

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self._file.closed

    def append(self, diff: Diff) -> None:
        """Write a diff durably to disk.

        Raises StoreUnavailable, with the log unchanged, if that fails.
        """
        line = hash_chain.format_record(_make_record(diff), self._check)
        self._require_unmoved()
        try:
            self._write(line)
            self._check, self._count = hash_chain.read_check(line), self._count + 1
            self._write_mark()
        except StoreUnavailable:
            raise
        # interrupted: whether the record is on disk is found out when the log is opened again
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        if not self._file.closed:
            # the mark of the last record; the record itself was synced when it was written
            with suppress(OSError):
                os.fsync(self._file.fileno())
        self._file.close()

    def after_fork(self) -> None:
        """Close a forked child's copy of the file, whose lock would otherwise outlast the parent's."""
        self._file.close()

    def _write(self, line: bytes) -> None:
        remaining = memoryview(line)
        try:
            self._file.seek(self._size)
            while remaining:
                remaining = remaining[self._file.write(remaining) :]
            os.fsync(self._file.fileno())
        except BaseException as error:
            self._truncate_failed_write()
            if isinstance(error, OSError):
                problem = f"{self.path}: the write could not be put on disk and was not made"
                raise StoreUnavailable(f"{problem}: {error}") from None
            raise
        self._size += len(line)

    def _write_mark(self) -> None:
        """Mark all records so far as being on disk.

        The mark itself reaches the disk with the next write. It is only needed to read a damaged log.
        """
        with suppress(OSError):
            self._file.seek(hash_chain.mark_offset(self._count))
            self._file.write(hash_chain.format_mark(self._count, self._check))

    def _truncate_failed_write(self) -> None:
        try:
            os.ftruncate(self._file.fileno(), self._size)
        except OSError as error:
            self._file.close()  # the next opening cuts off the torn line
            problem = f"{self.path}: a write failed and could not be taken back, so the store was closed"
            raise StoreUnavailable(f"{problem}: {error}") from None

    def _require_unmoved(self) -> None:
        """Raise StoreUnavailable if the file was replaced, or another program wrote to it."""
        opened = os.fstat(self._file.fileno())
        try:
            current: os.stat_result | None = self.path.stat()
        except OSError:
            current = None
        if current is None or not os.path.samestat(opened, current) or opened.st_size != self._size:
            self._file.close()
            problem = "was deleted, replaced or written to by something else while it was open here, so the change was not made"
            advice = "close the store, see what happened to the file, and open it again"
            raise StoreUnavailable(f"{self.path} {problem}; {advice}")


def read_history(path: Path | str) -> Iterator[Diff]:
    """Yield the exact diffs in a log, oldest first, without opening it for writing.

    The graph after the n-th write is the empty graph with the first n of them applied. Raises BadInput if the
    file is no log, and StoreDamaged if it is damaged.
    """
    truth = MutableGraph()
    for record in _require_sound(read_log(Path(path)), Path(path)).records:
        diff = truth.difference(*record_elements(record))
        truth.apply(diff)
        yield diff


def read_log(path: Path) -> hash_chain.Chain:
    """Read a log, whole or damaged.

    A missing file is an empty log. Raises BadInput or StoreDamaged as `read_chain` does, and StoreUnavailable
    if the file cannot be read.
    """
    with os_errors_as(f"{path}: cannot be read", StoreUnavailable):
        return hash_chain.read_chain(read_regular_file(path) if path.exists() else b"", path)


@dataclass(frozen=True)
class SalvageResult:
    """The location of the copy of a damaged file, and how much of it is in the new one."""

    damaged_copy: Path
    summary: str


def salvage_log(path: Path) -> SalvageResult:
    """Recover the unbroken run of records of a damaged log, skipping what was inserted or damaged between
    them.

    If it raises, nothing was changed: StoreUnavailable if another has it open, BadInput or StoreDamaged if
    nothing can be recovered.
    """
    with _open_locked(path) as file:
        records, written_count = hash_chain.salvage_records(file.readall() or b"", path)
        if written_count and not records:
            problem = f"{path}: not one of {format_count(written_count, 'write')} could be read"
            raise StoreDamaged(f"{problem}; it stays as it is: restore a copy")
        damaged_copy = back_up_damaged_file(path)
        try:
            _write_log(path, records)
        except BaseException:
            damaged_copy.unlink(missing_ok=True)  # the damaged file is still in place
            raise
    return SalvageResult(damaged_copy, f"kept {len(records):,} of {format_count(written_count, 'write')}")


def record_elements(record: Mapping[str, Json]) -> tuple[dict[str, Node | None], dict[Identity, Edge | None]]:
    """Return a record's nodes by id and edges by identity, with None for each deleted element."""
    nodes: dict[str, Node | None] = {}
    edges: dict[Identity, Edge | None] = {}
    for element in record["nodes"]:
        nodes[element[0]] = Node(element[0], tuple(element[1]), element[2]) if len(element) == 3 else None
    for element in record["edges"]:
        source, type, target, key = element[:4]
        edge = Edge(source, type, target, element[4], key) if len(element) == 5 else None
        edges[source, type, target, key] = edge
    return nodes, edges


def _make_record(diff: Diff) -> dict[str, Json]:
    nodes = [*map(encode_removal, diff.removed_nodes), *map(encode_element, diff.written_nodes)]
    edges = [*map(encode_removal, diff.removed_edges), *map(encode_element, diff.written_edges)]
    return {"nodes": nodes, "edges": edges}


# --- files ---


def _require_sound(chain: hash_chain.Chain, path: Path) -> hash_chain.Chain:
    if chain.lost:
        raise StoreDamaged(f"{path}: {chain.lost}; nothing was changed: {hash_chain.SALVAGE_ADVICE} {path}")
    return chain


def _write_log(path: Path, records: Sequence[Mapping[str, Json]]) -> None:
    """Replace a file by a log of some records."""
    check, lines = hash_chain.read_check(hash_chain.HEAD), [hash_chain.EMPTY_LOG]
    for record in records:
        lines.append(hash_chain.format_record(record, check))
        check = hash_chain.read_check(lines[-1])
    content, mark = bytearray(b"".join(lines)), hash_chain.format_mark(len(records), check)
    offset = hash_chain.mark_offset(len(records))
    content[offset : offset + len(mark)] = mark
    write_atomically(path, bytes(content), "the log")
    _sync_folder(path)


def _open_locked(path: Path) -> io.FileIO:
    """Open and lock a log's file, creating it if it is missing.

    Until it is closed, no other process or path can open the same file. Raises StoreUnavailable if it is in
    use or cannot be opened.
    """
    while True:
        with os_errors_as(f"{path}: cannot be opened", StoreUnavailable):
            if path.exists() and not stat.S_ISREG(path.stat().st_mode):
                raise StoreUnavailable(f"{path}: cannot be opened: it is no file; give another path")
            # unbuffered, so that nothing of a failed write remains for a later one
            file = io.FileIO(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b")
        try:
            lock_file(file)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except FileNotFoundError:
            pass
        except OSError:
            file.close()
            message = f"{path}: this store is open already, here or in another process; close it there or give another path"
            raise StoreUnavailable(message) from None
        file.close()  # another process has replaced the file in the meantime


def _read_all(file: io.FileIO, path: Path) -> bytes:
    """Read all of a file.

    Of a file that is no log only the beginning is read. Raises BadInput for such a file, and OSError.
    """
    start = file.read(len(hash_chain.EMPTY_LOG)) or b""
    if len(start) == len(hash_chain.EMPTY_LOG):
        hash_chain.read_chain(start, path)  # refuses a file of another program before reading all of it
    return start + (file.readall() or b"")


def _sync_folder(path: Path) -> None:
    """Make a new name in a folder survive a power failure, if the system supports that."""
    if os.name != "nt":
        descriptor = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
