"""Rows of a world's tables as entities and relationships, and back, whichever engine they are of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from kgot_lab.domains.npc.storage import WorldRow
from kgot_lab.domains.npc.things import Entity, Provenance, Relationship, RelationshipStanding
from kgot_lab.stores.postgres.rows import jsonb_text
from kgot_lab.stores.sql import json_text
from kgot_lab.types import Json


def entity_of(row: WorldRow) -> Entity:
    """An entity from its row."""
    id, type, name, attributes, created_at, updated_at = row
    return Entity(type, name, _json(attributes), str(id), _time(created_at), _time(updated_at))


def relationship_of(row: WorldRow) -> Relationship:
    """A relationship from its row."""
    source, target, type, attributes, provenance, standing, created_at, updated_at = row
    times = (_time(created_at), _time(updated_at))
    return Relationship(str(source), str(target), type, _json(attributes), provenance_of(_json(provenance)), standing, *times)


def provenance_of(told: Mapping[str, Json]) -> Provenance:
    """A provenance from its JSON."""
    at = told.get("timestamp")
    return Provenance(**{**told, "timestamp": None if at is None else datetime.fromisoformat(at)})


def provenance_text(provenance: Provenance) -> str:
    """A provenance as JSON text."""
    at = provenance.timestamp
    return json_text({**vars(provenance), "timestamp": None if at is None else at.isoformat()}, "a provenance")


def attributes_text(attributes: Mapping[str, Json]) -> str:
    """Attributes as JSON text that both engines give back exactly."""
    return jsonb_text(json_text(dict(attributes), "the attributes"))


def support_of(row: WorldRow) -> tuple[Provenance, RelationshipStanding]:
    """What one session says for a relationship, and what became of that."""
    _, _, _, session, said_at, confidence, source, confirmed, standing = row
    return Provenance(session, _time(said_at), confidence, source, bool(confirmed)), standing


def row_key(row: WorldRow) -> tuple[str, str, str]:
    """What a row of a relationship, or of its support, begins with: the ids of its ends, and its type."""
    source, target, type = row[:3]
    return str(source), str(target), type


def uuids(*ids: str) -> list[UUID]:
    """Ids as PostgreSQL compares them."""
    return list(map(UUID, ids))


def _json(value: Any) -> dict[str, Json]:
    found: dict[str, Json] = json.loads(value) if isinstance(value, str) else value
    return found


def _time(value: Any) -> datetime | None:
    if value is None:
        return None
    time = datetime.fromisoformat(value) if isinstance(value, str) else value
    return time.astimezone(UTC)
