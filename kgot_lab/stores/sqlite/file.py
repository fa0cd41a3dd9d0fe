"""Open an SQLite file with a graph, recognize such a file, and search it for damage."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4
from weakref import WeakSet

from kgot_lab.errors import LabError, StoreDamaged, StoreUnavailable
from kgot_lab.graph.validation import MAX_ELEMENT_BYTES
from kgot_lab.io.files import is_nonempty_file, require_valid_path
from kgot_lab.io.processes import prevent_collection
from kgot_lab.io.sqlite_files import (
    SQLiteFile,
    connect,
    damage_error,
    file_error,
    immediate_transaction,
    is_searched_at_opening,
    private_copy,
    query_number,
    refuse_foreign_head,
)
from kgot_lab.stores.hash_chain import SALVAGE_ADVICE
from kgot_lab.stores.sql import json_text, parse_json
from kgot_lab.stores.sqlite.damage import (
    CHECKSUM_MISMATCH,
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
_VERSION = 2  # 1 had no checksums of rows
_MIN_SQLITE_VERSION = (3, 38)  # the first SQLite with STRICT tables, memory shared by name, and ->>
# bytes of a row: those of an element, and what SQLite itself puts there; bounds what functions build
MAX_READ_BYTES = MAX_ELEMENT_BYTES + 1_000_000
MAX_WRITTEN_BYTES = 2 * MAX_READ_BYTES  # a row of the journal holds an element before and after
# bytes of a LIKE pattern: matching takes as long as pattern times text, and no time limit stops it
MAX_PATTERN_BYTES = 250


# files that were open when this process was forked, by device and number
_OPEN_BEFORE_FORK: set[tuple[int, int]] = set()


class GraphFile(SQLiteFile):
    """A graph in an SQLite file or in memory, with two connections, of which only the first can write.

    Raises BadInput for a file of another kind, which is not changed, StoreUnavailable if the file cannot be
    opened, and StoreDamaged if it is damaged.
    """

    settings = (*SQLiteFile.settings, "foreign_keys = ON", "recursive_triggers = ON")
    _connection: Connection
    _reader: Connection

    def __init__(self, path: Path | None) -> None:
        if sqlite3.sqlite_version_info < _MIN_SQLITE_VERSION:
            problem = f"this Python has SQLite {sqlite3.sqlite_version}"
            raise StoreUnavailable(f"{problem}; {'.'.join(map(str, _MIN_SQLITE_VERSION))} or newer is needed")
        # that of the writer is active only while a statement is prepared
        self._guard, self._read_guard = Guard(allows_writes=True, is_active=False), Guard(allows_writes=False)
        # the database and its log as they were opened, by device and number; none in memory
        self._files: dict[str, tuple[int, int]] = {}
        if path is not None:
            require_valid_path(path)
            if is_nonempty_file(path):
                _refuse_other_names(path)
        super().__init__(path)

    def after_fork(self) -> None:
        """Detach the connections in a forked child, where what SQLite knows of the file's locks does not hold."""
        if self._over is None:
            prevent_collection(self._reader)
            _OPEN_BEFORE_FORK.update(self._files.values())
        super().after_fork()

    def _require_unmoved(self) -> None:
        """Raise StoreUnavailable if the file or its log was replaced since it was opened.

        What is written now would be lost.
        """
        for file, identity in self._files.items():
            status = _file_status(file)
            if status is not None and status.st_nlink > 1:
                problem = f"{file} got another name (a hard link) while open here: delete that"
                raise StoreUnavailable(f"{problem}; this change may not be kept")
            if status is None or (status.st_dev, status.st_ino) != identity:
                raise StoreUnavailable(
                    f"{file} was deleted or replaced while it was open here, so this change may not be kept; close the store and open it"
                    " again (copying or reading an open file by other means than SQLite's own lets other processes do that)"
                )

    def _connect(self) -> Connection:
        path = self._path
        if path is None:
            self._uri = f"file:/kgot_lab-{uuid4().hex}?vfs=memdb"
            return _connect(self._uri)
        self._uri, wal = f"{path.absolute().as_uri()}?", read_wal_frames(path)
        connection = _connect(f"{self._uri}mode=rwc")
        try:
            warn_of_lost_changes(wal, connection, path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        with self._connection.raise_callback_errors():
            super()._prepare(connection)
        self._reader = _connect(f"{self._uri}&mode=ro", MAX_READ_BYTES)
        self._files = _database_files(connection)
        _OPEN_GRAPHS.add(self)
        self._reader.execute("PRAGMA query_only = ON")
        for each, guard in ((self._connection, self._guard), (self._reader, self._read_guard)):
            each.set_authorizer(guard)

    def _refuse_damage(self, connection: sqlite3.Connection) -> None:
        """Nothing here: `_complete_checksums` searches for damage, together with that which SQLite does not find."""

    def _refuse_foreign(self, connection: sqlite3.Connection) -> None:
        require_own_format(connection, self._path)

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        pragmas = (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {_VERSION}")
        for statement in (*GRAPH_TABLES, *pragmas):
            connection.execute(statement)

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        self._connection.create_function("merged", 2, _merge_properties, deterministic=True)
        enable_checksums(connection)
        if self._path is not None:
            _complete_checksums(self._connection, self._path)
        all_triggers = (*CHECKSUM_TRIGGERS.values(), *VERIFICATION_TRIGGERS.values())
        checksum_triggers = all_triggers if self._path else ()
        for statement in (*JOURNAL_STATEMENTS, *checksum_triggers):
            connection.execute(statement)

    def _close_connections(self) -> None:
        self._reader.close()
        self._connection.close()  # last, since it cleans up the file
        _OPEN_GRAPHS.discard(self)

    def _explain(self, error: Exception) -> LabError:
        return unavailable_error(error, self._path) or StoreUnavailable(f"{self._location}: {error}")

    @property
    def _location(self) -> str:
        return str(self._path or "the graph in memory")


_OPEN_GRAPHS: WeakSet[GraphFile] = WeakSet()


@contextmanager
def bulk_insert(writer: sqlite3.Connection) -> Iterator[None]:
    """Disable the triggers for each row while many rows are added in a transaction.

    Nothing is journalled, and the rows are indexed and get their checksums together. Nothing may be deleted
    meanwhile, since a new row could reuse its number.
    """
    last_numbers, triggers = last_row_numbers(writer), JOURNAL_TRIGGERS | INSERT_CHECKSUM_TRIGGERS
    active = writer.execute("SELECT name FROM temp.sqlite_master WHERE type = 'trigger'")
    active_triggers = {name for (name,) in active} & triggers.keys()
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


def unavailable_error(error: Exception, path: Path | None) -> StoreUnavailable | None:
    """Return the error to raise if an SQLite error concerns the file rather than a statement, or None."""
    if str(error).endswith(CHECKSUM_MISMATCH):
        return damaged_error(path, str(error))
    return file_error(error, path, f"{SALVAGE_ADVICE} {path}")


def _refuse_other_names(path: Path) -> None:
    """Raise StoreUnavailable for a file that was open before a fork, or has other names."""
    status = path.stat()
    if (status.st_dev, status.st_ino) in _OPEN_BEFORE_FORK:
        advice = 'open it in a process that is started anew (multiprocessing\'s "spawn"), or close it before forking'
        problem = "was open when this process was forked, and SQLite cannot lock it here"
        raise StoreUnavailable(f"{path} {problem}: {advice}")
    if status.st_nlink > 1:
        problem = f"{path} has other names (hard links), and SQLite keeps a log for each"
        raise StoreUnavailable(f"{problem}: delete those, or copy the file")


def require_own_format(connection: sqlite3.Connection, path: Path | None) -> None:
    """Raise BadInput if a file is not made by this package or of another version.

    Raises sqlite3.Error if that cannot be read.
    """
    refuse_foreign_head(connection, path, APPLICATION, _VERSION)


def _connect(uri: str, max_bytes: int = MAX_WRITTEN_BYTES) -> Connection:
    connection = connect(uri, Connection)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max_bytes)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN_BYTES)
    return connection


