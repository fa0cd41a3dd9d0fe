"""A log of diffs on disk, from which the graph after every write can be restored.

After a crash it contains exactly what was acknowledged. After the head, a line for each write holds the new
states of the elements, or their removal. `hash_chain` defines the lines. A last line that was torn by a crash
is cut off at opening, with a warning. Damage anywhere else is an error, and nothing is changed.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable, short_repr
from kgot_lab.graph.changes import Identity, Truth
from kgot_lab.io.files import read_regular
from kgot_lab.io.processes import hold, tell_of_forks
from kgot_lab.sandbox.replies import encode_element, encode_removal
from kgot_lab.stores.hash_chain import (
    CHAINED,
    FRESH,
    HEAD,
    SALVAGE,
    Chain,
    check_of,
    line_of,
    mark_of,
    mark_place,
    read_chain,
    salvaged_records,
)
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Diff, Edge, Json, Node


class DiffLog:
    """An open log, locked for exclusive use under whatever name it is opened.

    Raises StoreUnavailable if another has it open, StoreDamaged if acknowledged writes are missing, and
    BadInput for a file that is no log.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path).expanduser()
        require_path(self.path)
        try:
            was_there = self.path.exists()
        except OSError as error:
            raise StoreUnavailable(f"{short_repr(str(path))}: cannot be opened: {error.strerror}") from None
        self._file = _locked(self.path)
        try:
            found = _sound(read_chain(_whole(self._file, self.path), self.path), self.path)
            self.records = list(found.records)  # the records at opening
            if found.torn:
                warnings.warn(
                    f"{self.path}: {found.torn}. The file as it was is kept as {set_aside(self.path).name}",
                    stacklevel=5,
                )
            elif was_there and not found.size:
                warnings.warn(
                    f"{self.path} is empty: a new log is begun in it; if it held a graph once, restore a copy",
                    stacklevel=5,
                )
            self._version = found.version
            self._size = found.size
            self._check = found.check
            self._count = len(found.records)
            self._file.truncate(self._size)
            if not self._size:
                self._write(FRESH)
                self._check = check_of(HEAD)
                _sync_folder(self.path)
        except OSError as error:
            self._file.close()
            raise StoreUnavailable(f"{self.path}: cannot be opened: {error}") from None
        except BaseException:
            self._file.close()
            raise
        tell_of_forks(self)

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self._file.closed

    def append(self, diff: Diff) -> None:
        """Write a diff durably to disk.

        Raises StoreUnavailable, with the log unchanged, if that fails.
        """
        line = line_of(_record(diff), self._check, self._version)
        self._refuse_if_moved()
        try:
            self._write(line)
            self._check, self._count = check_of(line), self._count + 1
            self._mark()
        except StoreUnavailable:
            raise
        except (
            BaseException
        ):  # interrupted: whether the record is on disk is found out when the log is opened again
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        if not self._file.closed:
            with suppress(
                OSError
            ):  # the mark of the last record; the record itself was synced when it was written
                os.fsync(self._file.fileno())
        self._file.close()

    def forked(self) -> None:
        """Close a forked child's copy of the file, whose lock would otherwise outlast the parent's."""
        self._file.close()

    def compact(self, truth: Truth) -> None:
        """Replace the history by one record of the whole graph.

        Raises StoreUnavailable, with the log unchanged, if that fails.
        """
        self._refuse_if_moved()
        if os.fstat(self._file.fileno()).st_nlink > 1:
            raise StoreUnavailable(
                f"{self.path} has other names (hard links), which would still lead to the history: delete those first"
            )
        everything = Diff(added_nodes=tuple(truth.nodes.values()), added_edges=tuple(truth.edges.values()))
        records = [_record(everything)] if everything else []
        fresh, check, size = _fresh_file(self.path, records)
        self._file.close()  # the file whose name was just taken by the new one
        self._file = fresh
        self._version = CHAINED
        self._size = size
        self._check = check
        self._count = len(records)

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        try:
            self._file.seek(self._size)
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except BaseException as error:
            self._back_to_what_is_sound()
            if isinstance(error, OSError):
                raise StoreUnavailable(
                    f"{self.path}: the write could not be put on disk and was not made: {error}"
                ) from None
            raise
        self._size += len(line)

    def _mark(self) -> None:
        """Mark all records so far as being on disk.

        The mark itself reaches the disk with the next write. It is only needed to read a damaged log.
        """
        if self._version == CHAINED:
            with suppress(OSError):
                self._file.seek(mark_place(self._count))
                self._file.write(mark_of(self._count, self._check))

    def _back_to_what_is_sound(self) -> None:
        try:
            os.ftruncate(self._file.fileno(), self._size)
        except OSError as error:
            self._file.close()  # the next opening cuts off the torn line
            raise StoreUnavailable(
                f"{self.path}: a write failed and could not be taken back, so the store was closed: {error}"
            ) from None

    def _refuse_if_moved(self) -> None:
        """Raise StoreUnavailable if the file was replaced, or another program wrote to it."""
        ours = os.fstat(self._file.fileno())
        try:
            there: os.stat_result | None = self.path.stat()
        except OSError:
            there = None
        if there is None or not os.path.samestat(ours, there) or ours.st_size != self._size:
            self._file.close()
            told = "was deleted, replaced or written to by something else while it was open here, so the change was not made"
            raise StoreUnavailable(
                f"{self.path} {told}; close the store, see what happened to the file, and open it again"
            )


