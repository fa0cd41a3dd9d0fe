"""SQLite files: one way to open, check and write them, and to read one without changing it."""

from __future__ import annotations

import shutil
import sqlite3
import struct
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import ClassVar, TypeVar

from kgot_lab.errors import BadInput, LabError, StoreDamaged, StoreUnavailable
from kgot_lab.io.files import is_nonempty_file, require_valid_path
from kgot_lab.io.processes import OPENED_BEFORE_FORK, Closing, prevent_collection, register_for_forks

BUSY_TIMEOUT = 30.0  # seconds to wait for another process that is writing
# bytes of a file that is searched for damage at each opening, in about a second
MAX_CHECKED_BYTES = 32_000_000
_RESTORE_ADVICE = "put a copy in its place"
_FILE_ADVICE = "see that its folder is there, can be written to and has room"
_FILE_CODES = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM)

_Connection = TypeVar("_Connection", bound=sqlite3.Connection)


class SQLiteFile(Closing):
    """A connection to an SQLite file, created if it is missing, or to a database in memory, for several threads.

    A subclass says which files are its own (`_refuse_foreign`), and creates their tables. A change is on disk
    when its transaction ends, or not made at all. Raises BadInput for a file of another kind and StoreDamaged for
    a damaged one, neither of which is changed, and StoreUnavailable if it cannot be opened.
    """

    settings: ClassVar[tuple[str, ...]] = ("journal_mode = WAL", "synchronous = FULL", "cache_size = -65536")
    closed_error: ClassVar[type[LabError]] = StoreUnavailable
    _connection: sqlite3.Connection

    def __init__(self, path: Path | None) -> None:
        self._path, self._lock = path, RLock()
        self._over: LabError | None = None  # why it can no longer be used
        if path is not None:
            require_valid_path(path)
            if is_nonempty_file(path):
                check_before_opening(path, self._refuse_foreign)
        with self._convert_errors():
            self._connection = self._connect()
            try:
                self._prepare(self._connection)
            except BaseException:
                self._connection.close()
                raise
        register_for_forks(self)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._over is None:
                self._over = self.closed_error(f"{self._location} was closed: open it again")
                self._close_connections()

    def after_fork(self) -> None:
        """Detach the connection in a forked child, where SQLite must not even close it."""
        if self._over is None:
            self._over = StoreUnavailable(f"{self._location} {OPENED_BEFORE_FORK}")
            prevent_collection(self._connection)
        self._lock = RLock()

    # --- for subclasses ---

    @abstractmethod
    def _refuse_foreign(self, connection: sqlite3.Connection) -> None:
        """Raise BadInput unless a file, which has tables, is of this kind."""

    @abstractmethod
    def _create_tables(self, connection: sqlite3.Connection) -> None:
        """Create the tables of a new file, within a transaction."""

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        """Add to an open file what it lacks."""

    def _refuse_damage(self, connection: sqlite3.Connection) -> None:
        """Raise StoreDamaged if the pages of a file that is not too large are inconsistent."""
        if is_searched_at_opening(connection):
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise damage_error(self._path, " ".join(verdict.split()))

    def _connect(self) -> sqlite3.Connection:
        uri = ":memory:" if self._path is None else f"{self._path.absolute().as_uri()}?mode=rwc"
        return connect(uri, sqlite3.Connection)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Search for damage, create the tables in a new file, and set the options of the connection."""
        self._refuse_damage(connection)
        if not has_tables(connection):
            # before there is a log, so that the file's head identifies it from the beginning
            with immediate_transaction(connection):
                if not has_tables(connection):  # another process may have created them
                    self._create_tables(connection)
        self._refuse_foreign(connection)
        for setting in self.settings:
            _set_option(connection, setting)
        self._upgrade(connection)

    def _close_connections(self) -> None:
        self._connection.close()

    def _explain(self, error: Exception) -> LabError:
        """Return the error to raise for an SQLite error, which says what to do."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_TOOBIG:
            return BadInput(f"{self._location}: {error}: no text of more than a billion bytes")
        other = StoreUnavailable(f"{self._location}: {error}; {_FILE_ADVICE}")
        return file_error(error, self._path) or other

    @property
    def _location(self) -> str:
        return str(self._path or "what is kept in memory")

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

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, for exclusive use by this thread."""
        with self._lock:
            self._require_open()
            with self._convert_errors():
                yield self._connection

    @contextmanager
    def _transaction(
        self, begin: str = "BEGIN IMMEDIATE", end: str = "COMMIT"
    ) -> Iterator[sqlite3.Connection]:
        """Open a transaction, or continue the one that this thread has open. An error rolls it back.

        One that only reads may `end` with ROLLBACK, which unlike COMMIT works on a damaged file.
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
            except BaseException:
                if self._over is None and connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise


