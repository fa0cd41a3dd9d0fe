"""Views of a world of characters: what each sees, and who knows of a thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kgot_lab.domains.npc.models import Entity, VisibleWorld
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge, Node

# The visible part of a world as a graph, whose node ids are unique names of entities.

# the most commonly visible types first, so that colours are the same for all NPCs
_COMMON_TYPES = ("npc", "location", "faction", "item", "player")


def visible_graph(visible: VisibleWorld) -> PropertyGraph:
    """Build the graph of the visible part of a world.

    A node's id is the name of its entity. If several share the name, the beginning of the entity's id is
    added.
    """
    names = unique_names(visible.entities)
    ranks = {type: rank for rank, type in enumerate(_COMMON_TYPES)}
    entities = sorted(visible.entities, key=lambda entity: ranks.get(entity.type, len(ranks)))
    nodes = [Node(names[e.id], (e.type,), {**e.attributes, "text": e.name}) for e in entities]
    edges = (
        Edge(names[each.source_id], each.type, names[each.target_id], dict(each.attributes))
        for each in visible.relationships
    )
    return PropertyGraph.of(nodes, edges)


def unique_names(entities: Iterable[Entity]) -> dict[str, str]:
    """Return a unique display name for each entity, by its id."""
    entities = list(entities)
    counts = Counter(entity.name for entity in entities)
    return {
        entity.id: entity.name if counts[entity.name] == 1 else f"{entity.name} ({entity.id[:8]})"
        for entity in entities
    }
