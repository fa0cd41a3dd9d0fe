"""Tables in a schema of a PostgreSQL server, which many processes may read, and write one after the other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, LabError, StoreDamaged, StoreUnavailable
from kgot_lab.io.processes import OPENED_BEFORE_FORK, register_for_forks
from kgot_lab.io.sqlite.connection import BUSY_TIMEOUT, describe_version
from kgot_lab.stores.postgres.connection import LinkGroup, PostgresLink, import_driver
from kgot_lab.stores.postgres.tables import (
    fill_names,
    require_namespace,
    require_suitable_server,
    schema_comment,
    to_postgres,
)
from kgot_lab.stores.tables.layout import TEXT_BY_BYTES, Layout, TableRow

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

SETTINGS = f"""SET search_path = {{namespace}}, pg_temp; SET lock_timeout = {round(BUSY_TIMEOUT * 1000)};
SET client_min_messages = warning; SET standard_conforming_strings = on;
SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"""


class PostgresTables:
    """A TableStorage of a layout in the schema `namespace` of a PostgreSQL server, created if it is missing.

    It reconnects to a server that comes back. Raises BadInput for an invalid URL, and for a schema that
    something else or a newer version made, which is not changed. Raises StoreUnavailable, StoreDamaged if
    tables are missing, and NotInstalled.
    """

    settings = SETTINGS  # of a connection
    alone = "BEGIN"  # what begins the transaction of a single statement; "" where that has none but its own, and so takes one exchange

    @check_arguments
    def __init__(self, layout: Layout, url: str, *, namespace: str) -> None:
        self.layout = layout
        self.namespace, self._url = require_namespace(namespace), url
        digest = hashlib.blake2b(f"{layout.mark}{namespace}".encode(), digest_size=8).digest()
        self._lock = int.from_bytes(digest, "big", signed=True)
        self._over: LabError | None = None  # why it can no longer be used
        self._within: Connection | None = None  # in a transaction, of the thread that has the lock
        self._changing = False
        self._waiting: list[tuple[str, dict[str, Any]]] = []
        self._circle = LinkGroup()
        self._link = PostgresLink(self._checked_url, self._prepare_connection, self._circle)
        register_for_forks(self)
        self.rows("SELECT 1")  # reports errors of the server and the schema at once

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.namespace}>"

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[TableRow]:
        lists = {
            name: list(value) for name, value in (values or {}).items() if isinstance(value, tuple | set)
        }
        parameters = {**(values or {}), **lists}
        with self._transaction(self.alone) as connection:
            self._waiting.append((to_postgres(self.rewrite_statement(statement)), parameters))
            if self._changing and not statement.lstrip().startswith(("SELECT", "WITH")):
                return []  # sent with the next question or the end of the change, since every exchange with a server takes time
            return self._send_waiting(connection)

    def insert(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        for values in rows:  # sent together
            self.rows(statement, values)

    def _send_waiting(self, connection: Connection) -> list[TableRow]:
        """Send the waiting statements in one round trip and return the rows of the last one."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return []
        is_pipelined = len(waiting) > 1 and import_driver().Pipeline.is_supported()
        with connection.pipeline() if is_pipelined else nullcontext():
            cursors = [connection.execute(*statement) for statement in waiting]
        return cursors[-1].fetchall() if cursors[-1].description else []

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        with self._transaction(f"BEGIN; SELECT pg_advisory_xact_lock({self._lock})") as connection:
            outer, self._changing = self._changing, True
            try:
                yield
                self._send_waiting(connection)
            finally:
                self._changing = outer

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with self._circle.lock:
            if self._within is not None:
                yield self._within
                return
            link = self._link
            transaction = link.transaction(begin) if begin else link.outside_transaction()
            with self._convert_errors(), transaction as connection:
                self._within = connection
                try:
                    yield connection
                finally:
                    self._within, self._waiting = None, []
                self._require_open()

    def close(self) -> None:
        self._over = self._over or BadInput(f"{self!r} was closed: open it again")
        self._link.close()

    def rewrite_statement(self, statement: str) -> str:
        """Return a statement in the form that this server executes fastest."""
        return statement

    def find_role(self, connection: Connection) -> str | None:
        """Return the role that statements run as, or None for that of the URL.

        Called within the transaction of `_prepare_connection`.
        """
        return None

    def after_fork(self) -> None:
        """Mark the tables as unavailable in a forked child, since the connection is the parent's."""
        self._over = self._over or StoreUnavailable(f"{self!r} {OPENED_BEFORE_FORK}")
        self._within, self._waiting, self._changing = None, [], False

    # --- internal ---

    def _require_open(self) -> None:
        if self._over is not None:
            raise type(self._over)(str(self._over))

    def _checked_url(self) -> str:
        self._require_open()
        return self._url

    def _prepare_connection(self, connection: Connection) -> None:
        require_suitable_server(connection)
        with connection.transaction():
            mark = schema_comment(connection, self.namespace)
            if mark is None:
                self._create_schema(connection)
            elif self.layout.upgrade and mark == f"{self.layout.mark}{self.layout.version - 1}":
                self._run_definitions(connection, self.layout.upgrade, self.layout.postgres_upgrade)
            elif mark != self._version_mark:
                self._refuse_foreign_schema(mark)
            role = self.find_role(connection)
        connection.execute(fill_names(self.settings, namespace=self.namespace))
        if role is not None:
            connection.execute(fill_names("SET ROLE {role}", role=role))

    @property
    def _version_mark(self) -> str:
        return f"{self.layout.mark}{self.layout.version}"

    def _create_schema(self, connection: Connection) -> None:
        connection.execute(fill_names("CREATE SCHEMA {namespace}", namespace=self.namespace))
        layout = self.layout
        self._run_definitions(connection, layout.tables, (*layout.indexes, *layout.postgres))

    def _run_definitions(
        self, connection: Connection, in_bytes: Sequence[str], others: Sequence[str]
    ) -> None:
        """Run the definitions of tables whose texts are ordered by their bytes, and then others."""
        connection.execute(
            fill_names("SET LOCAL search_path = {namespace}, pg_temp", namespace=self.namespace)
        )
        for statement in (*(each.replace("TEXT", TEXT_BY_BYTES) for each in in_bytes), *others):
            connection.execute(statement)
        self._mark_created(connection)

    def _mark_created(self, connection: Connection) -> None:
        """Write the version to the schema's comment, now that all its tables exist."""
        mark = f"'{self._version_mark}'"
        connection.execute(fill_names("COMMENT ON SCHEMA {namespace} IS ", namespace=self.namespace) + mark)

    def _refuse_foreign_schema(self, mark: str) -> None:
        version, known = mark.removeprefix(self.layout.mark), self.layout.version
        problem = f"is there and holds no {self.layout.name}, so it was not touched; give another namespace"
        if version != mark and version.isdecimal():
            problem = f"was {describe_version(int(version), known)}"
        raise BadInput(f"the schema {self.namespace!r} {problem}")

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Replace an error of the server by one that says what to do."""
        psycopg = import_driver()
        damage_errors = ("UndefinedTable", "UndefinedColumn", "DataCorrupted", "IndexCorrupted")
        try:
            yield
        except psycopg.errors.LockNotAvailable:
            reason = "another process has been writing to it, or reading what was erased, for"
            problem = f"{self!r}: {reason} {BUSY_TIMEOUT:g} s"
            raise StoreUnavailable(f"{problem}; try again when it is done") from None
        except tuple(getattr(psycopg.errors, name) for name in damage_errors) as error:
            damage = f"{self!r} is damaged ({format_server_error(error)})"
            raise StoreDamaged(f"{damage}: put a backup of its schema in its place") from None
        except psycopg.errors.ProgramLimitExceeded as error:
            reason = f"{format_server_error(error)}: no text of more than a billion bytes"
            raise BadInput(f"{self!r}: {reason}") from None
        except psycopg.Error as error:
            reason = f"PostgreSQL does not let it work: {format_server_error(error)}"
            raise StoreUnavailable(f"{self!r}: {reason}") from None


def format_server_error(error: psycopg.Error) -> str:
    """Return the server's error message on one line.

    Its details are left out, since they may contain rows.
    """
    return " ".join((error.diag.message_primary or str(error) or type(error).__name__).split())
