"""A world of characters: read, change and review entities and relationships with their provenance."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

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
from kgot_lab.domains.npc.statements import WorldStorage, to_entity, to_relationship, uuids
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
from kgot_lab.io.times import from_micros, utc_now
from kgot_lab.stores.tables.history import Change, RecordedTables, VersionKeys, erase_versions, open_versions
from kgot_lab.stores.tables.layout import TableStorage
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Json, Triple

# Writing entities and relationships to the tables: attributes by key, a row of support for each session, and
# their summary.

# `Relationship.key`: the ids of its ends, and its type, as in the primary key of its table. It is no
# `Edge.identity`: relationships have no parallel edges, and so no key of their own.
_Key = tuple[str, str, str]
Said = tuple[Provenance, RelationshipStanding]  # what a session states, and its standing
Supports = dict[str, Said]  # by session


@dataclass(frozen=True)
class _Stored:
    """A relationship as stored: its attributes, and what each session states. Without any it is not there."""

    attributes: Mapping[str, Json] = field(default_factory=dict)
    supports: Supports = field(default_factory=dict)
    created_at: datetime | None = None

    @property
    def strongest(self) -> str:
        return strongest_support(self.supports)[1] if self.supports else ""

    def with_support(self, said: Said, attributes: Mapping[str, Json] = {}) -> _Stored:
        """Return the relationship with the statement of a session in place of its earlier one."""
        supports = {**self.supports, said[0].session_id: said}
        return replace(self, attributes=merged_properties(self.attributes, attributes), supports=supports)


def put_entities(change: Change, entities: Sequence[Entity]) -> None:
    """Add entities, and merge them into existing ones.

    Raises BadInput for two of one id that contradict each other, and for another time of creation than before.
    """
    existing = _read_entities(change.storage, {entity.id for entity in entities})
    given: dict[str, dict[str, Json]] = {}
    put: dict[str, Entity] = {}
    for entity in entities:
        previous = put.get(entity.id) or existing.get(entity.id)
        values = {"its type": entity.type, "its name": entity.name, **entity.attributes}
        earlier = given.setdefault(entity.id, {})
        if contradicting := [key for key, value in values.items() if earlier.setdefault(key, value) != value]:
            problem = f"two entities of one call have the id {entity.id} and contradict each other"
            raise BadInput(f"{problem} in {', '.join(contradicting)}: give each its own id, or merge them")
        if entity.created_at not in (None, previous and previous.created_at):
            problem = f"created_at of the entity {entity.id} is the time when it is added"
            raise BadInput(f"{problem}: leave it out, or say when in an attribute")
        attributes = merged_properties(previous.attributes if previous else {}, entity.attributes)
        put[entity.id] = replace(entity, attributes=attributes)
    for id, merged in put.items():
        before, after = (_entity_text(each) for each in (existing.get(id), merged))
        change.record("entity", id, before, after)
        _write_entity(change, id, merged.type, merged.name, merged.attributes)


def put_relationships(change: Change, relationships: Sequence[Relationship], accept_from: float) -> None:
    """Add relationships. What is somewhere else than before is no longer where it was.

    Raises BadInput if an end does not exist, and for another time of creation or standing than before.
    """
    directed = [direction for relationship in relationships for direction in _both_directions(relationship)]
    require_entities(change.storage, {end for each in directed for end in (each.source_id, each.target_id)})
    before = _read_stored(change.storage, directed)
    after = dict(before)
    for relationship in directed:
        key, provenance = relationship.key, relationship.provenance
        if not provenance.timestamp:
            provenance = replace(provenance, timestamp=from_micros(change.at))
        stored = after.get(key, _Stored())
        known = {"accepted", *(standing for _, standing in stored.supports.values())}
        if relationship.created_at not in (None, stored.created_at) or relationship.standing not in known:
            problem = f"the relationship {key} has created_at and standing from when it is added and decided"
            raise BadInput(f"{problem}: leave them out, or say when in an attribute")
        support = _support_with_standing(provenance, stored.supports.get(provenance.session_id), accept_from)
        after[key] = stored.with_support(support, relationship.attributes)
    _store(change, before, {relationship.key: after[relationship.key] for relationship in directed})


def store_decision(
    change: Change, relationship: Relationship, session: str, standing: RelationshipStanding
) -> None:
    """Record the game master's decision on the statement of a session.

    Raises BadInput if the session states no such thing.
    """
    directed = _both_directions(relationship)
    before = _read_stored(change.storage, directed)
    after = {}
    for key in (each.key for each in directed):
        stored = before.get(key, _Stored())
        if session not in stored.supports:
            source, target, type = key
            problem = f"the session {short_repr(session)} tells of no relationship"
            raise BadInput(f"{problem} {short_repr(type)} from {source} to {target}")
        decided = replace(stored.supports[session][0], dm_confirmed=standing == "accepted")
        after[key] = stored.with_support((decided, standing))
    _store(change, before, after)


def _store(change: Change, before: Mapping[_Key, _Stored], after: Mapping[_Key, _Stored]) -> None:
    """Store relationships, and end the earlier places of what is now somewhere else."""
    placed = {key for key, each in after.items() if key[2] == "LOCATED_AT" and each.strongest == "accepted"}
    moved = {key[0] for key in placed if before.get(key, _Stored()).strongest != "accepted"}
    rows = change.storage.rows(statements.PLACES_OF, {"ids": uuids(*sorted(moved))}) if moved else []
    left = [each for each in map(to_relationship, rows) if each.key not in after]
    earlier = _read_stored(change.storage, left)
    ended = {each.key: earlier[each.key] for each in left}
    for key, stored in ended.items():
        for provenance, standing in stored.supports.values():
            if standing == "accepted":
                ended[key] = ended[key].with_support((provenance, "ended"))
    for key, stored in {**after, **ended}.items():
        _record(change, key, before.get(key) or earlier.get(key, _Stored()), stored)


def _record(change: Change, key: _Key, before: _Stored, after: _Stored) -> None:
    """Write a relationship to the tables, and what is new of it to their history."""
    attributes = [statements.attributes_text(e.attributes) if e.attributes else None for e in (before, after)]
    change.record("relationship", json.dumps(key), *attributes)
    for session in {**before.supports, **after.supports}:
        states = [_support_text(each.supports.get(session)) for each in (before, after)]
        change.record("support", json.dumps([*key, session]), *states)
    _write_relationship(change, key, before, after)


def _write_relationship(change: Change, key: _Key, before: _Stored, after: _Stored) -> None:
    """Write a relationship to the tables."""
    if not after.supports:
        change.storage.rows(statements.DELETE_RELATIONSHIP, key_parameters(key))
        return
    provenance, standing = strongest_support(after.supports)
    texts = statements.attributes_text(after.attributes), statements.provenance_text(provenance)
    row = {"attributes": texts[0], "provenance": texts[1], "standing": standing, "at": from_micros(change.at)}
    change.storage.rows(statements.PUT_RELATIONSHIP, key_parameters(key) | row)
    for session in before.supports.keys() - after.supports.keys():
        change.storage.rows(statements.DELETE_SUPPORT, {**key_parameters(key), "session": session})
    for session, support in after.supports.items():
        if before.supports.get(session) != support:
            change.storage.rows(statements.PUT_SUPPORT, _support_row(key, *support))


def _write_entity(change: Change, id: str, type: str, name: str, attributes: Mapping[str, Json]) -> None:
    values = {"id": uuids(id)[0], "type": type, "name": name, "at": from_micros(change.at)}
    values |= {"attributes": statements.attributes_text(attributes)}
    change.storage.rows(statements.PUT_ENTITY, values)


def _entity_text(entity: Entity | None) -> str | None:
    if entity is None:
        return None
    return json.dumps([entity.type, entity.name, dict(entity.attributes)], sort_keys=True)


def _support_text(support: Said | None) -> str | None:
    return support and json.dumps([json.loads(statements.provenance_text(support[0])), support[1]])


def require_entities(storage: TableStorage, ids: set[str]) -> None:
    """Raise BadInput unless there is an entity for each id."""
    for id in sorted(ids - _read_entities(storage, ids).keys()):
        raise missing_entity_error(id)


def _both_directions(relationship: Relationship) -> tuple[Relationship, ...]:
    """Return the directions in which a relationship is stored."""
    back = replace(relationship, source_id=relationship.target_id, target_id=relationship.source_id)
    return (relationship, back) if relationship.type in SYMMETRIC_TYPES else (relationship,)


def _read_entities(storage: TableStorage, ids: set[str]) -> dict[str, Entity]:
    rows = storage.rows(statements.ENTITIES, {"ids": uuids(*sorted(ids))}) if ids else []
    return {entity.id: entity for entity in map(to_entity, rows)}


def _read_stored(storage: TableStorage, relationships: Sequence[Relationship]) -> dict[_Key, _Stored]:
    """Return the relationships that already exist. Some others may be included."""
    if not relationships:
        return {}
    parameters: dict[str, Any] = {
        "sources": uuids(*sorted({relationship.source_id for relationship in relationships})),
        "targets": uuids(*sorted({relationship.target_id for relationship in relationships})),
        "types": sorted({relationship.type for relationship in relationships}),
    }
    rows = storage.rows(statements.RELATIONSHIPS_AMONG, parameters)
    found = map(to_relationship, rows)
    stored = {each.key: _Stored(each.attributes, created_at=each.created_at) for each in found}
    for row in storage.rows(statements.SUPPORT_AMONG, parameters):
        key = statements.row_key(row)
        stored[key] = stored[key].with_support(statements.support_from_row(row))
    return stored


def _support_with_standing(provenance: Provenance, previous: Said | None, accept_from: float) -> Said:
    """Decide the standing of what a session states.

    A decision of the game master is kept.
    """
    if previous is not None and previous[1] == "rejected" and not provenance.dm_confirmed:
        return provenance, "rejected"
    confirmed = provenance.dm_confirmed or (previous is not None and previous[0].dm_confirmed)
    is_accepted = confirmed or provenance.confidence >= accept_from
    return replace(provenance, dm_confirmed=confirmed), "accepted" if is_accepted else "queued"


def strongest_support(supports: Supports) -> Said:
    """Return the strongest support of a relationship.

    Accepted goes before queued, then confirmed, more confident and later support.
    """
    order = {"accepted": 3, "queued": 2, "ended": 1, "rejected": 0}

    def strength(support: Said) -> tuple[Any, ...]:
        said, standing = support
        return order[standing], said.dm_confirmed, said.confidence, said.timestamp, said.session_id

    return max(supports.values(), key=strength)


def _support_row(key: _Key, said: Provenance, standing: RelationshipStanding) -> dict[str, Any]:
    values = {"session": said.session_id, "said_at": said.timestamp, "confidence": said.confidence}
    values |= {"kind": said.source, "confirmed": said.dm_confirmed, "standing": standing}
    return {**key_parameters(key), **values}


def key_parameters(key: _Key) -> dict[str, Any]:
    """Return the parameters of a statement on one relationship."""
    source, target = uuids(*key[:2])
    return {"source": source, "target": target, "type": key[2]}


def _nonempty(**parameters: Any) -> dict[str, Any]:
    """Return the parameters of a statement that has only the conditions of a filter that are given."""
    return {name: value for name, value in parameters.items() if value}


# Steps that one statement walks. It visits an entity once for each number of steps, so it would follow a cycle
# for every step.
_MAX_DEPTH_IN_ONE_QUERY = 8


class NpcWorld(RecordedTables, Traversals):
    """A world. Its own methods see everything that was not rejected, as the author does.

    Use `sight` for what a character sees. Relationships with a confidence of at least `accept_from` are
    accepted at once, the others wait for review.
    """

    storage: WorldStorage
    _part = "entity"

    def __init__(
        self, storage: WorldStorage, *, accept_from: float = 0.7, now: Callable[[], datetime] = utc_now
    ) -> None:
        super().__init__(storage, now=now)
        self.accept_from = require_probability(accept_from, "accept_from")

    # --- changes ---
    #
    # Each returns its number, by which it can be undone, or None if it changed nothing.

    def add_entity(self, entity: Entity) -> int | None:
        """Add an entity, or merge its type, name and attributes into an existing one."""
        return self.add([entity])

    def add_relationship(self, relationship: Relationship) -> int | None:
        """Add a relationship, or another session's support for it.

        It replaces an earlier statement of the same session.
        """
        return self.add([], [relationship])

    def add(
        self, entities: Sequence[Entity], relationships: Sequence[Relationship] = (), *, by: str = ""
    ) -> int | None:
        """Add many entities and relationships, all or none.

        An accepted LOCATED_AT ends those of the same entity that earlier changes added: their standing is
        "ended". Raises BadInput if an end of a relationship does not exist, and for entities of one id that
        contradict each other.
        """
        with self.change("add", by) as change:
            put_entities(change, entities)
            put_relationships(change, relationships, self.accept_from)
            return change.number

    def update_entity(self, id: str, attributes: Mapping[str, Json]) -> int | None:
        """Change some attributes of an entity. None removes one.

        Raises BadInput if it does not exist.
        """
        changes = check_attributes(attributes, "an entity")
        with self.change("update") as change:
            put_entities(change, [replace(self.get_entity(id), attributes=changes)])
            return change.number

    def delete_entity(self, id: str) -> None:
        """Delete an entity with its relationships, their support and their history, which nothing brings back.

        Raises BadInput if it does not exist.
        """
        with self.change("erase") as change:
            id = self.get_entity(id).id
            change.begin()
            erase_versions(self.storage, statements.VERSIONS_OF_ENTITY, {"id": id})
            self.storage.rows(statements.DELETE_ENTITY, {"id": uuids(id)[0]})

    def delete_relationship(self, source_id: str, target_id: str, type: str) -> int | None:
        """Delete a relationship, a symmetric one in both directions.

        Raises BadInput if it does not exist.
        """
        source, target = check_id(source_id), check_id(target_id)
        with self.change("delete") as change:
            self.support(source, target, type)
            directed = _both_directions(Relationship(source, target, type))
            stored = _read_stored(self.storage, directed)
            for key in (each.key for each in directed):
                _record(change, key, stored[key], _Stored())
            return change.number

    def _targets(self) -> dict[int, set[str]]:
        sessions: dict[int, set[str]] = {}
        for number, key in self.storage.rows(statements.SESSIONS_OPENED):
            sessions.setdefault(number, set()).add(json.loads(key)[3])
        return {number: names - {""} for number, names in sessions.items()}

    def _facts_of(self, keys: VersionKeys) -> set[Triple]:
        """Return which of some entities exist and which of some relationships are accepted, by name.

        A symmetric relationship is there once.
        """
        directed = (json.loads(key)[:3] for kind, key in keys if kind != "entity")
        ties = {(*(sorted(ids) if type in SYMMETRIC_TYPES else ids), type) for *ids, type in directed}
        ids = {id for tie in ties for id in tie[:2]} | {key for kind, key in keys if kind == "entity"}
        entities = _read_entities(self.storage, ids)
        found = {Triple(entities[key].name, "is a", entities[key].type) for _, key in keys if key in entities}
        for tie, stored in _read_stored(self.storage, [Relationship(*t) for t in ties]).items():
            if tie in ties and stored.strongest == "accepted":
                found.add(Triple(entities[tie[0]].name, tie[2], entities[tie[1]].name))
        return found

    def _restore(self, change: Change, keys: VersionKeys) -> None:
        """Write the current versions of some keys to the tables.

        Raises BadInput if an end of a relationship, or an entity that texts are about, would not exist.
        """
        values = {(kind, key): next(iter(open_versions(self.storage, kind, key)), None) for kind, key in keys}
        entities = {key: value for (kind, key), value in values.items() if kind == "entity"}
        for id, text in entities.items():
            if text is not None:
                _write_entity(change, id, *json.loads(text))
        ties = dict.fromkeys(tuple(json.loads(key)[:3]) for kind, key in keys if kind != "entity")
        before = _read_stored(self.storage, [Relationship(*key) for key in ties])
        for key in ties:
            stored = before.get(key, _Stored())
            attributes, supports = dict(stored.attributes), dict(stored.supports)
            if ("relationship", json.dumps(key)) in values:
                attributes = statements.parse_json_column(values["relationship", json.dumps(key)] or "{}")
            for (kind, text), value in values.items():
                if kind == "support" and tuple((parts := json.loads(text))[:3]) == key:
                    supports.pop(parts[3], None)
                    supports |= {parts[3]: statements.support_from_text(value)} if value else {}
            if supports:
                require_entities(self.storage, set(key[:2]))
            _write_relationship(change, key, stored, _Stored(attributes, supports))
        for id in (id for id, text in entities.items() if text is None):
            row = {"id": uuids(id)[0]}
            if self.storage.has_table("chunks") and self.storage.rows(statements.TEXTS_ABOUT, row):
                raise BadInput(f"there are texts about the entity {id}: delete them first")
            self.storage.rows(statements.DELETE_ENTITY, row)

    # --- queries ---

    def get_entity(self, id: str) -> Entity:
        """Return an entity by its id.

        Raises BadInput if it does not exist.
        """
        id = check_id(id)
        for row in self.storage.rows(statements.ENTITIES, {"ids": uuids(id)}):
            return to_entity(row)
        raise missing_entity_error(id)

    def find_entities(self, criteria: EntityFilter = ANY_ENTITY) -> tuple[Entity, ...]:
        """Return the entities that match a filter, by name."""
        parameters = _nonempty(types=criteria.types, name=criteria.name)
        rows = self.storage.rows(statements.select_entities(criteria), parameters)
        return sort_by_name([entity for entity in map(to_entity, rows) if criteria.matches(entity)])

    def get_relationships(
        self, entity_id: str, criteria: RelationshipFilter = OUTGOING_RELATIONSHIPS
    ) -> tuple[Relationship, ...]:
        """Return the relationships of an entity that match a filter, ordered by ends and types.

        Raises BadInput if the entity does not exist.
        """
        id = check_id(entity_id)
        rows = self.storage.rows(statements.select_relationships(criteria.direction), {"id": uuids(id)[0]})
        if not rows:
            raise missing_entity_error(id)
        found = (to_relationship(row) for row in rows if row[0] is not None)
        return tuple(sorted((each for each in found if criteria.matches(each, id)), key=lambda e: e.key))

    def support(self, source_id: str, target_id: str, type: str) -> tuple[Said, ...]:
        """Return what each session states for a relationship, and its standing.

        Raises BadInput if the relationship does not exist.
        """
        source, target = check_id(source_id), check_id(target_id)
        key = source, target, checked_text(type, "the type of a relationship")
        rows = self.storage.rows(statements.SUPPORT_OF, key_parameters(key))
        if not rows:
            raise BadInput(f"there is no relationship {short_repr(type)} from {source} to {target}")
        return tuple(map(statements.support_from_row, rows))

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
