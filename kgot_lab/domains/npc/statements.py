"""All SQL of a world but that of its visibility, in what PostgreSQL and SQLite have in common; `=
ANY(:names)` takes a list.
"""

from __future__ import annotations

from kgot_lab.domains.npc.models import EntityFilter, RelationshipFilter
from kgot_lab.domains.npc.statements import CONFIDENCE
from kgot_lab.graph.property_graph import Direction

_ENTITY = "e.id, e.type, e.name, e.attributes, e.created_at, e.updated_at"
_RELATIONSHIP = (
    "r.source_id, r.target_id, r.rel_type, r.attributes, r.provenance, r.standing, r.created_at, r.updated_at"
)
_SUPPORT = "s.source_id, s.target_id, s.rel_type, s.session_id, s.said_at, s.confidence, s.source, s.dm_confirmed, s.standing"
_KEY = "source_id = :source AND target_id = :target AND rel_type = :type"

ENTITIES = f"SELECT {_ENTITY} FROM entities e WHERE e.id = ANY(:ids)"
RELATIONSHIPS_FROM = f"SELECT {_RELATIONSHIP} FROM relationships r WHERE r.source_id = ANY(:ids)"
_AMONG = "r.source_id = ANY(:sources) AND r.target_id = ANY(:targets) AND r.rel_type = ANY(:types)"
RELATIONSHIPS_AMONG = f"SELECT {_RELATIONSHIP} FROM relationships r WHERE {_AMONG}"
SUPPORT_AMONG = f"SELECT {_SUPPORT} FROM support s WHERE {_AMONG.replace('r.', 's.')}"
SUPPORT_OF = (
    f"SELECT {_SUPPORT} FROM support s WHERE s.{_KEY.replace(' AND ', ' AND s.')} ORDER BY s.session_id"
)

SUPPORT_QUEUED = f"SELECT {_SUPPORT} FROM support s WHERE s.standing = 'queued'"

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
DELETE_RELATIONSHIP = f"DELETE FROM relationships WHERE {_KEY}"

DOCUMENT_VISIBLE = f"""
WITH RECURSIVE visible (id) AS (
  SELECT r.target_id FROM relationships r WHERE r.source_id = :npc
  UNION
  SELECT r.target_id FROM relationships r JOIN visible v ON v.id = r.source_id
    WHERE r.rel_type IN ('KNOWS', 'LOCATED_AT', 'MEMBER_OF', 'ALLIED_WITH'))
SELECT {_ENTITY} FROM entities e JOIN visible v ON v.id = e.id"""  # as the document has it


def entities_where(wanted: EntityFilter) -> str:
    """The statement that reads the entities of some types and a name; the rest of the filter is not in it."""
    parts = ["e.type = ANY(:types)"] * bool(wanted.types) + ["e.name = :name"] * bool(wanted.name)
    return f"SELECT {_ENTITY} FROM entities e WHERE {' AND '.join(['true', *parts])}"


def relationships_where(wanted: RelationshipFilter) -> str:
    """The statement that reads an entity with the relationships that are wanted of it: it alone in a row
    where there are none.
    """
    ends = {
        "out": "r.source_id = e.id",
        "in": "r.target_id = e.id",
        "both": "(r.source_id = e.id OR r.target_id = e.id)",
    }
    parts = [ends[wanted.direction]]
    parts += ["r.rel_type = ANY(:types)"] * bool(wanted.types)
    parts += ["r.standing = :standing"] * bool(wanted.standing)
    parts += [f"{CONFIDENCE} >= :least"] * bool(wanted.min_confidence)
    return f"SELECT {_RELATIONSHIP} FROM entities e LEFT JOIN relationships r ON {' AND '.join(parts)} WHERE e.id = :id"


def steps_from(direction: Direction, types: tuple[str, ...]) -> str:
    """The statement that reads who is one step from some entities: from, to, and so for every step."""
    typed = " AND r.rel_type = ANY(:types)" * bool(types)
    out = f"SELECT r.source_id, r.target_id FROM relationships r WHERE r.source_id = ANY(:ids) AND r.standing <> 'rejected'{typed}"
    back = f"SELECT r.target_id, r.source_id FROM relationships r WHERE r.target_id = ANY(:ids) AND r.standing <> 'rejected'{typed}"
    return {"out": out, "in": back, "both": f"{out} UNION {back}"}[direction]


def reached_from(direction: Direction, types: tuple[str, ...]) -> str:
    """The statement that reads an entity and those it reaches, with the least number of steps to each.

    A place is reached once for each number of steps (UNION), so walks are not counted out.
    """
    on = {
        "out": "r.source_id = w.id",
        "in": "r.target_id = w.id",
        "both": "(r.source_id = w.id OR r.target_id = w.id)",
    }
    to = {
        "out": "r.target_id",
        "in": "r.source_id",
        "both": "CASE WHEN r.source_id = w.id THEN r.target_id ELSE r.source_id END",
    }
    typed = " AND r.rel_type = ANY(:types)" * bool(types)
    return f"""
WITH RECURSIVE walked (id, depth) AS (
  SELECT id, 0 FROM entities WHERE id = :id
  UNION
  SELECT {to[direction]}, w.depth + 1 FROM walked w JOIN relationships r ON {on[direction]}
    WHERE w.depth < :depth AND r.standing <> 'rejected'{typed})
SELECT {_ENTITY}, near.depth FROM (SELECT id, min(depth) AS depth FROM walked GROUP BY id) AS near JOIN entities e ON e.id = near.id"""
