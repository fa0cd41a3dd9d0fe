"""Recover from a damaged SQLite graph the rows that are unchanged since they were written."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable
from kgot_lab.graph.validation import fit_edge, fit_node
from kgot_lab.io.sqlite_snapshot import pad_to_size, private_copy
from kgot_lab.stores.log import Salvaged, set_aside
from kgot_lab.stores.sqlite.damage import SELECT_ALL, SELECT_SOUND, can_sum
from kgot_lab.stores.sqlite.file import refuse_foreign_head, require_closed
from kgot_lab.stores.sqlite.store import Sqlite
from kgot_lab.stores.sqlite.tables import Connection, edge_of_sqlite, node_of_sqlite
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Diff, Edge, Node

# Recover from a damaged SQLite graph the rows that are unchanged since they were written.

# the bytes that every process with the file open locks (sqlite.org/c3ref/io_methods, os_unix.c)
_SHARED, _SHARES = (0x40000002, 510)


def salvage_sqlite(path: Path) -> Salvaged:
    """Replace a damaged file by its undamaged rows.

    An edge that lost one of its nodes is dropped too. If it raises, nothing was changed: BadInput for a file
    that this package did not make or of a newer version, StoreDamaged if no row can be read, and
    StoreUnavailable if another process has it open.
    """
    place = path.resolve()
    require_closed(place)
    _require_alone(place)
    with private_copy(place) as copied:
        pad_to_size(copied.path)
        with closing(sqlite3.connect(copied.path, isolation_level=None, factory=Connection)) as damaged:
            with suppress(sqlite3.Error, UnicodeDecodeError):
                refuse_foreign_head(damaged, path)
            can_sum(damaged)
            nodes = {node.id: node for row in _rows(damaged, "nodes") for node in _fit_nodes(row)}
            read = (edge for row in _rows(damaged, "edges") for edge in _fit_edges(row))
            edges = {edge.identity: edge for edge in read if {edge.source, edge.target} <= nodes.keys()}
            told = f"kept {_share(damaged, 'node', len(nodes))} and {_share(damaged, 'edge', len(edges))}"
    if not nodes:
        raise StoreDamaged(f"{path}: not one whole row could be read; it stays as it is: restore a copy")
    beside = place.with_name(place.name + ".new")
    try:
        beside.unlink(missing_ok=True)
        with Sqlite(beside) as store:
            store.apply(Diff(added_nodes=tuple(nodes.values()), added_edges=tuple(edges.values())))
        kept = _kept(place)
        beside.replace(place)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StoreUnavailable(
            f"{path}: could not be written anew, and is as it was: {error.strerror or error}"
        ) from None
    for part in ("-wal", "-shm"):
        place.with_name(place.name + part).unlink(missing_ok=True)
    return Salvaged(kept, told)


def _kept(place: Path) -> Path:
    """Copy the damaged file, with the log beside it, and return the path of the copy."""
    kept = set_aside(place)
    with suppress(FileNotFoundError):
        kept.with_name(kept.name + "-wal").write_bytes(place.with_name(place.name + "-wal").read_bytes())
    return kept


def _share(damaged: sqlite3.Connection, kind: str, kept: int) -> str:
    """Format how many of how many were recovered.

    The total comes from the rows or their checksums. If neither can be counted, it is the number recovered.
    """
    there = kept
    for question in (f"SELECT count(*) FROM {kind}s", f"SELECT count(*) FROM sums WHERE kind = '{kind}s'"):
        with suppress(sqlite3.Error, UnicodeDecodeError):
            there = max(there, damaged.execute(question).fetchone()[0])
    return f"{kept:,} of {format_count(there, kind)}"


def _require_alone(place: Path) -> None:
    """Raise StoreUnavailable if another process has a file open.

    Nothing is written.
    """
    if os.name == "nt":  # Windows does not allow replacing a file that another process has open
        return
    import fcntl

    with suppress(FileNotFoundError), place.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _SHARES, _SHARED)
        except OSError:
            raise StoreUnavailable(
                f"{place} is open in another process now: close that store first"
            ) from None


def _rows(damaged: Connection, kind: str) -> Iterator[tuple[object, ...]]:
    """Yield the rows that match their checksum, read from both ends as far as the file can be read.

    Yields all rows if the file has no checksums yet.
    """
    select = SELECT_SOUND[kind]
    with suppress(sqlite3.Error, UnicodeDecodeError):
        if not damaged.execute("SELECT 1 FROM sqlite_master WHERE name = 'sums'").fetchone():
            select = SELECT_ALL[kind]
    for order in ("", " DESC"):
        with suppress(sqlite3.Error, UnicodeDecodeError), damaged.surfacing():
            yield from damaged.execute(f"{select} ORDER BY row.number{order}")


def _fit_nodes(row: tuple[object, ...]) -> Iterator[Node]:
    with suppress(BadInput, ValueError, TypeError):
        yield fit_node(node_of_sqlite(row))


def _fit_edges(row: tuple[object, ...]) -> Iterator[Edge]:
    with suppress(BadInput, ValueError, TypeError):
        yield fit_edge(edge_of_sqlite(row))
