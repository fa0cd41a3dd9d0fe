"""What a world of characters can be asked and told: twelve methods in three parts.

What a storage may offer beside them, searching texts with the graph, stands in `domains/layers/protocol.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kgot_lab.domains.npc.models import (
    Entity,
    EntityFilter,
    IdentitySnapshot,
    Neighbour,
    Relationship,
    RelationshipFilter,
    VisibleWorld,
)
from kgot_lab.graph.property_graph import Direction
from kgot_lab.types import Json


class EntityReads(Protocol):
    """What can be asked about a world; each raises BadInput for an entity that is not there."""

    def get_entity(self, id: str) -> Entity: ...
    def find_entities(self, wanted: EntityFilter = ...) -> tuple[Entity, ...]: ...
    def get_relationships(
        self, entity_id: str, wanted: RelationshipFilter = ...
    ) -> tuple[Relationship, ...]: ...
    def neighbours(
        self, entity_id: str, depth: int = ..., *, types: tuple[str, ...] = ..., direction: Direction = ...
    ) -> tuple[
        Neighbour, ...
    ]: ...  # breadth first, each once, with its least depth; the start is not among them
    def find_path(
        self, from_id: str, to_id: str, max_depth: int = ..., *, direction: Direction = ...
    ) -> tuple[Entity, ...]: ...


class EntityWrites(Protocol):
    """How a world is changed: what is there already takes on the attributes that come, one by one, and None
    takes one away.
    """

    def add_entity(self, entity: Entity) -> None: ...
    def update_entity(self, id: str, attributes: Mapping[str, Json]) -> None: ...
    def delete_entity(self, id: str) -> None: ...  # with its relationships
    def add_relationship(self, relationship: Relationship) -> None: ...
    def delete_relationship(self, source_id: str, target_id: str, type: str) -> None: ...


class EntityViews(Protocol):
    """What one character may know."""

    def visible_subgraph(self, npc_id: str) -> VisibleWorld: ...
    def identity_snapshot(self, npc_id: str) -> IdentitySnapshot: ...


class EntityGraph(EntityReads, EntityWrites, EntityViews, Protocol):
    """All twelve."""
