"""The tables of claims in a schema of a PostgreSQL server, with permanent erasure."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from kgot_lab.errors import StoreUnavailable
from kgot_lab.io.sqlite.connection import BUSY_TIMEOUT
from kgot_lab.memory import tables
from kgot_lab.stores.postgres.connection import import_driver
from kgot_lab.stores.postgres.tables import quote_identifier
from kgot_lab.stores.tables.postgres import SETTINGS, PostgresTables

if TYPE_CHECKING:
    import psycopg

    from kgot_lab.stores.tables.postgres import Connection

CLAIMS_NAMESPACE = "kgot_claims"
_SCRUBBED_TABLES = ("facts", "claims", "premises", "versions", "answers", "answer_facts", "fact_keys")
# Without statistics of texts (see `_mark_created`) the server assumes that everything is rare: tables are joined in
# the order in which they are named (join_collapse_limit), and standings are looked up claim by claim
# (OFFSET).
_STANDINGS_LATERAL_JOIN = "CROSS JOIN LATERAL (SELECT * FROM versions WHERE key = c.id OFFSET 0) s"


class PostgresClaims(PostgresTables):
    """A ClaimStorage in the schema `namespace` of a PostgreSQL server, created if it is missing.

    Raises what `PostgresTables` raises.
    """

    settings = f"{SETTINGS}; SET join_collapse_limit = 1"

    def __init__(self, url: str, *, namespace: str = CLAIMS_NAMESPACE) -> None:
        super().__init__(tables.CLAIMS_LAYOUT, url, namespace=namespace)
        # what was to erase its bytes was stopped before it had, or is at it
        if self.rows(tables.COUNT_UNSCRUBBED) != [(0,)]:
            self.scrub()

    def rewrite_statement(self, statement: str) -> str:
        return statement.replace(tables.STANDINGS, _STANDINGS_LATERAL_JOIN)

    def scrub(self) -> None:
        """Rewrite the tables without what was deleted, under an exclusive lock.

        The server keeps the old bytes elsewhere: in its log until that is overwritten, in archives, replicas
        and backups. Raises StoreUnavailable while another transaction reads what was there before.
        """
        with self._convert_errors(), self._link.outside_transaction() as connection:
            connection.execute(f"SELECT pg_advisory_lock({self._lock})")
            try:
                for table in _SCRUBBED_TABLES:
                    self._rewrite_table(connection, table)
                connection.execute(tables.MARK_SCRUBBED)
            finally:
                with suppress(import_driver().Error):  # a connection that broke has let go of it
                    connection.execute(f"SELECT pg_advisory_unlock({self._lock})")

    def _rewrite_table(self, connection: Connection, table: str) -> None:
        """Rewrite a table until no removed rows are left in it.

        Rows that an older transaction of the database may still read are copied too, so this is repeated.
        Raises StoreUnavailable if such a transaction stays open too long.
        """
        deadline, pause = time.monotonic() + BUSY_TIMEOUT, 0.02
        while rows_left := _vacuum_table(connection, table):
            if time.monotonic() > deadline:
                waiting = f"an older transaction of its database has been open for {BUSY_TIMEOUT:g} s"
                reason = f"{waiting}, and may read {rows_left} rows of {table}"
                remedy = "their bytes go when this is opened again after it ended"
                raise StoreUnavailable(f"{self!r}: erased, but {reason}; {remedy}")
            time.sleep(pause)
            pause *= 2

    def _mark_created(self, connection: Connection) -> None:
        super()._mark_created(connection)
        text_columns = """SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
          WHERE relnamespace = %s::regnamespace AND relkind = 'r'
            AND (atttypid = 'text'::regtype OR relname = 'fact_keys' AND attname = 'key')"""
        for table, column in connection.execute(text_columns, (quote_identifier(self.namespace),)).fetchall():
            # otherwise erased texts stay in the server's statistics
            connection.execute(f"ALTER TABLE {table} ALTER {column} SET STATISTICS 0")


def _vacuum_table(connection: Connection, table: str) -> int:
    """Rewrite a table and return how many deleted rows had to stay, as the server reports it.

    Raises StoreUnavailable if the server does not report it.
    """
    row_counts: list[int] = []

    def record_row_count(diagnostic: psycopg.errors.Diagnostic) -> None:
        # "3 dead row versions cannot be removed yet."
        row_counts.extend(map(int, re.findall(r"\d+", diagnostic.message_detail or "")[:1]))

    connection.add_notice_handler(record_row_count)
    try:
        connection.execute(f"VACUUM (FULL, VERBOSE) {table}")
    finally:
        connection.remove_notice_handler(record_row_count)
    if not row_counts:  # the server only warns
        reason = f"only the owner of the table {table} may write it again (VACUUM FULL)"
        raise StoreUnavailable(f"erased, but its bytes are still there: {reason}")
    return sum(row_counts)
