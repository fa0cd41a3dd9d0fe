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
from kgot_lab.graph.validation import MAX_ELEMENT_BYTES
from kgot_lab.io.processes import prevent_collection, register_for_forks
from kgot_lab.io.sqlite_snapshot import check_before_opening, private_copy
from kgot_lab.stores.hash_chain import SALVAGE_ADVICE
from kgot_lab.stores.log import is_nonempty_file, require_valid_path
from kgot_lab.stores.sql import json_text, parse_json
from kgot_lab.stores.sqlite.damage import (
    CHECKSUM_MISMATCH,
    CHECKSUM_SCHEMA,
    CHECKSUM_TRIGGERS,
    INSERT_CHECKSUM_TRIGGERS,
    VERIFICATION_TRIGGERS,
    add_checksums_since,
    enable_checksums,
    fill_checksums,
    find_damage,
    find_log_damage,
    lacks_checksums,
    last_row_numbers,
    read_wal_frames,
    warn_of_lost_changes,
)
from kgot_lab.stores.sqlite.tables import (
    GRAPH_TABLES,
    INDEX_NEW_NODES,
    JOURNAL_STATEMENTS,
    JOURNAL_TRIGGERS,
    Connection,
    Guard,
)

APPLICATION = 0x6B676C62  # "kglb": the application id of files made by this package
VERSION = 2  # 1 had no checksums of rows
_BUSY_TIMEOUT = 30.0  # seconds to wait for another process that is writing
_MIN_SQLITE_VERSION = (3, 38)  # the first SQLite with STRICT tables, memory shared by name, and ->>
# bytes of a file that is searched for damage at each opening, in about a second
MAX_CHECKED_BYTES = 32_000_000
# bytes of a row: those of an element, and what SQLite itself puts there; bounds what functions build
MAX_READ_BYTES = MAX_ELEMENT_BYTES + 1_000_000
MAX_WRITTEN_BYTES = 2 * MAX_READ_BYTES  # a row of the journal holds an element before and after
# bytes of a LIKE pattern: matching takes as long as pattern times text, and no time limit stops it
MAX_PATTERN_BYTES = 250


@dataclass(frozen=True, eq=False)
class GraphConnections:
    """The two connections to one graph, of which only the first can write."""

    writer: Connection
    reader: Connection
    guard: Guard  # of the writer, active only while a statement is prepared
    read_guard: Guard
    # the database and its log as they were opened, by device and number; none in memory
    files: Mapping[str, tuple[int, int]]

    def require_unmoved(self) -> None:
        """Raise StoreUnavailable if the file or its log was replaced since it was opened.

        What is written now would be lost.
        """
        for file, identity in self.files.items():
            status = _file_status(file)
            if status is not None and status.st_nlink > 1:
                problem = f"{file} got another name (a hard link) while open here: delete that"
                raise StoreUnavailable(f"{problem}; this change may not be kept")
            if status is None or (status.st_dev, status.st_ino) != identity:
                raise StoreUnavailable(
                    f"{file} was deleted or replaced while it was open here, so this change may not be kept; close the store and open it"
                    " again (copying or reading an open file by other means than SQLite's own lets other processes do that)"
                )

    def after_fork(self) -> None:
        """Detach the connections in a forked child.

        SQLite must not even close a connection there, and what it knows of the file's locks no longer holds.
        """
        prevent_collection((self.writer, self.reader))
        _OPEN_BEFORE_FORK.update(self.files.values())

    def close(self) -> None:
        """Close both connections, the writer last, which cleans up the file."""
        self.reader.close()
        self.writer.close()
        _OPEN_GRAPHS.discard(self)


_OPEN_GRAPHS: WeakSet[GraphConnections] = WeakSet()
# files that were open when this process was forked, by device and number
_OPEN_BEFORE_FORK: set[tuple[int, int]] = set()


def open_graph_file(path: Path | None) -> GraphConnections:
    """Open the graph in a file, creating it if there is none, or one in memory.

    Raises BadInput for a file of another kind, which is not changed, StoreUnavailable if the file cannot be
    opened, and StoreDamaged if it is damaged.
    """
    if sqlite3.sqlite_version_info < _MIN_SQLITE_VERSION:
        problem = f"this Python has SQLite {sqlite3.sqlite_version}"
        raise StoreUnavailable(f"{problem}; {'.'.join(map(str, _MIN_SQLITE_VERSION))} or newer is needed")
    if path is not None:
        _refuse_foreign(path)
    uri = f"file:/kgot_lab-{uuid4().hex}?vfs=memdb" if path is None else path.absolute().as_uri() + "?"
    connections: list[Connection] = []
    wal = None if path is None else read_wal_frames(path)
    try:
        connections.append(_connect(uri if path is None else f"{uri}mode=rwc"))
        if path is not None:
            warn_of_lost_changes(wal, connections[0], path)
        with connections[0].raise_callback_errors():
            _prepare_file(connections[0], path)
        connections.append(_connect(f"{uri}&mode=ro", MAX_READ_BYTES))
        return _guard_connections(*connections)
    except BaseException as error:
        for connection in connections:
            connection.close()
        if isinstance(error, sqlite3.Error):
            raise unavailable_error(error, path) or StoreUnavailable(f"{path}: {error}") from None
        # in what SQLite has to say of the damage
        if isinstance(error, UnicodeDecodeError) and path is not None:
            raise damaged_error(path, str(error)) from None
        raise


