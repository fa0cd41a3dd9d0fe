"""Convert nodes and edges to rows of PostgreSQL and back, apply diffs, and search.

Search is by words, hops, paths and vectors. The conversion is exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.graph.changes import Identity
from kgot_lab.stores import sql
from kgot_lab.stores.postgres.tables import DEFAULT_VECTOR_SCHEMA, DROP_INDEXES, vector_schema
from kgot_lab.types import Diff, Edge, Json, Node

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

NODE_COLUMNS = "id, labels::text, properties::text"
EDGE_COLUMNS = "edges.source, edges.type, edges.target, edges.key, edges.properties::text"
_IDENTITY = ("source", "type", "target", "key")

# jsonb keeps a number's digits but not its notation: 1e+16 would be returned as an integer, and -0.0 without
# its sign. So the first is written out with a final .0, and the second as a zero with an unusual number of
# digits.
_INEXACT_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|-0\.0(?![0-9])|-?[0-9.]+e\+[0-9]+')
MINUS_ZERO = "0." + "0" * 42

# --- values ---


def node_to_row(node: Node) -> tuple[str, str, str]:
    """Return a node's row: id, labels and properties.

    Raises BadInput if PostgreSQL cannot store it exactly.
    """
    id, labels, properties = sql.node_row(node)
    sql.refuse_null(sql.json_text([id, *node.labels], "its texts") + properties, f"node {id!r}")
    return id, labels, jsonb_text(properties)


def edge_to_row(edge: Edge) -> tuple[str, str, str, str, str]:
    """Return an edge's row: source, type, target, key and properties.

    Raises BadInput if PostgreSQL cannot store it exactly.
    """
    properties = sql.edge_row(edge)[-1]
    sql.refuse_null(sql.json_text(list(edge.identity), "its ends") + properties, f"edge {edge.identity!r}")
    return *edge.identity, jsonb_text(properties)


def jsonb_text(text: str) -> str:
    """Rewrite JSON text so that jsonb returns every number as the same integer or float."""
    return _INEXACT_NUMBER.sub(_exact_number, text) if "e+" in text or "-0.0" in text else text


def register_dicts(connection: Connection) -> None:
    """Allow dicts as parameters of a statement, for JSON columns.

    Raises BadInput for one that cannot be stored exactly.
    """
    from psycopg.types.json import JsonbDumper

    class ExactDumper(JsonbDumper):
        def dump(self, obj: Any) -> bytes:
            return jsonb_text(sql.json_text(obj, "a parameter")).encode()

    connection.adapters.register_dumper(dict, ExactDumper)


def _exact_number(token: re.Match[str]) -> str:
    if token[0][0] == '"':
        return token[0]
    return MINUS_ZERO if token[0] == "-0.0" else f"{Decimal(token[0]):f}.0"


def parse_jsonb(text: str, owner: str = "a value") -> Json:
    """Parse JSON text from PostgreSQL.

    Raises BadInput if Python cannot represent the value.
    """
    try:
        return json.loads(text, parse_float=_parse_float if MINUS_ZERO in text else None)
    # integers of thousands of digits, thousands of nested lists
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{owner} cannot be read: {error}") from None


def _parse_float(text: str) -> float:
    return -0.0 if text == MINUS_ZERO else float(text)


node_from_row = partial(sql.node_from_row, parse=parse_jsonb)
edge_from_row = partial(sql.edge_from_row, parse=parse_jsonb)

# --- diffs ---


def drop_indexes_if_empty(connection: Connection) -> bool:
    """Return whether the graph is empty, and if so lock its tables and drop their indexes.

    The tables are then exclusive to this transaction, which must create the indexes again.
    """
    query = "SELECT 1 FROM nodes LIMIT 1"
    if connection.execute(query).fetchone():
        return False
    connection.execute("LOCK TABLE nodes, edges IN ACCESS EXCLUSIVE MODE")
    if connection.execute(query).fetchone():  # another store was faster
        return False
    connection.execute(DROP_INDEXES)
    return True


class DiffRows:
    """A diff as rows.

    Raises BadInput if PostgreSQL cannot store it exactly.
    """

    def __init__(self, diff: Diff):
        self.diff = diff
        self.added_nodes = [node_to_row(node) for node in diff.added_nodes]
        self.added_edges = [edge_to_row(edge) for edge in diff.added_edges]
        self.removed_nodes = [node_to_row(node)[0] for node in diff.removed_nodes]
        self.removed_edges = [edge_to_row(edge)[:4] for edge in diff.removed_edges]
        self.changed_nodes = [node_to_row(after) for _, after in diff.changed_nodes]
        self.changed_edges = [edge_to_row(after) for _, after in diff.changed_edges]

    def require_fit(self, connection: Connection, is_empty: bool) -> None:
        """Raise BadInput unless the diff fits.

        Reads the rows that decide it and locks them until the transaction ends.
        """
        ids, identities = sql.touched_keys(self.diff)
        if is_empty:
            sql.require_fit(self.diff, (), ())
            return
        locked_ids = [*self.removed_nodes, *(id for id, *_ in self.changed_nodes)]
        if locked_ids:
            connection.execute("SELECT FROM nodes WHERE id = ANY(%s) ORDER BY id FOR UPDATE", (locked_ids,))
        nodes = connection.execute(f"SELECT {NODE_COLUMNS} FROM nodes WHERE id = ANY(%s)", (ids,)).fetchall()
        edges = []
        if identities:
            query = f"SELECT {EDGE_COLUMNS} FROM edges JOIN {_join_rows(4)} FOR UPDATE OF edges"
            edges = connection.execute(query, _transpose(identities)).fetchall()
        if self.removed_nodes:
            at_removed = f"SELECT {EDGE_COLUMNS} FROM edges WHERE source = ANY(%s) OR target = ANY(%s)"
            edges += connection.execute(at_removed, (self.removed_nodes, self.removed_nodes)).fetchall()
        sql.require_fit(self.diff, map(node_from_row, nodes), map(edge_from_row, edges))

    def apply(self, connection: Connection) -> None:
        """Apply the diff, which `require_fit` has checked."""
        if self.removed_edges:
            query = f"DELETE FROM edges USING {_join_rows(4, on='WHERE')}"
            connection.execute(query, _transpose(self.removed_edges))
        if self.removed_nodes:
            connection.execute("DELETE FROM nodes WHERE id = ANY(%s)", (self.removed_nodes,))
        _copy_rows(connection, "nodes (id, labels, properties)", self.added_nodes)
        if self.changed_nodes:
            connection.execute(
                "UPDATE nodes SET labels = new.labels::jsonb, properties = new.properties::jsonb"
                " FROM unnest(%s::text[], %s::text[], %s::text[]) AS new (id, labels, properties) WHERE nodes.id = new.id",
                _transpose(self.changed_nodes),
            )
        _copy_rows(connection, "edges (source, type, target, key, properties)", self.added_edges)
        if self.changed_edges:
            query = f"UPDATE edges SET properties = these.properties::jsonb FROM {_join_rows(5, on='WHERE')}"
            connection.execute(query, _transpose(self.changed_edges))


def _join_rows(columns: int, *, on: str = "ON") -> str:
    """Build the SQL that joins edges to rows given column by column."""
    names = ", ".join((*_IDENTITY, "properties")[:columns])
    conditions = " AND ".join(f"edges.{name} = these.{name}" for name in _IDENTITY)
    return f"unnest({', '.join(['%s::text[]'] * columns)}) AS these ({names}) {on} {conditions}"


def _transpose(rows: Sequence[tuple[str, ...] | Identity]) -> list[list[str]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _copy_rows(connection: Connection, target: str, rows: Sequence[tuple[str, ...]]) -> None:
    if rows:
        with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


# The search for nodes by words.

_MAX_QUERY_WORDS = 500  # words of a query that are looked up

# Any word matches, as it is in an id and stemmed in the properties. Stop words (the, who) count only if there
# are no others.
SEARCH_QUERY = f"""
WITH each AS (
  SELECT lexeme AS plain, ts_lexize('pg_catalog.english_stem', lexeme) AS stems
  FROM unnest(to_tsvector('pg_catalog.simple', spaced(%(words)s))) LIMIT {_MAX_QUERY_WORDS}),
