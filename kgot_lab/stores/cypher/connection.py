"""Connect to one database of a Bolt server: short sessions, time limits, errors that say what to do."""

from __future__ import annotations

import logging
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from kgot_lab.errors import BadInput, LabError, ServerLost, StoreUnavailable, needs_extra
from kgot_lab.io.processes import OPENED_BEFORE_FORK, prevent_collection, register_for_forks, watchdog
from kgot_lab.sandbox.cypher.mapping import backticked

if TYPE_CHECKING:
    from neo4j import Driver, Session, Transaction

# runs an internal query with its parameters and returns the rows as lists of columns
RunQuery = Callable[[str, Mapping[str, Any]], list[list[Any]]]

Result = TypeVar("Result")

_MAX_TRIES = 100  # tries of a change that conflicts with others
_MAX_PAUSE = 0.8  # seconds: the longest random pause between tries
GRACE_SECONDS = 1.0  # seconds after which a server that ignores its time limit is cut off
_DRIVER_OPTIONS = {"connection_timeout": 5.0, "connection_acquisition_timeout": 10.0}
_DRIVER_OPTIONS |= {"liveness_check_timeout": 1.0, "keep_alive": True}
_SECURITY_CODES = "Auth CredentialsExpired TokenExpired Unauthorized".split()
_UNAVAILABLE_CODES = (
    *(f"Neo.ClientError.Security.{each}" for each in _SECURITY_CODES), "Neo.ClientError.Database.",
    "Neo.TransientError.Database.", "Neo.TransientError.General.DatabaseUnavailable",
)  # fmt: skip
_USER_INFO = re.compile(r"//[^/@]*@")


class WriteConflict(Exception):
    """Another writer committed between two transactions that belong together, which must start again."""


class StatementTimeout(Exception):
    """A statement took too long and was cut off."""


