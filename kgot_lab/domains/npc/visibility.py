"""A world as one character sees it: the visibility policy in Python and in SQL, and queries under it.

Also the tool by which the loop queries it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kgot_lab.domains.npc import statements
from kgot_lab.domains.npc.models import (
    Entity,
    EntityFilter,
    EntityReads,
    IdentitySnapshot,
    Neighbour,
    Relationship,
    RelationshipFilter,
    Tie,
    VisibleWorld,
    fit_depth,
    fit_direction,
    fit_id,
    fit_types,
)
from kgot_lab.domains.npc.policy import (
    DEFAULT_POLICY,
    NEVER,
    VisibilityPolicy,
    as_seen_by_others,
    in_scope,
    is_public_relationship,
    public_form,
)
from kgot_lab.domains.npc.statements import WorldRow, WorldStorage, entity_of, relationship_of, uuids
from kgot_lab.errors import BadInput, LabError, ToolFailed, require, require_count
from kgot_lab.graph.property_graph import Direction
from kgot_lab.stores.lookup import nodes_within
from kgot_lab.stores.sql import json_text
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.types import Json

# Shortest paths by breadth-first search: one query for each level, without enumerating walks.

StepsFrom = Callable[[list[str]], Iterable[tuple[str, str]]]  # from some ids, every step as (from, to)


def shortest_way(start: str, end: str, steps: StepsFrom, depth: int) -> list[str]:
    """Return the ids on a shortest path of at most `depth` steps, or [] if there is none.

    Of several paths it is the one with the smallest ids.
    """
    came_from, ahead = {start: ""}, [start]
    for _ in range(depth):
        if end in came_from or not ahead:
            break
        new: dict[str, str] = {}
        for source, target in sorted(steps(ahead)):
            if target not in came_from:
                new.setdefault(target, source)
        came_from |= new
        ahead = sorted(new)
    if end not in came_from:
        return []
    path = [end]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]


def steps_over(
    relationships: Iterable[Relationship], types: tuple[str, ...], direction: Direction
) -> StepsFrom:
    """Return a function that gives the steps over relationships in memory."""
    there: dict[str, list[tuple[str, str]]] = {}
    for each in relationships:
        if not types or each.type in types:
            ways = {"out": [(each.source_id, each.target_id)], "in": [(each.target_id, each.source_id)]}
            for source, target in ways[direction] if direction != "both" else ways["out"] + ways["in"]:
                there.setdefault(source, []).append((source, target))
    return lambda ids: [step for id in ids for step in there.get(id, ())]


ANY_ENTITY = EntityFilter()
OUTGOING = RelationshipFilter()


class Sight(EntityReads):
    """The reading methods of a world as a character sees it. What it may not see does not exist for them."""

    def __init__(self, storage: WorldStorage, npc_id: str, policy: VisibilityPolicy = DEFAULT_POLICY) -> None:
        require(policy, VisibilityPolicy, "a policy of visibility is a VisibilityPolicy(…)")
        self._storage, self.npc_id, self.policy = storage, fit_id(npc_id), policy

    def __repr__(self) -> str:
        return f"<what {self.npc_id} sees>"

    def get_entity(self, id: str) -> Entity:
        """Return an entity as the character sees it.

        Raises BadInput if it does not exist or is not visible.
        """
        return _one_of(self._seen(), fit_id(id))

    def find_entities(self, wanted: EntityFilter = ANY_ENTITY) -> tuple[Entity, ...]:
        """Return the visible entities that match a filter, by name.

        The filter is applied to visible attributes only.
        """
        require(
            wanted, EntityFilter, "a filter of entities is an EntityFilter(types, name, contains, attributes)"
        )
        return tuple(entity for entity in self._seen().entities if wanted.lets(entity))

    def get_relationships(
        self, entity_id: str, wanted: RelationshipFilter = OUTGOING
    ) -> tuple[Relationship, ...]:
        """Return the visible relationships of an entity that match a filter.

        Raises BadInput if the entity does not exist or is not visible.
        """
        require(
            wanted,
            RelationshipFilter,
            "a filter of relationships is a RelationshipFilter(direction, types, …)",
        )
        seen, id = self._seen(), fit_id(entity_id)
        _one_of(seen, id)
        return tuple(each for each in seen.relationships if wanted.lets(each, id))

    def neighbours(
        self, entity_id: str, depth: int = 1, *, types: tuple[str, ...] = (), direction: Direction = "out"
    ) -> tuple[Neighbour, ...]:
        """Return the entities within `depth` steps over visible relationships, the nearest first.

        Raises BadInput if the start does not exist or is not visible.
        """
        fit_direction(direction)
        seen, id = self._seen(), fit_id(entity_id)
        _one_of(seen, id)
        steps = steps_over(seen.relationships, fit_types(types), direction)
        found = nodes_within(id, fit_depth(depth, "depth"), lambda each: (to for _, to in steps([each])))
        there = [Neighbour(entity, found[entity.id]) for entity in seen.entities if found.get(entity.id)]
        return tuple(sorted(there, key=lambda each: each.depth))

    def find_path(
        self, from_id: str, to_id: str, max_depth: int = 5, *, direction: Direction = "out"
    ) -> tuple[Entity, ...]:
        """Return the entities on a shortest path over visible relationships, including both ends.

        Returns () if there is no path. Raises BadInput if an end does not exist or is not visible.
        """
        fit_direction(direction)
        seen, start, end = self._seen(), fit_id(from_id), fit_id(to_id)
        for id in (start, end):
            _one_of(seen, id)
        path = shortest_way(
            start, end, steps_over(seen.relationships, (), direction), fit_depth(max_depth, "max_depth")
        )
        return tuple(_one_of(seen, id) for id in path)

    def visible_subgraph(self, npc_id: str | None = None) -> VisibleWorld:
        """Return everything that the character sees."""
        self._require_own(npc_id)
        return self._seen()

    def identity_snapshot(self, npc_id: str | None = None) -> IdentitySnapshot:
        """Return the character itself and its relationships, in one query."""
        self._require_own(npc_id)
        # only its own relationships are followed
        own = replace(self.policy, spreading=(), public_types=())
        seen = seen_by(self._storage, self.npc_id, own)
        entities = {entity.id: entity for entity in seen.entities}
        ties = (Tie(each.type, entities[each.target_id], each.attributes) for each in seen.relationships)
        return IdentitySnapshot(entities[self.npc_id], tuple(ties))

    def _require_own(self, npc_id: str | None) -> None:
        if npc_id is not None and fit_id(npc_id) != self.npc_id:
            raise BadInput("nobody sees with the eyes of another: ask the world itself what that one sees")

    def _seen(self) -> VisibleWorld:
        return seen_by(self._storage, self.npc_id, self.policy)


def seen_by(storage: WorldStorage, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld:
    """Return what an entity may see, by name and id.

    Raises BadInput if there is no such entity.
    """
    seen = storage.visible(npc_id, policy)
    if seen is None:
        raise no_entity(npc_id)
    return VisibleWorld(by_name(seen.entities), tuple(sorted(seen.relationships, key=lambda each: each.key)))


def by_name(entities: tuple[Entity, ...] | list[Entity]) -> tuple[Entity, ...]:
    """Sort entities by name, then by id."""
    return tuple(sorted(entities, key=lambda each: (each.name, each.id)))


def no_entity(id: str) -> BadInput:
    """Return the error for an id without a visible entity.

    It is the same for missing and hidden entities.
    """
    return BadInput(f"there is no entity {id}: find_entities() lists those there are")


def _one_of(seen: VisibleWorld, id: str) -> Entity:
    for entity in seen.entities:
        if entity.id == id:
            return entity
    raise no_entity(id)


# The visibility policy in Python, for a world in this process: one query for each step.

# the public relationships that start at some entities
ToldFrom = Callable[[set[str]], Iterable[Relationship]]


@dataclass(frozen=True)
class PolicyWalk:
    """What an entity knows of before its scope is applied: by id, the relationship that first reached it.

    `own` are the targets of its own relationships, `spread` those reached by spreading types only, which lead
    further.
    """

    own: Mapping[str, Relationship]
    spread: Mapping[str, Relationship]


def visible_in_python(storage: WorldStorage, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld | None:
    """Return what an entity may see, or None if there is no such entity.

    Everything is read in one transaction.
    """
    with storage.reading():
        found = storage.rows(statements.ENTITIES, {"ids": uuids(npc_id)})
        if not found:
            return None
        me = entity_of(found[0])
        walk = policy_walk(lambda ids: _public_relationships(storage, ids), npc_id, policy)
        known = {npc_id, *walk.own, *walk.spread}
        entities = [entity_of(row) for row in storage.rows(statements.ENTITIES, {"ids": uuids(*known)})]
        entities = [each for each in entities if in_scope(each, me)]
        ids = {each.id for each in entities}
        between = [each for each in _public_relationships(storage, ids) if each.target_id in ids]
    return VisibleWorld(
        tuple(each if each.id == npc_id else as_seen_by_others(each, policy) for each in entities),
        tuple(
            each if each.source_id == npc_id else public_form(each)
            for each in between
            if each.source_id == npc_id or each.type in policy.public_types
        ),
    )


def policy_walk(public_edges: ToldFrom, npc_id: str, policy: VisibilityPolicy) -> PolicyWalk:
    """Walk as the policy does: the entity's own relationships, then the spreading types level by level."""
    spread: dict[str, Relationship] = {}

    def led(found: Iterable[Relationship], *, knows: bool) -> set[str]:
        onward = [each for each in found if each.type in policy.spreading and (knows or each.type != "KNOWS")]
        for each in onward:
            spread.setdefault(each.target_id, each)
        return {each.target_id for each in onward}

    own = list(public_edges({npc_id}))
    level = led(own, knows=True)
    ahead, walked = set(level), set[str]()
    for _ in range(policy.knows_depth - 1):
        level = led(public_edges(level), knows=True)
        ahead |= level
    while ahead:
        walked |= ahead
        ahead = led(public_edges(ahead), knows=False) - walked
    return PolicyWalk({each.target_id: each for each in own}, spread)


