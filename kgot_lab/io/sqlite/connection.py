"""Connect to SQLite, and turn its errors into those that say what to do."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable

BUSY_TIMEOUT = 30.0  # seconds to wait for another process that is writing
# bytes of a file that is searched for damage at each opening, in about a second
MAX_CHECKED_BYTES = 32_000_000
RESTORE_ADVICE = "put a copy in its place, and take FILE-wal and FILE-shm away"
FILE_ADVICE = "see that its folder is there, can be written to and has room"
_FILE_CODES = {getattr(sqlite3, f"SQLITE_{of}") for of in ("CANTOPEN", "IOERR", "FULL", "PERM", "READONLY")}


class Connection(sqlite3.Connection):
    """A connection that records errors raised in its functions, guard and progress handler, to raise them
    again. SQLite swallows them and reports an error of its own.
    """

    raised: BaseException | None = None
    can_write = True

    def create_function(
        self, name: str, narg: int, func: Callable[..., Any] | None, /, *, deterministic: bool = False
    ) -> None:
        super().create_function(name, narg, func and self._record_errors(func), deterministic=deterministic)

    def set_authorizer(self, authorizer_callback: Callable[..., int] | None) -> None:
        super().set_authorizer(authorizer_callback and self._record_errors(authorizer_callback))

    def set_progress_handler(self, progress_handler: Callable[[], int | None] | None, n: int) -> None:
        super().set_progress_handler(progress_handler and self._record_errors(progress_handler), n)

    @contextmanager
    def raise_callback_errors(self) -> Iterator[None]:
        """Raise the error that a callback raised, such as Ctrl-C, instead of the one that SQLite reports."""
        self.raised = None
        try:
            yield
        except sqlite3.Error:
            if (raised := self.raised) is None:
                raise
            self.raised = None
            raise raised from None

    def _record_errors(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*values: Any) -> Any:
            try:
                return callback(*values)
            except BaseException as error:
                self.raised = error
                raise

        return wrapper


def connect(address: str) -> Connection:
    """Connect to SQLite by a path or URI, for several threads that take turns."""
    connection = sqlite3.connect(
        address, BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, factory=Connection, uri=True
    )
    connection.can_write = "mode=ro" not in address
    return connection


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
    connection: sqlite3.Connection,
    path: Path | None,
    application: int,
    version: int,
    steps: Iterable[int] = (),
) -> None:
    """Raise BadInput for a file of another application, or of a version that no steps lead from to this one."""
    pragmas = ("PRAGMA application_id", "PRAGMA user_version")
    found, found_version = (query_number(connection, pragma) for pragma in pragmas)
    if found != application:
        origin = "an SQLite file that something else made"
        raise BadInput(f"{path}: {origin}, so it was not touched; give another path")
    if found_version > version or not set(steps).issuperset(range(found_version + 1, version + 1)):
        raise BadInput(f"{path}: {describe_version(found_version, version)}")


def describe_version(found: int, known: int) -> str:
    """Describe what another version of this package made, and what to do with it."""
    newer, older = ("a newer", "update the package"), ("an older", "write what it held again")
    age, advice = newer if found > known else older
    origin = f"made by {age} version of this package (format {found}, known is {known})"
    return f"{origin}, so it was not touched; {advice}"


def file_error(error: Exception, path: Path | None, advice: str = RESTORE_ADVICE) -> StoreUnavailable | None:
    """Return the error to raise if an SQLite error concerns the file rather than a statement, or None."""
    location, code = path or "what is kept in memory", getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        reason = f"another process has been writing to it for {BUSY_TIMEOUT:g} s"
        return StoreUnavailable(f"{location}: {reason}; try again when it is done")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(error, UnicodeDecodeError):
        return damage_error(path, str(error), advice)  # a message of SQLite's that quotes the damage
    return StoreUnavailable(f"{location}: {error}; {FILE_ADVICE}") if code in _FILE_CODES else None


def is_unavailable(error: Exception) -> bool:
    """Return whether an SQLite error says that a file cannot be read now, which is no damage."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in _FILE_CODES or code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM)


def damage_error(path: Path | None, damage: str, advice: str = RESTORE_ADVICE) -> StoreDamaged:
    """Create the error for a damaged file."""
    return StoreDamaged(f"{path} is damaged ({damage}); nothing was changed: {advice}")


def set_option(connection: sqlite3.Connection, setting: str) -> None:
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