class BoltLink:
    """A driver for one database, created at the first call and again after it was cut.

    Only the driver stores the password.
    """

    def __init__(self, uri: str, user: str = "neo4j", password: str = "", database: str | None = None):
        self.database, self.name = database, _USER_INFO.sub("//", uri) + (f"/{database}" if database else "")
        self._make: Callable[[], Driver] = lambda: _create_driver(uri, user, password)
        self._driver: Driver | None = None
        self._closed_reason = ""  # why it can no longer be used
        self._lock = threading.RLock()
        register_for_forks(self)

    def close(self) -> None:
        """Close the connections for good."""
        self._closed_reason = self._closed_reason or "was closed; open another one"
        self.cut()

    def after_fork(self) -> None:
        """Detach the link from its driver in a forked child.

        The driver stays referenced: closing the child's copies of the connections would end the parent's
        sessions.
        """
        prevent_collection(self._driver)
        self._driver = None
        self._closed_reason = self._closed_reason or OPENED_BEFORE_FORK
        self._lock = threading.RLock()

    def cut(self) -> None:
        """Close the connections, including those that wait for an answer.

        The next call creates new ones.
        """
        with self._lock:
            driver, self._driver = self._driver, None
        if driver is not None:
            # closed gracefully, a connection would first write to buffers that its thread may be using
            for connections in list(driver._pool.connections.values()):
                for connection in list(connections):
                    connection.kill()
            driver.close()

    def require_open(self) -> None:
        """Raise StoreUnavailable if the link was closed."""
        if self._closed_reason:
            raise StoreUnavailable(f"this store of {self.name} {self._closed_reason}")

    def retry(self, action: Callable[[], Result]) -> Result:
        """Call `act` and return its result, trying again while the server reports a conflict with another
        writer.

        Raises StoreUnavailable if every try conflicts.
        """
        from neo4j.exceptions import Neo4jError

        for attempt in range(_MAX_TRIES):
            if attempt:
                time.sleep(random.uniform(0, min(_MAX_PAUSE, 0.01 * 2**attempt)))
            try:
                return action()
            except WriteConflict:
                pass
            except Neo4jError as error:
                may_repeat = attempt < _MAX_TRIES - 1 or ".Transaction." in (error.code or "")
                if not (error.is_retryable() and may_repeat):
                    raise
        problem = f"another writer of {self.name} was faster {_MAX_TRIES} times"
        raise StoreUnavailable(f"{problem}; nothing was changed, so try again later")

    def run_query(self, query: str, parameters: Mapping[str, Any]) -> list[list[Any]]:
        """Run an internal read query and return its rows."""
        with self._session("READ") as session:
            return session.run(query, dict(parameters)).values()

    @contextmanager
    def read_transaction(self, seconds: float) -> Iterator[Transaction]:
        """Open a transaction in the driver's read mode that is always rolled back."""
        with self._session("READ") as session, session.begin_transaction(timeout=seconds) as transaction:
            yield transaction
            transaction.rollback()

    @contextmanager
    def write_transaction(self, seconds: float | None = None) -> Iterator[Transaction]:
        """Open a transaction that commits at the end, unless it was rolled back or an error was raised in it.

        Raises StoreUnavailable if the server goes away during the commit, when it is unknown whether the
        change was stored.
        """
        from neo4j.exceptions import Neo4jError

        with self._session("WRITE") as session, session.begin_transaction(timeout=seconds) as transaction:
            yield transaction
            if transaction.closed():
                return
            try:
                transaction.commit()
            except Neo4jError:
                raise  # the server says that it stored nothing
            except Exception as error:
                raise StoreUnavailable(
                    f"{self.name} went away while it was keeping a change ({_first_line(error)}): the change may be there or not; "
                    "look at the graph before you make it again"
                ) from None

    @contextmanager
    def time_limit(self, seconds: float, statement: str) -> Iterator[None]:
        """Close the connections if a statement takes longer than `seconds`.

        Servers differ in whether they enforce a transaction's own timeout, and the driver waits as long as
        they do. Raises StatementTimeout after the timeout, and ServerLost if the server goes away during the statement.
        """
        from neo4j.exceptions import ServiceUnavailable, SessionExpired

        with watchdog(seconds, self.cut) as timed_out:
            try:
                yield
            except Exception as error:
                if timed_out.is_set():
                    raise StatementTimeout(f"it took longer than {seconds:g} s") from None
                if isinstance(error, ServiceUnavailable | SessionExpired):
                    raise ServerLost(statement) from None
                raise
        if timed_out.is_set():
            raise StatementTimeout(f"it took longer than {seconds:g} s")

    @contextmanager
    def convert_errors(self, on_refusal: Callable[[str], LabError]) -> Iterator[None]:
        """Convert the driver's errors to errors of this package.

        `on_refusal` converts what the server refuses. A server that cannot be reached becomes StoreUnavailable.
        """
        from neo4j.exceptions import DriverError, Neo4jError

        try:
            yield
        except StatementTimeout as timeout:
            raise on_refusal(f"{timeout} and was stopped; make it smaller, for example with LIMIT") from None
        except UnicodeEncodeError as error:
            text = repr(str(error.object)[:200])
            raise on_refusal(f"half a surrogate pair cannot be sent to a server: {text}") from None
        except Neo4jError as error:
            if (error.code or "").startswith(_UNAVAILABLE_CODES):
                raise StoreUnavailable(f"{self.name} does not serve us: {_first_line(error)}") from None
            raise on_refusal(server_message(error)) from None
        except DriverError as error:
            raise StoreUnavailable(
                f"{self.name} cannot be reached ({_first_line(error)}): start the server or check the address, then try again"
            ) from None

    def internal_errors(self) -> AbstractContextManager[None]:
        """Raise StoreUnavailable if the server refuses an internal query."""
        problem = f"{self.name} does not understand this store"
        return self.convert_errors(lambda reason: StoreUnavailable(f"{problem}: {reason}"))

    def require_database(self) -> None:
        """Check that the server has the database, and request it if it is missing.

        Raises StoreUnavailable if the server does not create it.
        """
        from neo4j.exceptions import ClientError

        try:
            self.run_query("RETURN 1", {})
        except ClientError as error:
            if not self.database or not (error.code or "").endswith("DatabaseNotFound"):
                raise
            self._create_database(self.database)

    def _create_database(self, name: str) -> None:
        from neo4j.exceptions import Neo4jError

        try:
            with self._open_driver().session(database="system") as session:
                session.run(f"CREATE DATABASE {backticked(name)} IF NOT EXISTS WAIT").consume()
        except Neo4jError as error:
            raise StoreUnavailable(
                f"the server at {self.name} has no such database and makes none over Bolt ({_first_line(error)}): make it with the server's own "
                "tools, or leave the database out for the server's default one"
            ) from None

    def _session(self, mode: str) -> Session:
        return self._open_driver().session(database=self.database, default_access_mode=mode)

    def _open_driver(self) -> Driver:
        with self._lock:
            self.require_open()
            if self._driver is None:
                self._driver = self._make()
            return self._driver


def _create_driver(uri: str, user: str, password: str) -> Driver:
    with needs_extra("stores", "neo4j"):
        import neo4j
    notes = logging.getLogger("neo4j.notifications")
    if not notes.handlers:  # else servers' hints about names that a graph does not have yet go to the screen
        notes.addHandler(logging.NullHandler())
    try:
        return neo4j.GraphDatabase.driver(uri, auth=(user, password), **_DRIVER_OPTIONS)  # type: ignore[arg-type]
    except (neo4j.exceptions.ConfigurationError, ValueError) as error:
        address = _USER_INFO.sub("//", uri)
        raise BadInput(f"not the address of a Bolt server: {address} ({_first_line(error)})") from None


def server_message(error: Exception) -> str:
    """Return the server's error message."""
    reason = str(getattr(error, "message", None) or error).strip()
    if reason.startswith("Error executing Cypher command"):  # ArcadeDB gives no more details in this case
        reason += " (it gives no reason; ArcadeDB refuses, for one, a relation that is named like a label)"
    return reason


def _first_line(error: Exception) -> str:
    text = str(getattr(error, "message", None) or error).strip()
    return text.splitlines()[0][:300] if text else type(error).__name__
