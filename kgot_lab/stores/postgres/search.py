"""What PostgreSQL is asked to find: nodes by words, nodes within hops, paths, and nodes by vectors."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.graph.dict_graph import Identity
from kgot_lab.stores.postgres.rows import POSTGRES_EDGE, POSTGRES_NODE, edge_of_postgres
from kgot_lab.stores.postgres.tables import VECTORS, named, quoted, vector_schema
from kgot_lab.text.surrogates import whole
from kgot_lab.types import Edge

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

_MOST_WORDS = 500  # words of a question that are looked up
_TOGETHER = 500  # vectors in one statement

# Any word will do, as it is in an id and stemmed in the properties. Words that say little (the, who) count
# only if there are no others.
SEARCH = f"""
WITH each AS (
  SELECT lexeme AS plain, ts_lexize('pg_catalog.english_stem', lexeme) AS stems
  FROM unnest(to_tsvector('pg_catalog.simple', spaced(%(words)s))) LIMIT {_MOST_WORDS}),
wanted AS (
  SELECT string_agg(quote_literal(form), ' | ')::tsquery AS query FROM each, unnest(plain || stems) AS form
  WHERE stems <> '{{}}' OR NOT EXISTS (SELECT FROM each WHERE stems <> '{{}}'))
SELECT {POSTGRES_NODE} FROM nodes, wanted WHERE words @@ query
ORDER BY ts_rank(words, query) DESC, length(id), id COLLATE "C" LIMIT %(limit)s
"""
_HELD = "jsonb_path_exists(properties, 'strict $.** ? (@ == $value)', %(value)s::jsonb)"
HOLDS = (
    f"SELECT 1 FROM nodes WHERE id = %(text)s OR labels ? %(text)s OR {_HELD} "
    f"UNION ALL SELECT 1 FROM edges WHERE type = %(text)s OR {_HELD} LIMIT 1"
)
_NEXT = "SELECT target FROM edges WHERE source = ANY(%(ids)s) UNION SELECT source FROM edges WHERE target = ANY(%(ids)s)"
_STEPS = """
SELECT DISTINCT ON (far) far, source, type, target, key FROM (
  SELECT target AS far, source, type, target, key, number FROM edges WHERE source = ANY(%(ids)s)
  UNION ALL SELECT source AS far, source, type, target, key, number FROM edges WHERE target = ANY(%(ids)s)) AS step
ORDER BY far, number
"""

# --- words and walks
# --------------------------------------------------------------------------------------------------


def can_be(text: str) -> bool:
    """Whether PostgreSQL can hold a text at all; if not, it holds no node of that id."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def holdable(text: str) -> str:
    """A text without what PostgreSQL cannot hold."""
    return str(whole(text)).replace("\0", " ")


def nodes_within(connection: Connection, id: str, hops: int) -> dict[str, int]:
    """Each node within some hops with the least number of them, one question for each hop; none if there is
    no such node.
    """
    if not connection.execute("SELECT 1 FROM nodes WHERE id = %s", (id,)).fetchone():
        return {}
    depth, frontier = {id: 0}, [id]
    for level in range(1, hops + 1):
        frontier = sorted(end for (end,) in connection.execute(_NEXT, {"ids": frontier}) if end not in depth)
        depth.update(dict.fromkeys(frontier, level))
        if not frontier:
            break
    return depth


def shortest(connection: Connection, source: str, target: str, most: int) -> tuple[Edge, ...]:
    """A shortest path, grown from both ends by the smaller side, one question for each hop; () if there is
    none.
    """
    sides: tuple[dict[str, Identity | None], ...] = (
        {source: None},
        {target: None},
    )  # the edge by which each node was reached
    frontiers = [[source], [target]]
    for _ in range(most):
        here = 0 if len(frontiers[0]) <= len(frontiers[1]) else 1
        steps = connection.execute(_STEPS, {"ids": frontiers[here]}).fetchall()
        found: dict[str, Identity] = {
            far: tuple(identity) for far, *identity in steps if far not in sides[here]
        }
        sides[here].update(found)
        frontiers[here] = list(found)
        meeting = next((id for id in found if id in sides[1 - here]), None)
        if meeting is not None:
            return tuple(
                _edge(connection, each)
                for each in (*reversed(_back(meeting, sides[0])), *_back(meeting, sides[1]))
            )
        if not found:
            break
    return ()


def _back(id: str, reached_by: Mapping[str, Identity | None]) -> list[Identity]:
    identities: list[Identity] = []
    while (identity := reached_by[id]) is not None:
        identities.append(identity)
        id = identity[0] if identity[2] == id else identity[2]
    return identities