wanted AS (
  SELECT string_agg(quote_literal(form), ' | ')::tsquery AS query FROM each, unnest(plain || stems) AS form
  WHERE stems <> '{{}}' OR NOT EXISTS (SELECT FROM each WHERE stems <> '{{}}'))
SELECT {NODE_COLUMNS} FROM nodes, wanted WHERE words @@ query
ORDER BY ts_rank(words, query) DESC, length(id), id COLLATE "C" LIMIT %(limit)s
"""

# --- vectors ---


def pgvector_text(numbers: Iterable[float]) -> str:
    """Format numbers for pgvector, which stores 32-bit floats."""
    return f"[{','.join(f'{number:.9g}' for number in numbers)}]"


def require_pgvector(connection: Connection) -> str:
    """Return the schema of pgvector, creating the extension if needed.

    Raises StoreUnavailable if the server does not have it.
    """
    import psycopg

    if schema := vector_schema(connection):
        return schema
    try:
        connection.execute(f"CREATE EXTENSION IF NOT EXISTS vector SCHEMA {DEFAULT_VECTOR_SCHEMA}")
    except psycopg.Error as error:
        raise StoreUnavailable(
            f"vectors need pgvector in the server: install it, and run CREATE EXTENSION vector as a superuser ({str(error).strip()})"
        ) from None
    return DEFAULT_VECTOR_SCHEMA
