"""What keeps a world: tables, and what one of those in it may see of them; SQLite or PostgreSQL behind the same methods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.domains.npc.things import VisibleWorld
from kgot_lab.memory.tables.storage import TableStorage

WorldRow = tuple[Any, ...]


class WorldStorage(TableStorage, Protocol):
    """The tables of one world, which no other world's statements reach; raises StoreUnavailable and StoreDamaged."""

    def visible(self, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld | None: ...  # None: there is no such entity
    def define(self, table: str, statements: Iterable[str]) -> None: ...  # unless there is such a table; in the words of the engine