def _edge(connection: Connection, identity: Identity) -> Edge:
    row = connection.execute(
        f"SELECT {POSTGRES_EDGE} FROM edges WHERE (source, type, target, key) = (%s, %s, %s, %s)", identity
    ).fetchone()
    assert row is not None  # one snapshot holds the whole walk
    return edge_of_postgres(row)


# --- vectors
# ----------------------------------------------------------------------------------------------------------


def vector_text(of: str, vector: Sequence[float]) -> str:
    """A vector as pgvector reads it; raises BadInput for one without a direction."""
    numbers = [float(number) for number in vector]
    if not any(numbers) or not all(map(math.isfinite, numbers)):
        raise BadInput(f"{of} has no direction: it is empty, all zero, or holds a number that is not finite")
    return pgvector_text(numbers)


def pgvector_text(numbers: Iterable[float]) -> str:
    """Numbers as pgvector reads them, which keeps 32 bits of each."""
    return f"[{','.join(f'{number:.9g}' for number in numbers)}]"


def require_pgvector(connection: Connection) -> str:
    """The schema where pgvector is, put into the database if need be; raises StoreUnavailable where the
    server has none.
    """
    import psycopg

    if schema := vector_schema(connection):
        return schema
    try:
        connection.execute(f"CREATE EXTENSION IF NOT EXISTS vector SCHEMA {VECTORS}")
    except psycopg.Error as error:
        raise StoreUnavailable(
            f"vectors need pgvector in the server: install it, and run CREATE EXTENSION vector as a superuser ({str(error).strip()})"
        ) from None
    return VECTORS


def make_vectors(connection: Connection, namespace: str, role: str | None) -> None:
    """See that the namespace has a table of vectors; raises StoreUnavailable where the server has no
    pgvector.
    """
    if _has_vectors(connection, namespace):
        return
    connection.execute(
        named(
            "CREATE TABLE IF NOT EXISTS {namespace}.vectors (id text PRIMARY KEY REFERENCES {namespace}.nodes"
            " ON DELETE CASCADE ON UPDATE CASCADE, embedding {extension}.vector NOT NULL)",
            namespace=namespace,
            extension=require_pgvector(connection),
        )
    )
    if role is not None:
        connection.execute(
            named("GRANT SELECT ON {namespace}.vectors TO {role}", namespace=namespace, role=role)
        )


def _has_vectors(connection: Connection, namespace: str) -> bool:
    found: tuple[bool] | None = connection.execute(
        "SELECT to_regclass(%s) IS NOT NULL", (f"{quoted(namespace)}.vectors",)
    ).fetchone()
    return found == (True,)


def put_vectors(connection: Connection, namespace: str, texts: Mapping[str, str]) -> None:
    """Give nodes their vectors; raises BadInput for vectors of another length than those that are there."""
    table, vector = f"{quoted(namespace)}.vectors", f"{quoted(vector_schema(connection) or VECTORS)}.vector"
    connection.execute(
        f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"
    )  # so that two stores cannot start two lengths
    found = connection.execute(f"SELECT embedding FROM {table} LIMIT 1").fetchone()
    lengths = {text.count(",") + 1 for text in (*texts.values(), *(found or ()))}
    if len(lengths) > 1:
        raise BadInput(
            f"the vectors of a namespace have one length, not {' and '.join(map(str, sorted(lengths)))}"
        )
    ids = list(texts)
    for start in range(0, len(ids), _TOGETHER):
        some = ids[start : start + _TOGETHER]
        connection.execute(
            f"INSERT INTO {table} SELECT id, given::{vector} FROM unnest(%s::text[], %s::text[]) AS new (id, given)"
            " ON CONFLICT (id) DO UPDATE SET embedding = excluded.embedding",
            (some, [texts[id] for id in some]),
        )


def nearest_nodes(
    connection: Connection, namespace: str, vector: str, limit: int, ids: Collection[str] | None
) -> tuple[tuple[str, float], ...]:
    """The ids whose vectors point most the same way, with their cosines, among some ids or all; no index, so
    none is missed.
    """
    schema = vector_schema(connection)
    if schema is None or not _has_vectors(connection, namespace):
        return ()
    distance = f"embedding OPERATOR({quoted(schema)}.<=>) %(vector)s::{quoted(schema)}.vector"
    among = "" if ids is None else "WHERE id = ANY(%(ids)s)"
    rows = connection.execute(
        f'SELECT id, 1 - ({distance}) FROM {quoted(namespace)}.vectors {among} ORDER BY {distance}, id COLLATE "C" LIMIT %(limit)s',
        {"vector": vector, "limit": max(0, limit), "ids": [id for id in ids or () if can_be(id)]},
    )
    return tuple((id, cosine) for id, cosine in rows)
