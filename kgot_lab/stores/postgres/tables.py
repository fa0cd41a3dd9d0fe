"""Create the schema, tables and role of a namespace in PostgreSQL, and check statements."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgot_lab.arguments import is_plain_text
from kgot_lab.errors import BadInput, QueryFailed, StoreUnavailable
from kgot_lab.io.files import read_statements
from kgot_lab.stores.sql import refuse_unless_sql_read
from kgot_lab.stores.statements import require_statement

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

_SCHEMA_COMMENT = "graph of kgot_lab, version 1"
DEFAULT_VECTOR_SCHEMA = "public"  # the schema in which pgvector is installed if it is missing
_LOCK_TIMEOUT = 30  # seconds to wait for another store that is writing
# of PostgreSQL: has generated columns, xid8 and SQL functions with a body that is parsed once
_MIN_SERVER_VERSION = 14

_NAMED_PARAMETER = re.compile(r"(?<!:):(\w+)")  # and not what stands behind ::

_SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
_STATEMENTS = read_statements(__file__, "namespace.sql")
INDEXES, DROP_INDEXES, GRANTS, _WIPE = (
    ";\n".join(_STATEMENTS[name]) for name in ("indexes", "drop_indexes", "grants", "wipe")
)


@cache
def to_postgres(statement: str) -> str:
    """Write the named parameters of a statement, as in :id, in the notation of the driver."""
    return _NAMED_PARAMETER.sub(r"%(\1)s", statement)


def fill_names(template: str, **names: str) -> str:
    """Insert names into an SQL template, quoted as identifiers."""
    return template.format(**{placeholder: quote_identifier(name) for placeholder, name in names.items()})


def quote_identifier(name: str) -> str:
    """Format a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def require_namespace(name: str) -> str:
    """Return a name if a schema can have it.

    Raises BadInput otherwise.
    """
    is_text = bool(name.strip()) and is_plain_text(name)
    if not is_text or len(name.encode()) > 63 or name.startswith("pg_"):
        limit = "at most 63 bytes that does not begin with pg_"
        raise BadInput(f"a namespace is text of {limit}, which {name!r} is not")
    return name


def role_name(namespace: str) -> str:
    """Return the role that a namespace's statements run as.

    All databases of a server share its roles, so the name identifies the namespace.
    """
    return f"kgot_lab_{hashlib.sha256(namespace.encode()).hexdigest()[:16]}"


def prepare_namespace(connection: Connection, namespace: str, *, wipe: bool, login: bool) -> str | None:
    """Create what a namespace needs if it is missing, and return the role of its statements.

    The role is None if this user may not create one. Statements then run with the user's own rights, and
    reads in a read-only transaction. Raises BadInput, changing nothing, if the schema was made by something
    else, and StoreUnavailable if the server is not suitable.
    """
    require_suitable_server(connection)
    with connection.transaction():
        comment = schema_comment(connection, namespace)
        if comment not in (None, _SCHEMA_COMMENT):
            problem = f"the schema {namespace!r} is there and not one of ours, so it was not touched"
            raise BadInput(f"{problem}; give another namespace")
        if comment and wipe:
            _drop_schema(connection, namespace)
        if not comment or wipe:
            create = "CREATE SCHEMA {namespace}; SET LOCAL search_path = {namespace}, pg_temp;"
            connection.execute(fill_names(create, namespace=namespace))
            comment = fill_names("COMMENT ON SCHEMA {namespace} IS ", namespace=namespace)
            connection.execute(comment + f"'{_SCHEMA_COMMENT}'")
            connection.execute(_SCHEMA)
            connection.execute(INDEXES)
        role = role_name(namespace)
        return ensure_role(connection, namespace, role, has_grants=_HAS_GRANTS, grants=GRANTS, login=login)


def schema_comment(connection: Connection, namespace: str) -> str | None:
    """Return the comment on a schema, which says who created it, or None if there is no such schema.

    Holds a lock, so that no other store creates the schema until the transaction ends.
    """
    lock = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
    connection.execute(lock, (f"{_SCHEMA_COMMENT} {namespace}",))
    query = "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = %s"
    found = connection.execute(query, (namespace,)).fetchone()
    return found[0] if found else None


def _drop_schema(connection: Connection, namespace: str) -> None:
    """Drop a schema with its tables.

    Fails if others added to it or depend on it.
    """
    from psycopg import errors

    try:
        query = "SET LOCAL search_path = {namespace}, pg_temp;" + _WIPE
        connection.execute(fill_names(query, namespace=namespace))
    except errors.DependentObjectsStillExist as error:
        raise BadInput(f"the namespace {namespace!r} was not wiped: {error}") from None


_HAS_GRANTS = "SELECT has_table_privilege(%s, 'facts', 'SELECT')"


def ensure_role(
    connection: Connection, namespace: str, role: str, *, has_grants: str, grants: str, login: bool = False
) -> str | None:
    """Return the role of a namespace, creating it and granting it its rights if needed.

    All databases of a server share its roles, so the role may exist before it has its rights, for which
    `has_grants` asks. None if this user may not create roles.
    """
    from psycopg import errors

    privilege = "SET" if connection.info.server_version >= 160_000 else "MEMBER"
    try:
        with connection.transaction():
            query = "SET LOCAL search_path = {namespace}, pg_temp"
            connection.execute(fill_names(query, namespace=namespace))
            query = "SELECT rolcanlogin FROM pg_roles WHERE rolname = %s"
            found = connection.execute(query, (role,)).fetchone()
            if found is None:
                _create_role(connection, role)
            if login and found != (True,):  # private server: nobody else can connect, no password needed
                alter = "ALTER ROLE {role} LOGIN; ALTER ROLE {role} SET temp_file_limit = '1GB'"
                connection.execute(fill_names(alter, role=role))
            query = f"SELECT pg_has_role(current_user, %s, '{privilege}')"
            for question, grant in ((query, "GRANT {role} TO CURRENT_USER"), (has_grants, grants)):
                if connection.execute(question, (role,)).fetchone() != (True,):
                    connection.execute(fill_names(grant, namespace=namespace, role=role))
    except errors.InsufficientPrivilege:
        return None
    return role


