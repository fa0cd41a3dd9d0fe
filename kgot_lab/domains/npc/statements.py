"""The tables of a world, their SQL except that of visibility and layers, and the conversion of rows.

The SQL is common to PostgreSQL and SQLite. `= ANY(:names)` takes a list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from kgot_lab.domains.npc import models
from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.graph.property_graph import Direction
from kgot_lab.io.files import read_statements
from kgot_lab.stores.postgres.rows import jsonb_text, parse_jsonb
from kgot_lab.stores.sql import json_text
from kgot_lab.stores.tables.history import with_history
from kgot_lab.stores.tables.layout import Layout, TableStorage
from kgot_lab.types import Json

if TYPE_CHECKING:
    from kgot_lab.domains.npc.layers.models import ChunkMatch, ContextQuery, ContextResult
    from kgot_lab.embedding.embedder import Matrix

DEFINITIONS = read_statements(__file__, "world.sql")  # each statement is idempotent
WORLD_LAYOUT = with_history(Layout("world", 0x6B676C77, tables=DEFINITIONS["world"]))

_ENTITY_COLUMNS = "e.id, e.type, e.name, e.attributes, e.created_at, e.updated_at"
_TIE_COLUMNS = "r.source_id, r.target_id, r.rel_type, r.attributes"
_RELATIONSHIP_COLUMNS = f"{_TIE_COLUMNS}, r.provenance, r.standing, r.created_at, r.updated_at"
_SUPPORT_COLUMNS = "s.source_id, s.target_id, s.rel_type, s.session_id, s.said_at, s.confidence, s.source, s.dm_confirmed, s.standing"
_KEY_CONDITION = "source_id = :source AND target_id = :target AND rel_type = :type"

ENTITIES = f"SELECT {_ENTITY_COLUMNS} FROM entities e WHERE e.id = ANY(:ids)"
RELATIONSHIPS_FROM = f"SELECT {_RELATIONSHIP_COLUMNS} FROM relationships r WHERE r.source_id = ANY(:ids)"
# of relationships of others: what of them may be seen, which is neither their provenance nor their times
_PUBLIC_COLUMNS = f"{_TIE_COLUMNS}, '{{}}', r.standing, NULL, NULL"
PUBLIC_FROM = f"""SELECT {_PUBLIC_COLUMNS} FROM relationships r
  WHERE r.source_id = ANY(:ids) AND r.rel_type = ANY(:types)"""
LOCATED_THERE = f"""SELECT {_PUBLIC_COLUMNS} FROM relationships r JOIN entities e ON e.id = r.source_id
  WHERE r.rel_type = 'LOCATED_AT' AND r.target_id = ANY(:ids) AND e.type = ANY(:types)"""
_AMONG_CONDITION = "r.source_id = ANY(:sources) AND r.target_id = ANY(:targets) AND r.rel_type = ANY(:types)"
RELATIONSHIPS_AMONG = f"SELECT {_RELATIONSHIP_COLUMNS} FROM relationships r WHERE {_AMONG_CONDITION}"
SUPPORT_AMONG = f"SELECT {_SUPPORT_COLUMNS} FROM support s WHERE {_AMONG_CONDITION.replace('r.', 's.')}"
SUPPORT_OF = f"SELECT {_SUPPORT_COLUMNS} FROM support s WHERE s.{_KEY_CONDITION.replace(' AND ', ' AND s.')} ORDER BY s.session_id"

PLACES_OF = f"""SELECT {_RELATIONSHIP_COLUMNS} FROM relationships r
  WHERE r.rel_type = 'LOCATED_AT' AND r.standing = 'accepted' AND r.source_id = ANY(:ids)"""
SUPPORT_QUEUED = f"SELECT {_SUPPORT_COLUMNS} FROM support s WHERE s.standing = 'queued'"

PUT_ENTITY = """INSERT INTO entities (id, type, name, attributes, created_at, updated_at)
  VALUES (:id, :type, :name, :attributes, :at, :at) ON CONFLICT (id) DO UPDATE
  SET type = excluded.type, name = excluded.name, attributes = excluded.attributes, updated_at = excluded.updated_at"""
PUT_RELATIONSHIP = """INSERT INTO relationships (source_id, target_id, rel_type, attributes, provenance, standing, created_at, updated_at)
  VALUES (:source, :target, :type, :attributes, :provenance, :standing, :at, :at) ON CONFLICT (source_id, target_id, rel_type) DO UPDATE
  SET attributes = excluded.attributes, provenance = excluded.provenance, standing = excluded.standing, updated_at = excluded.updated_at"""
PUT_SUPPORT = """INSERT INTO support (source_id, target_id, rel_type, session_id, said_at, confidence, source, dm_confirmed, standing)
  VALUES (:source, :target, :type, :session, :said_at, :confidence, :kind, :confirmed, :standing)
  ON CONFLICT (source_id, target_id, rel_type, session_id) DO UPDATE SET said_at = excluded.said_at, confidence = excluded.confidence,
  source = excluded.source, dm_confirmed = excluded.dm_confirmed, standing = excluded.standing"""
DELETE_ENTITY = "DELETE FROM entities WHERE id = :id"
DELETE_RELATIONSHIP = f"DELETE FROM relationships WHERE {_KEY_CONDITION}"
DELETE_SUPPORT = f"DELETE FROM support WHERE {_KEY_CONDITION} AND session_id = :session"
VERSIONS_OF_ENTITY = "replace(v.key, :id, '') <> v.key"
SESSIONS_OPENED = "SELECT opened, key FROM versions WHERE kind = 'support'"
TEXTS_ABOUT = "SELECT 1 FROM chunks x WHERE x.entity_id = :id LIMIT 1"

VISIBLE_BY_DOCUMENT = f"""
WITH RECURSIVE visible (id) AS (
  SELECT r.target_id FROM relationships r WHERE r.source_id = :npc
  UNION
  SELECT r.target_id FROM relationships r JOIN visible v ON v.id = r.source_id
    WHERE r.rel_type IN ('KNOWS', 'LOCATED_AT', 'MEMBER_OF', 'ALLIED_WITH'))