@contextmanager
def bulk_insert(writer: sqlite3.Connection) -> Iterator[None]:
    """Disable the triggers for each row while many rows are added in a transaction.

    Nothing is journalled, and the rows are indexed and get their checksums together. Nothing may be deleted
    meanwhile, since a new row could reuse its number.
    """
    last_numbers, triggers = last_row_numbers(writer), JOURNAL_TRIGGERS | INSERT_CHECKSUM_TRIGGERS
    active_triggers = {
        name for (name,) in writer.execute("SELECT name FROM temp.sqlite_master WHERE type = 'trigger'")
    } & triggers.keys()
    for name in active_triggers:
        writer.execute(f"DROP TRIGGER temp.{name}")
    writer.execute("INSERT INTO waiting VALUES (1)")
    yield
    writer.execute("DELETE FROM waiting")
    writer.execute(INDEX_NEW_NODES, (last_numbers["nodes"],))
    if active_triggers & INSERT_CHECKSUM_TRIGGERS.keys():  # none in memory
        add_checksums_since(writer, last_numbers)
    for name in active_triggers:
        writer.execute(triggers[name])


def unavailable_error(error: sqlite3.Error, path: Path | None) -> StoreUnavailable | None:
    """Return the error to raise if an SQLite error concerns the file rather than a statement, or None."""
    location, code = path or "the graph in memory", getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(
            f"{location}: another process has been writing to it for {_BUSY_TIMEOUT:g} s; try again when it is done"
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or str(error).endswith(CHECKSUM_MISMATCH):
        return damaged_error(Path(location), str(error))
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM):
        advice = "see that its folder is there, can be written to and has room"
        return StoreUnavailable(f"{location}: {error}; {advice}")
    return None


def _refuse_foreign(path: Path) -> None:
    """Raise BadInput unless a file is empty, absent or made by this package, judged by its head alone.

    Creates its folder if there is none.
    """
    require_valid_path(path)
    if not is_nonempty_file(path):
        return
    status = path.stat()
    if (status.st_dev, status.st_ino) in _OPEN_BEFORE_FORK:
        advice = 'open it in a process that is started anew (multiprocessing\'s "spawn"), or close it before forking'
        problem = "was open when this process was forked, and SQLite cannot lock it here"
        raise StoreUnavailable(f"{path} {problem}: {advice}")
    if status.st_nlink > 1:
        problem = f"{path} has other names (hard links), and SQLite keeps a log for each"
        raise StoreUnavailable(f"{problem}: delete those, or copy the file")
    check_before_opening(path, lambda connection: refuse_foreign_head(connection, path))


def is_own_file(connection: sqlite3.Connection) -> bool:
    """Return whether a file, opened elsewhere, says that this package made it.

    Raises sqlite3.Error if that cannot be read.
    """
    return _query_number(connection, "PRAGMA application_id") == APPLICATION


def refuse_foreign_head(connection: sqlite3.Connection, path: Path) -> None:
    """Raise BadInput if a file, opened elsewhere, is not made by this package or of a newer version.

    Raises sqlite3.Error if that cannot be read.
    """
    _require_own_format(connection, path)


def _require_own_format(connection: sqlite3.Connection, path: Path | None) -> int:
    """Return the version of a file's format. Raises BadInput for a foreign or newer one."""
    queries = ("PRAGMA application_id", "PRAGMA user_version")
    application, version = (_query_number(connection, query) for query in queries)
    if application != APPLICATION:
        problem = f"{path}: an SQLite file that something else made, so it was not touched"
        raise BadInput(f"{problem}; give another path")
    if version > VERSION:
        problem = f"{path}: made by a newer version of this package (format {version}, known is {VERSION})"
        raise BadInput(f"{problem}; update the package")
    return version


def _connect(uri: str, max_bytes: int = MAX_WRITTEN_BYTES) -> Connection:
    connection = sqlite3.connect(
        uri, _BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, uri=True, factory=Connection
    )
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max_bytes)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN_BYTES)
    return connection


