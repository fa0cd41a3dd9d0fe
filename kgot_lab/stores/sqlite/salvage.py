"""What can be kept of a damaged SQLite graph: the rows that are as they were written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable
from kgot_lab.graph.gate import fit_edge, fit_node
from kgot_lab.stores.log import set_aside
from kgot_lab.stores.sqlite.rows import edge_of_sqlite, node_of_sqlite
from kgot_lab.stores.sqlite.store import Sqlite
from kgot_lab.stores.sqlite.sums import SELECT_ALL, SELECT_SOUND, can_sum
from kgot_lab.types import Diff, Edge, Node
from kgot_lab.writing import write_whole


def salvage_sqlite(path: Path) -> Path:
    """Put the sound rows of a damaged file in its place; returns where the damaged one is kept now.

    An edge that lost one of its nodes goes too. Raises StoreDamaged where not even the tables can be read, and StoreUnavailable where
    somebody is writing to it now.
    """
    place = path.resolve()
    _require_alone(place)
    kept = set_aside(place)
    if (log := place.with_name(place.name + "-wal")).exists():
        write_whole(kept.with_name(kept.name + "-wal"), log.read_bytes(), "the damaged log")
    with closing(sqlite3.connect(place, isolation_level=None)) as damaged:
        can_sum(damaged)
        nodes = {node.id: node for row in _rows(damaged, "nodes") for node in _fit_nodes(row)}
        read = (edge for row in _rows(damaged, "edges") for edge in _fit_edges(row))
        edges = {edge.identity: edge for edge in read if {edge.source, edge.target} <= nodes.keys()}
    if not nodes:
        raise StoreDamaged(f"{path}: not one whole row could be read; it stays as it is: restore a copy")
    beside = place.with_name(place.name + ".new")
    beside.unlink(missing_ok=True)
    with Sqlite(beside) as store:
        store.apply(Diff(added_nodes=tuple(nodes.values()), added_edges=tuple(edges.values())))
    beside.replace(place)
    for part in ("-wal", "-shm"):
        place.with_name(place.name + part).unlink(missing_ok=True)
    return kept


def _require_alone(place: Path) -> None:
    with closing(sqlite3.connect(place, isolation_level=None, timeout=0)) as connection:
        try:
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StoreUnavailable(f"{place} is being written to now: close that store first") from None
        except sqlite3.DatabaseError:  # too damaged to say, which is what a salvage is for
            pass


def _rows(damaged: sqlite3.Connection, kind: str) -> Iterator[tuple[object, ...]]:
    """The rows that have their checksum, read from both ends as far as the file can be read; all where the file has no checksums yet."""
    select = SELECT_SOUND[kind]
    with suppress(sqlite3.Error, UnicodeDecodeError):
        if not damaged.execute("SELECT 1 FROM sqlite_master WHERE name = 'sums'").fetchone():
            select = SELECT_ALL[kind]
    for order in ("", " DESC"):
        with suppress(sqlite3.Error, UnicodeDecodeError):
            yield from damaged.execute(f"{select} ORDER BY row.number{order}")


def _fit_nodes(row: tuple[object, ...]) -> Iterator[Node]:
    with suppress(BadInput, ValueError, TypeError):
        yield fit_node(node_of_sqlite(row))


def _fit_edges(row: tuple[object, ...]) -> Iterator[Edge]:
    with suppress(BadInput, ValueError, TypeError):
        yield fit_edge(edge_of_sqlite(row))