def history(path: Path | str) -> Iterator[Diff]:
    """Yield the exact diffs in a log, oldest first, without opening it for writing.

    The graph after the n-th write is the empty graph with the first n of them applied. Raises BadInput if the
    file is no log, and StoreDamaged if it is damaged.
    """
    truth = Truth()
    for record in _sound(chain_on_file(Path(path)), Path(path)).records:
        diff = truth.difference(*elements_of(record))
        truth.apply(diff)
        yield diff


def chain_on_file(path: Path) -> Chain:
    """Read a log, whole or damaged.

    A missing file is an empty log. Raises BadInput or StoreDamaged as `read_chain` does, and StoreUnavailable
    if the file cannot be read.
    """
    try:
        return read_chain(read_regular(path) if path.exists() else b"", path)
    except OSError as error:
        raise StoreUnavailable(f"{path}: cannot be read: {error}") from None


@dataclass(frozen=True)
class Salvaged:
    """The location of the copy of a damaged file, and how much of it is in the new one."""

    kept: Path
    told: str


def salvage(path: Path) -> Salvaged:
    """Recover the unbroken run of records of a damaged log, skipping what was inserted or damaged between
    them.

    If it raises, nothing was changed: StoreUnavailable if another has it open, BadInput or StoreDamaged if
    nothing can be recovered.
    """
    with _locked(path) as file:
        data = file.readall() or b""
        records, written = salvaged_records(data, path)
        if written and not records:
            raise StoreDamaged(
                f"{path}: not one of {format_count(written, 'write')} could be read; it stays as it is: restore a copy"
            )
        kept = set_aside(path)
        try:
            _fresh_file(path, records)[0].close()
        except BaseException:
            kept.unlink(missing_ok=True)  # the damaged file is still in place
            raise
    return Salvaged(kept, f"kept {len(records):,} of {format_count(written, 'write')}")


def elements_of(record: Mapping[str, Json]) -> tuple[dict[str, Node | None], dict[Identity, Edge | None]]:
    """Return a record's nodes by id and edges by identity, with None for each deleted element."""
    nodes: dict[str, Node | None] = {}
    edges: dict[Identity, Edge | None] = {}
    for claim in record["nodes"]:
        nodes[claim[0]] = Node(claim[0], tuple(claim[1]), claim[2]) if len(claim) == 3 else None
    for claim in record["edges"]:
        source, type, target, key = claim[:4]
        edges[source, type, target, key] = (
            Edge(source, type, target, claim[4], key) if len(claim) == 5 else None
        )
    return nodes, edges