SELECT {_ENTITY_COLUMNS} FROM entities e JOIN visible v ON v.id = e.id"""  # as the document has it


def select_entities(criteria: models.EntityFilter) -> str:
    """Build the statement that reads the entities of the types and the name of a filter.

    The rest of the filter is not in the statement.
    """
    conditions = ["e.type = ANY(:types)"] if criteria.types else []
    conditions += ["e.name = :name"] if criteria.name else []
    return f"SELECT {_ENTITY_COLUMNS} FROM entities e WHERE {' AND '.join(['true', *conditions])}"


# by direction, the condition that a relationship is at an entity
_AT_END = {"out": "r.source_id = {0}.id", "in": "r.target_id = {0}.id"}
_AT_END["both"] = f"({_AT_END['out']} OR {_AT_END['in']})"


def select_relationships(direction: Direction) -> str:
    """Build the statement that reads an entity with its relationships. An entity without any has one row."""
    at_end = _AT_END[direction].format("e")
    return f"SELECT {_RELATIONSHIP_COLUMNS} FROM entities e LEFT JOIN relationships r ON {at_end} WHERE e.id = :id"


_NOT_OVER = "r.standing NOT IN ('rejected', 'ended')"


def select_steps(direction: Direction, types: tuple[str, ...]) -> str:
    """Build the statement that reads one step from some entities, as (from, to)."""
    type_condition = " AND r.rel_type = ANY(:types)" if types else ""
    outgoing = f"SELECT r.source_id, r.target_id FROM relationships r WHERE r.source_id = ANY(:ids) AND {_NOT_OVER}{type_condition}"
    incoming = f"SELECT r.target_id, r.source_id FROM relationships r WHERE r.target_id = ANY(:ids) AND {_NOT_OVER}{type_condition}"
    return {"out": outgoing, "in": incoming, "both": f"{outgoing} UNION {incoming}"}[direction]


def select_reached(direction: Direction, types: tuple[str, ...]) -> str:
    """Build the statement that reads an entity and those it reaches, with the least number of steps to each.

    UNION keeps each entity once for each number of steps, so walks are not enumerated.
    """
    type_condition = " AND r.rel_type = ANY(:types)" if types else ""
    return f"""
WITH RECURSIVE walked (id, depth) AS (
  SELECT id, 0 FROM entities WHERE id = :id
  UNION
  SELECT CASE WHEN r.source_id = w.id THEN r.target_id ELSE r.source_id END, w.depth + 1
  FROM walked w JOIN relationships r ON {_AT_END[direction].format("w")}
  WHERE w.depth < :depth AND {_NOT_OVER}{type_condition})
