"""A world in a schema of a PostgreSQL server, under a role of its own that has rights to nothing else.

Worlds of one database are kept apart by schemas and not by row-level security. No statement has a filter that could be forgotten: tables
are named without a schema, so those of other worlds have no name here, and one that is spelt out is refused to the role. Policies on rows
would not bind the owner of the tables or a superuser, and each key and index would carry the world. The price is a set of tables for each
world: thousands of them weigh on the server's catalogue. Where the login may make no roles, the schemas alone keep worlds apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.domains.npc.schema import POSTGRES_MIGRATIONS, WORLD_VERSION
from kgot_lab.domains.npc.storage import WorldRow
from kgot_lab.domains.npc.things import VisibleWorld
from kgot_lab.domains.npc.visible_there import VISIBLE, asked_of_policy, visible_of
from kgot_lab.errors import BadInput, LabError, StoreDamaged, StoreUnavailable, require
from kgot_lab.inherited import ELSEWHERE, tell_of_forks
from kgot_lab.memory.files import LONGEST_WAIT
from kgot_lab.stores.postgres.link import Circle, PostgresLink, driver
from kgot_lab.stores.postgres.rows import value_of_postgres
from kgot_lab.stores.postgres.tables import create_role, fit_namespace, mark_of_schema, named, quoted, refuse_unfit_server, role_of

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

WORLD_NAMESPACE = "kgot_world"
_MARK = "world of kgot_lab, version "  # on the schema, before the number
_NAMED = re.compile(r"(?<!:):(\w+)")  # and not what stands behind ::
_SETTINGS = f"""SET search_path = {{namespace}}, pg_temp; SET lock_timeout = {round(LONGEST_WAIT * 1000)};
SET client_min_messages = warning; SET standard_conforming_strings = on;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"""
_GRANTS = """GRANT USAGE ON SCHEMA {namespace} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {namespace} TO {role}"""

_GRANTED = """SELECT bool_and(has_table_privilege(%s, oid, 'DELETE')) FROM pg_class
  WHERE relnamespace = %s::regnamespace AND relkind = 'r'"""


class PostgresWorld:
    """A WorldStorage in the schema `namespace` of the server at a URL, made if there is none there.

    A server that went away is found again when it is back. Raises BadInput for a URL that is none, for a schema that something else or a
    newer version made, which is not touched, StoreUnavailable, StoreDamaged where tables are missing, and NotInstalled.
    """

    def __init__(self, url: str, *, namespace: str = WORLD_NAMESPACE) -> None:
        require(url, str, "the address of PostgreSQL is a text")
        require(namespace, str, "a namespace is a text")
        self.namespace, self._url = fit_namespace(namespace), url
        self._lock = int.from_bytes(hashlib.blake2b(f"{_MARK}{namespace}".encode(), digest_size=8).digest(), "big", signed=True)
        self._over: LabError | None = None  # why it can be used no more
        self._within: Connection | None = None  # in a transaction, of the thread that has the lock
        self._circle = Circle()
        self._link = PostgresLink(self._where, self._greet, self._circle)
        tell_of_forks(self)
        self.rows("SELECT 1")

    def __repr__(self) -> str:
        return f"<PostgresWorld {self.namespace}>"

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[WorldRow]:
        with self._circle.lock:
            if self._within is not None:  # the transaction tells what goes wrong
                return _found(self._within, statement, values)
            with self._told(), self._link.outside() as connection:  # a statement is all or nothing by itself, in one exchange
                return _found(connection, statement, values)

    def each(self, statement: str, values: Sequence[Mapping[str, Any]]) -> None:
        with self.changing():
            if values and self._within is not None:
                self._within.cursor().executemany(_in_psycopg(statement), values)  # sent together

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        with self._transaction(f"BEGIN; SELECT pg_advisory_xact_lock({self._lock})"):
            yield

    def visible(self, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld | None:
        return visible_of(self.rows(VISIBLE, asked_of_policy(npc_id, policy)))

    def close(self) -> None:
        self._over = self._over or BadInput(f"{self!r} was closed: open it again")
        self._link.close()

    def forked(self) -> None:
        """In a child: the connection is the parent's."""
        self._over = self._over or StoreUnavailable(f"{self!r} {ELSEWHERE}")
        self._within = None

    # --- inside -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._circle.lock:
            if self._within is not None:
                yield
                return
            with self._told(), self._link.transaction(begin) as connection:
                self._within = connection
                try:
                    yield
                finally:
                    self._within = None
                self._refuse_over()

    def _refuse_over(self) -> None:
        if self._over is not None:
            raise type(self._over)(str(self._over))

    def _where(self) -> str:
        self._refuse_over()
        return self._url

    def _greet(self, connection: Connection) -> None:
        from psycopg.types.json import set_json_loads

        refuse_unfit_server(connection)
        with connection.transaction():
            mark = mark_of_schema(connection, self.namespace)
            if mark is None:
                connection.execute(named("CREATE SCHEMA {namespace}", namespace=self.namespace))
            self._migrate(connection, _version(mark, self.namespace))
            role = _role(connection, self.namespace)
        connection.execute(named(_SETTINGS, namespace=self.namespace))
        if role is not None:
            connection.execute(named("SET ROLE {role}", role=role))
        set_json_loads(lambda text: value_of_postgres(text if isinstance(text, str) else text.decode()), connection)

    def _migrate(self, connection: Connection, version: int) -> None:
        """Bring the tables from one version to the last."""
        if version < WORLD_VERSION:
            connection.execute(named("SET LOCAL search_path = {namespace}, pg_temp", namespace=self.namespace))
            for migration in POSTGRES_MIGRATIONS[version:]:
                for statement in migration:
                    connection.execute(statement)
            mark = named("COMMENT ON SCHEMA {namespace} IS ", namespace=self.namespace) + f"'{_MARK}{WORLD_VERSION}'"
            connection.execute(mark)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """In the place of an error of the server's, raise one that says what to do; of its words the first line alone: others hold rows."""
        psycopg = driver()
        lost = tuple(getattr(psycopg.errors, name) for name in ("UndefinedTable", "UndefinedColumn", "DataCorrupted", "IndexCorrupted"))
        try:
            yield
        except psycopg.errors.LockNotAvailable:
            said = f"another process has been writing to it for {LONGEST_WAIT:g} s"
            raise StoreUnavailable(f"{self!r}: {said}; try again when it is done") from None
        except lost as error:
            raise StoreDamaged(f"{self!r} is damaged ({_said(error)}): put a backup of its schema in its place") from None
        except (psycopg.errors.ProgramLimitExceeded, psycopg.DataError) as error:
            raise BadInput(f"{self!r} cannot hold this, and nothing was changed: {_said(error)}") from None
        except psycopg.Error as error:
            raise StoreUnavailable(f"{self!r}: PostgreSQL does not let it work: {_said(error)}") from None


