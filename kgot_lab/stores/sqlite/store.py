"""A graph in one SQLite file: tables of nodes and edges, and an index of their words.

For the layers above that search and remember.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, QueryFailed, require_count, require_seconds
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.validation import validate_diff
from kgot_lab.io.sqlite.connection import Connection
from kgot_lab.stores import sql
from kgot_lab.stores.sqlite import damage, tables
from kgot_lab.stores.sqlite.file import GraphFile, damaged_error, unavailable_error
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import STATEMENT_SECONDS, Diff, Edge, Node, Rows

_Parameters = Sequence[Any] | Mapping[str, Any]
SQLITE = sql.sql_dialect("SQL (SQLite)")
NAME_WEIGHT = 5.0  # weight of a word in a node's name, relative to one in its properties
# virtual machine instructions between two checks of the time, well under a millisecond
_STEPS_PER_CHECK = 5_000
_MIN_COMMON_NODES = 1_000  # nodes that must contain a word before it can count as common
BULK_ROWS = 2_000  # rows from which on inserting is faster without a trigger for each

_NODES, _EDGES = damage.SELECT_WITH_CHECKSUM["nodes"], damage.SELECT_WITH_CHECKSUM["edges"]
_SEARCH = (
    f"{_NODES} JOIN (SELECT rowid, -bm25(words, ?, 1.0) AS score FROM words WHERE words MATCH ? ORDER BY score DESC, rowid LIMIT ?) AS best"
    " ON best.rowid = number ORDER BY score DESC, length(id), id"
)
_WHERE_EDGE = "WHERE source = ? AND type = ? AND target = ? AND key = ?"


class Sqlite(GraphFile, sql.SqlGraph):
    """A graph that is changed by diffs and read by SQL, in an SQLite file or, without a path, in memory.

    `seconds` is the time limit of one statement. When `apply` returns, its changes are on disk.
    Threads and processes may share a file: they wait for each other. Raises BadInput for a file of another
    kind, and StoreUnavailable for one that cannot be opened.
    """

    dialect = SQLITE
    select_nodes, select_edges = _NODES, _EDGES

    def __init__(self, path: Path | str = ":memory:", *, seconds: float = STATEMENT_SECONDS):
        self.seconds = require_seconds(seconds)
        super().__init__(None if str(path) == ":memory:" else Path(path).expanduser())

    def __repr__(self) -> str:
        name = self._path.name if self._path else "in memory"
        if self._over is not None:
            return f"<{type(self).__name__} {name}: closed>"
        nodes, edges = self._query("SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM edges)")[0]
        return f"<{type(self).__name__} {name}: {format_count(nodes, 'node')}, {format_count(edges, 'edge')}>"

    # --- statements ---

    def read(self, statement: str, parameters: _Parameters = ()) -> Rows:
        """Run one SELECT, WITH or VALUES and return its rows, one dict each.

        The columns labels and properties are lists and objects, all others as SQLite returns them. Raises
        QueryFailed if the statement is refused or fails.
        """
        sql.refuse_unless_sql_read(statement, brackets=False)
        with self._lock:
            self._require_open()
            with (
                self._statement_errors(statement),
                self._time_limit(),
                closing(self._reader.execute(statement, parameters)) as cursor,
            ):
                return tables.fetch_rows(cursor, statement)

    def apply(self, diff: Diff) -> None:
        """Apply a diff to the graph, for example that of a write to another store.

        Raises BadInput, changing nothing, if it does not fit.
        """
        diff = validate_diff(diff)
        nodes = [sql.node_row(node) for node in diff.added_nodes]
        edges = [sql.edge_row(edge) for edge in diff.added_edges]
        changed_nodes = [(*sql.node_row(after)[1:], after.id) for _, after in diff.changed_nodes]
        changed_edges = [(sql.edge_row(after)[-1], *after.identity) for _, after in diff.changed_edges]
        is_bulk = len(nodes) + len(edges) + len(changed_nodes) + len(changed_edges) >= BULK_ROWS
        deletions: tuple[tuple[str, list[Any]], ...] = (
            (f"DELETE FROM edges {_WHERE_EDGE}", [edge.identity for edge in diff.removed_edges]),
            ("DELETE FROM nodes WHERE id = ?", [(node.id,) for node in diff.removed_nodes]),
        )
        insertions: tuple[tuple[str, list[Any]], ...] = (
            ("INSERT INTO nodes (id, labels, properties) VALUES (?, ?, ?)", nodes),
            ("UPDATE nodes SET labels = ?, properties = ? WHERE id = ?", changed_nodes),
            ("INSERT INTO edges (source, type, target, key, properties) VALUES (?, ?, ?, ?, ?)", edges),
            (f"UPDATE edges SET properties = ? {_WHERE_EDGE}", changed_edges),
        )
        with self._write_transaction() as writer:
            self._require_fit(diff, writer)
            for statement, rows in deletions:
                writer.executemany(statement, rows)
            with self._bulk_insert() if is_bulk else nullcontext():
                for statement, rows in insertions:
                    writer.executemany(statement, rows)

    # --- queries ---

    def graph(self) -> PropertyGraph:
        """Return the whole graph in its current state, oldest elements first."""
        try:
            return super().graph()
        except BadInput as error:
            with self._connected() as connection:
                raise damaged_error(self._path, damage.find_dangling_edge(connection) or str(error)) from None

    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]:
        """Return the nodes that share words with a query in their name or properties, best first by BM25.

        Ties go to the shorter id.
        """
        require_count(limit, 0, "limit")
        with self._snapshot():
            match_query = " OR ".join(self._distinctive_terms(tables.query_terms(words)))
            found = self._query(_SEARCH, (NAME_WEIGHT, match_query, limit)) if match_query else []
        return tuple(self._nodes(found))

    # --- for a graph that is kept in this process too ---

    def state(self) -> tuple[object, int]:
        """Return what changes whenever another connection has written to the file, or this one is opened again."""
        return self._connection, self._query("PRAGMA data_version")[0][0]

    def transaction(self) -> AbstractContextManager[object]:
        """Open a transaction for a block, in which nobody else writes. An error in it undoes what the block wrote."""
        return self._transaction()

    # --- internal ---

    def _rows(self, query: str, **values: str) -> list[Any]:
        return self._query(query, values)

    def _snapshot(self) -> AbstractContextManager[object]:
        return self._transaction("BEGIN", "ROLLBACK")

    def _distinctive_terms(self, terms: list[str]) -> list[str]:
        """Return the terms that occur in at most a tenth of all nodes, or all terms if there are none.

        Scoring a common term is slow.
        """
        common = max(_MIN_COMMON_NODES, self._query("SELECT count(*) FROM nodes")[0][0] // 10)
        query = "SELECT count(*) FROM words WHERE words MATCH ?"
        times = {term: self._query(query, (term,))[0][0] for term in terms}
        return [term for term in terms if 0 < times[term] <= common] or terms

    def _nodes(self, rows: Iterable[sql.SqlRow]) -> Iterator[Node]:
        yield from map(sql.node_from_row, self._checked_rows(rows))

    def _edges(self, rows: Iterable[sql.SqlRow]) -> Iterator[Edge]:
        yield from map(sql.edge_from_row, self._checked_rows(rows))

    def _checked_rows(self, rows: Iterable[sql.SqlRow]) -> Iterator[sql.SqlRow]:
        """Yield rows without their checksums.

        Raises StoreDamaged if a row does not match its checksum.
        """
        for row in rows:
            if not damage.has_valid_checksum(row):
                raise damaged_error(self._path, f"what it holds of {row[0]!r} {damage.CHECKSUM_MISMATCH}")
            yield row[:-1]

    def _query(self, statement: str, parameters: _Parameters = ()) -> list[Any]:
        """Run an internal statement and return its rows."""
        try:
            with self._connected() as connection:
                return connection.execute(statement, parameters).fetchall()
        except UnicodeEncodeError:
            return []  # half a surrogate pair is in no graph

    @contextmanager
    def _write_transaction(self) -> Iterator[Connection]:
        """Open a write transaction.

        Raises BadInput if the tables refuse a value, and StoreUnavailable if the file was replaced meanwhile.
        """
        with self._transaction():
            try:
                with self._connection.raise_callback_errors():
                    yield self._connection
            except sqlite3.Error as error:
                refusal = BadInput(f"the database refused it: {error}")
                raise unavailable_error(error, self._path) or refusal from None

    @contextmanager
    def _statement_errors(self, statement: str) -> Iterator[None]:
        """Convert errors of SQLite and of the checks about a statement to QueryFailed."""
        self._guard.refused = ""
        try:
            with self._reader.raise_callback_errors():
                yield
        except sqlite3.Error as error:
            file_error = unavailable_error(error, self._path)
            if file_error and getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_FULL:
                raise file_error from None
            raise QueryFailed(statement, self._error_reason(error)) from None
        # the last three are for parameters
        except (BadInput, TypeError, OverflowError, UnicodeError) as error:
            raise QueryFailed(statement, str(error)) from None

    def _error_reason(self, error: sqlite3.Error) -> str:
        code = getattr(error, "sqlite_errorcode", 0)
        if code == sqlite3.SQLITE_INTERRUPT:
            return f"took longer than {self.seconds:g} s and was stopped"
        if code == sqlite3.SQLITE_FULL:
            return f"{error}: the statement needs more room than there is"
        return f"{error}: {self._guard.refused}" if str(error) == "not authorized" else str(error)

    @contextmanager
    def _time_limit(self) -> Iterator[None]:
        deadline = time.monotonic() + self.seconds
        self._reader.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_PER_CHECK)
        try:
            yield
        finally:
            self._reader.set_progress_handler(None, 0)

    def _require_fit(self, diff: Diff, writer: Connection) -> None:
        """Raise BadInput unless a diff fits, reading only the rows that decide it."""
        ids, identities = sql.touched_keys(diff)
        if not self._query("SELECT 1 FROM nodes LIMIT 1"):
            ids, identities = [], []
        node_rows = (row for id in ids for row in writer.execute(f"{_NODES} WHERE id = ?", (id,)))
        nodes = list(self._nodes(node_rows))
        query = f"{_EDGES} {_WHERE_EDGE}"
        edge_rows = (row for identity in identities for row in writer.execute(query, identity))
        edges = {edge.identity: edge for edge in self._edges(edge_rows)}
        for node in diff.removed_nodes:
            edges.update((edge.identity, edge) for edge in self.neighbours(node.id))
        sql.require_fit(diff, nodes, edges.values())