def connect(address: str, connection_class: type[_Connection]) -> _Connection:
    """Connect to SQLite by a path or URI, for several threads that take turns."""
    return sqlite3.connect(
        address,
        BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        factory=connection_class,
        uri=True,
    )


@contextmanager
def immediate_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Open a write transaction, which excludes other writers. An error rolls it back."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        yield


def query_number(connection: sqlite3.Connection, query: str) -> int:
    """Return the single number that a query finds."""
    return int(connection.execute(query).fetchone()[0])


def has_tables(connection: sqlite3.Connection) -> bool:
    """Return whether a file has any tables."""
    return bool(query_number(connection, "SELECT count(*) FROM sqlite_master"))


def is_searched_at_opening(connection: sqlite3.Connection) -> bool:
    """Return whether a file is small enough to be searched for damage whenever it is opened."""
    pages, size = (query_number(connection, f"PRAGMA {name}") for name in ("page_count", "page_size"))
    return pages * size <= MAX_CHECKED_BYTES


def refuse_foreign_head(
    connection: sqlite3.Connection, path: Path | None, application: int, version: int
) -> None:
    """Raise BadInput for a file of another application or another version."""
    found, found_version = (
        query_number(connection, f"PRAGMA {name}") for name in ("application_id", "user_version")
    )
    if found != application:
        origin = "an SQLite file that something else made"
        raise BadInput(f"{path}: {origin}, so it was not touched; give another path")
    if found_version != version:
        raise BadInput(f"{path}: {describe_version(found_version, version)}")


def describe_version(found: int, known: int) -> str:
    """Describe what another version of this package made, and what to do with it."""
    age, advice = (
        ("a newer", "update the package") if found > known else ("an older", "write what it held anew")
    )
    origin = f"made by {age} version of this package (format {found}, known is {known})"
    return f"{origin}, so it was not touched; {advice}"


def file_error(error: Exception, path: Path | None, advice: str = _RESTORE_ADVICE) -> StoreUnavailable | None:
    """Return the error to raise if an SQLite error concerns the file rather than a statement, or None."""
    location, code = path or "what is kept in memory", getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        reason = f"another process has been writing to it for {BUSY_TIMEOUT:g} s"
        return StoreUnavailable(f"{location}: {reason}; try again when it is done")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(error, UnicodeDecodeError):
        return damage_error(path, str(error), advice)  # a message of SQLite's that quotes the damage
    return StoreUnavailable(f"{location}: {error}; {_FILE_ADVICE}") if code in _FILE_CODES else None


def damage_error(path: Path | None, damage: str, advice: str = _RESTORE_ADVICE) -> StoreDamaged:
    """Create the error for a damaged file."""
    return StoreDamaged(f"{path} is damaged ({damage}); nothing was changed: {advice}")


def _set_option(connection: sqlite3.Connection, setting: str) -> None:
    """Set an option, waiting for exclusive access to the file where it needs that, as the log does."""
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            connection.execute(f"PRAGMA {setting}").fetchall()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


# Read an SQLite file without changing it or the files beside it: from a private copy, or without its log.