def _prepare_file(writer: Connection, path: Path | None) -> None:
    """Create the tables in a new file, and set the options of the connection."""
    if not _query_number(writer, "SELECT count(*) FROM sqlite_master"):
        writer.execute("BEGIN IMMEDIATE")  # another process may be creating them too
        if not _query_number(writer, "SELECT count(*) FROM sqlite_master"):
            for statement in GRAPH_TABLES:
                writer.execute(statement)
            writer.execute(f"PRAGMA application_id = {APPLICATION}")
            writer.execute(f"PRAGMA user_version = {VERSION}")
        writer.execute("COMMIT")
    _require_own_format(writer, path)
    settings = "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "recursive_triggers = ON"
    for setting in (*settings, "cache_size = -65536"):
        writer.execute(f"PRAGMA {setting}").fetchall()
    writer.create_function("merged", 2, _merge_properties, deterministic=True)
    enable_checksums(writer)
    if path is not None:
        _complete_checksums(writer, path)
    checksum_triggers = (*CHECKSUM_TRIGGERS.values(), *VERIFICATION_TRIGGERS.values()) if path else ()
    for statement in (*JOURNAL_STATEMENTS, *checksum_triggers):
        writer.execute(statement)


def _complete_checksums(writer: Connection, path: Path) -> None:
    """Add the missing checksums of rows.

    Raises StoreDamaged if the existing ones of a file that is not too large show damage.
    """
    if is_old := _query_number(writer, "PRAGMA user_version") < VERSION:
        writer.execute("BEGIN IMMEDIATE")
        if _query_number(writer, "PRAGMA user_version") < VERSION:
            for statement in (*CHECKSUM_SCHEMA, f"PRAGMA user_version = {VERSION}"):
                writer.execute(statement)
            fill_checksums(writer)
        writer.execute("COMMIT")
    pages, page_size = (_query_number(writer, f"PRAGMA {name}") for name in ("page_count", "page_size"))
    if pages * page_size <= MAX_CHECKED_BYTES:
        if damage := find_damage(writer, GRAPH_TABLES):
            raise damaged_error(path, damage)
        if not is_old and lacks_checksums(writer):
            writer.execute("BEGIN IMMEDIATE")
            fill_checksums(writer)
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
    with private_copy(path) as copy:
        if damage := find_log_damage(copy):
            return FileSearch(damage)
        try:
            with closing(_connect(copy.path.as_uri())) as connection, connection.raise_callback_errors():
                version = _require_own_format(connection, path)
                enable_checksums(connection)
                queries = (f"SELECT count(*) FROM {kind}" for kind in ("nodes", "edges"))
                nodes, edges = (_query_number(connection, query) for query in queries)
                if version >= VERSION:
                    return FileSearch(find_damage(connection, GRAPH_TABLES), nodes, edges, True, copy.has_log)
                (damage,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
                return FileSearch("" if damage == "ok" else str(damage), nodes, edges, False, copy.has_log)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return FileSearch(str(error))


def is_open_in_process(path: Path) -> bool:
    """Return whether a store of this process has a file open.

    Reading such a file without SQLite would release its locks (POSIX).
    """
    status = _file_status(str(path))
    graphs = list(_OPEN_GRAPHS)
    return status is not None and any((status.st_dev, status.st_ino) in g.files.values() for g in graphs)


def require_closed(path: Path) -> None:
    """Raise StoreUnavailable if a store of this process has a file open."""
    if is_open_in_process(path):
        advice = "close that store, or have it searched by its verify()"
        raise StoreUnavailable(f"{path} is open in this program: {advice}")


def damaged_error(path: Path, damage: str) -> StoreDamaged:
    """Create the error for a damaged file."""
    return StoreDamaged(f"{path} is damaged ({damage}); nothing was changed: {SALVAGE_ADVICE} {path}")


def _query_number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


def _guard_connections(writer: Connection, reader: Connection) -> GraphConnections:
    guards = Guard(allows_writes=True, is_active=False), Guard(allows_writes=False)
    graph = GraphConnections(writer, reader, *guards, _database_files(writer))
    register_for_forks(graph)
    _OPEN_GRAPHS.add(graph)
    reader.execute("PRAGMA query_only = ON")
    for connection, guard in ((writer, graph.guard), (reader, graph.read_guard)):
        connection.set_authorizer(guard)
    return graph


def _database_files(writer: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    _query_number(writer, "SELECT count(*) FROM sqlite_master")  # the log is created at the first read
    file = str(writer.execute("PRAGMA database_list").fetchone()[2])
    statuses = {name: _file_status(name) for name in (file, f"{file}-wal") if file}
    return {name: (status.st_dev, status.st_ino) for name, status in statuses.items() if status is not None}


def _file_status(file: str) -> os.stat_result | None:
    """Return the status of a file, or None if it does not exist."""
    try:
        return Path(file).stat()
    except OSError:
        return None


def _merge_properties(old_text: str, new_text: str) -> str:
    """Merge two JSON objects, with the new value for a name in both."""
    values = parse_json(new_text, "properties")
    if not isinstance(values, dict):
        return new_text
    return json_text({**parse_json(old_text, "properties"), **values}, "properties")
