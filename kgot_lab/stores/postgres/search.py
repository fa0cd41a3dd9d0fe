"""What PostgreSQL is asked to find: nodes by words, nodes within hops, and paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import StoreUnavailable
from kgot_lab.graph.changes import Identity
from kgot_lab.stores.postgres.rows import POSTGRES_EDGE, POSTGRES_NODE, edge_of_postgres
from kgot_lab.stores.postgres.tables import VECTORS, vector_schema
from kgot_lab.text.cleaning import whole
from kgot_lab.types import Edge

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

_MOST_WORDS = 500  # words of a question that are looked up

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
    # the edge by which each node was reached
    sides: tuple[dict[str, Identity | None], ...] = ({source: None}, {target: None})
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
