"""A world of characters: read, change and review entities and relationships with their provenance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from kgot_lab.domains.npc import statements
from kgot_lab.domains.npc.models import (
    BOTH_WAYS,
    Entity,
    EntityFilter,
    EntityGraph,
    IdentitySnapshot,
    Neighbour,
    Provenance,
    Relationship,
    RelationshipFilter,
    RelationshipStanding,
    VisibleWorld,
    fit_attributes,
    fit_depth,
    fit_direction,
    fit_id,
    fit_types,
)
from kgot_lab.domains.npc.policy import DEFAULT_POLICY, VisibilityPolicy
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
from kgot_lab.domains.npc.visibility import (
    ANY_ENTITY,
    OUTGOING,
    Sight,
    by_name,
    no_entity,
    seen_by,
    shortest_way,
)
from kgot_lab.errors import BadInput, require, short_repr
from kgot_lab.graph.changes import merged_properties
from kgot_lab.graph.property_graph import Direction
from kgot_lab.memory.claims.claim import plain_text, probability, utc_now
from kgot_lab.memory.tables import InTables
from kgot_lab.types import Json

# Writing entities and relationships to the tables: attributes by key, a row of support for each session, and
# their summary.

_Key = tuple[str, str, str]  # the ids of the ends of a relationship, and its type
Supports = dict[str, tuple[Provenance, RelationshipStanding]]  # by session


def put_entities(storage: WorldStorage, entities: list[Entity], at: datetime) -> None:
    """Add entities, within a change, and merge them into existing ones."""
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
    """Add relationships, within a change.

    Raises BadInput if an end does not exist.
    """
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
    """Record, within a change, the game master's decision on the statement of a session.

    Raises BadInput if the session states no such thing.
    """
    session = relationship.provenance.session_id
    for each in _ways(relationship):
        attributes, supports = _there(storage, [each])
        heard = supports.get(each.key, {})
        if session not in heard:
            ends = f"from {each.source_id} to {each.target_id}"
            raise BadInput(
                f"the session {short_repr(session)} tells of no relationship {short_repr(each.type)} {ends}"
            )
        heard[session] = replace(heard[session][0], dm_confirmed=decided == "accepted"), decided
        _put_rows(storage, statements.PUT_RELATIONSHIP, [_row(each.key, attributes[each.key], heard, at)])
        _put_rows(storage, statements.PUT_SUPPORT, [_support_row(each.key, *heard[session])])


def _put_rows(storage: WorldStorage, statement: str, rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        storage.rows(statement, row)


def require_entities(storage: WorldStorage, ids: set[str]) -> None:
    """Raise BadInput unless there is an entity for each id."""
    for id in sorted(ids - _entities_of(storage, ids).keys()):
        raise no_entity(id)


def _ways(relationship: Relationship) -> tuple[Relationship, ...]:
    """Return the directions in which a relationship is stored."""
    back = replace(relationship, source_id=relationship.target_id, target_id=relationship.source_id)
    return (relationship, back) if relationship.type in BOTH_WAYS else (relationship,)


def _entities_of(storage: WorldStorage, ids: set[str]) -> dict[str, Entity]:
    rows = storage.rows(statements.ENTITIES, {"ids": uuids(*sorted(ids))}) if ids else []
    return {entity.id: entity for entity in map(entity_of, rows)}


def _there(
    storage: WorldStorage, given: list[Relationship]
) -> tuple[dict[_Key, Mapping[str, Json]], dict[_Key, Supports]]:
    """Return the attributes and the support of the relationships that already exist.

    Some others may be included.
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
    """Decide the standing of what a session states.

    A decision of the game master is kept.
    """
    if before is not None and before[1] == "rejected" and not said.dm_confirmed:
        return said, "rejected"
    confirmed = said.dm_confirmed or (before is not None and before[0].dm_confirmed)
    return replace(
        said, dm_confirmed=confirmed
    ), "accepted" if confirmed or said.confidence >= accept_from else "queued"


