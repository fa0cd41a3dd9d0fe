"""Worlds of characters in tests: where they are kept, and how a planted one gets there."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from psycopg.conninfo import conninfo_to_dict

from kgot_lab.domains.npc.opening import open_world
from kgot_lab.domains.npc.things import Entity, Provenance, Relationship
from kgot_lab.domains.npc.world import NpcWorld
from support.npc_planted import PlantedWorld


def at_postgres(conninfo: str, namespace: str, **how: Any) -> NpcWorld:
    """A world in a schema of a server."""
    parts = conninfo_to_dict(conninfo)
    return open_world(f"postgresql:///{parts.pop('dbname')}?{urlencode(parts)}", namespace=namespace, **how)


def plant(planted: PlantedWorld, world: NpcWorld) -> None:
    """Put a planted world in the place of what was there."""
    world.storage.rows("DELETE FROM entities")
    entities = [Entity(each.type, each.name, each.attributes, each.id) for each in planted.entities.values()]
    world.add(entities, [relationship(each) for each in planted.edges])


def relationship(edge: Any) -> Relationship:
    """A planted edge as it is added."""
    return Relationship(edge.source, edge.target, edge.type, edge.attributes, Provenance(edge.session, confidence=edge.confidence))
