"""What a file or a schema of tables holds: its name, its mark, its version, and the statements that make it."""

from __future__ import annotations

from dataclasses import dataclass

from kgot_lab.memory.tables.statements import CLAIM_INDEXES, CLAIM_TABLES, POSTGRES_INDEXES, SQLITE_INDEXES


@dataclass(frozen=True)
class Layout:
    """The tables of one kind of place; statements in what SQLite and PostgreSQL have in common, but for indexes of their own."""

    name: str  # what it holds, in the plural: "claims"
    application: int  # how a file of this kind is told from any other
    tables: tuple[str, ...]
    indexes: tuple[str, ...] = ()
    sqlite: tuple[str, ...] = ()
    postgres: tuple[str, ...] = ()
    version: int = 1

    @property
    def mark(self) -> str:
        """What stands on a schema of this kind, before the number of its version."""
        return f"{self.name} of kgot_lab, version "


CLAIMS_LAYOUT = Layout("claims", 0x6B676C63, CLAIM_TABLES, CLAIM_INDEXES, SQLITE_INDEXES, POSTGRES_INDEXES)  # "kglc"