def summary_of(support: Supports) -> tuple[Provenance, RelationshipStanding]:
    """Return the strongest support of a relationship.

    Accepted goes before queued, then confirmed, more confident and later support.
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


_FEW = 8  # steps that one statement walks: it visits an entity once for each number of steps, so a cycle would be followed for every step


class NpcWorld(InTables, EntityGraph):
    """An EntityGraph. Its own methods see everything that was not rejected, as the author does.

    Use `sight` for what a character sees. Relationships with a confidence of at least `accept_from` are
    accepted at once, the others wait for review.
    """

    storage: WorldStorage

    def __init__(
        self, storage: WorldStorage, *, accept_from: float = 0.7, now: Callable[[], datetime] = utc_now
    ) -> None:
        self.storage, self.now = storage, now
        self.accept_from = probability(accept_from, "accept_from")

    # --- changes ---

    def add_entity(self, entity: Entity) -> None:
        """Add an entity, or merge its type, name and attributes into an existing one."""
        self.add([entity])

    def add_relationship(self, relationship: Relationship) -> None:
        """Add a relationship, or another session's support for it.

        It replaces an earlier statement of the same session.
        """
        self.add([], [relationship])

    def add(self, entities: Iterable[Entity], relationships: Iterable[Relationship] = ()) -> None:
        """Add many entities and relationships, all or none.

        Raises BadInput if an end of a relationship does not exist.
        """
        entities, relationships = list(entities), list(relationships)
        for entity in entities:
            require(entity, Entity, "what is added to a world is an Entity(type, name, …)")
        for relationship in relationships:
            require(
                relationship,
                Relationship,
                "what relates entities is a Relationship(source_id, target_id, type, …)",
            )

        with self.storage.changing():
            put_entities(self.storage, entities, self.now())
            put_relationships(self.storage, relationships, self.accept_from, self.now())

    def update_entity(self, id: str, attributes: Mapping[str, Json]) -> None:
        """Change some attributes of an entity. None removes one.

        Raises BadInput if it does not exist.
        """
        changes = fit_attributes(attributes, "an entity")
        with self.storage.changing():
            put_entities(self.storage, [replace(self.get_entity(id), attributes=changes)], self.now())

    def delete_entity(self, id: str) -> None:
        """Delete an entity with its relationships and their support.

        Raises BadInput if it does not exist.
        """
        with self.storage.changing():
            entity = self.get_entity(id)
            self.storage.rows(statements.DELETE_ENTITY, {"id": uuids(entity.id)[0]})

    def delete_relationship(self, source_id: str, target_id: str, type: str) -> None:
        """Delete a relationship, a symmetric one in both directions.

        Raises BadInput if it does not exist.
        """
        source = fit_id(source_id)
        target = fit_id(target_id)
        type = plain_text(type, "the type of a relationship")
        with self.storage.changing():
            self._support(source, target, type)
            for one, other in (
                {(source, target), (target, source)} if type in BOTH_WAYS else {(source, target)}
            ):
                self.storage.rows(statements.DELETE_RELATIONSHIP, _key(one, other, type))

    # --- queries ---

    def get_entity(self, id: str) -> Entity:
        """Return an entity by its id.

        Raises BadInput if it does not exist.
        """
        id = fit_id(id)
        for row in self.storage.rows(statements.ENTITIES, {"ids": uuids(id)}):
            return entity_of(row)
        raise no_entity(id)

    def find_entities(self, wanted: EntityFilter = ANY_ENTITY) -> tuple[Entity, ...]:
        """Return the entities that match a filter, by name."""
        require(
            wanted, EntityFilter, "a filter of entities is an EntityFilter(types, name, contains, attributes)"
        )
        asked = {"types": wanted.types} if wanted.types else {}
        rows = self.storage.rows(
            statements.entities_where(wanted),
            {**asked, **({"name": wanted.name} if wanted.name else {})},
        )
        return by_name([entity for entity in map(entity_of, rows) if wanted.lets(entity)])

    def get_relationships(
        self, entity_id: str, wanted: RelationshipFilter = OUTGOING
    ) -> tuple[Relationship, ...]:
        """Return the relationships of an entity that match a filter, ordered by ends and types.

        Raises BadInput if the entity does not exist.
        """
        require(
            wanted,
            RelationshipFilter,
            "a filter of relationships is a RelationshipFilter(direction, types, …)",
        )
        id = fit_id(entity_id)
        asked = {
            "id": uuids(id)[0],
            "types": wanted.types,
            "standing": wanted.standing,
            "least": wanted.min_confidence,
        }
        rows = self.storage.rows(
            statements.relationships_where(wanted),
            {name: value for name, value in asked.items() if value},
        )
        if not rows:
            raise no_entity(id)
        found = (relationship_of(row) for row in rows if row[0] is not None)
        return tuple(sorted((each for each in found if wanted.lets(each, id)), key=lambda each: each.key))

    def support(
        self, source_id: str, target_id: str, type: str
    ) -> tuple[tuple[Provenance, RelationshipStanding], ...]:
        """Return what each session states for a relationship, and its standing.

        Raises BadInput if the relationship does not exist.
        """
        return self._support(
            fit_id(source_id), fit_id(target_id), plain_text(type, "the type of a relationship")
        )

    def neighbours(
        self, entity_id: str, depth: int = 1, *, types: tuple[str, ...] = (), direction: Direction = "out"
    ) -> tuple[Neighbour, ...]:
        """Return the entities within `depth` steps, the nearest first.

        A small depth takes one query, a larger one a query for each level. Raises BadInput if the start does
        not exist.
        """
        fit_direction(direction)
        id, depth, types = fit_id(entity_id), fit_depth(depth, "depth"), fit_types(types)
        if depth <= _FEW:
            rows = self.storage.rows(
                statements.reached_from(direction, types),
                {"id": uuids(id)[0], "depth": depth, **({"types": types} if types else {})},
            )
            found = {str(row[0]): Neighbour(entity_of(row[:-1]), row[-1]) for row in rows}
        else:
            found = self._found_by_level(id, depth, types, direction)
        if not found:
            raise no_entity(id)
        del found[id]
        return tuple(sorted(found.values(), key=lambda each: (each.depth, each.entity.name, each.entity.id)))

    def find_path(
        self, from_id: str, to_id: str, max_depth: int = 5, *, direction: Direction = "out"
    ) -> tuple[Entity, ...]:
        """Return the entities on a shortest path of at most `max_depth` steps, including both ends.

        Returns () if there is no path. Raises BadInput if an end does not exist.
        """
        fit_direction(direction)
        start, end, depth = fit_id(from_id), fit_id(to_id), fit_depth(max_depth, "max_depth")
        with self.storage.reading():
            for id in (start, end):
                self.get_entity(id)
            path = shortest_way(start, end, lambda ids: self._steps(ids, direction, ()), depth)
            found = {
                entity.id: entity
                for entity in map(entity_of, self.storage.rows(statements.ENTITIES, {"ids": uuids(*path)}))
            }
        return tuple(found[id] for id in path)

    # --- views of a character ---

    def sight(self, npc_id: str, *, policy: VisibilityPolicy = DEFAULT_POLICY) -> Sight:
        """Return the world as a character sees it, valid as long as the character exists."""
        return Sight(self.storage, npc_id, policy)

    def visible_subgraph(
        self, npc_id: str, *, policy: VisibilityPolicy | Literal["document"] = DEFAULT_POLICY
    ) -> VisibleWorld:
        """Return what an entity may see.

        The policy "document" is the query of the document verbatim, for comparison. It reveals secrets.
        Raises BadInput if the entity does not exist.
        """
        id = fit_id(npc_id)
        if policy == "document":
            with self.storage.reading():
                self.get_entity(id)
                rows = self.storage.rows(statements.DOCUMENT_VISIBLE, {"npc": uuids(id)[0]})
            return VisibleWorld(by_name([entity_of(row) for row in rows]), ())
        if isinstance(policy, str):
            raise BadInput(
                f'a policy of visibility is a VisibilityPolicy(…) or "document", not {short_repr(policy)}'
            )
        require(policy, VisibilityPolicy, 'a policy of visibility is a VisibilityPolicy(…) or "document"')
        return seen_by(self.storage, id, policy)

    def identity_snapshot(self, npc_id: str) -> IdentitySnapshot:
        """Return a character's own attributes and the relationships that it knows it has.

        Raises BadInput if it does not exist.
        """
        return self.sight(npc_id).identity_snapshot()

    # --- helpers ---

    def _support(
        self, source: str, target: str, type: str
    ) -> tuple[tuple[Provenance, RelationshipStanding], ...]:
        rows = self.storage.rows(statements.SUPPORT_OF, _key(source, target, type))
        if not rows:
            raise BadInput(f"there is no relationship {short_repr(type)} from {source} to {target}")
        return tuple(map(support_of, rows))

    def _found_by_level(
        self, id: str, depth: int, types: tuple[str, ...], direction: Direction
    ) -> dict[str, Neighbour]:
        with self.storage.reading():
            depths, level = {id: 0}, [id]
            for far in range(1, depth + 1):
                level = sorted({to for _, to in self._steps(level, direction, types)} - depths.keys())
                if not level:
                    break
                depths |= dict.fromkeys(level, far)
            rows = self.storage.rows(statements.ENTITIES, {"ids": uuids(*depths)})
        return {each.id: Neighbour(each, depths[each.id]) for each in map(entity_of, rows)}

    def _steps(self, ids: list[str], direction: Direction, types: tuple[str, ...]) -> list[tuple[str, str]]:
        asked = {"ids": uuids(*ids), **({"types": types} if types else {})}
        rows = self.storage.rows(statements.steps_from(direction, types), asked)
        return [(str(source), str(target)) for source, target in rows]


def _key(source: str, target: str, type: str) -> dict[str, object]:
    ends = uuids(source, target)
    return {"source": ends[0], "target": ends[1], "type": type}
