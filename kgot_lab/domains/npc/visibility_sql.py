"""The policy of visibility as one statement for PostgreSQL: what may not be seen does not leave the server."""

from __future__ import annotations

import json
from typing import Any

from kgot_lab.domains.npc.models import VisibleWorld
from kgot_lab.domains.npc.policy import NEVER, VisibilityPolicy
from kgot_lab.domains.npc.statements import WorldRow, entity_of, relationship_of, uuids

_TOLD = "r.standing = 'accepted' AND NOT r.secret"
_SCOPE = "me.scope IS NULL OR me.scope ? e.type OR me.scope ? CAST(e.id AS text)"
_SHOWN = """(SELECT coalesce(jsonb_object_agg(a.key, a.value), '{{}}') FROM jsonb_each({of}.attributes) a
    WHERE a.key <> ALL(:never) AND ({usual} OR {of}.attributes->'public' ? a.key))"""

# What comes before any question that one of those in a world asks: `me`, and `seen`, the entities that it may
# see, of which one is itself.
SEEN = f"""
WITH RECURSIVE
me AS (SELECT id, attributes->'knowledge_scope' AS scope FROM entities WHERE id = :npc),
own AS (SELECT r.target_id, r.rel_type FROM relationships r WHERE r.source_id = :npc AND {_TOLD}),
walked (id, steps) AS (
  SELECT target_id, 1 FROM own WHERE rel_type = ANY(:spreading)
  UNION
  SELECT r.target_id, CASE WHEN w.steps < :knows_depth THEN w.steps + 1 ELSE w.steps END
  FROM walked w JOIN relationships r ON r.source_id = w.id
  WHERE {_TOLD} AND r.rel_type = ANY(:spreading) AND (r.rel_type <> 'KNOWS' OR w.steps < :knows_depth)),
known AS (SELECT id FROM me UNION SELECT target_id FROM own UNION SELECT id FROM walked),
seen AS (
  SELECT e.*, e.id = me.id AS self FROM known JOIN entities e ON e.id = known.id CROSS JOIN me WHERE e.id = me.id OR {_SCOPE})"""
SEEN_ENTITY = f"""e.id, e.type, e.name,
  CASE WHEN e.self THEN e.attributes ELSE {_SHOWN.format(of="e", usual="CAST(:public AS jsonb)->e.type ? a.key")} END,
  CASE WHEN e.self THEN e.created_at END, CASE WHEN e.self THEN e.updated_at END"""
SEEN_RELATIONSHIPS = f"""relationships r JOIN seen source ON source.id = r.source_id JOIN seen target ON target.id = r.target_id
WHERE {_TOLD} AND (source.self OR r.rel_type = ANY(:public_types))"""

VISIBLE = f"""{SEEN}
SELECT {SEEN_ENTITY},
  NULL, NULL, NULL, NULL
FROM seen e
UNION ALL
SELECT r.source_id, r.standing, r.rel_type,
  CASE WHEN source.self THEN r.attributes ELSE {_SHOWN.format(of="r", usual="false")} END,
  CASE WHEN source.self THEN r.created_at END, CASE WHEN source.self THEN r.updated_at END,
  r.target_id, CASE WHEN source.self THEN r.provenance ELSE '{{}}' END, r.standing, r.rel_type
FROM {SEEN_RELATIONSHIPS}"""


def policy_parameters(npc_id: str, policy: VisibilityPolicy) -> dict[str, Any]:
    """The values of the statement, for one entity and a policy."""
    return {
        "npc": uuids(npc_id)[0],
        "spreading": list(policy.spreading),
        "public_types": list(policy.public_types),
        "public": json.dumps({type: list(names) for type, names in policy.public_attributes.items()}),
        "never": list(NEVER),
        "knows_depth": policy.knows_depth,
    }


def visible_of(rows: list[WorldRow]) -> VisibleWorld | None:
    """What its rows tell, None where there are none: then there is no such entity."""
    entities = [entity_of(row[:6]) for row in rows if row[6] is None]
    told = [row for row in rows if row[6] is not None]
    relationships = [
        relationship_of((source, target, type, attributes, provenance, standing, *times))
        for source, _, _, attributes, *times, target, provenance, standing, type in told
    ]
    return VisibleWorld(tuple(entities), tuple(relationships)) if entities else None
