"""Open a world: in an SQLite file, in memory, or in a schema of a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kgot_lab.arguments import check_arguments
from kgot_lab.domains.npc.layers import storage as layers
from kgot_lab.domains.npc.layers.models import ChunkMatch, ContextQuery, ContextResult
from kgot_lab.domains.npc.models import VisibleWorld
from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.domains.npc.statements import (
    DEFINITIONS,
    WORLD_LAYOUT,
    WorldRow,
    WorldStorage,
    to_entity,
    to_plain_column,
)
from kgot_lab.domains.npc.visibility import (
    VISIBLE,
    missing_entity_error,
    policy_parameters,
    visible_in_python,
    world_from_rows,
)
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.embedding.embedder import Matrix
from kgot_lab.errors import BadInput, require_probability
from kgot_lab.io.times import utc_now
from kgot_lab.stores.postgres.connection import import_driver
from kgot_lab.stores.postgres.rows import parse_jsonb, pgvector_text, require_pgvector
from kgot_lab.stores.postgres.tables import ensure_role, fill_names, quote_identifier, role_name
from kgot_lab.stores.tables.opening import open_at
from kgot_lab.stores.tables.postgres import PostgresTables, format_server_error
from kgot_lab.stores.tables.sqlite import SQLiteTables

# A world in one SQLite file, or in memory.


class SQLiteWorld(SQLiteTables):
    """A WorldStorage in a file, created if missing, or in memory (":memory:").

    Raises what all SQLite stores raise.
    """

    def __init__(self, path: Path | str = ":memory:") -> None:
        super().__init__(WORLD_LAYOUT, path)
        self.rows("PRAGMA foreign_keys = ON")  # deleting an entity deletes its relationships

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[WorldRow]:
        plain = {name: to_plain_column(value) for name, value in (values or {}).items()}
        return super().rows(statement, plain)

    def visible_world(self, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld | None:
        return visible_in_python(self, npc_id, policy)

    def prepare_log(self) -> None:
        self.define("log", (*DEFINITIONS["log"], *DEFINITIONS["log_words_sqlite"]))

    def prepare_chunks(self) -> None:
        self.define("chunks", DEFINITIONS["chunks"])

    def vector(self, row: Matrix) -> bytes:
        return np.asarray(row, "<f4").tobytes()

    def nearest(self, vector: Matrix, embedder: str, limit: int) -> tuple[ChunkMatch, ...]:
        return layers.nearest_in_python(self, vector, embedder, limit)

    def query_with_context(self, query: ContextQuery) -> tuple[ContextResult, ...]:
        return layers.context_in_python(self, query)

    def has_table(self, table: str) -> bool:
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE name = :table", {"table": table}))

    def define(self, table: str, statements: Iterable[str]) -> None:
        with self.changing():
            if not self.has_table(table):
                for statement in statements:
                    self.rows(statement)
        if self._path is not None:
            self._keep_checksums(self._connection)


# A world in a schema of a PostgreSQL server, with its own role that has no other rights.
#
# Worlds of one database are separated by schemas and not by row-level security. No statement has a filter
# that could be forgotten: tables are named without a schema, so those of other worlds have no name here, and
# a qualified name is refused to the role. Policies on rows would not bind the owner of the tables or a
# superuser, and each key and index would have to include the world. The cost is a set of tables for each
# world: thousands of them burden the server's catalogue. If the login may not create roles, only the schemas
# separate worlds.

if TYPE_CHECKING:
    from kgot_lab.stores.tables.postgres import Connection

WORLD_NAMESPACE = "kgot_world"
_GRANTS = """GRANT USAGE ON SCHEMA {namespace} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {namespace} TO {role}"""

_HAS_GRANTS = """SELECT bool_and(has_table_privilege(%s, oid, 'DELETE')) FROM pg_class
  WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind = 'r'"""


class PostgresWorld(PostgresTables):
    """A WorldStorage in the schema `namespace` of a server, created if missing.

    Raises what all PostgreSQL stores raise.
    """

    alone = ""
    _vectors = ""  # the schema of pgvector, once chunks are used

    def __init__(self, url: str, *, namespace: str = WORLD_NAMESPACE) -> None:
        super().__init__(WORLD_LAYOUT, url, namespace=namespace)

    def visible_world(self, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld | None:
        return world_from_rows(self.rows(VISIBLE, policy_parameters(npc_id, policy)))

    def rewrite_statement(self, statement: str) -> str:
        """Insert the schema of pgvector, which is on no search path, because it may contain tables of other worlds."""
        return statement.replace("pgvector.", f"{quote_identifier(self._vectors)}.")

    def prepare_log(self) -> None:
        self.define("log", (*DEFINITIONS["log"], *DEFINITIONS["log_words_postgres"]))

    def prepare_chunks(self) -> None:
        """Create the table of chunks, and install pgvector if necessary.

        Raises StoreUnavailable if the server does not have it.
        """
        with self._as_owner() as connection:
            self._vectors = require_pgvector(connection)
        self.define("chunks", DEFINITIONS["chunks"])

    def vector(self, row: Matrix) -> str:
        return pgvector_text(row)

    def nearest(self, vector: Matrix, embedder: str, limit: int) -> tuple[ChunkMatch, ...]:
        values = {"vector": self.vector(vector), "embedder": embedder, "limit": limit}
        return tuple(
            ChunkMatch(layers.chunk_from_row(row), row[-1]) for row in self.rows(layers.NEAREST, values)
        )

    def query_with_context(self, query: ContextQuery) -> tuple[ContextResult, ...]:
        rows = self.rows(layers.CONTEXT, layers.query_parameters(query, self.vector(query.vector)))
        if not rows:  # not even the row of the character
            raise missing_entity_error(query.npc_id)
        # a character without results has one row
        return tuple(ContextResult(to_entity(row[:6]), *row[6:]) for row in rows if row[0] is not None)

    def has_table(self, table: str) -> bool:
        name = {"table": quote_identifier(table)}
        return self.rows("SELECT to_regclass(CAST(:table AS text)) IS NOT NULL", name) == [(True,)]

    def define(self, table: str, statements: Iterable[str]) -> None:
        with self._as_owner() as connection:
            if not self.has_table(table):
                for statement in statements:
                    connection.execute(self.rewrite_statement(statement))

    @contextmanager
    def _as_owner(self) -> Iterator[Connection]:
        """Run a transaction with the rights of the login, which the role of the world does not have.

        Objects created in it are granted to the role.
        """
        with self.changing(), self._transaction("") as connection:
            connection.execute("RESET ROLE")
            yield connection
            if (role := self.find_role(connection)) is not None:
                connection.execute(fill_names("SET ROLE {role}", role=role))

    def find_role(self, connection: Connection) -> str | None:
        """Return the role of a world, created if necessary, or None if the login may not create one."""
        role = role_name(f"world {self.namespace}")
        return ensure_role(connection, self.namespace, role, has_grants=_HAS_GRANTS, grants=_GRANTS)

    def _prepare_connection(self, connection: Connection) -> None:
        from psycopg.types.json import set_json_loads

        super()._prepare_connection(connection)
        set_json_loads(lambda text: parse_jsonb(text if isinstance(text, str) else text.decode()), connection)

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        psycopg = import_driver()
        with super()._convert_errors():
            try:
                yield
            except (psycopg.errors.ProgramLimitExceeded, psycopg.DataError) as error:
                problem = format_server_error(error)
                raise BadInput(f"{self!r} cannot hold this, and nothing was changed: {problem}") from None


@check_arguments
def open_world(
    place: Path | str = ":memory:",
    *,
    namespace: str | None = None,
    accept_from: float = 0.7,
    now: Callable[[], datetime] = utc_now,
) -> NpcWorld:
    """Open a world in an SQLite file, in memory (":memory:"), or on a PostgreSQL server by its address.

    `namespace` names its schema in PostgreSQL. A missing world is created. Raises BadInput if the place is
    invalid or holds something else, or a file is given a namespace. Also raises StoreUnavailable,
    StoreDamaged and NotInstalled.
    """
    require_probability(accept_from, "accept_from")

    kinds: tuple[Callable[..., WorldStorage], ...] = (SQLiteWorld, PostgresWorld)
    storage = open_at(place, "worlds", *kinds, namespace=namespace, example="town.db")
    return NpcWorld(storage, accept_from=accept_from, now=now)