SELECT {_ENTITY_COLUMNS}, near.depth FROM (SELECT id, min(depth) AS depth FROM walked GROUP BY id) AS near JOIN entities e ON e.id = near.id"""


# The tables of a world, in SQLite or in PostgreSQL.

WorldRow = tuple[Any, ...]


class WorldStorage(TableStorage, Protocol):
    """The storage of one world, isolated from all others, and of its layers.

    Raises StoreUnavailable, also where a server has no vectors, and StoreDamaged.
    """

    def has_table(self, table: str) -> bool: ...
    # None: there is no such entity
    def visible_world(self, npc_id: str, policy: VisibilityPolicy) -> models.VisibleWorld | None: ...
    def prepare_log(self) -> None: ...
    def prepare_chunks(self) -> None: ...
    def vector(self, row: Matrix) -> bytes | str: ...  # as its column takes it
    def nearest(self, vector: Matrix, embedder: str, limit: int) -> tuple[ChunkMatch, ...]: ...
    def query_with_context(self, query: ContextQuery) -> tuple[ContextResult, ...]: ...


# Conversion between rows and entities or relationships, for both engines.


def to_entity(row: WorldRow) -> models.Entity:
    """Convert a row to an entity."""
    id, type, name, attributes, created_at, updated_at = row
    times = {"created_at": to_utc(created_at), "updated_at": to_utc(updated_at)}
    values = {"type": type, "name": name, "attributes": parse_json_column(attributes), "id": str(id)}
    return models.build_unchecked(models.Entity, **values, **times)


def to_relationship(row: WorldRow) -> models.Relationship:
    """Convert a row to a relationship."""
    source, target, type, attributes, provenance, standing, created_at, updated_at = row
    ends = {"source_id": str(source), "target_id": str(target), "type": type}
    said = _provenance_from_json(parse_json_column(provenance))
    values = {"attributes": parse_json_column(attributes), "provenance": said, "standing": standing}
    times = {"created_at": to_utc(created_at), "updated_at": to_utc(updated_at)}
    return models.build_unchecked(models.Relationship, **ends, **values, **times)


def _provenance_from_json(data: Mapping[str, Json]) -> models.Provenance:
    if not data:
        return models.NO_PROVENANCE
    return models.build_unchecked(models.Provenance, **{**data, "timestamp": to_utc(data["timestamp"])})


def provenance_text(provenance: models.Provenance) -> str:
    """Serialize a provenance as JSON."""
    at = provenance.timestamp and provenance.timestamp.isoformat()
    return json_text({**vars(provenance), "timestamp": at}, "a provenance")


def attributes_text(attributes: Mapping[str, Json]) -> str:
    """Serialize attributes as JSON that both engines return exactly."""
    return jsonb_text(json_text(dict(attributes), "the attributes"))


def support_from_row(row: WorldRow) -> tuple[models.Provenance, models.RelationshipStanding]:
    """Convert a row to the statement of one session on a relationship, and its standing."""
    _, _, _, session, said_at, confidence, source, confirmed, standing = row
    return models.Provenance(session, to_utc(said_at), confidence, source, bool(confirmed)), standing


def support_from_text(text: str) -> tuple[models.Provenance, models.RelationshipStanding]:
    """Parse a version of the statement of a session, and its standing."""
    data, standing = json.loads(text)
    return _provenance_from_json(data), standing


def row_key(row: WorldRow) -> tuple[str, str, str]:
    """Return the key of a row of a relationship or its support: the ids of its ends, and its type."""
    source, target, type = row[:3]
    return str(source), str(target), type


def uuids(*ids: str) -> list[UUID]:
    """Convert ids to UUIDs, as PostgreSQL compares them."""
    return list(map(UUID, ids))


def parse_json_column(value: Any) -> Any:
    """Parse the value of a JSON column."""
    if value == "{}":  # most often
        return {}
    return parse_jsonb(value) if isinstance(value, str) else value


def to_plain_column(value: Any) -> Any:
    """Convert a value for a storage without types for ids and times, where both are texts."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, list | tuple | set):
        return list(map(to_plain_column, value))
    return str(value) if isinstance(value, UUID) else value


def to_utc(value: Any) -> datetime | None:
    """Convert the value of a time column to a time in UTC."""
    if value is None:
        return None
    time = datetime.fromisoformat(value) if isinstance(value, str) else value
    return time.astimezone(UTC)
