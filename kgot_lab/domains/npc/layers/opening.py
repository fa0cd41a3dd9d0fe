"""Which layers a world has, by what it is kept in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgot_lab.domains.npc.layers.storage import LayerStorage, PostgresLayers, SQLiteLayers
from kgot_lab.domains.npc.opening import PostgresWorld, SQLiteWorld
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.errors import BadInput, described_value, require

_LAYERS: dict[type, Callable[[Any], LayerStorage]] = {
    SQLiteWorld: SQLiteLayers,
    PostgresWorld: PostgresLayers,
}


def layers_of(world: NpcWorld) -> LayerStorage:
    """The layers of a world, in the place where it is kept; raises BadInput for a storage that has none."""
    require(world, NpcWorld, "layers lie on an NpcWorld")
    if type(world.storage) not in _LAYERS:
        raise BadInput(
            f"layers lie on a world in SQLite or PostgreSQL, not in {described_value(world.storage)}"
        )
    return _LAYERS[type(world.storage)](world.storage)