_TRIES = 5
# in the head of a file: of a page, at 16, and how many there are, at 28
_PAGE_SIZE_FIELD, _PAGE_COUNT_FIELD = (struct.Struct(">H"), struct.Struct(">I"))


@dataclass(frozen=True)
class PrivateCopy:
    """A copy of a file, with its log if there was one.

    `index` is the content of the log's index, b"" without one.
    """

    path: Path
    has_log: bool
    index: bytes
    grew: bool  # the log grew while it was copied, so a write was under way


@contextmanager
def open_copy(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a private copy of a file and its log."""
    with private_copy(path) as copy, closing(connect(copy.path.as_uri(), sqlite3.Connection)) as connection:
        yield connection


@contextmanager
def private_copy(path: Path) -> Iterator[PrivateCopy]:
    """Copy a file and its log to a temporary folder, both in the same state.

    Raises StoreUnavailable if they cannot be copied.
    """
    source = path.resolve()
    with tempfile.TemporaryDirectory(prefix="kgot_lab_") as folder:
        try:
            copy = _copy_consistently(source, Path(folder))
        except OSError as error:
            reason = f"no copy of it to look at could be made: {error.strerror or error}"
            advice = "see that it may be read, and that the temporary folder has room"
            raise StoreUnavailable(f"{path}: {reason}; {advice}") from None
        yield copy


def check_before_opening(path: Path, check: Callable[[sqlite3.Connection], None]) -> None:
    """Run a check on an SQLite file without its write-ahead log, so that nothing is written.

    Errors of SQLite are ignored: without its log an undamaged file looks damaged during a checkpoint and
    after one that was interrupted. Damage is found when the file is opened. SQLite reads the file, because
    opening and closing it here would release the locks that this process has on it (POSIX). Raises BadInput
    for a file that is not SQLite, and what `check` raises.
    """
    in_transaction = path.with_name(path.name + "-journal").exists()
    try:
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            check(connection)
    except UnicodeDecodeError:  # in a message of SQLite's that quotes the damage
        return
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_NOTADB and not in_transaction:
            raise BadInput(f"{path}: not an SQLite file, so it was not touched; give another path") from None


def pad_to_size(path: Path) -> None:
    """Pad a truncated file with zeros to the size in its head.

    Otherwise SQLite reads nothing of it.
    """
    head = path.read_bytes()[:100]
    if len(head) == 100:
        (size,), (pages,) = _PAGE_SIZE_FIELD.unpack_from(head, 16), _PAGE_COUNT_FIELD.unpack_from(head, 28)
        expected_size = pages * (65_536 if size == 1 else size)
        actual_size = path.stat().st_size
        # a larger size means damage to the head itself
        if actual_size < expected_size <= 1_000 * actual_size:
            with path.open("r+b") as file:
                file.truncate(expected_size)


def _copy_consistently(source: Path, folder: Path) -> PrivateCopy:
    copy = folder / "graph.db"
    log, index_path = source.with_name(source.name + "-wal"), source.with_name(source.name + "-shm")
    for tries_left in reversed(range(_TRIES)):
        before, index = (_file_state(source), _file_state(log)), b""
        with suppress(FileNotFoundError):
            index = index_path.read_bytes()  # read first: the log is then never shorter than the index says
        shutil.copyfile(source, copy)
        for part in ("-wal", "-journal"):
            copied_part = copy.with_name(copy.name + part)
            copied_part.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                shutil.copyfile(source.with_name(source.name + part), copied_part)
        log_grew = _file_state(log) != before[1]
        # the log only grows as long as the file stays the same
        if _file_state(source) == before[0] and (not log_grew or not tries_left):
            return PrivateCopy(copy, copy.with_name(copy.name + "-wal").exists(), index, log_grew)
    raise StoreUnavailable(f"{source} is being written to now: try again when that is done")


def _file_state(file: Path) -> tuple[int, int, int] | None:
    """Return inode, modification time and size of a file, or None if it does not exist."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
