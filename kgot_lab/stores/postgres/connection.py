"""Connect to PostgreSQL on demand, and reconnect after a connection broke."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import BadInput, StoreUnavailable, needs_extra
from kgot_lab.io.processes import prevent_collection, register_for_forks

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

# error classes: the connection is lost; the server is being stopped, or is not yet up
_LOST_ERROR_CLASSES = ("08", "57P")
# seconds, tries
_CONNECT_OPTIONS = {"connect_timeout": 10}
_CONNECT_OPTIONS |= {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_UNKNOWN_OUTCOME = ", and nobody can tell whether it kept the change, so look before you make it again"


class PostgresLink:
    """One connection, for one thread at a time.

    `get_address` returns the address of the server, and `prepare` prepares a new connection. The links of one
    store share a `group`: if one finds the server gone, all of them reconnect.
    """

    def __init__(
        self, get_address: Callable[[], str], prepare: Callable[[Connection], None], group: LinkGroup
    ):
        self._get_address, self._prepare, self._group = get_address, prepare, group
        self._connection: Connection | None = None
        group.links.append(self)

    def close(self) -> None:
        """Close the connection.

        The next query opens another.
        """
        with self._group.lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def detach(self) -> None:
        """Forget the connection without closing it."""
        prevent_collection(self._connection)
        self._connection = None

    def fetch_rows(self, statement: str, parameters: Any = None) -> list[Any]:
        """Run an internal statement and return its rows.

        Raises StoreUnavailable if it fails.
        """
        with _internal_errors(), self.outside_transaction() as connection:
            return connection.execute(statement, parameters).fetchall()

    @contextmanager
    def outside_transaction(self) -> Iterator[Connection]:
        """Yield the connection, for statements that cannot run in a transaction.

        Raises StoreUnavailable if the server goes away.
        """
        with self._group.lock:
            connection = self._open_connection()
            with self._recover(connection):
                yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Open a read-only transaction in which all queries see one state of the graph, whatever others
        write.

        Raises StoreUnavailable if a query fails or the server goes away.
        """
        with (
            _internal_errors(),
            self.transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "ROLLBACK") as connection,
        ):
            yield connection

    @contextmanager
    def transaction(self, begin: str = "BEGIN", end: str = "COMMIT") -> Iterator[Connection]:
        """Open a transaction that is rolled back if an error is raised in it.

        Raises StoreUnavailable if the server goes away.
        """
        with self._group.lock:
            connection = self._open_connection()
            with self._recover(connection, ", and nothing was changed"):
                connection.execute(begin)
                yield connection
            with self._recover(connection, _UNKNOWN_OUTCOME if end == "COMMIT" else ""):
                connection.execute(end)

    @contextmanager
    def _recover(self, connection: Connection, outcome: str = "") -> Iterator[None]:
        """Roll back or close the connection if an error is raised.

        Raises StoreUnavailable if the connection broke.
        """
        import psycopg

        try:
            yield
        except BaseException as error:
            is_broken = isinstance(error, psycopg.OperationalError) and (
                connection.closed or (error.sqlstate or "").startswith(_LOST_ERROR_CLASSES)
            )
            is_current = self._connection is connection  # a forked child detached it
            idle = psycopg.pq.TransactionStatus.IDLE
            if not is_broken and is_current and connection.info.transaction_status != idle:
                try:
                    connection.execute("ROLLBACK")
                except psycopg.Error:
                    is_broken = True
            if is_broken:
                for link in self._group.links:
                    link.close()
            if is_broken and isinstance(error, psycopg.Error):
                problem = f"PostgreSQL went away{outcome}"
                problem = f"{problem}; try again once it is back"
                raise StoreUnavailable(f"{problem} ({_first_line(error)})") from None
            raise

    def _open_connection(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> Connection:
        psycopg = import_driver()
        address = self._get_address()
        options = _parse_address(psycopg, address)
        try:
            timeouts = {name: value for name, value in _CONNECT_OPTIONS.items() if name not in options}
            session: dict[str, Any] = {"autocommit": True, "client_encoding": "UTF8", **timeouts}
            connection: Connection = psycopg.connect(address, **session)
        except psycopg.Error as error:
            problem = f"PostgreSQL cannot be reached ({_first_line(error)})"
            raise StoreUnavailable(f"{problem}: start the server, or give another url") from None
        try:
            with _internal_errors():
                self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection


class LinkGroup:
    """The links of one store, and the lock that lets one thread at a time use them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.links: list[PostgresLink] = []
        register_for_forks(self)

    def after_fork(self) -> None:
        """Detach all links in a forked child.

        Closing the child's copies of the connections would end them for the parent.
        """
        self.lock = threading.RLock()
        for link in self.links:
            link.detach()


@contextmanager
def _internal_errors() -> Iterator[None]:
    """Convert the server's errors about internal statements to StoreUnavailable."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise StoreUnavailable(f"PostgreSQL does not let the store work: {str(error).strip()}") from None


def _parse_address(psycopg: Any, address: str) -> dict[str, Any]:
    """Parse an address into its parts.

    Raises BadInput if it cannot be read, without the driver's message, which may contain parts of a password.
    """
    authority, _, path = address.partition("://")[2].partition("?")[0].partition("/")
    try:
        if authority.count("@") <= 1 and "@" not in path:  # otherwise the driver splits a password
            parts = dict(psycopg.conninfo.conninfo_to_dict(address))
            if all(not port or port.isdecimal() for port in str(parts.get("port", "")).split(",")):
                return parts
    except psycopg.Error:
        pass
    raise BadInput(
        "the address of PostgreSQL cannot be read: it is postgresql://USER:PASSWORD@HOST:PORT/DATABASE,"
        " and in a name or password @ is written %40, / %2F, : %3A, ? %3F, # %23 and % %25"
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def import_driver() -> Any:
    """Import the PostgreSQL driver.

    Raises NotInstalled if it is missing.
    """
    with needs_extra("stores", "psycopg[binary]"):
        import psycopg
        import psycopg.conninfo
    return psycopg
