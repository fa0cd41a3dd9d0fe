"""A graph in PostgreSQL: tables of nodes and edges, and an index of their words.

For the layers above that search and remember.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kgot_lab.arguments import is_plain_text
from kgot_lab.errors import BadInput, QueryFailed, StoreUnavailable, require_count, require_seconds
from kgot_lab.graph.validation import validate_diff
from kgot_lab.io.processes import OPENED_BEFORE_FORK, register_for_forks
from kgot_lab.stores.postgres import rows, tables
from kgot_lab.stores.postgres.connection import LinkGroup, PostgresLink
from kgot_lab.stores.postgres.server import Server
from kgot_lab.stores.sql import SqlGraph, sql_dialect
from kgot_lab.text.cleaning import format_count, plain_text
from kgot_lab.types import STATEMENT_SECONDS, Diff, Json, Node, Rows

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

_Parameters = Sequence[Any] | Mapping[str, Any]
POSTGRES = sql_dialect("SQL (PostgreSQL)")
_MAX_RESULT = 16_000_000  # approximate bytes of rows that one read may return
_ROW_OVERHEAD = 100  # overhead of a row in bytes, besides its text
_INDEX_LIMIT_ERROR = (
    "an id, or the ends, the type and the key of an edge together, are longer than PostgreSQL can index, about 2,700 bytes;"
    " nothing was changed: keep long text in a property"
)
BULK_ELEMENTS = 2_000  # elements: so many are put into an empty graph before its indexes are made, not after


class Postgres(SqlGraph):
    """A graph that is changed by diffs and read by SQL, on a PostgreSQL server.

    The server is at a URL, or else a private one in the folder `path`. A namespace is a schema, created by
    the first store that names it. `wipe` empties it first. Stores of one namespace see each other's writes,
    and may write at the same time. `seconds` is the time limit of one statement. When `apply`
    returns, its changes are committed. Properties keep their values but not the order of their names. Raises
    BadInput for a namespace that no store made, and StoreUnavailable if there is no server. A store
    reconnects to a server that comes back.
    """

    dialect = POSTGRES
    select_nodes = f"SELECT {rows.NODE_COLUMNS} FROM nodes"
    select_edges = f"SELECT {rows.EDGE_COLUMNS} FROM edges"
    _nodes, _edges = partial(map, rows.node_from_row), partial(map, rows.edge_from_row)

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str = "kgot",
        path: Path | str | None = None,
        seconds: float = STATEMENT_SECONDS,
        wipe: bool = False,
    ):
        if url and path is not None:
            raise BadInput("a store has a url or a path: a running server, or the folder of one to start")
        self.namespace, self.seconds = tables.require_namespace(namespace), require_seconds(seconds)
        self._url, self._server = url, None if url else Server(path)
        self._role: str | None = None
        self._wipe = wipe
        self._closed_reason = ""  # why it can no longer be used
        circle = LinkGroup()
        # creates tables, loads
        self._owner_link = PostgresLink(self._owner_address, self._prepare_owner, circle)
        # runs statements and queries
        self._link = PostgresLink(self._address, self._prepare_link, circle)
        try:
            for link in (self._owner_link, self._link):
                link.fetch_rows("SELECT")
        except BaseException:
            self.close()
            raise
        register_for_forks(self)

    def __repr__(self) -> str:
        try:
            query = "SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM edges)"
            nodes, edges = self._link.fetch_rows(query)[0]
        except StoreUnavailable:
            return f"<Postgres {self.namespace}: {'closed' if self._closed_reason else 'out of reach'}>"
        return f"<Postgres {self.namespace}: {format_count(nodes, 'node')}, {format_count(edges, 'edge')}>"

    # --- statements ---

    def read(self, statement: str, parameters: _Parameters = ()) -> Rows:
        """Run one SELECT, WITH or VALUES and return its rows, one dict each.

        Parameters replace %s or %(name)s, a dict for JSON. Only with parameters, a literal % must be doubled.
        Raises QueryFailed if the statement is refused or fails.
        """
        sent = tables.check_read(statement)
        prefix = f"SELECT left(row_to_json(found)::text, {_MAX_RESULT + 1}) FROM (\n"  # within brackets PostgreSQL takes no writing CTE
        begin = f"BEGIN READ ONLY; {self._timeout_setting}"
        failures = self._statement_errors(statement, "" if parameters else sent, len(prefix))
        with failures, self._link.transaction(begin, "ROLLBACK") as connection:
            tables.refuse_volatile_calls(connection, statement)
            return _fetch_rows(connection, f"{prefix}{sent}\n) AS found", parameters, statement)

    @contextmanager
    def _statement_errors(self, statement: str, shown: str, offset: int = 0) -> Iterator[None]:
        """Convert errors of the server and of the checks about a statement to QueryFailed.

        The server's positions count from `offset` before the text that is shown.
        """
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            problem = tables.format_server_error(error, shown, offset=offset, seconds=self.seconds)
            raise QueryFailed(statement, problem) from None
        # a row that is no node or edge; parameters that do not fit
        except (BadInput, TypeError, UnicodeError) as error:
            raise QueryFailed(statement, str(error)) from None

    def apply(self, diff: Diff) -> None:
        """Apply a diff to the graph, for example that of a write to another store.

        Raises BadInput, changing nothing, if it does not fit.
        """
        diff = validate_diff(diff)
        changes = rows.DiffRows(diff)
        is_bulk = len(diff.added_nodes) + len(diff.added_edges) > BULK_ELEMENTS
        with _value_errors("the diff does not fit the graph"), self._owner_link.transaction() as connection:
            unindexed = is_bulk and rows.drop_indexes_if_empty(connection)
            changes.require_fit(connection, is_empty=unindexed)
            changes.apply(connection)
            if unindexed:
                connection.execute(tables.INDEXES)
            if is_bulk:
                connection.execute("ANALYZE nodes, edges")

    def close(self) -> None:
        """Disconnect, and stop a private server that nobody else uses.

        A later call raises StoreUnavailable.
        """
        self._closed_reason = self._closed_reason or "was closed; open another"
        self._owner_link.close()
        self._link.close()
        if self._server is not None:
            self._server.release()

    def after_fork(self) -> None:
        """Mark the store as closed in a forked child, since connections and server are the parent's."""
        self._closed_reason = self._closed_reason or OPENED_BEFORE_FORK

    # --- queries ---

    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]:
        """Return the nodes that share words with a query in their id or properties, best first by ts_rank.

        Ties go to the shorter id.
        """
        require_count(limit, 0, "limit")
        values = {"words": plain_text(words), "limit": limit}
        return tuple(map(rows.node_from_row, self._link.fetch_rows(rows.SEARCH_QUERY, values)))

    # --- internal ---

    def _rows(self, query: str, **values: str) -> list[Any]:
        is_storable = all(map(is_plain_text, values.values()))
        return self._link.fetch_rows(tables.to_postgres(query), values) if is_storable else []

    def _snapshot(self) -> AbstractContextManager[object]:
        return self._link.snapshot()

    @property
    def _timeout_setting(self) -> str:
        return f"SET LOCAL statement_timeout = {max(1, round(self.seconds * 1000))}"

    def _owner_address(self) -> str:
        if self._closed_reason:
            raise StoreUnavailable(f"this store of {self.namespace!r} {self._closed_reason}")
        if self._server is None:
            return self._url or ""
        self._server.start()
        return self._server.conninfo()

    def _address(self) -> str:
        """Return the server's address, on a private server with the login of the statements' role.

        No statement can then change to another role.
        """
        owner = self._owner_address()
        if self._server is None:
            return owner
        return self._server.conninfo(self._role or tables.role_name(self.namespace))

    def _prepare_owner(self, connection: Connection) -> None:
        login = self._server is not None
        self._role = tables.prepare_namespace(connection, self.namespace, wipe=self._wipe, login=login)
        self._wipe = False
        tables.configure_connection(connection, self.namespace)

    def _prepare_link(self, connection: Connection) -> None:
        tables.configure_connection(connection, self.namespace)
        rows.register_dicts(connection)
        if self._server is None and self._role is not None:
            connection.execute(tables.fill_names("SET ROLE {role}", role=self._role))


