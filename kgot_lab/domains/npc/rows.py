"""Rows of a world's tables as entities and relationships, and back, whichever engine they are of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

from kgot_lab.domains.npc.models import Entity, Provenance, Relationship, RelationshipStanding
from kgot_lab.domains.npc.statements import WorldRow
from kgot_lab.stores.postgres.rows import jsonb_text, value_of_postgres
from kgot_lab.stores.sql import json_text
from kgot_lab.types import Json

Made = TypeVar("Made")


def entity_of(row: WorldRow) -> Entity:
    """An entity from its row."""
    id, type, name, attributes, created_at, updated_at = row
    times = {"created_at": utc_time(created_at), "updated_at": utc_time(updated_at)}
    return unchecked(Entity, type=type, name=name, attributes=json_of(attributes), id=str(id), **times)


def relationship_of(row: WorldRow) -> Relationship:
    """A relationship from its row."""
    source, target, type, attributes, provenance, standing, created_at, updated_at = row
    ends = {"source_id": str(source), "target_id": str(target)}
    told = {
        "attributes": json_of(attributes),
        "provenance": _provenance(json_of(provenance)),
        "standing": standing,
    }
    return unchecked(
        Relationship,
        **ends,
        type=type,
        **told,
        created_at=utc_time(created_at),
        updated_at=utc_time(updated_at),
    )


def _provenance(told: Mapping[str, Json]) -> Provenance:
    return (
        unchecked(Provenance, **{**told, "timestamp": utc_time(told["timestamp"])}) if told else Provenance()
    )


def unchecked(kind: type[Made], **values: Any) -> Made:
    """A thing of what was checked when it was put into the tables; to check it again would take longer than
    to read it.
    """
    made = object.__new__(kind)
    vars(made).update(values)
    return made


def provenance_text(provenance: Provenance) -> str:
    """A provenance as JSON text."""
    at = provenance.timestamp
    return json_text(
        {**vars(provenance), "timestamp": None if at is None else at.isoformat()}, "a provenance"
    )


def attributes_text(attributes: Mapping[str, Json]) -> str:
    """Attributes as JSON text that both engines give back exactly."""
    return jsonb_text(json_text(dict(attributes), "the attributes"))


def support_of(row: WorldRow) -> tuple[Provenance, RelationshipStanding]:
    """What one session says for a relationship, and what became of that."""
    _, _, _, session, said_at, confidence, source, confirmed, standing = row
    return Provenance(session, utc_time(said_at), confidence, source, bool(confirmed)), standing


def row_key(row: WorldRow) -> tuple[str, str, str]:
    """What a row of a relationship, or of its support, begins with: the ids of its ends, and its type."""
    source, target, type = row[:3]
    return str(source), str(target), type


def uuids(*ids: str) -> list[UUID]:
    """Ids as PostgreSQL compares them."""
    return list(map(UUID, ids))


def json_of(value: Any) -> Any:
    """A column of JSON as a value."""
    return value_of_postgres(value) if isinstance(value, str) else value


def plain_column(value: Any) -> Any:
    """A value for a storage that has no type for ids and times: they are texts there."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, list | tuple | set):
        return list(map(plain_column, value))
    return str(value) if isinstance(value, UUID) else value


def utc_time(value: Any) -> datetime | None:
    """A column of times as a time in UTC."""
    if value is None:
        return None
    time = datetime.fromisoformat(value) if isinstance(value, str) else value
    return time.astimezone(UTC)
