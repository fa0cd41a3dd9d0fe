"""How entities and relationships are put into the tables: attributes by key, one row of support for each
session, and their summary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kgot_lab.domains.npc import statements
from kgot_lab.domains.npc.models import BOTH_WAYS, Entity, Provenance, Relationship, RelationshipStanding
from kgot_lab.domains.npc.statements import (
    WorldStorage,
    attributes_text,
    entity_of,
    provenance_text,
    relationship_of,
    row_key,
    support_of,
    uuids,
)
from kgot_lab.domains.npc.visibility import no_entity
from kgot_lab.errors import BadInput, shortly
from kgot_lab.graph.changes import merged_properties
from kgot_lab.types import Json

_Key = tuple[str, str, str]  # the ids of the ends of a relationship, and its type
Supports = dict[str, tuple[Provenance, RelationshipStanding]]  # by session


def put_entities(storage: WorldStorage, entities: list[Entity], at: datetime) -> None:
    """Add entities, within a change; what is there takes on what comes."""
    there = _entities_of(storage, {entity.id for entity in entities})
    put: dict[str, Entity] = {}
    for entity in entities:
        before = put.get(entity.id) or there.get(entity.id)
        put[entity.id] = replace(
            entity, attributes=merged_properties(before.attributes if before else {}, entity.attributes)
        )
    rows = [
        {
            "id": uuids(each.id)[0],
            "type": each.type,
            "name": each.name,
            "attributes": attributes_text(each.attributes),
            "at": at,
        }
        for each in put.values()
    ]
    _put_rows(storage, statements.PUT_ENTITY, rows)


def put_relationships(
    storage: WorldStorage, relationships: list[Relationship], accept_from: float, at: datetime
) -> None:
    """Add relationships, within a change; raises BadInput where an end is not there."""
    given = [way for each in relationships for way in _ways(each)]
    require_entities(storage, {end for each in given for end in (each.source_id, each.target_id)})
    attributes, supports = _there(storage, given)
    new: dict[tuple[_Key, str], tuple[Provenance, RelationshipStanding]] = {}
    for each in given:
        said = (
            each.provenance
            if each.provenance.timestamp
            else replace(each.provenance, timestamp=at.astimezone(UTC))
        )
        heard = supports.setdefault(each.key, {})
        heard[said.session_id] = new[each.key, said.session_id] = _judged(
            said, heard.get(said.session_id), accept_from
        )
        attributes[each.key] = merged_properties(attributes.get(each.key, {}), each.attributes)
    keys = dict.fromkeys(each.key for each in given)
    _put_rows(
        storage, statements.PUT_RELATIONSHIP, [_row(key, attributes[key], supports[key], at) for key in keys]
    )
    _put_rows(
        storage, statements.PUT_SUPPORT, [_support_row(key, *judged) for (key, _), judged in new.items()]
    )


def put_decision(
    storage: WorldStorage, relationship: Relationship, decided: RelationshipStanding, at: datetime
) -> None:
    """Note, within a change, what the game master decided of what one session says; raises BadInput where it
    says no such thing.
    """
    session = relationship.provenance.session_id
    for each in _ways(relationship):
        attributes, supports = _there(storage, [each])
        heard = supports.get(each.key, {})
        if session not in heard:
            ends = f"from {each.source_id} to {each.target_id}"
            raise BadInput(
                f"the session {shortly(session)} tells of no relationship {shortly(each.type)} {ends}"
            )
        heard[session] = replace(heard[session][0], dm_confirmed=decided == "accepted"), decided
        _put_rows(storage, statements.PUT_RELATIONSHIP, [_row(each.key, attributes[each.key], heard, at)])
        _put_rows(storage, statements.PUT_SUPPORT, [_support_row(each.key, *heard[session])])


def _put_rows(storage: WorldStorage, statement: str, rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        storage.rows(statement, row)


def require_entities(storage: WorldStorage, ids: set[str]) -> None:
    """Raise BadInput unless there is an entity of each id."""
    for id in sorted(ids - _entities_of(storage, ids).keys()):
        raise no_entity(id)


def _ways(relationship: Relationship) -> tuple[Relationship, ...]:
    """The directions in which a relationship is kept."""
    back = replace(relationship, source_id=relationship.target_id, target_id=relationship.source_id)
    return (relationship, back) if relationship.type in BOTH_WAYS else (relationship,)


def _entities_of(storage: WorldStorage, ids: set[str]) -> dict[str, Entity]:
    rows = storage.rows(statements.ENTITIES, {"ids": uuids(*sorted(ids))}) if ids else []
    return {entity.id: entity for entity in map(entity_of, rows)}


def _there(
    storage: WorldStorage, given: list[Relationship]
) -> tuple[dict[_Key, Mapping[str, Json]], dict[_Key, Supports]]:
    """The attributes and the support of those relationships that are there already, and perhaps of some
    others.
    """
    asked: dict[str, Any] = {
        "sources": uuids(*sorted({each.source_id for each in given})),
        "targets": uuids(*sorted({each.target_id for each in given})),
        "types": sorted({each.type for each in given}),
    }
    attributes: dict[_Key, Mapping[str, Json]] = {}
    supports: dict[_Key, Supports] = {}
    if given:
        attributes = {
            row_key(row): relationship_of(row).attributes
            for row in storage.rows(statements.RELATIONSHIPS_AMONG, asked)
        }
        for row in storage.rows(statements.SUPPORT_AMONG, asked):
            supports.setdefault(row_key(row), {})[row[3]] = support_of(row)
    return attributes, supports


def _judged(
    said: Provenance, before: tuple[Provenance, RelationshipStanding] | None, accept_from: float
) -> tuple[Provenance, RelationshipStanding]:
    """What becomes of what a session says; what the game master decided of it stays decided."""
    if before is not None and before[1] == "rejected" and not said.dm_confirmed:
        return said, "rejected"
    confirmed = said.dm_confirmed or (before is not None and before[0].dm_confirmed)
    return replace(
        said, dm_confirmed=confirmed
    ), "accepted" if confirmed or said.confidence >= accept_from else "queued"


def summary_of(support: Supports) -> tuple[Provenance, RelationshipStanding]:
    """What a relationship is worth by all that speaks for it: what is accepted before what waits, confirmed
    before sure before late.
    """
    order = {"accepted": 2, "queued": 1, "rejected": 0}
    return max(
        support.values(),
        key=lambda each: (
            order[each[1]],
            each[0].dm_confirmed,
            each[0].confidence,
            each[0].timestamp,
            each[0].session_id,
        ),
    )


def _row(key: _Key, attributes: Mapping[str, Json], support: Supports, at: datetime) -> dict[str, Any]:
    provenance, standing = summary_of(support)
    told = {
        "attributes": attributes_text(attributes),
        "provenance": provenance_text(provenance),
        "standing": standing,
        "at": at,
    }
    return {**_named(key), **told}


def _support_row(key: _Key, said: Provenance, standing: RelationshipStanding) -> dict[str, Any]:
    told = {
        "session": said.session_id,
        "said_at": said.timestamp,
        "confidence": said.confidence,
        "kind": said.source,
    }
    return {**_named(key), **told, "confirmed": said.dm_confirmed, "standing": standing}


def _named(key: _Key) -> dict[str, Any]:
    source, target = uuids(*key[:2])
    return {"source": source, "target": target, "type": key[2]}
