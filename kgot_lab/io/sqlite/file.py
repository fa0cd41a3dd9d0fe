"""Open and write an SQLite file: one way for every kind."""

from __future__ import annotations

import os
import sqlite3
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import ClassVar
from weakref import WeakSet

from kgot_lab.errors import BadInput, LabError, StoreDamaged, StoreUnavailable, warn_caller
from kgot_lab.io.files import is_nonempty_file, require_valid_path
from kgot_lab.io.processes import OPENED_BEFORE_FORK, Closing, prevent_collection, register_for_forks
from kgot_lab.io.sqlite import checksums
from kgot_lab.io.sqlite.connection import (
    FILE_ADVICE,
    RESTORE_ADVICE,
    Connection,
    connect,
    damage_error,
    file_error,
    has_tables,
    immediate_transaction,
    is_searched_at_opening,
    query_number,
    set_option,
)
from kgot_lab.io.sqlite.copies import check_before_opening
from kgot_lab.io.sqlite.wal import read_log_and_index, warn_of_lost_changes

# files that were open when this process was forked, by device and number
_OPEN_BEFORE_FORK: set[tuple[int, int]] = set()


class SQLiteFile(Closing):
    """A connection to an SQLite file, created if it is missing, or to a database in memory, for several threads.

    A subclass says which files are its own (`_refuse_foreign`), and creates their tables. A change is on disk
    when its transaction ends, or not made at all. Raises BadInput for a file of another kind and StoreDamaged for
    a damaged one, neither of which is changed, and StoreUnavailable if it cannot be opened.
    """

    settings: ClassVar[tuple[str, ...]] = (
        "journal_mode = WAL",
        "synchronous = FULL",
        "cache_size = -65536",
        "recursive_triggers = ON",  # those of checksums see rows that are replaced
    )
    steps: checksums.Steps = MappingProxyType({})
    closed_error: ClassVar[type[LabError]] = StoreUnavailable
    _connection: Connection

    def __init__(self, path: Path | None) -> None:
        self._path, self._lock = path, RLock()
        self._mode = "mode=rwc"
        self._over: LabError | None = None  # why it can no longer be used
        self._is_disturbed = False  # by an error of the disk, after which SQLite's state is not to be trusted
        # the database and its log as they were opened, by device and number; none in memory
        self._files: dict[str, tuple[int, int]] = {}
        self._is_new = was_empty = False
        if path is not None:
            require_valid_path(path)
            was_empty = _is_left_empty(path)
            if is_nonempty_file(path):
                self._mode = _opening_mode(path)
                _refuse_other_names(path)
                check_before_opening(path, self._refuse_foreign, is_open=is_open_in_process(path))
            else:
                _refuse_lost_file(path)
        try:
            self._open()
        except StoreDamaged:  # a disk that fails once can look like damage
            self._open()
        if was_empty and self._is_new:
            advice = "if it held something once, restore a copy"
            warn_caller(f"{path} is empty: a new one is begun in it; {advice}")
        _OPEN_FILES.add(self)
        register_for_forks(self)

    def _open(self) -> None:
        with self._convert_errors():
            self._connection = self._connect()
            try:
                with self._connection.raise_callback_errors():
                    self._prepare(self._connection)
            except BaseException:
                self._close_unchanged()
                raise

    def _close_unchanged(self) -> None:
        """Close a file that is refused, which keeps its log as long as another connection has it open."""
        if self._path is None:
            return self._connection.close()
        with closing(connect(f"{self._path.absolute().as_uri()}?mode=ro")) as reader:
            with suppress(sqlite3.Error, UnicodeDecodeError):
                reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
            self._connection.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._over is None:
                self._over = self.closed_error(f"{self._location} was closed: open it again")
                self._close_connections()
                _OPEN_FILES.discard(self)

    def after_fork(self) -> None:
        """Detach the connection in a forked child, where SQLite must not even close it."""
        if self._over is None:
            self._over = StoreUnavailable(f"{self._location} {OPENED_BEFORE_FORK}")
            prevent_collection(self._connection)
            _OPEN_BEFORE_FORK.update(self._files.values())
        self._lock = RLock()

    # --- for subclasses ---

    @abstractmethod
    def _refuse_foreign(self, connection: sqlite3.Connection) -> None:
        """Raise BadInput unless a file, which has tables, is of this kind."""

    @abstractmethod
    def _create_tables(self, connection: sqlite3.Connection) -> None:
        """Create the tables of a new file, within a transaction."""

    def _upgrade(self, connection: Connection) -> None:
        """Add to an open file what it lacks."""

    def _keep_checksums(self, connection: Connection) -> None:
        """Keep checksums of all tables."""
        checksums.keep_checksums(connection)

    def _find_damage(self, connection: Connection) -> str:
        """Describe the damage in the file, or return ""."""
        return checksums.find_damage(connection)

    def _connect(self) -> Connection:
        if self._path is None:
            return connect(":memory:")
        before = read_log_and_index(self._path)
        connection = connect(f"{self._path.absolute().as_uri()}?{self._mode}")
        try:
            checksums.enable_checksums(connection)
            warn_of_lost_changes(before, connection, self._path)
        except BaseException as error:
            connection.close()
            if self._mode == "mode=ro" and isinstance(error, sqlite3.OperationalError):
                problem = "the log beside it cannot be recovered where nothing can be written"
                advice = "copy both, FILE and FILE-wal, to a folder that can be written to"
                raise StoreUnavailable(f"{self._path}: {problem}: {advice}") from None
            raise
        return connection

    def _prepare(self, connection: Connection) -> None:
        """Search for damage, create the tables in a new file, and set the options of the connection."""
        is_empty = not has_tables(connection)
        if not is_empty and self.steps:
            self._refuse_foreign(connection)
            if damage := checksums.migrate(connection, self.steps):
                raise damage_error(self._path, damage, self._advice)
        if self._path is not None and (is_empty or is_searched_at_opening(connection)):
            self._refuse_damage()  # damage can also look like emptiness
        if is_empty:
            # before there is a log, so that the file's head identifies it from the beginning
            with immediate_transaction(connection):
                self._is_new = not has_tables(connection)  # another process may have created them
                if self._is_new:
                    self._create_tables(connection)
        self._refuse_foreign(connection)
        for setting in self.settings if connection.can_write else ():
            set_option(connection, setting)
        self._upgrade(connection)
        if self._path is not None and connection.can_write:
            self._keep_checksums(connection)
            self._files = _database_files(connection)

    def _close_connections(self) -> None:
        self._connection.close()

    def _explain(self, error: Exception) -> LabError:
        """Return the error to raise for an SQLite error, which says what to do."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_TOOBIG:
            return BadInput(f"{self._location}: {error}: no text of more than a billion bytes")
        if str(error).startswith(("no such ", "user-defined function")):  # tables and texts of ours
            return damage_error(self._path, checksums.describe_error(error), self._advice)
        other = StoreUnavailable(f"{self._location}: {error}; {FILE_ADVICE}")
        return file_error(error, self._path, self._advice) or other

    @property
    def _location(self) -> str:
        return str(self._path or "what is kept in memory")

    @property
    def _advice(self) -> str:
        """What to do with a damaged file."""
        return RESTORE_ADVICE

    def _refuse_damage(self) -> None:
        """Raise StoreDamaged if there is damage in the file."""
        if damage := self._find_damage(self._connection):
            raise damage_error(self._path, damage, self._advice)

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Replace an SQLite error by one that says what to do."""
        try:
            yield
        except sqlite3.ProgrammingError:
            self._require_open()
            raise
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._explain(error) from None

    def _require_open(self) -> None:
        if self._over is not None:
            raise type(self._over)(str(self._over))
        if self._is_disturbed and self._path is not None:
            self._close_connections()
            self._open()
            self._is_disturbed = False

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

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Yield the connection, for exclusive use by this thread."""
        with self._lock:
            self._require_open()
            with self._convert_errors(), self._connection.raise_callback_errors():
                yield self._connection

    @contextmanager
    def _transaction(self, begin: str = "BEGIN IMMEDIATE", end: str = "COMMIT") -> Iterator[Connection]:
        """Open a transaction, or continue the one that this thread has open. An error rolls it back.

        One that only reads may `end` with ROLLBACK, which unlike COMMIT works on a damaged file. Raises
        StoreUnavailable if the file was replaced before it was written.
        """
        with self._lock:
            self._require_open()
            connection = self._connection
            if connection.in_transaction:
                yield connection
                return
            with self._convert_errors():
                connection.execute(begin)
            try:
                yield connection
                self._require_open()  # in a forked child it is not
                if end == "COMMIT" or connection.in_transaction:
                    with self._convert_errors():
                        connection.execute(end)
            except BaseException as error:
                if self._over is None and connection.in_transaction:
                    connection.execute("ROLLBACK")
                disturbing = StoreUnavailable | sqlite3.OperationalError | MemoryError
                self._is_disturbed = isinstance(error, disturbing)
                raise
            if begin == "BEGIN IMMEDIATE":
                self._require_unmoved()


_OPEN_FILES: WeakSet[SQLiteFile] = WeakSet()


def require_closed(path: Path) -> None:
    """Raise StoreUnavailable if this process has an SQLite file open.

    Reading such a file without SQLite would release its locks (POSIX).
    """
    if is_open_in_process(path):
        problem = f"{path} is open in this program"
        raise StoreUnavailable(f"{problem}: close it first, or have a graph searched by its verify()")


def is_open_in_process(path: Path) -> bool:
    """Return whether this process has an SQLite file open."""
    status = _file_status(str(path))
    files = list(_OPEN_FILES)
    return status is not None and any((status.st_dev, status.st_ino) in f._files.values() for f in files)


def _opening_mode(path: Path) -> str:
    """Return how to open a file: where nothing can be written, it is only read, without locks if it has no log."""
    file = path.resolve()  # beside which its log is
    log = file.with_name(file.name + "-wal")
    if os.access(file, os.W_OK) and any(os.access(each, os.W_OK) for each in (file.parent, log)):
        return "mode=rwc"
    warn_caller(f"{path} cannot be written to here: it is only read")
    return "mode=ro" if is_nonempty_file(log) else "mode=ro&immutable=1"


def _refuse_other_names(path: Path) -> None:
    """Raise StoreUnavailable for a file that was open before a fork, or has other names."""
    status = path.stat()
    if (status.st_dev, status.st_ino) in _OPEN_BEFORE_FORK:
        advice = 'open it in a process that is started again (multiprocessing\'s "spawn"), or close it before forking'
        problem = "was open when this process was forked, and SQLite cannot lock it here"
        raise StoreUnavailable(f"{path} {problem}: {advice}")
    if status.st_nlink > 1:
        problem = f"{path} has other names (hard links), and SQLite keeps a log for each"
        raise StoreUnavailable(f"{problem}: delete those, or copy the file")


def _is_left_empty(path: Path) -> bool:
    """Return whether a file is empty, and stays so for a second if it is younger than ten.

    A file that another opener is creating is empty until its tables are there.
    """
    last = time.monotonic() + 1
    while (status := _file_status(str(path))) is not None and not status.st_size:
        if time.monotonic() > last or time.time() - status.st_mtime > 10:
            return True
        time.sleep(0.01)
    return False


def _refuse_lost_file(path: Path) -> None:
    """Raise StoreDamaged for an empty or missing file whose log is there, since SQLite would delete that."""
    log = path.with_name(path.name + "-wal")
    # looked at again after its log, as another process may be creating both
    if log.exists() and log.stat().st_size and not is_nonempty_file(path):
        damage = f"it is {'empty' if path.exists() else 'missing'}, and {log.name} beside it holds changes"
        advice = f"put the file that it belongs to in its place, or take {log.name} away"
        raise damage_error(path, damage, advice)


def _database_files(connection: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    query_number(connection, "SELECT count(*) FROM sqlite_master")  # the log is created at the first read
    file = str(connection.execute("PRAGMA database_list").fetchone()[2])
    statuses = {name: _file_status(name) for name in (file, f"{file}-wal") if file}
    return {name: (status.st_dev, status.st_ino) for name, status in statuses.items() if status is not None}


def _file_status(file: str) -> os.stat_result | None:
    """Return the status of a file, or None if it does not exist."""
    try:
        return Path(file).stat()
    except OSError:
        return None
