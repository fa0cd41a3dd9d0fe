"""A world in one SQLite file, or in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kgot_lab.domains.npc.models import VisibleWorld
from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.domains.npc.statements import WORLD_LAYOUT, WorldRow, in_sqlite, plain_column
from kgot_lab.domains.npc.visibility import visible_in_python
from kgot_lab.memory.sqlite_tables import SQLiteTables


class SQLiteWorld(SQLiteTables):
    """A WorldStorage in a file, made if there is none there, or in memory (":memory:"); raises what every
    file of tables does.
    """

    def __init__(self, path: Path | str = ":memory:") -> None:
        super().__init__(WORLD_LAYOUT, path)
        self.rows("PRAGMA foreign_keys = ON")  # who is deleted goes with its relationships

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[WorldRow]:
        return super().rows(
            in_sqlite(statement), {name: plain_column(value) for name, value in (values or {}).items()}
        )

    def visible(self, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld | None:
        return visible_in_python(self, npc_id, policy)

    def define(self, table: str, statements: Iterable[str]) -> None:
        with self.changing():
            if not self.rows("SELECT 1 FROM sqlite_master WHERE name = :table", {"table": table}):
                for statement in statements:
                    self.rows(statement)
