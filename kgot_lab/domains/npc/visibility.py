"""A world as one of those in it sees it: every answer is made of what it may see, and of nothing else."""

from __future__ import annotations

from dataclasses import replace

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
from kgot_lab.domains.npc.policy import DEFAULT_POLICY, VisibilityPolicy
from kgot_lab.domains.npc.statements import WorldStorage
from kgot_lab.domains.npc.visibility import shortest_way, steps_over
from kgot_lab.errors import BadInput, require
from kgot_lab.graph.property_graph import Direction
from kgot_lab.stores.lookup import reached

ANY_ENTITY = EntityFilter()
OUTGOING = RelationshipFilter()


class Sight(EntityReads):
    """What the entity of an id sees: the reading methods of a world. What it may not see is, to all of them,
    not there.
    """

    def __init__(self, storage: WorldStorage, npc_id: str, policy: VisibilityPolicy = DEFAULT_POLICY) -> None:
        require(policy, VisibilityPolicy, "a policy of visibility is a VisibilityPolicy(…)")
        self._storage, self.npc_id, self.policy = storage, fit_id(npc_id), policy

    def __repr__(self) -> str:
        return f"<what {self.npc_id} sees>"

    def get_entity(self, id: str) -> Entity:
        """An entity as it is seen; raises BadInput."""
        return _one_of(self._seen(), fit_id(id))

    def find_entities(self, wanted: EntityFilter = ANY_ENTITY) -> tuple[Entity, ...]:
        """The entities that are wanted, by what is seen of them alone, in the order of their names."""
        require(
            wanted, EntityFilter, "a filter of entities is an EntityFilter(types, name, contains, attributes)"
        )
        return tuple(entity for entity in self._seen().entities if wanted.lets(entity))

    def get_relationships(
        self, entity_id: str, wanted: RelationshipFilter = OUTGOING
    ) -> tuple[Relationship, ...]:
        """The relationships of an entity that are seen and wanted; raises BadInput."""
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
        """Who is within so many steps over relationships that are seen, the nearest first; raises BadInput."""
        fit_direction(direction)
        seen, id = self._seen(), fit_id(entity_id)
        _one_of(seen, id)
        steps = steps_over(seen.relationships, fit_types(types), direction)
        found = reached(id, fit_depth(depth, "depth"), lambda each: (to for _, to in steps([each])))
        there = [Neighbour(entity, found[entity.id]) for entity in seen.entities if found.get(entity.id)]
        return tuple(sorted(there, key=lambda each: each.depth))

    def find_path(
        self, from_id: str, to_id: str, max_depth: int = 5, *, direction: Direction = "out"
    ) -> tuple[Entity, ...]:
        """The entities on a shortest path over relationships that are seen, both ends included, () where
        there is none; raises BadInput.
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
        """All that it sees."""
        self._require_own(npc_id)
        return self._seen()

    def identity_snapshot(self, npc_id: str | None = None) -> IdentitySnapshot:
        """Who it is, and what it is tied to, in one question."""
        self._require_own(npc_id)
        # it reads no further than its own relationships lead
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
    """What an entity may see, in the order of names and ids; raises BadInput where there is no such entity."""
    seen = storage.visible(npc_id, policy)
    if seen is None:
        raise no_entity(npc_id)
    return VisibleWorld(by_name(seen.entities), tuple(sorted(seen.relationships, key=lambda each: each.key)))


def by_name(entities: tuple[Entity, ...] | list[Entity]) -> tuple[Entity, ...]:
    """Entities in the order of their names, then their ids."""
    return tuple(sorted(entities, key=lambda each: (each.name, each.id)))


def no_entity(id: str) -> BadInput:
    """What is said of an id that leads to nothing, whether there is nothing or it may not be seen."""
    return BadInput(f"there is no entity {id}: find_entities() lists those there are")


def _one_of(seen: VisibleWorld, id: str) -> Entity:
    for entity in seen.entities:
        if entity.id == id:
            return entity
    raise no_entity(id)