def _create_role(connection: Connection, role: str) -> None:
    """Create a role, which may exist by now."""
    from psycopg import errors

    try:
        with connection.transaction():
            connection.execute(fill_names("CREATE ROLE {role}", role=role))
    except (errors.DuplicateObject, errors.UniqueViolation):
        pass  # a store in another database of the server created it in the meantime


def require_suitable_server(connection: Connection) -> None:
    """Raise StoreUnavailable for a server that is too old, or whose texts are not in UTF-8."""
    if connection.info.server_version < _MIN_SERVER_VERSION * 10_000:
        problem = f"this PostgreSQL is older than version {_MIN_SERVER_VERSION}"
        raise StoreUnavailable(f"{problem}; the store needs that or a newer one")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        problem = f"the database is encoded in {encoding}, which cannot hold every text"
        raise StoreUnavailable(f"{problem}; give one that is in UTF8")


def vector_schema(connection: Connection) -> str | None:
    """Return the schema of pgvector, or None if it is not installed."""
    found = connection.execute(
        "SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'"
    ).fetchone()
    return found[0] if found else None


def configure_connection(connection: Connection, namespace: str) -> None:
    """Set the options of a connection: how texts are read, and the search path.

    The path contains the namespace's schema, then that of pgvector.
    """
    # in this order temporary tables cannot hide those of this package
    schemas = (namespace, vector_schema(connection) or DEFAULT_VECTOR_SCHEMA, "pg_temp")
    connection.execute(
        f"SET search_path = {', '.join(map(quote_identifier, schemas))};"
        f" SET standard_conforming_strings = on; SET lock_timeout = {_LOCK_TIMEOUT * 1000}; SET client_min_messages = warning"
    )


# Which statements may be sent to PostgreSQL, beyond what their role is denied, and the messages of the
# server's errors.

_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|(?P<name>"(?:[^"]|"")*"|[^\W\d][\w$]*)|(?P<sign>\S)""", re.DOTALL
)
# Volatile functions read and write files, sleep, lock, signal, notify, change settings and run text as SQL;
# these few do not.
SAFE_VOLATILE_FUNCTIONS = tuple(
    "random random_normal gen_random_uuid uuidv4 uuidv7 clock_timestamp timeofday".split()
)


def check_read(statement: str) -> str:
    """Return a single read statement without its semicolon.

    Raises QueryFailed if it is anything else.
    """
    _require_sendable(statement)
    refuse_unless_sql_read(statement)
    _refuse_escaped_names(statement)
    for token in _TOKEN.finditer(statement):
        if token["sign"] == ";":
            return f"{statement[: token.start()]} {statement[token.end() :]}"
    return statement


def refuse_volatile_calls(connection: psycopg.Connection[Any], statement: str) -> None:
    """Raise QueryFailed if a statement calls a function that the server declares as volatile.

    Such a function may do more than compute.
    """
    names = sorted({name for name, sign in pairwise(_tokens(statement)) if sign == "("})
    if not names:
        return
    query = (
        "SELECT proname FROM pg_catalog.pg_proc WHERE proname = ANY(%s) AND provolatile = 'v'"
        " AND proname <> ALL(%s) LIMIT 1"
    )
    if found := connection.execute(query, (names, list(SAFE_VOLATILE_FUNCTIONS))).fetchone():
        raise QueryFailed(statement, f"a statement cannot call {found[0]}: it may do more than compute")


def format_server_error(error: psycopg.Error, statement: str, *, offset: int = 0, seconds: float) -> str:
    """Format a server error, with its position in the statement.

    `offset` is the number of characters sent before the statement. Pass '' as `statement` to leave out the
    position.
    """
    if error.sqlstate == "57014":
        return f"the statement took longer than {seconds:g} seconds"
    diagnostics = error.diag
    parts = [diagnostics.message_primary or str(error)]
    position = int(diagnostics.statement_position or 0) - offset
    if 0 < position <= len(statement):
        line = statement.count("\n", 0, position - 1) + 1
        parts.append(f"at character {position}, line {line}: {statement[position - 1 : position + 39]!r}")
    more = {"detail": diagnostics.message_detail, "hint": diagnostics.message_hint}
    parts += [f"{kind}: {text}" for kind, text in more.items() if text]
    return "\n".join(parts)


def _require_sendable(statement: str) -> None:
    require_statement(statement)
    if "\0" in statement:
        raise QueryFailed(statement, "the statement holds a null byte, which PostgreSQL cannot read or keep")


def _refuse_escaped_names(statement: str) -> None:
    tokens = _tokens(statement, quotes=True)
    for one, two, three in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if one == "u" and two == "&" and three[0] in "\"'":
            problem = "texts and names with escapes (U&) cannot be used here"
            raise QueryFailed(statement, f"{problem}: write the characters themselves")


def _tokens(statement: str, *, quotes: bool = False) -> list[str]:
    """Return the names and signs of a statement, names as the server compares them.

    With `quotes`, quoted names and texts are returned as they are written.
    """
    found = []
    for token in _TOKEN.finditer(statement):
        if token["sign"] or (quotes and token[0][0] in "\"'"):
            found.append(token[0])
        elif name := token["name"]:
            found.append(name[1:-1].replace('""', '"') if name[0] == '"' else name.lower())
    return found
