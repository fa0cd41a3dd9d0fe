"""A world as one character sees it: the visibility policy in Python and in SQL, and queries under it.

Also the tool by which the loop queries it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kgot_lab.arguments import CheckedCalls
from kgot_lab.domains.npc import statements
from kgot_lab.domains.npc.models import (
    Entity,
    EntityFilter,
    IdentitySnapshot,
    Neighbour,
    Relationship,
    RelationshipFilter,
    Tie,
    VisibleWorld,
    check_direction,
    check_id,
    check_types,
)
from kgot_lab.domains.npc.policy import (
    DEFAULT_POLICY,
    NEVER_PUBLIC,
    VisibilityPolicy,
    is_in_scope,
    is_public_relationship,
    public_form_of_entity,
    public_form_of_relationship,
)
from kgot_lab.domains.npc.statements import WorldRow, WorldStorage, to_entity, to_relationship, uuids
from kgot_lab.errors import BadInput, LabError, ToolFailed, require, require_count
from kgot_lab.graph.property_graph import Direction
from kgot_lab.stores.lookup import nodes_within
from kgot_lab.stores.sql import json_text
from kgot_lab.text.cleaning import single_line
from kgot_lab.text.words import folded_name
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.types import Json

# Shortest paths by breadth-first search: one query for each level, without enumerating walks.

_Types = tuple[str, ...]
StepsFrom = Callable[[list[str]], Iterable[tuple[str, str]]]  # from some ids, every step as (from, to)


def shortest_path(start: str, end: str, steps: StepsFrom, depth: int) -> list[str]:
    """Return the ids on a shortest path of at most `depth` steps, or [] if there is none.

    Of several paths it is the one with the smallest ids.
    """
    paths, frontier = {start: [start]}, [start]
    for _ in range(depth):
        if end in paths or not frontier:
            break
        level = sorted(steps(frontier), reverse=True)  # of several steps to one target the smallest is last
        found = {target: [*paths[source], target] for source, target in level if target not in paths}
        paths, frontier = paths | found, list(found)
    return paths.get(end, [])


def steps_over(relationships: Iterable[Relationship], types: _Types, direction: Direction) -> StepsFrom:
    """Return a function that gives the steps over relationships in memory."""
    targets: dict[str, list[tuple[str, str]]] = {}
    for relationship in relationships:
        if not types or relationship.type in types:
            step = relationship.source_id, relationship.target_id
            directions = {"out": [step], "in": [step[::-1]], "both": [step, step[::-1]]}
            for source, target in directions[direction]:
                targets.setdefault(source, []).append((source, target))
    return lambda ids: [step for id in ids for step in targets.get(id, ())]


# The edges of a world or of a view during one traversal: the steps from some ids, and the entities of some ids.
Walkable = tuple[StepsFrom, Callable[[Iterable[str]], Mapping[str, Entity]]]


_DEPTH = "how many steps a walk may take"


class Traversals(CheckedCalls, ABC):
    """Neighbours and paths over the relationships of a world, or over those that a character sees."""

    @abstractmethod
    def _walkable(self, direction: Direction, types: _Types = ()) -> AbstractContextManager[Walkable]:
        """Open what a traversal reads, all of it of one time."""

    def neighbours(
        self, entity_id: str, depth: int = 1, *, types: tuple[str, ...] = (), direction: Direction = "out"
    ) -> tuple[Neighbour, ...]:
        """Return the entities within `depth` steps, the nearest first.

        Raises BadInput if the start does not exist or is not visible.
        """
        check_direction(direction)
        require_count(depth, 1, "depth", _DEPTH)
        id = check_id(entity_id)
        found = self._reached(id, depth, check_types(types), direction)
        reached = sorted(found, key=lambda each: (each.depth, each.entity.name, each.entity.id))
        if not reached or reached[0].depth:  # not even the start
            raise missing_entity_error(id)
        return tuple(reached[1:])

    def _reached(self, id: str, depth: int, types: tuple[str, ...], direction: Direction) -> list[Neighbour]:
        """Return a start and what is within some steps, with one query for each level."""
        with self._walkable(direction, types) as (steps, entities):
            depths = nodes_within(id, depth, lambda ids: (to for _, to in steps(ids)))
            return [Neighbour(entity, depths[entity.id]) for entity in entities(depths).values()]

    def find_path(
        self, from_id: str, to_id: str, max_depth: int = 5, *, direction: Direction = "out"
    ) -> tuple[Entity, ...]:
        """Return the entities on a shortest path of at most `max_depth` steps, including both ends.

        Returns () if there is no path. Raises BadInput if an end does not exist or is not visible.
        """
        check_direction(direction)
        require_count(max_depth, 1, "max_depth", _DEPTH)
        start, end = check_id(from_id), check_id(to_id)
        with self._walkable(direction) as (steps, entities):
            ends = entities((start, end))
            for id in (start, end):
                if id not in ends:
                    raise missing_entity_error(id)
            path = shortest_path(start, end, steps, max_depth)
            found = entities(path)
        return tuple(found[id] for id in path)


ANY_ENTITY = EntityFilter()
OUTGOING_RELATIONSHIPS = RelationshipFilter()


class CharacterView(Traversals):
    """The reading methods of a world as a character sees it. What it may not see does not exist for them."""

    def __init__(self, storage: WorldStorage, npc_id: str, policy: VisibilityPolicy = DEFAULT_POLICY) -> None:
        self._storage, self.npc_id, self.policy = storage, check_id(npc_id), policy

    def __repr__(self) -> str:
        return f"<what {self.npc_id} sees>"

    def get_entity(self, id: str) -> Entity:
        """Return an entity as the character sees it.

        Raises BadInput if it does not exist or is not visible.
        """
        return _visible_entity(self._visible_world(), check_id(id))

    def find_entities(self, criteria: EntityFilter = ANY_ENTITY) -> tuple[Entity, ...]:
        """Return the visible entities that match a filter, by name.

        The filter is applied to visible attributes only.
        """
        return tuple(entity for entity in self._visible_world().entities if criteria.matches(entity))

    def get_relationships(
        self, entity_id: str, criteria: RelationshipFilter = OUTGOING_RELATIONSHIPS
    ) -> tuple[Relationship, ...]:
        """Return the visible relationships of an entity that match a filter.

        Raises BadInput if the entity does not exist or is not visible.
        """
        seen, id = self._visible_world(), check_id(entity_id)
        _visible_entity(seen, id)
        return tuple(r for r in seen.relationships if criteria.matches(r, id))

    def visible_subgraph(self, npc_id: str | None = None) -> VisibleWorld:
        """Return everything that the character sees."""
        self._require_same_character(npc_id)
        return self._visible_world()

    def identity_snapshot(self, npc_id: str | None = None) -> IdentitySnapshot:
        """Return the character itself and its relationships, in one query."""
        self._require_same_character(npc_id)
        # only its own relationships are followed
        own_policy = replace(self.policy, spreading=(), public_types=(), perceived_types=())
        seen = visible_world(self._storage, self.npc_id, own_policy)
        entities = {entity.id: entity for entity in seen.entities}
        ties = (Tie(each.type, entities[each.target_id], each.attributes) for each in seen.relationships)
        return IdentitySnapshot(entities[self.npc_id], tuple(ties))

    def _require_same_character(self, npc_id: str | None) -> None:
        if npc_id is not None and check_id(npc_id) != self.npc_id:
            raise BadInput("nobody sees with the eyes of another: ask the world itself what that one sees")

    def _visible_world(self) -> VisibleWorld:
        return visible_world(self._storage, self.npc_id, self.policy)

    def _walkable(self, direction: Direction, types: _Types = ()) -> AbstractContextManager[Walkable]:
        seen = self._visible_world()
        by_id = {entity.id: entity for entity in seen.entities}
        steps = steps_over(seen.relationships, types, direction)
        return nullcontext((steps, lambda ids: {id: by_id[id] for id in ids if id in by_id}))


def visible_world(storage: WorldStorage, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld:
    """Return what an entity may see, by name and id.

    Raises BadInput if there is no such entity.
    """
    seen = storage.visible_world(npc_id, policy)
    if seen is None:
        raise missing_entity_error(npc_id)
    return VisibleWorld(sort_by_name(seen.entities), tuple(sorted(seen.relationships, key=lambda e: e.key)))


def sort_by_name(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Sort entities by name, then by id."""
    return tuple(sorted(entities, key=lambda entity: (entity.name, entity.id)))


