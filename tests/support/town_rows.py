"""All that the tables of a world hold."""

from __future__ import annotations

from typing import Any

from kgot_lab.domains.npc.world import NpcWorld


def rows_of(world: NpcWorld) -> dict[str, list[Any]]:
    """The rows of each table, times and all, in the order of their keys."""
    return {
        table: world.storage.rows(f"SELECT * FROM {table} ORDER BY {keys}")
        for table, keys in {"entities": "1", "relationships": "1, 2, 3", "support": "1, 2, 3, 4"}.items()
    }