def _found(connection: Connection, statement: str, values: Mapping[str, Any] | None) -> list[WorldRow]:
    given = {name: list(value) if isinstance(value, tuple | set) else value for name, value in (values or {}).items()}
    cursor = connection.execute(_in_psycopg(statement), given)
    return cursor.fetchall() if cursor.description else []


def _version(mark: str | None, namespace: str) -> int:
    """The version of the tables in a schema, 0 where it is new; raises BadInput for one that is not ours, or of a newer version."""
    if mark is None:
        return 0
    version = mark.removeprefix(_MARK)
    if version == mark or not version.isdecimal():
        raise BadInput(f"the schema {namespace!r} is there and holds no world, so it was not touched; give another namespace")
    if int(version) > WORLD_VERSION:
        newer = f"made by a newer version of this package (format {version}, known is {WORLD_VERSION})"
        raise BadInput(f"the schema {namespace!r} was {newer}, so it was not touched; update the package")
    return int(version)


def _role(connection: Connection, namespace: str) -> str | None:
    """The role of a world, made if need be; None where we may not make one."""
    from psycopg import errors

    role = role_of(f"world {namespace}")
    usable = "SET" if connection.info.server_version >= 160_000 else "MEMBER"
    try:
        with connection.transaction():
            if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
                create_role(connection, role)
            if connection.execute(f"SELECT pg_has_role(current_user, %s, '{usable}')", (role,)).fetchone() != (True,):
                connection.execute(named("GRANT {role} TO CURRENT_USER", role=role))
            if connection.execute(_GRANTED, (role, quoted(namespace))).fetchone() != (True,):
                connection.execute(named(_GRANTS, namespace=namespace, role=role))
    except errors.InsufficientPrivilege:
        return None
    return role


def _said(error: psycopg.Error) -> str:
    return error.diag.message_primary or type(error).__name__


@cache
def _in_psycopg(statement: str) -> str:
    return _NAMED.sub(r"%(\1)s", statement)