def _complete_checksums(writer: Connection, path: Path) -> None:
    """Add the missing checksums of rows.

    Raises StoreDamaged if the existing ones of a file that is not too large show damage.
    """
    if is_searched_at_opening(writer):
        if damage := find_damage(writer, GRAPH_TABLES):
            raise damaged_error(path, damage)
        if lacks_checksums(writer):
            with immediate_transaction(writer):
                fill_checksums(writer)


@dataclass(frozen=True)
class FileSearch:
    """The result of a search of a graph's file.

    It contains what is wrong or "", the size of the graph, and whether the file has a log.
    """

    damage: str
    nodes: int = 0
    edges: int = 0
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
                require_own_format(connection, path)
                enable_checksums(connection)
                queries = (f"SELECT count(*) FROM {kind}" for kind in ("nodes", "edges"))
                nodes, edges = (query_number(connection, query) for query in queries)
                return FileSearch(find_damage(connection, GRAPH_TABLES), nodes, edges, copy.has_log)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return FileSearch(str(error))


def is_open_in_process(path: Path) -> bool:
    """Return whether a store of this process has a file open.

    Reading such a file without SQLite would release its locks (POSIX).
    """
    status = _file_status(str(path))
    graphs = list(_OPEN_GRAPHS)
    return status is not None and any((status.st_dev, status.st_ino) in g._files.values() for g in graphs)


def require_closed(path: Path) -> None:
    """Raise StoreUnavailable if a store of this process has a file open."""
    if is_open_in_process(path):
        advice = "close that store, or have it searched by its verify()"
        raise StoreUnavailable(f"{path} is open in this program: {advice}")


def damaged_error(path: Path | None, damage: str) -> StoreDamaged:
    """Create the error for a damaged file."""
    return damage_error(path, damage, f"{SALVAGE_ADVICE} {path}")


def _database_files(writer: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    query_number(writer, "SELECT count(*) FROM sqlite_master")  # the log is created at the first read
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
