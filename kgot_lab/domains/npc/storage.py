"""What keeps a world: SQLite, PostgreSQL or a Bolt server behind the same methods, each with its own words
for the same questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kgot_lab.domains.npc.models import EntityFilter, RelationshipFilter, VisibleWorld
from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.graph.property_graph import Direction
from kgot_lab.memory.tables.storage import TableStorage

WorldRow = tuple[Any, ...]


@dataclass(frozen=True)
class WorldStatements:
    """What a world asks and changes, in one language; the rows have the same columns in all.

    None is what a language has no statement for.
    """

    entities: str
    relationships_from: str
    relationships_among: str
    support_among: str
    support_of: str
    support_queued: str
    put_entity: str
    put_relationship: str
    put_support: str
    delete_entity: str
    delete_relationship: str
    entities_where: Callable[[EntityFilter], str]
    relationships_where: Callable[[RelationshipFilter], str]
    steps_from: Callable[[Direction, tuple[str, ...]], str]
    reached_from: Callable[[Direction, tuple[str, ...]], str] | None = (
        None  # else places are reached a level at a time
    )
    document_visible: str | None = None


class WorldStorage(TableStorage, Protocol):
    """One world, which no other world's statements reach; raises StoreUnavailable and StoreDamaged."""

    statements: WorldStatements

    def put(
        self, statement: str, rows: Sequence[Mapping[str, Any]]
    ) -> None: ...  # a statement that puts, for each row, within a change
    def changed(
        self, act: Callable[[], None]
    ) -> None: ...  # act within `changing`, and again where others were in its way
    def visible(
        self, npc_id: str, policy: VisibilityPolicy
    ) -> VisibleWorld | None: ...  # None: there is no such entity