def _public_relationships(storage: WorldStorage, ids: set[str]) -> list[Relationship]:
    """Return the public relationships that start at some entities."""
    rows = storage.rows(statements.RELATIONSHIPS_FROM, {"ids": uuids(*sorted(ids))})
    return [each for each in map(relationship_of, rows) if is_public_relationship(each)]


# The visibility policy as one statement for PostgreSQL, so that hidden data never leaves the server.

_TOLD = "r.standing = 'accepted' AND NOT r.secret"
_SCOPE = "me.scope IS NULL OR me.scope ? e.type OR me.scope ? CAST(e.id AS text)"
_SHOWN = """(SELECT coalesce(jsonb_object_agg(a.key, a.value), '{{}}') FROM jsonb_each({of}.attributes) a
    WHERE a.key <> ALL(:never) AND ({usual} OR {of}.attributes->'public' ? a.key))"""

# The beginning of every query of a character: `me`, and `seen`, the entities that it may see, including
# itself.
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
    """Return the parameters of the statement for an entity and a policy."""
    return {
        "npc": uuids(npc_id)[0],
        "spreading": list(policy.spreading),
        "public_types": list(policy.public_types),
        "public": json.dumps({type: list(names) for type, names in policy.public_attributes.items()}),
        "never": list(NEVER),
        "knows_depth": policy.knows_depth,
    }


