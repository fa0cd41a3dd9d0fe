"""Worlds of characters in tests: where they are kept, and how a planted one gets there."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from psycopg.conninfo import conninfo_to_dict

from kgot_lab.domains.npc.layers.memory import WorldLayers
from kgot_lab.domains.npc.layers.models import Chunk, LogEntry
from kgot_lab.domains.npc.models import Entity, Provenance, Relationship
from kgot_lab.domains.npc.opening import open_world
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.embedding.fitted import LSA, lsa
from kgot_lab.types import Document
from support.npc_planted import WORDS, PlantedWorld


def at_postgres(conninfo: str, namespace: str, **how: Any) -> NpcWorld:
    """A world in a schema of a server."""
    parts = conninfo_to_dict(conninfo)
    return open_world(f"postgresql:///{parts.pop('dbname')}?{urlencode(parts)}", namespace=namespace, **how)


def plant(planted: PlantedWorld, world: NpcWorld) -> None:
    """Put a planted world in the place of what was there."""
    world.storage.rows("DELETE FROM entities")
    entities = [
        Entity(entity.type, entity.name, entity.attributes, entity.id) for entity in planted.entities.values()
    ]
    world.add(entities, [relationship(edge) for edge in planted.edges])


def plant_layers(planted: PlantedWorld, layers: WorldLayers) -> None:
    """Put a planted world in the place of what was there, with what was said and told in it."""
    plant(planted, layers.world)
    layers.log.storage.rows("DELETE FROM log")
    layers.log.append(
        LogEntry(entry.session, entry.text, entry.audience, entry.speaker) for entry in planted.entries
    )
    layers.chunks.add(Chunk(chunk.entity, chunk.text, chunk.audience, chunk.id) for chunk in planted.chunks)


def planted_embedder() -> LSA:
    """An embedder that knows the words of planted texts, and gives a text of other words a vector of zeros."""
    return lsa([Document(f"{one} {other}", f"{one} {other}") for one in WORDS for other in WORDS[:3]])


def relationship(edge: Any) -> Relationship:
    """A planted edge as it is added."""
    return Relationship(
        edge.source,
        edge.target,
        edge.type,
        edge.attributes,
        Provenance(edge.session, confidence=edge.confidence),
    )