@contextmanager
def _value_errors(message: str) -> Iterator[None]:
    """Convert the server's errors about values to BadInput, and all others to StoreUnavailable."""
    import psycopg
    from psycopg import errors

    try:
        yield
    except errors.ProgramLimitExceeded as error:
        problem = _INDEX_LIMIT_ERROR if "index row" in str(error) else f"{message}: {str(error).strip()}"
        raise BadInput(problem) from None
    except (psycopg.IntegrityError, psycopg.DataError) as error:
        raise BadInput(f"{message}: {str(error).strip()}") from None
    except psycopg.Error as error:
        problem = "PostgreSQL could not do this, and nothing was changed"
        raise StoreUnavailable(f"{problem}: {str(error).strip()}") from None


def _fetch_rows(connection: Connection, query: str, parameters: _Parameters, statement: str) -> Rows:
    """Run a query that returns each row as JSON and return the rows.

    Raises QueryFailed if the result is too large or two columns have the same name.
    """
    found: list[Json] = []
    size = 0
    stream = cast("Generator[tuple[str], None, None]", connection.cursor().stream(query, parameters or None))
    with closing(stream) as texts:  # closing also stops the server if not all rows were read
        for (text,) in texts:
            size += len(text) + _ROW_OVERHEAD
            if size > _MAX_RESULT:
                problem = f"the statement returned more than {_MAX_RESULT:,} bytes"
                raise QueryFailed(statement, f"{problem}; ask for less, for example with LIMIT")
            if not found:
                names = [name for name, _ in json.loads(text, object_pairs_hook=list)]
                if len(set(names)) < len(names):
                    problem = f"two columns have one name among {', '.join(names)}"
                    raise QueryFailed(statement, f"{problem}: give each its own with AS")
            found.append(rows.parse_jsonb(text))
    return tuple(found)