def _record(diff: Diff) -> dict[str, Json]:
    nodes = [
        *map(encode_removal, diff.removed_nodes),
        *map(encode_element, diff.added_nodes),
        *(encode_element(after) for _, after in diff.changed_nodes),
    ]
    edges = [
        *map(encode_removal, diff.removed_edges),
        *map(encode_element, diff.added_edges),
        *(encode_element(after) for _, after in diff.changed_edges),
    ]
    return {"nodes": nodes, "edges": edges}


# --- files ---


def _sound(found: Chain, path: Path) -> Chain:
    if found.lost:
        raise StoreDamaged(f"{path}: {found.lost}; nothing was changed: {SALVAGE} {path}")
    return found


def set_aside(path: Path) -> Path:
    """Copy a file to an unused name beside it and return the path of the copy.

    Raises OSError if that fails.
    """
    kept = next(
        place
        for number in count(1)
        if not (place := path.with_name(f"{path.name}.damaged-{number}")).exists()
    )
    kept.write_bytes(path.read_bytes())
    return kept


def _fresh_file(path: Path, records: Any) -> tuple[io.FileIO, bytes, int]:
    """Replace a file by a locked log of some records.

    Returns the open file, the check of the last record, and the size.
    """
    check, lines = check_of(HEAD), [FRESH]
    for record in records:
        lines.append(line_of(record, check))
        check = check_of(lines[-1])
    whole = b"".join(lines)
    place = Path(os.path.realpath(path))  # a symbolic link keeps pointing to its file
    beside = place.with_name(place.name + ".new")
    file: io.FileIO | None = None
    try:
        file = io.FileIO(beside, "w+b")
        hold(file)
        left = memoryview(whole)
        while left:
            left = left[file.write(left) :]
        file.seek(mark_place(len(records)))
        file.write(mark_of(len(records), check))
        os.fsync(file.fileno())
        shutil.copymode(place, beside)
        beside.replace(place)
    except BaseException as error:
        if file is not None:
            file.close()
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError):
            raise StoreUnavailable(f"{path}: could not be written anew, and is as it was: {error}") from None
        raise
    _sync_folder(place)
    return file, check, len(whole)


def require_path(path: Path) -> None:
    """Raise BadInput for a path that no system accepts: one with a NUL or an invalid half of a surrogate
    pair.
    """
    try:
        named = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        named = False
    if not named:
        raise BadInput(f"{str(path)!r} can be no path: give another")


def holds_something(path: Path) -> bool:
    """Return whether a file exists and is not empty, creating its folder if it is missing.

    Raises StoreUnavailable if the path is not a file or cannot be opened.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or (path.is_file() and not path.stat().st_size):
            return False
    except OSError as error:
        raise StoreUnavailable(f"{path}: cannot be opened: {error.strerror}; give another path") from None
    if not path.is_file():
        raise StoreUnavailable(f"{path}: cannot be opened: it is no file; give another path")
    return True


def _locked(path: Path) -> io.FileIO:
    """Open and lock a log's file, creating it if it is missing.

    Until it is closed, no other process or path can open the same file. Raises StoreUnavailable if it is in
    use or cannot be opened.
    """
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not stat.S_ISREG(path.stat().st_mode):
                raise StoreUnavailable(f"{path}: cannot be opened: it is no file; give another path")
            # unbuffered, so that nothing of a failed write remains for a later one
            file = io.FileIO(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b")
        except OSError as error:
            raise StoreUnavailable(f"{path}: cannot be opened: {error}") from None
        try:
            hold(file)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except FileNotFoundError:
            pass
        except OSError:
            file.close()
            told = f"{path}: this store is open already, here or in another process; close it there or give another path"
            raise StoreUnavailable(told) from None
        file.close()  # another process has replaced the file in the meantime


def _whole(file: io.FileIO, path: Path) -> bytes:
    """Read all of a file.

    Of a file that is no log only the beginning is read. Raises BadInput for such a file, and OSError.
    """
    start = file.read(len(FRESH)) or b""
    if len(start) == len(FRESH):
        read_chain(start, path)  # before reading all of what may be a very large file of another program
    return start + (file.readall() or b"")


def _sync_folder(path: Path) -> None:
    """Make a new name in a folder survive a power failure, if the system supports that."""
    if os.name != "nt":
        descriptor = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
