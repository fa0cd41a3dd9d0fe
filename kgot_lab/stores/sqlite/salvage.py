"""Recover from a damaged SQLite graph the rows that are unchanged since they were written."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable
from kgot_lab.graph.validation import validate_edge, validate_node
from kgot_lab.io.files import back_up_damaged_file
from kgot_lab.io.sqlite.connection import Connection
from kgot_lab.io.sqlite.copies import pad_to_size, private_copy
from kgot_lab.io.sqlite.file import require_closed
from kgot_lab.stores.sql import edge_from_row, node_from_row
from kgot_lab.stores.sqlite.damage import SELECT_SOUND_ROWS, enable_checksums
from kgot_lab.stores.sqlite.file import require_own_format
from kgot_lab.stores.sqlite.store import Sqlite
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Diff, Edge, Node

_Row = tuple[object, ...]
_Element = TypeVar("_Element", Node, Edge)
# the bytes that every process with the file open locks (sqlite.org/c3ref/io_methods, os_unix.c)
_LOCK_START, _LOCK_LENGTH = (0x40000002, 510)


@dataclass(frozen=True)
class SalvageResult:
    """The location of the copy of a damaged file, and how much of it is in the new one."""

    damaged_copy: Path
    summary: str


def salvage_sqlite(path: Path) -> SalvageResult:
    """Replace a damaged file by its undamaged rows.

    An edge that lost one of its nodes is dropped too. If it raises, nothing was changed: BadInput for a file
    that this package did not make or of another version, StoreDamaged if no row can be read, and
    StoreUnavailable if another process has it open.
    """
    source = path.resolve()
    require_closed(source)
    _require_unlocked(source)
    with private_copy(source) as copy:
        pad_to_size(copy.path)
        with closing(sqlite3.connect(copy.path, isolation_level=None, factory=Connection)) as damaged:
            with suppress(sqlite3.Error, UnicodeDecodeError):
                require_own_format(damaged, path)
            enable_checksums(damaged)
            read_nodes = _valid(_sound_rows(damaged, "nodes"), lambda row: validate_node(node_from_row(row)))
            nodes = {node.id: node for node in read_nodes}
            read_edges = _valid(_sound_rows(damaged, "edges"), lambda row: validate_edge(edge_from_row(row)))
            edges = {edge.identity: edge for edge in read_edges if {edge.source, edge.target} <= nodes.keys()}
            summary = f"kept {_format_share(damaged, 'node', len(nodes))} and {_format_share(damaged, 'edge', len(edges))}"
    if not nodes:
        raise StoreDamaged(f"{path}: not one whole row could be read; it stays as it is: restore a copy")
    replacement = source.with_name(source.name + ".new")
    left = [replacement.with_name(replacement.name + part) for part in ("", "-wal", "-shm")]
    try:
        for file in left:  # by a salvage that was killed
            file.unlink(missing_ok=True)
        with Sqlite(replacement) as store:
            store.apply(Diff(added_nodes=tuple(nodes.values()), added_edges=tuple(edges.values())))
        damaged_copy = back_up_damaged_file(source)
        with suppress(FileNotFoundError):  # the log beside it
            wal = source.with_name(source.name + "-wal").read_bytes()
            damaged_copy.with_name(damaged_copy.name + "-wal").write_bytes(wal)
        replacement.replace(source)
    except (OSError, StoreUnavailable) as error:
        replacement.unlink(missing_ok=True)
        problem = "could not be written again, and is as it was"
        raise StoreUnavailable(f"{path}: {problem}: {getattr(error, 'strerror', None) or error}") from None
    for part in ("-wal", "-shm"):
        source.with_name(source.name + part).unlink(missing_ok=True)
    return SalvageResult(damaged_copy, summary)


def _format_share(damaged: sqlite3.Connection, kind: str, recovered: int) -> str:
    """Format how many of how many were recovered.

    The total comes from the rows or their checksums. If neither can be counted, it is the number recovered.
    """
    total = recovered
    for query in (f"SELECT count(*) FROM {kind}s", f"SELECT count(*) FROM sums WHERE kind = '{kind}s'"):
        with suppress(sqlite3.Error, UnicodeDecodeError):
            total = max(total, damaged.execute(query).fetchone()[0])
    return f"{recovered:,} of {format_count(total, kind)}"


def _require_unlocked(path: Path) -> None:
    """Raise StoreUnavailable if another process has a file open.

    Nothing is written.
    """
    if os.name == "nt":  # Windows does not allow replacing a file that another process has open
        return
    import fcntl

    with suppress(FileNotFoundError), path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCK_LENGTH, _LOCK_START)
        except OSError:
            raise StoreUnavailable(f"{path} is open in another process now: close that store first") from None


def _sound_rows(damaged: Connection, kind: str) -> Iterator[tuple[object, ...]]:
    """Yield the rows that match their checksum, read from both ends as far as the file can be read."""
    for order in ("", " DESC"):
        with suppress(sqlite3.Error, UnicodeDecodeError), damaged.raise_callback_errors():
            yield from damaged.execute(f"{SELECT_SOUND_ROWS[kind]} ORDER BY row.number{order}")


def _valid(rows: Iterable[_Row], parse: Callable[[_Row], _Element]) -> Iterator[_Element]:
    """Yield what a function makes of rows, without those that it refuses."""
    for row in rows:
        with suppress(BadInput, ValueError, TypeError):
            yield parse(row)
