"""The tables of a world, in SQLite or in PostgreSQL."""

from __future__ import annotations

from typing import Any, Protocol

from kgot_lab.domains.npc.models import VisibleWorld
from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.memory.tables import TableStorage

WorldRow = tuple[Any, ...]


class WorldStorage(TableStorage, Protocol):
    """One world, which no other world's statements reach; raises StoreUnavailable and StoreDamaged."""

    def visible(
        self, npc_id: str, policy: VisibilityPolicy
    ) -> VisibleWorld | None: ...  # None: there is no such entity