def visible_of(rows: list[WorldRow]) -> VisibleWorld | None:
    """Convert the rows of the statement to a visible world.

    Returns None if there are none, because then there is no such entity.
    """
    entities = [entity_of(row[:6]) for row in rows if row[6] is None]
    told = [row for row in rows if row[6] is not None]
    relationships = [
        relationship_of((source, target, type, attributes, provenance, standing, *times))
        for source, _, _, attributes, *times, target, provenance, standing, type in told
    ]
    return VisibleWorld(tuple(entities), tuple(relationships)) if entities else None


# The tool by which the loop asks what a character knows.

_NAME = "memory.query_entities"
_MAY = {
    "name": "a part of the names that are looked for",
    "type": "what is looked for: npc, player, location, item, faction, event, quest or concept",
    "near": "the name of someone or something: only what is directly related to it is looked for",
}


def query_entities(sight: Sight, *, most: int = 20) -> TextTool:
    """Create a tool that lists the entities that a character sees, one a line, with their relationships.

    It filters by name, type and nearness, and lists at most `most` entities. An empty result is a ToolFailed,
    with the same message for hidden and missing entities.
    """
    require(sight, Sight, f"{_NAME} is bound to what one sees: world.sight(npc_id)")
    require_count(most, 1, "most", "how many entities are told")

    def run(name: str = "", type: str = "", near: str = "") -> Result:
        try:
            seen = sight.visible_subgraph()
            wanted = EntityFilter(types=(type.lower(),) if type else (), contains=name)
        except LabError as error:
            raise ToolFailed(f"{_NAME}: {error}") from None
        around = _near(seen, near) if near else {each.id for each in seen.entities}
        found = [each for each in seen.entities if each.id in around and wanted.lets(each)]
        if not found:
            raise ToolFailed(f"{_NAME}: nothing that is known fits; ask for less, or in other words")
        return Result(_text(seen, found[:most], len(found) - most))

    about = (
        "Tells who and what is known in the world, and how they are related; without arguments, all of it."
    )
    return TextTool(_NAME, about, {}, run, may=_MAY)


def _near(seen: VisibleWorld, name: str) -> set[str]:
    """Return the ids of the entities with a name, and of those directly related to them."""
    named = {each.id for each in seen.entities if each.name.casefold() == name.casefold()}
    ends = ({each.source_id, each.target_id} for each in seen.relationships)
    return named.union(*(pair for pair in ends if pair & named))


def _text(seen: VisibleWorld, found: list[Entity], more: int) -> str:
    names, told = {each.id: _line(each.name) for each in seen.entities}, {each.id for each in found}
    lines = [f"{names[each.id]} ({_line(each.type)}){_attributes(each.attributes)}" for each in found]
    lines += [_related(each, names) for each in seen.relationships if told & {each.source_id, each.target_id}]
    return "\n".join([*lines, *([f"and {more} more: ask by name, type or near"] if more > 0 else [])])


def _related(each: Relationship, names: Mapping[str, str]) -> str:
    return f"{names[each.source_id]} {_line(each.type)} {names[each.target_id]}{_attributes(each.attributes)}"


def _attributes(attributes: Mapping[str, Json]) -> str:
    return f": {json_text(dict(attributes), 'attributes')}" if attributes else ""


def _line(text: str) -> str:
    return " ".join(text.split())
