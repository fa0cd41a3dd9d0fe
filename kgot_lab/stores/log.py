"""A log of diffs on disk: after a crash it holds what was acknowledged and nothing else, and the graph after every write can be had again.

A line is a checksum (CRC-32), a space and JSON: the head first, then for each write the elements as they became, or as what is gone.
A last line that was torn by a crash is cut off at opening; damage anywhere else is an error, and nothing is changed.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.graph.truth import Identity, Truth
from kgot_lab.sandbox.replies import account_of, removal_of
from kgot_lab.types import Diff, Edge, Json, Node

HEAD = {"format": "kgot_lab diff log", "version": 1}


class DiffLog:
    """An open log, for this process alone; raises StoreUnavailable where another has it, BadInput for a file that is not a sound log."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self._lock = _locked(self.path)
        try:
            self._sound, self.records = _read(self.path)  # the records that were there at opening
            self._file = _opened(self.path)
            self._file.truncate(self._sound)
            self._file.seek(self._sound)
            if not self._sound:
                self._write(HEAD)
                _sync_folder(self.path.parent)
        except BaseException:
            self._lock.close()
            raise

    @property
    def closed(self) -> bool:
        """Whether the file was let go of."""
        return self._file.closed

    def append(self, diff: Diff) -> None:
        """Write a diff to the disk, for good; raises StoreUnavailable, and then the log is as it was."""
        self._write(_record(diff))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
        self._lock.close()

    def compact(self, truth: Truth) -> None:
        """Put one record of the whole graph in the place of the history."""
        fresh = self.path.with_name(self.path.name + ".new")
        everything = Diff(added_nodes=tuple(truth.nodes.values()), added_edges=tuple(truth.edges.values()))
        lines = _line(HEAD) + (_line(_record(everything)) if everything else b"")
        try:
            with fresh.open("wb") as file:
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.path)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise StoreUnavailable(f"{self.path}: could not be compacted, and is as it was: {error}") from None
        self._file.close()  # of the file that has just lost its name
        self._file, self._sound = _opened(self.path), len(lines)
        self._file.seek(self._sound)
        _sync_folder(self.path.parent)

    def _write(self, record: Json) -> None:
        line = memoryview(_line(record))
        written = 0
        try:
            while written < len(line):
                written += self._file.write(line[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            self._back_to_what_is_sound()
            raise StoreUnavailable(f"{self.path}: the write could not be put on disk and was not made: {error}") from None
        self._sound += written

    def _back_to_what_is_sound(self) -> None:
        try:
            os.ftruncate(self._file.fileno(), self._sound)
            self._file.seek(self._sound)
        except OSError as error:
            self.close()  # whoever opens it next cuts the torn line off
            raise StoreUnavailable(f"{self.path}: a write failed and could not be taken back, so the store was closed: {error}") from None


def history(path: Path | str) -> Iterator[Diff]:
    """The exact diffs that a log holds, oldest first, without opening it for writing; raises BadInput.

    The graph after the n-th write is the empty graph after the first n of them.
    """
    truth = Truth()
    for record in _read(Path(path))[1]:
        diff = truth.difference(*elements_of(record))
        truth.apply(diff)
        yield diff


def elements_of(record: Mapping[str, Json]) -> tuple[dict[str, Node | None], dict[Identity, Edge | None]]:
    """A record's nodes by id and edges by identity; None for what is gone."""
    nodes: dict[str, Node | None] = {}
    edges: dict[Identity, Edge | None] = {}
    for claim in record["nodes"]:
        nodes[claim[0]] = Node(claim[0], tuple(claim[1]), claim[2]) if len(claim) == 3 else None
    for claim in record["edges"]:
        source, type, target, key = claim[:4]
        edges[source, type, target, key] = Edge(source, type, target, claim[4], key) if len(claim) == 5 else None
    return nodes, edges


def _record(diff: Diff) -> dict[str, Json]:
    nodes = [
        *map(removal_of, diff.removed_nodes),
        *map(account_of, diff.added_nodes),
        *(account_of(after) for _, after in diff.changed_nodes),
    ]
    edges = [
        *map(removal_of, diff.removed_edges),
        *map(account_of, diff.added_edges),
        *(account_of(after) for _, after in diff.changed_edges),
    ]
    return {"nodes": nodes, "edges": edges}


def _line(record: Json) -> bytes:
    try:
        text = json.dumps(record, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise BadInput(f"a property is not JSON and cannot be kept: {error}") from None
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _read(path: Path) -> tuple[int, list[Mapping[str, Json]]]:
    """How many bytes of a log are sound, and its records but for the head."""
    try:
        data = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise StoreUnavailable(f"{path}: cannot be read: {error}") from None
    records: list[Mapping[str, Json]] = []
    sound = 0
    while sound < len(data):
        end = data.find(b"\n", sound)
        record = _record_in(data[sound:end]) if end >= 0 else None
        if record is None:
            if _line(HEAD).startswith(data):
                break  # the head itself was torn
            _refuse_damage(path, data, sound, records)
            break
        records.append(record)
        sound = end + 1
    if records and records[0] != HEAD:
        raise BadInput(f"{path}: a log of another version: {str(dict(records[0]))[:100]}")
    return sound, records[1:]


def _refuse_damage(path: Path, data: bytes, sound: int, records: list[Mapping[str, Json]]) -> None:
    """Raise BadInput unless what follows is no more than one torn line at the end of a log."""
    if not records:
        raise BadInput(f"{path}: not a diff log, so it was not touched; give another path")
    end = data.find(b"\n", sound)
    if end >= 0 and data[end + 1 :].strip(b"\x00\n"):
        raise BadInput(f"{path}: record {len(records)} is damaged and others follow it; nothing was changed. Restore the file from a copy")


def _record_in(line: bytes) -> Mapping[str, Json] | None:
    check, _, text = line.partition(b" ")
    if check != b"%08x" % zlib.crc32(text):
        return None
    record = json.loads(text)
    return record if isinstance(record, dict) else None


def _opened(path: Path) -> io.FileIO:
    try:
        return io.FileIO(path, "r+b" if path.exists() else "w+b")  # unbuffered, so that nothing of a failed write is left for a later one
    except OSError as error:
        raise StoreUnavailable(f"{path}: cannot be opened: {error}") from None


def _locked(path: Path) -> IO[bytes]:
    """The lock of a log: a file beside it, held while the log is open and freed by the system if the process dies."""
    beside = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = beside.open("ab")
    except OSError as error:
        raise StoreUnavailable(f"{beside}: cannot be made: {error}") from None
    try:
        hold(lock)
    except OSError:
        lock.close()
        told = f"{path}: this store is open already, here or in another process; close it there or give another path"
        raise StoreUnavailable(told) from None
    return lock


def hold(lock: IO[Any]) -> None:
    """Lock an open file for this opening of it alone, until it is closed; raises OSError where another has it."""
    if os.name == "nt":  # untested
        import msvcrt

        msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder outlast a power failure, where the system can."""
    if os.name != "nt":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
