"""What keeps a world: the statements of `statements` put to it in transactions; SQLite or PostgreSQL behind the same seven methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.domains.npc.things import VisibleWorld

WorldRow = tuple[Any, ...]


class WorldStorage(Protocol):
    """The tables of one world, which no other world's statements reach; raises StoreUnavailable and StoreDamaged."""

    def rows(self, statement: str, values: Mapping[str, Any] = ...) -> list[WorldRow]: ...  # [] where it changes something
    def each(self, statement: str, values: Sequence[Mapping[str, Any]]) -> None: ...  # a statement for each of some values
    def reading(self) -> AbstractContextManager[None]: ...  # all that is read within is of one time
    def changing(self) -> AbstractContextManager[None]: ...  # alone, all or nothing, on the disk when it ends
    def visible(self, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld | None: ...  # None: there is no such entity
    def close(self) -> None: ...