def missing_entity_error(id: str) -> BadInput:
    """Return the error for an id without a visible entity.

    It is the same for missing and hidden entities.
    """
    return BadInput(f"there is no entity {id}: find_entities() lists those there are")


def _visible_entity(seen: VisibleWorld, id: str) -> Entity:
    for entity in seen.entities:
        if entity.id == id:
            return entity
    raise missing_entity_error(id)


# The visibility policy in Python, for a world in this process: one query for each step.

# the public relationships that start at some entities, and the LOCATED_AT of perceived types that end at some
PublicEdges = Callable[[set[str]], Iterable[Relationship]]


@dataclass(frozen=True)
class PolicyWalk:
    """What an entity knows of before its scope is applied: by id, the relationship that first reached it.

    `own` are the targets of its own relationships, `spread` those reached by spreading types only, which lead
    further. `beside` are those at the same place, each by its LOCATED_AT.
    """

    own: Mapping[str, Relationship]
    spread: Mapping[str, Relationship]
    beside: Mapping[str, Relationship]

    @property
    def known(self) -> set[str]:
        """The ids of all that it knows of."""
        return {*self.own, *self.spread, *self.beside}


def visible_in_python(storage: WorldStorage, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld | None:
    """Return what an entity may see, or None if there is no such entity.

    Everything is read in one transaction.
    """
    with storage.reading():
        found = storage.rows(statements.ENTITIES, {"ids": uuids(npc_id)})
        if not found:
            return None
        character = to_entity(found[0])
        own = _public_edges(storage, statements.RELATIONSHIPS_FROM, {npc_id})
        spreading = partial(_public_edges, storage, statements.PUBLIC_FROM, types=policy.spreading)
        located = partial(_public_edges, storage, statements.LOCATED_THERE, types=policy.perceived_types)
        known = uuids(npc_id, *policy_walk(own, spreading, located, policy).known)
        entities = [to_entity(row) for row in storage.rows(statements.ENTITIES, {"ids": known})]
        entities = [entity for entity in entities if is_in_scope(entity, character)]
        ids = {entity.id for entity in entities}
        others = ids - {npc_id}
        shown = _public_edges(storage, statements.PUBLIC_FROM, others, types=policy.public_types, among=ids)
    return VisibleWorld(
        tuple(e if e.id == npc_id else public_form_of_entity(e, policy) for e in entities),
        (*(e for e in own if e.target_id in ids), *map(public_form_of_relationship, shown)),
    )


def policy_walk(
    own: Iterable[Relationship], spreading: PublicEdges, located: PublicEdges, policy: VisibilityPolicy
) -> PolicyWalk:
    """Walk as the policy does: the entity's own relationships, then the spreading types level by level.

    Those beside it are found in the public LOCATED_AT that end at its own places.
    """
    spread: dict[str, Relationship] = {}

    def follow(found: Iterable[Relationship], *, knows: bool) -> set[str]:
        types = set(policy.spreading) - (set() if knows else {"KNOWS"})
        followed = [relationship for relationship in found if relationship.type in types]
        for relationship in followed:
            spread.setdefault(relationship.target_id, relationship)
        return {relationship.target_id for relationship in followed}

    # of several to one target the last one counts: where it is, if it is there
    own = sorted(own, key=lambda each: each.type == "LOCATED_AT")
    level = follow(own, knows=True)
    frontier, visited = set(level), set[str]()
    for _ in range(policy.knows_depth - 1):
        level = follow(spreading(level), knows=True)
        frontier |= level
    while frontier:
        visited |= frontier
        frontier = follow(spreading(frontier), knows=False) - visited
    beside = {each.source_id: each for each in located({e.target_id for e in own if e.type == "LOCATED_AT"})}
    return PolicyWalk({each.target_id: each for each in own}, spread, beside)


def _public_edges(
    storage: WorldStorage, statement: str, ids: set[str], *, among: set[str] | None = None, **more: Any
) -> list[Relationship]:
    """Return the public ones of the relationships that a statement finds for some entities, to those in `among`."""
    rows = storage.rows(statement, {"ids": uuids(*sorted(ids)), **more}) if ids else []
    found = (to_relationship(row) for row in rows if among is None or str(row[1]) in among)
    return [each for each in found if is_public_relationship(each)]


# The visibility policy as one statement for PostgreSQL, so that hidden data never leaves the server.

_IS_PUBLIC = "r.standing = 'accepted' AND NOT r.secret"
_IN_SCOPE = "me.scope IS NULL OR me.scope ? e.type OR me.scope ? CAST(e.id AS text)"
_PUBLIC_ATTRIBUTES = """(SELECT coalesce(jsonb_object_agg(a.key, a.value), '{{}}') FROM jsonb_each({of}.attributes) a
    WHERE a.key <> ALL(:never) AND ({usual} OR {of}.attributes->'public' ? a.key))"""

# The beginning of every query of a character: `me`, and `seen`, the entities that it may see, including
# itself.
SEEN = f"""
WITH RECURSIVE
me AS (SELECT id, attributes->'knowledge_scope' AS scope FROM entities WHERE id = :npc),
own AS (SELECT r.target_id, r.rel_type FROM relationships r WHERE r.source_id = :npc AND {_IS_PUBLIC}),
walked (id, steps) AS (
  SELECT target_id, 1 FROM own WHERE rel_type = ANY(:spreading)
  UNION
  SELECT r.target_id, CASE WHEN w.steps < :knows_depth THEN w.steps + 1 ELSE w.steps END
  FROM walked w JOIN relationships r ON r.source_id = w.id
  WHERE {_IS_PUBLIC} AND r.rel_type = ANY(:spreading) AND (r.rel_type <> 'KNOWS' OR w.steps < :knows_depth)),
beside AS (
  SELECT r.source_id FROM own JOIN relationships r ON r.target_id = own.target_id JOIN entities e ON e.id = r.source_id
  WHERE own.rel_type = 'LOCATED_AT' AND r.rel_type = 'LOCATED_AT' AND {_IS_PUBLIC} AND e.type = ANY(:perceived_types)),
known AS (SELECT id FROM me UNION SELECT target_id FROM own UNION SELECT id FROM walked UNION SELECT source_id FROM beside),
seen AS (
  SELECT e.*, e.id = me.id AS self FROM known JOIN entities e ON e.id = known.id CROSS JOIN me WHERE e.id = me.id OR {_IN_SCOPE})"""
SEEN_ENTITY = f"""e.id, e.type, e.name,
  CASE WHEN e.self THEN e.attributes ELSE {_PUBLIC_ATTRIBUTES.format(of="e", usual="CAST(:public AS jsonb)->e.type ? a.key")} END,
  CASE WHEN e.self THEN e.created_at END, CASE WHEN e.self THEN e.updated_at END"""
SEEN_RELATIONSHIPS = f"""relationships r JOIN seen source ON source.id = r.source_id JOIN seen target ON target.id = r.target_id
WHERE {_IS_PUBLIC} AND (source.self OR r.rel_type = ANY(:public_types))"""

VISIBLE = f"""{SEEN}
SELECT {SEEN_ENTITY},
  NULL, NULL, NULL, NULL
FROM seen e
UNION ALL
SELECT r.source_id, r.standing, r.rel_type,
  CASE WHEN source.self THEN r.attributes ELSE {_PUBLIC_ATTRIBUTES.format(of="r", usual="false")} END,
  CASE WHEN source.self THEN r.created_at END, CASE WHEN source.self THEN r.updated_at END,
  r.target_id, CASE WHEN source.self THEN r.provenance ELSE '{{}}' END, r.standing, r.rel_type
FROM {SEEN_RELATIONSHIPS}"""


def policy_parameters(npc_id: str, policy: VisibilityPolicy) -> dict[str, Any]:
    """Return the parameters of the statement for an entity and a policy."""
    public = json.dumps({type: list(names) for type, names in policy.public_attributes.items()})
    return {**vars(policy), "npc": uuids(npc_id)[0], "public": public, "never": list(NEVER_PUBLIC)}


def world_from_rows(rows: list[WorldRow]) -> VisibleWorld | None:
    """Convert the rows of the statement to a visible world.

    Returns None if there are none, because then there is no such entity.
    """
    entities = [to_entity(row[:6]) for row in rows if row[6] is None]
    relationship_rows = [row for row in rows if row[6] is not None]
    relationships = [
        to_relationship((source, target, type, attributes, provenance, standing, *times))
        for source, _, _, attributes, *times, target, provenance, standing, type in relationship_rows
    ]
    return VisibleWorld(tuple(entities), tuple(relationships)) if entities else None


# The tool by which the loop asks what a character knows.

_TOOL_NAME = "memory.query_entities"
_ABOUT = "Tells who and what is known in the world, and how they are related; without arguments, all of it."
_OPTIONAL_ARGUMENTS = {
    "name": "a part of the names that are looked for",
    "type": "what is looked for: npc, player, location, item, faction, event, quest or concept",
    "near": "the name of someone or something: only what is directly related to it is looked for",
}


def query_entities(sight: CharacterView, *, most: int = 20) -> TextTool:
    """Create a tool that lists the entities that a character sees, one a line, with their relationships.

    It filters by name, type and nearness, and lists at most `most` entities. An empty result is a ToolFailed,
    with the same message for hidden and missing entities.
    """
    require(sight, CharacterView, f"{_TOOL_NAME} is bound to what one sees: world.sight(npc_id)")
    require_count(most, 1, "most", "how many entities are reported")

    @tool_failures(_TOOL_NAME)
    def run(name: str = "", type: str = "", near: str = "") -> Result:
        seen = sight.visible_subgraph()
        criteria = EntityFilter(types=(type.lower(),) if type else (), contains=name)
        nearby = _ids_near(seen, near) if near else {entity.id for entity in seen.entities}
        matching = [entity for entity in seen.entities if entity.id in nearby and criteria.matches(entity)]
        if not matching:
            raise BadInput("nothing that is known fits; ask for less, or in other words")
        return Result(_format_entities(seen, matching[:most], len(matching) - most))

    return TextTool(_TOOL_NAME, _ABOUT, {}, run, may=_OPTIONAL_ARGUMENTS)


@contextmanager
def tool_failures(tool: str) -> Iterator[None]:
    """Raise errors as ToolFailed, with the name of the tool."""
    try:
        yield
    except LabError as error:
        raise ToolFailed(f"{tool}: {error}") from None


def _ids_near(seen: VisibleWorld, name: str) -> set[str]:
    """Return the ids of the entities with a name, and of those directly related to them."""
    ids = {entity.id for entity in seen.entities if folded_name(entity.name) == folded_name(name)}
    ends = ({relationship.source_id, relationship.target_id} for relationship in seen.relationships)
    return ids.union(*(ends_of_one for ends_of_one in ends if ends_of_one & ids))


def _format_entities(seen: VisibleWorld, entities: list[Entity], omitted: int) -> str:
    names = {entity.id: single_line(entity.name) for entity in seen.entities}
    listed = {entity.id for entity in entities}
    lines = list(map(format_entity, entities))
    related = [each for each in seen.relationships if listed & {each.source_id, each.target_id}]
    lines += [_format_relationship(relationship, names) for relationship in related]
    lines += [f"and {omitted} more: ask by name, type or near"] if omitted > 0 else []
    return "\n".join(lines)


def format_entity(entity: Entity) -> str:
    """Format an entity as one line: its name, type and attributes."""
    return f"{single_line(entity.name)} ({single_line(entity.type)}){_format_attributes(entity.attributes)}"


def _format_relationship(relationship: Relationship, names: Mapping[str, str]) -> str:
    source, target = names[relationship.source_id], names[relationship.target_id]
    type = single_line(relationship.type)
    return f"{source} {type} {target}{_format_attributes(relationship.attributes)}"


def _format_attributes(attributes: Mapping[str, Json]) -> str:
    return f": {json_text(dict(attributes), 'attributes')}" if attributes else ""
