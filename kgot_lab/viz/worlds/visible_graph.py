"""What someone sees of a world, as a graph: entities under their names, which tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kgot_lab.domains.npc.models import Entity, Relationship, VisibleWorld
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge, Node

# the types that most see, first: so that colours stay from one sight to another
_USUAL = ("npc", "location", "faction", "item", "player")


def seen_graph(seen: VisibleWorld) -> PropertyGraph:
    """The graph of what someone sees: a node's id is the name of its entity, with the beginning of its own id
    where several share it.
    """
    called = called_in(seen.entities)
    ordered = sorted(
        seen.entities, key=lambda each: _USUAL.index(each.type) if each.type in _USUAL else len(_USUAL)
    )
    nodes = [Node(called[each.id], (each.type,), {**each.attributes, "text": each.name}) for each in ordered]
    return PropertyGraph.of(nodes, (_edge(each, called) for each in seen.relationships))


def called_in(entities: Iterable[Entity]) -> dict[str, str]:
    """What each of some entities is called where no two may be called the same, by its id."""
    entities = list(entities)
    times = Counter(each.name for each in entities)
    return {
        each.id: each.name if times[each.name] == 1 else f"{each.name} ({each.id[:8]})" for each in entities
    }


def _edge(relationship: Relationship, called: dict[str, str]) -> Edge:
    return Edge(
        called[relationship.source_id],
        relationship.type,
        called[relationship.target_id],
        dict(relationship.attributes),
    )
