"""A world of characters: read, change and review entities and relationships with their provenance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from kgot_lab.arguments import check_arguments
from kgot_lab.domains.npc import statements
from kgot_lab.domains.npc.models import (
    SYMMETRIC_TYPES,
    Entity,
    EntityFilter,
    IdentitySnapshot,
    Neighbour,
    Provenance,
    Relationship,
    RelationshipFilter,
    RelationshipStanding,
    VisibleWorld,
    check_attributes,
    check_id,
)
from kgot_lab.domains.npc.policy import DEFAULT_POLICY, VisibilityPolicy
from kgot_lab.domains.npc.statements import (
    WorldStorage,
    attributes_text,
    provenance_text,
    row_key,
    support_from_row,
    to_entity,
    to_relationship,
    uuids,
)
from kgot_lab.domains.npc.visibility import (
    ANY_ENTITY,
    OUTGOING_RELATIONSHIPS,
    CharacterView,
    Traversals,
    Walkable,
    missing_entity_error,
    sort_by_name,
    visible_world,
)
from kgot_lab.errors import BadInput, require, require_probability, short_repr
from kgot_lab.graph.changes import merged_properties
from kgot_lab.graph.property_graph import Direction
from kgot_lab.memory.claims.claim import utc_now
from kgot_lab.memory.tables import TableBacked
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Json

# Writing entities and relationships to the tables: attributes by key, a row of support for each session, and
# their summary.

# `Relationship.key`: the ids of its ends, and its type, as in the primary key of its table. It is no
# `Edge.identity`: relationships have no parallel edges, and so no key of their own.
_RelationshipKey = tuple[str, str, str]
Supports = dict[str, tuple[Provenance, RelationshipStanding]]  # by session


def put_entities(storage: WorldStorage, entities: Sequence[Entity], at: datetime) -> None:
    """Add entities, within a change, and merge them into existing ones."""
    existing = _read_entities(storage, {entity.id for entity in entities})
    put: dict[str, Entity] = {}
    for entity in entities:
        previous = put.get(entity.id) or existing.get(entity.id)
        attributes = merged_properties(previous.attributes if previous else {}, entity.attributes)
        put[entity.id] = replace(entity, attributes=attributes)
    for merged in put.values():
        values = {"id": uuids(merged.id)[0], "type": merged.type, "name": merged.name, "at": at}
        storage.rows(statements.PUT_ENTITY, values | {"attributes": attributes_text(merged.attributes)})


def put_relationships(
    storage: WorldStorage, relationships: Sequence[Relationship], accept_from: float, at: datetime
) -> None:
    """Add relationships, within a change.

    Raises BadInput if an end does not exist.
    """
    directed = [direction for relationship in relationships for direction in _both_directions(relationship)]
    require_entities(storage, {end for each in directed for end in (each.source_id, each.target_id)})
    attributes, supports = _read_existing(storage, directed)
    new: dict[tuple[_RelationshipKey, str], tuple[Provenance, RelationshipStanding]] = {}
    for relationship in directed:
        key, provenance = relationship.key, relationship.provenance
        if not provenance.timestamp:
            provenance = replace(provenance, timestamp=at.astimezone(UTC))
        by_session, session = supports.setdefault(key, {}), provenance.session_id
        support = _support_with_standing(provenance, by_session.get(session), accept_from)
        by_session[session] = new[key, session] = support
        attributes[key] = merged_properties(attributes.get(key, {}), relationship.attributes)
    for key in dict.fromkeys(relationship.key for relationship in directed):
        storage.rows(statements.PUT_RELATIONSHIP, _relationship_row(key, attributes[key], supports[key], at))
    for (key, _), support in new.items():
        storage.rows(statements.PUT_SUPPORT, _support_row(key, *support))


def store_decision(
    storage: WorldStorage, relationship: Relationship, standing: RelationshipStanding, at: datetime
) -> None:
    """Record, within a change, the game master's decision on the statement of a session.

    Raises BadInput if the session states no such thing.
    """
    session = relationship.provenance.session_id
    for directed in _both_directions(relationship):
        attributes, supports = _read_existing(storage, [directed])
        by_session = supports.get(directed.key, {})
        if session not in by_session:
            ends = f"from {directed.source_id} to {directed.target_id}"
            problem = f"the session {short_repr(session)} tells of no relationship"
            raise BadInput(f"{problem} {short_repr(directed.type)} {ends}")
        by_session[session] = (replace(by_session[session][0], dm_confirmed=standing == "accepted"), standing)
        row = _relationship_row(directed.key, attributes[directed.key], by_session, at)
        storage.rows(statements.PUT_RELATIONSHIP, row)
        storage.rows(statements.PUT_SUPPORT, _support_row(directed.key, *by_session[session]))


def require_entities(storage: WorldStorage, ids: set[str]) -> None:
    """Raise BadInput unless there is an entity for each id."""
    for id in sorted(ids - _read_entities(storage, ids).keys()):
        raise missing_entity_error(id)


def _both_directions(relationship: Relationship) -> tuple[Relationship, ...]:
    """Return the directions in which a relationship is stored."""
    back = replace(relationship, source_id=relationship.target_id, target_id=relationship.source_id)
    return (relationship, back) if relationship.type in SYMMETRIC_TYPES else (relationship,)


def _read_entities(storage: WorldStorage, ids: set[str]) -> dict[str, Entity]:
    rows = storage.rows(statements.ENTITIES, {"ids": uuids(*sorted(ids))}) if ids else []
    return {entity.id: entity for entity in map(to_entity, rows)}


def _read_existing(
    storage: WorldStorage, relationships: list[Relationship]
) -> tuple[dict[_RelationshipKey, Mapping[str, Json]], dict[_RelationshipKey, Supports]]:
    """Return the attributes and the support of the relationships that already exist.

    Some others may be included.
    """
    parameters: dict[str, Any] = {
        "sources": uuids(*sorted({relationship.source_id for relationship in relationships})),
        "targets": uuids(*sorted({relationship.target_id for relationship in relationships})),
        "types": sorted({relationship.type for relationship in relationships}),
    }
    attributes: dict[_RelationshipKey, Mapping[str, Json]] = {}
    supports: dict[_RelationshipKey, Supports] = {}
    if relationships:
        rows = storage.rows(statements.RELATIONSHIPS_AMONG, parameters)
        attributes = {row_key(row): to_relationship(row).attributes for row in rows}
        for row in storage.rows(statements.SUPPORT_AMONG, parameters):
            supports.setdefault(row_key(row), {})[row[3]] = support_from_row(row)
    return attributes, supports


def _support_with_standing(
    provenance: Provenance, previous: tuple[Provenance, RelationshipStanding] | None, accept_from: float
) -> tuple[Provenance, RelationshipStanding]:
    """Decide the standing of what a session states.

    A decision of the game master is kept.
    """
    if previous is not None and previous[1] == "rejected" and not provenance.dm_confirmed:
        return provenance, "rejected"
    confirmed = provenance.dm_confirmed or (previous is not None and previous[0].dm_confirmed)
    is_accepted = confirmed or provenance.confidence >= accept_from
    return replace(provenance, dm_confirmed=confirmed), "accepted" if is_accepted else "queued"


def strongest_support(supports: Supports) -> tuple[Provenance, RelationshipStanding]:
    """Return the strongest support of a relationship.

    Accepted goes before queued, then confirmed, more confident and later support.
    """
    order = {"accepted": 2, "queued": 1, "rejected": 0}

    def strength(support: tuple[Provenance, RelationshipStanding]) -> tuple[Any, ...]:
        said, standing = support
        return order[standing], said.dm_confirmed, said.confidence, said.timestamp, said.session_id

    return max(supports.values(), key=strength)


def _relationship_row(
    key: _RelationshipKey, attributes: Mapping[str, Json], supports: Supports, at: datetime
) -> dict[str, Any]:
    provenance, standing = strongest_support(supports)
    texts = {"attributes": attributes_text(attributes), "provenance": provenance_text(provenance)}
    return {**key_parameters(key), **texts, "standing": standing, "at": at}


def _support_row(key: _RelationshipKey, said: Provenance, standing: RelationshipStanding) -> dict[str, Any]:
    values = {"session": said.session_id, "said_at": said.timestamp, "confidence": said.confidence}
    values |= {"kind": said.source, "confirmed": said.dm_confirmed, "standing": standing}
    return {**key_parameters(key), **values}


def key_parameters(key: _RelationshipKey) -> dict[str, Any]:
    """Return the parameters of a statement on one relationship."""
    source, target = uuids(*key[:2])
    return {"source": source, "target": target, "type": key[2]}


def _nonempty(**parameters: Any) -> dict[str, Any]:
    """Return the parameters of a statement that has only the conditions of a filter that are given."""
    return {name: value for name, value in parameters.items() if value}


# Steps that one statement walks. It visits an entity once for each number of steps, so it would follow a cycle
# for every step.
_MAX_DEPTH_IN_ONE_QUERY = 8


class NpcWorld(TableBacked, Traversals):
    """A world. Its own methods see everything that was not rejected, as the author does.

    Use `sight` for what a character sees. Relationships with a confidence of at least `accept_from` are
    accepted at once, the others wait for review.
    """

    storage: WorldStorage

    def __init__(
        self, storage: WorldStorage, *, accept_from: float = 0.7, now: Callable[[], datetime] = utc_now
    ) -> None:
        super().__init__(storage, now=now)
        self.accept_from = require_probability(accept_from, "accept_from")

    # --- changes ---

    def add_entity(self, entity: Entity) -> None:
        """Add an entity, or merge its type, name and attributes into an existing one."""
        self.add([entity])

    def add_relationship(self, relationship: Relationship) -> None:
        """Add a relationship, or another session's support for it.

        It replaces an earlier statement of the same session.
        """
        self.add([], [relationship])

    @check_arguments
    def add(self, entities: Sequence[Entity], relationships: Sequence[Relationship] = ()) -> None:
        """Add many entities and relationships, all or none.

        Raises BadInput if an end of a relationship does not exist.
        """
        with self.storage.changing():
            put_entities(self.storage, entities, self.now())
            put_relationships(self.storage, relationships, self.accept_from, self.now())

    def update_entity(self, id: str, attributes: Mapping[str, Json]) -> None:
        """Change some attributes of an entity. None removes one.

        Raises BadInput if it does not exist.
        """
        changes = check_attributes(attributes, "an entity")
        with self.storage.changing():
            put_entities(self.storage, [replace(self.get_entity(id), attributes=changes)], self.now())

    def delete_entity(self, id: str) -> None:
        """Delete an entity with its relationships and their support.

        Raises BadInput if it does not exist.
        """
        with self.storage.changing():
            self.storage.rows(statements.DELETE_ENTITY, {"id": uuids(self.get_entity(id).id)[0]})

    def delete_relationship(self, source_id: str, target_id: str, type: str) -> None:
        """Delete a relationship, a symmetric one in both directions.

        Raises BadInput if it does not exist.
        """
        source, target = check_id(source_id), check_id(target_id)
        with self.storage.changing():
            self.support(source, target, type)
            for directed in _both_directions(Relationship(source, target, type)):
                self.storage.rows(statements.DELETE_RELATIONSHIP, key_parameters(directed.key))

    # --- queries ---

    def get_entity(self, id: str) -> Entity:
        """Return an entity by its id.

        Raises BadInput if it does not exist.
        """
        id = check_id(id)
        for row in self.storage.rows(statements.ENTITIES, {"ids": uuids(id)}):
            return to_entity(row)
        raise missing_entity_error(id)

    @check_arguments
    def find_entities(self, criteria: EntityFilter = ANY_ENTITY) -> tuple[Entity, ...]:
        """Return the entities that match a filter, by name."""
        parameters = _nonempty(types=criteria.types, name=criteria.name)
        rows = self.storage.rows(statements.select_entities(criteria), parameters)
        return sort_by_name([entity for entity in map(to_entity, rows) if criteria.matches(entity)])

    @check_arguments
    def get_relationships(
        self, entity_id: str, criteria: RelationshipFilter = OUTGOING_RELATIONSHIPS
    ) -> tuple[Relationship, ...]:
        """Return the relationships of an entity that match a filter, ordered by ends and types.

        Raises BadInput if the entity does not exist.
        """
        id, least = check_id(entity_id), criteria.min_confidence
        parameters = _nonempty(types=criteria.types, standing=criteria.standing, least=least)
        values = {"id": uuids(id)[0], **parameters}
        rows = self.storage.rows(statements.select_relationships(criteria), values)
        if not rows:
            raise missing_entity_error(id)
        found = (to_relationship(row) for row in rows if row[0] is not None)
        return tuple(sorted((each for each in found if criteria.matches(each, id)), key=lambda e: e.key))

    def support(
        self, source_id: str, target_id: str, type: str
    ) -> tuple[tuple[Provenance, RelationshipStanding], ...]:
        """Return what each session states for a relationship, and its standing.

        Raises BadInput if the relationship does not exist.
        """
        source, target = check_id(source_id), check_id(target_id)
        key = source, target, checked_text(type, "the type of a relationship")
        rows = self.storage.rows(statements.SUPPORT_OF, key_parameters(key))
        if not rows:
            raise BadInput(f"there is no relationship {short_repr(type)} from {source} to {target}")
        return tuple(map(support_from_row, rows))

    def _reached(self, id: str, depth: int, types: tuple[str, ...], direction: Direction) -> list[Neighbour]:
        if depth > _MAX_DEPTH_IN_ONE_QUERY:
            return super()._reached(id, depth, types, direction)
        parameters = {"id": uuids(id)[0], "depth": depth, **_nonempty(types=types)}
        rows = self.storage.rows(statements.select_reached(direction, types), parameters)
        return [Neighbour(to_entity(row[:-1]), row[-1]) for row in rows]

    # --- views of a character ---

    def sight(self, npc_id: str, *, policy: VisibilityPolicy = DEFAULT_POLICY) -> CharacterView:
        """Return the world as a character sees it, valid as long as the character exists."""
        return CharacterView(self.storage, npc_id, policy)

    def visible_subgraph(
        self, npc_id: str, *, policy: VisibilityPolicy | Literal["document"] = DEFAULT_POLICY
    ) -> VisibleWorld:
        """Return what an entity may see.

        The policy "document" is the query of the document verbatim, for comparison. It reveals secrets.
        Raises BadInput if the entity does not exist.
        """
        id = check_id(npc_id)
        if policy == "document":
            with self.storage.reading():
                self.get_entity(id)
                rows = self.storage.rows(statements.VISIBLE_BY_DOCUMENT, {"npc": uuids(id)[0]})
            return VisibleWorld(sort_by_name([to_entity(row) for row in rows]), ())
        require(policy, VisibilityPolicy, 'a policy of visibility is a VisibilityPolicy(…) or "document"')
        return visible_world(self.storage, id, policy)

    def identity_snapshot(self, npc_id: str) -> IdentitySnapshot:
        """Return a character's own attributes and the relationships that it knows it has.

        Raises BadInput if it does not exist.
        """
        return self.sight(npc_id).identity_snapshot()

    # --- helpers ---

    @contextmanager
    def _walkable(self, direction: Direction, types: tuple[str, ...] = ()) -> Iterator[Walkable]:
        def steps(ids: list[str]) -> list[tuple[str, str]]:
            parameters = {"ids": uuids(*ids), **_nonempty(types=types)}
            rows = self.storage.rows(statements.select_steps(direction, types), parameters)
            return [(str(source), str(target)) for source, target in rows]

        with self.storage.reading():
            yield steps, lambda ids: _read_entities(self.storage, set(ids))
