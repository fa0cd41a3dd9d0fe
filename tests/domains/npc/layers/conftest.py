"""Layers on a world on each engine, empty; and two in which many worlds are planted, one after the other."""

from __future__ import annotations

import pytest
from support.npc_places import planted_embedder

from kgot_lab.domains.npc.layers.memory import WorldLayers
from kgot_lab.domains.npc.world import NpcWorld


@pytest.fixture
def layers(world: NpcWorld) -> WorldLayers:
    return WorldLayers(world, planted_embedder())


@pytest.fixture(scope="module")
def layered(fields: dict[str, NpcWorld]) -> dict[str, WorldLayers]:
    return {engine: WorldLayers(world, planted_embedder()) for engine, world in fields.items()}
