"""Open an SQLite file with a graph, recognize such a file, and search it for damage."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4
from weakref import WeakSet

from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable
from kgot_lab.graph.validation import MOST_KEPT
from kgot_lab.io.processes import keep_for_ever, tell_of_forks
from kgot_lab.io.sqlite_snapshot import check_before_opening, private_copy
from kgot_lab.stores.hash_chain import SALVAGE
from kgot_lab.stores.log import holds_something, require_path
from kgot_lab.stores.sql import json_text, parsed_json
from kgot_lab.stores.sqlite.damage import (
    ARRIVING,
    GUARDING,
    NOT_AS_WRITTEN,
    SUMMING,
    SUMS,
    can_sum,
    damage_in,
    damage_to_log,
    fill_since,
    fill_sums,
    lacks_sums,
    newest,
    wal_frames,
    warn_of_lost,
)
from kgot_lab.stores.sqlite.tables import GRAPH_TABLES, INDEX_SINCE, JOURNAL, RECORDERS, Connection, Guard

APPLICATION = 0x6B676C62  # "kglb": the application id of files made by this package
VERSION = 2  # 1 had no checksums of rows
_PATIENCE = 30.0  # seconds to wait for another process that is writing
_OLDEST = (3, 38)  # the first SQLite with STRICT tables, memory shared by name, and ->>
CHECKED = 32_000_000  # bytes of a file that is searched for damage at each opening, in about a second
# bytes of a row: those of an element, and what SQLite itself puts there; bounds what functions build
MOST_READ = MOST_KEPT + 1_000_000
MOST_WRITTEN = 2 * MOST_READ  # a row of the journal holds an element before and after
# bytes of a LIKE pattern: matching takes as long as pattern times text, and no time limit stops it
MOST_PATTERN = 250


@dataclass(frozen=True, eq=False)
class Opened:
    """The two connections to one graph, of which only the first can write."""

    writer: Connection
    reader: Connection
    guard: Guard  # of the writer, active only while a statement is prepared
    read_guard: Guard
    # the database and its log as they were opened, by device and number; none in memory
    files: Mapping[str, tuple[int, int]]

    def refuse_if_moved(self) -> None:
        """Raise StoreUnavailable if the file or its log was replaced since it was opened.

        What is written now would be lost.
        """
        for file, identity in self.files.items():
            there = _told_of(file)
            if there is not None and there.st_nlink > 1:
                raise StoreUnavailable(
                    f"{file} got another name (a hard link) while open here: delete that; this change may not be kept"
                )
            if there is None or (there.st_dev, there.st_ino) != identity:
                raise StoreUnavailable(
                    f"{file} was deleted or replaced while it was open here, so this change may not be kept; close the store and open it"
                    " again (copying or reading an open file by other means than SQLite's own lets other processes do that)"
                )

    def forked(self) -> None:
        """Detach the connections in a forked child.

        SQLite must not even close a connection there, and what it knows of the file's locks no longer holds.
        """
        keep_for_ever((self.writer, self.reader))
        _LOCKED_ELSEWHERE.update(self.files.values())

    def close(self) -> None:
        """Close both connections, the writer last, which cleans up the file."""
        self.reader.close()
        self.writer.close()
        _OPEN.discard(self)


_OPEN: WeakSet[Opened] = WeakSet()
# files that were open when this process was forked, by device and number
_LOCKED_ELSEWHERE: set[tuple[int, int]] = set()


def opened_file(path: Path | None) -> Opened:
    """Open the graph in a file, creating it if there is none, or one in memory.

    Raises BadInput for a file of another kind, which is not changed, StoreUnavailable if the file cannot be
    opened, and StoreDamaged if it is damaged.
    """
    if sqlite3.sqlite_version_info < _OLDEST:
        raise StoreUnavailable(
            f"this Python has SQLite {sqlite3.sqlite_version}; {'.'.join(map(str, _OLDEST))} or newer is needed"
        )
    if path is not None:
        _refuse_foreign(path)
    place = f"file:/kgot_lab-{uuid4().hex}?vfs=memdb" if path is None else path.absolute().as_uri() + "?"
    connections: list[Connection] = []
    log = None if path is None else wal_frames(path)
    try:
        connections.append(_connected(place if path is None else f"{place}mode=rwc"))
        if path is not None:
            warn_of_lost(log, connections[0], path)
        with connections[0].surfacing():
            _prepare(connections[0], path)
        connections.append(_connected(f"{place}&mode=ro", MOST_READ))
        return _guarded(*connections)
    except BaseException as error:
        for connection in connections:
            connection.close()
        if isinstance(error, sqlite3.Error):
            raise unavailable(error, path) or StoreUnavailable(f"{path}: {error}") from None
        # in what SQLite has to say of the damage
        if isinstance(error, UnicodeDecodeError) and path is not None:
            raise damaged(path, str(error)) from None
        raise


@contextmanager
def in_bulk(writer: sqlite3.Connection) -> Iterator[None]:
    """Disable the triggers for each row while many rows are added in a transaction.

    Nothing is journalled, and the rows are indexed and get their checksums together. Nothing may be deleted
    meanwhile, since a new row could reuse its number.
    """
    before, triggers = newest(writer), RECORDERS | ARRIVING
    there = {
        name for (name,) in writer.execute("SELECT name FROM temp.sqlite_master WHERE type = 'trigger'")
    } & triggers.keys()
    for name in there:
        writer.execute(f"DROP TRIGGER temp.{name}")
    writer.execute("INSERT INTO waiting VALUES (1)")
    yield
    writer.execute("DELETE FROM waiting")
    writer.execute(INDEX_SINCE, (before["nodes"],))
    if there & ARRIVING.keys():  # none in memory
        fill_since(writer, before)
    for name in there:
        writer.execute(triggers[name])


def unavailable(error: sqlite3.Error, path: Path | None) -> StoreUnavailable | None:
    """Return the error to raise if an SQLite error concerns the file rather than a statement, or None."""
    where, code = path or "the graph in memory", getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(
            f"{where}: another process has been writing to it for {_PATIENCE:g} s; try again when it is done"
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or str(error).endswith(NOT_AS_WRITTEN):
        return damaged(Path(where), str(error))
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM):
        return StoreUnavailable(
            f"{where}: {error}; see that its folder is there, can be written to and has room"
        )
    return None


def _refuse_foreign(path: Path) -> None:
    """Raise BadInput unless a file is empty, absent or made by this package, judged by its head alone.

    Creates its folder if there is none.
    """
    require_path(path)
    if not holds_something(path):
        return
    there = path.stat()
    if (there.st_dev, there.st_ino) in _LOCKED_ELSEWHERE:
        how = 'open it in a process that is started anew (multiprocessing\'s "spawn"), or close it before forking'
        raise StoreUnavailable(
            f"{path} was open when this process was forked, and SQLite cannot lock it here: {how}"
        )
    if there.st_nlink > 1:
        raise StoreUnavailable(
            f"{path} has other names (hard links), and SQLite keeps a log for each: delete those, or copy the file"
        )
    check_before_opening(path, lambda alone: refuse_foreign_head(alone, path))


def is_own_file(connection: sqlite3.Connection) -> bool:
    """Return whether a file, opened elsewhere, says that this package made it.

    Raises sqlite3.Error if that cannot be read.
    """
    return _asked(connection, "PRAGMA application_id") == APPLICATION


def refuse_foreign_head(connection: sqlite3.Connection, path: Path) -> None:
    """Raise BadInput if a file, opened elsewhere, is not made by this package or of a newer version.

    Raises sqlite3.Error if that cannot be read.
    """
    _refuse_unless_ours(
        _asked(connection, "PRAGMA application_id"), _asked(connection, "PRAGMA user_version"), path
    )


def _refuse_unless_ours(application: int, version: int, path: Path | None) -> None:
    if application != APPLICATION:
        raise BadInput(
            f"{path}: an SQLite file that something else made, so it was not touched; give another path"
        )
    if version > VERSION:
        raise BadInput(
            f"{path}: made by a newer version of this package (format {version}, known is {VERSION}); update the package"
        )


def _connected(uri: str, most: int = MOST_WRITTEN) -> Connection:
    connection = sqlite3.connect(
        uri, _PATIENCE, isolation_level=None, check_same_thread=False, uri=True, factory=Connection
    )
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MOST_PATTERN)
    return connection


def _prepare(writer: Connection, path: Path | None) -> None:
    """Create the tables in a new file, and set the options of the connection."""
    if not _asked(writer, "SELECT count(*) FROM sqlite_master"):
        writer.execute("BEGIN IMMEDIATE")  # another process may be creating them too
        if not _asked(writer, "SELECT count(*) FROM sqlite_master"):
            for statement in GRAPH_TABLES:
                writer.execute(statement)
            writer.execute(f"PRAGMA application_id = {APPLICATION}")
            writer.execute(f"PRAGMA user_version = {VERSION}")
        writer.execute("COMMIT")
    _refuse_unless_ours(_asked(writer, "PRAGMA application_id"), _asked(writer, "PRAGMA user_version"), path)
    for setting in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        "recursive_triggers = ON",
        "cache_size = -65536",
    ):
        writer.execute(f"PRAGMA {setting}").fetchall()
    writer.create_function("merged", 2, _merged, deterministic=True)
    can_sum(writer)
    if path is not None:
        _sum_up(writer, path)
    for statement in JOURNAL if path is None else (*JOURNAL, *SUMMING.values(), *GUARDING.values()):
        writer.execute(statement)


def _sum_up(writer: Connection, path: Path) -> None:
    """Add the missing checksums of rows.

    Raises StoreDamaged if the existing ones of a file that is not too large show damage.
    """
    if old := _asked(writer, "PRAGMA user_version") < VERSION:
        writer.execute("BEGIN IMMEDIATE")
        if _asked(writer, "PRAGMA user_version") < VERSION:
            for statement in (*SUMS, f"PRAGMA user_version = {VERSION}"):
                writer.execute(statement)
            fill_sums(writer)
        writer.execute("COMMIT")
    if _asked(writer, "PRAGMA page_count") * _asked(writer, "PRAGMA page_size") <= CHECKED:
        if damage := damage_in(writer, GRAPH_TABLES):
            raise damaged(path, damage)
        if not old and lacks_sums(writer):
            writer.execute("BEGIN IMMEDIATE")
            fill_sums(writer)
            writer.execute("COMMIT")


@dataclass(frozen=True)
class FileSearch:
    """The result of a search of a graph's file.

    It contains what is wrong or "", the size of the graph, and whether the file has checksums and a log.
    """

    damage: str
    nodes: int = 0
    edges: int = 0
    has_sums: bool = True
    has_log: bool = False


def search_file(path: Path) -> FileSearch:
    """Search a graph's file and its log for damage, in a copy.

    Raises BadInput for a file that this package did not make, and StoreUnavailable.
    """
    require_closed(path)
    with private_copy(path) as copied:
        if said := damage_to_log(copied):
            return FileSearch(said)
        try:
            with closing(_connected(copied.path.as_uri())) as connection, connection.surfacing():
                _refuse_unless_ours(
                    _asked(connection, "PRAGMA application_id"),
                    version := _asked(connection, "PRAGMA user_version"),
                    path,
                )
                can_sum(connection)
                nodes, edges = (
                    _asked(connection, f"SELECT count(*) FROM {kind}") for kind in ("nodes", "edges")
                )
                if version >= VERSION:
                    return FileSearch(damage_in(connection, GRAPH_TABLES), nodes, edges, True, copied.has_log)
                (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
                return FileSearch("" if said == "ok" else str(said), nodes, edges, False, copied.has_log)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return FileSearch(str(error))


def is_open_in_process(path: Path) -> bool:
    """Return whether a store of this process has a file open.

    Reading such a file without SQLite would release its locks (POSIX).
    """
    there = _told_of(str(path))
    return there is not None and any(
        (there.st_dev, there.st_ino) in graph.files.values() for graph in list(_OPEN)
    )


def require_closed(path: Path) -> None:
    """Raise StoreUnavailable if a store of this process has a file open."""
    if is_open_in_process(path):
        raise StoreUnavailable(
            f"{path} is open in this program: close that store, or have it searched by its verify()"
        )


def damaged(path: Path, what: str) -> StoreDamaged:
    """Create the error for a damaged file."""
    return StoreDamaged(f"{path} is damaged ({what}); nothing was changed: {SALVAGE} {path}")


def _asked(connection: sqlite3.Connection, question: str) -> int:
    return int(connection.execute(question).fetchone()[0])


def _guarded(writer: Connection, reader: Connection) -> Opened:
    graph = Opened(writer, reader, Guard(writes=True, awake=False), Guard(writes=False), _files_of(writer))
    tell_of_forks(graph)
    _OPEN.add(graph)
    reader.execute("PRAGMA query_only = ON")
    for connection, guard in ((writer, graph.guard), (reader, graph.read_guard)):
        connection.set_authorizer(guard)
    return graph


def _files_of(writer: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    _asked(writer, "SELECT count(*) FROM sqlite_master")  # the log is created at the first read
    file = str(writer.execute("PRAGMA database_list").fetchone()[2])
    found = {name: _told_of(name) for name in (file, f"{file}-wal") if file}
    return {name: (there.st_dev, there.st_ino) for name, there in found.items() if there is not None}


def _told_of(file: str) -> os.stat_result | None:
    """Return the status of a file, or None if it does not exist."""
    try:
        return Path(file).stat()
    except OSError:
        return None


def _merged(old: str, new: str) -> str:
    """Merge two JSON objects, with the new value for a name in both."""
    values = parsed_json(new, "properties")
    return (
        json_text({**parsed_json(old, "properties"), **values}, "properties")
        if isinstance(values, dict)
        else new
    )
